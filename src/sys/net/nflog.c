/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reads what the firewall refused: from one datagram of an nfnetlink_log socket to the address,
 * port and protocol of each packet in it. Pure.
 *
 * The kernel makes the netlink framing, which is checked all the same. The sandbox writes the
 * packet, which is cut to the copy range and may end anywhere. Fields that are cut off or malformed
 * are zero: a refusal is an event however odd the packet was. A datagram with wrong framing is
 * -EBADMSG, after the callback was called for the packets before.
 *
 * Netlink is in host byte order; its NFULA_* numbers and the packet are in network byte order.
 */
#include <assert.h>
#include <errno.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_log.h>
#include <netinet/in.h>

#include "sys/net/net.h"
#include "sys/net/nlmsg.h"

#define EXT_HEADERS_MAX 8 /* IPv6 extension headers walked before giving up on the ports */

static void set_proto(struct sbx_nflog_packet *p, uint8_t l4proto)
{
	p->l4proto = l4proto;
	if (l4proto == IPPROTO_TCP)
		p->proto = SBX_PROTO_TCP;
	else if (l4proto == IPPROTO_UDP)
		p->proto = SBX_PROTO_UDP;
	else if (l4proto == IPPROTO_ICMP || l4proto == IPPROTO_ICMPV6)
		p->proto = SBX_PROTO_ICMP;
	else
		p->proto = SBX_PROTO_OTHER;
}

static bool has_ports(uint8_t l4proto)
{
	return l4proto == IPPROTO_TCP || l4proto == IPPROTO_UDP || l4proto == IPPROTO_UDPLITE ||
	       l4proto == IPPROTO_SCTP || l4proto == IPPROTO_DCCP;
}

static void read_ports(struct sbx_reader *r, struct sbx_nflog_packet *p)
{
	uint16_t sport, dport;

	if (!has_ports(p->l4proto))
		return;
	sport = sbx_read_u16(r);
	dport = sbx_read_u16(r);
	if (r->failed)
		return;
	p->sport = sport;
	p->dport = dport;
}

static void read_addr(struct sbx_reader *r, uint8_t family, struct sbx_addr *a)
{
	struct sbx_span bytes = sbx_read_bytes(r, family == 4 ? 4 : 16);

	if (r->failed)
		return;
	a->family = family;
	assert(bytes.n <= sizeof(a->b));
	memcpy(a->b, bytes.p, bytes.n);
}

/* RFC 791 section 3.1. */
static void parse_ipv4(struct sbx_span in, struct sbx_nflog_packet *p)
{
	struct sbx_reader r = sbx_reader(in);
	uint8_t ihl = sbx_read_u8(&r) & 0x0f, l4proto;
	uint16_t fragment;

	sbx_read_bytes(&r, 5); /* tos, total length, id */
	fragment = sbx_read_u16(&r) & 0x1fff;
	sbx_read_u8(&r); /* ttl */
	l4proto = sbx_read_u8(&r);
	sbx_read_u16(&r); /* checksum */
	if (r.failed)
		return;
	set_proto(p, l4proto);
	read_addr(&r, 4, &p->src);
	read_addr(&r, 4, &p->dst);
	if (r.failed || fragment != 0 || ihl < 5)
		return;
	sbx_read_bytes(&r, (ihl - 5) * 4);
	read_ports(&r, p);
}

/* RFC 8200 section 4: the chain of extension headers up to one that is none of them. */
static void parse_ipv6(struct sbx_span in, struct sbx_nflog_packet *p)
{
	struct sbx_reader r = sbx_reader(in);
	uint8_t next;

	sbx_read_bytes(&r, 6); /* version, class, label, length */
	next = sbx_read_u8(&r);
	sbx_read_u8(&r); /* hop limit */
	if (r.failed)
		return;
	set_proto(p, next);
	read_addr(&r, 6, &p->src);
	read_addr(&r, 6, &p->dst);
	for (int i = 0; i < EXT_HEADERS_MAX && !r.failed; i++) {
		uint8_t kind = next, length;

		set_proto(p, kind);
		if (kind != IPPROTO_HOPOPTS && kind != IPPROTO_ROUTING && kind != IPPROTO_DSTOPTS &&
		    kind != IPPROTO_FRAGMENT && kind != IPPROTO_AH) {
			read_ports(&r, p);
			return;
		}
		next = sbx_read_u8(&r);
		length = sbx_read_u8(&r);
		if (kind == IPPROTO_FRAGMENT) {
			if (sbx_read_u16(&r) & 0xfff8) {
				set_proto(p, next);
				return;
			}
			sbx_read_bytes(&r, 4);
		} else if (kind == IPPROTO_AH) {
			sbx_read_bytes(&r, (length + 2u) * 4 - 2);
		} else {
			sbx_read_bytes(&r, (length + 1u) * 8 - 2);
		}
	}
}

/* The kernel sends one payload per packet. A second one replaces the first, so that all fields
 * are of one payload. */
static void parse_payload(struct sbx_span in, struct sbx_nflog_packet *p)
{
	*p = (struct sbx_nflog_packet){ .proto = SBX_PROTO_OTHER,
					.seq = p->seq,
					.has_seq = p->has_seq };
	if (in.n == 0)
		return;
	if (in.p[0] >> 4 == 4)
		parse_ipv4(in, p);
	else if (in.p[0] >> 4 == 6)
		parse_ipv6(in, p);
}

static int parse_packet(struct sbx_span attrs, struct sbx_nflog_packet *ret_p)
{
	struct sbx_nflog_packet p = { .proto = SBX_PROTO_OTHER };
	struct nlattr header;
	struct sbx_span value;
	bool bad = false;

	while (sbx_nlattr_next(&attrs, &header, &value, &bad)) {
		struct sbx_reader r = sbx_reader(value);

		if ((header.nla_type & NLA_TYPE_MASK) == NFULA_PAYLOAD) {
			parse_payload(value, &p);
		} else if ((header.nla_type & NLA_TYPE_MASK) == NFULA_SEQ) {
			p.seq = sbx_read_u32(&r);
			p.has_seq = !r.failed;
		}
	}
	if (bad)
		return -EBADMSG;
	*ret_p = p;
	return 0;
}

int sbx_nflog_parse(struct sbx_span datagram,
		    void (*cb)(void *userdata, const struct sbx_nflog_packet *), void *userdata)
{
	struct nlmsghdr header;
	struct sbx_span body;
	bool bad = false;

	while (sbx_nlmsg_next(&datagram, &header, &body, &bad)) {
		struct sbx_nflog_packet p;
		int r;

		if (header.nlmsg_type != (NFNL_SUBSYS_ULOG << 8 | NFULNL_MSG_PACKET))
			continue; /* NLMSG_DONE after several packets, NLMSG_NOOP */
		if (body.n < sizeof(struct nfgenmsg))
			return -EBADMSG;
		r = parse_packet(sbx_span(body.p + sizeof(struct nfgenmsg),
					  body.n - sizeof(struct nfgenmsg)),
				 &p);
		if (r < 0)
			return r;
		cb(userdata, &p);
	}
	return bad ? -EBADMSG : 0;
}

uint32_t sbx_nflog_lost(uint32_t *next_seq, const struct sbx_nflog_packet *p)
{
	uint32_t lost;

	if (!p->has_seq)
		return 0;
	lost = p->seq - *next_seq; /* modulo 2^32, as the kernel counts */
	*next_seq = p->seq + 1;
	return lost;
}
