/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "sys/fs/unix_stream.h"

static void test_connect(void **state)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), fd;

	(void)state;
	snprintf(a.sun_path, sizeof(a.sun_path), "/tmp/sbx-unix-stream-%d", (int)getpid());
	assert_int_equal(sbx_unix_connect(a.sun_path), -ENOENT);
	assert_int_equal(bind(listener, (const struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(sbx_unix_connect(a.sun_path), -ECONNREFUSED);
	assert_int_equal(listen(listener, 0), 0);
	fd = sbx_unix_connect(a.sun_path);
	assert_true(fd >= 0);
	assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	assert_int_equal(sbx_unix_connect(a.sun_path), -EAGAIN); /* it waits for no place */
	close(fd);
	close(listener);
	unlink(a.sun_path);
}

static void test_long_path(void **state)
{
	char path[200];

	(void)state;
	memset(path, 'x', sizeof(path));
	path[0] = '/';
	path[sizeof(path) - 1] = '\0';
	assert_int_equal(sbx_unix_connect(path), -ENAMETOOLONG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_connect),
		cmocka_unit_test(test_long_path),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
