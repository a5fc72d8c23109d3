/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_RUN_ANNOUNCE_H
#define SBX_LAUNCHER_RUN_ANNOUNCE_H

#include <stdbool.h>

#include "launcher/run/run.h"

/*
 * What a service manager and its journal hear of a sandbox. Whoever is not there, full or broken changes nothing:
 * errors are ignored. Without systemd's variables in the environment none of these makes a system call.
 */

/* READY=1: the command was released. To $NOTIFY_SOCKET. */
void sbx_announce_ready(const struct sbx_run *r);
/* The end has begun: STOPPING=1 after READY=1, else only why. To $NOTIFY_SOCKET. */
void sbx_announce_stopping(const struct sbx_run *r);

/* A change of state, for the journal. @id and @state must be there; other strings may be NULL. */
struct sbx_state_change {
	const char *id;
	enum sbx_store_state state;
	const struct sbx_options *options; /* NULL: not known, the launcher is dead */
	int exit_status;		   /* negative: not known (yet) */
	const char *why;		   /* "": nothing went wrong */
};
/* One structured entry, where $INVOCATION_ID or $JOURNAL_STREAM say that systemd started us. */
void sbx_announce_state(const struct sbx_state_change *c);

/* PURE. The innermost service or scope in the text of /proc/PID/cgroup. False: there is none, or it has no room
 * in @ret_unit. */
bool sbx_announce_unit(const char *cgroups, char *ret_unit, size_t n_unit);

#endif
