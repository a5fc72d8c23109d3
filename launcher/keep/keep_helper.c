/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The keep helper: copies what the command wrote to its overlay, for --keep.
 *
 * Access: the upper layer is on a tmpfs of the stage's mount namespace, which ends with the stage.
 * The stage sends the launcher a descriptor of the directory (STAGE_UPPER). The descriptor keeps
 * the mount alive after the namespace has ended.
 *
 * Time: the helper copies after the stage has been reaped. The stage is pid 1 of the sandbox's pid
 * namespace, so every process in it has been reaped before. A process outside that got a directory
 * from the command may still write to the overlay, so keep_copy.c does not rely on the tree being
 * at rest.
 *
 * Privileges: the helper is a fork of the launcher with the ids of the sandbox's user. A privileged
 * launcher must not write where a user's directory leads. The helper has only the two directories
 * that planning judged and the channel.
 *
 * The tmpfs goes with its last descriptor: when the helper ends, or when the launcher is killed,
 * which kills the helper too (PDEATHSIG). The files that a killed helper has copied stay, without
 * the list that says that the copy is complete (keep_copy.h).
 */
#include "launcher/keep/keep_helper.h"

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
#include "launcher/rootfs/overlay.h"
#include "sys/process/proc.h"

enum { FD_CHANNEL, FD_TARGET, FD_LOWER, N_FDS };

/* The helper's answer. The sandbox's user may have changed it, so the text is escaped once more. */
struct result {
	int error; /* -errno */
	struct sbx_keep_counts counts;
	char text[SBX_ERR_MSG_MAX];
};

/* --- the helper --- */

static int open_target(const char *name, struct sbx_err *err)
{
	int fd;

	if (name && mkdirat(FD_TARGET, name, 0777) < 0) {
		sbx_err_set(err, "it cannot be made: %s", strerror(errno));
		return -errno;
	}
	fd = openat(FD_TARGET, name ? name : ".", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int copy(const struct sbx_plan *p, int upper, struct sbx_keep_counts *ret_counts,
		struct sbx_err *err)
{
	const struct sbx_keep_bounds bounds = { p->view.scratch_bytes,
						sbx_scratch_inodes(p->view.scratch_bytes) };
	SBX_AUTO_CLOSE int target = open_target(p->keep.name, err);

	return target < 0 ? target :
			    sbx_keep_copy(upper, FD_LOWER, target, &bounds, ret_counts, err);
}

/* Each level of directories takes three descriptors. */
static void allow_files(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
}

static _Noreturn void helper_main(const struct sbx_plan *p, const int fds[N_FDS], pid_t launcher)
{
	static const int numbers[N_FDS] = { FD_CHANNEL, FD_TARGET, FD_LOWER };
	struct result result = { 0 };
	struct sbx_err err = { 0 };
	int upper = -1, e;
	size_t n, n_fds = 0;
	char go;

	e = sbx_proc_arrange_fds(fds, numbers, N_FDS);
	if (e == 0)
		e = sbx_ids_drop(p->facts->uid, p->facts->gid);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* after the change of ids, which clears it */
	if (e < 0 || getppid() != launcher)
		_exit(1);
	allow_files();
	do {
		e = sbx_channel_recv(FD_CHANNEL, &go, 1, &n, &upper, 1, &n_fds, NULL);
	} while (e == -EINTR);
	if (e != 0 || n_fds != 1)
		_exit(1);
	result.error = copy(p, upper, &result.counts, &err);
	memcpy(result.text, err.msg, sizeof(result.text));
	sbx_channel_send(FD_CHANNEL, &result, sizeof(result), NULL, 0);
	_exit(0);
}

/* --- the launcher --- */

static int lower_fd(const struct sbx_plan *p)
{
	for (size_t i = 0; i < p->view.n_mounts; i++)
		if (p->view.mounts[i].kind == SBX_MOUNT_OVERLAY)
			return p->view.mounts[i].idmap ? p->view.mounts[i].mount_fd :
							 p->view.mounts[i].source.fd;
	return -1;
}

void sbx_keep_helper_init(struct sbx_keep_helper *k)
{
	*k = (struct sbx_keep_helper){ .fd = -1, .upper_fd = -1 };
}

void sbx_keep_helper_fini(struct sbx_keep_helper *k)
{
	sbx_proc_end(&k->pid);
	k->upper_fd = sbx_fd_close(k->upper_fd);
	k->fd = sbx_fd_close(k->fd);
}

int sbx_keep_helper_start(struct sbx_keep_helper *k, const struct sbx_plan *p, struct sbx_err *err)
{
	SBX_AUTO_CLOSE int ours = -1, theirs = -1;
	int fds[N_FDS], e;
	pid_t launcher = getpid(), pid;

	if (!p->keep.path)
		return 0;
	e = sbx_channel_pair(&ours, &theirs);
	if (e < 0)
		return e;
	fds[FD_CHANNEL] = theirs;
	fds[FD_TARGET] = p->keep.fd;
	fds[FD_LOWER] = lower_fd(p);
	pid = sbx_proc_clone(0, NULL, err);
	if (pid == 0)
		helper_main(p, fds, launcher);
	if (pid < 0)
		return pid;
	k->pid = pid;
	k->fd = sbx_fd_steal(&ours);
	return 0;
}

/* A signal that ends the wait; 0: none came. SIGCHLD is the stage's. */
static int ending_signal(int signal_fd)
{
	struct signalfd_siginfo si;

	while (read(signal_fd, &si, sizeof(si)) == sizeof(si))
		if (si.ssi_signo != SIGCHLD)
			return (int)si.ssi_signo;
	return 0;
}

static void take_result(struct sbx_keep_helper *k)
{
	struct result result = { 0 };
	size_t n;

	if (sbx_channel_recv(k->fd, &result, sizeof(result), &n, NULL, 0, NULL, NULL) != 0 ||
	    n != sizeof(result)) {
		sbx_err_set(&k->err, "the process that copies it ended");
		return;
	}
	result.text[sizeof(result.text) - 1] = '\0';
	k->counts = result.counts;
	k->kept = result.error == 0;
	if (!k->kept)
		sbx_err_set(&k->err, "%s", result.text);
}

static void wait_for_result(struct sbx_keep_helper *k, int signal_fd)
{
	struct pollfd p[] = { { .fd = k->fd, .events = POLLIN },
			      { .fd = signal_fd, .events = POLLIN } };
	int sig = 0;

	while (sig == 0) {
		if (poll(p, SBX_N_ELEMENTS(p), -1) < 0) {
			if (errno == EINTR)
				continue;
			sbx_err_set(&k->err, "%s", strerror(errno));
			return;
		}
		if (p[0].revents) {
			take_result(k);
			return;
		}
		sig = ending_signal(signal_fd);
	}
	sbx_err_set(&k->err, "interrupted by signal %d", sig);
}

static void let_copy(struct sbx_keep_helper *k, int signal_fd)
{
	while (ending_signal(signal_fd)) /* earlier signals were for the command */
		;
	if (k->upper_fd < 0 || sbx_channel_send(k->fd, "", 1, &k->upper_fd, 1) != 0)
		sbx_err_set(&k->err, "the process that copies it ended");
	else
		wait_for_result(k, signal_fd);
	k->failed = !k->kept;
}

void sbx_keep_helper_finish(struct sbx_keep_helper *k, bool ran, int signal_fd)
{
	if (k->pid > 0 && ran)
		let_copy(k, signal_fd);
	sbx_keep_helper_fini(k);
}
