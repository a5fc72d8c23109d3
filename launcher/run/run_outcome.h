/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_RUN_RUN_OUTCOME_H
#define SBX_LAUNCHER_RUN_RUN_OUTCOME_H

#include "launcher/record/outcome.h"
#include "launcher/run/run.h"

/* The end of the run, which has a plan and no process left in the sandbox. *ret_outcome points into
 * @r and is valid as long as @r does not change. */
void sbx_run_outcome(const struct sbx_run *r, struct sbx_outcome_facts *ret_outcome);

/* The wait for the command returned @e: sets the outcome, and the reason if the command did not end
 * by itself. */
void sbx_run_judge_end(struct sbx_run *r, int e);
/* The exit status for the outcome (sbx-run(1), EXIT STATUS). */
int sbx_run_exit_status(const struct sbx_run *r);

/* Record an event `panic`: the sandbox was ended because it was not safe. @what: detail. */
void sbx_run_panic(struct sbx_run *r, enum sbx_reason reason, const char *what);
/* The same for the rules of attach cgroup, with r->err. Returns -ECONNABORTED. */
int sbx_run_rules_changed(struct sbx_run *r);
/* The same with r->err, if the broker or sbx-tls ended, or a process broke its protocol. False:
 * none did. */
bool sbx_run_panic_lost(struct sbx_run *r);
/* A wait of the setup for @what returned @e: r->err gets the reason. Returns -errno. */
int sbx_run_wait_failed(struct sbx_run *r, int e, const char *what, uint32_t timeout_ms);

#endif
