/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The steps of a run: one table of {apply, undo}, in the order of launcher/plan/step.h, which has their names.
 *
 * Applied in order until one fails; all are undone in reverse on every way out: an undo accepts whatever its apply left,
 * and a step that was never reached. Undoing begins with the end of all processes in the sandbox: the stage is killed
 * and reaped.
 * The undos then run one after the other, each to its end. Nothing of the command runs before `release`, and each earlier
 * failure leads there never, so failing closed is the shape of the table and not of each step.
 *
 * Launch time is the longest chain, not the sum, so what takes long starts first: the stage, before there
 * is a plan, in it bwrap, and then the broker. bwrap takes over the view while the stage builds the
 * network and the launcher the rest;
 * init, at the end of that chain, does nothing before it gets its probes, which are sent when the
 * firewall has been read back and the broker has its policy. The database is opened meanwhile. On two
 * processors all of this is work for both, so what nobody waits for yet comes last.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "ipc/channel.h"
#include "launcher/cleanup/cleanup_process.h"
#include "launcher/cleanup/runtime.h"
#include "launcher/helpers/keep_helper.h"
#include "launcher/helpers/protect_helper.h"
#include "launcher/plan/step.h"
#include "launcher/process/step_hook.h"
#include "launcher/record/receipt.h"
#include "launcher/record/record.h"
#include "launcher/rootfs/etc.h"
#include "launcher/rootfs/overlay.h"
#include "launcher/rootfs/view.h"
#include "launcher/run/announce.h"
#include "launcher/run/attach.h"
#include "launcher/run/broker_process.h"
#include "launcher/run/cgroup.h"
#include "launcher/run/publish.h"
#include "launcher/run/run.h"
#include "launcher/run/run_outcome.h"
#include "launcher/run/supervise.h"
#include "launcher/stage/stage.h"
#include "launcher/stage/stage_process.h"
#include "launcher/stage/stage_network.h"
#include "sys/process/proc.h"
#include "sys/process/userns.h"
#include "sys/seccomp/seccomp.h"

#define STAGE_TIMEOUT_MS 10000
#define RELEASE_TIMEOUT_MS 5000
#define STOP_TIMEOUT_MS	    2000
#define SELFTEST_TIMEOUT_MS 20000 /* all probes; each has its own, shorter one */

static int send_simple(int fd, enum sbx_msg_type type)
{
	uint8_t packet[16];
	ssize_t n = sbx_msg_encode_simple(type, 0, packet, sizeof(packet));

	return n < 0 ? (int)n : sbx_channel_send(fd, packet, (size_t)n, NULL, 0);
}

/* --- stage --- */

int sbx_run_stage_begin(struct sbx_run *r)
{
	const struct sbx_stage_start how = {
		.facts = r->facts,
		.options = r->options,
		.cgroup_fd = sbx_cgroup_birthplace(&r->cgroup.dirs),
		.host_network = r->plan && r->plan->attach.on,
	};

	return sbx_stage_begin(&r->stage, &r->init, &how, &r->err);
}

static void stage_undo(struct sbx_run *r)
{
	sbx_stage_fini(&r->stage);
	sbx_init_process_fini(&r->init);
}

/* Where there is a cgroup, the stage is born in it. A stage that was begun before is given up. */
static int begin_in_cgroup(struct sbx_run *r)
{
	if (r->cgroup.dirs.command_fd < 0 && r->stage.begun)
		return 0;
	stage_undo(r);
	return sbx_run_stage_begin(r);
}

/* RLIMIT_NPROC of the command, which the kernel counts per user namespace (Linux 5.14). 0: the cgroup holds the limit, or
 * there is none. */
static uint32_t processes_limit(const struct sbx_run *r)
{
	uint32_t pids = r->plan->profile->limits.pids;

	return pids && !(r->cgroup.limited & SBX_CGROUP_BIT(SBX_CGROUP_PIDS)) ? pids + SBX_CGROUP_PIDS_OURS : 0;
}

/* The stage was begun before there was a plan (main.c). If that failed, the reason is told now, after what is wrong with
 * the plan. */
