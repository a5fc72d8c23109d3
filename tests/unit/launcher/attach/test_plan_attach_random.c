/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The lists of attach cgroup beside the policy that they are made of: random policies, at every
 * boundary. */
#include "policy/keys/profile_parse.h"
#include "tests/unit/attach_walk.h"

#define WORLDS	   600
#define CIDRS_MAX  1024
#define PORTS_MAX  64
#define PORTS_EACH 5

struct random_world {
	uint64_t seed;
	struct sbx_profile *profile;
	struct sbx_system_policy *system;
	struct sbx_rules rules;
	struct sbx_live live;
	bool has_rules, has_live;
	struct world w;
	struct sbx_attach_lists l;
	struct sbx_attach_input in; /* of l */
	struct sbx_cidr cidrs[CIDRS_MAX]; /* that matter */
	size_t n_cidrs;
	uint16_t ports[PORTS_MAX]; /* beside the bounds of every range */
	size_t n_ports;
	size_t n_checked, n_allowed, n_stricter;
};

static uint32_t rnd(struct random_world *x, uint32_t n)
{
	x->seed ^= x->seed << 13;
	x->seed ^= x->seed >> 7;
	x->seed ^= x->seed << 17;
	return (uint32_t)(x->seed >> 32) % n;
}

static unsigned bits_of(const struct sbx_addr *a)
{
	return a->family == 4 ? 32 : 128;
}

static struct sbx_addr mask(const struct sbx_addr *a, unsigned prefix, bool ones)
{
	struct sbx_addr out = *a;

	for (unsigned bit = prefix; bit < bits_of(a); bit++) {
		uint8_t m = (uint8_t)(0x80 >> bit % 8);

		out.b[bit / 8] = ones ? out.b[bit / 8] | m : (uint8_t)(out.b[bit / 8] & ~m);
	}
	return out;
}

/* The address before or behind; of the last the first. */
static struct sbx_addr next_to(const struct sbx_addr *a, int step)
{
	struct sbx_addr out = *a;

	for (unsigned i = bits_of(a) / 8; i-- > 0;) {
		out.b[i] = (uint8_t)(out.b[i] + step);
		if (out.b[i] != (step > 0 ? 0 : 0xff))
			break;
	}
	return out;
}

/* An IPv4 address, embedded in an IPv6 address in one of the known ways; @how is taken by its
 * rest. */
enum { N_CLOTHES = 7 };
static struct sbx_addr dress(const struct sbx_addr *v4, uint32_t how)
{
	static const char *const bases[N_CLOTHES] = {
		"64:ff9b::",  "2002::7", "2001::8.8.8.8", "2001:0:808:808::", "64:ff9b:1::",
		"::ffff:0:0", "::"
	};
	static const unsigned at[N_CLOTHES] = { 12, 2, 4, 12, 12, 12, 12 };
	struct sbx_addr a = addr_of(bases[how % N_CLOTHES]);

	memcpy(a.b + at[how % N_CLOTHES], v4->b, 4);
	if (how % N_CLOTHES == 3) /* Teredo's client is inverted */
		for (unsigned i = 12; i < 16; i++)
			a.b[i] ^= 0xff;
	return a;
}

/* Around the classes, some ordinary ones, and what was used before. */
static struct sbx_cidr random_cidr(struct random_world *x)
{
	static const char *const ordinary[] = { "0.0.0.0",     "8.8.8.8",     "198.51.100.7",
						"203.0.113.9", "2001:db8::1", "2606:4700::1",
						"2000::",      "::",	      "64:ff9b:1::" };
	struct sbx_cidr c = { 0 };
	struct sbx_addr_range r;
	uint32_t n_ranges = 0, what = rnd(x, 4);
	unsigned bits;

	while (sbx_addr_range_at(n_ranges, &r))
		n_ranges++;
	if (what < 2 && x->n_cidrs > 0)
		c = x->cidrs[rnd(x, (uint32_t)x->n_cidrs)];
	else if (what < 3 && sbx_addr_range_at(rnd(x, n_ranges), &r))
		c = r.cidr;
	else
		c.addr = addr_of(ordinary[rnd(x, SBX_N_ELEMENTS(ordinary))]);
	if (c.addr.family == 4 && rnd(x, 6) == 0) {
		bool at_2 = rnd(x, 2);

		c.addr = dress(&c.addr, at_2);
		c.prefix = (uint8_t)(c.prefix + (at_2 ? 16 : 96));
		if (at_2)
			c.addr.b[15] = 0;
	}
	bits = bits_of(&c.addr);
	switch (rnd(x, 4)) {
	case 0: /* wider */
		c.prefix = (uint8_t)(c.prefix - rnd(x, c.prefix < 4 ? c.prefix + 1u : 4));
		break;
	case 1:
		c.prefix = (uint8_t)rnd(x, bits + 1);
		break;
	case 2: /* inside */
		for (unsigned i = 0; i < 5 && c.prefix < bits; i++, c.prefix++)
			if (rnd(x, 2))
				c.addr.b[c.prefix / 8] ^= (uint8_t)(0x80 >> c.prefix % 8);
		break;
	default:
		break;
	}
	c.addr = mask(&c.addr, c.prefix, false);
	return c;
}

