/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A ruleset as one netlink batch, built with libnftnl (expressions: nft_batch_expr.c) and, for
 * sets, our own framing.
 *
 * Memory: the buffer is sized for the worst rule before building, since libnftnl's builders do not
 * check bounds: RULE_BYTES is twice what SBX_NFT_ITEMS_MAX of the longest items take.
 */
#include "sys/nft/nft_batch.h"

#include <endian.h>
#include <errno.h>
#include <libmnl/libmnl.h>
#include <libnftnl/chain.h>
#include <libnftnl/common.h>
#include <libnftnl/rule.h>
#include <libnftnl/table.h>
#include <libnftnl/udata.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "sys/net/nlmsg.h"

#define RULE_BYTES    2048
#define MESSAGE_BYTES SBX_NFT_MESSAGE_BYTES /* begin, end, table, chain, set */

static void rule_freep(struct nftnl_rule **r)
{
	if (*r)
		nftnl_rule_free(*r);
}

/* Room for the next message, of at most @n_max bytes, set to zero: libmnl does not clear
 * padding. (Zeroing the whole buffer at once would touch every page, and most stay unused.) */
static char *batch_tail(struct sbx_nft_batch *b, size_t n_max)
{
	if (n_max > b->n_max - b->n)
		abort();
	return memset((char *)b->p + b->n, 0, n_max);
}

static void batch_advance(struct sbx_nft_batch *b, const struct nlmsghdr *nlh, size_t n_max)
{
	/* Past n_max the builder overran the buffer: our own bug. */
	if (nlh->nlmsg_len > n_max)
		abort();
	b->n += NLMSG_ALIGN(nlh->nlmsg_len);
	b->ack_seq = b->next_seq++;
}

static int batch_begin(struct sbx_nft_batch *b, size_t n_max, uint32_t generation,
		       uint32_t first_seq)
{
	struct nlmsghdr *nlh;

	*b = (struct sbx_nft_batch){ .first_seq = first_seq, .next_seq = first_seq };
	b->n_max = n_max + 2 * MESSAGE_BYTES;
	b->p = malloc(b->n_max);
	if (!b->p)
		return -ENOMEM;
	nlh = nftnl_batch_begin(batch_tail(b, MESSAGE_BYTES), b->next_seq);
	if (generation)
		mnl_attr_put_u32(nlh, NFNL_BATCH_GENID, htonl(generation));
	batch_advance(b, nlh, MESSAGE_BYTES);
	return 0;
}

int sbx_nft_batch_begin(struct sbx_nft_batch *b, size_t n_max, uint32_t first_seq)
{
	return batch_begin(b, n_max, 0, first_seq);
}

static struct nlmsghdr *find_message(const struct sbx_nft_batch *b, uint32_t seq)
{
	uint8_t *p = b->p;

	for (size_t at = 0; at < b->n;) {
		struct nlmsghdr *nlh = (struct nlmsghdr *)(p + at);

		if (nlh->nlmsg_seq == seq)
			return nlh;
		at += NLMSG_ALIGN(nlh->nlmsg_len);
	}
	return NULL;
}

void sbx_nft_batch_end(struct sbx_nft_batch *b)
{
	uint32_t acknowledged = b->ack_seq;
	struct nlmsghdr *last = find_message(b, acknowledged);

	last->nlmsg_flags |= NLM_F_ACK;
	batch_advance(b, nftnl_batch_end(batch_tail(b, MESSAGE_BYTES), b->next_seq), MESSAGE_BYTES);
	b->ack_seq = acknowledged;
}

/* --- sets, their elements, and deleting: by our own framing --- */

/* A message under construction, by our own framing. */
struct message {
	struct sbx_writer w;
	size_t begin, n_max;
};

