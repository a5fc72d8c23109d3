/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/hex.h"

static void test_lower(void **state)
{
	static const uint8_t bytes[] = { 0x00, 0x0f, 0xf0, 0xff, 0x9a };
	char out[2 * sizeof(bytes) + 2];

	(void)state;
	for (size_t n = 0; n <= sizeof(bytes); n++) {
		memset(out, 'z', sizeof(out));
		sbx_hex_lower(bytes, n, out);
		assert_int_equal(strlen(out), 2 * n);
		assert_memory_equal(out, "000ff0ff9a", 2 * n);
		assert_int_equal(out[2 * n + 1], 'z');
	}
}

static void test_value(void **state)
{
	static const char lower[] = "0123456789abcdef", upper[] = "0123456789ABCDEF";

	(void)state;
	for (int c = 0; c < 256; c++) {
		const char *at = c ? strchr(lower, c) : NULL;
		int want = at ? (int)(at - lower) : -1;

		at = c ? strchr(upper, c) : NULL;
		want = at ? (int)(at - upper) : want;
		assert_int_equal(sbx_hex_value((uint8_t)c), want);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lower),
		cmocka_unit_test(test_value),
	};

	return cmocka_run_group_tests_name("hex", tests, NULL, NULL);
}
