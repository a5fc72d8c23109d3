/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Facts of the host and the caller, read once at the start of sbx-run. The environment, /proc/self
 * and the user database are looked at here and nowhere else in planning, so that a plan is a
 * function of what it is given.
 *
 * Trust: root's environment is root's (sudo scrubs it); an ordinary user's steers only his own run.
 * A directory from the environment must be absolute, and a privileged launcher's be out of others'
 * reach (trust.h): sudo may have been told to leave the environment alone. bwrap is executed with
 * the sandbox's privileges, yet it must belong to root or to us and be writable by nobody else.
 */
#include "launcher/host/facts_gather.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "launcher/host/config.h"
#include "launcher/host/exit_status.h"
#include "launcher/host/facts.h"
#include "launcher/host/facts_user.h"
#include "launcher/host/trust.h"
#include "launcher/process/privileges.h"
#include "policy/keys/profile_parse.h"
#include "sys/fs/path_normalise.h"
#include "sys/fs/path_resolve.h"
#include "sys/process/proc.h"
#include "sys/seccomp/landlock.h"

#define RESOLV_CONF_MAX (64u << 10)
#define HOSTS_MAX	(1u << 20)
#define BWRAP		"/usr/bin/bwrap"

static char *join(const char *dir, const char *name)
{
	char *s;

	return asprintf(&s, "%s/%s", dir, name) < 0 ? NULL : s;
}

/* --- directories --- */

/* A variable that holds a directory: *ret_dir NULL when it is unset or empty. */
static int dir_from_env(const char *name, char **ret_dir, struct sbx_err *err)
{
	const char *value = getenv(name);

	*ret_dir = NULL;
	if (!value || !value[0])
		return 0;
	if (value[0] != '/') {
		sbx_err_set(err, "%s is '%s': it must be an absolute path", name, value);
		return SBX_FACTS_E_UNUSABLE;
	}
	*ret_dir = strdup(value);
	return *ret_dir ? 0 : -ENOMEM;
}

/* The XDG base directory specification: a relative value is ignored. */
static char *xdg_dir(const char *name, const char *home, const char *fallback)
{
	const char *value = getenv(name);

	return value && value[0] == '/' ? join(value, "sbx") : join(home, fallback);
}

static bool is_own_dir(const char *path, uid_t uid)
{
	struct stat st;

	return path && path[0] == '/' && stat(path, &st) == 0 && S_ISDIR(st.st_mode) &&
	       st.st_uid == uid;
}

static char *runtime_dir(const struct sbx_facts *f)
{
	const char *xdg = getenv("XDG_RUNTIME_DIR");
	char run_user[64];

	if (f->caller_uid == 0)
		return strdup("/run/sbx");
	if (is_own_dir(xdg, f->caller_uid))
		return join(xdg, "sbx");
	snprintf(run_user, sizeof(run_user), "/run/user/%u", f->caller_uid);
	if (is_own_dir(run_user, f->caller_uid))
		return join(run_user, "sbx");
	return join(f->state_dir, "run");
}

/* The caller's home; not what $HOME says. malloc'ed. */
static char *caller_home(const struct sbx_facts *f)
{
	struct sbx_user caller = { 0 };
	char *home = NULL;

	/* Known already, unless take_user() replaced it because no sandbox can have it. */
	if (f->home && f->uid == f->caller_uid && strcmp(f->home, SBX_THROWAWAY_HOME) != 0)
		return strdup(f->home);
	if (sbx_user_by_uid(f->caller_uid, &caller) == 0 && caller.home[0] == '/')
		home = sbx_steal_ptr(&caller.home);
	sbx_user_fini(&caller);
	return home ? home : strdup("/");
}

/* A privileged launcher's directory must be out of others' reach. An ordinary user's is checked
 * when it is made. */
static int check_place(const struct sbx_facts *f, const char *dir, const char *what,
		       const char *variable, struct sbx_err *err)
{
	struct sbx_err why = { 0 };
	int r = f->privileged ? sbx_trust_dir(f, dir, &why) : 0;

	if (r == 0 || !why.msg[0])
		return r;
	sbx_err_set(err, "the %s directory %s: %s (set %s)", what, dir, why.msg, variable);
	return SBX_FACTS_E_UNUSABLE;
}

