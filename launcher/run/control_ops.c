/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The step `control`, and the operations of the control socket on this run. A handler does not
 * wait: it answers at once, or keeps the request's token and answers from a later callback.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "launcher/control/control.h"
#include "launcher/explain/explain_request.h"
#include "launcher/run/steps.h"
#include "launcher/run/supervise.h"
#include "launcher/serve/exec.h"
#include "launcher/serve/network.h"
#include "launcher/serve/publish.h"
#include "launcher/serve/show.h"
#include "launcher/serve/usage.h"
#include "sys/process/proc.h"

/* Refuses the request if the sandbox is ending. */
static bool is_there(struct sbx_run *r, const struct sbx_control_request *rq)
{
	if (!r->command_exited && !r->stage.gone && !r->killed)
		return true;
	sbx_control_refuse(r->control, rq->token, SBX_CONTROL_GONE, NULL, "the sandbox is ending");
	return false;
}

/* Refuses the request unless the sandbox runs its command. */
static bool runs(struct sbx_run *r, const struct sbx_control_request *rq)
{
	if (!is_there(r, rq))
		return false;
	if (!r->released)
		sbx_control_refuse(r->control, rq->token, SBX_CONTROL_BUSY, NULL,
				   "the sandbox is being set up: try again");
	return r->released;
}

static const char *text(const struct sbx_control_request *rq, const char *name)
{
	return json_string_value(json_object_get(rq->body, name));
}

/* --- show --- */

static const char *state_name(const struct sbx_run *r)
{
	if (r->command_exited || r->stage.gone || r->killed)
		return "ending";
	return !r->released ? "preparing" : r->frozen ? "frozen" : "running";
}

static int64_t wall_left_ms(const struct sbx_run *r)
{
	struct itimerspec its;

	if (r->wall_fd < 0 || timerfd_gettime(r->wall_fd, &its) < 0)
		return -1;
	return (int64_t)its.it_value.tv_sec * 1000 + its.it_value.tv_nsec / 1000000;
}

static void op_show(void *userdata, struct sbx_control_request *rq)
{
	struct sbx_run *r = userdata;
	const struct sbx_show_facts facts = {
		.plan = r->plan,
		.setup = &r->setup,
		.state = state_name(r),
		.started_ms = (int64_t)(sbx_clock_realtime_ms() -
					(sbx_clock_monotonic_us() - r->started_us) / 1000),
		.wall_left_ms = wall_left_ms(r),
		.live = r->live.started ? &r->live.state : NULL,
		.cgroup = &r->cgroup,
		.verdicts = r->init.has_verdicts ? &r->init.verdicts : NULL,
		.n_execs = sbx_execs_count(&r->execs),
	};
	json_t *v = sbx_show_json(&facts);

	if (v)
		sbx_serve_flows(r->control, &r->live, rq->token, v);
	else
		sbx_control_refuse(r->control, rq->token, SBX_CONTROL_FAILED, NULL,
				   "sbx-run has no memory left");
}

static void op_usage(void *userdata, struct sbx_control_request *rq)
{
	struct sbx_run *r = userdata;
	const struct sbx_usage_facts facts = {
		.counts = &r->usage_counts,
		.cgroup_fd = r->cgroup.dirs.command_fd,
		.stage_pid = r->stage.pid,
		.root_fd = r->stage.root_fd,
		.plan = r->plan,
	};

	sbx_serve_usage(r->control, &r->live, &facts, rq->token);
}

/* --- signal, freeze, kill --- */

/* The number of "TERM" or "SIGTERM"; 0: it is none that a person sends. */
static int signal_number(const char *name)
{
	static const struct {
		const char *name;
		int number;
	} rows[] = {
		{ "HUP", SIGHUP },   { "INT", SIGINT },	    { "QUIT", SIGQUIT },
		{ "KILL", SIGKILL }, { "USR1", SIGUSR1 },   { "USR2", SIGUSR2 },
		{ "TERM", SIGTERM }, { "CONT", SIGCONT },   { "STOP", SIGSTOP },
		{ "TSTP", SIGTSTP }, { "WINCH", SIGWINCH }, { "ALRM", SIGALRM },
		{ "PIPE", SIGPIPE }, { "ABRT", SIGABRT },   { "CHLD", SIGCHLD },
		{ "TTIN", SIGTTIN }, { "TTOU", SIGTTOU },   { "URG", SIGURG },
		{ "IO", SIGIO },     { "PWR", SIGPWR },	    { "XCPU", SIGXCPU },
		{ "XFSZ", SIGXFSZ }, { "PROF", SIGPROF },   { "VTALRM", SIGVTALRM },
	};

	if (strncmp(name, "SIG", 3) == 0)
		name += 3;
	for (size_t i = 0; i < SBX_N_ELEMENTS(rows); i++)
		if (strcmp(rows[i].name, name) == 0)
			return rows[i].number;
	return 0;
}

