/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Properties over random policies and flows. A slow decider of its own, written from the order of
 * decision (docs/RULES.md) and from nothing else, must agree with the policy: it looks at every
 * entry of every layer. Seeds are fixed.
 */
#include "tests/unit/policy_world.h"

#include "policy/decide/live.h"
#include "policy/decide/rules.h"
#include "policy/lists/shipped.h"
#include "policy/profile/net_entry.h"

#define N_POLICIES 600
#define N_FLOWS	   60

/* --- chance --- */

static uint64_t state = 1;

static unsigned pick(unsigned n)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (unsigned)(state >> 33) % n;
}

#define PICK(v) ((v)[pick(sizeof(v) / sizeof(*(v)))])

static const char *const names[] = {
	"a.example",	 "b.example",	     "x.a.example",
	"y.x.a.example", "z.y.x.a.example",  "example",
	"ipinfo.io",	 "www.ipinfo.io",    "metadata.google.internal",
	"c.test",	 "deep.x.b.example",
};
static const char *const bases[] = { "a.example",     "x.a.example", "b.example",
				     "y.x.a.example", "c.test",	     "ipinfo.io" };
static const char *const nets[] = { "192.0.2.0/24", "192.0.2.1",     "192.0.0.0/16", "10.0.0.0/8",
				    "10.1.2.0/24",  "2001:db8::/32", "2001:db8::1",  "0.0.0.0/0" };
static const char *const ports[] = { "",   "",	      "",	":443",	   ":22",
				     ":*", ":80,443", ":1-442", ":53/udp", ":443/udp" };
static const uint16_t flow_ports[] = { 443, 443, 80, 22, 53, 8080, 1, 65535 };
static const char *const addrs[] = { "192.0.2.1",	 "192.0.2.9",	      "192.0.9.9",
				     "10.1.2.3",	 "10.9.9.9",	      "2001:db8::1",
				     "2001:db8::2",	 "64:ff9b::c000:201", "169.254.169.254",
				     "::ffff:192.0.2.1", "198.51.100.1",      "127.0.0.1" };

static void pattern(char *buf, size_t n)
{
	const char *p = PICK(ports);

	switch (pick(4)) {
	case 0: {
		const char *net = PICK(nets);

		/* An IPv6 network with ports stands in brackets. */
		if (strchr(net, ':') && *p)
			snprintf(buf, n, "[%s]%s", net, p);
		else
			snprintf(buf, n, "%s%s", net, p);
		return;
	}
	case 1:
		snprintf(buf, n, "*.%s%s", PICK(bases), p);
		return;
	default:
		snprintf(buf, n, "%s%s", PICK(names), p);
	}
}

/* --- worlds: the input, kept so that it can be changed and compiled again --- */

struct input {
	struct sbx_profile *profile;
	struct sbx_system_policy *system;
	struct sbx_rules rules;
	struct sbx_live live;
	int64_t next_id;
};

static void input_fini(struct input *in)
{
	sbx_profile_free(in->profile);
	sbx_system_policy_free(in->system);
	sbx_rules_fini(&in->rules);
	sbx_live_fini(&in->live);
}

/* Returns false for a pattern that is refused, such as a wildcard that is too wide. */
static bool add_rule(struct input *in, enum sbx_action action, uint32_t priority, bool is_floor,
		     const char *text)
{
	struct sbx_err err;

	return sbx_rules_add(&in->rules, ++in->next_id, SBX_RULE_NETWORK, action, priority,
			     is_floor, is_floor || pick(2), text, &err) == 0;
}

static bool add_live(struct input *in, enum sbx_action action, const char *text)
{
	char field[SBX_LIVE_FIELD_MAX];

	return sbx_live_add(&in->live, action, "x", &text, 1, field, NULL) == 0;
}

static bool add_list(struct input *in, enum sbx_action action, const char *text)
{
	struct sbx_net_list *list =
		action == SBX_ALLOW ? &in->profile->network.allow : &in->profile->network.deny;
	struct sbx_err err;

	if (sbx_net_list_add_pattern(list, text, "--flag", &err) != 0)
		return false;
	if (action == SBX_ALLOW && pick(4) == 0)
		list->v[list->n - 1].private_ok = true;
	return true;
}

