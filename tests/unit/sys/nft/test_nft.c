/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The ruleset's text against golden files, its limits, and the explanations of refusals. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <stdio.h>
#include <stdlib.h>

#include "sys/nft/nft_batch.h"
#include "sys/nft/nft_form.h"
#include "tests/unit/golden.h"
#include "tests/unit/nft_cases.h"

SBX_DEFINE_CLEANUP(struct sbx_nft_ruleset, sbx_nft_ruleset_free);

static void test_golden(void **state)
{
	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(nft_cases); i++) {
		SBX_CLEANUP(sbx_nft_ruleset_freep) struct sbx_nft_ruleset *rs = NULL;
		SBX_AUTO_FREE char *text = NULL;
		char name[64];

		assert_int_equal(sbx_nft_ruleset_new(&nft_cases[i].in, &rs), 0);
		text = sbx_nft_ruleset_text(rs);
		snprintf(name, sizeof(name), "nft-%s.txt", nft_cases[i].name);
		golden_compare(name, text);
	}
}

static struct sbx_nft_input with_cidr(struct sbx_nft_cidr *c)
{
	struct sbx_nft_input in = nft_case_find("fetch-udp")->in;

	in.n_cidrs = 1;
	in.cidrs = c;
	return in;
}

static void test_input(void **state)
{
	static const struct sbx_nft_cidr good = { { V4(10, 1, 2, 0), 24 }, 80, 90, SBX_PROTO_TCP };
	struct sbx_nft_cidr c = good;
	struct sbx_nft_input in = with_cidr(&c);
	struct sbx_nft_ruleset *rs = NULL;

	(void)state;
	assert_int_equal(sbx_nft_ruleset_new(&in, &rs), 0);
	rs = sbx_nft_ruleset_free(rs);
	assert_null(rs);
	c.cidr.addr.family = 0;
	assert_int_equal(sbx_nft_ruleset_new(&in, &rs), -EINVAL);
	c = good;
	c.cidr.prefix = 33;
	assert_int_equal(sbx_nft_ruleset_new(&in, &rs), -EINVAL);
	c = good;
	c.cidr.prefix = 22; /* 10.1.2.0 has a host bit in a /22 */
	assert_int_equal(sbx_nft_ruleset_new(&in, &rs), -EINVAL);
	c = good;
	c.port_last = 79;
	assert_int_equal(sbx_nft_ruleset_new(&in, &rs), -EINVAL);
	c = good;
	c.port_first = c.port_last = 0;
	assert_int_equal(sbx_nft_ruleset_new(&in, &rs), -EINVAL);
	c = good;
	c.proto = SBX_PROTO_ICMP;
	assert_int_equal(sbx_nft_ruleset_new(&in, &rs), -EINVAL);
	in.n_cidrs = SBX_NFT_CIDRS_MAX + 1;
	assert_int_equal(sbx_nft_ruleset_new(&in, &rs), -E2BIG);
	assert_null(rs);
	assert_null(sbx_nft_ruleset_free(NULL));
}

/* UDP entries without UDP listeners are refused by the chain's policy, not half carried. */
static void test_udp_needs_both(void **state)
{
	struct sbx_nft_cidr c = { { V4(10, 1, 2, 0), 24 }, 53000, 53000, SBX_PROTO_UDP };
	struct sbx_nft_input in = with_cidr(&c);

	(void)state;
	for (int i = 0; i < 3; i++) {
		SBX_CLEANUP(sbx_nft_ruleset_freep) struct sbx_nft_ruleset *rs = NULL;
		SBX_AUTO_FREE char *text = NULL;

		in.udp = i != 1;
		in.udp_port4 = i == 2 ? 0 : SBX_NET_CARRY_PORT;
		assert_int_equal(sbx_nft_ruleset_new(&in, &rs), 0);
		text = sbx_nft_ruleset_text(rs);
		assert_non_null(text);
		assert_int_equal(strstr(text, "udp dport 53000") != NULL, i == 0);
	}
}

/* --- what a ruleset does with a packet --- */

struct packet {
	const char *to;
	enum sbx_proto proto;
	uint16_t port;
};

