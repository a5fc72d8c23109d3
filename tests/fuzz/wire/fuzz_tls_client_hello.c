/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Any bytes as the start of a TLS connection. However they are cut, the outcome is the same; a name
 * that comes out is one that normalising leaves alone; a verdict stays.
 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "wire/tls_client_hello.h"

#define LIMIT (16384 + 5)

/* Pieces of one byte for @seed 0, else of a size that hangs on it. */
static int feed(struct sbx_tls_hello *h, size_t limit, const uint8_t *data, size_t size,
		uint32_t seed)
{
	int r = SBX_TLS_E_MORE;

	sbx_tls_hello_init(h, limit);
	for (size_t pos = 0; pos < size && r == SBX_TLS_E_MORE;) {
		size_t n = seed ? 1 + (seed >> 16) % 61 : 1;

		seed = seed * 1664525u + (seed ? 1013904223u : 0);
		n = n < size - pos ? n : size - pos;
		r = sbx_tls_hello_feed(h, sbx_span(data + pos, n));
		pos += n;
	}
	return r;
}

static void check_limit(const uint8_t *data, size_t size, size_t limit)
{
	struct sbx_tls_hello whole, cut;
	char again[SBX_HOSTNAME_MAX + 1];
	int r;

	sbx_tls_hello_init(&whole, limit);
	r = sbx_tls_hello_feed(&whole, sbx_span(data, size));
	CHECK(whole.n_consumed <= limit && whole.n_consumed <= size);
	CHECK(r != SBX_TLS_E_MORE || whole.n_consumed == size);
	for (uint32_t seed = 0; seed < 2 * 77777u; seed += 77777u) {
		CHECK(feed(&cut, limit, data, size, seed) == r || !size);
		CHECK(cut.n_consumed == whole.n_consumed);
		CHECK(cut.reason == whole.reason);
		CHECK(!strcmp(cut.sni, whole.sni));
		CHECK(cut.version_max == whole.version_max);
		CHECK(cut.alpn_h2 == whole.alpn_h2 && cut.alpn_http11 == whole.alpn_http11);
	}
	CHECK(sbx_tls_hello_feed(&whole, sbx_span(data, r == SBX_TLS_E_MORE ? 0 : size)) == r);
	if (r == 0) {
		CHECK(!sbx_hostname_normalise(whole.sni, strlen(whole.sni), again));
		CHECK(!strcmp(again, whole.sni));
	}
	CHECK((r == SBX_TLS_E_REJECT) == (whole.reason != SBX_REASON_UNKNOWN));
}

/* Any bytes behind a first hello: what is good only grows, and one outcome however they are cut. */
static void check_watch(const uint8_t *data, size_t size, bool early_data)
{
	const struct sbx_tls_hello first = { .early_data = early_data };
	struct sbx_tls_watch whole, cut;
	size_t n_whole, n = 0, n_good = 0;
	int r, again = SBX_TLS_WATCH_MORE;

	sbx_tls_watch_init(&whole, &first, LIMIT);
	r = sbx_tls_watch_next(&whole, sbx_span(data, size), &n_whole);
	CHECK(n_whole <= size);
	sbx_tls_watch_init(&cut, &first, LIMIT);
	while (n_good + n < size && again == SBX_TLS_WATCH_MORE) {
		size_t more;

		again = sbx_tls_watch_next(&cut, sbx_span(data + n_good, ++n), &more);
		CHECK(more <= n);
		n_good += more;
		n -= more;
	}
	CHECK(again == r);
	CHECK(r != SBX_TLS_WATCH_HELLO || (n_good == n_whole && cut.result == whole.result &&
					   !strcmp(cut.hello.sni, whole.hello.sni)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	check_watch(data, size, false);
	check_watch(data, size, true);
	check_limit(data, size, LIMIT);
	check_limit(data, size, 200);
	return 0;
}
