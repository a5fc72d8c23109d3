/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* From rows to rules: what a sandbox gets, and rows that refuse it. */
#include "tests/unit/store_world.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "launcher/rules/rules_load.h"
#include "store/store_rules.h"

static struct sbx_facts facts_of(struct fixture *f)
{
	static char here[] = ".";
	char *src = getenv("SBX_SRCDIR");

	return (struct sbx_facts){ .state_dir = f->state, .data_dir = src ? src : here };
}

static void exec(struct fixture *f, const char *sql)
{
	query(f, sql);
}

static int load(struct fixture *f, const char *workspace, struct sbx_rules *ret)
{
	struct sbx_facts facts = facts_of(f);

	f->err = (struct sbx_err){ 0 };
	return sbx_rules_read(&facts, workspace, ret, &f->err);
}

#define INSERT "INSERT INTO sandbox_rule (workspace, rule_type, pattern, action) VALUES "

/* Without a database there are no rules, and reading makes none. */
static void test_no_database(void **state)
{
	struct fixture *f = *state;
	struct sbx_rules rules;

	assert_int_equal(load(f, "w", &rules), 0);
	assert_int_equal(rules.n, 0);
	assert_int_equal(access(f->state, F_OK), -1);
}

static void test_load(void **state)
{
	struct fixture *f = *state;
	struct sbx_rules rules;

	sbx_store_close(open_store(f));
	assert_int_equal(load(f, "w", &rules), 0);
	assert_int_equal(rules.n, 0); /* the shipped floors are the compiler's */
	assert_false(rules.default_set);
	sbx_rules_fini(&rules);
	exec(f, INSERT "('w', 'network', '*.example.org:443', 'allow'), "
		       "(NULL, 'tool', 'gcc', 'deny'), ('other', 'network', 'x.example', 'deny')");
	exec(f, "INSERT INTO sandbox_rule (rule_type, pattern, action, is_floor, priority) "
		"VALUES ('network', 'own.example', 'deny', 1, 7)");
	exec(f, "INSERT INTO workspace (name, network_default_action) VALUES ('w', 'allow')");
	assert_int_equal(load(f, "w", &rules), 0);
	assert_int_equal(rules.n, 3);
	assert_true(rules.default_set && rules.default_action == SBX_ALLOW);
	assert_int_equal(rules.v[0].type, SBX_RULE_NETWORK);
	assert_int_equal(rules.v[0].action, SBX_ALLOW);
	assert_int_equal(rules.v[0].priority, SBX_RULE_PRIORITY);
	assert_false(rules.v[0].of_host);
	assert_int_equal(rules.v[1].type, SBX_RULE_TOOL);
	assert_int_equal(rules.v[1].action, SBX_DENY);
	assert_true(rules.v[1].of_host && !rules.v[1].is_floor);
	assert_string_equal(rules.v[1].pattern, "gcc");
	assert_true(rules.v[2].is_floor && rules.v[2].priority == 7);
	sbx_rules_fini(&rules);
	assert_int_equal(load(f, NULL, &rules), 0);
	assert_int_equal(rules.n, 2);
	assert_false(rules.default_set);
	sbx_rules_fini(&rules);
}

/* A floor of the host needs no other rule before it. */
static void test_a_floor_alone(void **state)
{
	struct fixture *f = *state;
	struct sbx_rules rules;

	sbx_store_close(open_store(f));
	exec(f,
	     "INSERT INTO sandbox_rule (rule_type, pattern, action, is_floor) "
	     "VALUES ('network', 'own.example', 'deny', 1), ('network', 'b.example', 'deny', 1)");
	assert_int_equal(load(f, NULL, &rules), 0);
	assert_int_equal(rules.n, 2);
	assert_true(rules.v[0].is_floor && rules.v[1].is_floor);
	sbx_rules_fini(&rules);
}

