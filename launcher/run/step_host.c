/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The steps that make things on the host: cgroup, runtime directory, row, rules, limits,
 * helpers. */
#include <signal.h>
#include <stdint.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "launcher/record/receipt.h"
#include "launcher/rootfs/overlay.h"
#include "launcher/run/run_outcome.h"
#include "launcher/run/steps.h"

/* --- cgroup, attach, limits --- */

int sbx_step_cgroup_apply(struct sbx_run *r)
{
	return sbx_cgroup_begin(&r->cgroup, r->plan, &r->err);
}

void sbx_step_cgroup_undo(struct sbx_run *r)
{
	sbx_cgroup_run_fini(&r->cgroup);
}

int sbx_step_attach_apply(struct sbx_run *r)
{
	return sbx_attach_run_begin(&r->attach, r->plan, &r->cgroup, &r->setup, &r->err);
}

void sbx_step_attach_undo(struct sbx_run *r)
{
	r->cleanup.stays = sbx_attach_run_end(&r->attach, r->plan, &r->cgroup);
}

int sbx_step_limits_apply(struct sbx_run *r)
{
	return sbx_cgroup_limit(&r->cgroup, r->plan, &r->err);
}

/* The kernel kills single processes. That was the end of the run only if the command died of
 * SIGKILL. */
static void judge_oom(struct sbx_run *r)
{
	const struct sbx_cgroup_usage *u = &r->cgroup.usage;
	bool killed = r->outcome == SBX_OUTCOME_LOST ||
		      (r->outcome == SBX_OUTCOME_DONE && WIFSIGNALED(r->wait_status) &&
		       WTERMSIG(r->wait_status) == SIGKILL) ||
		      (r->outcome == SBX_OUTCOME_DONE && WIFEXITED(r->wait_status) &&
		       WEXITSTATUS(r->wait_status) == 128 + SIGKILL);

	if (!r->released || u->oom_kills <= 0 || !killed)
		return;
	r->outcome = SBX_OUTCOME_OOM_KILLED;
	r->err = (struct sbx_err){ 0 };
	sbx_err_set(&r->err,
		    "the command was killed: it needed more than limits.memory %llu MiB (peak %.1f "
		    "MiB)",
		    (unsigned long long)(r->plan->profile->limits.memory_bytes >> 20),
		    (double)u->memory_peak_bytes / (1 << 20));
}

void sbx_step_limits_undo(struct sbx_run *r)
{
	sbx_cgroup_end(&r->cgroup);
	judge_oom(r);
}

/* --- record --- */

int sbx_step_record_apply(struct sbx_run *r)
{
	return sbx_record_prepare(&r->recorder);
}

/* The sandbox has no process any more, and the broker and the protect helpers have sent their last
 * events: the row is final. */
void sbx_step_record_undo(struct sbx_run *r)
{
	struct sbx_outcome_facts outcome;

	sbx_run_outcome(r, &outcome);
	r->swept_later |= !sbx_record_end(&r->recorder, &outcome);
	sbx_receipt_write(r->receipt_dir_fd, r->plan, &outcome);
}

/* --- keep: copied when nothing changes the files any more --- */

/* With --scratch: the number of files and directories that are discarded with the home. */
static void count_discarded(struct sbx_run *r)
{
	int64_t now = sbx_scratch_files(r->scratch_fd);

	r->scratch_files =
		r->scratch_files < 0 || now < r->scratch_files ? 0 : now - r->scratch_files;
	r->scratch_fd = sbx_fd_close(r->scratch_fd);
}

int sbx_step_keep_apply(struct sbx_run *r)
{
	return sbx_keep_helper_start(&r->keep_helper, r->plan, &r->err);
}

void sbx_step_keep_undo(struct sbx_run *r)
{
	if (r->scratch_fd >= 0)
		count_discarded(r);
	sbx_keep_helper_finish(&r->keep_helper, r->released, r->signal_fd);
}

/* --- runtime --- */

int sbx_step_runtime_apply(struct sbx_run *r)
{
	const struct sbx_cleanup_job job = {
		.facts = r->facts,
		.id = r->plan->id,
		.terminal_fd = sbx_terminals_watched(&r->terminals),
		.stage_pid = r->stage.pid,
		.caps = sbx_run_attach_caps(r->plan),
	};
	int e = sbx_cleanup_start(&r->cleanup, &job, &r->err);

	return e < 0 ? e : sbx_runtime_make(&r->runtime, r->facts, r->plan->id, &r->err);
}

void sbx_step_runtime_undo(struct sbx_run *r)
{
	if (!r->swept_later)
		sbx_runtime_remove(&r->runtime);
	sbx_runtime_fini(&r->runtime); /* before the cleanup process acts, if it stays */
	sbx_cleanup_end(&r->cleanup);
}

/* --- protect --- */

static void protect_tell(void *userdata, const struct sbx_event *e)
{
	sbx_record_event(userdata, e);
}

int sbx_step_protect_apply(struct sbx_run *r)
{
	int e = sbx_run_review_begin(r);

	return e < 0 ? e :
		       sbx_protect_helpers_start(&r->protect, r->plan, r->runtime.fd, protect_tell,
						 &r->recorder, &r->err);
}

void sbx_step_protect_undo(struct sbx_run *r)
{
	if (r->released)
		sbx_protect_helpers_look(&r->protect);
	sbx_reviewer_end(&r->reviewer);
	r->swept_later = !sbx_protect_helpers_end(&r->protect, r->released, r->runtime.fd);
}
