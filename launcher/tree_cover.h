/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_TREE_COVER_H
#define SBX_LAUNCHER_TREE_COVER_H

#include <stdbool.h>
#include <sys/types.h>

#include "launcher/tree.h"

/* What is mounted over things in the view that keep their place: masks (nothing to read, write or execute) and
 * pins. Both are made only over the very object that planning saw. */

/* PURE. Is there any SBX_MOUNT_MASK or SBX_MOUNT_PIN? */
bool sbx_cover_any(const struct sbx_mount_op *ops, size_t n);

/* Room for what is prepared: copies of the first masks, which take most of the time. */
#define SBX_COVER_AT_ONCE 128
struct sbx_covers {
	const struct sbx_mount_op *ops; /* borrowed */
	size_t n, end, n_masks;		/* masks are for the ops before end */
	int parts, here, there;		/* what masks are copies of; ours, and who is in the sandbox's */
	int masks[SBX_COVER_AT_ONCE];
};

/* Before there is a sandbox to cover things in. 0 or -errno with @err; sbx_covers_fini() in any case. */
int sbx_covers_prepare(struct sbx_covers *c, const struct sbx_mount_op *ops, size_t n, struct sbx_err *err);

/*
 * All of them, in order, in the sandbox's own mount namespace: that of the process of which @there is a pidfd, the init
 * that bwrap has executed; it stays the caller's (setns(2), Linux 5.8). With
 * CAP_SYS_ADMIN over the user namespace above the one that owns it, and a file system of one's own. The caller's
 * working directory and root are those of its mount namespace afterwards. 0 or -errno with @err; -ESTALE: something
 * else is there now.
 */
int sbx_covers_make(struct sbx_covers *c, int there, struct sbx_err *err);
void sbx_covers_fini(struct sbx_covers *c);

/* tree.c: a path of the view, symlinks resolved in it, none of them magic. fd or -errno. */
int sbx_tree_open(const struct sbx_tree *t, const char *path, uint64_t flags);

#endif
