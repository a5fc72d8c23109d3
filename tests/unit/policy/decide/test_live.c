/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/unit/policy_world.h"

#include "policy/decide/live.h"

#define N(v) (sizeof(v) / sizeof(*(v)))

static void test_lists(void **state)
{
	static const char *const allow[] = { "PyPI.org", "*.example.org:8000-8010", "192.0.2.0/24",
					     "pypi.org" };
	static const char *const deny[] = { "*.org", "2001:db8::/32", "a.example:53/udp" };
	char field[SBX_LIVE_FIELD_MAX] = "";
	struct sbx_err err = { 0 };
	struct sbx_live live;

	(void)state;
	assert_int_equal(sbx_live_set(true, allow, N(allow), deny, N(deny), &live, field, &err), 0);
	assert_true(live.air_gapped);
	assert_int_equal(live.allow.n, 3); /* one was there twice */
	assert_string_equal(live.allow.v[0].text, "pypi.org");
	assert_string_equal(live.allow.v[1].text, "*.example.org:8000-8010");
	assert_true(live.allow.v[2].is_cidr);
	assert_int_equal(live.deny.n, 3);
	assert_string_equal(live.deny.v[2].text, "a.example:53/udp");
	assert_int_equal(sbx_live_add(&live, SBX_DENY, "add_deny", deny, 1, field, &err), 0);
	assert_int_equal(live.deny.n, 3);
	assert_string_equal(field, "");
	sbx_live_fini(&live);
	assert_int_equal(live.allow.n + live.deny.n, 0);
	assert_int_equal(sbx_live_set(false, NULL, 0, NULL, 0, &live, field, &err), 0);
	assert_int_equal(live.allow.n + live.deny.n, 0);
	sbx_live_fini(&live);
}

static void refused(const char *const *allow, size_t n_allow, const char *const *deny,
		    size_t n_deny, const char *want_field, const char *want_msg)
{
	char field[SBX_LIVE_FIELD_MAX] = "";
	struct sbx_err err = { 0 };
	struct sbx_live live;

	assert_int_equal(sbx_live_set(false, allow, n_allow, deny, n_deny, &live, field, &err),
			 SBX_PROFILE_E_INVALID);
	assert_string_equal(field, want_field);
	if (!strstr(err.msg, want_msg))
		fail_msg("%s: '%s', expected '%s'", field, err.msg, want_msg);
}

static void test_errors(void **state)
{
	static const char *const good[] = { "a.example", "b.example", "c.example" };
	static const char *const url[] = { "a.example", "https://b.example/" };
	static const char *const suffix[] = { "*.co.uk" };
	static const char *const zone[] = { "a.example", "b.example", "300.1.2.3/24" };
	static const char *const empty[] = { "" };
	static const char *const metadata[] = { "169.254.169.254" };

	(void)state;
	refused(url, N(url), good, N(good), "allow_out[1]", "a URL");
	refused(good, N(good), zone, N(zone), "deny_out[2]", "not an address");
	refused(suffix, N(suffix), NULL, 0, "allow_out[0]", "public suffix");
	refused(NULL, 0, empty, N(empty), "deny_out[0]", "no name");
	refused(metadata, N(metadata), NULL, 0, "allow_out[0]", "never reached");
}

/* The same suffix may be denied. */
static void test_deny_is_wider(void **state)
{
	static const char *const suffix[] = { "*.co.uk" };
	char field[SBX_LIVE_FIELD_MAX];
	struct sbx_live live;

	(void)state;
	assert_int_equal(sbx_live_set(false, NULL, 0, suffix, 1, &live, field, NULL), 0);
	sbx_live_fini(&live);
}

static void test_limit(void **state)
{
	static char text[SBX_LIVE_ENTRIES_MAX + 1][32];
	static const char *v[SBX_LIVE_ENTRIES_MAX + 1];
	char field[SBX_LIVE_FIELD_MAX];
	struct sbx_err err = { 0 };
	struct sbx_live live;

	(void)state;
	for (size_t i = 0; i < N(v); i++) {
		snprintf(text[i], sizeof(text[i]), "h%zu.example", i);
		v[i] = text[i];
	}
	assert_int_equal(
		sbx_live_set(false, v, SBX_LIVE_ENTRIES_MAX, NULL, 0, &live, field, &err), 0);
	sbx_live_fini(&live);
	refused(v, N(v), NULL, 0, "allow_out[1000]", "more than 1000");
}

