/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_STORE_STORE_H
#define SBX_STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/event.h"
#include "base/sandbox_id.h"
#include "store/store_error.h"

/*
 * The database: sandboxes and their events (docs/architecture/run.md, migrations/). One SQLite file
 * in WAL mode, which every launcher of this user may write at the same time.
 *
 * Functions return 0; a positive SBX_STORE_E_* of this contract; or a negative errno with the
 * database's own message in @err (may be NULL): -EBUSY (another writer for longer than
 * SBX_STORE_BUSY_MS), -ENOSPC (disk full), -EIO, -EROFS, -EACCES, -EUCLEAN (not a database, or a
 * damaged one), -ENOMEM, -EINVAL. After any of them nothing of the call has been written, and the
 * store may be used again.
 *
 * A store is for one thread. A child process must not touch a store that its parent opened; its fds
 * are CLOEXEC.
 */
struct sbx_store;

/* The newest migration that this program knows, and so the version of its databases. */
#define SBX_STORE_VERSION 7
/* Rows that a sandbox may have; later events are counted in one overflow row per action. */
#define SBX_STORE_EVENTS_MAX 10000

enum sbx_store_state {
	SBX_STATE_PREPARING = 0,
	SBX_STATE_RUNNING,
	SBX_STATE_DONE, /* this and the following are final */
	SBX_STATE_FAILED_SAFETY_SETUP,
	SBX_STATE_FAILED_POLICY,
	SBX_STATE_LOST,
	SBX_STATE_KILLED,
	SBX_STATE_TIMED_OUT,
	SBX_STATE_OOM_KILLED, /* over limits.memory */
	SBX_N_STATES,
};
const char *sbx_store_state_str(enum sbx_store_state s); /* "preparing", ... */

/*
 * Open @state_dir/sbx.db. Missing directories (0700, parents as well) and the file (0600) are made,
 * and the missing migrations of @migrations_dir (NNNN-name.sql, from 0001 without gaps) are
 * applied, up to SBX_STORE_VERSION; if none is missing, @migrations_dir need not exist. The state
 * directory must be the caller's own (or root's) and writable by nobody else. The first call of a
 * process sets up SQLite for the whole process (store.c says how), so no other thread may use
 * SQLite at that time. 0, SBX_STORE_E_NEWER or -errno (-ENOTDIR, -EPERM, ... for the directories
 * too).
 */
int sbx_store_open(const char *state_dir, const char *migrations_dir, struct sbx_err *err,
		   struct sbx_store **ret_store);
/* Accepts NULL; returns NULL. Writes nothing and does not wait for the disk. */
struct sbx_store *sbx_store_close(struct sbx_store *store);
/* Wait @ms for another writer before giving up with -EBUSY, instead of SBX_STORE_BUSY_MS. */
void sbx_store_set_busy_ms(struct sbx_store *store, int ms);
/* The memory in which @store keeps pages of the database, instead of some 2 MiB. */
void sbx_store_set_cache_kib(struct sbx_store *store, int kib);

/* The values known when a sandbox is recorded. Strings are borrowed; NULL is stored as NULL where
 * that is allowed. */
struct sbx_store_sandbox {
	const char *id;		 /* 12 hex digits */
	const char *analysis_id; /* may be NULL */
	const char *workspace;	 /* may be NULL */
	const char *profile;
	const char *policy_hash;  /* may be NULL */
	const char *command_json; /* JSON array of strings */
	pid_t pid;		  /* the launcher */
	uint64_t pid_start;	  /* its start time, clock ticks after boot; 0: unknown */
	uid_t uid;		  /* the sandboxed user, on the host */
	int64_t created_ms;	  /* CLOCK_REALTIME */
	bool air_gapped;
	/* the live lists, JSON arrays of texts; NULL: empty */
	const char *allow_json, *deny_json, *rules_json;
};

/* Record a sandbox in state `preparing`, with generation 1 of its policy. 0, SBX_STORE_E_EXISTS or
 * -errno. */
int sbx_store_sandbox_begin(struct sbx_store *store, const struct sbx_store_sandbox *s,
			    struct sbx_err *err);

