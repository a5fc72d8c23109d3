/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_ROOTFS_VIEW_SCRATCH_H
#define SBX_LAUNCHER_ROOTFS_VIEW_SCRATCH_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "launcher/view/draft.h"


/* Append the writable places that are no grants (view_scratch.c), and set d->view->scratch_bytes.
 * 0, SBX_EXIT_REFUSED with @errs, -errno. */
int sbx_view_add_scratch(const struct sbx_draft *d, struct sbx_err_list *errs);
/* The i-th DIR[:SIZE] of filesystem.tmpfs and --tmpfs; NULL: there are no more. */
const char *sbx_view_tmpfs_at(const struct sbx_draft *d, size_t i,
			      enum sbx_mount_origin *ret_origin);
/* Append a directory of --tmpfs at @dest, a place that may be mounted on. @size_bytes 0: not given.
 * 0 or -ENOMEM. */
int sbx_view_add_tmpfs_asked(const struct sbx_draft *d, const char *dest, uint64_t size_bytes,
			     enum sbx_mount_origin origin);
/* When all mounts are known: drop the scratch space if none needs it. */
void sbx_view_drop_unused_scratch(const struct sbx_draft *d);

#endif
