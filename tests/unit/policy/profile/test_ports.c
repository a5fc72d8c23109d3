/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Sets of ports: what is added, shared and left. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "base/cleanup.h"
#include "policy/profile/net_entry.h"
#include "policy/profile/ports.h"

static struct sbx_net_entry entry(const char *pattern)
{
	struct sbx_net_entry e;
	struct sbx_err err = { 0 };

	if (sbx_net_entry_parse(pattern, SBX_PATTERN_ANY, false, &e, &err) != 0)
		fail_msg("%s: %s", pattern, err.msg);
	return e;
}

static void add(struct sbx_ports *ports, const char *pattern, bool deny)
{
	SBX_CLEANUP(sbx_net_entry_fini) struct sbx_net_entry e = entry(pattern);

	sbx_ports_add(ports, &e, deny);
}

static void test_add(void **state)
{
	struct sbx_ports ports = { { 0 } };

	(void)state;
	assert_false(sbx_ports_has(&ports, 443));
	add(&ports, "a.example", false);
	assert_true(sbx_ports_has(&ports, 443) && sbx_ports_has(&ports, 80));
	assert_false(sbx_ports_has(&ports, 442) || sbx_ports_has(&ports, 444));
	add(&ports, "a.example:65535", false);
	assert_true(sbx_ports_has(&ports, 65535));
	add(&ports, "a.example", true); /* to deny: every port */
	assert_true(sbx_ports_has(&ports, 1) && sbx_ports_has(&ports, 65534));
}

static void test_shared(void **state)
{
	static const struct {
		const char *a, *b;
		bool shared;
	} cases[] = {
		{ "a.example:443", "a.example:443", true },
		{ "a.example:443", "a.example:444", false },
		{ "a.example:1-100", "a.example:100-200", true },
		{ "a.example:1-99", "a.example:100-200", false },
		{ "a.example:50", "a.example:7,1-100", true },
		{ "a.example", "a.example:80", true },
		{ "a.example", "a.example:81", false },
	};

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++) {
		SBX_CLEANUP(sbx_net_entry_fini) struct sbx_net_entry a = entry(cases[i].a);
		SBX_CLEANUP(sbx_net_entry_fini) struct sbx_net_entry b = entry(cases[i].b);

		if (sbx_ports_shared(&a, &b) != cases[i].shared ||
		    sbx_ports_shared(&b, &a) != cases[i].shared)
			fail_msg("%s and %s", cases[i].a, cases[i].b);
	}
}

static void test_left(void **state)
{
	static const struct {
		const char *own, *taken, *left; /* left "": the default ports */
		size_t n_left;
	} cases[] = {
		{ "a.example", "a.example:81", "", 2 },
		{ "a.example", "a.example:80", "443", 1 },
		{ "a.example", "a.example:80,443", "", 0 },
		{ "a.example:1-10", "a.example:5", "1-4,6-10", 9 },
		{ "a.example:1-10", "a.example:1-3,9-20", "4-8", 5 },
		{ "a.example:8443,443", "a.example:1", "8443,443", 2 }, /* as it was written */
	};

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++) {
		SBX_CLEANUP(sbx_net_entry_fini) struct sbx_net_entry e = entry(cases[i].own);
		struct sbx_net_entry copy = { 0 };
		struct sbx_ports taken = { { 0 } };
		char text[SBX_PORTS_STR_MAX];
		size_t n_left;

		add(&taken, cases[i].taken, false);
		assert_true(sbx_ports_left(&e, &taken, &copy, &n_left));
		assert_int_equal(n_left, cases[i].n_left);
		assert_string_equal(sbx_net_entry_ports(&copy, text, sizeof(text)), cases[i].left);
	}
}

/* Each port that is taken out of a range makes one range more. */
static void test_too_many_ranges(void **state)
{
	SBX_CLEANUP(sbx_net_entry_fini) struct sbx_net_entry e = entry("a.example:1-1000");
	struct sbx_net_entry copy = { 0 };
	struct sbx_ports taken = { { 0 } };
	char pattern[32];
	size_t n_left;

	(void)state;
	for (unsigned i = 1; i < SBX_PORTS_MAX; i++) {
		snprintf(pattern, sizeof(pattern), "a.example:%u", 2 * i);
		add(&taken, pattern, false);
	}
	assert_true(sbx_ports_left(&e, &taken, &copy, &n_left));
	assert_int_equal(copy.n_ports, SBX_PORTS_MAX);
	add(&taken, "a.example:900", false);
	assert_false(sbx_ports_left(&e, &taken, &copy, &n_left));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_add),
		cmocka_unit_test(test_shared),
		cmocka_unit_test(test_left),
		cmocka_unit_test(test_too_many_ranges),
	};

	return cmocka_run_group_tests_name("ports", tests, NULL, NULL);
}
