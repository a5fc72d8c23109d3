/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/hostname.h"

static void accepts(const char *in, const char *want)
{
	char out[SBX_HOSTNAME_MAX + 1];

	assert_int_equal(sbx_hostname_normalise(in, strlen(in), out), 0);
	assert_string_equal(out, want);
	/* Normalised names are fixed points. */
	assert_int_equal(sbx_hostname_normalise(want, strlen(want), out), 0);
	assert_string_equal(out, want);
}

static void refuses_n(const char *in, size_t n, int want)
{
	char out[SBX_HOSTNAME_MAX + 1] = "untouched";

	assert_int_equal(sbx_hostname_normalise(in, n, out), want);
	assert_string_equal(out, "");
}

static void refuses(const char *in, int want)
{
	refuses_n(in, strlen(in), want);
}

static void test_accepts(void **state)
{
	(void)state;
	accepts("example.org", "example.org");
	accepts("EXAMPLE.Org.", "example.org");
	accepts("a", "a");
	accepts("localhost", "localhost");
	accepts("_dmarc.example.org", "_dmarc.example.org");
	accepts("xn--bcher-kva.example", "xn--bcher-kva.example");
	accepts("3com.com", "3com.com");
	accepts("1.2.3.com", "1.2.3.com");
	accepts("1.2.3.4a", "1.2.3.4a");
	accepts("0x7f.example", "0x7f.example");
	accepts("a--b.c-d", "a--b.c-d");
}

static void test_empty(void **state)
{
	(void)state;
	refuses("", SBX_HOSTNAME_E_EMPTY);
	refuses(".", SBX_HOSTNAME_E_EMPTY);
}

static void test_labels(void **state)
{
	(void)state;
	refuses("..", SBX_HOSTNAME_E_LABEL);
	refuses("a..", SBX_HOSTNAME_E_LABEL);
	refuses(".a", SBX_HOSTNAME_E_LABEL);
	refuses("a..b", SBX_HOSTNAME_E_LABEL);
	refuses("-a.b", SBX_HOSTNAME_E_LABEL);
	refuses("a-.b", SBX_HOSTNAME_E_LABEL);
	refuses("a.-b", SBX_HOSTNAME_E_LABEL);
	refuses("a.b-", SBX_HOSTNAME_E_LABEL);
	refuses("-", SBX_HOSTNAME_E_LABEL);
}

/* Everything that inet_aton(3) or a URL parser would turn into an address. */
static void test_addresses(void **state)
{
	(void)state;
	refuses("127.0.0.1", SBX_HOSTNAME_E_ADDRESS);
	refuses("127.0.0.1.", SBX_HOSTNAME_E_ADDRESS);
	refuses("127.1", SBX_HOSTNAME_E_ADDRESS);
	refuses("2130706433", SBX_HOSTNAME_E_ADDRESS);
	refuses("017700000001", SBX_HOSTNAME_E_ADDRESS);
	refuses("0x7f000001", SBX_HOSTNAME_E_ADDRESS);
	refuses("0X7F000001", SBX_HOSTNAME_E_ADDRESS);
	refuses("127.0.0.0x1", SBX_HOSTNAME_E_ADDRESS);
	refuses("evil.0x", SBX_HOSTNAME_E_ADDRESS);
	refuses("example.123", SBX_HOSTNAME_E_ADDRESS);
	refuses("::1", SBX_HOSTNAME_E_CHAR);
	refuses("[::1]", SBX_HOSTNAME_E_CHAR);
}

/* Of all 256 bytes in the middle of a name, only letters, digits, '-', '_' and '.' pass. */
static void test_every_byte(void **state)
{
	(void)state;
	for (int c = 0; c < 256; c++) {
		const char in[] = { 'a', (char)c, 'b' };
		char out[SBX_HOSTNAME_MAX + 1];
		int fine = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
			   (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';

		assert_int_equal(sbx_hostname_normalise(in, sizeof(in), out),
				 fine ? 0 : SBX_HOSTNAME_E_CHAR);
	}
	refuses_n("example.org\0.evil", 17, SBX_HOSTNAME_E_CHAR);
	refuses_n("example.org\0", 12, SBX_HOSTNAME_E_CHAR);
}

static void test_lengths(void **state)
{
	char in[300], out[SBX_HOSTNAME_MAX + 1];

	(void)state;
	memset(in, 'a', sizeof(in));
	assert_int_equal(sbx_hostname_normalise(in, 63, out), 0);
	refuses_n(in, 64, SBX_HOSTNAME_E_LENGTH);
	in[63] = in[127] = in[191] = '.';
	assert_int_equal(sbx_hostname_normalise(in, 253, out), 0);
	assert_int_equal(strlen(out), 253);
	refuses_n(in, 254, SBX_HOSTNAME_E_LENGTH);
	in[253] = '.'; /* the root's dot does not count */
	assert_int_equal(sbx_hostname_normalise(in, 254, out), 0);
	refuses_n(in, sizeof(in), SBX_HOSTNAME_E_LENGTH);
}

static void test_in_domain(void **state)
{
	(void)state;
	assert_true(sbx_hostname_in_domain("a.example.org", "example.org"));
	assert_true(sbx_hostname_in_domain("example.org", "example.org"));
	assert_true(sbx_hostname_in_domain("a.b.example.org", "org"));
	assert_false(sbx_hostname_in_domain("notexample.org", "example.org"));
	assert_false(sbx_hostname_in_domain("example.org.evil", "example.org"));
	assert_false(sbx_hostname_in_domain("org", "example.org"));
	assert_false(sbx_hostname_in_domain("example.org", ""));
	assert_false(sbx_hostname_in_domain("", "example.org"));
}

static void test_strerror(void **state)
{
	(void)state;
	for (int e = SBX_HOSTNAME_E_EMPTY; e <= SBX_HOSTNAME_E_ADDRESS; e++)
		assert_string_not_equal(sbx_hostname_strerror(e), sbx_hostname_strerror(-1));
	assert_non_null(sbx_hostname_strerror(99));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_accepts),	   cmocka_unit_test(test_empty),
		cmocka_unit_test(test_labels),	   cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_every_byte), cmocka_unit_test(test_lengths),
		cmocka_unit_test(test_in_domain),  cmocka_unit_test(test_strerror),
	};

	return cmocka_run_group_tests_name("hostname", tests, NULL, NULL);
}
