/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Attach cgroup: the policy as lists of networks for the kernel. PURE.
 *
 * A verdict depends only on the networks that hold the address: of entries (the profile's, rules of
 * the workspace and the host, live lists), floors, admits and address classes, also as embedded in
 * IPv6. Of two networks, one holds the other or they are
 * disjoint. So they cut the addresses into regions: each is a network without the smaller ones in
 * it. All addresses of a region get the same verdict. sbx_policy_decide_addr() is asked once for
 * each region, protocol and run of ports. A verdict that differs from that of the surrounding
 * region becomes a rule. Smaller networks stand first in a list, so the first match decides.
 *
 *   floors    networks that nothing in this policy can allow, whatever the port. They also bind
 *             pins. A class that pins may lead to (`private: true`, an admit) is a region instead.
 *   admitted  networks that the policy allows and the system policy admits. This list comes before
 *             cidrs, and holds for packets through lo too.
 *   cidrs     the other networks that the policy allows.
 *
 * This file gathers the networks; plan_attach_rules.c makes the rules. Only regions that a packet
 * can reach are looked at: in mode full all, otherwise those that overlap an allowed network; under
 * an air gap, those that overlap one of the live list. A policy that allows only names has floors
 * alone.
 */
#include "launcher/attach/plan_attach_internal.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "policy/lists/shipped.h"

#define FORMS_MAX 4
static_assert(SBX_LOOPBACK_PORTS_MAX <= SBX_ATTACH_PORTS_MAX, "a profile's list fits");

static const struct sbx_cidr loopbacks[] = { { { 4, { 127 } }, 8 }, { { 6, { [15] = 1 } }, 128 } };
static const struct sbx_cidr mapped = { { 6, { [10] = 0xff, 0xff } }, 96 };

void sbx_attach_lists_fini(struct sbx_attach_lists *l)
{
	free(l->floors);
	free(l->admitted);
	free(l->cidrs);
	free(l->loopback_ports);
	*l = (struct sbx_attach_lists){ 0 };
}

static void builder_fini(struct sbx_attach_builder *b)
{
	free(b->entries);
	free(b->regions);
	free(b->sources);
	free(b->admit);
	free(b->starts);
	sbx_attach_lists_fini(&b->lists);
}

const char *sbx_attach_entries_are(const struct sbx_attach_builder *b)
{
	return b->only_profile ? "network.allow and network.deny" :
				 "network.allow, network.deny, rules and live lists";
}

int sbx_attach_too_many(struct sbx_err *err, const char *what, size_t n, const char *of, int max)
{
	sbx_err_set(
		err,
		"%s: %zu %s, and attach cgroup has room for %d: write fewer and wider networks and "
		"port ranges, or use attach netns",
		what, n, of, max);
	return SBX_ATTACH_LISTS_E_TOO_MANY;
}

/* --- networks --- */

static bool overlaps(const struct sbx_cidr *a, const struct sbx_cidr *b)
{
	return sbx_attach_is_inside(a, b) || sbx_attach_is_inside(b, a);
}

/* The network of @at's first @prefix bits with the last of them inverted: the sibling of @at's own
 * network. */
static struct sbx_cidr other_half(const struct sbx_addr *at, unsigned prefix)
{
	struct sbx_cidr c = { .addr = { .family = at->family }, .prefix = (uint8_t)prefix };

	for (unsigned bit = 0; bit < prefix; bit++)
		c.addr.b[bit / 8] |= at->b[bit / 8] & (0x80 >> bit % 8);
	c.addr.b[(prefix - 1) / 8] ^= (uint8_t)(0x80 >> (prefix - 1) % 8);
	return c;
}

