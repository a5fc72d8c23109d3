/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_DAEMON_ACCESS_AUDIT_QUEUE_H
#define SBX_DAEMON_ACCESS_AUDIT_QUEUE_H

#include <event2/event.h>

#include "store/store_service.h"

/*
 * The audit of changes that are not the database's own: a row before the change, and its end when
 * the launcher has answered. A change never waits for its row, as a sandbox that fills the disk
 * could not be ended otherwise. If the database is locked or the disk full, the end of a row, or
 * the row with its end, is kept and written later.
 *
 * Lost is only what is too much, or is not written when the service ends. Then a row stays without
 * an outcome, or is missing; a row "audit rows lost" tells how many are.
 */
#define SBX_AUDIT_QUEUE_MAX 1000
#define SBX_AUDIT_RETRY_S   2

struct sbx_audit_queue;

/* Both are borrowed. 0 or -ENOMEM. */
int sbx_audit_queue_new(struct event_base *base, struct sbx_store *store,
			struct sbx_audit_queue **ret_queue);
/* Tries once more to write what is left. Accepts NULL; returns NULL. */
struct sbx_audit_queue *sbx_audit_queue_free(struct sbx_audit_queue *q);

/* Begins a change. Returns the id of its row, which is copied; below 0: the row waits, or is
 * lost. Never 0. */
int64_t sbx_audit_queue_begin(struct sbx_audit_queue *q, const struct sbx_store_audit *row);

enum sbx_audit_end {
	SBX_AUDIT_OPEN, /* there is no end yet */
	SBX_AUDIT_MADE,
	SBX_AUDIT_REFUSED, /* it was not made: its row is taken back */
	SBX_AUDIT_UNKNOWN, /* the row stays without an outcome */
};
/* @id: of sbx_audit_queue_begin(), or of a row that was written otherwise. @after_json, which is
 * copied: the state after the change; NULL: as the row has it. */
void sbx_audit_queue_end(struct sbx_audit_queue *q, int64_t id, enum sbx_audit_end end,
			 const char *after_json);

#endif
