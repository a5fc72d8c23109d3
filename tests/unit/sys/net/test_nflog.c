/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reading NFLOG datagrams: real ones, cut anywhere, odd packets, the accounts of lost ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_log.h>
#include <linux/netlink.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "sys/net/net.h"

#define PACKETS_MAX 8

struct got {
	size_t n;
	struct sbx_nflog_packet v[PACKETS_MAX];
};

static void keep(void *userdata, const struct sbx_nflog_packet *p)
{
	struct got *g = userdata;

	assert_true(g->n < PACKETS_MAX);
	g->v[g->n++] = *p;
}

/* The datagram under construction. Netlink lengths and types are in host order. */
struct maker {
	uint8_t p[4096];
	size_t n, message;
};

static void put(struct maker *m, const void *p, size_t n)
{
	assert_true(m->n + n + 4 <= sizeof(m->p));
	memcpy(m->p + m->n, p, n);
	m->n += n;
}

static void pad(struct maker *m)
{
	while (m->n % 4)
		m->p[m->n++] = 0;
}

static void begin_message(struct maker *m, uint16_t type)
{
	struct nlmsghdr h = { .nlmsg_type = type };

	m->message = m->n;
	put(m, &h, sizeof(h));
}

static void end_message(struct maker *m)
{
	uint32_t n = m->n - m->message;

	memcpy(m->p + m->message, &n, sizeof(n));
}

static void put_attr(struct maker *m, uint16_t type, const void *p, size_t n)
{
	struct nlattr a = { .nla_len = sizeof(a) + n, .nla_type = type };

	put(m, &a, sizeof(a));
	put(m, p, n);
	pad(m);
}

static void put_packet(struct maker *m, uint32_t seq, const void *ip, size_t n_ip)
{
	struct nfgenmsg g = { .nfgen_family = 1 };
	struct nfulnl_msg_packet_hdr h = { .hw_protocol = htons(0x0800), .hook = 3 };
	uint32_t be_seq = htonl(seq);

	begin_message(m, NFNL_SUBSYS_ULOG << 8 | NFULNL_MSG_PACKET);
	put(m, &g, sizeof(g));
	put_attr(m, NFULA_PACKET_HDR, &h, sizeof(h));
	put_attr(m, NFULA_PREFIX, "", 1);
	put_attr(m, NFULA_PAYLOAD, ip, n_ip);
	put_attr(m, NFULA_SEQ, &be_seq, sizeof(be_seq));
	end_message(m);
}

static const uint8_t tcp4[] = { 0x45, 0, 0,   40, 0,   1, 0x40, 0,    64,   6,	  0, 0, 100, 64,
				0,    1, 203, 0,  113, 9, 0x9c, 0x40, 0x01, 0xbb, 0, 0, 0,   0 };
static const uint8_t udp6[] = { 0x60, 0, 0, 0, 0, 8, 17, 64, 0xfd, 0,	 0,    0x5b, 0, 0, 0, 0,
				0,    0, 0, 0, 0, 0, 0,	 1,  0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0,
				0,    0, 0, 0, 0, 0, 0,	 9,  0x9c, 0x41, 0x14, 0xe9, 0, 8, 0, 0 };

static int parse(const void *p, size_t n, struct got *g)
{
	*g = (struct got){ 0 };
	return sbx_nflog_parse(sbx_span(p, n), keep, g);
}

/* One packet as the payload of a datagram. */
static struct sbx_nflog_packet parse_ip(const void *ip, size_t n)
{
	struct maker m = { .n = 0 };
	struct got g;

	put_packet(&m, 0, ip, n);
	assert_int_equal(parse(m.p, m.n, &g), 0);
	assert_int_equal(g.n, 1);
	return g.v[0];
}

static void assert_addr(const struct sbx_addr *a, const char *text)
{
	char buf[SBX_ADDR_STR_MAX];

	assert_string_equal(sbx_addr_format(a, buf, sizeof(buf)), text);
}

