/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Counted refusals tell what a look at all events would tell. */
#include "tests/unit/store_world.h"

#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "store/store_keep.h"
#include "store/store_service.h"

#define HOUR INT64_C(3600000)
#define DAY  (24 * HOUR)
#define T0   (INT64_C(1700000000000) / DAY * DAY) /* a midnight */
#define NOW  (T0 + 10 * DAY)

/* @n events of ten days: a few of them late, allowed, without a name, or sums. */
static void fill(struct fixture *f, int n)
{
	char sql[2048];

	snprintf(sql, sizeof(sql),
		 "WITH RECURSIVE c(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM c "
		 "WHERE i < %d - 1), "
		 "e AS (SELECT i, abs(i * 2654435761 + i * i * 40503) %% 1000003 AS h FROM c) "
		 "INSERT INTO sandbox_egress_event (sandbox_id, ts, action, protocol, remote_ip, "
		 "fqdn_pinned, reason, raw_pkts, workspace) SELECT '00000000000' || (h %% 7), "
		 "strftime('%%Y-%%m-%%dT%%H:%%M:%%fZ', (%lld + i * (864000000.0 / %d) + "
		 "(h %% 5 = 0) * 60000 - (h %% 11 = 0) * 4000000) / 1000.0, 'unixepoch'), "
		 "CASE WHEN h %% 3 = 1 THEN 'allow' ELSE 'deny' END, 'tcp', "
		 "CASE WHEN h %% 13 > 1 THEN '10.0.0.' || (h %% 13) END, "
		 "CASE WHEN h %% 17 > 2 THEN 'h' || (h %% 17) END, "
		 "CASE WHEN h %% 29 = 4 THEN 'overflow' WHEN h %% 2 THEN 'floor' ELSE 'rule' END, "
		 "1 + h %% 9, CASE h %% 7 WHEN 0 THEN NULL WHEN 1 THEN 'a' ELSE 'b' END FROM e",
		 n, (long long)T0, n);
	query(f, sql);
}

static struct sbx_store *open_filled(struct fixture *f, int n)
{
	struct sbx_store *store = open_store(f);

	for (char digit = '0'; digit < '7'; digit++) {
		char id[] = "00000000000x";

		id[11] = digit;
		assert_int_equal(begin(store, id, NULL), 0);
	}
	query(f, "INSERT INTO api_sandbox (sandbox_id, owner_uid, owner, made_ms) SELECT id, "
		 "CASE WHEN id > '000000000003' THEN 8 ELSE 7 END, 'o', 0 FROM sandbox "
		 "WHERE id IN ('000000000001', '000000000002', '000000000004', '000000000006')");
	fill(f, n);
	return store;
}

/* All of @n_max, or all there is with 0. */
static int64_t count(struct sbx_store *store, uint32_t n_max)
{
	struct sbx_err err = { 0 };
	uint32_t n = 0;
	int64_t all = 0;

	do {
		if (sbx_store_count(store, NOW, n_max ? n_max : 100, &err, &n) != 0)
			fail_msg("%s", err.msg);
		all += n;
	} while (n_max == 0 && n == 100);
	return all;
}

#define ROWS_MAX 64

struct rows {
	struct row {
		char key[32];
		int64_t count, n_rows, n_sandboxes, last_port;
		char last_reason[32];
	} v[ROWS_MAX];
	int n;
};

static int take(const struct sbx_store_denies_row *d, void *userdata)
{
	struct rows *rows = userdata;
	struct row *row = &rows->v[rows->n++];

	assert_in_range(rows->n, 1, ROWS_MAX);
	snprintf(row->key, sizeof(row->key), "%s", d->key ? d->key : "-");
	row->count = d->count;
	row->n_rows = d->n_rows;
	row->n_sandboxes = d->n_sandboxes;
	snprintf(row->last_reason, sizeof(row->last_reason), "%s", d->last_reason);
	assert_non_null(d->first_ts);
	assert_non_null(d->last_ts);
	return 0;
}

