/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "broker/core/core_resolve_result.h"

static struct sbx_resolve_answer answer_of(uint8_t family, enum sbx_resolve_status status, size_t n,
					   uint32_t ttl_s)
{
	struct sbx_resolve_answer a = { .status = status, .n = n, .ttl_s = ttl_s };

	for (size_t i = 0; i < n; i++)
		a.v[i] = (struct sbx_addr){ family, { 32, (uint8_t)(i + 1) } };
	return a;
}

static struct sbx_resolve_result merge(struct sbx_resolve_answer v4, struct sbx_resolve_answer v6)
{
	struct sbx_resolve_result r;

	sbx_resolve_result_merge(&v4, &v6, &r);
	return r;
}

#define FOUND	 SBX_RESOLVE_FOUND
#define FAILED	 SBX_RESOLVE_FAILED
#define NXDOMAIN SBX_RESOLVE_NXDOMAIN

static size_t count(const struct sbx_resolve_result *r, uint8_t family)
{
	size_t n = 0;

	for (size_t i = 0; i < r->n; i++)
		n += r->v[i].family == family;
	return n;
}

static void test_order(void **state)
{
	struct sbx_resolve_result r = merge(answer_of(4, FOUND, 4, 30), answer_of(6, FOUND, 2, 20));
	const uint8_t families[] = { 6, 4, 6, 4, 4, 4 }, numbers[] = { 1, 1, 2, 2, 3, 4 };

	(void)state;
	assert_int_equal(r.n, 6);
	for (size_t i = 0; i < 6; i++) {
		assert_int_equal(r.v[i].family, families[i]);
		assert_int_equal(r.v[i].b[1], numbers[i]);
	}
	assert_int_equal(r.ttl_s, 20);
	assert_false(r.partial);
	assert_int_equal(r.first_family, 6);
}

static void test_ttl(void **state)
{
	(void)state;
	assert_int_equal(merge(answer_of(4, FOUND, 1, 30), answer_of(6, FOUND, 0, 5)).ttl_s, 30);
	assert_int_equal(merge(answer_of(4, FOUND, 1, 30), answer_of(6, FOUND, 1, 0)).ttl_s, 0);
	assert_int_equal(merge(answer_of(4, FOUND, 0, 30), answer_of(6, FOUND, 0, 30)).ttl_s, 0);
}

static void test_room(void **state)
{
	struct sbx_resolve_result r = merge(answer_of(4, FOUND, 64, 9), answer_of(6, FOUND, 64, 9));

	(void)state;
	assert_int_equal(r.n, 64);
	assert_int_equal(count(&r, 4), 32);
	assert_true(r.partial);
	r = merge(answer_of(4, FOUND, 64, 9), answer_of(6, FOUND, 3, 9));
	assert_int_equal(r.n, 64);
	assert_int_equal(count(&r, 6), 3);
	assert_true(r.partial);
	r = merge(answer_of(4, FOUND, 64, 9), answer_of(6, FOUND, 0, 9));
	assert_int_equal(count(&r, 4), 64);
	assert_false(r.partial);
	r = merge(answer_of(4, FOUND, 30, 9), answer_of(6, FOUND, 34, 9));
	assert_int_equal(r.n, 64);
	assert_false(r.partial);
}

static void test_partial(void **state)
{
	struct sbx_resolve_answer cut = answer_of(4, FOUND, 3, 9);
	struct sbx_resolve_result r;

	(void)state;
	r = merge(answer_of(4, FOUND, 3, 9), answer_of(6, FAILED, 0, 0));
	assert_true(r.partial);
	assert_int_equal(r.status6, FAILED);
	assert_int_equal(r.status4, FOUND);
	assert_false(merge(answer_of(4, FOUND, 3, 9), answer_of(6, FOUND, 0, 0)).partial);
	assert_false(merge(answer_of(4, NXDOMAIN, 0, 0), answer_of(6, NXDOMAIN, 0, 0)).partial);
	cut.partial = true;
	assert_true(merge(cut, answer_of(6, FOUND, 0, 0)).partial);
	r = merge(answer_of(4, FAILED, 0, 0), answer_of(6, FAILED, 0, 0));
	assert_int_equal(r.n, 0);
	assert_int_equal(r.status4, FAILED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_ttl),
		cmocka_unit_test(test_room),
		cmocka_unit_test(test_partial),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
