/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The primary binary: found as the sandbox finds it, judged by every name it goes by. */
#include "tests/unit/plan_world.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define REFUSED	  126
#define NOT_FOUND 127

static void found(struct plan_world *w, char *command, const char *path)
{
	plan_world_must(w, "--", command);
	assert_string_equal(w->plan->command_path, path);
}

static void test_found(void **state)
{
	struct plan_world *w = *state;

	found(w, "true", "/usr/bin/true");
	found(w, "/usr/bin/true", "/usr/bin/true");
	found(w, "/bin/true", "/usr/bin/true");
	found(w, "python3", "/usr/bin/python3.11");
	found(w, "npm", "/usr/lib/npm/npm-cli.js");
	found(w, "awk", "/usr/bin/mawk");
	found(w, "./tool", plan_world_path(w, "home/project/tool"));
	found(w, "sub/../tool", plan_world_path(w, "home/project/tool"));
	found(w, plan_world_path(w, "home/project/tool"), plan_world_path(w, "home/project/tool"));
}

static void test_not_found(void **state)
{
	struct plan_world *w = *state;

	plan_world_refused(w, NOT_FOUND, "was not found in the sandbox's PATH", "--", "nothing");
	plan_world_refused(w, NOT_FOUND, "not in the sandbox", "--", "/usr/bin/nothing");
	plan_world_refused(w, NOT_FOUND, "not in the sandbox", "--", "./nothing");
	plan_world_refused(w, NOT_FOUND, "tool", "--", "tool"); /* not in PATH */
	/* On the host, but not in the sandbox; with a grant it is. */
	plan_world_write(w, "home/other/o", "", 0755);
	plan_world_refused(w, NOT_FOUND, "--ro-bind", "--", plan_world_path(w, "home/other/o"));
	plan_world_must(w, "--ro-bind", plan_world_path(w, "home/other"), "--",
			plan_world_path(w, "home/other/o"));
	plan_world_must(w, "--ro-bind", plan_world_path(w, "home/other/o:/srv/o"), "--", "/srv/o");
	assert_string_equal(w->plan->command_path, "/srv/o");
	/* Scratch places are empty when the command starts. */
	plan_world_refused(w, NOT_FOUND, "not in the sandbox", "--", "/tmp/x");
}

static void test_not_executable(void **state)
{
	struct plan_world *w = *state;

	plan_world_refused(w, REFUSED, "is not executable", "--", "./data.txt");
	plan_world_refused(w, REFUSED, "is a directory", "--", "/usr/bin");
	plan_world_refused(w, REFUSED, "is not executable", "--", "unexecutable");
	/* A later directory of PATH may have one that is. */
	plan_world_mkdir(w, "root/usr/local/sbin");
	plan_world_write(w, "root/usr/local/sbin/unexecutable", "", 0755);
	found(w, "unexecutable", "/usr/local/sbin/unexecutable");
}

/* sudo, by whatever name. */
static void test_denied(void **state)
{
	struct plan_world *w = *state;

	plan_world_refused(w, REFUSED, "command 'sudo' is denied by the system policy", "--",
			   "sudo");
	plan_world_refused(w, REFUSED, "denied", "--", "/usr/bin/sudo");
	plan_world_refused(w, REFUSED, "denied", "--", "/bin/sudo");
	plan_world_refused(w, REFUSED, "denied", "--", "/usr/bin/../bin/sudo");
	plan_world_refused(w, REFUSED, "(it is /usr/bin/sudo)", "--", "./link");
	plan_world_refused(w, REFUSED, "denied", "--", "nft");
	plan_world_refused(w, REFUSED, "denied", "--", "pkexec"); /* not even there */
	/* A symlink that is called so denies what it leads to; so does one on the way. */
	plan_world_link(w, "home/project/mount", "tool");
	plan_world_link(w, "home/project/indirect", "mount");
	plan_world_refused(w, REFUSED, "'mount'", "--", "./mount");
	plan_world_refused(w, REFUSED, "'mount'", "--", "./indirect");
	found(w, "./tool", plan_world_path(w, "home/project/tool"));
}

static void profile(struct plan_world *w, const char *commands)
{
	char text[512];

	snprintf(text, sizeof(text), "name: c\ncommands:\n%s", commands);
	plan_world_write(w, "config/profiles/c.yaml", text, 0644);
}

static void test_profile_deny(void **state)
{
	struct plan_world *w = *state;

	profile(w, "  deny: [python3.11, /usr/bin/true]\n");
	plan_world_refused(w, REFUSED, "denied by profile 'c'", "--profile", "c", "--", "python3");
	plan_world_refused(w, REFUSED, "'/usr/bin/true'", "--profile", "c", "--", "true");
	plan_world_refused(w, REFUSED, "'/usr/bin/true'", "--profile", "c", "--", "/bin//true");
	plan_world_must(w, "--profile", "c", "--", "awk");
}

static void test_profile_allow(void **state)
{
	struct plan_world *w = *state;
	char tool[256];

	snprintf(tool, sizeof(tool), "  allow: [python3, \"%s/home/project/tool\"]\n", w->dir);
	profile(w, tool);
	plan_world_must(w, "--profile", "c", "--", "python3");
	plan_world_must(w, "--profile", "c", "--", "/usr/bin/python3");
	plan_world_must(w, "--profile", "c", "--", "./tool");
	plan_world_refused(w, REFUSED, "not on the commands.allow list", "--profile", "c", "--",
			   "true");
	/* Deny goes before allow. */
	profile(w, "  allow: [sudo]\n");
	plan_world_refused(w, REFUSED, "denied by the system policy", "--profile", "c", "--",
			   "sudo");
	/* A bare name means the system's program, not a file of that name in the workspace. */
	profile(w, "  allow: [python3]\n");
	plan_world_write(w, "home/project/python3", "", 0755);
	plan_world_refused(w, REFUSED, "allow list", "--profile", "c", "--", "./python3");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, plan_world_setup, plan_world_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_found),  TEST(test_not_found),    TEST(test_not_executable),
		TEST(test_denied), TEST(test_profile_deny), TEST(test_profile_allow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