/* `preparing` becomes `running`. @selftest_json may be NULL. 0, SBX_STORE_E_UNKNOWN or -errno. */
int sbx_store_sandbox_release(struct sbx_store *store, const char *id, int64_t released_ms,
			      const char *selftest_json, struct sbx_err *err);

/* The policy of a running sandbox was changed: what holds now. The texts are JSON arrays of
 * entries. A lower generation than the stored one changes nothing. 0, SBX_STORE_E_UNKNOWN (also:
 * it has ended) or -errno. */
struct sbx_store_change {
	uint64_t generation;
	bool air_gapped;
	const char *allow_json, *deny_json, *rules_json;
};
int sbx_store_sandbox_change(struct sbx_store *store, const char *id,
			     const struct sbx_store_change *change, struct sbx_err *err);

/* The end of a sandbox. JSON texts are borrowed; NULL leaves the stored text. */
struct sbx_store_end {
	enum sbx_store_state state; /* a final one */
	int64_t ended_ms;
	int exit_status; /* of sbx-run; negative: unknown (NULL) */
	const char *selftest_json;
	const char *receipt_json;
	struct {
		int64_t cpu_us, memory_peak_bytes, cpu_pressure_us, memory_pressure_us,
			io_pressure_us;
	} usage; /* negative: unknown (NULL) */
};
#define SBX_STORE_USAGE_UNKNOWN { -1, -1, -1, -1, -1 }

/* Call when no process waits: if the WAL has @at_least committed pages, moves them into the
 * database and flushes, in some milliseconds. A start reads each page again, about 1 us, and a run
 * writes 8. After a failure a later call does the work. */
void sbx_store_tidy(struct sbx_store *store, int at_least);
/* `preparing` or `running` becomes a final state. 0, SBX_STORE_E_UNKNOWN or -errno. */
int sbx_store_sandbox_end(struct sbx_store *store, const char *id, const struct sbx_store_end *end,
			  struct sbx_err *err);

/*
 * Add events in one transaction. Each of @v is a row until the sandbox has SBX_STORE_EVENTS_MAX of
 * them. Later ones are added to the newest `overflow` row of their action (made if there is none),
 * so rows are bounded and no count is lost. A row has the workspace of its sandbox. In
 * texts that are not clean (sbx_text_unit) the offending bytes are stored as '?'. 0,
 * SBX_STORE_E_UNKNOWN (no such sandbox) or -errno.
 */
int sbx_store_events_add(struct sbx_store *store, const char *sandbox_id, const char *analysis_id,
			 const struct sbx_event *v, size_t n, struct sbx_err *err);

/* A recorded run. */
struct sbx_store_found {
	char id[SBX_ID_LEN + 1];
	char *profile, *command_json, *state; /* malloc'ed */
	char *receipt_json;		      /* malloc'ed or NULL */
};
void sbx_store_found_fini(struct sbx_store_found *f);
/* Find the run @id, or with NULL the one that began last. 0, SBX_STORE_E_UNKNOWN (none) or
 * -errno. */
int sbx_store_find(struct sbx_store *store, const char *id, struct sbx_store_found *ret_found,
		   struct sbx_err *err);
/* Call @fn with each different event of sandbox @id and @action, with the sum of its counts and
 * ts_ms 0, in the order of their first ones. The text is as sbx_store_events_add() stored it. 0 or
 * -errno. */
int sbx_store_events_each(struct sbx_store *store, const char *id, enum sbx_action action,
			  void (*fn)(const struct sbx_event *e, void *userdata), void *userdata,
			  struct sbx_err *err);

/* The version of the SQLite library in use. Static text. */
const char *sbx_store_library_version(void);

/* A sandbox without a final state in the database; valid during the call. */
struct sbx_store_live {
	const char *id;
	enum sbx_store_state state;
	pid_t pid;
	uint64_t pid_start;
	int64_t created_ms;
};

/* Call @fn for each, at most the 4,096 oldest. @fn may use the store, also sbx_store_sandbox_end()
 * for its sandbox; a non-zero result stops and is returned. 0, @fn's or -errno. */
int sbx_store_live_each(struct sbx_store *store,
			int (*fn)(const struct sbx_store_live *s, void *userdata), void *userdata,
			struct sbx_err *err);

#endif
