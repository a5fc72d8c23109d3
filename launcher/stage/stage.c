/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The stage: the process that owns the sandbox's namespaces.
 *
 * It is a fork of the launcher in a new user, network, pid and mount namespace, made before there is a
 * plan, so that what takes long and depends on nothing is done while the launcher plans: the namespaces;
 * identity maps for one uid; a /proc for bwrap; bwrap itself, which waits for its arguments; the root of
 * the view. Then it waits for its orders (orders.h). A launcher that refuses the plan ends it, and nothing
 * of it was ever visible outside. With the orders: the view (tree.c); bwrap's arguments; lo, addresses and routes; the
 * ruleset; the broker's sockets, which go to the launcher; then it turns into the socket factory
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
#include "launcher/stage/stage.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "ipc/channel.h"
#include "launcher/cleanup/runtime.h"
#include "launcher/helpers/protect_helper.h"
#include "launcher/protect/placeholders.h"
#include "launcher/run/attach.h"
#include "launcher/stage/factory.h"
#include "launcher/stage/tree.h"
#include "launcher/stage/tree_overmount.h"
#include "sys/net/net.h"
#include "sys/process/proc.h"

/* What may pass between here and the release, and the wall time's grace (steps.c, supervise.c). */
#define SETUP_SLACK_MS 35000
#define HELPER_TIMEOUT_MS 10000
/* The network namespace, which takes the kernel longest, the stage makes itself, beside the launcher. */
#define STAGE_FLAGS (CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS)

_Static_assert(SBX_N_BROKER_FDS <= SBX_CHANNEL_MAX_FDS, "the sandbox's sockets fit one packet");
_Static_assert(SBX_GRANTS_MAX <= SBX_CHANNEL_MAX_FDS, "all grants, if id-mapped, fit one packet");

