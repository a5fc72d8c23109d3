/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_PLAN_PLANNER_H
#define SBX_LAUNCHER_PLAN_PLANNER_H

#include "launcher/plan/plan.h"
#include "launcher/plan/setup.h"

/* Makes the plan, which nobody changes afterwards (setup.h holds what a run learns). 0; or 125, 126, 127 (an exit
 * status) with @errs telling why: policy and usage problems are 125, a refused command is 126, a command that is nowhere
 * is 127. -errno otherwise. @o and @f must outlive the plan. Paths are judged with the effective ids of the sandbox's
 * user. */
int sbx_plan_new(const struct sbx_options *o, const struct sbx_facts *f, struct sbx_err_list *errs,
		 const struct sbx_plan **ret_plan);
struct sbx_plan *sbx_plan_free(const struct sbx_plan *plan);

/* The plan as JSON (jansson), with what the run @s has learned; also the first part of the receipt. @s is NULL for
 * --dry-run, which shows examples of the ports that the stage would choose. malloc'ed text; NULL: out of memory. Values
 * of passed variables are left out. */
char *sbx_plan_json(const struct sbx_plan *p, const struct sbx_setup *s);

#endif
