/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The order of decision, as tables. An input is a list of statements, separated by ';':
 *
 *     floor P | stored floor P | rule PRIORITY allow|deny P | live allow|deny P | allow P | deny P
 *     airgap | mode M | default A | workspace A | read-only HOST | secret HOST
 *     private CIDR | admit CIDR
 *
 * A flow is NAME:PORT[/udp], ADDRESS:PORT (IPv6 in brackets), NAME (a question), or =ADDRESS:PORT
 * (a resolved address). The verdict is the reason's word and the text of the rule that decided.
 */
#include "tests/unit/policy_world.h"

#include "policy/decide/live.h"
#include "policy/decide/rules.h"
#include "policy/profile/net_entry.h"

#define N(v) (sizeof(v) / sizeof(*(v)))

struct input {
	struct sbx_profile *profile;
	struct sbx_system_policy *system;
	struct sbx_rules rules;
	struct sbx_live live;
};

static void input_fini(struct input *in)
{
	sbx_profile_free(in->profile);
	sbx_system_policy_free(in->system);
	sbx_rules_fini(&in->rules);
	sbx_live_fini(&in->live);
}

static enum sbx_action action_of(const char *word)
{
	assert_true(strcmp(word, "allow") == 0 || strcmp(word, "deny") == 0);
	return *word == 'a' ? SBX_ALLOW : SBX_DENY;
}

static void add_rule(struct input *in, enum sbx_action action, int priority, bool is_floor,
		     const char *pattern)
{
	struct sbx_err err = { 0 };

	if (sbx_rules_add(&in->rules, (int64_t)in->rules.n + 1, SBX_RULE_NETWORK, action, priority,
			  is_floor, is_floor, pattern, &err) != 0)
		fail_msg("%s", err.msg);
}

static void add_list(struct sbx_net_list *list, const char *pattern, const char *what)
{
	struct sbx_err err = { 0 };

	if (sbx_net_list_add_pattern(list, pattern, what, &err) != 0)
		fail_msg("%s", err.msg);
}

static void add_live(struct input *in, enum sbx_action action, const char *pattern)
{
	char field[SBX_LIVE_FIELD_MAX];

	assert_int_equal(sbx_live_add(&in->live, action, "x", &pattern, 1, field, NULL), 0);
}

static void statement(struct input *in, const char *text)
{
	char a[16] = "", p[128] = "";
	int priority;

	if (sscanf(text, "rule %d %15s %127s", &priority, a, p) == 3)
		add_rule(in, action_of(a), priority, false, p);
	else if (sscanf(text, "stored floor %127s", p) == 1)
		add_rule(in, SBX_DENY, 100, true, p);
	else if (sscanf(text, "floor %127s", p) == 1)
		add_list(&in->system->floors, p, "system.yaml");
	else if (sscanf(text, "admit %127s", p) == 1)
		add_list(&in->system->admit, p, "system.yaml");
	else if (sscanf(text, "live %15s %127s", a, p) == 2)
		add_live(in, action_of(a), p);
	else if (sscanf(text, "default %15s", a) == 1)
		in->profile->network.default_action = action_of(a);
	else if (sscanf(text, "workspace %15s", a) == 1)
		in->rules.default_set = true, in->rules.default_action = action_of(a);
	else if (sscanf(text, "secret %127s", p) == 1) {
		char flag[160];

		snprintf(flag, sizeof(flag), "T=env:T@%s", p);
		assert_int_equal(sbx_profile_add_secret_flag(in->profile, flag, NULL), 0);
	} else if (strcmp(text, "mode full") == 0)
		in->profile->network.mode = SBX_MODE_FULL;
	else if (strcmp(text, "mode offline") == 0)
		in->profile->network.mode = SBX_MODE_OFFLINE;
	else if (strcmp(text, "airgap") == 0)
		in->live.air_gapped = true;
	else if (sscanf(text, "allow %127s", p) == 1)
		add_list(&in->profile->network.allow, p, "--allow");
	else if (sscanf(text, "deny %127s", p) == 1)
		add_list(&in->profile->network.deny, p, "--deny");
	else if (sscanf(text, "private %127s", p) == 1) {
		struct sbx_net_list *list = &in->profile->network.allow;

		add_list(list, p, "--allow");
		list->v[list->n - 1].private_ok = true;
	} else if (sscanf(text, "read-only %127s", p) == 1) {
		struct sbx_net_list *list = &in->profile->network.allow;

		add_list(list, p, "--allow");
		list->v[list->n - 1].access = SBX_ACCESS_READ_ONLY;
	} else {
		fail_msg("no statement: %s", text);
	}
}

