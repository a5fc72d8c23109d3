/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_PLAN_PLANNER_H
#define SBX_LAUNCHER_PLAN_PLANNER_H

#include "launcher/plan/plan.h"

/* Makes the plan, which never changes afterwards (setup.h has the values that a run learns). 0; or
 * 125, 126, 127 (an exit status) with @errs: policy and usage problems are 125, a refused command
 * is 126, a command that is nowhere is 127. -errno otherwise. @o and @f must outlive the plan.
 * Paths are judged with the effective ids of the sandbox's user. */
int sbx_plan_new(const struct sbx_options *o, const struct sbx_facts *f, struct sbx_err_list *errs,
		 const struct sbx_plan **ret_plan);
/* Only the profile with the flags and the system policy, as sbx_plan_new() reads them: for a
 * sandbox that runs. The rest of the plan is zero. Returns as above. */
int sbx_plan_policy(const struct sbx_options *o, const struct sbx_facts *f,
		    struct sbx_err_list *errs, struct sbx_plan **ret_plan);
struct sbx_plan *sbx_plan_free(const struct sbx_plan *plan);

/* The plan as its parts see it: everything is borrowed. When the plan is made, for looking only. */
struct sbx_draft sbx_plan_draft(struct sbx_plan *p);

#endif
