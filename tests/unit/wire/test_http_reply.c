/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The server's direction of HTTP/1: heads, framing, and the data in chunked bodies. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "wire/http_reply.h"

/* Parses a copy of exactly @n bytes, so that a sanitizer sees a read past the end. */
static int parse_n(const char *s, size_t n, bool to_head, struct sbx_http_reply *ret)
{
	char *copy = malloc(n ? n : 1);
	int r;

	assert_non_null(copy);
	memcpy(copy, s, n);
	r = sbx_http_reply_parse(sbx_span(copy, n), to_head, ret);
	if (r == 0)
		ret->reason.p = (const uint8_t *)s + (ret->reason.p - (uint8_t *)copy);
	free(copy);
	return r;
}

/* Every prefix wants more, or is refused as the whole is; what follows the head changes nothing. */
static int parse(const char *s, bool to_head, struct sbx_http_reply *ret)
{
	int whole = parse_n(s, strlen(s), to_head, ret), last = SBX_HTTP_E_MORE;
	struct sbx_http_reply part;

	for (size_t n = 0; n <= strlen(s); n++) {
		int r = parse_n(s, n, to_head, &part);

		if (last != SBX_HTTP_E_MORE)
			assert_int_equal(r, last);
		if (r == 0)
			assert_int_equal(part.n, ret->n);
		last = r;
	}
	assert_int_equal(last, whole);
	return whole;
}

/* "status version framing length keeps phrase", or "more" or "reject". */
static const char *tell(const char *s, bool to_head)
{
	static const char *const framings[] = { "none", "length", "chunked", "close", "switch" };
	static char text[256];
	struct sbx_http_reply r;

	switch (parse(s, to_head, &r)) {
	case SBX_HTTP_E_MORE:
		return "more";
	case SBX_HTTP_E_REJECT:
		return "reject";
	default:
		break;
	}
	assert_true(r.n <= strlen(s) && !memcmp(s + r.n - 4, "\r\n\r\n", 4));
	snprintf(text, sizeof(text), "%d %u %s %lld%s '%.*s'", r.status, r.version_minor,
		 framings[r.framing], r.has_length ? (long long)r.length : -1,
		 r.keeps ? " keeps" : "", (int)r.reason.n, (const char *)r.reason.p);
	return text;
}

static void test_heads(void **state)
{
	static const struct {
		const char *head, *want;
		bool to_head;
	} cases[] = {
		{ "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", "200 1 length 5 keeps 'OK'", 0 },
		{ "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "200 1 length 5 keeps 'OK'",
		  0 },
		{ "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", "200 1 none 5 keeps 'OK'", 1 },
		{ "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "200 1 length 0 keeps 'OK'", 0 },
		{ "HTTP/1.1 200 \r\nTransfer-Encoding: Chunked\r\n\r\n",
		  "200 1 chunked -1 keeps ''", 0 },
		{ "HTTP/1.1 200\r\nTransfer-Encoding: chunked\r\n\r\n", "200 1 chunked -1 keeps ''",
		  0 },
		{ "HTTP/1.1 200\r\ntransfer-encoding: chunked\r\n\r\n", "200 1 none -1 keeps ''",
		  1 },
		{ "HTTP/1.1 404 Not Found\r\n\r\n", "404 1 close -1 'Not Found'", 0 },
		{ "HTTP/1.1 999 \x80\t\r\n\r\n", "999 1 close -1 '\x80\t'", 0 },
		{ "HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\n", "200 0 length 5 'OK'", 0 },
		{ "HTTP/1.0 200 OK\r\nContent-Length: 5\r\nConnection: Keep-Alive\r\n\r\n",
		  "200 0 length 5 keeps 'OK'", 0 },
		{ "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: x, CLOSE\r\n\r\n",
		  "200 1 length 5 'OK'", 0 },
		{ "HTTP/1.1 200 OK\r\nUpgrade: h2\r\nConnection: Upgrade\r\nContent-Length: "
		  "1\r\n\r\n",
		  "200 1 length 1 keeps 'OK'", 0 },
		{ "HTTP/1.1 100 Continue\r\n\r\n", "100 1 none -1 keeps 'Continue'", 0 },
		{ "HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\n\r\n",
		  "101 1 switch -1 'Switching'", 0 },
		{ "HTTP/1.1 204 No\r\n\r\n", "204 1 none -1 keeps 'No'", 0 },
		{ "HTTP/1.1 204 No\r\nContent-Length: 0\r\n\r\n", "204 1 none 0 keeps 'No'", 0 },
		/* A body may follow after all. */
		{ "HTTP/1.1 204 No\r\nContent-Length: 1\r\n\r\n", "204 1 none 1 'No'", 0 },
		{ "HTTP/1.1 204 No\r\nTransfer-Encoding: chunked\r\n\r\n", "204 1 none -1 'No'",
		  0 },
		{ "HTTP/1.1 304 Not\r\nContent-Length: 7\r\n\r\n", "304 1 none 7 keeps 'Not'", 0 },
		{ "HTTP/1.1 200 OK\r\nContent-Length: 9007199254740992\r\n\r\n",
		  "200 1 length 9007199254740992 keeps 'OK'", 0 },
		{ "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n", "more", 0 },
		{ "", "more", 0 },
	};

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++)
		assert_string_equal(tell(cases[i].head, cases[i].to_head), cases[i].want);
}