static void random_input(struct input *in)
{
	static const char *const yaml[] = {
		"{}",
		"network: {default: allow}",
		"network: {mode: full}",
		"network: {mode: offline}",
		"network: {allow: [{host: a.example, access: read-only}]}",
		("network: {allow: [{host: \"*.a.example\", access: read-only}, {host: b.example, "
		 "ports: [22], check: none}], deny: [\"x.a.example:443\"]}"),
		"network: {default: allow, allow: [{host: \"*.x.a.example\", inspect: true}]}",
	};
	char text[128];
	unsigned n;

	memset(in, 0, sizeof(*in));
	in->profile = good_profile(pick(2) ? yaml[0] : PICK(yaml));
	in->system = sbx_system_policy_default();
	assert_non_null(in->system);
	for (n = pick(6); n > 0; n--) {
		pattern(text, sizeof(text));
		add_list(in, pick(3) ? SBX_ALLOW : SBX_DENY, text);
	}
	/* A list that contradicts itself is refused before it is compiled. */
	if (sbx_profile_settle_secrets(in->profile, NULL) != 0) {
		input_fini(in);
		random_input(in);
		return;
	}
	for (n = pick(7); n > 0; n--) {
		pattern(text, sizeof(text));
		add_rule(in, pick(2) ? SBX_ALLOW : SBX_DENY, pick(4), false, text);
	}
	if (pick(4) == 0) {
		pattern(text, sizeof(text));
		add_rule(in, SBX_DENY, 100, true, text);
	}
	for (n = pick(5); n > 0; n--) {
		pattern(text, sizeof(text));
		add_live(in, pick(3) ? SBX_ALLOW : SBX_DENY, text);
	}
	if (pick(3) == 0) {
		in->rules.default_set = true;
		in->rules.default_action = pick(2) ? SBX_ALLOW : SBX_DENY;
	}
	in->live.air_gapped = pick(4) == 0;
	if (pick(4) == 0)
		sbx_net_list_add_pattern(&in->system->floors, "c.test:22", "system.yaml", NULL);
	if (pick(3) == 0)
		sbx_net_list_add_pattern(&in->system->admit, "10.1.0.0/16", "system.yaml", NULL);
}

static struct world compiled(const struct input *in)
{
	const struct sbx_policy_input input = { .profile = in->profile,
						.system = in->system,
						.rules = &in->rules,
						.live = &in->live,
						.generation = 1 };
	struct world w = { 0 };

	assert_int_equal(sbx_policy_compile(&input, &w.blob, &w.n), 0);
	assert_int_equal(sbx_policy_load(sbx_span(w.blob, w.n), &w.p), 0);
	return w;
}

/* --- the slow decider --- */

struct flow {
	const char *name; /* NULL: an address */
	struct sbx_addr addr;
	enum sbx_proto proto;
	uint16_t port;
};

static bool at_port(const struct sbx_net_entry *e, bool deny, enum sbx_proto proto, uint16_t port)
{
	struct sbx_port_range r[SBX_PORTS_MAX];
	size_t n = sbx_net_entry_ranges(e, deny, r);

	if (!(deny && !e->proto_set) && e->proto != proto)
		return false;
	for (size_t i = 0; i < n; i++)
		if (r[i].first <= port && port <= r[i].last)
			return true;
	return false;
}

/* How specific a match is, from 1; 0: no match. */
static unsigned specificity(const struct sbx_net_entry *e, const char *name,
			    const struct sbx_addr *addr)
{
	size_t n, n_host;

	if (!name)
		return e->is_cidr && sbx_cidr_contains(&e->cidr, addr) ? 1u + e->cidr.prefix : 0;
	if (e->is_cidr)
		return 0;
	if (!e->wildcard)
		return strcmp(e->host, name) == 0 ? 1000 : 0;
	n = strlen(name);
	n_host = strlen(e->host);
	if (n <= n_host || name[n - n_host - 1] != '.' || strcmp(name + n - n_host, e->host) != 0)
		return 0;
	return 1u + (unsigned)n_host;
}

/* The best entry of a layer so far. */
struct best {
	bool found, allows;
	uint32_t priority;
	unsigned specific;
	const struct sbx_net_entry *entry;
};

/* Of two entries of the profile for the same key that both allow: the one that asks for more. */
static bool asks_more(const struct sbx_net_entry *a, const struct sbx_net_entry *b)
{
	int r = strcmp(a->text, b->text);

	if (!a->is_cidr)
		return a->terminate && !b->terminate;
	return r != 0 ? r < 0 : b->private_ok && !a->private_ok;
}

static void consider(struct best *b, const struct sbx_net_entry *e, enum sbx_action action,
		     uint32_t priority, const struct flow *f, const struct sbx_addr *addr)
{
	bool deny = action != SBX_ALLOW;
	unsigned s = specificity(e, f->name, addr);
	bool wins;

	if (s == 0 || !at_port(e, deny, f->proto, f->port))
		return;
	wins = !b->found || priority < b->priority ||
	       (priority == b->priority && (s > b->specific || (s == b->specific && b->allows &&
								(deny || asks_more(e, b->entry)))));
	if (wins)
		*b = (struct best){ true, !deny, priority, s, e };
}

