/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/unit/policy_world.h"

#include "broker/core/core.h"
#include "policy/decide/policy_blob.h"
#include "tests/unit/embeddings.h"

static const char fetch_yaml[] = "name: t\n"
				 "network:\n"
				 "  allow:\n"
				 "    - example.org\n"
				 "    - \"*.example.com\"\n"
				 "    - ssh.example.net:22\n"
				 "    - 203.0.113.0/24:5432\n"
				 "    - 10.1.0.0/16:5432\n"
				 "    - { host: lan.example.net, private: true }\n"
				 "    - { host: udp.example.net, ports: [9999], protocol: udp }\n"
				 "  deny:\n"
				 "    - bad.example.com\n"
				 "    - 192.0.2.66/32\n";

static const char open_yaml[] = "name: t\n"
				"network:\n"
				"  default: allow\n"
				"  allow: [example.org]\n";
static const char terminated_yaml[] =
	"name: t\n"
	"network:\n"
	"  default: allow\n"
	"  allow:\n"
	"    - example.org\n"
	"    - { host: \"*.example.com\", access: read-only }\n"
	"    - { host: pinned.example.com, passthrough: true }\n"
	"    - { host: api.example.net, ports: [80, 443, 8443], inspect: true }\n"
	"    - { cidr: 203.0.113.0/24, ports: 443, check: tls }\n"
	"    - { cidr: 203.0.113.0/24, ports: 8443, check: tls }\n"
	"    - { cidr: 203.0.113.0/24, ports: 80, check: http }\n";
static const char full_yaml[] = "name: t\nnetwork:\n  mode: full\n  deny:\n    - bad.example.com\n";
static const char offline_yaml[] = "name: t\nnetwork:\n  mode: offline\n";

struct fixture {
	struct world w;
	struct sbx_msg_config config;
	struct sbx_core core;
	struct sbx_addr own[2];
};

static void fixture_fini(struct fixture *f)
{
	sbx_pins_free(f->core.pins);
	sbx_leases_free(f->core.leases);
	world_fini(&f->w);
}
#define FIXTURE SBX_CLEANUP(fixture_fini) struct fixture

static struct sbx_addr addr_of(const char *text)
{
	struct sbx_addr a;

	assert_int_equal(sbx_addr_parse(text, &a), 0);
	return a;
}

static void fixture_init(struct fixture *f, const char *yaml)
{
	*f = (struct fixture){ .w = world_of(yaml, NULL) };
	f->config.limits = sbx_limits_default;
	f->config.mode = yaml == full_yaml	? SBX_MODE_FULL
			 : yaml == offline_yaml ? SBX_MODE_OFFLINE
						: SBX_MODE_FETCH;
	f->config.dns_real = yaml == full_yaml;
	strcpy(f->config.selftest_name, "selftest.sbx.invalid");
	f->own[0] = addr_of("198.51.100.7");
	f->own[1] = addr_of("2001:db8:7::7");
	sbx_core_sort_addrs(f->own, 2);
	f->core = (struct sbx_core){
		.config = &f->config, .policy = f->w.p, .own = f->own, .n_own = 2
	};
	assert_int_equal(sbx_pins_new(100, &f->core.pins), 0);
	assert_int_equal(sbx_leases_new(100, &f->core.leases), 0);
	if (!f->config.dns_real)
		f->core.leases = sbx_leases_free(f->core.leases);
}

/* The policy's live state, in the blob that it looks into. */
static void set_air_gap(struct fixture *f, bool on)
{
	((struct sbx_blob_header *)f->w.blob)->air_gap = on;
}

/* The policy of @yaml, air-gapped, with one live allow entry. */
static void gap_but_for(struct fixture *f, const char *yaml, const char *entry)
{
	SBX_CLEANUP(sbx_profile_freep) struct sbx_profile *profile = good_profile(yaml);
	struct sbx_live live = { .air_gapped = true };
	const struct sbx_policy_input in = { .profile = profile, .live = &live, .generation = 8 };

	assert_int_equal(sbx_net_list_add_pattern(&live.allow, entry, "test", NULL), 0);
	world_fini(&f->w);
	f->w = (struct world){ 0 };
	assert_int_equal(sbx_policy_compile(&in, &f->w.blob, &f->w.n), 0);
	assert_int_equal(sbx_policy_load(sbx_span(f->w.blob, f->w.n), &f->w.p), 0);
	f->core.policy = f->w.p;
	sbx_net_list_fini(&live.allow);
}

static struct sbx_dns_query query(const char *name, uint16_t qtype)
{
	struct sbx_dns_query q = {
		.qtype = qtype, .qclass = SBX_DNS_CLASS_IN, .is_hostname = true, .n_question = 20
	};

	strcpy(q.name, name);
	return q;
}

static struct sbx_dns_decision ask(struct fixture *f, const char *name, uint16_t qtype)
{
	struct sbx_dns_query q = query(name, qtype);
	struct sbx_dns_decision d;

	sbx_core_decide_dns(&f->core, &q, &d);
	return d;
}

static struct sbx_addr pin(struct fixture *f, const char *name)
{
	struct sbx_dns_decision d = ask(f, name, SBX_DNS_TYPE_A);

	assert_int_equal(d.action, SBX_DNS_ANSWER);
	assert_int_equal(d.n_addrs, 1);
	return d.addrs[0];
}

static struct sbx_flow_target decide(struct fixture *f, enum sbx_proto proto, struct sbx_addr addr,
				     uint16_t port)
{
	struct sbx_flow_target t;

	sbx_core_decide_flow(&f->core, proto, &addr, port, 1000, &t);
	return t;
}

/* --- DNS --- */

