/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The database of sandboxes and events.
 *
 * Every launcher of a user writes the same file, so writes are short: one statement, or one BEGIN
 * IMMEDIATE transaction per batch of events. Readers never wait (WAL). A run must not wait for a
 * disk flush: with synchronous=NORMAL a commit only appends to the WAL, and closing neither
 * checkpoints nor deletes it. A launcher that nobody waits for moves the WAL into the database and
 * flushes (sbx_store_tidy); if that never happens, SQLite does it in some commit. So the crash of a
 * process loses nothing. A power failure loses at most the newest rows, never the file.
 *
 * Most of the cost of a run is work that SQLite does when no other process has the database open,
 * as between two runs in a row: it builds the WAL's index from the whole WAL, and parses the whole
 * schema. So the WAL is kept short and made of small pages (migrate.h), and the schema is kept
 * small: an index has to be worth it, and a constraint is written so that checking it needs no
 * temporary table.
 *
 * The directory (checked to be the caller's alone) and the caller are trusted. Events are in
 * store_events.c.
 */

#include "store/store.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/sandbox_id.h"
#include "base/text.h"
#include "store/migrate.h"
#include "store/sql.h"

#define CHECKPOINT_PAGES  256
#define LIVE_MAX	  4096
#define FOREIGN_READER_MS 100
#define OPEN_FLAGS	  (SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX)

static const char *const state_names[] = {
	[SBX_STATE_PREPARING] = "preparing",
	[SBX_STATE_RUNNING] = "running",
	[SBX_STATE_DONE] = "done",
	[SBX_STATE_FAILED_SAFETY_SETUP] = "failed_safety_setup",
	[SBX_STATE_FAILED_POLICY] = "failed_policy",
	[SBX_STATE_LOST] = "lost",
	[SBX_STATE_KILLED] = "killed",
	[SBX_STATE_TIMED_OUT] = "timed_out",
	[SBX_STATE_OOM_KILLED] = "oom_killed",
};
static_assert(SBX_N_ELEMENTS(state_names) == SBX_N_STATES, "a word per state");

const char *sbx_store_state_str(enum sbx_store_state s)
{
	return (unsigned)s < SBX_N_STATES ? state_names[s] : "unknown";
}

static int out_of_memory(struct sbx_err *err)
{
	sbx_err_set(err, "database: out of memory");
	return -ENOMEM;
}

/* --- opening --- */

/* mkdir -p; new directories are for the user alone. */
static int make_dirs(const char *path)
{
	SBX_AUTO_FREE char *copy = strdup(path);

	if (!copy)
		return -ENOMEM;
	if (mkdir(copy, 0700) == 0 || errno == EEXIST)
		return 0;
	if (errno != ENOENT)
		return -errno;
	for (char *p = copy + 1; *p; p++) {
		if (*p != '/')
			continue;
		*p = '\0';
		if (mkdir(copy, 0700) < 0 && errno != EEXIST)
			return -errno;
		*p = '/';
	}
	return mkdir(copy, 0700) == 0 || errno == EEXIST ? 0 : -errno;
}

/* Open the state directory, and make it if it is missing. A user that could write there could
 * replace the database. */
static int prepare_dir(const char *path, struct sbx_err *err)
{
	struct stat st;
	int r = stat(path, &st) < 0 ? -errno : 0;

	if (r == -ENOENT) {
		r = make_dirs(path);
		if (r == 0 && stat(path, &st) < 0)
			r = -errno;
	}
	if (r) {
		sbx_err_set(err, "state directory %s: %s", path, strerror(-r));
		return r;
	}
	if (!S_ISDIR(st.st_mode)) {
		sbx_err_set(err, "state directory %s: not a directory", path);
		return -ENOTDIR;
	}
	if (geteuid() == 0 && st.st_uid != 0) {
		sbx_err_set(err,
			    "state directory %s: it is uid %u's: run this as that user "
			    "(runuser -u USER -- ...), or choose another SBX_STATE_DIR",
			    path, st.st_uid);
		return -EPERM;
	}
	if ((st.st_uid != geteuid() && st.st_uid != 0) || st.st_mode & (S_IWGRP | S_IWOTH)) {
		sbx_err_set(err,
			    "state directory %s: must be yours and writable by no other user "
			    "(chmod go-w, or choose another SBX_STATE_DIR)",
			    path);
		return -EPERM;
	}
	return 0;
}

/* O_EXCL also because closing an fd of a database in use would drop SQLite's locks on it. */
static int make_file(const char *path, struct sbx_err *err)
{
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0 && errno != EEXIST) {
		int r = -errno;

		sbx_err_set(err, "database %s: %s", path, strerror(-r));
		return r;
	}
	sbx_fd_close(fd);
	return 0;
}

