/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"

#define assert_escapes(in, want)                                                                   \
	do {                                                                                       \
		char out_[128];                                                                    \
		assert_string_equal(sbx_escape(in, sizeof(in) - 1, out_, sizeof(out_)), want);     \
	} while (0)

static void test_escape(void **state)
{
	(void)state;
	assert_escapes("plain text, \"quoted\"", "plain text, \"quoted\"");
	assert_escapes("", "");
	assert_escapes("a\0b", "a\\x00b");
	assert_escapes("\x1b[31mred\r\n\t\x7f", "\\x1b[31mred\\x0d\\x0a\\x09\\x7f");
	assert_escapes("c:\\x", "c:\\x5cx");
	assert_escapes("z\xc3\xa9ro \xe2\x82\xac \xf0\x9f\x90\xa7",
		       "z\xc3\xa9ro \xe2\x82\xac \xf0\x9f\x90\xa7");
}

/* Characters that are valid UTF-8 but drive a terminal or reorder a line are escaped. */
static void test_escape_hostile_unicode(void **state)
{
	(void)state;
	assert_escapes("\xc2\x9b"
		       "31m",
		       "\\xc2\\x9b31m"); /* CSI */
	assert_escapes("a\xe2\x80\xae"
		       "b",
		       "a\\xe2\\x80\\xaeb"); /* right-to-left override */
	assert_escapes("a\xe2\x80\xa8"
		       "b",
		       "a\\xe2\\x80\\xa8b");		   /* line separator */
	assert_escapes("\xe2\x81\xa6", "\\xe2\\x81\\xa6"); /* isolate */
	assert_escapes("\xef\xbb\xbf", "\\xef\\xbb\\xbf"); /* byte order mark */
}

static void test_escape_invalid_utf8(void **state)
{
	(void)state;
	assert_escapes("\xff\xfe", "\\xff\\xfe");
	assert_escapes("\x80", "\\x80");
	assert_escapes("\xc0\xaf", "\\xc0\\xaf"); /* overlong '/' */
	assert_escapes("\xe0\x80\xaf", "\\xe0\\x80\\xaf");
	assert_escapes("\xed\xa0\x80", "\\xed\\xa0\\x80");	    /* surrogate */
	assert_escapes("\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"); /* past U+10FFFF */
	assert_escapes("\xf5\x80\x80\x80", "\\xf5\\x80\\x80\\x80");
	assert_escapes("\xe2\x82", "\\xe2\\x82"); /* cut */
	assert_escapes("\xe2\x28\xa1", "\\xe2(\\xa1");
}

/* Cut at every size: terminated, and never inside a character or an escape. */
static void test_escape_cut(void **state)
{
	static const char in[] = "a\x01\xc3\xa9\xe2\x82\xac\\";
	static const size_t ends[] = { 0, 1, 5, 7, 10, 14 };
	char full[64];

	(void)state;
	sbx_escape(in, sizeof(in) - 1, full, sizeof(full));
	for (size_t size = 1; size < 20; size++) {
		char out[32];
		size_t want = 0;

		memset(out, 'z', sizeof(out));
		sbx_escape(in, sizeof(in) - 1, out, size);
		for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
			if (ends[i] < size)
				want = ends[i];
		}
		assert_int_equal(strlen(out), want);
		assert_memory_equal(out, full, want);
		assert_int_equal(out[size], 'z');
	}
}

static void test_text_unit_every_byte(void **state)
{
	(void)state;
	assert_int_equal(sbx_text_unit("", 0), 0);
	for (int c = 0; c < 256; c++) {
		const uint8_t b = (uint8_t)c;

		assert_int_equal(sbx_text_unit(&b, 1), c >= 0x20 && c < 0x7f ? 1 : 0);
	}
}

static void test_set_first_wins(void **state)
{
	struct sbx_err err = { 0 };

	(void)state;
	sbx_err_set(NULL, "nobody listens %d", 1);
	errno = ENOENT;
	sbx_err_set_at(&err, "pro\nfile.yaml", 3, 7, "unknown key '%s': %m",
		       "a\x1b"
		       "b");
	assert_int_equal(errno, ENOENT);
	sbx_err_set(&err, "a consequence");
	assert_string_equal(err.file, "pro\\x0afile.yaml");
	assert_int_equal(err.line, 3);
	assert_int_equal(err.column, 7);
	assert_string_equal(err.msg, "unknown key 'a\\x1bb': No such file or directory");
}

/* A caller may have escaped a part already: its backslashes stay. */
static void test_set_keeps_escapes(void **state)
{
	struct sbx_err err = { 0 };
	char name[16];

	(void)state;
	sbx_err_set(&err, "bad name %s", sbx_escape("\xff", 1, name, sizeof(name)));
	assert_string_equal(err.msg, "bad name \\xff");
}

static void test_set_empty_is_filled(void **state)
{
	struct sbx_err err = { 0 };

	(void)state;
	sbx_err_set(&err, "%s", "");
	assert_string_equal(err.msg, "unknown error");
}

