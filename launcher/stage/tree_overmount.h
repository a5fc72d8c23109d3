/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_STAGE_TREE_OVERMOUNT_H
#define SBX_LAUNCHER_STAGE_TREE_OVERMOUNT_H

#include "launcher/plan/plan.h"
#include "launcher/stage/tree.h"

/* Masks and pins of the view, in the stage, while it builds the view. */

struct sbx_overmounts {
	int parts; /* the file system that masks are parts of; -1: no mask needed it yet */
};

/* Carry out @op, a MASK or a PIN. 0 or -errno; -ESTALE: what is at op->dest is not what the plan found there. */
int sbx_overmount_make(struct sbx_overmounts *c, const struct sbx_tree *t, const struct sbx_mount_op *op);
void sbx_overmounts_fini(struct sbx_overmounts *c);

/* Is every mount of the sandbox locked to the one that it covers? The sandbox is the one that @init, a pidfd, runs in.
 * 0: yes; 1: no, ops[*ret_open] can be removed or is not there; -errno: it could not be found out. What could be removed was
 * removed: the sandbox must end. */
int sbx_overmounts_check_locked(const struct sbx_mount_op *ops, size_t n, int init, size_t *ret_open);

#endif
