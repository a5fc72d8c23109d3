/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_RUN_STEPS_H
#define SBX_LAUNCHER_RUN_STEPS_H

#include "launcher/run/run.h"

/* Applies all steps, waits for the command, undoes all steps. Returns the exit status of
 * sbx-run. */
int sbx_run_carry_out(struct sbx_run *r);

/* Begins the stage, with the plan where there is one (stage/stage.h). 0 or -errno with r->err. */
int sbx_run_stage_begin(struct sbx_run *r);

/*
 * The steps (step_host.c, step_tls.c, step_sandbox.c, step_selftest.c). An apply returns 0, or
 * -errno with r->err. An undo accepts any state that its apply can leave, and a step that was never
 * reached.
 */
int sbx_step_cgroup_apply(struct sbx_run *r);
void sbx_step_cgroup_undo(struct sbx_run *r);
int sbx_step_runtime_apply(struct sbx_run *r);
void sbx_step_runtime_undo(struct sbx_run *r);
int sbx_step_record_apply(struct sbx_run *r);
void sbx_step_record_undo(struct sbx_run *r);
int sbx_step_attach_apply(struct sbx_run *r);
void sbx_step_attach_undo(struct sbx_run *r);
int sbx_step_limits_apply(struct sbx_run *r);
void sbx_step_limits_undo(struct sbx_run *r);
int sbx_step_keep_apply(struct sbx_run *r);
void sbx_step_keep_undo(struct sbx_run *r);
int sbx_step_protect_apply(struct sbx_run *r);
void sbx_step_protect_undo(struct sbx_run *r);
/* Waits for sbx-tls, and learns its authority (step_tls.c). 0 or -errno with r->err. */
int sbx_run_wait_tls(struct sbx_run *r);
int sbx_step_tls_apply(struct sbx_run *r);
void sbx_step_tls_undo(struct sbx_run *r);
int sbx_step_control_apply(struct sbx_run *r);
void sbx_step_control_undo(struct sbx_run *r);
/* step_review.c: starts the helper of review.hook, and takes events of the run. 0 or -errno with
 * r->err. */
int sbx_run_review_begin(struct sbx_run *r);
void sbx_run_review_event(struct sbx_run *r, const struct sbx_event *e);
int sbx_step_stage_apply(struct sbx_run *r);
void sbx_step_stage_undo(struct sbx_run *r);
int sbx_step_broker_apply(struct sbx_run *r);
void sbx_step_broker_undo(struct sbx_run *r);
int sbx_step_command_apply(struct sbx_run *r);
void sbx_step_command_undo(struct sbx_run *r);
int sbx_step_publish_apply(struct sbx_run *r);
void sbx_step_publish_undo(struct sbx_run *r);
int sbx_step_privileges_apply(struct sbx_run *r);
int sbx_step_firewall_apply(struct sbx_run *r);
void sbx_step_firewall_undo(struct sbx_run *r);
int sbx_step_selftest_apply(struct sbx_run *r);
int sbx_step_release_apply(struct sbx_run *r);

#endif
