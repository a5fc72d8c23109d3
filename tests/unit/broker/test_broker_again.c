/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Open flows under a policy that was changed: which go on, and with which verdict. */

#include "tests/unit/policy_world.h"

#include "broker/core/core.h"
#include "policy/decide/rules.h"

/* One policy: a profile's network block, and what stands above it. */
struct policy {
	const char *network; /* YAML below `network:`, with two spaces */
	bool gap;
	const char *allow, *deny; /* live entries; NULL: none */
	const char *rule_allow, *rule_deny;
	bool default_deny; /* of the workspace */
};

struct flow {
	enum sbx_proto proto; /* 0: TCP */
	const char *to;	      /* a name, or an address */
	uint16_t port;
	const char *reached; /* the address that was dialled; NULL: none yet */
	uint16_t proxy_port;
	char *named[2]; /* servers that it named */
};

struct again {
	struct policy old;
	struct flow flow;
	struct policy new;
	/* ALLOW: it goes on */
	enum sbx_action action;
	enum sbx_reason reason;
	const char *rule; /* the text of the new verdict's; NULL: none */
};

#define ORG	"  allow: [example.org]\n"
#define FULL	"  mode: full\n"
#define CHECKED "  allow:\n    - { cidr: 203.0.113.0/24, ports: 443, check: tls }\n"
#define NET	"  allow: [\"203.0.113.0/24:5432\"]\n"

#define P(...)                                                                                     \
	{                                                                                          \
		.network = __VA_ARGS__                                                             \
	}

#define TO_ORG	.flow = { .to = "example.org", .port = 443, .reached = "203.0.113.5" }
#define TO_WWW	.flow = { .to = "www.example.org", .port = 443, .reached = "203.0.113.5" }
#define TO_NET	.flow = { .to = "203.0.113.5", .port = 5432, .reached = "203.0.113.5" }
#define TO_FULL .flow = { .to = "203.0.113.5", .port = 9000, .reached = "203.0.113.5" }

#define KEPT(r, text) .action = SBX_ALLOW, .reason = SBX_REASON_##r, .rule = text
#define CUT(r)	      .action = SBX_DENY, .reason = SBX_REASON_##r

