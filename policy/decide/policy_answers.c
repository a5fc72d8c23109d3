/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Answers for people: the entries of a policy with their places, all that matches a destination,
 * and the changes that would turn a verdict. They match by policy_match.c and decide by
 * policy_decide.c, as a flow does.
 */

#include <assert.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "policy/decide/policy_internal.h"

static const char *const layer_names[] = {
	[SBX_LAYER_FLOOR] = "floor", [SBX_LAYER_RULE] = "rule",
	[SBX_LAYER_LIVE] = "live",   [SBX_LAYER_PROFILE] = "profile",
	[SBX_LAYER_ADMIT] = "admit", [SBX_LAYER_DEFAULT] = "default",
};
static_assert(SBX_N_ELEMENTS(layer_names) == SBX_N_LAYERS, "each layer has a name");

const char *sbx_layer_str(enum sbx_layer l)
{
	return (unsigned)l < SBX_N_LAYERS ? layer_names[l] : "unknown";
}

/* --- entries --- */

bool sbx_policy_entry(const struct sbx_policy *p, uint32_t rule, struct sbx_policy_entry *ret_entry)
{
	static const char *const prefixes[SBX_N_LAYERS] = {
		[SBX_LAYER_FLOOR] = "floor ", [SBX_LAYER_ADMIT] = "admit "
	};
	const struct sbx_blob_origin *o;
	const struct sbx_blob_rule *r;
	struct sbx_policy_entry *e = ret_entry;
	const char *file;

	if (rule >= p->h->sections[SBX_BLOB_RULES].n)
		return false;
	r = &p->rules[rule];
	o = &p->origins[rule];
	file = p->origin_text + o->file;
	*e = (struct sbx_policy_entry){
		.layer = r->layer,
		.action = r->action == SBX_ALLOW ? SBX_ALLOW : SBX_DENY,
		.text = p->strings + r->text,
		.row = o->row,
		.priority = r->priority,
		.is_cidr = r->family != 0,
		.cidr = { .addr.family = r->family, .prefix = r->prefix },
	};
	memcpy(e->cidr.addr.b, r->addr, sizeof(r->addr));
	if (prefixes[e->layer] && strncmp(e->text, prefixes[e->layer], 6) == 0)
		e->text += 6;
	if (o->row == SBX_RULE_DRAFT)
		sbx_text_cut(e->origin, sizeof(e->origin), "draft");
	else if (o->row)
		sbx_text_cut(e->origin, sizeof(e->origin), "rule %lld", (long long)o->row);
	else if (o->line)
		sbx_text_cut(e->origin, sizeof(e->origin), "%s:%u", file, o->line);
	else
		sbx_text_cut(e->origin, sizeof(e->origin), "%s", file);
	return true;
}

/* --- matches --- */

struct found {
	const struct sbx_policy *p;
	uint32_t *v;
	size_t n, n_max;
	size_t first; /* of the layer that is being added */
};

static bool covers(const struct sbx_policy *p, uint32_t rule, enum sbx_proto proto, uint16_t port)
{
	return port == 0 || sbx_match_covers(p, rule, sbx_match_proto(proto), port);
}

/* Behind all of its layer with the same or a lower priority number. */
static void add(struct found *f, uint32_t rule)
{
	size_t n = f->n < f->n_max ? f->n : f->n_max, at = n;

	for (size_t i = f->first; i < n; i++) {
		if (f->v[i] == rule)
			return; /* by another form of the address */
	}
	while (at > f->first && f->p->rules[f->v[at - 1]].priority > f->p->rules[rule].priority)
		at--;
	f->n = f->n < f->n_max ? f->n + 1 : f->n_max + 1;
	if (at >= f->n_max)
		return;
	if (n == f->n_max)
		n--;
	memmove(f->v + at + 1, f->v + at, (n - at) * sizeof(*f->v));
	f->v[at] = rule;
}

static void add_levels(struct found *f, const struct sbx_levels *l, enum sbx_proto proto,
		       uint16_t port)
{
	for (size_t i = l->n; i-- > 0;) {
		const struct sbx_blob_run *run = &l->v[i];

		for (uint32_t r = run->first; r < run->first + run->n; r++) {
			if (covers(f->p, r, proto, port))
				add(f, r);
		}
	}
}

size_t sbx_policy_matches_name(const struct sbx_policy *p, const char *name, enum sbx_proto proto,
			       uint16_t port, uint32_t *v, size_t n_max)
{
	struct found f = { .p = p, .v = v, .n_max = n_max };
	struct sbx_name_levels levels;

	if (!sbx_match_name(p, name, &levels))
		return 0;
	for (int t = 0; t < SBX_N_NAME_LAYERS; t++) {
		f.first = f.n < n_max ? f.n : n_max;
		add_levels(&f, &levels.v[t], proto, port);
	}
	return f.n;
}

