/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_STORE_STORE_LIST_H
#define SBX_STORE_STORE_LIST_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "store/store.h"

/*
 * The recorded sandboxes and events, for people and other programs to read. Texts are as they were
 * stored, cleaned.
 *
 * Every function calls a callback for each row. The row and its texts are valid during the call,
 * which must not use the store. A non-zero result stops and is returned. The callback should not
 * wait for a reader: as long as it runs, the database's log is not emptied. So read in pages, and
 * print after a page.
 *
 * A filter that is zero lets everything pass; NULL and 0 in a filter are "any". 0, the callback's
 * result or -errno as in store.h.
 */

#define SBX_STORE_PAGE 1000 /* rows, where a filter says 0 */
#define SBX_STORE_NONE (-1) /* a number that is not known, or that the row does not have */

/* --- sandboxes --- */

struct sbx_store_sandbox_row {
	int64_t cursor; /* in the order the runs began */
	const char *id, *profile, *state, *command_json;
	const char *analysis_id, *workspace, *policy_hash; /* may be NULL, like the next */
	const char *selftest_json, *receipt_json;
	int64_t pid, pid_start, uid;
	int64_t created_ms;
	int64_t released_ms, ended_ms, exit_status; /* or SBX_STORE_NONE, like the next */
	int64_t cpu_us, memory_peak_bytes, cpu_pressure_us, memory_pressure_us, io_pressure_us;
	int64_t n_events; /* rows it has, or had before old ones were removed */
	int64_t generation;
	bool air_gapped;
	const char *allow_json, *deny_json; /* arrays of entries */
	const char *rules_json; /* array of live rules (policy/decide/live.h) */
};
typedef int (*sbx_store_sandbox_fn)(const struct sbx_store_sandbox_row *s, void *userdata);

struct sbx_store_sandbox_filter {
	bool live;	/* without a final state */
	bool by_owner;	/* started by the service for owner_uid */
	uid_t owner_uid;
	int64_t before; /* those with a smaller cursor */
	const char *workspace, *analysis_id, *state;
	uint32_t n_max; /* 0: SBX_STORE_PAGE */
};
/* The newest first. */
int sbx_store_sandboxes_each(struct sbx_store *store, const struct sbx_store_sandbox_filter *filter,
			     sbx_store_sandbox_fn fn, void *userdata, struct sbx_err *err);
/* The sandbox @id; or the one whose id begins so, if @id is shorter and no other does. Also
 * SBX_STORE_E_UNKNOWN: none, or several, with @err. */
int sbx_store_sandbox_get(struct sbx_store *store, const char *id, sbx_store_sandbox_fn fn,
			  void *userdata, struct sbx_err *err);
/* The whole id of that sandbox. Results as above. */
int sbx_store_sandbox_find(struct sbx_store *store, const char *id, char ret_id[SBX_ID_LEN + 1],
			   struct sbx_err *err);

/* --- events --- */

struct sbx_store_event_row {
	int64_t id; /* the cursor: a later commit has higher ones */
	const char *sandbox_id, *ts, *action, *protocol, *reason;
	const char *analysis_id, *workspace; /* may be NULL, like the next */
	const char *remote_ip, *name, *rule, *request;
	int64_t remote_port; /* or SBX_STORE_NONE, like those after the count */
	int64_t count;
	int64_t generation, bytes_out, bytes_in, duration_ms;
	int64_t owner_uid; /* for whom the service started the sandbox */
};
typedef int (*sbx_store_event_fn)(const struct sbx_store_event_row *e, void *userdata);

struct sbx_store_event_filter {
	int64_t after;	/* those with a higher id */
	int64_t before; /* those with a lower one */
	const char *sandbox_id, *workspace, *analysis_id;
	const char *action, *reason; /* words */
	const char *name, *remote_ip;
	int64_t since_ms, until_ms;  /* CLOCK_REALTIME; until is exclusive */
	bool newest_first;	     /* else the oldest first */
	bool by_owner;		     /* of sandboxes that the service started for owner_uid */
	uid_t owner_uid;
	uint32_t n_max; /* 0: SBX_STORE_PAGE */
};
/* By id. To follow: call with @after of the last row that came. */
int sbx_store_events_page(struct sbx_store *store, const struct sbx_store_event_filter *filter,
			  sbx_store_event_fn fn, void *userdata, struct sbx_err *err);
