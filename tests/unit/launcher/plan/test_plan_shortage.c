/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Planning where a file cannot be opened or looked at although it is there: for want of descriptors
 * or by an error of the disk. Each such call fails once, alone. Then the plan is refused or is the
 * same: nothing is taken for absent. Linked with --wrap for these calls.
 */
#include "tests/unit/plan_world.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/cleanup.h"
#include "launcher/plan/planner.h"
#include "launcher/setup/plan_json.h"

#define CALLS_MAX 4096

static bool planning; /* only then calls are counted */
static unsigned int n_calls, failing; /* counted from 1; 0: none fails */
static char *calls[CALLS_MAX]; /* those of the whole plan, as text */

static bool fails(const char *call, const char *path)
{
	if (!planning)
		return false;
	if (!failing && n_calls < CALLS_MAX && asprintf(&calls[n_calls], "%s %s", call, path) < 0)
		abort();
	if (++n_calls != failing)
		return false;
	errno = strstr(call, "open") ? EMFILE : EIO;
	return true;
}

/* Was the same said before? Most calls are those of the scan, in one directory after the other. */
static bool is_known(unsigned int call)
{
	for (unsigned int i = 0; i + 1 < call; i++)
		if (strcmp(calls[i], calls[call - 1]) == 0)
			return true;
	return false;
}

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, mode_t mode);
int __wrap_open(const char *path, int flags, mode_t mode)
{
	return fails("open", path) ? -1 : __real_open(path, flags, mode);
}

int __real_openat(int fd, const char *path, int flags, ...);
int __wrap_openat(int fd, const char *path, int flags, mode_t mode);
int __wrap_openat(int fd, const char *path, int flags, mode_t mode)
{
	return fails("openat", path) ? -1 : __real_openat(fd, path, flags, mode);
}

int __wrap___openat_2(int fd, const char *path, int flags);
int __wrap___openat_2(int fd, const char *path, int flags)
{
	return __wrap_openat(fd, path, flags, 0);
}

int __wrap___open_2(const char *path, int flags);
int __wrap___open_2(const char *path, int flags)
{
	return __wrap_open(path, flags, 0);
}

FILE *__real_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode)
{
	return fails("fopen", path) ? NULL : __real_fopen(path, mode);
}

long __real_syscall(long n, ...);
long __wrap_syscall(long n, long a, long b, long c, long d, long e, long f);
long __wrap_syscall(long n, long a, long b, long c, long d, long e, long f)
{
	return n == SYS_openat2 && fails("openat2", (const char *)b) ?
		       -1 :
		       __real_syscall(n, a, b, c, d, e, f);
}

int __real_fstatat(int fd, const char *path, struct stat *st, int flags);
int __wrap_fstatat(int fd, const char *path, struct stat *st, int flags);
int __wrap_fstatat(int fd, const char *path, struct stat *st, int flags)
{
	return fails("fstatat", path) ? -1 : __real_fstatat(fd, path, st, flags);
}

int __real_stat(const char *path, struct stat *st);
int __wrap_stat(const char *path, struct stat *st);
int __wrap_stat(const char *path, struct stat *st)
{
	return fails("stat", path) ? -1 : __real_stat(path, st);
}

int __real_lstat(const char *path, struct stat *st);
int __wrap_lstat(const char *path, struct stat *st);
int __wrap_lstat(const char *path, struct stat *st)
{
	return fails("lstat", path) ? -1 : __real_lstat(path, st);
}

static void make_tree(struct plan_world *w)
{
	static const char *const dirs[] = {
		"home/project/.git/objects",
		"home/project/.git/refs",
		"home/project/.git/hooks",
		"home/project/.git/worktrees/w",
		"home/project/.git/modules/m/objects",
		"home/project/.git/modules/m/refs",
		"home/project/bare.git/refs",
		"home/project/bare.git/objects",
		"home/project/real/objects",
		"home/project/real/refs",
		"home/project/lib",
		"home/project/.vscode",
		"home/project/sub/.aws",
	};

	for (size_t i = 0; i < SBX_N_ELEMENTS(dirs); i++)
		plan_world_mkdir(w, dirs[i]);
	plan_world_write(w, "home/project/.git/HEAD", "ref: refs/heads/main\n", 0644);
	plan_world_write(w, "home/project/.git/config", "[core]\n", 0644);
	plan_world_write(w, "home/project/.git/commondir", "../real\n", 0644);
	plan_world_write(w, "home/project/.git/hooks/x", "", 0755);
	plan_world_write(w, "home/project/lib/.git", "gitdir: ../real\n", 0644);
	plan_world_write(w, "home/project/real/HEAD", "x\n", 0644);
	plan_world_write(w, "home/project/bare.git/HEAD", "x\n", 0644);
	plan_world_link(w, "home/project/.git/config.worktree", "../lib/settings");
	plan_world_write(w, "home/project/lib/settings", "", 0644);
	plan_world_write(w, "home/project/x.code-workspace", "{}\n", 0644);
	plan_world_write(w, "root/usr/bin/wget", "the program", 0755);
	plan_world_write(w, "root/usr/bin/copy", "the program", 0755);
	plan_world_link(w, "root/usr/bin/fetch", "wget");
	plan_world_write(w, "config/profiles/p.yaml",
			 "extends: default\nfilesystem: {tmpfs: [/scratch]}\ncommands: {deny: "
			 "[wget, \"/usr/bin/fe*\"]}\n",
			 0644);
	plan_world_write(w, "config/system.yaml", "new_protected: refuse\n", 0644);
}

/* Without the environment: a directory of PATH that cannot be looked at is left out. */
static char *text_of(const struct plan_world *w)
{
	SBX_AUTO_FREE char *json = sbx_plan_json(w->plan, NULL);
	json_t *o = json ? json_loads(json, 0, NULL) : NULL;
	char *s;

	assert_int_equal(json_object_del(o, "environment") | json_object_del(o, "bwrap"), 0);
	s = json_dumps(o, JSON_INDENT(1));
	json_decref(o);
	return s;
}

static char *plan(struct plan_world *w, unsigned int fail, int *ret_status)
{
	static char bind[128];

	snprintf(bind, sizeof(bind), "%s/home/other:/data", w->dir);
	n_calls = 0;
	failing = fail;
	planning = true;
	*ret_status = plan_world_plan(w, "--profile", "p", "--bind", bind, "--", "true", NULL);
	planning = false;
	return *ret_status == 0 ? text_of(w) : NULL;
}

static void test_each_call(void **state)
{
	struct plan_world *w = *state;
	SBX_AUTO_FREE char *whole = NULL;
	unsigned int n, n_wrong = 0;
	int status;

	make_tree(w);
	whole = plan(w, 0, &status);
	assert_non_null(whole);
	n = n_calls;
	assert_true(n > 100 && n < CALLS_MAX);
	for (unsigned int k = 1; k <= n; k++) {
		SBX_AUTO_FREE char *json = NULL;

		if (is_known(k))
			continue;
		json = plan(w, k, &status);
		if (status == 0 && (!json || strcmp(json, whole) != 0)) {
			print_error("call %u of %u: %s\n", k, n, calls[k - 1]);
			n_wrong++;
		}
	}
	assert_int_equal(n_wrong, 0);
	for (unsigned int i = 0; i < n; i++)
		free(calls[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_each_call, plan_world_setup,
						plan_world_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
