/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Upkeep: old events go in small steps. Databases of older programs keep what they have. */
#include "tests/unit/store_world.h"

#include <errno.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "store/store_keep.h"
#include "store/store_service.h"

#define DAY INT64_C(86400000)

/* @n events, an hour after each other, the last one now. */
static void fill(struct fixture *f, struct sbx_store *store, int n, int64_t now_ms)
{
	assert_int_equal(begin(store, ID, NULL), 0);
	for (int i = n - 1; i >= 0; i--) {
		struct sbx_event v = event("a.example");

		v.ts_ms = (uint64_t)(now_ms - i * DAY / 24);
		assert_int_equal(sbx_store_events_add(store, ID, NULL, &v, 1, &f->err), 0);
	}
}

static uint32_t prune(struct sbx_store *store, int64_t now_ms, int64_t days, int64_t max_rows,
		      uint32_t n_max)
{
	const struct sbx_store_keep keep = { now_ms, days, max_rows };
	struct sbx_err err = { 0 };
	uint32_t removed = 77;

	if (sbx_store_prune(store, &keep, n_max, &err, &removed) != 0)
		fail_msg("%s", err.msg);
	return removed;
}

static const char *ids(struct fixture *f)
{
	return query(f, "SELECT min(id) || '-' || max(id) || '/' || count(*) "
			"FROM sandbox_egress_event");
}

static void test_prune(void **state)
{
	const int64_t now_ms = INT64_C(1700000000000);
	struct fixture *f = *state;
	struct sbx_store *store = open_store(f);

	assert_int_equal(prune(store, now_ms, 1, 1, 10), 0);
	fill(f, store, 100, now_ms);
	assert_int_equal(prune(store, now_ms, 90, 100, 10), 0);
	assert_int_equal(prune(store, now_ms, 0, 0, 10), 0);
	assert_int_equal(prune(store, now_ms, 90, 80, 15), 15);
	assert_string_equal(ids(f), "16-100/85");
	assert_int_equal(prune(store, now_ms, 90, 80, 15), 5);
	assert_int_equal(prune(store, now_ms, 90, 80, 15), 0);
	assert_string_equal(ids(f), "21-100/80");
	/* older than a day: all but the last 25 */
	assert_int_equal(prune(store, now_ms, 1, 80, 50), 50);
	assert_int_equal(prune(store, now_ms, 1, 80, 50), 5);
	assert_string_equal(ids(f), "76-100/25");
	/* the newest stays, and ids go on */
	assert_int_equal(prune(store, now_ms + 10 * DAY, 1, 80, 50), 24);
	assert_string_equal(ids(f), "100-100/1");
	assert_int_equal(prune(store, now_ms + 10 * DAY, 1, 80, 50), 0);
	/* the bound of a sandbox's rows counts those that went */
	assert_string_equal(query(f, "SELECT n_events FROM sandbox"), "100");
	sbx_store_close(store);
}

/* Nothing to remove: a locked database is no obstacle. Something: -EBUSY, and nothing is gone. */
static void test_prune_locked(void **state)
{
	const int64_t now_ms = INT64_C(1700000000000);
	const struct sbx_store_keep keep = { now_ms, 0, 5 }, wide = { now_ms, 90, 50 };
	struct fixture *f = *state;
	struct sbx_store *store = open_store(f);
	sqlite3 *other = NULL;
	uint32_t removed = 77;

	fill(f, store, 10, now_ms);
	sbx_store_set_busy_ms(store, 10);
	assert_int_equal(sqlite3_open(f->db, &other), SQLITE_OK);
	assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(sbx_store_prune(store, &wide, 10, &f->err, &removed), 0);
	assert_int_equal(removed, 0);
	assert_int_equal(sbx_store_prune(store, &keep, 10, &f->err, &removed), -EBUSY);
	sqlite3_close(other);
	assert_string_equal(ids(f), "1-10/10");
	assert_int_equal(sbx_store_prune(store, &keep, 10, &f->err, &removed), 0);
	assert_int_equal(removed, 5);
	sbx_store_close(store);
}

static uint32_t prune_counts(struct sbx_store *store, int64_t now_ms, uint32_t n_max)
{
	struct sbx_err err = { 0 };
	uint32_t removed = 77;

	if (sbx_store_prune_counts(store, now_ms, n_max, &err, &removed) != 0)
		fail_msg("%s", err.msg);
	return removed;
}

/* The beginnings of the oldest minute, hour, quarter, day of counts; of the oldest hour of
 * sandboxes; of the oldest span of ids: hours before @now_ms. */
