/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_TREE_TREE_H
#define SBX_LAUNCHER_TREE_TREE_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "launcher/plan/plan.h"
#include "launcher/rootfs/overlay.h"
#include "launcher/tree/tree_place.h"

/*
 * The sandbox's view, mounted at SBX_TREE_BASE, in two parts. The first needs no plan: the root,
 * with /proc and /dev, which every plan has. The second is the plan's mounts. Needs CAP_SYS_ADMIN
 * over the mount namespace, /proc of its pid namespace, and mount_setattr(2) (Linux 5.12). After a
 * failure the mounts end with the namespace.
 */

/* Sets the umask to 0. 0 or -errno with @err. */
int sbx_tree_begin(struct sbx_tree *t, struct sbx_err *err);

/*
 * Carry out @ops, a plan's mounts, in order. SBX_MOUNT_PROC stays a directory, because bwrap has
 * another pid namespace. Sources are opened again by their resolved path, in this mount namespace,
 * and must be the objects that the plan judged (op->source.st; the launcher's open fds keep the
 * inode numbers from being reused). Id-mapped ones are mounted as they are: @mapped, borrowed,
 * has them in order. If @s has a size, the scratch space is made too; the caller calls
 * sbx_scratch_fini(). 0 or -errno with @err.
 */
int sbx_tree_build(const struct sbx_tree *t, const struct sbx_mount_op *ops, size_t n,
		   const int *mapped, size_t n_mapped, struct sbx_scratch *s, struct sbx_err *err);

#endif
