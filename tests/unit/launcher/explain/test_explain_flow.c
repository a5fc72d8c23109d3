/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Explain and enforcement: random policies of all layers, and random connections to names and
 * addresses. The answer of sbx_explain_flow() is what the broker's core decides about the same
 * flow, dialled as the sandbox dials it; and what the judge of requests decides.
 */
#include "tests/unit/policy_world.h"

#include "broker/core/core.h"
#include "http/request.h"
#include "launcher/explain/explain_flow.h"
#include "policy/keys/profile_parse.h"
#include "policy/profile/settle.h"

#define N_POLICIES 600
#define N_ASKED	   40

static uint64_t seed = 1;

static unsigned rnd(unsigned n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(seed >> 33) % n;
}

#define PICK(list) (list)[rnd(SBX_N_ELEMENTS(list))]

static const char *const names[] = { "a.test",	      "x.a.test",
				     "y.x.a.test",    "b.test",
				     "c.x.test",      "ipinfo.io",
				     "www.ipinfo.io", "metadata.google.internal",
				     "lan.b.test",    "other.org" };
static const char *const addrs[] = { "8.8.8.8",
				     "9.9.9.9",
				     "10.1.2.3",
				     "192.168.1.1",
				     "169.254.169.254",
				     "127.0.0.1",
				     "2001:4860:4860::8888",
				     "fd00:ec2::254",
				     "::ffff:10.1.2.3",
				     "64:ff9b::a9fe:a9fe" };
static const uint16_t ports[] = { 443, 80, 22, 53, 8443, 65535 };
static const char *const patterns[] = {
	"a.test",	  "*.a.test",	   "x.a.test:443",     "*.x.a.test:22",	   "b.test:80",
	"b.test:*",	  "*.b.test",	   "a.test:53/udp",    "8.8.8.8",	   "8.8.8.0/24:443",
	"9.9.9.9:53/udp", "*.x.test:8443", "x.a.test:1-65535", "ipinfo.io",	   "other.org",
	"a.test:22",	  "9.0.0.0/8",	   "2001:4860::/32",   "*.a.test:80,8443",
};
static const char *const terminated[] = {
	"{host: a.test, access: read-only}",
	"{host: '*.a.test', access: {methods: [GET, PUT], paths: [/p/, /q]}}",
	"{host: x.a.test, ports: [443, 8443], inspect: true}",
	"{host: lan.b.test, private: true}",
	"{host: b.test, access: {methods: [POST]}}",
};

struct policy {
	struct sbx_profile *profile;
	struct sbx_rules rules;
	struct sbx_live live;
	void *blob;
	struct sbx_policy *p;
};

static void policy_fini(struct policy *x)
{
	sbx_policy_free(x->p);
	free(x->blob);
	sbx_profile_free(x->profile);
	sbx_rules_fini(&x->rules);
	sbx_net_list_fini(&x->live.allow);
	sbx_net_list_fini(&x->live.deny);
}

static struct sbx_profile *random_profile(void)
{
	static const char *const modes[] = { "fetch", "fetch", "fetch", "full", "offline" };
	static struct sbx_err_list errs;
	const char *mode = PICK(modes);
	SBX_AUTO_FREE char *yaml = NULL;
	struct sbx_profile *p = NULL;
	size_t n_yaml = 0;
	FILE *f = open_memstream(&yaml, &n_yaml);

	fprintf(f, "name: t\nnetwork:\n  mode: %s\n%s  allow:\n    - z.test\n", mode,
		strcmp(mode, "fetch") == 0 && rnd(3) == 0 ? "  default: allow\n" : "");
	for (unsigned i = rnd(6); i > 0; i--)
		fprintf(f, "    - \"%s\"\n", PICK(patterns));
	for (unsigned i = strcmp(mode, "full") ? rnd(3) : 0; i > 0; i--)
		fprintf(f, "    - %s\n", PICK(terminated));
	fputs("  deny:\n    - z.test\n", f);
	for (unsigned i = rnd(4); i > 0; i--)
		fprintf(f, "    - \"%s\"\n", PICK(patterns));
	assert_int_equal(fclose(f), 0);
	memset(&errs, 0, sizeof(errs));
	if (sbx_profile_parse(sbx_span_str(yaml), "t.yaml", NULL, NULL, &errs, &p) != 0 ||
	    sbx_profile_settle_secrets(p, NULL) != 0) {
		sbx_profile_free(p); /* a pair of entries that a profile may not have */
		return NULL;
	}
	return p;
}

