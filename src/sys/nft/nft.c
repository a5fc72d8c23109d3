/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The ruleset of one sandbox in its own network namespace, as typed rules.
 *
 * The namespace has one interface, lo, and routes that make every address of the world local. A
 * packet of a process in it passes the output hook, goes through lo and comes back at the
 * prerouting hook. Table `inet sbx` has two chains:
 *
 *   prerouting (only with listeners): packets to the own addresses, to loopback and to
 *   port 53 are delivered here, port 53 to the broker's stub. tproxy gives packets to carried
 *   destinations to the broker's listener and rewrites nothing: getsockname() is the address
 *   dialled.
 *
 *   output (policy drop): the same destinations pass. Everything else is logged to an NFLOG group
 *   and refused at once: TCP by a reset, the rest by ICMP. The sender gets an error within the
 *   call.
 *
 * Packets to the synthetic ranges and to the explicit cidr entries are carried; with
 * all_destinations, packets to every unicast address. Multicast and IPv4's 240/4 (224.0.0.0/3) are
 * always refused: a socket that tproxy gives such a packet never sees it. Addresses that are never
 * allowed (metadata, ...) are not listed: the chain's policy refuses them, or the broker does.
 *
 * No input chain: every packet there has passed output before (lo is the only interface). No
 * forward chain, conntrack or NAT: all addresses are local. Resets and ICMP errors of the kernel
 * pass. A spoofed source stays inside.
 */
#include "sys/nft/nft.h"

#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter_ipv4.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "sys/nft/nft_batch.h"
#include "sys/nft/nft_form.h"

#define RULES_FIXED 16	/* more rules than any chain has without those for cidr entries */
#define LOG_SNAPLEN 128 /* the IP and transport headers, with room for options */

static const struct sbx_cidr loopback4 = { { 4, { 127 } }, 8 };
static const struct sbx_cidr loopback6 = { { 6, { [15] = 1 } }, 128 };
/* Destinations that are never carried: multicast, and IPv4's reserved block with the broadcast
 * address. */
static const struct sbx_cidr multicast4 = { { 4, { 224 } }, 3 };
static const struct sbx_cidr multicast6 = { { 6, { 0xff } }, 8 };

SBX_DEFINE_CLEANUP(struct sbx_nft_ruleset, sbx_nft_ruleset_free);

static struct sbx_nft_rule *add_rule(struct sbx_nft_chain *c)
{
	/* n_rules_max was computed from the input: an overflow is our own bug. */
	if (c->n_rules >= c->n_rules_max)
		abort();
	return &c->rules[c->n_rules++];
}

static struct sbx_nft_item *add_item(struct sbx_nft_rule *r, enum sbx_nft_item_kind kind)
{
	struct sbx_nft_item *i;

	if (r->n_items >= SBX_NFT_ITEMS_MAX)
		abort();
	i = &r->items[r->n_items++];
	i->kind = kind;
	return i;
}

static void add_daddr(struct sbx_nft_rule *r, const struct sbx_cidr *cidr, bool negate)
{
	struct sbx_nft_item *i = add_item(r, SBX_NFT_DADDR);

	i->u.cidr = *cidr;
	i->negate = negate;
}

/* Every port: match only the protocol, which spares a look at the packet's transport header. */
static void add_ports(struct sbx_nft_rule *r, enum sbx_proto proto, uint16_t first, uint16_t last)
{
	bool all = first <= 1 && last == UINT16_MAX;
	struct sbx_nft_item *i = add_item(r, all ? SBX_NFT_L4PROTO : SBX_NFT_DPORT);

	i->u.port.proto = proto;
	i->u.port.first = first;
	i->u.port.last = last;
}

static void accept_daddr(struct sbx_nft_chain *c, const struct sbx_cidr *cidr)
{
	struct sbx_nft_rule *r = add_rule(c);

	add_daddr(r, cidr, false);
	add_item(r, SBX_NFT_ACCEPT);
}

/* Packets that are delivered in the namespace itself. (Answers are accepted by an earlier rule.) */
static void accept_loopback(struct sbx_nft_chain *c)
{
	const struct sbx_cidr self6 = { sbx_self6, 128 };

	accept_daddr(c, &self6);
	accept_daddr(c, &loopback4);
	accept_daddr(c, &loopback6);
}

/* The stub answers on port 53 of every address. */
static void accept_dns(struct sbx_nft_chain *c, const struct sbx_nft_input *in)
{
	static const enum sbx_proto protos[] = { SBX_PROTO_TCP, SBX_PROTO_UDP };

	for (size_t i = 0; in->dns && i < SBX_N_ELEMENTS(protos); i++) {
		struct sbx_nft_rule *r = add_rule(c);

		add_ports(r, protos[i], 53, 53);
		add_item(r, SBX_NFT_ACCEPT);
	}
}