static int stage_apply(struct sbx_run *r)
{
	char etc[4096];
	int e = r->stage.error;

	if (e == 0)
		e = begin_in_cgroup(r);
	if (e < 0)
		return e;
	if (snprintf(etc, sizeof(etc), "%s/etc", r->facts->runtime_dir) >= (int)sizeof(etc))
		return -ENAMETOOLONG;
	e = sbx_etc_prepare(&r->plan->view, r->facts, etc, &r->setup.etc, &r->err);
	if (e == 0)
		e = sbx_stage_configure(&r->stage, r->plan, &r->setup, &r->protect.placeholders, processes_limit(r), &r->err);
	return e;
}

/* --- cgroup, attach, limits --- */

static int cgroup_apply(struct sbx_run *r)
{
	return sbx_cgroup_begin(&r->cgroup, r->plan, &r->err);
}

static void cgroup_undo(struct sbx_run *r)
{
	sbx_cgroup_run_fini(&r->cgroup);
}

static int attach_apply(struct sbx_run *r)
{
	return sbx_attach_run_begin(&r->attach, r->plan, &r->cgroup, &r->setup, &r->err);
}

static void attach_undo(struct sbx_run *r)
{
	r->cleanup.stays = sbx_attach_run_end(&r->attach, r->plan, &r->cgroup);
}

static int limits_apply(struct sbx_run *r)
{
	return sbx_cgroup_limit(&r->cgroup, r->plan, &r->err);
}

/* The kernel kills single processes: it was the end of the run only if the command died of SIGKILL. */
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
	sbx_err_set(&r->err, "the command was killed: it needed more than limits.memory %llu MiB (peak %.1f MiB)",
		    (unsigned long long)(r->plan->profile->limits.memory_bytes >> 20),
		    (double)u->memory_peak_bytes / (1 << 20));
}

static void limits_undo(struct sbx_run *r)
{
	sbx_cgroup_end(&r->cgroup);
	judge_oom(r);
}

/* --- record --- */

static int record_apply(struct sbx_run *r)
{
	return sbx_record_prepare(&r->recorder);
}

/* Nothing runs in the sandbox any more, and the broker and the protect helpers have sent their last events: the row is
 * final. */
static void record_undo(struct sbx_run *r)
{
	struct sbx_outcome_facts outcome;

	sbx_run_outcome(r, &outcome);
	r->swept_later |= !sbx_record_end(&r->recorder, &outcome);
	sbx_receipt_write(r->receipt_dir_fd, r->plan, &outcome);
}

/* --- keep: what is kept is copied when nobody changes it any more, and where nothing of ours is left --- */

/* With --scratch: how many files and directories go with the home. */
static void count_discarded(struct sbx_run *r)
{
	int64_t now = sbx_scratch_files(r->scratch_fd);

	r->scratch_files = r->scratch_files < 0 || now < r->scratch_files ? 0 : now - r->scratch_files;
	r->scratch_fd = sbx_fd_close(r->scratch_fd);
}

static int keep_apply(struct sbx_run *r)
{
	return sbx_keep_helper_start(&r->keep_helper, r->plan, &r->err);
}

static void keep_undo(struct sbx_run *r)
{
	if (r->scratch_fd >= 0)
		count_discarded(r);
	sbx_keep_helper_finish(&r->keep_helper, r->released, r->signal_fd);
}

/* --- runtime --- */

static int runtime_apply(struct sbx_run *r)
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

static void runtime_undo(struct sbx_run *r)
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

static int protect_apply(struct sbx_run *r)
{
	return sbx_protect_helpers_start(&r->protect, r->plan, r->runtime.fd, protect_tell, &r->recorder, &r->err);
}

static void protect_undo(struct sbx_run *r)
{
	if (r->released)
		sbx_protect_helpers_look(&r->protect);
	r->swept_later = !sbx_protect_helpers_end(&r->protect, r->released, r->runtime.fd);
}

/* --- broker --- */

/* When the stage is done: before that the processors are for what is on the way to the command, and the self-test,
 * the first to ask it anything, comes later. A launcher that gives up privileges before the stage is
 * heard has to start it now. */
static bool starts_late(const struct sbx_run *r)
{
	return !r->facts->privileged;
}

