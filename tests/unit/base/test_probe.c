/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/probe.h"

static void test_words(void **state)
{
	(void)state;
	assert_string_equal(sbx_mode_str(SBX_MODE_OFFLINE), "offline");
	assert_string_equal(sbx_mode_str(SBX_MODE_FETCH), "fetch");
	assert_string_equal(sbx_mode_str(SBX_MODE_FULL), "full");
	assert_string_equal(sbx_mode_str((enum sbx_mode)SBX_N_MODES), "unknown");
	assert_string_equal(sbx_probe_kind_str(SBX_PROBE_DNS_REFUSED), "dns_refused");
	assert_string_equal(sbx_probe_kind_str(SBX_PROBE_PATH_READONLY), "path_readonly");
	assert_string_equal(sbx_probe_kind_str((enum sbx_probe_kind) - 1), "unknown");
	assert_int_equal(SBX_MODE_OFFLINE, 0); /* zeroed memory has no way out */
}

static void test_kinds_differ(void **state)
{
	(void)state;
	for (int i = 0; i < SBX_N_PROBE_KINDS; i++) {
		for (int j = 0; j < i; j++)
			assert_string_not_equal(sbx_probe_kind_str((enum sbx_probe_kind)i),
						sbx_probe_kind_str((enum sbx_probe_kind)j));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_kinds_differ),
	};

	return cmocka_run_group_tests_name("probe", tests, NULL, NULL);
}
