/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_DAEMON_MAIN_ALIVE_H
#define SBX_DAEMON_MAIN_ALIVE_H

#include <event2/event.h>

/* Tells the service manager that the loop turns (sd_watchdog_enabled(3)), twice in each of its
 * intervals. NULL: it does not want to know, or no memory. */
struct event *sbx_alive_start(struct event_base *base);

#endif
