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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lists),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_deny_is_wider),
		cmocka_unit_test(test_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
