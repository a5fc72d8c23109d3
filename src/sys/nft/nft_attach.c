/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The ruleset of one sandbox in the host's network namespace (docs/architecture/attach.md), as
 * typed rules. PURE.
 *
 *   map levelN      cgroup id -> goto the sandbox's chain. Shared; one per depth in use.
 *   chain levelN    base chain on output, policy accept: `socket cgroupv2 level N vmap @levelN`.
 *                   Matches cgroups below too. A sandbox inside another must pass both chains.
 *   chain levelN-in base chain on input: the same for a SYN from another host to a listener here
 *   chain ID        floors are refused, pins pass, then the entries; packets out by lo go to ID-lo
 *   chain ID-lo     this host, by any address: refused, but for loopback and admitted networks
 *   chain ID-lp     127/8 and ::1: the stub and the listed ports pass; the rest is refused
 *   chain ID-no     logged to the sandbox's group and refused: TCP by a reset, the rest by ICMP
 *
 * While the policy changes, a packet must pass the old rules and the new ones. The new ones stand
 * in chains and floors of their own (ID-gate...), a gate before the old ones: what may pass returns
 * from there. Both read the same pins.
 *
 * Every chain but the base chains ends in `goto ID-no`: the base chain's policy accepts packets
 * that no rule has judged.
 *
 * The match is by the cgroup in which the socket was made, also when it was passed on
 * (sbx_cgroup_settle()). Packets without a full socket (SYN-ACK, last ACKs, resets, ICMP errors)
 * are the kernel's and pass. Data on an accepted connection is refused, but for connections of a
 * listed loopback port.
 *
 * Pins: two sets per family, of address . protocol . port with a time to live. `pins` may be
 * dialled; `old` (the name no longer has the address) only serves open connections, and UDP. Only
 * sbx_attach_pin() adds pins. No set has a size: the kernel would allocate it at once.
 * dns_capture.c leads DNS to the stub: nat would bring connection tracking to the whole host.
 */
#include "sys/nft/nft_attach.h"

#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter_ipv4.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "sys/nft/nft_form.h"

#define RULES_FIXED 24	/* more rules than any chain has without those for the input's lists */
#define LOG_SNAPLEN 128 /* as in a namespace (nft.c) */

static const struct sbx_cidr loopback4 = { { 4, { 127 } }, 8 };
static const struct sbx_cidr loopback6 = { { 6, { [15] = 1 } }, 128 };

SBX_DEFINE_CLEANUP(struct sbx_nft_ruleset, sbx_nft_ruleset_free);

/* --- building blocks --- */

__attribute__((format(printf, 2, 3))) static const char *
name(struct sbx_nft_ruleset *rs, const char *fmt, ...)
{
	char *to;
	va_list ap;
	int n;

	if (rs->n_names >= SBX_N_ELEMENTS(rs->names))
		abort();
	to = rs->names[rs->n_names++];
	va_start(ap, fmt);
	n = vsnprintf(to, SBX_NFT_NAME_MAX, fmt, ap);
	va_end(ap);
	if (n < 0 || n >= SBX_NFT_NAME_MAX)
		abort();
	return to;
}

static struct sbx_nft_rule *add_rule(struct sbx_nft_chain *c)
{
	/* n_rules_max was computed from the input: an overflow is our own bug. */
	if (c->n_rules >= c->n_rules_max)
		abort();
	return &c->rules[c->n_rules++];
}

static struct sbx_nft_item *add_item(struct sbx_nft_rule *r, enum sbx_nft_item_kind kind)
{
	if (r->n_items >= SBX_NFT_ITEMS_MAX)
		abort();
	r->items[r->n_items].kind = kind;
	return &r->items[r->n_items++];
}

static void add_port(struct sbx_nft_rule *r, enum sbx_nft_item_kind kind, enum sbx_proto proto,
		     uint16_t first, uint16_t last)
{
	struct sbx_nft_item *i = add_item(r, kind);

	i->u.port.proto = proto;
	i->u.port.first = first;
	i->u.port.last = last;
}

static void add_goto(struct sbx_nft_rule *r, const char *chain)
{
	add_item(r, SBX_NFT_GOTO)->u.name = chain;
}

