/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Loads a blob from another process: every count, offset and enum is checked once here, so that
 * deciding can follow them without checks. Loading does not check whether tables are complete and
 * hashes right: such an error would make it another policy, but could not break the reader.
 */

#include "policy/decide/policy_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "policy/profile/settle.h"

const size_t sbx_blob_record_size[SBX_N_BLOB_SECTIONS] = {
	[SBX_BLOB_RULES] = sizeof(struct sbx_blob_rule),
	[SBX_BLOB_PORTS] = sizeof(struct sbx_blob_ports),
	[SBX_BLOB_NAME_FLOOR] = sizeof(struct sbx_blob_name_slot),
	[SBX_BLOB_NAME_RULE] = sizeof(struct sbx_blob_name_slot),
	[SBX_BLOB_NAME_LIVE] = sizeof(struct sbx_blob_name_slot),
	[SBX_BLOB_NAME_PROFILE] = sizeof(struct sbx_blob_name_slot),
	[SBX_BLOB_GROUPS_FLOOR] = sizeof(struct sbx_blob_group),
	[SBX_BLOB_GROUPS_RULE] = sizeof(struct sbx_blob_group),
	[SBX_BLOB_GROUPS_LIVE] = sizeof(struct sbx_blob_group),
	[SBX_BLOB_GROUPS_PROFILE] = sizeof(struct sbx_blob_group),
	[SBX_BLOB_GROUPS_ADMIT] = sizeof(struct sbx_blob_group),
	[SBX_BLOB_CIDR_SLOTS] = sizeof(struct sbx_blob_cidr_slot),
	[SBX_BLOB_FIREWALL] = sizeof(struct sbx_blob_firewall),
	[SBX_BLOB_REQUESTS] = 1,
	[SBX_BLOB_STRINGS] = 1,
	[SBX_BLOB_ORIGINS] = sizeof(struct sbx_blob_origin),
	[SBX_BLOB_ORIGIN_TEXT] = 1,
};

uint64_t sbx_hash_addr(const uint8_t addr[16])
{
	uint64_t w[2];

	memcpy(w, addr, sizeof(w));
	return sbx_hash_end(w[0] * UINT64_C(0x9e3779b97f4a7c15) ^ w[1]);
}

void sbx_mask_addr(uint8_t addr[16], unsigned prefix)
{
	if (prefix >= 128)
		return;
	addr[prefix / 8] &= (uint8_t)(0xff00 >> (prefix % 8));
	memset(addr + prefix / 8 + 1, 0, 15 - prefix / 8);
}

static size_t count_of(const struct sbx_policy *p, enum sbx_blob_section s)
{
	return p->h->sections[s].n;
}

static bool is_power_of_two(size_t n)
{
	return n && (n & (n - 1)) == 0;
}

static bool check_header(const struct sbx_policy *p, struct sbx_span blob)
{
	const struct sbx_blob_header *h = p->h;
	size_t end = sizeof(*h);

	if (h->magic != SBX_BLOB_MAGIC || h->version != SBX_BLOB_VERSION || h->n_bytes != blob.n)
		return false;
	if (h->mode >= SBX_N_MODES || h->air_gap > 1 || h->default_action > SBX_ALLOW ||
	    h->of_workspace > 1 || h->n_terminated > SBX_TERMINATED_MAX)
		return false;
	if (h->live_allows > 1 || h->live_requests > 1 || h->zero || h->zero2)
		return false;
	/* In order and apart, so no byte is in two sections. */
	for (int s = 0; s < SBX_N_BLOB_SECTIONS; s++) {
		size_t n = (size_t)h->sections[s].n * sbx_blob_record_size[s];

		if (h->sections[s].offset % 8 || h->sections[s].offset < end ||
		    h->sections[s].offset > blob.n || n > blob.n - h->sections[s].offset)
			return false;
		end = h->sections[s].offset + n;
	}
	return true;
}

static bool check_strings(const struct sbx_policy *p)
{
	size_t n = count_of(p, SBX_BLOB_STRINGS);

	return n > 0 && p->strings[n - 1] == '\0';
}

static bool check_origins(const struct sbx_policy *p)
{
	size_t n_text = count_of(p, SBX_BLOB_ORIGIN_TEXT), n = count_of(p, SBX_BLOB_ORIGINS);

	if (n != count_of(p, SBX_BLOB_RULES) || n_text == 0 || p->origin_text[n_text - 1])
		return false;
	for (size_t i = 0; i < n; i++) {
		const struct sbx_blob_origin *o = &p->origins[i];

		if (o->row < 0 || o->label >= n_text || o->file >= n_text || o->zero)
			return false;
	}
	return true;
}

