/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The launcher's loop. It only takes in what happened (flags and numbers in struct sbx_run); the steps
 * draw the conclusions.
 *
 * Trust: the stage is a fork of ours. The broker parses hostile bytes and init runs where the command
 * will: their packets are decoded strictly, a wrong one (type, size, order, value) sets
 * protocol_broken and the sandbox ends. Packets are read a bounded number at a time, so that no peer
 * starves the others.
 */
#include "launcher/run/supervise.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
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
#include "launcher/rootfs/overlay.h"
#include "launcher/run/attach.h"
#include "launcher/stage/stage.h"
#include "sys/process/proc.h"

#define PACKETS_PER_TURN 64
#define N_FIXED 6 /* descriptors of a turn, besides those of caretakers */
#define WALL_GRACE_US 2000000 /* between SIGTERM and SIGKILL at the wall time */

/* The one packet at hand; on a stack it would be 16 pages to fault in, and to clear, per call. */
static uint8_t packet[SBX_MSG_MAX];

static void broken(struct sbx_run *r, const char *who)
{
	r->protocol_broken = true;
	sbx_err_set(&r->err, "%s broke its protocol; the sandbox was ended", who);
}

/* One packet from @fd into packet. 1: got it; 0: nothing now; -1: the peer is gone. */
static int take(struct sbx_run *r, int fd, size_t *ret_n, int *fds, size_t fds_max, size_t *ret_n_fds,
		pid_t *ret_pid, const char *who)
{
	int e = sbx_channel_recv(fd, packet, sizeof(packet), ret_n, fds, fds_max, ret_n_fds, ret_pid);

	if (e == 0)
		return 1;
	if (e == SBX_CHANNEL_E_AGAIN || e == -EINTR)
		return 0;
	if (e == SBX_CHANNEL_E_BROKEN || e == SBX_CHANNEL_E_NO_FDS)
		broken(r, who);
	return -1;
}

static void on_stage_ready(struct sbx_run *r, struct sbx_span span, const int *fds, size_t n_fds)
{
	uint32_t mask;
	size_t used = 0;

	if (r->stage_ready || sbx_msg_decode_simple(span, SBX_MSG_STAGE_READY, &mask) != 0 ||
	    (size_t)__builtin_popcount(mask) != n_fds || mask >> SBX_BFD_PUBLISH) {
		for (size_t i = 0; i < n_fds; i++)
			sbx_fd_close(fds[i]);
		broken(r, "the stage");
		return;
	}
	for (size_t i = 0; i < SBX_N_BROKER_FDS; i++)
		if (mask & (1u << i))
			r->sandbox_fds[i] = fds[used++];
	r->stage_ready = true;
}

/* Once, and only where it was asked for. */
static void on_stage_upper(struct sbx_run *r, struct sbx_span span, int *fds, size_t n_fds)
{
	int *place = r->plan->keep.path ? &r->upper_fd : r->options->scratch ? &r->scratch_fd : NULL;
	uint32_t zero;

	if (n_fds == 1 && place && *place < 0 && sbx_msg_decode_simple(span, SBX_MSG_STAGE_UPPER, &zero) == 0) {
		*place = fds[0];
		r->scratch_files = r->scratch_fd < 0 ? 0 : sbx_scratch_files(r->scratch_fd);
		return;
	}
	for (size_t i = 0; i < n_fds; i++)
		sbx_fd_close(fds[i]);
	broken(r, "the stage");
}

static void tell_stage_with(struct sbx_run *r, enum sbx_msg_type type, uint32_t value, const int *fds, size_t n_fds)
{
	uint8_t out[64];
	ssize_t n = sbx_msg_encode_simple(type, value, out, sizeof(out));

	if (n > 0)
		sbx_channel_send(r->stage_fd, out, (size_t)n, fds, n_fds);
}

static void tell_stage(struct sbx_run *r, enum sbx_msg_type type, uint32_t sig)
{
	tell_stage_with(r, type, sig, NULL, 0);
}

