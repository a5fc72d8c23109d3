/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Attach cgroup: sorts the regions, asks the policy about each, and makes rules of the verdicts.
 * plan_attach.c explains the method. PURE. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "launcher/attach/plan_attach_internal.h"

enum list { LIST_ADMITTED = 0, LIST_CIDRS };

/* --- regions --- */

/* The address that follows the last one of @c; false: there is none. */
static bool address_behind(const struct sbx_cidr *c, struct sbx_addr *ret)
{
	*ret = c->addr;
	for (unsigned bit = c->prefix; bit-- > 0;) {
		uint8_t mask = (uint8_t)(0x80 >> bit % 8);

		ret->b[bit / 8] ^= mask;
		if (ret->b[bit / 8] & mask)
			return true;
	}
	return false;
}

static int compare_regions(const void *pa, const void *pb)
{
	const struct sbx_attach_region *x = pa, *y = pb;
	int r = y->cidr.addr.family - x->cidr.addr.family;

	if (r == 0)
		r = memcmp(x->cidr.addr.b, y->cidr.addr.b, sizeof(x->cidr.addr.b));
	return r ? r : x->cidr.prefix - y->cidr.prefix;
}

/* Finds an address of regions[i] that is in no network inside it. Those follow in the array. */
static void find_sample(struct sbx_attach_builder *b, size_t i)
{
	struct sbx_attach_region *r = &b->regions[i];
	struct sbx_addr at = r->cidr.addr;
	size_t k = i + 1;

	while (k < b->n_regions && sbx_attach_is_inside(&b->regions[k].cidr, &r->cidr)) {
		const struct sbx_cidr *c = &b->regions[k].cidr;

		if (!sbx_addr_equal(&at, &c->addr))
			break;
		if (!address_behind(c, &at) || !sbx_cidr_contains(&r->cidr, &at)) {
			r->covered = true;
			return;
		}
		while (k < b->n_regions && sbx_attach_is_inside(&b->regions[k].cidr, c))
			k++;
	}
	r->sample = at;
}

void sbx_attach_arrange(struct sbx_attach_builder *b)
{
	size_t n = 0;

	qsort(b->regions, b->n_regions, sizeof(*b->regions), compare_regions);
	for (size_t i = 0; i < b->n_regions; i++) {
		if (n && compare_regions(&b->regions[n - 1], &b->regions[i]) == 0) {
			b->regions[n - 1].floor |= b->regions[i].floor;
			b->regions[n - 1].opaque |= b->regions[i].opaque;
		} else {
			b->regions[n++] = b->regions[i];
		}
	}
	b->n_regions = n;
	for (size_t i = 0; i < n; i++) {
		struct sbx_attach_region *r = &b->regions[i];

		r->up = i ? r - 1 : NULL;
		while (r->up && !sbx_attach_is_inside(&r->cidr, &r->up->cidr))
			r->up = r->up->up;
		r->floor |= r->up && r->up->floor;
		r->opaque |= r->up && r->up->opaque;
		find_sample(b, i);
	}
}

/* --- verdicts --- */

static bool is_admitted(const struct sbx_attach_builder *b, const struct sbx_addr *addr,
			enum sbx_proto proto, uint16_t port)
{
	for (size_t i = 0; i < b->n_admit; i++)
		if (sbx_cidr_contains(&b->admit[i]->cidr, addr) &&
		    sbx_attach_is_at(b->admit[i], proto, port))
			return true;
	return false;
}

static bool is_allowed(const struct sbx_attach_builder *b, const struct sbx_attach_region *r,
		       enum sbx_proto proto, uint16_t port)
{
	return !r->opaque &&
	       sbx_policy_decide_addr(b->policy, &r->sample, proto, port).action == SBX_ALLOW;
}

/* Does @list, read from @r's rules on, accept? @r NULL: the verdict at the end of the list. A
 * region that another list judges gets the verdict of the region around it, so that it needs no
 * rule. */
static bool accepts(const struct sbx_attach_builder *b, enum list list,
		    const struct sbx_attach_region *r, enum sbx_proto proto, uint16_t port)
{
	for (; r; r = r->up) {
		bool allowed, admitted;

		if (r->floor || r->covered)
			continue;
		allowed = is_allowed(b, r, proto, port);
		admitted = allowed && is_admitted(b, &r->sample, proto, port);
		if (list == LIST_ADMITTED)
			return admitted;
		if (!admitted)
			return allowed;
	}
	return list == LIST_CIDRS && b->full;
}

/* --- rules --- */

static int compare_starts(const void *pa, const void *pb)
{
	uint32_t a = *(const uint32_t *)pa, b = *(const uint32_t *)pb;

	return a < b ? -1 : a > b;
}

/* Fills b->starts with the ports at which the verdict of @r, or of a region around it, may
 * change. */
