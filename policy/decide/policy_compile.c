/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Compiling: the sorted entries (policy_collect.c) become rules and hash tables in one blob
 * (policy_blob.h). The blob depends on the meaning alone, so equal policies have equal bytes up to
 * the origins.
 *
 * Two passes over the sorted entries: count, then fill.
 */

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "policy/decide/policy_internal.h"
#include "policy/keys/key_print.h"
#include "policy/profile/net_entry.h"
#include "policy/profile/settle.h"

#define FILES_MAX 32 /* different origins; more are not known */

struct compiler {
	const struct sbx_policy_input *in;
	struct sbx_policy_items items;
	char *requests; /* owned: the text of SBX_BLOB_REQUESTS */
	/* The origins met, and where their names stand in ORIGIN_TEXT. */
	size_t n_files;
	const char *files[FILES_MAX];
	uint32_t file_at[FILES_MAX];
	uint8_t *blob;
	struct sbx_blob_header *h; /* at the start of blob, once it is there */
	/* Counts of records; what has been filled in the second pass. */
	size_t n[SBX_N_BLOB_SECTIONS], filled[SBX_N_BLOB_SECTIONS];
	unsigned max_labels;
};

static void compiler_fini(struct compiler *c)
{
	sbx_policy_items_fini(&c->items);
	free(c->requests);
	free(c->blob);
}

/* --- what an entry means --- */

/* Do two items share a hash slot? They do if they have the same key; "*." does not count. */
static bool same_slot(const struct sbx_policy_item *a, const struct sbx_policy_item *b)
{
	if (a->layer != b->layer || a->entry->is_cidr != b->entry->is_cidr)
		return false;
	if (!a->entry->is_cidr)
		return strcmp(a->entry->host, b->entry->host) == 0;
	return sbx_policy_compare_keys(a, b) == 0;
}

static bool same_group(const struct sbx_policy_item *a, const struct sbx_policy_item *b)
{
	return a->layer == b->layer && a->entry->is_cidr && b->entry->is_cidr &&
	       a->entry->cidr.addr.family == b->entry->cidr.addr.family &&
	       a->entry->cidr.prefix == b->entry->cidr.prefix;
}

static size_t item_ports(const struct sbx_policy_item *it, struct sbx_port_range *ret_ports)
{
	return sbx_net_entry_ranges(it->entry, it->action == SBX_DENY, ret_ports);
}

static uint8_t item_protos(const struct sbx_policy_item *it)
{
	if (!it->entry->proto_set && it->action == SBX_DENY)
		return SBX_BLOB_TCP | SBX_BLOB_UDP;
	/* Admitted addresses are addresses of names: the protocol is the one that the name was
	 * allowed with. */
	if (!it->entry->proto_set && it->layer == SBX_LAYER_ADMIT)
		return SBX_BLOB_TCP | SBX_BLOB_UDP;
	return it->entry->proto == SBX_PROTO_UDP ? SBX_BLOB_UDP : SBX_BLOB_TCP;
}

static const char *text_prefix(const struct sbx_policy_item *it)
{
	return it->layer == SBX_LAYER_FLOOR ? "floor " :
	       it->layer == SBX_LAYER_ADMIT ? "admit " :
					      "";
}

/* An air-gapped sandbox reaches the networks of its live list only. */
static bool is_firewall(const struct compiler *c, const struct sbx_policy_item *it)
{
	bool open = !c->in->live || !c->in->live->air_gapped || it->layer == SBX_LAYER_LIVE;

	return open && it->layer >= SBX_LAYER_RULE && it->layer <= SBX_LAYER_PROFILE &&
	       it->action == SBX_ALLOW && it->entry->is_cidr;
}

/* --- origins --- */

#define LABEL_MAX (SBX_PATTERN_MAX + 64)

/* The text for people in place of the rule's own; "": its own. Returns @buf. */
static const char *label(const struct sbx_policy_item *it, char buf[LABEL_MAX])
{
	*buf = '\0';
	if (it->row == SBX_RULE_DRAFT)
		sbx_text_fit(buf, LABEL_MAX, "draft %s", it->entry->text);
	else if (it->layer == SBX_LAYER_RULE)
		sbx_text_fit(buf, LABEL_MAX, "rule %lld %s", (long long)it->row, it->entry->text);
	else if (it->layer == SBX_LAYER_LIVE)
		sbx_text_fit(buf, LABEL_MAX, "live %s", it->entry->text);
	return buf;
}

/* The number of @file among those met; FILES_MAX: it is not known. *ret_new: it was not met yet. */
static size_t meet_file(struct compiler *c, const char *file, bool *ret_new)
{
	size_t i;

	*ret_new = false;
	for (i = 0; file && i < c->n_files; i++) {
		if (strcmp(c->files[i], file) == 0)
			return i;
	}
	if (!file || i == FILES_MAX)
		return FILES_MAX;
	c->files[c->n_files++] = file;
	*ret_new = true;
	return i;
}

