/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The socket factory (see factory.h).
 *
 * Two senders, with channels of their own: the launcher, which is trusted, and the broker, which is
 * not. Rulesets, ports and signals come from the launcher's alone. The broker gets at most sockets.
 *
 * Signals: the launcher, this process and the command share a process group. A signal from the
 * terminal or to the group reaches the command directly; a signal to the launcher alone must be
 * forwarded. The launcher cannot tell the two apart. The factory can: a signal to the group is
 * pending here too, because all signals are blocked. The launcher asks by SIGNAL. If no such signal
 * is pending here, the factory answers SIGNAL, and only then does the launcher forward it. So the
 * command gets each signal once. With --wait-all other processes may be left when the command has
 * ended: SIGNAL_ALL is for all of them, whatever their group is.
 */
#include "launcher/stage/factory.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "ipc/channel.h"
#include "ipc/messages.h"
#include "launcher/process/signals.h"
#include "sys/net/net.h"
#include "sys/nft/nft.h"
#include "sys/process/proc.h"
#include "sys/seccomp/seccomp.h"

/* A ruleset with all its networks. */
#define RULESET_PACKET_MAX (64 + SBX_MSG_NETS_MAX * 32)

struct factory {
	int launcher, broker, signals;
	int ruleset; /* nfnetlink; -1: the ruleset does not change */
	pid_t child;
	bool own_group;      /* the command's: it has no terminal (init.c) */
	uint64_t end_at_us;  /* monotonic: the sandbox ends then; 0: no limit */
	uint16_t ports[SBX_PUBLISH_MAX]; /* published, inside */
	size_t n_ports;
	uint32_t seen[65]; /* signals to the group that are not yet accounted for, by number */
};

/* Was the message sent? */
static bool say(int fd, enum sbx_msg_type type, uint32_t value, const int *pass)
{
	uint8_t packet[64];
	ssize_t n = sbx_msg_encode_simple(type, value, packet, sizeof(packet));

	return n > 0 && sbx_channel_send(fd, packet, (size_t)n, pass, pass ? 1 : 0) == 0;
}

static void reap(struct factory *f)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		if (pid == f->child) {
			f->child = 0;
			say(f->launcher, SBX_MSG_COMMAND_EXIT, (uint32_t)status, NULL);
		}
}

static void drain_signals(struct factory *f)
{
	struct signalfd_siginfo si;

	while (read(f->signals, &si, sizeof(si)) == sizeof(si)) {
		if (si.ssi_signo == SIGCHLD)
			reap(f);
		else if (si.ssi_signo < SBX_N_ELEMENTS(f->seen))
			f->seen[si.ssi_signo]++;
	}
}

/* Signal every process in this pid namespace but this one. bwrap and pid 1 of the inner namespace
 * block these signals. SIGSTOP and SIGCONT freeze the sandbox and thaw it. */
static void signal_all(uint32_t sig)
{
	sigset_t set;

	sbx_signals_forwarded(&set);
	sigaddset(&set, SIGSTOP);
	sigaddset(&set, SIGCONT);
	if (sig < _NSIG && sigismember(&set, (int)sig) == 1)
		kill(-1, (int)sig);
}

/* --- the ruleset --- */

static void nft_input(const struct sbx_msg_ruleset *m, struct sbx_nft_cidr cidrs[SBX_MSG_NETS_MAX],
		      struct sbx_nft_input *ret_in)
{
	*ret_in = (struct sbx_nft_input){
		.tcp_port4 = m->tcp_port4,
		.tcp_port6 = m->tcp_port6,
		.udp_port4 = m->udp_port4,
		.udp_port6 = m->udp_port6,
		.all_destinations = m->all_destinations,
		.udp = m->udp,
		.dns = m->dns,
		.shut = m->shut,
		.nflog_group = m->nflog_group,
		.n_cidrs = m->n_nets,
		.cidrs = cidrs,
	};
	for (uint32_t i = 0; i < m->n_nets; i++)
		cidrs[i] = (struct sbx_nft_cidr){
			.cidr = { m->v[i].addr, m->v[i].prefix },
			.port_first = m->v[i].port_first,
			.port_last = m->v[i].port_last,
			.proto = (enum sbx_proto)m->v[i].proto,
		};
}

