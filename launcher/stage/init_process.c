/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The launcher's end of the channel to sbx-init. run/supervise.c judges its messages. */
#include "launcher/stage/init_process.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "ipc/channel.h"

void sbx_init_process_init(struct sbx_init_process *p)
{
	p->fd = p->exec_fd = p->command_fd = -1;
}

void sbx_init_process_fini(struct sbx_init_process *p)
{
	p->fd = sbx_fd_close(p->fd);
	p->exec_fd = sbx_fd_close(p->exec_fd);
	p->command_fd = sbx_fd_close(p->command_fd);
}

static int open_channel(int *ret_ours, int *ret_theirs)
{
	SBX_AUTO_CLOSE int ours = -1, theirs = -1;
	int e = sbx_channel_pair(&ours, &theirs);

	if (e == 0)
		e = sbx_fd_set_nonblocking(ours);
	if (e < 0)
		return e;
	sbx_fd_close(*ret_ours);
	*ret_ours = sbx_fd_steal(&ours);
	*ret_theirs = sbx_fd_steal(&theirs);
	return 0;
}

int sbx_init_process_open(struct sbx_init_process *p, int *ret_peer_fd, int *ret_exec_peer_fd)
{
	SBX_AUTO_CLOSE int theirs = -1;
	int e = open_channel(&p->fd, &theirs);

	if (e == 0)
		e = open_channel(&p->exec_fd, ret_exec_peer_fd);
	if (e < 0)
		return e;
	*ret_peer_fd = sbx_fd_steal(&theirs);
	return 0;
}

void sbx_init_process_watch(struct sbx_init_process *p, pid_t pid)
{
	p->command_fd = (int)syscall(SYS_pidfd_open, pid, 0);
	/* ESRCH: the process ended. The reason is still to come. */
	p->watch_error = p->command_fd >= 0 || errno == ESRCH ? 0 : -errno;
}

int sbx_init_process_signal(const struct sbx_init_process *p, int sig)
{
	return syscall(SYS_pidfd_send_signal, p->command_fd, sig, NULL, 0) < 0 ? -errno : 0;
}
