/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The launcher's loop. It only notes events (flags and numbers in struct sbx_run); the steps draw
 * the conclusions.
 *
 * Trust: the stage and the secret helper are forks of the launcher. The broker and sbx-tls parse
 * hostile bytes, and init runs beside the command. So one table (rules[]) says which message each
 * of them may send, how often, in which state, and with how many descriptors. Any other message
 * sets protocol_broken, and the sandbox ends. judge() alone decides that; handlers get judged
 * messages only. A turn reads a bounded number of packets, so that no peer starves the others.
 */
#include "launcher/run/supervise.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "ipc/channel.h"
#include "launcher/helpers/protect_helper.h"
#include "launcher/process/signals.h"
#include "launcher/record/record.h"
#include "launcher/resources/attach.h"
#include "launcher/rootfs/overlay.h"
#include "launcher/stage/stage.h"
#include "sys/process/proc.h"

#define PACKETS_PER_TURN 64
#define N_FIXED 9 /* descriptors of a turn, besides those of protect helpers */
#define WALL_GRACE_US 2000000 /* between SIGTERM and SIGKILL at the wall time */

enum peer { STAGE, BROKER, INIT, TLS, SECRETS, PID1, N_PEERS };

static const char *const names[N_PEERS] = {
	"the stage", "the broker",	  "the sandbox's init",
	"sbx-tls",   "the secret helper", "the sandbox's pid 1",
};
/* The most descriptors that come with a message. */
static const size_t fds_max[N_PEERS] = {
	[STAGE] = SBX_N_BROKER_FDS, [TLS] = SBX_N_TLS_READY_FDS, [SECRETS] = 1,
	[INIT] = 1, /* the listener of --learn */
};

/* The packet at hand. Static, because on the stack each call would fault in and clear 16 pages. */
static struct {
	uint8_t bytes[SBX_MSG_MAX];
	struct sbx_span span;
	pid_t pid; /* of the sender, in the launcher's pid namespace; 0: unknown */
	int fds[SBX_N_BROKER_FDS];
	size_t n_fds; /* those that no handler took are closed */
	union { /* the decoded message */
		uint32_t value;
		struct sbx_msg_stage_failed stage_failed;
		struct sbx_event event;
		struct sbx_msg_pins pins;
		struct sbx_msg_stats stats;
		struct sbx_msg_verdicts verdicts;
		struct sbx_msg_exec_failed exec_failed;
		struct sbx_msg_ruleset_done ruleset_done;
		struct sbx_msg_policy_done policy_done;
		struct sbx_msg_flow_list flow_list;
		struct sbx_msg_exec_exit exec_exit;
	} body;
} packet;

static void broken(struct sbx_run *r, enum peer from)
{
	r->protocol_broken = true;
	sbx_err_set(&r->err, "%s broke its protocol; the sandbox was ended", names[from]);
}

/* --- messages of the stage --- */

/* Takes the packet's descriptors for the slots that its value names, of the first @n_slots. 0, or
 * -1: there are others. */
static int take_slots(int *slots, size_t n_slots)
{
	uint32_t mask = packet.body.value;
	size_t used = 0;

	if ((size_t)__builtin_popcount(mask) != packet.n_fds || mask >> n_slots)
		return -1;
	for (size_t i = 0; i < n_slots; i++)
		if (mask & (1u << i))
			slots[i] = packet.fds[used++];
	packet.n_fds = 0;
	return 0;
}

/* The slots from SBX_BFD_TLS on are the launcher's own. */
static int on_stage_ready(struct sbx_run *r)
{
	r->stage.ready = take_slots(r->stage.sandbox_fds, SBX_BFD_TLS) == 0;
	return r->stage.ready ? 0 : -1;
}

static int on_stage_fills(struct sbx_run *r)
{
	return take_slots(r->stage.fills, SBX_N_FILLS);
}

/* The directory that the stage sends; NULL: none was asked for. */
static int *upper_place(struct sbx_run *r)
{
	return r->plan->keep.path  ? &r->keep_helper.upper_fd :
	       r->options->scratch ? &r->scratch_fd :
				     NULL;
}

static int on_stage_upper(struct sbx_run *r)
{
	*upper_place(r) = packet.fds[0];
	packet.n_fds = 0;
	r->scratch_files = r->scratch_fd < 0 ? 0 : sbx_scratch_files(r->scratch_fd);
	return 0;
}

static int on_stage_failed(struct sbx_run *r)
{
	r->stage.failed = packet.body.stage_failed;
	r->stage.gone = true;
	return 0;
}

