/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "policy/forms/request_form.h"

struct text_case {
	const char *text, *why; /* NULL: fine */
};

static void check(const char *(*form)(const char *), const struct text_case *cases, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const char *why = form(cases[i].text), *want = cases[i].why;

		if (!why != !want || (why && !strstr(why, want)))
			fail_msg("'%s': %s, not %s", cases[i].text, why ? why : "fine",
				 want ? want : "fine");
	}
}

static void test_method(void **state)
{
	static const struct text_case cases[] = {
		{ "GET", NULL },
		{ "M-SEARCH", NULL },
		{ "get", "upper case" },
		{ "GE T", "upper case" },
		{ "", "upper case" },
		{ "CONNECT", "refused" },
		{ "TRACE", "refused" },
		{ "TRACEX", NULL },
		{ "ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEF", NULL },
		{ "ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFG", "at most 32" },
	};

	(void)state;
	check(sbx_form_method, cases, SBX_N_ELEMENTS(cases));
}

static void test_path_pattern(void **state)
{
	static const struct text_case cases[] = {
		{ "/", NULL },
		{ "/v1/**", NULL },
		{ "/a/*.whl", NULL },
		{ "/.well-known/x", NULL },
		{ "/a..b/...", NULL },
		{ "v1", "begins with '/'" },
		{ "", "begins with '/'" },
		{ "*", "begins with '/'" },
		{ "/a//b", "'//'" },
		{ "//", "'//'" },
		{ "/a/;b/c", "'/;'" },
		{ "/a;b/c", NULL },
		{ "/a/./b", "'.' or '..'" },
		{ "/..", "'.' or '..'" },
		{ "/a/..;x/b", "'.' or '..'" },
		{ "/a/.", "'.' or '..'" },
		{ "/a%2fb", "'%'" },
		{ "/a?b", "only the path" },
		{ "/a#b", "only the path" },
		{ "/a b", "visible" },
		{ "/a\tb", "visible" },
		{ "/a\x7f", "visible" },
		{ "/\xc3\xa4", "visible" },
		{ "/a\\b", "visible" },
	};
	char longest[SBX_REQUEST_TEXT_MAX + 2];

	(void)state;
	check(sbx_form_path_pattern, cases, SBX_N_ELEMENTS(cases));
	memset(longest, 'a', sizeof(longest));
	longest[0] = '/';
	longest[SBX_REQUEST_TEXT_MAX] = '\0';
	assert_null(sbx_form_path_pattern(longest));
	longest[SBX_REQUEST_TEXT_MAX] = 'a';
	longest[SBX_REQUEST_TEXT_MAX + 1] = '\0';
	assert_non_null(sbx_form_path_pattern(longest));
}

static void test_header(void **state)
{
	static const struct text_case names[] = {
		{ "X-Team", NULL },
		{ "authorization", NULL },
		{ "", "letters" },
		{ "X Team", "letters" },
		{ "X:", "letters" },
		{ "X\r", "letters" },
		{ "Host", "frames or routes" },
		{ "content-LENGTH", "frames or routes" },
		{ "Transfer-Encoding", "frames or routes" },
		{ "transfer_Encoding", "frames or routes" },
		{ "HTTP2-Settings", "frames or routes" },
		{ "Host2", NULL },
		{ "Hos", NULL },
		{ "X_Team", NULL },
	};
	static const struct text_case values[] = {
		{ "", NULL },
		{ "blue: green", NULL },
		{ "a\r\nb", "control" },
		{ "a\tb", "control" },
		{ " a", "space" },
		{ "a ", "space" },
	};

	(void)state;
	check(sbx_form_header_name, names, SBX_N_ELEMENTS(names));
	check(sbx_form_header_value, values, SBX_N_ELEMENTS(values));
}

static void test_secret_header(void **state)
{
	static const struct text_case cases[] = {
		{ "Authorization: Bearer ${secret}", NULL },
		{ "X-Key:${secret}", NULL },
		{ "X-Key", "Name: value" },
		{ "X-Key: none", "once" },
		{ "X-Key: ${secret}${secret}", "once" },
		{ "X-Key: ${Secret}", "once" },
		{ "X-${secret}: x", "letters" },
		{ "Host: ${secret}", "frames or routes" },
		{ "X-Key: a\n${secret}", "control" },
		{ ": ${secret}", "letters" },
	};
	const char *value;

	(void)state;
	check(sbx_form_secret_header, cases, SBX_N_ELEMENTS(cases));
	assert_int_equal(sbx_form_header_split("A:  b: c", &value), 1);
	assert_string_equal(value, "b: c");
	assert_int_equal(sbx_form_header_split("A", &value), 1);
	assert_string_equal(value, "");
}

static void test_names(void **state)
{
	static const struct text_case prefixes[] = {
		{ "ghp_", NULL },
		{ "sk-ant-", NULL },
		{ "", "letters" },
		{ "a.b", "letters" },
		{ "0123456789012345678901234567890123456789012345678901234567890123", NULL },
		{ "01234567890123456789012345678901234567890123456789012345678901234", "64" },
	};
	static const struct text_case credentials[] = {
		{ "api.key", NULL },
		{ "", "letters" },
		{ ".hidden", "letters" },
		{ "a/b", "letters" },
	};

	(void)state;
	check(sbx_form_secret_prefix, prefixes, SBX_N_ELEMENTS(prefixes));
	check(sbx_form_credential, credentials, SBX_N_ELEMENTS(credentials));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_method),	      cmocka_unit_test(test_path_pattern),
		cmocka_unit_test(test_header),	      cmocka_unit_test(test_secret_header),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
