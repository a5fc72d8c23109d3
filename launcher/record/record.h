/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_RECORD_RECORD_H
#define SBX_LAUNCHER_RECORD_RECORD_H

#include <stdbool.h>
#include <stdio.h>

#include "base/err.h"
#include "base/event.h"
#include "launcher/host/facts.h"
#include "launcher/host/options.h"
#include "launcher/record/outcome.h"
#include "launcher/record/recorder.h"
#include "policy/decide/policy.h"

/*
 * A recorder writes the sandbox's row and events to the database. Order of the calls: name;
 * prepare; begin; released; end. After name, end is allowed at any time. Events are taken at any
 * time after prepare. The launcher's loop calls flush and tidy when they are due.
 */

/* How long the database may wait for another writer while the command runs: signals and the wall
 * clock are not handled during this wait. */
#define SBX_RECORD_BUSY_MS 100

/* The records are those of sandbox @id. @id and @o are borrowed. */
void sbx_record_name(struct sbx_recorder *r, const char *id, const struct sbx_options *o);
/* Take events from here on. 0 or -errno. */
int sbx_record_prepare(struct sbx_recorder *r);
/* Open the database and insert the row, state `preparing`, with the @live lists of the first
 * policy. 0 or -errno with @err. */
int sbx_record_begin(struct sbx_recorder *r, const struct sbx_facts *f,
		     const struct sbx_policy *policy, const struct sbx_live *live,
		     struct sbx_err *err);
/* State `running`. @may_tidy: the command does not wait for the launcher, so the database may be
 * tidied beside it. */
void sbx_record_released(struct sbx_recorder *r, bool may_tidy);
/* Take one event, of the broker or of the launcher. It is written within a second, or later if
 * the database is locked. Never fails: if writing keeps failing, that is reported on stderr
 * once. */
void sbx_record_event(struct sbx_recorder *r, const struct sbx_event *e);
/* The policy of the running sandbox was changed, and holds: the row gets what holds now, with an
 * event policy_changed that has @what, one line, as its rule. All of it is copied. Never fails: if
 * the database is locked, the newest change is written later. */
void sbx_record_changed(struct sbx_recorder *r, const struct sbx_store_change *change,
			const char *what);
/* Call @fn with each event from now on. */
void sbx_record_tell(struct sbx_recorder *r,
		     void (*fn)(void *userdata, const struct sbx_event *e), void *userdata);
/* The review task of @cause (static text), with its numbers up to now: written with the events. */
void sbx_record_task(struct sbx_recorder *r, const char *cause, uint64_t n_denies,
		     uint64_t last_ms);
/* At tidy_at_us: move the database's log into the database. The command is not a short one, so
 * nobody waits. */
void sbx_record_tidy(struct sbx_recorder *r);
/* At flush_at_us: write the events. */
void sbx_record_flush(struct sbx_recorder *r);
/* Write the last events and the final state, and close the database. False: the row has no final
 * state. The runtime directory must stay then, for the sweep that sets the state later. */
bool sbx_record_end(struct sbx_recorder *r, const struct sbx_outcome_facts *outcome);

/* Insert a row for a run that policy refused. Nothing else of that run exists. Errors are
 * ignored: the refusal stands. */
void sbx_record_refused(const struct sbx_options *o, const struct sbx_facts *f, const char *why);
/* For the cleanup process and sweeps: sandbox @id ended without its launcher, so its state is
 * `lost`. Opens its own connection, and waits @busy_ms for another writer. 0, also if the row
 * has a final state already or does not exist; or -errno: the row has no final state and cannot
 * be given one now. */
int sbx_record_lost(const struct sbx_facts *f, const char *id, int busy_ms, struct sbx_err *err);

/* Which events stay, as @system (may be NULL) says. */
struct sbx_store_keep;
void sbx_record_keep(const struct sbx_system_policy *system, struct sbx_store_keep *ret_keep);
/* For --gc: remove all events that are older than @system says, in small steps. Other writers get
 * their turn. 0, or -errno with @err. */
int sbx_record_prune_all(const struct sbx_facts *f, const struct sbx_system_policy *system,
			 size_t *ret_n, struct sbx_err *err);
/* For --gc: set the state `lost` for rows of dead launchers that no runtime directory belongs to
 * (a reboot empties the runtime directory). Calls @tell for each of them. 0, or -errno with
 * @err. */
int sbx_record_sweep(const struct sbx_facts *f, void (*tell)(const char *id, void *userdata),
		     void *userdata, struct sbx_err *err);

/* --refusals: print what the run @id, or with NULL the last one, was refused, and the notices about
 * files in its grants. 0, or -errno with @err. */
int sbx_record_print_refusals(const struct sbx_facts *f, const char *id, FILE *out,
			      struct sbx_err *err);

#endif
