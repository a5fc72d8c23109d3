/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The cleanup process undoes what a killed launcher cannot.
 *
 * It is a fork of the launcher that waits for the end of a pipe. It holds the read end, the
 * terminal if there is one (with a pidfd of the stage), and no other descriptor. It has no
 * capabilities; with attach cgroup it has CAP_NET_ADMIN.
 *
 * End of file means that the launcher was killed: a launcher that is done ends the cleanup
 * process first. The kernel has ended the stage and the broker already (PDEATHSIG). The cleanup
 * process then
 * - lets others open the terminal again,
 * - removes the runtime directory, if its lock is free (another sandbox may have that name by
 *   now),
 * - gives the sandbox's row its final state.
 *
 * It has a session of its own, so a SIGKILL to the launcher's process group misses it. If both
 * are killed, the next start sweeps. It is started before the directory is made, and ended after
 * the row has its state and the directory is gone.
 *
 * Its memory is a copy of the launcher's, which may be root's. Both are not dumpable: another
 * process of the same uid cannot read it.
 *
 * In a scope (attach cgroup) a sandbox may leave rules that cannot be removed yet. The cleanup
 * process then stays for a while, even if the launcher was not killed: systemd removes a scope
 * with its last process, and without the scope nobody can tell when the rules may go.
 */
#include "launcher/cleanup/cleanup_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "launcher/cleanup/cgroup_gc.h"
#include "launcher/cleanup/gc_report.h"
#include "launcher/cleanup/sweep.h"
#include "store/store.h"
#include "sys/process/proc.h"

#define LOST_TRIES 20
#define LOST_PAUSE_NS 50000000
#define TERMINAL_WAIT_MS 1000
/* The kernel takes some minutes to give up a connection whose peer is gone. */
#define SCOPE_GC_MS (15 * 60 * 1000)

enum { FD_PIPE, FD_TERMINAL, FD_STAGE, N_FDS };

/* Waits for the end of the stage, the last process that could change the terminal. Then others
 * can open the terminal again, and its output goes on. */
static void free_terminal(void)
{
	struct pollfd p = { .fd = FD_STAGE, .events = POLLIN };

	poll(&p, 1, TERMINAL_WAIT_MS);
	ioctl(FD_TERMINAL, TIOCNXCL);
	ioctl(FD_TERMINAL, TCXONC, TCOON);
}

/* Tries for a second: a protect helper, unless it was killed as well, removes meanwhile what
 * only its user may remove. */
static void remove_in_time(const struct sbx_facts *f, const char *id)
{
	SBX_AUTO_CLOSE int parent_fd =
		open(f->runtime_dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	const struct timespec pause = { .tv_nsec = LOST_PAUSE_NS };

	for (int i = 0; i < LOST_TRIES && parent_fd >= 0; i++) {
		if (sbx_sweep_dead(f, parent_fd, id, SBX_STORE_BUSY_MS, NULL) != 0 ||
		    faccessat(parent_fd, id, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
			return;
		nanosleep(&pause, NULL);
	}
}

/* The launcher was killed. */
static void undo_lost(const struct sbx_facts *f, const char *id)
{
	struct sbx_gc gc = { .facts = f };
	struct sbx_err err = { 0 };
	sigset_t none;

	remove_in_time(f, id);
	sbx_cgroup_gc(&gc, &err);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL); /* a SIGTERM that stops the scope ends us at once */
	sbx_cgroup_gc_scope(id, SCOPE_GC_MS);
}

/* @fds, at most N_FDS, become 0-2; everything else is closed: a reader of the launcher's output
 * must see its end. */
static _Noreturn void cleanup_main(const struct sbx_cleanup_job *job, const int *fds, size_t n_fds)
{
	static const int numbers[N_FDS] = { FD_PIPE, FD_TERMINAL, FD_STAGE };
	sigset_t all;
	char byte;
	int null_fd;

	setsid();
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	/* No capability is needed for files, which our uid owns; the rules of the host's firewall
	 * need one. */
	if (sbx_proc_arrange_fds(fds, numbers, n_fds) < 0 ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || sbx_caps_keep(job->caps) < 0 ||
	    read(FD_PIPE, &byte, 1) != 0)
		_exit(125);
	if (n_fds == N_FDS)
		free_terminal();
	/* 0-2 must be open before the database is: a message for stderr must not be written into
	 * it. */
	null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int fd = 0; fd < 3; fd++)
		if (dup2(null_fd, fd) < 0)
			_exit(125);
	undo_lost(job->facts, job->id);
	_exit(0);
}

static int start(struct sbx_cleanup *c, const struct sbx_cleanup_job *job, struct sbx_err *err)
{
	SBX_AUTO_CLOSE int read_end = -1, write_end = -1, stage_pidfd = -1;
	int e = sbx_fd_pipe(&read_end, &write_end);
	pid_t pid;

	if (e < 0)
		return e;
	if (job->terminal_fd >= 0 && job->stage_pid > 0)
		stage_pidfd = (int)syscall(SYS_pidfd_open, job->stage_pid, 0);
	/* again: a change of ids sets it where fs.suid_dumpable says so */
	if (prctl(PR_SET_DUMPABLE, 0) < 0)
		return -errno;
	pid = sbx_proc_clone(0, NULL, err);
	if (pid == 0)
		cleanup_main(job, (const int[]){ read_end, job->terminal_fd, stage_pidfd },
			     stage_pidfd >= 0 ? N_FDS : FD_PIPE + 1);
	if (pid < 0)
		return pid;
	c->pid = pid;
	c->fd = sbx_fd_steal(&write_end);
	return 0;
}

int sbx_cleanup_start(struct sbx_cleanup *c, const struct sbx_cleanup_job *job, struct sbx_err *err)
{
	int e = start(c, job, err);

	if (e < 0)
		sbx_err_set(err, "cannot start the cleanup process: %s", strerror(-e));
	return e;
}

void sbx_cleanup_end(struct sbx_cleanup *c)
{
	if (!c->stays)
		sbx_proc_end(&c->pid);
	sbx_cleanup_fini(c); /* a process that stays waits for the end of file */
}

void sbx_cleanup_fini(struct sbx_cleanup *c)
{
	c->fd = sbx_fd_close(c->fd);
}
