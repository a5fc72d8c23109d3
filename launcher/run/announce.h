/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_RUN_ANNOUNCE_H
#define SBX_LAUNCHER_RUN_ANNOUNCE_H

#include "launcher/run/run.h"

/*
 * Messages to the service manager. Errors are ignored: a manager that is missing, full or broken
 * changes nothing. Without $NOTIFY_SOCKET none of these functions makes a system call.
 */

/* Sends READY=1 to $NOTIFY_SOCKET: the command was released. Sends what the start has to say (the
 * plan's notes, limits that nothing holds) before that, also with --quiet: a message for each of
 * the first SBX_ANNOUNCE_WARNINGS_MAX, "X_SBX_WARNING=TEXT". */
#define SBX_ANNOUNCE_WARNINGS_MAX 16
void sbx_announce_ready(const struct sbx_run *r);
/* The end has begun. Sends STOPPING=1 to $NOTIFY_SOCKET if READY=1 was sent, else only the reason
 * as a status. */
void sbx_announce_stopping(const struct sbx_run *r);

#endif
