/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_POLICY_DECIDE_POLICY_INTERNAL_H
#define SBX_POLICY_DECIDE_POLICY_INTERNAL_H

#include "policy/decide/policy.h"
#include "policy/decide/policy_blob.h"

#define SBX_NO_RULE UINT32_MAX

/* A loaded policy, for the files that decide and explain: pointers into a blob that was checked. */
struct sbx_policy {
	const struct sbx_blob_header *h;
	const struct sbx_blob_rule *rules;
	const struct sbx_blob_ports *ports;
	const struct sbx_blob_cidr_slot *cidr_slots;
	const struct sbx_blob_firewall *firewall;
	const char *strings;
	const struct sbx_blob_origin *origins;
	const char *origin_text;
	/* For "what if" (policy_answers.c); otherwise false, and SBX_NO_RULE. */
	bool no_air_gap;
	uint32_t ignored; /* matches nothing */
};

static inline const void *sbx_policy_section(const struct sbx_policy *p, enum sbx_blob_section s)
{
	return (const uint8_t *)p->h + p->h->sections[s].offset;
}

/* --- matching (policy_match.c) --- */

#define SBX_LEVELS_MAX 129 /* a name of 253 bytes has 127 labels; IPv6 has 129 prefix lengths */

/* The runs of a layer that match a name or an address, the least specific first. */
struct sbx_levels {
	size_t n;
	struct sbx_blob_run v[SBX_LEVELS_MAX];
};

/* Layers with names: FLOOR to PROFILE. */
#define SBX_N_NAME_LAYERS (SBX_LAYER_PROFILE + 1)
/* By layer; sbx_match_name() sets all of it. */
struct sbx_name_levels {
	struct sbx_levels v[SBX_N_NAME_LAYERS];
};

/* SBX_BLOB_TCP or _UDP; 0 for other protocols, which no rule covers. */
uint8_t sbx_match_proto(enum sbx_proto proto);
/* May an address of its class be dialled? @private_ok: an entry with `private: true` allows it. */
bool sbx_policy_class_allows(const struct sbx_policy *p, const struct sbx_addr *addr, uint8_t proto,
			     uint16_t port, bool private_ok);
/* Does the rule cover the port? @proto as sbx_match_proto(). */
bool sbx_match_covers(const struct sbx_policy *p, uint32_t rule, uint8_t proto, uint16_t port);

/* The levels of @name in all layers, in one walk from its right end. False: the name is not a
 * normalised one. */
bool sbx_match_name(const struct sbx_policy *p, const char *name, struct sbx_name_levels *ret);
/* The levels of @addr in one layer (FLOOR to ADMIT). */
void sbx_match_addr(const struct sbx_policy *p, enum sbx_layer layer, const struct sbx_addr *addr,
		    struct sbx_levels *ret_levels);

/* The rule of the levels that decides on the port: of the lowest priority number, then of the most
 * specific level, then a deny. SBX_NO_RULE: none covers it. */
uint32_t sbx_match_first(const struct sbx_policy *p, const struct sbx_levels *l, uint8_t proto,
			 uint16_t port);
/* The same for an address, without its levels. *ret_other: a rule that allows it on other ports. */
uint32_t sbx_match_first_addr(const struct sbx_policy *p, enum sbx_layer layer,
			      const struct sbx_addr *addr, uint8_t proto, uint16_t port,
			      uint32_t *ret_other);
/* A rule of the most specific level that allows anything; SBX_NO_RULE: there is none. */
uint32_t sbx_match_any_allow(const struct sbx_policy *p, const struct sbx_levels *l);

/* --- collecting (policy_collect.c), for the compiler --- */

/* One entry on its way into the blob. */
struct sbx_policy_item {
	enum sbx_layer layer; /* FLOOR to ADMIT */
	enum sbx_action action;
	const struct sbx_net_entry *entry;
	const char *requests; /* of a live rule; NULL: none */
	uint32_t priority;  /* of layer RULE; else 0 */
	uint32_t terminate; /* as in the rule */
	size_t index;	    /* in its list */
	bool by_index;	    /* the index matters: see mark_terminated() */
	int64_t row;	    /* of a stored rule; else 0 */
	const char *file;   /* of the entry, or what takes its place; NULL: not known */
	int line;
};

struct sbx_policy_items {
	struct sbx_policy_item *v;
	size_t n;
	uint32_t n_terminated;
	struct sbx_net_list shipped_floors; /* owned: items point to them */
};

/* Collects the entries of @in, sorted as the blob has them: by layer, key, priority, deny before
 * allow; entries of one meaning once. sbx_policy_items_fini() ends *ret_items in every case. 0,
 * -ENOMEM. */
int sbx_policy_collect(const struct sbx_policy_input *in, struct sbx_policy_items *ret_items);
void sbx_policy_items_fini(struct sbx_policy_items *items);

/* The order of the tables: names by key, networks by group. 0: the same key. */
int sbx_policy_compare_keys(const struct sbx_policy_item *a, const struct sbx_policy_item *b);

#endif