size_t sbx_policy_matches_addr(const struct sbx_policy *p, const struct sbx_addr *addr,
			       enum sbx_proto proto, uint16_t port, uint32_t *v, size_t n_max)
{
	struct found f = { .p = p, .v = v, .n_max = n_max };
	struct sbx_addr forms[1 + SBX_ADDR_EMBEDDED_MAX] = { sbx_addr_unmap(addr) };
	size_t n = 1 + sbx_addr_embedded(&forms[0], forms + 1);
	struct sbx_levels levels;

	for (enum sbx_layer t = SBX_LAYER_FLOOR; t <= SBX_LAYER_ADMIT; t++) {
		f.first = f.n < n_max ? f.n : n_max;
		/* Only the address itself is admitted. */
		for (size_t i = 0; i < (t == SBX_LAYER_ADMIT ? 1 : n); i++) {
			sbx_match_addr(p, t, &forms[i], &levels);
			add_levels(&f, &levels, proto, port);
		}
	}
	return f.n;
}

/* --- changes --- */

struct changes {
	const struct sbx_policy *p;
	const struct sbx_policy_asked *asked;
	struct sbx_policy_change *v;
	size_t n;
};

static enum sbx_action decide(const struct sbx_policy *p, const struct sbx_policy_asked *a)
{
	struct sbx_verdict v;

	if (a->name && !a->addr)
		v = sbx_policy_decide_name(p, a->name, a->proto, a->port);
	else if (!a->name)
		v = sbx_policy_decide_addr(p, a->addr, a->proto, a->port);
	else
		v = sbx_policy_decide_resolved(p, a->addr, a->proto, a->port, true);
	return v.action;
}

/* The entry for just what was asked. To deny, for every port. */
static void pattern_of(const struct sbx_policy_asked *a, enum sbx_action action, char *buf,
		       size_t n_buf)
{
	char addr[SBX_ADDR_STR_MAX] = "", port[32] = "";
	struct sbx_addr unmapped = { 0 };
	bool brackets = false;

	if (a->addr) {
		unmapped = sbx_addr_unmap(a->addr);
		sbx_addr_format(&unmapped, addr, sizeof(addr));
	}
	if (action == SBX_ALLOW &&
	    (a->addr || a->proto != SBX_PROTO_TCP || (a->port != 443 && a->port != 80))) {
		brackets = a->addr && unmapped.family == 6;
		sbx_text_fit(port, sizeof(port), ":%u%s", a->port,
			     a->proto == SBX_PROTO_UDP ? "/udp" : "");
	}
	sbx_text_cut(buf, n_buf, "%s%s%s%s", brackets ? "[" : "", a->addr ? addr : a->name,
		     brackets ? "]" : "", port);
}

static const char *or_word(const char *text, const char *word)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789._-";

	return text && *text && !text[strspn(text, plain)] ? text : word;
}

static struct sbx_policy_change *append(struct changes *c, enum sbx_change_kind kind)
{
	assert(c->n < SBX_CHANGES_MAX);
	c->v[c->n] = (struct sbx_policy_change){ .kind = kind };
	return &c->v[c->n++];
}

/* The rule of a layer that decides on what was asked. */
static uint32_t winner(const struct changes *c, enum sbx_layer layer)
{
	const struct sbx_policy_asked *a = c->asked;
	struct sbx_name_levels levels;
	struct sbx_addr addr;
	uint32_t other;

	if (!a->addr)
		return sbx_match_name(c->p, a->name, &levels) ?
			       sbx_match_first(c->p, &levels.v[layer], sbx_match_proto(a->proto),
					       a->port) :
			       SBX_NO_RULE;
	addr = sbx_addr_unmap(a->addr);
	return sbx_match_first_addr(c->p, layer, &addr, sbx_match_proto(a->proto), a->port, &other);
}

/* May an entry without `private: true` allow what was asked? Not where the address is of a class
 * that is not dialled. */
static bool may_allow(const struct changes *c)
{
	const struct sbx_policy_asked *a = c->asked;
	struct sbx_addr addr;
	uint32_t own;

	if (!a->addr)
		return true;
	addr = sbx_addr_unmap(a->addr);
	own = winner(c, SBX_LAYER_PROFILE);
	return sbx_policy_class_allows(c->p, &addr, sbx_match_proto(a->proto), a->port,
				       a->name || (own != SBX_NO_RULE &&
						   c->p->rules[own].action == SBX_ALLOW &&
						   c->p->rules[own].private_ok));
}

