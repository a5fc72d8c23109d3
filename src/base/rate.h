/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_BASE_RATE_H
#define SBX_BASE_RATE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * A count over a sliding window: how many in the last @window_ms? Bounded in memory: the window is
 * cut into SBX_RATE_SLOTS slots, so the count is over the window and up to one slot more, never
 * over less. PURE: the time comes from the caller.
 */
#define SBX_RATE_SLOTS 64

struct sbx_rate {
	uint64_t limit, slot_ms;
	uint64_t newest; /* number of the newest slot */
	uint64_t n[SBX_RATE_SLOTS + 1];
};

/* @limit 0: never passed. @window_ms: from 1. */
void sbx_rate_init(struct sbx_rate *r, uint64_t limit, uint64_t window_ms);
/* Adds @n at @now_ms, of any clock that does not go back. Are there more than @limit now? */
bool sbx_rate_add(struct sbx_rate *r, uint64_t now_ms, uint64_t n);

#endif
