/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The end of a body, and bytes that are no valid body. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "wire/http_body.h"

struct outcome {
	int result;
	size_t n; /* bytes found good */
	enum sbx_reason reason;
};

/* @skip: carry opaque runs without showing them. */
static struct outcome feed(enum sbx_http_framing framing, uint64_t length, const char *s, size_t n,
			   size_t piece, bool skip)
{
	struct outcome o = { .result = SBX_HTTP_E_MORE };
	struct sbx_http_body b;

	sbx_http_body_init(&b, framing, length);
	o.result = sbx_http_body_feed(&b, sbx_span(NULL, 0), &(size_t){ 0 });
	while (o.result == SBX_HTTP_E_MORE && o.n < n) {
		size_t k = piece < n - o.n ? piece : n - o.n, good;
		SBX_AUTO_FREE char *copy = malloc(k);
		uint64_t opaque = sbx_http_body_opaque(&b);

		if (skip && opaque) {
			good = opaque < k ? (size_t)opaque : k;
			o.result = sbx_http_body_skip(&b, good) ? 0 : SBX_HTTP_E_MORE;
		} else {
			assert_non_null(copy);
			memcpy(copy, s + o.n, k);
			o.result = sbx_http_body_feed(&b, sbx_span(copy, k), &good);
			if (o.result == SBX_HTTP_E_MORE)
				assert_int_equal(good, k);
		}
		o.n += good;
	}
	o.reason = b.reason;
	return o;
}

/* In pieces of every size, shown or skipped: one outcome. */
static struct outcome judge(enum sbx_http_framing framing, uint64_t length, const char *s, size_t n)
{
	struct outcome whole = feed(framing, length, s, n, n ? n : 1, false);

	for (size_t piece = 1; piece <= n && piece <= 100; piece++) {
		for (int skip = 0; skip <= 1; skip++) {
			struct outcome o = feed(framing, length, s, n, piece, skip);

			assert_int_equal(o.result, whole.result);
			assert_int_equal(o.n, whole.n);
			assert_int_equal(o.reason, whole.reason);
		}
	}
	return whole;
}

static struct outcome chunked(const char *s)
{
	return judge(SBX_HTTP_FRAMING_CHUNKED, 0, s, strlen(s));
}

static void test_length(void **state)
{
	(void)state;
	assert_int_equal(judge(SBX_HTTP_FRAMING_NONE, 0, "GET", 3).result, 0);
	assert_int_equal(judge(SBX_HTTP_FRAMING_NONE, 0, "GET", 3).n, 0);
	/* a length that says nothing */
	assert_int_equal(judge(SBX_HTTP_FRAMING_NONE, 3, "GET", 3).n, 0);
	assert_int_equal(judge(SBX_HTTP_FRAMING_LENGTH, 0, "GET", 3).n, 0);
	assert_int_equal(judge(SBX_HTTP_FRAMING_LENGTH, 0, "GET", 3).result, 0);
	for (size_t n = 0; n <= 6; n++) {
		struct outcome o = judge(SBX_HTTP_FRAMING_LENGTH, 5, "\r\n\0\x80GET", n);

		assert_int_equal(o.result, n < 5 ? SBX_HTTP_E_MORE : 0);
		assert_int_equal(o.n, n < 5 ? n : 5);
	}
	assert_int_equal(judge(SBX_HTTP_FRAMING_LENGTH, SBX_HTTP_LENGTH_MAX, "x", 1).result,
			 SBX_HTTP_E_MORE);
}

static void test_chunked(void **state)
{
	static const char *const bodies[] = {
		"0\r\n\r\n",
		"000\r\n\r\n",
		"5\r\nhello\r\n0\r\n\r\n",
		"A\r\n0123456789\r\n3\r\nabc\r\n00\r\n\r\n",
		"a;name=value;x=\"y\"\r\n0123456789\r\n0;last\r\n\r\n",
		"1\r\n\r\r\n0\r\n\r\n",
		"0\r\nDigest: abc\r\nX-Long-Trailer-Name-That-Does-Not-Fit: \t\r\n\r\n",
		"0000000000000003\r\n\r\n\r\r\n0\r\n\r\n",
	};

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(bodies); i++) {
		char more[200];
		size_t n = strlen(bodies[i]);

		for (size_t k = 0; k < n; k++)
			assert_int_equal(judge(SBX_HTTP_FRAMING_CHUNKED, 0, bodies[i], k).result,
					 SBX_HTTP_E_MORE);
		assert_int_equal(chunked(bodies[i]).result, 0);
		strcpy(more, bodies[i]);
		strcat(more, "\nGET / HTTP/1.1");
		assert_int_equal(chunked(more).result, 0);
		assert_int_equal(chunked(more).n, n);
	}
}