enum { FLOORS, RULES, LIVE, LIST, ADMIT };

static struct best layer_of_form(const struct input *in, int layer, const struct flow *f,
				 const struct sbx_addr *addr)
{
	struct best b = { 0 };

	for (size_t i = 0; i < in->rules.n; i++) {
		const struct sbx_rule *r = &in->rules.v[i];

		if (r->is_floor ? layer == FLOORS : layer == RULES)
			consider(&b, &r->entry, r->action, r->is_floor ? 0 : r->priority, f, addr);
	}
	for (size_t i = 0; layer == FLOORS && i < in->system->floors.n; i++)
		consider(&b, &in->system->floors.v[i], SBX_DENY, 0, f, addr);
	for (size_t i = 0; layer == ADMIT && i < in->system->admit.n; i++)
		if (sbx_cidr_contains(&in->system->admit.v[i].cidr, addr))
			b = (struct best){ true, true, 0, 1, NULL };
	for (const char *const *s = sbx_shipped_floors; layer == FLOORS && *s; s++) {
		struct sbx_net_entry e;

		assert_int_equal(sbx_net_entry_parse(*s, SBX_PATTERN_ANY, true, &e, NULL), 0);
		consider(&b, &e, SBX_DENY, 0, f, addr);
		sbx_net_entry_fini(&e);
	}
	for (size_t i = 0; layer == LIVE && i < in->live.allow.n; i++)
		consider(&b, &in->live.allow.v[i], SBX_ALLOW, 0, f, addr);
	for (size_t i = 0; layer == LIVE && i < in->live.deny.n; i++)
		consider(&b, &in->live.deny.v[i], SBX_DENY, 0, f, addr);
	for (size_t i = 0; layer == LIST && i < in->profile->network.allow.n; i++)
		consider(&b, &in->profile->network.allow.v[i], SBX_ALLOW, 0, f, addr);
	for (size_t i = 0; layer == LIST && i < in->profile->network.deny.n; i++)
		consider(&b, &in->profile->network.deny.v[i], SBX_DENY, 0, f, addr);
	return b;
}

/* A deny of an address that the asked one embeds holds too. */
static struct best layer_of(const struct input *in, int layer, const struct flow *f)
{
	struct sbx_addr a = sbx_addr_unmap(&f->addr), v4[SBX_ADDR_EMBEDDED_MAX];
	struct best b = layer_of_form(in, layer, f, &a);
	size_t n = f->name ? 0 : sbx_addr_embedded(&a, v4);

	for (size_t i = 0; i < n; i++) {
		struct best other = layer_of_form(in, layer, f, &v4[i]);

		if (other.found && !other.allows && (!b.found || b.allows))
			b = other;
	}
	return b;
}

/* Is an allow entry of the profile that covers the name terminated? */
static bool asks(const struct input *in, const char *name)
{
	for (size_t i = 0; name && i < in->profile->network.allow.n; i++) {
		const struct sbx_net_entry *e = &in->profile->network.allow.v[i];

		if (e->terminate && specificity(e, name, NULL))
			return true;
	}
	return false;
}

struct reference {
	bool allows;
	enum sbx_reason reason; /* without those that only say more of a default */
	bool terminated, private_ok;
};

static struct reference refuse(enum sbx_reason reason)
{
	return (struct reference){ .reason = reason };
}

/* With the demands of the profile: of its own entry for the flow, or of any for the name. */
static struct reference lifted(const struct input *in, const struct flow *f, enum sbx_reason reason)
{
	struct best own = layer_of(in, LIST, f);
	struct reference ref = { .allows = true, .reason = reason };

	if (own.found && own.allows) {
		ref.terminated = own.entry->terminate;
		ref.private_ok = own.entry->private_ok;
	} else if (asks(in, f->name)) {
		if (f->proto != SBX_PROTO_TCP)
			return refuse(SBX_REASON_NOT_TERMINATED);
		ref.terminated = true;
	}
	return ref;
}

static struct reference by_default(const struct input *in, const struct flow *f)
{
	bool full = in->profile->network.mode == SBX_MODE_FULL;
	bool allows = in->rules.default_set ?
			      in->rules.default_action == SBX_ALLOW :
			      full || in->profile->network.default_action == SBX_ALLOW;