static void test_dns_fetch(void **state)
{
	FIXTURE f;
	struct sbx_dns_decision d;
	struct sbx_dns_query q;

	(void)state;
	fixture_init(&f, fetch_yaml);
	d = ask(&f, "example.org", SBX_DNS_TYPE_A);
	assert_int_equal(d.action, SBX_DNS_ANSWER);
	assert_int_equal(d.rcode, SBX_DNS_NOERROR);
	assert_int_equal(d.n_addrs, 1);
	assert_int_equal(d.addrs[0].family, 4);
	assert_string_equal(sbx_pins_name(f.core.pins, &d.addrs[0]), "example.org");
	d = ask(&f, "example.org", SBX_DNS_TYPE_AAAA);
	assert_int_equal(d.addrs[0].family, 6);
	assert_string_equal(sbx_pins_name(f.core.pins, &d.addrs[0]), "example.org");
	assert_int_equal(sbx_pins_count(f.core.pins), 1);

	d = ask(&f, "a.b.example.com", 16); /* TXT of an allowed name: nothing, and no pin */
	assert_int_equal(d.action, SBX_DNS_ANSWER);
	assert_int_equal(d.n_addrs, 0);
	assert_int_equal(sbx_pins_count(f.core.pins), 1);

	d = ask(&f, "other.org", SBX_DNS_TYPE_A);
	assert_int_equal(d.action, SBX_DNS_REFUSE);
	assert_int_equal(d.rcode, SBX_DNS_NXDOMAIN);
	assert_int_equal(d.verdict.reason, SBX_REASON_DEFAULT_DENY);
	d = ask(&f, "example.com", SBX_DNS_TYPE_A);
	assert_int_equal(d.action, SBX_DNS_REFUSE);
	d = ask(&f, "ipinfo.io", SBX_DNS_TYPE_A);
	assert_int_equal(d.verdict.reason, SBX_REASON_FLOOR);
	d = ask(&f, "bad.example.com", SBX_DNS_TYPE_A);
	assert_int_equal(d.verdict.reason, SBX_REASON_LIST_DENY);

	q = query("example.org", SBX_DNS_TYPE_A);
	q.qclass = 3; /* CH */
	sbx_core_decide_dns(&f.core, &q, &d);
	assert_int_equal(d.action, SBX_DNS_REFUSE);
	assert_int_equal(d.rcode, SBX_DNS_REFUSED); /* nothing is said about the name */
	q = query("exa mple.org", SBX_DNS_TYPE_A);
	q.is_hostname = false;
	sbx_core_decide_dns(&f.core, &q, &d);
	assert_int_equal(d.action, SBX_DNS_REFUSE);
	assert_int_equal(d.rcode, SBX_DNS_NXDOMAIN);
	assert_int_equal(sbx_pins_count(f.core.pins), 1);
}

static void test_dns_selftest(void **state)
{
	FIXTURE f;

	(void)state;
	fixture_init(&f, offline_yaml);
	set_air_gap(&f, true);
	assert_string_equal(f.config.selftest_name, "selftest.sbx.invalid");
	pin(&f, "selftest.sbx.invalid");
	assert_int_equal(ask(&f, "example.org", SBX_DNS_TYPE_A).verdict.reason, SBX_REASON_AIR_GAP);
}

static void test_dns_exhausted(void **state)
{
	FIXTURE f;
	struct sbx_dns_decision d;
	char name[64];

	(void)state;
	fixture_init(&f, fetch_yaml);
	for (int i = 0; i < 100; i++) {
		snprintf(name, sizeof(name), "n%d.example.com", i);
		pin(&f, name);
	}
	d = ask(&f, "one-more.example.com", SBX_DNS_TYPE_A);
	assert_int_equal(d.action, SBX_DNS_REFUSE);
	assert_int_equal(d.rcode, SBX_DNS_SERVFAIL);
	assert_int_equal(d.verdict.action, SBX_DENY);
	assert_int_equal(d.verdict.reason, SBX_REASON_PINS_EXHAUSTED);
	pin(&f, "n5.example.com");
}

static void test_dns_real(void **state)
{
	FIXTURE f;
	FIXTURE off;
	struct sbx_dns_answer a = { .n_cnames = 2, .cnames = { "ok.example.net", "" } };

	(void)state;
	fixture_init(&f, full_yaml);
	assert_int_equal(ask(&f, "anything.example", SBX_DNS_TYPE_A).action, SBX_DNS_FORWARD);
	assert_int_equal(ask(&f, "anything.example", 16).action, SBX_DNS_FORWARD);
	assert_int_equal(ask(&f, "anything.example", 65).action,
			 SBX_DNS_ANSWER); /* HTTPS: NODATA */
	assert_int_equal(ask(&f, "anything.example", 65).n_addrs, 0);
	assert_int_equal(ask(&f, "ipinfo.io", SBX_DNS_TYPE_A).action, SBX_DNS_REFUSE);
	assert_int_equal(ask(&f, "x.ipinfo.io", 16).action, SBX_DNS_REFUSE);
	assert_int_equal(ask(&f, "bad.example.com", SBX_DNS_TYPE_A).action, SBX_DNS_REFUSE);
	pin(&f, "selftest.sbx.invalid");

	assert_int_equal(sbx_core_judge_cnames(&f.core, &a).action, SBX_ALLOW);
	strcpy(a.cnames[1], "www.ipinfo.io");
	assert_int_equal(sbx_core_judge_cnames(&f.core, &a).reason, SBX_REASON_FLOOR);
	assert_int_equal(sbx_core_judge_cnames(&f.core, &a).action, SBX_DENY);
	strcpy(a.cnames[1], "bad.example.com");
	assert_int_equal(sbx_core_judge_cnames(&f.core, &a).reason, SBX_REASON_LIST_DENY);

	fixture_init(&off, offline_yaml); /* dns.resolvers given */
	assert_int_equal(ask(&off, "anything.example", SBX_DNS_TYPE_A).action, SBX_DNS_REFUSE);
	off.config.dns_real = off.config.resolvers_listed = 1;
	assert_int_equal(ask(&off, "anything.example", SBX_DNS_TYPE_A).action, SBX_DNS_FORWARD);
	assert_int_equal(ask(&off, "ipinfo.io", SBX_DNS_TYPE_A).action, SBX_DNS_REFUSE);
	set_air_gap(&off, true); /* listed resolvers answer all the same */
	assert_int_equal(ask(&off, "anything.example", SBX_DNS_TYPE_A).action, SBX_DNS_FORWARD);
	assert_int_equal(ask(&off, "ipinfo.io", SBX_DNS_TYPE_A).action, SBX_DNS_REFUSE);
	set_air_gap(&f, true); /* the host's do not */
	assert_int_equal(ask(&f, "anything.example", SBX_DNS_TYPE_A).verdict.reason,
			 SBX_REASON_AIR_GAP);
}

/* --- resolved pins --- */

