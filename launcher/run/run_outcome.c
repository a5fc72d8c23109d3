/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The facts about the end of a run, for the row and the receipt. */
#include "launcher/run/run_outcome.h"

#include "base/cleanup.h"

_Static_assert(SBX_N_ELEMENTS(((struct sbx_run *)0)->step_us) <= SBX_OUTCOME_STEPS_MAX, "every step has its time");

static enum sbx_store_state state(const struct sbx_run *r)
{
	if (r->interrupted && !r->released)
		return SBX_STATE_KILLED;
	switch (r->outcome) {
	case SBX_OUTCOME_DONE:
		return SBX_STATE_DONE;
	case SBX_OUTCOME_TIMED_OUT:
		return SBX_STATE_TIMED_OUT;
	case SBX_OUTCOME_OOM_KILLED:
		return SBX_STATE_OOM_KILLED;
	case SBX_OUTCOME_LOST:
		return SBX_STATE_KILLED;
	default:
		return SBX_STATE_FAILED_SAFETY_SETUP;
	}
}

void sbx_run_outcome(const struct sbx_run *r, struct sbx_outcome_facts *ret_outcome)
{
	const struct sbx_keep_counts *c = &r->keep_helper.counts;

	*ret_outcome = (struct sbx_outcome_facts){
		.state = state(r),
		.exit_status = sbx_run_exit_status(r),
		.why = r->err.msg,
		.released = r->released,
		.started_us = r->started_us,
		.n_steps = SBX_N_STEPS,
		.setup = &r->setup,
		.probes = &r->setup.probes,
		.verdicts = &r->init.verdicts,
		.has_verdicts = r->init.has_verdicts,
		.traffic = &r->broker.stats,
		.refusals = r->recorder.refusals,
		.cgroup = { &r->cgroup.usage, r->cgroup.source, r->cgroup.path, r->cgroup.limited },
		.keep = { r->plan->keep.path && r->released, r->keep_helper.kept, c->entries, c->bytes, c->removed, c->left_out,
			  r->keep_helper.err.msg },
	};
	for (size_t i = 0; i < SBX_N_STEPS; i++) {
		ret_outcome->steps[i].name = sbx_step_str((enum sbx_step_id)i);
		ret_outcome->steps[i].us = r->step_us[i];
	}
}
