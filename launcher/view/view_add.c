/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Appending to the list of mounts. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/view/view_add.h"

struct sbx_mount_op *sbx_view_add(const struct sbx_draft *d, enum sbx_mount_op_kind kind,
				  const char *dest)
{
	struct sbx_mount_op *op;

	if (!d->view->mounts)
		d->view->mounts = calloc(SBX_MOUNTS_MAX, sizeof(*d->view->mounts));
	if (!d->view->mounts || d->view->n_mounts >= SBX_MOUNTS_MAX || strlen(dest) >= PATH_MAX)
		return NULL;
	op = &d->view->mounts[d->view->n_mounts];
	memset(op, 0, sizeof(*op));
	op->kind = kind;
	op->source.fd = -1;
	op->mount_fd = -1;
	op->dest = strdup(dest);
	if (!op->dest)
		return NULL;
	d->view->n_mounts++;
	return op;
}

int sbx_view_add_plain(const struct sbx_draft *d, enum sbx_mount_op_kind kind, const char *dest)
{
	return sbx_view_add(d, kind, dest) ? 0 : -ENOMEM;
}

int sbx_view_add_tmpfs(const struct sbx_draft *d, const char *dest, uint64_t size_bytes,
		       mode_t mode)
{
	struct sbx_mount_op *op = sbx_view_add(d, SBX_MOUNT_TMPFS, dest);

	if (!op)
		return -ENOMEM;
	op->size_bytes = size_bytes;
	op->mode = mode;
	return 0;
}

int sbx_view_add_mask(const struct sbx_draft *d, const char *dest, const struct stat *under)
{
	struct sbx_mount_op *op = sbx_view_add(d, SBX_MOUNT_MASK, dest);

	if (!op)
		return -ENOMEM;
	op->origin = SBX_ORIGIN_MASK;
	op->source.st = *under;
	op->mode = S_ISDIR(under->st_mode)    ? S_IFDIR | 0555
		   : S_ISSOCK(under->st_mode) ? S_IFSOCK | 0444
					      : S_IFREG | 0555;
	return 0;
}

int sbx_view_add_text(const struct sbx_draft *d, enum sbx_mount_op_kind kind, const char *dest,
		      const char *text)
{
	struct sbx_mount_op *op = sbx_view_add(d, kind, dest);

	if (!op)
		return -ENOMEM;
	op->mode = 0444;
	op->n_text = strlen(text);
	op->text = strdup(text);
	return op->text ? 0 : -ENOMEM;
}
