/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_GRANTS_GRANT_WORK_DIR_H
#define SBX_LAUNCHER_GRANTS_GRANT_WORK_DIR_H

#include <stddef.h>

#include "launcher/grants/grant.h"
#include "sys/fs/path.h"

/*
 * The caller's current directory, or the git repository around it, as a writable grant. 0 with the
 * directory in *ret_dir, judged in *ret_path, and in *ret_mount_fd its id-mapped mount where it
 * needs one. 0 with *ret_dir NULL and the reason in @why: a place where nobody expects results (as
 * / is) is not granted. SBX_EXIT_REFUSED: set-id programs in it forbid the grant; the run ends,
 * because results would be lost in the scratch home. -errno.
 */
int sbx_grant_work_dir(struct sbx_grants *all, struct sbx_path *ret_path, int *ret_mount_fd,
		       char *why, size_t n_why, char **ret_dir);

#endif
