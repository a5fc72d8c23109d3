/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* sd_notify(3)'s protocol, to real sockets: there, full, gone, and no sockets at all. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "sys/systemd/datagram.h"
#include "sys/systemd/notify.h"
#include "sys/process/proc.h"

static char dir[] = "/tmp/sbx-notify-XXXXXX";
static char path[64];

static int make_dir(void **state)
{
	(void)state;
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/socket", dir);
	return 0;
}

static int remove_dir(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(dir);
}

static int receiver(const char *address)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	size_t n = strlen(address);

	assert_true(fd >= 0 && n < sizeof(un.sun_path));
	memcpy(un.sun_path, address, n);
	if (address[0] == '@')
		un.sun_path[0] = '\0';
	else
		unlink(address);
	assert_int_equal(bind(fd, (struct sockaddr *)&un,
			      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n)), 0);
	return fd;
}

static void assert_received(int fd, const char *text)
{
	char buf[SBX_NOTIFY_STATE_MAX + 1];
	ssize_t n = recv(fd, buf, sizeof(buf) - 1, 0);

	assert_int_equal(n, strlen(text));
	buf[n] = '\0';
	assert_string_equal(buf, text);
}

static void test_path(void **state)
{
	SBX_AUTO_CLOSE int fd = receiver(path);

	(void)state;
	assert_int_equal(sbx_notify_send(path, "READY=1\nSTATUS=up"), 0);
	assert_received(fd, "READY=1\nSTATUS=up");
}

static void test_abstract(void **state)
{
	char name[64];
	SBX_AUTO_CLOSE int fd = -1;

	(void)state;
	snprintf(name, sizeof(name), "@sbx-test-notify-%d", getpid());
	fd = receiver(name);
	assert_int_equal(sbx_notify_send(name, "STOPPING=1"), 0);
	assert_received(fd, "STOPPING=1");
	/* not by the file of that name, and not by a part of the name */
	name[strlen(name) - 1]++;
	assert_int_equal(sbx_notify_send(name, "STOPPING=1"), -ECONNREFUSED);
}

static void test_nobody(void **state)
{
	char longest[sizeof(((struct sockaddr_un *)0)->sun_path) + 4];

	(void)state;
	assert_int_equal(sbx_notify_send(NULL, "READY=1"), SBX_NOTIFY_E_ABSENT);
	assert_int_equal(sbx_notify_send("", "READY=1"), SBX_NOTIFY_E_ABSENT);
	assert_int_equal(sbx_notify_send("/nonexistent/socket", "READY=1"), -ENOENT);
	assert_int_equal(sbx_notify_send("vsock:2:1234", "READY=1"), -EAFNOSUPPORT);
	assert_int_equal(sbx_notify_send("relative", "READY=1"), -EAFNOSUPPORT);
	assert_int_equal(sbx_notify_send("/", "READY=1"), -EAFNOSUPPORT);
	assert_int_equal(sbx_notify_send("@", "READY=1"), -EAFNOSUPPORT);
	memset(longest, 'x', sizeof(longest));
	memcpy(longest, "/tmp/", 5);
	longest[sizeof(longest) - 1] = '\0';
	assert_int_equal(sbx_notify_send(longest, "READY=1"), -ENAMETOOLONG);
	longest[108] = '\0';
	assert_int_equal(sbx_notify_send(longest, "READY=1"), -ENAMETOOLONG);
	longest[107] = '\0';
	assert_int_equal(sbx_notify_send(longest, "READY=1"), -ENOENT);
}

static void test_no_socket_there(void **state)
{
	(void)state;
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(sbx_notify_send(path, "READY=1"), -ECONNREFUSED);
	unlink(path);
	close(receiver(path)); /* the file stays, nobody is behind it */
	assert_int_equal(sbx_notify_send(path, "READY=1"), -ECONNREFUSED);
}

static void test_bounds(void **state)
{
	SBX_AUTO_CLOSE int fd = receiver(path);
	char text[SBX_NOTIFY_STATE_MAX + 2];

	(void)state;
	memset(text, 'x', sizeof(text));
	text[SBX_NOTIFY_STATE_MAX + 1] = '\0';
	assert_int_equal(sbx_notify_send(path, text), -EMSGSIZE);
	assert_int_equal(sbx_notify_send(path, ""), -EMSGSIZE);
	text[SBX_NOTIFY_STATE_MAX] = '\0';
	assert_int_equal(sbx_notify_send(path, text), 0);
	assert_received(fd, text);
}

/* A receiver does not read: the queue fills, and then every call still returns. */
static void test_full_queue(void **state)
{
	SBX_AUTO_CLOSE int fd = receiver(path);
	uint64_t from;
	int e = 0, n = 0;

	(void)state;
	while (n < 100000 && (e = sbx_datagram_send(path, "x", 1, 0)) == 0)
		n++;
	assert_int_equal(e, -EAGAIN);
	assert_true(n > 0);
	from = sbx_clock_monotonic_us();
	assert_int_equal(sbx_notify_send(path, "READY=1"), -EAGAIN);
	assert_true(sbx_clock_monotonic_us() - from >= (SBX_NOTIFY_WAIT_MS - 1) * 1000);
	/* room for one again: it arrives */
	assert_received(fd, "x");
	assert_int_equal(sbx_notify_send(path, "READY=1"), 0);
	for (; n > 1; n--)
		assert_received(fd, "x");
	assert_received(fd, "READY=1");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_path),
		cmocka_unit_test(test_abstract),
		cmocka_unit_test(test_nobody),
		cmocka_unit_test(test_no_socket_there),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_full_queue),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
