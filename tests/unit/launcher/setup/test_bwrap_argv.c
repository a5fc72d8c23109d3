/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/unit/plan_world.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "launcher/setup/bwrap_argv.h"
#include "launcher/stage/stage_config.h"
#include "launcher/tree/tree.h"
#include "launcher/view/etc.h"

struct args {
	char *text;
	size_t n;
};

static const struct sbx_placeholders none;

static void args_fini(struct args *a)
{
	free(a->text);
}

/* The index of @word among the arguments; -1: it is not there. */
static int find(const struct args *a, const char *word, int from)
{
	int at = 0;

	for (const char *s = a->text; s < a->text + a->n; s += strlen(s) + 1, at++)
		if (at >= from && strcmp(s, word) == 0)
			return at;
	return -1;
}

static const char *word_at(const struct args *a, int at)
{
	const char *s = a->text;

	while (at-- > 0)
		s += strlen(s) + 1;
	return s;
}

static struct args build(struct plan_world *w)
{
	static const struct sbx_setup first;
	struct args a;

	assert_int_equal(sbx_bwrap_args(w->plan, &first, &a.text, &a.n), 0);
	return a;
}

static void test_argv(void **state)
{
	static const char *const want[] = { "bwrap", "--args", "7",  "--",   "/proc/self/fd/4",
					    "3",     "4",      "5",  "--",   "true",
					    "--profile", "" };
	struct plan_world *w = *state;
	SBX_AUTO_FREE char **argv = NULL;

	plan_world_must(w, "--", "true", "--profile", "");
	argv = sbx_bwrap_argv(w->plan->options->argv, false);
	for (size_t i = 0; i < SBX_N_ELEMENTS(want); i++)
		assert_string_equal(argv[i], want[i]);
	assert_null(argv[SBX_N_ELEMENTS(want)]);
	free(argv);
	argv = sbx_bwrap_argv(w->plan->options->argv, true);
	for (size_t i = 0; i < SBX_N_ELEMENTS(want); i++)
		assert_string_equal(argv[i], i == 8 ? "--wait-all" : want[i]);
}

static void test_fixed(void **state)
{
	static const char *const must[] = {
		"--unshare-user",	"--unshare-ipc",    "--unshare-pid",	 "--unshare-uts",
		"--unshare-cgroup-try", "--disable-userns", "--die-with-parent", "--add-seccomp-fd",
		"--clearenv",		"--chdir",	    "--as-pid-1",
	};
	static const char *const never[] = { "--unshare-net", "--unshare-all", "--share-net",
					     "--cap-add",     "--dev",	       "--bind",
					     "--ro-bind",     "--new-session" };
	struct plan_world *w = *state;
	SBX_CLEANUP(args_fini) struct args a = { 0 };

	plan_world_must(w, "--", "true");
	a = build(w);
	for (size_t i = 0; i < SBX_N_ELEMENTS(must); i++)
		if (find(&a, must[i], 0) < 0)
			fail_msg("%s is missing", must[i]);
	for (size_t i = 0; i < SBX_N_ELEMENTS(never); i++)
		if (find(&a, never[i], 0) >= 0)
			fail_msg("%s is there", never[i]);
	assert_string_equal(word_at(&a, find(&a, "--add-seccomp-fd", 0) + 1), "6");
	assert_string_equal(word_at(&a, find(&a, "--chdir", 0) + 1), w->facts.cwd);
	/* The environment is emptied before anything is set. */
	assert_true(find(&a, "--clearenv", 0) < find(&a, "--setenv", 0));
}

/* bwrap makes one mount of the view's and /proc: the rest is in the tree, whatever is granted. */
static void test_one_bind(void **state)
{
	struct plan_world *w = *state;
	SBX_CLEANUP(args_fini) struct args a = { 0 };
	int at;

	plan_world_must(w, "--ro-bind", plan_world_path(w, "home/other"), "--", "true");
	a = build(w);
	at = find(&a, "--dev-bind", 0);
	assert_string_equal(word_at(&a, at + 1), SBX_TREE_BASE);
	assert_string_equal(word_at(&a, at + 2), "/");
	assert_string_equal(word_at(&a, at + 3), "--proc");
	assert_string_equal(word_at(&a, at + 4), "/proc");
	assert_string_equal(word_at(&a, at + 5), "--clearenv");
}

