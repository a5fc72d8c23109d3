/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A change of a running sandbox's policy in its row, also while the database is locked. */
#include "tests/unit/store_world.h"

#include <unistd.h>

#include "launcher/record/record.h"
#include "launcher/record/record_internal.h"

static const char row[] = "SELECT generation || air_gapped || allow_out || deny_out FROM sandbox";

static void changed(struct sbx_recorder *r, uint64_t generation, const char *allow)
{
	char copy[32];
	const struct sbx_store_change change = {
		.generation = generation, .air_gapped = true, .allow_json = copy, .deny_json = "[]",
		.rules_json = "[]"
	};

	snprintf(copy, sizeof(copy), "%s", allow);
	sbx_record_changed(r, &change, "air gap on");
	memset(copy, 'x', sizeof(copy) - 1); /* it was copied */
}

static void test_changed(void **state)
{
	struct fixture *f = *state;
	struct sbx_options options = { 0 };
	struct sbx_recorder r = SBX_RECORDER_INIT;
	sqlite3 *other = NULL;

	sbx_record_name(&r, ID, &options);
	assert_int_equal(sbx_record_prepare(&r), 0);
	r.store = open_store(f);
	assert_int_equal(begin(r.store, ID, NULL), 0);
	r.has_row = r.released = true;
	changed(&r, 2, "[\"a\"]");
	assert_string_equal(query(f, row), "21[\"a\"][]");
	/* Locked: the newest is written when the lock is free. */
	assert_int_equal(sqlite3_open(f->db, &other), SQLITE_OK);
	assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
	changed(&r, 3, "[\"b\"]");
	changed(&r, 4, "[\"c\"]");
	assert_string_equal(query(f, row), "21[\"a\"][]");
	assert_true(sbx_record_is_due(&r) && r.flush_at_us);
	sqlite3_close(other);
	sbx_record_flush_all(&r);
	assert_string_equal(query(f, row), "41[\"c\"][]");
	assert_false(sbx_record_is_due(&r));
	/* each with an event */
	assert_string_equal(query(f, "SELECT group_concat(generation || action || reason || rule) "
				     "FROM sandbox_egress_event"),
			    "2noticepolicy_changedair gap on,3noticepolicy_changedair gap on,"
			    "4noticepolicy_changedair gap on");
	/* The row has its end meanwhile, by a sweep: the run goes on, and nothing is due. */
	query(f, "UPDATE sandbox SET state = 'lost', ended_ms = 1");
	changed(&r, 5, "[\"d\"]");
	sbx_record_flush_all(&r);
	assert_false(sbx_record_is_due(&r));
	/* one that could not be written is freed */
	r.has_row = false;
	changed(&r, 6, "[\"e\"]");
	sbx_recorder_fini(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_changed, setup, teardown),
	};

	return cmocka_run_group_tests_name("record_changed", tests, NULL, NULL);
}
