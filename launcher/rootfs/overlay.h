/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_ROOTFS_OVERLAY_H
#define SBX_LAUNCHER_ROOTFS_OVERLAY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

/*
 * The scratch space: one tmpfs with a size, for files that are not in a grant. It holds the
 * overlay's upper layer. With limits.disk, which bounds all of it together, /tmp, /var/tmp,
 * /dev/shm and the home are directories of it too.
 *
 * It is mounted in the stage's mount namespace at SBX_SCRATCH_BASE, a directory that bwrap needs,
 * too. That is not below SBX_TREE_BASE, so the sandbox sees only the parts that are bound from it.
 */
#define SBX_SCRATCH_BASE "/tmp"

/* The view is put together here, in the stage's own mount namespace, and bwrap takes it from here.
 * Nothing below it is ever a mount source (sys/fs/path.h). */
#define SBX_TREE_BASE "/sys"

struct sbx_scratch {
	uint64_t size_bytes; /* 0: the plan needs no scratch space */
	int root, upper;     /* directories; -1: not made */
	unsigned int n_dirs;
};

/* PURE. The number of files that a scratch space of that size may hold: one per 4 KiB, as in the
 * kernel's default. */
uint64_t sbx_scratch_inodes(uint64_t size_bytes);
/* The number of files and directories in the in-memory file system of @fd; -1: the kernel does not
 * say. */
int64_t sbx_scratch_files(int fd);

/* Is another file system mounted below @path (resolved)? An overlay would show the files under that
 * mount. */
bool sbx_overlay_has_mounts_below(const char *path);

/* Mount the scratch space. Called in the stage, with CAP_SYS_ADMIN over its mount namespace, after
 * every source was opened, because it hides the host's SBX_SCRATCH_BASE. 0 or -errno with @err. */
int sbx_scratch_mount(struct sbx_scratch *s, struct sbx_err *err);
/* Make a directory of the scratch space as a detached mount. fd or -errno. */
int sbx_scratch_dir(struct sbx_scratch *s, mode_t mode);
/* Make a detached overlay over @lower, a mount that has a place (the kernel needs that before Linux
 * 6.15), with s->upper as its upper layer. One per scratch space. fd or -errno with @err. */
int sbx_overlay_mount(struct sbx_scratch *s, int lower, struct sbx_err *err);
/* Closes the directories; the mount stays. */
void sbx_scratch_fini(struct sbx_scratch *s);

/* Make a detached, read-only mount of two directories: entries of @top (O_PATH) over those of
 * @beneath. Both are mounted in the caller's namespace. fd, or -errno with @err. */
int sbx_overlay_merge(int top, int beneath, struct sbx_err *err);

#endif