static struct message message_begin(struct sbx_nft_batch *b, uint16_t type, uint16_t flags,
				    size_t n_max)
{
	const struct nlmsghdr nlh = {
		.nlmsg_type = (uint16_t)(NFNL_SUBSYS_NFTABLES << 8 | type),
		.nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags),
		.nlmsg_seq = b->next_seq,
	};
	const struct nfgenmsg nfg = { .nfgen_family = NFPROTO_INET, .version = NFNETLINK_V0 };
	struct message m = { .n_max = n_max };

	m.w = sbx_writer(batch_tail(b, n_max), n_max);
	m.begin = sbx_nlmsg_begin(&m.w, &nlh, &nfg, sizeof(nfg));
	return m;
}

static void message_end(struct sbx_nft_batch *b, struct message *m)
{
	sbx_nlmsg_end(&m->w, m->begin);
	if (m->w.failed)
		abort(); /* our own bug: the room was computed */
	batch_advance(b, (const struct nlmsghdr *)(const void *)(m->w.p + m->begin), m->n_max);
}

static void put_str(struct message *m, uint16_t type, const char *s)
{
	sbx_nlattr_put(&m->w, type, s, strlen(s) + 1);
}

static void put_be32(struct message *m, uint16_t type, uint32_t value)
{
	sbx_nlattr_put_u32(&m->w, type, htonl(value));
}

static void put_be64(struct message *m, uint16_t type, uint64_t value)
{
	value = htobe64(value);
	sbx_nlattr_put(&m->w, type, &value, sizeof(value));
}

static size_t nest(struct message *m, uint16_t type)
{
	return sbx_nlattr_begin(&m->w, NLA_F_NESTED | type);
}

static void unnest(struct message *m, size_t begin)
{
	sbx_nlattr_end(&m->w, begin);
}

/* nft(8)'s numbers of data types. The kernel stores them for nft(8), which lists elements by
 * them. */
#define TYPE_IPADDR	   7u
#define TYPE_IP6ADDR	   8u
#define TYPE_INET_PROTOCOL 12u
#define TYPE_INET_SERVICE  13u
#define TYPE_CGROUPV2	   46u
#define TYPE_BITS	   6
#define VERDICT_TYPE	   0xffffff00u

/* Notes that nft(8) stores with a set or element (libnftnl's udata.h: type, length, value): the
 * key is in host byte order; the interval has no end. */
static void put_note(struct message *m, uint16_t attribute, uint8_t type, uint32_t value)
{
	uint8_t note[2 + sizeof(value)] = { type, sizeof(value) };

	memcpy(note + 2, &value, sizeof(value));
	sbx_nlattr_put(&m->w, attribute, note, sizeof(note));
}
#define KEY_IN_HOST_ORDER 1u
#define INTERVAL_IS_OPEN  1u

static uint32_t set_key_type(const struct sbx_nft_set *set)
{
	uint32_t addr = set->family == 4 ? TYPE_IPADDR : TYPE_IP6ADDR;

	if (set->kind == SBX_NFT_SET_CGROUPS)
		return TYPE_CGROUPV2;
	if (set->kind == SBX_NFT_SET_NETS)
		return addr;
	return (addr << TYPE_BITS | TYPE_INET_PROTOCOL) << TYPE_BITS | TYPE_INET_SERVICE;
}

static uint32_t set_key_bytes(const struct sbx_nft_set *set)
{
	uint32_t addr = set->family == 4 ? 4 : 16;

	return set->kind == SBX_NFT_SET_CGROUPS ? 8
	       : set->kind == SBX_NFT_SET_NETS	? addr
						: addr + 4 + 4;
}

static uint32_t set_flags(const struct sbx_nft_set *set)
{
	return set->kind == SBX_NFT_SET_CGROUPS ? NFT_SET_MAP
	       : set->kind == SBX_NFT_SET_NETS	? NFT_SET_CONSTANT | NFT_SET_INTERVAL
						: NFT_SET_TIMEOUT;
}

