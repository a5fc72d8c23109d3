/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Compiling: the lists of the profile, the floors and the admitted networks become sorted rules and
 * hash tables in one blob (policy_blob.h). The blob depends on the meaning alone: the order of the
 * entries and repeated entries leave no trace, so equal policies have equal bytes. Terminated
 * entries are the exception: their order numbers them.
 *
 * Two passes over the sorted rules: count, then fill.
 */

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "policy/decide/policy.h"
#include "policy/decide/policy_blob.h"
#include "policy/keys/key_print.h"
#include "policy/keys/profile_parse.h"
#include "policy/lists/shipped.h"
#include "policy/profile/net_entry.h"
#include "policy/profile/settle.h"

enum rule_kind { KIND_FLOOR = 0, KIND_LIST, KIND_ADMIT };

/* One entry on its way into the blob. */
struct item {
	enum rule_kind kind;
	enum sbx_action action;
	const struct sbx_net_entry *entry;
	uint32_t terminate; /* as in the rule */
	size_t index;	    /* in its list */
	bool by_index;	    /* mark_terminated() */
};

struct compiler {
	struct item *items;
	size_t n_items;
	struct sbx_net_list shipped_floors; /* owned */
	char *requests; /* owned: the text of SBX_BLOB_REQUESTS */
	uint32_t n_terminated;
	uint8_t *blob;
	struct sbx_blob_header *h; /* at the start of blob, once it is there */
	/* Counts of records; what has been filled in the second pass. */
	size_t n[SBX_N_BLOB_SECTIONS], filled[SBX_N_BLOB_SECTIONS];
	unsigned max_labels;
};

static void compiler_fini(struct compiler *c)
{
	free(c->items);
	sbx_net_list_fini(&c->shipped_floors);
	free(c->requests);
	free(c->blob);
}

/* --- collecting and sorting --- */

static int parse_shipped_floors(struct sbx_net_list *list)
{
	list->deny = true;
	for (const char *const *s = sbx_shipped_floors; *s; s++) {
		int r = sbx_net_list_add_pattern(list, *s, "floor", NULL);

		assert(r <= 0);
		if (r < 0)
			return r;
	}
	return 0;
}

static void collect(struct compiler *c, enum rule_kind kind, enum sbx_action action,
		    const struct sbx_net_list *list)
{
	for (size_t i = 0; i < list->n; i++) {
		const struct sbx_net_entry *e = &list->v[i];
		bool terminated = kind == KIND_LIST && e->terminate;

		c->items[c->n_items++] = (struct item){
			kind, action, e, terminated ? ++c->n_terminated : 0, i, false,
		};
	}
}

#define COMPARE(a, b)                                                                              \
	do {                                                                                       \
		if ((a) != (b))                                                                    \
			return (a) < (b) ? -1 : 1;                                                 \
	} while (0)

/* The order of the tables: names by key, networks by group. 0: the same key. */
static int compare_keys(const struct item *a, const struct item *b)
{
	const struct sbx_net_entry *x = a->entry, *y = b->entry;

	COMPARE(a->kind, b->kind);
	COMPARE(x->is_cidr, y->is_cidr);
	if (!x->is_cidr) {
		int r = strcmp(x->host, y->host);

		if (r != 0)
			return r;
		COMPARE(x->wildcard, y->wildcard);
		return 0;
	}
	COMPARE(x->cidr.addr.family, y->cidr.addr.family);
	COMPARE(y->cidr.prefix, x->cidr.prefix);
	return memcmp(x->cidr.addr.b, y->cidr.addr.b, sizeof(x->cidr.addr.b));
}

/* Entries that say how requests are treated come before those that only name a host, so that
 * --allow HOST is no way around `access`. */
static int rank(const struct item *a)
{
	if (sbx_net_entry_asks_terminate(a->entry) || a->entry->any_said)
		return 0;
	return a->terminate ? 1 : 2;
}

