/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "launcher/tree/tree_place.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#define OPEN_ATTEMPTS 100

/* @path from @dir, which it does not leave; "": @dir. */
int sbx_tree_open_in(int dir, const char *path, uint64_t flags)
{
	struct open_how how = { .flags = flags | O_CLOEXEC,
				.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS |
					   RESOLVE_NO_MAGICLINKS };
	long fd = -1;

	/* EAGAIN: something was renamed or mounted while a ".." was walked (openat2(2)). */
	for (int i = 0; i < OPEN_ATTEMPTS; i++) {
		fd = syscall(SYS_openat2, dir, path[0] ? path : ".", &how, sizeof(how));
		if (fd >= 0 || errno != EAGAIN)
			break;
	}
	/* Nothing here is denied to us; the filter of an old container runtime says EPERM to calls
	 * it does not know. */
	if (fd < 0)
		return errno == EPERM ? -ENOSYS : -errno;
	return (int)fd;
}

int sbx_tree_open(const struct sbx_tree *t, const char *path, uint64_t flags)
{
	return sbx_tree_open_in(t->root, path + 1, flags);
}
