/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "ipc/channel.h"

struct pair {
	int a, b;
};

static int setup(void **state)
{
	struct pair *p = calloc(1, sizeof(*p));

	*state = p;
	return sbx_channel_pair(&p->a, &p->b);
}

static int teardown(void **state)
{
	struct pair *p = *state;

	sbx_fd_close(p->a);
	sbx_fd_close(p->b);
	free(p);
	return 0;
}

static int n_open_fds(void)
{
	int n = 0;

	for (int fd = 0; fd < 1024; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* Open file descriptors of /dev/null. */
static void open_fds(int *fds, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		fds[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
		assert_true(fds[i] >= 0);
	}
}

static void close_fds(const int *fds, size_t n)
{
	for (size_t i = 0; i < n; i++)
		sbx_fd_close(fds[i]);
}

static void test_pair(void **state)
{
	struct pair *p = *state;

	assert_true(fcntl(p->a, F_GETFD) & FD_CLOEXEC);
	assert_true(fcntl(p->b, F_GETFD) & FD_CLOEXEC);
	assert_false(fcntl(p->a, F_GETFL) & O_NONBLOCK);
}

static void test_packets_keep_bounds(void **state)
{
	struct pair *p = *state;
	char buf[16];
	size_t n;

	assert_int_equal(sbx_channel_send(p->a, "one", 3, NULL, 0), 0);
	assert_int_equal(sbx_channel_send(p->a, "three", 5, NULL, 0), 0);
	assert_int_equal(sbx_channel_recv(p->b, buf, sizeof(buf), &n, NULL, 0, NULL, NULL), 0);
	assert_int_equal(n, 3);
	assert_memory_equal(buf, "one", 3);
	assert_int_equal(sbx_channel_recv(p->b, buf, 5, &n, NULL, 0, NULL, NULL), 0);
	assert_int_equal(n, 5);
}

static void test_largest_packet(void **state)
{
	struct pair *p = *state;
	static char big[65536], back[65536];
	size_t n;

	memset(big, 'x', sizeof(big));
	assert_int_equal(sbx_channel_send(p->a, big, sizeof(big), NULL, 0), 0);
	assert_int_equal(sbx_channel_recv(p->b, back, sizeof(back), &n, NULL, 0, NULL, NULL), 0);
	assert_int_equal(n, sizeof(big));
}

static void test_pid(void **state)
{
	struct pair *p = *state;
	char buf[4];
	size_t n;
	pid_t pid;

	assert_int_equal(sbx_channel_send(p->b, "x", 1, NULL, 0), 0);
	assert_int_equal(sbx_channel_recv(p->a, buf, sizeof(buf), &n, NULL, 0, NULL, &pid), 0);
	assert_int_equal(pid, getpid());
	/* The other end did not ask for credentials. */
	assert_int_equal(sbx_channel_send(p->a, "x", 1, NULL, 0), 0);
	assert_int_equal(sbx_channel_recv(p->b, buf, sizeof(buf), &n, NULL, 0, NULL, &pid), 0);
	assert_int_equal(pid, 0);
}

/* Any number of fds up to the limit, to either end, in order and CLOEXEC. */
static void test_fds(void **state)
{
	struct pair *p = *state;

	for (size_t n_fds = 1; n_fds <= SBX_CHANNEL_MAX_FDS; n_fds += n_fds < 5 ? 1 : 59) {
		int before = n_open_fds(), from = n_fds % 2 ? p->a : p->b,
		    to = n_fds % 2 ? p->b : p->a;
		int fds[SBX_CHANNEL_MAX_FDS], got[SBX_CHANNEL_MAX_FDS];
		size_t n, n_got;
		char buf[4];

		open_fds(fds, n_fds);
		assert_int_equal(sbx_channel_send(from, "x", 1, fds, n_fds), 0);
		assert_int_equal(
			sbx_channel_recv(to, buf, sizeof(buf), &n, got, n_fds, &n_got, NULL), 0);
		assert_int_equal(n_got, n_fds);
		for (size_t i = 0; i < n_fds; i++) {
			struct stat a, b;

			assert_true(fcntl(got[i], F_GETFD) & FD_CLOEXEC);
			assert_int_equal(fstat(fds[i], &a), 0);
			assert_int_equal(fstat(got[i], &b), 0);
			assert_true(a.st_ino == b.st_ino && a.st_dev == b.st_dev);
		}
		close_fds(fds, n_fds);
		close_fds(got, n_got);
		assert_int_equal(n_open_fds(), before);
	}
}

/* More fds than were asked for, by every margin that control-buffer padding could hide. */
static void test_too_many_fds(void **state)
{
	struct pair *p = *state;

	for (size_t takes = 0; takes < 4; takes++) {
		for (size_t sent = takes + 1; sent <= SBX_CHANNEL_MAX_FDS;
		     sent += sent < 8 ? 1 : 28) {
			for (int to_a = 0; to_a < 2; to_a++) {
				int before = n_open_fds(), fds[SBX_CHANNEL_MAX_FDS],
				    got[4] = { -1, -1, -1, -1 };
				size_t n = 9, n_got = 9;
				char buf[4];

				open_fds(fds, sent);
				assert_int_equal(
					sbx_channel_send(to_a ? p->b : p->a, "x", 1, fds, sent), 0);
				close_fds(fds, sent);
				assert_int_equal(sbx_channel_recv(to_a ? p->a : p->b, buf,
								  sizeof(buf), &n, got, takes,
								  &n_got, NULL),
						 SBX_CHANNEL_E_BROKEN);
				assert_int_equal(n, 0);
				assert_int_equal(n_got, 0);
				assert_int_equal(got[0], -1);
				assert_int_equal(n_open_fds(), before);
			}
		}
	}
}

/* Past what our own sender would send: the kernel allows 253. */
static void test_flood_of_fds(void **state)
{
	struct pair *p = *state;
	int before = n_open_fds(), fds[200], got[SBX_CHANNEL_MAX_FDS];
	union {
		char room[CMSG_SPACE(sizeof(fds))];
		struct cmsghdr align;
	} control = { .room = { 0 } };
	char byte = 'x';
	struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control.room,
			      .msg_controllen = sizeof(control.room) };
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);
	size_t n, n_got;
	char buf[4];

	for (size_t i = 0; i < SBX_N_ELEMENTS(fds); i++)
		fds[i] = p->a;
	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(sizeof(fds));
	memcpy(CMSG_DATA(cmsg), fds, sizeof(fds));
	assert_int_equal(sendmsg(p->b, &msg, 0), 1);
	assert_int_equal(sbx_channel_recv(p->a, buf, sizeof(buf), &n, got, SBX_CHANNEL_MAX_FDS,
					  &n_got, NULL),
			 SBX_CHANNEL_E_BROKEN);
	assert_int_equal(n_open_fds(), before);
	assert_int_equal(sbx_channel_send(p->a, "x", 1, fds, SBX_CHANNEL_MAX_FDS + 1), -EINVAL);
}

