/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Pages of events and sandboxes have the rows that a plain SELECT has, whichever index they use. */
#include "tests/unit/store_world.h"

#include "base/cleanup.h"
#include "store/store_keep.h"
#include "store/store_service.h"

#define MINUTE INT64_C(60000)
#define T0     (INT64_C(1700000000000) / 600000 * 600000)
#define N      300

/* Six sandboxes, the even ones of the service; the first three have ended. 300 events in five
 * hours, a few late. */
static void fill(struct fixture *f, int n)
{
	char sql[2048];

	snprintf(sql, sizeof(sql),
		 "WITH RECURSIVE c(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM c "
		 "WHERE i < %d - 1), "
		 "e AS (SELECT i, abs(i * 2654435761 + i * i * 40503) %% 1000003 AS h FROM c) "
		 "INSERT INTO sandbox_egress_event (sandbox_id, analysis_id, ts, action, protocol, "
		 "reason, raw_pkts, fqdn_pinned, remote_ip, workspace) SELECT '00000000000' || (h "
		 "%% 6), 'j' || (h %% 2), "
		 "strftime('%%Y-%%m-%%dT%%H:%%M:%%fZ', (%lld + i * 60000 - (h %% 7 = 0) * 1800000) "
		 "/ 1000.0, 'unixepoch'), "
		 "CASE h %% 5 WHEN 0 THEN 'allow' WHEN 1 THEN 'notice' ELSE 'deny' END, 'tcp', "
		 "CASE WHEN h %% 2 THEN 'floor' ELSE 'rule' END, 1, 'n' || (h %% 4), "
		 "CASE WHEN h %% 8 < 6 THEN '192.0.2.' || (h %% 6) END, "
		 "CASE h %% 3 WHEN 0 THEN NULL WHEN 1 THEN 'a' ELSE 'b' END FROM e",
		 n, (long long)T0);
	query(f, sql);
}

static struct sbx_store *open_filled(struct fixture *f)
{
	const struct sbx_store_end end = { .state = SBX_STATE_DONE,
					   .usage = SBX_STORE_USAGE_UNKNOWN };
	struct sbx_store *store = open_store(f);

	for (char digit = '0'; digit < '6'; digit++) {
		char id[] = "00000000000x";
		const struct sbx_store_api_sandbox s = { .sandbox_id = id,
							 .owner = "o",
							 .owner_uid = digit < '3' ? 7 : 8 };

		id[11] = digit;
		assert_int_equal(begin(store, id, NULL), 0);
		if (digit % 2 == 0)
			assert_int_equal(sbx_store_api_sandbox_add(store, &s, &f->err), 0);
		if (digit < '3')
			assert_int_equal(sbx_store_sandbox_end(store, id, &end, &f->err), 0);
	}
	query(f, "UPDATE sandbox SET state = 'lost' WHERE id = '000000000001'");
	query(f, "UPDATE sandbox SET workspace = 'a' WHERE rowid < 5");
	query(f, "UPDATE sandbox SET state = 'running' WHERE rowid = 5");
	fill(f, N);
	return store;
}

struct told {
	char text[2000];
	int64_t last;
	int n;
};

static int tell(struct told *told, int64_t id)
{
	size_t at = strlen(told->text);

	snprintf(told->text + at, sizeof(told->text) - at, "%s%lld", at ? "," : "", (long long)id);
	told->last = id;
	told->n++;
	return 0;
}

static int tell_event(const struct sbx_store_event_row *e, void *userdata)
{
	return tell(userdata, e->id);
}

static int tell_sandbox(const struct sbx_store_sandbox_row *s, void *userdata)
{
	return tell(userdata, s->cursor);
}

/* What @filter means. */
static void event_where(const struct sbx_store_event_filter *filter, char *buf, size_t n)
{
	size_t at = 0;
	const struct {
		const char *column, *value;
	} words[] = {
		{ "sandbox_id", filter->sandbox_id },	{ "workspace", filter->workspace },
		{ "analysis_id", filter->analysis_id }, { "action", filter->action },
		{ "reason", filter->reason },		{ "fqdn_pinned", filter->name },
		{ "remote_ip", filter->remote_ip },
	};

	at += (size_t)snprintf(buf + at, n - at, "1");
	for (size_t i = 0; i < SBX_N_ELEMENTS(words); i++)
		if (words[i].value)
			at += (size_t)snprintf(buf + at, n - at, " AND %s = '%s'", words[i].column,
					       words[i].value);
	if (filter->by_owner)
		at += (size_t)snprintf(buf + at, n - at,
				       " AND sandbox_id IN (SELECT sandbox_id FROM api_sandbox "
				       "WHERE owner_uid = %u)",
				       (unsigned)filter->owner_uid);
	if (filter->since_ms)
		at += (size_t)snprintf(buf + at, n - at,
				       " AND ts >= strftime('%%Y-%%m-%%dT%%H:%%M:%%fZ', "
				       "%lld / 1000.0, 'unixepoch')",
				       (long long)filter->since_ms);
	if (filter->until_ms)
		snprintf(buf + at, n - at,
			 " AND ts < strftime('%%Y-%%m-%%dT%%H:%%M:%%fZ', %lld / 1000.0, "
			 "'unixepoch')",
			 (long long)filter->until_ms);
}