static void input_of(const char *text, struct input *in)
{
	char copy[512], *rest = copy;

	memset(in, 0, sizeof(*in));
	in->profile = good_profile("{}");
	in->system = sbx_system_policy_default();
	snprintf(copy, sizeof(copy), "%s", text);
	for (char *s = strsep(&rest, ";"); s; s = strsep(&rest, ";")) {
		s += strspn(s, " ");
		if (*s)
			statement(in, s);
	}
	assert_int_equal(sbx_profile_settle_secrets(in->profile, NULL), 0);
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

static struct sbx_verdict ask(const struct sbx_policy *p, const char *flow)
{
	bool resolved = *flow == '=';
	enum sbx_proto proto = SBX_PROTO_TCP;
	char text[128], *colon, *slash, *host = text;
	struct sbx_addr addr;
	unsigned port;

	snprintf(text, sizeof(text), "%s", flow + resolved);
	colon = strrchr(text, ':');
	if (!colon)
		return sbx_policy_decide_name(p, text, SBX_PROTO_DNS, 0);
	*colon++ = '\0';
	slash = strchr(colon, '/');
	if (slash)
		proto = SBX_PROTO_UDP;
	port = (unsigned)strtoul(colon, NULL, 10);
	if (*host == '[') {
		host++;
		host[strlen(host) - 1] = '\0';
	}
	if (sbx_addr_parse(host, &addr) != 0)
		return sbx_policy_decide_name(p, host, proto, (uint16_t)port);
	return resolved ? sbx_policy_decide_resolved(p, &addr, proto, (uint16_t)port, false) :
			  sbx_policy_decide_addr(p, &addr, proto, (uint16_t)port);
}

struct row {
	const char *input, *flow, *want;
};

static void check_row(const struct row *row)
{
	SBX_CLEANUP(input_fini) struct input in;
	SBX_CLEANUP(world_fini) struct world w = { 0 };
	struct sbx_verdict v;
	char got[256];
	const char *rule;

	input_of(row->input, &in);
	w = compiled(&in);
	v = ask(w.p, row->flow);
	rule = sbx_policy_rule_text(w.p, v.rule);
	snprintf(got, sizeof(got), "%s%s%s%s", sbx_reason_str(v.reason), *rule ? " " : "", rule,
		 v.terminate ? " (terminated)" : "");
	if (strcmp(got, row->want) != 0)
		fail_msg("'%s', %s: '%s', expected '%s'", row->input, row->flow, got, row->want);
	assert_int_equal(v.action == SBX_ALLOW, strstr(row->want, "_allow") != NULL);
}

static void check_rows(const struct row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++)
		check_row(&rows[i]);
}

/* Each layer over each other, by an allow over a deny and the other way round. */
static void test_each_over_each(void **state)
{
	static const struct row rows[] = {
		{ "", "a.test:443", "default_deny" },
		{ "allow a.test", "a.test:443", "list_allow a.test" },
		{ "allow a.test; floor a.test", "a.test:443", "floor floor a.test" },
		{ "allow a.test; stored floor a.test", "a.test:443", "floor floor a.test" },
		{ "rule 0 allow a.test; floor a.test", "a.test:443", "floor floor a.test" },
		{ "rule 0 allow a.test; stored floor *.test", "a.test:443", "floor floor *.test" },
		{ "live allow a.test; floor a.test", "a.test:443", "floor floor a.test" },
		{ "default allow; floor a.test", "a.test:443", "floor floor a.test" },
		{ "workspace allow; floor a.test", "a.test:443", "floor floor a.test" },
		{ "rule 9 deny a.test; live allow a.test", "a.test:443",
		  "rule_deny rule 1 a.test" },
		{ "rule 9 allow a.test; live deny a.test", "a.test:443",
		  "rule_allow rule 1 a.test" },
		{ "rule 9 deny a.test; allow a.test", "a.test:443", "rule_deny rule 1 a.test" },
		{ "rule 9 allow a.test; deny a.test", "a.test:443", "rule_allow rule 1 a.test" },
		{ "rule 9 deny a.test; default allow", "a.test:443", "rule_deny rule 1 a.test" },
		{ "live deny a.test; allow a.test", "a.test:443", "live_deny live a.test" },
		{ "live allow a.test; deny a.test", "a.test:443", "live_allow live a.test" },
		{ "live deny a.test; default allow", "a.test:443", "live_deny live a.test" },
		{ "deny a.test; default allow", "a.test:443", "list_deny a.test" },
		/* A wide entry of a higher layer beats an exact one of a lower. */
		{ "rule 9 deny *.test; live allow a.test; allow a.test", "a.test:443",
		  "rule_deny rule 1 *.test" },
		{ "live deny *.test; allow a.test", "a.test:443", "live_deny live *.test" },
		/* The workspace's default takes the place of the profile's, and of mode full's. */
		{ "workspace allow", "a.test:443", "default_allow" },
		{ "workspace deny; default allow", "a.test:443", "default_deny" },
		{ "workspace deny; mode full", "a.test:443", "default_deny" },
		{ "workspace deny; mode full", "192.0.2.1:443", "literal_address" },
		{ "workspace allow", "192.0.2.1:443", "literal_address" },
		{ "mode full", "192.0.2.1:443", "default_allow" },
		{ "workspace allow; mode full", "192.0.2.1:443", "default_allow" },
	};

	(void)state;
	check_rows(rows, N(rows));
}