static const struct again cases[] = {
	/* nothing, or something else, has changed */
	{ P(ORG), TO_ORG, P(ORG), KEPT(LIST_ALLOW, "example.org") },
	{ P(ORG), TO_ORG, P(ORG, .deny = "*.example.org"), KEPT(LIST_ALLOW, "example.org") },
	{ P(ORG), TO_ORG, P(ORG, .deny = "example.org:22"), KEPT(LIST_ALLOW, "example.org") },
	{ P(ORG), TO_ORG, P(ORG, .deny = "example.org:443/udp"), KEPT(LIST_ALLOW, "example.org") },
	/* the number of its entry is another one */
	{ P(ORG), TO_ORG, P("  allow: [aaa.example, bbb.example, example.org]\n"),
	  KEPT(LIST_ALLOW, "example.org") },
	/* another entry allows it now */
	{ P("  allow: [www.example.org]\n"), TO_WWW, P("  allow: [\"*.example.org\"]\n"),
	  KEPT(LIST_ALLOW, "*.example.org") },
	{ P(ORG), TO_ORG, P("", .allow = "example.org"), KEPT(LIVE_ALLOW, "live example.org") },
	{ P(ORG), TO_ORG, P("", .rule_allow = "example.org"),
	  KEPT(RULE_ALLOW, "rule 1 example.org") },
	{ P("", .allow = "example.org"), TO_ORG, P(ORG), KEPT(LIST_ALLOW, "example.org") },
	/* nothing allows it */
	{ P(ORG), TO_ORG, P(""), CUT(DEFAULT_DENY) },
	{ P(ORG), TO_ORG, P("  allow: [example.org:22]\n"), CUT(PORT) },
	{ P(ORG), TO_ORG, P(ORG, .deny = "example.org"), CUT(LIVE_DENY) },
	{ P(ORG), TO_ORG, P(ORG, .deny = "example.org:443"), CUT(LIVE_DENY) },
	{ P(ORG), TO_ORG, P(ORG, .rule_deny = "example.org"), CUT(RULE_DENY) },
	{ P("  allow: [www.example.org]\n"), TO_WWW,
	  P("  allow: [www.example.org]\n", .rule_deny = "*.example.org"), CUT(RULE_DENY) },
	{ P(ORG), TO_ORG, P(ORG "  deny: [example.org]\n"), CUT(LIST_DENY) },
	{ P("", .allow = "example.org"), TO_ORG, P(""), CUT(DEFAULT_DENY) },
	{ P("  default: allow\n"), TO_ORG, P("  default: allow\n", .default_deny = true),
	  CUT(DEFAULT_DENY) },
	/* an air gap */
	{ P(ORG), TO_ORG, P(ORG, .gap = true), CUT(AIR_GAP) },
	{ P(ORG), TO_ORG, P(ORG, .gap = true, .rule_allow = "example.org"), CUT(AIR_GAP) },
	{ P(ORG), TO_ORG, P(ORG, .gap = true, .allow = "example.org"),
	  KEPT(LIVE_ALLOW, "live example.org") },
	{ P(ORG, .gap = true, .allow = "example.org"), TO_ORG, P(ORG, .gap = true), CUT(AIR_GAP) },
	{ P(ORG, .gap = true, .allow = "example.org"), TO_ORG, P(ORG),
	  KEPT(LIST_ALLOW, "example.org") },
	/* the address that was dialled */
	{ P(ORG), TO_ORG, P(ORG, .deny = "203.0.113.0/24"), CUT(LIVE_DENY) },
	{ P(ORG), TO_ORG, P(ORG, .rule_deny = "203.0.113.5"), CUT(RULE_DENY) },
	{ P(ORG), TO_ORG, P(ORG, .deny = "203.0.113.6"), KEPT(LIST_ALLOW, "example.org") },
	{ P(ORG), .flow = { .to = "example.org", .port = 443 }, P(ORG, .deny = "203.0.113.0/24"),
	  KEPT(LIST_ALLOW, "example.org") },
	{ P("  allow: [{ host: example.org, private: true }]\n"),
	  .flow = { .to = "example.org", .port = 443, .reached = "10.0.0.5" }, P(ORG),
	  CUT(ADDRESS_CLASS) },
	{ P("  allow: [{ host: example.org, private: true }]\n"),
	  .flow = { .to = "example.org", .port = 443, .reached = "10.0.0.5" },
	  P("  allow: [{ host: example.org, private: true }, a.example]\n"),
	  KEPT(LIST_ALLOW, "example.org") },
	/* an upstream proxy's address is not the server's */
	{ P(ORG),
	  .flow = { .to = "example.org",
		    .port = 443,
		    .reached = "203.0.113.5",
		    .proxy_port = 3128 },
	  P(ORG, .deny = "203.0.113.0/24"), KEPT(LIST_ALLOW, "example.org") },
	{ P(ORG),
	  .flow = { .to = "example.org", .port = 443, .reached = "10.0.0.5", .proxy_port = 3128 },
	  P(ORG), CUT(PROXY_ADDRESS) },
	/* by address */
	{ P(NET), TO_NET, P(NET, .deny = "example.org"), KEPT(LIST_ALLOW, "203.0.113.0/24:5432") },
	{ P(NET), TO_NET, P(""), CUT(LITERAL_ADDRESS) },
	{ P(NET), TO_NET, P(NET, .deny = "203.0.113.5"), CUT(LIVE_DENY) },
	{ P(NET), TO_NET, P(NET, .gap = true), CUT(AIR_GAP) },
	{ P(NET), TO_NET, P("", .gap = true, .allow = "203.0.113.0/24:5432"),
	  KEPT(LIVE_ALLOW, "live 203.0.113.0/24:5432") },
	{ P(FULL), TO_FULL, P(FULL), KEPT(DEFAULT_ALLOW, NULL) },
	{ P(FULL), TO_FULL, P(FULL, .default_deny = true), CUT(LITERAL_ADDRESS) },
	{ P(FULL), TO_FULL, P(FULL, .gap = true), CUT(AIR_GAP) },
	/* servers that it named, where it may name any */
	{ P(FULL),
	  .flow = { .to = "203.0.113.5",
		    .port = 443,
		    .reached = "203.0.113.5",
		    .named = { "a.example", "b.example" } },
	  P(FULL, .deny = "c.example"), KEPT(DEFAULT_ALLOW, NULL) },
	{ P(FULL),
	  .flow = { .to = "203.0.113.5",
		    .port = 443,
		    .reached = "203.0.113.5",
		    .named = { "a.example", "b.example" } },
	  P(FULL, .deny = "b.example"), CUT(LIVE_DENY) },
	{ P(FULL),
	  .flow = { .to = "203.0.113.5",
		    .port = 443,
		    .reached = "203.0.113.5",
		    .named = { "a.example" } },
	  P(FULL, .rule_deny = "a.example"), CUT(RULE_DENY) },
	{ P(CHECKED),
	  .flow = { .to = "203.0.113.5",
		    .port = 443,
		    .reached = "203.0.113.5",
		    .named = { "a.example" } },
	  P(CHECKED), KEPT(LIST_ALLOW, "203.0.113.0/24:443") },
	{ P(CHECKED),
	  .flow = { .to = "203.0.113.5",
		    .port = 443,
		    .reached = "203.0.113.5",
		    .named = { "a.example" } },
	  P(CHECKED "    - { host: a.example, inspect: true }\n"), CUT(NOT_TERMINATED) },
	/* its first bytes would be checked, and were not */
	{ P("  allow: [{ host: example.org, ports: 443, check: none }]\n"), TO_ORG, P(ORG),
	  CUT(POLICY_CHANGED) },
	{ P(ORG), TO_ORG, P("  allow: [{ host: example.org, ports: 443, check: none }]\n"),
	  KEPT(LIST_ALLOW, "example.org:443") },
	{ P("  allow: [{ host: example.org, ports: 443, check: http }]\n"), TO_ORG, P(ORG),
	  CUT(POLICY_CHANGED) },
	{ P(NET), TO_NET, P("  allow: [{ cidr: 203.0.113.0/24, ports: 5432, check: tls }]\n"),
	  CUT(POLICY_CHANGED) },
	{ P("  allow: [{ cidr: 203.0.113.0/24, ports: 5432, check: tls }]\n"), TO_NET, P(NET),
	  KEPT(LIST_ALLOW, "203.0.113.0/24:5432") },
	/* its requests would be judged, and were not, or by another entry */
	{ P(ORG), TO_ORG, P("  allow: [{ host: example.org, access: read-only }]\n"),
	  CUT(POLICY_CHANGED) },
	{ P("  allow: [{ host: example.org, access: read-only }]\n"), TO_ORG,
	  P("  allow: [{ host: example.org, access: read-only }, other.example]\n"),
	  KEPT(LIST_ALLOW, "example.org") },
	{ P("  allow: [{ host: example.org, access: read-only }]\n"), TO_ORG,
	  P("  allow:\n    - { host: a.example, access: read-only }\n"
	    "    - { host: example.org, access: read-only }\n"),
	  CUT(POLICY_CHANGED) },
	{ P("  allow: [{ host: example.org, access: read-only }]\n"), TO_ORG,
	  P("  allow: [{ host: example.org, access: read-only }]\n", .allow = "example.org"),
	  KEPT(LIVE_ALLOW, "live example.org") },
	{ P("  allow: [{ host: example.org, access: read-only }]\n"), TO_ORG,
	  P("  allow: [{ host: example.org, access: read-only }]\n", .gap = true), CUT(AIR_GAP) },
	{ P("  allow: [{ host: example.org, access: read-only }]\n"), TO_ORG, P(ORG),
	  KEPT(LIST_ALLOW, "example.org") },
	/* UDP */
	{ P("  allow: [{ host: example.org, ports: 99, protocol: udp }]\n"),
	  .flow = { .proto = SBX_PROTO_UDP, .to = "example.org", .port = 99 },
	  P("  allow: [{ host: example.org, ports: 99, protocol: udp }]\n",
	    .deny = "example.org/tcp"),
	  KEPT(LIST_ALLOW, "example.org:99/udp") },
	{ P("  allow: [{ host: example.org, ports: 99, protocol: udp }]\n"),
	  .flow = { .proto = SBX_PROTO_UDP, .to = "example.org", .port = 99 },
	  P("  allow: [{ host: example.org, ports: 99, protocol: udp }]\n",
	    .deny = "example.org/udp"),
	  CUT(LIVE_DENY) },
	{ P("  allow: [{ host: example.org, ports: 99, protocol: udp }]\n"),
	  .flow = { .proto = SBX_PROTO_UDP, .to = "example.org", .port = 99 },
	  P("  allow: [example.org:99]\n"), CUT(PORT) },
};

