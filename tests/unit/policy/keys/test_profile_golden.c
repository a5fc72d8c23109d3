/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The shipped profiles: what they say, as tests/golden/profile-NAME.yaml keeps it, and what a
 * command under them gets. SBX_UPDATE_GOLDEN=1 writes the golden files. */

#include "tests/unit/policy_world.h"

#include "policy/keys/profile_parse.h"
#include "policy/lists/shipped.h"
#include "policy/profile/settle.h"
#include "tests/unit/golden.h"

static const char *const names[] = {
	"agent",   "ai-bash", "build",	  "default",	  "full",
	"install", "none",    "notebook", "vite-preview",
};

static void test_golden(void **state)
{
	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(names); i++) {
		SBX_CLEANUP(sbx_profile_freep) struct sbx_profile *p = shipped_profile(names[i]);
		SBX_AUTO_FREE char *text = sbx_profile_print(p);
		char file[64];

		assert_string_equal(p->name, names[i]);
		snprintf(file, sizeof(file), "profile-%s.yaml", names[i]);
		golden_compare(file, text);
	}
}

/* As a run has it: a policy is compiled of a profile whose terminated entries are marked. */
static struct sbx_profile *settled(struct sbx_profile *p)
{
	assert_int_equal(sbx_profile_settle_secrets(p, NULL), 0);
	return p;
}

/* The printed form means the same: it prints the same and compiles to the same policy. */
static void test_reparses(void **state)
{
	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(names); i++) {
		SBX_CLEANUP(sbx_profile_freep) struct sbx_profile *p = shipped_profile(names[i]);
		SBX_AUTO_FREE char *text = sbx_profile_print(p), *again = NULL;
		SBX_CLEANUP(sbx_profile_freep) struct sbx_profile *q = good_profile(text);
		SBX_CLEANUP(world_fini) struct world w =
			world_of_profile(settled(p), NULL, false);
		SBX_CLEANUP(world_fini) struct world v =
			world_of_profile(settled(q), NULL, false);
		char a[65], b[65];

		again = sbx_profile_print(q);
		assert_string_equal(text, again);
		sbx_policy_hash(w.p, a);
		sbx_policy_hash(v.p, b);
		assert_string_equal(a, b);
	}
}

struct expectation {
	const char *profile, *name;
	uint16_t port;
	enum sbx_action action;
	bool read_only;
};

/* For each profile an allowed name beside a refused one. */
static const struct expectation expectations[] = {
	{ "default", "pubmed.ncbi.nlm.nih.gov", 443, SBX_ALLOW, false },
	{ "default", "www.ncbi.nlm.nih.gov", 443, SBX_DENY, false },
	{ "default", "pypi.org", 80, SBX_ALLOW, true },
	{ "default", "github.com", 443, SBX_ALLOW, true },
	{ "default", "github.com", 80, SBX_DENY, false },
	{ "default", "api.github.com", 443, SBX_ALLOW, true },
	{ "notebook", "api.github.com", 443, SBX_ALLOW, true },
	{ "agent", "api.github.com", 443, SBX_ALLOW, false },
	{ "default", "github.com", 22, SBX_DENY, false },
	{ "default", "huggingface.co", 443, SBX_DENY, false },
	{ "notebook", "huggingface.co", 443, SBX_ALLOW, false },
	{ "default", "files.pythonhosted.org", 443, SBX_ALLOW, true },
	{ "notebook", "pypi.org", 443, SBX_ALLOW, true },
	{ "notebook", "github.com", 443, SBX_ALLOW, true },
	{ "none", "pypi.org", 443, SBX_DENY, false },
	{ "install", "any.npmjs.org", 443, SBX_ALLOW, false },
	{ "install", "npmjs.org", 443, SBX_DENY, false },
	{ "install", "pypi.org", 443, SBX_ALLOW, true },
	{ "install", "github.com", 443, SBX_DENY, false },
	{ "build", "o1.ingest.sentry.io", 443, SBX_ALLOW, false },
	{ "build", "pypi.org", 443, SBX_DENY, false },
	{ "vite-preview", "fonts.gstatic.com", 443, SBX_ALLOW, false },
	{ "vite-preview", "www.gstatic.com", 443, SBX_DENY, false },
	{ "agent", "api.anthropic.com", 443, SBX_ALLOW, false },
	{ "agent", "generativelanguage.googleapis.com", 443, SBX_ALLOW, false },
	{ "agent", "files.pythonhosted.org", 443, SBX_ALLOW, true },
	{ "agent", "statsig.anthropic.com", 443, SBX_DENY, false },
	{ "ai-bash", "api.anthropic.com", 443, SBX_ALLOW, false },
	{ "ai-bash", "github.com", 80, SBX_ALLOW, false },
	{ "ai-bash", "api.github.com", 443, SBX_DENY, false },
	{ "full", "example.org", 25, SBX_ALLOW, false },
};

