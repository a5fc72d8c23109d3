/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/access/headers.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"

static void test_authority(void **state)
{
	static const struct {
		const char *text, *name;
		int family;
		uint16_t port;
	} rows[] = {
		{ "LocalHost", "localhost", 0, 0 },
		{ "localhost:8484", "localhost", 0, 8484 },
		{ "127.0.0.1:1", "127.0.0.1", 4, 1 },
		{ "[::1]:65535", "::1", 6, 65535 },
		{ "[::1]", "::1", 6, 0 },
		{ "a-b_c.example", "a-b_c.example", 0, 0 },
		{ "127.1", "127.1", 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(rows); i++) {
		struct sbx_authority a;

		assert_int_equal(sbx_authority_parse(rows[i].text, &a), 0);
		assert_string_equal(a.name, rows[i].name);
		assert_int_equal(a.addr.family, rows[i].family);
		assert_int_equal(a.port, rows[i].port);
	}
}

static void test_no_authority(void **state)
{
	static const char *const rows[] = {
		"",	      ":80",	  "a:",	     "a:0", "a:65536", "a:+1",	      "a:1 ",
		"a b",	      "a/b",	  "u@a",     "::1", "[::1",    "[127.0.0.1]", "[a]",
		"[::1]80",    "[::1%lo]", "a:80:80", "a,b", "a\tb",    "\xc3\xa4",    "a:000080",
		"localhost?", "a#b",	  "[]",
	};
	char long_name[SBX_HOST_NAME_MAX + 1];

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(rows); i++) {
		struct sbx_authority a;

		if (sbx_authority_parse(rows[i], &a) == 0)
			fail_msg("'%s' is taken", rows[i]);
	}
	memset(long_name, 'a', sizeof(long_name) - 1);
	long_name[sizeof(long_name) - 1] = '\0';
	assert_int_equal(sbx_authority_parse(long_name, &(struct sbx_authority){ 0 }), -EINVAL);
	long_name[sizeof(long_name) - 2] = '\0';
	assert_int_equal(sbx_authority_parse(long_name, &(struct sbx_authority){ 0 }), 0);
}

static void test_origin(void **state)
{
	static const struct {
		const char *origin, *host;
		bool same;
	} rows[] = {
		{ "http://localhost:8484", "localhost:8484", true },
		{ "http://LOCALHOST:8484", "localhost:8484", true },
		{ "http://localhost", "localhost", true },
		{ "http://localhost", "localhost:80", true },
		{ "https://name.example", "name.example:443", true },
		{ "https://name.example", "name.example", true },
		{ "http://[::1]:8484", "[0:0:0:0:0:0:0:1]:8484", true },
		{ "http://localhost:3000", "localhost:8484", false },
		{ "https://localhost", "localhost:80", false },
		{ "http://127.0.0.1:8484", "localhost:8484", false },
		{ "http://evil.example", "localhost", false },
		{ "http://localhost.evil.example", "localhost", false },
	};
	static const char *const none[] = {
		"null",	   "",		"localhost", "ftp://localhost",
		"http://", "http://a/", "HTTP://a",  "http://a http://b"
	};
	struct sbx_authority host;
	struct sbx_origin o;

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(rows); i++) {
		assert_int_equal(sbx_origin_parse(rows[i].origin, &o), 0);
		assert_int_equal(sbx_authority_parse(rows[i].host, &host), 0);
		if (sbx_origin_is_at(&o, &host) != rows[i].same)
			fail_msg("%s at %s", rows[i].origin, rows[i].host);
	}
	for (size_t i = 0; i < SBX_N_ELEMENTS(none); i++)
		if (sbx_origin_parse(none[i], &o) == 0)
			fail_msg("'%s' is taken", none[i]);
}

static void test_bearer(void **state)
{
	static const char *const none[] = {
		"",	     "Bearer",	   "Bearer ",	  "Basic abc",
		"Bearerabc", "Bearer a b", "Bearer a\tb", "Bearer \x80"
	};
	const char *token;

	(void)state;
	assert_int_equal(sbx_bearer_parse("Bearer abc", &token), 0);
	assert_string_equal(token, "abc");
	assert_int_equal(sbx_bearer_parse("bEARER   x.y", &token), 0);
	assert_string_equal(token, "x.y");
	for (size_t i = 0; i < SBX_N_ELEMENTS(none); i++)
		if (sbx_bearer_parse(none[i], &token) == 0)
			fail_msg("'%s' is taken", none[i]);
}

static void test_cookie(void **state)
{
	char out[8];

	(void)state;
	assert_int_equal(sbx_cookie_find("sbx=1234567", "sbx", out, sizeof(out)), 0);
	assert_string_equal(out, "1234567");
	assert_int_equal(sbx_cookie_find("a=b; sbx=; c=d", "sbx", out, sizeof(out)), 0);
	assert_string_equal(out, "");
	assert_int_equal(sbx_cookie_find("a=sbx=1;;  sbx=2", "sbx", out, sizeof(out)), 0);
	assert_string_equal(out, "2");
	assert_int_equal(sbx_cookie_find("xsbx=1; sbxx=2; sbx", "sbx", out, sizeof(out)),
			 SBX_COOKIE_E_NONE);
	assert_int_equal(sbx_cookie_find("", "sbx", out, sizeof(out)), SBX_COOKIE_E_NONE);
	assert_int_equal(sbx_cookie_find("sbx=1; sbx=1", "sbx", out, sizeof(out)), -EINVAL);
	assert_int_equal(sbx_cookie_find("sbx=12345678", "sbx", out, sizeof(out)), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_authority), cmocka_unit_test(test_no_authority),
		cmocka_unit_test(test_origin),	  cmocka_unit_test(test_bearer),
		cmocka_unit_test(test_cookie),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