/* With --wait-all: the command was reaped, and others may be left. */
static bool is_command_gone(const struct sbx_run *r)
{
	return r->options->wait_all && r->init_pidfd >= 0 &&
	       syscall(SYS_pidfd_send_signal, r->init_pidfd, 0, NULL, 0) < 0 && errno == ESRCH;
}

/* The stage saw no such signal of its own: it was meant for us alone, so the command must get it; or those that
 * it left behind and that we wait for. */
static void forward(struct sbx_run *r, uint32_t sig)
{
	if (is_command_gone(r))
		tell_stage(r, SBX_MSG_SIGNAL_ALL, sig);
	else if (r->init_pidfd >= 0)
		syscall(SYS_pidfd_send_signal, r->init_pidfd, (int)sig, NULL, 0);
}

static void on_stage(struct sbx_run *r)
{
	int fds[SBX_N_BROKER_FDS];
	struct sbx_span span;
	size_t n, n_fds;
	uint32_t value;
	int got;

	got = take(r, r->stage_fd, &n, fds, SBX_N_BROKER_FDS, &n_fds, NULL, "the stage");
	if (got < 0)
		r->stage_gone = true;
	if (got <= 0)
		return;
	span = sbx_span(packet, n);
	switch (sbx_msg_type(span)) {
	case SBX_MSG_STAGE_READY:
		on_stage_ready(r, span, fds, n_fds);
		return;
	case SBX_MSG_STAGE_UPPER:
		on_stage_upper(r, span, fds, n_fds);
		return;
	case SBX_MSG_STAGE_FAILED:
		if (sbx_msg_decode_stage_failed(span, &r->stage_failed) != 0)
			break;
		r->stage_gone = true;
		return;
	case SBX_MSG_SIGNAL:
		if (sbx_msg_decode_simple(span, SBX_MSG_SIGNAL, &value) != 0)
			break;
		forward(r, value);
		return;
	case SBX_MSG_MOUNTS_CHECKED:
		if (r->mounts_checked || !r->init_hello || sbx_msg_decode_simple(span, SBX_MSG_MOUNTS_CHECKED, &value) != 0 ||
		    value > r->plan->view.n_mounts)
			break;
		r->mounts_checked = true;
		r->open_mount = value;
		return;
	case SBX_MSG_COMMAND_EXIT:
		if (sbx_msg_decode_simple(span, SBX_MSG_COMMAND_EXIT, &value) != 0)
			break;
		r->command_exited = true;
		r->wait_status = (int)value;
		return;
	default:
		break;
	}
	broken(r, "the stage");
}

static void on_broker_packet(struct sbx_run *r, struct sbx_span span)
{
	static struct sbx_msg_pins pins; /* large */
	struct sbx_event event;
	uint32_t zero;

	switch (sbx_msg_type(span)) {
	case SBX_MSG_READY:
		if (r->broker.ready || sbx_msg_decode_simple(span, SBX_MSG_READY, &zero) != 0)
			break;
		r->broker.ready = true;
		return;
	case SBX_MSG_RELEASE:
		if (!r->has_verdicts || r->broker.released ||
		    sbx_msg_decode_simple(span, SBX_MSG_RELEASE, &zero) != 0)
			break;
		r->broker.released = true;
		return;
	case SBX_MSG_EVENT:
		if (sbx_msg_decode_event(span, &event) != 0)
			break;
		sbx_record_event(r, &event);
		return;
	case SBX_MSG_PINS:
		if (!r->plan->attach.on || sbx_msg_decode_pins(span, &pins) != 0)
			break;
		if (sbx_attach_run_pins(&r->attach, r->plan->id, &pins, r->broker.fd) < 0)
			r->broker.gone = true;
		return;
	case SBX_MSG_STATS:
		if (sbx_msg_decode_stats(span, &r->broker.stats) != 0)
			break;
		r->broker.stopped = true;
		return;
	default:
		break;
	}
	broken(r, "the broker");
}

