/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* DNS: queries of the sandbox, the stub's answers, a resolver's answers. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "wire/dns.h"

/* --- making messages --- */

static uint8_t buf[SBX_DNS_MESSAGE_MAX + 1];
static struct sbx_writer w;

static void begin(uint16_t id, uint16_t flags, unsigned qd, unsigned an, unsigned ns, unsigned ar)
{
	w = sbx_writer(buf, sizeof(buf));
	sbx_write_u16(&w, id);
	sbx_write_u16(&w, flags);
	sbx_write_u16(&w, (uint16_t)qd);
	sbx_write_u16(&w, (uint16_t)an);
	sbx_write_u16(&w, (uint16_t)ns);
	sbx_write_u16(&w, (uint16_t)ar);
}

/* "www.example.org": labels between dots; no escapes. */
static void name(const char *s)
{
	while (*s) {
		size_t n = strcspn(s, ".");

		sbx_write_u8(&w, (uint8_t)n);
		sbx_write_bytes(&w, s, n);
		s += n + (s[n] == '.');
	}
	sbx_write_u8(&w, 0);
}

static void question(const char *s, unsigned type)
{
	name(s);
	sbx_write_u16(&w, (uint16_t)type);
	sbx_write_u16(&w, SBX_DNS_CLASS_IN);
}

static void opt(unsigned size, uint32_t ttl, const char *options, size_t n)
{
	sbx_write_u8(&w, 0);
	sbx_write_u16(&w, SBX_DNS_TYPE_OPT);
	sbx_write_u16(&w, (uint16_t)size);
	sbx_write_u32(&w, ttl);
	sbx_write_u16(&w, (uint16_t)n);
	sbx_write_bytes(&w, options, n);
}

static void record_head(const char *owner, unsigned type, uint32_t ttl, size_t n)
{
	name(owner);
	sbx_write_u16(&w, (uint16_t)type);
	sbx_write_u16(&w, SBX_DNS_CLASS_IN);
	sbx_write_u32(&w, ttl);
	sbx_write_u16(&w, (uint16_t)n);
}

static void a_record(const char *owner, uint32_t ttl, uint8_t last)
{
	record_head(owner, SBX_DNS_TYPE_A, ttl, 4);
	sbx_write_bytes(&w, (uint8_t[]){ 192, 0, 2, last }, 4);
}

static void cname_record(const char *owner, uint32_t ttl, const char *target)
{
	record_head(owner, SBX_DNS_TYPE_CNAME, ttl, strlen(target) + 2);
	name(target);
}

/* In memory of its own size, so that a sanitizer sees a read past the end. */
static int parse_n(size_t n, struct sbx_dns_query *q)
{
	SBX_AUTO_FREE uint8_t *copy = malloc(n ? n : 1);

	assert_non_null(copy);
	memcpy(copy, buf, n);
	memset(q, 0xa5, sizeof(*q));
	return sbx_dns_parse_query(sbx_span(copy, n), q);
}

static int parse(struct sbx_dns_query *q)
{
	assert_false(w.failed);
	return parse_n(w.pos, q);
}

static struct sbx_dns_query make_query(const char *s, unsigned type)
{
	struct sbx_dns_query q;

	begin(0x1234, 0x0100, 1, 0, 0, 0);
	question(s, type);
	assert_int_equal(parse(&q), 0);
	return q;
}

/* --- queries --- */

static void test_query(void **state)
{
	struct sbx_dns_query q;

	(void)state;
	begin(0xbeef, 0x0110, 1, 0, 0, 1);
	question("wWw.EXAMPLE.org", SBX_DNS_TYPE_AAAA);
	opt(4096, 0x8000,
	    "\0\x0a\0\x08"
	    "cookie!!",
	    12);
	assert_int_equal(parse(&q), 0);
	assert_int_equal(q.id, 0xbeef);
	assert_true(q.rd && q.cd && q.is_hostname && q.edns && q.edns_do);
	assert_string_equal(q.name, "www.example.org");
	assert_int_equal(q.qtype, SBX_DNS_TYPE_AAAA);
	assert_int_equal(q.qclass, SBX_DNS_CLASS_IN);
	assert_int_equal(q.edns_size, 4096);
	assert_int_equal(q.n_question, 17 + 4);
	assert_memory_equal(q.question, "\3wWw\7EXAMPLE\3org\0\0\x1c\0\1", 21);
}

