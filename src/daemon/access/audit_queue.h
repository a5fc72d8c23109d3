/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_DAEMON_ACCESS_AUDIT_QUEUE_H
#define SBX_DAEMON_ACCESS_AUDIT_QUEUE_H

#include <event2/event.h>

#include "store/store_service.h"

/*
 * Audit rows of changes that are done already, by launchers, and cannot be undone. A row that the
 * database does not take now, as it is locked or the disk is full, is kept and written later, in
 * its order. Rows are lost only if there are too many, or if the service ends before the database
 * takes them; a row tells how many were.
 */
#define SBX_AUDIT_QUEUE_MAX 1000 /* rows */
#define SBX_AUDIT_RETRY_S   2

struct sbx_audit_queue;

/* Both are borrowed. 0 or -ENOMEM. */
int sbx_audit_queue_new(struct event_base *base, struct sbx_store *store,
			struct sbx_audit_queue **ret_queue);
/* Tries once more to write what is left. Accepts NULL; returns NULL. */
struct sbx_audit_queue *sbx_audit_queue_free(struct sbx_audit_queue *q);

/* Writes @row, which is copied, now or later. */
void sbx_audit_queue_add(struct sbx_audit_queue *q, const struct sbx_store_audit *row);

#endif