static void put_set(struct sbx_nft_batch *b, const struct sbx_nft_set *set, uint32_t id)
{
	struct message m =
		message_begin(b, NFT_MSG_NEWSET, NLM_F_CREATE | NLM_F_EXCL, MESSAGE_BYTES);

	put_str(&m, NFTA_SET_TABLE, SBX_NFT_TABLE);
	put_str(&m, NFTA_SET_NAME, set->name);
	put_be32(&m, NFTA_SET_FLAGS, set_flags(set));
	put_be32(&m, NFTA_SET_KEY_TYPE, set_key_type(set));
	put_be32(&m, NFTA_SET_KEY_LEN, set_key_bytes(set));
	if (set->kind == SBX_NFT_SET_CGROUPS)
		put_be32(&m, NFTA_SET_DATA_TYPE, VERDICT_TYPE);
	if (set->kind == SBX_NFT_SET_CGROUPS)
		put_note(&m, NFTA_SET_USERDATA, NFTNL_UDATA_SET_KEYBYTEORDER, KEY_IN_HOST_ORDER);
	put_be32(&m, NFTA_SET_ID, id);
	message_end(b, &m);
}

static size_t elements_begin(struct message *m, const char *set)
{
	put_str(m, NFTA_SET_ELEM_LIST_TABLE, SBX_NFT_TABLE);
	put_str(m, NFTA_SET_ELEM_LIST_SET, set);
	return nest(m, NFTA_SET_ELEM_LIST_ELEMENTS);
}

static void put_key(struct message *m, const void *key, size_t n)
{
	size_t begin = nest(m, NFTA_SET_ELEM_KEY);

	sbx_nlattr_put(&m->w, NFTA_DATA_VALUE, key, n);
	unnest(m, begin);
}

#define NET_BYTES 52 /* one end of a network: lists, a key of 16 bytes, flags, a note */

static size_t nets_bytes(const struct sbx_nft_set *set)
{
	return MESSAGE_BYTES + (2 * set->n_nets + 1) * NET_BYTES;
}

enum net_end { NET_FIRST, NET_FIRST_OPEN, NET_AFTER };

static void put_end(struct message *m, const uint8_t *key, size_t n, enum net_end end)
{
	size_t element = nest(m, NFTA_LIST_ELEM);

	if (end == NET_AFTER)
		put_be32(m, NFTA_SET_ELEM_FLAGS, NFT_SET_ELEM_INTERVAL_END);
	put_key(m, key, n);
	if (end == NET_FIRST_OPEN)
		put_note(m, NFTA_SET_ELEM_USERDATA, NFTNL_UDATA_SET_ELEM_FLAGS, INTERVAL_IS_OPEN);
	unnest(m, element);
}

/* Get the address after the last one of a network; false where there is none. */
static bool next_addr(const struct sbx_cidr *c, uint8_t out[16])
{
	unsigned i = c->prefix;

	memcpy(out, c->addr.b, 16);
	/* Add one to the prefix bits. */
	while (i-- > 0) {
		out[i / 8] ^= 0x80 >> i % 8;
		if (out[i / 8] & 0x80 >> i % 8)
			return true;
	}
	return false;
}

/* An interval is two elements: its first address, and the address after its last, marked as an
 * end. */
static void put_nets(struct sbx_nft_batch *b, const struct sbx_nft_set *set)
{
	static const uint8_t zero[16];
	struct message m = message_begin(b, NFT_MSG_NEWSETELEM, NLM_F_CREATE, nets_bytes(set));
	size_t list = elements_begin(&m, set->name), n = set_key_bytes(set);
	bool from_zero = false;

	for (size_t i = 0; i < set->n_nets; i++)
		from_zero = from_zero || memcmp(set->nets[i].addr.b, zero, n) == 0;
	if (!from_zero)
		/* as nft(8) does: nothing is below the first interval */
		put_end(&m, zero, n, NET_AFTER);
	for (size_t i = 0; i < set->n_nets; i++) {
		uint8_t after[16];
		bool open = !next_addr(&set->nets[i], after);

		put_end(&m, set->nets[i].addr.b, n, open ? NET_FIRST_OPEN : NET_FIRST);
		if (!open)
			put_end(&m, after, n, NET_AFTER);
	}
	unnest(&m, list);
	message_end(b, &m);
}

