/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The output of a child that may hang or babble, and its end. */
#include <errno.h>
#include <poll.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "sys/process/proc.h"

/* Reads to the end of the pipe. 0, -EFBIG, -ETIMEDOUT or -errno. */
static int read_all(int fd, uint64_t deadline_us, char *buf, size_t n_buf, size_t *ret_n)
{
	size_t n = 0;

	for (;;) {
		uint64_t now_us = sbx_clock_monotonic_us();
		struct pollfd p = { .fd = fd, .events = POLLIN };
		ssize_t r;
		int e;

		if (now_us >= deadline_us)
			return -ETIMEDOUT;
		e = poll(&p, 1, (int)((deadline_us - now_us + 999) / 1000));
		if (e < 0 && errno != EINTR)
			return -errno;
		if (e <= 0)
			continue;
		r = read(fd, buf + n, n_buf - n);
		if (r < 0 && errno != EINTR)
			return -errno;
		if (r == 0) {
			*ret_n = n;
			return 0;
		}
		n += r > 0 ? (size_t)r : 0;
		if (n == n_buf)
			return -EFBIG;
	}
}

/* A pipe's end comes shortly before its process's, so the first waits are short. */
static int wait_until(pid_t pid, uint64_t deadline_us, int *ret_status)
{
	struct timespec pause = { .tv_nsec = 50000 };
	pid_t e;

	while ((e = waitpid(pid, ret_status, WNOHANG)) == 0) {
		if (sbx_clock_monotonic_us() >= deadline_us)
			return -ETIMEDOUT;
		nanosleep(&pause, NULL);
		if (pause.tv_nsec < 1000000)
			pause.tv_nsec *= 2;
	}
	return e < 0 ? -errno : 0;
}

int sbx_proc_output(pid_t pid, int fd, uint64_t deadline_us, char *buf, size_t n_buf, size_t *ret_n,
		    int *ret_status)
{
	int r = read_all(fd, deadline_us, buf, n_buf, ret_n);

	if (r == 0)
		r = wait_until(pid, deadline_us, ret_status);
	if (r < 0)
		sbx_proc_end(&pid);
	return r;
}
