/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which entries are terminated, and what the compiled policy then says of flows. */

#include "tests/unit/policy_world.h"

#include <errno.h>

#include "policy/profile/settle.h"

/* "T=env:T" of each profile below; @hosts are its hosts. */
#define SECRET(hosts) "secrets: [{name: T, from: env:T, hosts: " hosts "}]\n"

static struct sbx_profile *settled(const char *yaml)
{
	struct sbx_profile *p = good_profile(yaml);
	struct sbx_err err = { 0 };

	if (sbx_profile_settle_secrets(p, &err) != 0)
		fail_msg("%s", err.msg);
	return p;
}

static void refused(const char *yaml, const char *message)
{
	SBX_CLEANUP(sbx_profile_freep) struct sbx_profile *p = good_profile(yaml);
	struct sbx_err err = { 0 };
	int r = sbx_profile_settle_secrets(p, &err);

	if (r != SBX_PROFILE_E_INVALID || !strstr(err.msg, message))
		fail_msg("expected '%s', not '%s' (%d)", message, err.msg, r);
}

/* The terminated entries are exactly @texts, in order ("" ends them). */
static void terminates(const char *yaml, const char *const *texts)
{
	SBX_CLEANUP(sbx_profile_freep) struct sbx_profile *p = settled(yaml);
	const struct sbx_net_entry *v[SBX_TERMINATED_MAX];
	size_t n = sbx_profile_terminated(p, v, SBX_TERMINATED_MAX), n_allow = p->network.allow.n;

	for (size_t i = 0; i < n || texts[i]; i++) {
		if (i >= n || !texts[i] || strcmp(v[i]->text, texts[i]) != 0)
			fail_msg("entry %zu is '%s', not '%s'", i, i < n ? v[i]->text : "none",
				 texts[i] ? texts[i] : "none");
	}
	/* Again: nothing changes. */
	assert_int_equal(sbx_profile_settle_secrets(p, NULL), 0);
	assert_int_equal(p->network.allow.n, n_allow);
	assert_int_equal(sbx_profile_terminated(p, NULL, 0), n);
}

#define TERMINATES(yaml, ...) terminates(yaml, (const char *const[]){ __VA_ARGS__, NULL })

/* The number of the terminated entry that carries a flow, or -1: the flow is refused. */
static int flow(const struct world *w, const char *name, enum sbx_proto proto, uint16_t port)
{
	struct sbx_verdict v = sbx_policy_decide_name(w->p, name, proto, port);

	assert_true(v.action == SBX_ALLOW || v.terminate == 0);
	return v.action == SBX_ALLOW ? (int)v.terminate : -1;
}

static int tcp(const struct world *w, const char *name, uint16_t port)
{
	return flow(w, name, SBX_PROTO_TCP, port);
}

static void test_asking(void **state)
{
	(void)state;
	terminates("network: {allow: [a.example, 192.0.2.0/24]}\n", (const char *const[]){ NULL });
	TERMINATES("network: {allow: [a.example, {host: b.example, access: read-only},\n"
		   "  {host: c.example, access: {paths: [/a]}}, {host: d.example, inspect: true},\n"
		   "  {host: e.example, headers: {A: b}}, {host: f.example, websocket: true},\n"
		   "  {host: g.example, max_request_bytes: 1M}, {host: h.example, private: true},\n"
		   "  {host: i.example, mtls: {cert: /c, key: /k}},\n"
		   "  {host: j.example, passthrough: true}]}\n",
		   "b.example", "c.example", "d.example", "e.example", "f.example", "g.example",
		   "i.example");
}