/* Writes @c and, if it is IPv4, the IPv6 networks that embed it. Returns their number. */
static size_t forms_of(const struct sbx_cidr *c, struct sbx_cidr ret[FORMS_MAX])
{
	struct sbx_addr_range r;
	size_t n = 0;

	ret[n++] = *c;
	for (size_t i = 0; c->addr.family == 4 && sbx_addr_range_at(i, &r); i++) {
		unsigned at = r.embeds == SBX_ADDR_EMBEDS_AT_2	  ? 2
			      : r.embeds == SBX_ADDR_EMBEDS_AT_12 ? 12
								  : 0;

		/* A range that is refused as a whole needs no finer network. */
		if (at == 0 || r.class != SBX_ADDR_PUBLIC || sbx_attach_is_inside(&r.cidr, &mapped))
			continue;
		if (n == FORMS_MAX)
			abort();
		ret[n] = r.cidr;
		memcpy(ret[n].addr.b + at, c->addr.b, 4);
		ret[n++].prefix = (uint8_t)(at * 8 + c->prefix);
	}
	return n;
}

bool sbx_attach_is_at(const struct sbx_net_entry *e, enum sbx_proto proto, uint16_t port)
{
	if (e->proto_set && e->proto != proto)
		return false;
	for (size_t i = 0; i < e->n_ports; i++)
		if (e->ports[i].first <= port && port <= e->ports[i].last)
			return true;
	return e->n_ports == 0;
}

static bool covers_every_port(const struct sbx_net_entry *e)
{
	return !e->proto_set && (e->n_ports == 0 || (e->n_ports == 1 && e->ports[0].first == 1 &&
						     e->ports[0].last == UINT16_MAX));
}

/* May a packet to @c be allowed? */
static bool is_reachable(const struct sbx_attach_builder *b, const struct sbx_cidr *c)
{
	if (!b->carries || b->full)
		return b->carries;
	for (size_t i = 0; i < b->n_entries; i++)
		if (b->entries[i].reaches && overlaps(&b->entries[i].entry->cidr, c))
			return true;
	return false;
}

/* --- gathering --- */

static int add_region(struct sbx_attach_builder *b, const struct sbx_cidr *cidr, bool floor,
		      bool opaque)
{
	if (b->n_regions == b->n_regions_max) {
		size_t n = b->n_regions_max ? b->n_regions_max * 2 : 128;
		struct sbx_attach_region *v = reallocarray(b->regions, n, sizeof(*v));

		if (!v)
			return -ENOMEM;
		b->regions = v;
		b->n_regions_max = n;
	}
	b->regions[b->n_regions++] =
		(struct sbx_attach_region){ .cidr = *cidr, .floor = floor, .opaque = opaque };
	return 0;
}

/* Adds a floor, without loopback: loopback has its own rules for the stub and the listed ports. */
static int add_floor(struct sbx_attach_builder *b, const struct sbx_cidr *cidr)
{
	for (size_t i = 0; i < SBX_N_ELEMENTS(loopbacks); i++) {
		const struct sbx_cidr *l = &loopbacks[i];
		int r = 0;

		if (sbx_attach_is_inside(cidr, l))
			return 0;
		if (!sbx_attach_is_inside(l, cidr))
			continue;
		for (unsigned prefix = cidr->prefix + 1u; r == 0 && prefix <= l->prefix; prefix++) {
			struct sbx_cidr half = other_half(&l->addr, prefix);

			r = add_region(b, &half, true, false);
		}
		return r;
	}
	return add_region(b, cidr, true, false);
}

/* A floor around loopback is cut into many networks (add_floor()). */
static bool holds_loopback(const struct sbx_cidr *c)
{
	return sbx_attach_is_inside(&loopbacks[0], c) || sbx_attach_is_inside(&loopbacks[1], c);
}

static int add_floor_forms(struct sbx_attach_builder *b, const struct sbx_cidr *cidr)
{
	struct sbx_cidr forms[FORMS_MAX];
	size_t n = forms_of(cidr, forms);
	int r = 0;

	for (size_t i = 0; r == 0 && i < n; i++)
		r = add_floor(b, &forms[i]);
	return r;
}

