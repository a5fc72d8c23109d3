/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Deciding. The keys that can match a name are its suffixes at label boundaries. The keys that can
 * match an address are its prefixes at the lengths in use. Each key costs one hash probe, and each
 * hit is a run of rules, a "level". The levels are then judged from the most specific to the least;
 * within a level deny stands before allow. The cost is the walk, not the number of rules.
 *
 * Everything that is not clearly allowed is denied: a name that is not normalised, an unknown
 * protocol, an address of no family.
 */

#include <string.h>

#include "base/hostname.h"
#include "policy/decide/policy_internal.h"

#define LABELS_MAX 128 /* of a name of 253 bytes: 127 */
#define NO_RULE	   UINT32_MAX

/* The levels of one name, the least specific first. */
struct levels {
	size_t n;
	struct sbx_blob_run v[LABELS_MAX + 1];
};

static struct sbx_verdict deny(enum sbx_reason reason, uint32_t rule)
{
	return (struct sbx_verdict){ .action = SBX_DENY, .reason = reason, .rule = rule };
}

static struct sbx_verdict allow(enum sbx_reason reason, uint32_t rule)
{
	return (struct sbx_verdict){ .action = SBX_ALLOW, .reason = reason, .rule = rule };
}

static uint8_t proto_bit(enum sbx_proto proto)
{
	return proto == SBX_PROTO_TCP ? SBX_BLOB_TCP : proto == SBX_PROTO_UDP ? SBX_BLOB_UDP : 0;
}

static enum sbx_check check_by_port(enum sbx_proto proto, uint16_t port)
{
	if (proto != SBX_PROTO_TCP)
		return SBX_CHECK_NONE;
	return port == 443 ? SBX_CHECK_TLS : port == 80 ? SBX_CHECK_HTTP : SBX_CHECK_NONE;
}

/* --- rules --- */

/* Does the rule cover all of first..last by one of its ranges? */
static bool rule_covers(const struct sbx_policy *p, const struct sbx_blob_rule *r, uint8_t proto,
			uint16_t first, uint16_t last)
{
	const struct sbx_blob_ports *ports = p->ports + r->ports;

	if (!(r->protos & proto))
		return false;
	for (unsigned i = 0; i < r->n_ports; i++) {
		if (ports[i].first <= first && last <= ports[i].last)
			return true;
	}
	return false;
}

/* The first rule of the run for that port (deny stands first); NO_RULE: there is none. */
static uint32_t match_run(const struct sbx_policy *p, const struct sbx_blob_run *run, uint8_t proto,
			  uint16_t port)
{
	for (uint32_t i = run->first; i < run->first + run->n; i++) {
		if (rule_covers(p, &p->rules[i], proto, port, port))
			return i;
	}
	return NO_RULE;
}

/* A rule of the run that allows something; NO_RULE: there is none. */
static uint32_t any_allow(const struct sbx_policy *p, const struct sbx_blob_run *run)
{
	for (uint32_t i = run->first + run->n; i-- > run->first;) {
		if (p->rules[i].action == SBX_ALLOW)
			return i;
	}
	return NO_RULE;
}

static struct sbx_verdict verdict_of(const struct sbx_policy *p, uint32_t rule,
				     enum sbx_proto proto, uint16_t port)
{
	const struct sbx_blob_rule *r = &p->rules[rule];
	struct sbx_verdict v;

