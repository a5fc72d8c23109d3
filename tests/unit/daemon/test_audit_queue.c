/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Rows and ends of changes wait for a locked database. Without a place an end is forgotten, and a
 * lost row is counted. */
#include "tests/unit/store_world.h"

#include <event2/event.h>

#include "daemon/access/audit_queue.h"

struct world {
	struct sbx_store *store;
	struct event_base *base;
};

/* The queue of a database, in which a lock is seen at once. */
static struct sbx_audit_queue *open_world(struct world *w, struct fixture *f)
{
	struct sbx_audit_queue *q;

	w->store = open_store(f);
	w->base = event_base_new();
	sbx_store_set_busy_ms(w->store, 0);
	assert_int_equal(sbx_audit_queue_new(w->base, w->store, &q), 0);
	return q;
}

/* After the queue's end. */
static void close_world(struct world *w)
{
	sbx_store_close(w->store);
	event_base_free(w->base);
}

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
	const struct sbx_store_audit row = {
		.at_ms = 1, .principal = "uid 7", .action = "PUT", .after_json = "0"
	};

	for (int i = 0; i < n; i++)
		assert_int_equal(sbx_store_audit_add(store, &row, NULL, NULL), 0);
}

#define MADE	"SELECT count(*) FROM api_audit WHERE outcome = 'made'"
#define UNKNOWN "SELECT group_concat(id) FROM api_audit WHERE outcome IS NULL"

static void test_locked(void **state)
{
	struct fixture *f = *state;
	struct world w;
	struct sbx_audit_queue *q = open_world(&w, f);
	sqlite3 *other;

	add_rows(w.store, SBX_AUDIT_QUEUE_MAX + 5);
	sbx_audit_queue_end(q, 1, SBX_AUDIT_MADE, "{\"n\":1}");
	sbx_audit_queue_end(q, 2, SBX_AUDIT_REFUSED, NULL);
	assert_string_equal(query(f, "SELECT group_concat(id || after_json || "
				     "coalesce(outcome, '')) FROM api_audit WHERE id < 4"),
			    "1{\"n\":1}made,30");
	lock(f, &other);
	for (int i = 3; i <= SBX_AUDIT_QUEUE_MAX + 1; i++)
		sbx_audit_queue_end(q, i, SBX_AUDIT_MADE, i % 2 ? "1" : NULL);
	sbx_audit_queue_end(q, SBX_AUDIT_QUEUE_MAX + 2, SBX_AUDIT_REFUSED, NULL);
	sbx_audit_queue_end(q, SBX_AUDIT_QUEUE_MAX + 3, SBX_AUDIT_MADE, NULL); /* no place */
	unlock(other);
	assert_string_equal(query(f, MADE), "1");
	sbx_audit_queue_end(q, SBX_AUDIT_QUEUE_MAX + 4, SBX_AUDIT_REFUSED, NULL); /* at once */
	event_base_loop(w.base, EVLOOP_ONCE);
	assert_string_equal(query(f, MADE), "1000");
	assert_string_equal(query(f, UNKNOWN), "1003,1005");
	assert_string_equal(query(f, "SELECT count(*) FROM api_audit WHERE after_json = '1'"),
			    "500");
	sbx_audit_queue_end(q, SBX_AUDIT_QUEUE_MAX + 5, SBX_AUDIT_MADE,
			    "\x01"); /* one that is never written */
	sbx_audit_queue_end(q, SBX_AUDIT_QUEUE_MAX + 4, SBX_AUDIT_MADE, NULL);
	assert_string_equal(query(f, UNKNOWN), "1003,1005");
	sbx_audit_queue_free(q);
	close_world(&w);
}