static void add_daddr(struct sbx_nft_rule *r, const struct sbx_cidr *cidr)
{
	add_item(r, SBX_NFT_DADDR)->u.cidr = *cidr;
}

static void add_set_match(struct sbx_nft_rule *r, enum sbx_nft_item_kind kind,
			  const struct sbx_nft_set *set)
{
	struct sbx_nft_item *i = add_item(r, kind);

	i->u.set.family = set->family;
	i->u.set.name = set->name;
}

static struct sbx_nft_chain *add_chain(struct sbx_nft_ruleset *rs, const char *chain,
				       size_t n_listed)
{
	struct sbx_nft_chain *c;

	if (rs->n_chains >= SBX_NFT_CHAINS_MAX)
		abort();
	c = &rs->chains[rs->n_chains];
	*c = (struct sbx_nft_chain){ .name = chain, .n_rules_max = RULES_FIXED + n_listed };
	c->rules = calloc(c->n_rules_max, sizeof(*c->rules));
	if (!c->rules)
		return NULL;
	rs->n_chains++;
	return c;
}

static struct sbx_nft_set *add_set(struct sbx_nft_ruleset *rs, enum sbx_nft_set_kind kind,
				   const char *set, uint8_t family)
{
	struct sbx_nft_set *s;

	if (rs->n_sets >= SBX_NFT_SETS_MAX)
		abort();
	s = &rs->sets[rs->n_sets++];
	*s = (struct sbx_nft_set){ .kind = kind, .name = set, .family = family };
	return s;
}

/* --- floors --- */

static int compare_cidrs(const void *a, const void *b)
{
	const struct sbx_cidr *x = a, *y = b;
	int r = memcmp(x->addr.b, y->addr.b, sizeof(x->addr.b));

	return r ? r : x->prefix - y->prefix;
}

/* The floors of a family, sorted, without those inside others: a set may not have the same
 * interval twice. */
static int fill_floors(struct sbx_nft_set *set, const struct sbx_attach_input *in)
{
	size_t n = 0;

	set->nets = calloc(in->n_floors + 1, sizeof(*set->nets));
	if (!set->nets)
		return -ENOMEM;
	for (size_t i = 0; i < in->n_floors; i++)
		if (in->floors[i].addr.family == set->family)
			set->nets[n++] = in->floors[i];
	qsort(set->nets, n, sizeof(*set->nets), compare_cidrs);
	for (size_t i = 0; i < n; i++) {
		if (set->n_nets &&
		    sbx_cidr_contains(&set->nets[set->n_nets - 1], &set->nets[i].addr))
			continue;
		set->nets[set->n_nets++] = set->nets[i];
	}
	return 0;
}

/* --- the chains --- */

static void fill_no(struct sbx_nft_chain *c, const struct sbx_attach_input *in, const char *prefix)
{
	for (int tcp = 1; tcp >= 0; tcp--) {
		struct sbx_nft_rule *r = add_rule(c);
		struct sbx_nft_item *i;

		if (tcp)
			add_item(r, SBX_NFT_L4PROTO)->u.port.proto = SBX_PROTO_TCP;
		i = add_item(r, SBX_NFT_LOG);
		i->u.log.group = in->nflog_group;
		i->u.log.snaplen = LOG_SNAPLEN;
		i->u.log.prefix = prefix;
		add_item(r, tcp ? SBX_NFT_REJECT_TCP_RESET : SBX_NFT_REJECT_ADMIN);
	}
	add_item(add_rule(c), SBX_NFT_DROP);
}

/* The chains that judge a packet by one input, and their sets. */
struct judge {
	const struct sbx_attach_input *in;
	/* of a packet that may pass: ACCEPT; in a gate RETURN, to the rules behind the jump */
	enum sbx_nft_item_kind pass;
	const char *no; /* the chain of refusals */
	struct {
		struct sbx_nft_set *floors, *pins, *old;
	} sets[2]; /* IPv4, IPv6 */
	struct sbx_nft_chain *ports, *lo, *own;
};

static void add_pass(const struct judge *j, struct sbx_nft_rule *r)
{
	add_item(r, j->pass);
}

