/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * --keep: what the command wrote to its overlay, out of the sandbox.
 *
 * Who sees it: the upper layer is on a tmpfs of the stage's mount namespace, which ends with the stage. The
 * stage sends the launcher a descriptor of the directory (STAGE_UPPER); a descriptor keeps the mount it was
 * opened in, also when the namespace is gone. When: the stage has been reaped, and as pid 1 of the sandbox's
 * pid namespace it is reaped after all that was in there. A process outside that the command passed a
 * directory to may still write to the overlay: keep_copy.c does not rely on its being at rest. Who copies: the
 * keeper, a fork of the launcher with the rights of the sandbox's user and of nobody else. A privileged
 * launcher has none of its own left by then, and must not write where a user's directory leads. It holds the
 * two directories that planning judged, the channel, and nothing else.
 *
 * The tmpfs goes with its last descriptor: the keeper's end, or that of a killed launcher, whose PDEATHSIG the
 * keeper has. What a keeper that was killed has copied so far stays, without the list that says it is whole
 * (keep_copy.h).
 */
#include "launcher/helpers/keep_helper.h"
#include "launcher/rootfs/overlay.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "ipc/channel.h"
#include "sys/process/proc.h"

enum { KEEPER_CHANNEL, KEEPER_TARGET, KEEPER_LOWER, N_KEEPER_FDS };

/* The keeper's answer. It is a fork of ours, of the sandbox's user: the text is escaped once more. */
struct result {
	int error; /* -errno */
	struct sbx_keep_counts counts;
	char text[SBX_ERR_MSG_MAX];
};

/* --- the keeper --- */

static int open_target(const char *name, struct sbx_err *err)
{
	int fd;

	if (name && mkdirat(KEEPER_TARGET, name, 0777) < 0) {
		sbx_err_set(err, "it cannot be made: %s", strerror(errno));
		return -errno;
	}
	fd = openat(KEEPER_TARGET, name ? name : ".", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int keep(const struct sbx_plan *p, int upper, struct sbx_keep_counts *ret_counts, struct sbx_err *err)
{
	const struct sbx_keep_bounds bounds = { p->view.scratch_bytes, sbx_scratch_inodes(p->view.scratch_bytes) };
	SBX_AUTO_CLOSE int target = open_target(p->keep.name, err);

	return target < 0 ? target : sbx_keep_copy(upper, KEEPER_LOWER, target, &bounds, ret_counts, err);
}

/* A level of directories takes three. */
static void allow_files(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
}

static _Noreturn void keeper_main(const struct sbx_run *r, const int fds[N_KEEPER_FDS], pid_t launcher)
{
	static const int numbers[N_KEEPER_FDS] = { KEEPER_CHANNEL, KEEPER_TARGET, KEEPER_LOWER };
	struct result result = { 0 };
	struct sbx_err err = { 0 };
	int upper = -1, e;
	size_t n, n_fds = 0;
	char go;

	e = sbx_proc_arrange_fds(fds, numbers, N_KEEPER_FDS);
	if (e == 0)
		e = sbx_ids_drop(r->facts->uid, r->facts->gid);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* after the change of ids, which clears it */
	if (e < 0 || getppid() != launcher)
		_exit(1);
	allow_files();
	do {
		e = sbx_channel_recv(KEEPER_CHANNEL, &go, 1, &n, &upper, 1, &n_fds, NULL);
	} while (e == -EINTR);
	if (e != 0 || n_fds != 1)
		_exit(1);
	result.error = keep(r->plan, upper, &result.counts, &err);
	memcpy(result.text, err.msg, sizeof(result.text));
	sbx_channel_send(KEEPER_CHANNEL, &result, sizeof(result), NULL, 0);
	_exit(0);
}

/* --- the launcher --- */

static int lower_fd(const struct sbx_plan *p)
{
	for (size_t i = 0; i < p->view.n_mounts; i++)
		if (p->view.mounts[i].kind == SBX_MOUNT_OVERLAY)
			return p->view.mounts[i].idmap ? p->view.mounts[i].mount_fd : p->view.mounts[i].source.fd;
	return -1;
}

int sbx_keep_begin(struct sbx_run *r)
{
	SBX_AUTO_CLOSE int ours = -1, theirs = -1;
	int fds[N_KEEPER_FDS], e;
	pid_t launcher = getpid(), pid;

	if (!r->plan->keep.path)
		return 0;
	e = sbx_channel_pair(&ours, &theirs);
	if (e < 0)
		return e;
	fds[KEEPER_CHANNEL] = theirs;
	fds[KEEPER_TARGET] = r->plan->keep.fd;
	fds[KEEPER_LOWER] = lower_fd(r->plan);
	pid = sbx_proc_clone(0, NULL, &r->err);
	if (pid == 0)
		keeper_main(r, fds, launcher);
	if (pid < 0)
		return pid;
	r->keeper_pid = pid;
	r->keep_fd = sbx_fd_steal(&ours);
	return 0;
}

/* A signal that ends the wait; 0: none did. SIGCHLD is the stage's. */
static int ending_signal(int signal_fd)
{
	struct signalfd_siginfo si;

	while (read(signal_fd, &si, sizeof(si)) == sizeof(si))
		if (si.ssi_signo != SIGCHLD)
			return (int)si.ssi_signo;
	return 0;
}

static void take_result(struct sbx_run *r)
{
	struct result result = { 0 };
	size_t n;

	if (sbx_channel_recv(r->keep_fd, &result, sizeof(result), &n, NULL, 0, NULL, NULL) != 0 ||
	    n != sizeof(result)) {
		sbx_err_set(&r->keep_err, "the process that copies it ended");
		return;
	}
	result.text[sizeof(result.text) - 1] = '\0';
	r->keep_counts = result.counts;
	r->kept = result.error == 0;
	if (!r->kept)
		sbx_err_set(&r->keep_err, "%s", result.text);
}

static void wait_for_keeper(struct sbx_run *r)
{
	struct pollfd p[] = { { .fd = r->keep_fd, .events = POLLIN },
			      { .fd = r->signal_fd, .events = POLLIN } };
	int sig = 0;

	while (sig == 0) {
		if (poll(p, SBX_N_ELEMENTS(p), -1) < 0) {
			if (errno == EINTR)
				continue;
			sbx_err_set(&r->keep_err, "%s", strerror(errno));
			return;
		}
		if (p[0].revents) {
			take_result(r);
			return;
		}
		sig = ending_signal(r->signal_fd);
	}
	sbx_err_set(&r->keep_err, "interrupted by signal %d", sig);
}

static void copy(struct sbx_run *r)
{
	while (ending_signal(r->signal_fd)) /* what came so far was for the command */
		;
	if (r->upper_fd < 0 || sbx_channel_send(r->keep_fd, "", 1, &r->upper_fd, 1) != 0)
		sbx_err_set(&r->keep_err, "the process that copies it ended");
	else
		wait_for_keeper(r);
}

void sbx_keep_end(struct sbx_run *r)
{
	if (r->keeper_pid > 0 && r->released)
		copy(r);
	if (r->keeper_pid > 0)
		kill(r->keeper_pid, SIGKILL); /* our child, not yet reaped */
	r->upper_fd = sbx_fd_close(r->upper_fd);
	r->keep_fd = sbx_fd_close(r->keep_fd);
	sbx_proc_reap(&r->keeper_pid);
}

bool sbx_keep_failed(const struct sbx_run *r)
{
	return r->released && r->plan->keep.path && !r->kept;
}
