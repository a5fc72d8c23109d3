/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_PLAN_STEP_H
#define SBX_LAUNCHER_PLAN_STEP_H

/*
 * The steps of a run, in the order in which they are applied (run/steps.c has their functions).
 * --dry-run and the receipt print their names, and the fault tests read them there.
 */
enum sbx_step_id {
	SBX_STEP_CGROUP,
	SBX_STEP_TLS,
	SBX_STEP_RUNTIME,
	SBX_STEP_RECORD,
	SBX_STEP_ATTACH,
	SBX_STEP_LIMITS,
	SBX_STEP_KEEP,
	SBX_STEP_PROTECT,
	SBX_STEP_CONTROL,
	SBX_STEP_STAGE,
	SBX_STEP_BROKER,
	SBX_STEP_COMMAND,
	SBX_STEP_PUBLISH,
	SBX_STEP_PRIVILEGES,
	SBX_STEP_FIREWALL,
	SBX_STEP_SELFTEST,
	SBX_STEP_RELEASE,
	SBX_N_STEPS,
};

const char *sbx_step_str(enum sbx_step_id id); /* "cgroup", ... */

#endif