static size_t starts_of(struct sbx_attach_builder *b, const struct sbx_attach_region *r)
{
	size_t n = 0, kept = 0;

	b->starts[n++] = 1;
	for (size_t i = 0; i < b->n_sources; i++) {
		const struct sbx_net_entry *e = b->sources[i].entry;

		if (!sbx_attach_is_inside(&r->cidr, &b->sources[i].cidr))
			continue;
		for (size_t k = 0; k < e->n_ports; k++) {
			b->starts[n++] = e->ports[k].first;
			b->starts[n++] = e->ports[k].last + 1u;
		}
	}
	qsort(b->starts, n, sizeof(*b->starts), compare_starts);
	for (size_t i = 0; i < n && b->starts[i] <= UINT16_MAX; i++)
		if (kept == 0 || b->starts[kept - 1] != b->starts[i])
			b->starts[kept++] = b->starts[i];
	return kept;
}

#define RULES_ROOM (SBX_ATTACH_CIDRS_MAX + 1) /* one of the last two may be taken back */

struct rules {
	struct sbx_attach_cidr *v;
	size_t n; /* past RULES_ROOM rules are only counted */
};

static struct sbx_attach_cidr *last_rule(struct rules *rules)
{
	return rules->n <= RULES_ROOM ? &rules->v[rules->n - 1] : NULL;
}

static void add_rule(struct rules *rules, const struct sbx_attach_cidr *rule)
{
	if (rules->n++ < RULES_ROOM)
		*last_rule(rules) = *rule;
}

static bool is_closed(const struct sbx_attach_cidr *rule, const struct sbx_attach_region *r)
{
	return rule->refuse && rule->port_first == 1 && rule->port_last == UINT16_MAX &&
	       compare_regions(r, &(struct sbx_attach_region){ .cidr = rule->cidr }) == 0;
}

/* Adds the rules of a region: for the ports where its verdict differs from the one around it. */
static void add_rules(struct sbx_attach_builder *b, enum list list,
		      const struct sbx_attach_region *r, struct rules *rules)
{
	static const enum sbx_proto protos[] = { SBX_PROTO_TCP, SBX_PROTO_UDP };
	size_t n_starts = starts_of(b, r), n_before = rules->n;
	struct sbx_attach_cidr *last;

	for (size_t k = 0; k < SBX_N_ELEMENTS(protos); k++) {
		struct sbx_attach_cidr run = { .cidr = r->cidr, .proto = protos[k] };
		bool open = false; /* run has ports */

		for (size_t i = 0; i < n_starts; i++) {
			uint16_t port = (uint16_t)b->starts[i];
			bool accept = accepts(b, list, r, protos[k], port);
			bool differs = accept != accepts(b, list, r->up, protos[k], port);

			if (open && (!differs || run.refuse == accept)) {
				add_rule(rules, &run);
				open = false;
			}
			if (!differs)
				continue;
			if (!open)
				run.port_first = port;
			run.port_last =
				i + 1 < n_starts ? (uint16_t)(b->starts[i + 1] - 1) : UINT16_MAX;
			run.refuse = !accept;
			open = true;
		}
		if (open)
			add_rule(rules, &run);
	}
	/* Two rules that refuse all TCP and all UDP become one. */
	last = rules->n == n_before + 2 ? last_rule(rules) : NULL;
	if (last && is_closed(last, r) && is_closed(last - 1, r)) {
		rules->n--;
		*last_rule(rules) = (struct sbx_attach_cidr){
			.cidr = r->cidr,
			.port_last = UINT16_MAX,
			.proto = SBX_PROTO_OTHER,
			.refuse = true,
		};
	}
}

/* Goes through the regions from the end: a network inside another one follows it in the array. */
static int fill_list(struct sbx_attach_builder *b, enum list list, struct sbx_attach_cidr **ret,
		     size_t *ret_n, struct sbx_err *err)
{
	struct rules rules = { .v = calloc(RULES_ROOM, sizeof(*rules.v)) };

	if (!rules.v)
		return -ENOMEM;
	*ret = rules.v;
	for (size_t i = b->n_regions; i-- > 0;)
		if (!b->regions[i].floor && !b->regions[i].covered)
			add_rules(b, list, &b->regions[i], &rules);
	if (rules.n > SBX_ATTACH_CIDRS_MAX)
		return sbx_attach_too_many(err,
					   list == LIST_CIDRS ? sbx_attach_entries_are(b)
							      : "admit of the system policy",
					   rules.n, "rules by address and port range",
					   SBX_ATTACH_CIDRS_MAX);
	*ret_n = rules.n;
	return 0;
}

int sbx_attach_fill_rules(struct sbx_attach_builder *b, struct sbx_err *err)
{
	int r;

	b->starts = calloc(1 + b->n_sources * 2 * SBX_PORTS_MAX, sizeof(*b->starts));
	if (!b->starts)
		return -ENOMEM;
	r = fill_list(b, LIST_ADMITTED, &b->lists.admitted, &b->lists.n_admitted, err);
	if (r == 0)
		r = fill_list(b, LIST_CIDRS, &b->lists.cidrs, &b->lists.n_cidrs, err);
	return r;
}
