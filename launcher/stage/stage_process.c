/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The stage: the process that owns the sandbox's namespaces. The launcher's half is stage.c.
 *
 * Before its config (struct sbx_stage_config) comes, it makes the parts that need no plan: identity
 * maps for one uid; a /proc for bwrap; the network namespace; bwrap itself, which waits for its
 * arguments; the root of the view. With the config: the view (tree.c); bwrap's arguments; the
 * network (stage_network.c), whose sockets go to the launcher. Then it checks the mounts for the
 * self-test, and turns into the socket factory (factory.c) until the command ends. The command does
 * not run until the launcher releases init.
 *
 * Invariants
 * - It is pid 1 of its namespace: when it ends for any cause, the kernel kills bwrap, the command
 *   and all their children. PDEATHSIG ties it to the launcher, and so does the end of file on the
 *   channel.
 * - Signals from a terminal or to the group are blocked here and in bwrap (init restores the mask):
 *   only the command acts on them.
 * - It never runs as kernel uid 0 (stage.c).
 * - It trusts the launcher alone. It reads the broker's requests as the factory, without its
 *   privileges.
 */
#include "launcher/stage/stage_process.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "ipc/channel.h"
#include "launcher/process/exec_failed.h"
#include "launcher/setup/bwrap_argv.h"
#include "launcher/stage/factory.h"
#include "launcher/stage/stage_network.h"
#include "launcher/tree/tree.h"
#include "launcher/tree/tree_overmount.h"
#include "sys/process/proc.h"
#include "sys/process/userns.h"

/* The longest time from here to the release, the wall time's grace included (steps.c,
 * supervise.c). */
#define SETUP_SLACK_MS 35000

_Static_assert(SBX_N_BROKER_FDS <= SBX_CHANNEL_MAX_FDS, "the sandbox's sockets fit one packet");

/* Id-mapped mounts. The launcher makes them, because only it has privileges over the file
 * systems. */
struct mapped {
	int fds[SBX_CHANNEL_MAX_FDS];
	size_t n;
};

_Noreturn void sbx_stage_process_fail(const struct sbx_stage_process *p, int error,
				      const char *step, const struct sbx_err *err)
{
	struct sbx_msg_stage_failed m = { .error = error < 0 ? (uint32_t)-error : 0 };
	uint8_t packet[1024];
	ssize_t n;

	sbx_text_cut(m.step, sizeof(m.step), "%s", step);
	snprintf(m.detail, sizeof(m.detail), "%.*s", (int)sizeof(m.detail) - 1, err->msg);
	n = sbx_msg_encode_stage_failed(&m, packet, sizeof(packet));
	if (n > 0)
		sbx_channel_send(p->channel, packet, (size_t)n, NULL, 0);
	_exit(125);
}

/* Closes every descriptor but those of @p and stdio. They get the numbers from 3 on. */
static int close_others(struct sbx_stage_process *p)
{
	int *const kept[] = { &p->channel,     &p->go_fd,      &p->init_fd,	 &p->exec_fd,
			      &p->init_exe_fd, &p->seccomp_fd, &p->args_read_fd, &p->args_fd };
	int fds[3 + SBX_N_ELEMENTS(kept)] = { 0, 1, 2 }, numbers[SBX_N_ELEMENTS(fds)] = { 0, 1, 2 };
	size_t n = 3;

	for (size_t i = 0; i < SBX_N_ELEMENTS(kept); i++)
		if (*kept[i] >= 0) {
			fds[n] = *kept[i];
			numbers[n] = *kept[i] = (int)n;
			n++;
		}
	return sbx_proc_arrange_fds(fds, numbers, n);
}

/* --- parts that need no plan --- */

/* bwrap looks its child up in /proc, which must be that of our pid namespace. The mount is ours
 * alone: mounts of a new user namespace do not propagate back. */
static int mount_proc(struct sbx_err *err)
{
	if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) == 0)
		return 0;
	sbx_err_set(err,
		    "cannot mount /proc for the sandbox's pid namespace: %s (inside a container, "
		    "parts of /proc must not be masked)",
		    strerror(errno));
	return -errno;
}