	if (r->action != SBX_ALLOW)
		return deny(SBX_REASON_LIST_DENY, rule);
	v = allow(SBX_REASON_LIST_ALLOW, rule);
	v.private_ok = r->private_ok;
	v.terminate = r->terminate;
	if (r->check != SBX_BLOB_CHECK_BY_PORT)
		v.check = (enum sbx_check)r->check;
	else if (r->terminate)
		v.check = port == 80 ? SBX_CHECK_HTTP : SBX_CHECK_TLS;
	else if (r->family == 0)
		v.check = check_by_port(proto, port);
	return v;
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

static void add_level(struct levels *l, const struct sbx_blob_run *run)
{
	if (run->n > 0)
		l->v[l->n++] = *run;
}

/* Append the levels of @name in the floors and in the lists, in one walk from its right end. False
 * when the name is not a normalised one. */
static bool walk_name(const struct sbx_policy *p, const char *name, struct levels *floors,
		      struct levels *lists)
{
	static const enum sbx_blob_section tables[] = { SBX_BLOB_NAME_FLOOR, SBX_BLOB_NAME_LIST };
	struct levels *const levels[] = { floors, lists };
	size_t n = strnlen(name, SBX_HOSTNAME_MAX + 1), i;
	unsigned n_labels = 0;
	uint64_t h = SBX_HASH_START;

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
		for (int t = 0; t < 2; t++) {
			const struct sbx_blob_name_slot *slot;

			if (p->h->sections[tables[t]].n == 0)
				continue;
			slot = find_name(p, tables[t], key, name + i, n - i);
			if (slot)
				add_level(levels[t], i == 0 ? &slot->exact : &slot->below);
		}
	}
	return true;
}

/* Do the levels from the most specific down to @from deny all of first..last? */
static bool denied_from(const struct sbx_policy *p, const struct levels *l, size_t from,
			uint8_t proto, uint16_t first, uint16_t last)
{
	for (size_t i = l->n; i-- > from;) {
		const struct sbx_blob_run *run = &l->v[i];

		for (uint32_t r = run->first; r < run->first + run->n; r++) {
			if (p->rules[r].action == SBX_DENY &&
			    rule_covers(p, &p->rules[r], proto, first, last))
				return true;
		}
	}
	return false;
}

/* Does a rule of level @at still allow something after the denies above it? */
static bool allows_something(const struct sbx_policy *p, const struct levels *l, size_t at,
			     uint32_t rule)
{
	const struct sbx_blob_rule *r = &p->rules[rule];

	for (unsigned i = 0; i < r->n_ports; i++) {
		const struct sbx_blob_ports *range = &p->ports[r->ports + i];

		if (!denied_from(p, l, at, r->protos, range->first, range->last))
			return true;
	}
	return false;
}

static bool default_allows(const struct sbx_policy *p)
{
	return p->h->mode == SBX_MODE_FULL ||
	       (p->h->mode == SBX_MODE_FETCH && p->h->default_action == SBX_ALLOW);
}

/* The first rule that denies the name on all ports and protocols; NO_RULE: there is none. */
static uint32_t denies_all(const struct sbx_policy *p, const struct levels *l)
{
	for (size_t i = l->n; i-- > 0;) {
		const struct sbx_blob_run *run = &l->v[i];

		for (uint32_t r = run->first; r < run->first + run->n; r++) {
			if (p->rules[r].action == SBX_DENY &&
			    p->rules[r].protos == (SBX_BLOB_TCP | SBX_BLOB_UDP) &&
			    rule_covers(p, &p->rules[r], SBX_BLOB_TCP, 1, UINT16_MAX))
				return r;
		}
	}
	return NO_RULE;
}

/* A DNS question: may any flow to the name be allowed? If ranges overlap in odd ways, the question
 * is answered: each flow is judged again with its port. */
static struct sbx_verdict decide_question(const struct sbx_policy *p, const struct levels *l)
{
	uint32_t denier = denies_all(p, l);

	for (size_t i = l->n; i-- > 0;) {
		const struct sbx_blob_run *run = &l->v[i];

		for (uint32_t r = run->first; r < run->first + run->n; r++) {
			if (p->rules[r].action == SBX_ALLOW && allows_something(p, l, i, r)) {
				struct sbx_verdict v = allow(SBX_REASON_LIST_ALLOW, r);

				v.private_ok = p->rules[r].private_ok;
				return v;
			}
		}
	}
	if (denier != NO_RULE)
		return deny(SBX_REASON_LIST_DENY, denier);
	if (default_allows(p))
		return allow(SBX_REASON_DEFAULT_ALLOW, NO_RULE);
	/* Only denies on some ports, or allows that denies cancel. */
	return l->n > 0 ? deny(SBX_REASON_LIST_DENY, l->v[l->n - 1].first)
			: deny(SBX_REASON_DEFAULT_DENY, NO_RULE);
}