static int compare_items(const void *pa, const void *pb)
{
	const struct item *a = pa, *b = pb;
	int r = compare_keys(a, b);

	if (r != 0)
		return r;
	COMPARE(a->action, b->action);
	if (a->by_index) {
		COMPARE(rank(a), rank(b));
		COMPARE(b->index, a->index);
	}
	r = strcmp(a->entry->text, b->entry->text);
	if (r != 0)
		return r;
	COMPARE(a->entry->private_ok, b->entry->private_ok);
	COMPARE(a->entry->check_set, b->entry->check_set);
	COMPARE(a->entry->check, b->entry->check);
	return 0;
}

/* Where one of the rules for some names is terminated, it matters which of them carries a flow: the
 * last of the list that says something about requests stands first. So a profile wins over the one
 * that it extends. The items are sorted by key. */
static void mark_terminated(struct compiler *c)
{
	size_t last;

	for (size_t first = 0; first < c->n_items; first = last) {
		bool terminated = false;

		for (last = first; last < c->n_items &&
				   compare_keys(&c->items[first], &c->items[last]) == 0;
		     last++)
			terminated |= c->items[last].terminate != 0;
		for (size_t i = first; i < last; i++)
			c->items[i].by_index = terminated;
	}
}

static int gather(struct compiler *c, const struct sbx_profile *profile,
		  const struct sbx_system_policy *system)
{
	size_t n, kept = 0;

	if (parse_shipped_floors(&c->shipped_floors) < 0)
		return -ENOMEM;
	n = c->shipped_floors.n + profile->network.allow.n + profile->network.deny.n;
	if (system)
		n += system->floors.n + system->admit.n;
	c->items = calloc(n, sizeof(*c->items));
	if (!c->items)
		return -ENOMEM;
	collect(c, KIND_FLOOR, SBX_DENY, &c->shipped_floors);
	if (system) {
		collect(c, KIND_FLOOR, SBX_DENY, &system->floors);
		collect(c, KIND_ADMIT, SBX_ALLOW, &system->admit);
	}
	collect(c, KIND_LIST, SBX_ALLOW, &profile->network.allow);
	collect(c, KIND_LIST, SBX_DENY, &profile->network.deny);
	qsort(c->items, c->n_items, sizeof(*c->items), compare_items);
	mark_terminated(c);
	qsort(c->items, c->n_items, sizeof(*c->items), compare_items);
	for (size_t i = 0; i < c->n_items; i++) {
		if (i == 0 || compare_items(&c->items[kept - 1], &c->items[i]) != 0)
			c->items[kept++] = c->items[i];
	}
	c->n_items = kept;
	return 0;
}

/* --- what an entry means --- */

/* Do two items share a hash slot? They do if they have the same key; "*." does not count. */
static bool same_slot(const struct item *a, const struct item *b)
{
	if (a->kind != b->kind || a->entry->is_cidr != b->entry->is_cidr)
		return false;
	if (!a->entry->is_cidr)
		return strcmp(a->entry->host, b->entry->host) == 0;
	return compare_keys(a, b) == 0;
}

static bool same_group(const struct item *a, const struct item *b)
{
	return a->kind == b->kind && a->entry->is_cidr && b->entry->is_cidr &&
	       a->entry->cidr.addr.family == b->entry->cidr.addr.family &&
	       a->entry->cidr.prefix == b->entry->cidr.prefix;
}

static size_t item_ports(const struct item *it, struct sbx_port_range *ret_ports)
{
	return sbx_net_entry_ranges(it->entry, it->action == SBX_DENY, ret_ports);
}

static uint8_t item_protos(const struct item *it)
{
	if (!it->entry->proto_set && it->action == SBX_DENY)
		return SBX_BLOB_TCP | SBX_BLOB_UDP;
	/* Admitted addresses are addresses of names: the protocol is the one that the name was
	 * allowed with. */
	if (!it->entry->proto_set && it->kind == KIND_ADMIT)
		return SBX_BLOB_TCP | SBX_BLOB_UDP;
	return it->entry->proto == SBX_PROTO_UDP ? SBX_BLOB_UDP : SBX_BLOB_TCP;
}

