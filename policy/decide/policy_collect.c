/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The entries of a policy, from the shipped floors, the system policy, the stored rules, the live
 * lists and the profile, in one sorted array. Their order depends on their meaning alone: the order
 * of the files and repeated entries leave no trace. Terminated entries are the exception: their
 * order numbers them.
 */

#include "policy/decide/policy_internal.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "policy/keys/profile_parse.h"
#include "policy/lists/shipped.h"
#include "policy/profile/net_entry.h"
#include "policy/profile/settle.h"

static int parse_shipped_floors(struct sbx_net_list *list)
{
	list->deny = true;
	for (const char *const *s = sbx_shipped_floors; *s; s++) {
		int r = sbx_net_list_add_pattern(list, *s, "shipped", NULL);

		assert(r <= 0);
		if (r < 0)
			return r;
	}
	return 0;
}

/* @file: what takes the place of the entries' files; NULL: they have their own. */
static void collect(struct sbx_policy_items *items, enum sbx_layer layer, enum sbx_action action,
		    const struct sbx_net_list *list, const char *file)
{
	for (size_t i = 0; i < list->n; i++) {
		const struct sbx_net_entry *e = &list->v[i];
		bool terminated = layer == SBX_LAYER_PROFILE && e->terminate;

		items->v[items->n++] = (struct sbx_policy_item){
			.layer = layer,
			.action = action,
			.entry = e,
			.terminate = terminated ? ++items->n_terminated : 0,
			.index = i,
			.file = file ? file : e->file,
			.line = file ? 0 : e->line,
		};
	}
}

static void collect_rules(struct sbx_policy_items *items, const struct sbx_rules *rules)
{
	for (size_t i = 0; i < rules->n; i++) {
		const struct sbx_rule *r = &rules->v[i];

		if (r->type != SBX_RULE_NETWORK)
			continue;
		items->v[items->n++] = (struct sbx_policy_item){
			.layer = r->is_floor ? SBX_LAYER_FLOOR : SBX_LAYER_RULE,
			.action = r->is_floor ? SBX_DENY : r->action,
			.entry = &r->entry,
			.priority = r->is_floor ? 0 : r->priority,
			.index = i,
			.row = r->id,
		};
	}
}

static void collect_live(struct sbx_policy_items *items, const struct sbx_live *live)
{
	static const char origin[] = "sbxctl net";

	collect(items, SBX_LAYER_LIVE, SBX_ALLOW, &live->allow, origin);
	collect(items, SBX_LAYER_LIVE, SBX_DENY, &live->deny, origin);
	for (size_t i = 0; i < live->rules.n; i++) {
		const struct sbx_live_rule *r = &live->rules.v[i];

		items->v[items->n++] = (struct sbx_policy_item){
			.layer = SBX_LAYER_LIVE,
			.action = r->action,
			.entry = &r->entry,
			.requests = r->requests,
			.index = i,
			.file = origin,
		};
	}
}

#define COMPARE(a, b)                                                                              \
	do {                                                                                       \
		if ((a) != (b))                                                                    \
			return (a) < (b) ? -1 : 1;                                                 \
	} while (0)