static void test_dns_pins(void **state)
{
	FIXTURE f;
	FIXTURE open;
	FIXTURE full;
	struct sbx_dns_decision d;

	(void)state;
	fixture_init(&f, fetch_yaml);
	f.config.resolved_pins = 1;
	f.config.stub_addr = addr_of("127.83.0.1");
	assert_int_equal(ask(&f, "example.org", SBX_DNS_TYPE_A).action, SBX_DNS_PIN);
	assert_int_equal(ask(&f, "a.example.com", SBX_DNS_TYPE_AAAA).action, SBX_DNS_PIN);
	d = ask(&f, "example.org", 16);
	assert_int_equal(d.action, SBX_DNS_ANSWER);
	assert_int_equal(d.n_addrs, 0);
	assert_int_equal(ask(&f, "example.com", SBX_DNS_TYPE_A).action, SBX_DNS_REFUSE);
	d = ask(&f, "bad.example.com", SBX_DNS_TYPE_A);
	assert_int_equal(d.verdict.reason, SBX_REASON_LIST_DENY);
	assert_int_equal(d.rcode, SBX_DNS_NXDOMAIN);
	assert_int_equal(ask(&f, "ipinfo.io", SBX_DNS_TYPE_A).action, SBX_DNS_REFUSE);
	d = ask(&f, "selftest.sbx.invalid", SBX_DNS_TYPE_A);
	assert_int_equal(d.action, SBX_DNS_ANSWER);
	assert_int_equal(d.n_addrs, 1);
	assert_true(sbx_addr_equal(&d.addrs[0], &f.config.stub_addr));
	d = ask(&f, "selftest.sbx.invalid", SBX_DNS_TYPE_AAAA);
	assert_int_equal(d.action, SBX_DNS_ANSWER);
	assert_int_equal(d.rcode, SBX_DNS_NOERROR);
	assert_int_equal(d.n_addrs, 0);
	assert_int_equal(sbx_pins_count(f.core.pins), 0);
	set_air_gap(&f, true);
	assert_int_equal(ask(&f, "example.org", SBX_DNS_TYPE_A).verdict.reason, SBX_REASON_AIR_GAP);

	fixture_init(&open, open_yaml); /* allowed by default, on no port that could be pinned */
	d = ask(&open, "other.org", SBX_DNS_TYPE_A);
	assert_int_equal(d.action, SBX_DNS_ANSWER);
	open.config.resolved_pins = 1;
	d = ask(&open, "other.org", SBX_DNS_TYPE_A);
	assert_int_equal(d.action, SBX_DNS_REFUSE);
	assert_int_equal(d.verdict.action, SBX_DENY);
	assert_int_equal(d.verdict.reason, SBX_REASON_PORT);
	assert_int_equal(ask(&open, "example.org", SBX_DNS_TYPE_A).action, SBX_DNS_PIN);

	fixture_init(&full, full_yaml);
	full.config.resolved_pins = 1;
	assert_int_equal(ask(&full, "anything.example", SBX_DNS_TYPE_A).action, SBX_DNS_FORWARD);
	/* The kernel lets pass only pins then. */
	gap_but_for(&full, full_yaml, "a.example:80");
	assert_int_equal(ask(&full, "a.example", SBX_DNS_TYPE_A).action, SBX_DNS_PIN);
	d = ask(&full, "b.example", SBX_DNS_TYPE_A);
	assert_int_equal(d.action, SBX_DNS_REFUSE);
	assert_int_equal(d.verdict.reason, SBX_REASON_AIR_GAP);
	full.config.resolved_pins = 0;
	assert_int_equal(ask(&full, "a.example", SBX_DNS_TYPE_A).action, SBX_DNS_FORWARD);
}

/* The DNS decision for @name, which resolved to the addresses @text (NULL: none). The first
 * @n_pinned of them may be told. */
static struct sbx_dns_decision say(struct fixture *f, const char *name, uint16_t qtype,
				   enum sbx_resolve_status status4, enum sbx_resolve_status status6,
				   const char *const *text, size_t n_pinned)
{
	struct sbx_resolve_result r = { .status4 = status4, .status6 = status6 };
	struct sbx_dns_query q = query(name, qtype);
	struct sbx_dns_decision d;

	for (; text && text[r.n]; r.n++)
		r.v[r.n] = addr_of(text[r.n]);
	sbx_core_decide_pinned(&f->core, &q, &r, r.v, n_pinned, &d);
	return d;
}

static void assert_says(struct sbx_dns_decision d, enum sbx_dns_action action,
			enum sbx_dns_rcode rcode, enum sbx_reason reason)
{
	assert_int_equal(d.action, action);
	assert_int_equal(d.rcode, rcode);
	assert_int_equal(d.verdict.action, SBX_DENY);
	assert_int_equal(d.verdict.reason, reason);
}

static void test_dns_pinned(void **state)
{
	static const char *const v4[] = { "203.0.113.5", NULL }, *const none[] = { NULL };
	static const char *const bad[] = { "10.0.0.7", "fd00::7", NULL };
	static const char *const own[] = { "198.51.100.7", NULL }, *const meta[] = {
		"169.254.169.254", NULL
	};
	static const char *const denied[] = { "192.0.2.66", NULL };
	static const char *const v6_told[] = { "2001:db8::5", "203.0.113.5", NULL };
	const enum sbx_resolve_status found = SBX_RESOLVE_FOUND, failed = SBX_RESOLVE_FAILED,
				      nx = SBX_RESOLVE_NXDOMAIN;
	const enum sbx_dns_action answer = SBX_DNS_ANSWER, refuse = SBX_DNS_REFUSE;
	const uint16_t a = SBX_DNS_TYPE_A, aaaa = SBX_DNS_TYPE_AAAA;
	struct sbx_dns_decision d;
	FIXTURE f;

	(void)state;
	fixture_init(&f, fetch_yaml);
	f.config.resolved_pins = 1;
#define SAY(...) say(&f, "example.org", __VA_ARGS__)
	assert_says(SAY(a, found, found, v4, 1), answer, SBX_DNS_NOERROR, 0);
	assert_says(SAY(aaaa, found, found, v4, 1), answer, SBX_DNS_NOERROR, 0);
	assert_says(SAY(aaaa, found, failed, v4, 1), answer, SBX_DNS_SERVFAIL, 0);
	assert_says(SAY(a, found, failed, v4, 1), answer, SBX_DNS_NOERROR, 0);
	assert_says(SAY(a, failed, found, v6_told, 1), answer, SBX_DNS_SERVFAIL, 0);
	assert_says(SAY(aaaa, found, nx, v4, 1), answer, SBX_DNS_NOERROR, 0);
	assert_says(SAY(a, found, found, none, 0), answer, SBX_DNS_NOERROR, 0);
	assert_says(SAY(a, nx, nx, none, 0), refuse, SBX_DNS_NXDOMAIN, SBX_REASON_RESOLVE_FAILED);
	assert_says(SAY(a, failed, nx, none, 0), refuse, SBX_DNS_NXDOMAIN,
		    SBX_REASON_RESOLVE_FAILED);
	assert_says(SAY(a, failed, failed, none, 0), refuse, SBX_DNS_SERVFAIL,
		    SBX_REASON_RESOLVE_FAILED);
	assert_says(SAY(a, failed, found, none, 0), refuse, SBX_DNS_SERVFAIL,
		    SBX_REASON_RESOLVE_FAILED);
	assert_says(SAY(aaaa, failed, found, none, 0), answer, SBX_DNS_NOERROR, 0);
	assert_says(SAY(a, found, found, bad, 0), refuse, SBX_DNS_NXDOMAIN,
		    SBX_REASON_ADDRESS_CLASS);
	d = SAY(aaaa, found, found, own, 0);
	assert_says(d, refuse, SBX_DNS_NXDOMAIN, SBX_REASON_ADDRESS_CLASS);
	assert_int_equal(d.n_addrs, 1);
	assert_true(sbx_addr_equal(&d.addrs[0], &f.own[0]));
	assert_says(SAY(a, found, found, meta, 0), refuse, SBX_DNS_NXDOMAIN, SBX_REASON_FLOOR);
	assert_says(SAY(a, found, found, denied, 0), refuse, SBX_DNS_NXDOMAIN,
		    SBX_REASON_ADDRESS_DENIED);
	/* Nothing is wrong with it, so there was no room. */
	assert_says(SAY(a, found, found, v4, 0), refuse, SBX_DNS_SERVFAIL,
		    SBX_REASON_PINS_EXHAUSTED);
	assert_says(say(&f, "lan.example.net", a, found, found, bad, 0), refuse, SBX_DNS_SERVFAIL,
		    SBX_REASON_PINS_EXHAUSTED);
#undef SAY
}

