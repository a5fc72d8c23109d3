/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_RUN_ATTACH_H
#define SBX_LAUNCHER_RUN_ATTACH_H

#include "launcher/run/run.h"

/* Attach cgroup (DESIGN section 7): what a run has in the host's network namespace. Each accepts a run without. */

/* The step, before anything of the sandbox exists: sockets of the stub and of the self-test, whose address and
 * ports go into the plan. 0 or -errno with r->err. */
int sbx_run_attach_begin(struct sbx_run *r);
/* When there is a cgroup: DNS to whichever server leads to the stub, where the kernel can. Elsewhere it is refused. */
void sbx_run_attach_capture(struct sbx_run *r);
/* When the stage is there: the rules, and what the broker needs into r->stage.sandbox_fds. 0 or -errno with r->err. */
int sbx_run_attach_install(struct sbx_run *r);
/* The self-test is over: what only it needed is closed. */
void sbx_run_attach_tested(struct sbx_run *r);
/* The broker wants pins: put them, and answer. 0, or -errno: it can not be answered. */
int sbx_run_attach_pins(struct sbx_run *r, const struct sbx_msg_pins *m);
/* The host's rulesets changed. If the sandbox's are not what they were its processes are ended at once, and
 * r->attach.changed is set. */
void sbx_run_attach_changed(struct sbx_run *r);
/* When the sandbox's cgroup is empty: the rules go, unless something that they judge may be left. */
void sbx_run_attach_end(struct sbx_run *r);

/* Only give back the fds: in a child, which has copies of them. */
void sbx_run_attach_forget(struct sbx_run *r);

/* Capabilities for as long as there are rules. */
uint64_t sbx_run_attach_caps(const struct sbx_plan *p);
#endif