static void test_rules(void **state)
{
	static const struct row rows[] = {
		{ "rule 5 deny a.test; rule 4 allow a.test", "a.test:443",
		  "rule_allow rule 2 a.test" },
		{ "rule 5 allow a.test; rule 4 deny a.test", "a.test:443",
		  "rule_deny rule 2 a.test" },
		{ "rule 4 deny *.test; rule 5 allow a.test", "a.test:443",
		  "rule_deny rule 1 *.test" },
		/* Of one priority: exact names, longer wildcards, shorter ones; on a tie deny. */
		{ "rule 5 deny *.test; rule 5 allow a.test", "a.test:443",
		  "rule_allow rule 2 a.test" },
		{ "rule 5 allow *.test; rule 5 deny a.test", "a.test:443",
		  "rule_deny rule 2 a.test" },
		{ "rule 5 deny *.test; rule 5 allow *.b.test", "a.b.test:443",
		  "rule_allow rule 2 *.b.test" },
		{ "rule 5 allow a.test; rule 5 deny a.test", "a.test:443",
		  "rule_deny rule 2 a.test" },
		{ "rule 0 deny a.test; rule 0 allow a.test", "a.test:443",
		  "rule_deny rule 1 a.test" },
		{ "rule 1000000 deny a.test; allow a.test", "a.test:443",
		  "rule_deny rule 1 a.test" },
		/* A rule that does not cover the port does not decide. */
		{ "rule 1 deny a.test:22; rule 2 allow a.test:*", "a.test:443",
		  "rule_allow rule 2 a.test:1-65535" },
		{ "rule 1 deny a.test:22; rule 2 allow a.test:*", "a.test:22",
		  "rule_deny rule 1 a.test:22" },
		{ "rule 1 allow a.test", "a.test:22", "port rule 1 a.test" },
		{ "rule 1 allow a.test; allow a.test:22", "a.test:22", "list_allow a.test:22" },
		{ "rule 1 allow a.test:53/udp", "a.test:53/udp",
		  "rule_allow rule 1 a.test:53/udp" },
		{ "rule 1 allow a.test:53/udp", "a.test:53", "port rule 1 a.test:53/udp" },
		{ "rule 1 deny a.test", "a.test:9/udp", "rule_deny rule 1 a.test" },
		/* Networks: longer prefixes first. */
		{ "rule 5 deny 192.0.2.0/24; rule 5 allow 192.0.2.1", "192.0.2.1:9",
		  "rule_allow rule 2 192.0.2.1" },
		{ "rule 4 deny 192.0.2.0/24; rule 5 allow 192.0.2.1", "192.0.2.1:9",
		  "rule_deny rule 1 192.0.2.0/24" },
		{ "rule 5 allow 0.0.0.0/0; deny 192.0.2.1", "192.0.2.1:9",
		  "rule_allow rule 1 0.0.0.0/0" },
		{ "rule 5 deny 192.0.2.0/24; allow 64:ff9b::/96", "[64:ff9b::c000:201]:9",
		  "rule_deny rule 1 192.0.2.0/24" },
		{ "rule 5 deny 192.0.2.0/24", "[::ffff:192.0.2.1]:9",
		  "rule_deny rule 1 192.0.2.0/24" },
	};

	(void)state;
	check_rows(rows, N(rows));
}

/* A name is judged by its entries, its addresses by theirs. */
static void test_resolved(void **state)
{
	static const struct row rows[] = {
		{ "rule 1 allow a.test; rule 9 deny 192.0.2.0/24", "a.test:443",
		  "rule_allow rule 1 a.test" },
		{ "rule 1 allow a.test; rule 9 deny 192.0.2.0/24", "=192.0.2.1:443",
		  "rule_deny rule 2 192.0.2.0/24" },
		{ "rule 1 allow a.test; rule 9 deny 192.0.2.0/24", "=198.51.100.1:443",
		  "list_allow" },
		{ "live deny 192.0.2.0/24", "=192.0.2.1:443", "live_deny live 192.0.2.0/24" },
		{ "deny 192.0.2.0/24", "=192.0.2.1:443", "address_denied 192.0.2.0/24" },
		{ "deny 192.0.2.0/24; live allow 192.0.2.1", "=192.0.2.1:443",
		  "live_allow live 192.0.2.1" },
		{ "live deny 192.0.2.0/24; rule 1 allow 192.0.2.1", "=192.0.2.1:443",
		  "rule_allow rule 1 192.0.2.1" },
		{ "rule 1 allow 169.254.0.0/16", "=169.254.169.254:80",
		  "floor floor 169.254.169.254" },
		{ "rule 5 deny 192.0.2.0/24", "=64.1.1.1:443", "list_allow" },
		{ "mode offline", "=192.0.2.1:443", "air_gap" },
		{ "airgap", "=192.0.2.1:443", "air_gap" },
		{ "airgap; live allow a.test", "=192.0.2.1:443", "list_allow" },
		{ "airgap; live allow a.test; live deny 192.0.2.0/24", "=192.0.2.1:443",
		  "air_gap live 192.0.2.0/24" },
		{ "airgap; live allow a.test; rule 1 deny 192.0.2.0/24", "=192.0.2.1:443",
		  "rule_deny rule 1 192.0.2.0/24" },
	};

	(void)state;
	check_rows(rows, N(rows));
}

static void test_live(void **state)
{
	static const struct row rows[] = {
		{ "live allow a.test", "a.test:443", "live_allow live a.test" },
		{ "live allow a.test", "a.test", "live_allow live a.test" },
		{ "live allow a.test", "b.test:443", "default_deny" },
		{ "live allow a.test; live deny a.test", "a.test:443", "live_deny live a.test" },
		{ "live allow a.test; live deny *.test", "a.test:443", "live_allow live a.test" },
		{ "live deny a.test:22; live allow a.test:*", "a.test:22",
		  "live_deny live a.test:22" },
		{ "live deny a.test:22; live allow a.test:*", "a.test:23",
		  "live_allow live a.test:1-65535" },
		{ "live allow 192.0.2.0/24", "192.0.2.1:9", "live_allow live 192.0.2.0/24" },
		{ "live allow 192.0.2.0/24:443", "192.0.2.1:9", "port live 192.0.2.0/24:443" },
	};

	(void)state;
	check_rows(rows, N(rows));
}