/* The port of the listener for a family and protocol; 0: not carried. */
static uint16_t listener_port(const struct sbx_nft_input *in, uint8_t family, enum sbx_proto proto)
{
	if (in->shut)
		return 0;
	if (proto == SBX_PROTO_TCP)
		return family == 4 ? in->tcp_port4 : in->tcp_port6;
	if (!in->udp)
		return 0;
	return family == 4 ? in->udp_port4 : in->udp_port6;
}

static void carry(struct sbx_nft_chain *c, const struct sbx_nft_input *in,
		  const struct sbx_nft_cidr *to, bool negate)
{
	uint8_t family = to->cidr.addr.family;
	uint16_t port = listener_port(in, family, to->proto);
	struct sbx_nft_rule *r;

	if (port == 0)
		return;
	r = add_rule(c);
	add_daddr(r, &to->cidr, negate);
	add_ports(r, to->proto, to->port_first, to->port_last);
	if (c->hook == NF_INET_PRE_ROUTING) {
		struct sbx_nft_item *i = add_item(r, SBX_NFT_TPROXY);

		i->u.tproxy.family = family;
		i->u.tproxy.port = port;
	}
	add_item(r, SBX_NFT_ACCEPT);
}

/* The synthetic ranges, which every flow by name goes to; with all destinations carried, all but
 * multicast. */
static void carry_names(struct sbx_nft_chain *c, const struct sbx_nft_input *in)
{
	static const enum sbx_proto protos[] = { SBX_PROTO_TCP, SBX_PROTO_UDP };
	const struct sbx_cidr *to4 = in->all_destinations ? &multicast4 : &sbx_synthetic4;
	const struct sbx_cidr *to6 = in->all_destinations ? &multicast6 : &sbx_synthetic6;

	for (size_t i = 0; i < SBX_N_ELEMENTS(protos); i++) {
		struct sbx_nft_cidr to = { *to4, 1, UINT16_MAX, protos[i] };

		carry(c, in, &to, in->all_destinations);
		to.cidr = *to6;
		carry(c, in, &to, in->all_destinations);
	}
}

/*
 * The rules for all that passes: accepted, and in prerouting carried destinations are handed to the
 * listener first.
 *
 * Each packet of a flow walks this list twice, so the frequent packets come first: answers go to
 * the own address, requests to a synthetic one. Order matters only in prerouting (in output all of
 * these accept): the own addresses, loopback and port 53 must match before a tproxy rule that could
 * take them. The synthetic ranges hold none of those addresses, so only port 53 comes before them;
 * a cidr entry may hold them, and so does everything when all destinations are carried. A rule that
 * only repeats the chain's policy costs every start a few microseconds, and is left out.
 */
static void pass(struct sbx_nft_chain *c, const struct sbx_nft_input *in)
{
	const struct sbx_cidr self4 = { sbx_self4, 32 };

	accept_daddr(c, &self4);
	accept_dns(c, in);
	if (in->all_destinations) {
		accept_loopback(c);
		carry_names(c, in);
		return; /* multicast is never carried: nothing to add */
	}
	carry_names(c, in);
	/* From here on only a cidr entry could take such packets: without one these rules are left
	 * out. */
	if (c->policy_drop || in->n_cidrs > 0)
		accept_loopback(c);
	for (size_t i = 0; i < in->n_cidrs; i++)
		carry(c, in, &in->cidrs[i], false);
}

static void refuse_rest(struct sbx_nft_chain *c, const struct sbx_nft_input *in)
{
	for (int tcp = 1; tcp >= 0; tcp--) {
		struct sbx_nft_rule *r = add_rule(c);
		struct sbx_nft_item *i;

		/* A reset, because an ICMP error takes a second to reach an IPv6 connect. */
		if (tcp)
			add_ports(r, SBX_PROTO_TCP, 1, UINT16_MAX);
		i = add_item(r, SBX_NFT_LOG);
		i->u.log.group = in->nflog_group;
		i->u.log.snaplen = LOG_SNAPLEN;
		add_item(r, tcp ? SBX_NFT_REJECT_TCP_RESET : SBX_NFT_REJECT_ADMIN);
	}
}

static struct sbx_nft_chain *add_chain(struct sbx_nft_ruleset *rs, struct sbx_nft_chain chain,
				       const struct sbx_nft_input *in)
{
	struct sbx_nft_chain *c = &rs->chains[rs->n_chains];

	*c = chain;
	c->n_rules_max = RULES_FIXED + in->n_cidrs;
	c->rules = calloc(c->n_rules_max, sizeof(*c->rules));
	if (!c->rules)
		return NULL;
	rs->n_chains++;
	return c;
}

