/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_BROKER_CORE_CORE_TIMEOUTS_H
#define SBX_BROKER_CORE_CORE_TIMEOUTS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Deadlines that are all set the same time ahead. They form a queue in order of expiry: arming,
 * pushing back and disarming are a few pointer writes, and one kernel timer serves thousands of
 * flows. PURE: the clock is the caller's.
 */

struct sbx_timeouts;

/* Embedded in an object that can expire. Zeroed: not armed. */
struct sbx_timeout {
	struct sbx_timeout *prev, *next;
	struct sbx_timeouts *queue; /* NULL: not armed */
	uint64_t due_ms;
};

struct sbx_timeouts {
	uint32_t timeout_ms; /* 0: never; arming does nothing */
	struct sbx_timeout *first, *last;
};

void sbx_timeouts_init(struct sbx_timeouts *q, uint32_t timeout_ms);
/* Makes @t due in timeout_ms; moves it if it is armed, from another queue too. @now_ms never
 * goes back. */
void sbx_timeout_arm(struct sbx_timeouts *q, struct sbx_timeout *t, uint64_t now_ms);
void sbx_timeout_disarm(struct sbx_timeout *t);
/* Takes the first deadline off the queue if it is due; NULL if it is not. */
struct sbx_timeout *sbx_timeouts_expired(struct sbx_timeouts *q, uint64_t now_ms);
/* The time when the first deadline is due; UINT64_MAX: none is armed. */
uint64_t sbx_timeouts_next_ms(const struct sbx_timeouts *q);

#endif
