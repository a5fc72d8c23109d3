/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/unit/policy_world.h"

#include "base/hostname.h"
#include "policy/decide/policy_blob.h"
#include "policy/keys/profile_parse.h"
#include "tests/unit/embeddings.h"

#define TCP SBX_PROTO_TCP
#define UDP SBX_PROTO_UDP

static struct sbx_addr addr_of(const char *text)
{
	struct sbx_addr a;

	assert_int_equal(sbx_addr_parse(text, &a), 0);
	return a;
}

static void check(struct sbx_verdict v, const char *what, enum sbx_action action,
		  enum sbx_reason reason)
{
	if (v.action != action || v.reason != reason)
		fail_msg("%s: %s %s, expected %s %s", what, sbx_action_str(v.action),
			 sbx_reason_str(v.reason), sbx_action_str(action), sbx_reason_str(reason));
}

#define NAME(w, name, proto, port, action, reason)                                                 \
	check(sbx_policy_decide_name((w)->p, name, proto, port), name, action, SBX_REASON_##reason)
#define ADDR(w, text, proto, port, action, reason)                                                 \
	do {                                                                                       \
		struct sbx_addr a_ = addr_of(text);                                                \
		check(sbx_policy_decide_addr((w)->p, &a_, proto, port), text, action,              \
		      SBX_REASON_##reason);                                                        \
	} while (0)
#define RESOLVED(w, text, private_ok, action, reason)                                              \
	do {                                                                                       \
		struct sbx_addr a_ = addr_of(text);                                                \
		check(sbx_policy_decide_resolved((w)->p, &a_, TCP, 443, private_ok), text, action, \
		      SBX_REASON_##reason);                                                        \
	} while (0)

/* "tcp/443 udp/53", or "more" past four. */
static void ports(const struct world *w, const char *name, const char *want)
{
	struct sbx_policy_port v[4];
	size_t n = sbx_policy_name_ports(w->p, name, v, 4);
	char got[128] = "";

	for (size_t i = 0; i < n && n <= 4; i++)
		snprintf(got + strlen(got), sizeof(got) - strlen(got), "%s%s/%u", i ? " " : "",
			 sbx_proto_str(v[i].proto), v[i].port);
	assert_true(n <= 5);
	assert_string_equal(n > 4 ? "more" : got, want);
}

static void test_name_ports(void **state)
{
	SBX_CLEANUP(world_fini)
	struct world w = world_of(
		"network:\n"
		"  allow: [example.org, \"*.example.org:1000-1003\", \"b.example.org:53/udp\",\n"
		"          \"c.example.org:*\", \"d.example.org:443,1001\", ipinfo.io, "
		"\"twice.example.org:1003\"]\n"
		"  deny: [\"a.example.org:1001-1002\", \"no.example.org\"]\n",
		NULL);

	(void)state;
	ports(&w, "example.org", "tcp/443 tcp/80");
	ports(&w, "x.example.org", "tcp/1000 tcp/1001 tcp/1002 tcp/1003");
	ports(&w, "a.example.org", "tcp/1000 tcp/1003");
	ports(&w, "b.example.org", "more");
	ports(&w, "c.example.org", "more");
	ports(&w, "no.example.org", "");
	ports(&w, "other.org", "");
	ports(&w, "Example.org", "");
	ports(&w, "ipinfo.io", ""); /* a built-in floor */
	ports(&w, "twice.example.org", "tcp/1003 tcp/1000 tcp/1001 tcp/1002");
}

static void test_exact(void **state)
{
	SBX_CLEANUP(world_fini) struct world w = world_of("network: {allow: [example.org]}", NULL);

	(void)state;
	NAME(&w, "example.org", TCP, 443, SBX_ALLOW, LIST_ALLOW);
	NAME(&w, "example.org", TCP, 80, SBX_ALLOW, LIST_ALLOW);
	NAME(&w, "example.org", TCP, 0, SBX_ALLOW, LIST_ALLOW);
	NAME(&w, "example.org", SBX_PROTO_DNS, 53, SBX_ALLOW, LIST_ALLOW);
	NAME(&w, "example.org", TCP, 22, SBX_DENY, PORT);
	NAME(&w, "example.org", UDP, 443, SBX_DENY, PORT);
	NAME(&w, "example.org", SBX_PROTO_ICMP, 1, SBX_DENY, PORT);
	NAME(&w, "www.example.org", TCP, 443, SBX_DENY, DEFAULT_DENY);
	NAME(&w, "notexample.org", TCP, 443, SBX_DENY, DEFAULT_DENY);
	NAME(&w, "example.org.evil.net", TCP, 443, SBX_DENY, DEFAULT_DENY);
	NAME(&w, "org", TCP, 443, SBX_DENY, DEFAULT_DENY);
	NAME(&w, "example.com", TCP, 0, SBX_DENY, DEFAULT_DENY);
}

static void test_wildcard(void **state)
{
	SBX_CLEANUP(world_fini)
	struct world w = world_of("network: {allow: [\"*.example.org\"]}", NULL);

	(void)state;
	NAME(&w, "a.example.org", TCP, 443, SBX_ALLOW, LIST_ALLOW);
	NAME(&w, "a.b.c.d.example.org", TCP, 443, SBX_ALLOW, LIST_ALLOW);
	NAME(&w, "a.example.org", TCP, 0, SBX_ALLOW, LIST_ALLOW);
	/* Not the apex, not what only ends alike, not what only begins alike. */
	NAME(&w, "example.org", TCP, 443, SBX_DENY, DEFAULT_DENY);
	NAME(&w, "example.org", TCP, 0, SBX_DENY, DEFAULT_DENY);
	NAME(&w, "notexample.org", TCP, 443, SBX_DENY, DEFAULT_DENY);
	NAME(&w, "example.org.evil.net", TCP, 443, SBX_DENY, DEFAULT_DENY);
	NAME(&w, "a.example.orgs", TCP, 443, SBX_DENY, DEFAULT_DENY);
}

/* Callers pass a normalised name; any other text is denied, even where the default is allow. */
static void test_not_normalised(void **state)
{
	SBX_CLEANUP(world_fini)
	struct world w = world_of("network: {default: allow, deny: [evil.example]}", NULL);
	char longest[SBX_HOSTNAME_MAX + 2];

	(void)state;
	NAME(&w, "fine.example", TCP, 443, SBX_ALLOW, DEFAULT_ALLOW);
	NAME(&w, "evil.example", TCP, 443, SBX_DENY, LIST_DENY);
	for (const char *const *s =
		     (const char *const[]){ "Evil.example", "evil.example.", ".evil.example",
					    "evil..example", ".", "", "evil.example ",
					    "ev\xc3\xafl.example", "a/b.example", NULL };
	     *s; s++)
		NAME(&w, *s, TCP, 443, SBX_DENY, DEFAULT_DENY);
	/* 253 bytes of labels of one: as many as there can be. */
	for (size_t i = 0; i < sizeof(longest); i++)
		longest[i] = i % 2 ? '.' : 'a';
	longest[SBX_HOSTNAME_MAX] = '\0';
	NAME(&w, longest, TCP, 443, SBX_ALLOW, DEFAULT_ALLOW);
	longest[SBX_HOSTNAME_MAX] = 'a';
	longest[SBX_HOSTNAME_MAX + 1] = '\0';
	NAME(&w, longest, TCP, 443, SBX_DENY, DEFAULT_DENY);
}

/* Written in any case, with a dot, in any script: the same entry. */
static void test_normalised_entries(void **state)
{
	SBX_CLEANUP(world_fini)
	struct world w = world_of("network:\n  allow: [EXAMPLE.Org., \"*.B\\u00fcCHER.example\", "
				  "\"fa\\u00df.example\"]\n",
				  NULL);

	(void)state;
	NAME(&w, "example.org", TCP, 443, SBX_ALLOW, LIST_ALLOW);
	NAME(&w, "www.xn--bcher-kva.example", TCP, 443, SBX_ALLOW, LIST_ALLOW);
	NAME(&w, "xn--bcher-kva.example", TCP, 443, SBX_DENY, DEFAULT_DENY);
	NAME(&w, "xn--fa-hia.example", TCP, 443, SBX_ALLOW, LIST_ALLOW);
	NAME(&w, "fass.example", TCP, 443, SBX_DENY, DEFAULT_DENY);
}

static void test_specificity(void **state)
{
	SBX_CLEANUP(world_fini)
	struct world w = world_of("network:\n"
				  "  allow: [\"*.example.org\", \"*.a.b.example.org\","
				  " tie.example, \"*.tie2.example\", x.deep.example]\n"
				  "  deny: [\"*.b.example.org\", x.a.b.example.org, tie.example, "
				  "\"*.tie2.example\", \"*.deep.example\"]\n",
				  NULL);

	(void)state;
	NAME(&w, "c.example.org", TCP, 443, SBX_ALLOW, LIST_ALLOW);
	NAME(&w, "b.example.org", TCP, 443, SBX_ALLOW, LIST_ALLOW);
	NAME(&w, "c.b.example.org", TCP, 443, SBX_DENY, LIST_DENY);
	NAME(&w, "c.b.example.org", TCP, 0, SBX_DENY, LIST_DENY);
	NAME(&w, "c.a.b.example.org", TCP, 443, SBX_ALLOW, LIST_ALLOW);
	NAME(&w, "c.a.b.example.org", TCP, 0, SBX_ALLOW, LIST_ALLOW);
	NAME(&w, "x.a.b.example.org", TCP, 443, SBX_DENY, LIST_DENY);
	NAME(&w, "x.a.b.example.org", TCP, 0, SBX_DENY, LIST_DENY);
	/* On a tie deny. */
	NAME(&w, "tie.example", TCP, 443, SBX_DENY, LIST_DENY);
	NAME(&w, "tie.example", TCP, 0, SBX_DENY, LIST_DENY);
	NAME(&w, "a.tie2.example", TCP, 443, SBX_DENY, LIST_DENY);
	/* Exact before wildcard. */
	NAME(&w, "x.deep.example", TCP, 443, SBX_ALLOW, LIST_ALLOW);
	NAME(&w, "y.deep.example", TCP, 443, SBX_DENY, LIST_DENY);
}

static void test_ports(void **state)
{
	SBX_CLEANUP(world_fini)
	struct world w = world_of(
		"network:\n"
		"  allow: [\"a.example:443\", \"b.example:22,8000-8100\", \"c.example:53/udp\","
		" \"d.example:*\", \"*.e.example:22\", \"f.e.example:443\", \"g.example:443\"]\n"
		"  deny: [\"d.example:25\", \"g.example:443\", \"b.example:8050/udp\"]\n",
		NULL);

	(void)state;
	NAME(&w, "a.example", TCP, 443, SBX_ALLOW, LIST_ALLOW);
	NAME(&w, "a.example", TCP, 80, SBX_DENY, PORT);
	NAME(&w, "b.example", TCP, 22, SBX_ALLOW, LIST_ALLOW);
	NAME(&w, "b.example", TCP, 7999, SBX_DENY, PORT);
	NAME(&w, "b.example", TCP, 8000, SBX_ALLOW, LIST_ALLOW);
	NAME(&w, "b.example", TCP, 8100, SBX_ALLOW, LIST_ALLOW);
	NAME(&w, "b.example", TCP, 8101, SBX_DENY, PORT);
	NAME(&w, "b.example", TCP, 8050, SBX_ALLOW, LIST_ALLOW);
	NAME(&w, "b.example", UDP, 8050, SBX_DENY, LIST_DENY);
	NAME(&w, "b.example", TCP, 443, SBX_DENY, PORT);
	NAME(&w, "c.example", UDP, 53, SBX_ALLOW, LIST_ALLOW);
	NAME(&w, "c.example", TCP, 53, SBX_DENY, PORT);
	NAME(&w, "c.example", TCP, 0, SBX_ALLOW, LIST_ALLOW);
	NAME(&w, "d.example", TCP, 1, SBX_ALLOW, LIST_ALLOW);
	NAME(&w, "d.example", TCP, 65535, SBX_ALLOW, LIST_ALLOW);
	NAME(&w, "d.example", TCP, 25, SBX_DENY, LIST_DENY);
	NAME(&w, "d.example", TCP, 0, SBX_ALLOW, LIST_ALLOW);
	/* An entry that is for another port leaves the name to the next. */
	NAME(&w, "f.e.example", TCP, 443, SBX_ALLOW, LIST_ALLOW);
	NAME(&w, "f.e.example", TCP, 22, SBX_ALLOW, LIST_ALLOW);
	NAME(&w, "f.e.example", TCP, 80, SBX_DENY, PORT);
	/* Allowed and denied on the same only port: the question is refused too. */
	NAME(&w, "g.example", TCP, 443, SBX_DENY, LIST_DENY);
	NAME(&w, "g.example", TCP, 0, SBX_DENY, LIST_DENY);
}

static void test_verdict_fields(void **state)
{
	SBX_CLEANUP(world_fini)
	struct world w = world_of(
		"network:\n"
		"  allow:\n"
		"    - {host: git.corp.example, ports: [22, 443], private: true, check: none}\n"
		"    - {host: alt.example, ports: [8443, 80], check: tls}\n"
		"    - plain.example:443,80,25\n"
		"    - plain.example:443/udp\n",
		NULL);
	struct sbx_verdict v;

	(void)state;
	v = sbx_policy_decide_name(w.p, "git.corp.example", TCP, 443);
	assert_true(v.private_ok);
	assert_int_equal(v.check, SBX_CHECK_NONE);
	assert_string_equal(sbx_policy_rule_text(w.p, v.rule), "git.corp.example:22,443");
	assert_int_equal(sbx_policy_decide_name(w.p, "alt.example", TCP, 8443).check,
			 SBX_CHECK_TLS);
	assert_int_equal(sbx_policy_decide_name(w.p, "alt.example", TCP, 80).check, SBX_CHECK_TLS);
	v = sbx_policy_decide_name(w.p, "plain.example", TCP, 443);
	assert_false(v.private_ok);
	assert_int_equal(v.check, SBX_CHECK_TLS);
	assert_int_equal(sbx_policy_decide_name(w.p, "plain.example", TCP, 80).check,
			 SBX_CHECK_HTTP);
	assert_int_equal(sbx_policy_decide_name(w.p, "plain.example", TCP, 25).check,
			 SBX_CHECK_NONE);
	v = sbx_policy_decide_name(w.p, "plain.example", UDP, 443);
	assert_int_equal(v.action, SBX_ALLOW);
	assert_int_equal(v.check, SBX_CHECK_NONE);
	v = sbx_policy_decide_name(w.p, "other.example", TCP, 443);
	assert_int_equal(v.rule, UINT32_MAX);
	assert_string_equal(sbx_policy_rule_text(w.p, v.rule), "");
	assert_int_equal(sbx_policy_generation(w.p), 7);
}

/* A deny without ports is for all of them and both protocols; with them, for those. */
static void test_deny_is_wide(void **state)
{
	SBX_CLEANUP(world_fini)
	struct world w = world_of(
		"network: {default: allow, deny: [a.example, \"b.example:25\", "
		"\"*.c.example/udp\", \"d.example:443/tcp\"]}",
		NULL);

	(void)state;
	NAME(&w, "a.example", TCP, 8443, SBX_DENY, LIST_DENY);
	NAME(&w, "a.example", UDP, 443, SBX_DENY, LIST_DENY);
	NAME(&w, "a.example", TCP, 0, SBX_DENY, LIST_DENY);
	NAME(&w, "b.example", TCP, 25, SBX_DENY, LIST_DENY);
	NAME(&w, "b.example", UDP, 25, SBX_DENY, LIST_DENY);
	NAME(&w, "b.example", TCP, 443, SBX_ALLOW, DEFAULT_ALLOW);
	NAME(&w, "b.example", TCP, 0, SBX_ALLOW, DEFAULT_ALLOW);
	NAME(&w, "x.c.example", UDP, 443, SBX_DENY, LIST_DENY);
	NAME(&w, "x.c.example", TCP, 443, SBX_ALLOW, DEFAULT_ALLOW);
	NAME(&w, "d.example", UDP, 443, SBX_ALLOW, DEFAULT_ALLOW);
	NAME(&w, "d.example", TCP, 443, SBX_DENY, LIST_DENY);
	assert_int_equal(sbx_policy_decide_name(w.p, "z.example", TCP, 443).check, SBX_CHECK_TLS);
}

static const char *const floor_names[] = {
	"ipinfo.io",
	"www.ipinfo.io",
	"a.b.ipinfo.io",
	"metadata.google.internal",
	"metadata",
	"instance-data",
	"metadata.goog",
	"instance-data.ec2.internal",
	"metadata.azure.internal",
	"metadata.packet.net",
};

static const char *const metadata_addrs[] = {
	"169.254.169.254",
	"169.254.170.2",
	"100.100.100.200",
	"168.63.129.16",
	"192.0.0.192",
	"fd00:ec2::254",
	/* the first of them in each embedding */
	"::ffff:169.254.169.254",
	"::169.254.169.254",
	"64:ff9b::169.254.169.254",
	"64:ff9b:1::169.254.169.254",
	"2002:a9fe:a9fe::1",
	"2001:0:a9fe:a9fe::1",
	"2001:0:c000:201:0:0:5601:5601",
};

/* Nothing lifts a floor: not an exact allow, a default, a mode or an air gap's own reason. */
static void test_floors(void **state)
{
	static const char *const profiles[] = {
		("network: {allow: [ipinfo.io, \"*.ipinfo.io\", \"www.ipinfo.io:443\", "
		 "metadata.google.internal, metadata, 0.0.0.0/0, \"::/0\"]}"),
		"network: {mode: full}",
		"network: {default: allow}",
		"network: {mode: offline}",
		"{}",
	};

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(profiles); i++) {
		SBX_CLEANUP(world_fini)
		struct world w = world_of(profiles[i], "admit: [169.254.0.0/16, 100.64.0.0/10]");

		for (size_t j = 0; j < SBX_N_ELEMENTS(floor_names); j++) {
			NAME(&w, floor_names[j], TCP, 443, SBX_DENY, FLOOR);
			NAME(&w, floor_names[j], TCP, 31337, SBX_DENY, FLOOR);
			NAME(&w, floor_names[j], UDP, 443, SBX_DENY, FLOOR);
			NAME(&w, floor_names[j], SBX_PROTO_DNS, 0, SBX_DENY, FLOOR);
		}
		for (size_t j = 0; j < SBX_N_ELEMENTS(metadata_addrs); j++) {
			ADDR(&w, metadata_addrs[j], TCP, 80, SBX_DENY, FLOOR);
			ADDR(&w, metadata_addrs[j], UDP, 53, SBX_DENY, FLOOR);
			ADDR(&w, metadata_addrs[j], SBX_PROTO_ICMP, 0, SBX_DENY, FLOOR);
			RESOLVED(&w, metadata_addrs[j], true, SBX_DENY, FLOOR);
		}
	}
}

static void test_system_floors(void **state)
{
	SBX_CLEANUP(world_fini)
	struct world w =
		world_of("network: {mode: full, allow: [x.evil.example, \"203.0.113.7\"]}",
			 "floors: [\"*.evil.example\", 203.0.113.0/24, \"smtp.example:25\"]");
	struct sbx_verdict v = sbx_policy_decide_name(w.p, "x.evil.example", TCP, 443);

	(void)state;
	assert_string_equal(sbx_policy_rule_text(w.p, v.rule), "floor *.evil.example");
	NAME(&w, "x.evil.example", TCP, 0, SBX_DENY, FLOOR);
	NAME(&w, "evil.example", TCP, 443, SBX_ALLOW, DEFAULT_ALLOW);
	ADDR(&w, "203.0.113.7", TCP, 443, SBX_DENY, FLOOR);
	ADDR(&w, "203.0.114.7", TCP, 443, SBX_ALLOW, DEFAULT_ALLOW);
	/* The same inside NAT64 and 6to4 addresses. */
	ADDR(&w, "64:ff9b::203.0.113.7", TCP, 443, SBX_DENY, FLOOR);
	ADDR(&w, "::ffff:203.0.113.7", TCP, 443, SBX_DENY, FLOOR);
	ADDR(&w, "2002:cb00:7107::1", TCP, 443, SBX_DENY, FLOOR);
	RESOLVED(&w, "203.0.113.7", true, SBX_DENY, FLOOR);
	/* A floor on one port is a floor on that port. */
	NAME(&w, "smtp.example", TCP, 25, SBX_DENY, FLOOR);
	NAME(&w, "smtp.example", TCP, 587, SBX_ALLOW, DEFAULT_ALLOW);
	NAME(&w, "smtp.example", TCP, 0, SBX_ALLOW, DEFAULT_ALLOW);
	v = sbx_policy_decide_addr(
		w.p, &(struct sbx_addr){ .family = 4, .b = { 169, 254, 169, 254 } }, TCP, 80);
	assert_string_equal(sbx_policy_rule_text(w.p, v.rule), "floor 169.254.169.254");
}

/* A floor or a denied network is refused in every IPv6 embedding too, and an allowed one passes. A
 * mapped address is IPv4 by then, and ::/96 belongs to nobody. */
static void test_embedded(void **state)
{
	SBX_CLEANUP(world_fini)
	struct world w =
		world_of("network: {mode: full, deny: [198.51.100.0/24, \"192.0.2.0/24:25\"]}",
			 "floors: [203.0.113.0/24, \"192.0.2.0/24:22\"]");

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(embeddings); i++) {
		const struct embedding *e = &embeddings[i];
		struct sbx_addr floor = embed(e, "203.0.113.7"), denied = embed(e, "198.51.100.7"),
				fine = embed(e, "192.0.2.7");
		bool nobodys = strcmp(e->name, "compatible") == 0;

		check(sbx_policy_decide_addr(w.p, &floor, TCP, 443), e->name, SBX_DENY,
		      SBX_REASON_FLOOR);
		check(sbx_policy_decide_addr(w.p, &floor, SBX_PROTO_ICMP, 0), e->name, SBX_DENY,
		      SBX_REASON_FLOOR);
		check(sbx_policy_decide_resolved(w.p, &floor, TCP, 443, true), e->name, SBX_DENY,
		      SBX_REASON_FLOOR);
		check(sbx_policy_decide_addr(w.p, &denied, TCP, 443), e->name, SBX_DENY,
		      SBX_REASON_LIST_DENY);
		check(sbx_policy_decide_resolved(w.p, &denied, TCP, 443, true), e->name, SBX_DENY,
		      SBX_REASON_ADDRESS_DENIED);
		check(sbx_policy_decide_addr(w.p, &fine, TCP, 22), e->name, SBX_DENY,
		      SBX_REASON_FLOOR);
		check(sbx_policy_decide_addr(w.p, &fine, TCP, 25), e->name, SBX_DENY,
		      SBX_REASON_LIST_DENY);
		check(sbx_policy_decide_addr(w.p, &fine, TCP, 443), e->name,
		      nobodys ? SBX_DENY : SBX_ALLOW,
		      nobodys ? SBX_REASON_ADDRESS_CLASS : SBX_REASON_DEFAULT_ALLOW);
		check(sbx_policy_decide_resolved(w.p, &fine, TCP, 443, false), e->name,
		      nobodys ? SBX_DENY : SBX_ALLOW,
		      nobodys ? SBX_REASON_ADDRESS_CLASS : SBX_REASON_LIST_ALLOW);
	}
}

static void test_modes(void **state)
{
	SBX_CLEANUP(sbx_profile_freep)
	struct sbx_profile *profile = good_profile("network: {allow: [example.org, 192.0.2.0/24]}");
	SBX_CLEANUP(world_fini) struct world gap = world_of_profile(profile, NULL, true);
	SBX_CLEANUP(world_fini)
	struct world off =
		world_of("network: {mode: offline, allow: [example.org, 192.0.2.0/24]}", NULL);
	SBX_CLEANUP(world_fini)
	struct world full =
		world_of("network: {mode: full, deny: [evil.example, 192.0.2.66]}", NULL);

	(void)state;
	NAME(&gap, "example.org", TCP, 443, SBX_DENY, AIR_GAP);
	NAME(&gap, "example.org", TCP, 0, SBX_DENY, AIR_GAP);
	ADDR(&gap, "192.0.2.1", TCP, 443, SBX_DENY, AIR_GAP);
	RESOLVED(&gap, "192.0.2.1", false, SBX_DENY, AIR_GAP);
	NAME(&gap, "ipinfo.io", TCP, 443, SBX_DENY, FLOOR);
	NAME(&off, "example.org", TCP, 443, SBX_DENY, AIR_GAP);
	ADDR(&off, "192.0.2.1", TCP, 443, SBX_DENY, AIR_GAP);
	NAME(&full, "example.org", TCP, 22, SBX_ALLOW, DEFAULT_ALLOW);
	NAME(&full, "example.org", UDP, 443, SBX_ALLOW, DEFAULT_ALLOW);
	NAME(&full, "example.org", SBX_PROTO_ICMP, 1, SBX_DENY, DEFAULT_DENY);
	NAME(&full, "evil.example", TCP, 443, SBX_DENY, LIST_DENY);
	ADDR(&full, "192.0.2.1", TCP, 9, SBX_ALLOW, DEFAULT_ALLOW);
	ADDR(&full, "2001:db8::1", UDP, 9, SBX_ALLOW, DEFAULT_ALLOW);
	/* Mode full allows no more than the broker can carry. */
	ADDR(&full, "192.0.2.1", TCP, 0, SBX_DENY, LITERAL_ADDRESS);
	ADDR(&full, "192.0.2.1", UDP, 0, SBX_DENY, LITERAL_ADDRESS);
	ADDR(&full, "192.0.2.1", SBX_PROTO_ICMP, 9, SBX_DENY, LITERAL_ADDRESS);
	ADDR(&full, "192.0.2.1", SBX_PROTO_DNS, 53, SBX_DENY, LITERAL_ADDRESS);
	ADDR(&full, "192.0.2.1", SBX_PROTO_OTHER, 9, SBX_DENY, LITERAL_ADDRESS);
	ADDR(&full, "192.0.2.66", TCP, 9, SBX_DENY, LIST_DENY);
	ADDR(&full, "10.0.0.1", TCP, 9, SBX_DENY, ADDRESS_CLASS);
	ADDR(&full, "127.0.0.1", TCP, 9, SBX_DENY, ADDRESS_CLASS);
	ADDR(&full, "::1", TCP, 9, SBX_DENY, ADDRESS_CLASS);
	ADDR(&full, "64:ff9b::10.0.0.1", TCP, 9, SBX_DENY, ADDRESS_CLASS);
	assert_int_equal(sbx_policy_decide_name(full.p, "x.example", TCP, 443).check,
			 SBX_CHECK_NONE);
}

static void test_addresses(void **state)
{
	SBX_CLEANUP(world_fini)
	struct world w =
		world_of("network:\n"
			 "  allow: [\"10.1.2.0/24:5432\", \"10.3.2.0/24:5432\", 192.0.2.0/24, "
			 "{cidr: 10.2.2.0/24, ports: 5432, private: true}, "
			 "\"192.0.2.128/25:25\", \"2001:db8::/32\","
			 " 0.0.0.0/0:853, \"198.51.100.0/24:53/udp\"]\n"
			 "  deny: [192.0.2.7, \"192.0.2.128/26\"]\n",
			 "admit: [10.3.0.0/16]");

	(void)state;
	/* A private network needs more than its cidr: private: true or admit. */
	ADDR(&w, "10.1.2.3", TCP, 5432, SBX_DENY, ADDRESS_CLASS);
	ADDR(&w, "10.2.2.3", TCP, 5432, SBX_ALLOW, LIST_ALLOW);
	ADDR(&w, "10.3.2.3", TCP, 5432, SBX_ALLOW, LIST_ALLOW);
	ADDR(&w, "10.1.2.3", TCP, 5433, SBX_DENY, PORT);
	ADDR(&w, "10.1.3.3", TCP, 5432, SBX_DENY, PORT);
	ADDR(&w, "10.1.3.3", TCP, 853, SBX_DENY, ADDRESS_CLASS);
	ADDR(&w, "127.0.0.1", TCP, 853, SBX_DENY, ADDRESS_CLASS);
	ADDR(&w, "203.0.113.1", TCP, 853, SBX_ALLOW, LIST_ALLOW);
	ADDR(&w, "203.0.113.1", TCP, 443, SBX_DENY, PORT);
	/* Every port, tcp only. */
	ADDR(&w, "192.0.2.1", TCP, 1, SBX_ALLOW, LIST_ALLOW);
	ADDR(&w, "::ffff:192.0.2.1", TCP, 65535, SBX_ALLOW, LIST_ALLOW);
	ADDR(&w, "192.0.2.1", UDP, 1, SBX_DENY, PORT);
	ADDR(&w, "192.0.2.7", TCP, 1, SBX_DENY, LIST_DENY);
	ADDR(&w, "192.0.2.129", TCP, 25, SBX_DENY, LIST_DENY);
	ADDR(&w, "192.0.2.200", TCP, 25, SBX_ALLOW, LIST_ALLOW);
	ADDR(&w, "198.51.100.9", UDP, 53, SBX_ALLOW, LIST_ALLOW);
	ADDR(&w, "2001:db8:ffff::1", TCP, 443, SBX_ALLOW, LIST_ALLOW);
	ADDR(&w, "2001:db9::1", TCP, 443, SBX_DENY, LITERAL_ADDRESS);
	assert_int_equal(sbx_policy_decide_addr(w.p, &(struct sbx_addr){ 0 }, TCP, 443).action,
			 SBX_DENY);
	assert_int_equal(
		sbx_policy_decide_addr(
			w.p, &(struct sbx_addr){ .family = 4, .b = { 192, 0, 2, 1 } }, TCP, 443)
			.check,
		SBX_CHECK_NONE);
}

static void test_resolved(void **state)
{
	SBX_CLEANUP(world_fini)
	struct world w = world_of("network: {allow: [a.example, {cidr: 10.7.0.0/16, private: "
				  "true}], deny: [203.0.113.0/24, 10.8.0.0/16]}",
				  "admit: [192.168.4.0/24, 169.254.7.0/24]");
	SBX_CLEANUP(world_fini)
	struct world plain = world_of("network: {allow: [a.example]}", NULL);
	SBX_CLEANUP(world_fini)
	struct world wide = world_of("{}", "admit: [0.0.0.0/0, \"::/0\"]");
	SBX_CLEANUP(world_fini)
	struct world all = world_of("network: {allow: [a.example, 0.0.0.0/0, \"::/0\"]}", NULL);

	(void)state;
	/* An entry that holds a private address does not say that it may be reached. */
	RESOLVED(&all, "10.0.0.1", false, SBX_DENY, ADDRESS_CLASS);
	RESOLVED(&all, "fd12::1", false, SBX_DENY, ADDRESS_CLASS);
	RESOLVED(&all, "203.0.113.9", false, SBX_ALLOW, LIST_ALLOW);
	RESOLVED(&w, "192.0.2.1", false, SBX_ALLOW, LIST_ALLOW);
	RESOLVED(&w, "2001:db8::1", false, SBX_ALLOW, LIST_ALLOW);
	RESOLVED(&w, "203.0.113.9", true, SBX_DENY, ADDRESS_DENIED);
	RESOLVED(&w, "64:ff9b::203.0.113.9", true, SBX_DENY, ADDRESS_DENIED);
	RESOLVED(&w, "10.0.0.1", false, SBX_DENY, ADDRESS_CLASS);
	RESOLVED(&w, "10.0.0.1", true, SBX_ALLOW, LIST_ALLOW);
	RESOLVED(&w, "10.7.0.1", false, SBX_ALLOW, LIST_ALLOW);
	RESOLVED(&w, "10.8.0.1", true, SBX_DENY, ADDRESS_DENIED);
	/* admit allows private and link-local addresses, for every name. */
	RESOLVED(&w, "192.168.4.1", false, SBX_ALLOW, LIST_ALLOW);
	RESOLVED(&plain, "192.168.4.1", false, SBX_DENY, ADDRESS_CLASS);
	RESOLVED(&w, "169.254.7.1", false, SBX_ALLOW, LIST_ALLOW);
	RESOLVED(&w, "169.254.8.1", true, SBX_DENY, ADDRESS_CLASS);
	RESOLVED(&w, "127.0.0.1", true, SBX_DENY, ADDRESS_CLASS);
	RESOLVED(&w, "0.0.0.0", true, SBX_DENY, ADDRESS_CLASS);
	RESOLVED(&w, "::", true, SBX_DENY, ADDRESS_CLASS);
	RESOLVED(&w, "224.0.0.1", true, SBX_DENY, ADDRESS_CLASS);
	RESOLVED(&w, "fe80::1", true, SBX_DENY, ADDRESS_CLASS);
	/* Even admit does not allow addresses of this host or of nobody. */
	RESOLVED(&wide, "10.0.0.1", false, SBX_ALLOW, LIST_ALLOW);
	RESOLVED(&wide, "127.0.0.1", true, SBX_DENY, ADDRESS_CLASS);
	RESOLVED(&wide, "::1", true, SBX_DENY, ADDRESS_CLASS);
	RESOLVED(&wide, "0.0.0.0", true, SBX_DENY, ADDRESS_CLASS);
	RESOLVED(&wide, "224.0.0.1", true, SBX_DENY, ADDRESS_CLASS);
	RESOLVED(&wide, "169.254.169.254", true, SBX_DENY, FLOOR);
	RESOLVED(&w, "fd12::1", false, SBX_DENY, ADDRESS_CLASS);
	RESOLVED(&w, "fd12::1", true, SBX_ALLOW, LIST_ALLOW);
}

static void test_proxy(void **state)
{
	static const struct {
		const char *addr;
		uint16_t port;
		/* without an admit, with two addresses, with everything */
		bool own, closed, narrow, wide;
	} cases[] = {
		{ "192.0.2.9", 3128, false, true, true, true },
		{ "2001:db8::9", 3128, false, true, true, true },
		{ "192.0.2.9", 3128, true, false, false, true },
		{ "192.0.2.2", 3128, true, false, true, true },
		{ "10.0.0.7", 3128, false, false, true, true },
		{ "10.0.0.7", 3129, false, false, false, true },
		{ "10.0.0.7", 3128, true, false, true, true },
		{ "::ffff:10.0.0.7", 3128, false, false, true, true },
		{ "64:ff9b::10.0.0.7", 3128, false, false, false, true },
		{ "10.0.0.8", 3128, false, false, false, true },
		{ "169.254.1.1", 3128, false, false, false, true },
		{ "fe80::1", 3128, false, false, false, true },
		{ "127.0.0.1", 3128, true, false, true, true },
		{ "127.0.0.1", 3128, false, false, true, true },
		{ "127.0.0.1", 22, true, false, false, true },
		{ "127.0.0.2", 3128, true, false, false, true },
		{ "::1", 3128, true, false, false, true },
		/* nowhere */
		{ "0.0.0.0", 3128, false, false, false, false },
		{ "::", 3128, false, false, false, false },
		{ "224.0.0.1", 3128, false, false, false, false },
		{ "255.255.255.255", 3128, false, false, false, false },
		{ "169.254.169.254", 3128, false, false, false, false },
		{ "64:ff9b::169.254.169.254", 3128, false, false, false, false },
		{ "fd00:ec2::254", 3128, false, false, false, false },
		{ "::10.0.0.7", 3128, false, false, false, false },
		/* floors of the system policy */
		{ "203.0.113.7", 3128, false, false, false, false },
		{ "2002:cb00:7107::1", 3128, false, false, false, false },
		{ "192.0.2.9", 25, false, false, false, false },
	};
	static const char profile[] = "network: {allow: [a.example, 0.0.0.0/0], deny: [192.0.2.9]}";
#define FLOORS "floors: [203.0.113.0/24, \"192.0.2.0/24:25\"]\n"
	SBX_CLEANUP(world_fini) struct world closed = world_of(profile, FLOORS);
	SBX_CLEANUP(world_fini)
	struct world narrow = world_of(
		profile, FLOORS
		"admit: [\"10.0.0.7:3128\", \"127.0.0.1:3128\", 192.0.2.2, \"10.0.0.8:3128/udp\"]");
	SBX_CLEANUP(world_fini)
	struct world wide = world_of(profile, FLOORS "admit: [0.0.0.0/0, \"::/0\"]");

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++) {
		struct sbx_addr a = addr_of(cases[i].addr);

		if (sbx_policy_admits_proxy(closed.p, &a, cases[i].port, cases[i].own) !=
			    cases[i].closed ||
		    sbx_policy_admits_proxy(narrow.p, &a, cases[i].port, cases[i].own) !=
			    cases[i].narrow ||
		    sbx_policy_admits_proxy(wide.p, &a, cases[i].port, cases[i].own) !=
			    cases[i].wide)
			fail_msg("%s", cases[i].addr);
	}
	/* A flow may not go to an address only because a proxy may be there. */
	ADDR(&narrow, "127.0.0.1", TCP, 3128, SBX_DENY, ADDRESS_CLASS);
	RESOLVED(&wide, "127.0.0.1", true, SBX_DENY, ADDRESS_CLASS);
}