static const char *text_prefix(const struct item *it)
{
	return it->kind == KIND_FLOOR ? "floor " : it->kind == KIND_ADMIT ? "admit " : "";
}

static bool is_firewall(const struct item *it)
{
	return it->kind == KIND_LIST && it->action == SBX_ALLOW && it->entry->is_cidr;
}

/* --- counting --- */

static size_t table_size(size_t n_keys)
{
	size_t n = 4;

	while (n < n_keys * 2)
		n *= 2;
	return n;
}

static unsigned count_labels(const char *host)
{
	unsigned n = 1;

	for (; *host; host++)
		n += *host == '.';
	return n;
}

static void count(struct compiler *c)
{
	size_t n_keys = 0; /* of the table that is being counted */

	c->n[SBX_BLOB_STRINGS] = 1; /* the empty string, at 0 */
	c->n[SBX_BLOB_REQUESTS] = strlen(c->requests);
	for (size_t i = 0; i < c->n_items; i++) {
		const struct item *it = &c->items[i], *next = it + 1;
		bool last = i + 1 == c->n_items;
		struct sbx_port_range ports[SBX_PORTS_MAX];
		size_t n_ports = item_ports(it, ports);

		c->n[SBX_BLOB_RULES]++;
		c->n[SBX_BLOB_PORTS] += n_ports;
		c->n[SBX_BLOB_STRINGS] += strlen(text_prefix(it)) + strlen(it->entry->text) + 1;
		if (is_firewall(it))
			c->n[SBX_BLOB_FIREWALL] += n_ports;
		n_keys += last || !same_slot(it, next);
		if (it->entry->is_cidr) {
			if (!last && same_group(it, next))
				continue;
			c->n[SBX_BLOB_GROUPS_FLOOR + it->kind]++;
			c->n[SBX_BLOB_CIDR_SLOTS] += table_size(n_keys);
			n_keys = 0;
		} else {
			unsigned n_labels = count_labels(it->entry->host);

			c->max_labels = n_labels > c->max_labels ? n_labels : c->max_labels;
			if (!last && next->kind == it->kind && !next->entry->is_cidr)
				continue;
			/* A name to admit has been refused when the file was read. */
			assert(it->kind != KIND_ADMIT);
			c->n[SBX_BLOB_NAME_FLOOR + it->kind] = table_size(n_keys);
			n_keys = 0;
		}
	}
}

/* --- filling --- */

static void *section(const struct compiler *c, enum sbx_blob_section s)
{
	return c->blob + c->h->sections[s].offset;
}

static int allocate(struct compiler *c)
{
	size_t total = (sizeof(struct sbx_blob_header) + 7) & ~(size_t)7, offset;

	for (int s = 0; s < SBX_N_BLOB_SECTIONS; s++)
		total += (c->n[s] * sbx_blob_record_size[s] + 7) & ~(size_t)7;
	if (total > SBX_BLOB_BYTES_MAX)
		return -E2BIG;
	c->blob = calloc(1, total);
	if (!c->blob)
		return -ENOMEM;
	c->h = (struct sbx_blob_header *)(void *)c->blob;
	c->h->n_bytes = (uint32_t)total;
	offset = (sizeof(struct sbx_blob_header) + 7) & ~(size_t)7;
	for (int s = 0; s < SBX_N_BLOB_SECTIONS; s++) {
		c->h->sections[s].offset = (uint32_t)offset;
		c->h->sections[s].n = (uint32_t)c->n[s];
		offset += (c->n[s] * sbx_blob_record_size[s] + 7) & ~(size_t)7;
	}
	return 0;
}

static uint32_t add_string(struct compiler *c, const char *prefix, const char *text)
{
	char *strings = section(c, SBX_BLOB_STRINGS);
	size_t at = c->filled[SBX_BLOB_STRINGS], n_prefix = strlen(prefix), n_text = strlen(text);

	assert(n_prefix + n_text < c->n[SBX_BLOB_STRINGS] - at);
	memcpy(strings + at, prefix, n_prefix);
	memcpy(strings + at + n_prefix, text, n_text + 1);
	c->filled[SBX_BLOB_STRINGS] += n_prefix + n_text + 1;
	return (uint32_t)at;
}

