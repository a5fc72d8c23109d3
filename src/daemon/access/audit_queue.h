/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_DAEMON_ACCESS_AUDIT_QUEUE_H
#define SBX_DAEMON_ACCESS_AUDIT_QUEUE_H

#include <event2/event.h>

#include "store/store_service.h"

/*
 * Ends of changes that are not the database's own: their audit rows were written before them. An
 * end that the database does not take now, as it is locked or the disk is full, is written later.
 * If there are too many, or the service ends before, the row stays as it is, without an outcome.
 */
#define SBX_AUDIT_QUEUE_MAX 1000 /* ends */
#define SBX_AUDIT_RETRY_S   2

struct sbx_audit_queue;

/* Both are borrowed. 0 or -ENOMEM. */
int sbx_audit_queue_new(struct event_base *base, struct sbx_store *store,
			struct sbx_audit_queue **ret_queue);
/* Tries once more to write what is left. Accepts NULL; returns NULL. */
struct sbx_audit_queue *sbx_audit_queue_free(struct sbx_audit_queue *q);

/* The change of row @id was made, now or later. @after_json, which is copied: the state after it;
 * NULL: as the row has it. */
void sbx_audit_queue_made(struct sbx_audit_queue *q, int64_t id, const char *after_json);
/* It was not made: its row is taken back. */
void sbx_audit_queue_remove(struct sbx_audit_queue *q, int64_t id);

#endif
