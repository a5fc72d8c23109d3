/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Loads a ruleset and proves that the kernel has it.
 *
 * The batch is one datagram and one transaction: all of it takes effect or nothing. Then the
 * table's chains and rules are dumped and compared with what was sent: as many, in the same order,
 * with the same hook, priority and policy, and the same expressions in each rule. Expressions are
 * compared attribute by attribute, as most come back, or else in libnftnl's printed form, which has
 * every register, offset and byte. So a kernel that accepts a message and stores something else is
 * found before a command runs. Success costs seven system calls.
 *
 * Reading back does not guard against the sandbox, which can change nothing: it checks this program
 * and the kernel.
 */
#include "sys/nft/nft_batch.h"

#include <errno.h>
#include <libmnl/libmnl.h>
#include <libnftnl/chain.h>
#include <libnftnl/common.h>
#include <libnftnl/expr.h>
#include <libnftnl/rule.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "sys/net/netlink.h"

#define EXPR_TEXT_MAX 512

static void rule_freep(struct nftnl_rule **r)
{
	if (*r)
		nftnl_rule_free(*r);
}

static void chain_freep(struct nftnl_chain **c)
{
	if (*c)
		nftnl_chain_free(*c);
}

static void iter_freep(struct nftnl_expr_iter **i)
{
	if (*i)
		nftnl_expr_iter_destroy(*i);
}

/* --- sending --- */

/* The attributes that follow a refusal (NETLINK_EXT_ACK); the socket asked for capped messages. */
static void read_ext_ack(const struct nlmsghdr *nlh, struct sbx_nft_refusal *refusal)
{
	const struct nlattr *a;

	if (!(nlh->nlmsg_flags & NLM_F_ACK_TLVS) || !(nlh->nlmsg_flags & NLM_F_CAPPED))
		return;
	mnl_attr_for_each(a, nlh, sizeof(struct nlmsgerr)) {
		if (mnl_attr_get_type(a) == NLMSGERR_ATTR_OFFS &&
		    mnl_attr_validate(a, MNL_TYPE_U32) >= 0)
			refusal->offset = mnl_attr_get_u32(a);
		if (mnl_attr_get_type(a) == NLMSGERR_ATTR_MSG)
			snprintf(refusal->reason, sizeof(refusal->reason), "%.*s",
				 (int)mnl_attr_get_payload_len(a), mnl_attr_get_str(a));
	}
}

/* Keep the first refusal: later ones follow from it (no table, so no chain, so no rules). */
static int on_batch_answer(const struct nlmsghdr *nlh, void *userdata)
{
	struct sbx_nft_refusal *refusal = userdata;
	int r = sbx_netlink_error(nlh);

	if (r >= 0 || refusal->error)
		return 0;
	refusal->error = -r;
	if (r != -EBADMSG) {
		refusal->seq = ((const struct nlmsgerr *)mnl_nlmsg_get_payload(nlh))->msg.nlmsg_seq;
		read_ext_ack(nlh, refusal);
	}
	return 0;
}

/* The kernel takes no datagram larger than the socket's send buffer. */
static void grow_send_buffer(int fd, size_t n)
{
	int want = (int)(n + 4096), have = 0;
	socklen_t n_have = sizeof(have);

	if (getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &have, &n_have) == 0 && have >= want)
		return;
	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &want, sizeof(want)) < 0)
		setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &want, sizeof(want));
}

int sbx_nft_batch_transact(const struct sbx_nft_batch *b, int fd, struct sbx_nft_refusal *refusal)
{
	int r;

	*refusal = (struct sbx_nft_refusal){ 0 };
	if (b->n > 64 * 1024)
		grow_send_buffer(fd, b->n);
	r = sbx_netlink_send(fd, b->p, b->n);
	if (r < 0)
		return r;
	r = sbx_netlink_read(fd, b->ack_seq, on_batch_answer, refusal);
	if (refusal->error == 0)
		return r;
	/* A batch that was refused as a whole has no answer to its last message (-EAGAIN). */
	return r == 0 || r == -EAGAIN ? -refusal->error : r;
}