/* A change that adds an entry. */
static void add_entry(struct changes *c, enum sbx_change_kind kind, enum sbx_action action,
		      uint32_t priority)
{
	const char *word = action == SBX_ALLOW ? "allow" : "deny", *q;
	struct sbx_policy_change *x;

	if (action == SBX_ALLOW && !may_allow(c))
		return;
	x = append(c, kind);
	x->action = action;
	x->priority = priority;
	pattern_of(c->asked, action, x->pattern, sizeof(x->pattern));
	q = strpbrk(x->pattern, "*[]") ? "'" : "";
	switch (kind) {
	case SBX_CHANGE_FLAG:
		sbx_text_cut(x->text, sizeof(x->text), "--%s %s%s%s", word, q, x->pattern, q);
		return;
	case SBX_CHANGE_PROFILE:
		sbx_text_cut(x->text, sizeof(x->text), "network.%s: - %s%s%s", word, *q ? "\"" : "",
			     x->pattern, *q ? "\"" : "");
		return;
	case SBX_CHANGE_NET:
		sbx_text_cut(x->text, sizeof(x->text), "sbxctl net %s --%s %s%s%s",
			     or_word(c->asked->id, "ID"), word, q, x->pattern, q);
		return;
	default:
		sbx_text_cut(x->text, sizeof(x->text),
			     "sbxctl rules add --workspace %s --type network --action %s "
			     "--priority %u %s%s%s",
			     or_word(c->asked->workspace, "W"), word, priority, q, x->pattern, q);
	}
}

/* The removal of an entry, if it turns the verdict. */
static void remove_entry(struct changes *c, uint32_t rule, enum sbx_action now)
{
	struct sbx_policy what_if = *c->p;
	struct sbx_policy_change *x;
	struct sbx_policy_entry e;

	what_if.ignored = rule;
	if (decide(&what_if, c->asked) == now || !sbx_policy_entry(c->p, rule, &e))
		return;
	x = append(c, e.layer == SBX_LAYER_RULE ? SBX_CHANGE_RULE_REMOVE : SBX_CHANGE_REMOVE);
	x->row = e.row;
	if (e.row == SBX_RULE_DRAFT)
		sbx_text_cut(x->text, sizeof(x->text), "leave out the draft");
	else if (e.layer == SBX_LAYER_RULE)
		sbx_text_cut(x->text, sizeof(x->text), "sbxctl rules rm %lld", (long long)e.row);
	else
		sbx_text_cut(x->text, sizeof(x->text), "remove the %s entry '%s'%s%s%s",
			     e.action == SBX_ALLOW ? "allow" : "deny", e.text,
			     *e.origin ? " (" : "", e.origin, *e.origin ? ")" : "");
}

/* Is no entry for what was asked more specific than @rule? */
static bool is_exact(const struct sbx_policy *p, uint32_t rule)
{
	const struct sbx_blob_rule *r = &p->rules[rule];

	if (r->family)
		return r->prefix == (r->family == 4 ? 32 : 128);
	return strncmp(p->strings + r->text, "*.", 2) != 0;
}

/* A rule that beats all rules that match now, if there is one. */
static void add_rule(struct changes *c, enum sbx_action action, uint32_t rule)
{
	uint32_t priority = SBX_RULE_PRIORITY;

	if (rule != SBX_NO_RULE) {
		priority = c->p->rules[rule].priority;
		if (action == SBX_ALLOW && priority == 0 && is_exact(c->p, rule))
			return;
		/* At the same priority, a deny of just this wins. */
		priority -= action == SBX_ALLOW && priority > 0;
	}
	add_entry(c, SBX_CHANGE_RULE_ADD, action, priority);
}

static void allow_in_gap(struct changes *c)
{
	struct sbx_policy what_if = *c->p;
	uint32_t live = winner(c, SBX_LAYER_LIVE);
	struct sbx_policy_change *x;

	if (c->p->h->mode == SBX_MODE_OFFLINE)
		return;
	if (live == SBX_NO_RULE || !is_exact(c->p, live))
		add_entry(c, SBX_CHANGE_NET, SBX_ALLOW, 0);
	what_if.no_air_gap = true;
	if (decide(&what_if, c->asked) != SBX_ALLOW)
		return;
	x = append(c, SBX_CHANGE_NO_AIR_GAP);
	sbx_text_cut(x->text, sizeof(x->text), "sbxctl net %s --no-air-gap",
		     or_word(c->asked->id, "ID"));
}