/* Can an entry or a pin lead to an address of that class in @c? */
static bool is_lifted(const struct sbx_attach_builder *b, enum sbx_addr_class class,
		      const struct sbx_cidr *c)
{
	const struct sbx_net_list *allow = &b->profile->network.allow;

	if (!b->carries || (class != SBX_ADDR_PRIVATE && class != SBX_ADDR_LINK_LOCAL))
		return false;
	for (size_t i = 0; i < allow->n && class == SBX_ADDR_PRIVATE; i++)
		if (allow->v[i].private_ok &&
		    (!allow->v[i].is_cidr || overlaps(&allow->v[i].cidr, c)))
			return true;
	for (size_t i = 0; b->system && i < b->system->admit.n; i++)
		if (overlaps(&b->system->admit.v[i].cidr, c))
			return true;
	return false;
}

/* Is a public range, or loopback, inside the range at @index? The table has smaller ranges
 * first. */
static bool has_holes(const struct sbx_addr_range *range, size_t index)
{
	struct sbx_addr_range r;

	for (size_t i = 0; i < index && sbx_addr_range_at(i, &r); i++)
		if ((r.class == SBX_ADDR_PUBLIC || r.class == SBX_ADDR_LOOPBACK) &&
		    sbx_attach_is_inside(&r.cidr, &range->cidr))
			return true;
	return false;
}

static int add_class_floors(struct sbx_attach_builder *b)
{
	struct sbx_addr_range r;
	int ret = add_floor(b, &mapped);

	for (size_t i = 0; ret == 0 && sbx_addr_range_at(i, &r); i++) {
		struct sbx_cidr forms[FORMS_MAX];
		size_t n = forms_of(&r.cidr, forms);

		if (r.class == SBX_ADDR_PUBLIC || has_holes(&r, i))
			continue;
		for (size_t k = 0; ret == 0 && k < n; k++)
			if (!is_lifted(b, r.class, &forms[k]))
				ret = add_floor(b, &forms[k]);
	}
	return ret;
}

/* May the entry allow something of @form, a form of @denied? An entry of a rule or a live list may
 * whenever it overlaps either. One of the profile, above which denies of all layers stand, also as
 * embedded, may if it is smaller. */
static bool lifts(const struct sbx_attach_named *e, const struct sbx_cidr *denied,
		  const struct sbx_cidr *form)
{
	const struct sbx_cidr *c = &e->entry->cidr;

	if (!e->allows)
		return false;
	return e->of_profile ? sbx_attach_is_inside(c, denied) && c->prefix != denied->prefix
			     : overlaps(c, form) || overlaps(c, denied);
}

/* Adds the networks that are denied as a whole to the floors while there is room. One lookup then
 * serves for all, instead of three rules for each, and no pin leads there. */
static int add_denied(struct sbx_attach_builder *b)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < b->n_entries; i++) {
		const struct sbx_net_entry *e = b->entries[i].entry;
		struct sbx_cidr forms[FORMS_MAX];
		size_t n = b->entries[i].allows ? 0 : forms_of(&e->cidr, forms);

		if (!covers_every_port(e) || holds_loopback(&e->cidr) ||
		    !is_reachable(b, &e->cidr) || b->n_regions + FORMS_MAX > SBX_ATTACH_FLOORS_MAX)
			continue;
		for (size_t f = 0; r == 0 && f < n; f++) {
			bool denied = true;

			for (size_t k = 0; denied && k < b->n_entries; k++)
				denied = !lifts(&b->entries[k], &e->cidr, &forms[f]);
			if (denied)
				r = add_floor(b, &forms[f]);
		}
	}
	return r;
}

/* A rule with a network, that nothing lifts. */
static bool is_floor(const struct sbx_rule *rule)
{
	return rule->is_floor && rule->type == SBX_RULE_NETWORK && rule->entry.is_cidr;
}