static void fill_loopback(const struct judge *j)
{
	static const enum sbx_proto protos[] = { SBX_PROTO_UDP, SBX_PROTO_TCP };
	const struct sbx_attach_input *in = j->in;
	const struct sbx_cidr stub = { in->dns_addr, 32 };
	struct sbx_nft_chain *c = j->ports;

	for (size_t i = 0; in->dns_addr.family && i < SBX_N_ELEMENTS(protos); i++) {
		struct sbx_nft_rule *r = add_rule(c);

		add_daddr(r, &stub);
		add_port(r, SBX_NFT_DPORT, protos[i], in->dns_port, in->dns_port);
		add_pass(j, r);
	}
	for (size_t i = 0; i < in->n_loopback_ports; i++) {
		uint16_t port = in->loopback_ports[i];
		struct sbx_nft_rule *r;

		for (size_t k = 0; k < SBX_N_ELEMENTS(protos); k++) {
			r = add_rule(c);
			add_port(r, SBX_NFT_DPORT, protos[k], port, port);
			add_pass(j, r);
		}
		r = add_rule(c);
		add_port(r, SBX_NFT_SPORT, SBX_PROTO_TCP, port, port);
		add_item(r, SBX_NFT_TCP_OPENED);
		add_pass(j, r);
	}
	add_goto(add_rule(c), j->no);
}

static void fill_cidrs(const struct judge *j, struct sbx_nft_chain *c,
		       const struct sbx_attach_cidr *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct sbx_nft_rule *r = add_rule(c);
		bool every_port = v[i].port_first <= 1 && v[i].port_last == UINT16_MAX;

		add_daddr(r, &v[i].cidr);
		if (v[i].proto != SBX_PROTO_OTHER)
			add_port(r, every_port ? SBX_NFT_L4PROTO : SBX_NFT_DPORT, v[i].proto,
				 v[i].port_first, v[i].port_last);
		if (v[i].refuse)
			add_goto(r, j->no);
		else
			add_pass(j, r);
	}
}

/* Open connections to an address that its name no longer has may go on. */
static void fill_old(const struct judge *j, const struct sbx_nft_set *set)
{
	struct sbx_nft_rule *r = add_rule(j->own);

	add_set_match(r, SBX_NFT_PIN_IN, set);
	add_item(r, SBX_NFT_L4PROTO)->u.port.proto = SBX_PROTO_TCP;
	add_item(r, SBX_NFT_TCP_OPENED);
	add_pass(j, r);
	r = add_rule(j->own);
	add_set_match(r, SBX_NFT_PIN_IN, set);
	add_item(r, SBX_NFT_L4PROTO)->u.port.proto = SBX_PROTO_UDP;
	add_pass(j, r);
}

static void refuse_floors(struct sbx_nft_chain *c, const struct sbx_nft_set *floors, const char *no)
{
	struct sbx_nft_rule *r;

	if (!floors->n_nets)
		return;
	r = add_rule(c);
	add_set_match(r, SBX_NFT_DADDR_IN, floors);
	add_goto(r, no);
}

/* A packet with a routing header is judged by the address of the next router; the header has the
 * real destination. (IPv4's source routes take CAP_NET_RAW.) */
static void refuse_routed(struct sbx_nft_chain *c, const char *no)
{
	struct sbx_nft_rule *r = add_rule(c);

	add_item(r, SBX_NFT_IP6_ROUTED);
	add_goto(r, no);
}

static void fill_local(const struct judge *j)
{
	const struct sbx_cidr *loopback[] = { &loopback4, &loopback6 };

	refuse_routed(j->lo, j->no);
	for (int f = 0; f < 2; f++)
		refuse_floors(j->lo, j->sets[f].floors, j->no);
	for (int f = 0; f < 2; f++) {
		struct sbx_nft_rule *r = add_rule(j->lo);

		add_daddr(r, loopback[f]);
		add_goto(r, j->ports->name);
	}
	fill_cidrs(j, j->lo, j->in->admitted, j->in->n_admitted);
	add_goto(add_rule(j->lo), j->no);
}