/* Files in them have paths as well, and SQLite takes none that is longer than 512 bytes. */
static int check_lengths(const struct sbx_facts *f, struct sbx_err *err)
{
	const struct {
		const char *what, *dir;
		size_t max;
	} dirs[] = {
		{ "state directory", f->state_dir, 480 },
		{ "runtime directory", f->runtime_dir, PATH_MAX - 512 },
		{ "configuration directory", f->config_dir, PATH_MAX - 512 },
		{ "user's configuration directory", f->user_config_dir, PATH_MAX - 512 },
	};

	for (size_t i = 0; i < SBX_N_ELEMENTS(dirs); i++)
		if (strlen(dirs[i].dir) > dirs[i].max) {
			sbx_err_set(err, "the %s has a path of more than %zu bytes: %s",
				    dirs[i].what, dirs[i].max, dirs[i].dir);
			return SBX_FACTS_E_UNUSABLE;
		}
	return 0;
}

static int gather_dirs(struct sbx_facts *f, struct sbx_err *err)
{
	SBX_AUTO_FREE char *home = caller_home(f);
	int r;

	if (!home)
		return -ENOMEM;
	/* One message, instead of one for each directory. */
	if (f->privileged && sbx_path_check_support(err) != 0)
		return SBX_FACTS_E_UNUSABLE;
	r = dir_from_env("SBX_STATE_DIR", &f->state_dir, err);
	if (r == 0)
		r = dir_from_env("SBX_RUNTIME_DIR", &f->runtime_dir, err);
	if (r == 0)
		r = dir_from_env("SBX_CONFIG_DIR", &f->config_dir, err);
	if (r != 0)
		return r;
	if (!f->state_dir)
		f->state_dir = f->caller_uid == 0
				       ? strdup("/var/lib/sbx")
				       : xdg_dir("XDG_STATE_HOME", home, ".local/state/sbx");
	if (!f->runtime_dir && f->state_dir)
		f->runtime_dir = runtime_dir(f);
	if (!f->config_dir)
		f->config_dir = strdup(SBX_DEFAULT_CONFIG_DIR);
	f->user_config_dir = xdg_dir("XDG_CONFIG_HOME", home, ".config/sbx");
	if (!f->state_dir || !f->runtime_dir || !f->config_dir || !f->user_config_dir)
		return -ENOMEM;
	r = check_lengths(f, err);
	if (r == 0)
		r = check_place(f, f->state_dir, "state", "SBX_STATE_DIR", err);
	return r == 0 ? check_place(f, f->runtime_dir, "runtime", "SBX_RUNTIME_DIR", err) : r;
}

/* --- where sbx itself is --- */

/* Bytes of the longest common directory of two absolute paths. */
static size_t common_parent(const char *a, const char *b)
{
	size_t n = 0, i;

	for (i = 0; a[i] && a[i] == b[i]; i++)
		if (a[i] == '/')
			n = i;
	if ((!a[i] && b[i] == '/') || (!b[i] && a[i] == '/') || (!a[i] && !b[i]))
		n = i;
	return n;
}

char *sbx_facts_relocate(const char *exe_dir, const char *bindir, const char *compiled)
{
	size_t n = common_parent(bindir, compiled), n_exe = strlen(exe_dir);
	const char *tail = bindir + n; /* "/bin" */
	size_t n_tail = strlen(tail);
	char *s;

	if (n == 0 || n_exe < n_tail || strcmp(exe_dir + n_exe - n_tail, tail) != 0)
		return NULL;
	if (asprintf(&s, "%.*s%s", (int)(n_exe - n_tail), exe_dir, compiled + n) < 0)
		return NULL;
	return s;
}

static char *installed_dir(const char *exe_dir, const char *compiled)
{
	SBX_AUTO_FREE char *moved = NULL;

	if (exe_dir && strcmp(exe_dir, SBX_BINDIR) != 0) {
		moved = sbx_facts_relocate(exe_dir, SBX_BINDIR, compiled);
		if (moved && access(moved, F_OK) == 0)
			return sbx_steal_ptr(&moved);
	}
	return strdup(compiled);
}

static int gather_installation(struct sbx_facts *f)
{
	char buf[PATH_MAX];
	const char *exe_dir = sbx_proc_exe_dir(buf, sizeof(buf)) == 0 ? buf : NULL;

	f->libexec_dir = installed_dir(exe_dir, SBX_PKGLIBEXECDIR);
	f->data_dir = installed_dir(exe_dir, SBX_PKGDATADIR);
	return f->libexec_dir && f->data_dir ? 0 : -ENOMEM;
}

/* --- bwrap --- */