static bool policy_init(struct policy *x)
{
	struct sbx_policy_input in = { .generation = 1 + rnd(9) };
	size_t n = 0;

	*x = (struct policy){ .profile = random_profile() };
	if (!x->profile)
		return false;
	for (unsigned i = rnd(5); i > 0; i--)
		(void)sbx_rules_add(&x->rules, 1 + (int64_t)i, SBX_RULE_NETWORK,
				    rnd(2) ? SBX_ALLOW : SBX_DENY, 50 * (int64_t)rnd(3), false,
				    rnd(3) == 0, PICK(patterns), NULL);
	x->rules.default_set = rnd(5) == 0;
	x->rules.default_action = rnd(2) ? SBX_ALLOW : SBX_DENY;
	x->live.air_gapped = rnd(5) == 0;
	x->live.deny.deny = true;
	for (unsigned i = rnd(3); i > 0; i--)
		(void)sbx_net_list_add_pattern(rnd(2) ? &x->live.allow : &x->live.deny,
					       PICK(patterns), "net", NULL);
	in.profile = x->profile;
	in.rules = rnd(4) ? &x->rules : NULL;
	in.live = rnd(3) ? &x->live : NULL;
	assert_int_equal(sbx_policy_compile(&in, &x->blob, &n), 0);
	assert_int_equal(sbx_policy_load(sbx_span(x->blob, n), &x->p), 0);
	return true;
}

/* --- what the broker does --- */

static struct sbx_verdict enforced(const struct sbx_policy *p, const char *name,
				   const struct sbx_addr *addr, enum sbx_proto proto, uint16_t port)
{
	struct sbx_msg_config config = { .limits = sbx_limits_default, .mode = SBX_MODE_FETCH };
	struct sbx_core core = { .config = &config, .policy = p };
	struct sbx_flow_target target;
	struct sbx_candidates c;
	struct sbx_addr dialled = addr ? *addr : (struct sbx_addr){ 0 };
	uint32_t index;

	strcpy(config.selftest_name, "selftest.sbx.invalid");
	assert_int_equal(sbx_pins_new(4, &core.pins), 0);
	if (name) {
		assert_int_equal(sbx_pins_add(core.pins, name, &index), 0);
		dialled = sbx_pins_addr4(index);
	}
	sbx_core_decide_flow(&core, proto, &dialled, port, 0, &target);
	if (target.verdict.action == SBX_ALLOW && addr) {
		struct sbx_addr unmapped = sbx_addr_unmap(addr);

		sbx_core_candidates(&core, &target, &unmapped, 1, 4, &c);
		if (c.n == 0)
			target.verdict = c.refused;
	}
	sbx_pins_free(core.pins);
	return target.verdict;
}

static void compare(const struct policy *x, const char *name, const char *addr_text,
		    enum sbx_proto proto, uint16_t port)
{
	static struct sbx_explained e;
	const struct sbx_explain_asked asked = {
		.proto = proto,
		.host = name ? name : addr_text,
		.port = port,
		.address = name ? addr_text : NULL,
	};
	struct sbx_addr addr = { 0 };
	struct sbx_err err = { 0 };
	struct sbx_verdict v;

	if (addr_text)
		assert_int_equal(sbx_addr_parse(addr_text, &addr), 0);
	v = enforced(x->p, name, addr_text ? &addr : NULL, proto, port);
	assert_int_equal(sbx_explain_flow(x->p, x->profile, &asked, &e, &err), 0);
	if (e.allowed != (v.action == SBX_ALLOW) || strcmp(e.reason, sbx_reason_str(v.reason)) != 0)
		fail_msg("%s (%s) port %u: explained %d %s, enforced %s %s", asked.host,
			 addr_text ? addr_text : "", port, e.allowed, e.reason,
			 sbx_action_str(v.action), sbx_reason_str(v.reason));
	assert_true(e.why[0]);
	if (v.rule != UINT32_MAX) {
		size_t n_decided = 0;

		for (size_t i = 0; i < e.n_matches; i++)
			n_decided += e.matches[i].decided;
		assert_true(n_decided == 1 || e.n_more);
	}
}

static void test_connections(void **state)
{
	unsigned n = 0;

	(void)state;
	for (unsigned i = 0; i < N_POLICIES; i++) {
		SBX_CLEANUP(policy_fini) struct policy x = { 0 };

		if (!policy_init(&x))
			continue;
		n++;
		for (unsigned k = 0; k < N_ASKED; k++) {
			enum sbx_proto proto = rnd(4) ? SBX_PROTO_TCP : SBX_PROTO_UDP;
			bool named = rnd(3);

			compare(&x, named ? PICK(names) : NULL,
				!named || rnd(2) ? PICK(addrs) : NULL, proto, PICK(ports));
		}
	}
	assert_true(n > N_POLICIES / 2); /* the generator makes policies, and not only mistakes */
}

/* --- requests --- */

static const char requests_yaml[] =
	"name: t\nnetwork:\n  allow:\n"
	"    - {host: ro.test, access: read-only}\n"
	"    - {host: l.test, access: {methods: [GET, PUT], paths: [/p/, /q]}}\n"
	"    - {host: any.test, inspect: true}\n"
	"    - plain.test\n";