static int add_floors(struct sbx_attach_builder *b)
{
	int r = add_class_floors(b);

	for (const char *const *s = sbx_shipped_floors; r == 0 && *s; s++) {
		struct sbx_cidr cidr;

		if (sbx_cidr_parse(*s, &cidr) == 0)
			r = add_floor_forms(b, &cidr);
	}
	for (size_t i = 0; b->system && r == 0 && i < b->system->floors.n; i++) {
		const struct sbx_net_entry *e = &b->system->floors.v[i];

		if (e->is_cidr && covers_every_port(e))
			r = add_floor_forms(b, &e->cidr);
	}
	for (size_t i = 0; b->in->rules && r == 0 && i < b->in->rules->n; i++) {
		const struct sbx_rule *rule = &b->in->rules->v[i];

		if (is_floor(rule) && covers_every_port(&rule->entry))
			r = add_floor_forms(b, &rule->entry.cidr);
	}
	return r == 0 ? add_denied(b) : r;
}

static int add_source(struct sbx_attach_builder *b, const struct sbx_cidr *cidr,
		      const struct sbx_net_entry *e)
{
	if (b->n_sources == b->n_sources_max) {
		size_t n = b->n_sources_max ? b->n_sources_max * 2 : 64;
		struct sbx_attach_source *v = reallocarray(b->sources, n, sizeof(*v));

		if (!v)
			return -ENOMEM;
		b->sources = v;
		b->n_sources_max = n;
	}
	b->sources[b->n_sources++] = (struct sbx_attach_source){ *cidr, e };
	return add_region(b, cidr, false, false);
}

/* Adds the entry's networks that a packet can reach. Counts the entry in *@n if there is one. */
static int add_entry(struct sbx_attach_builder *b, const struct sbx_net_entry *e, size_t *n)
{
	struct sbx_cidr forms[FORMS_MAX];
	size_t n_forms = e->is_cidr ? forms_of(&e->cidr, forms) : 0;
	bool counted = false;

	for (size_t k = 0; k < n_forms; k++) {
		if (!is_reachable(b, &forms[k]))
			continue;
		if (add_source(b, &forms[k], e) < 0)
			return -ENOMEM;
		counted = true;
	}
	*n += counted;
	return 0;
}

static int add_floor_entries(struct sbx_attach_builder *b, size_t *n)
{
	int r = 0;

	for (size_t i = 0; r == 0 && b->system && i < b->system->floors.n; i++)
		r = add_entry(b, &b->system->floors.v[i], n);
	for (size_t i = 0; r == 0 && b->in->rules && i < b->in->rules->n; i++)
		if (is_floor(&b->in->rules->v[i]))
			r = add_entry(b, &b->in->rules->v[i].entry, n);
	return r;
}

