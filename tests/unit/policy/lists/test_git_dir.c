/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "policy/lists/git_dir.h"

static void test_marks(void **state)
{
	static const char *const files[] = { "HEAD", "config", "commondir" };
	static const char *const dirs[] = { "objects", "refs" };
	static const char *const others[] = { "", "head", "HEAD2", "hooks", "modules", "." };
	unsigned int all = 0;

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(files); i++) {
		const unsigned int mark = sbx_git_dir_mark(files[i], true, false);

		assert_int_not_equal(mark, 0);
		assert_int_equal(all & mark, 0);
		all |= mark;
		assert_int_equal(sbx_git_dir_mark(files[i], true, true), mark);
		assert_int_equal(sbx_git_dir_mark(files[i], false, true), 0);
	}
	for (size_t i = 0; i < SBX_N_ELEMENTS(dirs); i++) {
		const unsigned int mark = sbx_git_dir_mark(dirs[i], false, true);

		assert_int_not_equal(mark, 0);
		assert_int_equal(all & mark, 0);
		all |= mark;
		assert_int_equal(sbx_git_dir_mark(dirs[i], true, true), mark);
		assert_int_equal(sbx_git_dir_mark(dirs[i], true, false), 0);
	}
	for (size_t i = 0; i < SBX_N_ELEMENTS(others); i++)
		assert_int_equal(sbx_git_dir_mark(others[i], true, true), 0);
}

static unsigned int either(const char *name)
{
	return sbx_git_dir_mark(name, true, true);
}

/* A branch may be called config or objects; git needs two of them. */
static void test_known(void **state)
{
	(void)state;
	assert_false(sbx_git_dir_known(0, false));
	assert_true(sbx_git_dir_known(either("config"), false));
	assert_false(sbx_git_dir_known(0, true));
	assert_false(sbx_git_dir_known(either("HEAD") | either("config") | either("refs"), true));
	assert_false(sbx_git_dir_known(either("commondir") | either("objects"), true));
	assert_true(sbx_git_dir_known(either("objects") | either("refs"), true));
	assert_true(sbx_git_dir_known(either("HEAD") | either("commondir"), true));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_marks),
		cmocka_unit_test(test_known),
	};

	return cmocka_run_group_tests_name("git_dir", tests, NULL, NULL);
}