/* bwrap's process before the exec: arrange the fds, exec. */
static _Noreturn void exec_bwrap(const struct sbx_stage_process *p)
{
	const int fds[] = { 0,		    1,		  2,		 p->init_fd,
			    p->init_exe_fd, p->exec_fd, p->seccomp_fd, p->args_read_fd };
	const int numbers[] = { 0, 1, 2, SBX_BWRAP_CTL_NUMBER, SBX_BWRAP_EXE_NUMBER,
				SBX_BWRAP_EXEC_NUMBER, SBX_BWRAP_SECCOMP_NUMBER,
				SBX_BWRAP_ARGS_NUMBER };
	/* 1 and not 0: a core_pattern that pipes to a helper, which runs as root outside the
	 * sandbox, ignores 0 (core(5)); 1 alone keeps the helper off (fs/coredump.c). seccomp keeps
	 * the command from changing the limit. */
	struct rlimit core = { 1, 1 };
	static char *no_env[] = { NULL };
	int r;

	setrlimit(RLIMIT_CORE, &core);
	r = sbx_proc_arrange_fds(fds, numbers, SBX_N_ELEMENTS(fds));
	if (r == 0)
		execve(p->facts->bwrap, p->bwrap_argv, no_env);
	sbx_exec_failed(p->facts->bwrap, r < 0 ? -r : errno, "");
}

/* bwrap waits for its arguments. The pid or -errno. */
static pid_t start_bwrap(struct sbx_stage_process *p)
{
	int *const given[] = { &p->init_fd, &p->init_exe_fd, &p->exec_fd, &p->seccomp_fd,
			       &p->args_read_fd };
	pid_t pid = sbx_proc_clone(0, NULL, NULL);

	if (pid == 0)
		exec_bwrap(p);
	for (size_t i = 0; i < SBX_N_ELEMENTS(given); i++)
		*given[i] = sbx_fd_close(*given[i]);
	return pid;
}

static void wait_for_maps(int go_fd)
{
	char byte;
	ssize_t n;

	do {
		n = read(go_fd, &byte, 1);
	} while (n < 0 && errno == EINTR);
	if (n != 1)
		_exit(125); /* the launcher has ended, or reports the error itself */
}

static int map_own(const struct sbx_facts *f, struct sbx_err *err)
{
	int e;

	prctl(PR_SET_DUMPABLE, 1);
	e = sbx_userns_map_self(f->uid, f->gid, err);
	prctl(PR_SET_DUMPABLE, 0);
	return e;
}

/* 0 or -errno. */
static int prepare(struct sbx_stage_process *p, pid_t *ret_bwrap, struct sbx_tree *ret_tree,
		   const char **ret_step, struct sbx_err *err)
{
	const struct sbx_facts *f = p->facts;
	int e;

	/* The stage is not dumpable: its memory and fds are the launcher's, and uid f->uid may have
	 * processes outside. So /proc/self/uid_map is root's, and a privileged launcher writes it.
	 * Otherwise the memory is the user's own, and the stage is dumpable while it writes the
	 * file. */
	*ret_step = "uid_map";
	if (f->privileged)
		wait_for_maps(p->go_fd);
	e = f->privileged ? 0 : map_own(f, err);
	if (e < 0)
		return e;
	*ret_step = "proc";
	e = mount_proc(err);
	if (e < 0)
		return e;
	*ret_step = SBX_STAGE_NETWORK;
	if (!p->host_network && unshare(CLONE_NEWNET) < 0)
		return -errno;
	*ret_step = "bwrap";
	*ret_bwrap = start_bwrap(p);
	if (*ret_bwrap < 0)
		return *ret_bwrap;
	*ret_step = "view";
	return sbx_tree_begin(ret_tree, err);
}

/* --- with the config --- */

/* The launcher has a plan; without one it ends the stage. @ret_mapped: the plan's id-mapped
 * mounts. */
