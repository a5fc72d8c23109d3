/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/cleanup.h"
#include "daemon/http/etag.h"

static void test_lists(void **state)
{
	static const struct {
		const char *list;
		bool strong, weak;
	} cases[] = {
		{ NULL, false, false },
		{ "", false, false },
		{ "*", true, true },
		{ "\"a\"", true, true },
		{ "W/\"a\"", false, true },
		{ "\"b\"", false, false },
		{ "\"b\", \"a\"", true, true },
		{ "\"b\",\"a\",\"c\"", true, true },
		{ "\"b\", W/\"a\"", false, true },
		{ "a", false, false },
		{ "\"a\"\"", false, false },
		{ "x\"a\"", false, false },
		{ "\"a\" ", true, true },
		{ "**", false, false },
	};

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++) {
		assert_int_equal(sbx_etag_listed(cases[i].list, "\"a\"", false), cases[i].strong);
		assert_int_equal(sbx_etag_listed(cases[i].list, "\"a\"", true), cases[i].weak);
	}
}

/* The order of an object's members says nothing, and each value does. */
static void test_tags(void **state)
{
	json_t *a = json_pack("{s:i, s:s}", "x", 1, "y", "z");
	json_t *b = json_pack("{s:s, s:i}", "y", "z", "x", 1);
	json_t *c = json_pack("{s:s, s:i}", "y", "z", "x", 2);
	char first[SBX_ETAG_MAX], second[SBX_ETAG_MAX], other[SBX_ETAG_MAX];

	(void)state;
	assert_int_equal(sbx_etag(a, first), 0);
	assert_int_equal(sbx_etag(b, second), 0);
	assert_int_equal(sbx_etag(c, other), 0);
	assert_string_equal(first, second);
	assert_string_not_equal(first, other);
	assert_true(first[0] == '"' && first[strlen(first) - 1] == '"');
	json_decref(a);
	json_decref(b);
	json_decref(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lists),
		cmocka_unit_test(test_tags),
	};

	return cmocka_run_group_tests_name("etag", tests, NULL, NULL);
}