/* The same rows, in the order of their counts, as from the events. @owner 0: of all. */
static void compare_of(struct sbx_store *store, int64_t since_ms, int64_t until_ms,
		       const char *workspace, uid_t owner, bool all_counted)
{
	const struct sbx_store_event_filter events = { .since_ms = since_ms,
						       .until_ms = until_ms,
						       .workspace = workspace,
						       .by_owner = owner > 0,
						       .owner_uid = owner };
	const struct sbx_store_denials_filter counts = { .since_ms = since_ms,
							 .until_ms = until_ms,
							 .now_ms = NOW,
							 .workspace = workspace,
							 .by_owner = owner > 0,
							 .owner_uid = owner };
	static struct rows want, got;

	for (int by = 0; by < SBX_N_DENIES_BY; by++) {
		struct sbx_err err = { 0 };
		bool exact = all_counted && since_ms % HOUR == 0 && until_ms % HOUR == 0;

		want.n = got.n = 0;
		assert_int_equal(sbx_store_denies_each(store, (enum sbx_store_denies_by)by, &events,
						       take, &want, &err),
				 0);
		if (sbx_store_denials_each(store, (enum sbx_store_denies_by)by, &counts, take, &got,
					   &err) != 0)
			fail_msg("%s", err.msg);
		assert_int_equal(got.n, want.n);
		for (int i = 0; i < want.n; i++) {
			const struct row *a = &want.v[i], *b = &got.v[i];

			if (strcmp(a->key, b->key) != 0 || a->count != b->count ||
			    a->n_rows != b->n_rows || strcmp(a->last_reason, b->last_reason) != 0 ||
			    b->n_sandboxes > b->n_rows || b->n_sandboxes < 1 ||
			    (exact && a->n_sandboxes != b->n_sandboxes))
				fail_msg("by %d of %s and %u, %lld to %lld, row %d: %s %lld %lld "
					 "%lld %s, but %s %lld %lld %lld %s",
					 by, workspace ? workspace : "-", owner,
					 (long long)(since_ms - T0), (long long)(until_ms - T0),
					 i, a->key, (long long)a->count, (long long)a->n_rows,
					 (long long)a->n_sandboxes, a->last_reason, b->key,
					 (long long)b->count, (long long)b->n_rows,
					 (long long)b->n_sandboxes, b->last_reason);
		}
	}
}

static void compare(struct sbx_store *store, int64_t since_ms, int64_t until_ms,
		    const char *workspace, bool all_counted)
{
	static const uid_t owners[] = { 0, 7, 8, 9 };

	for (size_t i = 0; i < SBX_N_ELEMENTS(owners); i++)
		compare_of(store, since_ms, until_ms, workspace, owners[i], all_counted);
}

/* Windows of every kind: open, whole hours and days, within a minute, within an hour, recent (by
 * the minute) and long ago. */
static void compare_all(struct sbx_store *store, bool all_counted)
{
	static const int64_t windows[][2] = {
		{ 0, 0 },
		{ T0, T0 + 10 * DAY },
		{ T0 + 3 * HOUR, T0 + 5 * DAY + 7 * HOUR },
		{ T0 + 4 * DAY + 1, T0 + 4 * DAY + 59 * 60000 },
		{ T0 + 4 * DAY + 123456, T0 + 9 * DAY + 7654321 },
		{ T0 + 9 * DAY - HOUR, 0 },
		{ T0 + 9 * DAY + 1234567, T0 + 9 * DAY + 7654321 },
		{ T0 + 9 * DAY + 1234567, T0 + 9 * DAY + 1235567 },
		{ T0 + 9 * DAY + 60000, T0 + 9 * DAY + 120000 },
		{ T0 + 9 * DAY + 60001, T0 + 9 * DAY + 119999 },
		{ T0 + 8 * DAY + 1, 0 },
		{ 0, T0 + 3 * DAY + 1 },
		{ 0, T0 + 9 * DAY + 90 * 60000 },
		{ T0 + 11 * DAY, 0 },
		{ NOW - HOUR, 0 },
		{ NOW - HOUR - 1234567, NOW - 1234567 },
		{ NOW - 2 * HOUR + 60000, NOW - HOUR },
	};

	for (size_t i = 0; i < SBX_N_ELEMENTS(windows); i++) {
		compare(store, windows[i][0], windows[i][1], NULL, all_counted);
		compare(store, windows[i][0], windows[i][1], "a", all_counted);
		compare(store, windows[i][0], windows[i][1], "none", all_counted);
	}
}

