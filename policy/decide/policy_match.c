/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Matching. The keys that can match a name are its suffixes at label boundaries. The keys that can
 * match an address are its prefixes at the lengths in use. Each key costs one hash probe for each
 * layer that has rules, and each hit is a run of rules, a "level". The cost is the walk, not the
 * number of rules.
 */

#include <string.h>

#include "base/hostname.h"
#include "policy/decide/policy_internal.h"

uint8_t sbx_match_proto(enum sbx_proto proto)
{
	return proto == SBX_PROTO_TCP ? SBX_BLOB_TCP : proto == SBX_PROTO_UDP ? SBX_BLOB_UDP : 0;
}

bool sbx_match_covers(const struct sbx_policy *p, uint32_t rule, uint8_t proto, uint16_t port)
{
	const struct sbx_blob_rule *r = &p->rules[rule];
	const struct sbx_blob_ports *ports = p->ports + r->ports;

	if (!(r->protos & proto) || rule == p->ignored || r->asks_only)
		return false;
	for (unsigned i = 0; i < r->n_ports; i++) {
		if (ports[i].first <= port && port <= ports[i].last)
			return true;
	}
	return false;
}

/* Makes *best the first rule of the run that covers the port, if its priority number is lower.
 * True: no rule can be better. */
static bool better(const struct sbx_policy *p, const struct sbx_blob_run *run, uint8_t proto,
		   uint16_t port, uint32_t *best)
{
	for (uint32_t i = run->first; i < run->first + run->n; i++) {
		if (*best != SBX_NO_RULE && p->rules[i].priority >= p->rules[*best].priority)
			return false;
		if (sbx_match_covers(p, i, proto, port)) {
			*best = i;
			return p->rules[i].priority == 0;
		}
	}
	return false;
}

uint32_t sbx_match_first(const struct sbx_policy *p, const struct sbx_levels *l, uint8_t proto,
			 uint16_t port)
{
	uint32_t best = SBX_NO_RULE;

	for (size_t i = l->n; i-- > 0;) {
		if (better(p, &l->v[i], proto, port, &best))
			break;
	}
	return best;
}

static uint32_t any_allow(const struct sbx_policy *p, const struct sbx_blob_run *run)
{
	for (uint32_t i = run->first + run->n; i-- > run->first;) {
		if (p->rules[i].action == SBX_ALLOW && !p->rules[i].asks_only)
			return i;
	}
	return SBX_NO_RULE;
}

uint32_t sbx_match_any_allow(const struct sbx_policy *p, const struct sbx_levels *l)
{
	uint32_t r = SBX_NO_RULE;

	for (size_t i = l->n; r == SBX_NO_RULE && i-- > 0;)
		r = any_allow(p, &l->v[i]);
	return r;
}

/* --- names --- */

static const struct sbx_blob_name_slot *find_name(const struct sbx_policy *p,
						  enum sbx_blob_section s, uint64_t hash,
						  const char *key, size_t n_key)
{
	const struct sbx_blob_name_slot *slots = sbx_policy_section(p, s);
	uint32_t mask = p->h->sections[s].n - 1;

	for (uint32_t i = (uint32_t)hash & mask; slots[i].n_key; i = (i + 1) & mask) {
		if (slots[i].hash == (uint32_t)(hash >> 32) && slots[i].n_key == n_key &&
		    memcmp(p->strings + slots[i].key, key, n_key) == 0)
			return &slots[i];
	}
	return NULL;
}

static bool is_name_byte(uint8_t c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

static void add_level(struct sbx_levels *l, const struct sbx_blob_run *run)
{
	if (run->n > 0)
		l->v[l->n++] = *run;
}

bool sbx_match_name(const struct sbx_policy *p, const char *name, struct sbx_name_levels *ret)
{
	size_t n = strnlen(name, SBX_HOSTNAME_MAX + 1), i;
	unsigned n_labels = 0;
	uint64_t h = SBX_HASH_START;

	for (int t = 0; t < SBX_N_NAME_LAYERS; t++)
		ret->v[t].n = 0;
	if (n == 0 || n > SBX_HOSTNAME_MAX)
		return false;
	for (i = n; i-- > 0;) {
		uint8_t c = (uint8_t)name[i];
		uint64_t key;

		if (c == '.') {
			if (i == 0 || i == n - 1 || name[i - 1] == '.')
				return false;
		} else if (!is_name_byte(c)) {
			return false;
		}
		/* No key has more labels: the rest is only checked for bytes that no name has. */
		if (n_labels == p->h->max_labels)
			continue;
		h = sbx_hash_byte(h, c);
		if (i > 0 && name[i - 1] != '.')
			continue;
		n_labels++;
		key = sbx_hash_end(h);
		for (int t = 0; t < SBX_N_NAME_LAYERS; t++) {
			enum sbx_blob_section s = SBX_BLOB_NAME_FLOOR + t;
			const struct sbx_blob_name_slot *slot;

			if (p->h->sections[s].n == 0)
				continue;
			slot = find_name(p, s, key, name + i, n - i);
			if (slot)
				add_level(&ret->v[t], i == 0 ? &slot->exact : &slot->below);
		}
	}
	return true;
}

/* --- addresses --- */

/* The run of @addr in a group; NULL: there is none. */
static const struct sbx_blob_run *find_addr(const struct sbx_policy *p,
					    const struct sbx_blob_group *group,
					    const struct sbx_addr *addr)
{
	const struct sbx_blob_cidr_slot *slots = p->cidr_slots + group->first_slot;
	uint32_t mask = group->n_slots - 1, i;
	uint8_t key[16];

	if (group->family != addr->family)
		return NULL;
	memcpy(key, addr->b, sizeof(key));
	sbx_mask_addr(key, group->prefix);
	i = (uint32_t)sbx_hash_addr(key) & mask;
	while (slots[i].run.n && memcmp(slots[i].addr, key, sizeof(key)) != 0)
		i = (i + 1) & mask;
	return slots[i].run.n ? &slots[i].run : NULL;
}

uint32_t sbx_match_first_addr(const struct sbx_policy *p, enum sbx_layer layer,
			      const struct sbx_addr *addr, uint8_t proto, uint16_t port,
			      uint32_t *ret_other)
{
	enum sbx_blob_section s = SBX_BLOB_GROUPS_FLOOR + layer;
	const struct sbx_blob_group *groups = sbx_policy_section(p, s);
	uint32_t best = SBX_NO_RULE;

	*ret_other = SBX_NO_RULE;
	for (uint32_t g = 0; g < p->h->sections[s].n; g++) {
		const struct sbx_blob_run *run = find_addr(p, &groups[g], addr);

		if (!run)
			continue;
		if (better(p, run, proto, port, &best))
			break;
		if (*ret_other == SBX_NO_RULE)
			*ret_other = any_allow(p, run);
	}
	return best;
}

void sbx_match_addr(const struct sbx_policy *p, enum sbx_layer layer, const struct sbx_addr *addr,
		    struct sbx_levels *ret_levels)
{
	enum sbx_blob_section s = SBX_BLOB_GROUPS_FLOOR + layer;
	const struct sbx_blob_group *groups = sbx_policy_section(p, s);

	ret_levels->n = 0;
	/* The groups of a family are at most SBX_LEVELS_MAX (check_groups()). */
	for (uint32_t g = p->h->sections[s].n; g-- > 0;) {
		const struct sbx_blob_run *run = find_addr(p, &groups[g], addr);

		if (run)
			add_level(ret_levels, run);
	}
}
