/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Deciding: the layers in their order (policy.h), each by the levels that match (policy_match.c).
 *
 * Everything that is not clearly allowed is denied: a name that is not normalised, an unknown
 * protocol, an address of no family.
 */

#include <string.h>

#include "policy/decide/policy_internal.h"

#define NO_RULE SBX_NO_RULE

static struct sbx_verdict deny(enum sbx_reason reason, uint32_t rule)
{
	return (struct sbx_verdict){ .action = SBX_DENY, .reason = reason, .rule = rule };
}

static struct sbx_verdict allow(enum sbx_reason reason, uint32_t rule)
{
	return (struct sbx_verdict){ .action = SBX_ALLOW, .reason = reason, .rule = rule };
}

static bool is_allow(const struct sbx_policy *p, uint32_t rule)
{
	return rule != NO_RULE && p->rules[rule].action == SBX_ALLOW && !p->rules[rule].asks_only;
}

static bool is_deny(const struct sbx_policy *p, uint32_t rule)
{
	return rule != NO_RULE && p->rules[rule].action != SBX_ALLOW;
}

static enum sbx_reason reason_of(enum sbx_layer layer, bool allows)
{
	switch (layer) {
	case SBX_LAYER_RULE:
		return allows ? SBX_REASON_RULE_ALLOW : SBX_REASON_RULE_DENY;
	case SBX_LAYER_LIVE:
		return allows ? SBX_REASON_LIVE_ALLOW : SBX_REASON_LIVE_DENY;
	case SBX_LAYER_PROFILE:
		return allows ? SBX_REASON_LIST_ALLOW : SBX_REASON_LIST_DENY;
	default:
		return SBX_REASON_FLOOR;
	}
}

bool sbx_verdict_by_entry(const struct sbx_verdict *v)
{
	return v->action == SBX_ALLOW &&
	       (v->reason == SBX_REASON_RULE_ALLOW || v->reason == SBX_REASON_LIVE_ALLOW ||
		v->reason == SBX_REASON_LIST_ALLOW);
}

static enum sbx_check check_by_port(enum sbx_proto proto, uint16_t port)
{
	if (proto != SBX_PROTO_TCP)
		return SBX_CHECK_NONE;
	return port == 443 ? SBX_CHECK_TLS : port == 80 ? SBX_CHECK_HTTP : SBX_CHECK_NONE;
}

static bool air_gapped(const struct sbx_policy *p)
{
	return p->h->air_gap && !p->no_air_gap;
}

static bool offline(const struct sbx_policy *p)
{
	return p->h->mode == SBX_MODE_OFFLINE;
}

/* Nothing but floors, denying rules and live lists decides. */
static bool closed(const struct sbx_policy *p)
{
	return air_gapped(p) || offline(p);
}

enum sbx_action sbx_policy_default(const struct sbx_policy *p, bool *ret_of_workspace)
{
	*ret_of_workspace = p->h->of_workspace;
	return p->h->default_action == SBX_ALLOW ||
			       (p->h->mode == SBX_MODE_FULL && !p->h->of_workspace) ?
		       SBX_ALLOW :
		       SBX_DENY;
}

static bool default_allows(const struct sbx_policy *p)
{
	bool of_workspace;

	return !closed(p) && sbx_policy_default(p, &of_workspace) == SBX_ALLOW;
}

/* --- what an entry that allows asks of the flow --- */