static int start_broker(struct sbx_run *r)
{
	return sbx_broker_start(&r->broker, r->plan, r->cgroup.dirs.broker_fd, &r->err);
}

static int broker_apply(struct sbx_run *r)
{
	return starts_late(r) ? 0 : start_broker(r);
}

static void broker_undo(struct sbx_run *r)
{
	if (!r->protocol_broken && sbx_broker_ask_stop(&r->broker))
		sbx_supervise(r, SBX_WAIT_BROKER, STOP_TIMEOUT_MS);
	sbx_broker_fini(&r->broker);
}

/* --- publish --- */

static int publish_apply(struct sbx_run *r)
{
	return sbx_publish_open(r->plan, &r->setup, r->stage.sandbox_fds, &r->err);
}

static void publish_undo(struct sbx_run *r)
{
	sbx_publish_close(r->stage.sandbox_fds);
}

/* --- firewall: the stage builds it; here we wait for the proof --- */

static void explain_namespace(struct sbx_run *r)
{
	struct sbx_userns_facts facts;
	char why[512];

	sbx_userns_facts_read(&facts);
	sbx_err_set(&r->err, "cannot make a network namespace: %s",
		    sbx_userns_explain((int)r->stage.failed.error, &facts, why, sizeof(why)));
}

static int install_rules(struct sbx_run *r)
{
	return sbx_attach_run_install(&r->attach, r->plan, &r->cgroup, &r->setup, r->runtime.fd, r->stage.sandbox_fds, &r->err);
}

static int firewall_apply(struct sbx_run *r)
{
	int e;

	e = sbx_supervise(r, SBX_WAIT_STAGE, STAGE_TIMEOUT_MS);
	if (e == 0) {
		e = starts_late(r) ? start_broker(r) : 0;
		sbx_stage_network_ports(r->stage.sandbox_fds, &r->setup.nft);
		if (e == 0)
			e = install_rules(r);
		return e < 0 ? e : sbx_broker_configure(&r->broker, r->plan, &r->setup, r->stage.sandbox_fds, &r->err);
	}
	if (strcmp(r->stage.failed.step, SBX_STAGE_NETWORK) == 0)
		explain_namespace(r);
	else if (r->stage.failed.step[0])
		sbx_err_set(&r->err, "%s: %s", r->stage.failed.step, r->stage.failed.detail);
	else if (r->interrupted)
		sbx_err_set(&r->err, "interrupted by signal %d", r->interrupted);
	else
		sbx_err_set(&r->err, e == -ETIMEDOUT ? "the stage did not get ready in %d s" :
			    "the stage ended while it was set up", STAGE_TIMEOUT_MS / 1000);
	return e < 0 ? e : -ECONNABORTED;
}

static void firewall_undo(struct sbx_run *r)
{
	sbx_stage_close_sandbox_fds(&r->stage);
}

/* --- command: bwrap does nothing without the seccomp program --- */

static int command_apply(struct sbx_run *r)
{
	struct sbx_err err = { 0 };
	int e = sbx_seccomp_write(SBX_SECCOMP_COMMAND, r->plan->seccomp_lifts, r->stage.seccomp_fd, &err);

	r->stage.seccomp_fd = sbx_fd_close(r->stage.seccomp_fd);
	if (e == -EPIPE)
		return 0; /* nobody is left to read it: the stage failed, and says why when it is waited for */
	if (e < 0)
		sbx_err_set(&r->err, "%s", err.msg);
	return e;
}

static void command_undo(struct sbx_run *r)
{
	r->stage.seccomp_fd = sbx_fd_close(r->stage.seccomp_fd);
}

/* --- privileges: the steps from here on need few of root's --- */

/* What is left needs to signal processes of other users, and write a receipt where root was told to; what
 * belongs to uid 0 (database, runtime directory) it owns. */
static int privileges_apply(struct sbx_run *r)
{
	uint64_t keep = 1ull << CAP_KILL | sbx_run_attach_caps(r->plan);
	int e;

	if (!r->plan->facts->privileged)
		return 0;
	if (r->receipt_dir_fd >= 0 && r->plan->facts->caller_uid == 0)
		keep |= 1ull << CAP_DAC_OVERRIDE;
	e = sbx_caps_keep(keep);
	if (e < 0)
		sbx_err_set(&r->err, "cannot drop capabilities: %s", strerror(-e));
	return e;
}

