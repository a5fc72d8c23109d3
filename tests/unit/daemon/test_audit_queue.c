/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Ends of changes wait for a locked database. Without a place their rows stay as they are. */
#include "tests/unit/store_world.h"

#include <event2/event.h>

#include "daemon/access/audit_queue.h"

static void lock(struct fixture *f, sqlite3 **ret_other)
{
	assert_int_equal(sqlite3_open(f->db, ret_other), SQLITE_OK);
	assert_int_equal(sqlite3_exec(*ret_other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
}

static void unlock(sqlite3 *other)
{
	assert_int_equal(sqlite3_exec(other, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(other);
}

static void add_rows(struct sbx_store *store, int n)
{
	const struct sbx_store_audit row = { .at_ms = 1,
					     .principal = "uid 7",
					     .action = "PUT",
					     .after_json = "0" };

	for (int i = 0; i < n; i++)
		assert_int_equal(sbx_store_audit_add(store, &row, NULL, NULL), 0);
}

#define MADE	"SELECT count(*) FROM api_audit WHERE outcome = 'made'"
#define UNKNOWN "SELECT group_concat(id) FROM api_audit WHERE outcome IS NULL"

static void test_locked(void **state)
{
	struct fixture *f = *state;
	struct sbx_store *store = open_store(f);
	struct event_base *base = event_base_new();
	struct sbx_audit_queue *q;
	sqlite3 *other;

	sbx_store_set_busy_ms(store, 0);
	assert_int_equal(sbx_audit_queue_new(base, store, &q), 0);
	add_rows(store, SBX_AUDIT_QUEUE_MAX + 5);
	sbx_audit_queue_made(q, 1, "{\"n\":1}");
	sbx_audit_queue_remove(q, 2);
	assert_string_equal(query(f, "SELECT group_concat(id || after_json || "
				     "coalesce(outcome, '')) FROM api_audit WHERE id < 4"),
			    "1{\"n\":1}made,30");
	lock(f, &other);
	for (int i = 3; i <= SBX_AUDIT_QUEUE_MAX + 1; i++)
		sbx_audit_queue_made(q, i, i % 2 ? "1" : NULL);
	sbx_audit_queue_remove(q, SBX_AUDIT_QUEUE_MAX + 2);
	sbx_audit_queue_made(q, SBX_AUDIT_QUEUE_MAX + 3, NULL); /* no place */
	unlock(other);
	assert_string_equal(query(f, MADE), "1");
	sbx_audit_queue_remove(q, SBX_AUDIT_QUEUE_MAX + 4); /* there is none yet */
	event_base_loop(base, EVLOOP_ONCE);
	assert_string_equal(query(f, MADE), "1000");
	assert_string_equal(query(f, UNKNOWN), "1003,1004,1005");
	assert_string_equal(query(f, "SELECT count(*) FROM api_audit WHERE after_json = '1'"),
			    "500");
	sbx_audit_queue_made(q, SBX_AUDIT_QUEUE_MAX + 5, "\x01"); /* one that is never written */
	sbx_audit_queue_made(q, SBX_AUDIT_QUEUE_MAX + 4, NULL);
	assert_string_equal(query(f, UNKNOWN), "1003,1005");
	sbx_audit_queue_free(q);
	sbx_store_close(store);
	event_base_free(base);
}

static void test_written_at_the_end(void **state)
{
	struct fixture *f = *state;
	struct sbx_store *store = open_store(f);
	struct event_base *base = event_base_new();
	struct sbx_audit_queue *q;
	sqlite3 *other;

	sbx_store_set_busy_ms(store, 0);
	assert_int_equal(sbx_audit_queue_new(base, store, &q), 0);
	add_rows(store, 2);
	lock(f, &other);
	sbx_audit_queue_made(q, 1, "1");
	unlock(other);
	sbx_audit_queue_free(q);
	assert_string_equal(query(f, UNKNOWN), "2");
	/* and what cannot be written is freed */
	assert_int_equal(sbx_audit_queue_new(base, store, &q), 0);
	lock(f, &other);
	sbx_audit_queue_made(q, 2, "1");
	sbx_audit_queue_free(q);
	unlock(other);
	assert_string_equal(query(f, UNKNOWN), "2");
	sbx_store_close(store);
	event_base_free(base);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_locked, setup, teardown),
		cmocka_unit_test_setup_teardown(test_written_at_the_end, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