static void test_air_gap(void **state)
{
	static const struct row rows[] = {
		{ "airgap; allow a.test", "a.test:443", "air_gap" },
		{ "airgap; allow a.test", "a.test", "air_gap" },
		{ "airgap; default allow", "a.test:443", "air_gap" },
		{ "airgap; workspace allow", "a.test:443", "air_gap" },
		{ "airgap; mode full", "192.0.2.1:443", "air_gap" },
		{ "airgap; rule 0 allow a.test", "a.test:443", "air_gap" },
		{ "airgap; rule 0 allow a.test", "a.test", "air_gap" },
		{ "airgap; live allow a.test", "a.test:443", "live_allow live a.test" },
		{ "airgap; live allow a.test", "a.test", "live_allow live a.test" },
		{ "airgap; live allow a.test", "a.test:22", "air_gap" },
		{ "airgap; live allow a.test; live deny a.test", "a.test:443",
		  "air_gap live a.test" },
		{ "airgap; live allow *.test; live deny a.test", "a.test", "air_gap" },
		{ "airgap; live allow a.test; live deny *.test", "a.test:443",
		  "live_allow live a.test" },
		{ "airgap; live allow a.test; rule 5 deny a.test", "a.test:443",
		  "rule_deny rule 1 a.test" },
		{ "airgap; live allow a.test; rule 5 deny a.test", "a.test",
		  "rule_deny rule 1 a.test" },
		/* A rule that allows opens nothing, and still beats a later one that denies. */
		{ "airgap; live allow a.test; rule 5 deny a.test; rule 4 allow a.test",
		  "a.test:443", "live_allow live a.test" },
		{ "airgap; live allow a.test; rule 5 deny a.test; rule 4 allow a.test", "a.test",
		  "live_allow live a.test" },
		{ "airgap; rule 4 allow a.test", "a.test:443", "air_gap" },
		{ "airgap; live allow 192.0.2.0/24", "192.0.2.1:9",
		  "live_allow live 192.0.2.0/24" },
		{ "airgap; allow 192.0.2.0/24", "192.0.2.1:9", "air_gap" },
		{ "airgap; live allow ipinfo.io; live allow *.ipinfo.io", "ipinfo.io:443",
		  "floor floor ipinfo.io" },
		{ "airgap; live allow *.ipinfo.io", "www.ipinfo.io:443",
		  "floor floor *.ipinfo.io" },
		{ "airgap; live allow 169.254.0.0/16", "169.254.169.254:80",
		  "floor floor 169.254.169.254" },
		/* Nothing lifts mode offline. */
		{ "mode offline; live allow a.test; rule 0 allow a.test; workspace allow",
		  "a.test:443", "air_gap" },
		{ "mode offline; live allow a.test; rule 0 allow a.test", "a.test", "air_gap" },
		{ "mode offline; airgap; live allow a.test", "a.test:443", "air_gap" },
		{ "mode offline; live allow 192.0.2.0/24", "192.0.2.1:9", "air_gap" },
		{ "mode offline; rule 5 deny a.test", "a.test", "rule_deny rule 1 a.test" },
		{ "mode offline; floor a.test", "a.test", "floor floor a.test" },
	};

	(void)state;
	check_rows(rows, N(rows));
}

/* A question is about every port: denies add up, an allow must have a port left. */
static void test_questions(void **state)
{
	static const struct row rows[] = {
		{ "rule 1 allow a.test", "a.test", "rule_allow rule 1 a.test" },
		{ "rule 1 deny a.test; allow a.test", "a.test", "rule_deny rule 1 a.test" },
		{ "rule 1 deny a.test:443; allow a.test", "a.test", "list_allow a.test" },
		{ "rule 1 deny a.test:443,80; allow a.test", "a.test",
		  "rule_deny rule 1 a.test:443,80" },
		{ "rule 1 deny a.test:1-1000; rule 2 deny *.test:1001-65535; default allow",
		  "a.test", "rule_deny rule 1 a.test:1-1000" },
		{ "rule 1 deny a.test:1-1000; rule 2 deny *.test:1002-65535; default allow",
		  "a.test", "default_allow" },
		{ "rule 2 deny a.test; rule 1 allow a.test:22", "a.test",
		  "rule_allow rule 2 a.test:22" },
		{ "floor a.test:443,80; allow a.test", "a.test", "floor floor a.test:443,80" },
		{ "floor a.test:25", "a.test", "default_deny" },
		/* The deny that refuses most is named. */
		{ "rule 1 deny a.test:22; rule 2 deny *.test; default allow", "a.test",
		  "rule_deny rule 2 *.test" },
		{ "live deny *.test; rule 5 allow a.test", "a.test", "rule_allow rule 1 a.test" },
	};

	(void)state;
	check_rows(rows, N(rows));
}