static void wait_for_config(int channel, struct mapped *ret_mapped)
{
	uint8_t packet[64];
	uint32_t zero;
	size_t n;
	int e;

	do {
		e = sbx_channel_recv(channel, packet, sizeof(packet), &n, ret_mapped->fds,
				     SBX_N_ELEMENTS(ret_mapped->fds), &ret_mapped->n, NULL);
	} while (e == -EINTR);
	if (e != 0 || sbx_msg_decode_simple(sbx_span(packet, n), SBX_MSG_STAGE_CONFIG, &zero) != 0)
		_exit(125);
}

/* Sends the launcher the overlay's upper layer (--keep) or the scratch home (--scratch), which the
 * launcher needs when the stage has ended. */
static int send_upper(int channel, const struct sbx_stage_config *c, const struct sbx_tree *tree,
		      const struct sbx_scratch *s)
{
	SBX_AUTO_CLOSE int home =
		c->scratch_home ? sbx_tree_open(tree, c->scratch_home, O_PATH | O_DIRECTORY) : -1;
	const int *fd = c->keep ? &s->upper : &home;
	uint8_t packet[16];
	ssize_t n = sbx_msg_encode_simple(SBX_MSG_STAGE_UPPER, 0, packet, sizeof(packet));
	int r;

	if (*fd < 0)
		return 0;
	r = n < 0 ? (int)n : sbx_channel_send(channel, packet, (size_t)n, fd, 1);
	return r > 0 ? -EPIPE : r;
}

/* Sends the launcher the open descriptors of @slots, at most SBX_CHANNEL_MAX_FDS, and closes them.
 * They are sent in their order; the message's value says which. 0 or -errno. */
static int send_slots(int channel, enum sbx_msg_type type, int *slots, size_t n_slots)
{
	int fds[SBX_CHANNEL_MAX_FDS];
	uint32_t mask = 0;
	uint8_t packet[64];
	size_t n_fds = 0;
	ssize_t n;
	int r;

	for (size_t i = 0; i < n_slots; i++)
		if (slots[i] >= 0) {
			mask |= 1u << i;
			fds[n_fds++] = slots[i];
		}
	n = sbx_msg_encode_simple(type, mask, packet, sizeof(packet));
	r = n < 0 ? (int)n : sbx_channel_send(channel, packet, (size_t)n, fds, n_fds);
	for (size_t i = 0; i < n_slots; i++)
		slots[i] = sbx_fd_close(slots[i]);
	return r > 0 ? -EPIPE : r;
}

/* Sends the launcher the files whose text it will know, if there are any. */
static int send_fills(int channel, int fills[SBX_N_FILLS])
{
	for (size_t i = 0; i < SBX_N_FILLS; i++)
		if (fills[i] >= 0)
			return send_slots(channel, SBX_MSG_STAGE_FILLS, fills, SBX_N_FILLS);
	return 0;
}

/* Until bwrap has read its arguments, it is a process like the stage. */
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