/* --- making it --- */

static void add_rule(struct sbx_rules *rules, enum sbx_action action, const char *pattern)
{
	struct sbx_err err = { 0 };

	if (pattern)
		assert_int_equal(sbx_rules_add(rules, (int64_t)rules->n + 1, SBX_RULE_NETWORK,
					       action, SBX_RULE_PRIORITY, false, false, pattern,
					       &err),
				 0);
}

static struct world make(const struct policy *p)
{
	char yaml[1024];
	SBX_CLEANUP(sbx_profile_freep) struct sbx_profile *profile = NULL;
	struct sbx_live live = { .air_gapped = p->gap };
	struct sbx_rules rules = { .default_set = p->default_deny };
	struct sbx_policy_input in = { .rules = &rules, .live = &live, .generation = 8 };
	struct sbx_err err = { 0 };
	struct world w = { 0 };

	snprintf(yaml, sizeof(yaml), "name: t\nnetwork:\n%s",
		 p->network[0] ? p->network : "  {}\n");
	profile = good_profile(yaml);
	if (sbx_profile_settle_secrets(profile, &err) != 0)
		fail_msg("%s: %s", yaml, err.msg);
	in.profile = profile;
	if (p->allow)
		assert_int_equal(sbx_net_list_add_pattern(&live.allow, p->allow, "test", NULL), 0);
	if (p->deny)
		assert_int_equal(sbx_net_list_add_pattern(&live.deny, p->deny, "test", NULL), 0);
	add_rule(&rules, SBX_ALLOW, p->rule_allow);
	add_rule(&rules, SBX_DENY, p->rule_deny);
	assert_int_equal(sbx_policy_compile(&in, &w.blob, &w.n), 0);
	assert_int_equal(sbx_policy_load(sbx_span(w.blob, w.n), &w.p), 0);
	sbx_live_fini(&live);
	sbx_rules_fini(&rules);
	return w;
}