	/* The default of mode fetch is for names. */
	if (!f->name && !full)
		allows = false;
	if (!allows || asks(in, f->name))
		return refuse(SBX_REASON_DEFAULT_DENY);
	return (struct reference){ .allows = true, .reason = SBX_REASON_DEFAULT_ALLOW };
}

static struct reference judge(const struct input *in, const struct flow *f)
{
	bool offline = in->profile->network.mode == SBX_MODE_OFFLINE;
	struct best b;

	if (layer_of(in, FLOORS, f).found ||
	    (!f->name && sbx_addr_class(&f->addr) == SBX_ADDR_METADATA))
		return refuse(SBX_REASON_FLOOR);
	b = layer_of(in, RULES, f);
	if (b.found && !b.allows)
		return refuse(SBX_REASON_RULE_DENY);
	if (offline)
		return refuse(SBX_REASON_AIR_GAP);
	if (b.found && !in->live.air_gapped)
		return lifted(in, f, SBX_REASON_RULE_ALLOW);
	b = layer_of(in, LIVE, f);
	if (b.found && b.allows)
		return lifted(in, f, SBX_REASON_LIVE_ALLOW);
	if (in->live.air_gapped)
		return refuse(SBX_REASON_AIR_GAP);
	if (b.found)
		return refuse(SBX_REASON_LIVE_DENY);
	b = layer_of(in, LIST, f);
	if (b.found && !b.allows)
		return refuse(SBX_REASON_LIST_DENY);
	if (b.found)
		return lifted(in, f, SBX_REASON_LIST_ALLOW);
	return by_default(in, f);
}

static struct reference reference(const struct input *in, const struct flow *f)
{
	struct sbx_addr a = sbx_addr_unmap(&f->addr);
	struct reference ref = judge(in, f);
	enum sbx_addr_class class = sbx_addr_class(&a);
	bool admitted;

	if (f->name || !ref.allows || class == SBX_ADDR_PUBLIC ||
	    (class == SBX_ADDR_PRIVATE && ref.private_ok))
		return ref;
	admitted = layer_of_form(in, ADMIT, f, &a).found &&
		   (class == SBX_ADDR_PRIVATE || class == SBX_ADDR_LINK_LOCAL);
	return admitted ? ref : refuse(SBX_REASON_ADDRESS_CLASS);
}

/* The verdict on a resolved address of a name that is allowed. */
static struct reference reference_resolved(const struct input *in, const struct flow *f,
					   bool private_ok)
{
	struct best rule = layer_of(in, RULES, f), live = layer_of(in, LIVE, f),
		    list = layer_of(in, LIST, f);
	struct sbx_addr a = sbx_addr_unmap(&f->addr);
	enum sbx_addr_class class = sbx_addr_class(&a);
	bool gap = in->live.air_gapped;

	if (layer_of(in, FLOORS, f).found || class == SBX_ADDR_METADATA)
		return refuse(SBX_REASON_FLOOR);
	if (rule.found && !rule.allows)
		return refuse(SBX_REASON_RULE_DENY);
	if (in->profile->network.mode == SBX_MODE_OFFLINE || (gap && in->live.allow.n == 0))
		return refuse(SBX_REASON_AIR_GAP);
	if (gap || !rule.found) {
		if (live.found && !live.allows)
			return refuse(gap ? SBX_REASON_AIR_GAP : SBX_REASON_LIVE_DENY);
		if (!live.found && list.found && !list.allows)
			return refuse(SBX_REASON_ADDRESS_DENIED);
	}
	private_ok |= list.found && list.allows && list.entry->private_ok;
	if (class == SBX_ADDR_PUBLIC || (class == SBX_ADDR_PRIVATE && private_ok) ||
	    ((class == SBX_ADDR_PRIVATE || class == SBX_ADDR_LINK_LOCAL) &&
	     layer_of_form(in, ADMIT, f, &a).found))
		return (struct reference){ .allows = true };
	return refuse(SBX_REASON_ADDRESS_CLASS);
}

/* --- asking --- */

static struct flow random_flow(void)
{
	struct flow f = { .proto = pick(4) ? SBX_PROTO_TCP : SBX_PROTO_UDP,
			  .port = PICK(flow_ports) };

	if (pick(3))
		f.name = PICK(names);
	else
		assert_int_equal(sbx_addr_parse(PICK(addrs), &f.addr), 0);
	return f;
}

static struct sbx_verdict ask(const struct sbx_policy *p, const struct flow *f)
{
	return f->name ? sbx_policy_decide_name(p, f->name, f->proto, f->port) :
			 sbx_policy_decide_addr(p, &f->addr, f->proto, f->port);
}

