/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_RECORD_RECORDER_H
#define SBX_LAUNCHER_RECORD_RECORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/event.h"
#include "base/fold.h"
#include "launcher/host/options.h"
#include "launcher/journal/event_entry.h"
#include "launcher/record/refusals.h"
#include "policy/profile/profile.h"
#include "store/store.h"

/* A review task of the sandbox. */
struct sbx_recorder_task {
	const char *cause; /* static; NULL: no task */
	uint64_t n_denies;
	uint64_t last_ms; /* CLOCK_REALTIME */
	bool due;	  /* the database does not have these numbers */
};
#define SBX_RECORDER_TASKS 2 /* causes */

/* The state of recording one run; record.h has its functions. */
struct sbx_recorder {
	const char *id;			   /* borrowed, like the next */
	const struct sbx_options *options;
	struct sbx_store *store;
	struct sbx_fold *fold;	      /* NULL: no event is taken */
	bool has_row;		      /* the sandbox has its row */
	bool complained;	      /* a failure was reported on stderr; that is done once */
	bool released;		      /* the command runs, or ran */
	/* no process of the sandbox is left: the database may wait longer */
	bool at_end;
	int64_t released_ms;	      /* time of the release until the row has it; 0 otherwise */
	/* of the policy, not in the row yet; the texts are owned, NULL: there is none */
	struct {
		uint64_t generation;
		bool air_gapped;
		char *allow_json, *deny_json, *rules_json;
	} change;
	struct sbx_event *pending;    /* folded events that are not written yet; owned, or NULL */
	size_t n_pending;
	uint64_t unrecorded[SBX_N_ACTIONS]; /* counts of events that @pending had no room for */
	/* monotonic time of the first failed write in a row; 0: the last write succeeded */
	uint64_t failing_since_us;
	uint64_t retry_at_us;	      /* after a failed write: the time of the next try */
	uint64_t flush_at_us;	      /* when sbx_record_flush() is due; 0: it is not */
	uint64_t tidy_at_us;	      /* when sbx_record_tidy() is due; 0: it is not */
	/* how long events stay; borrowed; NULL: as if it said nothing */
	const struct sbx_system_policy *system;
	bool wrote; /* rows of events */
	/* told of every event; NULL: nobody is */
	void (*tell)(void *userdata, const struct sbx_event *e);
	void *tell_userdata;
	struct sbx_event_entries entries; /* of events, in the journal */
	struct sbx_refusals *refusals; /* of the command; NULL: none */
	struct sbx_recorder_task tasks[SBX_RECORDER_TASKS];
};

#define SBX_RECORDER_INIT ((struct sbx_recorder){ 0 })

/* Frees what is left of a recorder in any state. */
void sbx_recorder_fini(struct sbx_recorder *r);

#endif
