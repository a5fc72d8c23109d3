/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The self-test of a plan: complete, and every refusal it expects is one the policy makes. */
#include "tests/unit/plan_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

static size_t count(const struct plan_world *w, enum sbx_probe_kind kind)
{
	size_t n = 0;

	for (uint32_t i = 0; i < w->plan->probes->n_probes; i++)
		n += w->plan->probes->probes[i].kind == kind;
	return n;
}

static bool connects(const struct plan_world *w, const char *address, enum sbx_proto proto)
{
	struct sbx_addr addr;

	assert_int_equal(sbx_addr_parse(address, &addr), 0);
	for (uint32_t i = 0; i < w->plan->probes->n_probes; i++) {
		const struct sbx_probe *p = &w->plan->probes->probes[i];

		if (p->kind == SBX_PROBE_CONNECT_REFUSED && p->proto == proto &&
		    sbx_addr_equal(&p->addr, &addr))
			return true;
	}
	return false;
}

static void check_refusals(const struct plan_world *w)
{
	for (uint32_t i = 0; i < w->plan->probes->n_probes; i++) {
		const struct sbx_probe *p = &w->plan->probes->probes[i];

		if (p->kind == SBX_PROBE_CONNECT_REFUSED)
			assert_int_equal(sbx_policy_decide_addr(w->plan->policy, &p->addr,
								(enum sbx_proto)p->proto, p->port)
						 .action,
					 SBX_DENY);
		if (p->kind == SBX_PROBE_DNS_REFUSED)
			assert_int_equal(
				sbx_policy_decide_name(w->plan->policy, p->name, SBX_PROTO_DNS, 0)
					.action,
				SBX_DENY);
	}
}

static void test_shipped(void **state)
{
	static char *profiles[] = { "default", "none", "install", "full" };
	static const char *const metadata[] = { "169.254.169.254", "169.254.170.2",
						"100.100.100.200", "168.63.129.16",
						"192.0.0.192",	   "fd00:ec2::254" };
	struct plan_world *w = *state;

	for (size_t i = 0; i < SBX_N_ELEMENTS(profiles); i++) {
		plan_world_must(w, "--profile", profiles[i], "--", "true");
		check_refusals(w);
		assert_true(count(w, SBX_PROBE_DNS_REFUSED) >= 1);
		for (size_t m = 0; m < SBX_N_ELEMENTS(metadata); m++)
			assert_true(connects(w, metadata[m], SBX_PROTO_TCP));
		for (int k = SBX_PROBE_RAW_SOCKET; k <= SBX_PROBE_FDS; k++)
			assert_int_equal(count(w, (enum sbx_probe_kind)k), 1);
		assert_int_equal(count(w, SBX_PROBE_DNS_ALLOWED), 1);
		assert_int_equal(count(w, SBX_PROBE_LOOPBACK), 1);
		assert_int_equal(count(w, SBX_PROBE_CONNECT_NAME), w->plan->carries ? 1 : 0);
	}
}

static void test_families(void **state)
{
	struct plan_world *w = *state;

	plan_world_must(w, "--", "true");
	assert_true(connects(w, "192.0.2.1", SBX_PROTO_TCP));
	assert_true(connects(w, "192.0.2.1", SBX_PROTO_UDP));
	assert_true(connects(w, "2001:db8::1", SBX_PROTO_TCP));
	assert_true(connects(w, "2001:db8::1", SBX_PROTO_UDP));
}

/* A candidate that the policy allows is no probe. */
static void test_allowed_candidates(void **state)
{
	struct plan_world *w = *state;

	plan_world_must(w, "--allow", "192.0.2.0/24", "--allow", "203.0.113.0/24", "--allow",
			"denied.sbx.invalid", "--", "true");
	check_refusals(w);
	assert_false(connects(w, "192.0.2.1", SBX_PROTO_TCP));
	assert_true(connects(w, "10.255.255.1", SBX_PROTO_TCP));
	plan_world_must(w, "--allow", "0.0.0.0/0", "--allow", "::/0", "--", "true");
	check_refusals(w);
	assert_true(connects(w, "169.254.169.254", SBX_PROTO_TCP));
}

/* The broker drops a refused datagram silently: only datagrams that the packet filter refuses are
 * probed. */
static void test_carried_datagrams(void **state)
{
	static const char text[] =
		"name: x\nnetwork: {allow: [{cidr: 0.0.0.0/0, ports: 1-65535, protocol: udp}]}\n";
	struct plan_world *w = *state;

	plan_world_write(w, "config/profiles/x.yaml", text, 0644);
	plan_world_must(w, "--profile", "x", "--", "true");
	check_refusals(w);
	assert_false(connects(w, "192.0.2.1", SBX_PROTO_UDP));
	assert_false(connects(w, "169.254.169.254", SBX_PROTO_UDP));
	assert_true(connects(w, "169.254.169.254", SBX_PROTO_TCP));
	assert_true(connects(w, "2001:db8::1", SBX_PROTO_UDP));
}

static void test_name(void **state)
{
	struct plan_world *w = *state;

	plan_world_must(w, "--profile", "install", "--", "true");
	for (uint32_t i = 0; i < w->plan->probes->n_probes; i++) {
		const struct sbx_probe *p = &w->plan->probes->probes[i];

		if (p->kind != SBX_PROBE_CONNECT_NAME)
			continue;
		assert_string_equal(p->name, SBX_SELFTEST_NAME);
		assert_string_equal(p->expect, "sbx 0123456789ab\n");
	}
	plan_world_must(w, "--profile", "install", "--air-gap", "--", "true");
	assert_int_equal(count(w, SBX_PROBE_CONNECT_NAME), 0);
	assert_int_equal(count(w, SBX_PROBE_DNS_ALLOWED), 1);
}

/* The profile's own come last, and there is room for as many as a profile may have. */
static void test_extra(void **state)
{
	static char text[4096];
	struct plan_world *w = *state;
	const struct sbx_probe *last;
	size_t pos;

	pos = (size_t)snprintf(text, sizeof(text), "name: x\nselftest:\n");
	for (uint32_t i = 0; i < SBX_PROBES_MAX / 2; i++)
		pos += (size_t)snprintf(text + pos, sizeof(text) - pos,
					"  - dns_refused: n%u.example\n", i);
	plan_world_write(w, "config/profiles/x.yaml", text, 0644);
	plan_world_must(w, "--profile", "x", "--", "true");
	last = &w->plan->probes->probes[w->plan->probes->n_probes - 1];
	assert_int_equal(last->kind, SBX_PROBE_DNS_REFUSED);
	assert_string_equal(last->name, "n31.example");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, plan_world_setup, plan_world_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_shipped), TEST(test_families), TEST(test_allowed_candidates),
		TEST(test_carried_datagrams),
		TEST(test_name),    TEST(test_extra),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
