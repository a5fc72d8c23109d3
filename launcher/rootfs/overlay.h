/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_ROOTFS_OVERLAY_H
#define SBX_LAUNCHER_ROOTFS_OVERLAY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

/*
 * The scratch space: one tmpfs with a size, for what is written and not a grant. It holds the
 * overlay's upper layer and, where limits.disk bounds all of it together, /tmp, /var/tmp, /dev/shm
 * and the home as directories of it. It is mounted in the stage's mount namespace at
 * SBX_SCRATCH_BASE, a directory bwrap needs, too; not below SBX_TREE_BASE: the sandbox sees what is
 * bound from it and never the whole.
 */
#define SBX_SCRATCH_BASE "/tmp"

/* Where the view is put together, in the stage's own mount namespace; bwrap takes it from there. Nothing
 * below it is ever a mount source (sys/fs/path.h). */
#define SBX_TREE_BASE "/sys"

struct sbx_scratch {
	uint64_t size_bytes; /* 0: the plan needs none */
	int root, upper;     /* directories; -1: not made */
	unsigned int n_dirs;
};

/* PURE. How many files a scratch space of that size may hold: one per 4 KiB, as the kernel's own
 * default. */
uint64_t sbx_scratch_inodes(uint64_t size_bytes);
/* The files and directories of the file system in memory that @fd is in; -1: it does not say. */
int64_t sbx_scratch_files(int fd);

/* Is something mounted below @path (resolved)? An overlay would show what lies under it. */
bool sbx_overlay_has_mounts_below(const char *path);

/* In the stage, with CAP_SYS_ADMIN over its mount namespace. After every source has been taken: the
 * host's SBX_SCRATCH_BASE is out of sight then. 0 or -errno with @err. */
int sbx_scratch_mount(struct sbx_scratch *s, struct sbx_err *err);
/* A new directory of it as a detached mount. fd or -errno. */
int sbx_scratch_dir(struct sbx_scratch *s, mode_t mode);
/* A detached overlay over @lower, a mount that has a place (the kernel wants that before
 * Linux 6.15); what is written goes to s->upper. One per scratch space. fd or -errno with @err. */
int sbx_overlay_mount(struct sbx_scratch *s, int lower, struct sbx_err *err);
/* Closes the directories; the mount stays. */
void sbx_scratch_fini(struct sbx_scratch *s);

/* A detached, read-only mount of two directories, entries of @top (O_PATH) over those of @beneath;
 * both are mounted in the caller's namespace. fd, or -errno with @err. */
int sbx_overlay_merge(int top, int beneath, struct sbx_err *err);

#endif