/* Returns the offset of the entry's own text (behind "floor "). */
static uint32_t add_rule(struct compiler *c, const struct item *it)
{
	uint32_t index = (uint32_t)c->filled[SBX_BLOB_RULES]++;
	struct sbx_blob_rule *rule = (struct sbx_blob_rule *)section(c, SBX_BLOB_RULES) + index;
	struct sbx_blob_ports *ports = section(c, SBX_BLOB_PORTS);
	struct sbx_blob_firewall *firewall = section(c, SBX_BLOB_FIREWALL);
	struct sbx_port_range ranges[SBX_PORTS_MAX];
	size_t n = item_ports(it, ranges);

	rule->text = add_string(c, text_prefix(it), it->entry->text);
	rule->ports = (uint32_t)c->filled[SBX_BLOB_PORTS];
	rule->n_ports = (uint16_t)n;
	rule->protos = item_protos(it);
	rule->action = (uint8_t)it->action;
	rule->check = it->entry->check_set ? (uint8_t)it->entry->check : SBX_BLOB_CHECK_BY_PORT;
	rule->private_ok = it->entry->private_ok;
	rule->terminate = it->terminate;
	if (it->entry->is_cidr) {
		rule->family = it->entry->cidr.addr.family;
		rule->prefix = it->entry->cidr.prefix;
		memcpy(rule->addr, it->entry->cidr.addr.b, sizeof(rule->addr));
	}
	for (size_t i = 0; i < n; i++) {
		ports[c->filled[SBX_BLOB_PORTS]++] =
			(struct sbx_blob_ports){ ranges[i].first, ranges[i].last };
		if (is_firewall(it))
			firewall[c->filled[SBX_BLOB_FIREWALL]++] =
				(struct sbx_blob_firewall){ index, ranges[i].first,
							    ranges[i].last };
	}
	return rule->text + (uint32_t)strlen(text_prefix(it));
}

static struct sbx_blob_name_slot *name_slot(struct compiler *c, const struct item *it, uint32_t key)
{
	enum sbx_blob_section s = SBX_BLOB_NAME_FLOOR + it->kind;
	struct sbx_blob_name_slot *slots = section(c, s);
	const char *strings = section(c, SBX_BLOB_STRINGS);
	size_t n_key = strlen(it->entry->host), n_slots = c->h->sections[s].n, i;
	uint64_t h = SBX_HASH_START;

	for (i = n_key; i-- > 0;)
		h = sbx_hash_byte(h, (uint8_t)it->entry->host[i]);
	h = sbx_hash_end(h);
	for (i = h & (n_slots - 1); slots[i].n_key; i = (i + 1) & (n_slots - 1)) {
		if (slots[i].n_key == n_key &&
		    memcmp(strings + slots[i].key, it->entry->host, n_key) == 0)
			return &slots[i];
	}
	slots[i].hash = (uint32_t)(h >> 32);
	slots[i].key = key;
	slots[i].n_key = (uint32_t)n_key;
	return &slots[i];
}

static struct sbx_blob_run *cidr_run(struct compiler *c, const struct item *it)
{
	const struct sbx_blob_group *group =
		(struct sbx_blob_group *)section(c, SBX_BLOB_GROUPS_FLOOR + it->kind) +
		(c->filled[SBX_BLOB_GROUPS_FLOOR + it->kind] - 1);
	struct sbx_blob_cidr_slot *slots =
		(struct sbx_blob_cidr_slot *)section(c, SBX_BLOB_CIDR_SLOTS) + group->first_slot;
	const uint8_t *addr = it->entry->cidr.addr.b;
	size_t i = sbx_hash_addr(addr) & (group->n_slots - 1);

	while (slots[i].run.n && memcmp(slots[i].addr, addr, sizeof(slots[i].addr)) != 0)
		i = (i + 1) & (group->n_slots - 1);
	memcpy(slots[i].addr, addr, sizeof(slots[i].addr));
	return &slots[i].run;
}