/* Each is good up to its last byte. */
static void test_chunked_refused(void **state)
{
	static const char *const bodies[] = {
		"\r",
		"\n",
		";",
		" ",
		"g",
		"-",
		"+",
		"x",
		"0x",
		"5\n",
		"5 ",
		"5\t",
		"5\rx",
		"5;a\n",
		"5;a\rx",
		"5;a\x01",
		"1\r\nab",
		"1\r\na\n",
		"1\r\na\rb",
		"1\r\na\r\n\r",
		"0\r\n\n",
		"0\r\n\rx",
		"0\r\n ",
		"0\r\n:",
		"0\r\na\n",
		"0\r\na ",
		"0\r\na\r",
		"0\r\na:b\n",
		"0\r\na:b\rx",
		"0\r\na:\x01",
		"0\r\na:b\r\n ",
		"0\r\nHost:",
		"0\r\nContent-Length:",
		"0\r\ntransfer-encoding:",
		"0\r\nupgrade:",
		"0\r\ncontent_length:",
		"0\r\nconnection:",
		"00000000000000001", /* 17 digits */
		"20000000000001", /* over 2^53 */
		"0020000000000001",
		"3fffffffffffff",
		"80000000000000",
		"100000000000000",
		"ffffffffffffff",
	};

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(bodies); i++) {
		size_t n = strlen(bodies[i]);
		struct outcome o = chunked(bodies[i]);

		assert_int_equal(o.result, SBX_HTTP_E_REJECT);
		assert_int_equal(o.reason, SBX_REASON_HTTP_MALFORMED);
		assert_int_equal(o.n, n - 1);
	}
	assert_int_equal(chunked("1fffffffffffff\r\n").result, SBX_HTTP_E_MORE);
	assert_int_equal(chunked("20000000000000\r\n").result, SBX_HTTP_E_MORE);
}

static void test_limits(void **state)
{
	static char s[SBX_HTTP_TRAILER_MAX + 100];

	(void)state;
	for (size_t n = SBX_HTTP_CHUNK_EXT_MAX; n <= SBX_HTTP_CHUNK_EXT_MAX + 1; n++) {
		struct outcome o;

		strcpy(s, "0;");
		memset(s + 2, 'a', n);
		strcpy(s + 2 + n, "\r\n\r\n");
		o = chunked(s);
		assert_int_equal(o.result, n <= SBX_HTTP_CHUNK_EXT_MAX ? 0 : SBX_HTTP_E_REJECT);
		if (o.result)
			assert_int_equal(o.reason, SBX_REASON_OVERSIZED);
	}
	/* Per chunk: they do not add up over a body. */
	for (size_t i = 0; i < 2; i++) {
		char *p = s + i * (2 + SBX_HTTP_CHUNK_EXT_MAX + 2 + 3);

		strcpy(p, "1;");
		memset(p + 2, 'a', SBX_HTTP_CHUNK_EXT_MAX);
		strcpy(p + 2 + SBX_HTTP_CHUNK_EXT_MAX, "\r\nx\r\n");
	}
	assert_int_equal(chunked(s).result, SBX_HTTP_E_MORE);

	for (size_t n = SBX_HTTP_TRAILER_MAX; n <= SBX_HTTP_TRAILER_MAX + 1; n++) {
		struct outcome o;

		strcpy(s, "0\r\na:");
		memset(s + 5, 'b', n - 6);
		strcpy(s + 5 + n - 6, "\r\n\r\n");
		o = chunked(s);
		assert_int_equal(o.result, n <= SBX_HTTP_TRAILER_MAX ? 0 : SBX_HTTP_E_REJECT);
		if (o.result)
			assert_int_equal(o.reason, SBX_REASON_OVERSIZED);
	}
}

static void test_parse_length(void **state)
{
	static const char *const good[] = { "0", "1", "10", "9007199254740992" };
	static const char *const bad[] = {
		"",    "00", "01", "+1", "-1", "1 ", "1,", "1\n", "0x1", "a", ":", "/",
		"9007199254740993", "90071992547409920", "18446744073709551617",
	};
	uint64_t n = 7;

	(void)state;
	assert_int_equal(SBX_HTTP_LENGTH_MAX, 9007199254740992);
	for (size_t i = 0; i < SBX_N_ELEMENTS(bad); i++)
		assert_false(sbx_http_length_parse(sbx_span_str(bad[i]), &n));
	assert_int_equal(n, 7);
	for (size_t i = 0; i < SBX_N_ELEMENTS(good); i++) {
		assert_true(sbx_http_length_parse(sbx_span_str(good[i]), &n));
		assert_int_equal(n, strtoull(good[i], NULL, 10));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_length),
		cmocka_unit_test(test_parse_length),
		cmocka_unit_test(test_chunked),
		cmocka_unit_test(test_chunked_refused),
		cmocka_unit_test(test_limits),
	};

	return cmocka_run_group_tests_name("http_body", tests, NULL, NULL);
}