/* --- selftest --- */

static void panic_event(struct sbx_run *r, enum sbx_reason reason, const char *what)
{
	struct sbx_event e = { .ts_ms = sbx_clock_realtime_ms(), .action = SBX_PANIC,
			       .proto = SBX_PROTO_OTHER, .reason = (uint8_t)reason, .count = 1 };

	snprintf(e.rule, sizeof(e.rule), "%.*s", (int)sizeof(e.rule) - 1, what);
	sbx_record_event(&r->recorder, &e);
}

/* The stage's half of the probe. */
static void judge_mounts(struct sbx_run *r, struct sbx_msg_verdict *v)
{
	if (!r->stage.open_mount)
		return;
	v->ok = 0;
	sbx_text_cut(v->detail, sizeof(v->detail), "the mount at %s is not locked, so it can be removed",
		     r->plan->view.mounts[r->stage.open_mount - 1].dest);
}

static int judge_verdicts(struct sbx_run *r)
{
	const struct sbx_msg_probes *p = &r->setup.probes;

	for (uint32_t i = 0; i < p->n_probes; i++)
		if (p->probes[i].kind == SBX_PROBE_MOUNTS)
			judge_mounts(r, &r->init.verdicts.v[i]);
	for (uint32_t i = 0; i < p->n_probes; i++) {
		const struct sbx_msg_verdict *v = &r->init.verdicts.v[i];
		char where[SBX_ADDR_STR_MAX] = "";

		if (i < r->init.verdicts.n_verdicts && v->ok)
			continue;
		if (p->probes[i].addr.family)
			sbx_addr_format(&p->probes[i].addr, where, sizeof(where));
		r->outcome = SBX_OUTCOME_SELFTEST_FAILED;
		sbx_err_set(&r->err, "self-test probe %u (%s%s%s%s%s) failed: %s", i,
			    sbx_probe_kind_str(p->probes[i].kind), where[0] ? " " : "", where,
			    p->probes[i].name[0] ? " " : "", p->probes[i].name,
			    i < r->init.verdicts.n_verdicts ? v->detail : "no verdict");
		panic_event(r, SBX_REASON_SELFTEST, r->err.msg);
		return -EPERM;
	}
	return 0;
}

/* Where there is an allow list: init waits for it if it comes first. */
static int send_programs(struct sbx_run *r)
{
	static struct sbx_msg_programs m;
	static uint8_t packet[SBX_MSG_MAX];
	const struct sbx_plan *p = r->plan;
	uint32_t at = 0;
	ssize_t n;
	int e;

	if (p->commands.n_programs == 0)
		return 0;
	for (; m.n_programs < p->commands.n_programs; m.n_programs++) {
		const struct sbx_program *program = &p->commands.programs[m.n_programs];

		m.v[m.n_programs] = (struct sbx_msg_program){ program->dev, program->ino, at };
		sbx_text_fit(m.text + at, sizeof(m.text) - at, "%s", program->path); /* command_files.c */
		at += (uint32_t)strlen(program->path) + 1;
	}
	n = sbx_msg_encode_programs(&m, packet, sizeof(packet));
	e = n < 0 ? (int)n : sbx_channel_send(r->init.fd, packet, (size_t)n, NULL, 0);
	if (e < 0)
		sbx_err_set(&r->err, "cannot send the list of programs: %s", strerror(-e));
	return e > 0 ? 0 : e; /* a closed channel is found by whoever waits for the verdicts */
}

static int send_probes(struct sbx_run *r)
{
	static uint8_t packet[SBX_MSG_MAX]; /* large for a stack */
	ssize_t n = sbx_msg_encode_probes(&r->setup.probes, packet, sizeof(packet));
	int e;

	if (n < 0) {
		sbx_err_set(&r->err, "the self-test's probes do not fit one message");
		return (int)n;
	}
	/* They wait in the channel until init is there. */
	e = sbx_channel_send(r->init.fd, packet, (size_t)n, NULL, 0);
	return e > 0 ? 0 : e; /* a closed channel is found by whoever waits for the verdicts */
}