static struct sbx_addr destination(const struct sbx_core *core, const char *to)
{
	struct sbx_addr a;
	uint32_t index;

	if (sbx_addr_parse(to, &a) == 0)
		return a;
	assert_int_equal(sbx_pins_add(core->pins, to, &index), 0);
	return sbx_pins_addr4(index);
}

/* --- judging --- */

struct judged {
	struct sbx_flow_target before, after;
	struct sbx_verdict verdict;
	char rule[256];
};

static struct judged judge(const struct again *c)
{
	static const struct sbx_msg_config config = { .selftest_name = "selftest.sbx.invalid" };
	SBX_CLEANUP(world_fini) struct world old = make(&c->old);
	SBX_CLEANUP(world_fini) struct world new = make(&c->new);
	struct sbx_core core = { .config = &config, .policy = old.p };
	enum sbx_proto proto = c->flow.proto ? c->flow.proto : SBX_PROTO_TCP;
	struct sbx_addr reached = { 0 }, to;
	struct sbx_core_opened o = { .proxy_port = c->flow.proxy_port, .named = c->flow.named };
	struct judged j;

	assert_int_equal(sbx_pins_new(10, &core.pins), 0);
	to = destination(&core, c->flow.to);
	if (c->flow.reached) {
		assert_int_equal(sbx_addr_parse(c->flow.reached, &reached), 0);
		o.reached = &reached;
	}
	while (o.n_named < SBX_N_ELEMENTS(c->flow.named) && c->flow.named[o.n_named])
		o.n_named++;
	sbx_core_decide_flow(&core, proto, &to, c->flow.port, 0, &j.before);
	j.after = j.before;
	core.policy = new.p;
	j.verdict = sbx_core_judge_again(&core, &o, &j.after);
	snprintf(j.rule, sizeof(j.rule), "%s", sbx_policy_rule_text(new.p, j.verdict.rule));
	sbx_pins_free(core.pins);
	return j;
}