static bool may_pin(struct fixture *f, const char *name, const char *addr, enum sbx_proto proto,
		    uint16_t port)
{
	struct sbx_addr a = addr_of(addr);

	return sbx_core_may_pin(&f->core, name, &a, proto, port);
}

/* A translator or tunnel on the way would bring packets to these addresses back to this host. */
static void test_own_embedded(void **state)
{
	FIXTURE f;

	(void)state;
	fixture_init(&f, fetch_yaml);
	for (size_t i = 0; i < SBX_N_ELEMENTS(embeddings); i++) {
		struct sbx_addr own = embed(&embeddings[i], "198.51.100.7"),
				other = embed(&embeddings[i], "198.51.100.8");

		if (!sbx_core_is_own(&f.core, &own) || sbx_core_is_own(&f.core, &other))
			fail_msg("%s", embeddings[i].name);
	}
}

static void test_own_networks(void **state)
{
	static const struct sbx_cidr nets[] = { { { 4, { 203, 0, 113, 64 } }, 26 },
						{ { 6, { 0x20, 1, 0xd, 0xb8, 0, 9 } }, 48 } };
	static const char *const own[] = { "203.0.113.64",	  "203.0.113.127",
					   "2001:db8:9::",	  "2001:db8:9:ffff::1",
					   "::ffff:203.0.113.65", "64:ff9b::203.0.113.65",
					   "2002:cb00:7141::1",	  "198.51.100.7",
					   "2001:db8:7::7" };
	static const char *const others[] = { "203.0.113.63", "203.0.113.128",
					      "2001:db8:a::", "64:ff9b::203.0.113.63",
					      "198.51.100.8" };
	FIXTURE f;

	(void)state;
	fixture_init(&f, fetch_yaml);
	f.core.own_nets = nets;
	f.core.n_own_nets = 2;
	for (size_t i = 0; i < SBX_N_ELEMENTS(own); i++) {
		struct sbx_addr a = addr_of(own[i]);

		assert_true(sbx_core_is_own(&f.core, &a));
	}
	for (size_t i = 0; i < SBX_N_ELEMENTS(others); i++) {
		struct sbx_addr a = addr_of(others[i]);

		assert_false(sbx_core_is_own(&f.core, &a));
	}
}

static void test_may_pin(void **state)
{
	FIXTURE f;

	(void)state;
	fixture_init(&f, fetch_yaml);
	assert_true(may_pin(&f, "example.org", "203.0.113.5", SBX_PROTO_TCP, 443));
	assert_false(may_pin(&f, "example.org", "203.0.113.5", SBX_PROTO_TCP, 22));
	assert_false(may_pin(&f, "example.org", "203.0.113.5", SBX_PROTO_UDP, 443));
	assert_false(may_pin(&f, "other.org", "203.0.113.5", SBX_PROTO_TCP, 443));
	assert_false(may_pin(&f, "bad.example.com", "203.0.113.5", SBX_PROTO_TCP, 443));
	assert_true(may_pin(&f, "good.example.com", "203.0.113.5", SBX_PROTO_TCP, 443));
	/* a deny entry */
	assert_false(may_pin(&f, "example.org", "192.0.2.66", SBX_PROTO_TCP, 443));
	assert_true(may_pin(&f, "example.org", "192.0.2.67", SBX_PROTO_TCP, 443));
	assert_false(may_pin(&f, "example.org", "198.51.100.7", SBX_PROTO_TCP, 443)); /* ours */
	assert_false(may_pin(&f, "example.org", "::ffff:198.51.100.7", SBX_PROTO_TCP, 443));
	assert_true(may_pin(&f, "example.org", "198.51.100.8", SBX_PROTO_TCP, 443));
	assert_false(may_pin(&f, "example.org", "10.0.0.7", SBX_PROTO_TCP, 443));
	assert_true(may_pin(&f, "lan.example.net", "10.0.0.7", SBX_PROTO_TCP, 443));
	assert_false(may_pin(&f, "lan.example.net", "127.0.0.1", SBX_PROTO_TCP, 443));
	assert_false(may_pin(&f, "lan.example.net", "169.254.169.254", SBX_PROTO_TCP, 443));
	assert_true(may_pin(&f, "udp.example.net", "203.0.113.5", SBX_PROTO_UDP, 9999));
	set_air_gap(&f, true);
	assert_false(may_pin(&f, "example.org", "203.0.113.5", SBX_PROTO_TCP, 443));
	set_air_gap(&f, false);
	f.core.own_unknown = true;
	assert_false(may_pin(&f, "example.org", "203.0.113.5", SBX_PROTO_TCP, 443));
}

/* --- where to --- */

static void assert_refused(struct sbx_flow_target t, enum sbx_reason reason)
{
	assert_int_equal(t.kind, SBX_FLOW_REFUSED);
	assert_int_equal(t.verdict.action, SBX_DENY);
	assert_int_equal(t.verdict.reason, reason);
}

static void test_flow_by_name(void **state)
{
	FIXTURE f;
	struct sbx_flow_target t;
	struct sbx_addr a;

	(void)state;
	fixture_init(&f, fetch_yaml);
	a = pin(&f, "example.org");
	t = decide(&f, SBX_PROTO_TCP, a, 443);
	assert_int_equal(t.kind, SBX_FLOW_NAME);
	assert_string_equal(t.name, "example.org");
	assert_int_equal(t.check, SBX_CHECK_TLS);
	assert_true(t.must_match && t.must_parse);
	assert_int_equal(decide(&f, SBX_PROTO_TCP, a, 80).check, SBX_CHECK_HTTP);
	assert_refused(decide(&f, SBX_PROTO_TCP, a, 22), SBX_REASON_PORT);
	assert_refused(decide(&f, SBX_PROTO_UDP, a, 443), SBX_REASON_PORT);
	t = decide(&f, SBX_PROTO_TCP, pin(&f, "ssh.example.net"), 22);
	assert_int_equal(t.kind, SBX_FLOW_NAME);
	assert_int_equal(t.check, SBX_CHECK_NONE);
	t = decide(&f, SBX_PROTO_UDP, pin(&f, "udp.example.net"), 9999);
	assert_int_equal(t.kind, SBX_FLOW_NAME);
	assert_int_equal(t.check, SBX_CHECK_NONE);
	assert_refused(decide(&f, SBX_PROTO_TCP, addr_of("198.18.77.1"), 443), SBX_REASON_NO_PIN);
	assert_refused(decide(&f, SBX_PROTO_TCP, addr_of("fd00:5b:1::ffff"), 443),
		       SBX_REASON_NO_PIN);
	set_air_gap(&f, true);
	assert_refused(decide(&f, SBX_PROTO_TCP, a, 443), SBX_REASON_AIR_GAP);
	t = decide(&f, SBX_PROTO_TCP, pin(&f, "selftest.sbx.invalid"), 1);
	assert_int_equal(t.kind, SBX_FLOW_SELFTEST);
	assert_refused(decide(&f, SBX_PROTO_UDP, t.addr, 1), SBX_REASON_PORT);
}