static void test_secret_hosts(void **state)
{
	(void)state;
	/* The very pattern. */
	TERMINATES("network: {allow: [a.example, b.example]}\n" SECRET("a.example"), "a.example");
	/* All at or below a wildcard; the apex is not below. */
	TERMINATES("network: {allow: ['*.a.example', x.a.example, '*.y.a.example:8443', "
		   "a.example, b.example]}\n" SECRET("'*.a.example'"),
		   "*.a.example", "x.a.example", "*.y.a.example:8443");
	/* Only below: the secret goes there. */
	TERMINATES("network: {allow: [x.a.example]}\n" SECRET("'*.a.example'"), "x.a.example");
	/* A wider entry is copied, with its ports. */
	TERMINATES("network: {allow: ['*.a.example:443,8443']}\n" SECRET("x.a.example"),
		   "x.a.example:443,8443");
	TERMINATES("network: {allow: ['*.a.example']}\n" SECRET("'*.x.a.example'"),
		   "*.x.a.example");
	/* Of a wider one that is terminated there is nothing to copy. */
	TERMINATES("network: {allow: [{host: '*.a.example', access: read-only}]}\n"
		   SECRET("x.a.example"), "*.a.example");
	/* The own entry's ports first, then the rest of the wider ones. */
	TERMINATES("network: {allow: ['*.example:80', '*.a.example', 'x.a.example:443']}\n"
		SECRET("x.a.example"),
		   "x.a.example:443", "x.a.example:80");
	/* Two secrets of one host: one copy. */
	TERMINATES("network: {allow: ['*.a.example']}\n"
		   "secrets: [{name: A, from: env:A, hosts: x.a.example},\n"
		   "          {name: B, from: env:B, hosts: [x.a.example, y.a.example]}]\n",
		   "x.a.example", "y.a.example");
}

static void test_copy(void **state)
{
	static const char yaml[] =
		"network:\n  allow:\n"
		"    - {host: '*.a.example', ports: [443, 9000], private: true, check: tls}\n"
		SECRET("x.a.example");
	SBX_CLEANUP(sbx_profile_freep) struct sbx_profile *p = settled(yaml);
	const struct sbx_net_entry *e = &p->network.allow.v[1];

	(void)state;
	assert_int_equal(p->network.allow.n, 2);
	assert_string_equal(e->host, "x.a.example");
	assert_false(e->wildcard);
	assert_true(e->terminate && e->private_ok && e->check_set);
	assert_int_equal(e->check, SBX_CHECK_TLS);
	assert_int_equal(e->n_ports, 2);
	assert_int_equal(e->line, 3);
}

static void test_not_allowed(void **state)
{
	(void)state;
	refused("network: {allow: [a.example]}\n" SECRET("b.example"),
		"secret 'T': host 'b.example' is not allowed by the profile; add it to "
		"network.allow, or --allow b.example");
	refused("network: {allow: ['*.b.example']}\n" SECRET("b.example"), "is not allowed");
	refused("network: {allow: [b.example]}\n" SECRET("'*.b.example'"), "is not allowed");
	refused("network: {allow: ['b.example:443/udp']}\n" SECRET("b.example"), "is not allowed");
	refused("network: {allow: [a.example]}\n" SECRET("[a.example, b.example]"),
		"host 'b.example'");
	refused("network: {allow: ['*.a.example'], deny: [x.a.example]}\n" SECRET("x.a.example"),
		"secret 'T': host 'x.a.example' is refused by the entry 'x.a.example' of "
		"network.deny (--deny): leave out one of the two");
	refused("network: {allow: [x.a.example], deny: [x.a.example]}\n" SECRET("x.a.example"),
		"is refused by the entry 'x.a.example'");
	refused("network: {allow: ['*.example'], deny: ['*.a.example']}\n" SECRET("x.a.example"),
		"is refused by the entry '*.a.example'");
	refused("network: {allow: ['*.a.example'], deny: ['*.a.example']}\n"
		SECRET("'*.a.example'"),
		"is refused by the entry '*.a.example'");
	refused("network: {allow: [b.example], deny: ['*.c.example']}\n" SECRET("a.example"),
		"is not allowed by the profile");
	TERMINATES("network: {allow: [x.a.example], deny: ['x.a.example:80']}\n"
		   SECRET("x.a.example"),
		   "x.a.example");
	refused("network: {default: allow, deny: [x.a.example]}\n" SECRET("x.a.example"),
		"is refused by the entry 'x.a.example' of network.deny");
	/* Offline, nothing leaves. */
	terminates("network: {mode: offline}\n" SECRET("b.example"), (const char *const[]){ NULL });
	terminates("network: {mode: offline, attach: cgroup}\n" SECRET("b.example"),
		   (const char *const[]){ NULL });
}

