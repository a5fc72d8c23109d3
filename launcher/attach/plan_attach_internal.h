/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_ATTACH_PLAN_ATTACH_INTERNAL_H
#define SBX_LAUNCHER_ATTACH_PLAN_ATTACH_INTERNAL_H

#include "launcher/attach/plan_attach.h"
#include "policy/policy.h"

/* Between plan_attach.c, which gathers networks, and plan_attach_rules.c, which makes rules of them. PURE. */

/* A network, of which a region is what is left without those inside it. */
struct sbx_attach_region {
	struct sbx_cidr cidr;
	bool floor;   /* it is one, or inside one */
	bool opaque;  /* what its addresses embed cannot be told from a network: refused */
	bool covered; /* those inside leave nothing of it */
	struct sbx_addr sample;		    /* an address of the region, unless covered */
	const struct sbx_attach_region *up; /* the smallest that holds it; NULL */
};

/* The network of an entry, or a form of it: at its ports the judgement may change. */
struct sbx_attach_source {
	struct sbx_cidr cidr;
	const struct sbx_net_entry *entry;
};

struct sbx_attach_builder {
	const struct sbx_profile *profile;
	const struct sbx_system_policy *system;
	bool carries; /* neither offline nor air gap */
	bool full;
	struct sbx_policy *policy;
	void *blob;
	struct sbx_attach_region
		*regions; /* sorted: IPv6 first, then by address, the larger first */
	size_t n_regions, n_regions_max;
	struct sbx_attach_source *sources;
	size_t n_sources, n_sources_max;
	const struct sbx_net_entry **admit; /* those that matter */
	size_t n_admit;
	uint32_t *starts; /* of runs of ports; room for those of all sources */
	struct sbx_attach_lists lists;
};

/* plan_attach_rules.c: sort the regions, without those that are there twice, and find how they lie. */
void sbx_attach_arrange(struct sbx_attach_builder *b);
/* With the policy, the regions and what lies behind them: b->lists.admitted and cidrs. 0;
 * SBX_ATTACH_LISTS_E_TOO_MANY with @err; -ENOMEM. */
int sbx_attach_fill_rules(struct sbx_attach_builder *b, struct sbx_err *err);

/* "@what: @n @of, and attach cgroup has room for @max: ...". Returns SBX_ATTACH_LISTS_E_TOO_MANY. */
int sbx_attach_too_many(struct sbx_err *err, const char *what, size_t n, const char *of, int max);
/* Is the entry, of a network, for that protocol and port? One that says none is for all. */
bool sbx_attach_is_at(const struct sbx_net_entry *e, enum sbx_proto proto, uint16_t port);

static inline bool sbx_attach_is_inside(const struct sbx_cidr *c, const struct sbx_cidr *of)
{
	return c->prefix >= of->prefix && sbx_cidr_contains(of, &c->addr);
}

#endif