static void note_port(struct random_world *x, uint32_t port)
{
	if (port >= 1 && port <= UINT16_MAX && x->n_ports < PORTS_MAX)
		x->ports[x->n_ports++] = (uint16_t)port;
}

static void note_cidr(struct random_world *x, const struct sbx_cidr *c)
{
	if (x->n_cidrs < CIDRS_MAX)
		x->cidrs[x->n_cidrs++] = *c;
}

/* One more entry, if it is one that may be written. */
static void random_entry(struct random_world *x, struct sbx_net_list *list, bool may_be_private)
{
	static const char *const ports[] = {
		"",    ":*",	  ":443",   ":1000-2000", ":443,1500-1600",
		":25", ":1-1023", ":65535", ":1,3,5",	  ":1600-3000"
	};
	static const char *const protos[] = { "", "", "/tcp", "/udp" };
	struct sbx_cidr c = random_cidr(x);
	uint32_t port = rnd(x, 2 * SBX_N_ELEMENTS(ports)), proto = rnd(x, SBX_N_ELEMENTS(protos));
	char addr[SBX_ADDR_STR_MAX], text[160];
	struct sbx_net_entry *e;

	sbx_addr_format(&c.addr, addr, sizeof(addr));
	snprintf(text, sizeof(text), "[%s/%u]%s%s", addr, c.prefix,
		 port < SBX_N_ELEMENTS(ports) ? ports[port] : "", protos[proto]);
	if (sbx_net_list_add_pattern(list, text, "test", NULL) != 0)
		return;
	e = &list->v[list->n - 1];
	e->private_ok = may_be_private && rnd(x, 3) == 0;
	for (size_t i = 0; i < e->n_ports; i++) {
		note_port(x, e->ports[i].first - 1u);
		note_port(x, e->ports[i].first);
		note_port(x, e->ports[i].last);
		note_port(x, e->ports[i].last + 1u);
	}
	note_cidr(x, &e->cidr);
}

static void random_policy(struct random_world *x)
{
	static const char *const modes[] = { "fetch", "fetch", "full" };
	char yaml[128];

	snprintf(yaml, sizeof(yaml), "network: {attach: cgroup, mode: %s}\n",
		 modes[rnd(x, SBX_N_ELEMENTS(modes))]);
	x->profile = good_profile(yaml);
	x->system = good_system("");
	x->n_cidrs = x->n_ports = 0;
	note_port(x, 1);
	note_port(x, 443);
	note_port(x, UINT16_MAX);
	for (uint32_t n = rnd(x, 9); n > 0; n--)
		random_entry(x, &x->profile->network.allow, true);
	for (uint32_t n = rnd(x, 7); n > 0; n--)
		random_entry(x, &x->profile->network.deny, false);
	for (uint32_t n = rnd(x, 3); n > 0; n--)
		random_entry(x, &x->system->floors, false);
	for (uint32_t n = rnd(x, 4); n > 0; n--)
		random_entry(x, &x->system->admit, false);
	if (rnd(x, 4) == 0) {
		struct sbx_net_list *allow = &x->profile->network.allow;

		assert_int_equal(sbx_net_list_add_pattern(allow, "a.example", "test", NULL), 0);
		allow->v[allow->n - 1].private_ok = rnd(x, 2);
	}
}

/* A rule as it may stand in a row: entries and names, by chance with the same priority. */
static void random_rule(struct random_world *x)
{
	static const char *const names[] = { "a.example", "*.example" };
	struct sbx_net_list one = { 0 };
	bool allow = rnd(x, 3) != 0, floor = !allow && rnd(x, 5) == 0;
	struct sbx_err err = { 0 };

	random_entry(x, &one, false);
	if (one.n || rnd(x, 2))
		assert_int_equal(sbx_rules_add(&x->rules, (int64_t)x->rules.n + 1,
					       SBX_RULE_NETWORK, allow ? SBX_ALLOW : SBX_DENY,
					       floor ? 0 : 100 + rnd(x, 3), floor, floor,
					       one.n ? one.v[0].text : names[rnd(x, 2)], &err), 0);
	sbx_net_list_fini(&one);
}