static void test_firewall(void **state)
{
	SBX_CLEANUP(world_fini)
	struct world w = world_of(
		"network: {allow: [a.example, \"10.1.2.0/24:22,5432\", \"[2001:db8::/32]:53/udp\", "
		"192.0.2.1], deny: [192.0.2.9]}",
		"admit: [10.0.0.0/8]");
	static const struct {
		const char *addr;
		uint8_t prefix;
		uint16_t first, last;
		enum sbx_proto proto;
	} want[] = {
		{ "192.0.2.1", 32, 1, 65535, TCP },
		{ "10.1.2.0", 24, 22, 22, TCP },
		{ "10.1.2.0", 24, 5432, 5432, TCP },
		{ "2001:db8::", 32, 53, 53, UDP },
	};
	struct sbx_policy_cidr c;

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(want); i++) {
		struct sbx_addr a = addr_of(want[i].addr);

		assert_true(sbx_policy_cidr_at(w.p, i, &c));
		assert_true(sbx_addr_equal(&c.cidr.addr, &a));
		assert_int_equal(c.cidr.prefix, want[i].prefix);
		assert_int_equal(c.port_first, want[i].first);
		assert_int_equal(c.port_last, want[i].last);
		assert_int_equal(c.proto, want[i].proto);
	}
	assert_false(sbx_policy_cidr_at(w.p, SBX_N_ELEMENTS(want), &c));
}