void sbx_nft_put_cgroup(struct sbx_nft_batch *b, const char *map, uint64_t id, const char *chain)
{
	struct message m = message_begin(b, chain ? NFT_MSG_NEWSETELEM : NFT_MSG_DELSETELEM,
					 chain ? NLM_F_CREATE | NLM_F_EXCL : 0, MESSAGE_BYTES);
	size_t list = elements_begin(&m, map), element = nest(&m, NFTA_LIST_ELEM), data, verdict;

	put_key(&m, &id, sizeof(id));
	if (chain) {
		data = nest(&m, NFTA_SET_ELEM_DATA);
		verdict = nest(&m, NFTA_DATA_VERDICT);
		put_be32(&m, NFTA_VERDICT_CODE, (uint32_t)NFT_GOTO);
		put_str(&m, NFTA_VERDICT_CHAIN, chain);
		unnest(&m, verdict);
		unnest(&m, data);
	}
	unnest(&m, element);
	unnest(&m, list);
	message_end(b, &m);
}

void sbx_nft_put_pins(struct sbx_nft_batch *b, uint16_t type, const char *set,
		      const struct sbx_attach_pin *const *v, size_t n)
{
	struct message m = message_begin(b, type, type == NFT_MSG_NEWSETELEM ? NLM_F_CREATE : 0,
					 MESSAGE_BYTES + n * SBX_NFT_PIN_BYTES);
	size_t list = elements_begin(&m, set);

	for (size_t i = 0; i < n; i++) {
		size_t element = nest(&m, NFTA_LIST_ELEM), n_addr = v[i]->addr.family == 4 ? 4 : 16;
		uint16_t port = htons(v[i]->port);
		uint8_t key[24] = { 0 };

		memcpy(key, v[i]->addr.b, n_addr);
		key[n_addr] = v[i]->proto == SBX_PROTO_TCP ? IPPROTO_TCP : IPPROTO_UDP;
		memcpy(key + n_addr + 4, &port, sizeof(port));
		put_key(&m, key, n_addr + 8);
		if (type == NFT_MSG_NEWSETELEM)
			put_be64(&m, NFTA_SET_ELEM_TIMEOUT, v[i]->timeout_ms);
		unnest(&m, element);
	}
	unnest(&m, list);
	message_end(b, &m);
}

void sbx_nft_put_delete(struct sbx_nft_batch *b, uint16_t type, const char *name, uint16_t flags)
{
	struct message m = message_begin(b, type, flags, MESSAGE_BYTES);

	/* The table is attribute 1; the object's name is attribute 2, or 3 for a chain. */
	put_str(&m, NFTA_TABLE_NAME, SBX_NFT_TABLE);
	if (type == NFT_MSG_DELRULE)
		put_str(&m, NFTA_RULE_CHAIN, name);
	else if (type == NFT_MSG_DELCHAIN)
		put_str(&m, NFTA_CHAIN_NAME, name);
	else if (type == NFT_MSG_DELSET)
		put_str(&m, NFTA_SET_NAME, name);
	message_end(b, &m);
}

/* --- the table, its chains and their rules: by libnftnl --- */

