/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How a run ended: the exit status, the row and the receipt. */
#include "launcher/run/run_outcome.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "launcher/host/exit_status.h"
#include "launcher/stage/stage_process.h"
#include "sys/process/proc.h"
#include "sys/process/userns.h"

#define BROKER_END_MS 50

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

/* sbx-tls ends with the broker, and its end may be seen first: the kernel closes the descriptors of
 * a killed process one by one. */
static bool broker_is_gone(const struct sbx_run *r)
{
	struct pollfd p = { .fd = r->broker.fd, .events = 0 }; /* POLLHUP */

	return r->broker.gone || (r->tls.gone && poll(&p, 1, BROKER_END_MS) > 0);
}

/* "the broker" or "sbx-tls", if that process ended by itself. NULL: neither, or a process broke its
 * protocol and r->err says so. */
static const char *lost_process(const struct sbx_run *r)
{
	return r->protocol_broken ? NULL :
	       broker_is_gone(r)  ? "the broker" :
	       r->tls.gone	  ? "sbx-tls" :
				    NULL;
}

bool sbx_run_panic_lost(struct sbx_run *r)
{
	const char *when = r->released ? "while the command ran" : "during setup";
	const char *lost = lost_process(r);
	char what[64];

	if (r->protocol_broken) {
		sbx_run_panic(r, SBX_REASON_PROTOCOL, r->err.msg);
		return true;
	}
	if (!lost)
		return false;
	sbx_text_fit(what, sizeof(what), "%s%s", strcmp(lost, "sbx-tls") == 0 ? "sbx-tls, " : "",
		     when);
	sbx_run_panic(r, SBX_REASON_BROKER_LOST, what);
	sbx_err_set(&r->err, "%s ended %s", lost,
		    r->released ? "under the command; the sandbox was ended" : "during setup");
	return true;
}

/* --- waits of the setup --- */

static void explain_namespace(struct sbx_run *r)
{
	struct sbx_userns_facts facts;
	char why[512];

	sbx_userns_facts_read(&facts);
	sbx_err_set(&r->err, "cannot make a network namespace: %s",
		    sbx_userns_explain((int)r->stage.failed.error, &facts, why, sizeof(why)));
}

static void explain_kill(struct sbx_run *r)
{
	if (r->tripped)
		return;
	sbx_err_set(&r->err, "the sandbox was killed through its control socket by uid %u",
		    r->killed_by);
}

int sbx_run_wait_failed(struct sbx_run *r, int e, const char *what, uint32_t timeout_ms)
{
	const char *lost = lost_process(r);

	if (strcmp(r->stage.failed.step, SBX_STAGE_NETWORK) == 0)
		explain_namespace(r);
	else if (r->stage.failed.step[0])
		sbx_err_set(&r->err, "%s: %s", r->stage.failed.step, r->stage.failed.detail);
	else if (r->killed)
		explain_kill(r);
	else if (r->interrupted)
		sbx_err_set(&r->err, "interrupted by signal %d", r->interrupted);
	else if (lost)
		sbx_err_set(&r->err, "%s ended during setup", lost);
	else if (r->cleanup.gone)
		sbx_err_set(&r->err, "the cleanup process ended during setup");
	else if (r->protect.helper_gone)
		sbx_err_set(&r->err, "a protect helper of the writable grants ended during setup");
	else if (e == -ETIMEDOUT)
		sbx_err_set(&r->err, "%s did not get ready in %u s", what, timeout_ms / 1000);
	else if (r->stage.gone)
		sbx_err_set(&r->err, "the stage ended while it was set up");
	return e < 0 ? e : -ECONNABORTED;
}

/* --- the end --- */

/* Why the sandbox was ended under the command. */
static void explain_end(struct sbx_run *r)
{
	if (r->attach.changed) {
		sbx_run_rules_changed(r);
		return;
	}
	if (r->live.broken) {
		sbx_err_set(&r->err, "%s", r->live.err.msg);
		sbx_run_panic(r, SBX_REASON_PROTOCOL, r->live.err.msg);
		return;
	}
	if (r->protect.planted.msg[0]) {
		sbx_err_set(&r->err, "%s", r->protect.planted.msg);
		sbx_run_panic(r, SBX_REASON_PLANTED, r->protect.planted.msg);
		return;
	}
	if (sbx_run_panic_lost(r))
		return;
	if (r->protect.helper_gone)
		sbx_err_set(&r->err, "a protect helper of the writable grants ended under the "
				     "command; the sandbox was ended");
	else if (r->cleanup.gone)
		sbx_err_set(&r->err, "the cleanup process ended under the command; the sandbox "
				     "was ended");
	else
		sbx_err_set(&r->err, "the sandbox was ended from outside");
}

void sbx_run_judge_end(struct sbx_run *r, int e)
{
	if (r->wall_expired) {
		r->outcome = SBX_OUTCOME_TIMED_OUT;
		sbx_err_set(&r->err, "the command was ended at its wall_time of %llu s",
			    (unsigned long long)(r->wall_ms / 1000));
	} else if (e != 0 && r->killed) {
		r->outcome = SBX_OUTCOME_KILLED;
		explain_kill(r);
	} else if (e != 0 || r->attach.changed) {
		r->outcome = SBX_OUTCOME_LOST;
		explain_end(r);
	}
}

int sbx_run_exit_status(const struct sbx_run *r)
{
	if (r->killed && !r->released)
		return 128 + SIGKILL;
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
	case SBX_OUTCOME_KILLED:
	case SBX_OUTCOME_LOST:
		return 128 + SIGKILL;
	default:
		return 125;
	}
}

static enum sbx_store_state state(const struct sbx_run *r)
{
	if ((r->interrupted || r->killed) && !r->released)
		return SBX_STATE_KILLED;
	switch (r->outcome) {
	case SBX_OUTCOME_DONE:
		return SBX_STATE_DONE;
	case SBX_OUTCOME_TIMED_OUT:
		return SBX_STATE_TIMED_OUT;
	case SBX_OUTCOME_OOM_KILLED:
		return SBX_STATE_OOM_KILLED;
	case SBX_OUTCOME_KILLED:
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
