/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Any bytes as the client's side of an HTTP connection. However they arrive, and whether bodies are
 * shown to the judge or skipped, it carries the same bytes under the same heads; and a head that it
 * lets through holds, to a much simpler reader, one Host, at most one length and nothing but CRLFs.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/wire/count_lines.h"
#include "wire/http_answer.h"
#include "wire/http_head.h"

/* The outcome of a connection, folded into a few numbers. */
struct outcome {
	uint64_t heads; /* hash over the heads and where they were */
	size_t n_heads, n_carried;
	int result;
	enum sbx_reason reason;
	bool is_http;
};

static bool is_text(const uint8_t *p, const uint8_t *end)
{
	while (p < end && (*p == '\t' || (*p >= ' ' && *p != 0x7f)))
		p++;
	return p == end;
}

static uint64_t mix(uint64_t h, const void *p, size_t n)
{
	const uint8_t *b = p;

	for (size_t i = 0; i < n; i++)
		h = (h ^ b[i]) * 1099511628211u;
	return h;
}

static void check_head(const uint8_t *p, const struct sbx_http_event *e, bool loose)
{
	char again[SBX_HOSTNAME_MAX + 1];

	CHECK(e->n >= 4 && !memcmp(p + e->n - 4, "\r\n\r\n", 4));
	for (size_t i = 0; i < e->n; i++) {
		CHECK(p[i] != '\r' || p[i + 1] == '\n');
		CHECK(p[i] != '\n' || p[i - 1] == '\r');
		CHECK(p[i] != '\0');
	}
	CHECK(count_lines(p, e->n, "host:") == 1 || (loose && count_lines(p, e->n, "host:") == 0));
	CHECK(count_lines(p, e->n, "content-length:") == (e->framing == SBX_HTTP_FRAMING_LENGTH));
	CHECK(count_lines(p, e->n, "transfer-encoding:") ==
	      (e->framing == SBX_HTTP_FRAMING_CHUNKED));
	CHECK(count_lines(p, e->n, "upgrade:") == 0 || e->upgrade);
	CHECK(loose || !e->upgrade);
	CHECK(count_lines(p, e->n, " ") == 0);
	CHECK(e->method.n + e->target.n < e->n);
	if (!e->host[0]) { /* names nobody */
		CHECK(loose && !e->host_addr.family && !e->host_port);
	} else if (e->host_addr.family) {
		struct sbx_addr a;

		CHECK(!sbx_addr_parse(e->host, &a) && sbx_addr_equal(&a, &e->host_addr));
	} else {
		CHECK(!sbx_hostname_normalise(e->host, strlen(e->host), again));
		CHECK(!strcmp(again, e->host));
	}
}

static struct outcome run(const uint8_t *data, size_t size, size_t limit, bool loose, uint32_t seed,
			  bool skip)
{
	struct outcome o = { 0 };
	struct sbx_http_judge j;
	size_t have = seed ? 0 : size;

	sbx_http_judge_init(&j, limit, loose);
	for (;;) {
		uint64_t opaque = sbx_http_judge_opaque(&j);
		struct sbx_http_event e;

		if (skip && opaque && have > o.n_carried) {
			size_t n =
				opaque < have - o.n_carried ? (size_t)opaque : have - o.n_carried;

			sbx_http_judge_skip(&j, n);
			o.n_carried += n;
			continue;
		}
		o.result = sbx_http_judge_next(&j, sbx_span(data + o.n_carried, have - o.n_carried),
					       &e);
		if (o.result == 0) {
			CHECK(e.n > 0 && e.n <= have - o.n_carried);
			if (e.kind == SBX_HTTP_HEAD) {
				CHECK(e.n <= limit);
				check_head(data + o.n_carried, &e, loose);
				o.n_heads++;
				o.heads = mix(o.heads, &o.n_carried, sizeof(o.n_carried));
				o.heads = mix(o.heads, e.host, strlen(e.host));
				o.heads = mix(o.heads, &e.content_length, sizeof(e.content_length));
			}
			o.n_carried += e.n;
		} else if (o.result == SBX_HTTP_E_MORE && have < size) {
			size_t n = 1 + (seed >> 16) % 40;

			seed = seed * 1664525u + 1013904223u;
			have += n < size - have ? n : size - have;
		} else {
			break;
		}
	}
	o.reason = o.result == SBX_HTTP_E_REJECT ? j.reason : SBX_REASON_UNKNOWN;
	CHECK(o.result != SBX_HTTP_E_REJECT || j.reason != SBX_REASON_UNKNOWN);
	o.is_http = o.result == SBX_HTTP_E_REJECT && j.is_http;
	/* Carried unseen, where that may be: no first line of a request. */
	if (loose && o.reason == SBX_REASON_HTTP_MALFORMED && !o.is_http) {
		const uint8_t *p = data + o.n_carried, *end = memchr(p, '\r', size - o.n_carried);

		CHECK(p < data + size && *p != '\r' && *p != '\n');
		CHECK(!end || end - p < 9 || memcmp(end - 9, " HTTP/1.1", 9) || !is_text(p, end));
	}
	return o;
}

static void check_limit(const uint8_t *data, size_t size, size_t limit, bool loose)
{
	struct outcome whole = run(data, size, limit, loose, 0, false);

	for (uint32_t seed = 1; seed < 5; seed++) {
		/* Seed 1 makes the first pieces single bytes. */
		struct outcome cut =
			run(data, size, limit, loose, seed * (seed - 1) * 99991u + 1, seed & 1);

		CHECK(cut.heads == whole.heads && cut.n_heads == whole.n_heads);
		CHECK(cut.n_carried == whole.n_carried);
		CHECK(cut.result == whole.result && cut.reason == whole.reason);
		CHECK(cut.is_http == whole.is_http);
	}
}

/* Once an answer is complete or refused, more bytes change nothing. */
static void check_connect_answer(const uint8_t *data, size_t size)
{
	int last = SBX_HTTP_E_MORE, status = 0;
	size_t n = 0;

	for (size_t k = 0; k <= size && k < 300; k++) {
		int s;
		size_t head;
		int r = sbx_http_connect_answer_parse(sbx_span(data, k), &s, &head);

		CHECK(last == SBX_HTTP_E_MORE || r == last);
		if (r == 0) {
			CHECK(last != 0 || (s == status && head == n));
			CHECK(head <= k && s >= 100 && s <= 599);
			status = s;
			n = head;
		}
		last = r;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	for (int loose = 0; loose < 2; loose++) {
		check_limit(data, size, 32768, loose);
		check_limit(data, size, 64, loose);
	}
	check_connect_answer(data, size);
	return 0;
}