static void test_query_prefixes(void **state)
{
	struct sbx_dns_query q;
	size_t n;

	(void)state;
	begin(1, 0x0100, 1, 0, 0, 1);
	question("www.example.org", SBX_DNS_TYPE_A);
	opt(1232, 0, "\0\x0a\0\2xy", 6);
	n = w.pos;
	for (size_t i = 0; i < n; i++)
		assert_int_equal(parse_n(i, &q), i < 12 ? SBX_DNS_E_DROP : SBX_DNS_E_FORMERR);
	assert_int_equal(parse_n(n, &q), 0);
	assert_int_equal(parse_n(n + 1, &q), SBX_DNS_E_FORMERR);
	assert_int_equal(q.n_question, 21); /* still echoed */
}

static void test_query_header(void **state)
{
	static const struct {
		uint16_t flags, qd, an, ns, ar;
		int result;
	} heads[] = {
		{ 0x8100, 1, 0, 0, 0, SBX_DNS_E_DROP },
		{ 0x0900, 1, 0, 0, 0, SBX_DNS_E_NOTIMP },
		{ 0x2800, 1, 0, 0, 0, SBX_DNS_E_NOTIMP },
		{ 0x0100, 0, 0, 0, 0, SBX_DNS_E_FORMERR },
		{ 0x0100, 2, 0, 0, 0, SBX_DNS_E_FORMERR },
		{ 0x0100, 1, 1, 0, 0, SBX_DNS_E_FORMERR },
		{ 0x0100, 1, 0, 1, 0, SBX_DNS_E_FORMERR },
		{ 0x0100, 1, 0, 0, 1, SBX_DNS_E_FORMERR },
		{ 0x0100, 65535, 0, 0, 0, SBX_DNS_E_FORMERR },
		{ 0x0000, 1, 0, 0, 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(heads); i++) {
		struct sbx_dns_query q;

		begin(7, heads[i].flags, heads[i].qd, heads[i].an, heads[i].ns, heads[i].ar);
		question("a.example", SBX_DNS_TYPE_A);
		assert_int_equal(parse(&q), heads[i].result);
		if (heads[i].result != SBX_DNS_E_DROP)
			assert_int_equal(q.id, 7);
	}
}

static void test_query_names(void **state)
{
	static const struct {
		const char *wire;
		size_t n;
		const char *text; /* NULL: FORMERR */
		bool is_hostname;
	} names[] = {
		{ "\1a\2bc\0", 6, "a.bc", true },
		{ "\5_http\4_tcp\1x\0", 14, "_http._tcp.x", true },
		{ "\0", 1, ".", false },
		{ "\1a\3b.c\0", 7, "a.b\\.c", false },
		{ "\3a\\b\1x\0", 7, "a\\\\b.x", false },
		{ "\4a\0 \xff\1x\0", 8, "a\\000\\032\\255.x", false },
		{ "\0011\0012\0013\0014\0", 9, "1.2.3.4", false },
		{ "\2-a\1x\0", 6, "-a.x", false },
		{ "\xc0\x0c", 2, NULL, false },	   /* a pointer to itself */
		{ "\1a\xc0\x0c", 4, NULL, false }, /* to its own start */
		{ "\xc0\x00", 2, NULL, false },
		{ "\100aaaa", 5, NULL, false }, /* extended label types */
		{ "\200aaaa", 5, NULL, false },
	};

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(names); i++) {
		struct sbx_dns_query q;

		begin(1, 0x0100, 1, 0, 0, 0);
		sbx_write_bytes(&w, names[i].wire, names[i].n);
		sbx_write_u32(&w, 0x00010001);
		if (!names[i].text) {
			assert_int_equal(parse(&q), SBX_DNS_E_FORMERR);
			assert_int_equal(q.n_question, 0);
			continue;
		}
		assert_int_equal(parse(&q), 0);
		assert_string_equal(q.name, names[i].text);
		assert_int_equal(q.is_hostname, names[i].is_hostname);
		assert_int_equal(q.n_question, names[i].n + 4);
	}
}

/* Labels of @len bytes filled with @c until @total bytes of wire form are used. */
static void filled_name(size_t total, size_t len, uint8_t c)
{
	size_t left = total - 1;

	while (left) {
		size_t n = left - 1 < len ? left - 1 : len;

		if (left - 1 - n == 1) /* a lone length byte would be the root */
			n--;
		sbx_write_u8(&w, (uint8_t)n);
		for (size_t i = 0; i < n; i++)
			sbx_write_u8(&w, c);
		left -= 1 + n;
	}
	sbx_write_u8(&w, 0);
}

