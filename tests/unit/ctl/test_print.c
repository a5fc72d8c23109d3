/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tables, widths and quantities as sbxctl prints them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "ctl/print/form.h"
#include "ctl/print/table.h"
#include "ctl/print/width.h"

/* --- widths --- */

static void test_width(void **state)
{
	static const struct {
		const char *text;
		size_t width;
	} cases[] = {
		{ "", 0 },
		{ "abc", 3 },
		{ "\xc3\xa9", 1 },		   /* e acute */
		{ "e\xcc\x81", 1 },		   /* e and a combining acute */
		{ "\xe6\xbc\xa2\xe5\xad\x97", 4 }, /* two ideographs */
		{ "\xf0\x9f\x98\x80", 2 },	   /* an emoji */
		{ "\xe2\x80\xa6", 1 },		   /* the ellipsis */
		{ "\xd7\xa9\xd7\x9c", 2 },	   /* two Hebrew letters */
		{ "\xff", 1 },			   /* no UTF-8 */
		{ "\xe2\x82", 2 },		   /* cut */
	};

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++)
		assert_int_equal(sbx_width(cases[i].text), cases[i].width);
}

static void test_fit(void **state)
{
	size_t width;

	(void)state;
	assert_int_equal(sbx_width_fit("abcdef", 3, &width), 3);
	assert_int_equal(width, 3);
	assert_int_equal(sbx_width_fit("ab", 3, &width), 2);
	assert_int_equal(width, 2);
	/* an ideograph does not fit in one column */
	assert_int_equal(sbx_width_fit("a\xe6\xbc\xa2", 2, &width), 1);
	assert_int_equal(width, 1);
	/* a mark belongs to the letter before it */
	assert_int_equal(sbx_width_fit("e\xcc\x81x", 1, &width), 3);
}

/* A pile of marks takes no column, and is bounded all the same. */
static void test_pile(void **state)
{
	char pile[4096] = "e";
	size_t width;

	(void)state;
	for (size_t i = 1; i + 2 < sizeof(pile); i += 2)
		memcpy(pile + i, "\xcc\x81", 2);
	assert_int_equal(sbx_width(pile), 1);
	assert_in_range(sbx_width_fit(pile, 10, &width), 1, 80);
}

/* --- tables --- */

static const struct sbx_column columns[] = {
	{ "ID", .shrinks = false },
	{ "NAME", .shrinks = true },
	{ "N", .right = true },
	{ "COMMAND", .shrinks = true },
};

/* The table as text for @width columns. */
static char *draw(size_t width, bool colour)
{
	struct sbx_table *t = sbx_table_new(columns, SBX_N_ELEMENTS(columns));
	char *text = NULL;
	size_t n;
	struct sbx_out out = { .f = open_memstream(&text, &n), .width = width, .colour = colour };

	sbx_table_add(t, SBX_PLAIN, "a1");
	sbx_table_add(t, SBX_GOOD, "a-rather-long-name");
	sbx_table_addf(t, SBX_PLAIN, "%d", 7);
	sbx_table_add(t, SBX_PLAIN, "sh -c 'echo one; echo two'");
	sbx_table_add(t, SBX_PLAIN, "b2");
	sbx_table_add(t, SBX_PLAIN, NULL);
	sbx_table_addf(t, SBX_PLAIN, "%d", 1234);
	sbx_table_add(t, SBX_PLAIN, "\033[2Jx\n");
	assert_int_equal(sbx_table_n_rows(t), 2);
	assert_int_equal(sbx_table_print(t, &out), 0);
	fclose(out.f);
	sbx_table_free(t);
	return text;
}

static void test_whole(void **state)
{
	SBX_AUTO_FREE char *text = draw(0, false);

	(void)state;
	assert_string_equal(text, "ID  NAME                   N  COMMAND\n"
				  "a1  a-rather-long-name     7  sh -c 'echo one; echo two'\n"
				  "b2  -                   1234  \\x1b[2Jx\\x0a\n");
}

static void test_cut(void **state)
{
	SBX_AUTO_FREE char *text = draw(40, false);

	(void)state;
	assert_string_equal(text, "ID  NAME               N  COMMAND\n"
				  "a1  a-rather-long…     7  sh -c 'echo o…\n"
				  "b2  -               1234  \\x1b[2Jx\\x0a\n");
}

/* No line is wider than the terminal, whatever its width. */
static void test_every_width(void **state)
{
	(void)state;
	for (size_t width = 12; width < 90; width++) {
		SBX_AUTO_FREE char *text = draw(width, false);

		for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
			if (sbx_width(line) > width)
				fail_msg("%zu columns: '%s'", width, line);
	}
}