static const struct {
	const char *host, *method, *path;
	bool allowed;
	const char *reason;
} requests[] = {
	{ "ro.test", "GET", "/", true, "list_allow" },
	{ "ro.test", "POST", "/", false, "access_method" },
	{ "ro.test", "TRACE", "/", false, "access_method" },
	{ "ro.test", "GET", "/a/%2e%2e/b", false, "path_ambiguous" },
	{ "l.test", "PUT", "/p/x", true, "list_allow" },
	{ "l.test", "PUT", "/q", true, "list_allow" },
	{ "l.test", "PUT", "/q/x", false, "access_path" },
	{ "l.test", "DELETE", "/q", false, "access_method" },
	{ "any.test", "DELETE", "/x", true, "list_allow" },
	{ "plain.test", "DELETE", "/x", true, "list_allow" },
	{ "plain.test", NULL, "/x", true, "list_allow" },
	{ "ro.test", NULL, "/x", true, "list_allow" },
	{ "none.test", "GET", "/", false, "default_deny" },
};

static void test_requests(void **state)
{
	struct world w = world_of(requests_yaml, NULL);
	SBX_CLEANUP(sbx_profile_freep) struct sbx_profile *p = good_profile(requests_yaml);
	static struct sbx_explained e;

	(void)state;
	assert_int_equal(sbx_profile_settle_secrets(p, NULL), 0);
	for (size_t i = 0; i < SBX_N_ELEMENTS(requests); i++) {
		const struct sbx_explain_asked asked = { .proto = SBX_PROTO_TCP,
							 .host = requests[i].host,
							 .port = 443,
							 .method = requests[i].method,
							 .path = requests[i].path };
		struct sbx_err err = { 0 };

		assert_int_equal(sbx_explain_flow(w.p, p, &asked, &e, &err), 0);
		if (e.allowed != requests[i].allowed || strcmp(e.reason, requests[i].reason) != 0)
			fail_msg("%s %s %s: %d %s: %s", asked.host, asked.method, asked.path,
				 e.allowed, e.reason, e.why);
	}
	world_fini(&w);
}

static void test_questions_without_an_answer(void **state)
{
	static const struct sbx_explain_asked asked[] = {
		{ SBX_PROTO_TCP, "a.test", 0, NULL, NULL, NULL, NULL, NULL },
		{ SBX_PROTO_TCP, "", 443, NULL, NULL, NULL, NULL, NULL },
		{ SBX_PROTO_TCP, "a..test", 443, NULL, NULL, NULL, NULL, NULL },
		{ SBX_PROTO_TCP, "a\nb", 443, NULL, NULL, NULL, NULL, NULL },
		{ SBX_PROTO_TCP, "a.test", 443, "1.2.3", NULL, NULL, NULL, NULL },
		{ SBX_PROTO_TCP, "8.8.8.8", 443, "8.8.8.8", NULL, NULL, NULL, NULL },
		{ SBX_PROTO_TCP, "[::1", 443, NULL, NULL, NULL, NULL, NULL },
	};
	struct world w = world_of(requests_yaml, NULL);
	static struct sbx_explained e;

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(asked); i++) {
		struct sbx_err err = { 0 };

		assert_int_equal(sbx_explain_flow(w.p, NULL, &asked[i], &e, &err),
				 SBX_EXPLAIN_E_INVALID);
		assert_true(err.msg[0] && !e.allowed);
	}
	world_fini(&w);
}

/* --- JSON --- */

static void test_json(void **state)
{
	static struct sbx_explained e, back;
	struct sbx_explained_match *m;
	json_t *o;

	(void)state;
	e.allowed = true;
	snprintf(e.subject, sizeof(e.subject), "tcp \x1b[2J port 1");
	snprintf(e.reason, sizeof(e.reason), "list_allow");
	snprintf(e.why, sizeof(e.why), "why");
	for (int i = 0; i < SBX_EXPLAINED_MATCHES_MAX + 5; i++) {
		m = sbx_explained_match_add(&e);
		m->decided = i == 0;
		snprintf(m->layer, sizeof(m->layer), "rule");
		snprintf(m->action, sizeof(m->action), "allow");
	}
	for (int i = 0; i < SBX_EXPLAINED_CHANGES_MAX + 5; i++)
		sbx_explained_change_add(&e, "change %d", i);
	o = sbx_explained_json(&e);
	assert_non_null(o);
	assert_int_equal(sbx_explained_parse(o, &back), 0);
	assert_true(back.allowed);
	assert_null(strchr(back.subject, '\x1b'));
	assert_int_equal(back.n_matches, SBX_EXPLAINED_MATCHES_MAX);
	assert_int_equal(back.n_more, 5);
	assert_int_equal(back.n_changes, SBX_EXPLAINED_CHANGES_MAX);
	json_object_set_new(o, "verdict", json_string("allowed")); /* no word that we write */
	assert_int_equal(sbx_explained_parse(o, &back), 0);
	assert_false(back.allowed);
	json_object_del(o, "verdict");
	assert_int_equal(sbx_explained_parse(o, &back), -EINVAL);
	json_decref(o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_connections),
		cmocka_unit_test(test_requests),
		cmocka_unit_test(test_questions_without_an_answer),
		cmocka_unit_test(test_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