static void random_changes(struct random_world *x)
{
	x->rules = (struct sbx_rules){ 0 };
	x->live = (struct sbx_live){ .deny = { .deny = true } };
	x->has_rules = rnd(x, 2);
	x->has_live = rnd(x, 2);
	for (uint32_t n = x->has_rules ? rnd(x, 6) : 0; n > 0; n--)
		random_rule(x);
	x->rules.default_set = x->has_rules && rnd(x, 3) == 0;
	x->rules.default_action = rnd(x, 3) ? SBX_ALLOW : SBX_DENY;
	x->live.air_gapped = x->has_live && rnd(x, 6) == 0;
	for (uint32_t n = x->has_live ? rnd(x, 4) : 0; n > 0; n--)
		random_entry(x, &x->live.allow, false);
	for (uint32_t n = x->has_live ? rnd(x, 4) : 0; n > 0; n--)
		random_entry(x, &x->live.deny, false);
}

static void fail_at(const struct random_world *x, const struct sbx_addr *a, enum sbx_proto proto,
		    uint16_t port, const char *what, bool policy, bool kernel)
{
	const struct sbx_net_list *lists[] = { &x->profile->network.allow,
					       &x->profile->network.deny, &x->system->floors,
					       &x->system->admit, &x->live.allow, &x->live.deny };
	static const char *const names[] = { "allow",	   "deny",	 "floor",
					     "admit",	   "live allow", "live deny" };
	char addr[SBX_ADDR_STR_MAX];

	for (size_t i = 0; i < SBX_N_ELEMENTS(lists); i++)
		for (size_t k = 0; k < lists[i]->n; k++)
			print_message("%s %s%s\n", names[i], lists[i]->v[k].text,
				      lists[i]->v[k].private_ok ? " private" : "");
	for (size_t i = 0; i < x->rules.n; i++)
		print_message("rule %s %s priority %u floor %d\n",
			      sbx_action_str(x->rules.v[i].action), x->rules.v[i].pattern,
			      (unsigned)x->rules.v[i].priority, x->rules.v[i].is_floor);
	print_message("default %d %d, air gap %d\n", x->rules.default_set, x->rules.default_action,
		      x->live.air_gapped);
	fail_msg("mode %d, %s, %s %s %u: policy %d, kernel %d", x->profile->network.mode, what,
		 sbx_addr_format(a, addr, sizeof(addr)), sbx_proto_str(proto), port, policy,
		 kernel);
}

static const struct sbx_cidr mapped = { { 6, { [10] = 0xff, 0xff } }, 96 };

/* The addresses where the kernel refuses more than the policy does: see plan_attach.h. */
static bool is_stricter(const struct sbx_addr *a)
{
	static const struct sbx_cidr teredo = { { 6, { 0x20, 0x01 } }, 32 };
	static const struct sbx_cidr nat64 = { { 6, { 0x00, 0x64, 0xff, 0x9b, 0, 1 } }, 48 };

	return sbx_cidr_contains(&mapped, a) || sbx_cidr_contains(&teredo, a) ||
	       sbx_cidr_contains(&nat64, a);
}

static bool admits(const struct random_world *x, const struct sbx_addr *a, enum sbx_proto proto,
		   uint16_t port)
{
	for (size_t i = 0; i < x->system->admit.n; i++) {
		const struct sbx_net_entry *e = &x->system->admit.v[i];
		bool at = e->n_ports == 0;

		for (size_t k = 0; k < e->n_ports; k++)
			at |= e->ports[k].first <= port && port <= e->ports[k].last;
		if (at && (!e->proto_set || e->proto == proto) && sbx_cidr_contains(&e->cidr, a))
			return true;
	}
	return false;
}

static bool pins_private(const struct random_world *x)
{
	for (size_t i = 0; i < x->profile->network.allow.n; i++)
		if (!x->profile->network.allow.v[i].is_cidr &&
		    x->profile->network.allow.v[i].private_ok)
			return true;
	return false;
}

static void compare(struct random_world *x, const struct sbx_addr *a, enum sbx_proto proto,
		    uint16_t port)
{
	bool policy = sbx_policy_decide_addr(x->w.p, a, proto, port).action == SBX_ALLOW;
	bool kernel = kernel_out(&x->l, a, proto, port);
	bool lo = kernel_lo(&x->l, a, proto, port);
	bool stricter = policy && is_stricter(a);
	const struct sbx_sock_flow flow = { .proto = proto, .remote = *a, .remote_port = port };
	const struct sbx_sock_flow own = {
		.proto = proto, .remote = *a, .remote_port = port, .local = *a
	};

	if (sbx_attach_lets_go_on(&x->in, &flow, false) != (is_loopback(a) ? lo : kernel))
		fail_at(x, a, proto, port, "an open flow", policy, !kernel);
	if (!is_loopback(a) && sbx_attach_lets_go_on(&x->in, &own, true) != lo)
		fail_at(x, a, proto, port, "an open flow to this host", policy, !lo);
	x->n_checked++;
	x->n_allowed += policy;
	x->n_stricter += stricter;
	if (kernel != (policy && !stricter))
		fail_at(x, a, proto, port, "out", policy, kernel);
	if (lo != (policy && !stricter && admits(x, a, proto, port)))
		fail_at(x, a, proto, port, "by lo", policy, lo);
	if (in_floors(&x->l, a) && !sbx_cidr_contains(&mapped, a) &&
	    sbx_policy_decide_resolved(x->w.p, a, proto, port, pins_private(x)).action == SBX_ALLOW)
		fail_at(x, a, proto, port, "a pin under a floor", true, false);
}