/* The receiver has no room in its fd table for all of them: none is handed over. */
static void test_fd_table_full(void **state)
{
	struct pair *p = *state;
	int fds[3], status;
	pid_t child;

	open_fds(fds, 3);
	assert_int_equal(sbx_channel_send(p->a, "x", 1, fds, 3), 0);
	close_fds(fds, 3);
	child = fork(); /* the limit is the child's alone */
	assert_true(child >= 0);
	if (child == 0) {
		int got[3], before = n_open_fds(), next = dup(0);
		const struct rlimit room = { (rlim_t)next + 1, (rlim_t)next + 1 };
		size_t n, n_got;
		char buf[4];

		close(next);
		if (setrlimit(RLIMIT_NOFILE, &room))
			_exit(1);
		if (sbx_channel_recv(p->b, buf, sizeof(buf), &n, got, 3, &n_got, NULL) !=
		    SBX_CHANNEL_E_NO_FDS)
			_exit(2);
		_exit(n_open_fds() == before && n_got == 0 && n > 0 ? 0 : 3);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void test_truncated(void **state)
{
	struct pair *p = *state;
	int before = n_open_fds(), fd = p->a, got[1];
	size_t n, n_got;
	char buf[4];

	assert_int_equal(sbx_channel_send(p->a, "12345", 5, &fd, 1), 0);
	assert_int_equal(sbx_channel_recv(p->b, buf, 4, &n, got, 1, &n_got, NULL),
			 SBX_CHANNEL_E_BROKEN);
	assert_int_equal(n_open_fds(), before);
}

static void test_closed(void **state)
{
	struct pair *p = *state;
	size_t n;
	char buf[4];

	/* A packet that was sent before the end is still read. */
	assert_int_equal(sbx_channel_send(p->b, "x", 1, NULL, 0), 0);
	p->b = sbx_fd_close(p->b);
	assert_int_equal(sbx_channel_recv(p->a, buf, sizeof(buf), &n, NULL, 0, NULL, NULL), 0);
	assert_int_equal(sbx_channel_recv(p->a, buf, sizeof(buf), &n, NULL, 0, NULL, NULL),
			 SBX_CHANNEL_E_CLOSED);
	/* No SIGPIPE: it would end this test. */
	assert_int_equal(sbx_channel_send(p->a, "x", 1, NULL, 0), SBX_CHANNEL_E_CLOSED);
}

/* The peer ends with our packet unread. */
static void test_closed_unread(void **state)
{
	struct pair *p = *state;
	size_t n;
	char buf[4];

	assert_int_equal(sbx_channel_send(p->a, "x", 1, NULL, 0), 0);
	p->b = sbx_fd_close(p->b);
	assert_int_equal(sbx_channel_recv(p->a, buf, sizeof(buf), &n, NULL, 0, NULL, NULL),
			 SBX_CHANNEL_E_CLOSED);
}

/* An empty packet ends the channel; fds on it do not leak. */
/* The peer's last packet is read, also where the peer did not read ours. */
static void test_closed_unread_last_word(void **state)
{
	struct pair *p = *state;
	char buf[8];
	size_t n;

	assert_int_equal(sbx_channel_send(p->a, "unread", 6, NULL, 0), 0);
	assert_int_equal(sbx_channel_send(p->b, "why", 3, NULL, 0), 0);
	p->b = sbx_fd_close(p->b);
	assert_int_equal(sbx_channel_recv(p->a, buf, sizeof(buf), &n, NULL, 0, NULL, NULL), 0);
	assert_int_equal(n, 3);
	assert_memory_equal(buf, "why", 3);
	assert_int_equal(sbx_channel_recv(p->a, buf, sizeof(buf), &n, NULL, 0, NULL, NULL),
			 SBX_CHANNEL_E_CLOSED);
}

static void test_empty_packet(void **state)
{
	struct pair *p = *state;
	size_t n;
	char buf[4];

	assert_int_equal(sbx_channel_send(p->a, "", 0, NULL, 0), -EINVAL);
	assert_int_equal(send(p->a, "", 0, 0), 0);
	assert_int_equal(sbx_channel_recv(p->b, buf, sizeof(buf), &n, NULL, 0, NULL, NULL),
			 SBX_CHANNEL_E_CLOSED);
}

static void test_again(void **state)
{
	struct pair *p = *state;
	static char big[16384];
	size_t n, sent = 0;
	char buf[4];
	int r;

	assert_int_equal(fcntl(p->a, F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(sbx_channel_recv(p->a, buf, sizeof(buf), &n, NULL, 0, NULL, NULL),
			 SBX_CHANNEL_E_AGAIN);
	do {
		r = sbx_channel_send(p->a, big, sizeof(big), NULL, 0);
	} while (r == 0 && ++sent < 10000);
	assert_int_equal(r, SBX_CHANNEL_E_AGAIN);
}

static void test_not_a_socket(void **state)
{
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	size_t n;
	char buf[4];

	(void)state;
	assert_int_equal(sbx_channel_send(fd, "x", 1, NULL, 0), -ENOTSOCK);
	assert_int_equal(sbx_channel_recv(fd, buf, sizeof(buf), &n, NULL, 0, NULL, NULL),
			 -ENOTSOCK);
	sbx_fd_close(fd);
	assert_int_equal(sbx_channel_send(-1, "x", 1, NULL, 0), -EBADF);
}

static void on_alarm(int sig)
{
	(void)sig;
}

/* A signal in the middle of a blocking receive is waited out. */
static void test_interrupted(void **state)
{
	struct pair *p = *state;
	struct sigaction sa = { .sa_handler = on_alarm }, old;
	pid_t child, me = getpid();
	size_t n;
	char buf[4];

	assert_int_equal(sigaction(SIGUSR1, &sa, &old), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		for (int i = 0; i < 5; i++) {
			usleep(10000);
			kill(me, SIGUSR1);
		}
		_exit(sbx_channel_send(p->b, "x", 1, NULL, 0) != 0);
	}
	assert_int_equal(sbx_channel_recv(p->a, buf, sizeof(buf), &n, NULL, 0, NULL, NULL), 0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	sigaction(SIGUSR1, &old, NULL);
}

int main(void)
{
#define T(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_pair),
		T(test_packets_keep_bounds),
		T(test_largest_packet),
		T(test_pid),
		T(test_fds),
		T(test_too_many_fds),
		T(test_flood_of_fds),
		T(test_fd_table_full),
		T(test_truncated),
		T(test_closed),
		T(test_closed_unread),
		T(test_closed_unread_last_word),
		T(test_empty_packet),
		T(test_again),
		T(test_not_a_socket),
		T(test_interrupted),
	};

	return cmocka_run_group_tests_name("channel", tests, NULL, NULL);
}
