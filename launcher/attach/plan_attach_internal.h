/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_ATTACH_PLAN_ATTACH_INTERNAL_H
#define SBX_LAUNCHER_ATTACH_PLAN_ATTACH_INTERNAL_H

#include "launcher/attach/plan_attach.h"
#include "policy/decide/policy.h"

/* Shared by plan_attach.c, which gathers networks, and plan_attach_rules.c, which makes rules of
 * them: two files of one module. PURE. */

/* A network. Its region is the network without the smaller networks inside it. */
struct sbx_attach_region {
	struct sbx_cidr cidr;
	bool floor;   /* a floor, or inside one */
	bool opaque;  /* its addresses embed others in no readable way: all are refused */
	bool covered; /* the networks inside leave nothing of it */
	struct sbx_addr sample;		    /* an address of the region, unless covered */
	const struct sbx_attach_region *up; /* the smallest that holds it; NULL */
};

/* The network of an entry, or an IPv6 form of it. The verdict may change at the entry's ports. */
struct sbx_attach_source {
	struct sbx_cidr cidr;
	const struct sbx_net_entry *entry;
};

/* An entry with a network, of any layer. */
struct sbx_attach_named {
	const struct sbx_net_entry *entry;
	bool allows;
	bool of_profile; /* otherwise of a rule or a live list */
	bool reaches;	 /* may be the reason why a packet passes */
};

struct sbx_attach_builder {
	const struct sbx_policy_input *in;
	const struct sbx_profile *profile;	/* of @in */
	const struct sbx_system_policy *system; /* of @in */
	const struct sbx_policy *policy;
	bool carries; /* not offline */
	bool full;    /* an address that no entry names passes */
	struct sbx_attach_named *entries;
	size_t n_entries;
	bool only_profile; /* no rule and no live list has a network */
	struct sbx_attach_region
		*regions; /* sorted: IPv6 first, then by address, the larger first */
	size_t n_regions, n_regions_max;
	struct sbx_attach_source *sources;
	size_t n_sources, n_sources_max;
	const struct sbx_net_entry **admit; /* those that a packet can reach */
	size_t n_admit;
	uint32_t *starts; /* first ports of runs; room for those of all sources */
	struct sbx_attach_lists lists;
};

/* plan_attach_rules.c. Sorts the regions, removes doubles, and finds for each the region around
 * it. */
void sbx_attach_arrange(struct sbx_attach_builder *b);
/* Makes b->lists.admitted and b->lists.cidrs from the policy and the regions. 0;
 * SBX_ATTACH_LISTS_E_TOO_MANY with @err; or -ENOMEM. */
int sbx_attach_fill_rules(struct sbx_attach_builder *b, struct sbx_err *err);

/* The lists that the entries are from, for people. */
const char *sbx_attach_entries_are(const struct sbx_attach_builder *b);
/* "@what: @n @of, and attach cgroup has room for @max: ...". Returns
 * SBX_ATTACH_LISTS_E_TOO_MANY. */
int sbx_attach_too_many(struct sbx_err *err, const char *what, size_t n, const char *of, int max);
/* Does the entry, of a network, hold for that protocol and port? Without ports it holds for all. */
bool sbx_attach_is_at(const struct sbx_net_entry *e, enum sbx_proto proto, uint16_t port);

static inline bool sbx_attach_is_inside(const struct sbx_cidr *c, const struct sbx_cidr *of)
{
	return c->prefix >= of->prefix && sbx_cidr_contains(of, &c->addr);
}

#endif