static void test_narrow(void **state)
{
	SBX_AUTO_FREE char *text = draw(16, false);

	(void)state;
	assert_string_equal(text, "ID      a1\n"
				  "NAME    a-rathe…\n"
				  "N       7\n"
				  "COMMAND sh -c '…\n"
				  "\n"
				  "ID      b2\n"
				  "NAME    -\n"
				  "N       1234\n"
				  "COMMAND \\x1b[2J…\n");
}

static void test_colours(void **state)
{
	SBX_AUTO_FREE char *text = draw(0, true);

	(void)state;
	assert_non_null(strstr(text, "\033[32ma-rather-long-name\033[0m"));
	assert_non_null(strstr(text, "\\x1b[2Jx"));
}

/* --- quantities --- */

static void test_age(void **state)
{
	char buf[SBX_FORM_MAX];

	(void)state;
	assert_string_equal(sbx_form_age(-5, buf), "0s");
	assert_string_equal(sbx_form_age(59999, buf), "59s");
	assert_string_equal(sbx_form_age(60000, buf), "1m");
	assert_string_equal(sbx_form_age(3599999, buf), "59m");
	assert_string_equal(sbx_form_age(3600000, buf), "1h");
	assert_string_equal(sbx_form_age(INT64_C(86400000) * 400, buf), "400d");
}

static void test_bytes(void **state)
{
	char buf[SBX_FORM_MAX];

	(void)state;
	assert_string_equal(sbx_form_bytes(0, buf), "0 B");
	assert_string_equal(sbx_form_bytes(1023, buf), "1023 B");
	assert_string_equal(sbx_form_bytes(1024, buf), "1.0 KiB");
	assert_string_equal(sbx_form_bytes(1258291, buf), "1.1 MiB");
	assert_string_equal(sbx_form_bytes(1048575, buf), "1023.9 KiB");
	assert_string_equal(sbx_form_bytes(UINT64_MAX, buf), "15.9 EiB");
}

static void test_instant(void **state)
{
	static const int64_t now = INT64_C(1764101861000); /* 2025-11-25T20:17:41Z */
	static const char *const bad[] = { "",		 "10",
					   "m",		 "-5m",
					   "yesterday",	 "2025-11-25T",
					   "10m ",	 "2025-11-25Z",
					   "2025-13-01", "99999999999999999999d" };
	char buf[SBX_FORM_MAX];
	int64_t ms = 0;

	(void)state;
	assert_string_equal(sbx_form_time(now, buf), "2025-11-25T20:17:41Z");
	assert_int_equal(sbx_form_instant("10m", now, &ms), 0);
	assert_int_equal(ms, now - 600000);
	assert_int_equal(sbx_form_instant("2025-11-25T20:17:41Z", 0, &ms), 0);
	assert_int_equal(ms, now);
	assert_int_equal(sbx_form_instant("2025-11-25T20:17:41.123Z", 0, &ms), 0);
	assert_int_equal(ms % 60000, 41123);
	assert_int_equal(sbx_form_instant("2025-11-25T20:17", 0, &ms), 0);
	assert_int_equal(ms, now - 41000);
	assert_int_equal(sbx_form_instant("2025-11-25", 0, &ms), 0);
	for (size_t i = 0; i < SBX_N_ELEMENTS(bad); i++)
		if (!sbx_form_instant_check(bad[i]))
			fail_msg("'%s' was taken", bad[i]);
	assert_null(sbx_form_instant_check("3d"));
}

/* --- JSON --- */

static void test_json(void **state)
{
	char *text = NULL;
	size_t n;
	struct sbx_out out = { .f = open_memstream(&text, &n) };

	(void)state;
	assert_int_equal(
		sbx_out_json(&out,
			     json_pack("{s:o, s:o, s:o}", "a", sbx_json_text("\033[2J\xe2\x80\xae"),
				       "b", sbx_json_text("\xff"), "c", sbx_json_text(NULL)),
			     false),
		0);
	fclose(out.f);
	assert_string_equal(text, "{\"a\":\"\\u001B[2J\\u202E\",\"b\":\"\\\\xff\",\"c\":null}\n");
	free(text);
	out.f = stderr;
	assert_int_equal(sbx_out_json(&out, NULL, false), -12);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_width),	cmocka_unit_test(test_fit),
		cmocka_unit_test(test_pile),	cmocka_unit_test(test_whole),
		cmocka_unit_test(test_cut),	cmocka_unit_test(test_every_width),
		cmocka_unit_test(test_narrow),	cmocka_unit_test(test_colours),
		cmocka_unit_test(test_age),	cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_instant), cmocka_unit_test(test_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
