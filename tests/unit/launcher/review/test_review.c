/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "launcher/review/review.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define DENIES	(1u << SBX_REVIEW_DENIES)
#define BREAKER (1u << SBX_REVIEW_BREAKER)

static struct sbx_review review_of(uint32_t denies, uint32_t breaker)
{
	const struct sbx_profile p = { .review.denies = denies,
				       .breaker = { .denies = breaker, .window_ms = 1000 } };
	struct sbx_review r;

	sbx_review_init(&r, &p);
	return r;
}

static struct sbx_event refusals(uint64_t n)
{
	return (struct sbx_event){ .action = SBX_DENY, .reason = SBX_REASON_DEFAULT_DENY,
				   .count = n };
}

static void test_once(void **state)
{
	struct sbx_review r = review_of(3, 5);
	struct sbx_event one = refusals(1);

	(void)state;
	for (int i = 0; i < 3; i++)
		assert_int_equal(sbx_review_add(&r, &one, 10, 1000), 0);
	assert_int_equal(sbx_review_add(&r, &one, 11, 1001), DENIES);
	assert_int_equal(sbx_review_add(&r, &one, 12, 1002), 0);
	assert_int_equal(sbx_review_add(&r, &one, 13, 1003), BREAKER);
	for (int i = 0; i < 100; i++)
		assert_int_equal(sbx_review_add(&r, &one, 14, 1004), 0);
	assert_int_equal(r.tasks[SBX_REVIEW_DENIES].n_denies, 106);
	assert_int_equal(r.tasks[SBX_REVIEW_DENIES].first_ms, 1001);
	assert_int_equal(r.tasks[SBX_REVIEW_DENIES].last_ms, 1004);
	assert_int_equal(r.tasks[SBX_REVIEW_BREAKER].first_ms, 1003);
}

/* A flood comes folded. */
static void test_flood(void **state)
{
	struct sbx_review r = review_of(1000, 99999);
	struct sbx_event flood = refusals(100000);

	(void)state;
	assert_int_equal(sbx_review_add(&r, &flood, 5, 5), DENIES | BREAKER);
	assert_int_equal(sbx_review_add(&r, &flood, 6, 6), 0);
	assert_int_equal(r.n_denies, 200000);
}

static void test_off(void **state)
{
	struct sbx_review r = review_of(0, 0);
	struct sbx_event flood = refusals(UINT64_MAX);

	(void)state;
	assert_int_equal(sbx_review_add(&r, &flood, 5, 5), 0);
	assert_int_equal(sbx_review_add(&r, &flood, 5, 5), 0);
	assert_int_equal(r.n_denies, UINT64_MAX);
}

/* An allowed flow and a server that does not answer are no refusals. */
static void test_others(void **state)
{
	static const struct sbx_event others[] = {
		{ .action = SBX_ALLOW, .reason = SBX_REASON_LIST_ALLOW, .count = 9 },
		{ .action = SBX_NOTICE, .reason = SBX_REASON_NEW_PROTECTED, .count = 9 },
		{ .action = SBX_PANIC, .reason = SBX_REASON_SELFTEST, .count = 9 },
		{ .action = SBX_DENY, .reason = SBX_REASON_CONNECT_FAILED, .count = 9 },
		{ .action = SBX_DENY, .reason = SBX_REASON_RESOLVE_FAILED, .count = 9 },
	};
	struct sbx_review r = review_of(1, 1);
	struct sbx_event two = refusals(2);

	(void)state;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_int_equal(sbx_review_add(&r, &others[i], 1, 1), 0);
	assert_int_equal(r.n_denies, 0);
	assert_int_equal(sbx_review_add(&r, &two, 1, 1), DENIES | BREAKER);
}

/* The window of a minute, unless said. */
static void test_window(void **state)
{
	struct sbx_review r = review_of(1, 1);
	struct sbx_event one = refusals(1);

	(void)state;
	assert_int_equal(sbx_review_add(&r, &one, 1, 1), 0);
	assert_int_equal(sbx_review_add(&r, &one, 5000, 1), DENIES);
	r = review_of(1, 1);
	assert_int_equal(sbx_review_add(&r, &one, 1, 1), 0);
	assert_int_equal(sbx_review_add(&r, &one, 70000, 1), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_once),   cmocka_unit_test(test_flood),
		cmocka_unit_test(test_off),    cmocka_unit_test(test_others),
		cmocka_unit_test(test_window),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