/* A secret is sent over TLS only. */
static void test_plain_http(void **state)
{
	static const char message[] =
		"secret 'T': host 'a.example' is allowed on ports of plain HTTP only, and a secret "
		"is sent over TLS only: allow port 443";

	(void)state;
	refused("network: {allow: ['a.example:80']}\n" SECRET("a.example"), message);
	refused("network: {allow: ['*.example:80']}\n" SECRET("a.example"), message);
	refused("network: {allow: [a.example], deny: ['a.example:443']}\n" SECRET("a.example"),
		message);
	refused("network: {allow: [{host: a.example, check: http}]}\n" SECRET("a.example"),
		message);
	refused("network: {allow: [{host: '*.example', ports: 80, inspect: true}]}\n"
		SECRET("a.example"),
		message);
	TERMINATES("network: {allow: ['a.example:79-81']}\n" SECRET("a.example"),
		   "a.example:79-81");
	TERMINATES("network: {allow: [{host: a.example, ports: 80, check: tls}]}\n"
		   SECRET("a.example"),
		   "a.example:80");
	TERMINATES("network: {allow: ['a.example:80', '*.example:443']}\n" SECRET("a.example"),
		   "a.example:80", "a.example:443");
}

static void test_default_allow(void **state)
{
	(void)state;
	TERMINATES("network: {default: allow}\n" SECRET("'*.a.example'"), "*.a.example");
	TERMINATES("network: {default: allow, allow: [a.example]}\n" SECRET("a.example"),
		   "a.example");
	TERMINATES("network: {default: allow, allow: ['a.example:8443']}\n" SECRET("a.example"),
		   "a.example:8443", "a.example");
	TERMINATES("network: {default: allow, deny: ['*.example:80']}\n" SECRET("a.example"),
		   "a.example:443");
}

/* A copy must not lift a deny entry between it and the entry it is made of. */
static void test_denies_stay(void **state)
{
	static const char yaml[] = "network:\n"
				   "  allow: ['*.example:80,443,8000-8002']\n"
				   "  deny: ['*.a.example:443,8001', 'x.a.example:80/udp']\n"
		SECRET("x.a.example");
	SBX_CLEANUP(world_fini) struct world w = world_of(yaml, NULL);

	(void)state;
	TERMINATES(yaml, "x.a.example:80,8000,8002");
	assert_int_equal(tcp(&w, "x.a.example", 443), -1);
	assert_int_equal(tcp(&w, "x.a.example", 8001), -1);
	assert_int_equal(tcp(&w, "x.a.example", 80), 1);
	assert_int_equal(tcp(&w, "x.a.example", 8002), 1);
	assert_int_equal(tcp(&w, "y.a.example", 80), 0);
	assert_int_equal(tcp(&w, "y.a.example", 443), -1);
	assert_int_equal(tcp(&w, "y.b.example", 443), 0);
	/* A deny that is less specific than the entry does not count. */
	TERMINATES("network: {allow: ['*.a.example'], deny: ['*.example']}\n"
		   SECRET("x.a.example"),
		   "x.a.example");
	/* The rest may be too many ranges for one entry. */
	refused("network: {allow: ['*.example:1-100'], deny: ['*.a.example:2,4,6,8,10,12,14,16,"
		"18,20,22,24,26,28,30,32']}\n" SECRET("x.a.example"),
		"more than 16 ranges");
}