static int add_admit(struct sbx_attach_builder *b)
{
	const struct sbx_net_list *list = &b->system->admit;

	b->admit = calloc(list->n + 1, sizeof(const struct sbx_net_entry *));
	if (!b->admit)
		return -ENOMEM;
	for (size_t i = 0; i < list->n; i++) {
		if (!is_reachable(b, &list->v[i].cidr))
			continue;
		b->admit[b->n_admit++] = &list->v[i];
		if (add_source(b, &list->v[i].cidr, &list->v[i]) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int add_classes(struct sbx_attach_builder *b)
{
	struct sbx_addr_range r;

	for (size_t i = 0; sbx_addr_range_at(i, &r); i++) {
		bool opaque =
			r.embeds == SBX_ADDR_EMBEDS_NAT64 || r.embeds == SBX_ADDR_EMBEDS_TEREDO;
		struct sbx_cidr forms[FORMS_MAX];
		size_t n = forms_of(&r.cidr, forms);

		for (size_t k = 0; k < n; k++)
			if (is_reachable(b, &forms[k]) &&
			    add_region(b, &forms[k], false, opaque) < 0)
				return -ENOMEM;
	}
	return 0;
}

/* Adds everything but floors. Refuses too many entries early: the work grows with their square. */
static int add_policy(struct sbx_attach_builder *b, struct sbx_err *err)
{
	static const char networks[] = "networks";
	size_t n_entries = 0, n_floors = 0;
	int r = add_classes(b);

	for (size_t i = 0; r == 0 && i < b->n_entries; i++)
		r = add_entry(b, b->entries[i].entry, &n_entries);
	if (r == 0)
		r = add_floor_entries(b, &n_floors);
	if (r == 0 && b->system)
		r = add_admit(b);
	if (r < 0)
		return r;
	if (n_entries > SBX_ATTACH_CIDRS_MAX)
		return sbx_attach_too_many(err, sbx_attach_entries_are(b), n_entries, networks,
					   SBX_ATTACH_CIDRS_MAX);
	if (n_floors > SBX_ATTACH_FLOORS_MAX)
		return sbx_attach_too_many(err, "floors of the system policy", n_floors, networks,
					   SBX_ATTACH_FLOORS_MAX);
	if (b->n_admit > SBX_ATTACH_CIDRS_MAX)
		return sbx_attach_too_many(err, "admit of the system policy", b->n_admit, networks,
					   SBX_ATTACH_CIDRS_MAX);
	return 0;
}

static int take_floors(struct sbx_attach_builder *b, struct sbx_err *err)
{
	struct sbx_attach_lists *l = &b->lists;

	l->floors = calloc(b->n_regions + 1, sizeof(*l->floors));
	if (!l->floors)
		return -ENOMEM;
	for (size_t i = 0; i < b->n_regions; i++) {
		const struct sbx_attach_region *r = &b->regions[i];

		if (r->floor && !(r->up && r->up->floor))
			l->floors[l->n_floors++] = r->cidr;
	}
	if (l->n_floors > SBX_ATTACH_FLOORS_MAX)
		return sbx_attach_too_many(err, "floors of the system policy", l->n_floors,
					   "networks with all that embed them",
					   SBX_ATTACH_FLOORS_MAX);
	return 0;
}

/* --- loopback --- */

/* Does the floor deny the port at a loopback address? The rules do not tell loopback addresses
 * apart. */
static bool denies_loopback(const struct sbx_net_entry *e, uint16_t port)
{
	return e->is_cidr &&
	       (overlaps(&e->cidr, &loopbacks[0]) || overlaps(&e->cidr, &loopbacks[1])) &&
	       (sbx_attach_is_at(e, SBX_PROTO_TCP, port) ||
		sbx_attach_is_at(e, SBX_PROTO_UDP, port));
}

static bool floor_denies_loopback(const struct sbx_attach_builder *b, uint16_t port)
{
	for (size_t i = 0; b->system && i < b->system->floors.n; i++)
		if (denies_loopback(&b->system->floors.v[i], port))
			return true;
	for (size_t i = 0; b->in->rules && i < b->in->rules->n; i++)
		if (is_floor(&b->in->rules->v[i]) &&
		    denies_loopback(&b->in->rules->v[i].entry, port))
			return true;
	return false;
}

static int fill_loopback(struct sbx_attach_builder *b)
{
	const struct sbx_str_list *ports = &b->profile->network.loopback_ports;
	struct sbx_attach_lists *l = &b->lists;

	l->loopback_ports = calloc(ports->n + 1, sizeof(*l->loopback_ports));
	if (!l->loopback_ports)
		return -ENOMEM;
	for (size_t i = 0; i < ports->n; i++) {
		uint16_t port = sbx_port_parse(ports->v[i]);

		if (port && !floor_denies_loopback(b, port))
			l->loopback_ports[l->n_loopback_ports++] = port;
	}
	return 0;
}

/* --- entries --- */

static void take_entry(struct sbx_attach_builder *b, const struct sbx_net_entry *e, bool allows,
		       bool of_profile, bool reaches)
{
	if (e->is_cidr)
		b->entries[b->n_entries++] = (struct sbx_attach_named){
			.entry = e,
			.allows = allows,
			.of_profile = of_profile,
			.reaches = allows && reaches,
		};
}

static void take_list(struct sbx_attach_builder *b, const struct sbx_net_list *list, bool allows,
		      bool of_profile, bool reaches)
{
	for (size_t i = 0; i < list->n; i++)
		take_entry(b, &list->v[i], allows, of_profile, reaches);
}

/* Takes the entries of all layers but floors. Under an air gap only the live list leads out. */
static int gather(struct sbx_attach_builder *b, bool air_gap, struct sbx_err *err)
{
	const struct sbx_live *live = b->in->live;
	const struct sbx_rules *rules = b->in->rules;
	const struct sbx_net_list *allow = &b->profile->network.allow;
	const struct sbx_net_list *deny = &b->profile->network.deny;
	size_t n_max = allow->n + deny->n + 1, n_allowed = 0, n_own;

	n_max += live ? live->allow.n + live->deny.n + live->rules.n : 0;
	n_max += rules ? rules->n : 0;
	b->entries = calloc(n_max, sizeof(*b->entries));
	if (!b->entries)
		return -ENOMEM;
	take_list(b, allow, true, true, !air_gap);
	take_list(b, deny, false, true, false);
	n_own = b->n_entries;
	for (size_t i = 0; rules && i < rules->n; i++)
		if (rules->v[i].type == SBX_RULE_NETWORK && !rules->v[i].is_floor)
			take_entry(b, &rules->v[i].entry, rules->v[i].action == SBX_ALLOW, false,
				   !air_gap);
	if (live) {
		take_list(b, &live->allow, true, false, true);
		take_list(b, &live->deny, false, false, false);
		for (size_t i = 0; i < live->rules.n; i++)
			take_entry(b, &live->rules.v[i].entry,
				   live->rules.v[i].action == SBX_ALLOW, false, true);
	}
	b->only_profile = b->n_entries == n_own;
	for (size_t i = 0; i < b->n_entries; i++)
		n_allowed += b->entries[i].allows;
	if (n_allowed > SBX_ATTACH_CIDRS_MAX)
		return sbx_attach_too_many(err, b->only_profile ? "network.allow" :
						 "network.allow, rules and live lists",
					   n_allowed, "networks", SBX_ATTACH_CIDRS_MAX);
	return 0;
}

/* --- all of it --- */

/* Does the policy allow any address? Otherwise the floors are all. */
static bool has_destinations(const struct sbx_attach_builder *b)
{
	static const struct sbx_cidr all[] = { { { 4, { 0 } }, 0 }, { { 6, { 0 } }, 0 } };

	return is_reachable(b, &all[0]) || is_reachable(b, &all[1]);
}

int sbx_attach_lists_new(const struct sbx_policy_input *in, const struct sbx_policy *policy,
			 struct sbx_attach_lists *ret, struct sbx_err *err)
{
	SBX_CLEANUP(builder_fini)
	struct sbx_attach_builder b = {
		.in = in, .profile = in->profile, .system = in->system, .policy = policy
	};
	bool air_gap = in->live && in->live->air_gapped;
	int r;

	b.carries = b.profile->network.mode != SBX_MODE_OFFLINE;
	b.full = sbx_policy_is_open(policy);
	r = gather(&b, air_gap, err);
	if (r == 0)
		r = add_floors(&b);
	if (r == 0 && has_destinations(&b))
		r = add_policy(&b, err);
	if (r == 0) {
		sbx_attach_arrange(&b);
		r = take_floors(&b, err);
	}
	if (r == 0 && has_destinations(&b))
		r = sbx_attach_fill_rules(&b, err);
	if (r == 0 && !air_gap)
		r = fill_loopback(&b);
	if (r != 0)
		return r;
	b.lists.all_destinations = b.full;
	*ret = b.lists;
	b.lists = (struct sbx_attach_lists){ 0 };
	return 0;
}