int sbx_policy_compare_keys(const struct sbx_policy_item *a, const struct sbx_policy_item *b)
{
	const struct sbx_net_entry *x = a->entry, *y = b->entry;

	COMPARE(a->layer, b->layer);
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
static int rank(const struct sbx_policy_item *a)
{
	if (sbx_net_entry_asks_terminate(a->entry) || a->entry->any_said)
		return 0;
	return a->terminate ? 1 : 2;
}

/* 0: the same meaning. */
static int compare_meaning(const struct sbx_policy_item *a, const struct sbx_policy_item *b)
{
	int r = sbx_policy_compare_keys(a, b);

	if (r != 0)
		return r;
	COMPARE(a->priority, b->priority);
	COMPARE(a->action, b->action);
	if (a->by_index) {
		COMPARE(rank(a), rank(b));
		COMPARE(b->index, a->index);
	}
	/* A live rule about requests comes before an entry that allows all of them. */
	COMPARE(!a->requests, !b->requests);
	r = strcmp(a->entry->text, b->entry->text);
	if (r == 0 && a->requests)
		r = strcmp(a->requests, b->requests);
	if (r != 0)
		return r;
	COMPARE(a->entry->private_ok, b->entry->private_ok);
	COMPARE(a->entry->check_set, b->entry->check_set);
	COMPARE(a->entry->check, b->entry->check);
	/* Each rule is shown, and removed, by itself. */
	if (a->layer == SBX_LAYER_RULE)
		COMPARE(a->row, b->row);
	return 0;
}

static int compare_items(const void *pa, const void *pb)
{
	const struct sbx_policy_item *a = pa, *b = pb;
	int r = compare_meaning(a, b);

	if (r != 0)
		return r;
	/* Of those with one meaning the first is shown: a file before a row, a lower row first. */
	COMPARE(a->row, b->row);
	COMPARE(a->index, b->index);
	return 0;
}

/* Where one of the rules for some names is terminated, it matters which of them carries a flow: the
 * last of the list that says something about requests stands first. So a profile wins over the one
 * that it extends. The items are sorted by key. */
static void mark_terminated(struct sbx_policy_items *items)
{
	size_t last;

	for (size_t first = 0; first < items->n; first = last) {
		bool terminated = false;

		for (last = first; last < items->n &&
				   sbx_policy_compare_keys(&items->v[first], &items->v[last]) == 0;
		     last++)
			terminated |= items->v[last].terminate != 0;
		for (size_t i = first; i < last; i++)
			items->v[i].by_index = terminated;
	}
}

static void sort(struct sbx_policy_items *items)
{
	size_t kept = 0;

	qsort(items->v, items->n, sizeof(*items->v), compare_items);
	mark_terminated(items);
	qsort(items->v, items->n, sizeof(*items->v), compare_items);
	for (size_t i = 0; i < items->n; i++) {
		if (i == 0 || compare_meaning(&items->v[kept - 1], &items->v[i]) != 0)
			items->v[kept++] = items->v[i];
	}
	items->n = kept;
}

int sbx_policy_collect(const struct sbx_policy_input *in, struct sbx_policy_items *ret_items)
{
	const struct sbx_system_policy *system = in->system;
	const struct sbx_profile *profile = in->profile;
	struct sbx_policy_items *items = ret_items;
	size_t n;

	*items = (struct sbx_policy_items){ 0 };
	if (parse_shipped_floors(&items->shipped_floors) < 0)
		return -ENOMEM;
	n = items->shipped_floors.n + profile->network.allow.n + profile->network.deny.n;
	n += system ? system->floors.n + system->admit.n : 0;
	n += in->rules ? in->rules->n : 0;
	n += in->live ? in->live->allow.n + in->live->deny.n + in->live->rules.n : 0;
	items->v = calloc(n, sizeof(*items->v));
	if (!items->v)
		return -ENOMEM;
	collect(items, SBX_LAYER_FLOOR, SBX_DENY, &items->shipped_floors, NULL);
	if (system) {
		collect(items, SBX_LAYER_FLOOR, SBX_DENY, &system->floors, NULL);
		collect(items, SBX_LAYER_ADMIT, SBX_ALLOW, &system->admit, NULL);
	}
	if (in->rules)
		collect_rules(items, in->rules);
	if (in->live)
		collect_live(items, in->live);
	collect(items, SBX_LAYER_PROFILE, SBX_ALLOW, &profile->network.allow, NULL);
	collect(items, SBX_LAYER_PROFILE, SBX_DENY, &profile->network.deny, NULL);
	sort(items);
	return 0;
}

void sbx_policy_items_fini(struct sbx_policy_items *items)
{
	free(items->v);
	sbx_net_list_fini(&items->shipped_floors);
	*items = (struct sbx_policy_items){ 0 };
}