static void on_broker(struct sbx_run *r)
{
	size_t n;

	for (int i = 0; i < PACKETS_PER_TURN && !r->protocol_broken; i++) {
		int got = take(r, r->broker.fd, &n, NULL, 0, NULL, NULL, "the broker");

		if (got < 0)
			r->broker.gone = true;
		if (got <= 0)
			return;
		on_broker_packet(r, sbx_span(packet, n));
	}
}

static void on_hello(struct sbx_run *r, pid_t pid)
{
	SBX_AUTO_CLOSE int fd = (int)syscall(SYS_pidfd_open, pid, 0);

	r->init_hello = true;
	r->pid1 = pid;
	/* Without a pidfd the stage says what is wrong. */
	tell_stage_with(r, SBX_MSG_CHECK_MOUNTS, 0, &fd, fd >= 0);
}

/* All of them, once. */
static int on_verdicts(struct sbx_run *r, struct sbx_span span, pid_t pid)
{
	if (r->has_verdicts || !r->init_hello || pid <= 0 || sbx_msg_decode_verdicts(span, &r->verdicts) != 0)
		return -1;
	if (r->verdicts.n_verdicts != r->plan->probes->n_probes) {
		memset(&r->verdicts, 0, sizeof(r->verdicts));
		return -1;
	}
	r->has_verdicts = true;
	r->init_pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	r->watch_error = r->init_pidfd < 0 ? -errno : 0;
	if (r->watch_error == -ESRCH)
		r->watch_error = 0; /* it ended: why is still to come */
	return 0;
}

static void on_init_packet(struct sbx_run *r, struct sbx_span span, pid_t pid)
{
	uint32_t zero;

	switch (sbx_msg_type(span)) {
	case SBX_MSG_INIT_HELLO:
		if (r->init_hello || pid <= 0 || sbx_msg_decode_simple(span, SBX_MSG_INIT_HELLO, &zero) != 0)
			break;
		on_hello(r, pid);
		return;
	case SBX_MSG_VERDICTS:
		if (on_verdicts(r, span, pid) < 0)
			break;
		return;
	case SBX_MSG_EXEC_FAILED:
		if (!r->released || sbx_msg_decode_exec_failed(span, &r->exec_error) != 0)
			break;
		r->exec_failed = true;
		return;
	default:
		break;
	}
	broken(r, "the sandbox's init");
}

static void on_init(struct sbx_run *r)
{
	size_t n;
	pid_t pid;

	for (int i = 0; i < PACKETS_PER_TURN && !r->protocol_broken; i++) {
		int got = take(r, r->init_fd, &n, NULL, 0, NULL, &pid, "the sandbox's init");

		if (got < 0) {
			/* After the release this is the exec: the channel is close-on-exec. */
			r->init_gone = true;
			r->init_fd = sbx_fd_close(r->init_fd);
		}
		if (got <= 0)
			return;
		on_init_packet(r, sbx_span(packet, n), pid);
	}
}

/* Stage and broker tell by their channels, and their undo reaps them. The guard has none: without it a
 * killed launcher would leave things behind, so the sandbox ends with it. */
static void on_child(struct sbx_run *r)
{
	int status;

	if (r->guard_pid > 0 && waitpid(r->guard_pid, &status, WNOHANG) == r->guard_pid) {
		r->guard_pid = 0;
		r->guard_gone = true;
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
		tell_stage(r, is_command_gone(r) ? SBX_MSG_SIGNAL_ALL : SBX_MSG_SIGNAL, si.ssi_signo);
	}
}

static void on_wall_clock(struct sbx_run *r)
{
	uint64_t n;

	if (read(r->wall_fd, &n, sizeof(n)) != sizeof(n))
		return;
	r->wall_expired = true;
	forward(r, SIGTERM);
	r->kill_at_us = sbx_clock_monotonic_us() + WALL_GRACE_US;
}

/* The host's rulesets changed. */
static void on_rulesets(struct sbx_run *r)
{
	sbx_attach_run_check(&r->attach, &r->cgroup);
}