/*
 * These calls do nothing once SQLite is in use. Without statistics SQLite takes no lock per
 * allocation. Without a page cache allocated in advance it touches only the few pages that a run
 * needs.
 */
static void configure_library(void)
{
	sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
	sqlite3_config(SQLITE_CONFIG_PAGECACHE, NULL, 0, 0);
}

/* SQLite opens the file at once, and makes none without SQLITE_OPEN_CREATE. */
static int open_file(const char *path, struct sbx_err *err, sqlite3 **ret_db)
{
	int rc = sqlite3_open_v2(path, ret_db, OPEN_FLAGS, NULL);

	if ((rc & 0xff) == SQLITE_CANTOPEN) {
		int r = make_file(path, err);

		if (r)
			return r;
		sqlite3_close(*ret_db);
		rc = sqlite3_open_v2(path, ret_db, OPEN_FLAGS, NULL);
	}
	return rc == SQLITE_OK ? 0 : sbx_sql_error(*ret_db, rc, "opening it", err);
}

static int configure(sqlite3 *db, struct sbx_err *err)
{
	int on = 1;

	sqlite3_extended_result_codes(db, 1);
	sqlite3_busy_timeout(db, SBX_STORE_BUSY_MS);
	sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_FKEY, 1, NULL);
	sqlite3_file_control(db, "main", SQLITE_FCNTL_PERSIST_WAL, &on);
	return sbx_sql_exec(db, "PRAGMA synchronous=NORMAL", "configuring it", err);
}

/* Open the database as it is. 0; 1: it does not exist yet or must be migrated first; -errno. */
static int open_current(const char *path, struct sbx_err *err, sqlite3 **ret_db)
{
	int64_t version = 0;
	int rc = sqlite3_open_v2(path, ret_db, OPEN_FLAGS, NULL), r;

	if (rc != SQLITE_OK)
		return (rc & 0xff) == SQLITE_CANTOPEN ?
			       1 :
			       sbx_sql_error(*ret_db, rc, "opening it", err);
	r = configure(*ret_db, err);
	if (r == 0)
		r = sbx_migrate_version(*ret_db, err, &version);
	return r == 0 && version != SBX_STORE_VERSION ? 1 : r;
}

/* Take the lock for making or migrating the database: of two processes at once, SQLite lets one
 * fail (BUSY whatever the timeout, IOERR). fd, or -errno; the caller closes it. */
static int lock_dir(const char *dir, struct sbx_err *err)
{
	const struct timespec pause = { .tv_nsec = 5 * 1000 * 1000 };
	SBX_AUTO_CLOSE int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = fd < 0 ? -errno : 0;

	for (int left = SBX_STORE_BUSY_MS / 5; r == 0 && flock(fd, LOCK_EX | LOCK_NB) < 0; left--) {
		if (errno != EWOULDBLOCK || left == 0)
			r = errno == EWOULDBLOCK ? -EBUSY : -errno;
		else
			nanosleep(&pause, NULL);
	}
	if (r == 0)
		return sbx_fd_steal(&fd);
	sbx_err_set(err, "state directory %s: waiting to make the database: %s", dir, strerror(-r));
	return r;
}

static int open_and_migrate(const char *path, const char *migrations_dir, struct sbx_err *err,
			    sqlite3 **ret_db)
{
	int r = open_file(path, err, ret_db);

	if (!r)
		r = configure(*ret_db, err);
	return r ? r : sbx_migrate(*ret_db, migrations_dir, SBX_STORE_VERSION, err);
}

/* Is it a file beside the database that this user may not write? */
static bool has_foreign(const char *path)
{
	static const char *const suffixes[] = { "-wal", "-shm" };
	char name[4096];

	if (faccessat(AT_FDCWD, path, R_OK | W_OK, AT_EACCESS) < 0)
		return false;
	for (size_t i = 0; i < SBX_N_ELEMENTS(suffixes); i++)
		if (snprintf(name, sizeof(name), "%s%s", path, suffixes[i]) < (int)sizeof(name) &&
		    faccessat(AT_FDCWD, name, R_OK | W_OK, AT_EACCESS) < 0 && errno == EACCES)
			return true;
	return false;
}