static bool item_matches(const struct sbx_nft_item *i, const struct packet *p)
{
	struct sbx_addr addr;

	switch (i->kind) {
	case SBX_NFT_IIF_LO: /* all there is comes by lo */
		return !i->negate;
	case SBX_NFT_DADDR:
		assert_int_equal(sbx_addr_parse(p->to, &addr), 0);
		return addr.family == i->u.cidr.addr.family &&
		       sbx_cidr_contains(&i->u.cidr, &addr) != i->negate;
	case SBX_NFT_L4PROTO:
		return p->proto == i->u.port.proto;
	case SBX_NFT_DPORT:
		return p->proto == i->u.port.proto && p->port >= i->u.port.first &&
		       p->port <= i->u.port.last;
	default:
		return true;
	}
}

/* The statement that ends @p's way through a chain: TPROXY (and accepted), ACCEPT or a REJECT. A
 * chain that drops ends in rejects for everything, so it has one for every packet. */
static enum sbx_nft_item_kind walk(const struct sbx_nft_chain *c, const struct packet *p)
{
	for (size_t i = 0; i < c->n_rules; i++) {
		const struct sbx_nft_rule *r = &c->rules[i];
		enum sbx_nft_item_kind end = SBX_N_NFT_ITEM_KINDS;
		size_t k = 0;

		for (; k < r->n_items && item_matches(&r->items[k], p); k++)
			if (r->items[k].kind >= SBX_NFT_TPROXY && r->items[k].kind != SBX_NFT_LOG &&
			    end == SBX_N_NFT_ITEM_KINDS)
				end = r->items[k].kind;
		if (k == r->n_items)
			return end;
	}
	assert_false(c->policy_drop);
	return SBX_NFT_ACCEPT;
}

/* Entries that cover the own addresses, loopback and the synthetic ranges. */
static const struct sbx_nft_cidr greedy_cidrs[] = {
	{ { V4(100, 64, 0, 0), 10 }, 1, 65535, SBX_PROTO_TCP },
	{ { V4(127, 0, 0, 0), 8 }, 1, 65535, SBX_PROTO_TCP },
	{ { V4(10, 0, 0, 0), 8 }, 1, 65535, SBX_PROTO_TCP },
	{ { { 6, { 0xfd } }, 8 }, 1, 65535, SBX_PROTO_TCP },
	{ { { 6, { 0 } }, 64 }, 1, 65535, SBX_PROTO_TCP },
};

static const struct {
	struct packet packet;
	enum sbx_nft_item_kind fetch, full; /* in prerouting; output accepts both or rejects */
} walks[] = {
	{ { "100.64.0.1", SBX_PROTO_TCP, 443 }, SBX_NFT_ACCEPT, SBX_NFT_ACCEPT },
	{ { "fd00:5b::1", SBX_PROTO_TCP, 443 }, SBX_NFT_ACCEPT, SBX_NFT_ACCEPT },
	{ { "fd00:5b::1", SBX_PROTO_UDP, 443 }, SBX_NFT_ACCEPT, SBX_NFT_ACCEPT },
	{ { "127.8.8.8", SBX_PROTO_TCP, 80 }, SBX_NFT_ACCEPT, SBX_NFT_ACCEPT },
	{ { "::1", SBX_PROTO_TCP, 80 }, SBX_NFT_ACCEPT, SBX_NFT_ACCEPT },
	{ { "198.18.0.7", SBX_PROTO_TCP, 53 }, SBX_NFT_ACCEPT, SBX_NFT_ACCEPT },
	{ { "198.18.0.7", SBX_PROTO_UDP, 53 }, SBX_NFT_ACCEPT, SBX_NFT_ACCEPT },
	{ { "fd00:5b:1::7", SBX_PROTO_TCP, 53 }, SBX_NFT_ACCEPT, SBX_NFT_ACCEPT },
	{ { "10.9.9.9", SBX_PROTO_TCP, 53 }, SBX_NFT_ACCEPT, SBX_NFT_ACCEPT },
	{ { "198.18.0.7", SBX_PROTO_TCP, 443 }, SBX_NFT_TPROXY, SBX_NFT_TPROXY },
	{ { "198.19.255.255", SBX_PROTO_UDP, 443 }, SBX_NFT_TPROXY, SBX_NFT_TPROXY },
	{ { "fd00:5b:1::7", SBX_PROTO_TCP, 443 }, SBX_NFT_TPROXY, SBX_NFT_TPROXY },
	{ { "10.9.9.9", SBX_PROTO_TCP, 443 }, SBX_NFT_TPROXY, SBX_NFT_TPROXY },
	{ { "10.9.9.9", SBX_PROTO_UDP, 443 }, SBX_NFT_REJECT_ADMIN, SBX_NFT_TPROXY },
	{ { "198.20.0.1", SBX_PROTO_TCP, 443 }, SBX_NFT_REJECT_TCP_RESET, SBX_NFT_TPROXY },
	{ { "224.0.0.1", SBX_PROTO_UDP, 443 }, SBX_NFT_REJECT_ADMIN, SBX_NFT_REJECT_ADMIN },
};