/* The hash covers the meaning: order, repetition and generation do not count, every word does. */
static void test_hash(void **state)
{
	static const char *const same[] = {
		"network: {allow: [a.example, b.example], deny: [c.example]}",
		"network: {deny: [c.example], allow: [B.example., a.example, b.example]}",
		("name: other\nlimits: {pids: 9}\nnetwork: {allow: [b.example, a.example], deny: "
		 "[c.example]}"),
	};
	static const char *const other[] = {
		"network: {allow: [a.example], deny: [c.example]}",
		"network: {allow: [a.example, \"b.example:443\"], deny: [c.example]}",
		("network: {allow: [a.example, {host: b.example, private: true}], deny: "
		 "[c.example]}"),
		"network: {allow: [a.example, \"*.b.example\"], deny: [c.example]}",
		"network: {default: allow, allow: [a.example, b.example], deny: [c.example]}",
		"network: {mode: full, allow: [a.example, b.example], deny: [c.example]}",
	};
	char first[65], hash[65];

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(same); i++) {
		SBX_CLEANUP(world_fini) struct world w = world_of(same[i], NULL);

		((struct sbx_blob_header *)w.blob)->generation = i;
		sbx_policy_hash(w.p, hash);
		assert_int_equal(strlen(hash), 64);
		assert_int_equal(strspn(hash, "0123456789abcdef"), 64);
		if (i == 0)
			memcpy(first, hash, sizeof(first));
		assert_string_equal(hash, first);
	}
	for (size_t i = 0; i < SBX_N_ELEMENTS(other); i++) {
		SBX_CLEANUP(world_fini) struct world w = world_of(other[i], NULL);

		sbx_policy_hash(w.p, hash);
		assert_string_not_equal(hash, first);
	}
}

