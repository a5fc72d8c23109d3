/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The expressions of a rule, built with libnftnl: the ones that nft(8) makes of the same text
 * (tests/system/test_nft_equal.py holds the kernel's listings of both against each other). Register
 * 1 is the only one used, but for a concatenation, whose parts follow each other in registers of 4
 * bytes; each is named as the kernel names it when it lists the rule.
 */
#include "sys/nft/nft_batch.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <libnftnl/expr.h>
#include <libnftnl/rule.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <net/if.h>
#include <string.h>

#include "sys/net/net.h"

#define TCP_FLAGS_OFFSET 13 /* RFC 9293 section 3.1 */
#define TCP_SYN		 0x02
#define TCP_ACK		 0x10

/* A rule under construction; `failed` is sticky so that callers check once. */
struct builder {
	struct nftnl_rule *rule;
	bool failed;
};

static struct nftnl_expr *add_expr(struct builder *b, const char *name)
{
	struct nftnl_expr *e = b->failed ? NULL : nftnl_expr_alloc(name);

	if (e)
		nftnl_rule_add_expr(b->rule, e);
	else
		b->failed = true;
	return e;
}

static void set_data(struct builder *b, struct nftnl_expr *e, uint16_t attr, const void *p,
		     uint32_t n)
{
	if (nftnl_expr_set(e, attr, p, n) < 0)
		b->failed = true;
}

static void load_meta(struct builder *b, uint32_t key, uint32_t reg)
{
	struct nftnl_expr *e = add_expr(b, "meta");

	if (!e)
		return;
	nftnl_expr_set_u32(e, NFTNL_EXPR_META_KEY, key);
	nftnl_expr_set_u32(e, NFTNL_EXPR_META_DREG, reg);
}

static void add_meta(struct builder *b, uint32_t key)
{
	load_meta(b, key, NFT_REG_1);
}

static void load_payload(struct builder *b, uint32_t base, uint32_t offset, uint32_t n,
			 uint32_t reg)
{
	struct nftnl_expr *e = add_expr(b, "payload");

	if (!e)
		return;
	nftnl_expr_set_u32(e, NFTNL_EXPR_PAYLOAD_DREG, reg);
	nftnl_expr_set_u32(e, NFTNL_EXPR_PAYLOAD_BASE, base);
	nftnl_expr_set_u32(e, NFTNL_EXPR_PAYLOAD_OFFSET, offset);
	nftnl_expr_set_u32(e, NFTNL_EXPR_PAYLOAD_LEN, n);
}

static void add_payload(struct builder *b, uint32_t base, uint32_t offset, uint32_t n)
{
	load_payload(b, base, offset, n, NFT_REG_1);
}

static void add_cmp(struct builder *b, uint32_t op, const void *p, uint32_t n)
{
	struct nftnl_expr *e = add_expr(b, "cmp");

	if (!e)
		return;
	nftnl_expr_set_u32(e, NFTNL_EXPR_CMP_SREG, NFT_REG_1);
	nftnl_expr_set_u32(e, NFTNL_EXPR_CMP_OP, op);
	set_data(b, e, NFTNL_EXPR_CMP_DATA, p, n);
}

static void add_mask(struct builder *b, const uint8_t *mask, uint32_t n)
{
	static const uint8_t zero[16];
	struct nftnl_expr *e = add_expr(b, "bitwise");

	if (!e)
		return;
	nftnl_expr_set_u32(e, NFTNL_EXPR_BITWISE_SREG, NFT_REG_1);
	nftnl_expr_set_u32(e, NFTNL_EXPR_BITWISE_DREG, NFT_REG_1);
	nftnl_expr_set_u32(e, NFTNL_EXPR_BITWISE_OP, NFT_BITWISE_BOOL);
	nftnl_expr_set_u32(e, NFTNL_EXPR_BITWISE_LEN, n);
	set_data(b, e, NFTNL_EXPR_BITWISE_MASK, mask, n);
	set_data(b, e, NFTNL_EXPR_BITWISE_XOR, zero, n);
}

static void add_verdict(struct builder *b, uint32_t verdict)
{
	struct nftnl_expr *e = add_expr(b, "immediate");

	if (!e)
		return;
	nftnl_expr_set_u32(e, NFTNL_EXPR_IMM_DREG, NFT_REG_VERDICT);
	nftnl_expr_set_u32(e, NFTNL_EXPR_IMM_VERDICT, verdict);
}

static void add_lo(struct builder *b, uint32_t key, bool negate)
{
	uint32_t index = SBX_NET_LO_IFINDEX;

	add_meta(b, key);
	add_cmp(b, negate ? NFT_CMP_NEQ : NFT_CMP_EQ, &index, sizeof(index));
}

/* For a prefix of whole bytes load only those; for another compare under a mask. */
static void add_daddr(struct builder *b, const struct sbx_cidr *c, bool negate)
{
	bool v4 = c->addr.family == 4;
	uint8_t family = v4 ? NFPROTO_IPV4 : NFPROTO_IPV6, mask[16] = { 0 };
	uint32_t op = negate ? NFT_CMP_NEQ : NFT_CMP_EQ, n = v4 ? 4 : 16;

	add_meta(b, NFT_META_NFPROTO);
	if (c->prefix == 0) {
		add_cmp(b, op, &family, sizeof(family));
		return;
	}
	add_cmp(b, NFT_CMP_EQ, &family, sizeof(family));
	if (c->prefix % 8 == 0)
		n = c->prefix / 8;
	add_payload(b, NFT_PAYLOAD_NETWORK_HEADER, v4 ? 16 : 24, n);
	if (c->prefix % 8) {
		memset(mask, 0xff, c->prefix / 8);
		mask[c->prefix / 8] = 0xff << (8 - c->prefix % 8);
		add_mask(b, mask, n);
	}
	add_cmp(b, op, c->addr.b, n);
}

static void add_l4proto(struct builder *b, enum sbx_proto proto)
{
	uint8_t number = proto == SBX_PROTO_TCP ? IPPROTO_TCP : IPPROTO_UDP;

	add_meta(b, NFT_META_L4PROTO);
	add_cmp(b, NFT_CMP_EQ, &number, sizeof(number));
}

/* @offset 0: the source port; 2: the destination port. */
static void add_port(struct builder *b, uint32_t offset, uint16_t first, uint16_t last)
{
	uint16_t be_first = htons(first), be_last = htons(last);

	add_payload(b, NFT_PAYLOAD_TRANSPORT_HEADER, offset, sizeof(be_first));
	if (first == last) {
		add_cmp(b, NFT_CMP_EQ, &be_first, sizeof(be_first));
		return;
	}
	add_cmp(b, NFT_CMP_GTE, &be_first, sizeof(be_first));
	add_cmp(b, NFT_CMP_LTE, &be_last, sizeof(be_last));
}

static void add_tproxy(struct builder *b, uint8_t family, uint16_t port)
{
	struct nftnl_expr *e = add_expr(b, "immediate");
	uint16_t be_port = htons(port);

	if (!e)
		return;
	nftnl_expr_set_u32(e, NFTNL_EXPR_IMM_DREG, NFT_REG_1);
	set_data(b, e, NFTNL_EXPR_IMM_DATA, &be_port, sizeof(be_port));
	e = add_expr(b, "tproxy");
	if (!e)
		return;
	nftnl_expr_set_u32(e, NFTNL_EXPR_TPROXY_FAMILY, family == 4 ? NFPROTO_IPV4 : NFPROTO_IPV6);
	nftnl_expr_set_u32(e, NFTNL_EXPR_TPROXY_REG_PORT, NFT_REG_1);
}

static void add_family(struct builder *b, uint8_t family)
{
	uint8_t value = family == 4 ? NFPROTO_IPV4 : NFPROTO_IPV6;

	add_meta(b, NFT_META_NFPROTO);
	add_cmp(b, NFT_CMP_EQ, &value, sizeof(value));
}

static void add_lookup(struct builder *b, const char *set, bool verdicts)
{
	struct nftnl_expr *e = add_expr(b, "lookup");

	if (!e)
		return;
	nftnl_expr_set_u32(e, NFTNL_EXPR_LOOKUP_SREG, NFT_REG_1);
	if (verdicts)
		nftnl_expr_set_u32(e, NFTNL_EXPR_LOOKUP_DREG, NFT_REG_VERDICT);
	nftnl_expr_set_u32(e, NFTNL_EXPR_LOOKUP_FLAGS, 0); /* as the kernel lists it */
	if (nftnl_expr_set_str(e, NFTNL_EXPR_LOOKUP_SET, set) < 0)
		b->failed = true;
}

static void add_daddr_in(struct builder *b, uint8_t family, const char *set)
{
	add_family(b, family);
	add_payload(b, NFT_PAYLOAD_NETWORK_HEADER, family == 4 ? 16 : 24, family == 4 ? 4 : 16);
	add_lookup(b, set, false);
}

/* A packet that has no ports, or is cut before them, matches no pin: pins are of TCP and UDP. */
static void add_pin_in(struct builder *b, uint8_t family, const char *set)
{
	bool v4 = family == 4;

	add_family(b, family);
	add_payload(b, NFT_PAYLOAD_NETWORK_HEADER, v4 ? 16 : 24, v4 ? 4 : 16);
	load_meta(b, NFT_META_L4PROTO, v4 ? NFT_REG32_01 : NFT_REG_2);
	load_payload(b, NFT_PAYLOAD_TRANSPORT_HEADER, 2, 2, v4 ? NFT_REG32_02 : NFT_REG32_05);
	add_lookup(b, set, false);
}

static void add_tcp_opened(struct builder *b, bool opening_one)
{
	uint8_t mask = TCP_SYN | TCP_ACK, opening = TCP_SYN;

	add_payload(b, NFT_PAYLOAD_TRANSPORT_HEADER, TCP_FLAGS_OFFSET, sizeof(mask));
	add_mask(b, &mask, sizeof(mask));
	add_cmp(b, opening_one ? NFT_CMP_EQ : NFT_CMP_NEQ, &opening, sizeof(opening));
}

/* Looks only at the first header behind IPv6's own: putting another before a routing header
 * takes CAP_NET_RAW. */
static void add_ip6_routed(struct builder *b)
{
	uint8_t routing = IPPROTO_ROUTING;

	add_family(b, 6);
	add_payload(b, NFT_PAYLOAD_NETWORK_HEADER, 6, sizeof(routing));
	add_cmp(b, NFT_CMP_EQ, &routing, sizeof(routing));
}

static void add_cgroup_vmap(struct builder *b, uint32_t level, const char *map)
{
	struct nftnl_expr *e = add_expr(b, "socket");

	if (!e)
		return;
	nftnl_expr_set_u32(e, NFTNL_EXPR_SOCKET_KEY, NFT_SOCKET_CGROUPV2);
	nftnl_expr_set_u32(e, NFTNL_EXPR_SOCKET_DREG, NFT_REG_1);
	nftnl_expr_set_u32(e, NFTNL_EXPR_SOCKET_LEVEL, level);
	add_lookup(b, map, true);
}

static void add_log(struct builder *b, uint16_t group, uint32_t snaplen, const char *prefix)
{
	struct nftnl_expr *e = add_expr(b, "log");

	if (!e)
		return;
	nftnl_expr_set_u16(e, NFTNL_EXPR_LOG_GROUP, group);
	nftnl_expr_set_u32(e, NFTNL_EXPR_LOG_SNAPLEN, snaplen);
	if (prefix && nftnl_expr_set_str(e, NFTNL_EXPR_LOG_PREFIX, prefix) < 0)
		b->failed = true;
}

static void add_reject(struct builder *b, uint32_t type, uint8_t code)
{
	struct nftnl_expr *e = add_expr(b, "reject");

	if (!e)
		return;
	nftnl_expr_set_u32(e, NFTNL_EXPR_REJECT_TYPE, type);
	nftnl_expr_set_u8(e, NFTNL_EXPR_REJECT_CODE, code);
}

/* @verdict: NFT_GOTO or NFT_JUMP. */
static void add_goto(struct builder *b, int verdict, const char *chain)
{
	struct nftnl_expr *e = add_expr(b, "immediate");

	if (!e)
		return;
	nftnl_expr_set_u32(e, NFTNL_EXPR_IMM_DREG, NFT_REG_VERDICT);
	nftnl_expr_set_u32(e, NFTNL_EXPR_IMM_VERDICT, (uint32_t)verdict);
	if (nftnl_expr_set_str(e, NFTNL_EXPR_IMM_CHAIN, chain) < 0)
		b->failed = true;
}

static void add_item(struct builder *b, const struct sbx_nft_item *i)
{
	switch (i->kind) {
	case SBX_NFT_IIF_LO:
		add_lo(b, NFT_META_IIF, i->negate);
		return;
	case SBX_NFT_OIF_LO:
		add_lo(b, NFT_META_OIF, i->negate);
		return;
	case SBX_NFT_DADDR:
		add_daddr(b, &i->u.cidr, i->negate);
		return;
	case SBX_NFT_L4PROTO:
		add_l4proto(b, i->u.port.proto);
		return;
	case SBX_NFT_DPORT:
		add_l4proto(b, i->u.port.proto);
		add_port(b, 2, i->u.port.first, i->u.port.last);
		return;
	case SBX_NFT_SPORT:
		add_l4proto(b, i->u.port.proto);
		add_port(b, 0, i->u.port.first, i->u.port.last);
		return;
	case SBX_NFT_TCP_OPENED:
		add_tcp_opened(b, i->negate);
		return;
	case SBX_NFT_DADDR_IN:
		add_daddr_in(b, i->u.set.family, i->u.set.name);
		return;
	case SBX_NFT_PIN_IN:
		add_pin_in(b, i->u.set.family, i->u.set.name);
		return;
	case SBX_NFT_IP6_ROUTED:
		add_ip6_routed(b);
		return;
	case SBX_NFT_CGROUP_VMAP:
		add_cgroup_vmap(b, i->u.cgroup.level, i->u.cgroup.map);
		return;
	case SBX_NFT_TPROXY:
		add_tproxy(b, i->u.tproxy.family, i->u.tproxy.port);
		return;
	case SBX_NFT_LOG:
		add_log(b, i->u.log.group, i->u.log.snaplen, i->u.log.prefix);
		return;
	case SBX_NFT_REJECT_TCP_RESET:
		add_reject(b, NFT_REJECT_TCP_RST, 0);
		return;
	case SBX_NFT_REJECT_ADMIN:
		add_reject(b, NFT_REJECT_ICMPX_UNREACH, NFT_REJECT_ICMPX_ADMIN_PROHIBITED);
		return;
	case SBX_NFT_ACCEPT:
		add_verdict(b, NF_ACCEPT);
		return;
	case SBX_NFT_DROP:
		add_verdict(b, NF_DROP);
		return;
	case SBX_NFT_GOTO:
		add_goto(b, NFT_GOTO, i->u.name);
		return;
	case SBX_NFT_JUMP:
		add_goto(b, NFT_JUMP, i->u.name);
		return;
	case SBX_NFT_RETURN:
		add_verdict(b, (uint32_t)NFT_RETURN);
		return;
	case SBX_N_NFT_ITEM_KINDS:
		break;
	}
	assert(!"an item kind without expressions");
}

int sbx_nft_rule_exprs(struct nftnl_rule *r, const struct sbx_nft_rule *rule)
{
	struct builder b = { .rule = r };

	for (size_t i = 0; i < rule->n_items; i++)
		add_item(&b, &rule->items[i]);
	return b.failed ? -ENOMEM : 0;
}