static void test_query_limits(void **state)
{
	struct sbx_dns_query q;

	(void)state;
	for (size_t len = 62; len <= 64; len++) {
		begin(1, 0, 1, 0, 0, 0);
		sbx_write_u8(&w, (uint8_t)len);
		for (size_t i = 0; i < len; i++)
			sbx_write_u8(&w, 'a');
		question("", SBX_DNS_TYPE_A);
		assert_int_equal(parse(&q), len <= 63 ? 0 : SBX_DNS_E_FORMERR);
	}
	for (size_t total = 250; total <= 260; total++) {
		begin(1, 0, 1, 0, 0, 0);
		filled_name(total, 63, 'A');
		sbx_write_u32(&w, 0x00010001);
		assert_int_equal(parse(&q), total <= 255 ? 0 : SBX_DNS_E_FORMERR);
		if (total <= 255)
			assert_int_equal(strlen(q.name), total - 2);
	}
	begin(1, 0, 1, 0, 0, 0);
	filled_name(255, 1, 0xff); /* its escapes are cut */
	sbx_write_u32(&w, 0x00010001);
	assert_int_equal(parse(&q), 0);
	assert_false(q.is_hostname);
	assert_int_equal(strlen(q.name), 253 - 253 % 5);

	for (size_t n = SBX_DNS_QUERY_MAX - 1; n <= SBX_DNS_QUERY_MAX + 1; n++) {
		static const char zeros[SBX_DNS_QUERY_MAX];
		size_t n_padding;

		begin(1, 0, 1, 0, 0, 1);
		question("a", SBX_DNS_TYPE_A);
		n_padding = n - w.pos - 11 - 4;
		opt(512, 0, zeros, 0);
		w.pos -= 2;
		sbx_write_u16(&w, (uint16_t)(n_padding + 4));
		sbx_write_u16(&w, 12); /* padding, RFC 7830 */
		sbx_write_u16(&w, (uint16_t)n_padding);
		sbx_write_bytes(&w, zeros, n_padding);
		assert_int_equal(w.pos, n);
		assert_int_equal(parse(&q), n <= SBX_DNS_QUERY_MAX ? 0 : SBX_DNS_E_FORMERR);
	}
}

static void test_query_additional(void **state)
{
	struct sbx_dns_query q;

	(void)state;
	begin(1, 0, 1, 0, 0, 2); /* two OPT */
	question("a", SBX_DNS_TYPE_A);
	opt(512, 0, "", 0);
	opt(512, 0, "", 0);
	assert_int_equal(parse(&q), SBX_DNS_E_FORMERR);

	begin(1, 0, 1, 0, 0, 1); /* OPT of an owner */
	question("a", SBX_DNS_TYPE_A);
	record_head("x", SBX_DNS_TYPE_OPT, 0, 0);
	assert_int_equal(parse(&q), SBX_DNS_E_FORMERR);

	begin(1, 0, 1, 0, 0, 1); /* options that do not add up */
	question("a", SBX_DNS_TYPE_A);
	opt(512, 0, "\0\x0a\0\3xy", 6);
	assert_int_equal(parse(&q), SBX_DNS_E_FORMERR);

	begin(1, 0, 1, 0, 0, 1); /* version 1 */
	question("a", SBX_DNS_TYPE_A);
	opt(512, 0x00010000, "", 0);
	assert_int_equal(parse(&q), SBX_DNS_E_BADVERS);
	assert_true(q.edns && q.n_question);

	for (unsigned n = SBX_DNS_ADDITIONAL_MAX; n <= SBX_DNS_ADDITIONAL_MAX + 1; n++) {
		begin(1, 0, 1, 0, 0, n);
		question("a", SBX_DNS_TYPE_A);
		opt(512, 0, "", 0);
		for (unsigned i = 1; i < n; i++)
			a_record("x", 0, 1);
		assert_int_equal(parse(&q), n <= SBX_DNS_ADDITIONAL_MAX ? 0 : SBX_DNS_E_FORMERR);
	}

	begin(1, 0, 1, 0, 0,
	      1); /* an owner by pointer is in order, one that points at itself not */
	question("a", SBX_DNS_TYPE_A);
	sbx_write_u16(&w, 0xc00c);
	sbx_write_bytes(&w, "\0\x10\0\1\0\0\0\0\0\0", 10);
	assert_int_equal(parse(&q), 0);
	buf[12 + 3 + 4 + 1] = 12 + 3 + 4;
	assert_int_equal(parse(&q), SBX_DNS_E_FORMERR);
}

