/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_BASE_FOLD_H
#define SBX_BASE_FOLD_H

#include <stdint.h>

#include "base/event.h"

/*
 * Folding of events: equal events that come within one window become one event with a count. Events
 * are equal if they have the same action, proto, addr, port, name, reason, rule, request and
 * generation; bytes add up, and of durations the longest stays.
 *
 * An event that has no equal in the window before is emitted early, after some milliseconds; equal
 * ones that follow are emitted with the window's end. So a burst is one event more, and its first
 * event is not late. At most SBX_FOLD_EARLY_MAX events of a window are early: in a flood of
 * different events the others wait for their window's end.
 *
 * Bounded in memory, and no count is ever lost: past the limit of different events they are added
 * up per action as reason `overflow`. PURE: time comes in, events go out.
 */
struct sbx_fold;

/* The windows of the broker and of the launcher, through which an event goes one after the other: a
 * refusal is in the database within a second of the packet, with time left for the write. */
#define SBX_FOLD_BROKER_MS   500
#define SBX_FOLD_LAUNCHER_MS 250
#define SBX_FOLD_EARLY_MS    10
#define SBX_FOLD_EARLY_MAX   8
#define SBX_FOLD_IDLE	   UINT64_MAX /* sbx_fold_next_ms: nothing is held */

/* Receives folded events, oldest first. @v is borrowed for the call. The fold must not be used
 * inside. */
typedef void (*sbx_fold_emit_fn)(const struct sbx_event *v, void *userdata);

/*
 * @n_keys: different events held at once, 1..65536 (limits.n_event_keys); takes some 900 bytes
 * each, touched only as they are used. @window_ms: from 1. @early_ms: at most that; 0: no event
 * is early. @seed: random, so that the sandbox cannot choose names that collide. 0, -EINVAL or
 * -ENOMEM.
 */
int sbx_fold_new(uint32_t n_keys, uint32_t window_ms, uint32_t early_ms, uint64_t seed,
		 struct sbx_fold **ret_fold);
/* Accepts NULL; returns NULL. Drops the events held: flush first. */
struct sbx_fold *sbx_fold_free(struct sbx_fold *f);

/*
 * Add @v (borrowed; its count is added). @now_ms is of any clock that does not go back, the same in
 * every call. Emits those that are due first. O(1), and never fails.
 */
void sbx_fold_add(struct sbx_fold *f, const struct sbx_event *v, uint64_t now_ms,
		  sbx_fold_emit_fn emit, void *userdata);
/* Emit the events whose window is over at @now_ms, or that are early and due. */
void sbx_fold_flush(struct sbx_fold *f, uint64_t now_ms, sbx_fold_emit_fn emit, void *userdata);
/* Emit everything. */
void sbx_fold_flush_all(struct sbx_fold *f, sbx_fold_emit_fn emit, void *userdata);
/* When sbx_fold_flush() next has something to emit, in @now_ms's clock; SBX_FOLD_IDLE: nothing is
 * held. */
uint64_t sbx_fold_next_ms(const struct sbx_fold *f);
/* Events so far that were added to an equal event (sbx_msg_stats.events_folded). */
uint64_t sbx_fold_n_folded(const struct sbx_fold *f);
/* Events so far that went to an overflow row because all slots were used. */
uint64_t sbx_fold_n_overflowed(const struct sbx_fold *f);

#endif
