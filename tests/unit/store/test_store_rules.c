/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Rules of workspaces: written, read, bounded, undone as a whole. */
#include "tests/unit/store_world.h"

#include <errno.h>

#include "base/cleanup.h"
#include "policy/lists/shipped.h"
#include "store/store_rules.h"

#define RULE(w, p)                                                                                 \
	{                                                                                          \
		.workspace = (w), .type = "network", .pattern = (p), .action = "allow",            \
		.priority = SBX_STORE_PRIORITY, .enabled = true, .created_by = "me",               \
		.created_ms = 7                                                                    \
	}

/* "id workspace pattern action priority;" for each rule that is no floor. */
struct told {
	char text[4096];
	int n, n_floors;
	int stop_at; /* this many rows */
};

static int tell(const struct sbx_store_rule *rule, void *userdata)
{
	struct told *told = userdata;
	size_t n = strlen(told->text);

	if (rule->is_floor) {
		told->n_floors++;
		return 0;
	}
	snprintf(told->text + n, sizeof(told->text) - n, "%s %s %s %lld%s;",
		 rule->workspace ? rule->workspace : "-", rule->pattern ? rule->pattern : "NULL",
		 rule->action ? rule->action : "NULL", (long long)rule->priority,
		 rule->enabled ? "" : " off");
	return ++told->n == told->stop_at ? 77 : 0;
}

static const char *in_force(struct sbx_store *store, const char *workspace, char action[6])
{
	static struct told told;
	struct sbx_err err = { 0 };
	char unused[6];
	int r;

	told = (struct told){ 0 };
	r = sbx_store_rules_in_force(store, workspace, tell, &told, action ? action : unused, &err);
	if (r)
		fail_msg("%d: %s", r, err.msg);
	return told.text;
}

static uint64_t stamp(struct sbx_store *store, const char *workspace)
{
	uint64_t v = 0;

	assert_int_equal(sbx_store_rules_stamp(store, workspace, &v, NULL), 0);
	return v;
}

static int64_t add(struct sbx_store *store, const struct sbx_store_rule *rule)
{
	struct sbx_err err = { 0 };
	int64_t id = 0;
	int r = sbx_store_rule_add(store, rule, &err, &id);

	if (r)
		fail_msg("%d: %s", r, err.msg);
	return id;
}

/* A sandbox gets the rules of its workspace and of the host, and no others. */
static void test_in_force(void **state)
{
	struct fixture *f = *state;
	struct sbx_store *store = open_store(f);
	struct sbx_store_rule off = RULE("a", "off.example");
	struct sbx_store_rule_change change = SBX_STORE_RULE_UNCHANGED;
	int64_t id;

	add(store, &(struct sbx_store_rule)RULE("a", "a.example"));
	add(store, &(struct sbx_store_rule)RULE("b", "b.example"));
	add(store, &(struct sbx_store_rule)RULE(NULL, "host.example"));
	off.enabled = false;
	id = add(store, &off);
	assert_string_equal(in_force(store, NULL, NULL), "- host.example allow 100;");
	assert_string_equal(in_force(store, "a", NULL),
			    "a a.example allow 100;- host.example allow 100;");
	assert_string_equal(in_force(store, "none", NULL), "- host.example allow 100;");
	assert_string_equal(in_force(store, "A", NULL), "- host.example allow 100;");
	change.enabled = 1;
	change.priority = 5;
	change.action = "deny";
	change.changed_by = "you";
	assert_int_equal(sbx_store_rule_set(store, id, &change, &f->err), 0);
	assert_string_equal(in_force(store, "a", NULL),
			    "a a.example allow 100;- host.example allow 100;a off.example deny 5;");
	assert_int_equal(sbx_store_rule_remove(store, id, &f->err), 0);
	assert_int_equal(sbx_store_rule_remove(store, id, &f->err), SBX_STORE_E_UNKNOWN);
	assert_int_equal(sbx_store_rule_set(store, id, &change, &f->err), SBX_STORE_E_UNKNOWN);
	/* An id is not used again. */
	assert_true(add(store, &off) > id);
	sbx_store_close(store);
}

/* A change of anything that counts for a workspace is another stamp, and nothing else is. */
static void test_stamp(void **state)
{
	struct fixture *f = *state;
	struct sbx_store *store = open_store(f);
	struct sbx_store_rule off = RULE("a", "off.example");
	struct sbx_store_workspace w = { .name = "a", .default_action = "allow" };
	uint64_t first = stamp(store, "a"), with_rule, with_default;
	int64_t before, after;

	off.enabled = false;
	add(store, &off);
	add(store, &(struct sbx_store_rule)RULE("b", "x.example"));
	assert_true(stamp(store, "a") == first);
	assert_true(stamp(store, "b") != stamp(store, NULL));
	add(store, &(struct sbx_store_rule)RULE("a", "x.example"));
	with_rule = stamp(store, "a");
	assert_true(with_rule != first);
	assert_int_equal(sbx_store_workspace_set(store, &w, &f->err), 0);
	with_default = stamp(store, "a");
	assert_true(with_default != with_rule);
	w.default_action = NULL;
	assert_int_equal(sbx_store_workspace_set(store, &w, &f->err), 0);
	assert_true(stamp(store, "a") != with_default);
	assert_int_equal(sbx_store_data_version(store, &before, NULL), 0);
	query(f, "UPDATE sandbox_rule SET pattern = 'y.example' WHERE workspace = 'a'");
	assert_int_equal(sbx_store_data_version(store, &after, NULL), 0);
	assert_true(before != after && stamp(store, "a") != with_rule);
	sbx_store_close(store);
}