static void test_heads_refused(void **state)
{
	static const char
		*const
			heads
				[] = {
					"\r\nHTTP/1.1 200 OK\r\n\r\n",
					"SSH-2.0-OpenSSH\r\n\r\n",
					"SSH-2.0-OpenSSH\r\n",
					"HTTP/2",
					"HTTP/1.1 199 OK\r\nContent-Length: 5\r\n\r\n",
					"HTTP/1.1 200 OK\r\nContent-Length: "
					"18446744073709551621\r\n\r\n", /* 5 in 64 bits */
					"http/1.1 200 OK\r\n\r\n",
					"HTTP/2.0 200 OK\r\n\r\n",
					"HTTP/1.2 200 OK\r\n\r\n",
					"HTTP/1.1  200 OK\r\n\r\n",
					"HTTP/1.1 99 OK\r\n\r\n",
					"HTTP/1.1 099 OK\r\n\r\n",
					"HTTP/1.1 1000 OK\r\n\r\n",
					"HTTP/1.1 2x0 OK\r\n\r\n",
					"HTTP/1.1\r\n\r\n",
					"HTTP/1.1 200 O\x01K\r\n\r\n",
					"HTTP/1.1 200 OK\n\r\n\r\n",
					"HTTP/1.1 200 OK\n",
					"HTTP/1.1 200 OK\r\nA: b\n\r\n\r\n",
					"HTTP/1.1 200 OK\r\nA: b\rc\r\n\r\n",
					"HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n",
					"HTTP/1.1 200 OK\r\nA : b\r\n\r\n",
					"HTTP/1.1 200 OK\r\n: b\r\n\r\n",
					"HTTP/1.1 200 OK\r\nA\r\n\r\n",
					"HTTP/1.1 200 OK\r\nA: \x7f\r\n\r\n",
					"HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\n",
					"HTTP/1.1 200 OK\r\nContent-Length: 05\r\n\r\n",
					"HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\n",
					"HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n\r\n",
					"HTTP/1.1 200 OK\r\nContent-Length: "
					"9007199254740993\r\n\r\n",
					"HTTP/1.1 200 OK\r\nContent-Length: "
					"10000000000000000\r\n\r\n",
					"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: "
					"5\r\n\r\n",
					"HTTP/1.1 200 OK\r\nContent-Length: "
					"5\r\nTransfer-Encoding: chunked\r\n\r\n",
					"HTTP/1.1 200 OK\r\nTransfer-Encoding: "
					"chunked\r\nTransfer-Encoding: "
					"chunked\r\n\r\n",
					"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, "
					"chunked\r\n\r\n",
					"HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n\r\n",
					"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
					"HTTP/1.1 200 OK\r\nConnection: content-length\r\n\r\n",
					"HTTP/1.1 200 OK\r\nConnection: a, "
					"Transfer-Encoding\r\n\r\n",
					"HTTP/1.1 100 Continue\r\nContent-Length: 5\r\n\r\n",
					"HTTP/1.1 101 Switching\r\nTransfer-Encoding: "
					"chunked\r\n\r\n",
				};

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(heads); i++)
		assert_string_equal(tell(heads[i], false), "reject");
}

