/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_GRANTS_GRANT_MOUNT_H
#define SBX_LAUNCHER_GRANTS_GRANT_MOUNT_H

#include "launcher/grants/grant.h"
#include "sys/fs/path.h"

/* Judges all grants and appends their mounts. @cwd: the judged path of the grant of origin CWD,
 * which is moved from; its fd is -1 where there is none. 0, SBX_EXIT_REFUSED with the refusals in
 * @all->errs, -errno. */
int sbx_grants_mount(struct sbx_grants *all, struct sbx_path *cwd);

#endif