static void test_contradictions(void **state)
{
	(void)state;
	refused("network: {allow: [{host: a.example, passthrough: true}]}\n" SECRET("a.example"),
		"entry 'a.example' says passthrough");
	refused("network: {allow: [{host: '*.example', passthrough: true}]}\n"
		SECRET("a.example"),
		"entry '*.example' says passthrough");
	refused("network: {allow: ['*.a.example', {host: x.a.example, passthrough: true}]}\n"
		SECRET("'*.a.example'"),
		"entry 'x.a.example' says passthrough");
	TERMINATES("network: {allow: [a.example, {host: b.example, passthrough: true}]}\n"
		SECRET("a.example"),
		   "a.example");
	refused("network: {allow: [{host: a.example, check: none}]}\n" SECRET("a.example"),
		"says check: none");
	TERMINATES("network: {allow: [{host: a.example, check: tls}]}\n" SECRET("a.example"),
		   "a.example");
	/* One pattern, terminated and not to be terminated. */
	refused("network: {allow: [{host: a.example, passthrough: true}, "
		"{host: a.example, access: read-only}]}\n",
		"with passthrough and without");
	TERMINATES("network: {allow: [{host: a.example, ports: 8443, passthrough: true}, "
		   "{host: a.example, access: read-only}]}\n",
		   "a.example");
	TERMINATES("network: {allow: [{host: x.a.example, passthrough: true}, "
		   "{host: '*.a.example', access: read-only}]}\n",
		   "*.a.example");
	/* HTTP/3 */
	refused("network: {allow: ['a.example:443/udp', {host: a.example, inspect: true}]}\n",
		"'a.example:443/udp' would let HTTP/3 pass by");
	refused("network: {allow: ['*.example:443/udp', {host: a.example, inspect: true}]}\n",
		"HTTP/3");
	refused("network: {allow: ['a.example:443/udp', {host: '*.example', inspect: true}]}\n",
		"HTTP/3");
	TERMINATES("network: {allow: ['a.example:53/udp', {host: a.example, inspect: true}]}\n",
		   "a.example");
	TERMINATES("network: {allow: ['b.example:443/udp', {host: a.example, inspect: true}]}\n",
		   "a.example");
}

static void test_network(void **state)
{
	(void)state;
	refused("network: {mode: full}\n" SECRET("a.example"),
		"secret 'T': mode full carries connections unread: use mode fetch with "
		"network.default: allow");
	refused("network: {mode: full, allow: [{host: a.example, access: read-only}]}\n",
		"network.allow: entry 'a.example': mode full");
	refused("network: {attach: cgroup, allow: [a.example]}\n" SECRET("a.example"),
		"secret 'T': it needs the broker, which attach cgroup does not have in the way: "
		"use attach netns");
	refused("network: {attach: cgroup, allow: [{host: a.example, inspect: true}]}\n",
		"use attach netns");
	terminates("network: {mode: full, allow: [{host: a.example, passthrough: true}]}\n",
		   (const char *const[]){ NULL });
	terminates("network: {attach: cgroup, allow: [{host: a.example, passthrough: true}]}\n",
		   (const char *const[]){ NULL });
}

static void test_many(void **state)
{
	SBX_CLEANUP(sbx_profile_freep) struct sbx_profile *p = good_profile("{}\n");
	struct sbx_err err = { 0 };

	(void)state;
	for (int i = 0; i <= SBX_TERMINATED_MAX; i++) {
		char name[64];

		assert_int_equal(sbx_profile_settle_secrets(p, &err), 0);
		snprintf(name, sizeof(name), "h%d.example", i);
		assert_int_equal(
			sbx_net_list_add_pattern(&p->network.allow, name, "--allow", &err), 0);
		p->network.allow.v[i].inspect = true;
	}
	assert_int_equal(sbx_profile_settle_secrets(p, &err), SBX_PROFILE_E_INVALID);
	assert_non_null(strstr(err.msg, "257 entries are terminated"));
}

/* As many plain entries as a profile may have, and one below which they all are. */
static void test_many_inherit(void **state)
{
	SBX_CLEANUP(sbx_profile_freep) struct sbx_profile *p =
		good_profile("network: {allow: [{host: '*.example', access: read-only}]}\n");
	struct sbx_err err = { 0 };

	(void)state;
	for (int i = 0; i < 20000 - 1; i++) {
		char name[64];

		snprintf(name, sizeof(name), "h%d.example", i);
		assert_int_equal(
			sbx_net_list_add_pattern(&p->network.allow, name, "--allow", &err), 0);
	}
	assert_int_equal(sbx_profile_settle_secrets(p, &err), SBX_PROFILE_E_INVALID);
	assert_non_null(strstr(err.msg, "entries are terminated"));
	assert_true(p->network.allow.n <= 20000 + SBX_TERMINATED_MAX + 1);
}

