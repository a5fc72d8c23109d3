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

#define TEST(f) cmocka_unit_test_setup_teardown(f, plan_world_setup, plan_world_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_common_directory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
