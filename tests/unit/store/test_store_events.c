/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Rows of events, and faults of the database where they become sums. */
#include "tests/unit/store_world.h"

#include <errno.h>

#include "base/cleanup.h"

/* An event with an address has a port, also 0 (icmp). An event with a name alone has one unless it
 * is 0. */
static void test_ports(void **state)
{
	static const struct {
		uint8_t family;
		uint16_t port;
		const char *want;
	} cases[] = { { 6, 443, "443" }, { 6, 0, "0" }, { 0, 53, "53" }, { 0, 0, "none" } };
	struct fixture *f = *state;
	struct sbx_store *store = open_store(f);

	assert_int_equal(begin(store, ID, NULL), 0);
	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++) {
		struct sbx_event v = event("a.example");

		v.addr.family = cases[i].family;
		v.port = cases[i].port;
		assert_int_equal(sbx_store_events_add(store, ID, NULL, &v, 1, &f->err), 0);
		assert_string_equal(
			query(f, "SELECT coalesce(remote_port, 'none') FROM sandbox_egress_event "
				 "ORDER BY id DESC LIMIT 1"),
			cases[i].want);
	}
	sbx_store_close(store);
}

/* An unknown action is stored as a refusal. */
static void test_unknown_actions(void **state)
{
	static const uint8_t actions[] = { SBX_N_ACTIONS, SBX_N_ACTIONS + 1, 255 };
	struct fixture *f = *state;
	struct sbx_store *store = open_store(f);

	assert_int_equal(begin(store, ID, NULL), 0);
	for (size_t i = 0; i < SBX_N_ELEMENTS(actions); i++) {
		struct sbx_event v = event("a.example");

		v.action = actions[i];
		assert_int_equal(sbx_store_events_add(store, ID, NULL, &v, 1, &f->err), 0);
	}
	assert_string_equal(query(f, "SELECT group_concat(action) FROM sandbox_egress_event"),
			    "deny,deny,deny");
	sbx_store_close(store);
}

/* The sandbox has all the rows it may have. */
static void fill(struct fixture *f, struct sbx_store *store)
{
	assert_int_equal(begin(store, ID, NULL), 0);
	query(f, "UPDATE sandbox SET n_events = 10000");
	assert_int_equal(SBX_STORE_EVENTS_MAX, 10000);
}

/* Past the cap a fault is one of the whole batch, whichever of its sums it hits. */
static void test_overflow_fails(void **state)
{
	static const struct {
		const char *fault, *text;
	} cases[] = {
		{ "CREATE TRIGGER t BEFORE UPDATE ON sandbox_egress_event BEGIN INSERT INTO "
		  "nowhere VALUES(1); END",
		  "nowhere" },
		{ "CREATE TRIGGER t BEFORE INSERT ON sandbox_egress_event WHEN NEW.action = 'deny' "
		  "BEGIN "
		  "SELECT RAISE(ABORT, 'not this'); END",
		  "not this" },
		{ "CREATE TRIGGER t BEFORE INSERT ON sandbox_egress_event WHEN NEW.action = "
		  "'allow' BEGIN "
		  "SELECT RAISE(ABORT, 'not that'); END",
		  "not that" },
	};
	struct fixture *f = *state;
	struct sbx_store *store = open_store(f);
	struct sbx_event v[2] = { event("a.example"), event("b.example") };
	int r;

	v[1].action = SBX_ALLOW;
	fill(f, store);
	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++) {
		f->err = (struct sbx_err){ 0 };
		query(f, cases[i].fault);
		r = sbx_store_events_add(store, ID, NULL, v, 2, &f->err);
		assert_true(r != 0);
		if (!strstr(f->err.msg, cases[i].text))
			fail_msg("%s", f->err.msg);
		query(f, "DROP TRIGGER t");
		assert_string_equal(query(f, "SELECT count(*) FROM sandbox_egress_event"), "0");
	}
	assert_int_equal(sbx_store_events_add(store, ID, NULL, v, 2, &f->err), 0);
	assert_string_equal(query(f, "SELECT group_concat(action || reason) FROM (SELECT * FROM "
				     "sandbox_egress_event "
				     "ORDER BY action)"),
			    "allowoverflow,denyoverflow");
	/* Of a row that is there, and by a connection that has changed none yet. */
	sbx_store_close(store);
	store = open_store(f);
	query(f, "CREATE TRIGGER t BEFORE UPDATE ON sandbox_egress_event BEGIN SELECT RAISE(ABORT, "
		 "'no more'); END");
	assert_true(sbx_store_events_add(store, ID, NULL, v, 2, &f->err) != 0);
	assert_string_equal(query(f, "SELECT count(*) FROM sandbox_egress_event"), "2");
	sbx_store_close(store);
}

/* A sum has the time of the first event that is in it. */
static void test_overflow_time(void **state)
{
	struct fixture *f = *state;
	struct sbx_store *store = open_store(f);
	struct sbx_event v[2] = { event("a.example"), event("b.example") };

	v[0].ts_ms = 1000;
	v[1].ts_ms = 2000;
	fill(f, store);
	assert_int_equal(sbx_store_events_add(store, ID, NULL, v, 2, &f->err), 0);
	assert_string_equal(query(f, "SELECT ts FROM sandbox_egress_event"),
			    "1970-01-01T00:00:01.000Z");
	assert_string_equal(query(f, "SELECT protocol FROM sandbox_egress_event"), "other");
	sbx_store_close(store);
}

/* SQLite runs out of memory at any point past the cap of rows, where events become a sum. */
static void test_no_memory_for_sums(void **state)
{
	struct fixture *f = *state;
	struct sbx_event v = event("a.example");
	struct sbx_store *store = open_store(f);
	int r = -1, n = 0;

	fill(f, store);
	for (; r != 0 && n < 1000; n++) {
		f->err = (struct sbx_err){ 0 };
		good_allocations = n;
		r = sbx_store_events_add(store, ID, NULL, &v, 1, &f->err);
		good_allocations = -1;
		if (r != 0 && r != -ENOMEM)
			fail_msg("allocation %d: %d, %s", n, r, f->err.msg);
		assert_int_equal(atoi(query(f, "SELECT count(*) FROM sandbox_egress_event")),
				 r == 0);
	}
	assert_in_range(n, 3, 999);
	sbx_store_close(store);
}

int main(void)
{
#define T(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_ports),
		T(test_unknown_actions),
		T(test_overflow_fails),
		T(test_overflow_time),
		T(test_no_memory_for_sums),
	};

	replace_memory();
	return cmocka_run_group_tests_name("store_events", tests, NULL, NULL);
}