static void explained(const struct world *w, struct sbx_verdict v, const char *what,
		      const char *want)
{
	char buf[2048];

	assert_string_equal(sbx_policy_explain(w->p, &v, what, buf, sizeof(buf)), want);
}

static void test_explain(void **state)
{
	SBX_CLEANUP(world_fini)
	struct world w =
		world_of("network: {allow: [example.org], deny: [\"*.evil.example\"]}", NULL);
	SBX_CLEANUP(world_fini) struct world off = world_of("network: {mode: offline}", NULL);
	struct sbx_verdict v;

	(void)state;
	explained(&w, sbx_policy_decide_name(w.p, "pypi.org", TCP, 443), "pypi.org:443",
		  "pypi.org:443 is not in the profile's allow list; add `- pypi.org` under "
		  "network.allow or pass --allow pypi.org");
	explained(&w, sbx_policy_decide_name(w.p, "pypi.org", TCP, 0), "pypi.org",
		  "pypi.org is not in the profile's allow list; add `- pypi.org` under "
		  "network.allow or pass --allow pypi.org");
	explained(
		&w, sbx_policy_decide_name(w.p, "example.org", TCP, 22), "example.org:22",
		"example.org:22 is not among the ports that the entry 'example.org' allows; add `- "
		"example.org:22` under network.allow or pass --allow example.org:22");
	explained(&w, sbx_policy_decide_name(w.p, "example.org", TCP, 443), "example.org:443",
		  "example.org:443 is allowed by the entry 'example.org'");
	explained(&w, sbx_policy_decide_name(w.p, "x.evil.example", TCP, 443), "x.evil.example:443",
		  "x.evil.example:443 is refused by the deny entry '*.evil.example'; remove it, or "
		  "allow something more specific under network.allow");
	explained(&w, sbx_policy_decide_name(w.p, "ipinfo.io", TCP, 443), "ipinfo.io:443",
		  "ipinfo.io:443 is refused by floor ipinfo.io, which no profile, rule or flag "
		  "lifts");
	explained(&off, sbx_policy_decide_name(off.p, "pypi.org", TCP, 443), "pypi.org:443",
		  "pypi.org:443 is refused: the profile's mode is offline; use a profile with "
		  "network.mode: fetch that lists `- pypi.org` under network.allow");
	/* Every reason has a sentence, hostile names stay on their line, small buffers hold. */
	for (int r = 0; r < SBX_N_REASONS; r++) {
		char buf[2048], small[16];

		v = (struct sbx_verdict){ .reason = (enum sbx_reason)r,
					  .rule = r % 2 ? 0 : UINT32_MAX };
		sbx_policy_explain(w.p, &v, "a\x1b[2Jb\n.example:443", buf, sizeof(buf));
		assert_non_null(strstr(buf, "a\\x1b[2Jb\\x0a.example"));
		assert_null(strpbrk(buf, "\x1b\n"));
		assert_true(strlen(buf) > 30);
		sbx_policy_explain(w.p, &v, "example.org", small, sizeof(small));
		assert_int_equal(strlen(small), 15);
		v.action = SBX_ALLOW;
		sbx_policy_explain(w.p, &v, "example.org", buf, sizeof(buf));
		assert_non_null(strstr(buf, "example.org is allowed"));
	}
}

