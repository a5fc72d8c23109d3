/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_RUN_SUPERVISE_H
#define SBX_LAUNCHER_RUN_SUPERVISE_H

#include "launcher/run/run.h"

/* The event that a wait is for. Every wait also ends when the event can no longer come. */
enum sbx_wait {
	SBX_WAIT_TLS,	   /* TLS_READY */
	SBX_WAIT_STAGE,    /* STAGE_READY */
	SBX_WAIT_SELFTEST, /* every verdict, MOUNTS_CHECKED, and the broker's READY */
	SBX_WAIT_RELEASE,  /* the broker's answer that the self-test is over for it */
	SBX_WAIT_COMMAND,  /* its end: COMMAND_EXIT */
	SBX_WAIT_BROKER,   /* the broker's STATS, in answer to STOP */
};

/* The launcher's one loop: channels, signals, the wall clock, events on their way to the database.
 * 0: @what came; 1: it can no longer come (r says why: a helper gone, a protocol broken, an
 * interrupt before the release); -ETIMEDOUT; -errno. @timeout_ms 0: none. */
int sbx_supervise(struct sbx_run *r, enum sbx_wait what, uint32_t timeout_ms);

/* Block the signals that are handed on to the command, and open r->signal_fd. Before any fork. */
int sbx_supervise_signals(struct sbx_run *r);

/* Sends @sig to the command; with --wait-all, when the command has ended, to the processes that it
 * left behind. 0 or -errno (-ESRCH: it has ended). */
int sbx_supervise_forward(struct sbx_run *r, int sig);

/* Start the wall clock of limits.wall_time. 0 or -errno. */
int sbx_supervise_wall_clock(struct sbx_run *r);
/* Let it end the sandbox @ms milliseconds from now. 0 or -errno. */
int sbx_supervise_wall_clock_set(struct sbx_run *r, uint64_t ms);

/* No process of the sandbox is left: reads the last messages about further commands, and tells the
 * end of those that are left. */
void sbx_supervise_execs_end(struct sbx_run *r);

#endif
