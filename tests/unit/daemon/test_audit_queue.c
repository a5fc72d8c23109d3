/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Rows wait for a locked database, keep their order, and tell how many found no place. */
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

static void add(struct sbx_audit_queue *q, int i, const char *object)
{
	char action[32];
	const struct sbx_store_audit row = { .at_ms = 1 + i,
					     .principal = "uid 7",
					     .action = action,
					     .object = object,
					     .before_json = object ? "{\"n\":1}" : NULL };

	snprintf(action, sizeof(action), "PUT %d", i);
	sbx_audit_queue_add(q, &row);
}

static void test_locked(void **state)
{
	struct fixture *f = *state;
	struct sbx_store *store = open_store(f);
	struct event_base *base = event_base_new();
	struct sbx_audit_queue *q;
	sqlite3 *other;

	sbx_store_set_busy_ms(store, 0);
	assert_int_equal(sbx_audit_queue_new(base, store, &q), 0);
	add(q, 0, "a");
	assert_string_equal(query(f, "SELECT group_concat(action || object || before_json) FROM "
				     "api_audit"),
			    "PUT 0a{\"n\":1}");
	lock(f, &other);
	for (int i = 1; i <= SBX_AUDIT_QUEUE_MAX + 5; i++)
		add(q, i, i % 2 ? "b" : NULL);
	unlock(other);
	assert_string_equal(query(f, "SELECT count(*) FROM api_audit"), "1");
	add(q, 5000, NULL); /* in its turn, and there is no place yet */
	event_base_loop(base, EVLOOP_ONCE);
	assert_string_equal(query(f, "SELECT count(*) FROM api_audit WHERE at_ms - 1 = id - 1"),
			    "1001");
	assert_string_equal(query(f, "SELECT action || after_json FROM api_audit WHERE id = 1002"),
			    "audit rows lost{\"lost\":6}");
	add(q, 6000, NULL);
	assert_string_equal(query(f, "SELECT count(*) FROM api_audit"), "1003");
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
	lock(f, &other);
	add(q, 1, "a");
	unlock(other);
	sbx_audit_queue_free(q);
	assert_string_equal(query(f, "SELECT action FROM api_audit"), "PUT 1");
	/* and what cannot be written is freed */
	assert_int_equal(sbx_audit_queue_new(base, store, &q), 0);
	lock(f, &other);
	add(q, 2, "a");
	sbx_audit_queue_free(q);
	unlock(other);
	assert_string_equal(query(f, "SELECT count(*) FROM api_audit"), "1");
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
