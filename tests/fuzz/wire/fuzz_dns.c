/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Any bytes as a DNS message. A query that parses is answered within the limit, and the answer
 * parses back to the given addresses; the broker's own query for it asks the same; as a resolver's
 * answer (to the question in it) the bytes yield nothing over the limits.
 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "wire/dns.h"

static void check_answer(const struct sbx_dns_query *q, const struct sbx_addr *addrs, size_t limit)
{
	uint8_t out[2048];
	struct sbx_dns_answer a;
	size_t n = 0, n_want = 0;
	int r;

	if (sbx_dns_write_answer(q, SBX_DNS_NOERROR, addrs, 8, 60, limit, out, sizeof(out), &n))
		return;
	CHECK(n >= SBX_DNS_HEADER_LEN && n <= limit);
	r = sbx_dns_parse_answer(sbx_span(out, n), q, q->id, &a);
	if (!q->n_question || q->opcode) {
		CHECK(r == SBX_DNS_E_MISMATCH);
		return;
	}
	CHECK(r == 0);
	if (a.truncated)
		return;
	if (q->qclass == SBX_DNS_CLASS_IN &&
	    (q->qtype == SBX_DNS_TYPE_A || q->qtype == SBX_DNS_TYPE_AAAA))
		n_want = 4;
	CHECK(a.n_addrs == n_want && a.n_cnames == 0 && a.rcode == 0);
	for (size_t i = 0; i < n_want; i++)
		CHECK(sbx_addr_equal(&a.addrs[i], &addrs[2 * i + (q->qtype == SBX_DNS_TYPE_AAAA)]));
}

static void check_query(const struct sbx_dns_query *q)
{
	char again[SBX_HOSTNAME_MAX + 1];
	struct sbx_dns_query q2;
	uint8_t out[512];
	size_t n;

	CHECK(memchr(q->name, '\0', sizeof(q->name)));
	for (const char *p = q->name; *p; p++)
		CHECK(*p > 0x20 && *p < 0x7f);
	if (q->is_hostname) {
		CHECK(!sbx_hostname_normalise(q->name, strlen(q->name), again));
		CHECK(!strcmp(again, q->name));
	}
	if (!q->n_question)
		return;
	CHECK(!sbx_dns_write_query(q, 0x55aa, out, sizeof(out), &n));
	CHECK(!sbx_dns_parse_query(sbx_span(out, n), &q2));
	CHECK(q2.id == 0x55aa && q2.n_question == q->n_question && q2.edns == q->edns);
	CHECK(!memcmp(q2.question, q->question, q->n_question));
	CHECK(!strcmp(q2.name, q->name) && q2.is_hostname == q->is_hostname);
}

/* The bytes as an answer to the question they hold. */
static void check_upstream(const uint8_t *data, size_t size)
{
	uint8_t copy[4096];
	struct sbx_dns_query q;
	struct sbx_dns_answer a;
	int r;

	if (size < SBX_DNS_HEADER_LEN || size > sizeof(copy))
		return;
	memcpy(copy, data, size);
	memcpy(copy + 2, "\0\0\0\1\0\0\0\0\0\0", 10);
	r = sbx_dns_parse_query(sbx_span(copy, size), &q);
	CHECK(r == 0 || r == SBX_DNS_E_FORMERR);
	memcpy(copy, data, size);
	copy[2] = (uint8_t)((copy[2] & 0x07) | 0x80);
	r = sbx_dns_parse_answer(sbx_span(copy, size), &q, q.id, &a);
	if (r == 0) {
		CHECK(a.n_addrs <= SBX_DNS_ADDRS_MAX && a.n_cnames <= SBX_DNS_CNAMES_MAX);
		for (size_t i = 0; i < a.n_addrs; i++)
			CHECK(a.addrs[i].family == (q.qtype == SBX_DNS_TYPE_A ? 4 : 6));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sbx_addr addrs[8];
	struct sbx_dns_query q;
	struct sbx_span m;
	size_t n;
	int r;

	for (size_t i = 0; i < 8; i++) {
		addrs[i] = (struct sbx_addr){ .family = i % 2 ? 6 : 4 };
		addrs[i].b[i % 2 ? 15 : 3] = (uint8_t)(i + 1);
	}
	r = sbx_dns_parse_query(sbx_span(data, size), &q);
	if (r != SBX_DNS_E_DROP) {
		check_query(&q);
		check_answer(&q, addrs, sbx_dns_udp_limit(&q));
		check_answer(&q, addrs, 100);
		check_answer(&q, addrs, 2048);
	}
	check_upstream(data, size);
	if (sbx_dns_tcp_next(sbx_span(data, size), SBX_DNS_QUERY_MAX, &m, &n) == 0)
		CHECK(n <= size && m.n + 2 == n && m.p == data + 2);
	return 0;
}