static const char *show(const struct flow *f)
{
	static char buf[400];
	char addr[SBX_ADDR_STR_MAX] = "";

	if (!f->name)
		sbx_addr_format(&f->addr, addr, sizeof(addr));
	snprintf(buf, sizeof(buf), "%s %s %u", f->name ? f->name : addr, sbx_proto_str(f->proto),
		 f->port);
	return buf;
}

/* PORT and LITERAL_ADDRESS say more of a refusal by default. */
static enum sbx_reason plain(enum sbx_reason r)
{
	return r == SBX_REASON_PORT || r == SBX_REASON_LITERAL_ADDRESS ? SBX_REASON_DEFAULT_DENY :
									 r;
}

static void dump(const struct world *w)
{
	struct sbx_policy_entry e;

	for (uint32_t i = 0; sbx_policy_entry(w->p, i, &e); i++)
		if (e.layer != SBX_LAYER_FLOOR || strcmp(e.origin, "shipped") != 0)
			print_message("  %s %s %u %s (%s)\n", sbx_layer_str(e.layer),
				      sbx_action_str(e.action), e.priority, e.text, e.origin);
}

/* --- the properties --- */

static void same_as_reference(const struct input *in, const struct world *w, const struct flow *f)
{
	struct sbx_verdict v = ask(w->p, f);
	struct reference ref = reference(in, f);
	bool private_ok = pick(2);

	if ((v.action == SBX_ALLOW) != ref.allows || plain(v.reason) != ref.reason ||
	    (ref.allows && (v.terminate != 0) != ref.terminated)) {
		dump(w);
		fail_msg("%s: %s %s %u, the reference says %d %s %d", show(f),
			 sbx_action_str(v.action), sbx_reason_str(v.reason), v.terminate,
			 ref.allows, sbx_reason_str(ref.reason), ref.terminated);
	}
	/* Every port but 80 of a terminated flow begins with TLS. */
	if (v.terminate)
		assert_true(v.check != SBX_CHECK_NONE && f->proto == SBX_PROTO_TCP);
	if (f->name)
		return;
	v = sbx_policy_decide_resolved(w->p, &f->addr, f->proto, f->port, private_ok);
	ref = reference_resolved(in, f, private_ok);
	if ((v.action == SBX_ALLOW) != ref.allows || (!ref.allows && v.reason != ref.reason)) {
		dump(w);
		fail_msg("resolved %s: %s %s, the reference says %d %s", show(f),
			 sbx_action_str(v.action), sbx_reason_str(v.reason), ref.allows,
			 sbx_reason_str(ref.reason));
	}
}

/* The verdict that the list of matches implies. */
static enum sbx_action implied(const struct input *in, const struct world *w, const uint32_t *v,
			       size_t n, uint32_t *ret_rule)
{
	struct sbx_policy_entry e[SBX_N_LAYERS];
	bool have[SBX_N_LAYERS] = { false };
	uint32_t first[SBX_N_LAYERS];
	bool offline = in->profile->network.mode == SBX_MODE_OFFLINE, gap = in->live.air_gapped;

	for (size_t i = 0; i < n; i++) {
		struct sbx_policy_entry one;

		assert_true(sbx_policy_entry(w->p, v[i], &one));
		if (i > 0) {
			struct sbx_policy_entry before;

			sbx_policy_entry(w->p, v[i - 1], &before);
			assert_true(before.layer < one.layer ||
				    (before.layer == one.layer && before.priority <= one.priority));
		}
		if (!have[one.layer]) {
			e[one.layer] = one;
			first[one.layer] = v[i];
		}
		have[one.layer] = true;
	}
	*ret_rule = UINT32_MAX;
	for (enum sbx_layer l = SBX_LAYER_FLOOR; l <= SBX_LAYER_PROFILE; l++) {
		bool allows = have[l] && e[l].action == SBX_ALLOW;

		if (l == SBX_LAYER_LIVE && offline)
			return SBX_DENY;
		if (have[l] && !(gap && l == SBX_LAYER_RULE && allows) && !(offline && allows)) {
			*ret_rule = first[l];
			return allows ? SBX_ALLOW : SBX_DENY;
		}
		if (l == SBX_LAYER_LIVE && gap)
			return SBX_DENY;
	}
	return SBX_PANIC; /* the default */
}