static bool check_ports(const struct sbx_policy *p)
{
	for (size_t i = 0; i < count_of(p, SBX_BLOB_PORTS); i++) {
		if (p->ports[i].first < 1 || p->ports[i].first > p->ports[i].last)
			return false;
	}
	return true;
}

/* A flow that sbx-tls carries is TCP, goes to a name, and begins with TLS or HTTP. */
static bool check_terminate(const struct sbx_policy *p, const struct sbx_blob_rule *r)
{
	if (r->terminate == 0)
		return true;
	return r->terminate <= p->h->n_terminated && r->action == SBX_ALLOW &&
	       r->protos == SBX_BLOB_TCP && r->family == 0 && r->check != SBX_CHECK_NONE;
}

/* The same of a live rule about requests. */
static bool check_requests(const struct sbx_policy *p, const struct sbx_blob_rule *r)
{
	if (r->requests == 0)
		return true;
	return r->requests < count_of(p, SBX_BLOB_STRINGS) && p->h->live_requests &&
	       r->layer == SBX_LAYER_LIVE && r->action == SBX_ALLOW && !r->terminate &&
	       r->protos == SBX_BLOB_TCP && r->family == 0;
}

static bool check_rules(const struct sbx_policy *p)
{
	size_t n_ports = count_of(p, SBX_BLOB_PORTS);

	for (size_t i = 0; i < count_of(p, SBX_BLOB_RULES); i++) {
		const struct sbx_blob_rule *r = &p->rules[i];
		unsigned n_bits = r->family == 4 ? 32 : r->family == 6 ? 128 : 0;

		if (r->text >= count_of(p, SBX_BLOB_STRINGS) || r->n_ports == 0 ||
		    r->ports > n_ports || r->n_ports > n_ports - r->ports)
			return false;
		if (r->protos == 0 || r->protos > (SBX_BLOB_TCP | SBX_BLOB_UDP) ||
		    r->action > SBX_ALLOW ||
		    (r->check >= SBX_N_CHECKS && r->check != SBX_BLOB_CHECK_BY_PORT) ||
		    r->private_ok > 1)
			return false;
		if (r->layer >= SBX_LAYER_DEFAULT || r->asks_only > 1 || r->zero[0] || r->zero[1])
			return false;
		if ((r->family && !n_bits) || r->prefix > n_bits || !check_terminate(p, r) ||
		    !check_requests(p, r))
			return false;
	}
	return true;
}

static bool check_run(const struct sbx_policy *p, const struct sbx_blob_run *run)
{
	size_t n_rules = count_of(p, SBX_BLOB_RULES);

	return run->first <= n_rules && run->n <= n_rules - run->first;
}

static bool check_names(const struct sbx_policy *p, enum sbx_blob_section s)
{
	const struct sbx_blob_name_slot *slots = sbx_policy_section(p, s);
	size_t n = count_of(p, s), n_strings = count_of(p, SBX_BLOB_STRINGS), n_empty = 0;

	if (n == 0)
		return true;
	for (size_t i = 0; i < n; i++) {
		n_empty += slots[i].n_key == 0;
		if (slots[i].key > n_strings || slots[i].n_key > n_strings - slots[i].key ||
		    !check_run(p, &slots[i].exact) || !check_run(p, &slots[i].below))
			return false;
	}
	/* An empty slot ends every probe. */
	return is_power_of_two(n) && n_empty > 0;
}

static bool check_group(const struct sbx_policy *p, const struct sbx_blob_group *g)
{
	size_t n_slots = count_of(p, SBX_BLOB_CIDR_SLOTS), n_empty = 0;

	if ((g->family != 4 && g->family != 6) || g->prefix > (g->family == 4 ? 32 : 128) ||
	    g->zero)
		return false;
	if (g->first_slot > n_slots || g->n_slots > n_slots - g->first_slot ||
	    !is_power_of_two(g->n_slots))
		return false;
	for (size_t i = 0; i < g->n_slots; i++)
		n_empty += p->cidr_slots[g->first_slot + i].run.n == 0;
	return n_empty > 0;
}