/* --- our answers --- */

static struct sbx_addr addr4(uint8_t last)
{
	return (struct sbx_addr){ 4, { 198, 18, 0, last } };
}

static struct sbx_addr addr6(uint8_t last)
{
	return (struct sbx_addr){ 6, { 0xfd, 0, 0, 0x5b, [15] = last } };
}

static void test_answer_bytes(void **state)
{
	struct sbx_dns_query q = make_query("wWw.a", SBX_DNS_TYPE_A);
	struct sbx_addr addrs[] = { addr6(1), addr4(9) };
	uint8_t out[512];
	size_t n;

	(void)state;
	assert_int_equal(
		sbx_dns_write_answer(&q, SBX_DNS_NOERROR, addrs, 2, 60, 512, out, sizeof(out), &n),
		0);
	assert_int_equal(n, 12 + 11 + 16);
	assert_memory_equal(out,
			    "\x12\x34\x81\x80\0\1\0\1\0\0\0\0"
			    "\3wWw\1a\0\0\1\0\1"
			    "\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4\xc6\x12\0\x09",
			    n);

	/* A refusal, and NODATA, have no records. */
	assert_int_equal(
		sbx_dns_write_answer(&q, SBX_DNS_REFUSED, addrs, 2, 60, 512, out, sizeof(out), &n),
		0);
	assert_int_equal(n, 12 + 11);
	assert_memory_equal(out, "\x12\x34\x81\x85\0\1\0\0\0\0\0\0", 12);
	q.qclass = 3;
	assert_int_equal(
		sbx_dns_write_answer(&q, SBX_DNS_NOERROR, addrs, 2, 60, 512, out, sizeof(out), &n),
		0);
	assert_int_equal(out[7], 0);
	q = make_query("www.a", 15);
	assert_int_equal(
		sbx_dns_write_answer(&q, SBX_DNS_NOERROR, addrs, 2, 60, 512, out, sizeof(out), &n),
		0);
	assert_memory_equal(out, "\x12\x34\x81\x80\0\1\0\0\0\0\0\0", 12);
}

/* A refused name gets NXDOMAIN, and a client that reads extended errors gets the reason. */
static void test_blocked(void **state)
{
	static const char long_text[] = "0123456789012345678901234567890123456789012345678901234567"
					"890123456789012345678901234567890123456789"
					"0123456789012345678901234567890123456789012345678901234567"
					"89012345678901234567890123456789012345678"
					"\xc3\xbc and more";
	struct sbx_dns_query q = make_query("wWw.a", SBX_DNS_TYPE_A);
	uint8_t out[512];
	size_t n;

	(void)state;
	assert_int_equal(sbx_dns_write_blocked(&q, "why", out, sizeof(out), &n), 0);
	assert_int_equal(n, 12 + 11);
	assert_memory_equal(out, "\x12\x34\x81\x83\0\1\0\0\0\0\0\0\3wWw\1a\0\0\1\0\1", n);
	for (size_t cap = 0; cap < n; cap++)
		assert_int_equal(sbx_dns_write_blocked(&q, "why", out, cap, &n), -EMSGSIZE);

	begin(0x1234, 0x0110, 1, 0, 0, 1);
	question("a", SBX_DNS_TYPE_AAAA);
	opt(512, 0x8000, "", 0);
	assert_int_equal(parse(&q), 0);
	assert_int_equal(sbx_dns_write_blocked(&q, "why", out, sizeof(out), &n), 0);
	assert_int_equal(n, 12 + 7 + 11 + 6 + 3);
	assert_memory_equal(out,
			    "\x12\x34\x81\x93\0\1\0\0\0\0\0\1"
			    "\1a\0\0\x1c\0\1"
			    "\0\0\x29\x04\xd0\0\0\x80\0\0\x09"
			    "\0\x0f\0\5\0\x0f"
			    "why",
			    n);
	for (size_t cap = 0; cap < n; cap++)
		assert_int_equal(sbx_dns_write_blocked(&q, "why", out, cap, &n), -EMSGSIZE);

	/* Cut between characters, at SBX_DNS_BLOCKED_MAX bytes at most. */
	assert_int_equal(sbx_dns_write_blocked(&q, long_text, out, sizeof(out), &n), 0);
	assert_int_equal(n, 12 + 7 + 11 + 6 + 199);
	assert_memory_equal(out + n - 3, "678", 3);

	begin(1, 0, 1, 0, 0, 1); /* the longest of all */
	filled_name(255, 63, 'a');
	sbx_write_u32(&w, 0x00010001);
	opt(512, 0, "", 0);
	assert_int_equal(parse(&q), 0);
	assert_int_equal(sbx_dns_write_blocked(&q, long_text + 2, out, sizeof(out), &n), 0);
	assert_true(n <= SBX_DNS_UDP_DEFAULT);
}

