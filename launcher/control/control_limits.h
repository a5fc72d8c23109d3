/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_CONTROL_CONTROL_LIMITS_H
#define SBX_LAUNCHER_CONTROL_CONTROL_LIMITS_H

/* Limits of the control socket's clients, besides those of lines (control/protocol.h). */
#define SBX_CONTROL_CLIENTS_MAX 80
/* Clients that stay connected for a command or for events; 64 commands run at the same time. The
 * other places are for requests: the sandbox can always be shown, changed and killed. */
#define SBX_CONTROL_STAY_MAX	72
#define SBX_CONTROL_EVENTS_KEPT 256
#define SBX_CONTROL_LINE_MS	10000 /* a line that has begun must be whole by then */
#define SBX_CONTROL_STALL_MS	60000 /* a client that takes nothing for so long is cut */

#endif
