/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A program of ours is started: cloned into its cgroup, made the broker's user, executed.
 *
 * It cannot outlive the launcher: PDEATHSIG is set after its ids are dropped (a change of ids
 * clears it), and the end of its channel ends it as well.
 */
#include "launcher/resources/program.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "ipc/channel.h"
#include "launcher/process/exec_failed.h"
#include "sys/process/proc.h"

struct child {
	const struct sbx_facts *facts;
	const char *path, *name, *argument;
	int channel;
	pid_t parent;
};

/* Runs in the child until exec. */
static _Noreturn void exec_program(const struct child *c)
{
	const struct sbx_facts *f = c->facts;
	/* The broker's user may not reach the program by its path (a source tree in root's
	 * home). */
	int exe = open(c->path, O_PATH | O_CLOEXEC);
	const int fds[] = { 2, c->channel, exe }, numbers[] = { 2, 3, 4 };
	static char *no_env[] = { NULL };
	char *argv[] = { (char *)(uintptr_t)c->name, (char *)(uintptr_t)c->argument, NULL };
	int r = f->privileged ? sbx_ids_drop(f->broker_uid, f->broker_gid) : 0;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != c->parent)
		_exit(125);
	if (r == 0)
		r = sbx_proc_arrange_fds(fds, numbers, SBX_N_ELEMENTS(fds) - (exe < 0));
	if (r < 0)
		sbx_exec_failed(c->path, -r, "");
	if (exe >= 0)
		fcntl(4, F_SETFD, FD_CLOEXEC);
	if (open("/dev/null", O_RDWR) != 0 || dup2(0, 1) != 1)
		sbx_exec_failed(c->path, errno, " (it needs /dev/null)");
	execve(c->path, argv, no_env);
	if (errno == EACCES && exe >= 0)
		execveat(4, "", argv, no_env, AT_EMPTY_PATH);
	sbx_exec_failed(c->path, errno, " (is sbx installed completely?)");
}

int sbx_program_start(const struct sbx_facts *f, const char *name, const char *argument,
		      int cgroup_fd, pid_t *ret_pid, int *ret_fd, struct sbx_err *err)
{
	SBX_AUTO_CLOSE int ours = -1, theirs = -1;
	struct child child = { .facts = f, .name = name, .argument = argument,
			       .parent = getpid() };
	char path[4096];
	pid_t pid;
	int r = sbx_text_format(path, sizeof(path), "%s/%s", f->libexec_dir, name);

	if (r == 0)
		r = sbx_channel_pair(&ours, &theirs);
	if (r == 0)
		r = sbx_fd_set_nonblocking(ours);
	child.path = path;
	child.channel = theirs;
	pid = r < 0 ? r : sbx_proc_clone_into(0, cgroup_fd, NULL, NULL);
	if (pid == 0)
		exec_program(&child);
	if (pid < 0) {
		sbx_err_set(err, "cannot start %s: %s", name, strerror(-pid));
		return pid;
	}
	*ret_pid = pid;
	*ret_fd = sbx_fd_steal(&ours);
	return 0;
}

int sbx_program_configure(int fd, const char *name, const void *packet, size_t n, const int *fds,
			  size_t n_fds, struct sbx_err *err)
{
	int r = sbx_channel_send(fd, packet, n, fds, n_fds);

	if (r == SBX_CHANNEL_E_CLOSED)
		sbx_err_set(err, "%s ended before it was configured", name);
	r = r > 0 ? -EPIPE : r;
	if (r < 0)
		sbx_err_set(err, "cannot configure %s: %s", name, strerror(-r));
	return r;
}

void sbx_program_end(pid_t *pid, int *fd)
{
	sbx_proc_end(pid);
	*fd = sbx_fd_close(*fd);
}