/* All pages of sbx_store_events_page() (@n_ids 0) or sbx_store_events_look(). */
static void read_pages(struct sbx_store *store, struct sbx_store_event_filter filter, int64_t n_ids,
		       struct told *told)
{
	struct sbx_err err = { 0 };
	int64_t next = 0;

	*told = (struct told){ 0 };
	do {
		int before = told->n;
		int r = n_ids ? sbx_store_events_look(store, &filter, n_ids, tell_event, told, &err,
						      &next) :
				sbx_store_events_page(store, &filter, tell_event, told, &err);

		if (r)
			fail_msg("%s", err.msg);
		assert_in_range(told->n - before, 0, filter.n_max);
		if (!n_ids)
			next = told->n - before == (int)filter.n_max ? told->last : 0;
		if (filter.newest_first)
			filter.before = next;
		else
			filter.after = next;
	} while (next);
}

static void compare_events(struct fixture *f, struct sbx_store *store,
			   struct sbx_store_event_filter filter)
{
	static const int64_t n_ids[] = { 0, 1000, 70 };
	static struct told told;
	char where[1000], sql[2000];
	const char *want;

	event_where(&filter, where, sizeof(where));
	filter.n_max = 41;
	for (int newest = 0; newest < 2; newest++) {
		filter.newest_first = newest;
		snprintf(sql, sizeof(sql),
			 "SELECT coalesce(group_concat(id), '') FROM (SELECT id FROM "
			 "sandbox_egress_event WHERE %s ORDER BY id %s)",
			 where, newest ? "DESC" : "");
		want = query(f, sql);
		for (size_t i = 0; i < SBX_N_ELEMENTS(n_ids); i++) {
			read_pages(store, filter, n_ids[i], &told);
			told.text[1023] = '\0'; /* as query() */
			if (strcmp(told.text, want) != 0)
				fail_msg("%s, newest %d, n_ids %d: %s, but %s", where, newest,
					 (int)n_ids[i], want, told.text);
		}
	}
}

#define E(...)                                                                                     \
	(struct sbx_store_event_filter)                                                            \
	{                                                                                          \
		__VA_ARGS__                                                                        \
	}

static void compare_all(struct fixture *f, struct sbx_store *store)
{
	const struct sbx_store_event_filter filters[] = {
		E(.n_max = 0),
		E(.sandbox_id = "000000000002"),
		E(.sandbox_id = "000000000002", .action = "deny", .workspace = "a"),
		E(.workspace = "a"),
		E(.workspace = "none"),
		E(.analysis_id = "j1"),
		E(.analysis_id = "j1", .reason = "floor", .workspace = "b"),
		E(.action = "notice"),
		E(.action = "panic"),
		E(.action = "deny", .reason = "rule"),
		E(.reason = "floor"),
		E(.reason = "floor", .workspace = "b"),
		E(.name = "n3"),
		E(.name = "none"),
		E(.name = "n1", .workspace = "a", .action = "deny"),
		E(.name = "n1", .remote_ip = "192.0.2.5", .reason = "floor"),
		E(.name = "none", .workspace = "a"),
		E(.name = "n2", .by_owner = true, .owner_uid = 8),
		E(.action = "notice", .reason = "rule"),
		E(.remote_ip = "192.0.2.5"),
		E(.remote_ip = "192.0.2.2", .sandbox_id = "000000000002"),
		E(.by_owner = true, .owner_uid = 7),
		E(.by_owner = true, .owner_uid = 8, .action = "allow"),
		E(.by_owner = true, .owner_uid = 9),
		E(.by_owner = true, .owner_uid = 8, .sandbox_id = "000000000004"),
	};
	static const int64_t times[][2] = {
		{ 0, 0 },
		{ T0 + 20 * MINUTE, 0 },
		{ T0 + 100 * MINUTE, 0 },
		{ 0, T0 + 100 * MINUTE },
		{ T0 + 95 * MINUTE + 1, T0 + 105 * MINUTE + 1 },
		{ T0 + 60 * MINUTE, T0 + 120 * MINUTE },
		{ T0 + 250 * MINUTE, T0 + 1000 * MINUTE },
		{ T0 + 1000 * MINUTE, 0 },
		{ 0, T0 - 100 * MINUTE },
	};

	for (size_t i = 0; i < SBX_N_ELEMENTS(filters); i++)
		for (size_t j = 0; j < SBX_N_ELEMENTS(times); j++) {
			struct sbx_store_event_filter filter = filters[i];

			filter.since_ms = times[j][0];
			filter.until_ms = times[j][1];
			compare_events(f, store, filter);
		}
}