static void explained_as_enforced(const struct input *in, const struct world *w,
				  const struct flow *f)
{
	struct sbx_verdict v = ask(w->p, f);
	uint32_t m[64], rule;
	size_t n;
	enum sbx_action action;

	if (!f->name)
		return; /* deny of any form: order is by address there */
	n = sbx_policy_matches_name(w->p, f->name, f->proto, f->port, m, 64);
	assert_true(n <= 64);
	action = implied(in, w, m, n, &rule);
	if (v.reason == SBX_REASON_NOT_TERMINATED || v.reason == SBX_REASON_AIR_GAP) {
		assert_true(v.action == SBX_DENY);
	} else if (action == SBX_PANIC) {
		assert_true(plain(v.reason) == SBX_REASON_DEFAULT_DENY ||
			    v.reason == SBX_REASON_DEFAULT_ALLOW);
	} else if (v.action != action || v.rule != rule) {
		dump(w);
		fail_msg("%s: %s by %s, the matches say %s by %s", show(f),
			 sbx_action_str(v.action), sbx_policy_rule_text(w->p, v.rule),
			 sbx_action_str(action), sbx_policy_rule_text(w->p, rule));
	}
	/* With less room, the same beginning. */
	for (size_t room = 0; room < n && room < 4; room++) {
		uint32_t few[4] = { 0 };

		assert_int_equal(
			sbx_policy_matches_name(w->p, f->name, f->proto, f->port, few, room),
			room + 1);
		assert_memory_equal(few, m, room * sizeof(*few));
	}
}

/* A question that is refused hides no port that is open, and one that is answered leads to one. */
static void questions(const struct input *in, const struct world *w, const char *name)
{
	static const enum sbx_proto protos[] = { SBX_PROTO_TCP, SBX_PROTO_UDP };
	struct sbx_verdict q = sbx_policy_decide_name(w->p, name, SBX_PROTO_DNS, 0);
	struct sbx_policy_port listed[64];
	size_t n = sbx_policy_name_ports(w->p, name, listed, 64), n_open = 0, n_seen = 0;

	for (int k = 0; k < 2; k++) {
		for (unsigned port = 1; port <= UINT16_MAX; port++) {
			struct sbx_verdict v =
				sbx_policy_decide_name(w->p, name, protos[k], (uint16_t)port);
			bool seen = false;

			n_open += v.action == SBX_ALLOW;
			if (!sbx_verdict_by_entry(&v))
				continue;
			for (size_t i = 0; i < n && n <= 64; i++)
				seen |= listed[i].proto == protos[k] && listed[i].port == port;
			n_seen++;
			assert_true(seen || n > 64);
		}
	}
	assert_true(n > 64 ? n_seen > 64 : n_seen == n);
	if (q.action != SBX_ALLOW)
		assert_int_equal(n_open, 0);
	else if (!in->live.air_gapped && !asks(in, name))
		assert_true(n_open > 0);
}

static bool add_deny(struct input *in)
{
	char text[128];

	pattern(text, sizeof(text));
	switch (pick(4)) {
	case 0:
		return add_rule(in, SBX_DENY, pick(5), false, text);
	case 1:
		return add_rule(in, SBX_DENY, 0, true, text);
	case 2:
		return add_live(in, SBX_DENY, text);
	default:
		return add_list(in, SBX_DENY, text);
	}
}

/* In whatever layer and with whatever priority. */
static void deny_only_refuses(struct input *in, const struct world *before)
{
	SBX_CLEANUP(world_fini) struct world after = { 0 };

	if (!add_deny(in))
		return;
	after = compiled(in);
	for (int i = 0; i < N_FLOWS; i++) {
		struct flow f = random_flow();
		struct sbx_verdict v = ask(after.p, &f);

		if (v.action == SBX_ALLOW && ask(before->p, &f).action != SBX_ALLOW)
			fail_msg("%s is allowed by one more deny", show(&f));
		if (f.name) {
			f.port = 0;
			if (ask(after.p, &f).action == SBX_ALLOW)
				assert_int_equal(ask(before->p, &f).action, SBX_ALLOW);
			continue;
		}
		if (sbx_policy_decide_resolved(after.p, &f.addr, f.proto, f.port, true).action ==
		    SBX_ALLOW)
			assert_int_equal(sbx_policy_decide_resolved(before->p, &f.addr, f.proto,
								    f.port, true)
						 .action,
					 SBX_ALLOW);
	}
}

