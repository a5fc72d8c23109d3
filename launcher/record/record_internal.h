/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_RECORD_RECORD_INTERNAL_H
#define SBX_LAUNCHER_RECORD_RECORD_INTERNAL_H

#include <stdbool.h>

#include "launcher/run/run.h"

/* What record.c (the row), record_events.c and record_refusals.c have in common. */

/* The database of these places. As sbx_store_open(). */
int sbx_record_open_store(const struct sbx_facts *f, struct sbx_err *err, struct sbx_store **ret_store);

/* The database, which is open, waits for others as long as may be waited now. */
void sbx_record_set_wait(struct sbx_run *r);
/* A write failed with @error: it is said once, unless another writer is in the way and may soon be gone. */
void sbx_record_failed(struct sbx_run *r, int error, const struct sbx_err *err);

/* Something waits to be written. */
bool sbx_record_is_due(const struct sbx_run *r);
/* Write that, unless it failed a moment ago; then that is tried again when sbx_record_flush() is due. */
void sbx_record_write(struct sbx_run *r);
/* All that was taken in, folded or not, whatever failed a moment ago. */
void sbx_record_flush_all(struct sbx_run *r);
/* What could not be written by now is lost, which is said. */
void sbx_record_forget_events(struct sbx_run *r);

#endif