/* Its processes were killed when that was seen. */
static int rules_changed(struct sbx_run *r)
{
	panic_event(r, SBX_REASON_RULES_CHANGED, "inet sbx");
	sbx_err_set(&r->err, "somebody changed or flushed the host's firewall under the sandbox (table inet sbx); "
			     "the sandbox was ended");
	return -ECONNABORTED;
}

/* The database is opened here, while bwrap builds: what cannot be recorded is not released. */
static int selftest_apply(struct sbx_run *r)
{
	int e = send_programs(r);

	if (e == 0)
		e = send_probes(r);
	if (e == 0)
		e = sbx_record_begin(&r->recorder, r->facts, r->plan->policy, &r->err);
	r->stage.config = sbx_stage_config_free(r->stage.config); /* the stage has its own mapping; at the end it would be waited for */
	if (e < 0)
		return e;
	if (e == 0)
		e = sbx_supervise(r, SBX_WAIT_SELFTEST, SELFTEST_TIMEOUT_MS);
	sbx_attach_run_tested(&r->attach);
	if (e == 0 && r->init.watch_error) { /* it would get no signal, not that of its wall time either */
		sbx_err_set(&r->err, "cannot watch the command: pidfd_open: %s", strerror(-r->init.watch_error));
		return r->init.watch_error;
	}
	if (e == 0)
		return judge_verdicts(r);
	if (r->attach.changed)
		return rules_changed(r);
	if (r->interrupted) {
		sbx_err_set(&r->err, "interrupted by signal %d", r->interrupted);
		return -EINTR;
	}
	if (r->broker.gone) {
		panic_event(r, SBX_REASON_BROKER_LOST, "during setup");
		sbx_err_set(&r->err, "the broker ended during setup");
	} else if (r->protocol_broken) {
		panic_event(r, SBX_REASON_PROTOCOL, r->err.msg);
	} else if (r->stage.failed.step[0]) {
		sbx_err_set(&r->err, "%s: %s", r->stage.failed.step, r->stage.failed.detail);
	} else if (r->init.hello) {
		r->outcome = SBX_OUTCOME_SELFTEST_FAILED;
		panic_event(r, SBX_REASON_SELFTEST, "no verdict");
		sbx_err_set(&r->err, e == -ETIMEDOUT ? "the self-test did not end in %d s" :
			    "the self-test broke off", SELFTEST_TIMEOUT_MS / 1000);
	} else {
		sbx_err_set(&r->err, "bwrap could not build the sandbox (its message is above)");
	}
	return e < 0 ? e : -ECONNABORTED;
}

/* --- release --- */

/* What the broker recorded so far was the self-test; what it records from now on is the command. */
static int release_broker(struct sbx_run *r)
{
	int e = send_simple(r->broker.fd, SBX_MSG_RELEASE);

	if (e == 0)
		e = sbx_supervise(r, SBX_WAIT_RELEASE, RELEASE_TIMEOUT_MS);
	if (e)
		sbx_err_set(&r->err, "the broker or the sandbox ended before the release");
	return e > 0 ? -ECONNABORTED : e;
}

static int release_apply(struct sbx_run *r)
{
	int e = release_broker(r);

	if (e == 0)
		e = sbx_protect_helpers_ready(&r->protect, &r->err);
	if (e < 0)
		return e;
	e = sbx_supervise_wall_clock(r);
	if (e < 0) {
		sbx_err_set(&r->err, "cannot start the wall clock: %s", strerror(-e));
		return e;
	}
	sbx_publish_tell(r->plan, &r->setup);
	e = send_simple(r->init.fd, SBX_MSG_RELEASE);
	if (e) {
		sbx_err_set(&r->err, "the sandbox's init ended before the release");
		return e < 0 ? e : -EPIPE;
	}
	r->released = true;
	r->outcome = SBX_OUTCOME_DONE;
	sbx_record_released(&r->recorder, !r->plan->attach.on); /* with attach it may wait for its pins */
	sbx_announce_ready(r); /* who heard it finds the row */
	return 0;
}

