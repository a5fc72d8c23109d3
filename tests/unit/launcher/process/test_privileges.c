/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <linux/capability.h>
#include <string.h>

#include "launcher/process/privileges.h"

#define ALL (1ull << CAP_SETUID | 1ull << CAP_SETGID | 1ull << CAP_SYS_ADMIN | 1ull << CAP_KILL)

static struct sbx_caps ambient(uint64_t mask)
{
	return (struct sbx_caps){ .effective = mask,
				  .permitted = mask,
				  .inheritable = mask,
				  .bounding = ~0ull,
				  .ambient = mask };
}

static void judged(struct sbx_caps caps, int result, bool privileged, const char *text)
{
	struct sbx_err err = { 0 };
	bool got = false;

	assert_int_equal(sbx_privileges_judge(&caps, &got, &err), result);
	assert_int_equal(got, privileged);
	if (text)
		assert_non_null(strstr(err.msg, text));
	else
		assert_string_equal(err.msg, "");
}

static void test_all_or_none(void **state)
{
	(void)state;
	assert_int_equal(sbx_privileges_mask(), ALL);
	judged(ambient(ALL), 0, true, NULL);
	judged(ambient(ALL | 1ull << CAP_NET_ADMIN | 1ull << 40), 0, true, NULL);
	judged(ambient(0), 0, false, NULL);
	judged(ambient(1ull << CAP_NET_BIND_SERVICE), 0, false, NULL);
}

/* Each of them missing, and each of them alone. */
static void test_some(void **state)
{
	(void)state;
	for (size_t i = 0; i < sbx_n_privileges; i++) {
		uint64_t one = 1ull << sbx_privileges[i].cap;

		/* neither makes a launcher privileged nor keeps it from being that */
		if (sbx_privileges[i].optional) {
			judged(ambient(ALL & ~one), 0, true, NULL);
			judged(ambient(one), 0, false, NULL);
			continue;
		}
		judged(ambient(ALL & ~one), SBX_PRIVILEGES_E_UNUSABLE, false,
		       sbx_privileges[i].name);
		judged(ambient(one), SBX_PRIVILEGES_E_UNUSABLE, false, sbx_privileges[i == 0].name);
	}
}

/* From the program's file: permitted, and not ambient. */
static void test_file_capabilities(void **state)
{
	struct sbx_caps caps = ambient(ALL);

	(void)state;
	caps.ambient = 0;
	judged(caps, SBX_PRIVILEGES_E_UNUSABLE, false, "setcap -r");
	caps = ambient(ALL);
	caps.permitted |= 1ull << CAP_SYS_PTRACE;
	judged(caps, SBX_PRIVILEGES_E_UNUSABLE, false, "setcap -r");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_or_none),
		cmocka_unit_test(test_some),
		cmocka_unit_test(test_file_capabilities),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
