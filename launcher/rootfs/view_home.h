/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_ROOTFS_VIEW_HOME_H
#define SBX_LAUNCHER_ROOTFS_VIEW_HOME_H

#include "base/err.h"
#include "launcher/view/draft.h"
#include "sys/fs/path.h"

/* The directory that is the sandbox's home instead of a scratch one, as asked for; NULL: none. */
const char *sbx_view_home_asked(const struct sbx_options *o, const struct sbx_facts *f,
				const struct sbx_profile *profile,
				enum sbx_mount_origin *ret_origin);

/* Make the absolute @path and what leads to it, as far as they are missing, for their owner alone.
 * 0, SBX_PATH_E_ACCESS with
 * @err, -errno. */
int sbx_view_make_dirs(const char *path, struct sbx_err *err);

/* Is @path, judged as a writable grant, fit for a home? 0, or SBX_PATH_E_FORBIDDEN with @err. */
int sbx_view_home_judge(const struct sbx_draft *d, const struct sbx_path *path,
			struct sbx_err *err);

/* Once all grants are mounted: does nothing else that is granted lead to what is in the home? 0, or
 * SBX_EXIT_REFUSED with @err. */
int sbx_view_home_check_overlap(const struct sbx_draft *d, struct sbx_err *err);

/* A home that stays or a cache: sandboxes made what is in it, start-up files and keys too, and
 * nobody else uses it. */
bool sbx_view_is_own(const struct sbx_mount_op *op);

/* May something of the type @mode be mounted at @target below the home? 0; SBX_EXIT_REFUSED with
 * @err; -errno. */
int sbx_view_home_check_place(const struct sbx_draft *d, const char *target, mode_t mode,
			      struct sbx_err *err);

#endif
