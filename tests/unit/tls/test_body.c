/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Bodies of HTTP/1 that are framed anew: as they are, in chunks, or held. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "tls/http1/body.h"

static struct sbx_side side;

static int begin(void **state)
{
	(void)state;
	side = (struct sbx_side){ .fd = -1 };
	return 0;
}

static int end(void **state)
{
	(void)state;
	sbx_side_fini(&side);
	return 0;
}

static void put(struct sbx_body *b, const char *text)
{
	assert_int_equal(sbx_body_put(b, sbx_span_str(text)), 0);
}

static void assert_queued(const char *text)
{
	assert_int_equal(sbx_side_waiting(&side), strlen(text));
	assert_memory_equal(side.out + side.out_at, text, strlen(text));
}

static void test_plain(void **state)
{
	struct sbx_body b = { .side = &side };

	(void)state;
	put(&b, "abc");
	put(&b, "");
	put(&b, "de");
	assert_int_equal(sbx_body_end(&b), 0);
	assert_queued("abcde");
	sbx_body_fini(&b);
}

/* An empty piece writes nothing: it would be the last chunk. */
static void test_chunks(void **state)
{
	struct sbx_body b = { .side = &side, .how = SBX_BODY_CHUNKED };

	(void)state;
	put(&b, "0123456789abcdef0");
	put(&b, "");
	put(&b, "\r\n");
	assert_queued("11\r\n0123456789abcdef0\r\n2\r\n\r\n\r\n");
	assert_int_equal(sbx_body_end(&b), 0);
	assert_queued("11\r\n0123456789abcdef0\r\n2\r\n\r\n\r\n0\r\n\r\n");
	sbx_body_fini(&b);
}

static void test_no_chunks(void **state)
{
	struct sbx_body b = { .side = &side, .how = SBX_BODY_CHUNKED };

	(void)state;
	assert_int_equal(sbx_body_end(&b), 0);
	assert_queued("0\r\n\r\n");
	sbx_body_fini(&b);
}

static void test_held(void **state)
{
	struct sbx_body b = { .side = &side, .how = SBX_BODY_HELD };
	SBX_AUTO_FREE uint8_t *expected = malloc(100000);
	size_t n = 0;

	(void)state;
	assert_non_null(expected);
	for (size_t piece = 1; n + piece < 100000; piece = piece * 2 + 1) {
		memset(expected + n, (int)piece & 0xff, piece);
		assert_int_equal(sbx_body_put(&b, sbx_span(expected + n, piece)), 0);
		n += piece;
	}
	assert_int_equal(sbx_body_end(&b), 0);
	assert_int_equal(b.n_held, n);
	assert_memory_equal(b.held, expected, n);
	assert_int_equal(sbx_side_waiting(&side), 0);
	sbx_body_fini(&b);
	assert_null(b.held);
	sbx_body_fini(&b);
}

static void test_send(void **state)
{
	struct sbx_body b = { .side = &side, .how = SBX_BODY_HELD };

	(void)state;
	assert_int_equal(sbx_body_send(&b, sbx_span_str("A\r\n")), 0);
	assert_queued("A\r\nContent-Length: 0\r\n\r\n");
	sbx_side_unqueue(&side);
	put(&b, "0123456789");
	put(&b, "ab");
	assert_int_equal(sbx_body_send(&b, sbx_span_str("A\r\nB: c\r\n")), 0);
	assert_queued("A\r\nB: c\r\nContent-Length: 12\r\n\r\n0123456789ab");
	sbx_body_fini(&b);
}

static void test_held_limit(void **state)
{
	struct sbx_body b = { .side = &side, .how = SBX_BODY_HELD };
	SBX_AUTO_FREE uint8_t *data = calloc(1, SBX_BODY_HELD_MAX + 1);

	(void)state;
	assert_non_null(data);
	assert_int_equal(sbx_body_put(&b, sbx_span(data, SBX_BODY_HELD_MAX + 1)), -EFBIG);
	assert_int_equal(b.n_held, 0);
	assert_int_equal(sbx_body_put(&b, sbx_span(data, SBX_BODY_HELD_MAX - 1)), 0);
	assert_int_equal(sbx_body_put(&b, sbx_span(data, 2)), -EFBIG);
	assert_int_equal(sbx_body_put(&b, sbx_span(data, 1)), 0);
	assert_int_equal(b.n_held, SBX_BODY_HELD_MAX);
	assert_int_equal(b.n_held_max, SBX_BODY_HELD_MAX);
	assert_int_equal(sbx_body_put(&b, sbx_span(data, 1)), -EFBIG);
	assert_int_equal(sbx_body_put(&b, sbx_span(data, 0)), 0);
	sbx_body_fini(&b);
}

/* Reads @text in pieces that end at @cut and at each multiple of @step behind it. */
static void assert_trailer(const char *text, size_t cut, size_t step, const char *expected)
{
	struct sbx_body trailer = { .how = SBX_BODY_HELD };
	struct sbx_http_body chunks;
	char data[32] = "";
	size_t n_data = 0, at = 0, n_text = strlen(text);
	int r = SBX_HTTP_E_MORE;

	sbx_http_body_init(&chunks, SBX_HTTP_FRAMING_CHUNKED, 0);
	for (size_t end = cut; r == SBX_HTTP_E_MORE; end += step) {
		size_t n = 1;

		end = end < n_text ? end : n_text;
		while (r == SBX_HTTP_E_MORE && n && at < end) {
			struct sbx_span run;

			r = sbx_body_next(&trailer, &chunks, sbx_span(text + at, end - at), &run,
					  &n);
			assert_true(n_data + run.n < sizeof(data));
			if (run.n)
				memcpy(data + n_data, run.p, run.n);
			n_data += run.n;
			at += n;
		}
	}
	assert_int_equal(r, 0);
	assert_int_equal(at, n_text);
	assert_string_equal(data, "abcde");
	assert_int_equal(trailer.n_held, strlen(expected));
	if (trailer.n_held)
		assert_memory_equal(trailer.held, expected, trailer.n_held);
	sbx_body_fini(&trailer);
}

static void test_trailer(void **state)
{
	static const char *const cases[][2] = {
		{ "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n", "" },
		{ "3\r\nabc\r\n2\r\nde\r\n0\r\nX-Sum: 1\r\n\r\n", "0\r\nX-Sum: 1\r\n\r\n" },
		{ "5;a=b\r\nabcde\r\n000;c\r\nX: \r\nY:2\r\n\r\n", "0\r\nX: \r\nY:2\r\n\r\n" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		for (size_t cut = 1; cut <= strlen(cases[i][0]); cut++)
			for (size_t step = 1; step < 50; step += 16)
				assert_trailer(cases[i][0], cut, step, cases[i][1]);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_plain), TEST(test_chunks), TEST(test_no_chunks), TEST(test_held),
		TEST(test_send),
		TEST(test_held_limit), TEST(test_trailer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