int sbx_nft_batch_send(const struct sbx_nft_batch *b, int fd, struct sbx_err *err)
{
	struct sbx_nft_refusal refusal;
	int r = sbx_nft_batch_transact(b, fd, &refusal);

	if (r < 0 && refusal.error) {
		sbx_nft_explain(b, &refusal, err);
		return r;
	}
	if (r == -EMSGSIZE || r == -ENOBUFS) {
		sbx_err_set(err,
			    "the firewall's %zu bytes do not fit a socket buffer: raise "
			    "net.core.wmem_max or use fewer cidr entries",
			    b->n);
		return r;
	}
	if (r < 0)
		sbx_err_set(err, "the firewall could not be sent to the kernel: %s", strerror(-r));
	return r;
}

/* --- reading back --- */

struct readback {
	const struct sbx_nft_ruleset *rs;
	const struct sbx_nft_batch *batch;
	uint32_t next_seq; /* of the batch's next rule to be found */
	uint32_t end_seq;  /* one past the last rule expected */
	size_t n_chains;   /* found so far */
	struct sbx_err *err;
};

static int differs(struct readback *rb, const char *what)
{
	sbx_err_set(rb->err,
		    "the kernel's firewall is not the one that was sent (%s): nothing may run "
		    "behind it; please report it with the kernel's version",
		    what);
	return -EPROTO;
}

static bool str_is(const char *a, const char *b)
{
	return a && strcmp(a, b) == 0;
}

static int on_chain(const struct nlmsghdr *nlh, void *userdata)
{
	SBX_CLEANUP(chain_freep) struct nftnl_chain *c = NULL;
	struct readback *rb = userdata;
	const struct sbx_nft_chain *want;
	int r = sbx_netlink_error(nlh);

	if (r < 0)
		return r;
	if (nlh->nlmsg_type != (NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWCHAIN))
		return 0;
	c = nftnl_chain_alloc();
	if (!c)
		return -ENOMEM;
	if (nftnl_chain_nlmsg_parse(nlh, c) < 0)
		return differs(rb, "a chain that cannot be read");
	if (!str_is(nftnl_chain_get_str(c, NFTNL_CHAIN_TABLE), SBX_NFT_TABLE))
		return 0;
	if (rb->n_chains >= rb->rs->n_chains)
		return differs(rb, "too many chains");
	want = &rb->rs->chains[rb->n_chains++];
	if (!str_is(nftnl_chain_get_str(c, NFTNL_CHAIN_NAME), want->name))
		return differs(rb, "a chain's name");
	if (nftnl_chain_is_set(c, NFTNL_CHAIN_HOOKNUM) != (want->hook_name != NULL))
		return differs(rb, "a chain's hook");
	if (!want->hook_name)
		return 0;
	if (!str_is(nftnl_chain_get_str(c, NFTNL_CHAIN_TYPE), "filter") ||
	    nftnl_chain_get_u32(c, NFTNL_CHAIN_HOOKNUM) != want->hook ||
	    nftnl_chain_get_s32(c, NFTNL_CHAIN_PRIO) != want->priority)
		return differs(rb, "a chain's hook");
	if (nftnl_chain_get_u32(c, NFTNL_CHAIN_POLICY) != (want->policy_drop ? NF_DROP : NF_ACCEPT))
		return differs(rb, "a chain's policy");
	return 0;
}

static bool same_attrs(const void *sent, size_t n_sent, const void *got, size_t n_got);

/* The kernel does not mark nested attributes; libnftnl does. */
static bool same_attr(const struct nlattr *sent, const struct nlattr *got)
{
	const void *a = mnl_attr_get_payload(sent), *b = mnl_attr_get_payload(got);
	size_t n = mnl_attr_get_payload_len(sent);

	if (mnl_attr_get_type(sent) != mnl_attr_get_type(got) || n != mnl_attr_get_payload_len(got))
		return false;
	return sent->nla_type & NLA_F_NESTED ? same_attrs(a, n, b, n) : memcmp(a, b, n) == 0;
}

