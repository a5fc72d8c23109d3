/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Names, lists, field lines and lengths, as both directions of HTTP/1 read them. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/cleanup.h"
#include "wire/http_field.h"

static void assert_span(struct sbx_span s, const char *text)
{
	assert_int_equal(s.n, strlen(text));
	assert_memory_equal(s.p, text, s.n);
}

static void test_same_name(void **state)
{
	(void)state;
	assert_true(sbx_http_same_name(sbx_span_str("X-Key"), sbx_span_str("x-kEY")));
	assert_true(sbx_http_same_name(sbx_span(NULL, 0), sbx_span_str("")));
	assert_false(sbx_http_same_name(sbx_span_str("x-key"), sbx_span_str("x_key")));
	assert_false(sbx_http_same_name(sbx_span_str("x-key"), sbx_span_str("x-ke")));
	/* Letters only: these differ in the same bit. */
	assert_false(sbx_http_same_name(sbx_span_str("@["), sbx_span_str("`{")));
	assert_true(sbx_http_equal(sbx_span_str("HOST"), "host"));
	assert_false(sbx_http_equal(sbx_span_str("hos"), "host"));
	assert_false(sbx_http_equal(sbx_span("h\0", 2), "h"));
}

static void test_list(void **state)
{
	static const char *const items[] = { "a", "", "b c", "" };
	struct sbx_span list = sbx_span_str(" a\t,, b c ,\t"), item;

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(items); i++) {
		assert_true(sbx_http_list_next(&list, &item));
		assert_span(item, items[i]);
	}
	assert_false(sbx_http_list_next(&list, &item));
	list = sbx_span_str("a,");
	assert_true(sbx_http_list_next(&list, &item));
	assert_false(sbx_http_list_next(&list, &item));
}

static void test_split(void **state)
{
	static const char *const bad[] = {
		"",	    ":",       ": x",	      "name",	   "na me: x",
		"name : x", " name: x", "\tname: x", "n\x01: x", "n\xe4: x",
	};
	struct sbx_http_header f;

	(void)state;
	assert_true(sbx_http_field_split(sbx_span_str("Name:\t a: b "), &f));
	assert_span(f.name, "Name");
	assert_span(f.value, "a: b");
	assert_true(sbx_http_field_split(sbx_span_str("n:"), &f));
	assert_span(f.name, "n");
	assert_int_equal(f.value.n, 0);
	for (size_t i = 0; i < SBX_N_ELEMENTS(bad); i++)
		assert_false(sbx_http_field_split(sbx_span_str(bad[i]), &f));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same_name),
		cmocka_unit_test(test_list),
		cmocka_unit_test(test_split),
	};

	return cmocka_run_group_tests_name("http_field", tests, NULL, NULL);
}