/* One row that is not understood refuses all; the same row, mended, is a rule. */
static void test_rows_that_refuse(void **state)
{
	static const struct {
		const char *row, *mended, *said;
	} cases[] = {
		{ "('w', 'network', '*.com', 'allow')", "pattern = '*.example.org'", "rule 24 of" },
		{ "('w', 'network', 'a b', 'deny')", "pattern = 'b'", "workspace 'w', 'a b'" },
		{ "(NULL, 'tool', 'bin/x', 'deny')", "pattern = '/bin/x'", "of the host, 'bin" },
		{ "('w', 'tool', x'67000a', 'deny')", "pattern = 'g'", "pattern" },
		{ "('w', 'tool', 'g' || char(10), 'deny')", "pattern = 'g'", "printable" },
		{ "('w', 'tool', 'g' || x'ff', 'deny')", "pattern = 'g'", "printable" },
	};
	struct fixture *f = *state;
	struct sbx_rules rules;
	char sql[256];

	sbx_store_close(open_store(f));
	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++) {
		snprintf(sql, sizeof(sql), INSERT "%s", cases[i].row);
		exec(f, sql);
		if (load(f, "w", &rules) <= 0)
			fail_msg("case %zu: not refused", i);
		if (!strstr(f->err.msg, cases[i].said) || strchr(f->err.msg, '\n') ||
		    !strstr(f->err.msg, "sbxctl rules rm "))
			fail_msg("case %zu: %s", i, f->err.msg);
		snprintf(sql, sizeof(sql), "UPDATE sandbox_rule SET %s WHERE NOT is_floor",
			 cases[i].mended);
		exec(f, sql);
		if (load(f, "w", &rules) != 0)
			fail_msg("case %zu: %s", i, f->err.msg);
		assert_int_equal(rules.n, 1);
		sbx_rules_fini(&rules);
		/* A rule that is off is not read. */
		exec(f, "UPDATE sandbox_rule SET enabled = 0 WHERE NOT is_floor");
		assert_int_equal(load(f, "w", &rules), 0);
		assert_int_equal(rules.n, 0);
		sbx_rules_fini(&rules);
		exec(f, "DELETE FROM sandbox_rule WHERE NOT is_floor");
		exec(f, "UPDATE sqlite_sequence SET seq = 23 WHERE name = 'sandbox_rule'");
	}
}

/* Words that only a damaged or hand-made table can hold. */
static void test_foreign_words(void **state)
{
	static const char *const columns[][2] = { { "rule_type", "neither network nor tool" },
						  { "action", "neither allow nor deny" },
						  { "pattern", "no pattern" } };
	struct fixture *f = *state;
	struct sbx_rules rules;
	char sql[256];

	sbx_store_close(open_store(f));
	for (size_t i = 0; i < SBX_N_ELEMENTS(columns); i++) {
		sqlite3 *db = NULL;

		snprintf(sql, sizeof(sql),
			 "PRAGMA ignore_check_constraints=1; " INSERT
			 "('w', 'tool', 'x', 'deny'); UPDATE sandbox_rule SET %s = '%s' "
			 "WHERE workspace = 'w'",
			 columns[i][0], i == 2 ? "" : "x");
		assert_int_equal(sqlite3_open(f->db, &db), SQLITE_OK);
		assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
		sqlite3_close(db);
		assert_true(load(f, "w", &rules) > 0);
		if (!strstr(f->err.msg, columns[i][1]))
			fail_msg("%s", f->err.msg);
		assert_int_equal(load(f, "v", &rules), 0); /* not its workspace */
		sbx_rules_fini(&rules);
		exec(f, "DELETE FROM sandbox_rule WHERE workspace = 'w'");
	}
}

static void test_no_store(void **state)
{
	struct fixture *f = *state;
	struct sbx_rules rules;
	char wal[160];
	FILE *file;

	sbx_store_close(open_store(f));
	snprintf(wal, sizeof(wal), "%s-wal", f->db);
	assert_int_equal(unlink(wal), 0);
	file = fopen(f->db, "r+");
	assert_non_null(file);
	assert_int_equal(fwrite("not a database", 1, 14, file), 14);
	fclose(file);
	assert_int_equal(load(f, NULL, &rules), -EUCLEAN);
	assert_non_null(strstr(f->err.msg, "cannot be read"));
	assert_int_equal(chmod(f->state, 0777), 0);
	assert_int_equal(load(f, NULL, &rules), -EPERM);
	assert_int_equal(chmod(f->state, 0700), 0);
}

int main(void)
{
#define T(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_no_database),   T(test_load),	 T(test_rows_that_refuse),
		T(test_foreign_words), T(test_no_store), T(test_a_floor_alone),
	};

	return cmocka_run_group_tests_name("rules_load", tests, NULL, NULL);
}
