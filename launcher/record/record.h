/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_RECORD_RECORD_H
#define SBX_LAUNCHER_RECORD_RECORD_H

#include <stdio.h>

#include "launcher/cleanup/gc.h"
#include "launcher/run/run.h"

/* The sandbox's row and events in the database; a thin layer between struct sbx_run and src/store. */

/* While somebody waits for us, who else writes is waited for no longer: signals and the wall clock wait meanwhile. */
#define SBX_RECORD_BUSY_MS 100

/* From here on events are taken in. 0 or -errno. */
int sbx_record_prepare(struct sbx_run *r);
/* Open the database and insert the row, state `preparing`. 0 or -errno with r->err. */
int sbx_record_begin(struct sbx_run *r);
/* State `running`. */
void sbx_record_released(struct sbx_run *r);
/* Take in one event (from the broker, or our own); it is written within a second, or as soon as the database lets us.
 * Never fails: what that refuses for longer is said once on stderr. */
void sbx_record_event(struct sbx_run *r, const struct sbx_event *e);
/* The command has run for a while, so nobody waits for us: the database is put in order. */
void sbx_record_tidy(struct sbx_run *r);
/* At flush_at_us: write what has been taken in. */
void sbx_record_flush(struct sbx_run *r);
/* Last events and the final state; closes the database. When the row has not got its state, the runtime directory stays
 * for the sweep that gives it one later. */
void sbx_record_end(struct sbx_run *r, int exit_status);

/* A row for a run that policy refused: nothing else of it exists. Errors are ignored: the refusal stands. */
void sbx_record_refused(const struct sbx_options *o, const struct sbx_facts *f, const char *why);
/* For guards and sweeps: the sandbox @id ended without its launcher: state `lost`. Opens its own connection, and waits
 * @busy_ms for another writer. 0, also when it has a final state already, or no row; or -errno: it has none, and cannot be
 * given one now. */
int sbx_record_lost(const struct sbx_facts *f, const char *id, int busy_ms, struct sbx_err *err);

/* Rows of runs that are over though nobody said so (gc.h): a reboot emptied the runtime directory. */
int sbx_record_gc(struct sbx_gc *gc, struct sbx_err *err);

/* --refusals: what the run @id, or with NULL the last one, was refused. 0, or -errno with @err. */
int sbx_record_print_refusals(const struct sbx_facts *f, const char *id, FILE *out, struct sbx_err *err);

/* The state column for an outcome. */
const char *sbx_record_state(const struct sbx_run *r);

#endif