static int put_table(struct sbx_nft_batch *b, bool exclusive)
{
	struct nftnl_table *t = nftnl_table_alloc();
	struct nlmsghdr *nlh;

	if (!t)
		return -ENOMEM;
	nftnl_table_set_u32(t, NFTNL_TABLE_FAMILY, NFPROTO_INET);
	nftnl_table_set_str(t, NFTNL_TABLE_NAME, SBX_NFT_TABLE);
	nlh = nftnl_nlmsg_build_hdr(batch_tail(b, MESSAGE_BYTES), NFT_MSG_NEWTABLE, NFPROTO_INET,
				    NLM_F_CREATE | (exclusive ? NLM_F_EXCL : 0), b->next_seq);
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
	if (chain->hook_name) {
		nftnl_chain_set_str(c, NFTNL_CHAIN_TYPE, "filter");
		nftnl_chain_set_u32(c, NFTNL_CHAIN_HOOKNUM, chain->hook);
		nftnl_chain_set_s32(c, NFTNL_CHAIN_PRIO, chain->priority);
		nftnl_chain_set_u32(c, NFTNL_CHAIN_POLICY,
				    chain->policy_drop ? NF_DROP : NF_ACCEPT);
	}
	nlh = nftnl_nlmsg_build_hdr(batch_tail(b, MESSAGE_BYTES), NFT_MSG_NEWCHAIN, NFPROTO_INET,
				    NLM_F_CREATE | NLM_F_EXCL, b->next_seq);
	nftnl_chain_nlmsg_build_payload(nlh, c);
	nftnl_chain_free(c);
	batch_advance(b, nlh, MESSAGE_BYTES);
	return 0;
}

static int put_rule(struct sbx_nft_batch *b, const char *chain, const struct sbx_nft_rule *rule)
{
	SBX_CLEANUP(rule_freep) struct nftnl_rule *r = nftnl_rule_alloc();
	struct nlmsghdr *nlh;

	if (!r)
		return -ENOMEM;
	nftnl_rule_set_u32(r, NFTNL_RULE_FAMILY, NFPROTO_INET);
	if (nftnl_rule_set_str(r, NFTNL_RULE_TABLE, SBX_NFT_TABLE) < 0 ||
	    nftnl_rule_set_str(r, NFTNL_RULE_CHAIN, chain) < 0 || sbx_nft_rule_exprs(r, rule) < 0)
		return -ENOMEM;
	nlh = nftnl_nlmsg_build_hdr(batch_tail(b, RULE_BYTES), NFT_MSG_NEWRULE, NFPROTO_INET,
				    NLM_F_CREATE | NLM_F_APPEND, b->next_seq);
	nftnl_rule_nlmsg_build_payload(nlh, r);
	batch_advance(b, nlh, RULE_BYTES);
	return 0;
}

static int put_rules(struct sbx_nft_batch *b, const struct sbx_nft_ruleset *rs, bool shared)
{
	int r = 0;

	b->rules_seq = b->next_seq;
	for (size_t i = 0; i < rs->n_chains; i++) {
		const struct sbx_nft_chain *c = &rs->chains[i];

		for (size_t k = 0; r == 0 && k < c->n_rules && (!c->shared || shared); k++)
			r = put_rule(b, c->name, &c->rules[k]);
	}
	return r;
}

/* Networks go into their set before a rule uses it. Elements of a map come after the chains they
 * lead to, with their rules, so that the kernel need not walk those rules again. */
static int put_everything(struct sbx_nft_batch *b, const struct sbx_nft_ruleset *rs, bool shared)
{
	int r = shared ? put_table(b, !rs->shares_table) : 0;

	for (size_t i = 0; r == 0 && i < rs->n_sets; i++) {
		if (rs->sets[i].shared && !shared)
			continue;
		put_set(b, &rs->sets[i], (uint32_t)i + 1);
		if (rs->sets[i].n_nets)
			put_nets(b, &rs->sets[i]);
	}
	for (size_t i = 0; r == 0 && i < rs->n_chains; i++)
		if (!rs->chains[i].shared || shared)
			r = put_chain(b, &rs->chains[i]);
	if (r == 0)
		r = put_rules(b, rs, shared);
	for (size_t i = 0; r == 0 && i < rs->n_sets; i++) {
		const struct sbx_nft_set *s = &rs->sets[i];

		if (s->kind == SBX_NFT_SET_CGROUPS && s->chain)
			sbx_nft_put_cgroup(b, s->name, s->cgroup_id, s->chain);
	}
	if (r < 0)
		return r;
	sbx_nft_batch_end(b);
	return 0;
}