static void test_workspaces(void **state)
{
	struct fixture *f = *state;
	struct sbx_store *store = open_store(f);
	struct sbx_store_workspace w = { .name = "a", .default_action = "allow" };
	char action[6];

	in_force(store, "a", action);
	assert_string_equal(action, "");
	assert_int_equal(sbx_store_workspace_set(store, &w, &f->err), 0);
	in_force(store, "a", action);
	assert_string_equal(action, "allow");
	in_force(store, "b", action);
	assert_string_equal(action, "");
	w.default_action = "maybe";
	assert_int_equal(sbx_store_workspace_set(store, &w, &f->err), -EINVAL);
	in_force(store, "a", action);
	assert_string_equal(action, "allow");
	w.default_action = "deny";
	assert_int_equal(sbx_store_workspace_set(store, &w, &f->err), 0);
	in_force(store, "a", action);
	assert_string_equal(action, "deny");
	w.name = "";
	assert_int_equal(sbx_store_workspace_set(store, &w, &f->err), -EINVAL);
	sbx_store_close(store);
}

/* Each invalid row beside a valid one that differs in one field. */
static void test_invalid(void **state)
{
	char too_long[SBX_STORE_PATTERN_MAX + 2];
	struct fixture *f = *state;
	struct sbx_store *store = open_store(f);
	const struct sbx_store_rule good = RULE(NULL, "x.example");
	struct sbx_store_rule cases[9];
	int64_t id;

	memset(too_long, 'x', sizeof(too_long) - 1);
	too_long[sizeof(too_long) - 1] = '\0';
	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++)
		cases[i] = good;
	cases[0].type = "mount";
	cases[1].action = "maybe";
	cases[2].priority = -1;
	cases[3].priority = 1000001;
	cases[4].pattern = "";
	cases[5].pattern = too_long;
	cases[6].pattern = "x\nexample";
	cases[7].note = "\xff";
	cases[8].is_floor = true; /* and allows */
	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++) {
		f->err = (struct sbx_err){ 0 };
		assert_int_equal(sbx_store_rule_add(store, &cases[i], &f->err, &id), -EINVAL);
		assert_true(f->err.msg[0]);
		cases[i] = good;
	}
	assert_string_equal(in_force(store, NULL, NULL), "");
	too_long[SBX_STORE_PATTERN_MAX] = '\0';
	cases[0].pattern = too_long;
	add(store, &cases[0]);
	cases[1].is_floor = true;
	cases[1].action = "deny";
	add(store, &cases[1]);
	cases[1].workspace = "a"; /* a floor is of the host */
	assert_int_equal(sbx_store_rule_add(store, &cases[1], &f->err, &id), -EINVAL);
	sbx_store_close(store);
}

static void test_import(void **state)
{
	struct fixture *f = *state;
	struct sbx_store *store = open_store(f);
	struct sbx_store_rule v[] = { RULE("a", "1.example"), RULE("a", "2.example") };

	add(store, &(struct sbx_store_rule)RULE("a", "old.example"));
	assert_int_equal(sbx_store_rules_import(store, "a", false, v, 2, &f->err), 0);
	assert_string_equal(in_force(store, "a", NULL),
			    "a old.example allow 100;a 1.example allow 100;a 2.example allow 100;");
	v[1].action = "maybe";
	assert_int_equal(sbx_store_rules_import(store, "a", true, v, 2, &f->err), -EINVAL);
	assert_string_equal(in_force(store, "a", NULL),
			    "a old.example allow 100;a 1.example allow 100;a 2.example allow 100;");
	v[1].action = "deny";
	assert_int_equal(sbx_store_rules_import(store, "a", true, v, 2, &f->err), 0);
	assert_string_equal(in_force(store, "a", NULL),
			    "a 1.example allow 100;a 2.example deny 100;");
	sbx_store_close(store);
}

/* The last rule that there is room for, and the next one. */
static void test_number(void **state)
{
	struct fixture *f = *state;
	struct sbx_store *store = open_store(f);
	struct sbx_store_rule rule = RULE("a", "x.example");
	int64_t id;

	query(f, "INSERT INTO sandbox_rule (workspace, rule_type, pattern, action) "
		 "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9999) "
		 "SELECT 'a', 'network', i || '.example', 'deny' FROM n");
	add(store, &rule);
	assert_int_equal(sbx_store_rule_add(store, &rule, &f->err, &id), -ENOSPC);
	assert_non_null(strstr(f->err.msg, "10000"));
	assert_string_equal(query(f, "SELECT count(*) FROM sandbox_rule WHERE workspace = 'a'"),
			    "10000");
	rule.workspace = "b";
	add(store, &rule);
	sbx_store_close(store);
}

