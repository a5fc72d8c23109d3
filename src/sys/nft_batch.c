/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The ruleset as one netlink batch, built with libnftnl. The expressions are the ones that nft(8)
 * makes of the same text (tests/system/test_sysnet holds the kernel's listings of both against each
 * other); register 1 is the only one used.
 *
 * Memory: the buffer is sized for the worst rule before building, since libnftnl's builders do not
 * check bounds: RULE_BYTES is twice what SBX_NFT_ITEMS_MAX of the longest items take.
 */
#include "sys/nft_form.h"

#include <assert.h>
#include <errno.h>
#include <libmnl/libmnl.h>
#include <libnftnl/chain.h>
#include <libnftnl/common.h>
#include <libnftnl/expr.h>
#include <libnftnl/rule.h>
#include <libnftnl/table.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <net/if.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define RULE_BYTES    2048
#define MESSAGE_BYTES 512 /* begin, end, table, chain */

/* A rule under construction; `failed` is sticky so that callers check once. */
struct builder {
	struct nftnl_rule *rule;
	bool failed;
};

static void rule_freep(struct nftnl_rule **r)
{
	if (*r)
		nftnl_rule_free(*r);
}

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

static void add_meta(struct builder *b, uint32_t key)
{
	struct nftnl_expr *e = add_expr(b, "meta");

	if (!e)
		return;
	nftnl_expr_set_u32(e, NFTNL_EXPR_META_KEY, key);
	nftnl_expr_set_u32(e, NFTNL_EXPR_META_DREG, NFT_REG_1);
}