/* Whatever is allowed, in every layer that an operator has, and without an air gap. */
static void floor_is_never_lifted(struct input *in, const struct world *before)
{
	static const struct flow floors[] = {
		{ .name = "ipinfo.io", .port = 443 },
		{ .name = "www.ipinfo.io", .port = 80 },
		{ .name = "metadata.google.internal", .port = 80 },
		{ .addr = { .family = 4, .b = { 169, 254, 169, 254 } }, .port = 80 },
	};
	SBX_CLEANUP(world_fini) struct world after = { 0 };

	(void)before;
	add_rule(in, SBX_ALLOW, 0, false, "ipinfo.io:*");
	add_rule(in, SBX_ALLOW, 0, false, "*.ipinfo.io:*");
	add_rule(in, SBX_ALLOW, 0, false, "metadata.google.internal:*");
	add_rule(in, SBX_ALLOW, 0, false, "0.0.0.0/0");
	add_live(in, SBX_ALLOW, "ipinfo.io");
	add_live(in, SBX_ALLOW, "*.ipinfo.io");
	add_live(in, SBX_ALLOW, "metadata.google.internal");
	add_live(in, SBX_ALLOW, "0.0.0.0/0");
	in->rules.default_set = true;
	in->rules.default_action = SBX_ALLOW;
	after = compiled(in);
	for (size_t i = 0; i < sizeof(floors) / sizeof(*floors); i++) {
		struct flow f = floors[i];

		assert_int_equal(ask(after.p, &f).reason, SBX_REASON_FLOOR);
		f.port = f.name ? 0 : f.port;
		assert_int_equal(ask(after.p, &f).reason, SBX_REASON_FLOOR);
		assert_int_equal(ask(after.p, &f).action, SBX_DENY);
		if (!f.name)
			assert_int_equal(
				sbx_policy_decide_resolved(after.p, &f.addr, f.proto, f.port, true)
					.reason,
				SBX_REASON_FLOOR);
	}
}

/* --- changes --- */

static void remove_rule(struct input *in, int64_t row)
{
	for (size_t i = 0; i < in->rules.n; i++) {
		if (in->rules.v[i].id != row)
			continue;
		free(in->rules.v[i].pattern);
		sbx_net_entry_fini(&in->rules.v[i].entry);
		in->rules.v[i] = in->rules.v[--in->rules.n];
		return;
	}
	fail_msg("no row %lld", (long long)row);
}

/* Makes the change, asks, and takes it back where that is simple. False: it was not made. */
static bool turned(struct input *in, const struct sbx_policy_change *c, const struct flow *f,
		   struct sbx_verdict *ret_verdict)
{
	SBX_CLEANUP(world_fini) struct world w = { 0 };
	struct sbx_net_list *list =
		c->action == SBX_ALLOW ? &in->profile->network.allow : &in->profile->network.deny;
	struct sbx_net_list *live = c->action == SBX_ALLOW ? &in->live.allow : &in->live.deny;
	bool gap = in->live.air_gapped;
	size_t n_list = list->n, n_live = live->n, n_rules = in->rules.n;

	switch (c->kind) {
	case SBX_CHANGE_FLAG:
	case SBX_CHANGE_PROFILE:
		assert_true(sbx_net_list_add_pattern(list, c->pattern, "", NULL) == 0);
		break;
	case SBX_CHANGE_PRIVATE:
		assert_true(sbx_net_list_add_pattern(list, c->pattern, "", NULL) == 0);
		list->v[list->n - 1].private_ok = true;
		break;
	case SBX_CHANGE_NET:
		assert_true(add_live(in, c->action, c->pattern));
		break;
	case SBX_CHANGE_RULE_ADD:
		assert_true(add_rule(in, c->action, c->priority, false, c->pattern));
		break;
	case SBX_CHANGE_NO_AIR_GAP:
		in->live.air_gapped = false;
		break;
	default:
		return false;
	}
	w = compiled(in);
	*ret_verdict = ask(w.p, f);
	while (list->n > n_list)
		sbx_net_entry_fini(&list->v[--list->n]);
	while (live->n > n_live)
		sbx_net_entry_fini(&live->v[--live->n]);
	if (in->rules.n > n_rules)
		remove_rule(in, in->next_id);
	in->live.air_gapped = gap;
	return true;
}

