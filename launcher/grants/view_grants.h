/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_GRANTS_VIEW_GRANTS_H
#define SBX_LAUNCHER_GRANTS_VIEW_GRANTS_H

#include "launcher/view/draft.h"
#include "sys/fs/path.h"

/* Judges @source, a directory for the sandbox's root, as a read-only mount. 0, SBX_EXIT_REFUSED
 * with @errs, -errno. */
int sbx_view_judge_root(const struct sbx_draft *d, const char *source, struct sbx_path *ret_path,
			struct sbx_err_list *errs);

/* Appends the mounts of all grants. @why: the reason where the current directory is not granted;
 * else "". 0, SBX_EXIT_REFUSED with @errs, -errno. */
int sbx_view_add_grants(const struct sbx_draft *d, struct sbx_err_list *errs, char *why,
			size_t n_why);

#endif