/* Room for the messages that make the ruleset. */
static size_t ruleset_bytes(const struct sbx_nft_ruleset *rs)
{
	size_t n = (1 + rs->n_chains + 2 * rs->n_sets) * MESSAGE_BYTES;

	for (size_t i = 0; i < rs->n_sets; i++)
		n += nets_bytes(&rs->sets[i]);
	for (size_t i = 0; i < rs->n_chains; i++)
		n += rs->chains[i].n_rules * RULE_BYTES;
	return n;
}

static int batch_init(struct sbx_nft_batch *b, const struct sbx_nft_ruleset *rs, uint32_t first_seq,
		      bool shared)
{
	int r = sbx_nft_batch_begin(b, ruleset_bytes(rs), first_seq);

	if (r == 0)
		r = put_everything(b, rs, shared);
	if (r < 0)
		sbx_nft_batch_fini(b);
	return r;
}

int sbx_nft_batch_init(struct sbx_nft_batch *b, const struct sbx_nft_ruleset *rs,
		       uint32_t first_seq)
{
	return batch_init(b, rs, first_seq, true);
}

int sbx_nft_batch_init_own(struct sbx_nft_batch *b, const struct sbx_nft_ruleset *rs,
			   uint32_t first_seq)
{
	return batch_init(b, rs, first_seq, false);
}

static bool has_chain(const struct sbx_nft_ruleset *rs, const char *name)
{
	for (size_t i = 0; i < rs->n_chains; i++)
		if (strcmp(rs->chains[i].name, name) == 0)
			return true;
	return false;
}

/* Rules first: a chain or a set that a rule refers to cannot be deleted. */
static void put_removals(struct sbx_nft_batch *b, const struct sbx_nft_ruleset *from,
			 const struct sbx_nft_ruleset *to)
{
	for (size_t i = 0; i < from->n_chains; i++)
		if (!from->chains[i].shared)
			sbx_nft_put_delete(b, NFT_MSG_DELRULE, from->chains[i].name, 0);
	for (size_t i = 0; i < from->n_chains; i++)
		if (!has_chain(to, from->chains[i].name))
			sbx_nft_put_delete(b, NFT_MSG_DELCHAIN, from->chains[i].name, 0);
	for (size_t i = 0; i < from->n_sets; i++)
		if (from->sets[i].kind == SBX_NFT_SET_NETS)
			sbx_nft_put_delete(b, NFT_MSG_DELSET, from->sets[i].name, 0);
}

static int put_change(struct sbx_nft_batch *b, const struct sbx_nft_ruleset *from,
		      const struct sbx_nft_ruleset *to)
{
	int r = 0;

	put_removals(b, from, to);
	for (size_t i = 0; i < to->n_sets; i++) {
		if (to->sets[i].kind != SBX_NFT_SET_NETS)
			continue;
		put_set(b, &to->sets[i], (uint32_t)i + 1);
		if (to->sets[i].n_nets)
			put_nets(b, &to->sets[i]);
	}
	for (size_t i = 0; r == 0 && i < to->n_chains; i++)
		if (!has_chain(from, to->chains[i].name))
			r = put_chain(b, &to->chains[i]);
	b->rules_seq = b->next_seq;
	for (size_t i = 0; i < to->n_chains; i++)
		for (size_t k = 0; r == 0 && !to->chains[i].shared && k < to->chains[i].n_rules;
		     k++)
			r = put_rule(b, to->chains[i].name, &to->chains[i].rules[k]);
	if (r == 0)
		sbx_nft_batch_end(b);
	return r;
}

int sbx_nft_batch_init_change(struct sbx_nft_batch *b, const struct sbx_nft_ruleset *from,
			      const struct sbx_nft_ruleset *to, uint32_t generation,
			      uint32_t first_seq)
{
	size_t n_removals = (2 * from->n_chains + from->n_sets) * MESSAGE_BYTES;
	int r = batch_begin(b, n_removals + ruleset_bytes(to), generation, first_seq);

	if (r == 0)
		r = put_change(b, from, to);
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
	return find_message(b, seq);
}
