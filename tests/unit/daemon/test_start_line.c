/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The line by which sbxd has a sandbox started, and its answer. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/output/start_line.h"

static int parse(const char *s, size_t n, char *id)
{
	return sbx_start_line_parse(sbx_span(s, n), id);
}

static void test_request(void **state)
{
	static const char line[] = "0123456789ab\n";
	char id[SBX_ID_LEN + 1];

	(void)state;
	for (size_t n = 0; n < SBX_START_LINE_LEN; n++)
		assert_int_equal(parse(line, n, id), 0);
	assert_int_equal(parse(line, SBX_START_LINE_LEN, id), 1);
	assert_string_equal(id, "0123456789ab");
}

static void test_bad_requests(void **state)
{
	static const struct {
		const char *text;
		size_t n;
	} bad[] = {
		{ "\n", 1 },
		{ "0123456789a\n", 12 },
		{ "0123456789abc", 13 }, /* too long, before its end */
		{ "0123456789abc\n", 14 },
		{ "0123456789ab\n\n", 14 },
		{ "0123456789ab\nx", 14 }, /* a second line */
		{ "0123456789AB\n", 13 },
		{ "../../../../\n", 13 },
		{ "0123456789a/\n", 13 },
		{ "0123456\0009ab\n", 13 },
		{ "--help\n", 7 },
		{ "0123456789ab\0", 13 },
	};
	char id[SBX_ID_LEN + 1];

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(parse(bad[i].text, bad[i].n, id), -EBADMSG);
}

static void test_answer(void **state)
{
	static const int errors[] = { 0, 2, 17, 133, 99999 };
	static const char *const bad[] = { "\n", "x\n", "-1\n", "0\n0", "0 \n", "1234567", " 0\n" };
	char text[SBX_START_ANSWER_MAX];
	int error;

	(void)state;
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		sbx_start_line_answer(errors[i], text);
		for (size_t n = 0; n < strlen(text); n++)
			assert_int_equal(sbx_start_line_answer_parse(sbx_span(text, n), &error), 0);
		assert_int_equal(sbx_start_line_answer_parse(sbx_span_str(text), &error), 1);
		assert_int_equal(error, errors[i]);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(sbx_start_line_answer_parse(sbx_span_str(bad[i]), &error),
				 -EBADMSG);
}

static void test_places(void **state)
{
	char out[64];

	(void)state;
	assert_int_equal(sbx_output_dir("/s", "0123456789ab", out, sizeof(out)), 0);
	assert_string_equal(out, "/s/api/0123456789ab");
	assert_int_equal(sbx_output_socket("/r", "0123456789ab", out, sizeof(out)), 0);
	assert_string_equal(out, "/r/api-0123456789ab.sock");
	assert_int_equal(sbx_output_dir("/s", "0123456789ab", out, 8), -ENAMETOOLONG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_request),
		cmocka_unit_test(test_bad_requests),
		cmocka_unit_test(test_answer),
		cmocka_unit_test(test_places),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