static void compare_address(struct random_world *x, const struct sbx_addr *a)
{
	for (unsigned i = 0; i < PORTS_EACH; i++) {
		uint16_t port = x->ports[rnd(x, (uint32_t)x->n_ports)];

		compare(x, a, TCP, port);
		compare(x, a, UDP, port);
	}
}

/* The first and last address, one before, one after; an IPv4 one embedded in some IPv6 forms as
 * well. */
static void compare_around(struct random_world *x, const struct sbx_cidr *c)
{
	struct sbx_addr first = mask(&c->addr, c->prefix, false),
			last = mask(&c->addr, c->prefix, true);
	struct sbx_addr v[4] = { first, last, next_to(&first, -1), next_to(&last, 1) };

	for (size_t i = 0; i < SBX_N_ELEMENTS(v); i++) {
		compare_address(x, &v[i]);
		for (unsigned k = 0; v[i].family == 4 && k < 3; k++) {
			struct sbx_addr dressed = dress(&v[i], rnd(x, N_CLOTHES));

			compare_address(x, &dressed);
		}
	}
}

/* No floor is inside another, no rule inside a floor. */
static void check_floors_apart(const struct sbx_attach_lists *l)
{
	for (size_t i = 0; i < l->n_floors; i++) {
		const struct sbx_cidr *f = &l->floors[i];

		for (size_t k = 0; k < l->n_floors; k++)
			assert_false(k != i && f->prefix <= l->floors[k].prefix &&
				     sbx_cidr_contains(f, &l->floors[k].addr));
		for (size_t k = 0; k < l->n_cidrs; k++)
			assert_false(f->prefix <= l->cidrs[k].cidr.prefix &&
				     sbx_cidr_contains(f, &l->cidrs[k].cidr.addr));
	}
}

static void compare_world(struct random_world *x)
{
	struct sbx_addr_range r;
	struct sbx_err err = { 0 };
	struct sbx_policy_input input = { .generation = 7 };

	random_policy(x);
	random_changes(x);
	input.profile = x->profile;
	input.system = x->system;
	input.rules = x->has_rules ? &x->rules : NULL;
	input.live = x->has_live ? &x->live : NULL;
	x->w = (struct world){ 0 };
	if (lists_of(&input, &x->w, &x->l, &err) != 0)
		fail_msg("%s", err.msg);
	check_input(&x->l);
	x->in = input_of(&x->l);
	check_floors_apart(&x->l);
	for (size_t i = 0; i < x->l.n_admitted; i++)
		note_cidr(x, &x->l.admitted[i].cidr);
	for (size_t i = 0; i < x->l.n_cidrs; i++)
		note_cidr(x, &x->l.cidrs[i].cidr);
	for (size_t i = 0; sbx_addr_range_at(i, &r); i++)
		if (rnd(x, 2))
			note_cidr(x, &r.cidr);
	for (size_t i = 0; i < x->l.n_floors; i++)
		if (rnd(x, 4) == 0)
			note_cidr(x, &x->l.floors[i]);
	for (size_t i = 0; i < x->n_cidrs; i++)
		compare_around(x, &x->cidrs[i]);
	sbx_attach_lists_fini(&x->l);
	world_fini(&x->w);
	sbx_rules_fini(&x->rules);
	sbx_net_list_fini(&x->live.allow);
	sbx_net_list_fini(&x->live.deny);
	x->profile = sbx_profile_free(x->profile);
	x->system = sbx_system_policy_free(x->system);
}

static void test_random(void **state)
{
	SBX_AUTO_FREE struct random_world *x = calloc(1, sizeof(*x));

	(void)state;
	x->seed = UINT64_C(0x5bd1e995a77ac4);
	for (unsigned i = 0; i < WORLDS; i++)
		compare_world(x);
	print_message("# %zu compared: %zu allowed, %zu of them refused as said\n", x->n_checked,
		      x->n_allowed, x->n_stricter);
	/* Without enough of both kinds the comparison would show nothing. */
	assert_true(x->n_allowed > x->n_checked / 10);
	assert_true(x->n_stricter > 100 && x->n_stricter < x->n_allowed / 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random),
	};

	return cmocka_run_group_tests_name("plan_attach_random", tests, NULL, NULL);
}
