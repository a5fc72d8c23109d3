/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Any bytes as a server's side of an HTTP/1 connection. A head is accepted or refused at the same
 * byte however it comes; one that is accepted holds, to a much simpler reader, at most one length
 * and nothing but CRLFs; and the data of a chunked body does not depend on how it is cut.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/wire/count_lines.h"
#include "wire/http_reply.h"

static void check_head(const uint8_t *p, const struct sbx_http_reply *r)
{
	struct sbx_http_header v[8];
	size_t n_lines = 0, n_fields = sbx_http_head_fields(sbx_span(p, r->n), v, 8);

	CHECK(r->status >= 100 && r->status <= 999 && r->n >= 4);
	CHECK(!memcmp(p + r->n - 4, "\r\n\r\n", 4));
	for (size_t i = 0; i < r->n; i++) {
		CHECK(p[i] != '\r' || p[i + 1] == '\n');
		CHECK(p[i] != '\n' || p[i - 1] == '\r');
		CHECK(p[i] != '\0');
		n_lines += p[i] == '\n';
	}
	/* All lines but the first and the empty one. */
	CHECK(n_fields == (n_lines - 2 > 8 ? 9 : n_lines - 2));
	CHECK(count_lines(p, r->n, "content-length:") == r->has_length);
	CHECK(!r->has_length || r->length <= SBX_HTTP_LENGTH_MAX);
	if (r->framing == SBX_HTTP_REPLY_CHUNKED)
		CHECK(!r->has_length && count_lines(p, r->n, "transfer-encoding:") == 1);
	if (r->framing == SBX_HTTP_REPLY_CLOSE)
		CHECK(!r->keeps && !r->has_length);
}

static void check_prefixes(const uint8_t *data, size_t size, bool to_head)
{
	struct sbx_http_reply whole, part;
	int want = sbx_http_reply_parse(sbx_span(data, size), to_head, &whole);
	int last = SBX_HTTP_E_MORE;

	if (want == 0)
		check_head(data, &whole);
	for (size_t n = 0; n <= size && n < 300; n++) {
		int r = sbx_http_reply_parse(sbx_span(data, n), to_head, &part);

		CHECK(last == SBX_HTTP_E_MORE || r == last);
		CHECK(r == SBX_HTTP_E_MORE || r == want);
		if (r == 0)
			CHECK(part.n == whole.n && part.n <= n && part.framing == whole.framing);
		last = r;
	}
}

/* Reads all that is there; returns a hash of the data. */
static uint64_t read_chunked(const uint8_t *data, size_t size, size_t piece, int *ret_r,
			     size_t *ret_n)
{
	uint64_t hash = 0;
	struct sbx_http_body b;
	size_t done = 0, have = 0;
	int r = SBX_HTTP_E_MORE;

	sbx_http_body_init(&b, SBX_HTTP_FRAMING_CHUNKED, 0);
	while (r == SBX_HTTP_E_MORE && have < size) {
		size_t n = 1;

		have += piece < size - have ? piece : size - have;
		while (r == SBX_HTTP_E_MORE && n > 0) {
			struct sbx_span run;

			r = sbx_http_chunked_next(&b, sbx_span(data + done, have - done), &run, &n);
			CHECK(n <= have - done && run.n <= n);
			for (size_t i = 0; i < run.n; i++)
				hash = (hash ^ run.p[i]) * 1099511628211u;
			done += n;
		}
		CHECK(r != SBX_HTTP_E_MORE || done == have);
	}
	*ret_r = r;
	*ret_n = done;
	return hash;
}

static void check_chunked(const uint8_t *data, size_t size)
{
	int r, again;
	size_t n, n_again;
	uint64_t hash = read_chunked(data, size, size ? size : 1, &r, &n);

	for (size_t piece = 1; piece < 8; piece += 3) {
		CHECK(read_chunked(data, size, piece, &again, &n_again) == hash);
		CHECK(again == r && n_again == n);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *end = size ? memmem(data, size, "\r\n\r\n", 4) : NULL;
	size_t n = end ? (size_t)(end - data) + 4 : 0;

	check_prefixes(data, size, false);
	check_prefixes(data, size, true);
	check_chunked(data + n, size - n);
	return 0;
}
