/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A child gets exactly a declared table of fds. Sources are first moved above every target, so that
 * no target number is a source that is still needed. All other fds are closed in ranges.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sys/process/proc.h"

static int by_number(const void *a, const void *b)
{
	int x = *(const int *)a, y = *(const int *)b;

	return (x > y) - (x < y);
}

static int close_from_to(unsigned int first, unsigned int last)
{
	long end;

	if (syscall(SYS_close_range, first, last, 0) == 0)
		return 0;
	if (errno != ENOSYS && errno != EPERM) /* before Linux 5.9; a container's filter */
		return -errno;
	end = sysconf(_SC_OPEN_MAX);
	for (long fd = first; fd <= (long)last && fd < end; fd++)
		close((int)fd);
	return 0;
}

int sbx_proc_arrange_fds(const int *fds, const int *numbers, size_t n)
{
	int moved[SBX_PROC_FDS_MAX], sorted[SBX_PROC_FDS_MAX];
	unsigned int from = 0;
	int above = 0, r;

	if (n > SBX_PROC_FDS_MAX)
		return -EINVAL;
	for (size_t i = 0; i < n; i++) {
		if (numbers[i] < 0 || numbers[i] == INT_MAX)
			return -EINVAL;
		sorted[i] = numbers[i];
		if (numbers[i] >= above)
			above = numbers[i] + 1;
	}
	qsort(sorted, n, sizeof(sorted[0]), by_number);
	for (size_t i = 1; i < n; i++)
		if (sorted[i] == sorted[i - 1])
			return -EINVAL;

	for (size_t i = 0; i < n; i++) {
		moved[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, above);
		if (moved[i] < 0)
			return -errno;
	}
	for (size_t i = 0; i < n; i++)
		if (dup2(moved[i], numbers[i]) < 0)
			return -errno;
	for (size_t i = 0; i < n; i++) {
		unsigned int number = (unsigned int)sorted[i];

		r = number > from ? close_from_to(from, number - 1) : 0;
		if (r < 0)
			return r;
		from = number + 1;
	}
	return close_from_to(from, ~0u);
}