/* Puts the launcher's ruleset in the place of the one that the namespace has, and answers. */
static void replace_ruleset(struct factory *f, const struct sbx_msg_ruleset *m)
{
	static struct sbx_nft_cidr cidrs[SBX_MSG_NETS_MAX];
	static uint8_t packet[1024];
	struct sbx_msg_ruleset_done done = { 0 };
	struct sbx_nft_ruleset *rs = NULL;
	struct sbx_err err = { 0 };
	struct sbx_nft_input in;
	bool taken = false;
	ssize_t n;
	int r;

	nft_input(m, cidrs, &in);
	r = f->ruleset < 0 ? -EBADF : sbx_nft_ruleset_new(&in, &rs);
	if (r == 0)
		r = sbx_nft_ruleset_replace(rs, f->ruleset, &taken, &err);
	sbx_nft_ruleset_free(rs);
	sbx_err_set(&err, "the ruleset cannot be changed: %s", strerror(-r));
	if (r < 0) {
		done.error = (uint32_t)-r;
		done.taken = taken;
		sbx_text_cut(done.detail, sizeof(done.detail), "%s", err.msg);
	}
	n = sbx_msg_encode_ruleset_done(&done, packet, sizeof(packet));
	if (n < 0 || sbx_channel_send(f->launcher, packet, (size_t)n, NULL, 0) != 0)
		_exit(125);
}

/* --- messages --- */

static void admit(struct factory *f, uint32_t port)
{
	if (port == 0 || port > UINT16_MAX || f->n_ports == SBX_N_ELEMENTS(f->ports))
		_exit(0);
	f->ports[f->n_ports++] = (uint16_t)port;
}

/* Reads one message of the launcher. Was there one? */
static bool hear_launcher(struct factory *f)
{
	static struct sbx_msg_ruleset ruleset;
	static uint8_t packet[RULESET_PACKET_MAX];
	uint32_t sig, port, seconds;
	size_t n;
	int r;

	r = sbx_channel_recv(f->launcher, packet, sizeof(packet), &n, NULL, 0, NULL, NULL);
	if (r == SBX_CHANNEL_E_AGAIN || r == -EINTR)
		return false;
	if (r != 0)
		_exit(0);
	if (sbx_msg_type(sbx_span(packet, n)) == SBX_MSG_RULESET) {
		if (sbx_msg_decode_ruleset(sbx_span(packet, n), &ruleset) != 0)
			_exit(0);
		replace_ruleset(f, &ruleset);
		return true;
	}
	if (sbx_msg_decode_simple(sbx_span(packet, n), SBX_MSG_PUBLISH, &port) == 0) {
		admit(f, port);
		return true;
	}
	if (sbx_msg_decode_simple(sbx_span(packet, n), SBX_MSG_WALL_TIME, &seconds) == 0) {
		f->end_at_us = sbx_clock_monotonic_us() + seconds * UINT64_C(1000000);
		return true;
	}
	if (sbx_msg_decode_simple(sbx_span(packet, n), SBX_MSG_SIGNAL_ALL, &sig) == 0) {
		signal_all(sig);
		return true;
	}
	if (sbx_msg_decode_simple(sbx_span(packet, n), SBX_MSG_SIGNAL, &sig) != 0)
		_exit(0);
	drain_signals(f);
	if (!f->own_group && sig < SBX_N_ELEMENTS(f->seen) && f->seen[sig] > 0)
		f->seen[sig]--;
	else
		say(f->launcher, SBX_MSG_SIGNAL, sig, NULL);
	return true;
}

static void on_launcher(struct factory *f)
{
	while (hear_launcher(f))
		;
}

static bool is_published(const struct factory *f, uint16_t port)
{
	for (size_t i = 0; i < f->n_ports; i++)
		if (f->ports[i] == port)
			return true;
	return false;
}

/* Answer with one socket, or with a refusal with the same cookie. */
static void answer(struct factory *f, int fd, enum sbx_msg_type made, enum sbx_msg_type failed,
		   uint32_t cookie)
{
	if (fd < 0 || !say(f->broker, made, cookie, &fd)) /* perhaps too many fds are on the way */
		say(f->broker, failed, cookie, NULL);
	sbx_fd_close(fd);
}

/* Serve one request. The broker is not trusted: it gets at most a socket of this namespace, where
 * only the sandbox is. */