static bool freezes_by_cgroup(const struct sbx_run *r)
{
	return r->cgroup.dirs.command_fd >= 0;
}

static void op_signal(void *userdata, struct sbx_control_request *rq)
{
	struct sbx_run *r = userdata;
	const json_t *exec = json_object_get(rq->body, "exec");
	json_int_t number = json_integer_value(exec);
	int sig = signal_number(text(rq, "signal")), e;

	if (!sig) {
		sbx_control_refuse(r->control, rq->token, SBX_CONTROL_INVALID, "signal",
				   "%.32s is no signal's name: TERM, INT, HUP, KILL, USR1, ...",
				   text(rq, "signal"));
		return;
	}
	if (!runs(r, rq))
		return;
	if (!exec && sig == SIGCONT && r->frozen && !freezes_by_cgroup(r)) {
		sbx_control_refuse(r->control, rq->token, SBX_CONTROL_BUSY, "signal",
				   "the sandbox is frozen: thaw it first");
		return;
	}
	if (!exec)
		e = sbx_supervise_forward(r, sig);
	else
		e = number > 0 && number <= UINT32_MAX ?
			    sbx_execs_signal(&r->execs, (uint32_t)number, sig) :
			    -ESRCH;
	if (e == 0)
		sbx_control_answer(r->control, rq->token, NULL);
	else if (e == -ESRCH)
		sbx_control_refuse(r->control, rq->token,
				   exec ? SBX_CONTROL_UNKNOWN : SBX_CONTROL_GONE,
				   exec ? "exec" : NULL, "the command has ended");
	else
		sbx_control_refuse(r->control, rq->token, SBX_CONTROL_FAILED, NULL,
				   "cannot signal the command: %s", strerror(-e));
}

/* The kernel freezes the command's cgroup. Without a cgroup every process of the sandbox is
 * stopped: those that it had stopped itself go on with the rest. The stage runs on: it changes the
 * ruleset. */
static int freeze(struct sbx_run *r, bool frozen)
{
	const struct sbx_cgroup *cg = &r->cgroup.dirs;

	if (freezes_by_cgroup(r))
		return frozen ? sbx_cgroup_freeze(cg, r->stage.pid) : sbx_cgroup_thaw(cg);
	sbx_stage_send(&r->stage, SBX_MSG_SIGNAL_ALL, frozen ? SIGSTOP : SIGCONT, NULL, 0);
	return 0;
}

static void op_freeze(void *userdata, struct sbx_control_request *rq)
{
	struct sbx_run *r = userdata;
	bool frozen = json_is_true(json_object_get(rq->body, "frozen"));
	int e;

	if (!runs(r, rq))
		return;
	e = frozen || r->frozen ? freeze(r, frozen) : 0;
	if (e < 0) {
		sbx_control_refuse(r->control, rq->token, SBX_CONTROL_FAILED, NULL,
				   "cannot %s the sandbox: %s", frozen ? "freeze" : "thaw",
				   strerror(-e));
		return;
	}
	r->frozen = frozen;
	sbx_control_answer(r->control, rq->token, NULL);
}

/* Also before the release: nothing has run then. */
static void op_kill(void *userdata, struct sbx_control_request *rq)
{
	struct sbx_run *r = userdata;

	if (r->command_exited || r->stage.gone) {
		sbx_control_refuse(r->control, rq->token, SBX_CONTROL_GONE, NULL,
				   "the sandbox is ending");
		return;
	}
	if (!r->killed)
		r->killed_by = rq->uid;
	r->killed = true;
	sbx_stage_kill(&r->stage);
	sbx_control_answer(r->control, rq->token, NULL);
}

/* --- timeout --- */

