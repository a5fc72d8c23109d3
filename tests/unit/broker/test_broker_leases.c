/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "broker/core/core_timeouts.h"
#include "broker/names/leases.h"

static struct sbx_addr addr(unsigned i)
{
	return (struct sbx_addr){ .family = 4, .b = { 192, 0, (uint8_t)(i >> 8), (uint8_t)i } };
}

static const char *name_at(const struct sbx_leases *l, unsigned i, uint64_t now_ms)
{
	struct sbx_addr a = addr(i);

	return sbx_leases_name(l, &a, now_ms);
}

static void add(struct sbx_leases *l, unsigned i, const char *name, uint32_t ttl_s, uint64_t now_ms)
{
	struct sbx_addr a = addr(i);

	assert_int_equal(sbx_leases_add(l, &a, name, ttl_s, now_ms), 0);
}

static void test_leases(void **state)
{
	SBX_CLEANUP(sbx_leases_freep) struct sbx_leases *l = NULL;
	uint64_t min_ms = 1000ull * SBX_LEASE_MIN_S;

	(void)state;
	assert_int_equal(sbx_leases_new(4, &l), 0);
	assert_null(name_at(l, 1, 0));
	add(l, 1, "a.example", 1, 0);
	assert_string_equal(name_at(l, 1, 0), "a.example");
	assert_string_equal(name_at(l, 1, min_ms - 1), "a.example");
	assert_null(name_at(l, 1, min_ms));
	add(l, 1, "a.example", SBX_LEASE_MIN_S * 2, min_ms);
	assert_string_equal(name_at(l, 1, 3 * min_ms - 1), "a.example");
	assert_null(name_at(l, 1, 3 * min_ms));
	/* The latest name wins. */
	add(l, 1, "b.example", 0, 0);
	assert_string_equal(name_at(l, 1, 1), "b.example");
	assert_null(name_at(l, 2, 1));
}

static void test_oldest_makes_room(void **state)
{
	SBX_CLEANUP(sbx_leases_freep) struct sbx_leases *l = NULL;
	char name[32];

	(void)state;
	assert_int_equal(sbx_leases_new(100, &l), 0);
	for (unsigned i = 0; i < 1000; i++) {
		snprintf(name, sizeof(name), "n%u", i);
		add(l, i, name, 0, 0);
		if (i >= 100)
			assert_null(name_at(l, i - 100, 1));
		for (unsigned j = i >= 99 ? i - 99 : 0; j <= i; j++) {
			snprintf(name, sizeof(name), "n%u", j);
			assert_string_equal(name_at(l, j, 1), name);
		}
	}
}

/* --- deadlines --- */

static void test_timeouts(void **state)
{
	struct sbx_timeouts q, other;
	struct sbx_timeout t[4] = { { 0 } };

	(void)state;
	sbx_timeouts_init(&q, 100);
	sbx_timeouts_init(&other, 5);
	assert_true(sbx_timeouts_next_ms(&q) == UINT64_MAX);
	assert_null(sbx_timeouts_expired(&q, UINT64_MAX));
	for (unsigned i = 0; i < 4; i++)
		sbx_timeout_arm(&q, &t[i], i);
	assert_int_equal(sbx_timeouts_next_ms(&q), 100);
	assert_null(sbx_timeouts_expired(&q, 99));
	sbx_timeout_arm(&q, &t[0], 50);	    /* pushed back, to the end */
	sbx_timeout_arm(&q, &t[0], 51);	    /* again, where it is */
	sbx_timeout_arm(&other, &t[2], 10); /* to another queue */
	sbx_timeout_disarm(&t[1]);
	sbx_timeout_disarm(&t[1]);
	assert_ptr_equal(sbx_timeouts_expired(&other, 15), &t[2]);
	assert_null(sbx_timeouts_expired(&other, 1000));
	assert_int_equal(sbx_timeouts_next_ms(&q), 103);
	assert_ptr_equal(sbx_timeouts_expired(&q, 1000), &t[3]);
	assert_int_equal(sbx_timeouts_next_ms(&q), 151);
	assert_ptr_equal(sbx_timeouts_expired(&q, 1000), &t[0]);
	assert_null(sbx_timeouts_expired(&q, 1000));
	assert_null(q.last);
}

static void test_never(void **state)
{
	struct sbx_timeouts q;
	struct sbx_timeout t = { 0 };

	(void)state;
	sbx_timeouts_init(&q, 0);
	sbx_timeout_arm(&q, &t, 1);
	assert_null(t.queue);
	assert_null(sbx_timeouts_expired(&q, UINT64_MAX));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_leases),
		cmocka_unit_test(test_oldest_makes_room),
		cmocka_unit_test(test_timeouts),
		cmocka_unit_test(test_never),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
