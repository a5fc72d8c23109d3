/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_INIT_PID1_H
#define SBX_LAUNCHER_INIT_PID1_H

#include <stdbool.h>
#include <sys/types.h>

struct sbx_pid1 {
	int exec_fd;   /* channel to the launcher; no other descriptor stays open */
	pid_t command; /* the first command, a child */
	bool wait_all; /* stay until no process is left, not only until the command has ended */
	bool held;     /* there is a list of programs */
};

/* Reaps, and executes further commands for the launcher, until the sandbox ends. */
_Noreturn void sbx_pid1_stay(const struct sbx_pid1 *p);

/* Sets @sig to SIG_DFL. */
void sbx_pid1_reset_signal(int sig);
/* Blocks all signals, or none. */
void sbx_pid1_mask_signals(bool blocked);

#endif