static void fill_sandbox(const struct judge *j)
{
	const struct sbx_attach_input *in = j->in;
	struct sbx_nft_chain *c = j->own;
	struct sbx_nft_rule *r;

	r = add_rule(c);
	add_item(r, SBX_NFT_OIF_LO);
	add_goto(r, j->lo->name);
	for (int f = 0; f < 2; f++) {
		if (f == 1)
			refuse_routed(c, j->no);
		refuse_floors(c, j->sets[f].floors, j->no);
		r = add_rule(c);
		add_set_match(r, SBX_NFT_PIN_IN, j->sets[f].pins);
		add_pass(j, r);
	}
	for (int f = 0; f < 2; f++)
		fill_old(j, j->sets[f].old);
	fill_cidrs(j, c, in->admitted, in->n_admitted);
	fill_cidrs(j, c, in->cidrs, in->n_cidrs);
	if (in->all_destinations) {
		static const enum sbx_proto protos[] = { SBX_PROTO_TCP, SBX_PROTO_UDP };

		for (size_t i = 0; i < SBX_N_ELEMENTS(protos); i++) {
			r = add_rule(c);
			add_item(r, SBX_NFT_L4PROTO)->u.port.proto = protos[i];
			add_pass(j, r);
		}
	}
	add_goto(add_rule(c), j->no);
}

static int add_floors(struct sbx_nft_ruleset *rs, struct judge *j, int f, const char *kind)
{
	uint8_t family = f ? 6 : 4;
	const char *set = name(rs, "sb-%s-%sfloor%u", j->in->id, kind, (unsigned)family);

	j->sets[f].floors = add_set(rs, SBX_NFT_SET_NETS, set, family);
	return fill_floors(j->sets[f].floors, j->in);
}

static void add_pins(struct sbx_nft_ruleset *rs, struct judge *j, int f)
{
	uint8_t family = f ? 6 : 4;
	const char *id = j->in->id;

	j->sets[f].pins = add_set(rs, SBX_NFT_SET_PINS,
				  name(rs, "sb-%s-pins%u", id, (unsigned)family), family);
	j->sets[f].old = add_set(rs, SBX_NFT_SET_PINS,
				 name(rs, "sb-%s-old%u", id, (unsigned)family), family);
}

/* A chain comes before those that go to it: text must have this order. */
static int add_chains(struct sbx_nft_ruleset *rs, struct judge *j, const char *kind)
{
	const struct sbx_attach_input *in = j->in;

	j->ports = add_chain(rs, name(rs, "sb-%s%s-lp", in->id, kind), in->n_loopback_ports * 3);
	j->lo = j->ports ? add_chain(rs, name(rs, "sb-%s%s-lo", in->id, kind), in->n_admitted) :
			   NULL;
	j->own = j->lo ? add_chain(rs, name(rs, "sb-%s%s", in->id, kind),
				   in->n_admitted + in->n_cidrs) :
			 NULL;
	return j->own ? 0 : -ENOMEM;
}

static void fill_judge(const struct judge *j)
{
	fill_loopback(j);
	fill_local(j);
	fill_sandbox(j);
}

/* The only rule of a shared base chain. */
static struct sbx_nft_rule *hook_in(struct sbx_nft_chain *c, const char *hook_name, uint32_t hook)
{
	c->shared = true;
	c->hook_name = hook_name;
	c->priority_name = "filter";
	c->hook = hook;
	c->priority = NF_IP_PRI_FILTER;
	return add_rule(c);
}

/* Connections that another host opens to a listener of the sandbox. */
static struct sbx_nft_rule *of_callers(struct sbx_nft_rule *r)
{
	add_item(r, SBX_NFT_IIF_LO)->negate = true;
	add_item(r, SBX_NFT_L4PROTO)->u.port.proto = SBX_PROTO_TCP;
	add_item(r, SBX_NFT_TCP_OPENED)->negate = true;
	return r;
}

static void add_dispatch(struct sbx_nft_rule *r, uint32_t level, const char *map)
{
	struct sbx_nft_item *i = add_item(r, SBX_NFT_CGROUP_VMAP);

	i->u.cgroup.level = level;
	i->u.cgroup.map = map;
}

static int add_map(struct sbx_nft_ruleset *rs, const struct sbx_attach_input *in)
{
	struct sbx_nft_set *map =
		add_set(rs, SBX_NFT_SET_CGROUPS, name(rs, "level%u", (unsigned)in->level), 0);

	map->shared = true;
	map->cgroup_id = in->cgroup_id;
	map->chain = name(rs, "sb-%s", in->id);
	if (in->cgroup_path) {
		map->cgroup_path = strdup(in->cgroup_path);
		if (!map->cgroup_path)
			return -ENOMEM;
	}
	return 0;
}