/* An entry for a private address, which a flag or a rule cannot write. @or_admit: one without
 * `private: true` is there already. */
static void allow_private(struct changes *c, bool or_admit)
{
	struct sbx_policy_change *x;

	if (!c->asked->addr || sbx_addr_class(c->asked->addr) != SBX_ADDR_PRIVATE)
		return;
	x = append(c, SBX_CHANGE_PRIVATE);
	x->action = SBX_ALLOW;
	pattern_of(c->asked, SBX_ALLOW, x->pattern, sizeof(x->pattern));
	sbx_text_cut(x->text, sizeof(x->text),
		     "an entry of network.allow with `private: true` for this address%s",
		     or_admit ? ", or `admit` in system.yaml" : "");
}

/* An entry of the profile allows what was asked. */
static void allow_by_profile(struct changes *c)
{
	add_entry(c, SBX_CHANGE_FLAG, SBX_ALLOW, 0);
	if (!may_allow(c))
		allow_private(c, false);
}

static void turn_deny(struct changes *c, const struct sbx_verdict *v)
{
	/* A deny of an address that the asked one embeds holds whatever allows the other. */
	if (v->rule != SBX_NO_RULE && c->asked->addr &&
	    c->p->rules[v->rule].family != sbx_addr_unmap(c->asked->addr).family) {
		remove_entry(c, v->rule, SBX_DENY);
		return;
	}
	switch (v->reason) {
	case SBX_REASON_AIR_GAP:
		allow_in_gap(c);
		return;
	case SBX_REASON_RULE_DENY:
		remove_entry(c, v->rule, SBX_DENY);
		if (!c->p->h->air_gap && c->p->h->mode != SBX_MODE_OFFLINE)
			add_rule(c, SBX_ALLOW, v->rule);
		return;
	case SBX_REASON_LIVE_DENY:
		if (!is_exact(c->p, v->rule))
			add_entry(c, SBX_CHANGE_NET, SBX_ALLOW, 0);
		remove_entry(c, v->rule, SBX_DENY);
		add_rule(c, SBX_ALLOW, SBX_NO_RULE);
		return;
	case SBX_REASON_LIST_DENY:
	case SBX_REASON_ADDRESS_DENIED:
		if (!is_exact(c->p, v->rule))
			allow_by_profile(c);
		remove_entry(c, v->rule, SBX_DENY);
		add_entry(c, SBX_CHANGE_NET, SBX_ALLOW, 0);
		add_rule(c, SBX_ALLOW, SBX_NO_RULE);
		return;
	case SBX_REASON_DEFAULT_DENY:
	case SBX_REASON_PORT:
	case SBX_REASON_LITERAL_ADDRESS:
		if (c->asked->name && c->asked->proto != SBX_PROTO_TCP &&
		    sbx_policy_terminates(c->p, c->asked->name))
			return;
		allow_by_profile(c);
		add_entry(c, SBX_CHANGE_PROFILE, SBX_ALLOW, 0);
		add_entry(c, SBX_CHANGE_NET, SBX_ALLOW, 0);
		add_rule(c, SBX_ALLOW, SBX_NO_RULE);
		return;
	case SBX_REASON_ADDRESS_CLASS:
		allow_private(c, true);
		return;
	default:
		return;
	}
}

static void turn_allow(struct changes *c, const struct sbx_verdict *v)
{
	uint32_t rule = winner(c, SBX_LAYER_RULE);

	if (v->reason == SBX_REASON_RULE_ALLOW) {
		remove_entry(c, v->rule, SBX_ALLOW);
		add_rule(c, SBX_DENY, v->rule);
		return;
	}
	if (v->reason == SBX_REASON_LIST_ALLOW || v->reason == SBX_REASON_DEFAULT_ALLOW) {
		add_entry(c, SBX_CHANGE_FLAG, SBX_DENY, 0);
		add_entry(c, SBX_CHANGE_PROFILE, SBX_DENY, 0);
	}
	add_entry(c, SBX_CHANGE_NET, SBX_DENY, 0);
	add_rule(c, SBX_DENY, rule);
}

size_t sbx_policy_changes(const struct sbx_policy *p, const struct sbx_policy_asked *asked,
			  const struct sbx_verdict *v,
			  struct sbx_policy_change ret_changes[SBX_CHANGES_MAX])
{
	struct changes c = { .p = p, .asked = asked, .v = ret_changes };

	if (asked->port == 0 || (!asked->name && !asked->addr))
		return 0;
	if (v->action == SBX_ALLOW)
		turn_allow(&c, v);
	else
		turn_deny(&c, v);
	return c.n;
}
