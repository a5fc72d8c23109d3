/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The service's timer counts what is written, and is not held up by another writer. */
#include "tests/unit/store_world.h"

#include <event2/event.h>

#include "daemon/hub/counter.h"
#include "store/store_keep.h"

#define TRIES 500 /* turns of the loop, 10 ms each */

static void add_events(struct fixture *f, int n)
{
	char sql[1024];

	snprintf(sql, sizeof(sql),
		 "WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < %d) "
		 "INSERT INTO sandbox_egress_event (sandbox_id, ts, action, protocol, reason, "
		 "raw_pkts) SELECT '" ID "', strftime('%%Y-%%m-%%dT%%H:%%M:%%fZ'), 'deny', 'tcp', "
		 "'floor', 1 FROM c",
		 n);
	query(f, sql);
}

static void tick(evutil_socket_t fd, short what, void *userdata)
{
	(void)fd;
	(void)what;
	(void)userdata;
}

/* Run the loop until @sql tells @want. */
static void await(struct fixture *f, struct event_base *base, const char *sql, const char *want)
{
	const struct timeval soon = { .tv_usec = 10000 };
	struct event *timer = evtimer_new(base, tick, NULL);
	int tries = 0;

	assert_non_null(timer);
	for (; strcmp(query(f, sql), want) != 0; tries++) {
		assert_in_range(tries, 0, TRIES);
		event_add(timer, &soon);
		event_base_loop(base, EVLOOP_ONCE);
	}
	event_free(timer);
}

static void test_counts(void **state)
{
	static const char counted[] = "SELECT last_id FROM egress_counted";
	struct fixture *f = *state;
	struct sbx_store *store = open_store(f);
	struct event_base *base = event_base_new();
	const struct sbx_store_keep keep = { 0 };
	struct sbx_counter *counter = NULL;
	sqlite3 *other = NULL;

	assert_non_null(base);
	assert_int_equal(begin(store, ID, NULL), 0);
	add_events(f, 2 * SBX_STORE_COUNT_BATCH + 3);
	query(f, "INSERT INTO egress_event_span VALUES (0, 1, 1)"); /* old */
	assert_int_equal(sbx_counter_new(base, store, &keep, &counter), 0);
	await(f, base, counted, "503");
	await(f, base, "SELECT count(*) FROM egress_event_span WHERE at = 0", "0");
	assert_int_equal(sqlite3_open(f->db, &other), SQLITE_OK);
	assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_exec(other,
				      "INSERT INTO sandbox_egress_event (sandbox_id, ts, action, "
				      "protocol, reason, raw_pkts) VALUES ('" ID
				      "', '2026-01-01T00:00:00.000Z', 'deny', 'tcp', 'floor', 1)",
				      NULL, NULL, NULL),
			 SQLITE_OK);
	for (int i = 0; i < 3; i++)
		event_base_loop(base, EVLOOP_ONCE);
	assert_string_equal(query(f, counted), "503");
	assert_int_equal(sqlite3_exec(other, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
	await(f, base, counted, "504");
	sqlite3_close(other);
	assert_null(sbx_counter_free(counter));
	assert_null(sbx_counter_free(NULL));
	event_base_free(base);
}

/* Old events go; the counts of those that stay are right. */
static void test_removes(void **state)
{
	static const char left[] = "SELECT min(id) || ' ' || max(id) FROM sandbox_egress_event";
	const struct sbx_store_keep keep = { .days = 7, .max_rows = 1000 };
	struct fixture *f = *state;
	struct sbx_store *store = open_store(f);
	struct event_base *base = event_base_new();
	struct sbx_counter *counter = NULL;

	assert_non_null(base);
	assert_int_equal(begin(store, ID, NULL), 0);
	add_events(f, 2300);
	query(f, "UPDATE sandbox_egress_event SET ts = '2026-01-01T00:00:00.000Z' WHERE id < 2000");
	assert_int_equal(sbx_counter_new(base, store, &keep, &counter), 0);
	await(f, base, left, "2000 2300");
	await(f, base, "SELECT sum(n) FROM egress_deny_count WHERE kind = 4 AND span = 3600",
	      "301");
	assert_null(sbx_counter_free(counter));
	event_base_free(base);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_counts, setup, teardown),
		cmocka_unit_test_setup_teardown(test_removes, setup, teardown),
	};

	return cmocka_run_group_tests_name("counter", tests, NULL, NULL);
}
