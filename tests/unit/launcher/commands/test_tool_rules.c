/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tool rules at planning: their order, what they lift, and what nothing lifts. */
#include "tests/unit/plan_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "store/store_rules.h"

#define REFUSED 126

static struct sbx_store *open_store(struct plan_world *w)
{
	struct sbx_store *store = NULL;
	struct sbx_err err = { 0 };
	char migrations[4096];

	assert_int_equal(chmod(w->facts.state_dir, 0700), 0);
	snprintf(migrations, sizeof(migrations), "%s/migrations", w->facts.data_dir);
	if (sbx_store_open(w->facts.state_dir, migrations, &err, &store) != 0)
		fail_msg("%s", err.msg);
	return store;
}

static int64_t rule(struct plan_world *w, const char *workspace, const char *action,
		    const char *pattern, int64_t priority, bool is_floor)
{
	const struct sbx_store_rule row = { .workspace = workspace,
					    .type = "tool",
					    .action = action,
					    .pattern = pattern,
					    .priority = priority,
					    .enabled = true,
					    .is_floor = is_floor };
	struct sbx_store *store = open_store(w);
	struct sbx_err err = { 0 };
	int64_t id = 0;

	if (sbx_store_rule_add(store, &row, &err, &id) != 0)
		fail_msg("%s", err.msg);
	sbx_store_close(store);
	return id;
}

static void forget(struct plan_world *w)
{
	struct sbx_store *store = open_store(w);

	assert_int_equal(sbx_store_rules_import(store, "w", true, NULL, 0, NULL), 0);
	assert_int_equal(sbx_store_rules_import(store, NULL, true, NULL, 0, NULL), 0);
	sbx_store_close(store);
}

static void profile(struct plan_world *w, const char *commands)
{
	char text[512];

	snprintf(text, sizeof(text), "name: c\nextends: none\ncommands:\n%s", commands);
	plan_world_write(w, "config/profiles/c.yaml", text, 0644);
}

#define RUN(...) "--profile", "c", "--workspace", "w", "--", __VA_ARGS__

/* A deny rule is one of its workspace, or of every one. */
static void test_deny(void **state)
{
	struct plan_world *w = *state;

	profile(w, "  deny: [nothing]\n");
	plan_world_must(w, RUN("python3"));
	rule(w, "w", "deny", "python3", 100, false);
	plan_world_refused(w, REFUSED, "by rule 24 of workspace 'w': tool 'python3'",
			   RUN("python3"));
	plan_world_refused(w, REFUSED, "is masked", RUN("python3.11"));
	plan_world_must(w, "--profile", "c", "--workspace", "v", "--", "python3");
	plan_world_must(w, "--profile", "c", "--", "python3");
	plan_world_must(w, RUN("true"));
	rule(w, NULL, "deny", "/usr/bin/tr*", 100, false);
	plan_world_refused(w, REFUSED, "of the host: tool '/usr/bin/tr*'", RUN("true"));
	plan_world_refused(w, REFUSED, "of the host", "--profile", "c", "--", "true");
}

/* An allow rule lifts the profile's entry, and joins its allow list; no more. */
static void test_allow(void **state)
{
	struct plan_world *w = *state;

	w->facts.landlock_abi = 6;
	profile(w, "  deny: [python3]\n");
	plan_world_refused(w, REFUSED, "by profile 'c'", RUN("python3"));
	rule(w, "w", "allow", "python3", 100, false);
	plan_world_must(w, RUN("python3"));
	assert_int_equal(w->plan->tools.n, 1);
	plan_world_refused(w, REFUSED, "by profile 'c'", "--profile", "c", "--", "python3");
	/* A file of that name in the workspace is not the system's program. */
	plan_world_write(w, "home/project/python3", "", 0755);
	plan_world_refused(w, REFUSED, "by profile 'c'", RUN("./python3"));
	/* The system policy's list, also the shipped one. */
	rule(w, "w", "allow", "sudo", 1, false);
	plan_world_refused(w, REFUSED, "by the system policy", RUN("sudo"));
	plan_world_write(w, "config/system.yaml", "commands:\n  deny: [python3]\n", 0644);
	plan_world_refused(w, REFUSED, "by the system policy", RUN("python3"));
	plan_world_write(w, "config/system.yaml", "{}\n", 0644);
	forget(w);
	profile(w, "  allow: [true]\n");
	plan_world_refused(w, REFUSED, "not on the commands.allow list", RUN("python3"));
	rule(w, "w", "allow", "python3", 100, false);
	plan_world_must(w, RUN("python3"));
	plan_world_must(w, RUN("true"));
	assert_int_equal(w->plan->commands.n_programs, 3); /* with the loader */
	plan_world_refused(w, REFUSED, "not on the commands.allow list", RUN("npm"));
}

/* The lowest priority decides; then a plain entry before a pattern, and deny before allow. */
static void test_order(void **state)
{
	struct plan_world *w = *state;

	profile(w, "  deny: [nothing]\n");
	rule(w, "w", "deny", "tr*", 100, false);
	rule(w, "w", "allow", "tru*", 50, false);
	plan_world_must(w, RUN("true"));
	rule(w, "w", "deny", "true", 49, false);
	plan_world_refused(w, REFUSED, "tool 'true'", RUN("true"));
	forget(w);
	rule(w, "w", "deny", "tr*", 100, false);
	rule(w, "w", "allow", "true", 100, false);
	plan_world_must(w, RUN("true"));
	rule(w, NULL, "deny", "true", 100, false);
	plan_world_refused(w, REFUSED, "of the host: tool 'true'", RUN("true"));
	forget(w);
	rule(w, "w", "allow", "true", 0, false);
	plan_world_must(w, RUN("true"));
	rule(w, NULL, "deny", "tr*", 1000, true);
	plan_world_refused(w, REFUSED, "of the host: tool 'tr*'", RUN("true"));
}

/* One file, of which one name is allowed and another one denied, does not run. */
static void test_names_of_a_file(void **state)
{
	struct plan_world *w = *state;

	profile(w, "  deny: [nothing]\n");
	rule(w, "w", "allow", "python3", 10, false);
	rule(w, "w", "deny", "python3.11", 20, false);
	plan_world_refused(w, REFUSED, "is masked", RUN("python3"));
	rule(w, "w", "allow", "python3.11", 15, false);
	plan_world_must(w, RUN("python3"));
}

/* A denied program is no member of the allow list, by whatever rule it came there. */
static void test_both(void **state)
{
	struct plan_world *w = *state;

	w->facts.landlock_abi = 6;
	profile(w, "  allow: [true, \"python*\"]\n");
	plan_world_must(w, RUN("true"));
	assert_int_equal(w->plan->commands.n_programs, 3);
	rule(w, "w", "deny", "python3.11", 10, false);
	rule(w, "w", "allow", "pyth*", 20, false);
	plan_world_must(w, RUN("true"));
	assert_int_equal(w->plan->commands.n_programs, 2);
	plan_world_refused(w, REFUSED, "tool 'python3.11'", RUN("python3"));
}

int main(void)
{
#define TEST(t) cmocka_unit_test_setup_teardown(t, plan_world_setup, plan_world_teardown)
	const struct CMUnitTest tests[] = { TEST(test_deny), TEST(test_allow), TEST(test_order),
					    TEST(test_both),
					    TEST(test_names_of_a_file) };

	return cmocka_run_group_tests_name("tool_rules", tests, NULL, NULL);
}
