/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_CONTROL_CONTROL_EVENTS_H
#define SBX_LAUNCHER_CONTROL_CONTROL_EVENTS_H

#include <stdint.h>

#include "base/event.h"
#include "launcher/control/session.h"

/* The last events of the sandbox, for its followers. A slow follower costs no memory: it is told
 * how many it missed. */
struct sbx_control_events {
	uint64_t n;		/* events so far: the number of the last one */
	struct sbx_event *kept; /* SBX_CONTROL_EVENTS_KEPT, by their number; heap, NULL: no event */
};

void sbx_control_events_add(struct sbx_control_events *v, const struct sbx_event *e);
void sbx_control_events_fini(struct sbx_control_events *v);
/* Queues what the follower @s has room for. False: there is no memory now. */
bool sbx_control_events_fill(const struct sbx_control_events *v, struct sbx_control_session *s);

#endif