/* --- rules --- */

static void test_rules(void **state)
{
	static const char *const texts[] = { "allow Api.Example:443 GET,HEAD /v1/** /b",
					     "deny *.org",
					     "allow 192.0.2.0/24:5432",
					     "allow b.example * /a",
					     "deny *.org", /* twice */
					     "allow c.example *" };
	static const char *const want[] = { "allow api.example:443 GET,HEAD /v1/** /b",
					    "deny *.org", "allow 192.0.2.0/24:5432",
					    "allow b.example * /a", "allow c.example" };
	char field[SBX_LIVE_FIELD_MAX] = "";
	struct sbx_err err = { 0 };
	struct sbx_live live = { .air_gapped = true }, copy;

	(void)state;
	assert_false(sbx_live_allows(&live));
	assert_int_equal(sbx_live_add_rules(&live, "rules", texts, N(texts), field, &err), 0);
	assert_true(sbx_live_allows(&live) && sbx_live_has_requests(&live));
	assert_int_equal(live.rules.n, N(want));
	assert_string_equal(live.rules.v[0].requests, "GET,HEAD /v1/** /b");
	assert_null(live.rules.v[1].requests);
	assert_null(live.rules.v[4].requests);
	assert_int_equal(sbx_live_copy(&live, &copy), 0);
	sbx_live_fini(&live);
	assert_true(copy.air_gapped);
	for (size_t i = 0; i < N(want); i++)
		assert_string_equal(copy.rules.v[i].text, want[i]);
	sbx_live_fini(&copy);
}

static void test_rules_that_are_none(void **state)
{
	static const char *const bad[] = {
		"",
		"allow",
		"permit a.example",
		"allow  a.example",
		"allow a.example ",
		"allow a.example  GET",
		"allow a.example GET ",
		"allow a.example get",
		"allow a.example GET,",
		"allow a.example ,GET",
		"allow a.example CONNECT",
		"allow a.example /a",
		"allow a.example GET a",
		"allow a.example GET /a  /b",
		"allow a.example GET /../a",
		"allow a.example GET /a\tb",
		"deny a.example GET",
		"allow 192.0.2.1 GET",
		"allow a.example/udp GET",
		"allow *",
		"allow *.co.uk",
		"allow 169.254.169.254",
	};
	char methods[400] = "allow a.example A", paths[5000] = "allow a.example *", *p = paths;
	const char *const long_ones[] = { methods, paths };

	(void)state;
	for (int i = 0; i < 64; i++)
		strcat(methods, ",A");
	p += strlen(p);
	for (int i = 0; i < 65; i++)
		p += sprintf(p, " /%d", i);
	for (size_t i = 0; i < N(bad) + N(long_ones); i++) {
		const char *text = i < N(bad) ? bad[i] : long_ones[i - N(bad)];
		char field[SBX_LIVE_FIELD_MAX] = "";
		struct sbx_err err = { 0 };
		struct sbx_live live = { 0 };

		if (sbx_live_add_rules(&live, "rules", &text, 1, field, &err) !=
		    SBX_PROFILE_E_INVALID)
			fail_msg("'%s' is a rule", text);
		assert_string_equal(field, "rules[0]");
		assert_true(err.msg[0] != '\0');
		sbx_live_fini(&live);
	}
}

