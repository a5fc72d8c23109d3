/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_RUN_RUN_OUTCOME_H
#define SBX_LAUNCHER_RUN_RUN_OUTCOME_H

#include "launcher/record/outcome.h"
#include "launcher/run/run.h"

/* How the run, which has a plan and no process left in the sandbox, ended. *ret_outcome points
 * into @r and is valid as long as @r does not change. */
void sbx_run_outcome(const struct sbx_run *r, struct sbx_outcome_facts *ret_outcome);

#endif
