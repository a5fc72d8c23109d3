/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "broker/core/core_told.h"

static struct sbx_addr a4(unsigned i)
{
	return (struct sbx_addr){ 4, { 203, (uint8_t)(i >> 16), (uint8_t)(i >> 8), (uint8_t)i } };
}

static bool add(struct sbx_told *t, const char *name, unsigned i)
{
	struct sbx_addr a = a4(i);

	return sbx_told_add(t, name, &a);
}

static void test_once(void **state)
{
	SBX_CLEANUP(sbx_told_freep) struct sbx_told *t = NULL;
	struct sbx_addr v6 = { 6, { 203 } };

	(void)state;
	assert_int_equal(sbx_told_new(100, &t), 0);
	assert_true(add(t, "a.example", 1));
	assert_false(add(t, "a.example", 1));
	assert_true(add(t, "b.example", 1)); /* each name for itself */
	assert_true(add(t, "a.example", 2));
	assert_true(add(t, "a.example", 0));
	assert_true(sbx_told_add(t, "a.example", &v6)); /* and each family */
	assert_false(sbx_told_add(t, "a.example", &v6));
	assert_false(add(t, "b.example", 1));
}

/* The oldest goes, the others stay. */
static void test_limit(void **state)
{
	SBX_CLEANUP(sbx_told_freep) struct sbx_told *t = NULL;
	char name[32];

	(void)state;
	assert_int_equal(sbx_told_new(50, &t), 0);
	for (unsigned i = 0; i < 51; i++) {
		snprintf(name, sizeof(name), "n%u.example", i % 7);
		assert_true(add(t, name, i));
	}
	assert_false(add(t, "n1.example", 1));
	assert_false(add(t, "n1.example", 50));
	assert_true(add(t, "n0.example", 0));
	assert_true(add(t, "n1.example", 1)); /* for which that one made room */
	for (unsigned i = 0; i < 100000; i++)
		assert_true(add(t, "many.example", 100 + i));
	for (unsigned i = 99950; i < 100000; i++)
		assert_false(add(t, "many.example", 100 + i));
}

static void test_one(void **state)
{
	SBX_CLEANUP(sbx_told_freep) struct sbx_told *t = NULL;

	(void)state;
	assert_int_equal(sbx_told_new(0, &t), 0);
	assert_true(add(t, "a.example", 1));
	assert_false(add(t, "a.example", 1));
	assert_true(add(t, "a.example", 2));
	assert_true(add(t, "a.example", 1));
	assert_null(sbx_told_free(NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_once),
		cmocka_unit_test(test_limit),
		cmocka_unit_test(test_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