static void test_answer_errors(void **state)
{
	struct sbx_dns_query q;
	uint8_t out[512];
	size_t n;

	(void)state;
	begin(0xabcd, 0x2810, 1, 0, 0, 0); /* opcode 5: only the header is used */
	assert_int_equal(parse(&q), SBX_DNS_E_NOTIMP);
	assert_int_equal(
		sbx_dns_write_answer(&q, SBX_DNS_NOTIMP, NULL, 0, 0, 512, out, sizeof(out), &n), 0);
	assert_int_equal(n, 12);
	assert_memory_equal(out, "\xab\xcd\xa8\x94\0\0\0\0\0\0\0\0", 12);

	begin(1, 0, 1, 0, 0, 1);
	question("a", SBX_DNS_TYPE_A);
	opt(512, 0x00018000, "", 0);
	assert_int_equal(parse(&q), SBX_DNS_E_BADVERS);
	assert_int_equal(
		sbx_dns_write_answer(&q, SBX_DNS_BADVERS, NULL, 0, 0, 512, out, sizeof(out), &n),
		0);
	assert_int_equal(n, 12 + 7 + 11);
	assert_memory_equal(out, "\0\1\x80\x80\0\1\0\0\0\0\0\1", 12);
	assert_memory_equal(out + 19, "\0\0\x29\4\xd0\1\0\x80\0\0\0", 11);
}

/* At every limit: it fits, what was sent parses, and TC says whether something is missing. */
static void test_answer_truncation(void **state)
{
	struct sbx_addr addrs[40];
	struct sbx_dns_query q;
	uint8_t out[1400];

	(void)state;
	for (size_t i = 0; i < 40; i++)
		addrs[i] = i % 2 ? addr6((uint8_t)i) : addr4((uint8_t)i);
	begin(5, 0x0100, 1, 0, 0, 1);
	question("name.example", SBX_DNS_TYPE_AAAA);
	opt(1232, 0, "", 0);
	assert_int_equal(parse(&q), 0);
	for (size_t limit = 0; limit <= sizeof(out); limit++) {
		size_t fixed = 12 + 18 + 11, n = 0;
		size_t want = limit < fixed ? 0 : (limit - fixed) / 28;
		int r = sbx_dns_write_answer(&q, SBX_DNS_NOERROR, addrs, 40, 60, limit, out,
					     sizeof(out), &n);

		assert_int_equal(r, limit < fixed ? -EMSGSIZE : 0);
		if (r)
			continue;
		want = want < 20 ? want : 20;
		assert_int_equal(n, fixed + 28 * want);
		assert_int_equal(out[7], want);
		assert_int_equal((out[2] & 2) != 0, want < 20);
	}
}

static void test_udp_limit(void **state)
{
	static const unsigned sizes[][2] = { { 0, 512 },     { 511, 512 },   { 512, 512 },
					     { 1000, 1000 }, { 1232, 1232 }, { 65535, 1232 } };
	struct sbx_dns_query q = make_query("a", SBX_DNS_TYPE_A);

	(void)state;
	assert_int_equal(sbx_dns_udp_limit(&q), 512);
	q.edns = true;
	for (size_t i = 0; i < SBX_N_ELEMENTS(sizes); i++) {
		q.edns_size = (uint16_t)sizes[i][0];
		assert_int_equal(sbx_dns_udp_limit(&q), sizes[i][1]);
	}
}

/* --- answers of a resolver --- */

static int parse_answer(const struct sbx_dns_query *q, struct sbx_dns_answer *a)
{
	SBX_AUTO_FREE uint8_t *copy = malloc(w.pos);

	assert_non_null(copy);
	assert_false(w.failed);
	memcpy(copy, buf, w.pos);
	return sbx_dns_parse_answer(sbx_span(copy, w.pos), q, 77, a);
}