static void add_payload(struct builder *b, uint32_t base, uint32_t offset, uint32_t n)
{
	struct nftnl_expr *e = add_expr(b, "payload");

	if (!e)
		return;
	nftnl_expr_set_u32(e, NFTNL_EXPR_PAYLOAD_DREG, NFT_REG_1);
	nftnl_expr_set_u32(e, NFTNL_EXPR_PAYLOAD_BASE, base);
	nftnl_expr_set_u32(e, NFTNL_EXPR_PAYLOAD_OFFSET, offset);
	nftnl_expr_set_u32(e, NFTNL_EXPR_PAYLOAD_LEN, n);
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

static void add_iifname(struct builder *b, const char *name, bool negate)
{
	char padded[IFNAMSIZ] = { 0 };

	assert(strlen(name) < sizeof(padded));
	memcpy(padded, name, strlen(name));
	add_meta(b, NFT_META_IIFNAME);
	add_cmp(b, negate ? NFT_CMP_NEQ : NFT_CMP_EQ, padded, sizeof(padded));
}

/* A prefix of whole bytes is compared by loading only those, any other under a mask. */
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

static void add_dport(struct builder *b, uint16_t first, uint16_t last)
{
	uint16_t be_first = htons(first), be_last = htons(last);

	add_payload(b, NFT_PAYLOAD_TRANSPORT_HEADER, 2, sizeof(be_first));
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

static void add_log(struct builder *b, uint16_t group, uint32_t snaplen)
{
	struct nftnl_expr *e = add_expr(b, "log");

	if (!e)
		return;
	nftnl_expr_set_u16(e, NFTNL_EXPR_LOG_GROUP, group);
	nftnl_expr_set_u32(e, NFTNL_EXPR_LOG_SNAPLEN, snaplen);
}

static void add_reject(struct builder *b, uint32_t type, uint8_t code)
{
	struct nftnl_expr *e = add_expr(b, "reject");

	if (!e)
		return;
	nftnl_expr_set_u32(e, NFTNL_EXPR_REJECT_TYPE, type);
	nftnl_expr_set_u8(e, NFTNL_EXPR_REJECT_CODE, code);
}

static void add_item(struct builder *b, const struct sbx_nft_item *i)
{
	switch (i->kind) {
	case SBX_NFT_IIFNAME:
		add_iifname(b, i->u.name, i->negate);
		return;
	case SBX_NFT_DADDR:
		add_daddr(b, &i->u.cidr, i->negate);
		return;
	case SBX_NFT_L4PROTO:
		add_l4proto(b, i->u.port.proto);
		return;
	case SBX_NFT_DPORT:
		add_l4proto(b, i->u.port.proto);
		add_dport(b, i->u.port.first, i->u.port.last);
		return;
	case SBX_NFT_TPROXY:
		add_tproxy(b, i->u.tproxy.family, i->u.tproxy.port);
		return;
	case SBX_NFT_LOG:
		add_log(b, i->u.log.group, i->u.log.snaplen);
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
	case SBX_N_NFT_ITEM_KINDS:
		break;
	}
	assert(!"an item kind without expressions");
}

/* Where the next message goes, of at most @n_max bytes: zeroes, for libmnl leaves padding as it finds it.
 * (Zeroing the whole buffer would touch each of its pages, of which most stay unused.) */
static char *batch_tail(struct sbx_nft_batch *b, size_t n_max)
{
	return memset((char *)b->p + b->n, 0, n_max);
}

static void batch_advance(struct sbx_nft_batch *b, const struct nlmsghdr *nlh, size_t n_max)
{
	/* Past n_max the builder has overrun the buffer: our own bug, and memory is lost. */
	if (nlh->nlmsg_len > n_max)
		abort();
	b->n += NLMSG_ALIGN(nlh->nlmsg_len);
	b->next_seq++;
}

static int put_table(struct sbx_nft_batch *b)
{
	struct nftnl_table *t = nftnl_table_alloc();
	struct nlmsghdr *nlh;

	if (!t)
		return -ENOMEM;
	nftnl_table_set_u32(t, NFTNL_TABLE_FAMILY, NFPROTO_INET);
	nftnl_table_set_str(t, NFTNL_TABLE_NAME, SBX_NFT_TABLE);
	nlh = nftnl_nlmsg_build_hdr(batch_tail(b, MESSAGE_BYTES), NFT_MSG_NEWTABLE, NFPROTO_INET,
				    NLM_F_CREATE | NLM_F_EXCL, b->next_seq);
	nftnl_table_nlmsg_build_payload(nlh, t);
	nftnl_table_free(t);
	batch_advance(b, nlh, MESSAGE_BYTES);
	return 0;
}

static int put_chain(struct sbx_nft_batch *b, const struct sbx_nft_chain *chain)
{
	struct nftnl_chain *c = nftnl_chain_alloc();
	struct nlmsghdr *nlh;

	if (!c)
		return -ENOMEM;
	nftnl_chain_set_str(c, NFTNL_CHAIN_TABLE, SBX_NFT_TABLE);
	nftnl_chain_set_str(c, NFTNL_CHAIN_NAME, chain->name);
	nftnl_chain_set_str(c, NFTNL_CHAIN_TYPE, "filter");
	nftnl_chain_set_u32(c, NFTNL_CHAIN_HOOKNUM, chain->hook);
	nftnl_chain_set_s32(c, NFTNL_CHAIN_PRIO, chain->priority);
	nftnl_chain_set_u32(c, NFTNL_CHAIN_POLICY, chain->policy_drop ? NF_DROP : NF_ACCEPT);
	nlh = nftnl_nlmsg_build_hdr(batch_tail(b, MESSAGE_BYTES), NFT_MSG_NEWCHAIN, NFPROTO_INET,
				    NLM_F_CREATE | NLM_F_EXCL, b->next_seq);
	nftnl_chain_nlmsg_build_payload(nlh, c);
	nftnl_chain_free(c);
	batch_advance(b, nlh, MESSAGE_BYTES);
	return 0;
}

static int put_rule(struct sbx_nft_batch *b, const char *chain, const struct sbx_nft_rule *rule,
		    bool ack)
{
	SBX_CLEANUP(rule_freep) struct nftnl_rule *r = nftnl_rule_alloc();
	struct builder builder = { .rule = r };
	struct nlmsghdr *nlh;

	if (!r)
		return -ENOMEM;
	nftnl_rule_set_u32(r, NFTNL_RULE_FAMILY, NFPROTO_INET);
	if (nftnl_rule_set_str(r, NFTNL_RULE_TABLE, SBX_NFT_TABLE) < 0 ||
	    nftnl_rule_set_str(r, NFTNL_RULE_CHAIN, chain) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < rule->n_items; i++)
		add_item(&builder, &rule->items[i]);
	if (builder.failed)
		return -ENOMEM;
	nlh = nftnl_nlmsg_build_hdr(batch_tail(b, RULE_BYTES), NFT_MSG_NEWRULE, NFPROTO_INET,
				    NLM_F_CREATE | NLM_F_APPEND | (ack ? NLM_F_ACK : 0),
				    b->next_seq);
	nftnl_rule_nlmsg_build_payload(nlh, r);
	batch_advance(b, nlh, RULE_BYTES);
	return 0;
}

static int put_everything(struct sbx_nft_batch *b, const struct sbx_nft_ruleset *rs)
{
	int r;

	batch_advance(b, nftnl_batch_begin(batch_tail(b, MESSAGE_BYTES), b->next_seq),
		      MESSAGE_BYTES);
	r = put_table(b);
	for (size_t i = 0; r == 0 && i < rs->n_chains; i++)
		r = put_chain(b, &rs->chains[i]);
	for (size_t i = 0; i < rs->n_chains; i++) {
		const struct sbx_nft_chain *c = &rs->chains[i];

		for (size_t k = 0; r == 0 && k < c->n_rules; k++) {
			bool last = i + 1 == rs->n_chains && k + 1 == c->n_rules;

			b->ack_seq = b->next_seq;
			r = put_rule(b, c->name, &c->rules[k], last);
		}
	}
	if (r < 0)
		return r;
	batch_advance(b, nftnl_batch_end(batch_tail(b, MESSAGE_BYTES), b->next_seq), MESSAGE_BYTES);
	return 0;
}

int sbx_nft_batch_init(struct sbx_nft_batch *b, const struct sbx_nft_ruleset *rs,
		       uint32_t first_seq)
{
	size_t n_max = (3 + rs->n_chains) * MESSAGE_BYTES;
	int r;

	for (size_t i = 0; i < rs->n_chains; i++)
		n_max += rs->chains[i].n_rules * RULE_BYTES;
	*b = (struct sbx_nft_batch){ .first_seq = first_seq, .next_seq = first_seq };
	b->p = malloc(n_max);
	if (!b->p)
		return -ENOMEM;
	r = put_everything(b, rs);
	if (r < 0)
		sbx_nft_batch_fini(b);
	return r;
}

void sbx_nft_batch_fini(struct sbx_nft_batch *b)
{
	free(b->p);
	b->p = NULL;
	b->n = 0;
}

const struct nlmsghdr *sbx_nft_batch_message(const struct sbx_nft_batch *b, uint32_t seq)
{
	const uint8_t *p = b->p;

	for (size_t at = 0; at < b->n;) {
		const struct nlmsghdr *nlh = (const struct nlmsghdr *)(p + at);

		if (nlh->nlmsg_seq == seq)
			return nlh;
		at += NLMSG_ALIGN(nlh->nlmsg_len);
	}
	return NULL;
}
