/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * All of these file systems are in memory: their sizes are asked of the kernel (statfs(2)), at the
 * places that they have in the sandbox. Their mounts cannot be moved from inside. A directory above
 * one in a grant may be replaced, so no symlink is followed, only an in-memory file
 * system counts, and the path is looked up in the kernel's cache alone (RESOLVE_CACHED), which has
 * every mount point: a granted file system that hangs does not hold up the launcher.
 */
#include "launcher/serve/disk.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"

#ifndef RESOLVE_CACHED
#define RESOLVE_CACHED 0x20 /* Linux 5.12 */
#endif

/* *ret_bytes: of the file system at @dest, if it is one of @type. */
static int used_at(int root, const char *dest, long type, int64_t *ret_bytes)
{
	const struct open_how how = { .flags = O_PATH | O_CLOEXEC,
				      .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS |
						 RESOLVE_CACHED };
	SBX_AUTO_CLOSE int fd = (int)syscall(SYS_openat2, root, dest, &how, sizeof(how));
	struct statfs st;

	if (fd < 0 || fstatfs(fd, &st) < 0 || (long)st.f_type != type)
		return -1;
	*ret_bytes = (int64_t)(st.f_blocks - st.f_bfree) * (int64_t)st.f_bsize;
	return 0;
}

int64_t sbx_disk_used(int root, const struct sbx_plan *plan)
{
	const struct sbx_mount_op *scratch = NULL;
	int64_t sum = 0, bytes;

	if (root < 0)
		return -1;
	for (size_t i = 0; i < plan->view.n_mounts; i++) {
		const struct sbx_mount_op *op = &plan->view.mounts[i];

		/* one file system has all scratch directories and the upper layer */
		if (op->kind == SBX_MOUNT_SCRATCH || (op->kind == SBX_MOUNT_OVERLAY && !scratch))
			scratch = op;
		if (op->kind != SBX_MOUNT_TMPFS)
			continue;
		if (used_at(root, op->dest, TMPFS_MAGIC, &bytes) < 0)
			return -1;
		sum += bytes;
	}
	if (!scratch)
		return sum;
	bytes = 0;
	if (used_at(root, scratch->dest,
		    scratch->kind == SBX_MOUNT_OVERLAY ? OVERLAYFS_SUPER_MAGIC : TMPFS_MAGIC,
		    &bytes) < 0)
		return -1;
	return sum + bytes;
}