static void test_verdicts(void **state)
{
	static const char yaml[] =
		"network:\n  allow:\n"
		"    - plain.example\n"
		"    - {host: '*.a.example', access: read-only}\n"
		"    - {host: open.a.example, access: any}\n"
		"    - {host: http.example, ports: [80, 443, 8080], inspect: true, check: http}\n"
		"    - {host: ports.example, ports: [80, 443, 8080], inspect: true}\n"
		"    - {host: ports.example, ports: 8080, access: read-only}\n"
		"    - ports.example\n" /* its text sorts first */
		"    - ports.example:8080\n"
		"    - ports.example:22\n"
		"    - 192.0.2.0/24\n"
		"  deny: [no.a.example]\n";
	const struct sbx_addr addr = { .family = 4, .b = { 192, 0, 2, 1 } };
	SBX_CLEANUP(world_fini) struct world w = world_of(yaml, NULL);
	struct sbx_verdict v;

	(void)state;
	assert_int_equal(tcp(&w, "plain.example", 443), 0);
	assert_int_equal(tcp(&w, "x.a.example", 443), 1);
	assert_int_equal(tcp(&w, "open.a.example", 443), 0);
	assert_int_equal(tcp(&w, "no.a.example", 443), -1);
	/* The terminated one of a pattern wins over a plain one, and the last of those. */
	assert_int_equal(tcp(&w, "ports.example", 443), 3);
	assert_int_equal(tcp(&w, "ports.example", 8080), 4);
	assert_int_equal(tcp(&w, "ports.example", 22), 0);
	assert_int_equal(tcp(&w, "x.a.example", 8443), -1);
	assert_int_equal(flow(&w, "x.a.example", SBX_PROTO_UDP, 443), -1);
	/* A question has no flow. */
	assert_int_equal(flow(&w, "x.a.example", SBX_PROTO_DNS, 0), 0);
	assert_int_equal(sbx_policy_decide_addr(w.p, &addr, SBX_PROTO_TCP, 443).terminate, 0);

	v = sbx_policy_decide_name(w.p, "ports.example", SBX_PROTO_TCP, 80);
	assert_int_equal(v.check, SBX_CHECK_HTTP);
	v = sbx_policy_decide_name(w.p, "ports.example", SBX_PROTO_TCP, 8080);
	assert_int_equal(v.check, SBX_CHECK_TLS);
	v = sbx_policy_decide_name(w.p, "http.example", SBX_PROTO_TCP, 443);
	assert_int_equal(v.check, SBX_CHECK_HTTP);
	v = sbx_policy_decide_name(w.p, "plain.example", SBX_PROTO_TCP, 443);
	assert_int_equal(v.check, SBX_CHECK_TLS);
	v = sbx_policy_decide_name(w.p, "ports.example", SBX_PROTO_TCP, 22);
	assert_int_equal(v.check, SBX_CHECK_NONE);

	assert_true(sbx_policy_terminates(w.p, "x.a.example"));
	assert_true(sbx_policy_terminates(w.p, "ports.example"));
	assert_false(sbx_policy_terminates(w.p, "plain.example"));
	assert_false(sbx_policy_terminates(w.p, "a.example"));
}

/* Of the entries of a pattern that say something about requests the last wins: an extending profile
 * holds what it extends to reading, or with access: any lifts that. A plain entry lifts nothing. */
static void test_last_wins(void **state)
{
	static const char *const profiles[] = {
		"network:\n  allow: [\"*.example.com\", "
		"{host: \"*.example.com\", access: read-only}]\n",
		"network:\n  allow: [{host: \"*.example.com\", access: read-only}, "
		"\"*.example.com\"]\n",
		"network:\n  allow: [{host: \"*.example.com\", inspect: true}, "
		"{host: \"*.example.com\", access: read-only}]\n",
		"network:\n  allow: [{host: \"*.example.com\", access: read-only}, "
		"{host: \"*.example.com\", access: any}]\n",
	};
	static const int numbers[] = { 2, 1, 2, 2 };

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(profiles); i++) {
		char yaml[512];

		snprintf(yaml, sizeof(yaml), "%s%s", profiles[i], SECRET("'*.example.com'"));
		SBX_CLEANUP(world_fini) struct world w = world_of(yaml, NULL);

		assert_int_equal(tcp(&w, "a.example.com", 443), numbers[i]);
	}
	/* Without a secret the host is not terminated at all. */
	SBX_CLEANUP(world_fini) struct world w = world_of(profiles[3], NULL);

	assert_int_equal(tcp(&w, "a.example.com", 443), 0);
}

