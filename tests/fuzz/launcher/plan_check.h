/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_FUZZ_PLAN_CHECK_H
#define SBX_FUZZ_PLAN_CHECK_H

#include <stdbool.h>

#include "launcher/plan/plan.h"

/* The rules that every plan must keep. The check reads only the plan's mounts and the host's
 * files. */

/* abort() with a line on stderr if @p breaks a rule. Its prefixes are @play/ws and @play/more. */
void plan_check(const struct sbx_plan *p, const char *play);

/* A directory of the host's that the command may write. */
bool plan_check_is_writable(const struct sbx_mount_op *op);
/* Can the command change or make what is at @path of the host, below or at the source of @grant, by
 * way of @grant? */
bool plan_check_changes(const struct sbx_plan *p, const struct sbx_mount_op *grant,
			const char *path);
/* abort() where the command can change or make @path, on the host, by any of its mounts. */
void plan_check_held(const struct sbx_plan *p, const char *path);

#endif