static void test_packets(void **state)
{
	struct maker m = { .n = 0 };
	struct got g;

	(void)state;
	put_packet(&m, 7, tcp4, sizeof(tcp4));
	put_packet(&m, 8, udp6, sizeof(udp6));
	begin_message(&m, NLMSG_DONE);
	end_message(&m);
	assert_int_equal(parse(m.p, m.n, &g), 0);
	assert_int_equal(g.n, 2);
	assert_addr(&g.v[0].src, "100.64.0.1");
	assert_addr(&g.v[0].dst, "203.0.113.9");
	assert_int_equal(g.v[0].proto, SBX_PROTO_TCP);
	assert_int_equal(g.v[0].l4proto, 6);
	assert_int_equal(g.v[0].sport, 40000);
	assert_int_equal(g.v[0].dport, 443);
	assert_true(g.v[0].has_seq);
	assert_int_equal(g.v[0].seq, 7);
	assert_addr(&g.v[1].src, "fd00:5b::1");
	assert_addr(&g.v[1].dst, "2001:db8::9");
	assert_int_equal(g.v[1].proto, SBX_PROTO_UDP);
	assert_int_equal(g.v[1].sport, 40001);
	assert_int_equal(g.v[1].dport, 5353);
	assert_int_equal(g.v[1].seq, 8);
	assert_int_equal(parse(m.p, 0, &g), 0);
	assert_int_equal(g.n, 0);
}

/* The kernel does not do that: two payloads in one packet. The last one is reported, nothing of the
 * other. */
static void test_two_payloads(void **state)
{
	static const uint8_t icmp6[] = { 0x60, 0, 0, 0, 0, 0, 58, 64, 0xfd, 0, 0 };
	struct maker m = { .n = 0 };
	struct got g;

	(void)state;
	put_packet(&m, 7, tcp4, sizeof(tcp4));
	put_attr(&m, NFULA_PAYLOAD, icmp6, sizeof(icmp6));
	end_message(&m);
	assert_int_equal(parse(m.p, m.n, &g), 0);
	assert_int_equal(g.n, 1);
	assert_int_equal(g.v[0].proto, SBX_PROTO_ICMP);
	assert_int_equal(g.v[0].src.family, 0);
	assert_int_equal(g.v[0].dst.family, 0);
	assert_int_equal(g.v[0].sport, 0);
	assert_int_equal(g.v[0].dport, 0);
	assert_true(g.v[0].has_seq);
	assert_int_equal(g.v[0].seq, 7);
}

/* A datagram cut anywhere is refused, or is one of the whole messages before the cut. The copy
 * has the exact size, so that sanitizers and valgrind see a read past its end. */
static void test_every_prefix(void **state)
{
	struct maker m = { .n = 0 };
	size_t first;

	(void)state;
	put_packet(&m, 7, tcp4, sizeof(tcp4));
	first = m.n;
	put_packet(&m, 8, udp6, sizeof(udp6));
	for (size_t n = 0; n <= m.n; n++) {
		SBX_AUTO_FREE uint8_t *copy = malloc(n ? n : 1);
		struct got g;
		int r;

		assert_non_null(copy);
		memcpy(copy, m.p, n);
		r = parse(copy, n, &g);
		assert_int_equal(r, n == 0 || n == first || n == m.n ? 0 : -EBADMSG);
		assert_int_equal(g.n, n == m.n ? 2 : n >= first ? 1 : 0);
	}
}

/* A packet cut anywhere is still an event: with its addresses from the end of the header on, with
 * ports from four bytes later. */
