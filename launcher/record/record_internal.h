/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_RECORD_RECORD_INTERNAL_H
#define SBX_LAUNCHER_RECORD_RECORD_INTERNAL_H

#include <stdbool.h>

#include "launcher/record/record.h"

/* Shared by record.c (the row), record_lost.c (rows without a launcher), record_events.c and
 * record_refusals.c. */

/* Set how long the open database waits for other writers now. */
void sbx_record_set_wait(struct sbx_recorder *r);
/* A write failed with @error. Reports it on stderr once, unless another writer is in the way and
 * may soon be done. */
void sbx_record_failed(struct sbx_recorder *r, int error, const struct sbx_err *err);

/* Remove at most SBX_STORE_PRUNE_BATCH old events, as @system (may be NULL) says. 1: there may be
 * more; 0; or -errno with @err. */
int sbx_record_prune(struct sbx_store *store, const struct sbx_system_policy *system,
		     struct sbx_err *err, size_t *n_removed);

/* Is there something to write? */
bool sbx_record_is_due(const struct sbx_recorder *r);
/* Write what is due. If a write failed a moment ago, do nothing: sbx_record_flush() tries again. */
void sbx_record_write(struct sbx_recorder *r);
/* Write all events, folded or not, even if a write failed a moment ago. */
void sbx_record_flush_all(struct sbx_recorder *r);
/* Drop the events that could not be written, and report how many on stderr. */
void sbx_record_forget_events(struct sbx_recorder *r);

#endif