/* With --wait-all: the command was reaped, and others may be left. */
static bool is_command_gone(const struct sbx_run *r)
{
	return r->options->wait_all && sbx_init_process_signal(&r->init, 0) == -ESRCH;
}

int sbx_supervise_forward(struct sbx_run *r, int sig)
{
	if (!is_command_gone(r))
		return sbx_init_process_signal(&r->init, sig);
	sbx_stage_send(&r->stage, SBX_MSG_SIGNAL_ALL, (uint32_t)sig, NULL, 0);
	return 0;
}

/* The stage saw no such signal: it was sent to the launcher alone, so forward it. */
static int on_stage_signal(struct sbx_run *r)
{
	sbx_supervise_forward(r, (int)packet.body.value);
	return 0;
}

static int on_mounts_checked(struct sbx_run *r)
{
	if (packet.body.value > r->plan->view.n_mounts)
		return -1;
	r->stage.mounts_checked = true;
	r->stage.open_mount = packet.body.value;
	r->stage.root_fd = packet.fds[0];
	packet.n_fds = 0;
	return 0;
}

static int on_command_exit(struct sbx_run *r)
{
	r->command_exited = true;
	r->wait_status = (int)packet.body.value;
	return 0;
}

static int on_ruleset_done(struct sbx_run *r)
{
	return sbx_live_heard_ruleset(&r->live, &packet.body.ruleset_done);
}

/* --- messages of the broker --- */

static int on_broker_ready(struct sbx_run *r)
{
	r->broker.ready = true;
	return 0;
}

static int on_broker_released(struct sbx_run *r)
{
	r->broker.released = true;
	return 0;
}

static int on_event(struct sbx_run *r)
{
	sbx_record_event(&r->recorder, &packet.body.event);
	if (r->learn_dir_fd >= 0 && r->released) /* before it they are the self-test's */
		sbx_learn_event(&r->learn, &packet.body.event);
	return 0;
}

static int on_pins(struct sbx_run *r)
{
	if (sbx_attach_run_pins(&r->attach, r->plan->id, &packet.body.pins, r->broker.fd) < 0)
		r->broker.gone = true;
	return 0;
}

static int on_policy_done(struct sbx_run *r)
{
	return sbx_live_heard_policy(&r->live, &packet.body.policy_done);
}

static int on_flow_list(struct sbx_run *r)
{
	return sbx_live_heard_flows(&r->live, &packet.body.flow_list);
}

static int on_stats(struct sbx_run *r)
{
	r->broker.stats = packet.body.stats;
	r->broker.stopped = true;
	return 0;
}

/* --- messages of the sandbox's init --- */

/* The stage can now check the mounts that init sees. Without a pidfd it says what is wrong. */
static int on_hello(struct sbx_run *r)
{
	SBX_AUTO_CLOSE int fd = (int)syscall(SYS_pidfd_open, packet.pid, 0);

	r->init.hello = true;
	r->init.pid = packet.pid;
	sbx_stage_send(&r->stage, SBX_MSG_CHECK_MOUNTS, 0, &fd, fd >= 0);
	return 0;
}

static int on_verdicts(struct sbx_run *r)
{
	const struct sbx_msg_verdicts *v = &packet.body.verdicts;

	if (v->n_verdicts != r->plan->probes->n_probes)
		return -1;
	memcpy(&r->init.verdicts, v, offsetof(struct sbx_msg_verdicts, v[v->n_verdicts]));
	r->init.has_verdicts = true;
	sbx_init_process_watch(&r->init, packet.pid);
	return 0;
}

static int on_exec_failed(struct sbx_run *r)
{
	r->init.exec_failed = true;
	return 0;
}

static int on_exec_listener(struct sbx_run *r)
{
	if (r->learn_dir_fd < 0)
		return -1;
	packet.n_fds = 0;
	if (sbx_learn_execs_take(&r->learn_execs, packet.fds[0], &r->watches, r->plan,
				 &r->released) < 0)
		sbx_err_set(&r->err, "programs cannot be learned: too much waits for the launcher");
	return 0;
}

static int on_exec_exit(struct sbx_run *r)
{
	return sbx_execs_on_exit(&r->execs, &packet.body.exec_exit);
}

/* --- messages of sbx-tls and the secret helper --- */

static int on_tls_ready(struct sbx_run *r)
{
	if (packet.n_fds != (r->plan->tls.java ? 2u : 1u))
		return -1;
	memcpy(r->tls.ready_fds, packet.fds, packet.n_fds * sizeof(packet.fds[0]));
	packet.n_fds = 0;
	r->tls.ready = true;
	return 0;
}