static bool same_target(const struct sbx_flow_target *a, const struct sbx_flow_target *b)
{
	return a->kind == b->kind && a->check == b->check && a->must_match == b->must_match &&
	       a->must_parse == b->must_parse && a->terminate == b->terminate;
}

static bool same_verdict(const struct sbx_verdict *a, const struct sbx_verdict *b)
{
	return a->action == b->action && a->reason == b->reason && a->rule == b->rule &&
	       a->check == b->check && a->terminate == b->terminate;
}

/* A flow that goes on is carried as it was opened, and has the new policy's verdict. One that does
 * not keeps the old one, for its event. */
static bool is_right(const struct again *c, const struct judged *j)
{
	if (j->before.kind != SBX_FLOW_NAME && j->before.kind != SBX_FLOW_ADDRESS)
		return false;
	if (j->verdict.action != c->action || j->verdict.reason != c->reason)
		return false;
	if (!same_target(&j->before, &j->after))
		return false;
	if (c->action != SBX_ALLOW)
		return same_verdict(&j->before.verdict, &j->after.verdict);
	return strcmp(j->rule, c->rule ? c->rule : "") == 0 &&
	       same_verdict(&j->verdict, &j->after.verdict) &&
	       j->after.verdict.check == j->before.check &&
	       j->after.verdict.terminate == j->before.terminate;
}

static void test_table(void **state)
{
	size_t n_wrong = 0;

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++) {
		struct judged j = judge(&cases[i]);

		if (is_right(&cases[i], &j))
			continue;
		n_wrong++;
		print_message("case %zu: kind %d, %s %s, rule '%s'\n", i, j.before.kind,
			      j.verdict.action == SBX_ALLOW ? "kept" : "cut",
			      sbx_reason_str(j.verdict.reason), j.rule);
	}
	assert_int_equal(n_wrong, 0);
}

/* The host got the address meanwhile; or its addresses cannot be read any more. */
static void test_own(void **state)
{
	static const struct sbx_msg_config config = { .selftest_name = "selftest.sbx.invalid" };
	static const struct policy org = P(ORG);
	SBX_CLEANUP(world_fini) struct world w = make(&org);
	struct sbx_core core = { .config = &config, .policy = w.p };
	const struct sbx_addr reached = { 4, { 203, 0, 113, 5 } };
	const struct sbx_core_opened o = { .reached = &reached };
	struct sbx_flow_target t;
	struct sbx_addr to;

	(void)state;
	assert_int_equal(sbx_pins_new(10, &core.pins), 0);
	to = destination(&core, "example.org");
	sbx_core_decide_flow(&core, SBX_PROTO_TCP, &to, 443, 0, &t);
	assert_int_equal(sbx_core_judge_again(&core, &o, &t).action, SBX_ALLOW);
	core.own = &reached;
	core.n_own = 1;
	assert_int_equal(sbx_core_judge_again(&core, &o, &t).reason, SBX_REASON_ADDRESS_CLASS);
	core.n_own = 0;
	core.own_unknown = true;
	assert_int_equal(sbx_core_judge_again(&core, &o, &t).action, SBX_DENY);
	sbx_pins_free(core.pins);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