static void test_round_trip(void **state)
{
	unsigned types[] = { SBX_DNS_TYPE_A, SBX_DNS_TYPE_AAAA };

	(void)state;
	for (size_t t = 0; t < 2; t++) {
		struct sbx_dns_query q = make_query("WWW.example.org", types[t]), again;
		struct sbx_addr addrs[3];
		struct sbx_dns_answer a;
		size_t n;

		for (uint8_t i = 0; i < 3; i++)
			addrs[i] = t ? addr6(i) : addr4(i);
		q.edns = q.edns_do = true;
		assert_int_equal(sbx_dns_write_query(&q, 77, buf, sizeof(buf), &n), 0);
		for (size_t cap = 0; cap < n; cap++)
			assert_int_equal(sbx_dns_write_query(&q, 77, buf, cap, &(size_t){ 0 }),
					 -EMSGSIZE);
		assert_int_equal(sbx_dns_write_query(&q, 77, buf, sizeof(buf), &n), 0);
		assert_int_equal(buf[2] << 8 | buf[3], 0x0100); /* RD and nothing else */
		assert_int_equal(parse_n(n, &again), 0);
		assert_int_equal(again.id, 77);
		assert_true(again.rd && again.edns && again.edns_do);
		assert_int_equal(again.edns_size, SBX_DNS_UDP_MAX);
		assert_memory_equal(again.question, q.question, q.n_question);

		assert_int_equal(sbx_dns_write_answer(&again, SBX_DNS_NOERROR, addrs, 3, 60, 1232,
						      buf, sizeof(buf), &w.pos),
				 0);
		assert_int_equal(parse_answer(&q, &a), 0);
		assert_int_equal(a.n_addrs, 3);
		assert_int_equal(a.ttl_s, 60);
		for (size_t i = 0; i < 3; i++)
			assert_true(sbx_addr_equal(&a.addrs[i], &addrs[i]));
	}
}

static void test_chain(void **state)
{
	struct sbx_dns_query q = make_query("www.example.org", SBX_DNS_TYPE_A);
	struct sbx_dns_answer a;
	size_t n;

	(void)state;
	begin(77, 0x8180, 1, 7, 0, 0);
	question("WWW.example.ORG", SBX_DNS_TYPE_A);
	a_record("edge.cdn.example", 300, 1);
	cname_record("mid.cdn.example", 20, "Edge.CDN.example");
	a_record("other.example", 1, 66); /* nobody asked */
	cname_record("www.EXAMPLE.org", 600, "mid.cdn.example");
	a_record("www.example.org", 1, 67); /* nor for this: the name is an alias */
	a_record("EDGE.cdn.example", 200, 2);
	cname_record("edge2.cdn.example", 20, "x");
	assert_int_equal(parse_answer(&q, &a), 0);
	assert_int_equal(a.n_cnames, 2);
	assert_string_equal(a.cnames[0], "mid.cdn.example");
	assert_string_equal(a.cnames[1], "edge.cdn.example");
	assert_int_equal(a.n_addrs, 2);
	assert_int_equal(a.addrs[0].b[3], 1);
	assert_int_equal(a.addrs[1].b[3], 2);
	assert_int_equal(a.ttl_s, 20);

	for (n = w.pos - 1; n > 0; n--) {
		int e = sbx_dns_parse_answer(sbx_span(buf, n), &q, 77, &a);

		assert_int_equal(e, n < 12 + 21 ? SBX_DNS_E_MISMATCH : SBX_DNS_E_FORMERR);
	}
}

static void test_compressed(void **state)
{
	struct sbx_dns_query q = make_query("www.example.org", SBX_DNS_TYPE_A);
	struct sbx_dns_answer a;
	size_t rdata, owner;

	(void)state;
	begin(77, 0x8180, 1, 2, 0, 0);
	question("www.example.org", SBX_DNS_TYPE_A);
	sbx_write_u16(&w, 0xc00c);
	sbx_write_bytes(&w, "\0\5\0\1\0\0\0\x0a\0\6", 10);
	rdata = w.pos;
	sbx_write_bytes(&w, "\3cdn\xc0\x10", 6); /* cdn.example.org */
	owner = w.pos;
	sbx_write_u16(&w, (uint16_t)(0xc000 | rdata));
	sbx_write_bytes(&w, "\0\1\0\1\0\0\0\x14\0\4\xc0\0\2\5", 14);
	assert_int_equal(parse_answer(&q, &a), 0);
	assert_string_equal(a.cnames[0], "cdn.example.org");
	assert_int_equal(a.n_addrs, 1);
	assert_int_equal(a.addrs[0].b[3], 5);
	assert_int_equal(a.ttl_s, 10);

	buf[owner + 1] = (uint8_t)owner; /* to itself */
	assert_int_equal(parse_answer(&q, &a), SBX_DNS_E_FORMERR);
	buf[owner + 1] = (uint8_t)(owner + 2); /* forwards */
	assert_int_equal(parse_answer(&q, &a), SBX_DNS_E_FORMERR);
	buf[owner + 1] = (uint8_t)rdata;
	buf[rdata + 5] = (uint8_t)rdata; /* a label, then back to it: cdn.cdn.cdn... */
	assert_int_equal(parse_answer(&q, &a), SBX_DNS_E_FORMERR);
	buf[rdata + 5] = 0x10;
	buf[rdata + 4] = 0xff; /* past the end */
	assert_int_equal(parse_answer(&q, &a), SBX_DNS_E_FORMERR);
}