static int on_secret_stale(struct sbx_run *r)
{
	if (packet.body.value >= r->plan->profile->n_secrets)
		return -1;
	sbx_secret_helper_ask(&r->secret_helper, r->plan->profile, packet.body.value);
	return 0;
}

static int on_secret(struct sbx_run *r)
{
	sbx_tls_process_send_secret(&r->tls, packet.body.value, packet.fds[0]);
	return 0;
}

/* --- the rules --- */

static int decode_simple(enum sbx_msg_type type)
{
	return sbx_msg_decode_simple(packet.span, type, &packet.body.value);
}

#define DECODER(name)                                                          \
	static int decode_##name(enum sbx_msg_type type)                       \
	{                                                                      \
		(void)type;                                                    \
		return sbx_msg_decode_##name(packet.span, &packet.body.name);  \
	}
DECODER(stage_failed)
DECODER(event)
DECODER(pins)
DECODER(stats)
DECODER(verdicts)
DECODER(exec_failed)
DECODER(ruleset_done)
DECODER(policy_done)
DECODER(flow_list)
DECODER(exec_exit)

/* States of the run that a message may need. */
enum need {
	HELLO = 1 << 0,	   /* init has said hello */
	VERDICTS = 1 << 1, /* and has sent its verdicts */
	RELEASED = 1 << 2, /* the command was released */
	ATTACHED = 1 << 3, /* attach cgroup */
	UPPER = 1 << 4,	   /* the plan asks for the upper directory */
	SENDER = 1 << 5,   /* the kernel vouches for the sender's pid */
	TLS_READY = 1 << 6, /* sbx-tls has its rules */
	TERMINATES = 1 << 7, /* the plan has terminated hosts */
	IS_PID1 = 1 << 8,    /* the kernel vouches that the sender is the one that said hello */
};

static unsigned int states(struct sbx_run *r)
{
	return (r->init.hello ? HELLO : 0u) | (r->init.has_verdicts ? VERDICTS : 0u) |
	       (r->released ? RELEASED : 0u) | (r->plan->attach.on ? ATTACHED : 0u) |
	       (upper_place(r) ? UPPER : 0u) | (packet.pid > 0 ? SENDER : 0u) |
	       (r->tls.ready ? TLS_READY : 0u) | (r->plan->tls.on ? TERMINATES : 0u) |
	       (packet.pid > 0 && packet.pid == r->init.pid ? IS_PID1 : 0u);
}

#define ANY_FDS SIZE_MAX /* the handler counts them */

static const struct rule {
	enum sbx_msg_type type;
	enum peer from;
	bool once;
	unsigned int needs; /* enum need */
	size_t n_fds;
	int (*decode)(enum sbx_msg_type type);
	int (*handle)(struct sbx_run *r); /* 0, or -1: the message's values are impossible */
} rules[] = {
	{ SBX_MSG_STAGE_UPPER, STAGE, true, UPPER, 1, decode_simple, on_stage_upper },
	{ SBX_MSG_STAGE_FILLS, STAGE, true, TERMINATES, ANY_FDS, decode_simple, on_stage_fills },
	{ SBX_MSG_STAGE_READY, STAGE, true, 0, ANY_FDS, decode_simple, on_stage_ready },
	{ SBX_MSG_STAGE_FAILED, STAGE, false, 0, 0, decode_stage_failed, on_stage_failed },
	{ SBX_MSG_MOUNTS_CHECKED, STAGE, true, HELLO, 1, decode_simple, on_mounts_checked },
	{ SBX_MSG_SIGNAL, STAGE, false, 0, 0, decode_simple, on_stage_signal },
	{ SBX_MSG_COMMAND_EXIT, STAGE, false, 0, 0, decode_simple, on_command_exit },
	{ SBX_MSG_RULESET_DONE, STAGE, false, RELEASED, 0, decode_ruleset_done, on_ruleset_done },
	{ SBX_MSG_READY, BROKER, true, 0, 0, decode_simple, on_broker_ready },
	{ SBX_MSG_RELEASE, BROKER, true, VERDICTS, 0, decode_simple, on_broker_released },
	{ SBX_MSG_EVENT, BROKER, false, 0, 0, decode_event, on_event },
	{ SBX_MSG_PINS, BROKER, false, ATTACHED, 0, decode_pins, on_pins },
	{ SBX_MSG_POLICY_DONE, BROKER, false, RELEASED, 0, decode_policy_done, on_policy_done },
	{ SBX_MSG_FLOW_LIST, BROKER, false, RELEASED, 0, decode_flow_list, on_flow_list },
	{ SBX_MSG_STATS, BROKER, false, 0, 0, decode_stats, on_stats },
	{ SBX_MSG_INIT_HELLO, INIT, true, SENDER, 0, decode_simple, on_hello },
	{ SBX_MSG_VERDICTS, INIT, true, HELLO | SENDER, 0, decode_verdicts, on_verdicts },
	{ SBX_MSG_EXEC_LISTENER, INIT, true, HELLO | SENDER, 1, decode_simple, on_exec_listener },
	{ SBX_MSG_EXEC_FAILED, INIT, false, RELEASED, 0, decode_exec_failed, on_exec_failed },
	{ SBX_MSG_EXEC_EXIT, PID1, false, RELEASED | IS_PID1, 0, decode_exec_exit, on_exec_exit },
	{ SBX_MSG_TLS_READY, TLS, true, 0, ANY_FDS, decode_simple, on_tls_ready },
	{ SBX_MSG_SECRET_STALE, TLS, false, TLS_READY, 0, decode_simple, on_secret_stale },
	{ SBX_MSG_SECRET, SECRETS, false, TLS_READY, 1, decode_simple, on_secret },
};
_Static_assert(SBX_N_MSG_TYPES <= 64, "a bit of sbx_run.heard for each");