static void test_too_many_bytes(void **state)
{
	char field[SBX_LIVE_FIELD_MAX] = "", text[1200];
	const char *const one = text;
	struct sbx_err err = { 0 };
	struct sbx_live live = { 0 };
	int r = 0, n = 0;

	(void)state;
	for (; r == 0 && n < 100; n++) {
		snprintf(text, sizeof(text), "allow a%02d.example GET /%01000d", n, 0);
		r = sbx_live_add_rules(&live, "rules", &one, 1, field, &err);
	}
	assert_int_equal(r, SBX_PROFILE_E_INVALID);
	assert_string_equal(field, "rules[0]");
	assert_int_equal(n, SBX_LIVE_RULES_BYTES / (int)strlen(text) + 1);
	assert_int_equal(live.rules.n, n - 1);
	sbx_live_fini(&live);
}

/* --- requests: what is decided --- */

#define REQUESTS_PROFILE                                                                           \
	"network:\n  mode: fetch\n  allow: [plain.example, plain.example:443/udp, "               \
	"'*.wild.example', {host: read.example, access: read-only}, 192.0.2.0/24]\n"

/* A policy of that profile, a rule of the workspace and live texts. The requests of the verdict are
 * compared here: they borrow from the policy. */
static struct sbx_verdict decide(const char *const *texts, size_t n, const char *allowed_by_rule,
				 const char *name, enum sbx_proto proto, uint16_t port,
				 const char *want_requests)
{
	SBX_CLEANUP(sbx_profile_freep) struct sbx_profile *profile = good_profile(REQUESTS_PROFILE);
	char field[SBX_LIVE_FIELD_MAX] = "";
	struct sbx_live live = { 0 };
	struct sbx_rules rules = { 0 };
	struct sbx_policy_input input = { .profile = profile,
					  .rules = &rules,
					  .live = &live,
					  .generation = 1 };
	struct world w = { 0 };
	struct sbx_verdict v;

	assert_int_equal(sbx_profile_settle_secrets(profile, NULL), 0);
	assert_int_equal(sbx_live_add_rules(&live, "rules", texts, n, field, NULL), 0);
	if (allowed_by_rule)
		assert_int_equal(sbx_rules_add(&rules, 1, SBX_RULE_NETWORK, SBX_ALLOW, 0, false,
					       false, allowed_by_rule, NULL),
				 0);
	assert_int_equal(sbx_policy_compile(&input, &w.blob, &w.n), 0);
	assert_int_equal(sbx_policy_load(sbx_span(w.blob, w.n), &w.p), 0);
	v = sbx_policy_decide_name(w.p, name, proto, port);
	if (want_requests) {
		assert_int_equal(v.terminate, SBX_TERMINATE_LIVE);
		assert_string_equal(v.requests, want_requests);
		assert_true(sbx_policy_terminates_any(w.p));
		assert_true(sbx_policy_terminates(w.p, name));
	} else {
		assert_null(v.requests);
		assert_true(v.terminate != SBX_TERMINATE_LIVE);
	}
	world_fini(&w);
	sbx_rules_fini(&rules);
	sbx_live_fini(&live);
	return v;
}

static void test_requests_are_judged(void **state)
{
	static const char *const get[] = { "allow plain.example GET",
					   "allow *.wild.example GET /a", "deny x.wild.example" };
	static const char *const both[] = { "allow plain.example", "allow plain.example GET" };
	struct sbx_verdict v;

	(void)state;
	v = decide(get, N(get), NULL, "plain.example", SBX_PROTO_TCP, 443, "GET");
	assert_int_equal(v.action, SBX_ALLOW);
	assert_int_equal(v.check, SBX_CHECK_TLS);
	v = decide(get, N(get), NULL, "plain.example", SBX_PROTO_TCP, 80, "GET");
	assert_int_equal(v.check, SBX_CHECK_HTTP);
	v = decide(get, N(get), NULL, "a.wild.example", SBX_PROTO_TCP, 443, "GET /a");
	assert_int_equal(v.action, SBX_ALLOW);
	/* a deny of the live list; another port; another name */
	v = decide(get, N(get), NULL, "x.wild.example", SBX_PROTO_TCP, 443, NULL);
	assert_int_equal(v.reason, SBX_REASON_LIVE_DENY);
	v = decide(get, N(get), NULL, "plain.example", SBX_PROTO_TCP, 8443, NULL);
	assert_int_equal(v.action, SBX_DENY);
	v = decide(get, N(get), NULL, "read.example", SBX_PROTO_TCP, 443, NULL);
	assert_int_equal(v.terminate, 1);
	/* HTTP/3 would pass by it; without the rule the profile allows it */
	v = decide(get, N(get), NULL, "plain.example", SBX_PROTO_UDP, 443, NULL);
	assert_int_equal(v.reason, SBX_REASON_NOT_TERMINATED);
	v = decide(get + 1, 1, NULL, "plain.example", SBX_PROTO_UDP, 443, NULL);
	assert_int_equal(v.action, SBX_ALLOW);
	/* the rule of a workspace decides, and lifts nothing of it */
	v = decide(get, N(get), "plain.example", "plain.example", SBX_PROTO_TCP, 443, "GET");
	assert_int_equal(v.reason, SBX_REASON_RULE_ALLOW);
	/* the stricter of two */
	decide(both, N(both), NULL, "plain.example", SBX_PROTO_TCP, 443, "GET");
	/* such a rule is refused; if it comes all the same, the profile's access holds */
	v = decide(&(const char *){ "allow read.example POST" }, 1, NULL, "read.example",
		   SBX_PROTO_TCP, 443, NULL);
	assert_int_equal(v.reason, SBX_REASON_NOT_TERMINATED);
}