static bool check_groups(const struct sbx_policy *p, enum sbx_blob_section s)
{
	const struct sbx_blob_group *groups = sbx_policy_section(p, s);
	size_t n = count_of(p, s), n_slots = 0;

	for (size_t i = 0; i < n; i++) {
		if (!check_group(p, &groups[i]))
			return false;
		/* In order: so each family has no more of them than it has prefix lengths. */
		if (i > 0 && (groups[i].family < groups[i - 1].family ||
			      (groups[i].family == groups[i - 1].family &&
			       groups[i].prefix >= groups[i - 1].prefix)))
			return false;
		/* Groups do not share slots; without this a blob could make the check quadratic. */
		if (i > 0 &&
		    groups[i].first_slot < groups[i - 1].first_slot + groups[i - 1].n_slots)
			return false;
		n_slots += groups[i].n_slots;
	}
	return n_slots <= count_of(p, SBX_BLOB_CIDR_SLOTS);
}

static bool check_cidrs(const struct sbx_policy *p)
{
	for (size_t i = 0; i < count_of(p, SBX_BLOB_CIDR_SLOTS); i++) {
		if (!check_run(p, &p->cidr_slots[i].run))
			return false;
	}
	for (size_t i = 0; i < count_of(p, SBX_BLOB_FIREWALL); i++) {
		const struct sbx_blob_firewall *f = &p->firewall[i];

		if (f->rule >= count_of(p, SBX_BLOB_RULES) || p->rules[f->rule].family == 0 ||
		    f->first < 1 || f->first > f->last)
			return false;
	}
	return true;
}

int sbx_policy_load(struct sbx_span blob, struct sbx_policy **ret_policy)
{
	SBX_AUTO_FREE struct sbx_policy *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	if (blob.n < sizeof(*p->h) || blob.n > SBX_BLOB_BYTES_MAX || (uintptr_t)blob.p % 8)
		return -EBADMSG;
	p->h = (const void *)blob.p;
	if (!check_header(p, blob))
		return -EBADMSG;
	p->rules = sbx_policy_section(p, SBX_BLOB_RULES);
	p->ports = sbx_policy_section(p, SBX_BLOB_PORTS);
	p->cidr_slots = sbx_policy_section(p, SBX_BLOB_CIDR_SLOTS);
	p->firewall = sbx_policy_section(p, SBX_BLOB_FIREWALL);
	p->strings = sbx_policy_section(p, SBX_BLOB_STRINGS);
	p->origins = sbx_policy_section(p, SBX_BLOB_ORIGINS);
	p->origin_text = sbx_policy_section(p, SBX_BLOB_ORIGIN_TEXT);
	if (!check_strings(p) || !check_origins(p) || !check_ports(p) || !check_rules(p) ||
	    !check_cidrs(p))
		return -EBADMSG;
	for (int s = SBX_BLOB_NAME_FLOOR; s <= SBX_BLOB_NAME_PROFILE; s++) {
		if (!check_names(p, s))
			return -EBADMSG;
	}
	for (int s = SBX_BLOB_GROUPS_FLOOR; s <= SBX_BLOB_GROUPS_ADMIT; s++) {
		if (!check_groups(p, s))
			return -EBADMSG;
	}
	p->ignored = SBX_NO_RULE;
	*ret_policy = sbx_steal_ptr(&p);
	return 0;
}

struct sbx_policy *sbx_policy_free(struct sbx_policy *p)
{
	free(p);
	return NULL;
}

const char *sbx_policy_rule_text(const struct sbx_policy *p, uint32_t rule)
{
	if (rule >= count_of(p, SBX_BLOB_RULES))
		return "";
	return p->origins[rule].label ? p->origin_text + p->origins[rule].label
				      : p->strings + p->rules[rule].text;
}

bool sbx_policy_air_gapped(const struct sbx_policy *p)
{
	return p->h->air_gap;
}

uint64_t sbx_policy_generation(const struct sbx_policy *p)
{
	return p->h->generation;
}

bool sbx_policy_cidr_at(const struct sbx_policy *p, size_t i, struct sbx_policy_cidr *ret_cidr)
{
	const struct sbx_blob_firewall *f;
	const struct sbx_blob_rule *r;

	if (i >= count_of(p, SBX_BLOB_FIREWALL))
		return false;
	f = &p->firewall[i];
	r = &p->rules[f->rule];
	*ret_cidr = (struct sbx_policy_cidr){
		.cidr = { .addr.family = r->family, .prefix = r->prefix },
		.port_first = f->first,
		.port_last = f->last,
		/* An entry that allows has one protocol. */
		.proto = r->protos & SBX_BLOB_TCP ? SBX_PROTO_TCP : SBX_PROTO_UDP,
	};
	memcpy(ret_cidr->cidr.addr.b, r->addr, sizeof(r->addr));
	return true;
}