static bool has_terminated(const struct sbx_policy *p, const struct levels *l)
{
	for (size_t i = 0; p->h->n_terminated && i < l->n; i++) {
		const struct sbx_blob_run *run = &l->v[i];

		for (uint32_t r = run->first; r < run->first + run->n; r++) {
			if (p->rules[r].terminate)
				return true;
		}
	}
	return false;
}

static struct sbx_verdict decide_flow(const struct sbx_policy *p, const struct levels *l,
				      enum sbx_proto proto, uint16_t port)
{
	uint32_t other_port = NO_RULE;
	struct sbx_verdict v;

	for (size_t i = l->n; i-- > 0;) {
		uint32_t r = match_run(p, &l->v[i], proto_bit(proto), port);

		if (r != NO_RULE)
			return verdict_of(p, r, proto, port);
		if (other_port == NO_RULE)
			other_port = any_allow(p, &l->v[i]);
	}
	/* The default does not open another way to a name whose requests are judged. */
	if (default_allows(p) && proto_bit(proto) && !has_terminated(p, l)) {
		v = allow(SBX_REASON_DEFAULT_ALLOW, NO_RULE);
		/* Mode full carries whatever speaks on a port. */
		v.check = p->h->mode == SBX_MODE_FULL ? SBX_CHECK_NONE : check_by_port(proto, port);
		return v;
	}
	if (other_port != NO_RULE)
		return deny(SBX_REASON_PORT, other_port);
	return deny(SBX_REASON_DEFAULT_DENY, NO_RULE);
}

static bool no_exit(const struct sbx_policy *p)
{
	return p->h->air_gap || p->h->mode == SBX_MODE_OFFLINE;
}

struct sbx_verdict sbx_policy_decide_name(const struct sbx_policy *p, const char *name,
					  enum sbx_proto proto, uint16_t port)
{
	struct levels floors, lists;
	bool question = proto == SBX_PROTO_DNS || port == 0;

	floors.n = lists.n = 0;
	if (!walk_name(p, name, &floors, &lists))
		return deny(SBX_REASON_DEFAULT_DENY, NO_RULE);
	if (question) {
		uint32_t r = denies_all(p, &floors);

		if (r != NO_RULE)
			return deny(SBX_REASON_FLOOR, r);
	} else {
		for (size_t i = floors.n; i-- > 0;) {
			uint32_t r = match_run(p, &floors.v[i], proto_bit(proto), port);

			if (r != NO_RULE)
				return deny(SBX_REASON_FLOOR, r);
		}
	}
	if (no_exit(p))
		return deny(SBX_REASON_AIR_GAP, NO_RULE);
	return question ? decide_question(p, &lists) : decide_flow(p, &lists, proto, port);
}

bool sbx_policy_terminates_any(const struct sbx_policy *p)
{
	return p->h->n_terminated > 0;
}

bool sbx_policy_terminates(const struct sbx_policy *p, const char *name)
{
	struct levels floors, lists;

	floors.n = lists.n = 0;
	return walk_name(p, name, &floors, &lists) && has_terminated(p, &lists);
}

struct ports {
	struct sbx_policy_port *v;
	size_t n, n_max; /* n == n_max + 1: there are more */
};

static void add_port(struct ports *ports, enum sbx_proto proto, uint16_t port)
{
	for (size_t i = 0; i < ports->n; i++)
		if (ports->v[i].proto == proto && ports->v[i].port == port)
			return;
	if (ports->n < ports->n_max)
		ports->v[ports->n] = (struct sbx_policy_port){ proto, port };
	ports->n++;
}

/* Adds those ports of a rule that the whole policy allows: a more specific rule may deny some. */
static void add_rule_ports(const struct sbx_policy *p, const char *name,
			   const struct sbx_blob_rule *r, enum sbx_proto proto, struct ports *ports)
{
	for (unsigned i = 0; i < r->n_ports; i++) {
		const struct sbx_blob_ports *range = &p->ports[r->ports + i];

		for (uint32_t port = range->first; port <= range->last && ports->n <= ports->n_max;
		     port++) {
			struct sbx_verdict v =
				sbx_policy_decide_name(p, name, proto, (uint16_t)port);

			if (v.action == SBX_ALLOW && v.reason == SBX_REASON_LIST_ALLOW)
				add_port(ports, proto, (uint16_t)port);
		}
	}
}