/* Each change that is named turns the verdict. */
static size_t changes_hold(struct input *in, const struct world *w, const struct flow *f)
{
	const struct sbx_policy_asked asked = { .name = f->name,
						.addr = f->name ? NULL : &f->addr,
						.proto = f->proto,
						.port = f->port };
	struct sbx_policy_change c[SBX_CHANGES_MAX];
	struct sbx_verdict v = ask(w->p, f), now;
	size_t n = sbx_policy_changes(w->p, &asked, &v, c), n_made = 0;
	int64_t row = 0;

	assert_true(n <= SBX_CHANGES_MAX);
	if (v.reason == SBX_REASON_FLOOR || v.reason == SBX_REASON_NOT_TERMINATED ||
	    (v.reason == SBX_REASON_AIR_GAP && in->profile->network.mode == SBX_MODE_OFFLINE))
		assert_int_equal(n, 0);
	for (size_t i = 0; i < n; i++) {
		assert_true(*c[i].text);
		assert_true((c[i].kind == SBX_CHANGE_RULE_REMOVE) == (c[i].row != 0));
		if (c[i].kind == SBX_CHANGE_RULE_REMOVE)
			row = c[i].row;
		if (!turned(in, &c[i], f, &now))
			continue;
		n_made++;
		if (now.action == v.action && now.reason != SBX_REASON_NOT_TERMINATED) {
			dump(w);
			fail_msg("%s: %s %s is not turned by '%s': %s", show(f),
				 sbx_action_str(v.action), sbx_reason_str(v.reason), c[i].text,
				 sbx_reason_str(now.reason));
		}
	}
	if (row) {
		SBX_CLEANUP(world_fini) struct world after = { 0 };

		remove_rule(in, row);
		after = compiled(in);
		if (ask(after.p, f).action == v.action)
			fail_msg("%s is not turned without rule %lld", show(f), (long long)row);
	}
	return n_made;
}

/* --- tests --- */

static void each(uint64_t seed, void (*test)(struct input *in, const struct world *w, unsigned i))
{
	state = seed;
	for (unsigned i = 0; i < N_POLICIES; i++) {
		SBX_CLEANUP(input_fini) struct input in;
		SBX_CLEANUP(world_fini) struct world w = { 0 };

		random_input(&in);
		w = compiled(&in);
		test(&in, &w, i);
	}
}

static void compare_flows(struct input *in, const struct world *w, unsigned i)
{
	(void)i;
	for (int k = 0; k < N_FLOWS; k++) {
		struct flow f = random_flow();

		same_as_reference(in, w, &f);
		explained_as_enforced(in, w, &f);
	}
}

static void test_reference(void **s)
{
	(void)s;
	each(0x5eed1, compare_flows);
}

static void ask_questions(struct input *in, const struct world *w, unsigned i)
{
	if (i % 8 == 0)
		questions(in, w, PICK(names));
}

static void test_questions(void **s)
{
	(void)s;
	each(0x5eed2, ask_questions);
}

static void deny_more(struct input *in, const struct world *w, unsigned i)
{
	(void)i;
	deny_only_refuses(in, w);
}

static void test_deny_only_refuses(void **s)
{
	(void)s;
	each(0x5eed3, deny_more);
}

static void lift(struct input *in, const struct world *w, unsigned i)
{
	if (i % 4 == 0)
		floor_is_never_lifted(in, w);
}

static void test_floor_is_never_lifted(void **s)
{
	(void)s;
	each(0x5eed4, lift);
}

static size_t n_changes;

static void change(struct input *in, const struct world *w, unsigned i)
{
	struct flow f = random_flow();

	(void)i;
	n_changes += changes_hold(in, w, &f);
}

static void test_changes(void **s)
{
	(void)s;
	n_changes = 0;
	each(0x5eed5, change);
	assert_true(n_changes > N_POLICIES); /* on the average more than one was made */
}

static void test_many_rules(void **s)
{
	SBX_CLEANUP(input_fini) struct input in;
	SBX_CLEANUP(world_fini) struct world w = { 0 };
	char text[128];

	(void)s;
	state = 0x5eed6;
	random_input(&in);
	in.live.air_gapped = false;
	for (unsigned i = 0; in.rules.n < SBX_RULES_MAX - 200; i++) {
		snprintf(text, sizeof(text), "%sh%u.%s%s", pick(2) ? "*." : "", i, PICK(bases),
			 PICK(ports));
		add_rule(&in, pick(2) ? SBX_ALLOW : SBX_DENY, pick(1000), false, text);
	}
	while (in.rules.n < SBX_RULES_MAX) {
		pattern(text, sizeof(text));
		add_rule(&in, pick(2) ? SBX_ALLOW : SBX_DENY, pick(1000), false, text);
	}
	w = compiled(&in);
	for (int i = 0; i < 300; i++) {
		struct flow f = random_flow();

		if (pick(3)) {
			snprintf(text, sizeof(text), "%sh%u.%s", pick(2) ? "x." : "", pick(9000),
				 PICK(bases));
			f.name = text;
		}
		same_as_reference(&in, &w, &f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reference),
		cmocka_unit_test(test_questions),
		cmocka_unit_test(test_deny_only_refuses),
		cmocka_unit_test(test_floor_is_never_lifted),
		cmocka_unit_test(test_changes),
		cmocka_unit_test(test_many_rules),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