static bool carries(const struct sbx_nft_input *in)
{
	return in->tcp_port4 || in->tcp_port6 || (in->udp && (in->udp_port4 || in->udp_port6));
}

static bool has_host_bits(const struct sbx_cidr *c)
{
	for (size_t bit = c->prefix; bit < (c->addr.family == 4 ? 32u : 128u); bit++)
		if (c->addr.b[bit / 8] & (0x80 >> bit % 8))
			return true;
	return false;
}

static int check_input(const struct sbx_nft_input *in)
{
	if (in->n_cidrs > SBX_NFT_CIDRS_MAX)
		return -E2BIG;
	for (size_t i = 0; i < in->n_cidrs; i++) {
		const struct sbx_nft_cidr *c = &in->cidrs[i];
		uint8_t family = c->cidr.addr.family;

		if (family != 4 && family != 6)
			return -EINVAL;
		if (c->cidr.prefix > (family == 4 ? 32 : 128) || has_host_bits(&c->cidr))
			return -EINVAL;
		if (c->port_first > c->port_last || c->port_last == 0)
			return -EINVAL;
		if (c->proto != SBX_PROTO_TCP && c->proto != SBX_PROTO_UDP)
			return -EINVAL;
	}
	return 0;
}

int sbx_nft_ruleset_new(const struct sbx_nft_input *in, struct sbx_nft_ruleset **ret_rs)
{
	SBX_CLEANUP(sbx_nft_ruleset_freep) struct sbx_nft_ruleset *rs = NULL;
	struct sbx_nft_chain *c;
	int r = check_input(in);

	if (r < 0)
		return r;
	rs = calloc(1, sizeof(*rs));
	if (!rs)
		return -ENOMEM;
	if (carries(in)) {
		struct sbx_nft_rule *rule;

		c = add_chain(rs,
			      (struct sbx_nft_chain){ .name = "prerouting",
						      .hook_name = "prerouting",
						      .priority_name = "mangle",
						      .hook = NF_INET_PRE_ROUTING,
						      .priority = NF_IP_PRI_MANGLE },
			      in);
		if (!c)
			return -ENOMEM;
		rule = add_rule(c);
		add_item(rule, SBX_NFT_IIF_LO)->negate = true;
		add_item(rule, SBX_NFT_ACCEPT);
		pass(c, in);
	}
	c = add_chain(rs,
		      (struct sbx_nft_chain){ .name = "output",
					      .hook_name = "output",
					      .priority_name = "filter",
					      .hook = NF_INET_LOCAL_OUT,
					      .priority = NF_IP_PRI_FILTER,
					      .policy_drop = true },
		      in);
	if (!c)
		return -ENOMEM;
	pass(c, in);
	refuse_rest(c, in);
	*ret_rs = sbx_steal_ptr(&rs);
	return 0;
}

struct sbx_nft_ruleset *sbx_nft_ruleset_free(struct sbx_nft_ruleset *rs)
{
	if (!rs)
		return NULL;
	for (size_t i = 0; i < rs->n_chains; i++)
		free(rs->chains[i].rules);
	for (size_t i = 0; i < rs->n_sets; i++) {
		free(rs->sets[i].nets);
		free(rs->sets[i].cgroup_path);
	}
	free(rs);
	return NULL;
}

int sbx_nft_ruleset_apply(const struct sbx_nft_ruleset *rs, int nl_fd, struct sbx_err *err)
{
	SBX_CLEANUP(sbx_nft_batch_fini) struct sbx_nft_batch b = { 0 };
	int r = sbx_nft_batch_init(&b, rs, 1);

	if (r < 0) {
		sbx_err_set(err, "the firewall could not be built: %s", strerror(-r));
		return r;
	}
	r = sbx_nft_batch_send(&b, nl_fd, err);
	return r < 0 ? r : sbx_nft_batch_read_back(&b, rs, nl_fd, err);
}

int sbx_nft_ruleset_replace(const struct sbx_nft_ruleset *rs, int nl_fd, bool *ret_taken,
			    struct sbx_err *err)
{
	SBX_CLEANUP(sbx_nft_batch_fini) struct sbx_nft_batch b = { 0 };
	int r = sbx_nft_batch_init_change(&b, rs, rs, 0, 1);

	*ret_taken = false;
	if (r < 0) {
		sbx_err_set(err, "the firewall could not be built: %s", strerror(-r));
		return r;
	}
	r = sbx_nft_batch_send(&b, nl_fd, err);
	if (r < 0)
		return r;
	*ret_taken = true;
	return sbx_nft_batch_read_back(&b, rs, nl_fd, err);
}