static const struct rule *find_rule(enum peer from, enum sbx_msg_type type)
{
	for (size_t i = 0; i < SBX_N_ELEMENTS(rules); i++)
		if (rules[i].from == from && rules[i].type == type)
			return &rules[i];
	return NULL;
}

/* The one place where a message is accepted or ends the sandbox. */
static void judge(struct sbx_run *r, enum peer from)
{
	const struct rule *rule = find_rule(from, sbx_msg_type(packet.span));
	uint64_t bit = rule ? UINT64_C(1) << rule->type : 0;

	if (!rule || (rule->once && (r->heard & bit)) || (rule->needs & ~states(r)) ||
	    (rule->n_fds != ANY_FDS && rule->n_fds != packet.n_fds) ||
	    rule->decode(rule->type) != 0 || rule->handle(r) != 0)
		broken(r, from);
	r->heard |= bit;
	for (size_t i = 0; i < packet.n_fds; i++)
		sbx_fd_close(packet.fds[i]);
}

/* Reads and judges one packet of @fd. 1: done; 0: there is none now; -1: the peer is gone. */
static int hear(struct sbx_run *r, enum peer from, int fd)
{
	size_t n;
	int e = sbx_channel_recv(fd, packet.bytes, sizeof(packet.bytes), &n, packet.fds,
				 fds_max[from], &packet.n_fds, &packet.pid);

	if (e == SBX_CHANNEL_E_AGAIN || e == -EINTR)
		return 0;
	if (e == SBX_CHANNEL_E_BROKEN || e == SBX_CHANNEL_E_NO_FDS)
		broken(r, from);
	if (e != 0)
		return -1;
	packet.span = sbx_span(packet.bytes, n);
	judge(r, from);
	return 1;
}

/* The same with up to PACKETS_PER_TURN packets. Is the peer gone? */
static bool hear_all(struct sbx_run *r, enum peer from, int fd)
{
	int got = 1;

	for (int i = 0; i < PACKETS_PER_TURN && got > 0 && !r->protocol_broken; i++)
		got = hear(r, from, fd);
	return got < 0;
}

static void on_stage(struct sbx_run *r)
{
	if (hear(r, STAGE, r->stage.fd) < 0)
		r->stage.gone = true;
}

static void on_broker(struct sbx_run *r)
{
	if (hear_all(r, BROKER, r->broker.fd))
		r->broker.gone = true;
}

static void on_tls(struct sbx_run *r)
{
	if (hear_all(r, TLS, r->tls.fd))
		r->tls.gone = true;
}

/* Without the helper the secrets stay as they are, and nothing else depends on it. */
static void on_secret_helper(struct sbx_run *r)
{
	if (hear_all(r, SECRETS, r->secret_helper.fd))
		r->secret_helper.fd = sbx_fd_close(r->secret_helper.fd);
}

static void on_init(struct sbx_run *r)
{
	if (!hear_all(r, INIT, r->init.fd))
		return;
	/* After the release this is the exec: the channel is close-on-exec. */
	r->init.gone = true;
	r->init.fd = sbx_fd_close(r->init.fd);
}