static void test_as_events(void **state)
{
	struct fixture *f = *state;
	struct sbx_store *store = open_filled(f, 3000);

	compare_all(store, false); /* nothing is */
	assert_int_equal(count(store, 1000), 1000);
	compare_all(store, false);
	assert_int_equal(count(store, 1), 1);
	compare_all(store, false);
	assert_int_equal(count(store, 0), 1999);
	compare_all(store, true);
	assert_int_equal(count(store, 0), 0);
	fill(f, 50); /* late */
	compare_all(store, false);
	assert_int_equal(count(store, 0), 50);
	compare_all(store, true);
	/* a sum grows */
	query(f, "UPDATE sandbox_egress_event SET raw_pkts = raw_pkts + 100 WHERE reason = "
		 "'overflow'");
	compare_all(store, true);
	assert_string_equal(query(f, "SELECT count(*) FROM egress_deny_count WHERE span = 60 AND "
				     "at < 1700000000 + 7 * 86400"),
			    "0");
	assert_string_equal(query(f, "SELECT count(*) > 20 FROM egress_deny_count WHERE span = 60 "
				     "AND kind = 4 AND at < 1699920000 + 10 * 86400 - 3 * 3600"),
			    "1");
	assert_string_equal(query(f, "SELECT count(*) FROM egress_deny_count WHERE span = 60 AND "
				     "kind <> 4 AND at < 1699920000 + 10 * 86400 - 3 * 3600"),
			    "0");
	sbx_store_close(store);
}

struct sums {
	int64_t n, total, first, last;
};

static int take_sum(int64_t at_ms, int64_t n, void *userdata)
{
	struct sums *sums = userdata;

	assert_true(sums->n == 0 || at_ms > sums->last);
	if (sums->n++ == 0)
		sums->first = at_ms;
	sums->last = at_ms;
	sums->total += n;
	return 0;
}

static struct sums series(struct sbx_store *store, enum sbx_store_denies_by by, const char *key,
			  enum sbx_store_span span, struct sbx_store_denials_filter filter)
{
	struct sums sums = { 0 };

	filter.now_ms = NOW;
	assert_int_equal(sbx_store_denials_series(store, by, key, &filter, span, take_sum, &sums,
						  NULL),
			 0);
	return sums;
}

#define FILTER(...)                                                                                \
	(struct sbx_store_denials_filter)                                                          \
	{                                                                                          \
		__VA_ARGS__                                                                        \
	}

static void compare_series(struct fixture *f, struct sbx_store *store)
{
	static const char *const keys[] = { "10.0.0.4", "h5", "000000000003", "a", "floor" };
	static const char *const columns[] = { "remote_ip", "fqdn_pinned", "sandbox_id",
					       "workspace", "reason" };
	struct sums s;

	for (int by = 0; by < SBX_N_DENIES_BY; by++) {
		char sql[512];

		snprintf(sql, sizeof(sql),
			 "SELECT coalesce(sum(raw_pkts), 0) || ' ' || "
			 "count(DISTINCT substr(ts, 1, 16)) FROM sandbox_egress_event "
			 "WHERE action = 'deny' AND %s = '%s' AND ts >= "
			 "strftime('%%Y-%%m-%%dT%%H:%%M:%%fZ', %lld, 'unixepoch')",
			 columns[by], keys[by], (long long)((NOW - 2 * HOUR) / 1000));
		s = series(store, (enum sbx_store_denies_by)by, keys[by], SBX_STORE_BY_MINUTE,
			   FILTER(.since_ms = NOW - 2 * HOUR));
		snprintf(sql + 400, 64, "%lld %lld", (long long)s.total, (long long)s.n);
		assert_string_equal(query(f, sql), sql + 400);
	}
	s = series(store, SBX_DENIES_BY_NAME, NULL, SBX_STORE_BY_HOUR,
		   FILTER(.since_ms = T0 + HOUR + 5, .until_ms = T0 + 8 * DAY - 5));
	assert_int_equal(s.first % HOUR, 0);
	assert_true(s.first >= T0 + HOUR && s.last < T0 + 8 * DAY && s.n > 160);
	s = series(store, SBX_DENIES_BY_NAME, "", SBX_STORE_BY_HOUR, FILTER(.workspace = "a"));
	assert_int_equal(s.total, atoi(query(f, "SELECT sum(raw_pkts) FROM sandbox_egress_event "
						"WHERE action = 'deny' AND workspace = 'a' AND "
						"fqdn_pinned IS NULL AND remote_ip IS NULL")));
	s = series(store, SBX_DENIES_BY_NAME, NULL, SBX_STORE_BY_HOUR,
		   FILTER(.by_owner = true, .owner_uid = 8));
	assert_true(s.total > 0);
	assert_int_equal(s.total,
			 atoi(query(f, "SELECT sum(raw_pkts) FROM sandbox_egress_event WHERE "
				       "action = 'deny' AND sandbox_id IN ('000000000004', "
				       "'000000000006')")));
	s = series(store, SBX_DENIES_BY_NAME, "h5", SBX_STORE_BY_HOUR,
		   FILTER(.by_owner = true, .owner_uid = 7, .workspace = "b"));
	assert_int_equal(s.total,
			 atoi(query(f, "SELECT sum(raw_pkts) FROM sandbox_egress_event WHERE "
				       "action = 'deny' AND fqdn_pinned = 'h5' AND workspace = 'b' "
				       "AND sandbox_id IN ('000000000001', '000000000002')")));
}

