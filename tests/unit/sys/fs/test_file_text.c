/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Small texts: whole, cut, absent, and what cannot be read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

#include "base/cleanup.h"
#include "sys/fs/file_text.h"

static void test_text(void **state)
{
	SBX_AUTO_CLOSE int fd = memfd_create("text", MFD_CLOEXEC);
	char path[64], buf[8];

	(void)state;
	assert_true(fd >= 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	assert_int_equal(sbx_file_text_read(AT_FDCWD, path, buf, sizeof(buf)), 0);
	assert_string_equal(buf, "");
	assert_int_equal(sbx_file_text_write(AT_FDCWD, path, "1234567"), 0);
	assert_int_equal(sbx_file_text_read(AT_FDCWD, path, buf, sizeof(buf)), 7);
	assert_string_equal(buf, "1234567");
	assert_int_equal(sbx_file_text_write(AT_FDCWD, path, "abcdefgh"), 0);
	assert_int_equal(sbx_file_text_read(AT_FDCWD, path, buf, sizeof(buf)), 7);
	assert_string_equal(buf, "abcdefg");
}

static void test_errors(void **state)
{
	char buf[8] = "x";

	(void)state;
	assert_int_equal(sbx_file_text_read(AT_FDCWD, "/proc/self/none", buf, sizeof(buf)),
			 -ENOENT);
	assert_string_equal(buf, "");
	buf[0] = 'x';
	assert_int_equal(sbx_file_text_read(AT_FDCWD, "/proc", buf, sizeof(buf)), -EISDIR);
	assert_string_equal(buf, "");
	assert_int_equal(sbx_file_text_write(AT_FDCWD, "/proc/self/none", "x"), -ENOENT);
	assert_int_equal(sbx_file_text_write(AT_FDCWD, "/dev/full", "x"), -ENOSPC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_errors),
	};

	return cmocka_run_group_tests_name("file_text", tests, NULL, NULL);
}