static int add_hooks(struct sbx_nft_ruleset *rs, uint32_t level)
{
	const char *map = rs->sets[0].name;
	struct sbx_nft_chain *out = add_chain(rs, map, 0);
	struct sbx_nft_chain *in = out ? add_chain(rs, name(rs, "%s-in", map), 0) : NULL;

	if (!in)
		return -ENOMEM;
	add_dispatch(hook_in(out, "output", NF_INET_LOCAL_OUT), level, map);
	add_dispatch(of_callers(hook_in(in, "input", NF_INET_LOCAL_IN)), level, map);
	return 0;
}

/* @gate: NULL, or an input whose chains are asked first. */
static int fill(struct sbx_nft_ruleset *rs, const struct sbx_attach_input *in,
		const struct sbx_attach_input *gate)
{
	struct judge j = { .in = in, .pass = SBX_NFT_ACCEPT };
	struct judge g = { .in = gate, .pass = SBX_NFT_RETURN };
	struct sbx_nft_chain *no;
	int r = add_map(rs, in);

	for (int f = 0; r == 0 && f < 2; f++) {
		r = add_floors(rs, &j, f, "");
		add_pins(rs, &j, f);
		g.sets[f].pins = j.sets[f].pins;
		g.sets[f].old = j.sets[f].old;
	}
	for (int f = 0; r == 0 && gate && f < 2; f++)
		r = add_floors(rs, &g, f, "gate-");
	no = r == 0 ? add_chain(rs, name(rs, "sb-%s-no", in->id), 0) : NULL;
	if (!no)
		return -ENOMEM;
	fill_no(no, in, rs->sets[0].chain);
	j.no = g.no = no->name;
	if (gate)
		r = add_chains(rs, &g, "-gate");
	if (r == 0)
		r = add_chains(rs, &j, "");
	if (r < 0)
		return r;
	if (gate) {
		fill_judge(&g);
		add_item(add_rule(j.own), SBX_NFT_JUMP)->u.name = g.own->name;
	}
	fill_judge(&j);
	return add_hooks(rs, in->level);
}

/* --- the input --- */

static bool is_id(const char *id)
{
	size_t n = strspn(id, "0123456789abcdef");

	return n >= 1 && n <= SBX_ATTACH_ID_MAX && id[n] == '\0';
}

static bool is_net(const struct sbx_cidr *c)
{
	unsigned bits = c->addr.family == 4 ? 32 : c->addr.family == 6 ? 128 : 0;

	if (bits == 0 || c->prefix > bits)
		return false;
	for (unsigned bit = c->prefix; bit < bits; bit++)
		if (c->addr.b[bit / 8] & (0x80 >> bit % 8))
			return false;
	return true;
}

static bool are_cidrs(const struct sbx_attach_cidr *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (!is_net(&v[i].cidr) || v[i].port_first > v[i].port_last)
			return false;
		if (v[i].proto != SBX_PROTO_TCP && v[i].proto != SBX_PROTO_UDP &&
		    v[i].proto != SBX_PROTO_OTHER)
			return false;
	}
	return true;
}

/* The path is written in quotes in a text that nft(8) reads. */
static bool is_quotable(const char *path)
{
	size_t n = strcspn(path, "\"\\\n");

	return path[0] != '\0' && path[n] == '\0' && n < 256;
}

static int check_input(const struct sbx_attach_input *in)
{
	if (in->n_floors > SBX_ATTACH_FLOORS_MAX || in->n_cidrs > SBX_ATTACH_CIDRS_MAX ||
	    in->n_admitted > SBX_ATTACH_CIDRS_MAX || in->n_loopback_ports > SBX_ATTACH_PORTS_MAX)
		return -E2BIG;
	if (!in->id || !is_id(in->id) || in->level < 1 || in->level > SBX_ATTACH_LEVEL_MAX)
		return -EINVAL;
	if (in->cgroup_path && !is_quotable(in->cgroup_path))
		return -EINVAL;
	if (in->dns_addr.family &&
	    (!sbx_cidr_contains(&loopback4, &in->dns_addr) || in->dns_port == 0))
		return -EINVAL;
	for (size_t i = 0; i < in->n_floors; i++)
		if (!is_net(&in->floors[i]))
			return -EINVAL;
	for (size_t i = 0; i < in->n_loopback_ports; i++)
		if (in->loopback_ports[i] == 0)
			return -EINVAL;
	return are_cidrs(in->admitted, in->n_admitted) && are_cidrs(in->cidrs, in->n_cidrs)
		       ? 0
		       : -EINVAL;
}