/*
 * A reader of a WAL database makes its -wal and -shm if they are missing. If root reads (a backup,
 * sqlite3 -readonly), SQLite gives them to the database's owner a moment later. Until then this
 * user cannot open or write them.
 */
static int make_or_migrate(const char *state_dir, const char *path, const char *migrations_dir,
			   struct sbx_err *err, sqlite3 **ret_db)
{
	const struct timespec pause = { .tv_nsec = 5 * 1000 * 1000 };
	SBX_AUTO_CLOSE int lock = lock_dir(state_dir, err);
	struct sbx_err why = { 0 };
	bool foreign = true;
	int r;

	if (lock < 0)
		return lock;
	r = open_and_migrate(path, migrations_dir, &why, ret_db);
	/* Try once more if the files are the user's or gone by now: the first try may have been a
	 * moment too early. */
	for (int left = FOREIGN_READER_MS / 5; (r == -EROFS || r == -ENOENT) && foreign && left;
	     left--) {
		foreign = has_foreign(path);
		sqlite3_close(*ret_db);
		*ret_db = NULL;
		why = (struct sbx_err){ 0 };
		if (foreign)
			nanosleep(&pause, NULL);
		r = open_and_migrate(path, migrations_dir, &why, ret_db);
	}
	if (r)
		sbx_err_set(err, "%s", why.msg);
	return r;
}

