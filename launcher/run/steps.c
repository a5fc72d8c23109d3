/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The steps of a run: a table of {apply, undo}, in the order of launcher/plan/step.h, which has
 * their names.
 *
 * The steps are applied in order until one fails. On every way out, the processes in the sandbox
 * end first, and then all steps are undone in reverse order, one after the other. Only the last
 * step, `release`, lets the command run, so nothing of the command runs if any step failed.
 *
 * Some work takes long and is begun early. The stage is begun before there is a plan; it starts
 * bwrap, which mounts the view while the stage builds the network and the launcher opens the
 * database. At the end of that chain init waits for its probes. They are sent when the firewall was
 * read back and the broker has its policy.
 */
#include "launcher/run/steps.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "launcher/process/step_hook.h"
#include "launcher/run/announce.h"
#include "launcher/run/run_outcome.h"
#include "launcher/run/supervise.h"
#include "sys/process/proc.h"

/*
 * The order of the first steps follows from their undos, which run from the last to the first: the
 * processes in the cgroup end; the rules that judge their sockets go; the row gets its final state;
 * the runtime directory goes (a directory without a launcher tells the cleanup process and a sweep
 * that the run was lost); and last the empty cgroup.
 */
static const struct step {
	int (*apply)(struct sbx_run *r);
	void (*undo)(struct sbx_run *r); /* NULL: nothing to undo */
} steps[] = {
	/* the cleanup process must be born in its scope */
	[SBX_STEP_CGROUP] = { sbx_step_cgroup_apply, sbx_step_cgroup_undo },
	/* in the cgroup, which goes after it; early, because it makes its keys meanwhile */
	[SBX_STEP_TLS] = { sbx_step_tls_apply, sbx_step_tls_undo },
	[SBX_STEP_RUNTIME] = { sbx_step_runtime_apply, sbx_step_runtime_undo },
	[SBX_STEP_RECORD] = { sbx_step_record_apply, sbx_step_record_undo },
	[SBX_STEP_ATTACH] = { sbx_step_attach_apply, sbx_step_attach_undo },
	[SBX_STEP_LIMITS] = { sbx_step_limits_apply, sbx_step_limits_undo },
	/* copies when nothing can change the upper layer any more */
	[SBX_STEP_KEEP] = { sbx_step_keep_apply, sbx_step_keep_undo },
	[SBX_STEP_PROTECT] = { sbx_step_protect_apply, sbx_step_protect_undo },
	/* before the stage and the broker, whose last events its clients get */
	[SBX_STEP_CONTROL] = { sbx_step_control_apply, sbx_step_control_undo },
	[SBX_STEP_STAGE] = { sbx_step_stage_apply, sbx_step_stage_undo },
	[SBX_STEP_BROKER] = { sbx_step_broker_apply, sbx_step_broker_undo },
	[SBX_STEP_COMMAND] = { sbx_step_command_apply, sbx_step_command_undo },
	/* after all forks that must not have its sockets */
	[SBX_STEP_PUBLISH] = { sbx_step_publish_apply, sbx_step_publish_undo },
	[SBX_STEP_PRIVILEGES] = { sbx_step_privileges_apply, NULL },
	[SBX_STEP_FIREWALL] = { sbx_step_firewall_apply, sbx_step_firewall_undo },
	[SBX_STEP_SELFTEST] = { sbx_step_selftest_apply, NULL },
	[SBX_STEP_RELEASE] = { sbx_step_release_apply, NULL },
};
_Static_assert(SBX_N_ELEMENTS(steps) == SBX_N_STEPS, "every step has its functions");

static void wait_for_command(struct sbx_run *r)
{
	int e = sbx_supervise(r, SBX_WAIT_COMMAND, 0);

	r->recorder.tidy_at_us = r->protect.watch_at_us = 0;
	sbx_run_judge_end(r, e);
}

int sbx_run_carry_out(struct sbx_run *r)
{
	int e = 0;

	sbx_setup_start(&r->setup, r->plan);
	sbx_record_name(&r->recorder, r->plan->id, r->options);
	r->recorder.system = r->plan->system;
	for (int i = 0; i < SBX_N_STEPS && e == 0; i++) {
		const char *name = sbx_step_str((enum sbx_step_id)i);
		uint64_t from = sbx_clock_monotonic_us();

		e = steps[i].apply(r);
		r->step_us[i] = (uint32_t)(sbx_clock_monotonic_us() - from);
		if (e == 0 && r->interrupted && !r->released)
			e = -EINTR;
		if (e == 0)
			e = sbx_step_hook(name);
		if (e < 0)
			sbx_err_set(&r->err, "step %s: %s", name, strerror(-e));
	}
	if (e == 0)
		wait_for_command(r);
	else if (r->outcome == SBX_OUTCOME_DONE)
		r->outcome = SBX_OUTCOME_LOST; /* released, and then a step failed */
	sbx_stage_end(&r->stage); /* before the first undo, because the sandbox uses what the
				   * steps made */
	sbx_supervise_execs_end(r);
	sbx_terminals_restore(&r->terminals); /* no process can change them any more; before the
					       * launcher's own messages */
	sbx_announce_stopping(r);
	/* All of them, also if their step was not reached: so a failure before `record` is recorded
	 * as well. */
	for (int i = SBX_N_STEPS - 1; i >= 0; i--) {
		sbx_step_undo_hook(sbx_step_str((enum sbx_step_id)i));
		if (steps[i].undo)
			steps[i].undo(r);
	}
	return sbx_run_exit_status(r);
}