static void test_set_overlong(void **state)
{
	char text[4 * SBX_ERR_MSG_MAX];

	(void)state;
	for (size_t n = SBX_ERR_MSG_MAX - 8; n < sizeof(text);
	     n += n < SBX_ERR_MSG_MAX + 8 ? 1 : 97) {
		struct sbx_err err = { 0 };
		size_t got;

		memset(text, '\xa9', n);
		for (size_t i = 0; i < n; i += 2)
			text[i] = '\xc3';
		text[n] = '\0';
		sbx_err_set(&err, "%s", text);
		got = strlen(err.msg);
		assert_true(got < SBX_ERR_MSG_MAX);
		assert_memory_equal(err.msg, text, 40);
		if (n % 2) /* half a character */
			assert_string_equal(err.msg + got - 5, "\xa9\\xc3");
		else
			assert_string_equal(err.msg + got - 40, text + n - 40);
		assert_int_equal(!!strstr(err.msg, "..."), n + n % 2 * 3 >= SBX_ERR_MSG_MAX);
	}
}

/* A path in the middle, of any length; what is said about it is kept. */
static void test_set_long_path(void **state)
{
	static const char *const units[] = { "/aaaaaaaaa", "\xe2\x82\xac", "\xff",
					     "\x1b",	   "\xa9",	   "\\" };
	char path[8192];

	(void)state;
	for (size_t u = 0; u < sizeof(units) / sizeof(units[0]); u++)
		for (size_t n = 0; n + 16 < sizeof(path); n += n < 800 ? 1 : 613) {
			struct sbx_err err = { 0 };
			size_t at = 0;

			while (at < n) {
				strcpy(path + at, units[u]);
				at += strlen(units[u]);
			}
			path[at] = '\0';
			sbx_err_set(&err, "--bind: '%s': it is %s", path, "too long");
			assert_int_equal(strncmp(err.msg, "--bind: '", 9), 0);
			assert_string_equal(err.msg + strlen(err.msg) - 17, "': it is too long");
			for (size_t i = 0; err.msg[i]; i += sbx_text_unit(err.msg + i, 4))
				assert_true(sbx_text_unit(err.msg + i, 4) > 0);
		}
}

static void test_list(void **state)
{
	static struct sbx_err_list list;

	(void)state;
	sbx_err_list_add(NULL, "f", 1, 1, "x");
	for (int i = 0; i < SBX_ERR_LIST_MAX + 5; i++)
		sbx_err_list_add(&list, "f", i + 1, 2, "problem %d", i);
	assert_int_equal(list.n, SBX_ERR_LIST_MAX);
	assert_int_equal(list.n_dropped, 5);
	assert_string_equal(list.v[SBX_ERR_LIST_MAX - 1].msg, "problem 63");
	assert_int_equal(list.v[SBX_ERR_LIST_MAX - 1].line, 64);
}

static void format_is(const char *file, int line, int column, const char *want)
{
	struct sbx_err err = { 0 };
	char buf[1024];

	sbx_err_set_at(&err, file, line, column, "oops");
	assert_string_equal(sbx_err_format(&err, buf, sizeof(buf)), want);
}

static void test_format(void **state)
{
	struct sbx_err err = { 0 };
	char buf[6];

	(void)state;
	format_is("a.yaml", 3, 7, "a.yaml:3:7: oops");
	format_is("a.yaml", 3, 0, "a.yaml:3: oops");
	format_is("a.yaml", 0, 7, "a.yaml: oops");
	format_is(NULL, 3, 7, "line 3:7: oops");
	format_is(NULL, 0, 0, "oops");
	sbx_err_set(&err, "long enough");
	assert_string_equal(sbx_err_format(&err, buf, sizeof(buf)), "long ");
}

static void test_errno_says_nothing(void **state)
{
	(void)state;
	assert_true(sbx_errno_says_nothing(EMFILE) && sbx_errno_says_nothing(ENFILE));
	assert_true(sbx_errno_says_nothing(ENOMEM) && sbx_errno_says_nothing(EIO));
	assert_false(sbx_errno_says_nothing(ENOENT) || sbx_errno_says_nothing(EACCES));
	assert_false(sbx_errno_says_nothing(ELOOP) || sbx_errno_says_nothing(0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_errno_says_nothing),
		cmocka_unit_test(test_escape),
		cmocka_unit_test(test_escape_hostile_unicode),
		cmocka_unit_test(test_escape_invalid_utf8),
		cmocka_unit_test(test_escape_cut),
		cmocka_unit_test(test_text_unit_every_byte),
		cmocka_unit_test(test_set_first_wins),
		cmocka_unit_test(test_set_keeps_escapes),
		cmocka_unit_test(test_set_empty_is_filled),
		cmocka_unit_test(test_set_overlong),
		cmocka_unit_test(test_set_long_path),
		cmocka_unit_test(test_list),
		cmocka_unit_test(test_format),
	};

	return cmocka_run_group_tests_name("err", tests, NULL, NULL);
}
