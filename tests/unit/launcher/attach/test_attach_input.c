/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Attach cgroup: where the stub may be, and how deep a cgroup is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "launcher/attach/attach_input.h"

static void test_stub(void **state)
{
	static const char *const ids[] = { "000000000000", "ffffffffffff", "0123456789ab",
					   "0123456789ac" };

	(void)state;
	for (size_t k = 0; k < 4; k++)
		for (unsigned i = 0; i < 64; i++) {
			struct sbx_addr a = sbx_attach_stub_addr(ids[k], i),
					next = sbx_attach_stub_addr(ids[k], i + 1);

			assert_int_equal(a.family, 4);
			assert_int_equal(a.b[0], 127);
			assert_int_equal(a.b[1], 53);
			/* neither a network nor a broadcast address */
			assert_in_range(a.b[3], 1, 254);
			assert_false(sbx_addr_equal(&a, &next));
		}
	assert_memory_not_equal(sbx_attach_stub_addr(ids[2], 0).b,
				sbx_attach_stub_addr(ids[3], 0).b, 4);
}

static void test_level(void **state)
{
	static const char mount[] = "/sys/fs/cgroup";

	(void)state;
	assert_int_equal(sbx_attach_level(mount, "/sys/fs/cgroup/a"), 1);
	assert_int_equal(
		sbx_attach_level(mount, "/sys/fs/cgroup/sbx.slice/sbx-0123456789ab/command"), 3);
	assert_int_equal(sbx_attach_level(mount, "/sys/fs/cgroup//a//b/"), 2);
	assert_int_equal(sbx_attach_level(mount, "/sys/fs/cgroup"), 0);
	assert_int_equal(sbx_attach_level(mount, "/sys/fs/cgroups/a"), 0);
	assert_int_equal(sbx_attach_level(mount, "/elsewhere/a"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stub),
		cmocka_unit_test(test_level),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