/* The stage ends a sandbox whose launcher is stopped: this long after the launcher would have. */
#define STAGE_SLACK_S 30
#define TIMEOUT_MAX_S (365 * 86400)

/* Refuses the request if the sandbox would run longer than it may. */
static bool is_within_ceiling(struct sbx_run *r, const struct sbx_control_request *rq,
			      json_int_t seconds)
{
	uint64_t ceiling_ms = r->plan->system->ceilings.wall_time_ms;
	uint64_t elapsed_ms = (sbx_clock_monotonic_us() - r->released_us) / 1000;

	if (seconds < 1 || seconds > TIMEOUT_MAX_S) {
		sbx_control_refuse(r->control, rq->token, SBX_CONTROL_INVALID, "timeout",
				   "timeout must be 1 to %d seconds", TIMEOUT_MAX_S);
		return false;
	}
	if (!ceiling_ms || elapsed_ms + (uint64_t)seconds * 1000 <= ceiling_ms)
		return true;
	sbx_control_refuse(r->control, rq->token, SBX_CONTROL_DENIED, "timeout",
			   "the host's ceiling for wall_time is %llu s, and the sandbox has run "
			   "for %llu s",
			   (unsigned long long)(ceiling_ms / 1000),
			   (unsigned long long)(elapsed_ms / 1000));
	return false;
}

static void op_timeout(void *userdata, struct sbx_control_request *rq)
{
	struct sbx_run *r = userdata;
	json_int_t seconds = json_integer_value(json_object_get(rq->body, "timeout"));
	int e;

	if (!runs(r, rq) || !is_within_ceiling(r, rq, seconds))
		return;
	if (r->wall_expired) {
		sbx_control_refuse(r->control, rq->token, SBX_CONTROL_GONE, NULL,
				   "the sandbox is ending");
		return;
	}
	e = sbx_supervise_wall_clock_set(r, (uint64_t)seconds * 1000);
	if (e < 0) {
		sbx_control_refuse(r->control, rq->token, SBX_CONTROL_FAILED, NULL,
				   "cannot set the wall time: %s", strerror(-e));
		return;
	}
	sbx_stage_send(&r->stage, SBX_MSG_WALL_TIME, (uint32_t)seconds + STAGE_SLACK_S, NULL, 0);
	sbx_control_answer(r->control, rq->token,
			   json_pack("{s:I}", "wall_left_ms", wall_left_ms(r)));
}

/* --- events --- */

static void op_events(void *userdata, struct sbx_control_request *rq)
{
	struct sbx_run *r = userdata;
	const json_t *since = json_object_get(rq->body, "since");

	sbx_control_answer(r->control, rq->token, NULL);
	sbx_control_follow(r->control, rq->token,
			   since ? (uint64_t)json_integer_value(since) : UINT64_MAX);
}

static void on_event(void *userdata, const struct sbx_event *e)
{
	struct sbx_run *r = userdata;

	sbx_usage_count(&r->usage_counts, e);
	sbx_control_event(r->control, e);
	sbx_run_review_event(r, e);
}

/* --- network, reload, exec --- */

/* A change that comes before the release is made at the release: a sandbox that planned with the
 * old rules must not start with them and keep them. */
static void op_network(void *userdata, struct sbx_control_request *rq)
{
	struct sbx_run *r = userdata;

	if (is_there(r, rq))
		sbx_serve_network(r->control, &r->live, rq);
}

static void op_reload(void *userdata, struct sbx_control_request *rq)
{
	struct sbx_run *r = userdata;

	if (is_there(r, rq))
		sbx_serve_reload(r->control, &r->live, rq);
}

static void op_exec(void *userdata, struct sbx_control_request *rq)
{
	struct sbx_run *r = userdata;

	if (runs(r, rq))
		sbx_serve_exec(&r->serve_execs, rq);
}

static void on_gone(void *userdata, struct sbx_control_token t)
{
	struct sbx_run *r = userdata;

	sbx_serve_exec_gone(&r->serve_execs, t);
}

/* --- publish --- */

static void op_publish(void *userdata, struct sbx_control_request *rq)
{
	struct sbx_run *r = userdata;
	const struct sbx_publish_parts parts = {
		.plan = r->plan,
		.setup = &r->setup,
		.stage = &r->stage,
		.broker = &r->broker,
		.air_gapped = r->live.state.live.air_gapped,
	};

	if (!json_object_get(rq->body, "ports") || runs(r, rq))
		sbx_serve_publish(r->control, &parts, rq);
}

