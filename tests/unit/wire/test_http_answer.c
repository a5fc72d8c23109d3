/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The broker's own HTTP: the refusal, and CONNECT through a proxy. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "wire/http_answer.h"

static void test_refusal(void **state)
{
#define REST                                        \
	"Content-Type: text/plain; charset=utf-8\r\n" \
	"Content-Length: 5\r\n"                       \
	"Cache-Control: no-store\r\n"                 \
	"Connection: close\r\n"                       \
	"\r\n"                                        \
	"why\n\n"
	static const char *const want[] = { "HTTP/1.1 403 Forbidden\r\n" REST,
					    "HTTP/1.1 400 Bad Request\r\n" REST };
	char out[200];
	size_t n;

	(void)state;
	for (int bad = 0; bad < 2; bad++) {
		static const char *const status[] = { "403 Forbidden", "400 Bad Request" };
		size_t n_want = strlen(want[bad]);

		assert_int_equal(
			sbx_http_refusal_write(status[bad], "why\n\n", out, n_want + 1, &n), 0);
		assert_int_equal(n, n_want);
		assert_string_equal(out, want[bad]);
		for (size_t cap = 0; cap <= n_want; cap++)
			assert_int_equal(
				sbx_http_refusal_write(status[bad], "why\n\n", out, cap, &n),
				-EMSGSIZE);
	}
}

static void test_connect(void **state)
{
	static const char *const bad[] = { "", "a b", "a\r\nX: y", "a/", "A", "a@b", "[::1]" };
	char out[200];
	size_t n;

	(void)state;
	assert_int_equal(sbx_http_connect_write("pkg.example", 443, out, sizeof(out), &n), 0);
	assert_string_equal(out,
			    "CONNECT pkg.example:443 HTTP/1.1\r\nHost: pkg.example:443\r\n\r\n");
	assert_int_equal(n, strlen(out));
	assert_int_equal(sbx_http_connect_write("2001:db8::1", 80, out, sizeof(out), &n), 0);
	assert_string_equal(out,
			    "CONNECT [2001:db8::1]:80 HTTP/1.1\r\nHost: [2001:db8::1]:80\r\n\r\n");
	assert_int_equal(sbx_http_connect_write("pkg.example", 443, out, 20, &n), -EMSGSIZE);
	for (size_t i = 0; i < SBX_N_ELEMENTS(bad); i++)
		assert_int_equal(sbx_http_connect_write(bad[i], 443, out, sizeof(out), &n),
				 -EINVAL);
	assert_int_equal(sbx_http_connect_write("a", 0, out, sizeof(out), &n), -EINVAL);
}

static int parse(const char *s, size_t n, int *ret_status, size_t *ret_n)
{
	SBX_AUTO_FREE char *copy = malloc(n ? n : 1);

	assert_non_null(copy);
	memcpy(copy, s, n);
	return sbx_http_connect_answer_parse(sbx_span(copy, n), ret_status, ret_n);
}

static void test_connect_answer(void **state)
{
	static const struct {
		const char *text;
		int status;
	} good[] = {
		{ "HTTP/1.1 200 Connection established\r\n\r\n", 200 },
		{ "HTTP/1.0 200\r\n\r\n", 200 },
		{ "HTTP/1.1 407 Proxy Authentication Required\r\nA: b\r\n\tc\r\n\r\n", 407 },
		{ "HTTP/1.1 599 \xc3\xa9\r\n\r\n", 599 },
	};
	static const char *const bad[] = {
		"h",
		"HTTP/2",
		"HTTP/1.x",
		"HTTP/1.1  ",
		"HTTP/1.1 20x",
		"HTTP/1.1 2000",
		"SSH-",
		"HTTP/1.1 099 x\r\n\r\n",
		"HTTP/1.1 600 x\r\n\r\n",
		"HTTP/1.1 200 \x01\r\n\r\n",
	};
	char text[100];
	int status;
	size_t n;

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(good); i++) {
		size_t len = strlen(good[i].text);

		for (size_t k = 0; k < len; k++)
			assert_int_equal(parse(good[i].text, k, &status, &n), SBX_HTTP_E_MORE);
		strcpy(text, good[i].text);
		strcat(text, "SSH-2.0-x\r\n\r\n");
		assert_int_equal(parse(text, strlen(text), &status, &n), 0);
		assert_int_equal(status, good[i].status);
		assert_int_equal(n, len);
	}
	for (size_t i = 0; i < SBX_N_ELEMENTS(bad); i++)
		assert_int_equal(parse(bad[i], strlen(bad[i]), &status, &n), SBX_HTTP_E_REJECT);
}

static void test_connect_answer_limit(void **state)
{
	static char s[SBX_HTTP_CONNECT_ANSWER_MAX + 10];
	int status;
	size_t n;

	(void)state;
	for (size_t len = SBX_HTTP_CONNECT_ANSWER_MAX; len <= SBX_HTTP_CONNECT_ANSWER_MAX + 1;
	     len++) {
		memset(s, 'a', sizeof(s));
		memcpy(s, "HTTP/1.1 200 ", 13);
		memcpy(s + len - 4, "\r\n\r\n", 4);
		assert_int_equal(parse(s, SBX_HTTP_CONNECT_ANSWER_MAX - 1, &status, &n),
				 SBX_HTTP_E_MORE);
		assert_int_equal(parse(s, len, &status, &n),
				 len <= SBX_HTTP_CONNECT_ANSWER_MAX ? 0 : SBX_HTTP_E_REJECT);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refusal),
		cmocka_unit_test(test_connect),
		cmocka_unit_test(test_connect_answer),
		cmocka_unit_test(test_connect_answer_limit),
	};

	return cmocka_run_group_tests_name("http_answer", tests, NULL, NULL);
}