/* All of them, in the same order. */
static bool same_attrs(const void *sent, size_t n_sent, const void *got, size_t n_got)
{
	const struct nlattr *a = sent, *b = got;
	int left = (int)n_sent;

	if (n_sent != n_got)
		return false;
	while (mnl_attr_ok(a, left) && mnl_attr_ok(b, left)) {
		if (!same_attr(a, b))
			return false;
		left -= (int)MNL_ALIGN(a->nla_len);
		a = mnl_attr_next(a);
		b = mnl_attr_next(b);
	}
	return left <= 0;
}

static const struct nlattr *find_attr(const struct nlmsghdr *nlh, uint16_t type)
{
	const struct nlattr *a;

	mnl_attr_for_each(a, nlh, sizeof(struct nfgenmsg))
		if (mnl_attr_get_type(a) == type)
			return a;
	return NULL;
}

/* Did the rule's expressions come back as they were sent? If not, the rule may still be the
 * same. */
static bool same_message(const struct nlmsghdr *sent, const struct nlmsghdr *got)
{
	static const uint16_t types[] = { NFTA_RULE_TABLE, NFTA_RULE_CHAIN, NFTA_RULE_EXPRESSIONS };

	for (size_t i = 0; i < SBX_N_ELEMENTS(types); i++) {
		const struct nlattr *a = find_attr(sent, types[i]), *b = find_attr(got, types[i]);

		if (!a || !b || !same_attr(a, b))
			return false;
	}
	return true;
}

static bool same_exprs(const struct nftnl_rule *a, const struct nftnl_rule *b)
{
	SBX_CLEANUP(iter_freep) struct nftnl_expr_iter *ia = nftnl_expr_iter_create(a);
	SBX_CLEANUP(iter_freep) struct nftnl_expr_iter *ib = nftnl_expr_iter_create(b);

	if (!ia || !ib)
		return false;
	for (;;) {
		struct nftnl_expr *ea = nftnl_expr_iter_next(ia), *eb = nftnl_expr_iter_next(ib);
		char ta[EXPR_TEXT_MAX], tb[EXPR_TEXT_MAX];
		int na, nb;

		if (!ea || !eb)
			return !ea && !eb;
		if (!str_is(nftnl_expr_get_str(ea, NFTNL_EXPR_NAME),
			    nftnl_expr_get_str(eb, NFTNL_EXPR_NAME)))
			return false;
		na = nftnl_expr_snprintf(ta, sizeof(ta), ea, NFTNL_OUTPUT_DEFAULT, 0);
		nb = nftnl_expr_snprintf(tb, sizeof(tb), eb, NFTNL_OUTPUT_DEFAULT, 0);
		if (na < 0 || na >= EXPR_TEXT_MAX || na != nb || memcmp(ta, tb, na) != 0)
			return false;
	}
}

static int on_rule(const struct nlmsghdr *nlh, void *userdata)
{
	SBX_CLEANUP(rule_freep) struct nftnl_rule *got = NULL;
	SBX_CLEANUP(rule_freep) struct nftnl_rule *sent = NULL;
	struct readback *rb = userdata;
	const struct nlmsghdr *sent_nlh;
	int r = sbx_netlink_error(nlh);

	if (r < 0)
		return r;
	if (nlh->nlmsg_type != (NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWRULE))
		return 0;
	sent_nlh =
		rb->next_seq < rb->end_seq ? sbx_nft_batch_message(rb->batch, rb->next_seq) : NULL;
	if (sent_nlh && same_message(sent_nlh, nlh)) {
		rb->next_seq++;
		return 0;
	}
	got = nftnl_rule_alloc();
	sent = nftnl_rule_alloc();
	if (!got || !sent)
		return -ENOMEM;
	if (nftnl_rule_nlmsg_parse(nlh, got) < 0)
		return differs(rb, "a rule that cannot be read");
	if (!str_is(nftnl_rule_get_str(got, NFTNL_RULE_TABLE), SBX_NFT_TABLE))
		return 0;
	if (rb->next_seq >= rb->end_seq)
		return differs(rb, "too many rules");
	sent_nlh = sbx_nft_batch_message(rb->batch, rb->next_seq++);
	if (!sent_nlh || nftnl_rule_nlmsg_parse(sent_nlh, sent) < 0)
		return -ENOMEM;
	if (!str_is(nftnl_rule_get_str(got, NFTNL_RULE_CHAIN),
		    nftnl_rule_get_str(sent, NFTNL_RULE_CHAIN)))
		return differs(rb, "a rule's chain");
	if (!same_exprs(got, sent))
		return differs(rb, "a rule's expressions");
	return 0;
}