static void test_series(void **state)
{
	struct fixture *f = *state;
	struct sbx_store *store = open_filled(f, 3000);

	compare_series(f, store);
	count(store, 2900);
	compare_series(f, store);
	count(store, 0);
	compare_series(f, store);
	sbx_store_close(store);
}

/* Of a large database the newest events are counted first, and what is missing is told. */
static void test_behind(void **state)
{
	const struct sbx_store_denials_filter all = { .now_ms = NOW };
	const int n = SBX_STORE_UNCOUNTED_MAX + 1000;
	struct fixture *f = *state;
	struct sbx_store *store = open_filled(f, n);
	struct rows rows = { 0 };
	int64_t left = -1;

	assert_int_equal(sbx_store_uncounted(store, 0, &f->err, &left), 0);
	assert_int_equal(left, 1000);
	assert_int_equal(sbx_store_denials_each(store, SBX_DENIES_BY_REASON, &all, take, &rows,
						&f->err),
			 0);
	assert_in_range(rows.n, 2, 3);
	/* the last of ten days is counted, and the days before are not */
	assert_int_equal(count(store, (uint32_t)n / 5), n / 5);
	assert_string_equal(query(f, "SELECT last_id || ' ' || gap_first || ' ' || gap_last FROM "
				     "egress_counted"),
			    "6000 1 4800");
	assert_int_equal(sbx_store_uncounted(store, T0 + 9 * DAY, &f->err, &left), 0);
	assert_int_equal(left, 0);
	compare(store, T0 + 9 * DAY, 0, NULL, true);
	assert_int_equal(sbx_store_uncounted(store, T0 + 5 * DAY, &f->err, &left), 0);
	assert_int_equal(left, 4800);
	/* new events come before the gap */
	fill(f, 10);
	assert_int_equal(count(store, 100), 10);
	assert_int_equal(count(store, 100), 100);
	assert_string_equal(query(f, "SELECT last_id || ' ' || gap_first || ' ' || gap_last FROM "
				     "egress_counted"),
			    "6010 1 4700");
	assert_true(count(store, 0) == 4700);
	assert_string_equal(query(f, "SELECT last_id || ' ' || gap_first || ' ' || gap_last FROM "
				     "egress_counted"),
			    "6010 0 0");
	assert_int_equal(sbx_store_uncounted(store, 0, &f->err, &left), 0);
	assert_int_equal(left, 0);
	compare_all(store, true);
	compare_series(f, store);
	sbx_store_close(store);
}

/* A gap whose events were removed, and one that ends in the middle of a batch. */
static void test_gap_pruned(void **state)
{
	const int n = SBX_STORE_UNCOUNTED_MAX + 1000;
	struct fixture *f = *state;
	struct sbx_store *store = open_filled(f, n);

	assert_int_equal(count(store, 500), 500);
	query(f, "DELETE FROM sandbox_egress_event WHERE id < 5200");
	assert_int_equal(count(store, 0), 301);
	assert_string_equal(query(f, "SELECT gap_first || ' ' || gap_last FROM egress_counted"),
			    "0 0");
	compare(store, T0 + 9 * DAY, 0, NULL, true);
	query(f, "UPDATE egress_counted SET gap_first = 1, gap_last = 5199");
	assert_int_equal(count(store, 100), 0);
	assert_string_equal(query(f, "SELECT gap_first || ' ' || gap_last FROM egress_counted"),
			    "0 0");
	sbx_store_close(store);
}

/* Rows that another program wrote: what is no time is of 1970; a number that is none is large. */
static void test_foreign_rows(void **state)
{
	struct fixture *f = *state;
	struct sbx_store *store = open_filled(f, 10);

	query(f, "INSERT INTO sandbox_egress_event (sandbox_id, ts, action, protocol, remote_ip, "
		 "reason, raw_pkts) VALUES ('000000000001', 'soon', 'deny', 'tcp', x'00ff', 'x', "
		 "9223372036854775807), ('000000000001', '', 'deny', 'tcp', 5, x'00', 'many')");
	count(store, 0);
	fill(f, 10);
	count(store, 0);
	assert_string_equal(query(f, "SELECT count(*) FROM egress_deny_count WHERE at = 0"), "33");
	compare(store, 0, 0, "b", true);
	sbx_store_close(store);
}

