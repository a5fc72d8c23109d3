/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One spelling of a path, paths with two readings, and patterns. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "http/path.h"

static char path[SBX_HTTP_PATH_MAX + 1];
static struct sbx_span query;

/* NULL, or why not. Works on a copy of exactly the target's size. */
static const char *canonical(const char *target)
{
	static uint8_t *copy;
	const char *why = NULL;
	size_t n = strlen(target);

	free(copy);
	copy = malloc(n ? n : 1);
	memcpy(copy, target, n);
	return sbx_http_path_canonical(sbx_span(copy, n), path, &query, &why) ? why : NULL;
}

static void test_canonical(void **state)
{
	static const struct {
		const char *target, *path, *query;
	} cases[] = {
		{ "/", "/", "" },
		{ "*", "*", "" },
		{ "/a/b", "/a/b", "" },
		{ "/a/b/", "/a/b/", "" },
		{ "/a?b=//../%2f?c", "/a", "b=//../%2f?c" },
		{ "/?", "/", "" },
		{ "/%61%7e%2D%2e%5f%30", "/a~-._0", "" },
		{ "/a%2ejs", "/a.js", "" },
		{ "/a%20b%c3%a9%3f%23", "/a%20b%C3%A9%3F%23", "" },
		{ "/a%25", "/a%25", "" },
		{ "/100%25/x", "/100%25/x", "" },
		{ "/a%25zz", "/a%25zz", "" },
		{ "/a%25%2f", "", "" },
		{ "/...", "/...", "" },
		{ "/.a/..b/a./b..", "/.a/..b/a./b..", "" },
		{ "/.git", "/.git", "" },
		{ "/a;b=c/d;e", "/a;b=c/d;e", "" },
		{ "/a..;/b", "/a..;/b", "" },
		{ "/@scope%2Bx:1,2!$&'()*+=", "/@scope%2Bx:1,2!$&'()*+=", "" },
		{ "/%e0%a0%80%f0%90%80%80", "/%E0%A0%80%F0%90%80%80", "" },
		{ "/%e0/%80", "/%E0/%80", "" },
	};

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++) {
		const char *why = canonical(cases[i].target);

		if (!cases[i].path[0]) {
			assert_non_null(why);
			continue;
		}
		assert_null(why);
		assert_string_equal(path, cases[i].path);
		assert_int_equal(query.n, strlen(cases[i].query));
		assert_memory_equal(query.p, cases[i].query, query.n);
		/* The canonical form is its own. */
		assert_null(canonical(cases[i].path));
		assert_string_equal(path, cases[i].path);
	}
}

static void test_ambiguous(void **state)
{
	static const char *const targets[] = {
		"",	      "a",	     "?",
		"**",	      "*/",	     "http://a.example/",
		"//",	      "//a",	     "/a//b",
		"/a//",	      "/a/b//?c",    "/.",
		"/..",	      "/./",	     "/../",
		"/a/.",	      "/a/..",	     "/a/./b",
		"/a/../b",    "/%2e",	     "/%2E%2e/",
		"/.%2e/a",    "/a/%2e./b",   "/..;/a",
		"/.;x",	      "/a/..;b=c/d", "/..%3b/a",
		"/%2e%2e%3B", "/;",	     "/;a/b",
		"/a/;/b",     "/%3ba",	     "/a%2fb",
		"/a%2Fb",     "/a%5cb",	     "/a%5C",
		"/a\\b",      "/%00",	     "/a%00.js",
		"/a%0ab",     "/a%0D",	     "/a%7f",
		"/a%",	      "/a%2",	     "/a%2g",
		"/a%g2",      "/%u002e",     "/% 20",
		"/%252e",     "/%252E%252e", "/a%252fb",
		"/%25%32%65", "/%25%32f",    "/%2541",
		"/a%25aa",    "/%c0%ae",     "/%C1%81",
		"/%e0%80%af", "/%E0%9f%bf",  "/%f0%80%80%af",
		"/a b",	      "/a\tb",	     "/a\x01",
		"/a\x7f",     "/a#b",	     "/\xc3\xa9",
		"/a/..%3f",   "/a/..%3Fx",   "/a/%2e.%23/b",
		"/.%3f",
	};

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(targets); i++)
		assert_non_null(canonical(targets[i]));
}

/* A byte more than the limit, and the longest output. */
static void test_limits(void **state)
{
	static char target[SBX_HTTP_PATH_MAX + 100];

	(void)state;
	memset(target, 'a', sizeof(target) - 1);
	target[0] = '/';
	target[SBX_HTTP_PATH_MAX + 1] = '\0';
	assert_non_null(canonical(target));
	target[SBX_HTTP_PATH_MAX] = '?';
	assert_null(canonical(target));
	assert_int_equal(strlen(path), SBX_HTTP_PATH_MAX);
	target[SBX_HTTP_PATH_MAX] = '\0';
	assert_null(canonical(target));
	for (size_t i = 1; i + 3 <= SBX_HTTP_PATH_MAX; i += 3)
		memcpy(target + i, "%20", 3);
	assert_null(canonical(target));
	assert_int_equal(strlen(path), SBX_HTTP_PATH_MAX);
}

