/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_GRANTS_GRANT_JUDGE_H
#define SBX_LAUNCHER_GRANTS_GRANT_JUDGE_H

#include <stdbool.h>

#include "base/err.h"
#include "launcher/grants/grant.h"
#include "sys/fs/path.h"

/* May the sandbox have this directory or file? All are called while planning looks as the sandbox's
 * user. */

/* 0 with *ret_path. SBX_PATH_E_MISSING with @err and *ret_path (without an fd): nothing is there,
 * and the place would be granted. Any other SBX_PATH_E_* with @err. -errno. */
int sbx_grant_judge_source(const struct sbx_grants *all, const char *source, bool writable,
			   struct sbx_path *ret_path, struct sbx_err *err);
/* May something be mounted at @g's target? 0, or SBX_PATH_E_FORBIDDEN with @err. */
int sbx_grant_judge_target(const struct sbx_grants *all, const struct sbx_grant *g,
			   struct sbx_err *err);
/* The target, the source, and set-id programs below a source that the sandbox writes. As
 * sbx_grant_judge_source(). */
int sbx_grant_judge(const struct sbx_grants *all, const struct sbx_grant *g,
		    struct sbx_path *ret_path, struct sbx_err *err);

#endif
