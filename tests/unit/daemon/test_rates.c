/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/access/rates.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct sbx_rate_limit limit = { .per_s = 5, .burst = 10 };

static struct sbx_rates *make(size_t n)
{
	struct sbx_rates *r;

	assert_int_equal(sbx_rates_new(n, &r), 0);
	return r;
}

static void test_burst_and_refill(void **state)
{
	struct sbx_rates *r = make(4);

	(void)state;
	for (int i = 0; i < 10; i++)
		assert_int_equal(sbx_rates_take(r, "a", &limit, 1000), 0);
	assert_int_equal(sbx_rates_take(r, "a", &limit, 1000), 200);
	assert_int_equal(sbx_rates_take(r, "a", &limit, 1150), 50);
	assert_int_equal(sbx_rates_take(r, "a", &limit, 1200), 0);
	assert_int_equal(sbx_rates_take(r, "a", &limit, 1200), 200);
	/* a long rest gives a burst, and no more */
	for (int i = 0; i < 10; i++)
		assert_int_equal(sbx_rates_take(r, "a", &limit, UINT64_MAX / 2), 0);
	assert_int_not_equal(sbx_rates_take(r, "a", &limit, UINT64_MAX / 2), 0);
	sbx_rates_free(r);
}

static void test_callers_are_apart(void **state)
{
	struct sbx_rates *r = make(4);

	(void)state;
	for (int i = 0; i < 10; i++)
		assert_int_equal(sbx_rates_take(r, "a", &limit, 0), 0);
	assert_int_not_equal(sbx_rates_take(r, "a", &limit, 0), 0);
	assert_int_equal(sbx_rates_take(r, "b", &limit, 0), 0);
	sbx_rates_free(r);
}

/* Of many callers the idle ones are forgotten, and not the one that asks all the time. */
static void test_full_table(void **state)
{
	struct sbx_rates *r = make(4);
	char key[16];

	(void)state;
	for (int i = 0; i < 10; i++)
		assert_int_equal(sbx_rates_take(r, "busy", &limit, 0), 0);
	for (unsigned i = 1; i < 100; i++) {
		snprintf(key, sizeof(key), "k%u", i);
		assert_int_equal(sbx_rates_take(r, key, &limit, i), 0);
		assert_int_not_equal(sbx_rates_take(r, "busy", &limit, i), 0);
	}
	sbx_rates_free(r);
}

static void test_long_keys_are_cut(void **state)
{
	struct sbx_rates *r = make(4);
	char key[SBX_RATE_KEY_MAX + 10];

	(void)state;
	memset(key, 'x', sizeof(key) - 1);
	key[sizeof(key) - 1] = '\0';
	for (int i = 0; i < 10; i++)
		assert_int_equal(sbx_rates_take(r, key, &limit, 0), 0);
	assert_int_not_equal(sbx_rates_take(r, key, &limit, 0), 0);
	sbx_rates_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_burst_and_refill),
		cmocka_unit_test(test_callers_are_apart),
		cmocka_unit_test(test_full_table),
		cmocka_unit_test(test_long_keys_are_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