/* The profile's requests are judged however the name was allowed. */
static void test_terminated(void **state)
{
	static const struct row rows[] = {
		{ "read-only a.test", "a.test:443", "list_allow a.test (terminated)" },
		{ "read-only a.test; rule 1 allow a.test", "a.test:443",
		  "rule_allow rule 1 a.test (terminated)" },
		{ "read-only a.test; rule 1 allow *.test:*", "a.test:8443",
		  "rule_allow rule 1 *.test:1-65535 (terminated)" },
		{ "read-only *.test; rule 1 allow a.b.test:22", "a.b.test:22",
		  "rule_allow rule 1 a.b.test:22 (terminated)" },
		{ "read-only a.test; live allow a.test:8443", "a.test:8443",
		  "live_allow live a.test:8443 (terminated)" },
		{ "read-only a.test; airgap; live allow a.test", "a.test:443",
		  "live_allow live a.test (terminated)" },
		{ "read-only a.test; rule 1 allow b.test", "b.test:443",
		  "rule_allow rule 1 b.test" },
		{ "read-only a.test; rule 1 allow a.test:443/udp", "a.test:443/udp",
		  "not_terminated a.test" },
		{ "read-only a.test; deny a.test:22; rule 1 allow a.test:22", "a.test:22",
		  "rule_allow rule 1 a.test:22 (terminated)" },
		/* A flow that the profile itself carries unread stays so. */
		{ "read-only *.test; allow a.test:22; rule 1 allow a.test:*", "a.test:22",
		  "rule_allow rule 1 a.test:1-65535" },
		{ "read-only a.test; workspace allow", "a.test:22", "port a.test" },
		/* A secret's host that only the profile's default allowed. */
		{ "default allow; secret a.test", "a.test:443", "list_allow a.test (terminated)" },
		{ "default allow; secret a.test; workspace deny", "a.test:443", "default_deny" },
		{ "default allow; secret a.test; workspace deny", "a.test", "default_deny" },
		{ "default allow; secret a.test; workspace deny; rule 1 allow a.test:8443",
		  "a.test:8443", "rule_allow rule 1 a.test:8443 (terminated)" },
	};

	(void)state;
	check_rows(rows, N(rows));
}

/* Rules and live lists have no `private:`. */
static void test_private(void **state)
{
	static const struct row rows[] = {
		{ "rule 1 allow 10.0.0.0/8", "10.1.2.3:443", "address_class rule 1 10.0.0.0/8" },
		{ "live allow 10.0.0.0/8", "10.1.2.3:443", "address_class live 10.0.0.0/8" },
		{ "private 10.1.0.0/16", "10.1.2.3:443", "list_allow 10.1.0.0/16" },
		{ "private 10.1.0.0/16; rule 1 allow 10.0.0.0/8", "10.1.2.3:443",
		  "rule_allow rule 1 10.0.0.0/8" },
		{ "private 10.1.0.0/16:22; rule 1 allow 10.0.0.0/8", "10.1.2.3:443",
		  "address_class rule 1 10.0.0.0/8" },
		{ "admit 10.1.0.0/16; rule 1 allow 10.0.0.0/8", "10.1.2.3:443",
		  "rule_allow rule 1 10.0.0.0/8" },
		{ "rule 1 allow 10.0.0.0/8", "=10.1.2.3:443", "address_class" },
		{ "private 10.1.0.0/16; rule 1 allow 10.0.0.0/8", "=10.1.2.3:443",
		  "rule_allow rule 1 10.0.0.0/8" },
	};

	(void)state;
	check_rows(rows, N(rows));
}

/* --- attributes, networks, hash, origins --- */

static void test_checks(void **state)
{
	SBX_CLEANUP(input_fini) struct input in;
	SBX_CLEANUP(world_fini) struct world w = { 0 };
	struct sbx_verdict v;

	(void)state;
	input_of("rule 1 allow *.test:*; read-only r.test; allow n.test; private p.example", &in);
	in.profile->network.allow.v[1].check_set = true; /* n.test */
	in.profile->network.allow.v[1].check = SBX_CHECK_NONE;
	in.profile->network.allow.v[1].private_ok = true;
	w = compiled(&in);
	v = ask(w.p, "x.test:443");
	assert_true(v.check == SBX_CHECK_TLS && !v.private_ok);
	assert_int_equal(ask(w.p, "x.test:80").check, SBX_CHECK_HTTP);
	assert_int_equal(ask(w.p, "x.test:22").check, SBX_CHECK_NONE);
	assert_int_equal(ask(w.p, "r.test:80").check, SBX_CHECK_HTTP);
	assert_int_equal(ask(w.p, "r.test:22").check, SBX_CHECK_TLS);
	assert_int_equal(ask(w.p, "r.test:22").terminate, 1);
	v = ask(w.p, "n.test:443"); /* as its own entry says */
	assert_true(v.check == SBX_CHECK_NONE && v.private_ok);
	v = ask(w.p, "n.test:22");
	assert_true(v.check == SBX_CHECK_NONE && !v.private_ok);
	assert_false(ask(w.p, "n.test").private_ok); /* each flow is judged by itself */
	assert_true(ask(w.p, "p.example").private_ok);
}

static void cidrs(const char *input, const char *want)
{
	SBX_CLEANUP(input_fini) struct input in;
	SBX_CLEANUP(world_fini) struct world w = { 0 };
	struct sbx_policy_cidr c;
	char got[256] = "", addr[SBX_ADDR_STR_MAX];

	input_of(input, &in);
	w = compiled(&in);
	for (size_t i = 0; sbx_policy_cidr_at(w.p, i, &c); i++)
		snprintf(got + strlen(got), sizeof(got) - strlen(got), "%s%s/%u:%u-%u",
			 i ? " " : "", sbx_addr_format(&c.cidr.addr, addr, sizeof(addr)),
			 c.cidr.prefix, c.port_first, c.port_last);
	assert_string_equal(got, want);
}

static void test_firewall(void **state)
{
	(void)state;
	cidrs("rule 5 allow 192.0.2.0/24:443; live allow 198.51.100.0/24; allow 203.0.113.9:22; "
	      "deny 203.0.113.8; rule 6 deny 203.0.113.7; live deny 203.0.113.6",
	      "192.0.2.0/24:443-443 198.51.100.0/24:1-65535 203.0.113.9/32:22-22");
	cidrs("airgap; rule 5 allow 192.0.2.0/24:443; live allow 198.51.100.0/24; allow "
	      "203.0.113.9:22",
	      "198.51.100.0/24:1-65535");
}