static void test_patterns(void **state)
{
	static const struct {
		const char *pattern, *yes[6], *no[8];
	} cases[] = {
		{ "/", { "/", "/a", "/a/b" }, { "*" } },
		{ "/a", { "/a" }, { "/", "/a/", "/ab", "/A", "/a/b", "/b" } },
		{ "/a/", { "/a/", "/a/b", "/a/b/c" }, { "/a", "/ab/", "/b/a/" } },
		{ "/*", { "/", "/a", "/abc" }, { "/a/", "/a/b" } },
		{ "/**", { "/", "/a", "/a/b/" }, { "*" } },
		{ "/a/*/c", { "/a/b/c", "/a//c" }, { "/a/c", "/a/b/b/c", "/a/b/c/", "/a/b/cc" } },
		{ "/a/**/c",
		  { "/a/b/c", "/a/b/b/c", "/a/c/c" },
		  { "/a/c", "/a/b/c/d", "/b/a/x/c" } },
		{ "/*.js", { "/a.js", "/.js", "/a.js.js" }, { "/a/b.js", "/a.jsx", "/js" } },
		{ "/**.js", { "/a.js", "/a/b.js" }, { "/a.js/b" } },
		{ "/a*b*c", { "/abc", "/aXbXbc", "/abcbc" }, { "/ab", "/acb", "/ab/c" } },
		{ "/*/x", { "/a/x", "//x" }, { "/a/x/x", "/x" } },
		{ "/*/", { "/a/", "/a/b", "//" }, { "/a", "/" } },
		{ "/repos/*/*/issues**",
		  { "/repos/a/b/issues", "/repos/a/b/issues/1/c" },
		  { "/repos/a/issues", "/repos/a/b/c/issues" } },
		{ "/***", { "/", "/a/b" }, { "*" } },
		{ "", { NULL }, { "/", "" } },
	};

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++) {
		struct sbx_span p = sbx_span_str(cases[i].pattern);

		for (size_t k = 0; k < 6 && cases[i].yes[k]; k++)
			assert_true(sbx_http_path_matches(p, cases[i].yes[k]));
		for (size_t k = 0; k < 8 && cases[i].no[k]; k++)
			assert_false(sbx_http_path_matches(p, cases[i].no[k]));
	}
}

/* Of a path with ';' some servers see all, some drop the parameters, and some do that after
 * decoding. A pattern matches when it matches each reading. */
static void test_parameters(void **state)
{
	static const struct {
		const char *pattern, *yes[6], *no[8];
	} cases[] = {
		{ "/**.json",
		  { "/a/b.json", "/a/b.json;v=.json", "/a;x/b.json", "/a.json%3B.json" },
		  { "/admin/delete;.json", "/admin/delete%3B.json", "/admin/delete%3Bx;.json" } },
		{ "/*-public/",
		  { "/my-public/x", "/my-public;-public/x;y", "/my-public%3B-public/" },
		  { "/private;-public/x", "/private%3B-public/x", "/private;-public/" } },
		/* Only ';' is dropped, and what it hides ends in the encoded one. */
		{ "/*-public",
		  { "/my-public", "/my-public;-public" },
		  { "/my-public%3Bprivate;-public", "/my-public;x%3By" } },
		{ "/v1/**", { "/v1/a;b/c", "/v1/a%3Bb/c;d", "/v1/a" }, { "/v1;x/a", "/v2;/v1/a" } },
		{ "/v1/*/c", { "/v1/a;b/c" }, { "/v1/a/c;d", "/v1/a;/b/c" } },
		{ "/**/b", { "/a;x/b", "/a;x/y/b" }, { "/a;/b;c", "/a/c;/d/b;" } },
		/* A pattern's own parameters are those of the first reading. */
		{ "/a;v=*/b", { "/a;v=1/b" }, { "/a/b", "/a;w/b", "/a;v=1;w/c" } },
		{ "/a%3Bv/", { "/a%3Bv/b", "/a%3Bv/b;c" }, { "/a;v/b", "/a/b" } },
		{ "/a;**", { "/a;b", "/a;b;c" }, { "/a", "/a;b/c" } },
		{ "/**", { "/a;b/c%3Bd/" }, { "*" } },
	};

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++) {
		struct sbx_span p = sbx_span_str(cases[i].pattern);

		assert_null(sbx_http_pattern_check(p));
		for (size_t k = 0; k < 6 && cases[i].yes[k]; k++)
			assert_true(sbx_http_path_matches(p, cases[i].yes[k]));
		for (size_t k = 0; k < 8 && cases[i].no[k]; k++)
			assert_false(sbx_http_path_matches(p, cases[i].no[k]));
	}
}

