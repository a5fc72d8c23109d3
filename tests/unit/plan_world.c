/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/unit/plan_world.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "launcher/cli/options_parse.h"
#include "launcher/plan/plan_internal.h"
#include "launcher/plan/planner.h"
#include "tests/unit/scratch.h"

#define N_PATHS 256
static char *paths[N_PATHS];
static size_t n_paths;

char *plan_world_path(struct plan_world *w, const char *name)
{
	char *s = NULL;

	if (n_paths >= N_PATHS || asprintf(&s, "%s/%s", w->dir, name) < 0)
		fail_msg("out of paths");
	paths[n_paths++] = s;
	return s;
}

char *plan_world_long_path(const char *begin, size_t n, size_t name_max)
{
	char *path = malloc(n + 1);
	size_t at = strlen(begin);

	assert_non_null(path);
	memcpy(path, begin, at);
	for (size_t in_name = name_max; at < n; at++) {
		path[at] = in_name == name_max && at + 1 < n ? '/' : 'a';
		in_name = path[at] == '/' ? 0 : in_name + 1;
	}
	path[n] = '\0';
	return path;
}

void plan_world_mkdir(struct plan_world *w, const char *name)
{
	char *path = plan_world_path(w, name);

	for (char *s = strchr(path + strlen(w->dir) + 1, '/'); s; s = strchr(s + 1, '/')) {
		*s = '\0';
		assert_true(mkdir(path, 0755) == 0 || errno == EEXIST);
		*s = '/';
	}
	assert_true(mkdir(path, 0755) == 0 || errno == EEXIST);
}

void plan_world_write(struct plan_world *w, const char *name, const char *text, unsigned mode)
{
	char *path = plan_world_path(w, name);
	SBX_AUTO_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(fchmod(fd, mode), 0);
}

void plan_world_link(struct plan_world *w, const char *name, const char *target)
{
	assert_int_equal(symlink(target, plan_world_path(w, name)), 0);
}

void plan_world_set(char **field, const char *value)
{
	free(*field);
	*field = value ? strdup(value) : NULL;
}

void plan_world_env(struct plan_world *w, const char *entry)
{
	size_t n = 0;

	while (w->environ[n])
		n++;
	assert_true(n + 1 < SBX_N_ELEMENTS(w->environ));
	w->environ[n] = strdup(entry);
}

static void make_usr(struct plan_world *w)
{
	plan_world_mkdir(w, "root/usr/bin");
	plan_world_mkdir(w, "root/usr/sbin");
	plan_world_mkdir(w, "root/usr/lib/npm");
	plan_world_mkdir(w, "root/usr/lib64");
	plan_world_mkdir(w, "root/usr/local/bin");
	plan_world_write(w, "root/usr/bin/true", "", 0755);
	plan_world_write(w, "root/usr/bin/sh", "", 0755);
	plan_world_write(w, "root/usr/bin/python3.11", "", 0755);
	plan_world_link(w, "root/usr/bin/python3", "python3.11");
	plan_world_write(w, "root/usr/bin/sudo", "", 0755);
	plan_world_write(w, "root/usr/bin/unexecutable", "", 0644);
	plan_world_write(w, "root/usr/sbin/nft", "", 0755);
	plan_world_write(w, "root/usr/lib/npm/npm-cli.js", "", 0755);
	plan_world_link(w, "root/usr/bin/npm", "../lib/npm/npm-cli.js");
	plan_world_link(w, "root/usr/bin/awk", "/etc/alternatives/awk");
	plan_world_write(w, "root/usr/bin/mawk", "", 0755);
	plan_world_link(w, "root/bin", "usr/bin");
	plan_world_link(w, "root/sbin", "usr/sbin");
	plan_world_link(w, "root/lib", "usr/lib");
	plan_world_link(w, "root/lib64", "usr/lib64");
}