static bool udp(const char *input)
{
	SBX_CLEANUP(input_fini) struct input in;
	SBX_CLEANUP(world_fini) struct world w = { 0 };

	input_of(input, &in);
	w = compiled(&in);
	return sbx_policy_carries_udp(w.p);
}

static void test_udp(void **state)
{
	(void)state;
	assert_false(udp("allow a.test; rule 1 deny b.test:53/udp; live deny c.test"));
	assert_true(udp("allow a.test:53/udp"));
	assert_true(udp("rule 1 allow a.test:53/udp"));
	assert_true(udp("live allow a.test:53/udp"));
	assert_true(udp("workspace allow"));
	assert_true(udp("mode full"));
	assert_false(udp("mode full; workspace deny"));
	assert_false(udp("admit 10.0.0.0/8"));
}

static void hash_of(const char *input, char ret[65])
{
	SBX_CLEANUP(input_fini) struct input in;
	SBX_CLEANUP(world_fini) struct world w = { 0 };

	input_of(input, &in);
	for (size_t i = 0; strstr(input, "workspace") && i < in.rules.n; i++)
		in.rules.v[i].id += 1000; /* other rows */
	w = compiled(&in);
	sbx_policy_hash(w.p, ret);
}

static void test_hash(void **state)
{
	char a[65], b[65];

	(void)state;
	hash_of("rule 5 allow a.test; rule 6 deny b.test; workspace deny", a);
	hash_of("rule 6 deny b.test; rule 5 allow a.test; workspace deny", b);
	assert_string_equal(a, b);
	hash_of("rule 5 allow a.test; rule 7 deny b.test; workspace deny", b);
	assert_string_not_equal(a, b);
	hash_of("rule 5 allow a.test", a);
	hash_of("live allow a.test", b);
	assert_string_not_equal(a, b);
	hash_of("allow a.test", a);
	assert_string_not_equal(a, b);
	hash_of("workspace deny", a);
	hash_of("", b);
	assert_string_not_equal(a, b);
}

static void test_origins(void **state)
{
	static const char yaml[] = "network:\n  allow:\n    - a.test\n    - {host: r.test, "
				   "access: read-only}\n  deny: [\"x.test:22\"]\n";
	static const char *const want[] = {
		"floor sysfloor.test sys.yaml:1 0", "floor stored.test rule 3 3",
		"rule *.rule.test rule 1 1 20",	    "rule 192.0.2.0/24 rule 2 2 30",
		"live live.test:22 sbxctl net 0",   "profile a.test test.yaml:3 0",
		"profile r.test test.yaml:4 0",	    "profile x.test:22 test.yaml:5 0",
		"profile flag.test --allow 0",	    "admit 10.0.0.0/8 sys.yaml:2 0",
		"floor ipinfo.io shipped 0",
	};
	SBX_CLEANUP(input_fini) struct input in = { 0 };
	SBX_CLEANUP(world_fini) struct world w = { 0 };
	struct sbx_err_list *errs = calloc(1, sizeof(*errs));
	struct sbx_policy_entry e;
	unsigned n_found = 0;

	(void)state;
	in.profile = good_profile(yaml);
	assert_int_equal(sbx_system_policy_parse(sbx_span_str("floors: [sysfloor.test]\n"
							      "admit: [10.0.0.0/8]\n"),
						 "sys.yaml", errs, &in.system),
			 0);
	free(errs);
	statement(&in, "rule 20 allow *.rule.test");
	statement(&in, "rule 30 deny 192.0.2.0/24");
	statement(&in, "stored floor stored.test");
	statement(&in, "stored floor ipinfo.io"); /* the shipped one is shown */
	statement(&in, "live allow live.test:22");
	statement(&in, "allow flag.test");
	assert_int_equal(sbx_profile_settle_secrets(in.profile, NULL), 0);
	w = compiled(&in);
	for (uint32_t i = 0; sbx_policy_entry(w.p, i, &e); i++) {
		char got[512];

		snprintf(got, sizeof(got), "%s %s %s %lld", sbx_layer_str(e.layer), e.text,
			 e.origin, (long long)e.row);
		if (e.priority)
			snprintf(got + strlen(got), sizeof(got) - strlen(got), " %u", e.priority);
		for (size_t k = 0; k < N(want); k++)
			n_found += strcmp(got, want[k]) == 0;
		assert_int_equal(
			e.action == SBX_ALLOW,
			e.layer == SBX_LAYER_ADMIT || e.layer == SBX_LAYER_LIVE ||
				(e.layer == SBX_LAYER_RULE && !e.is_cidr) ||
				(e.layer == SBX_LAYER_PROFILE && strcmp(e.text, "x.test:22") != 0));
		assert_int_equal(e.is_cidr, e.cidr.addr.family != 0);
	}
	assert_int_equal(n_found, N(want));
	assert_false(sbx_policy_entry(w.p, UINT32_MAX, &e));
}

/* --- answers --- */