/* As sbx_store_events_page(), but where no index leads to just the rows that pass, look at @n_ids
 * ids at most, or at so many rows of an index as take as long: a page may have fewer rows than
 * there are, or none. *ret_next is the next page's `after`, or `before` with newest_first; 0: there
 * is nothing more now. */
#define SBX_STORE_LOOK_IDS 8000 /* some milliseconds */
int sbx_store_events_look(struct sbx_store *store, const struct sbx_store_event_filter *filter,
			  int64_t n_ids, sbx_store_event_fn fn, void *userdata,
			  struct sbx_err *err, int64_t *ret_next);
/* The id of the newest event; 0: there is none. */
int sbx_store_events_last(struct sbx_store *store, int64_t *ret_id, struct sbx_err *err);

/* --- refusals, added up --- */

enum sbx_store_denies_by {
	SBX_DENIES_BY_ADDRESS = 0, /* the address that was asked for */
	SBX_DENIES_BY_NAME,
	SBX_DENIES_BY_SANDBOX,
	SBX_DENIES_BY_WORKSPACE,
	SBX_DENIES_BY_REASON,
	SBX_N_DENIES_BY,
};
struct sbx_store_denies_row {
	const char *key; /* NULL: rows that have none (a refused address without a name) */
	int64_t count;	 /* refusals */
	int64_t n_rows, n_sandboxes;
	const char *first_ts, *last_ts;
	/* of the newest row; NULL: none. The last one is the entry that decided. */
	const char *last_reason, *last_name, *last_ip, *last_rule;
	int64_t last_port; /* or SBX_STORE_NONE */
	const char *last_protocol;
};
/* The most refusals first. Of @filter all count but after, before, action, name, remote_ip and
 * newest_first. */
int sbx_store_denies_each(struct sbx_store *store, enum sbx_store_denies_by by,
			  const struct sbx_store_event_filter *filter,
			  int (*fn)(const struct sbx_store_denies_row *d, void *userdata),
			  void *userdata, struct sbx_err *err);

/* --- tasks for people who review --- */

struct sbx_store_task_row {
	int64_t id;
	const char *sandbox_id, *cause, *state; /* "open" or "closed" */
	const char *workspace, *note;		/* may be NULL */
	int64_t n_denies, first_ms, last_ms;
};
struct sbx_store_task_filter {
	const char *state, *sandbox_id, *workspace;
	bool by_owner;	/* of sandboxes that the service started for owner_uid */
	uid_t owner_uid;
	int64_t id;	/* this one */
	int64_t before; /* those with a lower id */
	uint32_t n_max;
};
/* The newest first. */
int sbx_store_tasks_each(struct sbx_store *store, const struct sbx_store_task_filter *filter,
			 int (*fn)(const struct sbx_store_task_row *t, void *userdata),
			 void *userdata, struct sbx_err *err);

/* Refusals of a sandbox that somebody should look at. */
struct sbx_store_task_note {
	const char *sandbox_id;
	const char *workspace; /* NULL: none */
	const char *cause;     /* one row of a sandbox has it */
	int64_t n_denies;      /* in all, up to now */
	int64_t now_ms;
};
/* Open the task of the sandbox and cause, or update the one that there is; a closed one stays
 * closed. 0, SBX_STORE_E_UNKNOWN (no such sandbox) or -errno. */
int sbx_store_task_note(struct sbx_store *store, const struct sbx_store_task_note *note,
			struct sbx_err *err, int64_t *ret_id, bool *ret_opened);
/* @note NULL leaves the text. 0, SBX_STORE_E_UNKNOWN or -errno. */
int sbx_store_task_set(struct sbx_store *store, int64_t id, bool open, const char *note,
		       struct sbx_err *err);

#endif