/* Before the release. When it said hello, the stage is there and says why it ended: that is waited for. */
static bool init_ended(const struct sbx_run *r)
{
	return r->command_exited || (r->init_gone && !r->init_hello);
}

/* 0: not yet; 1: came; -1: will never come. */
static int answer(const struct sbx_run *r, enum sbx_wait what)
{
	if (what == SBX_WAIT_BROKER)
		return r->broker.stopped ? 1 : r->broker.gone || r->protocol_broken ? -1 : 0;
	if (what == SBX_WAIT_COMMAND && r->command_exited)
		return 1;
	if (r->protocol_broken || r->stage_gone || (r->interrupted && !r->released))
		return -1;
	if (r->broker.gone || r->guard_gone || r->attach.changed || r->planted.msg[0] || r->caretaker_gone)
		return -1;
	switch (what) {
	case SBX_WAIT_STAGE:
		return r->stage_ready;
	case SBX_WAIT_SELFTEST:
		if (init_ended(r))
			return -1;
		return r->has_verdicts && r->init_hello && r->broker.ready && r->mounts_checked;
	case SBX_WAIT_RELEASE:
		if (r->command_exited || r->init_gone)
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
	uint64_t at = earlier(earlier(deadline_us, r->tidy_at_us), earlier(r->flush_at_us, r->kill_at_us));
	uint64_t now = sbx_clock_monotonic_us();

	if (!at)
		return -1;
	return at <= now ? 0 : (int)((at - now) / 1000 + 1);
}

static int turn(struct sbx_run *r, uint64_t deadline_us)
{
	struct pollfd p[N_FIXED + SBX_GRANTS_MAX] = {
		{ .fd = r->stage_gone ? -1 : r->stage_fd, .events = POLLIN },
		{ .fd = r->init_fd, .events = POLLIN },
		{ .fd = r->signal_fd, .events = POLLIN },
		{ .fd = r->wall_fd, .events = POLLIN },
		{ .fd = r->attach.watch_fd, .events = POLLIN },
		{ .fd = r->broker.gone ? -1 : r->broker.fd, .events = POLLIN },
	};
	/* The broker last: what it tells is written. */
	void (*const handlers[])(struct sbx_run *) = { on_stage,      on_init,	  on_signal,		  on_wall_clock,
						       on_rulesets, on_broker };
	uint64_t now;

	_Static_assert(SBX_N_ELEMENTS(handlers) == N_FIXED, "a handler for each");
	for (size_t i = 0; i < r->n_caretakers; i++)
		p[N_FIXED + i] = (struct pollfd){ .fd = r->caretakers[i].gone ? -1 : r->caretakers[i].fd, .events = POLLIN };
	if (poll(p, N_FIXED + r->n_caretakers, poll_timeout(r, deadline_us)) < 0)
		return errno == EINTR ? 0 : -errno;
	for (size_t i = 0; i < N_FIXED; i++)
		if (p[i].revents)
			handlers[i](r);
	for (size_t i = 0; i < r->n_caretakers; i++)
		if (p[N_FIXED + i].revents)
			sbx_caretaker_hear(r, i);
	now = sbx_clock_monotonic_us();
	if (r->flush_at_us && r->flush_at_us <= now)
		sbx_record_flush(r);
	if (r->tidy_at_us && r->tidy_at_us <= now)
		sbx_record_tidy(r);
	if (r->kill_at_us && r->kill_at_us <= now) {
		sbx_stage_kill(r);
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
	signal(SIGPIPE, SIG_IGN); /* a write to a helper that died is an error here; init resets it */
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return -errno;
	r->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return r->signal_fd < 0 ? -errno : 0;
}

int sbx_supervise_wall_clock(struct sbx_run *r)
{
	uint64_t ms = r->plan->profile->limits.wall_time_ms;
	struct itimerspec its = { .it_value = { (time_t)(ms / 1000), (long)(ms % 1000) * 1000000 } };

	if (!ms)
		return 0;
	r->wall_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (r->wall_fd < 0 || timerfd_settime(r->wall_fd, 0, &its, NULL) < 0)
		return -errno;
	return 0;
}