static void test_written_at_the_end(void **state)
{
	struct fixture *f = *state;
	struct world w;
	struct sbx_audit_queue *q = open_world(&w, f);
	sqlite3 *other;

	add_rows(w.store, 2);
	lock(f, &other);
	sbx_audit_queue_end(q, 1, SBX_AUDIT_MADE, "1");
	unlock(other);
	sbx_audit_queue_free(q);
	assert_string_equal(query(f, UNKNOWN), "2");
	/* and what cannot be written is freed */
	assert_int_equal(sbx_audit_queue_new(w.base, w.store, &q), 0);
	lock(f, &other);
	sbx_audit_queue_end(q, 2, SBX_AUDIT_MADE, "1");
	sbx_audit_queue_free(q);
	unlock(other);
	assert_string_equal(query(f, UNKNOWN), "2");
	close_world(&w);
}

#define ALL                                                                                        \
	"SELECT group_concat(action || coalesce(before_json, '-') || coalesce(after_json, '-') "   \
	"|| "                                                                                      \
	"coalesce(outcome, '?'), ' ') FROM (SELECT * FROM api_audit ORDER BY id)"

static int64_t begin_row(struct sbx_audit_queue *q, const char *action)
{
	char wanted[] = "1", name[8];
	struct sbx_store_audit row = { .at_ms = 1, .before_json = "0", .after_json = wanted };
	int64_t id;

	strcpy(name, action);
	row.principal = row.action = name;
	id = sbx_audit_queue_begin(q, &row);
	memset(wanted, '9', sizeof(wanted) - 1); /* it has a copy */
	memset(name, '9', strlen(name));
	return id;
}

static void test_rows_wait(void **state)
{
	struct fixture *f = *state;
	struct world w;
	struct sbx_audit_queue *q = open_world(&w, f);
	int64_t made, refused, unknown, late;
	sqlite3 *other;

	assert_int_equal(begin_row(q, "now"), 1);
	lock(f, &other);
	made = begin_row(q, "made");
	refused = begin_row(q, "refused");
	unknown = begin_row(q, "unknown");
	late = begin_row(q, "late");
	assert_true(made < 0 && refused < made && unknown < refused && late < unknown);
	sbx_audit_queue_end(q, made, SBX_AUDIT_MADE, "2");
	sbx_audit_queue_end(q, refused, SBX_AUDIT_REFUSED, NULL);
	sbx_audit_queue_end(q, unknown, SBX_AUDIT_UNKNOWN, NULL);
	unlock(other);
	assert_string_equal(query(f, ALL), "now01?");
	event_base_loop(w.base, EVLOOP_ONCE);
	assert_string_equal(query(f, ALL), "now01? made02made unknown01?");
	sbx_audit_queue_end(q, late, SBX_AUDIT_MADE, NULL);
	event_base_loop(w.base, EVLOOP_ONCE);
	assert_string_equal(query(f, ALL), "now01? made02made unknown01? late01made");
	/* what has no end yet is written when the service ends */
	lock(f, &other);
	begin_row(q, "open");
	unlock(other);
	sbx_audit_queue_free(q);
	assert_string_equal(query(f, ALL), "now01? made02made unknown01? late01made open01?");
	close_world(&w);
}

static void test_too_many_rows(void **state)
{
	struct fixture *f = *state;
	struct world w;
	struct sbx_audit_queue *q = open_world(&w, f);
	sqlite3 *other;

	lock(f, &other);
	for (int i = 0; i < SBX_AUDIT_QUEUE_MAX + 3; i++) {
		int64_t id = begin_row(q, "made");

		assert_int_equal(id, -1 - i);
		sbx_audit_queue_end(q, id, SBX_AUDIT_MADE, NULL);
	}
	unlock(other);
	event_base_loop(w.base, EVLOOP_ONCE);
	assert_string_equal(query(f, MADE), "1001");
	assert_string_equal(query(f, "SELECT action || after_json FROM api_audit ORDER BY id DESC"),
			    "audit rows lost{\"lost\":3}");
	sbx_audit_queue_free(q);
	close_world(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_locked, setup, teardown),
		cmocka_unit_test_setup_teardown(test_written_at_the_end, setup, teardown),
		cmocka_unit_test_setup_teardown(test_rows_wait, setup, teardown),
		cmocka_unit_test_setup_teardown(test_too_many_rows, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