static struct sbx_verdict by_profile(const struct sbx_policy *p, uint32_t rule,
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

/* The most specific entry of the profile whose flows are terminated; NO_RULE: there is none. */
static uint32_t terminated(const struct sbx_policy *p, const struct sbx_levels *profile)
{
	for (size_t i = profile->n; p->h->n_terminated && i-- > 0;) {
		const struct sbx_blob_run *run = &profile->v[i];

		for (uint32_t r = run->first; r < run->first + run->n; r++) {
			if (p->rules[r].terminate)
				return r;
		}
	}
	return NO_RULE;
}

/* A rule or a live list allows a name. It lifts nothing that the profile asks of flows: @profile
 * has the profile's levels of the name. */
static struct sbx_verdict by_operator(const struct sbx_policy *p, const struct sbx_levels *profile,
				      enum sbx_layer layer, uint32_t rule, enum sbx_proto proto,
				      uint16_t port)
{
	uint32_t own = sbx_match_first(p, profile, sbx_match_proto(proto), port), asks;
	struct sbx_verdict v;

	if (is_allow(p, own)) {
		v = by_profile(p, own, proto, port);
		v.reason = reason_of(layer, true);
		v.rule = rule;
		return v;
	}
	v = allow(reason_of(layer, true), rule);
	v.check = check_by_port(proto, port);
	asks = terminated(p, profile);
	if (asks == NO_RULE)
		return v;
	if (proto != SBX_PROTO_TCP)
		return deny(SBX_REASON_NOT_TERMINATED, asks);
	v.terminate = p->rules[asks].terminate;
	v.check = port == 80 ? SBX_CHECK_HTTP : SBX_CHECK_TLS;
	return v;
}

/* --- flows to names --- */

/* No entry decides on the port. */
static struct sbx_verdict by_default(const struct sbx_policy *p, const struct sbx_name_levels *l,
				     enum sbx_proto proto, uint16_t port)
{
	uint32_t other = NO_RULE;

	/* The default does not open another way to a name whose requests are judged. */
	if (default_allows(p) && sbx_match_proto(proto) &&
	    terminated(p, &l->v[SBX_LAYER_PROFILE]) == NO_RULE) {
		struct sbx_verdict v = allow(SBX_REASON_DEFAULT_ALLOW, NO_RULE);

		/* Mode full carries whatever speaks on a port. */
		v.check = p->h->mode == SBX_MODE_FULL ? SBX_CHECK_NONE : check_by_port(proto, port);
		return v;
	}
	for (int t = SBX_LAYER_RULE; t < SBX_N_NAME_LAYERS && other == NO_RULE; t++)
		other = sbx_match_any_allow(p, &l->v[t]);
	if (other != NO_RULE)
		return deny(SBX_REASON_PORT, other);
	return deny(SBX_REASON_DEFAULT_DENY, NO_RULE);
}

/* Does a live rule of the levels say something of requests? */
static bool has_requests(const struct sbx_policy *p, const struct sbx_levels *live)
{
	for (size_t i = 0; p->h->live_requests && i < live->n; i++) {
		const struct sbx_blob_run *run = &live->v[i];

		for (uint32_t r = run->first; r < run->first + run->n; r++)
			if (p->rules[r].requests)
				return true;
	}
	return false;
}

/* A flow that is allowed: the live rule for its name and port may have its requests judged. Such a
 * rule is refused where the profile judges them (sbx_live_check_requests()). */
static struct sbx_verdict by_requests(const struct sbx_policy *p, const struct sbx_name_levels *l,
				      struct sbx_verdict v, enum sbx_proto proto, uint16_t port)
{
	uint32_t r;

	if (!p->h->live_requests || v.action != SBX_ALLOW)
		return v;
	r = sbx_match_first(p, &l->v[SBX_LAYER_LIVE], SBX_BLOB_TCP, port);
	if (!is_allow(p, r) || !p->rules[r].requests)
		return v;
	if (proto != SBX_PROTO_TCP || terminated(p, &l->v[SBX_LAYER_PROFILE]) != NO_RULE)
		return deny(SBX_REASON_NOT_TERMINATED, r);
	v.terminate = SBX_TERMINATE_LIVE;
	v.requests = p->strings + p->rules[r].requests;
	v.check = port == 80 ? SBX_CHECK_HTTP : SBX_CHECK_TLS;
	return v;
}

static struct sbx_verdict decide_layers_of_name(const struct sbx_policy *p,
						const struct sbx_name_levels *l,
						enum sbx_proto proto, uint16_t port)
{
	const struct sbx_levels *profile = &l->v[SBX_LAYER_PROFILE];
	uint8_t bit = sbx_match_proto(proto);
	uint32_t r = sbx_match_first(p, &l->v[SBX_LAYER_FLOOR], bit, port);

	if (r != NO_RULE)
		return deny(SBX_REASON_FLOOR, r);
	r = sbx_match_first(p, &l->v[SBX_LAYER_RULE], bit, port);
	if (is_deny(p, r))
		return deny(SBX_REASON_RULE_DENY, r);
	if (offline(p))
		return deny(SBX_REASON_AIR_GAP, NO_RULE);
	if (is_allow(p, r) && !air_gapped(p))
		return by_operator(p, profile, SBX_LAYER_RULE, r, proto, port);
	r = sbx_match_first(p, &l->v[SBX_LAYER_LIVE], bit, port);
	if (is_allow(p, r))
		return by_operator(p, profile, SBX_LAYER_LIVE, r, proto, port);
	if (air_gapped(p))
		return deny(SBX_REASON_AIR_GAP, r);
	if (is_deny(p, r))
		return deny(SBX_REASON_LIVE_DENY, r);
	r = sbx_match_first(p, profile, bit, port);
	return r != NO_RULE ? by_profile(p, r, proto, port) : by_default(p, l, proto, port);
}

static struct sbx_verdict decide_flow(const struct sbx_policy *p, const struct sbx_name_levels *l,
				      enum sbx_proto proto, uint16_t port)
{
	return by_requests(p, l, decide_layers_of_name(p, l, proto, port), proto, port);
}

/* --- questions: the name on any port --- */

/* The place of a rule in the order of decision. */
struct place {
	int layer;
	uint32_t priority;
	size_t level;
};

/* Does a deny at @d come before an allow at @a? At the same place it does. */
static bool comes_before(const struct place *d, const struct place *a)
{
	if (d->layer != a->layer)
		return d->layer < a->layer;
	if (d->priority != a->priority)
		return d->priority < a->priority;
	return d->level >= a->level;
}

/* The last port of the rule's range around @port; 0: no range has it. */
static uint16_t range_end(const struct sbx_policy *p, uint32_t rule, uint8_t proto, uint32_t port)
{
	const struct sbx_blob_rule *r = &p->rules[rule];

	for (unsigned i = 0; (r->protos & proto) && i < r->n_ports; i++) {
		const struct sbx_blob_ports *range = &p->ports[r->ports + i];

		if (range->first <= port && port <= range->last)
			return range->last;
	}
	return 0;
}

/* Steps over the ranges of one layer's denies before @place that have @port, in one pass. */
static uint32_t skip_layer(const struct sbx_policy *p, const struct sbx_levels *levels, int layer,
			   const struct place *place, uint8_t proto, uint32_t port)
{
	struct place d = { .layer = layer };

	for (d.level = 0; d.level < levels->n; d.level++) {
		const struct sbx_blob_run *run = &levels->v[d.level];

		for (uint32_t r = run->first; r < run->first + run->n; r++) {
			uint16_t end;

			d.priority = p->rules[r].priority;
			if (is_allow(p, r) || !comes_before(&d, place))
				continue;
			end = range_end(p, r, proto, port);
			port = end ? end + 1u : port;
		}
	}
	return port;
}

/* The first port from @port on that no deny before @place refuses; above UINT16_MAX: none. */
static uint32_t skip_denied(const struct sbx_policy *p, const struct sbx_name_levels *l,
			    const struct place *place, uint8_t proto, uint32_t port)
{
	/* A rule that allows hides later ones that deny, although a closed sandbox does not pass by
	 * it: leave them all to the flow. */
	bool hidden = closed(p) && sbx_match_any_allow(p, &l->v[SBX_LAYER_RULE]) != NO_RULE;
	uint32_t before;

	do {
		before = port;
		for (int t = 0; t < SBX_N_NAME_LAYERS && t <= place->layer; t++) {
			if (t != SBX_LAYER_RULE || !hidden)
				port = skip_layer(p, &l->v[t], t, place, proto, port);
		}
	} while (port != before && port <= UINT16_MAX);
	return port;
}

/* Do the denies before @place leave something of first..last? */
static bool leaves(const struct sbx_policy *p, const struct sbx_name_levels *l,
		   const struct place *place, uint8_t protos, uint16_t first, uint16_t last)
{
	return ((protos & SBX_BLOB_TCP) && skip_denied(p, l, place, SBX_BLOB_TCP, first) <= last) ||
	       ((protos & SBX_BLOB_UDP) && skip_denied(p, l, place, SBX_BLOB_UDP, first) <= last);
}

/* Does an allow at @place still allow something after the denies before it? */
static bool allows_something(const struct sbx_policy *p, const struct sbx_name_levels *l,
			     const struct place *place, uint32_t rule)
{
	const struct sbx_blob_rule *r = &p->rules[rule];

	for (unsigned i = 0; i < r->n_ports; i++) {
		const struct sbx_blob_ports *range = &p->ports[r->ports + i];

		if (leaves(p, l, place, r->protos, range->first, range->last))
			return true;
	}
	return false;
}

/* An entry of the layer that allows something of the name; NO_RULE: there is none. */
static uint32_t find_allow(const struct sbx_policy *p, const struct sbx_name_levels *l, int layer)
{
	const struct sbx_levels *levels = &l->v[layer];
	struct place place = { .layer = layer };

	for (place.level = levels->n; place.level-- > 0;) {
		const struct sbx_blob_run *run = &levels->v[place.level];

		for (uint32_t r = run->first; r < run->first + run->n; r++) {
			place.priority = p->rules[r].priority;
			if (is_allow(p, r) && allows_something(p, l, &place, r))
				return r;
		}
	}
	return NO_RULE;
}

static bool denies_all(const struct sbx_policy *p, uint32_t rule)
{
	return p->rules[rule].protos == (SBX_BLOB_TCP | SBX_BLOB_UDP) &&
	       range_end(p, rule, SBX_BLOB_TCP, 1) == UINT16_MAX;
}

/* Of the layers from @first to @last: the entry that denies most, or else the first that denies
 * something. NO_RULE: there is none. */
static uint32_t find_deny(const struct sbx_policy *p, const struct sbx_name_levels *l, int first,
			  int last)
{
	uint32_t some = NO_RULE;

	for (int t = first; t <= last; t++) {
		const struct sbx_levels *levels = &l->v[t];

		for (size_t i = levels->n; i-- > 0;) {
			const struct sbx_blob_run *run = &levels->v[i];

			for (uint32_t r = run->first; r < run->first + run->n; r++) {
				if (is_deny(p, r) && denies_all(p, r))
					return r;
				if (is_deny(p, r) && some == NO_RULE)
					some = r;
			}
		}
	}
	return some;
}

/* Do the denies of the layers before @layer refuse every port? */
static bool nothing_left(const struct sbx_policy *p, const struct sbx_name_levels *l, int layer)
{
	const struct place place = { .layer = layer, .level = SBX_LEVELS_MAX };

	return !leaves(p, l, &place, SBX_BLOB_TCP | SBX_BLOB_UDP, 1, UINT16_MAX);
}

static bool has_allow(const struct sbx_policy *p, const struct sbx_name_levels *l)
{
	for (int t = SBX_LAYER_RULE; t < SBX_N_NAME_LAYERS; t++) {
		if (sbx_match_any_allow(p, &l->v[t]) != NO_RULE)
			return true;
	}
	return false;
}

/* The verdict on a name of which no port is allowed. */
static struct sbx_verdict refuse_question(const struct sbx_policy *p,
					  const struct sbx_name_levels *l)
{
	uint32_t r = find_deny(p, l, SBX_LAYER_RULE, SBX_LAYER_PROFILE);

	/* A floor on some ports takes all that is allowed. */
	if (r == NO_RULE && has_allow(p, l))
		r = find_deny(p, l, SBX_LAYER_FLOOR, SBX_LAYER_FLOOR);
	if (r == NO_RULE)
		return deny(SBX_REASON_DEFAULT_DENY, NO_RULE);
	return deny(reason_of(p->rules[r].layer, false), r);
}

/* May any flow to the name be allowed? Each flow is judged again with its port, so it does no harm
 * that a question is answered in vain: UDP is refused to names that are terminated, and for a
 * closed sandbox see skip_denied(). */
static struct sbx_verdict decide_question(const struct sbx_policy *p,
					  const struct sbx_name_levels *l)
{
	int first = closed(p) ? SBX_LAYER_LIVE : SBX_LAYER_RULE;
	int last = offline(p)	 ? SBX_LAYER_FLOOR :
		   air_gapped(p) ? SBX_LAYER_LIVE :
				   SBX_LAYER_PROFILE;

	if (nothing_left(p, l, SBX_LAYER_RULE))
		return deny(SBX_REASON_FLOOR, find_deny(p, l, SBX_LAYER_FLOOR, SBX_LAYER_FLOOR));
	if (closed(p) && nothing_left(p, l, SBX_LAYER_LIVE))
		return deny(SBX_REASON_RULE_DENY, find_deny(p, l, SBX_LAYER_RULE, SBX_LAYER_RULE));
	for (int t = first; t <= last; t++) {
		uint32_t r = find_allow(p, l, t);

		if (r != NO_RULE) {
			struct sbx_verdict v = allow(reason_of(t, true), r);

			v.private_ok = t == SBX_LAYER_PROFILE && p->rules[r].private_ok;
			return v;
		}
	}
	if (closed(p))
		return deny(SBX_REASON_AIR_GAP, NO_RULE);
	if (default_allows(p) && terminated(p, &l->v[SBX_LAYER_PROFILE]) == NO_RULE &&
	    !nothing_left(p, l, SBX_N_NAME_LAYERS))
		return allow(SBX_REASON_DEFAULT_ALLOW, NO_RULE);
	return refuse_question(p, l);
}

struct sbx_verdict sbx_policy_decide_name(const struct sbx_policy *p, const char *name,
					  enum sbx_proto proto, uint16_t port)
{
	struct sbx_name_levels levels;

	if (!sbx_match_name(p, name, &levels))
		return deny(SBX_REASON_DEFAULT_DENY, NO_RULE);
	if (proto == SBX_PROTO_DNS || port == 0)
		return decide_question(p, &levels);
	return decide_flow(p, &levels, proto, port);
}

struct sbx_verdict sbx_policy_decide_server(const struct sbx_policy *p, const char *name,
					    enum sbx_proto proto, uint16_t port)
{
	struct sbx_policy open = *p;

	open.no_air_gap = true;
	return sbx_policy_decide_name(&open, name, proto, port);
}

bool sbx_policy_terminates_any(const struct sbx_policy *p)
{
	return p->h->n_terminated > 0 || p->h->live_requests;
}

bool sbx_policy_terminates(const struct sbx_policy *p, const char *name)
{
	struct sbx_name_levels levels;

	return sbx_match_name(p, name, &levels) &&
	       (terminated(p, &levels.v[SBX_LAYER_PROFILE]) != NO_RULE ||
		has_requests(p, &levels.v[SBX_LAYER_LIVE]));
}

bool sbx_policy_carries_udp(const struct sbx_policy *p)
{
	if (default_allows(p))
		return true;
	for (uint32_t i = 0; i < p->h->sections[SBX_BLOB_RULES].n; i++) {
		const struct sbx_blob_rule *r = &p->rules[i];

		if (r->action == SBX_ALLOW && (r->protos & SBX_BLOB_UDP) &&
		    r->layer != SBX_LAYER_ADMIT)
			return true;
	}
	return false;
}

/* --- ports of a name --- */

struct ports {
	const struct sbx_policy *p;
	const char *name;
	const struct sbx_name_levels *l;
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

/* Adds those ports of a rule that the whole policy allows: an earlier rule may deny some. */
static void add_rule_ports(struct ports *ports, const struct place *place, uint32_t rule,
			   enum sbx_proto proto)
{
	const struct sbx_policy *p = ports->p;
	const struct sbx_blob_rule *r = &p->rules[rule];
	uint8_t bit = sbx_match_proto(proto);

	for (unsigned i = 0; i < r->n_ports && (r->protos & bit); i++) {
		const struct sbx_blob_ports *range = &p->ports[r->ports + i];
		uint32_t port = skip_denied(p, ports->l, place, bit, range->first);

		while (port <= range->last && ports->n <= ports->n_max) {
			struct sbx_verdict v =
				sbx_policy_decide_name(p, ports->name, proto, (uint16_t)port);

			if (v.reason == SBX_REASON_NOT_TERMINATED)
				break; /* nor is another port */
			if (sbx_verdict_by_entry(&v))
				add_port(ports, proto, (uint16_t)port);
			port = skip_denied(p, ports->l, place, bit, port + 1);
		}
	}
}

size_t sbx_policy_name_ports(const struct sbx_policy *p, const char *name,
			     struct sbx_policy_port *v, size_t n_max)
{
	struct sbx_name_levels levels;
	struct ports ports = { .p = p, .name = name, .l = &levels, .v = v, .n_max = n_max };
	int first = air_gapped(p) ? SBX_LAYER_LIVE : SBX_LAYER_RULE;
	int last = air_gapped(p) ? SBX_LAYER_LIVE : SBX_LAYER_PROFILE;
	struct place place;

	if (offline(p) || !sbx_match_name(p, name, &levels))
		return 0;
	for (place.layer = first; place.layer <= last; place.layer++) {
		const struct sbx_levels *l = &levels.v[place.layer];

		for (place.level = l->n; place.level-- > 0;) {
			const struct sbx_blob_run *run = &l->v[place.level];

			for (uint32_t r = run->first; r < run->first + run->n; r++) {
				place.priority = p->rules[r].priority;
				if (!is_allow(p, r))
					continue;
				add_rule_ports(&ports, &place, r, SBX_PROTO_TCP);
				add_rule_ports(&ports, &place, r, SBX_PROTO_UDP);
			}
		}
	}
	return ports.n;
}

/* --- addresses --- */

/* An address and those that it embeds. A deny of any of them holds. */
struct forms {
	size_t n;
	struct sbx_addr v[1 + SBX_ADDR_EMBEDDED_MAX];
};

static struct forms forms_of(const struct sbx_addr *addr)
{
	struct forms f = { .n = 1, .v = { sbx_addr_unmap(addr) } };

	f.n += sbx_addr_embedded(&f.v[0], f.v + 1);
	return f;
}

/* The rule of the layer that decides on an address. *ret_other, if not NULL and still NO_RULE: a
 * rule that allows it on other ports. */
static uint32_t match(const struct sbx_policy *p, enum sbx_layer layer, const struct forms *f,
		      uint8_t proto, uint16_t port, uint32_t *ret_other)
{
	uint32_t first, other, r;

	if (p->h->sections[SBX_BLOB_GROUPS_FLOOR + layer].n == 0)
		return NO_RULE;
	first = sbx_match_first_addr(p, layer, &f->v[0], proto, port, &other);
	if (ret_other && *ret_other == NO_RULE)
		*ret_other = other;
	if (is_deny(p, first))
		return first;
	for (size_t i = 1; i < f->n; i++) {
		r = sbx_match_first_addr(p, layer, &f->v[i], proto, port, &other);
		if (is_deny(p, r))
			return r;
	}
	return first;
}

/* Floors on addresses: the listed floors, and metadata in every embedding. They also hold for other
 * protocols than TCP and UDP, and for a question without a port. True: a floor denies, by
 * *ret_v. */
static bool addr_floor(const struct sbx_policy *p, const struct forms *f, uint8_t proto,
		       uint16_t port, struct sbx_verdict *ret_v)
{
	uint32_t r =
		match(p, SBX_LAYER_FLOOR, f, proto ? proto : SBX_BLOB_TCP, port ? port : 1, NULL);

	if (r == NO_RULE && sbx_addr_class(&f->v[0]) != SBX_ADDR_METADATA)
		return false;
	*ret_v = deny(SBX_REASON_FLOOR, r);
	return true;
}

static bool is_admitted(const struct sbx_policy *p, const struct sbx_addr *addr, uint8_t proto,
			uint16_t port)
{
	uint32_t other;

	return sbx_match_first_addr(p, SBX_LAYER_ADMIT, addr, proto, port, &other) != NO_RULE;
}

bool sbx_policy_class_allows(const struct sbx_policy *p, const struct sbx_addr *addr, uint8_t proto,
			     uint16_t port, bool private_ok)
{
	enum sbx_addr_class class = sbx_addr_class(addr);

	if (class == SBX_ADDR_PUBLIC || (class == SBX_ADDR_PRIVATE && private_ok))
		return true;
	/* The owner may admit private and link-local networks. Other classes lead to this host,
	 * or nowhere. */
	if (class != SBX_ADDR_PRIVATE && class != SBX_ADDR_LINK_LOCAL)
		return false;
	return is_admitted(p, addr, proto, port);
}

/* The same steps as decide_flow(), for a destination that has no name. */
static struct sbx_verdict decide_literal(const struct sbx_policy *p, const struct forms *f,
					 enum sbx_proto proto, uint16_t port)
{
	uint32_t other = NO_RULE, own, r;
	uint8_t bit = sbx_match_proto(proto);
	enum sbx_layer layer = SBX_LAYER_RULE;
	struct sbx_verdict v;

	r = match(p, SBX_LAYER_RULE, f, bit, port, &other);
	if (is_deny(p, r))
		return deny(SBX_REASON_RULE_DENY, r);
	if (offline(p))
		return deny(SBX_REASON_AIR_GAP, NO_RULE);
	if (r == NO_RULE || air_gapped(p)) {
		layer = SBX_LAYER_LIVE;
		r = match(p, SBX_LAYER_LIVE, f, bit, port, &other);
		if (air_gapped(p) && !is_allow(p, r))
			return deny(SBX_REASON_AIR_GAP, r);
		if (is_deny(p, r))
			return deny(SBX_REASON_LIVE_DENY, r);
	}
	own = match(p, SBX_LAYER_PROFILE, f, bit, port, &other);
	if (r != NO_RULE) {
		v = is_allow(p, own) ? by_profile(p, own, proto, port) :
				       allow(reason_of(layer, true), r);
		v.reason = reason_of(layer, true);
		v.rule = r;
		return v;
	}
	if (own != NO_RULE)
		return by_profile(p, own, proto, port);
	if (p->h->mode == SBX_MODE_FULL && default_allows(p) && bit && port)
		return allow(SBX_REASON_DEFAULT_ALLOW, NO_RULE);
	return other != NO_RULE ? deny(SBX_REASON_PORT, other) :
				  deny(SBX_REASON_LITERAL_ADDRESS, NO_RULE);
}

struct sbx_verdict sbx_policy_decide_addr(const struct sbx_policy *p, const struct sbx_addr *addr,
					  enum sbx_proto proto, uint16_t port)
{
	struct forms f = forms_of(addr);
	uint8_t bit = sbx_match_proto(proto);
	struct sbx_verdict v;

	if (addr_floor(p, &f, bit, port, &v))
		return v;
	v = decide_literal(p, &f, proto, port);
	if (v.action == SBX_ALLOW && !sbx_policy_class_allows(p, &f.v[0], bit, port, v.private_ok))
		return deny(SBX_REASON_ADDRESS_CLASS, v.rule);
	return v;
}

/* The layers on a resolved address: the first that matches decides, and none is an allow, because
 * the name is allowed already. */
static struct sbx_verdict decide_layers(const struct sbx_policy *p, const struct forms *f,
					uint8_t proto, uint16_t port)
{
	uint32_t r = match(p, SBX_LAYER_RULE, f, proto, port, NULL);

	if (is_deny(p, r))
		return deny(SBX_REASON_RULE_DENY, r);
	if (offline(p))
		return deny(SBX_REASON_AIR_GAP, NO_RULE);
	if (is_allow(p, r) && !air_gapped(p))
		return allow(SBX_REASON_RULE_ALLOW, r);
	/* No name was allowed either. */
	if (air_gapped(p) && !p->h->live_allows)
		return deny(SBX_REASON_AIR_GAP, NO_RULE);
	r = match(p, SBX_LAYER_LIVE, f, proto, port, NULL);
	if (is_deny(p, r))
		return deny(air_gapped(p) ? SBX_REASON_AIR_GAP : SBX_REASON_LIVE_DENY, r);
	if (is_allow(p, r))
		return allow(SBX_REASON_LIVE_ALLOW, r);
	r = match(p, SBX_LAYER_PROFILE, f, proto, port, NULL);
	return is_deny(p, r) ? deny(SBX_REASON_ADDRESS_DENIED, r) : allow(SBX_REASON_LIST_ALLOW, r);
}

struct sbx_verdict sbx_policy_decide_resolved(const struct sbx_policy *p,
					      const struct sbx_addr *addr, enum sbx_proto proto,
					      uint16_t port, bool private_ok)
{
	struct forms f = forms_of(addr);
	uint8_t bit = sbx_match_proto(proto);
	struct sbx_verdict v;
	uint32_t own;

	if (addr_floor(p, &f, bit, port, &v))
		return v;
	v = decide_layers(p, &f, bit, port);
	if (v.action != SBX_ALLOW)
		return v;
	/* `private: true` may stand on the name's entry or on an entry for the address. */
	own = match(p, SBX_LAYER_PROFILE, &f, bit, port, NULL);
	v.private_ok = private_ok || (is_allow(p, own) && p->rules[own].private_ok);
	if (!sbx_policy_class_allows(p, &f.v[0], bit, port, v.private_ok))
		return deny(SBX_REASON_ADDRESS_CLASS, NO_RULE);
	return v;
}

bool sbx_policy_is_open(const struct sbx_policy *p)
{
	return p->h->mode == SBX_MODE_FULL && default_allows(p);
}

bool sbx_policy_admits_proxy(const struct sbx_policy *p, const struct sbx_addr *addr, uint16_t port,
			     bool own)
{
	struct forms f = forms_of(addr);
	enum sbx_addr_class class = sbx_addr_class(&f.v[0]);
	struct sbx_verdict v;

	if (addr_floor(p, &f, SBX_BLOB_TCP, port, &v))
		return false;
	if (class == SBX_ADDR_PUBLIC && !own)
		return true;
	if (class != SBX_ADDR_PUBLIC && class != SBX_ADDR_PRIVATE && class != SBX_ADDR_LINK_LOCAL &&
	    class != SBX_ADDR_LOOPBACK)
		return false;
	return is_admitted(p, &f.v[0], SBX_BLOB_TCP, port);
}
