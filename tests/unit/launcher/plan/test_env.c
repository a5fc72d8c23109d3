/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/unit/plan_world.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "launcher/plan/plan_internal.h"
#include "launcher/view/environment.h"

static const char *get(struct plan_world *w, const char *name)
{
	return sbx_environment_get(&w->plan->env, name);
}

static void profile(struct plan_world *w, const char *environment)
{
	char text[512];

	snprintf(text, sizeof(text), "name: e\nenvironment:\n%s", environment);
	plan_world_write(w, "config/profiles/e.yaml", text, 0644);
}

static void test_basics(void **state)
{
	struct plan_world *w = *state;

	plan_world_must(w, "--", "true");
	assert_string_equal(get(w, "HOME"), w->facts.home);
	assert_string_equal(get(w, "USER"), "dev");
	assert_string_equal(get(w, "LOGNAME"), "dev");
	assert_string_equal(get(w, "SHELL"), "/bin/sh");
	assert_string_equal(get(w, "SBX_SANDBOX_ID"), "0123456789ab");
	assert_string_equal(get(w, "LSAN_OPTIONS"), "detect_leaks=0");
	assert_null(get(w, "AWS_SECRET_ACCESS_KEY"));
	assert_null(get(w, "https_proxy"));
	plan_world_must(w, "--env", "LSAN_OPTIONS=verbosity=1", "--", "true");
	assert_string_equal(get(w, "LSAN_OPTIONS"), "verbosity=1");
	plan_world_write(w, "config/profiles/debug.yaml",
			 "extends: none\nseccomp: {allow: [ptrace]}\n", 0644);
	plan_world_must(w, "--profile", "debug", "--", "true");
	assert_null(get(w, "LSAN_OPTIONS"));
}

/* PATH has only directories of the sandbox, each once, the system's at the end. */
static void test_path(void **state)
{
	struct plan_world *w = *state;
	char entry[256];

	plan_world_must(w, "--", "true");
	assert_string_equal(get(w, "PATH"), "/usr/local/bin:/usr/bin:/bin:/usr/sbin");
	/* A directory of a grant counts; the same without the grant does not. */
	snprintf(entry, sizeof(entry), "PATH=%s/home/project/sub:%s/home/other::/usr/bin:.", w->dir,
		 w->dir);
	memcpy(entry, "PATH", 4);
	free(w->environ[0]);
	w->environ[0] = strdup(entry);
	plan_world_must(w, "--", "true");
	assert_non_null(strstr(get(w, "PATH"), "/home/project/sub:/usr/bin:"));
	assert_null(strstr(get(w, "PATH"), "/home/other"));
	assert_null(strstr(get(w, "PATH"), "::"));
	plan_world_must(w, "--ro-bind", plan_world_path(w, "home/other"), "--", "true");
	assert_non_null(strstr(get(w, "PATH"), "/home/other"));
}

static void test_certificates(void **state)
{
	struct plan_world *w = *state;

	plan_world_env(w, "SSL_CERT_DIR=/etc/ssl/certs:/usr/lib");
	plan_world_env(w, "CURL_CA_BUNDLE=/nowhere/ca.pem");
	plan_world_env(w, "PIP_CERT=relative.pem");
	plan_world_env(w, "GIT_SSL_CAINFO=");
	plan_world_must(w, "--profile", "none", "--", "true"); /* nothing terminated */
	assert_string_equal(get(w, "SSL_CERT_FILE"), "/etc/ssl/certs/ca-certificates.crt");
	assert_string_equal(get(w, "SSL_CERT_DIR"), "/etc/ssl/certs:/usr/lib");
	assert_null(get(w, "CURL_CA_BUNDLE"));
	assert_null(get(w, "PIP_CERT"));
	assert_null(get(w, "GIT_SSL_CAINFO"));
}

static void test_profile(void **state)
{
	struct plan_world *w = *state;

	plan_world_env(w, "LC_ALL=C");
	plan_world_env(w, "LC_TIME=C");
	plan_world_env(w, "OTHER=x");
	profile(w, "  pass: [TERM, \"LC_*\"]\n  set: {COLOR: \"1\", TERM: dumb}\n");
	plan_world_must(w, "--profile", "e", "--env", "COLOR=2", "--", "true");
	assert_string_equal(get(w, "LC_ALL"), "C");
	assert_string_equal(get(w, "LC_TIME"), "C");
	assert_string_equal(get(w, "TERM"), "dumb"); /* set after pass */
	assert_string_equal(get(w, "COLOR"), "2");   /* the flag after both */
	assert_null(get(w, "OTHER"));
}

/* Variables that terminals and languages need are passed, whatever else the profile passes. */
static void test_always_passed(void **state)
{
	static const char *const passes[] = { "  pass: [OTHER]\n", "  pass: []\n",
					      "  set: {A: b}\n" };
	struct plan_world *w = *state;

	plan_world_env(w, "TERM=xterm-direct");
	plan_world_env(w, "LANG=de_DE.UTF-8");
	plan_world_env(w, "LC_ALL=C");
	plan_world_env(w, "NO_COLOR=1");
	plan_world_env(w, "OTHER=x");
	for (size_t i = 0; i < SBX_N_ELEMENTS(passes); i++) {
		profile(w, passes[i]);
		plan_world_must(w, "--profile", "e", "--", "true");
		assert_string_equal(get(w, "TERM"), "xterm-direct");
		assert_string_equal(get(w, "LANG"), "de_DE.UTF-8");
		assert_string_equal(get(w, "LC_ALL"), "C");
		assert_string_equal(get(w, "NO_COLOR"), "1");
		assert_int_equal(get(w, "OTHER") != NULL, i == 0);
	}
}