static void test_flow_by_address(void **state)
{
	FIXTURE f;
	struct sbx_flow_target t;

	(void)state;
	fixture_init(&f, fetch_yaml);
	t = decide(&f, SBX_PROTO_TCP, addr_of("203.0.113.9"), 5432);
	assert_int_equal(t.kind, SBX_FLOW_ADDRESS);
	assert_false(t.must_match);
	t = decide(&f, SBX_PROTO_TCP, addr_of("::ffff:203.0.113.9"), 5432);
	assert_int_equal(t.kind, SBX_FLOW_ADDRESS);
	assert_int_equal(t.addr.family, 4);
	assert_refused(decide(&f, SBX_PROTO_TCP, addr_of("203.0.113.9"), 443), SBX_REASON_PORT);
	assert_refused(decide(&f, SBX_PROTO_TCP, addr_of("192.0.2.1"), 443),
		       SBX_REASON_LITERAL_ADDRESS);
	assert_refused(decide(&f, SBX_PROTO_TCP, addr_of("169.254.169.254"), 80), SBX_REASON_FLOOR);
	/* A private network needs more than its cidr. */
	assert_refused(decide(&f, SBX_PROTO_TCP, addr_of("10.1.2.3"), 5432),
		       SBX_REASON_ADDRESS_CLASS);
	assert_refused(decide(&f, SBX_PROTO_TCP, addr_of("10.2.2.3"), 5432),
		       SBX_REASON_LITERAL_ADDRESS);
	set_air_gap(&f, true);
	assert_refused(decide(&f, SBX_PROTO_TCP, addr_of("203.0.113.9"), 5432), SBX_REASON_AIR_GAP);
}

static void test_flow_full(void **state)
{
	FIXTURE f;
	struct sbx_flow_target t;
	struct sbx_addr a = addr_of("192.0.2.80");

	(void)state;
	fixture_init(&f, full_yaml);
	t = decide(&f, SBX_PROTO_TCP, a, 443);
	assert_int_equal(t.kind, SBX_FLOW_ADDRESS);
	assert_int_equal(t.check, SBX_CHECK_TLS);
	assert_false(t.must_match || t.must_parse);
	assert_int_equal(decide(&f, SBX_PROTO_TCP, a, 80).check, SBX_CHECK_HTTP);
	assert_int_equal(decide(&f, SBX_PROTO_TCP, a, 25).check, SBX_CHECK_NONE);
	assert_int_equal(decide(&f, SBX_PROTO_UDP, a, 443).kind, SBX_FLOW_ADDRESS);
	assert_int_equal(decide(&f, SBX_PROTO_UDP, a, 443).check, SBX_CHECK_NONE);
	assert_refused(decide(&f, SBX_PROTO_TCP, addr_of("fd00:ec2::254"), 80), SBX_REASON_FLOOR);

	/* By name, where an answer gave the address. */
	sbx_leases_add(f.core.leases, &a, "host.example", 10, 0);
	assert_string_equal(decide(&f, SBX_PROTO_TCP, a, 25).name, "host.example");
	sbx_leases_add(f.core.leases, &a, "bad.example.com", 10, 0);
	assert_refused(decide(&f, SBX_PROTO_TCP, a, 25), SBX_REASON_LIST_DENY);
}

/* Flows that sbx-tls carries, and the ways past it. */
static void test_flow_terminated(void **state)
{
	FIXTURE f;
	struct sbx_flow_target t;
	struct sbx_addr a;

	(void)state;
	fixture_init(&f, terminated_yaml);
	t = decide(&f, SBX_PROTO_TCP, pin(&f, "a.example.com"), 443);
	assert_int_equal(t.kind, SBX_FLOW_NAME);
	assert_int_equal(t.terminate, 1);
	assert_int_equal(t.check, SBX_CHECK_TLS);
	assert_true(t.must_match && t.must_parse);
	t = decide(&f, SBX_PROTO_TCP, pin(&f, "api.example.net"), 8443);
	assert_int_equal(t.terminate, 2);
	assert_int_equal(t.check, SBX_CHECK_TLS);
	t = decide(&f, SBX_PROTO_TCP, pin(&f, "api.example.net"), 80);
	assert_int_equal(t.terminate, 2);
	assert_int_equal(t.check, SBX_CHECK_HTTP);
	/* The others are carried as before. */
	assert_int_equal(decide(&f, SBX_PROTO_TCP, pin(&f, "example.org"), 443).terminate, 0);
	t = decide(&f, SBX_PROTO_TCP, pin(&f, "pinned.example.com"), 443);
	assert_int_equal(t.kind, SBX_FLOW_NAME);
	assert_int_equal(t.terminate, 0);
	t = decide(&f, SBX_PROTO_TCP, pin(&f, "other.example"), 8443);
	assert_int_equal(t.kind, SBX_FLOW_NAME);
	assert_int_equal(t.terminate, 0);
	t = decide(&f, SBX_PROTO_TCP, pin(&f, "selftest.sbx.invalid"), 443);
	assert_int_equal(t.terminate, 0);
	/* HTTP/3, and ports that no entry has. */
	assert_refused(decide(&f, SBX_PROTO_UDP, pin(&f, "a.example.com"), 443), SBX_REASON_PORT);
	assert_int_equal(decide(&f, SBX_PROTO_UDP, pin(&f, "other.example"), 443).kind,
			 SBX_FLOW_NAME);
	assert_refused(decide(&f, SBX_PROTO_TCP, pin(&f, "a.example.com"), 8443), SBX_REASON_PORT);
	/* A refused flow has no number. */
	assert_int_equal(decide(&f, SBX_PROTO_TCP, pin(&f, "a.example.com"), 8443).terminate, 0);
	a = pin(&f, "a.example.com");
	set_air_gap(&f, true);
	assert_int_equal(decide(&f, SBX_PROTO_TCP, a, 443).terminate, 0);
}

