/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "policy/keys/profile_parse.h"
#include "tests/unit/policy_world.h"

static struct sbx_err_list errs;

static struct sbx_system_policy *parse(const char *yaml)
{
	struct sbx_system_policy *s = NULL;

	memset(&errs, 0, sizeof(errs));
	sbx_system_policy_parse(sbx_span_str(yaml), "system.yaml", &errs, &s);
	assert_int_equal(s == NULL, errs.n > 0);
	return s;
}

static bool has(const struct sbx_str_list *list, const char *s)
{
	for (size_t i = 0; i < list->n; i++) {
		if (strcmp(list->v[i], s) == 0)
			return true;
	}
	return false;
}

static void test_default(void **state)
{
	SBX_CLEANUP(sbx_system_policy_freep)
	struct sbx_system_policy *s = sbx_system_policy_default();
	SBX_CLEANUP(sbx_system_policy_freep) struct sbx_system_policy *empty = parse("# nothing\n");

	(void)state;
	for (const char *const *w =
		     (const char *const[]){ ".ssh", ".aws", ".gnupg", ".kube", ".docker", "secrets",
					    "credentials", NULL };
	     *w; w++)
		assert_true(has(&s->blocked_segments, *w));
	for (const char *const *w =
		     (const char *const[]){ ".netrc", ".pypirc", "id_rsa", "id_ed25519", NULL };
	     *w; w++)
		assert_true(has(&s->blocked_segments, *w));
	for (const char *const *w =
		     (const char *const[]){ ".npmrc", ".env", "cert.pem", "id_map", NULL };
	     *w; w++)
		assert_false(has(&s->blocked_segments, *w));
	assert_int_equal(s->n_own_blocked_segments, 0);
	for (const char *const *w =
		     (const char *const[]){ "sudo", "su", "doas", "pkexec", "iptables", "ip6tables",
					    "nft", "mount", NULL };
	     *w; w++)
		assert_true(has(&s->commands_deny, *w));
	assert_int_equal(s->ceilings.memory_bytes, 0);
	assert_int_equal(s->allowed_prefixes.n, 0);
	assert_int_equal(s->publish, SBX_PUBLISH_LOOPBACK);
	assert_int_equal(empty->publish, SBX_PUBLISH_LOOPBACK);
	assert_int_equal(s->new_protected, SBX_NEW_PROTECTED_KEEP);
	assert_int_equal(empty->new_protected, SBX_NEW_PROTECTED_KEEP);
	assert_int_equal(empty->blocked_segments.n, s->blocked_segments.n);
	assert_int_equal(empty->commands_deny.n, s->commands_deny.n);
	assert_int_equal(s->seccomp_allow.n, 1);
	assert_true(has(&s->seccomp_allow, "ptrace"));
	assert_true(has(&empty->seccomp_allow, "ptrace"));
}