/* A pattern does not pass names that look like secrets; a name that is spelt out is passed. */
static void test_patterns(void **state)
{
	static const char *const secrets[] = {
		"AWS_PROFILE=x",       "GITHUB_TOKEN=x",     "MY_API_KEY=x",
		"DB_PASSWORD=x",       "SSH_AUTH_SOCK=/x",   "NPM_CONFIG_X=x",
		"ANTHROPIC_API_KEY=x", "HTTPS_PROXY=x",	     "A_SECRET=x",
		"XDG_RUNTIME_DIR=/x",  "npm_config__auth=x", "DBUS_SESSION_BUS_ADDRESS=x",
	};
	struct plan_world *w = *state;

	for (size_t i = 0; i < SBX_N_ELEMENTS(secrets); i++)
		plan_world_env(w, secrets[i]);
	plan_world_env(w, "HARMLESS=yes");
	plan_world_env(w, "BASH_FUNC_f%%=() { :; }");
	plan_world_env(w, "LD_PRELOAD=/x.so");
	profile(w, "  pass: [\"*\"]\n");
	if (plan_world_plan(w, "--profile", "e", "--", "true", NULL) == 0) {
		assert_string_equal(get(w, "HARMLESS"), "yes");
		assert_null(get(w, "LD_PRELOAD"));
		for (size_t i = 0; i < SBX_N_ELEMENTS(secrets); i++) {
			char name[64];

			snprintf(name, sizeof(name), "%.*s", (int)strcspn(secrets[i], "="),
				 secrets[i]);
			if (get(w, name))
				fail_msg("%s was passed", name);
		}
	}
	profile(w, "  pass: [\"GITHUB_*\", \"H*\", \"LD_*\", \"B*\"]\n");
	plan_world_must(w, "--profile", "e", "--", "true");
	assert_string_equal(get(w, "HARMLESS"), "yes");
	assert_null(get(w, "GITHUB_TOKEN"));
	assert_null(get(w, "HTTPS_PROXY"));
	assert_null(get(w, "LD_PRELOAD"));
	assert_null(get(w, "BASH_FUNC_f%%"));
	profile(w, "  pass: [GITHUB_TOKEN]\n");
	plan_world_must(w, "--profile", "e", "--", "true");
	assert_string_equal(get(w, "GITHUB_TOKEN"), "x");
}

static void test_flags(void **state)
{
	struct plan_world *w = *state;

	plan_world_env(w, "LD_PRELOAD=/x.so");
	plan_world_must(w, "--env", "AWS_SECRET_ACCESS_KEY", "--env", "A=b=c", "--env",
			"EMPTY=", "--", "true");
	assert_string_equal(get(w, "AWS_SECRET_ACCESS_KEY"), "hush");
	assert_string_equal(get(w, "A"), "b=c");
	assert_string_equal(get(w, "EMPTY"), "");
	plan_world_must(w, "--env", "ABSENT", "--", "true");
	assert_null(get(w, "ABSENT"));
	assert_true(plan_world_noted(w, "ABSENT"));
	plan_world_refused(w, 125, "never passed", "--env", "LD_PRELOAD", "--", "true");
	plan_world_refused(w, 125, "never passed", "--env", "NOTIFY_SOCKET", "--", "true");
	plan_world_must(w, "--env", "LD_PRELOAD=/mine.so", "--", "true");
	assert_string_equal(get(w, "LD_PRELOAD"), "/mine.so");
	plan_world_must(w, "--env", "SBX_SANDBOX_ID=forged", "--", "true");
	assert_string_equal(get(w, "SBX_SANDBOX_ID"), "0123456789ab");
}

/* Each name once, and an origin for each. */
static void test_unique(void **state)
{
	struct plan_world *w = *state;

	plan_world_must(w, "--env", "HOME=/elsewhere", "--env", "TERM=x", "--env", "TERM=y", "--",
			"true");
	for (size_t i = 0; i < w->plan->env.n; i++) {
		size_t n = strcspn(w->plan->env.v[i], "=") + 1;

		assert_true(w->plan->env.origin[i] < SBX_N_ENV_ORIGINS);
		for (size_t j = i + 1; j < w->plan->env.n; j++)
			assert_int_not_equal(strncmp(w->plan->env.v[i], w->plan->env.v[j], n), 0);
	}
	assert_string_equal(get(w, "HOME"), "/elsewhere");
	assert_string_equal(get(w, "TERM"), "y");
	assert_null(w->plan->env.v[w->plan->env.n]);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, plan_world_setup, plan_world_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_basics),   TEST(test_path),  TEST(test_certificates), TEST(test_profile),
		TEST(test_always_passed),
		TEST(test_patterns), TEST(test_flags), TEST(test_unique),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
