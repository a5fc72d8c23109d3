/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Golden plans: one per shipped profile, in a fixed world. SBX_UPDATE_GOLDEN=1 writes them anew.
 * The seccomp table and the shipped command list have their own golden files and are only counted
 * here.
 */
#include "launcher/setup/plan_json.h"
#include "tests/unit/plan_world.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "launcher/plan/planner.h"
#include "tests/unit/golden.h"

/* Every @from in @s becomes @to; takes @s. */
static char *replace_all(char *s, const char *from, const char *to)
{
	char *at;

	while ((at = strstr(s, from))) {
		char *next;

		assert_true(asprintf(&next, "%.*s%s%s", (int)(at - s), s, to, at + strlen(from)) >
			    0);
		free(s);
		s = next;
	}
	return s;
}

static char *plan_text(const struct plan_world *w)
{
	SBX_AUTO_FREE char *json = sbx_plan_json(w->plan, NULL);
	json_t *o = json ? json_loads(json, 0, NULL) : NULL;
	char *s;

	assert_non_null(o);
	assert_true(json_array_size(json_object_get(o, "seccomp")) > 10);
	assert_int_equal(json_object_del(o, "seccomp"), 0);
	assert_true(json_array_size(json_object_get(json_object_get(o, "command"), "deny_system")) >
		    5);
	assert_int_equal(json_object_del(json_object_get(o, "command"), "deny_system"), 0);
	s = json_dumps(o, JSON_INDENT(2));
	json_decref(o);
	return s;
}

static void compare_golden(struct plan_world *w, const char *name)
{
	SBX_AUTO_FREE char *json = plan_text(w), *lines = NULL;
	char file[64];

	assert_non_null(json);
	json = replace_all(json, w->dir, "@WORLD@");
	json = replace_all(json, w->facts.data_dir, "@DATA@");
	assert_true(asprintf(&lines, "%s\n", json) > 0);
	snprintf(file, sizeof(file), "plan-%s.json", name);
	golden_compare(file, lines);
}

static void test_shipped(void **state)
{
	static char *profiles[] = { "default", "notebook",     "none",	  "install",
				    "build",   "vite-preview", "ai-bash", "full" };
	struct plan_world *w = *state;

	for (size_t i = 0; i < SBX_N_ELEMENTS(profiles); i++) {
		plan_world_must(w, "--profile", profiles[i], "--", "python3", "-c", "print(1)");
		compare_golden(w, profiles[i]);
	}
}

static void test_every_flag(void **state)
{
	struct plan_world *w = *state;
	char *bind;

	assert_true(asprintf(&bind, "%s/home/other:/data/other", w->dir) > 0);
	plan_world_must(w, "--profile", "install", "--ro-bind", bind, "--allow",
			"192.0.2.0/24:5432", "--deny", "pypi.org", "--env", "TOKEN=secret-value",
			"--env", "AWS_SECRET_ACCESS_KEY", "--limit", "wall_time=30s", "--hostname",
			"box", "--workspace", "w1", "--analysis-id", "a-1", "--", "true");
	compare_golden(w, "flags");
	free(bind);
}

/* The plan shows no value of a variable. */
static void test_secrets(void **state)
{
	struct plan_world *w = *state;
	SBX_AUTO_FREE char *json = NULL;

	plan_world_must(w, "--env", "AWS_SECRET_ACCESS_KEY", "--env", "X=--setenv", "--env",
			"TOKEN=secret-value", "--", "true");
	json = sbx_plan_json(w->plan, NULL);
	assert_non_null(json);
	assert_null(strstr(json, "hush"));
	assert_null(strstr(json, "secret-value"));
	assert_non_null(strstr(json, "AWS_SECRET_ACCESS_KEY"));
}

static void test_odd_bytes(void **state)
{
	struct plan_world *w = *state;
	SBX_AUTO_FREE char *json = NULL;

	plan_world_must(w, "--", "true", "caf\xe9");
	json = sbx_plan_json(w->plan, NULL);
	assert_non_null(json);
	assert_non_null(strstr(json, "caf\\\\xe9"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_shipped, plan_world_setup,
						plan_world_teardown),
		cmocka_unit_test_setup_teardown(test_every_flag, plan_world_setup,
						plan_world_teardown),
		cmocka_unit_test_setup_teardown(test_secrets, plan_world_setup,
						plan_world_teardown),
		cmocka_unit_test_setup_teardown(test_odd_bytes, plan_world_setup,
						plan_world_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