static void count(struct sbx_store *store, uint32_t n)
{
	uint32_t counted;

	assert_int_equal(sbx_store_count(store, T0, n, NULL, &counted), 0);
}

static void test_events(void **state)
{
	struct fixture *f = *state;
	struct sbx_store *store = open_filled(f);

	compare_all(f, store);
	count(store, 100);
	compare_all(f, store);
	count(store, 1000);
	compare_all(f, store);
	fill(f, 20); /* late */
	compare_all(f, store);
	query(f, "UPDATE sandbox SET n_events = 10000"); /* owners of many */
	compare_all(f, store);
	sbx_store_close(store);
}

/* Events from the middle on are not counted. */
static void test_gap(void **state)
{
	struct fixture *f = *state;
	struct sbx_store *store = open_filled(f);

	count(store, 1000);
	query(f, "UPDATE egress_counted SET gap_first = 120, gap_last = 180");
	query(f, "DELETE FROM egress_event_span");
	query(f, "INSERT INTO egress_event_span SELECT CAST(strftime('%s', ts) AS INTEGER) / 600 * "
		 "600, min(id), max(id) FROM sandbox_egress_event WHERE id < 120 OR id > 180 "
		 "GROUP BY 1");
	compare_all(f, store);
	sbx_store_close(store);
}

/* Of two indexes the one that leads to fewer rows is searched: the page is full at once. */
static void test_index(void **state)
{
	struct sbx_store_event_filter filter =
		E(.workspace = "w", .name = "rare", .newest_first = true);
	struct fixture *f = *state;
	struct sbx_store *store = open_filled(f);
	struct told told = { 0 };
	int64_t next = -1;

	query(f, "INSERT INTO sandbox_egress_event (sandbox_id, ts, action, protocol, reason, "
		 "raw_pkts, fqdn_pinned, workspace) WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL "
		 "SELECT i + 1 FROM c WHERE i < 3000) SELECT '000000000005', "
		 "'2023-11-15T00:00:00.000Z', 'deny', 'tcp', 'x', 1, "
		 "CASE WHEN i = 5 THEN 'rare' ELSE 'often' END, 'w' FROM c");
	assert_int_equal(
		sbx_store_events_look(store, &filter, 400, tell_event, &told, &f->err, &next), 0);
	assert_string_equal(told.text, "305");
	assert_int_equal(next, 0);
	/* a frequent name: not all of its rows are looked at */
	filter.name = "often";
	filter.workspace = NULL;
	filter.by_owner = true;
	filter.owner_uid = 9;
	assert_int_equal(
		sbx_store_events_look(store, &filter, 400, tell_event, &told, &f->err, &next), 0);
	assert_int_equal(told.n, 1);
	assert_int_equal(next, 3301 - 101);
	sbx_store_close(store);
}

/* Far more events that are not counted than a list would read. */
static void test_behind(void **state)
{
	struct fixture *f = *state;
	struct sbx_store *store = open_filled(f);

	query(f, "INSERT INTO sandbox_egress_event (id, sandbox_id, ts, action, protocol, reason, "
		 "raw_pkts) VALUES (5400, '000000000005', '2023-11-15T00:00:00.000Z', 'deny', "
		 "'tcp', 'x', 1)");
	compare_all(f, store);
	sbx_store_close(store);
}

