/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_ROOTFS_VIEW_ROOT_H
#define SBX_LAUNCHER_ROOTFS_VIEW_ROOT_H

#include <sys/stat.h>

#include "base/err.h"
#include "launcher/view/draft.h"

/* The root that a profile or flag asks for, before anything is mounted in it (view_root.c). */

/* "host", "minimal" or a path. */
const char *sbx_view_root_asked(const struct sbx_draft *d);
/* PURE. */
enum sbx_root_kind sbx_view_root_kind(const char *asked);

/* Append the root's own mounts. If the root is a directory, d->view->root.dir is judged already. 0;
 * SBX_EXIT_REFUSED with @errs; -errno. */
int sbx_view_add_root(const struct sbx_draft *d, struct sbx_err_list *errs);

/* Append to *text (malloc'ed lines of passwd(5) or group(5)) those lines of the root's own @file
 * that have other names. Does nothing if the root is no directory. 0 or -ENOMEM. */
int sbx_view_root_add_users(const struct sbx_draft *d, const char *file, char **text);

/*
 * Make a place for a mount of the type @mode at @target in a directory as root: mount the
 * directories on the way in parts, until the place is there or can be made. Does nothing if the
 * place exists, or lies in another mount. 0; SBX_EXIT_REFUSED with @err; -errno.
 */
int sbx_view_root_make_room(const struct sbx_draft *d, const char *target, mode_t mode,
			    struct sbx_err *err);

#endif
