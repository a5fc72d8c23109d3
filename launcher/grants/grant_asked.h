/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_GRANTS_GRANT_ASKED_H
#define SBX_LAUNCHER_GRANTS_GRANT_ASKED_H

#include <stdbool.h>

#include "launcher/grants/grant.h"

/* Collects the grants that the profile and the flags ask for. Nothing is judged yet. */

/*
 * Adds one grant. @asked_by: the flag or key, for messages, borrowed; NULL: told by @origin.
 * @source NULL: an empty directory in memory. @target NULL: at the source's own path. 0,
 * SBX_EXIT_REFUSED, -ENOMEM.
 */
int sbx_grant_ask(struct sbx_grants *all, const char *asked_by, const char *source,
		  const char *target, enum sbx_mount_origin origin, bool writable, bool optional);
/* Adds filesystem.mounts, --bind, --tmpfs, the home and files of it. As sbx_grant_ask(). */
int sbx_grants_ask_all(struct sbx_grants *all);
/* Adds the directories of --cache. Comes last: they never count as the current directory's grant.
 * As sbx_grant_ask(). */
int sbx_grants_ask_caches(struct sbx_grants *all);
/* Is @path at or below the target of a grant, homes not counted? */
bool sbx_grants_have(const struct sbx_grants *all, const char *path);

#endif