static void test_file(void **state)
{
	SBX_CLEANUP(sbx_system_policy_freep)
	struct sbx_system_policy *s =
		parse("ceilings: {memory: 8G, cpus: 4, disk: 10G, pids: 4096}\n"
		      "allowed_prefixes: [/data, ~/work]\n"
		      "blocked_segments: [phi]\n"
		      "commands: {deny: [docker]}\n"
		      "floors: [\"*.evil.example\", \"*.xyz\", 203.0.113.0/24]\n"
		      "admit: [10.0.0.0/8, \"fd12::/16\"]\n"
		      "publish: any\n"
		      "seccomp: {allow: []}\n"
		      "uid_pool: 20001-30000\n");
	SBX_CLEANUP(sbx_system_policy_freep)
	struct sbx_system_policy *two =
		parse("seccomp: {allow: [setuid_files, perf_event_open]}\n");
	SBX_CLEANUP(sbx_system_policy_freep)
	struct sbx_system_policy *dropped = parse("shipped: drop\nblocked_segments: [phi]\n");

	(void)state;
	print_errors(&errs);
	assert_int_equal(s->ceilings.memory_bytes, UINT64_C(8) << 30);
	assert_int_equal(s->ceilings.cpus_milli, 4000);
	assert_int_equal(s->allowed_prefixes.n, 2);
	assert_true(has(&s->blocked_segments, "phi"));
	assert_int_equal(s->n_own_blocked_segments, 1);
	assert_false(s->no_unmask);
	assert_true(has(&s->blocked_segments, ".ssh"));
	assert_true(has(&s->commands_deny, "docker"));
	assert_true(has(&s->commands_deny, "sudo"));
	assert_int_equal(s->floors.n, 3);
	assert_int_equal(s->admit.n, 2);
	assert_string_equal(s->uid_pool, "20001-30000");
	assert_int_equal(dropped->blocked_segments.n, 1);
	assert_int_equal(dropped->commands_deny.n, 0);
	assert_int_equal(s->seccomp_allow.n, 0);
	assert_int_equal(two->seccomp_allow.n, 2);
	assert_true(has(&two->seccomp_allow, "setuid_files") &&
		    has(&two->seccomp_allow, "perf_event_open"));
}

static void refused(const char *yaml, int line, int column, const char *message)
{
	SBX_CLEANUP(sbx_system_policy_freep) struct sbx_system_policy *s = parse(yaml);

	assert_null(s);
	if (!strstr(errs.v[0].msg, message) || errs.v[0].line != line ||
	    errs.v[0].column != column) {
		print_errors(&errs);
		fail_msg("expected %d:%d: %s", line, column, message);
	}
}

/* For upstream_proxy, which one at its port may be on this host. */
static void test_admit_loopback(void **state)
{
	SBX_CLEANUP(sbx_system_policy_freep)
	struct sbx_system_policy *s =
		parse("admit: [\"127.0.0.1:3128\", \"127.0.0.0/8:3128,8080/tcp\", \"[::1]:3128\", "
		      "10.1.0.0/16]\n");

	(void)state;
	assert_int_equal(s->admit.n, 4);
	assert_string_equal(s->admit.v[0].text, "127.0.0.1:3128");
}

static void test_refused(void **state)
{
	(void)state;
	refused("admit: [corp.example]\n", 1, 9, "only addresses and networks");
	refused("uid_pool: 10001\n", 1, 11, "a range of ids such as");
	refused("uid_pool: 500-1500\n", 1, 11, "must begin at 1000");
	refused("admit: [127.0.0.0/8]\n", 1, 9, "never reached");
	refused("admit: [127.0.0.1]\n", 1, 9, "never reached");
	refused("admit: ['::1']\n", 1, 9, "never reached");
	refused("admit: [\"169.254.169.254:3128\"]\n", 1, 9, "never reached");
	refused("admit: [\"0.0.0.0:3128\"]\n", 1, 9, "never reached");
	refused("admit: [\"[64:ff9b::7f00:1]:3128\"]\n", 1, 9, "never reached");
	refused("admit: [\"*.example:3128\"]\n", 1, 9, "only addresses and networks");
	refused("admit: [10.0.0.0/8, \"corp.example:3128\", 127.0.0.1]\n", 1, 21, "only addresses");
	refused("ceilings: {enforce: strict}\n", 1, 12, "unknown key 'enforce' in ceilings");
	refused("celings: {}\n", 1, 1, "did you mean 'ceilings'?");
	refused("network: {mode: full}\n", 1, 1, "unknown key 'network'");
	refused("floors: x\n", 1, 9, "floors must be a list");
	refused("seccomp: {allow: [ptrac]}\n", 1, 19, "(did you mean 'ptrace'?)");
	refused("seccomp: {allow: [io_uring]}\n", 1, 19,
		"can never be allowed: it opens and connects sockets");
	refused("a: &x\n", 1, 4, "anchors");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_default),
		cmocka_unit_test(test_file),
		cmocka_unit_test(test_admit_loopback), cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
