/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/seccomp_lift.h"

static void test_words(void **state)
{
	(void)state;
	for (int i = 0; i < SBX_N_SECCOMP_LIFTS; i++) {
		assert_int_equal(sbx_seccomp_lift_find(sbx_seccomp_lift_str(i)), i);
		assert_true(strlen(sbx_seccomp_lift_help(i)) > 10);
		assert_null(sbx_seccomp_lift_never(sbx_seccomp_lift_str(i)));
	}
	assert_string_equal(sbx_seccomp_lift_str(SBX_N_SECCOMP_LIFTS), "?");
	assert_string_equal(sbx_seccomp_lift_help(SBX_N_SECCOMP_LIFTS), "?");
}

static void test_others(void **state)
{
	static const char *const never[] = { "io_uring", "io_uring_setup", "bpf",
					     "mount",	 "mount_setattr",  "unshare",
					     "clone3",	 "keyctl",	   "socket" };
	static const char *const unknown[] = { "", "PTRACE", "ptrace ", "ptrac", "read", "i" };

	(void)state;
	for (size_t i = 0; i < sizeof(never) / sizeof(never[0]); i++) {
		assert_int_equal(sbx_seccomp_lift_find(never[i]), -1);
		assert_non_null(sbx_seccomp_lift_never(never[i]));
	}
	for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++) {
		assert_int_equal(sbx_seccomp_lift_find(unknown[i]), -1);
		assert_null(sbx_seccomp_lift_never(unknown[i]));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_others),
	};

	return cmocka_run_group_tests_name("seccomp_lift", tests, NULL, NULL);
}