static const char *oldest_counts(struct fixture *f, int64_t now_ms)
{
	static char sql[1024];

	snprintf(sql, sizeof(sql),
		 "SELECT (SELECT group_concat(a, ' ') FROM (SELECT (%lld - min(at)) / 3600.0 AS a "
		 "FROM egress_deny_count GROUP BY span ORDER BY span)) || ' ' || "
		 "(SELECT (%lld - min(at)) / 3600.0 FROM egress_deny_sandbox) || ' ' || "
		 "(SELECT (%lld - min(at)) / 3600.0 FROM egress_event_span)",
		 (long long)now_ms / 1000, (long long)now_ms / 1000, (long long)now_ms / 1000);
	return query(f, sql);
}

/* Counts go with the events that they count: minutes after two days or three hours, all others with
 * the oldest event. */
static void test_prune_counts(void **state)
{
	static const char fine[] = "SELECT count(*) FROM egress_deny_count WHERE span = 60 AND "
				   "kind IN (0, 1, 2, 5, 6, 7, 8)";
	const int64_t now_ms = INT64_C(1700000000000) / DAY * DAY;
	struct fixture *f = *state;
	struct sbx_store *store = open_store(f);
	uint32_t n = 0;

	assert_int_equal(prune_counts(store, now_ms, 10), 0);
	fill(f, store, 100, now_ms);
	assert_int_equal(sbx_store_count(store, now_ms, 1000, &f->err, &n), 0);
	assert_int_equal(n, 100);
	assert_string_equal(oldest_counts(f, now_ms), "49.0 99.0 102.0 120.0 99.0 99.0");
	assert_string_equal(query(f, fine), "12");
	assert_int_equal(prune_counts(store, now_ms, 10), 0);
	assert_int_equal(prune_counts(store, now_ms + DAY, 10), 10);
	while (prune_counts(store, now_ms + DAY, 10) == 10)
		;
	assert_string_equal(oldest_counts(f, now_ms), "25.0 99.0 102.0 120.0 99.0 99.0");
	assert_int_equal(prune(store, now_ms, 3, 0, 100), 27);
	while (prune_counts(store, now_ms + DAY, 10) == 10)
		;
	assert_string_equal(oldest_counts(f, now_ms), "25.0 72.0 72.0 72.0 72.0 72.0");
	assert_string_equal(query(f, "SELECT sum(n) FROM egress_deny_count WHERE kind = 4 AND span "
				     "= 3600"),
			    "73");
	assert_string_equal(query(f, "SELECT count(*) FROM egress_deny_count WHERE span = 60 AND "
				     "kind = 4"),
			    "26");
	assert_string_equal(query(f, fine), "0");
	/* no events, by hand: nothing is known about their age */
	query(f, "DELETE FROM sandbox_egress_event");
	assert_int_equal(prune_counts(store, now_ms + DAY, 100), 0);
	sbx_store_close(store);
}

static void test_prune_audit(void **state)
{
	struct fixture *f = *state;
	struct sbx_store *store = open_store(f);
	sqlite3 *other = NULL;
	uint32_t n = 77;

	query(f, "WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 100025) "
		 "INSERT INTO api_audit (at_ms, principal, action) SELECT 0, 'p', 'a' FROM c");
	sbx_store_set_busy_ms(store, 10);
	assert_int_equal(sqlite3_open(f->db, &other), SQLITE_OK);
	assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(sbx_store_prune_counts(store, 0, 20, &f->err, &n), -EBUSY);
	assert_int_equal(n, 77);
	sqlite3_exec(other, "ROLLBACK", NULL, NULL, NULL);
	assert_int_equal(prune_counts(store, 0, 20), 20);
	assert_int_equal(prune_counts(store, 0, 20), 5);
	assert_string_equal(query(f, "SELECT min(id) || ' ' || count(*) FROM api_audit"),
			    "26 100000");
	/* nothing left: no lock */
	assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(prune_counts(store, 0, 20), 0);
	sqlite3_close(other);
	sbx_store_close(store);
}