static void changes(const char *input, const char *name, const char *want)
{
	SBX_CLEANUP(input_fini) struct input in;
	SBX_CLEANUP(world_fini) struct world w = { 0 };
	struct sbx_policy_change c[SBX_CHANGES_MAX];
	struct sbx_policy_asked asked = {
		.proto = SBX_PROTO_TCP, .port = 443, .workspace = "lab", .id = "0123456789ab"
	};
	char got[1024] = "";
	struct sbx_addr addr;
	struct sbx_verdict v;
	size_t n;

	input_of(input, &in);
	w = compiled(&in);
	if (sbx_addr_parse(name, &addr) == 0) {
		asked.addr = &addr;
		v = sbx_policy_decide_addr(w.p, &addr, asked.proto, asked.port);
	} else {
		asked.name = name;
		v = sbx_policy_decide_name(w.p, name, asked.proto, asked.port);
	}
	n = sbx_policy_changes(w.p, &asked, &v, c);
	for (size_t i = 0; i < n; i++)
		snprintf(got + strlen(got), sizeof(got) - strlen(got), "%s\n", c[i].text);
	assert_string_equal(got, want);
}

#define ADD "sbxctl rules add --workspace lab --type network --action "
static void test_changes(void **state)
{
	(void)state;
	changes("", "a.test",
		"--allow a.test\nnetwork.allow: - a.test\nsbxctl net 0123456789ab --allow "
		"a.test\n" ADD "allow --priority 100 a.test\n");
	changes("", "2001:db8::1",
		"--allow '[2001:db8::1]:443'\nnetwork.allow: - \"[2001:db8::1]:443\"\n"
		"sbxctl net 0123456789ab --allow '[2001:db8::1]:443'\n" ADD
		"allow --priority 100 '[2001:db8::1]:443'\n");
	changes("floor a.test", "a.test", "");
	changes("mode offline", "a.test", "");
	changes("airgap", "a.test", "sbxctl net 0123456789ab --allow a.test\n");
	changes("airgap; allow a.test", "a.test",
		"sbxctl net 0123456789ab --allow a.test\nsbxctl net 0123456789ab --no-air-gap\n");
	changes("rule 7 deny *.test; allow a.test", "a.test",
		"sbxctl rules rm 1\n" ADD "allow --priority 6 a.test\n");
	changes("rule 0 deny a.test", "a.test", "");
	changes("live deny *.test; allow a.test", "a.test",
		"sbxctl net 0123456789ab --allow a.test\nremove the deny entry '*.test' (sbxctl "
		"net)\n" ADD "allow --priority 100 a.test\n");
	changes("deny a.test; default allow", "a.test",
		"remove the deny entry 'a.test' (--deny)\nsbxctl net 0123456789ab --allow "
		"a.test\n" ADD "allow --priority 100 a.test\n");
	/* A second row would deny still. */
	changes("rule 7 deny a.test; rule 7 deny a.test", "a.test",
		ADD "allow --priority 6 a.test\n");
	changes("deny 192.0.2.0/24; mode full", "192.0.2.1",
		"--allow 192.0.2.1:443\nremove the deny entry '192.0.2.0/24' (--deny)\nsbxctl net "
		"0123456789ab --allow 192.0.2.1:443\n" ADD "allow --priority 100 192.0.2.1:443\n");
	changes("deny 192.0.2.1; mode full", "192.0.2.1",
		"remove the deny entry '192.0.2.1' (--deny)\nsbxctl net 0123456789ab --allow "
		"192.0.2.1:443\n" ADD "allow --priority 100 192.0.2.1:443\n");
	changes("deny 192.0.2.0/24; allow 64:ff9b::/96", "64:ff9b::c000:201",
		"remove the deny entry '192.0.2.0/24' (--deny)\n");
	changes("rule 1 allow 10.0.0.0/8", "10.1.2.3",
		"an entry of network.allow with `private: true` for this address, or `admit` in "
		"system.yaml\n");
	changes("", "10.1.2.3",
		"an entry of network.allow with `private: true` for this address\n");
	changes("airgap", "10.1.2.3", "");
	changes("rule 1 allow 169.254.0.0/16", "169.254.1.1", "");
	changes("", "169.254.1.1", "");
	changes("rule 7 allow a.test", "a.test",
		"sbxctl rules rm 1\n" ADD "deny --priority 7 a.test\n");
	changes("live allow a.test", "a.test",
		"sbxctl net 0123456789ab --deny a.test\n" ADD "deny --priority 100 a.test\n");
	changes("allow a.test", "a.test",
		"--deny a.test\nnetwork.deny: - a.test\nsbxctl net 0123456789ab --deny a.test\n" ADD
		"deny --priority 100 a.test\n");
}

static void matches(const char *input, const char *name, uint16_t port, const char *want)
{
	SBX_CLEANUP(input_fini) struct input in;
	SBX_CLEANUP(world_fini) struct world w = { 0 };
	char got[512] = "";
	struct sbx_addr addr;
	uint32_t v[16];
	size_t n;

	input_of(input, &in);
	w = compiled(&in);
	n = sbx_addr_parse(name, &addr) == 0 ?
		    sbx_policy_matches_addr(w.p, &addr, SBX_PROTO_TCP, port, v, N(v)) :
		    sbx_policy_matches_name(w.p, name, SBX_PROTO_TCP, port, v, N(v));
	assert_true(n <= N(v));
	for (size_t i = 0; i < n; i++)
		snprintf(got + strlen(got), sizeof(got) - strlen(got), "%s%s", i ? ", " : "",
			 sbx_policy_rule_text(w.p, v[i]));
	assert_string_equal(got, want);
}