static void check_requests(const char *yaml, const char *first, const char *rule,
			   const char *want_field, const char *want)
{
	SBX_CLEANUP(sbx_profile_freep) struct sbx_profile *profile = good_profile(yaml);
	char field[SBX_LIVE_FIELD_MAX] = "";
	struct sbx_live live = { 0 }, start = { 0 };
	struct sbx_err err = { 0 };
	const char *const texts[] = { "deny x.example", rule, rule };
	int r;

	if (profile->network.mode == SBX_MODE_FETCH)
		assert_int_equal(sbx_profile_settle_secrets(profile, NULL), 0);
	assert_int_equal(sbx_live_add_rules(&live, "", texts, N(texts), field, NULL), 0);
	if (first)
		assert_int_equal(sbx_live_add_rules(&start, "", &first, 1, field, NULL), 0);
	r = sbx_live_check_requests(&live, first ? &start : NULL, profile, "rules", field, &err);
	assert_int_equal(r, want ? SBX_PROFILE_E_INVALID : 0);
	assert_string_equal(field, want ? want_field : "");
	if (want && !strstr(err.msg, want))
		fail_msg("'%s' does not say '%s'", err.msg, want);
	sbx_live_fini(&live);
	sbx_live_fini(&start);
}

static void test_requests_that_cannot_be_judged(void **state)
{
	static const char read[] = REQUESTS_PROFILE, full[] = "network: {mode: full}\n";

	(void)state;
	check_requests(read, NULL, "allow plain.example GET", NULL, NULL);
	check_requests(read, NULL, "allow read.example", NULL, NULL);
	check_requests(read, NULL, "allow read.example GET", "rules[1].methods",
		       "the profile judges");
	check_requests(read, NULL, "allow *.example * /a", "rules[1].paths", "the profile judges");
	check_requests(full, NULL, "allow plain.example GET", "rules[1].methods",
		       "mode fetch alone");
	check_requests(full, NULL, "allow plain.example", NULL, NULL);
	/* the names of the start */
	check_requests(read, "allow *.w.example GET", "allow a.w.example POST", NULL, NULL);
	check_requests(read, "allow *.w.example GET", "allow w.example POST", "rules[1].methods",
		       "started with");
	check_requests(read, "allow a.w.example GET", "allow *.w.example POST", "rules[1].methods",
		       "started with");
	check_requests(read, "allow a.w.example", "allow a.w.example POST", "rules[1].methods",
		       "started with");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lists),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_deny_is_wider),
		cmocka_unit_test(test_limit),
		cmocka_unit_test(test_rules),
		cmocka_unit_test(test_rules_that_are_none),
		cmocka_unit_test(test_too_many_bytes),
		cmocka_unit_test(test_requests_are_judged),
		cmocka_unit_test(test_requests_that_cannot_be_judged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