/* The --allow that the remedy proposes does allow the request. */
static void test_remedy_works(void **state)
{
	static const char *const whats[] = { "pypi.org:443", "pypi.org:80", "pypi.org",
					     "pypi.org:22", "pypi.org:53/udp" };

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(whats); i++) {
		SBX_CLEANUP(sbx_profile_freep) struct sbx_profile *p = good_profile("{}");
		SBX_CLEANUP(world_fini) struct world before = world_of_profile(p, NULL, false);
		struct sbx_verdict v = sbx_policy_decide_name(before.p, "pypi.org", TCP, 443);
		char buf[2048], *flag;

		sbx_policy_explain(before.p, &v, whats[i], buf, sizeof(buf));
		flag = strstr(buf, "--allow ");
		assert_non_null(flag);
		assert_int_equal(
			sbx_net_list_add_pattern(&p->network.allow, flag + 8, "--allow", NULL), 0);
		SBX_CLEANUP(world_fini) struct world after = world_of_profile(p, NULL, false);
		const char *colon = strchr(whats[i], ':');
		v = sbx_policy_decide_name(after.p, "pypi.org",
					   strstr(whats[i], "/udp") ? UDP : TCP,
					   colon ? (uint16_t)atoi(colon + 1) : 443);
		assert_int_equal(v.action, SBX_ALLOW);
	}
}