/*
 * The order of the first steps is that of their undos, read from below: the processes in the cgroup end, then the rules
 * go that judge their sockets, then the row gets its final state, then the runtime directory goes (a directory without
 * a launcher tells the cleanup process and a sweep that the run was lost), and last the empty cgroup.
 */
static const struct step {
	int (*apply)(struct sbx_run *r); /* 0, or -errno with r->err set */
	void (*undo)(struct sbx_run *r); /* NULL: nothing to undo */
} steps[] = {
	[SBX_STEP_CGROUP] = { cgroup_apply, cgroup_undo }, /* the cleanup process must be born in its scope */
	[SBX_STEP_RUNTIME] = { runtime_apply, runtime_undo },
	[SBX_STEP_RECORD] = { record_apply, record_undo },
	[SBX_STEP_ATTACH] = { attach_apply, attach_undo },
	[SBX_STEP_LIMITS] = { limits_apply, limits_undo },
	[SBX_STEP_KEEP] = { keep_apply, keep_undo }, /* copies when nothing can change the upper layer any more */
	[SBX_STEP_PROTECT] = { protect_apply, protect_undo },
	[SBX_STEP_STAGE] = { stage_apply, stage_undo },
	[SBX_STEP_BROKER] = { broker_apply, broker_undo },
	[SBX_STEP_COMMAND] = { command_apply, command_undo },
	[SBX_STEP_PUBLISH] = { publish_apply, publish_undo }, /* after all forks that must not have its sockets */
	[SBX_STEP_PRIVILEGES] = { privileges_apply, NULL },
	[SBX_STEP_FIREWALL] = { firewall_apply, firewall_undo },
	[SBX_STEP_SELFTEST] = { selftest_apply, NULL },
	[SBX_STEP_RELEASE] = { release_apply, NULL },
};
_Static_assert(SBX_N_ELEMENTS(steps) == SBX_N_STEPS, "every step has its functions");

/* The command runs; how did it end? */
static void wait_for_command(struct sbx_run *r)
{
	int e = sbx_supervise(r, SBX_WAIT_COMMAND, 0);

	r->recorder.tidy_at_us = r->protect.watch_at_us = 0;
	if (r->wall_expired) {
		r->outcome = SBX_OUTCOME_TIMED_OUT;
		sbx_err_set(&r->err, "the command was ended at its wall_time of %llu s",
			    (unsigned long long)(r->plan->profile->limits.wall_time_ms / 1000));
	} else if (e != 0 || r->attach.changed) {
		r->outcome = SBX_OUTCOME_LOST;
		if (r->attach.changed) {
			rules_changed(r);
		} else if (r->protect.planted.msg[0]) {
			sbx_err_set(&r->err, "%s", r->protect.planted.msg);
			panic_event(r, SBX_REASON_PLANTED, r->protect.planted.msg);
		} else if (r->broker.gone && !r->protocol_broken) {
			panic_event(r, SBX_REASON_BROKER_LOST, "while the command ran");
			sbx_err_set(&r->err, "the broker ended under the command; the sandbox was ended");
		} else if (r->protocol_broken) {
			panic_event(r, SBX_REASON_PROTOCOL, r->err.msg);
		} else if (r->protect.helper_gone) {
			sbx_err_set(&r->err, "a protect helper of the writable grants ended under the command; the sandbox was ended");
		} else if (r->cleanup.gone) {
			sbx_err_set(&r->err, "the cleanup process ended under the command; the sandbox was ended");
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

int sbx_run_carry_out(struct sbx_run *r)
{
	int e = 0;

	sbx_setup_start(&r->setup, r->plan);
	sbx_record_name(&r->recorder, r->plan->id, r->options);
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
	sbx_stage_end(&r->stage); /* everything in the sandbox ends before anything it stands on is undone */
	sbx_terminals_restore(&r->terminals); /* nobody is left who could change them again; our own messages come later */
	sbx_announce_stopping(r);
	/* All of them, also when their step was not reached: so a failure before `record` is recorded as well. */
	for (int i = SBX_N_STEPS - 1; i >= 0; i--) {
		sbx_step_undo_hook(sbx_step_str((enum sbx_step_id)i));
		if (steps[i].undo)
			steps[i].undo(r);
	}
	return sbx_run_exit_status(r);
}