static void test_every_copy_range(void **state)
{
	(void)state;
	for (size_t n = 0; n <= sizeof(tcp4); n++) {
		struct sbx_nflog_packet p = parse_ip(tcp4, n);

		assert_int_equal(p.proto, n >= 12 ? SBX_PROTO_TCP : SBX_PROTO_OTHER);
		assert_int_equal(p.dst.family, n >= 20 ? 4 : 0);
		assert_int_equal(p.dport, n >= 24 ? 443 : 0);
	}
	for (size_t n = 0; n <= sizeof(udp6); n++) {
		struct sbx_nflog_packet p = parse_ip(udp6, n);

		assert_int_equal(p.proto, n >= 8 ? SBX_PROTO_UDP : SBX_PROTO_OTHER);
		assert_int_equal(p.dst.family, n >= 40 ? 6 : 0);
		assert_int_equal(p.dport, n >= 44 ? 5353 : 0);
	}
}

static void test_ipv4_oddities(void **state)
{
	uint8_t ip[64] = { 0 };
	struct sbx_nflog_packet p;

	(void)state;
	memcpy(ip, tcp4, sizeof(tcp4));
	ip[7] = 1; /* a later fragment: what follows are no ports */
	p = parse_ip(ip, sizeof(ip));
	assert_int_equal(p.proto, SBX_PROTO_TCP);
	assert_int_equal(p.dport, 0);
	assert_addr(&p.dst, "203.0.113.9");
	ip[7] = 0;
	ip[0] = 0x46; /* one word of options before the ports */
	memcpy(ip + 24, "\x00\x01\x00\x02", 4);
	p = parse_ip(ip, sizeof(ip));
	assert_int_equal(p.sport, 1);
	assert_int_equal(p.dport, 2);
	ip[0] = 0x44; /* a header shorter than a header */
	assert_int_equal(parse_ip(ip, sizeof(ip)).dport, 0);
	ip[0] = 0x4f; /* more options than there are bytes */
	assert_int_equal(parse_ip(ip, 40).dport, 0);
	ip[0] = 0x45;
	ip[9] = 1; /* ICMP has no ports */
	p = parse_ip(ip, sizeof(ip));
	assert_int_equal(p.proto, SBX_PROTO_ICMP);
	assert_int_equal(p.dport, 0);
	ip[9] = 132; /* SCTP has */
	p = parse_ip(ip, sizeof(ip));
	assert_int_equal(p.proto, SBX_PROTO_OTHER);
	assert_int_equal(p.l4proto, 132);
	assert_int_equal(p.dport, 443);
	ip[0] = 0x75; /* neither version */
	p = parse_ip(ip, sizeof(ip));
	assert_int_equal(p.dst.family, 0);
	assert_int_equal(p.proto, SBX_PROTO_OTHER);
}

static void test_ipv6_extensions(void **state)
{
	uint8_t ip[256] = { 0 };
	struct sbx_nflog_packet p;

	(void)state;
	memcpy(ip, udp6, 40);
	ip[6] = 0;   /* hop-by-hop, 8 bytes */
	ip[40] = 60; /* then destination options, 16 bytes */
	ip[48] = 44; /* then a fragment header */
	ip[49] = 1;
	ip[64] = 51; /* then authentication, 16 bytes */
	ip[72] = 6;  /* then TCP */
	ip[73] = 2;
	memcpy(ip + 88, "\x00\x01\x00\x02", 4);
	p = parse_ip(ip, sizeof(ip));
	assert_int_equal(p.l4proto, 6);
	assert_int_equal(p.proto, SBX_PROTO_TCP);
	assert_int_equal(p.sport, 1);
	assert_int_equal(p.dport, 2);
	ip[67] = 8; /* a later fragment */
	p = parse_ip(ip, sizeof(ip));
	assert_int_equal(p.l4proto, 51);
	assert_int_equal(p.dport, 0);
	/* A chain that never ends is left after some headers. */
	memset(ip + 40, 0, sizeof(ip) - 40);
	p = parse_ip(ip, sizeof(ip));
	assert_int_equal(p.l4proto, 0);
	assert_int_equal(p.dport, 0);
	assert_addr(&p.dst, "2001:db8::9");
	ip[6] = 58;
	assert_int_equal(parse_ip(ip, sizeof(ip)).proto, SBX_PROTO_ICMP);
	ip[6] = 59; /* no next header */
	assert_int_equal(parse_ip(ip, sizeof(ip)).proto, SBX_PROTO_OTHER);
}