/* Ten thousand names, each found and each with a neighbour that is not. */
static void test_many(void **state)
{
	SBX_CLEANUP(sbx_profile_freep) struct sbx_profile *p = good_profile("{}");
	char text[64];

	(void)state;
	for (int i = 0; i < 10000; i++) {
		snprintf(text, sizeof(text), i % 2 ? "*.h%d.example.org" : "h%d.example.org", i);
		assert_int_equal(sbx_net_list_add_pattern(&p->network.allow, text, "", NULL), 0);
		snprintf(text, sizeof(text), "11.%d.%d.0/24", i / 250, i % 250);
		assert_int_equal(sbx_net_list_add_pattern(&p->network.allow, text, "", NULL), 0);
	}
	SBX_CLEANUP(world_fini) struct world w = world_of_profile(p, NULL, false);
	for (int i = 0; i < 10000; i++) {
		snprintf(text, sizeof(text), i % 2 ? "x.h%d.example.org" : "h%d.example.org", i);
		NAME(&w, text, TCP, 443, SBX_ALLOW, LIST_ALLOW);
		snprintf(text, sizeof(text), i % 2 ? "h%d.example.org" : "x.h%d.example.org", i);
		NAME(&w, text, TCP, 443, SBX_DENY, DEFAULT_DENY);
		snprintf(text, sizeof(text), "11.%d.%d.77", i / 250, i % 250);
		ADDR(&w, text, TCP, 443, SBX_ALLOW, LIST_ALLOW);
		snprintf(text, sizeof(text), "11.%d.%d.77", i / 250 + 100, i % 250);
		ADDR(&w, text, TCP, 443, SBX_DENY, LITERAL_ADDRESS);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_name_ports),
		cmocka_unit_test(test_exact),	       cmocka_unit_test(test_wildcard),
		cmocka_unit_test(test_not_normalised), cmocka_unit_test(test_normalised_entries),
		cmocka_unit_test(test_specificity),    cmocka_unit_test(test_ports),
		cmocka_unit_test(test_verdict_fields), cmocka_unit_test(test_deny_is_wide),
		cmocka_unit_test(test_floors),	       cmocka_unit_test(test_system_floors),
		cmocka_unit_test(test_embedded),       cmocka_unit_test(test_proxy),
		cmocka_unit_test(test_modes),	       cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_resolved),       cmocka_unit_test(test_firewall),
		cmocka_unit_test(test_hash),	       cmocka_unit_test(test_explain),
		cmocka_unit_test(test_remedy_works),   cmocka_unit_test(test_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