/* Pieces of 64 bytes, each ending in a pointer to the one before: 255 bytes are a name. */
static void test_compressed_length(void **state)
{
	struct sbx_dns_query q = make_query("q", SBX_DNS_TYPE_A);
	struct sbx_dns_answer a;

	(void)state;
	for (unsigned n_last = 61; n_last <= 62; n_last++) {
		size_t at = 0;

		begin(77, 0x8180, 1, 4, 0, 0);
		question("q", SBX_DNS_TYPE_A);
		for (unsigned i = 0; i < 4; i++) {
			unsigned n = i < 3 ? 63 : n_last;
			size_t start = w.pos;

			sbx_write_u8(&w, (uint8_t)n);
			for (unsigned k = 0; k < n; k++)
				sbx_write_u8(&w, 'a');
			if (i)
				sbx_write_u16(&w, (uint16_t)(0xc000 | at));
			else
				sbx_write_u8(&w, 0);
			sbx_write_bytes(&w, "\0\x10\0\1\0\0\0\0\0\0", 10);
			at = start;
		}
		assert_int_equal(parse_answer(&q, &a), n_last == 61 ? 0 : SBX_DNS_E_FORMERR);
	}
}

/* Records of one answer each, made wrong in one place. */
static void test_records(void **state)
{
	struct sbx_dns_query q = make_query("q", SBX_DNS_TYPE_A);
	struct sbx_dns_answer a;
	size_t class, ttl, length;

	(void)state;
	begin(77, 0x8180, 1, 1, 0, 0);
	question("q", SBX_DNS_TYPE_A);
	class = w.pos + 3 + 2;
	ttl = class + 2;
	length = ttl + 4;
	a_record("q", 60, 1);
	sbx_write_u32(&w, 0);
	assert_int_equal(parse_answer(&q, &a), 0);
	assert_int_equal(a.n_addrs, 1);
	buf[ttl] = 0x80; /* RFC 2181 section 8 */
	assert_int_equal(parse_answer(&q, &a), 0);
	assert_int_equal(a.ttl_s, 0);
	buf[class + 1] = 3;
	assert_int_equal(parse_answer(&q, &a), 0);
	assert_int_equal(a.n_addrs, 0);
	for (uint8_t n = 3; n <= 5; n++) {
		buf[length + 1] = n;
		assert_int_equal(parse_answer(&q, &a), n == 4 ? 0 : SBX_DNS_E_FORMERR);
	}

	begin(77, 0x8180, 1, 1, 0, 0);
	question("q", SBX_DNS_TYPE_A);
	cname_record("q", 60, "abc");
	sbx_write_u32(&w, 0);
	for (uint8_t n = 4; n <= 6; n++) {
		buf[length + 1] = n;
		assert_int_equal(parse_answer(&q, &a), n == 5 ? 0 : SBX_DNS_E_FORMERR);
	}
}

static void test_answer_mismatch(void **state)
{
	struct sbx_dns_query q = make_query("www.example.org", SBX_DNS_TYPE_A);
	struct sbx_dns_answer a;
	uint8_t good[64];

	(void)state;
	begin(77, 0x8183, 1, 0, 0, 0);
	question("www.example.org", SBX_DNS_TYPE_A);
	memcpy(good, buf, w.pos);
	assert_int_equal(parse_answer(&q, &a), 0);
	assert_int_equal(a.rcode, SBX_DNS_NXDOMAIN);
	assert_int_equal(a.n_addrs, 0);
	assert_int_equal(a.ttl_s, 0);

	for (size_t i = 0; i < w.pos; i++) {
		bool is_free = i == 3 || (i > 5 && i < 12); /* rcode, RA; other counts */

		if (is_free)
			continue;
		memcpy(buf, good, w.pos);
		buf[i] ^= i == 2 ? 0x80
				 : 1; /* QR; elsewhere a bit that is never the case of a letter */
		assert_int_equal(parse_answer(&q, &a), SBX_DNS_E_MISMATCH);
	}

	begin(77, 0x8380, 1, 1, 0, 0); /* TC: nothing else is believed */
	question("www.example.org", SBX_DNS_TYPE_A);
	assert_int_equal(parse_answer(&q, &a), 0);
	assert_true(a.truncated);
}