/* An answer gave the address (which needs real answers): the name is not reached past sbx-tls. */
static void test_lease_terminated(void **state)
{
	FIXTURE f;
	struct sbx_addr a = addr_of("203.0.113.9");

	(void)state;
	fixture_init(&f, terminated_yaml);
	assert_int_equal(sbx_leases_new(100, &f.core.leases), 0);
	assert_int_equal(decide(&f, SBX_PROTO_TCP, a, 443).kind, SBX_FLOW_ADDRESS);
	sbx_leases_add(f.core.leases, &a, "example.org", 10, 0);
	assert_int_equal(decide(&f, SBX_PROTO_TCP, a, 443).kind, SBX_FLOW_ADDRESS);
	sbx_leases_add(f.core.leases, &a, "a.example.com", 10, 0);
	assert_refused(decide(&f, SBX_PROTO_TCP, a, 443), SBX_REASON_NOT_TERMINATED);
	assert_int_equal(decide(&f, SBX_PROTO_TCP, a, 443).terminate, 0);
}

/* --- how it begins --- */

static struct sbx_verdict hello(struct fixture *f, const struct sbx_flow_target *t, const char *sni)
{
	struct sbx_tls_hello h = { .reason = SBX_REASON_UNKNOWN };

	strcpy(h.sni, sni);
	return sbx_core_judge_hello(&f->core, t, 0, &h);
}

static struct sbx_verdict bad_hello(struct fixture *f, const struct sbx_flow_target *t,
				    enum sbx_reason reason)
{
	struct sbx_tls_hello h = { .reason = reason };
	struct sbx_verdict v;

	h.is_tls = true; /* makes one difference: test_hello() */
	v = sbx_core_judge_hello(&f->core, t, SBX_TLS_E_REJECT, &h);
	h.is_tls = false;
	if (reason != SBX_REASON_TLS_MALFORMED)
		assert_int_equal(sbx_core_judge_hello(&f->core, t, SBX_TLS_E_REJECT, &h).action,
				 v.action);
	return v;
}

static void test_hello(void **state)
{
	static const enum sbx_reason bad[] = { SBX_REASON_TLS_MALFORMED, SBX_REASON_SNI_ABSENT,
					       SBX_REASON_SNI_DUPLICATE, SBX_REASON_SNI_MISMATCH,
					       SBX_REASON_ECH,		 SBX_REASON_OVERSIZED };
	FIXTURE f;
	FIXTURE full;
	struct sbx_flow_target t;

	(void)state;
	fixture_init(&f, fetch_yaml);
	t = decide(&f, SBX_PROTO_TCP, pin(&f, "example.org"), 443);
	assert_int_equal(hello(&f, &t, "example.org").action, SBX_ALLOW);
	assert_int_equal(hello(&f, &t, "a.example.com").reason, SBX_REASON_SNI_MISMATCH);
	assert_int_equal(hello(&f, &t, "a.example.com").action, SBX_DENY);
	assert_int_equal(hello(&f, &t, "").action, SBX_DENY);
	for (size_t i = 0; i < SBX_N_ELEMENTS(bad); i++) {
		assert_int_equal(bad_hello(&f, &t, bad[i]).action, SBX_DENY);
		assert_int_equal(bad_hello(&f, &t, bad[i]).reason, bad[i]);
	}

	fixture_init(&full, full_yaml);
	t = decide(&full, SBX_PROTO_TCP, addr_of("192.0.2.80"), 443);
	assert_int_equal(hello(&full, &t, "anything.example").action, SBX_ALLOW);
	assert_int_equal(hello(&full, &t, "www.ipinfo.io").reason, SBX_REASON_FLOOR);
	assert_int_equal(hello(&full, &t, "bad.example.com").reason, SBX_REASON_LIST_DENY);
	/* The broker carries bytes that are not TLS, and refuses a malformed TLS hello. */
	assert_int_equal(
		sbx_core_judge_hello(&full.core, &t, SBX_TLS_E_REJECT,
				     &(struct sbx_tls_hello){ .reason = SBX_REASON_TLS_MALFORMED })
			.action,
		SBX_ALLOW);
	assert_int_equal(bad_hello(&full, &t, SBX_REASON_TLS_MALFORMED).action, SBX_DENY);
	assert_int_equal(bad_hello(&full, &t, SBX_REASON_TLS_MALFORMED).reason,
			 SBX_REASON_TLS_MALFORMED);
	assert_int_equal(bad_hello(&full, &t, SBX_REASON_SNI_ABSENT).action, SBX_ALLOW);
	assert_int_equal(bad_hello(&full, &t, SBX_REASON_SNI_MISMATCH).action, SBX_ALLOW);
	assert_int_equal(bad_hello(&full, &t, SBX_REASON_ECH).action, SBX_DENY);
	assert_int_equal(bad_hello(&full, &t, SBX_REASON_SNI_DUPLICATE).action, SBX_DENY);
	assert_int_equal(bad_hello(&full, &t, SBX_REASON_OVERSIZED).action, SBX_DENY);
}

static struct sbx_verdict request(struct fixture *f, const struct sbx_flow_target *t,
				  const char *host, uint16_t port, bool *opaque)
{
	struct sbx_http_judge j = { 0 };
	struct sbx_http_event e = { .host_port = port, .upgrade = port == 2 };

	strcpy(e.host, host);
	return sbx_core_judge_request(&f->core, t, 0, &j, &e, opaque);
}

static struct sbx_verdict bad_request(struct fixture *f, const struct sbx_flow_target *t,
				      enum sbx_reason reason, bool is_http, bool *opaque)
{
	struct sbx_http_judge j = { .reason = reason, .is_http = is_http };

	return sbx_core_judge_request(&f->core, t, SBX_HTTP_E_REJECT, &j, NULL, opaque);
}

