/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_STAGE_INIT_PROCESS_H
#define SBX_LAUNCHER_STAGE_INIT_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

#include "ipc/messages.h"

/*
 * The sandbox's init (launcher/init/) as the launcher sees it. The stage makes the process; the
 * launcher holds one end of its channel. The first message comes from pid 1 of the sandbox, the
 * verdicts come from the process that executes the command after the release.
 */
struct sbx_init_process {
	int fd;		 /* channel; -1: closed */
	int exec_fd;	 /* channel to pid 1, for further commands; -1: closed */
	pid_t pid;	 /* of pid 1, in the launcher's pid namespace; 0: no hello yet */
	int command_fd;	 /* pidfd of the process that becomes the command; -1: none yet */
	int watch_error; /* -errno: command_fd could not be opened; 0: it could, or the process
			  * has ended */
	bool hello, has_verdicts, exec_failed;
	/* the channel is closed: after the release this is the exec */
	bool gone;
	struct sbx_msg_verdicts verdicts; /* empty before has_verdicts */
};

/* Nothing is open yet. */
void sbx_init_process_init(struct sbx_init_process *p);
/* Closes the descriptors. The received values stay. */
void sbx_init_process_fini(struct sbx_init_process *p);

/* Makes the channels. *ret_peer_fd and *ret_exec_peer_fd are init's ends, for the stage. 0 or
 * -errno. */
int sbx_init_process_open(struct sbx_init_process *p, int *ret_peer_fd, int *ret_exec_peer_fd);

/* Opens the process @pid, the sender of the verdicts as the kernel vouches, for
 * sbx_init_process_signal(). */
void sbx_init_process_watch(struct sbx_init_process *p, pid_t pid);

/* Sends @sig to the command. 0, or -errno (-ESRCH: it has ended and was reaped; -EBADF: there is
 * none yet). */
int sbx_init_process_signal(const struct sbx_init_process *p, int sig);

#endif