/* Pid 1 ends with the sandbox: COMMAND_EXIT tells. */
static void on_pid1(struct sbx_run *r)
{
	if (hear_all(r, PID1, r->init.exec_fd))
		r->execs.fd = r->init.exec_fd = sbx_fd_close(r->init.exec_fd);
}

void sbx_supervise_execs_end(struct sbx_run *r)
{
	/* two messages for each command, at most */
	for (int i = 0; i <= 2 * SBX_EXECS_MAX / PACKETS_PER_TURN; i++)
		if (r->init.exec_fd >= 0 && r->execs.v && !r->protocol_broken)
			on_pid1(r);
	sbx_execs_end(&r->execs);
}

/* The channels of stage, broker and sbx-tls show their end, and their undo reaps them. The cleanup
 * process has no channel. Without it a killed launcher would leave files behind, so the sandbox
 * ends with it. */
static void on_child(struct sbx_run *r)
{
	int status;

	if (r->cleanup.pid > 0 && waitpid(r->cleanup.pid, &status, WNOHANG) == r->cleanup.pid) {
		r->cleanup.pid = 0;
		r->cleanup.gone = true;
	}
}

static void on_signal(struct sbx_run *r)
{
	struct signalfd_siginfo si;

	while (read(r->signal_fd, &si, sizeof(si)) == sizeof(si)) {
		if (si.ssi_signo == SIGCHLD) {
			on_child(r);
			continue;
		}
		if (!r->released) {
			r->interrupted = (int)si.ssi_signo;
			continue;
		}
		sbx_stage_send(&r->stage, is_command_gone(r) ? SBX_MSG_SIGNAL_ALL : SBX_MSG_SIGNAL,
			       si.ssi_signo, NULL, 0);
	}
}

static void on_wall_clock(struct sbx_run *r)
{
	uint64_t n;

	if (read(r->wall_fd, &n, sizeof(n)) != sizeof(n))
		return;
	r->wall_expired = true;
	sbx_supervise_forward(r, SIGTERM);
	r->kill_at_us = sbx_clock_monotonic_us() + WALL_GRACE_US;
}

/* The host's rulesets changed. */
static void on_rulesets(struct sbx_run *r)
{
	sbx_attach_run_check(&r->attach, &r->cgroup);
}

/* Called before the release. If init said hello, the stage runs and will send the reason, so wait
 * for that. */
static bool init_ended(const struct sbx_run *r)
{
	return r->command_exited || (r->init.gone && !r->init.hello);
}

/* 0: not yet; 1: came; -1: will never come. */
static int answer(const struct sbx_run *r, enum sbx_wait what)
{
	if (what == SBX_WAIT_BROKER)
		return r->broker.stopped ? 1 : r->broker.gone || r->protocol_broken ? -1 : 0;
	if (what == SBX_WAIT_COMMAND && r->command_exited)
		return 1;
	if (r->protocol_broken || r->stage.gone || (r->interrupted && !r->released))
		return -1;
	if (r->live.broken || r->broker.gone || r->tls.gone || r->cleanup.gone ||
	    r->attach.changed || r->protect.planted.msg[0] || r->protect.helper_gone)
		return -1;
	switch (what) {
	case SBX_WAIT_TLS:
		return r->tls.ready;
	case SBX_WAIT_STAGE:
		return r->stage.ready;
	case SBX_WAIT_SELFTEST:
		if (init_ended(r))
			return -1;
		return r->init.has_verdicts && r->init.hello && r->broker.ready &&
		       r->stage.mounts_checked;
	case SBX_WAIT_RELEASE:
		if (r->command_exited || r->init.gone)
			return -1;
		return r->broker.released;
	default:
		return 0;
	}
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a && (!b || a < b) ? a : b;
}

static int poll_timeout(const struct sbx_run *r, uint64_t deadline_us)
{
	uint64_t at = earlier(earlier(deadline_us, r->recorder.tidy_at_us),
			      earlier(r->recorder.flush_at_us, r->kill_at_us));
	uint64_t now = sbx_clock_monotonic_us();

	at = earlier(at, r->protect.watch_at_us);
	at = earlier(at, sbx_watches_next_us(&r->watches));
	if (!at)
		return -1;
	return at <= now ? 0 : (int)((at - now) / 1000 + 1);
}