static void count_origin(struct compiler *c, const struct sbx_policy_item *it)
{
	char buf[LABEL_MAX];
	size_t n = strlen(label(it, buf));
	bool is_new;

	c->n[SBX_BLOB_ORIGINS]++;
	c->n[SBX_BLOB_ORIGIN_TEXT] += n ? n + 1 : 0;
	meet_file(c, it->file, &is_new);
	c->n[SBX_BLOB_ORIGIN_TEXT] += is_new ? strlen(it->file) + 1 : 0;
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
	c->n[SBX_BLOB_ORIGIN_TEXT] = 1;
	c->n[SBX_BLOB_REQUESTS] = strlen(c->requests);
	for (size_t i = 0; i < c->items.n; i++) {
		const struct sbx_policy_item *it = &c->items.v[i], *next = it + 1;
		bool last = i + 1 == c->items.n;
		struct sbx_port_range ports[SBX_PORTS_MAX];
		size_t n_ports = item_ports(it, ports);

		c->n[SBX_BLOB_RULES]++;
		c->n[SBX_BLOB_PORTS] += n_ports;
		c->n[SBX_BLOB_STRINGS] += strlen(text_prefix(it)) + strlen(it->entry->text) + 1;
		c->n[SBX_BLOB_STRINGS] += it->requests ? strlen(it->requests) + 1 : 0;
		if (is_firewall(c, it))
			c->n[SBX_BLOB_FIREWALL] += n_ports;
		count_origin(c, it);
		n_keys += last || !same_slot(it, next);
		if (it->entry->is_cidr) {
			if (!last && same_group(it, next))
				continue;
			c->n[SBX_BLOB_GROUPS_FLOOR + it->layer]++;
			c->n[SBX_BLOB_CIDR_SLOTS] += table_size(n_keys);
			n_keys = 0;
		} else {
			unsigned n_labels = count_labels(it->entry->host);

			c->max_labels = n_labels > c->max_labels ? n_labels : c->max_labels;
			if (!last && next->layer == it->layer && !next->entry->is_cidr)
				continue;
			/* A name to admit has been refused when the file was read. */
			assert(it->layer != SBX_LAYER_ADMIT);
			c->n[SBX_BLOB_NAME_FLOOR + it->layer] = table_size(n_keys);
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

/* Add @prefix and @text, with one NUL, to a section of strings. */
static uint32_t add_string(struct compiler *c, enum sbx_blob_section sec, const char *prefix,
			   const char *text)
{
	char *strings = section(c, sec);
	size_t at = c->filled[sec], n_prefix = strlen(prefix), n_text = strlen(text);

	assert(n_prefix + n_text < c->n[sec] - at);
	memcpy(strings + at, prefix, n_prefix);
	memcpy(strings + at + n_prefix, text, n_text + 1);
	c->filled[sec] += n_prefix + n_text + 1;
	return (uint32_t)at;
}

static void add_origin(struct compiler *c, const struct sbx_policy_item *it)
{
	struct sbx_blob_origin *o = (struct sbx_blob_origin *)section(c, SBX_BLOB_ORIGINS) +
				    c->filled[SBX_BLOB_ORIGINS]++;
	char buf[LABEL_MAX];
	bool is_new;
	size_t file;

	*o = (struct sbx_blob_origin){ .row = it->row, .line = (uint32_t)it->line };
	if (*label(it, buf))
		o->label = add_string(c, SBX_BLOB_ORIGIN_TEXT, "", buf);
	file = meet_file(c, it->file, &is_new);
	if (is_new)
		c->file_at[file] = add_string(c, SBX_BLOB_ORIGIN_TEXT, "", it->file);
	o->file = file < FILES_MAX ? c->file_at[file] : 0;
}

/* Returns the offset of the entry's own text (behind "floor "). */
static uint32_t add_rule(struct compiler *c, const struct sbx_policy_item *it)
{
	uint32_t index = (uint32_t)c->filled[SBX_BLOB_RULES]++;
	struct sbx_blob_rule *rule = (struct sbx_blob_rule *)section(c, SBX_BLOB_RULES) + index;
	struct sbx_blob_ports *ports = section(c, SBX_BLOB_PORTS);
	struct sbx_blob_firewall *firewall = section(c, SBX_BLOB_FIREWALL);
	struct sbx_port_range ranges[SBX_PORTS_MAX];
	size_t n = item_ports(it, ranges);

	rule->text = add_string(c, SBX_BLOB_STRINGS, text_prefix(it), it->entry->text);
	if (it->requests)
		rule->requests = add_string(c, SBX_BLOB_STRINGS, "", it->requests);
	rule->ports = (uint32_t)c->filled[SBX_BLOB_PORTS];
	rule->n_ports = (uint16_t)n;
	rule->protos = item_protos(it);
	rule->action = (uint8_t)it->action;
	rule->check = it->entry->check_set ? (uint8_t)it->entry->check : SBX_BLOB_CHECK_BY_PORT;
	rule->private_ok = it->entry->private_ok;
	rule->terminate = it->terminate;
	rule->priority = it->priority;
	rule->layer = (uint8_t)it->layer;
	/* The default that allowed a secret's host is the workspace's now. */
	rule->asks_only = it->entry->asks_only ||
			  (it->entry->by_default && c->h->default_action != SBX_ALLOW);
	if (it->entry->is_cidr) {
		rule->family = it->entry->cidr.addr.family;
		rule->prefix = it->entry->cidr.prefix;
		memcpy(rule->addr, it->entry->cidr.addr.b, sizeof(rule->addr));
	}
	for (size_t i = 0; i < n; i++) {
		ports[c->filled[SBX_BLOB_PORTS]++] =
			(struct sbx_blob_ports){ ranges[i].first, ranges[i].last };
		if (is_firewall(c, it))
			firewall[c->filled[SBX_BLOB_FIREWALL]++] =
				(struct sbx_blob_firewall){ index, ranges[i].first,
							    ranges[i].last };
	}
	return rule->text + (uint32_t)strlen(text_prefix(it));
}

static struct sbx_blob_name_slot *name_slot(struct compiler *c, const struct sbx_policy_item *it,
					    uint32_t key)
{
	enum sbx_blob_section s = SBX_BLOB_NAME_FLOOR + it->layer;
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

static struct sbx_blob_run *cidr_run(struct compiler *c, const struct sbx_policy_item *it)
{
	const struct sbx_blob_group *group =
		(struct sbx_blob_group *)section(c, SBX_BLOB_GROUPS_FLOOR + it->layer) +
		(c->filled[SBX_BLOB_GROUPS_FLOOR + it->layer] - 1);
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
	const struct sbx_policy_item *it = &c->items.v[first];
	enum sbx_blob_section s = SBX_BLOB_GROUPS_FLOOR + it->layer;
	struct sbx_blob_group *group = (struct sbx_blob_group *)section(c, s) + c->filled[s]++;
	size_t n_keys = 0;

	for (size_t i = first; i < c->items.n && same_group(it, &c->items.v[i]); i++)
		n_keys += i == first || !same_slot(&c->items.v[i - 1], &c->items.v[i]);
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
	c->filled[SBX_BLOB_ORIGIN_TEXT] = 1;
	c->n_files = 0;
	c->filled[SBX_BLOB_REQUESTS] = c->n[SBX_BLOB_REQUESTS];
	assert(n_requests <= c->n[SBX_BLOB_REQUESTS]);
	memcpy(section(c, SBX_BLOB_REQUESTS), c->requests, n_requests);
	for (size_t i = 0; i < c->items.n; i++) {
		const struct sbx_policy_item *it = &c->items.v[i];
		uint32_t text = add_rule(c, it);
		struct sbx_blob_run *run;

		add_origin(c, it);
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
	for (int s = 0; s < SBX_N_BLOB_SECTIONS; s++)
		assert(c->filled[s] == c->n[s] ||
		       (s >= SBX_BLOB_NAME_FLOOR && s <= SBX_BLOB_NAME_PROFILE));
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

static void fill_header(const struct compiler *c)
{
	const struct sbx_rules *rules = c->in->rules;
	const struct sbx_profile *profile = c->in->profile;
	struct sbx_blob_header *h = c->h;

	h->magic = SBX_BLOB_MAGIC;
	h->version = SBX_BLOB_VERSION;
	h->generation = c->in->generation;
	h->mode = (uint8_t)profile->network.mode;
	h->air_gap = c->in->live && c->in->live->air_gapped;
	h->live_allows = c->in->live && sbx_live_allows(c->in->live);
	h->live_requests = c->in->live && sbx_live_has_requests(c->in->live);
	h->of_workspace = rules && rules->default_set;
	h->default_action = (h->of_workspace ? rules->default_action :
					       profile->network.default_action) == SBX_ALLOW ?
				    SBX_ALLOW :
				    SBX_DENY;
	h->max_labels = (uint8_t)c->max_labels;
	h->n_terminated = c->items.n_terminated;
}

int sbx_policy_compile(const struct sbx_policy_input *in, void **ret_blob, size_t *ret_n)
{
	SBX_CLEANUP(compiler_fini) struct compiler c = { .in = in };
	int r;

	if (!is_settled(in->profile))
		return -EINVAL;
	r = sbx_policy_collect(in, &c.items);
	if (r < 0)
		return r;
	c.requests = sbx_key_print_requests(in->profile);
	if (!c.requests)
		return -ENOMEM;
	count(&c);
	r = allocate(&c);
	if (r < 0)
		return r;
	fill_header(&c);
	fill(&c);
	*ret_n = c.h->n_bytes;
	*ret_blob = sbx_steal_ptr(&c.blob);
	return 0;
}