/* The default opens no other way to a terminated name. */
static void test_default_ways(void **state)
{
	SBX_CLEANUP(world_fini)
	struct world w = world_of("network: {default: allow, allow: [b.example, "
				  "{host: a.example, access: read-only}]}\n",
				  NULL);
	struct sbx_verdict v;

	(void)state;
	assert_int_equal(tcp(&w, "a.example", 443), 1);
	assert_int_equal(tcp(&w, "a.example", 8443), -1);
	assert_int_equal(flow(&w, "a.example", SBX_PROTO_UDP, 443), -1);
	v = sbx_policy_decide_name(w.p, "a.example", SBX_PROTO_UDP, 443);
	assert_int_equal(v.reason, SBX_REASON_PORT);
	assert_int_equal(tcp(&w, "b.example", 8443), 0);
	assert_int_equal(flow(&w, "b.example", SBX_PROTO_UDP, 443), 0);
	assert_int_equal(flow(&w, "c.example", SBX_PROTO_UDP, 443), 0);
}

/* The access of the entry that carries a flow. */
static enum sbx_access access_of(const char *yaml, const char *name, uint16_t port)
{
	SBX_CLEANUP(sbx_profile_freep) struct sbx_profile *p = settled(yaml);
	SBX_CLEANUP(world_fini) struct world w = world_of_profile(p, NULL, false);
	const struct sbx_net_entry *v[SBX_TERMINATED_MAX];
	size_t n = sbx_profile_terminated(p, v, SBX_TERMINATED_MAX);
	int number = tcp(&w, name, port);

	assert_true(number >= 0 && number <= (int)n);
	return number > 0 ? v[number - 1]->access : SBX_ACCESS_ANY;
}

#define READ_ONLY "{host: '*.a.example', access: read-only}"

/* A plain entry, or a secret's host, inherits from the most specific entry over it that says
 * something about requests. */