static void test_framing(void **state)
{
	struct maker m = { .n = 0 };
	struct got g;
	uint32_t length;

	(void)state;
	/* A message type that is not ours is passed over. */
	begin_message(&m, NFNL_SUBSYS_ULOG << 8 | NFULNL_MSG_CONFIG);
	put(&m, "junk", 4);
	end_message(&m);
	put_packet(&m, 1, tcp4, sizeof(tcp4));
	assert_int_equal(parse(m.p, m.n, &g), 0);
	assert_int_equal(g.n, 1);
	/* A packet message without the nfnetlink header. */
	m.n = 0;
	begin_message(&m, NFNL_SUBSYS_ULOG << 8 | NFULNL_MSG_PACKET);
	end_message(&m);
	assert_int_equal(parse(m.p, m.n, &g), -EBADMSG);
	/* Neither payload nor number: an event all the same. */
	m.n = 0;
	begin_message(&m, NFNL_SUBSYS_ULOG << 8 | NFULNL_MSG_PACKET);
	put(&m, "\0\0\0\0", 4);
	end_message(&m);
	assert_int_equal(parse(m.p, m.n, &g), 0);
	assert_int_equal(g.n, 1);
	assert_false(g.v[0].has_seq);
	assert_int_equal(g.v[0].dst.family, 0);
	/* Impossible lengths, of the message and of an attribute. */
	m.n = 0;
	put_packet(&m, 1, tcp4, sizeof(tcp4));
	for (length = 0; length < 16; length++) {
		memcpy(m.p, &length, sizeof(length));
		assert_int_equal(parse(m.p, m.n, &g), -EBADMSG);
	}
	for (length = 0x7fffffff; length >= 0x7fffffff; length += 0x40000000) {
		memcpy(m.p, &length, sizeof(length));
		assert_int_equal(parse(m.p, m.n, &g), -EBADMSG);
	}
	m.n = 0;
	put_packet(&m, 1, tcp4, sizeof(tcp4));
	for (uint16_t n = 0; n < 4; n++) {
		memcpy(m.p + 20, &n, sizeof(n));
		assert_int_equal(parse(m.p, m.n, &g), -EBADMSG);
		assert_int_equal(g.n, 0);
	}
}

static uint32_t lost(uint32_t *next, uint32_t seq)
{
	struct sbx_nflog_packet p = { .has_seq = true, .seq = seq };

	return sbx_nflog_lost(next, &p);
}

static void test_lost(void **state)
{
	struct sbx_nflog_packet without = { .seq = 5 };
	uint32_t next = 0;

	(void)state;
	assert_int_equal(lost(&next, 0), 0);
	assert_int_equal(lost(&next, 1), 0);
	assert_int_equal(lost(&next, 5), 3);
	assert_int_equal(sbx_nflog_lost(&next, &without), 0);
	assert_int_equal(lost(&next, 6), 0);
	next = 0;
	assert_int_equal(lost(&next, 10), 10); /* the first ones */
	next = UINT32_MAX;
	assert_int_equal(lost(&next, UINT32_MAX), 0);
	assert_int_equal(lost(&next, 0), 0);
	assert_int_equal(lost(&next, 2), 1);
	next = UINT32_MAX - 1;
	assert_int_equal(lost(&next, 1), 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_packets),
		cmocka_unit_test(test_two_payloads),
		cmocka_unit_test(test_every_prefix),
		cmocka_unit_test(test_every_copy_range),
		cmocka_unit_test(test_ipv4_oddities),
		cmocka_unit_test(test_ipv6_extensions),
		cmocka_unit_test(test_framing),
		cmocka_unit_test(test_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