/* The first item of a group: its table gets the size of the keys that follow. */
static void add_group(struct compiler *c, size_t first)
{
	const struct item *it = &c->items[first];
	enum sbx_blob_section s = SBX_BLOB_GROUPS_FLOOR + it->kind;
	struct sbx_blob_group *group = (struct sbx_blob_group *)section(c, s) + c->filled[s]++;
	size_t n_keys = 0;

	for (size_t i = first; i < c->n_items && same_group(it, &c->items[i]); i++)
		n_keys += i == first || !same_slot(&c->items[i - 1], &c->items[i]);
	*group = (struct sbx_blob_group){
		.family = it->entry->cidr.addr.family,
		.prefix = it->entry->cidr.prefix,
		.first_slot = (uint32_t)c->filled[SBX_BLOB_CIDR_SLOTS],
		.n_slots = (uint32_t)table_size(n_keys),
	};
	c->filled[SBX_BLOB_CIDR_SLOTS] += group->n_slots;
}

static void fill(struct compiler *c)
{
	size_t n_requests = strlen(c->requests);

	c->filled[SBX_BLOB_STRINGS] = 1;
	c->filled[SBX_BLOB_REQUESTS] = c->n[SBX_BLOB_REQUESTS];
	assert(n_requests <= c->n[SBX_BLOB_REQUESTS]);
	memcpy(section(c, SBX_BLOB_REQUESTS), c->requests, n_requests);
	for (size_t i = 0; i < c->n_items; i++) {
		const struct item *it = &c->items[i];
		uint32_t text = add_rule(c, it);
		struct sbx_blob_run *run;

		if (it->entry->is_cidr) {
			if (i == 0 || !same_group(it - 1, it))
				add_group(c, i);
			run = cidr_run(c, it);
		} else {
			/* The host is the text from behind "*." on, up to the ports. */
			struct sbx_blob_name_slot *slot =
				name_slot(c, it, text + (it->entry->wildcard ? 2 : 0));

			run = it->entry->wildcard ? &slot->below : &slot->exact;
		}
		if (run->n++ == 0)
			run->first = (uint32_t)i;
	}
	for (int s = 0; s < SBX_BLOB_STRINGS; s++)
		assert(c->filled[s] == 0 || c->filled[s] == c->n[s]);
	assert(c->filled[SBX_BLOB_STRINGS] == c->n[SBX_BLOB_STRINGS]);
}

/* A profile that nobody settled would have its terminated entries carried unread. */
static bool is_settled(const struct sbx_profile *profile)
{
	for (size_t i = 0; i < profile->network.allow.n; i++) {
		const struct sbx_net_entry *e = &profile->network.allow.v[i];

		if (!e->terminate && sbx_net_entry_asks_terminate(e))
			return false;
	}
	return sbx_profile_terminated(profile, NULL, 0) <= SBX_TERMINATED_MAX;
}

int sbx_policy_compile(const struct sbx_policy_input *in, void **ret_blob, size_t *ret_n)
{
	const struct sbx_profile *profile = in->profile;
	SBX_CLEANUP(compiler_fini) struct compiler c = { 0 };
	int r;

	if (!is_settled(profile))
		return -EINVAL;
	r = gather(&c, profile, in->system);
	if (r < 0)
		return r;
	c.requests = sbx_key_print_requests(profile);
	if (!c.requests)
		return -ENOMEM;
	count(&c);
	r = allocate(&c);
	if (r < 0)
		return r;
	c.h->magic = SBX_BLOB_MAGIC;
	c.h->version = SBX_BLOB_VERSION;
	c.h->generation = in->generation;
	c.h->mode = (uint8_t)profile->network.mode;
	c.h->air_gap = in->live && in->live->air_gapped;
	c.h->default_action = profile->network.default_action == SBX_ALLOW ? SBX_ALLOW : SBX_DENY;
	c.h->max_labels = (uint8_t)c.max_labels;
	c.h->n_terminated = c.n_terminated;
	fill(&c);
	*ret_n = c.h->n_bytes;
	*ret_blob = sbx_steal_ptr(&c.blob);
	return 0;
}
