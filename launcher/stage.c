/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The stage: the process that owns the sandbox's namespaces.
 *
 * It is a fork of the launcher (no exec: the plan is already in memory) in a new user, network, pid and
 * mount namespace. In order: identity maps for one uid; a /proc for bwrap; bwrap itself, which waits for
 * the seccomp program and then builds the view while we build the network; lo, addresses and routes;
 * the ruleset; the broker's sockets, which go to the launcher; then it turns into the socket factory
 * (factory.c) until the command ends. Nothing of the command runs until the launcher says so to init.
 *
 * Invariants
 * - It is pid 1 of its namespace: when it ends, by whatever cause, the kernel kills bwrap, the command
 *   and all they started. PDEATHSIG ties it to the launcher, the channel's end of file does so again.
 * - Signals that a terminal or a group kill sends are blocked here and in bwrap (init restores the
 *   mask): only the command acts on them.
 * - It never runs as kernel uid 0. A privileged launcher forks twice: the first child becomes the
 *   sandbox's user and makes the namespaces as its sibling (CLONE_PARENT), so that one code path,
 *   the unprivileged one, serves everybody.
 * - It trusts the launcher and nothing else. What it reads from others (the broker's requests) is
 *   read after its rights are gone.
 */
#include "launcher/stage.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "ipc/channel.h"
#include "launcher/factory.h"
#include "sys/net.h"
#include "sys/proc.h"

/* What may pass between here and the release, and the wall time's grace (steps.c, supervise.c). */
#define SETUP_SLACK_MS 35000
#define STAGE_FLAGS (CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWPID | CLONE_NEWNS)

/* fds above this are ours; the child's table must end below it (see bwrap_argv.h). */
_Static_assert(SBX_N_BROKER_FDS <= SBX_CHANNEL_MAX_FDS, "the sandbox's sockets fit one packet");

static _Noreturn void stage_fail(int channel, int error, const char *step, const struct sbx_err *err)
{
	struct sbx_msg_stage_failed m = { .error = error < 0 ? (uint32_t)-error : 0 };
	uint8_t packet[1024];
	ssize_t n;

	snprintf(m.step, sizeof(m.step), "%s", step);
	snprintf(m.detail, sizeof(m.detail), "%.*s", (int)sizeof(m.detail) - 1, err->msg);
	n = sbx_msg_encode_stage_failed(&m, packet, sizeof(packet));
	if (n > 0)
		sbx_channel_send(channel, packet, (size_t)n, NULL, 0);
	_exit(125);
}

struct stage_sockets {
	int fds[SBX_N_BROKER_FDS];
	int factory; /* our end */
};

/* The listeners, in the order of enum sbx_listener, and where the broker expects them. */
static const struct {
	enum sbx_listener which;
	enum sbx_broker_fd slot;
	bool v6, carries, udp;
} listeners[] = {
	{ SBX_LISTEN_DNS_UDP4, SBX_BFD_DNS_UDP4, false, false, false },
	{ SBX_LISTEN_DNS_UDP6, SBX_BFD_DNS_UDP6, true, false, false },
	{ SBX_LISTEN_DNS_TCP4, SBX_BFD_DNS_TCP4, false, false, false },
	{ SBX_LISTEN_DNS_TCP6, SBX_BFD_DNS_TCP6, true, false, false },
	{ SBX_LISTEN_TCP4, SBX_BFD_TCP4, false, true, false },
	{ SBX_LISTEN_TCP6, SBX_BFD_TCP6, true, true, false },
	{ SBX_LISTEN_UDP4, SBX_BFD_UDP4, false, true, true },
	{ SBX_LISTEN_UDP6, SBX_BFD_UDP6, true, true, true },
};

static int open_listeners(const struct sbx_plan *plan, bool ipv6, struct stage_sockets *s,
			  struct sbx_nft_input *nft, struct sbx_err *err)
{
	bool carries = !plan->air_gap && plan->profile->network.mode != SBX_MODE_OFFLINE;

	for (size_t i = 0; i < SBX_N_ELEMENTS(listeners); i++) {
		uint16_t port = 0;
		int fd;

		if ((listeners[i].v6 && !ipv6) || (listeners[i].carries && !carries) ||
		    (listeners[i].udp && !nft->udp))
			continue;
		fd = sbx_net_listener_open(listeners[i].which, &port);
		if (fd < 0) {
			sbx_err_set(err, "cannot open the broker's socket %zu in the sandbox: %s", i,
				    strerror(-fd));
			return fd;
		}
		s->fds[listeners[i].slot] = fd;
	}
	sbx_stage_ports(s->fds, nft);
	return 0;
}

static int build_network(const struct sbx_plan *plan, struct stage_sockets *s, const char **ret_step,
			 struct sbx_err *err)
{
	struct sbx_nft_input nft = plan->nft;
	struct sbx_nft_ruleset *rs = NULL;
	SBX_AUTO_CLOSE int route_fd = -1, filter_fd = -1;
	int ipv6 = 0, r;

	*ret_step = "addresses";
	route_fd = sbx_net_netlink_open(NETLINK_ROUTE);
	if (route_fd < 0) {
		sbx_err_set(err, "cannot open rtnetlink: %s", strerror(-route_fd));
		return route_fd;
	}
	r = sbx_net_setup_loopback(route_fd, &ipv6, err);
	if (r < 0)
		return r;

	*ret_step = "listeners";
	r = open_listeners(plan, ipv6, s, &nft, err);
	if (r < 0)
		return r;

	*ret_step = "ruleset";
	filter_fd = sbx_net_netlink_open(NETLINK_NETFILTER);
	if (filter_fd < 0) {
		sbx_err_set(err, "this kernel has no nfnetlink (CONFIG_NETFILTER_NETLINK): %s",
			    strerror(-filter_fd));
		return filter_fd;
	}
	r = sbx_nft_ruleset_new(&nft, &rs);
	if (r < 0)
		return r;
	r = sbx_nft_ruleset_apply(rs, filter_fd, err);
	sbx_nft_ruleset_free(rs);
	if (r < 0)
		return r;

	*ret_step = "nflog";
	s->fds[SBX_BFD_NFLOG] = sbx_net_nflog_open(nft.nflog_group, 128);
	if (s->fds[SBX_BFD_NFLOG] < 0) {
		sbx_err_set(err, "cannot listen to refused packets (CONFIG_NETFILTER_NETLINK_LOG, "
			    "CONFIG_NFT_LOG): %s", strerror(-s->fds[SBX_BFD_NFLOG]));
		return s->fds[SBX_BFD_NFLOG];
	}
	return 0;
}

/* bwrap looks its child up in /proc, which must be that of our pid namespace. The mount is ours alone:
 * mounts of a new user namespace do not propagate back. */
static int mount_proc(struct sbx_err *err)
{
	if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) == 0)
		return 0;
	sbx_err_set(err, "cannot mount /proc for the sandbox's pid namespace: %s (inside a container, "
		    "parts of /proc must not be masked)", strerror(errno));
	return -errno;
}