/* --- explain --- */

static void op_explain(void *userdata, struct sbx_control_request *rq)
{
	struct sbx_run *r = userdata;
	const struct sbx_live_state *now = r->live.started ? &r->live.state : NULL;
	struct sbx_err err = { 0 };
	const char *field = NULL;
	json_t *answer = sbx_explain_answer(now ? now->policy : r->plan->policy,
					    now ? now->profile : r->plan->profile,
					    r->options->workspace, r->plan->id, rq->body, &field,
					    &err);

	if (answer)
		sbx_control_answer(r->control, rq->token, json_pack("{s:o}", "explain", answer));
	else
		sbx_control_refuse(r->control, rq->token,
				   field ? SBX_CONTROL_INVALID : SBX_CONTROL_FAILED, field,
				   "%s", err.msg[0] ? err.msg : "sbx-run has no memory left");
}

/* --- the step --- */

static const struct sbx_control_op ops[] = {
	{ .name = "show", .handle = op_show },
	{ .name = "usage", .handle = op_usage },
	{ .name = "signal",
	  .fields = { { "signal", SBX_CONTROL_STRING, true },
		      { "exec", SBX_CONTROL_NUMBER, false } },
	  .handle = op_signal },
	{ .name = "freeze",
	  .fields = { { "frozen", SBX_CONTROL_BOOL, true } },
	  .handle = op_freeze },
	{ .name = "kill", .handle = op_kill },
	{ .name = "timeout",
	  .fields = { { "timeout", SBX_CONTROL_NUMBER, true } },
	  .handle = op_timeout },
	{ .name = "events",
	  .stays = true,
	  .fields = { { "since", SBX_CONTROL_NUMBER, false } },
	  .handle = op_events },
	{ .name = "explain",
	  .fields = { { "protocol", SBX_CONTROL_STRING, true },
		      { "host", SBX_CONTROL_STRING, true },
		      { "port", SBX_CONTROL_NUMBER, true },
		      { "address", SBX_CONTROL_STRING, false },
		      { "method", SBX_CONTROL_STRING, false },
		      { "path", SBX_CONTROL_STRING, false } },
	  .handle = op_explain },
	{ .name = "publish",
	  .fields = { { "ports", SBX_CONTROL_STRINGS, false } },
	  .handle = op_publish },
	{ .name = "network",
	  .fields = { { "air_gapped", SBX_CONTROL_BOOL, false },
		      { "allow_out", SBX_CONTROL_STRINGS, false },
		      { "deny_out", SBX_CONTROL_STRINGS, false },
		      { "add_allow", SBX_CONTROL_STRINGS, false },
		      { "add_deny", SBX_CONTROL_STRINGS, false },
		      { "rules", SBX_CONTROL_STRINGS, false },
		      { "generation", SBX_CONTROL_NUMBER, false } },
	  .handle = op_network },
	{ .name = "reload",
	  .fields = { { "what", SBX_CONTROL_STRING, true } },
	  .handle = op_reload },
	{ .name = "exec",
	  .n_fds = 3,
	  .stays = true,
	  .fields = { { "argv", SBX_CONTROL_WORDS, true },
		      { "env", SBX_CONTROL_MAP, false },
		      { "chdir", SBX_CONTROL_STRING, false },
		      { "tty", SBX_CONTROL_BOOL, false } },
	  .handle = op_exec },
};

int sbx_step_control_apply(struct sbx_run *r)
{
	const struct sbx_control_config config = {
		.watches = &r->watches,
		.dir_fd = r->runtime.fd,
		.owner = geteuid(),
		.caller = r->facts->caller_uid,
		.ops = ops,
		.n_ops = SBX_N_ELEMENTS(ops),
		.gone = on_gone,
		.userdata = r,
	};
	int e = sbx_control_open(&config, &r->control, &r->err);

	if (e < 0)
		return e;
	r->serve_execs.control = r->control;
	r->serve_execs.execs = &r->execs;
	sbx_record_tell(&r->recorder, on_event, r);
	return 0;
}

/* After the broker's undo: followers get its last events. */
void sbx_step_control_undo(struct sbx_run *r)
{
	sbx_serve_execs_fini(&r->serve_execs);
	r->control = sbx_control_close(r->control);
}