static void test_request(void **state)
{
	FIXTURE f;
	FIXTURE full;
	struct sbx_flow_target t;
	bool opaque;

	(void)state;
	fixture_init(&f, fetch_yaml);
	t = decide(&f, SBX_PROTO_TCP, pin(&f, "example.org"), 80);
	assert_int_equal(request(&f, &t, "example.org", 0, &opaque).action, SBX_ALLOW);
	assert_int_equal(request(&f, &t, "example.org", 80, &opaque).action, SBX_ALLOW);
	assert_int_equal(request(&f, &t, "example.org", 8080, &opaque).reason,
			 SBX_REASON_HOST_MISMATCH);
	assert_int_equal(request(&f, &t, "a.example.com", 0, &opaque).reason,
			 SBX_REASON_HOST_MISMATCH);
	for (int r = SBX_REASON_HTTP_MALFORMED; r <= SBX_REASON_HTTP_UPGRADE; r++) {
		assert_int_equal(bad_request(&f, &t, (enum sbx_reason)r, false, &opaque).action,
				 SBX_DENY);
		assert_false(opaque);
		assert_int_equal(bad_request(&f, &t, (enum sbx_reason)r, true, &opaque).action,
				 SBX_DENY);
		assert_false(opaque);
	}

	fixture_init(&full, full_yaml);
	t = decide(&full, SBX_PROTO_TCP, addr_of("192.0.2.80"), 80);
	assert_int_equal(request(&full, &t, "any.example", 1, &opaque).action, SBX_ALLOW);
	assert_int_equal(request(&full, &t, "ipinfo.io", 0, &opaque).reason, SBX_REASON_FLOOR);
	assert_false(opaque);
	assert_int_equal(request(&full, &t, "", 0, &opaque).action, SBX_ALLOW);
	assert_false(opaque);
	/* Port 2: it asks to leave HTTP. */
	assert_int_equal(request(&full, &t, "any.example", 2, &opaque).action, SBX_ALLOW);
	assert_true(opaque);
	assert_int_equal(request(&full, &t, "ipinfo.io", 2, &opaque).reason, SBX_REASON_FLOOR);
	assert_false(opaque);
	assert_int_equal(request(&full, &t, "", 2, &opaque).action, SBX_ALLOW);
	assert_true(opaque);
	/* The broker carries bytes that are not HTTP, and refuses a malformed HTTP request. */
	assert_int_equal(bad_request(&full, &t, SBX_REASON_HTTP_MALFORMED, false, &opaque).action,
			 SBX_ALLOW);
	assert_true(opaque);
	assert_int_equal(bad_request(&full, &t, SBX_REASON_HTTP_MALFORMED, true, &opaque).reason,
			 SBX_REASON_HTTP_MALFORMED);
	assert_false(opaque);
	assert_int_equal(bad_request(&full, &t, SBX_REASON_HTTP_UPGRADE, true, &opaque).action,
			 SBX_ALLOW);
	assert_true(opaque);
	for (int is_http = 0; is_http < 2; is_http++) {
		assert_int_equal(
			bad_request(&full, &t, SBX_REASON_HOST_DUPLICATE, is_http, &opaque).action,
			SBX_DENY);
		assert_int_equal(
			bad_request(&full, &t, SBX_REASON_HOST_MISMATCH, is_http, &opaque).action,
			SBX_DENY);
		assert_int_equal(
			bad_request(&full, &t, SBX_REASON_OVERSIZED, is_http, &opaque).action,
			SBX_DENY);
		assert_false(opaque);
	}
}

/* --- what to dial --- */

static void candidates(struct fixture *f, const struct sbx_flow_target *t, const char *const *addrs,
		       uint8_t first_family, struct sbx_candidates *c)
{
	struct sbx_addr v[32];
	size_t n = 0;

	for (; addrs[n]; n++)
		v[n] = addr_of(addrs[n]);
	sbx_core_candidates(&f->core, t, v, n, first_family, c);
}

static void assert_candidates(const struct sbx_candidates *c, const char *const *addrs)
{
	char buf[SBX_ADDR_STR_MAX];
	size_t n = 0;

	for (; addrs[n]; n++) {
		assert_true(n < c->n);
		assert_string_equal(sbx_addr_format(&c->v[n], buf, sizeof(buf)), addrs[n]);
	}
	assert_int_equal(c->n, n);
}
#define LIST(...)                                                                                  \
	(const char *const[])                                                                      \
	{                                                                                          \
		__VA_ARGS__, NULL                                                                  \
	}

static void test_candidates(void **state)
{
	FIXTURE f;
	struct sbx_flow_target t;
	struct sbx_candidates c;

	(void)state;
	fixture_init(&f, fetch_yaml);
	t = decide(&f, SBX_PROTO_TCP, pin(&f, "example.org"), 443);
	candidates(&f, &t, LIST("192.0.2.1", "192.0.2.2", "2001:db8::1", "192.0.2.3"), 6, &c);
	assert_candidates(&c, LIST("2001:db8::1", "192.0.2.1", "192.0.2.2", "192.0.2.3"));
	candidates(&f, &t, LIST("2001:db8::1", "2001:db8::2", "192.0.2.1", "2001:db8::3"), 4, &c);
	assert_candidates(&c, LIST("192.0.2.1", "2001:db8::1", "2001:db8::2", "2001:db8::3"));
	/* Doubled ones once; mapped ones as what they are. */
	candidates(&f, &t, LIST("192.0.2.1", "::ffff:192.0.2.1", "192.0.2.1"), 6, &c);
	assert_candidates(&c, LIST("192.0.2.1"));

	candidates(&f, &t,
		   LIST("127.0.0.1", "192.0.2.9", "10.0.0.1", "169.254.169.254", "::1",
			"64:ff9b::7f00:1"),
		   6, &c);
	assert_candidates(&c, LIST("192.0.2.9"));
	candidates(&f, &t, LIST("127.0.0.1"), 6, &c);
	assert_int_equal(c.n, 0);
	assert_int_equal(c.refused.reason, SBX_REASON_ADDRESS_CLASS);
	candidates(&f, &t, LIST("192.0.2.66"), 6, &c);
	assert_int_equal(c.refused.reason, SBX_REASON_ADDRESS_DENIED);
	candidates(&f, &t, LIST("169.254.169.254"), 6, &c);
	assert_int_equal(c.refused.reason, SBX_REASON_FLOOR);
	candidates(&f, &t, (const char *const[]){ NULL }, 6, &c);
	assert_int_equal(c.n, 0);
}

static void test_candidates_own(void **state)
{
	FIXTURE f;
	struct sbx_flow_target t;
	struct sbx_candidates c;

	(void)state;
	fixture_init(&f, fetch_yaml);
	t = decide(&f, SBX_PROTO_TCP, pin(&f, "lan.example.net"), 443);
	candidates(&f, &t, LIST("198.51.100.7"), 6, &c);
	assert_int_equal(c.n, 0);
	assert_int_equal(c.refused.reason, SBX_REASON_ADDRESS_CLASS);
	candidates(&f, &t, LIST("2001:db8:7::7", "198.51.100.8"), 6, &c);
	assert_candidates(&c, LIST("198.51.100.8"));
	/* private: true opens the intranet, not this host and not metadata. */
	candidates(&f, &t, LIST("10.0.0.1", "127.0.0.1", "100.100.100.200"), 6, &c);
	assert_candidates(&c, LIST("10.0.0.1"));
	f.core.own_unknown = true;
	candidates(&f, &t, LIST("192.0.2.1"), 6, &c);
	assert_int_equal(c.n, 0);
}