static void test_inherits(void **state)
{
	static const struct {
		const char *allow, *name;
		enum sbx_access access;
		uint16_t port;
	} rows[] = {
		{ READ_ONLY ", x.a.example", "x.a.example", SBX_ACCESS_READ_ONLY, 443 },
		{ "x.a.example, " READ_ONLY, "x.a.example", SBX_ACCESS_READ_ONLY, 80 },
		{ READ_ONLY ", '*.x.a.example'", "y.x.a.example", SBX_ACCESS_READ_ONLY, 443 },
		/* lifted, and held again */
		{ READ_ONLY ", {host: x.a.example, access: any}", "x.a.example", SBX_ACCESS_ANY,
		  443 },
		{ READ_ONLY ", {host: x.a.example, access: any}, x.a.example", "x.a.example",
		  SBX_ACCESS_ANY, 443 },
		{ READ_ONLY ", {host: '*.x.a.example', access: any}, y.x.a.example",
		  "y.x.a.example", SBX_ACCESS_ANY, 443 },
		{ READ_ONLY ", {host: '*.a.example', access: any}, x.a.example", "x.a.example",
		  SBX_ACCESS_ANY, 443 },
		{ "{host: '*.a.example', access: any}, " READ_ONLY ", x.a.example", "x.a.example",
		  SBX_ACCESS_READ_ONLY, 443 },
		{ READ_ONLY ", {host: '*.example', access: any}, x.a.example", "x.a.example",
		  SBX_ACCESS_READ_ONLY, 443 },
		{ READ_ONLY ", {host: x.a.example, access: {methods: [PUT]}}, x.a.example",
		  "x.a.example", SBX_ACCESS_LISTED, 443 },
		/* a plain wildcard between says nothing either */
		{ "{host: '*.example', access: read-only}, '*.a.example', x.a.example",
		  "x.a.example", SBX_ACCESS_READ_ONLY, 443 },
		/* only the ports that both have */
		{ READ_ONLY ", 'x.a.example:22,443'", "x.a.example", SBX_ACCESS_READ_ONLY, 443 },
		{ READ_ONLY ", 'x.a.example:22,443'", "x.a.example", SBX_ACCESS_ANY, 22 },
		{ READ_ONLY ", 'x.a.example:8443'", "x.a.example", SBX_ACCESS_ANY, 8443 },
		{ READ_ONLY ", {host: x.a.example, ports: 443, access: any}, x.a.example",
		  "x.a.example", SBX_ACCESS_READ_ONLY, 80 },
		{ READ_ONLY ", {host: x.a.example, ports: 443, access: any}, x.a.example",
		  "x.a.example", SBX_ACCESS_ANY, 443 },
		/* others */
		{ READ_ONLY ", a.example", "a.example", SBX_ACCESS_ANY, 443 },
		{ READ_ONLY ", b.example", "b.example", SBX_ACCESS_ANY, 443 },
		{ READ_ONLY ", {host: x.a.example, check: none}", "x.a.example", SBX_ACCESS_ANY,
		  443 },
		{ READ_ONLY ", {host: x.a.example, passthrough: true}", "x.a.example",
		  SBX_ACCESS_ANY, 443 },
	};

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(rows); i++) {
		char yaml[512];
		enum sbx_access access;

		snprintf(yaml, sizeof(yaml), "network: {allow: [%s]}\n", rows[i].allow);
		access = access_of(yaml, rows[i].name, rows[i].port);
		if (access != rows[i].access)
			fail_msg("[%s]: %s:%u has access %d", rows[i].allow, rows[i].name,
				 rows[i].port, (int)access);
	}
}

/* A secret's host that only wildcards allow has the rules that its wildcard has. */
static void test_secret_inherits(void **state)
{
	static const char *const allows[] = {
		READ_ONLY,
		"'*.a.example', " READ_ONLY,
		READ_ONLY ", '*.a.example'",
		READ_ONLY ", x.a.example",
		"{host: '*.example', access: read-only}, '*.a.example'",
		"{host: '*.a.example', inspect: true}, " READ_ONLY,
		"'*.a.example:*', " READ_ONLY,
	};
	char yaml[512];

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(allows); i++) {
		snprintf(yaml, sizeof(yaml), "network: {allow: [%s]}\n" SECRET("x.a.example"),
			 allows[i]);
		if (access_of(yaml, "x.a.example", 443) != SBX_ACCESS_READ_ONLY)
			fail_msg("[%s] lost its access", allows[i]);
	}
	assert_int_equal(access_of("network: {allow: [" READ_ONLY
				   ", {host: x.a.example, access: any}]}\n" SECRET("x.a.example"),
				   "x.a.example", 443),
			 SBX_ACCESS_ANY);
	TERMINATES("network: {allow: [" READ_ONLY ", x.a.example]}\n" SECRET("x.a.example"),
		   "*.a.example", "x.a.example");
}

/* An inherited copy keeps what the entry itself says: its ports, its addresses. */
static void test_inherited_parts(void **state)
{
	static const char yaml[] =
		"network:\n  allow:\n"
		"    - {host: '*.a.example', private: true, access: {methods: [GET]},\n"
		"       inspect: true, headers: {A: b},\n"
		"       max_request_bytes: 1M, mtls: {cert: /c, key: /k}}\n"
		"    - {host: x.a.example, ports: 443, check: tls}\n";
	SBX_CLEANUP(sbx_profile_freep) struct sbx_profile *p = settled(yaml);
	const struct sbx_net_entry *e = &p->network.allow.v[1];

	(void)state;
	assert_int_equal(p->network.allow.n, 2);
	assert_string_equal(e->text, "x.a.example:443");
	assert_true(e->terminate && !e->private_ok && e->check_set && e->inspect);
	assert_int_equal(e->access, SBX_ACCESS_LISTED);
	assert_string_equal(e->methods.v[0], "GET");
	assert_string_equal(e->headers.v[0], "A: b");
	assert_string_equal(e->key, "/k");
	assert_int_equal(e->max_request_bytes, 1 << 20);
	assert_int_equal(e->line, 6);
	/* The other ports stay as they are, and a repeated entry has one copy. */
	TERMINATES("network: {allow: [" READ_ONLY ", 'x.a.example:22,443', 'x.a.example:22,443',"
		   " y.a.example, y.a.example]}\n",
		   "*.a.example", "y.a.example", "x.a.example:443");
}

