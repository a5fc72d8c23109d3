/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "base/text.h"

/* The bytes behind the first @n of the buffer are untouched. */
#define assert_kept(buf, n)                                                                        \
	for (size_t i_ = (n); i_ < sizeof(buf); i_++)                                              \
	assert_int_equal((buf)[i_], 'z')

/* Into each size from nothing to more than is needed. */
static void test_sizes(void **state)
{
	static const char text[] = "12 parts";
	const size_t n = sizeof(text) - 1;
	char buf[32];

	(void)state;
	for (size_t size = 0; size < 2 * n; size++) {
		const int want = size > n ? 0 : -ENAMETOOLONG;

		memset(buf, 'z', sizeof(buf));
		assert_int_equal(sbx_text_copy(buf, size, text), want);
		assert_string_equal(size ? buf : "", want ? "" : text);
		assert_kept(buf, size);
		memset(buf, 'z', sizeof(buf));
		assert_int_equal(sbx_text_copy_n(buf, size, "12 parts, and more", n), want);
		assert_string_equal(size ? buf : "", want ? "" : text);
		assert_kept(buf, size);
		memset(buf, 'z', sizeof(buf));
		assert_int_equal(sbx_text_format(buf, size, "%d %s", 12, "parts"), want);
		assert_string_equal(size ? buf : "", want ? "" : text);
		assert_kept(buf, size);
		memset(buf, 'z', sizeof(buf));
		sbx_text_cut(buf, size, "%d %s", 12, "parts");
		assert_memory_equal(buf, text, size > n ? n : size ? size - 1 : 0);
		if (size)
			assert_int_equal(buf[size > n ? n : size - 1], '\0');
		assert_kept(buf, size);
	}
}

static void test_empty(void **state)
{
	char buf[4] = "zzz";

	(void)state;
	assert_int_equal(sbx_text_copy_n(buf, 1, "abc", 0), 0);
	assert_string_equal(buf, "");
	assert_int_equal(sbx_text_copy(buf, 0, ""), -ENAMETOOLONG);
	assert_int_equal(sbx_text_copy(buf, sizeof(buf), "abc"), 0);
	assert_string_equal(buf, "abc");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