size_t sbx_policy_name_ports(const struct sbx_policy *p, const char *name,
			     struct sbx_policy_port *v, size_t n_max)
{
	static const enum sbx_proto protos[] = { SBX_PROTO_TCP, SBX_PROTO_UDP };
	struct ports ports = { .v = v, .n_max = n_max };
	struct levels floors, lists;

	floors.n = lists.n = 0;
	if (!walk_name(p, name, &floors, &lists))
		return 0;
	for (size_t i = lists.n; i-- > 0;) {
		const struct sbx_blob_run *run = &lists.v[i];

		for (uint32_t r = run->first; r < run->first + run->n; r++)
			for (int k = 0; k < 2 && p->rules[r].action == SBX_ALLOW; k++)
				if (p->rules[r].protos & proto_bit(protos[k]))
					add_rule_ports(p, name, &p->rules[r], protos[k], &ports);
	}
	return ports.n;
}

/* --- addresses --- */

/* The most specific rule of a table for @addr; NO_RULE: there is none. *ret_other: a rule that
 * allows the address on other ports. */
static uint32_t match_addr(const struct sbx_policy *p, enum sbx_blob_section s,
			   const struct sbx_addr *addr, uint8_t proto, uint16_t port,
			   uint32_t *ret_other)
{
	const struct sbx_blob_group *groups = sbx_policy_section(p, s);

	*ret_other = NO_RULE;
	for (uint32_t g = 0; g < p->h->sections[s].n; g++) {
		const struct sbx_blob_cidr_slot *slots = p->cidr_slots + groups[g].first_slot;
		uint32_t mask = groups[g].n_slots - 1, i;
		uint8_t key[16];

		if (groups[g].family != addr->family)
			continue;
		memcpy(key, addr->b, sizeof(key));
		sbx_mask_addr(key, groups[g].prefix);
		i = (uint32_t)sbx_hash_addr(key) & mask;
		while (slots[i].run.n && memcmp(slots[i].addr, key, sizeof(key)) != 0)
			i = (i + 1) & mask;
		if (slots[i].run.n) {
			uint32_t r = match_run(p, &slots[i].run, proto, port);

			if (r != NO_RULE)
				return r;
			if (*ret_other == NO_RULE)
				*ret_other = any_allow(p, &slots[i].run);
		}
	}
	return NO_RULE;
}

/* A rule of @s that denies @addr or an address that it embeds; NO_RULE: there is none. */
static uint32_t match_deny(const struct sbx_policy *p, enum sbx_blob_section s,
			   const struct sbx_addr *addr, uint8_t proto, uint16_t port)
{
	struct sbx_addr v4[SBX_ADDR_EMBEDDED_MAX];
	uint32_t other, r = match_addr(p, s, addr, proto, port, &other);
	size_t n = sbx_addr_embedded(addr, v4);

	if (r != NO_RULE && p->rules[r].action == SBX_DENY)
		return r;
	for (size_t i = 0; i < n; i++) {
		r = match_addr(p, s, &v4[i], proto, port, &other);
		if (r != NO_RULE && p->rules[r].action == SBX_DENY)
			return r;
	}
	return NO_RULE;
}

/* Floors on addresses: the listed floors, and metadata in every embedding. They also hold for other
 * protocols than TCP and UDP, and for a question without a port. True: a floor denies, by
 * *ret_v. */
static bool addr_floor(const struct sbx_policy *p, const struct sbx_addr *addr, uint8_t proto,
		       uint16_t port, struct sbx_verdict *ret_v)
{
	uint32_t r = match_deny(p, SBX_BLOB_GROUPS_FLOOR, addr, proto ? proto : SBX_BLOB_TCP,
				port ? port : 1);

	if (r == NO_RULE && sbx_addr_class(addr) != SBX_ADDR_METADATA)
		return false;
	*ret_v = deny(SBX_REASON_FLOOR, r);
	return true;
}