/* A failed write means that bwrap ended: its end is noticed elsewhere. */
static void send_args(const struct sbx_stage_config *c, int *args_fd)
{
	const char *p = c->args;
	size_t left = c->n_args;

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

/* The view comes first, because bwrap waits for it. */
static int build(struct sbx_stage_process *p, const struct sbx_tree *tree,
		 const struct mapped *mapped, pid_t bwrap, struct sbx_stage_sockets *s,
		 const char **ret_step, struct sbx_err *err)
{
	const struct sbx_stage_config *c = p->config;
	struct sbx_scratch scratch = { .size_bytes = c->scratch_bytes, .root = -1, .upper = -1 };
	int e;

	*ret_step = "view";
	e = sbx_tree_build(tree, c->mounts, c->n_mounts, mapped->fds, mapped->n, &scratch, err);
	for (size_t i = 0; i < mapped->n; i++)
		sbx_fd_close(mapped->fds[i]);
	if (e == 0)
		e = send_upper(p->channel, c, tree, &scratch);
	if (e == 0)
		e = send_fills(p->channel, tree->fills);
	sbx_scratch_fini(&scratch);
	if (e < 0)
		return e;
	*ret_step = "limits";
	e = limit(bwrap, RLIMIT_NOFILE, c->open_files);
	if (e == 0)
		e = limit(bwrap, RLIMIT_NPROC, c->processes);
	if (e < 0)
		return e;
	send_args(c, &p->args_fd);
	return sbx_stage_network_build(c, s, ret_step, err);
}

/* Waits until the launcher names the sandbox's init, checks the mounts that init sees, and answers:
 * 0, all are locked; or 1 + the index of a mount that is not; with the root directory of these
 * mounts, which a launcher without CAP_SYS_PTRACE cannot open itself. */
static int check_mounts(const struct sbx_stage_config *c, int channel, struct sbx_err *err)
{
	SBX_AUTO_CLOSE int init = -1, root = -1;
	uint8_t packet[64];
	size_t len, n_fds, open_mount = 0;
	uint32_t zero;
	ssize_t n;
	int e;

	do {
		e = sbx_channel_recv(channel, packet, sizeof(packet), &len, &init, 1, &n_fds, NULL);
	} while (e == -EINTR);
	if (e != 0 ||
	    sbx_msg_decode_simple(sbx_span(packet, len), SBX_MSG_CHECK_MOUNTS, &zero) != 0)
		_exit(125);
	if (n_fds == 0) {
		sbx_err_set(err, "the launcher cannot say by a pidfd (Linux 5.3) which process is "
				 "the sandbox's init");
		return -ESRCH;
	}
	e = sbx_overmounts_check_locked(c->mounts, c->n_mounts, init, &open_mount, &root);
	if (e == -ESTALE) {
		sbx_err_set(err,
			    "%s is not what it was when it was looked at: it was renamed or "
			    "replaced while the sandbox was made; try again",
			    c->mounts[open_mount].dest);
		return e;
	}
	if (e < 0) {
		sbx_err_set(err, "cannot look at the sandbox's mounts: %s", strerror(-e));
		return e;
	}
	n = sbx_msg_encode_simple(SBX_MSG_MOUNTS_CHECKED, e ? (uint32_t)open_mount + 1 : 0, packet,
				  sizeof(packet));
	e = n < 0 ? (int)n : sbx_channel_send(channel, packet, (size_t)n, &root, 1);
	return e > 0 ? -EPIPE : e;
}

_Noreturn void sbx_stage_process_main(struct sbx_stage_process *p)
{
	const struct sbx_stage_config *c = p->config;
	struct sbx_err err = { 0 };
	const char *step = "start";
	int fills[SBX_N_FILLS];
	struct sbx_tree tree = { .root = -1, .fills = fills };
	struct sbx_stage_sockets s = { .factory = -1, .ruleset = -1 };
	struct mapped mapped;
	pid_t bwrap = 0;
	int error;

	memset(fills, -1, sizeof(fills));
	memset(s.fds, -1, sizeof(s.fds));
	/* If the parent is gone already, this signal never comes: the channel's end of file ends us
	 * instead. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	error = close_others(p);
	if (error == 0)
		error = prepare(p, &bwrap, &tree, &step, &err);
	if (error == 0) {
		wait_for_config(p->channel, &mapped);
		error = build(p, &tree, &mapped, bwrap, &s, &step, &err);
	}
	if (error == 0)
		error = send_slots(p->channel, SBX_MSG_STAGE_READY, s.fds, SBX_N_BROKER_FDS);
	if (error == 0) {
		step = "view";
		error = check_mounts(c, p->channel, &err);
	}
	if (error < 0) {
		sbx_err_set(&err, "%s", strerror(-error));
		sbx_stage_process_fail(p, error, step, &err);
	}
	sbx_factory_main(p->channel, s.factory, s.ruleset, bwrap, c,
			 c->wall_ms ? c->wall_ms + SETUP_SLACK_MS : 0);
}