static void on_broker(struct factory *f)
{
	struct sbx_msg_udp_socket udp;
	struct sbx_msg_tcp_socket tcp;
	uint8_t packet[256];
	size_t n;
	int r;

	r = sbx_channel_recv(f->broker, packet, sizeof(packet), &n, NULL, 0, NULL, NULL);
	if (r == SBX_CHANNEL_E_AGAIN || r == -EINTR)
		return;
	if (r == 0 && sbx_msg_decode_udp_socket(sbx_span(packet, n), &udp) == 0)
		answer(f,
		       sbx_net_udp_flow_open(&udp.local, udp.local_port, &udp.peer, udp.peer_port),
		       SBX_MSG_UDP_SOCKET_MADE, SBX_MSG_UDP_SOCKET_FAILED, udp.cookie);
	else if (r == 0 && sbx_msg_decode_tcp_socket(sbx_span(packet, n), &tcp) == 0 &&
		 is_published(f, tcp.port))
		answer(f, sbx_net_tcp_inside_open(tcp.family, tcp.port), SBX_MSG_TCP_SOCKET_MADE,
		       SBX_MSG_TCP_SOCKET_FAILED, tcp.cookie);
	else
		f->broker = sbx_fd_close(f->broker); /* gone or broken: the launcher sees its end */
}

/* Drop everything that only the setup needed: stdio (the caller may wait for the end of a pipe),
 * fds, privileges. */
static int shed(struct factory *f)
{
	int fds[7] = { 0, 1, 2, f->launcher, f->signals };
	const int numbers[] = { 0, 1, 2, 3, 4, 5, 6 };
	uint64_t caps = 1ull << CAP_NET_RAW | 1ull << CAP_NET_BIND_SERVICE;
	size_t n = 5;
	int null_fd, r;

	null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null_fd < 0)
		return -errno;
	for (int i = 0; i < 3; i++)
		if (dup2(null_fd, i) < 0)
			return -errno;
	if (f->broker >= 0) {
		fds[n] = f->broker;
		f->broker = (int)n++;
	}
	if (f->ruleset >= 0) {
		fds[n] = f->ruleset;
		f->ruleset = (int)n++;
		caps |= 1ull << CAP_NET_ADMIN;
	}
	r = sbx_proc_arrange_fds(fds, numbers, n);
	if (r < 0)
		return r;
	f->launcher = 3;
	f->signals = 4;
	prctl(PR_SET_DUMPABLE, 0);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	return sbx_caps_keep(caps);
}

/* The time to the end in ms, for poll(). The launcher keeps the wall time, but a command that
 * shares its process group can stop the launcher, and must still end. */
static int time_left(const struct factory *f)
{
	uint64_t now = sbx_clock_monotonic_us();

	if (!f->end_at_us)
		return -1;
	if (now >= f->end_at_us)
		_exit(125);
	now = (f->end_at_us - now) / 1000 + 1;
	return now < INT_MAX ? (int)now : INT_MAX;
}

static bool has_terminal(void)
{
	SBX_AUTO_CLOSE int tty = open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC);

	return tty >= 0;
}

_Noreturn void sbx_factory_main(int launcher, int broker, int ruleset, pid_t child,
				const struct sbx_stage_config *config, uint64_t limit_ms)
{
	struct factory f = { .launcher = launcher,
			     .broker = broker,
			     .ruleset = ruleset,
			     .child = child,
			     .signals = -1 };
	/* A port may be published later. Without a broker no socket is made. */
	enum sbx_seccomp_profile filter =
		broker >= 0 ? SBX_SECCOMP_FACTORY_TCP : SBX_SECCOMP_FACTORY;
	struct sbx_err err = { 0 };
	sigset_t set;

	for (size_t i = 0; i < config->n_publish; i++)
		admit(&f, config->publish[i]);
	f.own_group = !has_terminal();
	if (limit_ms)
		f.end_at_us = sbx_clock_monotonic_us() + limit_ms * 1000;

	sbx_signals_forwarded(&set);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	f.signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (f.signals < 0 || sbx_fd_set_nonblocking(launcher) < 0 ||
	    (broker >= 0 && sbx_fd_set_nonblocking(broker) < 0) || shed(&f) < 0 ||
	    sbx_seccomp_install(filter, &err) < 0)
		_exit(125);
	for (;;) {
		struct pollfd p[] = {
			{ .fd = f.signals, .events = POLLIN },
			{ .fd = f.launcher, .events = POLLIN },
			{ .fd = f.broker, .events = POLLIN }, /* negative: ignored */
		};

		if (poll(p, SBX_N_ELEMENTS(p), time_left(&f)) < 0 && errno != EINTR)
			_exit(125);
		if (p[0].revents)
			drain_signals(&f);
		/* First: a port that the broker asks for was admitted before the broker knew it. */
		if (p[1].revents || p[2].revents)
			on_launcher(&f);
		if (p[2].revents)
			on_broker(&f);
	}
}
