/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_DAEMON_HUB_TALLY_H
#define SBX_DAEMON_HUB_TALLY_H

#include <event2/event.h>
#include <stdint.h>

#include "base/reason.h"
#include "store/store.h"

/*
 * Counts of events since the service began, and of live sandboxes. New events are added every
 * SBX_TALLY_MS, a bounded number at a time, so that the loop does not wait for the database.
 */
#define SBX_TALLY_MS	 5000
#define SBX_TALLY_EVENTS 20000 /* at a time: 20 ms or less */

enum sbx_tally_state {
	SBX_TALLY_PREPARING = 0,
	SBX_TALLY_RUNNING,
	SBX_TALLY_OTHER,
	SBX_N_TALLY_STATES
};
const char *sbx_tally_state_str(enum sbx_tally_state s); /* "preparing", "running", "other" */

struct sbx_tally {
	struct sbx_store *store; /* borrowed */
	struct event *tick;
	int64_t last;	    /* the event that was counted last; -1: not known yet */
	uint64_t looked_ms; /* monotonic, of the last look; 0: none */
	uint64_t events[SBX_N_ACTIONS];
	uint64_t denials[SBX_N_REASONS]; /* by reason; words that are none count as unknown */
	uint64_t live[SBX_N_TALLY_STATES];
};

/* 0 or -ENOMEM. */
int sbx_tally_init(struct sbx_tally *t, struct event_base *base, struct sbx_store *store);
void sbx_tally_fini(struct sbx_tally *t);
/* Counts now, unless it was done within the last second. A database that fails leaves the counts as
 * they are. */
void sbx_tally_look(struct sbx_tally *t);

#endif