/* Some proxies decode a path, and then take what is behind a '?' or '#' for no part of it. */
static void test_encoded_marks(void **state)
{
	static const struct {
		const char *pattern, *yes[4], *no[4];
	} cases[] = {
		{ "/**/read",
		  { "/a/read", "/a/read%3F/read" },
		  { "/delete%3F/read", "/delete%23/read", "/delete%23%3F/read" } },
		{ "/wiki/**", { "/wiki/What%3F", "/wiki/C%23/a" }, { "/w%3F/wiki/a" } },
		{ "/*.json", { "/a.json%3F.json" }, { "/a%3F.json", "/a;.json%3F.json" } },
		{ "/what%3F/b", { "/what%3F/b" }, { "/what", "/what/b" } },
	};

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++) {
		struct sbx_span p = sbx_span_str(cases[i].pattern);

		assert_null(sbx_http_pattern_check(p));
		for (size_t k = 0; k < 4 && cases[i].yes[k]; k++)
			assert_true(sbx_http_path_matches(p, cases[i].yes[k]));
		for (size_t k = 0; k < 4 && cases[i].no[k]; k++)
			assert_false(sbx_http_path_matches(p, cases[i].no[k]));
	}
}

/* Without its parameters, an accepted path has no empty segment and no dot segment. */
static void test_parameters_alone(void **state)
{
	static const char *const targets[] = {
		"/;a",	      "/%3Ba",	  "/a/;b",	  "/a/%3b/c",  "/a/;/c",      "/.;a",
		"/..;a/b",    "/..%3Ba",  "/%2e%2e;a",	  "/a/.%3b/b", "/a/..%3bx;y", "/a/..;x%3by",
		"/a;b/..;/c", "/a;/./b;", "/a;/%2e;x/;b", "/a;/",
	};

	(void)state;
	for (size_t i = 0; i + 1 < SBX_N_ELEMENTS(targets); i++)
		assert_non_null(canonical(targets[i]));
	assert_null(canonical(targets[SBX_N_ELEMENTS(targets) - 1]));
}

/* The longest path and pattern, all parameters. */
static void test_parameters_limits(void **state)
{
	static char text[SBX_HTTP_PATH_MAX + 1], pattern[SBX_HTTP_PATTERN_MAX + 1];

	(void)state;
	memset(text, ';', sizeof(text) - 1);
	memset(pattern, ';', sizeof(pattern) - 1);
	memcpy(text, "/a", 2);
	memcpy(pattern, "/a", 2);
	assert_false(sbx_http_path_matches(sbx_span(pattern, sizeof(pattern) - 1), text));
	memcpy(pattern + sizeof(pattern) - 3, "**", 2);
	assert_true(sbx_http_path_matches(sbx_span(pattern, sizeof(pattern) - 1), text));
	text[1] = 'b';
	assert_false(sbx_http_path_matches(sbx_span(pattern, sizeof(pattern) - 1), text));
}

/* A case in which going back would take exponential time. */
static void test_pattern_time(void **state)
{
	static char text[SBX_HTTP_PATH_MAX + 1], pattern[SBX_HTTP_PATTERN_MAX + 1];

	(void)state;
	memset(text, 'a', sizeof(text) - 1);
	memset(pattern, '*', sizeof(pattern) - 1);
	text[0] = pattern[0] = '/';
	for (size_t i = 3; i < sizeof(pattern) - 1; i += 3)
		pattern[i] = 'a';
	assert_true(sbx_http_path_matches(sbx_span(pattern, sizeof(pattern) - 1), text));
	text[sizeof(text) - 2] = 'b';
	pattern[sizeof(pattern) - 2] = 'c';
	assert_false(sbx_http_path_matches(sbx_span(pattern, sizeof(pattern) - 1), text));
	assert_false(sbx_http_path_matches(sbx_span(pattern, sizeof(pattern)), text));
}

static void test_pattern_check(void **state)
{
	static const char *const good[] = { "/", "/a/*", "/**/b", "/a%20b/", "/@x", "/a.b" };
	static const char *const bad[] = { "",	   "a",	   "*",	       "/a?b", "/a/../b",   "/a//b",
					   "/%61", "/%2f", "/a%c3%a9", "/a b", "/\xc3\xa9", "/a%" };

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(good); i++)
		assert_null(sbx_http_pattern_check(sbx_span_str(good[i])));
	for (size_t i = 0; i < SBX_N_ELEMENTS(bad); i++)
		assert_non_null(sbx_http_pattern_check(sbx_span_str(bad[i])));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_canonical),
		cmocka_unit_test(test_ambiguous),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_patterns),
		cmocka_unit_test(test_pattern_time),
		cmocka_unit_test(test_pattern_check),
		cmocka_unit_test(test_parameters),
		cmocka_unit_test(test_parameters_alone),
		cmocka_unit_test(test_parameters_limits),
		cmocka_unit_test(test_encoded_marks),
	};

	return cmocka_run_group_tests_name("path", tests, NULL, NULL);
}