/* The order of the rules: no tproxy rule takes what is delivered in the namespace itself, whatever
 * the entries cover; and output passes neither more nor less than that and what is carried. */
static void test_order(void **state)
{
	struct sbx_nft_input in = nft_case_find("fetch-udp")->in;

	(void)state;
	in.n_cidrs = SBX_N_ELEMENTS(greedy_cidrs);
	in.cidrs = greedy_cidrs;
	for (int full = 0; full < 2; full++) {
		SBX_CLEANUP(sbx_nft_ruleset_freep) struct sbx_nft_ruleset *rs = NULL;

		in.all_destinations = full;
		assert_int_equal(sbx_nft_ruleset_new(&in, &rs), 0);
		assert_int_equal(rs->n_chains, 2);
		for (size_t i = 0; i < SBX_N_ELEMENTS(walks); i++) {
			enum sbx_nft_item_kind want = full ? walks[i].full : walks[i].fetch;
			bool passes = want == SBX_NFT_TPROXY || want == SBX_NFT_ACCEPT;

			if (walk(&rs->chains[0], &walks[i].packet) !=
			    (passes ? want : SBX_NFT_ACCEPT))
				fail_msg("prerouting, %s: %s port %u", full ? "full" : "fetch",
					 walks[i].packet.to, walks[i].packet.port);
			if (walk(&rs->chains[1], &walks[i].packet) !=
			    (passes ? SBX_NFT_ACCEPT : want))
				fail_msg("output, %s: %s port %u", full ? "full" : "fetch",
					 walks[i].packet.to, walks[i].packet.port);
		}
	}
}

/* The batch has the table, the chains and the rules, numbered, and one request to acknowledge. */
static void test_batch(void **state)
{
	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(nft_cases); i++) {
		SBX_CLEANUP(sbx_nft_ruleset_freep) struct sbx_nft_ruleset *rs = NULL;
		SBX_CLEANUP(sbx_nft_batch_fini) struct sbx_nft_batch b = { 0 };
		size_t n_rules = 0, n_acks = 0;

		assert_int_equal(sbx_nft_ruleset_new(&nft_cases[i].in, &rs), 0);
		assert_int_equal(sbx_nft_batch_init(&b, rs, 100), 0);
		for (size_t k = 0; k < rs->n_chains; k++)
			n_rules += rs->chains[k].n_rules;
		assert_int_equal(b.next_seq - b.first_seq, 3 + rs->n_chains + n_rules);
		for (uint32_t seq = b.first_seq; seq < b.next_seq; seq++) {
			const struct nlmsghdr *nlh = sbx_nft_batch_message(&b, seq);

			assert_non_null(nlh);
			if (nlh->nlmsg_flags & NLM_F_ACK) {
				n_acks++;
				assert_int_equal(seq, b.ack_seq);
			}
		}
		assert_int_equal(n_acks, 1);
		assert_int_equal(b.ack_seq, b.next_seq - 2);
		assert_null(sbx_nft_batch_message(&b, b.next_seq));
	}
}

struct explain_case {
	int error;
	int type; /* NFT_MSG_*, or -1: the batch as a whole */
	const char *reason, *text;
};

