/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Git directories in a workspace: which of their files the plan mounts over. */
#include "tests/unit/plan_world.h"

#include <stdio.h>

#include "base/cleanup.h"

static const char *const git_names[] = { "config", "hooks", "config.worktree", "commondir" };
enum { CONFIG = 1, HOOKS = 2, CONFIG_WORKTREE = 4, COMMONDIR = 8, ALL = 15 };

/* Is there an overmount that a command cannot write, at @name in the current directory? */
static bool is_held(struct plan_world *w, const char *name)
{
	char path[128];
	const struct sbx_mount_op *op;

	snprintf(path, sizeof(path), "home/project/%s", name);
	op = plan_world_mount(w, plan_world_path(w, path));
	return op && op->origin == SBX_ORIGIN_PROTECT && !op->writable;
}

static unsigned int held(struct plan_world *w, const char *git_dir)
{
	unsigned int all = 0;
	char path[128];

	for (size_t i = 0; i < SBX_N_ELEMENTS(git_names); i++) {
		snprintf(path, sizeof(path), "%s/%s", git_dir, git_names[i]);
		all |= (unsigned int)is_held(w, path) << i;
	}
	return all;
}

/* Can it be written, and not renamed? */
static bool has_self_bind(struct plan_world *w, const char *dir, const char *name)
{
	char path[128];
	const struct sbx_mount_op *op;

	snprintf(path, sizeof(path), "home/project/%s/%s", dir, name);
	op = plan_world_mount(w, plan_world_path(w, path));
	return op && op->kind == SBX_MOUNT_SELF_BIND && op->writable;
}

/* The profile `deep` looks further down than others do. */
static void deep(struct plan_world *w)
{
	plan_world_write(w, "config/profiles/deep.yaml", "filesystem: {mask_depth: 6}\n", 0644);
}

static void make_git_dir(struct plan_world *w, const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), "home/project/%s/objects", name);
	plan_world_mkdir(w, path);
	snprintf(path, sizeof(path), "home/project/%s/refs", name);
	plan_world_mkdir(w, path);
	snprintf(path, sizeof(path), "home/project/%s/HEAD", name);
	plan_world_write(w, path, "ref: refs/heads/main\n", 0644);
}

/* A git directory that names itself is no linked one: git reads its own configuration, so that is
 * covered where it is absent. */
static void test_common_directory(void **state)
{
	static const struct {
		const char *commondir;
		unsigned int held;
	} cases[] = {
		{ ".\n", ALL },
		{ "./\n", ALL },
		{ "../.git\n", ALL },
		{ "../other\n", CONFIG_WORKTREE | COMMONDIR },
	};
	struct plan_world *w = *state;

	make_git_dir(w, ".git");
	make_git_dir(w, "other");
	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++) {
		plan_world_write(w, "home/project/.git/commondir", cases[i].commondir, 0644);
		plan_world_must(w, "--", "true");
		if (held(w, ".git") != cases[i].held)
			fail_msg("commondir %s: %x", cases[i].commondir, held(w, ".git"));
	}
}

/* A directory that is known as a git directory by its entries keeps those by which it is known. */
static void test_marks_stay(void **state)
{
	static const char *const marks[] = { "objects", "refs" };
	struct plan_world *w = *state;

	make_git_dir(w, ".git");
	make_git_dir(w, ".git/modules/m");
	make_git_dir(w, "x.git");
	plan_world_mkdir(w, "home/project/.git/modules/none");
	plan_world_write(w, "home/project/.git/modules/none/notes", "", 0644);
	plan_world_must(w, "--", "true");
	assert_false(is_held(w, ".git/modules/none/notes"));
	assert_int_equal(held(w, ".git/modules/m"), ALL);
	assert_int_equal(held(w, "x.git"), ALL);
	for (size_t i = 0; i < SBX_N_ELEMENTS(marks); i++) {
		assert_true(has_self_bind(w, ".git/modules/m", marks[i]));
		assert_true(has_self_bind(w, "x.git", marks[i]));
		assert_false(has_self_bind(w, ".git", marks[i]));
	}
}

/* HEAD alone makes a directory that may become a repository, but not among the names of branches
 * and their logs. */
static void test_names_of_branches(void **state)
{
	static const struct {
		const char *dir;
		bool held;
	} cases[] = {
		{ "x.git/refs/remotes/a", false },
		{ "x.git/logs/refs/a", false },
		{ "x.git/logs", false },
		{ "x.git/logsx", true },
		{ "x.git/sub", true },
		{ "four/refs/a", true },
		{ "four/logs", true },
	};
	struct plan_world *w = *state;
	char path[128];

	deep(w);
	make_git_dir(w, ".git"); /* known before the others, and its name is as long as "four" */
	make_git_dir(w, "x.git");
	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++) {
		snprintf(path, sizeof(path), "home/project/%s", cases[i].dir);
		plan_world_mkdir(w, path);
		snprintf(path, sizeof(path), "home/project/%s/HEAD", cases[i].dir);
		plan_world_write(w, path, "ref: refs/heads/main\n", 0644);
	}
	plan_world_must(w, "--profile", "deep", "--", "true");
	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++)
		if (held(w, cases[i].dir) != (cases[i].held ? ALL : 0))
			fail_msg("%s: %x", cases[i].dir, held(w, cases[i].dir));
}

/* The same where the grant itself is the repository. */
static void test_names_of_branches_at_the_top(void **state)
{
	struct plan_world *w = *state;

	deep(w);
	make_git_dir(w, "");
	plan_world_mkdir(w, "home/project/refs/remotes/origin");
	plan_world_write(w, "home/project/refs/remotes/origin/HEAD", "ref: x\n", 0644);
	plan_world_mkdir(w, "home/project/logs");
	plan_world_write(w, "home/project/logs/HEAD", "x\n", 0644);
	plan_world_write(w, "home/project/sub/HEAD", "ref: x\n", 0644);
	plan_world_must(w, "--profile", "deep", "--", "true");
	assert_true(is_held(w, "config") && is_held(w, "hooks"));
	assert_int_equal(held(w, "sub"), ALL);
	assert_int_equal(held(w, "logs"), 0);
	assert_int_equal(held(w, "refs/remotes/origin"), 0);
}

/* new_protected: refuse: in a directory that is none, the first thing by which git would take it
 * for a repository cannot be made. */
static void test_no_repository_is_made(void **state)
{
	struct plan_world *w = *state;

	plan_world_must(w, "--", "true");
	assert_false(is_held(w, ".git") || is_held(w, "HEAD"));
	plan_world_write(w, "config/system.yaml", "new_protected: refuse\n", 0644);
	plan_world_must(w, "--", "true");
	assert_true(is_held(w, ".git") && is_held(w, "HEAD"));
	assert_false(is_held(w, "refs") || is_held(w, "commondir"));
	make_git_dir(w, ".git");
	plan_world_must(w, "--", "true");
	assert_true(is_held(w, "refs") && is_held(w, "commondir"));
	assert_false(is_held(w, "HEAD") || is_held(w, "objects"));
	plan_world_mkdir(w, "home/project/refs");
	plan_world_must(w, "--", "true");
	assert_true(is_held(w, "objects") && is_held(w, "commondir"));
	assert_false(is_held(w, "HEAD") || is_held(w, "refs"));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, plan_world_setup, plan_world_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_common_directory),	  TEST(test_marks_stay),
		TEST(test_names_of_branches),	  TEST(test_names_of_branches_at_the_top),
		TEST(test_no_repository_is_made),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
