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
#include "launcher/bwrap_argv.h"
#include "launcher/etc.h"

SBX_DEFINE_CLEANUP(struct sbx_bwrap, sbx_bwrap_free);

/* Where @word stands among the arguments; -1. */
static int find(const struct sbx_bwrap *b, const char *word, int from)
{
	int at = 0;

	for (const char *s = b->args; s < b->args + b->n_args; s += strlen(s) + 1, at++)
		if (at >= from && strcmp(s, word) == 0)
			return at;
	return -1;
}

static const char *word_at(const struct sbx_bwrap *b, int at)
{
	const char *s = b->args;

	while (at-- > 0)
		s += strlen(s) + 1;
	return s;
}

static struct sbx_bwrap *build(struct plan_world *w)
{
	struct sbx_bwrap *b = NULL;

	assert_int_equal(sbx_bwrap_new(w->plan, &b), 0);
	return b;
}

static void test_argv(void **state)
{
	static const char *const want[] = { "bwrap", "--args", "6",  "--",   "/proc/self/fd/4",
					    "3",     "4",      "--", "true", "--profile",
					    "" };
	struct plan_world *w = *state;
	SBX_CLEANUP(sbx_bwrap_freep) struct sbx_bwrap *b = NULL;

	plan_world_must(w, "--", "true", "--profile", "");
	b = build(w);
	for (size_t i = 0; i < SBX_N_ELEMENTS(want); i++)
		assert_string_equal(b->argv[i], want[i]);
	assert_null(b->argv[SBX_N_ELEMENTS(want)]);
}

static void test_fixed(void **state)
{
	static const char *const must[] = {
		"--unshare-user",	"--unshare-ipc",    "--unshare-pid",	 "--unshare-uts",
		"--unshare-cgroup-try", "--disable-userns", "--die-with-parent", "--add-seccomp-fd",
		"--clearenv",		"--chdir",
	};
	static const char *const never[] = { "--unshare-net", "--unshare-all", "--share-net",
					     "--cap-add",     "--dev-bind",    "--bind",
					     "--ro-bind",     "--new-session" };
	struct plan_world *w = *state;
	SBX_CLEANUP(sbx_bwrap_freep) struct sbx_bwrap *b = NULL;

	plan_world_must(w, "--", "true");
	b = build(w);
	for (size_t i = 0; i < SBX_N_ELEMENTS(must); i++)
		if (find(b, must[i], 0) < 0)
			fail_msg("%s is missing", must[i]);
	for (size_t i = 0; i < SBX_N_ELEMENTS(never); i++)
		if (find(b, never[i], 0) >= 0)
			fail_msg("%s is there", never[i]);
	assert_string_equal(word_at(b, find(b, "--add-seccomp-fd", 0) + 1), "5");
	assert_string_equal(word_at(b, find(b, "--chdir", 0) + 1), w->facts.cwd);
	/* The environment is emptied before anything is set. */
	assert_true(find(b, "--clearenv", 0) < find(b, "--setenv", 0));
}

/* Numbers are consecutive from 3, every one named in the arguments is in the table. */
static void test_fd_table(void **state)
{
	struct plan_world *w = *state;
	SBX_CLEANUP(sbx_bwrap_freep) struct sbx_bwrap *b = NULL;
	size_t n_binds = 0;

	plan_world_must(w, "--ro-bind", plan_world_path(w, "home/other"), "--", "true");
	b = build(w);
	for (size_t i = 0; i < b->n_fds; i++) {
		assert_int_equal(b->fds[i].number, (int)i + 3);
		n_binds += b->fds[i].kind == SBX_BWRAP_FD_BIND;
		if (b->fds[i].kind == SBX_BWRAP_FD_BIND) {
			char number[16];

			snprintf(number, sizeof(number), "%d", b->fds[i].number);
			assert_true(find(b, number, 0) > 0);
		}
	}
	assert_int_equal(b->fds[0].kind, SBX_BWRAP_FD_CTL);
	assert_int_equal(b->fds[1].kind, SBX_BWRAP_FD_EXE);
	assert_int_equal(b->fds[2].kind, SBX_BWRAP_FD_SECCOMP);
	assert_int_equal(b->fds[3].kind, SBX_BWRAP_FD_ARGS);
	assert_int_equal(n_binds, 4); /* usr, etc, the cwd, the flag's */
}

/* No environment in what /proc shows of bwrap. */
static void test_secrets(void **state)
{
	struct plan_world *w = *state;
	SBX_CLEANUP(sbx_bwrap_freep) struct sbx_bwrap *b = NULL;

	plan_world_must(w, "--env", "AWS_SECRET_ACCESS_KEY", "--", "true");
	b = build(w);
	for (size_t i = 0; b->argv[i]; i++)
		assert_null(strstr(b->argv[i], "hush"));
	assert_true(find(b, "hush", 0) > 0);
}

static void test_open(void **state)
{
	struct plan_world *w = *state;
	SBX_CLEANUP(sbx_bwrap_freep) struct sbx_bwrap *unprepared = NULL;
	SBX_CLEANUP(sbx_bwrap_freep) struct sbx_bwrap *b = NULL;
	struct sbx_err err = { 0 };
	struct stat st;

	plan_world_must(w, "--", "true");
	unprepared = build(w);
	assert_int_equal(sbx_bwrap_open(unprepared, &err), -EBADF);
	assert_int_equal(sbx_etc_prepare(w->plan, plan_world_path(w, "state/etc"), &err), 0);
	b = build(w);
	memset(&err, 0, sizeof(err));
	assert_int_equal(sbx_bwrap_open(b, &err), 0);
	for (size_t i = 0; i < b->n_fds; i++) {
		if (b->fds[i].kind < SBX_BWRAP_FD_ARGS) {
			assert_int_equal(b->fds[i].source, -1); /* the launcher's */
			continue;
		}
		assert_int_equal(fstat(b->fds[i].source, &st), 0);
		assert_int_equal(fcntl(b->fds[i].source, F_GETFD), FD_CLOEXEC);
		if (b->fds[i].text)
			assert_int_equal(st.st_size, b->fds[i].n_text);
	}
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, plan_world_setup, plan_world_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_argv),    TEST(test_fixed), TEST(test_fd_table),
		TEST(test_secrets), TEST(test_open),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
