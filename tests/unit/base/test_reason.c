/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/reason.h"

static void test_words(void **state)
{
	(void)state;
	assert_string_equal(sbx_action_str(SBX_DENY), "deny");
	assert_string_equal(sbx_action_str(SBX_ALLOW), "allow");
	assert_string_equal(sbx_action_str(SBX_PANIC), "panic");
	assert_string_equal(sbx_proto_str(SBX_PROTO_TCP), "tcp");
	assert_string_equal(sbx_proto_str(SBX_PROTO_OTHER), "other");
	assert_string_equal(sbx_check_str(SBX_CHECK_NONE), "none");
	assert_string_equal(sbx_check_str(SBX_CHECK_HTTP), "http");
	assert_string_equal(sbx_reason_str(SBX_REASON_SNI_MISMATCH), "sni_mismatch");
	assert_string_equal(sbx_reason_str(SBX_REASON_PROTOCOL), "protocol");
}

/* Zeroed memory must deny. */
static void test_zero_denies(void **state)
{
	(void)state;
	assert_int_equal(SBX_DENY, 0);
	assert_int_equal(SBX_REASON_UNKNOWN, 0);
}

static void test_reasons_differ(void **state)
{
	(void)state;
	for (int i = 0; i < SBX_N_REASONS; i++) {
		const char *word = sbx_reason_str((enum sbx_reason)i);

		assert_true(word[0] &&
			    strspn(word, "abcdefghijklmnopqrstuvwxyz_-") == strlen(word));
		assert_true(strlen(sbx_reason_help((enum sbx_reason)i)) > strlen(word));
		for (int j = 0; j < i; j++)
			assert_string_not_equal(word, sbx_reason_str((enum sbx_reason)j));
	}
}

static void test_out_of_range(void **state)
{
	(void)state;
	assert_string_equal(sbx_action_str((enum sbx_action)SBX_N_ACTIONS), "unknown");
	assert_string_equal(sbx_proto_str((enum sbx_proto)200), "unknown");
	assert_string_equal(sbx_check_str((enum sbx_check) - 1), "unknown");
	assert_string_equal(sbx_reason_str((enum sbx_reason)SBX_N_REASONS), "unknown");
	assert_non_null(sbx_reason_help((enum sbx_reason) - 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_zero_denies),
		cmocka_unit_test(test_reasons_differ),
		cmocka_unit_test(test_out_of_range),
	};

	return cmocka_run_group_tests_name("reason", tests, NULL, NULL);
}