static bool is_trusted_program(const char *path, uid_t uid, struct stat *ret_st)
{
	return stat(path, ret_st) == 0 && S_ISREG(ret_st->st_mode) && (ret_st->st_mode & 0111) &&
	       (ret_st->st_uid == 0 || ret_st->st_uid == uid) && !(ret_st->st_mode & 0022);
}

int sbx_facts_gather_bwrap(struct sbx_facts *f, struct sbx_err *err)
{
	const char *path = getenv("PATH");
	struct sbx_err why = { 0 };
	struct stat st;

	if (is_trusted_program(BWRAP, f->caller_uid, &st)) {
		f->bwrap = strdup(BWRAP);
		return f->bwrap ? 0 : -ENOMEM;
	}
	while (path && *path) {
		size_t n = strcspn(path, ":");
		char file[PATH_MAX];

		if (path[0] == '/' &&
		    snprintf(file, sizeof(file), "%.*s/bwrap", (int)n, path) < (int)sizeof(file) &&
		    is_trusted_program(file, f->caller_uid, &st) &&
		    sbx_trust_file(f, file, &st, true, &why) == 0) {
			f->bwrap = strdup(file);
			return f->bwrap ? 0 : -ENOMEM;
		}
		path += n + (path[n] == ':');
	}
	sbx_err_set(err, "bwrap was not found: apt-get install bubblewrap");
	return SBX_FACTS_E_UNUSABLE;
}

/* --- texts --- */

/* At most @max bytes of a file, up to its last whole line; "" when it cannot be read. */
static char *read_text(const char *path, size_t max, size_t *ret_n)
{
	SBX_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	struct stat st;
	char *text;
	size_t size = 0, n = 0;

	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		size = (size_t)st.st_size < max ? (size_t)st.st_size : max;
	text = malloc(size + 1);
	if (!text)
		return NULL;
	while (n < size) {
		ssize_t r = read(fd, text + n, size - n);

		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0)
			break;
		n += (size_t)r;
	}
	while (size == max && n > 0 && text[n - 1] != '\n')
		n--;
	text[n] = '\0';
	if (ret_n)
		*ret_n = n;
	return text;
}

static int gather_texts(struct sbx_facts *f)
{
	char cwd[PATH_MAX];

	f->resolv_conf = read_text("/etc/resolv.conf", RESOLV_CONF_MAX, NULL);
	f->hosts = read_text("/etc/hosts", HOSTS_MAX, &f->n_hosts);
	f->root = strdup("");
	/* A directory that was removed, or is not below our root, has no name to grant. */
	if (getcwd(cwd, sizeof(cwd)) && cwd[0] == '/') {
		f->cwd = strdup(cwd);
		if (!f->cwd)
			return -ENOMEM;
	}
	return f->resolv_conf && f->hosts && f->root ? 0 : -ENOMEM;
}

static void gather_machine(struct sbx_facts *f)
{
	long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
	cpu_set_t cpus;

	if (pages > 0 && page > 0)
		f->machine_memory_bytes = (uint64_t)pages * (uint64_t)page;
	if (sched_getaffinity(0, sizeof(cpus), &cpus) == 0)
		f->machine_cpus_milli = (uint32_t)CPU_COUNT(&cpus) * 1000;
}

/* Only where a scope can be asked for: systemd runs, its bus is there, and sbx-scope was built. */
int sbx_facts_gather_cgroup(struct sbx_facts *f)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	char bus[512] = "/run/dbus/system_bus_socket";
	int r = sbx_cgroup_facts_read(&f->cgroup, false);

	if (r < 0)
		return r;
	sbx_cgroup_find(&f->cgroup, false, &f->cgroup_place);
	if (!f->cgroup.systemd)
		return 0;
	if (f->caller_uid != 0)
		r = sbx_text_format(bus, sizeof(bus), "%s/bus", runtime ? runtime : "");
	if (asprintf(&f->scope_helper, "%s/sbx-scope", f->libexec_dir) < 0) {
		f->scope_helper = NULL;
		return -ENOMEM;
	}
	if (r < 0 || access(f->scope_helper, X_OK) < 0 || access(bus, F_OK) < 0) {
		free(f->scope_helper);
		f->scope_helper = NULL;
	}
	return 0;
}

