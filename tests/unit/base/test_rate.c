/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "base/rate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static void test_limit(void **state)
{
	struct sbx_rate r;

	(void)state;
	sbx_rate_init(&r, 10, 60000);
	assert_false(sbx_rate_add(&r, 5, 10));
	assert_true(sbx_rate_add(&r, 6, 1));
	assert_true(sbx_rate_add(&r, 60000, 1));
}

static void test_window(void **state)
{
	struct sbx_rate r;

	(void)state;
	sbx_rate_init(&r, 10, 60000);
	assert_false(sbx_rate_add(&r, 1000, 10));
	/* a window and a slot later the ten are forgotten */
	assert_false(sbx_rate_add(&r, 1000 + 60000 + 60000 / SBX_RATE_SLOTS + 1, 10));
	assert_true(sbx_rate_add(&r, 1000 + 60000 + 60000 / SBX_RATE_SLOTS + 2, 1));
}

/* Ten each window never pass, whatever their distance; eleven within one always do. */
static void test_slow(void **state)
{
	struct sbx_rate r;

	(void)state;
	sbx_rate_init(&r, 10, 1000);
	for (uint64_t t = 1; t < 1000000; t += 107)
		assert_false(sbx_rate_add(&r, t, 1));
	for (uint64_t t = 1000000; t < 1000000 + 10 * 90; t += 90)
		sbx_rate_add(&r, t, 1);
	assert_true(sbx_rate_add(&r, 1000999, 1));
}

static void test_extremes(void **state)
{
	struct sbx_rate r;

	(void)state;
	sbx_rate_init(&r, 0, 1000);
	assert_false(sbx_rate_add(&r, 1, UINT64_MAX));
	sbx_rate_init(&r, UINT64_MAX - 1, 1);
	assert_true(sbx_rate_add(&r, 1, UINT64_MAX));
	assert_true(sbx_rate_add(&r, 1, UINT64_MAX));
	assert_false(sbx_rate_add(&r, UINT64_MAX, 1));
	sbx_rate_init(&r, 5, UINT64_MAX);
	assert_false(sbx_rate_add(&r, 0, 5));
	assert_true(sbx_rate_add(&r, UINT64_MAX, 1));
}

/* Against the exact count: never less, and at most that of a slot more. */
static void test_random(void **state)
{
	enum { EVENTS = 2000, WINDOW = 640 };
	static uint64_t at[EVENTS];

	(void)state;
	srand(7);
	for (int round = 0; round < 50; round++) {
		uint64_t limit = (uint64_t)(rand() % 40) + 1, now = (uint64_t)rand();
		struct sbx_rate r;

		sbx_rate_init(&r, limit, WINDOW);
		for (int i = 0; i < EVENTS; i++) {
			uint64_t exact = 0, most = 0;
			bool passed;

			now += (uint64_t)(rand() % 60);
			at[i] = now;
			for (int k = 0; k <= i; k++) {
				exact += now - at[k] < WINDOW;
				most += now - at[k] < WINDOW + WINDOW / SBX_RATE_SLOTS;
			}
			passed = sbx_rate_add(&r, now, 1);
			assert_true(passed || exact <= limit);
			assert_true(!passed || most > limit);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_limit),	 cmocka_unit_test(test_window),
		cmocka_unit_test(test_slow),	 cmocka_unit_test(test_extremes),
		cmocka_unit_test(test_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