/* A page looks at no more ids than it may. */
static void test_look(void **state)
{
	struct sbx_store_event_filter filter = E(.action = "block", .newest_first = true);
	struct fixture *f = *state;
	struct sbx_store *store = open_filled(f);
	struct told told = { 0 };
	int64_t next = 0;

	assert_int_equal(
		sbx_store_events_look(store, &filter, 100, tell_event, &told, &f->err, &next), 0);
	assert_int_equal(next, 201);
	filter.before = next;
	assert_int_equal(
		sbx_store_events_look(store, &filter, 1000, tell_event, &told, &f->err, &next), 0);
	assert_int_equal(next, 0);
	filter = E(.action = "block", .after = 10);
	assert_int_equal(
		sbx_store_events_look(store, &filter, 100, tell_event, &told, &f->err, &next), 0);
	assert_int_equal(next, 110);
	/* an index leads to the rows */
	filter = E(.workspace = "none", .newest_first = true);
	assert_int_equal(
		sbx_store_events_look(store, &filter, 1, tell_event, &told, &f->err, &next), 0);
	assert_int_equal(next, 0);
	assert_int_equal(told.n, 0);
	sbx_store_close(store);
}

static void compare_sandboxes(struct fixture *f, struct sbx_store *store,
			      struct sbx_store_sandbox_filter filter, const char *where)
{
	struct sbx_err err = { 0 };
	struct told told = { 0 };
	char sql[1000];
	int n;

	snprintf(sql, sizeof(sql),
		 "SELECT coalesce(group_concat(rowid), '') FROM (SELECT rowid FROM sandbox "
		 "WHERE %s ORDER BY rowid DESC)",
		 where);
	filter.n_max = 2;
	do {
		n = told.n;
		if (sbx_store_sandboxes_each(store, &filter, tell_sandbox, &told, &err) != 0)
			fail_msg("%s", err.msg);
		filter.before = told.last;
	} while (told.n - n == 2);
	assert_string_equal(told.text, query(f, sql));
}

#define S(...)                                                                                     \
	(struct sbx_store_sandbox_filter)                                                          \
	{                                                                                          \
		__VA_ARGS__                                                                        \
	}
#define OF(uid) "id IN (SELECT sandbox_id FROM api_sandbox WHERE owner_uid = " uid ")"

static void compare_all_sandboxes(struct fixture *f, struct sbx_store *store)
{
	compare_sandboxes(f, store, S(.n_max = 0), "1");
	compare_sandboxes(f, store, S(.live = true), "ended_ms IS NULL");
	compare_sandboxes(f, store, S(.live = true, .workspace = "a"),
			  "ended_ms IS NULL AND workspace = 'a'");
	compare_sandboxes(f, store, S(.state = "running"), "state = 'running'");
	compare_sandboxes(f, store, S(.state = "preparing"), "state = 'preparing'");
	compare_sandboxes(f, store, S(.state = "lost"), "state = 'lost'");
	compare_sandboxes(f, store, S(.state = "done", .live = true), "0");
	compare_sandboxes(f, store, S(.state = "done", .workspace = "a"),
			  "state = 'done' AND workspace = 'a'");
	compare_sandboxes(f, store, S(.state = "none"), "0");
	compare_sandboxes(f, store, S(.workspace = "a"), "workspace = 'a'");
	compare_sandboxes(f, store, S(.by_owner = true, .owner_uid = 7), OF("7"));
	compare_sandboxes(f, store, S(.by_owner = true, .owner_uid = 8), OF("8"));
	compare_sandboxes(f, store, S(.by_owner = true, .owner_uid = 9), "0");
	compare_sandboxes(f, store, S(.by_owner = true, .owner_uid = 7, .state = "done"),
			  OF("7") " AND state = 'done'");
	compare_sandboxes(f, store, S(.by_owner = true, .owner_uid = 8, .live = true),
			  OF("8") " AND ended_ms IS NULL");
}

static void test_sandboxes(void **state)
{
	struct fixture *f = *state;
	struct sbx_store *store = open_filled(f);

	compare_all_sandboxes(f, store);
	/* an owner of many */
	query(f, "WITH RECURSIVE c(i) AS (SELECT 16 UNION ALL SELECT i + 1 FROM c WHERE i < 6000) "
		 "INSERT INTO api_sandbox (sandbox_id, owner_uid, owner, made_ms) "
		 "SELECT printf('%012x', i), 7, 'o', 0 FROM c");
	compare_all_sandboxes(f, store);
	sbx_store_close(store);
}

int main(void)
{
#define T(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_events),
		T(test_behind),
		T(test_gap),
		T(test_index),
		T(test_look),
		T(test_sandboxes),
	};

	return cmocka_run_group_tests_name("store_pages", tests, NULL, NULL);
}