static void test_answer_limits(void **state)
{
	struct sbx_dns_query q = make_query("n0", SBX_DNS_TYPE_A);
	struct sbx_dns_answer a;

	(void)state;
	for (unsigned n = SBX_DNS_CNAMES_MAX; n <= SBX_DNS_CNAMES_MAX + 1; n++) {
		begin(77, 0x8180, 1, n + 1, 0, 0);
		question("n0", SBX_DNS_TYPE_A);
		for (unsigned i = 0; i < n; i++) {
			char from[] = { 'n', (char)('0' + i), 0 },
			     to[] = { 'n', (char)('1' + i), 0 };

			cname_record(from, 60, to);
		}
		a_record((char[]){ 'n', (char)('0' + n), 0 }, 60, 1);
		assert_int_equal(parse_answer(&q, &a),
				 n <= SBX_DNS_CNAMES_MAX ? 0 : SBX_DNS_E_FORMERR);
	}
	assert_int_equal(a.n_addrs, 1);

	begin(77, 0x8180, 1, 2, 0, 0);
	question("n0", SBX_DNS_TYPE_A);
	cname_record("n0", 60, "n1");
	cname_record("n1", 60, "n0");
	assert_int_equal(parse_answer(&q, &a), SBX_DNS_E_FORMERR);

	for (unsigned n = SBX_DNS_RECORDS_MAX; n <= SBX_DNS_RECORDS_MAX + 1; n++) {
		begin(77, 0x8180, 1, n, 0, 0);
		question("n0", SBX_DNS_TYPE_A);
		for (unsigned i = 0; i < n; i++)
			a_record("n0", 60, (uint8_t)i);
		assert_int_equal(parse_answer(&q, &a),
				 n <= SBX_DNS_RECORDS_MAX ? 0 : SBX_DNS_E_FORMERR);
	}
	assert_int_equal(a.n_addrs, SBX_DNS_ADDRS_MAX);
	assert_int_equal(a.n_dropped, SBX_DNS_RECORDS_MAX - SBX_DNS_ADDRS_MAX);
}

/* --- framing --- */

static void test_tcp(void **state)
{
	uint8_t stream[64] = { 0, 20 }, prefix[2];
	struct sbx_span m;
	size_t n;

	(void)state;
	for (n = 0; n < 22; n++)
		assert_int_equal(sbx_dns_tcp_next(sbx_span(stream, n), 20, &m, &(size_t){ 0 }),
				 SBX_DNS_E_MORE);
	assert_int_equal(sbx_dns_tcp_next(sbx_span(stream, sizeof(stream)), 20, &m, &n), 0);
	assert_int_equal(n, 22);
	assert_int_equal(m.n, 20);
	assert_ptr_equal(m.p, stream + 2);
	assert_int_equal(sbx_dns_tcp_next(sbx_span(stream, 2), 19, &m, &n), SBX_DNS_E_DROP);
	stream[1] = 11;
	assert_int_equal(sbx_dns_tcp_next(sbx_span(stream, 2), 20, &m, &n), SBX_DNS_E_DROP);
	sbx_dns_tcp_prefix(0x1234, prefix);
	assert_memory_equal(prefix, "\x12\x34", 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_query),
		cmocka_unit_test(test_query_prefixes),
		cmocka_unit_test(test_query_header),
		cmocka_unit_test(test_query_names),
		cmocka_unit_test(test_query_limits),
		cmocka_unit_test(test_query_additional),
		cmocka_unit_test(test_answer_bytes),
		cmocka_unit_test(test_blocked),
		cmocka_unit_test(test_answer_errors),
		cmocka_unit_test(test_answer_truncation),
		cmocka_unit_test(test_udp_limit),
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_chain),
		cmocka_unit_test(test_compressed),
		cmocka_unit_test(test_compressed_length),
		cmocka_unit_test(test_records),
		cmocka_unit_test(test_answer_mismatch),
		cmocka_unit_test(test_answer_limits),
		cmocka_unit_test(test_tcp),
	};

	return cmocka_run_group_tests_name("dns", tests, NULL, NULL);
}