static int ruleset_new(const struct sbx_attach_input *in, const struct sbx_attach_input *gate,
		       struct sbx_nft_ruleset **ret_rs)
{
	SBX_CLEANUP(sbx_nft_ruleset_freep) struct sbx_nft_ruleset *rs = NULL;
	int r = check_input(in);

	if (r == 0 && gate)
		r = check_input(gate);
	if (r < 0)
		return r;
	rs = calloc(1, sizeof(*rs));
	if (!rs)
		return -ENOMEM;
	rs->shares_table = true;
	r = fill(rs, in, gate);
	if (r == 0)
		*ret_rs = sbx_steal_ptr(&rs);
	return r;
}

int sbx_attach_ruleset_new(const struct sbx_attach_input *in, struct sbx_nft_ruleset **ret_rs)
{
	return ruleset_new(in, NULL, ret_rs);
}

int sbx_attach_narrow_new(const struct sbx_attach_input *from, const struct sbx_attach_input *to,
			  struct sbx_nft_ruleset **ret_rs)
{
	if (!from->id || !to->id || strcmp(from->id, to->id) != 0 || from->level != to->level ||
	    from->cgroup_id != to->cgroup_id || from->nflog_group != to->nflog_group)
		return -EINVAL;
	return ruleset_new(from, to, ret_rs);
}

/* --- judging by the input --- */

/* 1 accepted, 0 refused, -1: no entry is for it. */
static int judge_by(const struct sbx_attach_cidr *v, size_t n, const struct sbx_sock_flow *f)
{
	for (size_t i = 0; i < n; i++) {
		const struct sbx_attach_cidr *c = &v[i];
		bool every_port = c->proto == SBX_PROTO_OTHER ||
				  (c->port_first <= 1 && c->port_last == UINT16_MAX);

		if (sbx_cidr_contains(&c->cidr, &f->remote) &&
		    (c->proto == SBX_PROTO_OTHER || c->proto == f->proto) &&
		    (every_port ||
		     (c->port_first <= f->remote_port && f->remote_port <= c->port_last)))
			return !c->refuse;
	}
	return -1;
}

static bool lets_loopback(const struct sbx_attach_input *in, const struct sbx_sock_flow *f)
{
	if (in->dns_addr.family && sbx_addr_equal(&f->remote, &in->dns_addr) &&
	    f->remote_port == in->dns_port)
		return true;
	for (size_t i = 0; i < in->n_loopback_ports; i++) {
		uint16_t port = in->loopback_ports[i];

		if (port == f->remote_port || (port == f->local_port && f->proto == SBX_PROTO_TCP))
			return true;
	}
	return false;
}

bool sbx_attach_lets_go_on(const struct sbx_attach_input *in, const struct sbx_sock_flow *flow,
			   bool pinned)
{
	bool local = sbx_addr_equal(&flow->remote, &flow->local);
	int r;

	for (size_t i = 0; i < in->n_floors; i++)
		if (sbx_cidr_contains(&in->floors[i], &flow->remote))
			return false;
	if (sbx_cidr_contains(&loopback4, &flow->remote) ||
	    sbx_cidr_contains(&loopback6, &flow->remote))
		return lets_loopback(in, flow);
	if (pinned && !local)
		return true;
	r = judge_by(in->admitted, in->n_admitted, flow);
	if (r < 0 && !local)
		r = judge_by(in->cidrs, in->n_cidrs, flow);
	if (r < 0)
		r = in->all_destinations && !local;
	return r == 1 && (flow->proto == SBX_PROTO_TCP || flow->proto == SBX_PROTO_UDP);
}