static int turn(struct sbx_run *r, uint64_t deadline_us)
{
	struct pollfd p[N_FIXED + SBX_GRANTS_MAX + SBX_WATCHES_MAX] = {
		{ .fd = r->stage.gone ? -1 : r->stage.fd, .events = POLLIN },
		{ .fd = r->init.fd, .events = POLLIN },
		{ .fd = r->signal_fd, .events = POLLIN },
		{ .fd = r->wall_fd, .events = POLLIN },
		{ .fd = r->attach.watch_fd, .events = POLLIN },
		{ .fd = r->tls.gone ? -1 : r->tls.fd, .events = POLLIN },
		{ .fd = r->secret_helper.fd, .events = POLLIN },
		{ .fd = r->init.exec_fd, .events = POLLIN },
		{ .fd = r->broker.gone ? -1 : r->broker.fd, .events = POLLIN },
	};
	/* The broker last, so that all its events are written. */
	void (*const handlers[])(struct sbx_run *) = { on_stage,    on_init,	       on_signal,
						       on_wall_clock, on_rulesets,     on_tls,
						       on_secret_helper, on_pid1, on_broker };
	size_t n_own = N_FIXED + r->protect.n, n_watches;
	uint64_t now;

	_Static_assert(SBX_N_ELEMENTS(handlers) == N_FIXED, "a handler for each");
	for (size_t i = 0; i < r->protect.n; i++)
		p[N_FIXED + i] =
			(struct pollfd){ .fd = r->protect.v[i].gone ? -1 : r->protect.v[i].fd,
					 .events = POLLIN };
	n_watches = sbx_watches_fill(&r->watches, p + n_own);
	if (poll(p, n_own + n_watches, poll_timeout(r, deadline_us)) < 0)
		return errno == EINTR ? 0 : -errno;
	for (size_t i = 0; i < N_FIXED; i++)
		if (p[i].revents)
			handlers[i](r);
	for (size_t i = 0; i < r->protect.n; i++)
		if (p[N_FIXED + i].revents)
			sbx_protect_helpers_hear(&r->protect, i);
	now = sbx_clock_monotonic_us();
	sbx_watches_act(&r->watches, p + n_own, n_watches, now);
	if (r->execs.broken)
		broken(r, PID1);
	if (r->recorder.flush_at_us && r->recorder.flush_at_us <= now)
		sbx_record_flush(&r->recorder);
	if (r->recorder.tidy_at_us && r->recorder.tidy_at_us <= now)
		sbx_record_tidy(&r->recorder);
	if (r->protect.watch_at_us && r->protect.watch_at_us <= now)
		sbx_protect_helpers_watch(&r->protect, r->runtime.fd, &r->err);
	if (r->kill_at_us && r->kill_at_us <= now) {
		sbx_stage_kill(&r->stage);
		r->kill_at_us = 0;
	}
	return 0;
}

int sbx_supervise(struct sbx_run *r, enum sbx_wait what, uint32_t timeout_ms)
{
	uint64_t deadline_us = timeout_ms ? sbx_clock_monotonic_us() + timeout_ms * 1000ull : 0;
	int a, error;

	for (;;) {
		a = answer(r, what);
		if (a)
			return a > 0 ? 0 : 1;
		if (deadline_us && sbx_clock_monotonic_us() >= deadline_us)
			return -ETIMEDOUT;
		error = turn(r, deadline_us);
		if (error < 0)
			return error;
	}
}

int sbx_supervise_signals(struct sbx_run *r)
{
	sigset_t set;

	sbx_signals_forwarded(&set);
	sigaddset(&set, SIGCHLD);
	/* a write to a helper that died is an error here; init resets it */
	signal(SIGPIPE, SIG_IGN);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return -errno;
	r->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return r->signal_fd < 0 ? -errno : 0;
}

int sbx_supervise_wall_clock(struct sbx_run *r)
{
	r->released_us = sbx_clock_monotonic_us();
	if (r->plan->profile->limits.wall_time_ms == 0)
		return 0;
	return sbx_supervise_wall_clock_set(r, r->plan->profile->limits.wall_time_ms);
}

int sbx_supervise_wall_clock_set(struct sbx_run *r, uint64_t ms)
{
	struct itimerspec its = { .it_value = { (time_t)(ms / 1000),
						(long)(ms % 1000) * 1000000 } };

	r->wall_ms = (sbx_clock_monotonic_us() - r->released_us) / 1000 + ms;
	if (r->wall_fd < 0)
		r->wall_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (r->wall_fd < 0 || timerfd_settime(r->wall_fd, 0, &its, NULL) < 0)
		return -errno;
	return 0;
}