static void test_fields(void **state)
{
	static const char head[] = "GET / HTTP/1.1\r\nHost: a.example\r\nX-Empty:\r\n"
				   "X-Two: \t a: b \t\r\n\r\nX-Body: no\r\n\r\n";
	const size_t n_head = strstr(head, "\r\n\r\n") + 4 - head;
	struct sbx_http_header v[4];

	(void)state;
	assert_int_equal(sbx_http_head_fields(sbx_span(head, n_head), v, 4), 3);
	assert_int_equal(sbx_http_head_fields(sbx_span(head, sizeof(head) - 1), v, 4), 3);
	assert_true(v[0].name.n == 4 && !memcmp(v[0].name.p, "Host", 4));
	assert_true(v[0].value.n == 9 && !memcmp(v[0].value.p, "a.example", 9));
	assert_int_equal(v[1].value.n, 0);
	assert_true(v[2].value.n == 4 && !memcmp(v[2].value.p, "a: b", 4));
	assert_int_equal(sbx_http_head_fields(sbx_span(head, n_head), v, 3), 3);
	assert_int_equal(sbx_http_head_fields(sbx_span(head, n_head), v, 2), 3);
	assert_int_equal(sbx_http_head_fields(sbx_span(head, n_head), v, 0), 1);
	assert_int_equal(sbx_http_head_fields(sbx_span("", 0), v, 4), 0);
}

/* The data of a chunked body that arrives in pieces. Returns the last result. */
static int read_chunked(const char *s, size_t n, size_t piece, char *data, size_t *ret_read)
{
	int r = SBX_HTTP_E_MORE;
	struct sbx_http_body b;
	size_t done = 0, n_data = 0;

	sbx_http_body_init(&b, SBX_HTTP_FRAMING_CHUNKED, 0);
	for (size_t have = 0; have < n && r == SBX_HTTP_E_MORE;) {
		size_t k = SIZE_MAX;

		have += piece < n - have ? piece : n - have;
		while (r == SBX_HTTP_E_MORE && k > 0) {
			SBX_AUTO_FREE char *copy = malloc(have - done + 1);
			struct sbx_span run = sbx_span("garbage", 7);

			memcpy(copy, s + done, have - done);
			r = sbx_http_chunked_next(&b, sbx_span(copy, have - done), &run, &k);
			assert_true(k <= have - done);
			if (run.n) {
				memcpy(data + n_data, run.p, run.n);
				n_data += run.n;
			}
			done += k;
		}
		if (r == SBX_HTTP_E_MORE)
			assert_int_equal(done, have);
	}
	data[n_data] = '\0';
	*ret_read = done;
	return r;
}

static void test_chunked(void **state)
{
	static const struct {
		const char *body, *data;
		int result;
		size_t n_after; /* bytes that are not the body's */
	} cases[] = {
		{ "0\r\n\r\n", "", 0, 0 },
		{ "5\r\nhello\r\n0\r\n\r\n", "hello", 0, 0 },
		{ "5;x=y\r\nhello\r\n1\r\n\r\r\n0\r\nA: b\r\n\r\nHTTP", "hello\r", 0, 4 },
		{ "5\r\nhello\r\n", "hello", SBX_HTTP_E_MORE, 0 },
		{ "5\r\nhel", "hel", SBX_HTTP_E_MORE, 0 },
		{ "5\r\nhello0\r\n\r\n", "hello", SBX_HTTP_E_REJECT, 6 },
		{ "5\nhello", "", SBX_HTTP_E_REJECT, 6 },
		{ "0\r\nContent-Length: 5\r\n\r\n", "", SBX_HTTP_E_REJECT, 7 },
	};

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++) {
		size_t n = strlen(cases[i].body), n_read;
		char data[64];

		for (size_t piece = 1; piece <= n; piece++) {
			int r = read_chunked(cases[i].body, n, piece, data, &n_read);

			assert_int_equal(r, cases[i].result);
			assert_string_equal(data, cases[i].data);
			if (r == 0)
				assert_int_equal(n_read, n - cases[i].n_after);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_heads),
		cmocka_unit_test(test_heads_refused),
		cmocka_unit_test(test_fields),
		cmocka_unit_test(test_chunked),
	};

	return cmocka_run_group_tests_name("http_reply", tests, NULL, NULL);
}
