/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_RUN_ANNOUNCE_H
#define SBX_LAUNCHER_RUN_ANNOUNCE_H

#include <stdbool.h>

#include "launcher/run/run.h"

/*
 * Messages about a sandbox to a service manager and its journal. Errors are ignored: a missing, full or broken receiver
 * changes nothing. Without systemd's variables in the environment no function makes a system call.
 */

/* Sends READY=1 to $NOTIFY_SOCKET: the command was released. */
void sbx_announce_ready(const struct sbx_run *r);
/* The end has begun. Sends STOPPING=1 to $NOTIFY_SOCKET if READY=1 was sent, else only the reason as a status. */
void sbx_announce_stopping(const struct sbx_run *r);

/* A change of state, for the journal. @id and @state are required; the other strings may be NULL. */
struct sbx_state_change {
	const char *id;
	enum sbx_store_state state;
	const struct sbx_options *options; /* NULL: unknown, because the launcher is dead */
	int exit_status;		   /* negative: not known (yet) */
	const char *why;		   /* "": nothing went wrong */
};
/* Writes one structured entry, if $INVOCATION_ID or $JOURNAL_STREAM say that systemd started us. */
void sbx_announce_state(const struct sbx_state_change *c);

/* PURE. Finds the innermost service or scope in the text of /proc/PID/cgroup. False: there is none, or its name does not
 * fit @ret_unit. */
bool sbx_announce_unit(const char *cgroups, char *ret_unit, size_t n_unit);

#endif
