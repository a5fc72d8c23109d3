/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_CLEANUP_CLEANUP_PROCESS_H
#define SBX_LAUNCHER_CLEANUP_CLEANUP_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "launcher/host/facts.h"

/* The process that undoes what a killed launcher cannot. */
struct sbx_cleanup {
	pid_t pid; /* 0: none */
	int fd;	   /* write end of a pipe; the cleanup process acts when it closes */
	/* it ended by itself: the sandbox must end too, because nobody would clean up after it */
	bool gone;
	/* sbx_cleanup_end() leaves it: the host's firewall still has rules of the sandbox */
	bool stays;
};
#define SBX_CLEANUP_INIT ((struct sbx_cleanup){ .fd = -1 })

/* Borrowed until sbx_cleanup_start() returns. */
struct sbx_cleanup_job {
	const struct sbx_facts *facts;
	const char *id;
	int terminal_fd; /* the terminal to set back; -1: none */
	pid_t stage_pid; /* when it has ended, nothing changes the terminal any more */
	uint64_t caps;	 /* capabilities that it keeps */
};

/* Closes the pipe. A fork of the launcher calls this: the cleanup process must see the end of
 * the launcher alone. */
void sbx_cleanup_fini(struct sbx_cleanup *c);

/* Start the process, before what it removes is made. 0 or -errno with @err. */
int sbx_cleanup_start(struct sbx_cleanup *c, const struct sbx_cleanup_job *job,
		      struct sbx_err *err);
/* The launcher has undone everything itself: end the process, unless it stays. */
void sbx_cleanup_end(struct sbx_cleanup *c);

#endif
