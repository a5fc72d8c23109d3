/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Answers that took long are given again for a moment. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "daemon/rows/recent.h"

#define NOW UINT64_C(5000000)

/* The number that is kept for @key; -1: none. */
static long long found(struct sbx_recent *r, const char *key, uint64_t now_us)
{
	json_t *v = sbx_recent_get(r, key, now_us);
	long long n = v ? json_integer_value(v) : -1;

	json_decref(v);
	return n;
}

static void put(struct sbx_recent *r, const char *key, int n, uint64_t took_us, uint64_t now_us)
{
	json_t *v = json_integer(n);

	sbx_recent_put(r, key, v, took_us, now_us);
	json_decref(v);
}

static void test_recent(void **state)
{
	struct sbx_recent r = { 0 };
	char key[8];

	(void)state;
	assert_int_equal(found(&r, "a", NOW), -1);
	put(&r, "a", 1, SBX_RECENT_LONG_US - 1, NOW); /* made again as fast */
	assert_int_equal(found(&r, "a", NOW), -1);
	put(&r, "a", 2, SBX_RECENT_LONG_US, NOW);
	assert_int_equal(found(&r, "a", NOW), 2);
	assert_int_equal(found(&r, "b", NOW), -1);
	assert_int_equal(found(&r, "a", NOW + SBX_RECENT_KEPT_US - 1), 2);
	assert_int_equal(found(&r, "a", NOW + SBX_RECENT_KEPT_US), -1);
	put(&r, "a", 3, SBX_RECENT_LONG_US, NOW + SBX_RECENT_KEPT_US);
	assert_int_equal(found(&r, "a", NOW + SBX_RECENT_KEPT_US), 3);
	/* the oldest goes */
	for (int i = 0; i < SBX_RECENT_MAX; i++) {
		assert_int_equal(found(&r, "a", NOW + SBX_RECENT_KEPT_US), 3);
		snprintf(key, sizeof(key), "k%d", i);
		put(&r, key, 10 + i, SBX_RECENT_LONG_US, NOW + SBX_RECENT_KEPT_US);
	}
	assert_int_equal(found(&r, "a", NOW + SBX_RECENT_KEPT_US), -1);
	assert_int_equal(found(&r, "k0", NOW + SBX_RECENT_KEPT_US), 10);
	assert_int_equal(found(&r, "k7", NOW + SBX_RECENT_KEPT_US), 17);
	sbx_recent_fini(&r);
	assert_int_equal(found(&r, "k7", NOW + SBX_RECENT_KEPT_US), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_recent),
	};

	return cmocka_run_group_tests_name("recent", tests, NULL, NULL);
}