static void test_candidates_many(void **state)
{
	FIXTURE f;
	struct sbx_flow_target t;
	struct sbx_candidates c;
	struct sbx_addr v[64] = { { 0 } };

	(void)state;
	fixture_init(&f, fetch_yaml);
	t = decide(&f, SBX_PROTO_TCP, pin(&f, "example.org"), 443);
	for (uint8_t i = 0; i < 64; i++)
		v[i] = (struct sbx_addr){ .family = 4, .b = { 192, 0, 2, (uint8_t)(i + 100) } };
	sbx_core_candidates(&f.core, &t, v, 64, 6, &c);
	assert_int_equal(c.n, SBX_CANDIDATES_MAX);
	f.config.limits.n_addresses = 3;
	sbx_core_candidates(&f.core, &t, v, 64, 6, &c);
	assert_int_equal(c.n, 3);
	c.refused = (struct sbx_verdict){ .action = SBX_ALLOW }; /* of an earlier flow */
	sbx_core_candidates(&f.core, &t, v, 0, 6, &c);
	assert_int_equal(c.refused.action, SBX_DENY);
	assert_int_equal(c.refused.reason, SBX_REASON_UNKNOWN);
}

/* The name of a terminated host in a flow to an address. */
static void test_loose_name(void **state)
{
	FIXTURE f;
	struct sbx_flow_target t;
	struct sbx_addr a = addr_of("203.0.113.9");
	bool opaque;

	(void)state;
	fixture_init(&f, terminated_yaml);
	t = decide(&f, SBX_PROTO_TCP, a, 443);
	assert_int_equal(t.kind, SBX_FLOW_ADDRESS);
	assert_int_equal(t.terminate, 0);
	assert_int_equal(hello(&f, &t, "other.example").action, SBX_ALLOW);
	assert_int_equal(hello(&f, &t, "example.org").action, SBX_ALLOW);
	assert_int_equal(hello(&f, &t, "example.com").action, SBX_ALLOW);
	assert_int_equal(hello(&f, &t, "pinned.example.com").action, SBX_ALLOW);
	assert_int_equal(hello(&f, &t, "a.example.com").action, SBX_DENY);
	assert_int_equal(hello(&f, &t, "a.example.com").reason, SBX_REASON_NOT_TERMINATED);
	assert_int_equal(hello(&f, &t, "api.example.net").reason, SBX_REASON_NOT_TERMINATED);
	/* On a port that its entry does not have. */
	t = decide(&f, SBX_PROTO_TCP, a, 8443);
	assert_int_equal(hello(&f, &t, "other.example").action, SBX_ALLOW);
	assert_int_equal(hello(&f, &t, "a.example.com").reason, SBX_REASON_NOT_TERMINATED);

	t = decide(&f, SBX_PROTO_TCP, a, 80);
	assert_int_equal(request(&f, &t, "other.example", 0, &opaque).action, SBX_ALLOW);
	assert_int_equal(request(&f, &t, "a.example.com", 0, &opaque).action, SBX_DENY);
	assert_int_equal(request(&f, &t, "a.example.com", 0, &opaque).reason,
			 SBX_REASON_NOT_TERMINATED);
	assert_int_equal(request(&f, &t, "a.example.com", 2, &opaque).action, SBX_DENY);
	assert_false(opaque);
}

/* An air gap allows nothing more: what a list denies it denies in a flow to an address, too. */
static void test_loose_name_in_gap(void **state)
{
	FIXTURE f;
	struct sbx_flow_target t;
	struct sbx_addr a = addr_of("203.0.113.9");
	bool opaque;

	(void)state;
	fixture_init(&f, full_yaml);
	t = decide(&f, SBX_PROTO_TCP, a, 443);
	assert_int_equal(hello(&f, &t, "bad.example.com").reason, SBX_REASON_LIST_DENY);
	gap_but_for(&f, full_yaml, "203.0.113.0/24");
	t = decide(&f, SBX_PROTO_TCP, a, 443);
	assert_int_equal(t.verdict.reason, SBX_REASON_LIVE_ALLOW);
	assert_int_equal(hello(&f, &t, "other.example").action, SBX_ALLOW);
	assert_int_equal(hello(&f, &t, "bad.example.com").action, SBX_DENY);
	assert_int_equal(hello(&f, &t, "bad.example.com").reason, SBX_REASON_LIST_DENY);
	t = decide(&f, SBX_PROTO_TCP, a, 80);
	assert_int_equal(request(&f, &t, "other.example", 0, &opaque).action, SBX_ALLOW);
	assert_int_equal(request(&f, &t, "bad.example.com", 0, &opaque).reason,
			 SBX_REASON_LIST_DENY);
}

static struct sbx_verdict logged(struct fixture *f, enum sbx_proto proto, const struct sbx_addr *a,
				 uint16_t port)
{
	const char *name;

	return sbx_core_judge_logged(&f->core, proto, a, port, &name);
}

static void test_logged(void **state)
{
	FIXTURE f;
	struct sbx_addr a = addr_of("192.0.2.1"), meta = addr_of("169.254.169.254");

	(void)state;
	fixture_init(&f, fetch_yaml);
	assert_int_equal(logged(&f, SBX_PROTO_TCP, &a, 80).reason,
			 SBX_REASON_LITERAL_ADDRESS);
	assert_int_equal(logged(&f, SBX_PROTO_UDP, &meta, 80).reason,
			 SBX_REASON_FLOOR);
	assert_int_equal(logged(&f, SBX_PROTO_ICMP, &a, 0).reason,
			 SBX_REASON_FIREWALL);
	a = addr_of("203.0.113.9"); /* an entry allows it, and yet the filter refused it */
	assert_int_equal(logged(&f, SBX_PROTO_TCP, &a, 5432).reason,
			 SBX_REASON_FIREWALL);
	set_air_gap(&f, true);
	assert_int_equal(logged(&f, SBX_PROTO_TCP, &a, 80).reason,
			 SBX_REASON_AIR_GAP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_dns_fetch),      cmocka_unit_test(test_dns_selftest),
		cmocka_unit_test(test_dns_exhausted),  cmocka_unit_test(test_dns_real),
		cmocka_unit_test(test_flow_by_name),   cmocka_unit_test(test_flow_by_address),
		cmocka_unit_test(test_flow_full),      cmocka_unit_test(test_hello),
		cmocka_unit_test(test_request),	       cmocka_unit_test(test_candidates),
		cmocka_unit_test(test_candidates_own), cmocka_unit_test(test_candidates_many),
		cmocka_unit_test(test_logged),	       cmocka_unit_test(test_dns_pins),
		cmocka_unit_test(test_dns_pinned),     cmocka_unit_test(test_may_pin),
		cmocka_unit_test(test_own_embedded),   cmocka_unit_test(test_own_networks),
		cmocka_unit_test(test_flow_terminated), cmocka_unit_test(test_lease_terminated),
		cmocka_unit_test(test_loose_name),    cmocka_unit_test(test_loose_name_in_gap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