static void test_matches(void **state)
{
	static const char all[] =
		"floor a.test:25; rule 9 allow a.test; rule 5 deny *.test; rule 9 "
		"deny *.test:443; live allow a.test:22; live deny *.test; allow "
		"a.test; deny *.test; allow b.test";

	(void)state;
	matches(all, "a.test", 443,
		"rule 2 *.test, rule 1 a.test, rule 3 *.test:443, live *.test, a.test, *.test");
	matches(all, "a.test", 0,
		"floor a.test:25, rule 2 *.test, rule 1 a.test, rule 3 *.test:443, live a.test:22, "
		"live *.test, a.test, *.test");
	matches(all, "c.test", 22, "rule 2 *.test, live *.test, *.test");
	matches(all, "other.example", 443, "");
	matches("rule 2 allow 0.0.0.0/0; rule 2 deny 192.0.2.0/24; live allow 192.0.2.1; deny "
		"192.0.2.0/24:443; admit 10.0.0.0/8",
		"192.0.2.1", 443,
		"rule 2 192.0.2.0/24, rule 1 0.0.0.0/0, live 192.0.2.1, 192.0.2.0/24:443");
	matches("rule 2 deny 192.0.2.0/24; allow 64:ff9b::/96", "64:ff9b::c000:201", 443,
		"rule 1 192.0.2.0/24, 64:ff9b::/96");
}

static void explains(const char *input, const char *flow, const char *want)
{
	SBX_CLEANUP(input_fini) struct input in;
	SBX_CLEANUP(world_fini) struct world w = { 0 };
	struct sbx_verdict v;
	char text[512];

	input_of(input, &in);
	w = compiled(&in);
	v = ask(w.p, flow);
	sbx_policy_explain(w.p, &v, flow, text, sizeof(text));
	if (!strstr(text, want))
		fail_msg("'%s', expected '%s'", text, want);
}

static void test_explain(void **state)
{
	(void)state;
	explains("rule 1 allow a.test", "a.test:443", "allowed by the workspace's 'rule 1 a.test'");
	explains("rule 1 deny a.test", "a.test:443",
		 "refused by the workspace's 'rule 1 a.test'; `sbxctl rules`");
	explains("live allow a.test", "a.test:443", "since the sandbox was started: 'live a.test'");
	explains("live deny a.test", "a.test:443", "'live a.test'; `sbxctl net`");
	explains("workspace allow", "a.test:443", "the workspace's default is allow");
	explains("airgap", "a.test:443", "--no-air-gap");
}

/* --- the seeds of the fuzz target --- */

/* A seed of an older version would be refused at once, and fuzz nothing. make update-golden writes
 * them. */
static void test_seeds(void **state)
{
	static const struct {
		const char *name, *input;
	} seeds[] = {
		{ "default-allow", "default allow; deny a.example; deny *.b.example:22" },
		{ "fetch",
		  "allow a.example; allow *.b.example:443,8000-9000; deny x.b.example; allow "
		  "10.1.2.0/24:5432; allow 2001:db8::/32; admit 10.0.0.0/8; floor f.example" },
		{ "full", "mode full; deny a.example; deny 192.0.2.0/24" },
		{ "offline", "mode offline; allow a.example" },
		{ "terminated", "read-only a.example; read-only *.b.example; allow c.example" },
		{ "rules",
		  "rule 1 deny a.example:22; rule 2 allow a.example:*; rule 2 deny *.example; "
		  "rule 3 allow 10.0.0.0/8; rule 3 deny 10.1.2.0/24; stored floor "
		  "y.example; read-only a.example; workspace allow" },
		{ "live",
		  "live allow a.example; live deny *.b.example; live allow 2001:db8::/32; live "
		  "deny 10.1.2.3; rule 9 deny *.b.example; allow x.b.example" },
		{ "air-gap",
		  "airgap; live allow *.b.example; live deny x.b.example:22; rule 9 allow "
		  "a.example; live allow 192.0.2.0/24" },
	};
	const char *srcdir = getenv("SBX_SRCDIR");

	(void)state;
	for (size_t i = 0; i < N(seeds); i++) {
		SBX_CLEANUP(sbx_policy_freep) struct sbx_policy *p = NULL;
		SBX_AUTO_FREE char *bytes = NULL;
		char path[4096], name[128];
		size_t n = 0;

		snprintf(name, sizeof(name), "tests/fuzz/corpus/policy_blob/%s", seeds[i].name);
		if (getenv("SBX_UPDATE_GOLDEN")) {
			SBX_CLEANUP(input_fini) struct input in;
			SBX_CLEANUP(world_fini) struct world w = { 0 };
			FILE *f;

			input_of(seeds[i].input, &in);
			w = compiled(&in);
			snprintf(path, sizeof(path), "%s/%s", srcdir ? srcdir : ".", name);
			f = fopen(path, "we");
			assert_non_null(f);
			assert_int_equal(fwrite(w.blob, 1, w.n, f), w.n);
			assert_int_equal(fclose(f), 0);
		}
		bytes = read_source_file(name, &n);
		assert_non_null(bytes);
		if (sbx_policy_load(sbx_span(bytes, n), &p) != 0)
			fail_msg("%s is of another version: make update-golden", name);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_over_each),
		cmocka_unit_test(test_rules),
		cmocka_unit_test(test_resolved),
		cmocka_unit_test(test_live),
		cmocka_unit_test(test_air_gap),
		cmocka_unit_test(test_questions),
		cmocka_unit_test(test_terminated),
		cmocka_unit_test(test_private),
		cmocka_unit_test(test_checks),
		cmocka_unit_test(test_firewall),
		cmocka_unit_test(test_udp),
		cmocka_unit_test(test_hash),
		cmocka_unit_test(test_origins),
		cmocka_unit_test(test_changes),
		cmocka_unit_test(test_seeds),
		cmocka_unit_test(test_matches),
		cmocka_unit_test(test_explain),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