static void test_fd_names(void **state)
{
	static const char *const want[] = { "?",	   "ctl",  "exe", "exec",
					    "seccomp", "args", "?" };

	(void)state;
	for (int i = 0; i < (int)SBX_N_ELEMENTS(want); i++)
		assert_string_equal(sbx_bwrap_fd_str(i + 2), want[i]);
}

/* bwrap's command line, which /proc shows, has no environment in it. */
static void test_secrets(void **state)
{
	struct plan_world *w = *state;
	SBX_CLEANUP(args_fini) struct args a = { 0 };
	SBX_AUTO_FREE char **argv = NULL;

	plan_world_must(w, "--env", "AWS_SECRET_ACCESS_KEY", "--", "true");
	a = build(w);
	argv = sbx_bwrap_argv(w->plan->options->argv, false);
	for (size_t i = 0; argv[i]; i++)
		assert_null(strstr(argv[i], "hush"));
	assert_true(find(&a, "hush", 0) > 0);
}

/* The stage's configuration equals the plan byte by byte, and no pointer in it leads out of the
 * shared mapping. */
static void test_stage_config(void **state)
{
	struct plan_world *w = *state;
	struct sbx_stage_config *o = sbx_stage_config_new();
	const uint8_t *from = (const uint8_t *)o, *to;
	struct sbx_setup setup = { 0 };
	struct sbx_err err = { 0 };

	plan_world_must(w, "--allow", "192.0.2.0/24:5432", "--", "true");
	sbx_setup_init(&setup);
	sbx_setup_start(&setup, w->plan);
	assert_int_equal(sbx_etc_prepare(&w->plan->view, w->plan->facts,
					 plan_world_path(w, "state/etc"), &setup.etc, &err),
			 0);
	assert_non_null(o);
	assert_int_equal(sbx_stage_config_fill(o, w->plan, &setup, &none, "a\0b", 4), 0);
	to = from + (64u << 20);
	assert_memory_equal(o->args, "a\0b", 4);
	assert_true(o->may_carry == w->plan->may_carry);
	assert_int_equal(o->nft.n_cidrs, w->plan->nft.n_cidrs);
	assert_true((const uint8_t *)o->nft.cidrs > from && (const uint8_t *)o->nft.cidrs < to);
	assert_memory_equal(o->nft.cidrs, w->plan->nft.cidrs,
			    o->nft.n_cidrs * sizeof(*o->nft.cidrs));
	assert_int_equal(o->n_mounts, w->plan->view.n_mounts);
	for (size_t i = 0; i < o->n_mounts; i++) {
		const struct sbx_mount_op *a = &o->mounts[i];
		const struct sbx_mount_op op = sbx_setup_mount(&setup, &w->plan->view.mounts[i]),
					  *b = &op;

		assert_int_equal(a->kind, b->kind);
		assert_int_equal(a->source.fd, -1);
		assert_string_equal(a->dest, b->dest);
		assert_true((const uint8_t *)a->dest > from && (const uint8_t *)a->dest < to);
		if (b->text)
			assert_string_equal(a->text, b->text);
		if (b->kind == SBX_MOUNT_BIND || b->kind == SBX_MOUNT_ETC) {
			assert_string_equal(a->source.resolved, b->source.resolved);
			assert_int_equal(a->source.st.st_ino, b->source.st.st_ino);
			assert_int_not_equal(a->source.st.st_ino, 0);
		}
	}
	sbx_setup_fini(&setup);
	sbx_stage_config_free(o);
}

/* More than the mapping holds is an error, not a write past its end. */
static void test_stage_config_too_large(void **state)
{
	struct plan_world *w = *state;
	struct sbx_stage_config *o = sbx_stage_config_new();
	size_t n = 64u << 20;
	SBX_AUTO_FREE char *args = calloc(1, n);
	struct sbx_setup setup = { 0 };

	plan_world_must(w, "--", "true");
	assert_non_null(args);
	sbx_setup_init(&setup);
	sbx_setup_start(&setup, w->plan);
	assert_int_equal(sbx_stage_config_fill(o, w->plan, &setup, &none, args, n), -E2BIG);
	sbx_setup_fini(&setup);
	sbx_stage_config_free(o);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, plan_world_setup, plan_world_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_argv),
		TEST(test_fixed),
		TEST(test_one_bind),
		TEST(test_fd_names),
		TEST(test_secrets),
		TEST(test_stage_config),
		TEST(test_stage_config_too_large),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