/* May an address of its class be dialled? */
static bool class_allows(const struct sbx_policy *p, const struct sbx_addr *addr, uint8_t proto,
			 uint16_t port, bool private_ok)
{
	enum sbx_addr_class class = sbx_addr_class(addr);
	uint32_t other;

	if (class == SBX_ADDR_PUBLIC || (class == SBX_ADDR_PRIVATE && private_ok))
		return true;
	/* The owner may admit private and link-local networks. Other classes lead to this host,
	 * or nowhere. */
	if (class != SBX_ADDR_PRIVATE && class != SBX_ADDR_LINK_LOCAL)
		return false;
	return match_addr(p, SBX_BLOB_GROUPS_ADMIT, addr, proto, port, &other) != NO_RULE;
}

struct sbx_verdict sbx_policy_decide_addr(const struct sbx_policy *p, const struct sbx_addr *addr,
					  enum sbx_proto proto, uint16_t port)
{
	struct sbx_addr a = sbx_addr_unmap(addr);
	uint8_t bit = proto_bit(proto);
	uint32_t rule, other;
	struct sbx_verdict v;

	if (addr_floor(p, &a, bit, port, &v))
		return v;
	if (no_exit(p))
		return deny(SBX_REASON_AIR_GAP, NO_RULE);
	rule = match_deny(p, SBX_BLOB_GROUPS_LIST, &a, bit, port);
	if (rule != NO_RULE)
		return deny(SBX_REASON_LIST_DENY, rule);
	rule = match_addr(p, SBX_BLOB_GROUPS_LIST, &a, bit, port, &other);
	if (rule != NO_RULE)
		v = verdict_of(p, rule, proto, port);
	else if (p->h->mode == SBX_MODE_FULL && bit && port)
		v = allow(SBX_REASON_DEFAULT_ALLOW, NO_RULE);
	else if (other != NO_RULE)
		return deny(SBX_REASON_PORT, other);
	else
		return deny(SBX_REASON_LITERAL_ADDRESS, NO_RULE);
	if (!class_allows(p, &a, bit, port, v.private_ok))
		return deny(SBX_REASON_ADDRESS_CLASS, rule);
	return v;
}

struct sbx_verdict sbx_policy_decide_resolved(const struct sbx_policy *p,
					      const struct sbx_addr *addr, enum sbx_proto proto,
					      uint16_t port, bool private_ok)
{
	struct sbx_addr a = sbx_addr_unmap(addr);
	uint8_t bit = proto_bit(proto);
	uint32_t rule, other;
	struct sbx_verdict v;

	if (addr_floor(p, &a, bit, port, &v))
		return v;
	if (no_exit(p))
		return deny(SBX_REASON_AIR_GAP, NO_RULE);
	rule = match_deny(p, SBX_BLOB_GROUPS_LIST, &a, bit, port);
	if (rule != NO_RULE)
		return deny(SBX_REASON_ADDRESS_DENIED, rule);
	rule = match_addr(p, SBX_BLOB_GROUPS_LIST, &a, bit, port, &other);
	/* `private: true` may stand on the name's entry or on an entry for the address. */
	if (rule != NO_RULE && p->rules[rule].private_ok)
		private_ok = true;
	if (!class_allows(p, &a, bit, port, private_ok))
		return deny(SBX_REASON_ADDRESS_CLASS, NO_RULE);
	v = allow(SBX_REASON_LIST_ALLOW, rule);
	v.private_ok = private_ok;
	return v;
}

bool sbx_policy_admits_proxy(const struct sbx_policy *p, const struct sbx_addr *addr, uint16_t port,
			     bool own)
{
	struct sbx_addr a = sbx_addr_unmap(addr);
	enum sbx_addr_class class = sbx_addr_class(&a);
	struct sbx_verdict v;
	uint32_t other;

	if (addr_floor(p, &a, SBX_BLOB_TCP, port, &v))
		return false;
	if (class == SBX_ADDR_PUBLIC && !own)
		return true;
	if (class != SBX_ADDR_PUBLIC && class != SBX_ADDR_PRIVATE && class != SBX_ADDR_LINK_LOCAL &&
	    class != SBX_ADDR_LOOPBACK)
		return false;
	return match_addr(p, SBX_BLOB_GROUPS_ADMIT, &a, SBX_BLOB_TCP, port, &other) != NO_RULE;
}
