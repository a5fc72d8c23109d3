/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_USER_OWNER_H
#define SBX_LAUNCHER_USER_OWNER_H

#include <stdbool.h>

#include "base/err.h"
#include "launcher/view/draft.h"

/* In an id-mapped grant the sandbox acts as the source's owner, so there are rules for that
 * owner. */

/*
 * May @path, judged and with an fd, be granted by the rules for its owner's home and for the
 * default places of that user's sbx? 0, also if no id-map applies; SBX_PATH_E_* with @err; -errno.
 * Called while planning looks as the sandbox's user.
 */
int sbx_owner_judge(const struct sbx_draft *d, const struct sbx_path *path, bool writable,
		    struct sbx_err *err);

/* sbx_path_check_set_id() with the lookup ids of, and for, the user that the sandbox acts as there.
 * Called as sbx_owner_judge() is. */
int sbx_owner_check_set_id(const struct sbx_draft *d, const struct sbx_path *path,
			   struct sbx_err *err);

/* May the group of @path be mapped for its owner? 0, or 1 with @err. With the launcher's own
 * privileges. */
int sbx_owner_check_group(const struct sbx_path *path, struct sbx_err *err);

#endif
