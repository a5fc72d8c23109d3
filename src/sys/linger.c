/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sys/linger.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static uint64_t now_us(void)
{
	struct timespec t = { 0 };

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

int sbx_linger_poll(struct pollfd *fds, nfds_t n, int timeout_ms, uint32_t linger_us)
{
	uint64_t end = linger_us ? now_us() + linger_us : 0;

	/* A timeout of less is the caller's to have: it is rounded up by as much at most. */
	while (linger_us && timeout_ms != 0) {
		int r = poll(fds, n, 0);

		if (r != 0)
			return r;
		if (now_us() >= end)
			break;
		syscall(SYS_sched_yield);
	}
	return poll(fds, n, timeout_ms);
}