static void hash(const char *yaml, char ret_hex[65])
{
	SBX_CLEANUP(world_fini) struct world w = world_of(yaml, NULL);

	sbx_policy_hash(w.p, ret_hex);
}

static void test_hash(void **state)
{
	static const char *const yamls[] = {
		"network: {allow: [a.example]}\n",
		"network: {allow: [{host: a.example, inspect: true}]}\n",
		"network: {allow: [{host: a.example, access: read-only}]}\n",
		"network: {allow: [{host: a.example, access: {methods: [GET]}}]}\n",
		"network: {allow: [{host: a.example, access: {methods: [PUT]}}]}\n",
		"network: {allow: [{host: a.example, headers: {A: b}}]}\n",
		"network: {extra_ca: /x, allow: [{host: a.example, headers: {A: b}}]}\n",
		"network: {allow: [a.example]}\nsecrets: [{name: A, from: env:A, hosts: "
		"a.example}]\n",
		"network: {allow: [a.example]}\nsecrets: [{name: A, from: env:B, hosts: "
		"a.example}]\n",
		"network: {allow: [a.example]}\nsecrets: [{name: A, from: env:A, hosts: a.example, "
		"detect: true}]\n",
		"network: {allow: [a.example]}\nsecrets: [{name: A, from: env:A, hosts: a.example, "
		"paths: [/a]}]\n",
	};
	char hex[SBX_N_ELEMENTS(yamls)][65], again[65];

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(yamls); i++) {
		hash(yamls[i], hex[i]);
		for (size_t k = 0; k < i; k++)
			if (strcmp(hex[k], hex[i]) == 0)
				fail_msg("%s hashes as\n%s", yamls[i], yamls[k]);
	}
	hash("network: {allow: [{access: read-only, host: A.example}]}\n", again);
	assert_string_equal(again, hex[2]);
	/* Without anything terminated, the rest is not part of the policy. */
	hash("network: {extra_ca: /x, allow: [a.example]}\n", again);
	assert_string_equal(again, hex[0]);
}

static void test_unsettled(void **state)
{
	SBX_CLEANUP(sbx_profile_freep)
	struct sbx_profile *p =
		good_profile("network: {allow: [{host: a.example, access: read-only}]}\n");
	const struct sbx_policy_input input = { .profile = p };
	SBX_AUTO_FREE void *blob = NULL;
	size_t n;

	(void)state;
	assert_int_equal(sbx_policy_compile(&input, &blob, &n), -EINVAL);
	assert_int_equal(sbx_profile_settle_secrets(p, NULL), 0);
	assert_int_equal(sbx_policy_compile(&input, &blob, &n), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_asking),	      cmocka_unit_test(test_secret_hosts),
		cmocka_unit_test(test_copy),	      cmocka_unit_test(test_not_allowed),
		cmocka_unit_test(test_default_allow), cmocka_unit_test(test_denies_stay),
		cmocka_unit_test(test_contradictions), cmocka_unit_test(test_network),
		cmocka_unit_test(test_many),	      cmocka_unit_test(test_verdicts),
		cmocka_unit_test(test_default_ways),  cmocka_unit_test(test_hash),
		cmocka_unit_test(test_unsettled),     cmocka_unit_test(test_last_wins),
		cmocka_unit_test(test_inherits),      cmocka_unit_test(test_secret_inherits),
		cmocka_unit_test(test_inherited_parts), cmocka_unit_test(test_many_inherit),
		cmocka_unit_test(test_plain_http),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
