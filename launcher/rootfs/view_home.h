/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_ROOTFS_VIEW_HOME_H
#define SBX_LAUNCHER_ROOTFS_VIEW_HOME_H

#include "base/err.h"
#include "launcher/view/draft.h"
#include "sys/fs/path.h"

/* The directory that is asked for as the sandbox's home, instead of a scratch home; NULL: none. */
const char *sbx_view_home_asked(const struct sbx_options *o, const struct sbx_facts *f,
				const struct sbx_profile *profile,
				enum sbx_mount_origin *ret_origin);

/* Make the absolute @path, and missing directories on the way, for their owner alone. 0,
 * SBX_PATH_E_ACCESS with @err, -errno. */
int sbx_view_make_dirs(const char *path, struct sbx_err *err);

/* Is @path, judged as a writable grant, allowed as a home? 0, or SBX_PATH_E_FORBIDDEN with @err. */
int sbx_view_home_judge(const struct sbx_draft *d, const struct sbx_path *path,
			struct sbx_err *err);

/* When all grants are mounted: check that no other grant contains files of the home. 0, or
 * SBX_EXIT_REFUSED with @err. */
int sbx_view_home_check_overlap(const struct sbx_draft *d, struct sbx_err *err);

/* Is this a home that stays, or a cache? Sandboxes made the files there, also startup files and
 * keys, and no program outside uses them. */
bool sbx_view_is_own(const struct sbx_mount_op *op);

/* Can a mount of the type @mode be placed at @target below the home? 0; SBX_EXIT_REFUSED with @err;
 * -errno. */
int sbx_view_home_check_place(const struct sbx_draft *d, const char *target, mode_t mode,
			      struct sbx_err *err);

#endif