static _Noreturn void stage_fail(int channel, int error, const char *step, const struct sbx_err *err)
{
	struct sbx_msg_stage_failed m = { .error = error < 0 ? (uint32_t)-error : 0 };
	uint8_t packet[1024];
	ssize_t n;

	sbx_text_cut(m.step, sizeof(m.step), "%s", step);
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

/* Mounts that the launcher made: only it has rights over the file systems. */
struct mapped {
	int fds[SBX_CHANNEL_MAX_FDS];
	size_t n;
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

static int open_listeners(const struct sbx_orders *o, bool ipv6, struct stage_sockets *s,
			  struct sbx_nft_input *nft, struct sbx_err *err)
{
	for (size_t i = 0; i < SBX_N_ELEMENTS(listeners); i++) {
		uint16_t port = 0;
		int fd;

		if ((listeners[i].v6 && !ipv6) || (listeners[i].carries && !o->carries) ||
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

static int setup_loopback(int *ret_ipv6, struct sbx_err *err)
{
	SBX_AUTO_CLOSE int fd = sbx_net_netlink_open(NETLINK_ROUTE);

	if (fd < 0) {
		sbx_err_set(err, "cannot open rtnetlink: %s", strerror(-fd));
		return fd;
	}
	return sbx_net_setup_loopback(fd, ret_ipv6, err);
}

static int load_ruleset(const struct sbx_nft_input *nft, struct sbx_err *err)
{
	struct sbx_nft_ruleset *rs = NULL;
	SBX_AUTO_CLOSE int fd = sbx_net_netlink_open(NETLINK_NETFILTER);
	int r;

	if (fd < 0) {
		sbx_err_set(err, "this kernel has no nfnetlink (CONFIG_NETFILTER_NETLINK): %s",
			    strerror(-fd));
		return fd;
	}
	r = sbx_nft_ruleset_new(nft, &rs);
	if (r < 0)
		return r;
	r = sbx_nft_ruleset_apply(rs, fd, err);
	sbx_nft_ruleset_free(rs);
	return r;
}

static int build_network(const struct sbx_orders *o, struct stage_sockets *s, const char **ret_step,
			 struct sbx_err *err)
{
	struct sbx_nft_input nft = o->nft;
	int ipv6 = 0, r;

	if (o->host_network) { /* made here it belongs to the sandbox's cgroup */
		*ret_step = "mark";
		s->fds[SBX_BFD_MARK] = r = sbx_net_udp_open();
		return r < 0 ? r : 0;
	}
	*ret_step = "addresses";
	r = setup_loopback(&ipv6, err);
	if (r < 0)
		return r;
	*ret_step = "listeners";
	r = open_listeners(o, ipv6, s, &nft, err);
	if (r < 0)
		return r;
	*ret_step = "ruleset";
	r = load_ruleset(&nft, err);
	if (r < 0)
		return r;
	*ret_step = "nflog";
	r = s->fds[SBX_BFD_NFLOG] = sbx_net_nflog_open(nft.nflog_group, 128);
	if (r < 0) {
		sbx_err_set(err, "cannot listen to refused packets (CONFIG_NETFILTER_NETLINK_LOG, "
			    "CONFIG_NFT_LOG): %s", strerror(-r));
		return r;
	}
	*ret_step = "factory";
	return sbx_channel_pair(&s->factory, &s->fds[SBX_BFD_FACTORY]);
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

/* With --keep the overlay's upper layer, with --scratch the scratch home outlives us in the launcher's hands. */
static int send_upper(int channel, const struct sbx_orders *o, const struct sbx_tree *tree, const struct sbx_scratch *s)
{
	SBX_AUTO_CLOSE int home = o->scratch_home ? sbx_tree_open(tree, o->scratch_home, O_PATH | O_DIRECTORY) : -1;
	const int *fd = o->keep ? &s->upper : &home;
	uint8_t packet[16];
	ssize_t n = sbx_msg_encode_simple(SBX_MSG_STAGE_UPPER, 0, packet, sizeof(packet));
	int r;

	if (*fd < 0)
		return 0;
	r = n < 0 ? (int)n : sbx_channel_send(channel, packet, (size_t)n, fd, 1);
	return r > 0 ? -EPIPE : r;
}

/* --- bwrap --- */

struct bwrap_child {
	const struct sbx_run *run;
	int args_fd; /* where it reads its arguments */
};

/* bwrap's process until it is bwrap: arrange the fds, exec. */
static _Noreturn void exec_bwrap(const struct bwrap_child *c)
{
	const struct sbx_run *r = c->run;
	const int fds[] = { 0, 1, 2, r->init_peer_fd, r->init_exe_fd, r->seccomp_peer_fd, c->args_fd };
	const int numbers[] = { 0, 1, 2, SBX_BWRAP_CTL_NUMBER, SBX_BWRAP_EXE_NUMBER,
				SBX_BWRAP_SECCOMP_NUMBER, SBX_BWRAP_ARGS_NUMBER };
	/* 1 and not 0: a core_pattern that is a pipe, to a helper that runs as root outside, ignores 0
	 * (core(5)) and is kept off by 1 alone (fs/coredump.c). seccomp keeps the command from changing
	 * it. */
	struct rlimit core = { 1, 1 };
	static char *no_env[] = { NULL };

	setrlimit(RLIMIT_CORE, &core);
	if (sbx_proc_arrange_fds(fds, numbers, SBX_N_ELEMENTS(fds)) == 0)
		execve(r->facts->bwrap, r->bwrap_argv, no_env);
	_exit(125);
}

/* It waits for its arguments, which come through *ret_args_fd. The pid or -errno. */
static pid_t start_bwrap(struct sbx_run *r, int *ret_args_fd)
{
	struct bwrap_child c = { .run = r, .args_fd = r->args_peer_fd };
	pid_t pid = sbx_proc_clone(0, NULL, NULL);

	if (pid == 0)
		exec_bwrap(&c);
	r->args_peer_fd = sbx_fd_close(r->args_peer_fd);
	*ret_args_fd = sbx_fd_steal(&r->args_fd);
	return pid;
}

/* A bwrap that ended reads no more: whoever waits for it hears of that. */
static void send_args(const struct sbx_orders *o, int *args_fd)
{
	const char *p = o->args;
	size_t left = o->n_args;

	while (left > 0) {
		ssize_t n = write(*args_fd, p, left);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			break;
		p += n;
		left -= (size_t)n;
	}
	*args_fd = sbx_fd_close(*args_fd);
}

/* Before bwrap has read its arguments it is a process like us. */
static int limit(pid_t bwrap, __rlimit_resource_t resource, uint32_t value)
{
	struct rlimit new = { value, value }, had;

	if (!value)
		return 0;
	if (prlimit(bwrap, resource, NULL, &had) < 0)
		return -errno;
	if (had.rlim_max < value)
		new.rlim_cur = new.rlim_max = had.rlim_max;
	return prlimit(bwrap, resource, &new, NULL) < 0 ? -errno : 0;
}

/* --- the stage --- */

static void wait_for_maps(const struct sbx_run *r)
{
	char byte;
	ssize_t n;

	do {
		n = read(r->stage_go_fd, &byte, 1);
	} while (n < 0 && errno == EINTR);
	if (n != 1)
		_exit(125); /* the launcher is gone, or says itself what was wrong */
}

static int map_own(const struct sbx_facts *f, struct sbx_err *err)
{
	int e;

	prctl(PR_SET_DUMPABLE, 1);
	e = sbx_userns_map_self(f->uid, f->gid, err);
	prctl(PR_SET_DUMPABLE, 0);
	return e;
}

/* What needs no plan. 0 or -errno. */
static int prepare(struct sbx_run *r, pid_t *ret_bwrap, int *ret_args_fd, struct sbx_tree *ret_tree,
		   const char **ret_step, struct sbx_err *err)
{
	const struct sbx_facts *f = r->facts;
	int e;

	/* We are not dumpable: our memory and fds are the launcher's, and uid f->uid may have processes outside. So
	 * /proc/self/uid_map is root's, and a privileged launcher writes it. Elsewhere the memory is the user's own,
	 * and the file must be ours for as long as it takes. */
	*ret_step = "uid_map";
	if (f->privileged)
		wait_for_maps(r);
	e = f->privileged ? 0 : map_own(f, err);
	if (e < 0)
		return e;
	*ret_step = "proc";
	e = mount_proc(err);
	if (e < 0)
		return e;
	*ret_step = SBX_STAGE_NETWORK;
	/* With attach cgroup the stage is begun when there is a plan (steps.c), and stays where it is. */
	if (!(r->plan && r->plan->attach.on) && unshare(CLONE_NEWNET) < 0)
		return -errno;
	*ret_step = "bwrap";
	*ret_bwrap = start_bwrap(r, ret_args_fd);
	if (*ret_bwrap < 0)
		return *ret_bwrap;
	*ret_step = "view";
	return sbx_tree_begin(ret_tree, err);
}

/* The launcher has a plan; without one it ends us. @mapped are the id-mapped mounts of it. */
static void wait_for_orders(int channel, struct mapped *mapped)
{
	uint8_t packet[64];
	uint32_t zero;
	size_t n;
	int e;

	do {
		e = sbx_channel_recv(channel, packet, sizeof(packet), &n, mapped->fds,
				     SBX_N_ELEMENTS(mapped->fds), &mapped->n, NULL);
	} while (e == -EINTR);
	if (e != 0 || sbx_msg_decode_simple(sbx_span(packet, n), SBX_MSG_ORDERS, &zero) != 0)
		_exit(125);
}

/* The view first: bwrap waits for it. */
static int carry_out(const struct sbx_orders *o, const struct sbx_tree *tree, int channel,
		     struct mapped *mapped, pid_t bwrap, int *args_fd, struct stage_sockets *s,
		     const char **ret_step, struct sbx_err *err)
{
	struct sbx_scratch scratch = { .size_bytes = o->scratch_bytes, .root = -1, .upper = -1 };
	int e;

	*ret_step = "view";
	e = sbx_tree_build(tree, o->mounts, o->n_mounts, mapped->fds, mapped->n, &scratch, err);
	for (size_t i = 0; i < mapped->n; i++)
		sbx_fd_close(mapped->fds[i]);
	if (e == 0)
		e = send_upper(channel, o, tree, &scratch);
	sbx_scratch_fini(&scratch);
	if (e < 0)
		return e;
	*ret_step = "limits";
	e = limit(bwrap, RLIMIT_NOFILE, o->open_files);
	if (e == 0)
		e = limit(bwrap, RLIMIT_NPROC, o->processes);
	if (e < 0)
		return e;
	send_args(o, args_fd);
	return build_network(o, s, ret_step, err);
}

/* The launcher says which process is the sandbox's init once that has said hello, and hears whether the mounts there are
 * locked: 0, or 1 + the index of one that is not. */
static int check_mounts(const struct sbx_orders *o, int channel, struct sbx_err *err)
{
	SBX_AUTO_CLOSE int init = -1;
	uint8_t packet[64];
	size_t len, n_fds, open_mount = 0;
	uint32_t zero;
	ssize_t n;
	int e;

	do {
		e = sbx_channel_recv(channel, packet, sizeof(packet), &len, &init, 1, &n_fds, NULL);
	} while (e == -EINTR);
	if (e != 0 || sbx_msg_decode_simple(sbx_span(packet, len), SBX_MSG_CHECK_MOUNTS, &zero) != 0)
		_exit(125);
	if (n_fds == 0) {
		sbx_err_set(err, "the launcher cannot say by a pidfd (Linux 5.3) which process is the sandbox's init");
		return -ESRCH;
	}
	e = sbx_covers_check_locked(o->mounts, o->n_mounts, init, &open_mount);
	if (e < 0) {
		sbx_err_set(err, "cannot look at the sandbox's mounts: %s", strerror(-e));
		return e;
	}
	n = sbx_msg_encode_simple(SBX_MSG_MOUNTS_CHECKED, e ? (uint32_t)open_mount + 1 : 0, packet, sizeof(packet));
	e = n < 0 ? (int)n : sbx_channel_send(channel, packet, (size_t)n, NULL, 0);
	return e > 0 ? -EPIPE : e;
}

static _Noreturn void stage_main(struct sbx_run *r, int channel)
{
	const struct sbx_orders *o = r->orders;
	struct sbx_err err = { 0 };
	const char *step = "start";
	int args_fd = -1, error;
	struct sbx_tree tree = { .root = -1 };
	struct stage_sockets s = { .factory = -1 };
	struct mapped mapped;
	pid_t bwrap = 0;

	for (size_t i = 0; i < SBX_N_BROKER_FDS; i++)
		s.fds[i] = -1;
	/* The parent may be gone already: it is then not the one whose channel we hold, and the read
	 * below finds the end of file. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sbx_fd_close(r->stage_fd);
	sbx_cgroup_forget(&r->cgroup.dirs);
	sbx_attach_run_fini(&r->attach);
	sbx_fd_close(r->init_fd);
	sbx_fd_close(r->seccomp_fd); /* or bwrap would never see its end */
	sbx_uid_pool_close_copy(r->facts->uid_pool);
	sbx_runtime_forget(r);
	sbx_placeholders_forget(r);
	sbx_caretaker_forget(r);

	error = prepare(r, &bwrap, &args_fd, &tree, &step, &err);
	if (error == 0) {
		wait_for_orders(channel, &mapped);
		error = carry_out(o, &tree, channel, &mapped, bwrap, &args_fd, &s, &step, &err);
	}
	if (error == 0)
		error = send_ready(channel, &s);
	if (error == 0) {
		step = "view";
		error = check_mounts(o, channel, &err);
	}
	if (error < 0) {
		sbx_err_set(&err, "%s", strerror(-error));
		stage_fail(channel, error, step, &err);
	}
	sbx_factory_main(channel, s.factory, bwrap, o, o->wall_ms ? o->wall_ms + SETUP_SLACK_MS : 0);
}

/* The launcher's environment is root's and may hold what the sandbox's user must not read; the plan has
 * its own copy of what the command gets. Copy on write: the launcher keeps its own. */
static void wipe_environment(void)
{
	for (char **e = environ; e && *e; e++)
		explicit_bzero(*e, strlen(*e));
}

/* Privileged: become the sandbox's user first, then make the namespaces as the launcher's child. */
static _Noreturn void stage_as_user(struct sbx_run *r, int channel, int pid_pipe, pid_t launcher)
{
	struct sbx_err err = { 0 };
	pid_t pid;
	int error;

	wipe_environment();
	error = sbx_ids_drop(r->facts->uid, r->facts->gid);
	if (error < 0) {
		sbx_err_set(&err, "cannot become uid %u: %s", r->facts->uid, strerror(-error));
		stage_fail(channel, error, "user", &err);
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* a change of ids clears it */
	if (getppid() != launcher)
		_exit(125);
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

/* The stage's pid, from the helper; bounded, because its user can stop the helper. 0: none came. */
static pid_t read_pid(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	pid_t pid = 0;

	if (poll(&p, 1, HELPER_TIMEOUT_MS) <= 0 || read(fd, &pid, sizeof(pid)) != sizeof(pid))
		return 0;
	return pid;
}

static int start_as_user(struct sbx_run *r, int channel)
{
	SBX_AUTO_CLOSE int pid_read = -1, pid_write = -1, go_write = -1;
	pid_t helper, launcher = getpid();
	int e = sbx_fd_pipe(&pid_read, &pid_write);

	if (e == 0)
		e = sbx_fd_pipe(&r->stage_go_fd, &go_write);
	if (e < 0)
		return e;
	helper = sbx_proc_clone_into(0, sbx_cgroup_birthplace(&r->cgroup.dirs), NULL, &r->err); /* and with it the stage */
	if (helper < 0)
		return helper;
	if (helper == 0) {
		sbx_fd_close(go_write); /* or the stage would never see the launcher end */
		stage_as_user(r, channel, pid_write, launcher);
	}
	pid_write = sbx_fd_close(pid_write);
	r->stage_go_fd = sbx_fd_close(r->stage_go_fd);
	r->stage_pid = read_pid(pid_read);
	kill(helper, SIGKILL); /* our child, not yet reaped: it has done what it is for */
	sbx_proc_reap(&helper);
	if (r->stage_pid == 0)
		return 0; /* it says why on the channel */
	e = sbx_userns_map_child(r->stage_pid, r->facts->uid, r->facts->gid, &r->err);
	if (e == 0 && write(go_write, "", 1) != 1)
		e = -EPIPE;
	return e;
}

/* Asks for every processor first: a process that is limited by its cpuset only must get those that the cpuset gets
 * later, too. */
static int restore_affinity(const cpu_set_t *had)
{
	cpu_set_t every, now;

	memset(&every, 0xff, sizeof(every));
	if (sched_setaffinity(0, sizeof(every), &every) == 0 && sched_getaffinity(0, sizeof(now), &now) == 0 &&
	    CPU_EQUAL(&now, had))
		return 0;
	return sched_setaffinity(0, sizeof(*had), had) < 0 ? -errno : 0;
}

/* Clones the stage onto the launcher's processor, and moves the launcher to another one.
 *
 * In a virtual machine the kernel often leaves a new child behind its parent with another processor idle
 * (available_idle_cpu() in kernel/sched/syscalls.c). The stage, and with it bwrap, then waits for 0.7 ms. Launcher and
 * stage each change their own affinity only, and restore the caller's before this function returns: the command inherits
 * exactly that. A kernel that refuses the hint costs time and nothing else. */
static pid_t clone_apart(struct sbx_run *r)
{
	bool hinted = false;
	cpu_set_t had, here;
	unsigned int cpu;
	pid_t pid;

	CPU_ZERO(&here);
	if (sched_getaffinity(0, sizeof(had), &had) == 0 && CPU_COUNT(&had) > 1 && getcpu(&cpu, NULL) == 0 &&
	    cpu < CPU_SETSIZE) {
		CPU_SET(cpu, &here);
		hinted = sched_setaffinity(0, sizeof(here), &here) == 0;
	}
	pid = sbx_proc_clone_into(STAGE_FLAGS, sbx_cgroup_birthplace(&r->cgroup.dirs), NULL, &r->err);
	if (!hinted)
		return pid;
	if (pid > 0) {
		CPU_XOR(&here, &had, &here);
		sched_setaffinity(0, sizeof(here), &here);
	}
	if (restore_affinity(&had) < 0 && pid == 0)
		_exit(125); /* the command would keep the narrow affinity */
	return pid;
}

static int clone_stage(struct sbx_run *r)
{
	SBX_AUTO_CLOSE int ours = -1, theirs = -1;
	int error;

	error = sbx_channel_pair(&ours, &theirs);
	if (error < 0)
		return error;
	r->stage_fd = sbx_fd_steal(&ours);
	if (r->facts->privileged)
		return start_as_user(r, theirs);
	error = clone_apart(r);
	if (error == 0)
		stage_main(r, theirs);
	if (error < 0)
		return error;
	r->stage_pid = error;
	return 0;
}

static int make_channels(struct sbx_run *r)
{
	int e = sbx_channel_pair(&r->init_fd, &r->init_peer_fd);

	r->args_fd = sbx_fd_close(r->args_fd); /* of a stage that was given up, and reaped */
	if (e == 0)
		e = sbx_fd_pipe(&r->args_peer_fd, &r->args_fd);
	return e < 0 ? e : sbx_fd_pipe(&r->seccomp_peer_fd, &r->seccomp_fd);
}

static int open_init(struct sbx_run *r)
{
	char path[4096];

	if (snprintf(path, sizeof(path), "%s/sbx-init", r->facts->libexec_dir) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	r->init_exe_fd = open(path, O_PATH | O_CLOEXEC);
	if (r->init_exe_fd >= 0)
		return 0;
	sbx_err_set(&r->err, "cannot open %s: %s (is sbx installed completely?)", path, strerror(errno));
	return -errno;
}

int sbx_stage_begin(struct sbx_run *r)
{
	int e = open_init(r);

	r->stage_begun = true;
	r->orders = sbx_orders_new();
	r->bwrap_argv = sbx_bwrap_argv(r->options->argv, r->options->wait_all);
	if (e == 0 && (!r->orders || !r->bwrap_argv))
		e = -ENOMEM;
	if (e == 0)
		e = make_channels(r);
	if (e == 0)
		e = clone_stage(r);
	if (e == 0)
		e = sbx_fd_set_nonblocking(r->stage_fd);
	if (e == 0)
		e = sbx_fd_set_nonblocking(r->init_fd);
	if (e < 0)
		sbx_err_set(&r->err, "cannot start the stage: %s", strerror(-e));
	r->init_peer_fd = sbx_fd_close(r->init_peer_fd);
	r->seccomp_peer_fd = sbx_fd_close(r->seccomp_peer_fd);
	r->args_peer_fd = sbx_fd_close(r->args_peer_fd);
	return e;
}

int sbx_stage_order(struct sbx_run *r)
{
	const struct sbx_plan *p = r->plan;
	uint32_t pids = p->profile->limits.pids;
	SBX_AUTO_FREE char *args = NULL;
	int mapped[SBX_CHANNEL_MAX_FDS];
	uint8_t packet[16];
	size_t n_args, n_mapped = 0;
	ssize_t n;
	int e = sbx_bwrap_args(p, &args, &n_args);

	if (r->stage_pid <= 0)
		return 0; /* there is none; it said why on the channel */
	if (e == 0)
		e = sbx_orders_fill(r->orders, p, &r->setup, args, n_args);
	/* Counted per user namespace (Linux 5.14). */
	if (e == 0 && pids && !(r->cgroup.limited & SBX_CGROUP_BIT(SBX_CGROUP_PIDS)))
		r->orders->processes = pids + SBX_CGROUP_PIDS_OURS;
	if (e < 0) {
		sbx_err_set(&r->err, "cannot give the stage its orders: %s", strerror(-e));
		return e;
	}
	for (size_t i = 0; i < p->view.n_mounts && n_mapped < SBX_N_ELEMENTS(mapped); i++)
		if (p->view.mounts[i].idmap)
			mapped[n_mapped++] = p->view.mounts[i].mount_fd;
	n = sbx_msg_encode_simple(SBX_MSG_ORDERS, 0, packet, sizeof(packet));
	e = n < 0 ? (int)n : sbx_channel_send(r->stage_fd, packet, (size_t)n, mapped, n_mapped);
	r->args_fd = sbx_fd_close(r->args_fd);
	return e > 0 ? 0 : e; /* a stage that failed before says why on the channel */
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

void sbx_stage_kill(const struct sbx_run *r)
{
	if (r->stage_pid > 0)
		kill(r->stage_pid, SIGKILL); /* our child, not yet reaped: the pid is still its own */
}

void sbx_stage_end(struct sbx_run *r)
{
	sbx_stage_kill(r);
	sbx_proc_reap(&r->stage_pid);
	r->stage_fd = sbx_fd_close(r->stage_fd); /* a bwrap that saw its end would complain before it is killed */
}

void sbx_stage_stop(struct sbx_run *r)
{
	sbx_stage_end(r);
	for (size_t i = 0; i < SBX_N_BROKER_FDS; i++)
		r->sandbox_fds[i] = sbx_fd_close(r->sandbox_fds[i]);
	r->seccomp_fd = sbx_fd_close(r->seccomp_fd);
	r->init_fd = sbx_fd_close(r->init_fd);
	r->init_exe_fd = sbx_fd_close(r->init_exe_fd);
	r->init_pidfd = sbx_fd_close(r->init_pidfd);
	r->orders = sbx_orders_free(r->orders);
	free(r->bwrap_argv);
	r->bwrap_argv = NULL;
}
