/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_USER_IDMAP_H
#define SBX_LAUNCHER_USER_IDMAP_H

#include <stdbool.h>

#include "base/err.h"
#include "launcher/view/draft.h"

/* Grants of a sandbox with a uid of its own are mounted so that their owner is that uid inside. */

/*
 * The mount of @path, judged, for the sandbox's user. 0 with *ret_fd, the caller's: a detached
 * mount; or -1: bind it unmapped (root's source, read-only: the sandbox reads as others may).
 * SBX_IDMAP_E_UNABLE with @err, which names the mount and why: it cannot be id-mapped, or must not
 * be. -errno. Called while planning looks as the sandbox's user.
 */
enum { SBX_IDMAP_E_UNABLE = 1 };
int sbx_idmap_grant(const struct sbx_draft *d, const struct sbx_path *path, bool writable,
		    int *ret_fd, struct sbx_err *err);

#endif
