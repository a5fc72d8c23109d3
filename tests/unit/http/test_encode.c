/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Percent encoding, base64 and JSON strings. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/base64.h"
#include "http/encode.h"
#include "tests/unit/http/world.h"

static char out[256];

static const char *done(size_t n)
{
	out[n] = '\0';
	return out;
}

static void test_percent(void **state)
{
	static const char s[] = "a%41%4x%+%";
	uint32_t from[sizeof(s)];
	size_t n;

	(void)state;
	n = sbx_http_percent_encode(TEXT("aZ0-._~ /%\xff"), NULL);
	assert_int_equal(n, 7 + 4 * 3);
	assert_string_equal(done(sbx_http_percent_encode(TEXT("aZ0-._~ /%\xff"), (uint8_t *)out)),
			    "aZ0-._~%20%2F%25%FF");
	n = sbx_http_percent_decode(TEXT("a%41%4x%+%"), false, (uint8_t *)out, from);
	assert_string_equal(done(n), "aA%4x%+%");
	assert_int_equal(from[0], 0);
	assert_int_equal(from[1], 1);
	assert_int_equal(from[2], 4);
	assert_int_equal(from[n], sizeof(s) - 1);
	assert_string_equal(
		done(sbx_http_percent_decode(TEXT("+%2b%2"), true, (uint8_t *)out, NULL)), " +%2");
}

static void test_base64(void **state)
{
	/* RFC 4648 section 10 */
	static const char *const plain[] = { "", "f", "fo", "foo", "foob", "fooba", "foobar" };
	static const char *const coded[] = { "",	 "Zg==",     "Zm8=",	"Zm9v",
					     "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy" };
	static const char *const bad[] = { "A", "AAAAA", "A A=", "AA=A", "\xff", "AA*A" };
	size_t n;

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(plain); i++) {
		struct sbx_span c = sbx_span_str(coded[i]);

		assert_int_equal(sbx_base64_encode(sbx_span_str(plain[i]), NULL), c.n);
		n = sbx_base64_encode(sbx_span_str(plain[i]), (uint8_t *)out);
		assert_string_equal(done(n), coded[i]);
		for (int padded = 1; padded >= 0; padded--) {
			assert_true(sbx_http_base64_decode(c, (uint8_t *)out, &n));
			assert_string_equal(done(n), plain[i]);
			c.n = strcspn(coded[i], "=");
		}
	}
	assert_true(sbx_http_base64_decode(TEXT("-_+/"), (uint8_t *)out, &n));
	assert_memory_equal(out, "\xfb\xff\xbf", 3);
	for (size_t i = 0; i < SBX_N_ELEMENTS(bad); i++)
		assert_false(sbx_http_base64_decode(sbx_span_str(bad[i]), (uint8_t *)out, &n));
}

static void test_json(void **state)
{
	(void)state;
	assert_int_equal(sbx_http_json_escape(TEXT("a\"\\/\t\x01\x80"), SBX_HTTP_JSON_SLASH, NULL),
			 16);
	assert_string_equal(done(sbx_http_json_escape(TEXT("a\"\\/\b\f\n\r\t\x01\x80"),
						      SBX_HTTP_JSON, (uint8_t *)out)),
			    "a\\\"\\\\/\\b\\f\\n\\r\\t\\u0001\x80");
	assert_string_equal(
		done(sbx_http_json_escape(TEXT("a/"), SBX_HTTP_JSON_SLASH, (uint8_t *)out)),
		"a\\/");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_percent),
		cmocka_unit_test(test_base64),
		cmocka_unit_test(test_json),
	};

	return cmocka_run_group_tests_name("encode", tests, NULL, NULL);
}
