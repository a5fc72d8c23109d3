/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_TREE_TREE_OVERMOUNT_H
#define SBX_LAUNCHER_TREE_TREE_OVERMOUNT_H

#include "launcher/plan/plan.h"
#include "launcher/tree/tree_place.h"

/* Masks and self-binds (SBX_MOUNT_SELF_BIND), made by the stage while it builds the view. */

struct sbx_overmounts {
	int parts; /* the file system of the masks; -1: no mask has needed it yet */
};

/* Carry out @op, a MASK or a SELF_BIND. 0 or -errno; -ESTALE: op->dest is another object than the
 * plan found there. */
int sbx_overmount_make(struct sbx_overmounts *c, const struct sbx_tree *t,
		       const struct sbx_mount_op *op);
void sbx_overmounts_fini(struct sbx_overmounts *c);

/* Checks that every mount of @ops is locked, in the mount namespace of @init, a pidfd. 0: all are;
 * 1: ops[*ret_open] is not there, or could be removed and was; -ESTALE: the place of
 * ops[*ret_open] is another object than the plan found there, as something was renamed; -errno: the
 * check itself failed. The sandbox must end unless 0 is returned. *ret_root with 0 and 1: the root
 * directory of that namespace, a path. */
int sbx_overmounts_check_locked(const struct sbx_mount_op *ops, size_t n, int init,
				size_t *ret_open, int *ret_root);

#endif
