/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How a run ended: the exit status, the row and the receipt. */
#include "launcher/run/run_outcome.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "launcher/host/exit_status.h"
#include "sys/process/proc.h"

_Static_assert(SBX_N_ELEMENTS(((struct sbx_run *)0)->step_us) <= SBX_OUTCOME_STEPS_MAX,
	       "every step has its time");

void sbx_run_panic(struct sbx_run *r, enum sbx_reason reason, const char *what)
{
	struct sbx_event e = { .ts_ms = sbx_clock_realtime_ms(), .action = SBX_PANIC,
			       .proto = SBX_PROTO_OTHER, .reason = (uint8_t)reason, .count = 1 };

	snprintf(e.rule, sizeof(e.rule), "%.*s", (int)sizeof(e.rule) - 1, what);
	sbx_record_event(&r->recorder, &e);
}

int sbx_run_rules_changed(struct sbx_run *r)
{
	sbx_run_panic(r, SBX_REASON_RULES_CHANGED, "inet sbx");
	sbx_err_set(&r->err, "somebody changed or flushed the host's firewall under the sandbox "
			     "(table inet sbx); the sandbox was ended");
	return -ECONNABORTED;
}

/* sbx-tls ends with the broker, and its end may be seen first. */
static bool broker_is_gone(const struct sbx_run *r)
{
	struct pollfd p = { .fd = r->broker.fd, .events = POLLIN };

	return r->broker.gone || (r->tls.gone && poll(&p, 1, 0) > 0 && (p.revents & POLLHUP));
}

void sbx_run_judge_end(struct sbx_run *r, int e)
{
	if (r->wall_expired) {
		r->outcome = SBX_OUTCOME_TIMED_OUT;
		sbx_err_set(&r->err, "the command was ended at its wall_time of %llu s",
			    (unsigned long long)(r->plan->profile->limits.wall_time_ms / 1000));
	} else if (e != 0 || r->attach.changed) {
		r->outcome = SBX_OUTCOME_LOST;
		if (r->attach.changed) {
			sbx_run_rules_changed(r);
		} else if (r->protect.planted.msg[0]) {
			sbx_err_set(&r->err, "%s", r->protect.planted.msg);
			sbx_run_panic(r, SBX_REASON_PLANTED, r->protect.planted.msg);
		} else if (broker_is_gone(r) && !r->protocol_broken) {
			sbx_run_panic(r, SBX_REASON_BROKER_LOST, "while the command ran");
			sbx_err_set(&r->err,
				    "the broker ended under the command; the sandbox was ended");
		} else if (r->tls.gone && !r->protocol_broken) {
			sbx_run_panic(r, SBX_REASON_BROKER_LOST, "sbx-tls, while the command ran");
			sbx_err_set(&r->err,
				    "sbx-tls ended under the command; the sandbox was ended");
		} else if (r->protocol_broken) {
			sbx_run_panic(r, SBX_REASON_PROTOCOL, r->err.msg);
		} else if (r->protect.helper_gone) {
			sbx_err_set(&r->err, "a protect helper of the writable grants ended under "
					     "the command; the sandbox was ended");
		} else if (r->cleanup.gone) {
			sbx_err_set(&r->err, "the cleanup process ended under the command; the "
					     "sandbox was ended");
		} else {
			sbx_err_set(&r->err, "the sandbox was ended from outside");
		}
	}
}

int sbx_run_exit_status(const struct sbx_run *r)
{
	if (r->interrupted && !r->released)
		return 128 + r->interrupted;
	switch (r->outcome) {
	case SBX_OUTCOME_DONE:
		if (r->wait_status == 0 && r->keep_helper.failed)
			return SBX_EXIT_NOT_KEPT;
		if (WIFEXITED(r->wait_status))
			return WEXITSTATUS(r->wait_status);
		return 128 + WTERMSIG(r->wait_status);
	case SBX_OUTCOME_TIMED_OUT:
		return 124;
	case SBX_OUTCOME_OOM_KILLED:
	case SBX_OUTCOME_LOST:
		return 128 + SIGKILL;
	default:
		return 125;
	}
}

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
		.keep = { r->plan->keep.path && r->released, r->keep_helper.kept, c->entries,
			  c->bytes, c->removed, c->left_out, r->keep_helper.err.msg },
	};
	for (size_t i = 0; i < SBX_N_STEPS; i++) {
		ret_outcome->steps[i].name = sbx_step_str((enum sbx_step_id)i);
		ret_outcome->steps[i].us = r->step_us[i];
	}
}