/* A start that was cut leaves the service's row alone. */
static void test_prune_api_sandbox(void **state)
{
	const int64_t now_ms = INT64_C(1700000000000);
	struct sbx_store_api_sandbox row = { .owner = "o", .made_ms = now_ms };
	struct fixture *f = *state;
	struct sbx_store *store = open_store(f);

	row.sandbox_id = "00000000000a";
	assert_int_equal(sbx_store_api_sandbox_add(store, &row, &f->err), 0);
	row.sandbox_id = ID;
	assert_int_equal(sbx_store_api_sandbox_add(store, &row, &f->err), 0);
	assert_int_equal(begin(store, ID, NULL), 0);
	assert_string_equal(query(f, "SELECT group_concat(waits) FROM (SELECT waits FROM "
				     "api_sandbox ORDER BY waits)"),
			    "0,1");
	row.sandbox_id = "00000000000b"; /* its launcher came first */
	assert_int_equal(begin(store, row.sandbox_id, NULL), 0);
	assert_int_equal(sbx_store_api_sandbox_add(store, &row, &f->err), 0);
	assert_int_equal(prune_counts(store, now_ms + DAY, 10), 0);
	assert_int_equal(prune_counts(store, now_ms + DAY + 1, 10), 1);
	assert_int_equal(prune_counts(store, now_ms + 9 * DAY, 10), 0);
	assert_string_equal(query(f, "SELECT count(*) FROM api_sandbox WHERE sandbox_id IN "
				     "(SELECT id FROM sandbox)"),
			    "2");
	assert_string_equal(query(f, "SELECT count(*) FROM api_sandbox"), "2");
	sbx_store_close(store);
}

/* A database that version @version of the program made, with data. */
static void make_old(struct fixture *f, int version)
{
	static const char *const names[] = { "0001-initial.sql", "0002-request.sql",
					     "0003-rules.sql" };
	char path[512], sql[16384];
	sqlite3 *db = NULL;

	snprintf(path, sizeof(path), "mkdir -p %s && chmod 700 %s", f->state, f->state);
	assert_int_equal(system(path), 0);
	assert_int_equal(sqlite3_open(f->db, &db), SQLITE_OK);
	for (int i = 0; i < version; i++) {
		FILE *file;
		size_t n;

		snprintf(path, sizeof(path), "%s/%s", f->migrations, names[i]);
		file = fopen(path, "r");
		assert_non_null(file);
		n = fread(sql, 1, sizeof(sql) - 1, file);
		fclose(file);
		sql[n] = '\0';
		assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	}
	snprintf(sql, sizeof(sql),
		 "INSERT INTO sandbox (id, profile, state, pid, pid_start, uid, command, "
		 "created_ms, workspace, n_events) VALUES ('" ID
		 "', 'p', 'running', 1, 0, 0, '[]', "
		 "5, 'w', 1); INSERT INTO sandbox_egress_event (sandbox_id, ts, action, protocol, "
		 "reason, raw_pkts) VALUES ('" ID "', '2026-01-01T00:00:00.000Z', 'deny', 'tcp', "
		 "'floor', 3); PRAGMA journal_mode=WAL; PRAGMA user_version=%d",
		 version);
	assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
}

static void old_database(struct fixture *f, int version)
{
	struct sbx_event v = event("a.example");
	struct sbx_store *store;

	make_old(f, version);
	store = open_store(f);
	assert_string_equal(query(f, "PRAGMA user_version"), "7");
	assert_string_equal(query(f, "SELECT state || generation || air_gapped || allow_out || "
				     "deny_out FROM sandbox"),
			    "running10[][]");
	assert_string_equal(query(f, "SELECT raw_pkts || reason || coalesce(workspace, '-') "
				     "FROM sandbox_egress_event"),
			    "3floor-");
	assert_string_equal(query(f, "SELECT count(*) FROM sandbox_rule WHERE is_floor"), "23");
	assert_int_equal(sbx_store_events_add(store, ID, NULL, &v, 1, &f->err), 0);
	assert_string_equal(query(f, "SELECT workspace FROM sandbox_egress_event WHERE id = 2"),
			    "w");
	assert_string_equal(query(f, "PRAGMA integrity_check"), "ok");
	assert_string_equal(query(f, "SELECT count(*) FROM pragma_foreign_key_check"), "0");
	sbx_store_close(store);
}

static void test_from_1(void **state)
{
	old_database(*state, 1);
}

static void test_from_2(void **state)
{
	old_database(*state, 2);
}

static void test_from_3(void **state)
{
	old_database(*state, 3);
}

int main(void)
{
#define T(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_prune),
		T(test_prune_locked),
		T(test_prune_counts),
		T(test_prune_audit),
		T(test_prune_api_sandbox),
		T(test_from_1),
		T(test_from_2),
		T(test_from_3),
	};

	return cmocka_run_group_tests_name("store_keep", tests, NULL, NULL);
}