/* Is the entry with the policy's number @terminate (0: none) read-only? */
static bool read_only(const struct sbx_profile *p, uint32_t terminate)
{
	const struct sbx_net_entry *v[SBX_TERMINATED_MAX];
	size_t n = sbx_profile_terminated(p, v, SBX_TERMINATED_MAX);

	return terminate && terminate <= n && v[terminate - 1]->access == SBX_ACCESS_READ_ONLY;
}

static void test_expectations(void **state)
{
	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(expectations); i++) {
		const struct expectation *x = &expectations[i];
		SBX_CLEANUP(sbx_profile_freep) struct sbx_profile *p = shipped_profile(x->profile);
		SBX_CLEANUP(world_fini) struct world w =
			world_of_profile(settled(p), NULL, false);
		struct sbx_verdict v = sbx_policy_decide_name(w.p, x->name, SBX_PROTO_TCP, x->port);

		if (v.action != x->action)
			fail_msg("%s: %s:%u: %s", x->profile, x->name, x->port,
				 sbx_action_str(v.action));
		if (read_only(p, v.terminate) != x->read_only)
			fail_msg("%s: %s:%u: read-only is another", x->profile, x->name, x->port);
	}
	for (size_t i = 0; i < SBX_N_ELEMENTS(names); i++) {
		SBX_CLEANUP(sbx_profile_freep) struct sbx_profile *p = shipped_profile(names[i]);
		SBX_CLEANUP(world_fini) struct world w =
			world_of_profile(settled(p), NULL, false);

		assert_int_equal(
			sbx_policy_decide_name(w.p, "ipinfo.io", SBX_PROTO_TCP, 443).reason,
			SBX_REASON_FLOOR);
		assert_int_equal(
			sbx_policy_decide_name(w.p, "metadata.google.internal", SBX_PROTO_TCP, 80)
				.reason,
			SBX_REASON_FLOOR);
	}
}

/* Nothing that may hold a secret is handed on, and no shipped limit refuses to run. */
static void test_harmless(void **state)
{
	static const char *const words[] = { "TOKEN", "KEY",  "SECRET", "PASS",
					     "AUTH",  "CRED", "OPTIONS" };

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(names); i++) {
		SBX_CLEANUP(sbx_profile_freep) struct sbx_profile *p = shipped_profile(names[i]);

		assert_non_null(p->description);
		assert_false(p->limits.strict);
		assert_true(p->limits.open_files > 0);
		for (size_t j = 0; j < p->environment.pass.n; j++)
			for (size_t k = 0; k < SBX_N_ELEMENTS(words); k++)
				assert_null(strstr(p->environment.pass.v[j], words[k]));
	}
	for (const char *const *name = sbx_shipped_env_pass; *name; name++)
		for (size_t k = 0; k < SBX_N_ELEMENTS(words); k++)
			assert_null(strstr(*name, words[k]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_golden),
		cmocka_unit_test(test_reparses),
		cmocka_unit_test(test_expectations),
		cmocka_unit_test(test_harmless),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