/* Rows of other programs are told as they are: the caller refuses them. */
static void test_foreign_rows(void **state)
{
	struct fixture *f = *state;
	struct sbx_store *store = open_store(f);
	struct told told = { .stop_at = 1 };
	char action[6];

	query(f, "INSERT INTO sandbox_rule (rule_type, pattern, action) VALUES "
		 "('network', x'00ff', 'deny')");
	query(f, "PRAGMA ignore_check_constraints=1");
	assert_int_equal(sbx_store_rules_in_force(store, NULL, tell, &told, action, &f->err), 77);
	/* The transaction has ended. */
	assert_int_equal(begin(store, ID, &f->err), 0);
	sbx_store_close(store);
}

/* The rows that the migration made are the floors of the policy library. */
static void test_floors(void **state)
{
	struct fixture *f = *state;
	struct sbx_store *store = open_store(f);
	size_t n = 0;
	char sql[256];

	for (; sbx_shipped_floors[n]; n++) {
		snprintf(sql, sizeof(sql),
			 "SELECT pattern FROM sandbox_rule WHERE id = %zu AND is_floor = 1 AND "
			 "enabled = 1 AND action = 'deny' AND workspace IS NULL",
			 n + 1);
		assert_string_equal(query(f, sql), sbx_shipped_floors[n]);
	}
	snprintf(sql, sizeof(sql), "%zu", n);
	assert_string_equal(query(f, "SELECT count(*) FROM sandbox_rule"), sql);
	sbx_store_close(store);
}

static int none(const struct sbx_store_rule *rule, void *userdata)
{
	(void)rule;
	(void)userdata;
	return 0;
}

/* SQLite runs out of memory at any point. */
static void test_no_memory(void **state)
{
	struct fixture *f = *state;
	struct sbx_store_rule v[] = { RULE("a", "1.example"), RULE("a", "2.example") };
	struct sbx_store *store = open_store(f);
	char action[6];
	int r = -1, n = 0;

	for (; r != 0 && n < 2000; n++) {
		good_allocations = n;
		r = sbx_store_rules_in_force(store, "a", none, NULL, action, &f->err);
		good_allocations = -1;
		assert_true(r == 0 || r == -ENOMEM);
	}
	assert_in_range(n, 3, 1999);
	for (r = -1, n = 0; r != 0 && n < 2000; n++) {
		good_allocations = n;
		r = sbx_store_rules_import(store, "a", true, v, 2, &f->err);
		good_allocations = -1;
		assert_true(r == 0 || r == -ENOMEM);
		assert_string_equal(
			query(f, "SELECT count(*) FROM sandbox_rule WHERE NOT is_floor"),
			r == 0 ? "2" : "0");
	}
	assert_in_range(n, 3, 1999);
	sbx_store_close(store);
}

/* Between begin and end the writes are one change, which others see whole or not at all. */
static void test_one_change(void **state)
{
	struct fixture *f = *state;
	struct sbx_store *store = open_store(f), *other = open_store(f);
	struct sbx_store_rule_change change = SBX_STORE_RULE_UNCHANGED;
	const struct sbx_store_rule first = RULE("w", "a.test"), second = RULE("w", "b.test");
	int64_t id = 0, id2 = 0;

	sbx_store_set_busy_ms(other, 10);
	change.changed_by = "me";
	change.action = "deny";
	assert_int_equal(sbx_store_begin(store, &f->err), 0);
	assert_int_equal(sbx_store_rule_add(store, &first, &f->err, &id), 0);
	assert_int_equal(sbx_store_rule_set(store, id, &change, &f->err), 0);
	assert_string_equal(in_force(other, "w", NULL), "");
	assert_int_equal(sbx_store_begin(other, &f->err), -EBUSY);
	assert_int_equal(sbx_store_end(other, -EBUSY, &f->err), -EBUSY);
	assert_int_equal(sbx_store_end(store, 0, &f->err), 0);
	assert_string_equal(in_force(other, "w", NULL), "w a.test deny 100;");
	/* undone as a whole */
	assert_int_equal(sbx_store_begin(store, &f->err), 0);
	assert_int_equal(sbx_store_rule_add(store, &second, &f->err, &id2), 0);
	assert_int_equal(sbx_store_rule_remove(store, id, &f->err), 0);
	assert_int_equal(sbx_store_end(store, -ECANCELED, &f->err), -ECANCELED);
	assert_string_equal(in_force(other, "w", NULL), "w a.test deny 100;");
	assert_int_equal(sbx_store_rule_add(other, &second, &f->err, &id2), 0);
	assert_string_equal(in_force(store, "w", NULL), "w a.test deny 100;w b.test allow 100;");
	sbx_store_close(other);
	sbx_store_close(store);
}

int main(void)
{
#define T(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_in_force),     T(test_stamp),  T(test_workspaces),
		T(test_invalid),      T(test_import), T(test_number),
		T(test_foreign_rows), T(test_floors), T(test_no_memory),
		T(test_one_change),
	};

	replace_memory();
	return cmocka_run_group_tests_name("store_rules", tests, NULL, NULL);
}