/* STAGE_READY carries the sockets in slot order; its value says which slots. */
static int send_ready(int channel, struct stage_sockets *s)
{
	int fds[SBX_N_BROKER_FDS];
	uint32_t mask = 0;
	uint8_t packet[64];
	size_t n_fds = 0;
	ssize_t n;
	int r;

	for (uint32_t i = 0; i < SBX_N_BROKER_FDS; i++)
		if (s->fds[i] >= 0) {
			mask |= 1u << i;
			fds[n_fds++] = s->fds[i];
		}
	n = sbx_msg_encode_simple(SBX_MSG_STAGE_READY, mask, packet, sizeof(packet));
	if (n < 0)
		return (int)n;
	r = sbx_channel_send(channel, packet, (size_t)n, fds, n_fds);
	for (size_t i = 0; i < SBX_N_BROKER_FDS; i++)
		s->fds[i] = sbx_fd_close(s->fds[i]);
	return r > 0 ? -EPIPE : r;
}

/* bwrap's process until it is bwrap: arrange the declared fds, set the limits, exec. It shares our
 * memory (sbx_proc_spawn): nothing here may write to what is not its own. */
static void exec_bwrap(void *run)
{
	const struct sbx_run *r = run;
	const struct sbx_bwrap *b = r->bwrap;
	int fds[3 + SBX_BWRAP_FDS_MAX] = { 0, 1, 2 }, numbers[3 + SBX_BWRAP_FDS_MAX] = { 0, 1, 2 };
	uint32_t open_files = r->plan->profile->limits.open_files;
	/* 1 and not 0: a core_pattern that is a pipe, to a helper that runs as root outside, ignores 0
	 * (core(5)) and is kept off by 1 alone (fs/coredump.c). seccomp keeps the command from changing
	 * it. */
	struct rlimit core = { 1, 1 };
	static char *no_env[] = { NULL };

	for (size_t i = 0; i < b->n_fds; i++) {
		numbers[3 + i] = b->fds[i].number;
		switch (b->fds[i].kind) {
		case SBX_BWRAP_FD_SECCOMP:
			fds[3 + i] = r->seccomp_peer_fd;
			break;
		case SBX_BWRAP_FD_CTL:
			fds[3 + i] = r->init_peer_fd;
			break;
		case SBX_BWRAP_FD_EXE:
			fds[3 + i] = r->init_exe_fd;
			break;
		default:
			fds[3 + i] = b->fds[i].source;
			break;
		}
	}
	setrlimit(RLIMIT_CORE, &core);
	if (open_files) {
		struct rlimit files = { open_files, open_files }, had;

		if (getrlimit(RLIMIT_NOFILE, &had) == 0 && had.rlim_max < open_files)
			files.rlim_cur = files.rlim_max = had.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	if (sbx_proc_arrange_fds(fds, numbers, 3 + b->n_fds) == 0)
		execve(r->plan->facts->bwrap, b->argv, no_env);
	_exit(125);
}

static _Noreturn void stage_main(struct sbx_run *r, int channel)
{
	const struct sbx_facts *f = r->plan->facts;
	uint64_t wall_ms = r->plan->profile->limits.wall_time_ms;
	struct stage_sockets s;
	struct sbx_err err = { 0 };
	const char *step = "uid_map";
	pid_t child;
	int error;

	for (size_t i = 0; i < SBX_N_BROKER_FDS; i++)
		s.fds[i] = -1;
	/* The parent may be gone already: it is then not the one whose channel we hold, and the read
	 * below finds the end of file. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sbx_fd_close(r->guard_fd); /* or the guard would never see the launcher end */
	sbx_fd_close(r->runtime_fd);
	sbx_fd_close(r->stage_fd);
	sbx_fd_close(r->init_fd);
	sbx_fd_close(r->seccomp_fd); /* or bwrap would never see its end */

	/* Coming from root we are not dumpable, and /proc/self/uid_map is root's. Dumpable no longer than
	 * that takes: our memory and fds are the launcher's, and uid f->uid may have processes outside. */
	if (f->privileged)
		prctl(PR_SET_DUMPABLE, 1);
	error = sbx_userns_map_self(f->uid, f->gid, &err);
	if (f->privileged)
		prctl(PR_SET_DUMPABLE, 0);
	if (error == 0) {
		step = "proc";
		error = mount_proc(&err);
	}
	if (error < 0)
		stage_fail(channel, error, step, &err);
	child = sbx_proc_spawn(exec_bwrap, r);
	if (child < 0) {
		sbx_err_set(&err, "cannot fork: %s", strerror(-child));
		stage_fail(channel, child, "fork", &err);
	}
	error = build_network(r->plan, &s, &step, &err);
	if (error == 0) {
		step = "factory";
		error = sbx_channel_pair(&s.factory, &s.fds[SBX_BFD_FACTORY]);
	}
	if (error == 0)
		error = send_ready(channel, &s);
	if (error < 0) {
		sbx_err_set(&err, "%s", strerror(-error));
		stage_fail(channel, error, step, &err);
	}
	sbx_factory_main(channel, s.factory, child, wall_ms ? wall_ms + SETUP_SLACK_MS : 0);
}

/* The launcher's environment is root's and may hold what the sandbox's user must not read; the plan has
 * its own copy of what the command gets. Copy on write: the launcher keeps its own. */
static void wipe_environment(void)
{
	for (char **e = environ; e && *e; e++)
		explicit_bzero(*e, strlen(*e));
}

/* Privileged: become the sandbox's user first, then make the namespaces as the launcher's child. */
static _Noreturn void stage_as_user(struct sbx_run *r, int channel, int pid_pipe)
{
	struct sbx_err err = { 0 };
	pid_t pid;
	int error;

	wipe_environment();
	error = sbx_ids_drop(r->plan->facts->uid, r->plan->facts->gid);
	if (error < 0) {
		sbx_err_set(&err, "cannot become uid %u: %s", r->plan->facts->uid, strerror(-error));
		stage_fail(channel, error, "user", &err);
	}
	pid = sbx_proc_clone(STAGE_FLAGS | CLONE_PARENT, NULL, &err);
	if (pid == 0) {
		sbx_fd_close(pid_pipe);
		stage_main(r, channel);
	}
	if (pid < 0)
		stage_fail(channel, pid, "namespaces", &err);
	if (write(pid_pipe, &pid, sizeof(pid)) != sizeof(pid))
		kill(pid, SIGKILL);
	_exit(0);
}

static int start_as_user(struct sbx_run *r, int channel)
{
	SBX_AUTO_CLOSE int pipe_read = -1, pipe_write = -1;
	int fds[2], status;
	pid_t helper;
	ssize_t n;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	pipe_read = fds[0];
	pipe_write = fds[1];
	helper = fork();
	if (helper < 0)
		return -errno;
	if (helper == 0)
		stage_as_user(r, channel, pipe_write);
	pipe_write = sbx_fd_close(pipe_write);
	do {
		n = read(pipe_read, &r->stage_pid, sizeof(r->stage_pid));
	} while (n < 0 && errno == EINTR);
	if (n != sizeof(r->stage_pid))
		r->stage_pid = 0; /* it says why on the channel */
	while (waitpid(helper, &status, 0) < 0 && errno == EINTR)
		;
	return 0;
}

int sbx_stage_start(struct sbx_run *r)
{
	SBX_AUTO_CLOSE int ours = -1, theirs = -1;
	int error;

	error = sbx_channel_pair(&ours, &theirs);
	if (error < 0) {
		sbx_err_set(&r->err, "cannot make a socket pair: %s", strerror(-error));
		return error;
	}
	r->stage_fd = sbx_fd_steal(&ours);
	if (r->plan->facts->privileged) {
		error = start_as_user(r, theirs);
	} else {
		error = sbx_proc_clone(STAGE_FLAGS, NULL, &r->err);
		if (error == 0)
			stage_main(r, theirs);
		if (error > 0) {
			r->stage_pid = error;
			error = 0;
		}
	}
	if (error < 0)
		sbx_err_set(&r->err, "cannot start the stage: %s", strerror(-error));
	return error;
}

static uint16_t bound_port(int fd)
{
	struct sockaddr_storage sa;
	socklen_t n = sizeof(sa);
	struct sbx_addr addr;
	uint16_t port = 0;

	if (fd < 0 || getsockname(fd, (struct sockaddr *)&sa, &n) < 0 ||
	    sbx_addr_from_sockaddr((struct sockaddr *)&sa, n, &addr, &port) < 0)
		return 0;
	return port;
}

void sbx_stage_ports(const int fds[SBX_N_BROKER_FDS], struct sbx_nft_input *nft)
{
	nft->tcp_port4 = bound_port(fds[SBX_BFD_TCP4]);
	nft->tcp_port6 = bound_port(fds[SBX_BFD_TCP6]);
	nft->udp_port4 = bound_port(fds[SBX_BFD_UDP4]);
	nft->udp_port6 = bound_port(fds[SBX_BFD_UDP6]);
}

void sbx_stage_stop(struct sbx_run *r)
{
	if (r->stage_pid > 0)
		kill(r->stage_pid, SIGKILL); /* our child, not yet reaped: the pid is still its own */
	r->stage_fd = sbx_fd_close(r->stage_fd);
	for (size_t i = 0; i < SBX_N_BROKER_FDS; i++)
		r->sandbox_fds[i] = sbx_fd_close(r->sandbox_fds[i]);
}
