/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "policy/forms/units.h"

typedef int parse_fn(const char *s, uint64_t *ret_v);
typedef const char *format_fn(uint64_t v, char *buf, size_t n_buf);

static void good(parse_fn *parse, format_fn *format, const char *s, uint64_t want,
		 const char *canonical)
{
	char buf[SBX_UNIT_STR_MAX];
	uint64_t v = 99, again;

	assert_int_equal(parse(s, &v), 0);
	assert_int_equal(v, want);
	assert_string_equal(format(v, buf, sizeof(buf)), canonical);
	assert_int_equal(parse(buf, &again), 0);
	assert_int_equal(again, v);
}

static void bad(parse_fn *parse, const char *s, int want)
{
	uint64_t v = 99;

	assert_int_equal(parse(s, &v), want);
	assert_int_equal(v, 99);
}

static void test_size(void **state)
{
	(void)state;
	good(sbx_size_parse, sbx_size_format, "0", 0, "0");
	good(sbx_size_parse, sbx_size_format, "1023", 1023, "1023");
	good(sbx_size_parse, sbx_size_format, "512M", 512u << 20, "512M");
	good(sbx_size_parse, sbx_size_format, "1024k", 1 << 20, "1M");
	good(sbx_size_parse, sbx_size_format, "1536M", UINT64_C(1536) << 20, "1536M");
	good(sbx_size_parse, sbx_size_format, "2t", UINT64_C(2) << 40, "2T");
	good(sbx_size_parse, sbx_size_format, "18446744073709551615", UINT64_MAX,
	     "18446744073709551615");
	bad(sbx_size_parse, "18446744073709551616", -ERANGE);
	bad(sbx_size_parse, "16777216T", -ERANGE);
	for (const char *const *s = (const char *const[]){ "", "M", "-1", "+1", " 1", "1 ", "1MB",
							   "1.5G", "1P", "0x10", "1M1", NULL };
	     *s; s++)
		bad(sbx_size_parse, *s, -EINVAL);
}

static void test_time(void **state)
{
	(void)state;
	good(sbx_time_parse, sbx_time_format, "30s", 30000, "30s");
	good(sbx_time_parse, sbx_time_format, "10m", 600000, "10m");
	good(sbx_time_parse, sbx_time_format, "2h", 7200000, "2h");
	good(sbx_time_parse, sbx_time_format, "1500ms", 1500, "1500ms");
	good(sbx_time_parse, sbx_time_format, "90s", 90000, "90s");
	good(sbx_time_parse, sbx_time_format, "48h", 172800000, "2d");
	bad(sbx_time_parse, "30", -EINVAL);
	bad(sbx_time_parse, "30 s", -EINVAL);
	bad(sbx_time_parse, "1y", -EINVAL);
	bad(sbx_time_parse, "99999999999999999d", -ERANGE);
}

static void test_cpus(void **state)
{
	(void)state;
	good(sbx_cpus_parse, sbx_cpus_format, "2", 2000, "2");
	good(sbx_cpus_parse, sbx_cpus_format, "0.5", 500, "0.5");
	good(sbx_cpus_parse, sbx_cpus_format, "1.250", 1250, "1.25");
	good(sbx_cpus_parse, sbx_cpus_format, "0.001", 1, "0.001");
	bad(sbx_cpus_parse, "1.", -EINVAL);
	bad(sbx_cpus_parse, ".5", -EINVAL);
	bad(sbx_cpus_parse, "1.2345", -EINVAL);
	bad(sbx_cpus_parse, "1.5x", -EINVAL);
	bad(sbx_cpus_parse, "1,5", -EINVAL);
	bad(sbx_cpus_parse, "18446744073709552", -ERANGE);
}

static void test_count(void **state)
{
	(void)state;
	good(sbx_count_parse, sbx_count_format, "65535", 65535, "65535");
	good(sbx_count_parse, sbx_count_format, "007", 7, "7");
	bad(sbx_count_parse, "1e3", -EINVAL);
	bad(sbx_count_parse, "", -EINVAL);
	bad(sbx_count_parse, "99999999999999999999", -ERANGE);
}

static void test_id_range(void **state)
{
	static const struct {
		const char *text;
		int result;
	} cases[] = {
		{ "10001-65000", 0 },
		{ "1000-1000", 0 },
		{ "65536-1114111", 0 },
		{ "10001", -EINVAL },
		{ "10001-", -EINVAL },
		{ "-65000", -EINVAL },
		{ "1 - 2", -EINVAL },
		{ "10001-65000x", -EINVAL },
		{ "", -EINVAL },
		{ "999-2000", -ERANGE },
		{ "2000-1999", -ERANGE },
		{ "0-65000", -ERANGE },
		{ "65000-65534", -ERANGE },
		{ "65535-65536", -ERANGE },
		{ "60000-70000", -ERANGE },
		{ "65536-1114112", -ERANGE },
		{ "4294967290-4294967294", -ERANGE },
		{ "4294967290-4294967293", 0 },
		{ "1000-99999999999999999999", -ERANGE },
	};

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++) {
		struct sbx_id_range range = { 0, 0 };

		assert_int_equal(sbx_id_range_parse(cases[i].text, &range), cases[i].result);
		assert_int_equal(range.first != 0, cases[i].result == 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_size),
		cmocka_unit_test(test_time),
		cmocka_unit_test(test_cpus),
		cmocka_unit_test(test_count),
		cmocka_unit_test(test_id_range),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