static int gather_caller(struct sbx_facts *f, struct sbx_err *err)
{
	uint64_t caps = 0;
	int r;

	f->caller_uid = getuid();
	f->caller_gid = getgid();
	if (geteuid() != f->caller_uid || getegid() != f->caller_gid) {
		sbx_err_set(err,
			    "sbx-run needs no setuid or setgid bit and refuses to run with one: "
			    "chmod ug-s it");
		return SBX_FACTS_E_UNUSABLE;
	}
	f->privileged = f->caller_uid == 0;
	r = f->privileged ? 0 : sbx_privileges_take(&f->privileged, err);
	if (r == 0 && f->privileged)
		r = sbx_caps_permitted(&caps);
	f->may_attach = (caps & sbx_privileges_attach_mask()) == sbx_privileges_attach_mask();
	f->landlock_abi = sbx_landlock_abi();
	return r;
}

static int gather_sandbox(const struct sbx_options *o, struct sbx_facts *f, struct sbx_err *err)
{
	if (o->id)
		sbx_text_fit(f->id, sizeof(f->id), "%s", o->id);
	else
		sbx_random_id(f->id);
	f->environ = environ;
	if (f->caller_uid != 0) /* sudo speaks to root */
		return sbx_facts_user(o, NULL, NULL, f, err);
	return sbx_facts_user(o, getenv("SUDO_UID"), getenv("SUDO_GID"), f, err);
}

/* Errors of the system policy are ignored here: planning refuses it with all of them. */
static int gather_uid_pool(const struct sbx_options *o, struct sbx_facts *f)
{
	static struct sbx_err_list ignored; /* large */
	struct sbx_system_policy *system = NULL;
	struct sbx_id_range range;
	SBX_AUTO_FREE char *file = NULL;
	bool said;

	said = sbx_config_system(f, &ignored, &system, &file) == 0 && system->uid_pool &&
	       sbx_id_range_parse(system->uid_pool, &range) == 0;
	sbx_system_policy_free(system);
	f->uid_pool = sbx_uid_pool_new(said ? &range : NULL, o->dry_run ? NULL : f->runtime_dir);
	return f->uid_pool ? 0 : -ENOMEM;
}

/* The sandbox's user and the directories. An ordinary user comes first, because the directories are
 * below the home; for root the directories come first, because the configuration has the range of
 * uids. */
static int gather_who_and_where(const struct sbx_options *o, struct sbx_facts *f,
				struct sbx_err *err)
{
	int r;

	if (!f->privileged) {
		r = gather_sandbox(o, f, err);
		return r == 0 ? gather_dirs(f, err) : r;
	}
	r = gather_dirs(f, err);
	if (r == 0)
		r = gather_uid_pool(o, f);
	return r == 0 ? gather_sandbox(o, f, err) : r;
}

static int explained(int r, struct sbx_err *err)
{
	if (r < 0)
		sbx_err_set(err, "cannot find out about the host: %s", strerror(-r));
	return r;
}

int sbx_facts_gather_first(const struct sbx_options *o, struct sbx_facts *ret_f,
			   struct sbx_err *err)
{
	int r;

	memset(ret_f, 0, sizeof(*ret_f));
	r = gather_caller(ret_f, err);
	ret_f->uid = ret_f->caller_uid;
	ret_f->gid = ret_f->caller_gid;
	if (r == 0 && ret_f->privileged)
		r = gather_who_and_where(o, ret_f, err);
	if (r == 0)
		r = gather_installation(ret_f);
	if (r == 0)
		r = sbx_facts_gather_bwrap(ret_f, err);
	if (r == 0)
		r = sbx_facts_gather_cgroup(ret_f);
	return explained(r, err);
}

int sbx_facts_gather_rest(const struct sbx_options *o, struct sbx_facts *f, struct sbx_err *err)
{
	int r = f->privileged ? 0 : gather_who_and_where(o, f, err);

	if (r == 0)
		r = gather_texts(f);
	if (r == 0)
		gather_machine(f);
	return explained(r, err);
}

int sbx_facts_gather(const struct sbx_options *o, struct sbx_facts *ret_f, struct sbx_err *err)
{
	int r = sbx_facts_gather_first(o, ret_f, err);

	return r == 0 ? sbx_facts_gather_rest(o, ret_f, err) : r;
}

int sbx_facts_gather_places(struct sbx_facts *ret_f, struct sbx_err *err)
{
	int r;

	memset(ret_f, 0, sizeof(*ret_f));
	r = gather_caller(ret_f, err);
	if (r == 0)
		r = gather_dirs(ret_f, err);
	return r == 0 ? gather_installation(ret_f) : r;
}
