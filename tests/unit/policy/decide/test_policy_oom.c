/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The nth allocation fails, for every n until everything succeeds: -ENOMEM or NULL, never half a
 * thing; leaks are for the sanitizer build to see. Linked with --wrap for the allocators. */

#include "policy/keys/profile_parse.h"
#include "tests/unit/fail_alloc.h"
#include "tests/unit/policy_world.h"

#include <errno.h>

void *__real_realloc(void *p, size_t n);
void *__wrap_realloc(void *p, size_t n);
char *__wrap_strdup(const char *s);
char *__wrap_strndup(const char *s, size_t n);

void *__wrap_realloc(void *p, size_t n)
{
	return allocation_fails() ? NULL : __real_realloc(p, n);
}

char *__wrap_strndup(const char *s, size_t n)
{
	size_t n_s = strnlen(s, n);
	char *copy = __wrap_malloc(n_s + 1);

	if (copy) {
		memcpy(copy, s, n_s);
		copy[n_s] = '\0';
	}
	return copy;
}

char *__wrap_strdup(const char *s)
{
	return __wrap_strndup(s, strlen(s));
}

static const char yaml[] =
	"extends: parent\n"
	"name: a\ndescription: b c\n"
	"filesystem: {mounts: [/a, {source: /b, target: /c}], allowed_prefixes: [/a], "
	"blocked_segments: [x], unmask: [/a/x]}\n"
	"commands: {allow: [a], deny: [b]}\n"
	"network: {allow: [a.example, \"*.b.example\", {host: c.example, ports: [1, 2]}, "
	"{host: \"*.t.example\", headers: {A: b}, mtls: {cert: /c, key: /k}, access: {methods: "
	"[GET], paths: [/a]}}, 192.0.2.0/24],\n"
	"          deny: [d.example], dns: {resolvers: [192.0.2.1]}, upstream_proxy: "
	"http://p.example:1}\n"
	"secrets: [{name: S, from: env:S, hosts: x.b.example, prefix: p_}, {name: T, command: [x], "
	"hosts: [a.example], inject: {header: 'X: ${secret}'}, methods: [GET], paths: [/a]}]\n"
	"environment: {pass: [A], set: {B: c}}\n"
	"selftest: [{dns_refused: e.example}, {connect_name: \"a.example:1\", expect: x}]\n";

static char *load_parent(void *userdata, const char *name, size_t *ret_n, char *ret_file,
			 size_t n_file)
{
	static const char text[] = "description: p\nenvironment: {pass: [C], set: {B: d, E: f}}\n"
				   "network: {upstream_proxy: http://q.example:2}\n";

	(void)userdata;
	(void)name;
	snprintf(ret_file, n_file, "parent.yaml");
	*ret_n = strlen(text);
	/* Not from here: NULL means that there is no such file. */
	fail_at += fail_at > 0;
	return strdup(text);
}

/* One run through everything. 0, or the error of the step that failed. */
static int run(void)
{
	static struct sbx_err_list errs;
	SBX_CLEANUP(sbx_profile_freep) struct sbx_profile *p = NULL;
	SBX_CLEANUP(sbx_system_policy_freep) struct sbx_system_policy *s = NULL;
	SBX_CLEANUP(sbx_policy_freep) struct sbx_policy *policy = NULL;
	static const char *const allow[] = { "l.example", "10.0.0.0/8" }, *const deny[] = {
		"m.org"
	};
	SBX_CLEANUP(sbx_rules_fini) struct sbx_rules rules = { 0 };
	SBX_CLEANUP(sbx_live_fini) struct sbx_live live = { 0 };
	struct sbx_policy_input input = { .rules = &rules, .live = &live };
	SBX_AUTO_FREE char *text = NULL;
	SBX_AUTO_FREE void *blob = NULL;
	char field[SBX_LIVE_FIELD_MAX];
	size_t n_blob;
	int r;

	memset(&errs, 0, sizeof(errs));
	r = sbx_profile_parse(sbx_span_str(yaml), "a.yaml", load_parent, NULL, &errs, &p);
	if (r == 0)
		r = sbx_system_policy_parse(
			sbx_span_str("blocked_segments: [a]\nfloors: [x.example]\n"), "system.yaml",
			&errs, &s);
	if (r == 0) {
		text = sbx_profile_print(p);
		r = text ? 0 : -ENOMEM;
	}
	if (r == 0)
		r = sbx_net_list_add_pattern(&p->network.allow, "z.example", "--allow", NULL);
	if (r == 0)
		r = sbx_profile_add_secret_flag(p, "U=file:/x@z.example", NULL);
	if (r == 0)
		r = sbx_profile_settle_secrets(p, NULL);
	if (r == 0)
		r = sbx_rules_add(&rules, 1, SBX_RULE_NETWORK, SBX_ALLOW, 5, false, false,
				  "*.r.example", NULL);
	if (r == 0)
		r = sbx_rules_add(&rules, 2, SBX_RULE_TOOL, SBX_DENY, 5, false, false, "curl",
				  NULL);
	if (r == 0)
		r = sbx_live_set(true, allow, 2, deny, 1, &live, field, NULL);
	input.profile = p;
	input.system = s;
	if (r == 0)
		r = sbx_policy_compile(&input, &blob, &n_blob);
	if (r == 0)
		r = sbx_policy_load(sbx_span(blob, n_blob), &policy);
	assert_int_equal(errs.n, 0);
	return r;
}

static void test_each_allocation(void **state)
{
	int r = -ENOMEM;
	size_t n;

	(void)state;
	for (n = 1; r != 0; n++) {
		fail_at = n;
		r = run();
		assert_true(fail_at == 0 || r == 0);
		fail_at = 0;
		assert_true(r == 0 || r == -ENOMEM);
		assert_true(n < 10000);
	}
	assert_true(n > 100);
}

static void test_default_system(void **state)
{
	struct sbx_system_policy *s = NULL;

	(void)state;
	for (size_t n = 1; !s; n++) {
		fail_at = n;
		s = sbx_system_policy_default();
		fail_at = 0;
		assert_true(n < 1000);
	}
	sbx_system_policy_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_allocation),
		cmocka_unit_test(test_default_system),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