/* Ask for a chain or its rules. @chain NULL: those of the table (of all tables, for chains: the
 * kernel cannot narrow that). */
static int ask(int fd, uint16_t type, uint16_t flags, uint32_t seq, const char *chain,
	       sbx_netlink_cb cb, struct readback *rb)
{
	_Alignas(struct nlmsghdr) char buf[256] = { 0 };
	struct nlmsghdr *nlh = nftnl_nlmsg_build_hdr(buf, type, NFPROTO_INET, flags, seq);
	int r;

	if (type == NFT_MSG_GETRULE || chain)
		mnl_attr_put_strz(nlh, NFTA_RULE_TABLE, SBX_NFT_TABLE);
	if (chain)
		mnl_attr_put_strz(nlh, type == NFT_MSG_GETRULE ? NFTA_RULE_CHAIN : NFTA_CHAIN_NAME,
				  chain);
	r = sbx_netlink_send(fd, nlh, nlh->nlmsg_len);
	return r < 0 ? r : sbx_netlink_read(fd, seq, cb, rb);
}

/* Read the whole table, where it is ours alone. */
static int read_table(struct readback *rb, const struct sbx_nft_ruleset *rs, int fd, uint32_t seq)
{
	int r = ask(fd, NFT_MSG_GETCHAIN, NLM_F_DUMP, seq, NULL, on_chain, rb);

	for (size_t i = 0; i < rs->n_chains; i++)
		rb->end_seq += (uint32_t)rs->chains[i].n_rules;
	return r < 0 ? r : ask(fd, NFT_MSG_GETRULE, NLM_F_DUMP, seq + 1, NULL, on_rule, rb);
}

/* Read our chains in a table that has others too. */
static int read_chains(struct readback *rb, const struct sbx_nft_ruleset *rs, int fd, uint32_t seq)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < rs->n_chains; i++) {
		const struct sbx_nft_chain *c = &rs->chains[i];

		rb->end_seq += (uint32_t)c->n_rules;
		r = ask(fd, NFT_MSG_GETCHAIN, NLM_F_ACK, seq++, c->name, on_chain, rb);
		if (r == 0)
			r = ask(fd, NFT_MSG_GETRULE, NLM_F_DUMP, seq++, c->name, on_rule, rb);
		if (r == 0 && rb->next_seq != rb->end_seq)
			return differs(rb, "too few rules");
	}
	return r;
}

/* Another process may change the namespace's rules during a dump; in a sandbox's namespace only
 * we may. */
#define DUMP_TRIES 16

int sbx_nft_batch_read_back(const struct sbx_nft_batch *b, const struct sbx_nft_ruleset *rs, int fd,
			    struct sbx_err *err)
{
	struct readback rb;
	int r = -EINTR;

	for (int i = 0; r == -EINTR && i < DUMP_TRIES; i++) {
		rb = (struct readback){ rs, b, b->rules_seq, b->rules_seq, 0, err };
		r = rs->shares_table ? read_chains(&rb, rs, fd, b->next_seq)
				     : read_table(&rb, rs, fd, b->next_seq);
	}
	if (r < 0) {
		sbx_err_set(err, "the kernel's firewall could not be read back: %s", strerror(-r));
		return r;
	}
	if (rb.n_chains != rs->n_chains)
		return differs(&rb, "too few chains");
	if (rb.next_seq != rb.end_seq)
		return differs(&rb, "too few rules");
	return 0;
}