static const struct explain_case explain_cases[] = {
	{ EPERM, -1, "", "AppArmor" },
	{ EPERM, NFT_MSG_NEWTABLE, "", "no permission" },
	{ EOPNOTSUPP, -1, "", "no nf_tables (CONFIG_NF_TABLES" },
	{ EAFNOSUPPORT, NFT_MSG_NEWTABLE, "", "CONFIG_NF_TABLES_INET" },
	{ EEXIST, NFT_MSG_NEWTABLE, "", "already" },
	{ ENOENT, NFT_MSG_NEWCHAIN, "", "CONFIG_NF_TABLES_INET" },
	{ ENOENT, NFT_MSG_NEWRULE, "", "modprobe -a nft_tproxy" },
	{ EINVAL, NFT_MSG_NEWRULE, "too long",
	  "refused a rule of the firewall: Invalid argument, too long" },
	{ ENOMEM, -1, "", "Cannot allocate memory" },
};

static uint32_t seq_of_type(const struct sbx_nft_batch *b, int type)
{
	for (uint32_t seq = b->first_seq; type >= 0 && seq < b->next_seq; seq++)
		if (sbx_nft_batch_message(b, seq)->nlmsg_type == (NFNL_SUBSYS_NFTABLES << 8 | type))
			return seq;
	return b->first_seq;
}

static void test_explain(void **state)
{
	SBX_CLEANUP(sbx_nft_ruleset_freep) struct sbx_nft_ruleset *rs = NULL;
	SBX_CLEANUP(sbx_nft_batch_fini) struct sbx_nft_batch b = { 0 };

	(void)state;
	assert_int_equal(sbx_nft_ruleset_new(&nft_case_find("fetch")->in, &rs), 0);
	assert_int_equal(sbx_nft_batch_init(&b, rs, 1), 0);
	for (size_t i = 0; i < SBX_N_ELEMENTS(explain_cases); i++) {
		const struct explain_case *c = &explain_cases[i];
		struct sbx_nft_refusal refusal = { .error = c->error,
						   .seq = seq_of_type(&b, c->type) };
		struct sbx_err err = { 0 };

		snprintf(refusal.reason, sizeof(refusal.reason), "%s", c->reason);
		sbx_nft_explain(&b, &refusal, &err);
		if (!strstr(err.msg, c->text))
			fail_msg("'%s' is not in '%s'", c->text, err.msg);
	}
}

/* Every offset into every message has an explanation, and the ones of the three optional
 * expressions name what the kernel lacks. */
static void test_explain_expression(void **state)
{
	static const char *const options[] = { "CONFIG_NFT_TPROXY)",
					       "CONFIG_NETFILTER_NETLINK_LOG)",
					       "CONFIG_NFT_REJECT_INET)" };
	SBX_CLEANUP(sbx_nft_ruleset_freep) struct sbx_nft_ruleset *rs = NULL;
	SBX_CLEANUP(sbx_nft_batch_fini) struct sbx_nft_batch b = { 0 };
	size_t n_found[3] = { 0 };

	(void)state;
	assert_int_equal(sbx_nft_ruleset_new(&nft_case_find("fetch")->in, &rs), 0);
	assert_int_equal(sbx_nft_batch_init(&b, rs, 1), 0);
	for (uint32_t seq = b.first_seq; seq <= b.next_seq; seq++) {
		const struct nlmsghdr *nlh = sbx_nft_batch_message(&b, seq);

		for (uint32_t offset = 0; nlh && offset < nlh->nlmsg_len + 8; offset++) {
			struct sbx_nft_refusal refusal = { ENOENT, seq, offset, "" };
			struct sbx_err err = { 0 };

			sbx_nft_explain(&b, &refusal, &err);
			assert_true(err.msg[0]);
			for (size_t i = 0; i < 3; i++)
				n_found[i] += strstr(err.msg, options[i]) != NULL;
		}
	}
	for (size_t i = 0; i < 3; i++)
		assert_true(n_found[i] > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_golden),	       cmocka_unit_test(test_input),
		cmocka_unit_test(test_udp_needs_both), cmocka_unit_test(test_batch),
		cmocka_unit_test(test_explain),	       cmocka_unit_test(test_explain_expression),
		cmocka_unit_test(test_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