/* Nothing to count locks nothing. Two programs count each event once. */
static void test_locked(void **state)
{
	struct fixture *f = *state;
	struct sbx_store *store = open_filled(f, 20);
	sqlite3 *other = NULL;
	uint32_t n = 77;

	sbx_store_set_busy_ms(store, 10);
	assert_int_equal(sqlite3_open(f->db, &other), SQLITE_OK);
	assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(sbx_store_count(store, NOW, 10, &f->err, &n), -EBUSY);
	assert_int_equal(n, 77);
	sqlite3_exec(other, "ROLLBACK", NULL, NULL, NULL);
	assert_int_equal(sbx_store_count(store, NOW, 100, &f->err, &n), 0);
	assert_int_equal(n, 20);
	assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(sbx_store_count(store, NOW, 10, &f->err, &n), 0);
	assert_int_equal(n, 0);
	sqlite3_close(other);
	compare_all(store, true);
	sbx_store_close(store);
}

static void count_as_child(struct fixture *f)
{
	struct sbx_store *store = NULL;
	uint32_t n = 1;

	if (sbx_store_open(f->state, f->migrations, NULL, &store) != 0)
		_exit(1);
	while (n > 0)
		if (sbx_store_count(store, NOW, 7, NULL, &n) != 0)
			_exit(2);
	_exit(0);
}

/* Two programs count at once. */
static void test_two(void **state)
{
	struct fixture *f = *state;
	struct sbx_store *store = sbx_store_close(open_filled(f, 700));
	int status = -1;

	for (int i = 0; i < 2; i++) {
		pid_t pid = fork();

		assert_true(pid >= 0);
		if (pid == 0)
			count_as_child(f);
	}
	for (int i = 0; i < 2; i++) {
		assert_true(wait(&status) > 0);
		assert_int_equal(status, 0);
	}
	store = open_store(f);
	assert_string_equal(query(f, "SELECT last_id FROM egress_counted"), "700");
	compare_all(store, true);
	sbx_store_close(store);
}

/* SQLite runs out of memory at any point: all of a batch is counted or none. */
static void test_no_memory(void **state)
{
	const struct sbx_store_denials_filter all = { .now_ms = NOW };
	struct fixture *f = *state;
	struct sbx_store *store = open_filled(f, 20);
	struct rows rows = { 0 };
	struct sums sums = { 0 };
	uint32_t counted = 0;
	int r = -1, n = 0;

	for (; r != 0 && n < 5000; n++) {
		f->err = (struct sbx_err){ 0 };
		good_allocations = n;
		r = sbx_store_count(store, NOW, 10, &f->err, &counted);
		good_allocations = -1;
		if (r != 0 && r != -ENOMEM)
			fail_msg("allocation %d: %d, %s", n, r, f->err.msg);
		assert_string_equal(query(f, "SELECT last_id || ' ' || (SELECT count(*) > 0 FROM "
					     "egress_deny_count) FROM egress_counted"),
				    r ? "0 0" : "10 1");
	}
	assert_in_range(n, 10, 4999);
	for (r = -1, n = 0; r != 0 && n < 9000; n++) {
		rows.n = 0;
		good_allocations = n;
		r = sbx_store_denials_each(store, SBX_DENIES_BY_NAME, &all, take, &rows, &f->err);
		good_allocations = -1;
		assert_true(r == 0 || r == -ENOMEM);
	}
	assert_in_range(n, 10, 8999);
	for (r = -1, n = 0; r != 0 && n < 9000; n++) {
		sums = (struct sums){ 0 };
		good_allocations = n;
		r = sbx_store_denials_series(store, SBX_DENIES_BY_NAME, NULL, &all,
					     SBX_STORE_BY_HOUR, take_sum, &sums, &f->err);
		good_allocations = -1;
		assert_true(r == 0 || r == -ENOMEM);
	}
	assert_in_range(n, 10, 8999);
	compare_all(store, false);
	sbx_store_close(store);
}

int main(void)
{
#define T(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_as_events), T(test_series), T(test_behind), T(test_gap_pruned),
		T(test_foreign_rows), T(test_locked), T(test_two), T(test_no_memory),
	};

	replace_memory();
	return cmocka_run_group_tests_name("store_denials", tests, NULL, NULL);
}
