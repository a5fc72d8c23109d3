/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_EXEC_EXEC_JUDGE_H
#define SBX_LAUNCHER_EXEC_EXEC_JUDGE_H

#include "base/err.h"
#include "launcher/plan/plan.h"

/* Judges @command by the policy and by the planned view. It starts in @dir, with the variables @env
 * (NULL: none) on top of the sandbox's. 0: it may be tried; then *ret_status is 0, or 126 or 127
 * with *ret_why (heap): the answer if it cannot be executed. An exit status with @err: it is
 * refused. */
int sbx_exec_judge(const struct sbx_plan *plan, const char *command, char *const *env,
		   const char *dir, int *ret_status, char **ret_why, struct sbx_err *err);

#endif