static void make_etc(struct plan_world *w)
{
	plan_world_mkdir(w, "root/etc/alternatives");
	plan_world_mkdir(w, "root/etc/ssl/certs");
	plan_world_mkdir(w, "root/etc/ssl/private");
	plan_world_mkdir(w, "root/etc/ssh");
	plan_world_link(w, "root/etc/alternatives/awk", "/usr/bin/mawk");
	plan_world_link(w, "root/etc/localtime", "/usr/share/zoneinfo/UTC");
	plan_world_write(w, "root/etc/ssl/certs/ca-certificates.crt", PLAN_WORLD_CERTIFICATES,
			 0644);
	plan_world_write(w, "root/etc/ssl/private/key", "private\n", 0640);
	assert_int_equal(chmod(plan_world_path(w, "root/etc/ssl/private"), 0710), 0);
	plan_world_write(w, "root/etc/hosts", "127.0.0.1 localhost thehost\n", 0644);
	plan_world_write(w, "root/etc/passwd", "root:x:0:0::/root:/bin/sh\n", 0644);
	plan_world_write(w, "root/etc/shadow", "root:!:1::::::\n", 0640);
	plan_world_write(w, "root/etc/machine-id", "0123456789abcdef0123456789abcdef\n", 0444);
	plan_world_write(w, "root/etc/npmrc", "//registry.example/:_authToken=abc\n", 0644);
	plan_world_write(w, "root/etc/gitconfig", "[init]\n", 0644);
	plan_world_write(w, "root/etc/ssh/ssh_config", "Host *\n", 0644);
}

static void make_home(struct plan_world *w)
{
	plan_world_mkdir(w, "home/project/.ssh");
	plan_world_mkdir(w, "home/project/sub");
	plan_world_mkdir(w, "home/other");
	plan_world_write(w, "home/project/tool", "", 0755);
	plan_world_write(w, "home/project/data.txt", "", 0644);
	plan_world_link(w, "home/project/link", "/usr/bin/sudo");
	plan_world_mkdir(w, "state");
	plan_world_mkdir(w, "run");
	plan_world_mkdir(w, "config/profiles");
	plan_world_mkdir(w, "user-config/profiles");
}

static void make_facts(struct plan_world *w)
{
	struct sbx_facts *f = &w->facts;
	const char *src = getenv("SBX_SRCDIR");

	memcpy(f->id, "0123456789ab", sizeof(f->id));
	f->caller_uid = getuid();
	f->caller_gid = getgid();
	f->uid = f->broker_uid = 1000;
	f->gid = f->broker_gid = 1000;
	f->user_name = strdup("dev");
	f->shell = strdup("/bin/sh");
	f->home = strdup(plan_world_path(w, "home"));
	f->cwd = strdup(plan_world_path(w, "home/project"));
	f->state_dir = strdup(plan_world_path(w, "state"));
	f->runtime_dir = strdup(plan_world_path(w, "run"));
	f->config_dir = strdup(plan_world_path(w, "config"));
	f->user_config_dir = strdup(plan_world_path(w, "user-config"));
	f->libexec_dir = strdup("/usr/libexec/sbx");
	f->data_dir = strdup(src ? src : ".");
	f->bwrap = strdup("/usr/bin/bwrap");
	f->resolv_conf = strdup("search example\nnameserver 192.0.2.53\nnameserver fe80::1%eth0\n"
				"nameserver 2001:db8::53\n");
	f->hosts = strdup("");
	f->root = strdup(plan_world_path(w, "root"));
	f->environ = w->environ;
	plan_world_env(w, "PATH=/usr/local/bin:/usr/bin:/bin:/nowhere:relative");
	plan_world_env(w, "TERM=xterm");
	plan_world_env(w, "LANG=C.UTF-8");
	plan_world_env(w, "SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt");
	plan_world_env(w, "https_proxy=http://proxy.example:3128");
	plan_world_env(w, "AWS_SECRET_ACCESS_KEY=hush");
}

