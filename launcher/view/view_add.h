/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_VIEW_VIEW_ADD_H
#define SBX_LAUNCHER_VIEW_VIEW_ADD_H

#include <stdint.h>
#include <sys/stat.h>

#include "launcher/view/draft.h"

/* Appends to the plan's list of mounts. */

/* Append one op (view_add.c). NULL, or -ENOMEM: out of memory or places, or @dest is PATH_MAX bytes
 * or more. */
struct sbx_mount_op *sbx_view_add(const struct sbx_draft *d, enum sbx_mount_op_kind kind,
				  const char *dest);
/* SYMLINK, FILE (0444). 0 or -ENOMEM. */
int sbx_view_add_text(const struct sbx_draft *d, enum sbx_mount_op_kind kind, const char *dest,
		      const char *text);
int sbx_view_add_plain(const struct sbx_draft *d, enum sbx_mount_op_kind kind, const char *dest);
int sbx_view_add_tmpfs(const struct sbx_draft *d, const char *dest, uint64_t size_bytes,
		       mode_t mode);
/* An empty directory or file, read-only and not executable, over the object at @dest. @under: its
 * type (over a symlink goes a file, over a socket one without a listener) and, where st_ino is not
 * 0, which object it must still be. */
int sbx_view_add_mask(const struct sbx_draft *d, const char *dest, const struct stat *under);

#endif