/* The rows are committed. If this checkpoint fails, a later one does its work. */
static int on_commit(void *userdata, sqlite3 *db, const char *name, int pages)
{
	struct sbx_store *store = userdata;

	store->wal_pages = pages;
	if (pages >= CHECKPOINT_PAGES)
		sqlite3_wal_checkpoint_v2(db, name, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
	return SQLITE_OK;
}

int sbx_store_open(const char *state_dir, const char *migrations_dir, struct sbx_err *err,
		   struct sbx_store **ret_store)
{
	SBX_AUTO_FREE char *path = NULL;
	struct sbx_store *store;
	struct sbx_err first = { 0 };
	int r;

	/* Debian's SQLite takes "file:..." for a URI; an absolute path is never one. */
	if (state_dir[0] != '/') {
		sbx_err_set(err, "state directory %s: must be an absolute path", state_dir);
		return -EINVAL;
	}
	if (asprintf(&path, "%s/sbx.db", state_dir) < 0) {
		path = NULL;
		return out_of_memory(err);
	}
	r = prepare_dir(state_dir, err);
	if (r)
		return r;
	configure_library();
	store = calloc(1, sizeof(*store));
	if (!store)
		return out_of_memory(err);
	/* Another process may be making the database now, so only a second failure counts. */
	r = open_current(path, &first, &store->db);
	if (r == -ENOMEM) {
		sbx_err_set(err, "%s", first.msg);
	} else if (r) {
		sqlite3_close(store->db);
		store->db = NULL;
		r = make_or_migrate(state_dir, path, migrations_dir, err, &store->db);
	}
	if (r) {
		sbx_store_close(store);
		return r;
	}
	sqlite3_wal_hook(store->db, on_commit, store);
	*ret_store = store;
	return 0;
}

void sbx_store_tidy(struct sbx_store *store, int at_least)
{
	if (store->wal_pages >= at_least &&
	    sqlite3_wal_checkpoint_v2(store->db, "main", SQLITE_CHECKPOINT_PASSIVE, NULL, NULL) ==
		    SQLITE_OK)
		store->wal_pages = 0;
}

struct sbx_store *sbx_store_close(struct sbx_store *store)
{
	if (store) {
		sqlite3_close(store->db);
		free(store);
	}
	return NULL;
}

void sbx_store_set_busy_ms(struct sbx_store *store, int ms)
{
	sqlite3_busy_timeout(store->db, ms);
}

void sbx_store_set_cache_kib(struct sbx_store *store, int kib)
{
	char sql[64];

	sbx_text_fit(sql, sizeof(sql), "PRAGMA cache_size = -%d", kib);
	sqlite3_exec(store->db, sql, NULL, NULL, NULL);
}

/* --- sandboxes --- */

int sbx_store_sandbox_begin(struct sbx_store *store, const struct sbx_store_sandbox *s,
			    struct sbx_err *err)
{
	SBX_AUTO_STMT sqlite3_stmt *stmt = NULL;
	struct sbx_sql_binder b = { 0 };
	int rc, r;

	r = sbx_sql_prepare(store->db,
			    "INSERT INTO sandbox (id, analysis_id, workspace, profile, "
			    "policy_hash, state, pid, pid_start, uid, command, created_ms, "
			    "air_gapped, allow_out, deny_out, rules) VALUES (?1, ?2, ?3, ?4, "
			    "?5, 'preparing', ?6, ?7, ?8, ?9, ?10, ?11, coalesce(?12, '[]'), "
			    "coalesce(?13, '[]'), coalesce(?14, '[]'))",
			    "recording the sandbox", err, &stmt);
	if (r)
		return r;
	b.stmt = stmt;
	sbx_sql_bind_text(&b, s->id);
	sbx_sql_bind_text(&b, s->analysis_id);
	sbx_sql_bind_text(&b, s->workspace);
	sbx_sql_bind_text(&b, s->profile);
	sbx_sql_bind_text(&b, s->policy_hash);
	sbx_sql_bind_int(&b, s->pid);
	sbx_sql_bind_int(&b, (int64_t)s->pid_start);
	sbx_sql_bind_int(&b, s->uid);
	sbx_sql_bind_text(&b, s->command_json);
	sbx_sql_bind_int(&b, s->created_ms);
	sbx_sql_bind_int(&b, s->air_gapped);
	sbx_sql_bind_text(&b, s->allow_json);
	sbx_sql_bind_text(&b, s->deny_json);
	sbx_sql_bind_text(&b, s->rules_json);
	rc = sqlite3_step(stmt);
	if (rc == SQLITE_CONSTRAINT_PRIMARYKEY) {
		sbx_err_set(err, "a sandbox with id %s exists already", s->id);
		return SBX_STORE_E_EXISTS;
	}
	return rc == SQLITE_DONE ? 0 : sbx_sql_error(store->db, rc, "recording the sandbox", err);
}

/* Run an UPDATE that must hit one row. */
static int update_one(struct sbx_store *store, sqlite3_stmt *stmt, const char *id,
		      struct sbx_err *err)
{
	int r = sbx_sql_step_done(store->db, stmt, "updating the sandbox", err);

	if (r)
		return r;
	if (sqlite3_changes(store->db) == 1)
		return 0;
	sbx_err_set(err, "no sandbox %s that could change to this state", id);
	return SBX_STORE_E_UNKNOWN;
}

int sbx_store_sandbox_release(struct sbx_store *store, const char *id, int64_t released_ms,
			      const char *selftest_json, struct sbx_err *err)
{
	SBX_AUTO_STMT sqlite3_stmt *stmt = NULL;
	struct sbx_sql_binder b = { 0 };
	int r;

	r = sbx_sql_prepare(
		store->db,
		"UPDATE sandbox SET state = 'running', released_ms = ?1, "
		"selftest = coalesce(?2, selftest) WHERE id = ?3 AND state = 'preparing'",
		"updating the sandbox", err, &stmt);
	if (r)
		return r;
	b.stmt = stmt;
	sbx_sql_bind_int(&b, released_ms);
	sbx_sql_bind_text(&b, selftest_json);
	sbx_sql_bind_text(&b, id);
	return update_one(store, stmt, id, err);
}

int sbx_store_sandbox_change(struct sbx_store *store, const char *id,
			     const struct sbx_store_change *change, struct sbx_err *err)
{
	SBX_AUTO_STMT sqlite3_stmt *stmt = NULL;
	struct sbx_sql_binder b = { 0 };
	int r;

	r = sbx_sql_prepare(
		store->db,
		"UPDATE sandbox SET "
		"air_gapped = CASE WHEN generation > ?1 THEN air_gapped ELSE ?2 END, "
		"allow_out = CASE WHEN generation > ?1 THEN allow_out ELSE ?3 END, "
		"deny_out = CASE WHEN generation > ?1 THEN deny_out ELSE ?4 END, "
		"rules = CASE WHEN generation > ?1 THEN rules ELSE coalesce(?5, '[]') END, "
		"generation = max(generation, ?1) WHERE id = ?6 AND ended_ms IS NULL",
		"updating the sandbox", err, &stmt);
	if (r)
		return r;
	b.stmt = stmt;
	sbx_sql_bind_int(&b, (int64_t)change->generation);
	sbx_sql_bind_int(&b, change->air_gapped);
	sbx_sql_bind_text(&b, change->allow_json);
	sbx_sql_bind_text(&b, change->deny_json);
	sbx_sql_bind_text(&b, change->rules_json);
	sbx_sql_bind_text(&b, id);
	return update_one(store, stmt, id, err);
}

static void bind_known(struct sbx_sql_binder *b, int64_t value)
{
	if (value >= 0)
		sbx_sql_bind_int(b, value);
	else
		sbx_sql_bind_text(b, NULL);
}

int sbx_store_sandbox_end(struct sbx_store *store, const char *id, const struct sbx_store_end *end,
			  struct sbx_err *err)
{
	SBX_AUTO_STMT sqlite3_stmt *stmt = NULL;
	struct sbx_sql_binder b = { 0 };
	int r;

	assert(end->state >= SBX_STATE_DONE && end->state < SBX_N_STATES);
	r = sbx_sql_prepare(
		store->db,
		"UPDATE sandbox SET state = ?1, ended_ms = ?2, exit_status = ?3, "
		"selftest = coalesce(?4, selftest), receipt = coalesce(?5, receipt), "
		"cpu_us = ?6, memory_peak_bytes = ?7, cpu_pressure_us = ?8, "
		"memory_pressure_us = ?9, io_pressure_us = ?10 "
		"WHERE id = ?11 AND state IN ('preparing', 'running')",
		"updating the sandbox", err, &stmt);
	if (r)
		return r;
	b.stmt = stmt;
	sbx_sql_bind_text(&b, sbx_store_state_str(end->state));
	sbx_sql_bind_int(&b, end->ended_ms);
	bind_known(&b, end->exit_status);
	sbx_sql_bind_text(&b, end->selftest_json);
	sbx_sql_bind_text(&b, end->receipt_json);
	bind_known(&b, end->usage.cpu_us);
	bind_known(&b, end->usage.memory_peak_bytes);
	bind_known(&b, end->usage.cpu_pressure_us);
	bind_known(&b, end->usage.memory_pressure_us);
	bind_known(&b, end->usage.io_pressure_us);
	sbx_sql_bind_text(&b, id);
	return update_one(store, stmt, id, err);
}

/* --- sandboxes that may be running --- */

struct live_row {
	char id[SBX_ID_LEN + 1];
	struct sbx_store_live live;
};

/* The rows are copied before the first call, so that the callback may write. */
static int live_collect(struct sbx_store *store, struct live_row *rows, size_t *ret_n,
			struct sbx_err *err)
{
	SBX_AUTO_STMT sqlite3_stmt *stmt = NULL;
	size_t n = 0;
	int rc, r;

	r = sbx_sql_prepare(store->db,
			    "SELECT id, state = 'running', pid, pid_start, created_ms FROM sandbox "
			    "WHERE ended_ms IS NULL ORDER BY rowid",
			    "listing sandboxes", err, &stmt);
	if (r)
		return r;
	for (rc = sqlite3_step(stmt); rc == SQLITE_ROW && n < LIVE_MAX; rc = sqlite3_step(stmt)) {
		const char *id = (const char *)sqlite3_column_text(stmt, 0);
		struct live_row *row = &rows[n];

		if (!id || sbx_text_copy(row->id, sizeof(row->id), id) < 0)
			continue; /* sbx-run did not write this row */
		n++;
		row->live = (struct sbx_store_live){
			.id = row->id,
			.state = sqlite3_column_int(stmt, 1) ? SBX_STATE_RUNNING
							     : SBX_STATE_PREPARING,
			.pid = (pid_t)sqlite3_column_int64(stmt, 2),
			.pid_start = (uint64_t)sqlite3_column_int64(stmt, 3),
			.created_ms = sqlite3_column_int64(stmt, 4),
		};
	}
	if (rc != SQLITE_DONE && rc != SQLITE_ROW)
		return sbx_sql_error(store->db, rc, "listing sandboxes", err);
	*ret_n = n;
	return 0;
}

int sbx_store_live_each(struct sbx_store *store,
			int (*fn)(const struct sbx_store_live *s, void *userdata), void *userdata,
			struct sbx_err *err)
{
	SBX_AUTO_FREE struct live_row *rows = calloc(LIVE_MAX, sizeof(*rows));
	size_t n = 0;
	int r;

	if (!rows)
		return out_of_memory(err);
	r = live_collect(store, rows, &n, err);
	for (size_t i = 0; !r && i < n; i++)
		r = fn(&rows[i].live, userdata);
	return r;
}

const char *sbx_store_library_version(void)
{
	return sqlite3_libversion();
}