int plan_world_setup_in(const char *dir, void **state)
{
	struct plan_world *w = calloc(1, sizeof(*w));

	if (!w)
		return -1;
	umask(022);
	snprintf(w->dir, sizeof(w->dir), "%s/sbx-plan-XXXXXX", dir);
	if (!mkdtemp(w->dir))
		return -1;
	chmod(w->dir, 0755);
	make_usr(w);
	make_etc(w);
	make_home(w);
	make_facts(w);
	*state = w;
	return 0;
}

int plan_world_setup(void **state)
{
	return plan_world_setup_in("/tmp", state);
}

static void forget_plan(struct plan_world *w)
{
	w->plan = sbx_plan_free(w->plan);
	sbx_options_fini(&w->options);
	memset(&w->errs, 0, sizeof(w->errs));
}

int plan_world_teardown(void **state)
{
	struct plan_world *w = *state;
	struct sbx_facts *f = &w->facts;
	char *const strings[] = { f->user_name,	  f->home,	  f->shell,	 f->cwd,
				  f->state_dir,	  f->runtime_dir, f->config_dir, f->user_config_dir,
				  f->libexec_dir, f->data_dir,	  f->bwrap,	 f->resolv_conf,
				  f->hosts,	  f->root };

	forget_plan(w);
	scratch_remove(w->dir);
	for (size_t i = 0; i < SBX_N_ELEMENTS(strings); i++)
		free(strings[i]);
	for (size_t i = 0; w->environ[i]; i++)
		free(w->environ[i]);
	while (n_paths > 0)
		free(paths[--n_paths]);
	free(w);
	return 0;
}

int plan_world_plan(struct plan_world *w, ...)
{
	static char program[] = "sbx-run";
	struct sbx_err err = { 0 };
	va_list ap;
	int n = 0, r;
	char *word;

	forget_plan(w);
	w->argv[n++] = program;
	va_start(ap, w);
	while ((word = va_arg(ap, char *)) && n + 1 < (int)SBX_N_ELEMENTS(w->argv))
		w->argv[n++] = word;
	va_end(ap);
	w->argv[n] = NULL;
	if (sbx_options_parse(n, w->argv, &w->options, &err) != 0)
		fail_msg("bad options: %s", err.msg);
	r = sbx_plan_new(&w->options, &w->facts, &w->errs, &w->plan);
	if (r == 0)
		w->draft = sbx_plan_draft(w->plan->self);
	return r;
}

void plan_world_said(const struct plan_world *w, const char *part)
{
	char text[SBX_ERR_FILE_MAX + SBX_ERR_MSG_MAX + 64];

	for (size_t i = 0; i < w->errs.n; i++)
		if (strstr(sbx_err_format(&w->errs.v[i], text, sizeof(text)), part))
			return;
	fail_msg("'%s' was not said, but: %s", part, w->errs.n ? w->errs.v[0].msg : "nothing");
}

size_t plan_world_n_notes(const struct plan_world *w)
{
	size_t n = 0;

	for (size_t i = 0; w->plan && i < w->plan->notes.n; i++)
		n += !strstr(w->plan->notes.v[i], ".ssh/ is hidden");
	return n;
}

bool plan_world_noted(const struct plan_world *w, const char *part)
{
	for (size_t i = 0; w->plan && i < w->plan->notes.n; i++)
		if (strstr(w->plan->notes.v[i], part))
			return true;
	return false;
}

const struct sbx_mount_op *plan_world_mount(const struct plan_world *w, const char *dest)
{
	for (size_t i = w->plan->view.n_mounts; i > 0; i--)
		if (w->plan->view.mounts[i - 1].kind != SBX_MOUNT_REMOUNT_RO &&
		    strcmp(w->plan->view.mounts[i - 1].dest, dest) == 0)
			return &w->plan->view.mounts[i - 1];
	return NULL;
}
