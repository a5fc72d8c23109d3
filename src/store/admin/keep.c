/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Upkeep. Events are counted by their ids, without a look at them: a row that somebody removed by
 * hand counts until all older ones are gone.
 */
#include "store/store_keep.h"

#include "base/cleanup.h"
#include "store/sql.h"

#define DAY_MS INT64_C(86400000)

/* Run @sql with one text, and give its first column; 0 if there is no row. */
static int number_of(struct sbx_store *store, const char *sql, const char *text,
		     struct sbx_err *err, int64_t *ret_v)
{
	SBX_AUTO_STMT sqlite3_stmt *stmt = NULL;
	int rc, r = sbx_sql_prepare(store->db, sql, "looking for old events", err, &stmt);

	if (r)
		return r;
	if (text)
		sqlite3_bind_text(stmt, 1, text, -1, SQLITE_STATIC);
	rc = sqlite3_step(stmt);
	if (rc != SQLITE_ROW && rc != SQLITE_DONE)
		return sbx_sql_error(store->db, rc, "looking for old events", err);
	*ret_v = rc == SQLITE_ROW ? sqlite3_column_int64(stmt, 0) : 0;
	return 0;
}

/* Rows past @max_rows. */
static int n_surplus(struct sbx_store *store, int64_t max_rows, struct sbx_err *err, int64_t *ret_n)
{
	int64_t n = 0;
	int r = number_of(store,
			  "SELECT coalesce((SELECT max(id) FROM sandbox_egress_event) - "
			  "(SELECT min(id) FROM sandbox_egress_event) + 1, 0)",
			  NULL, err, &n);

	*ret_n = max_rows > 0 && n > max_rows ? n - max_rows : 0;
	return r;
}

static int remove_rows(struct sbx_store *store, const char *sql, const char *before, int64_t n,
		       struct sbx_err *err, uint32_t *removed)
{
	SBX_AUTO_STMT sqlite3_stmt *stmt = NULL;
	struct sbx_sql_binder b = { 0 };
	int r = sbx_sql_prepare(store->db, sql, "removing old events", err, &stmt);

	if (r)
		return r;
	b.stmt = stmt;
	sbx_sql_bind_int(&b, n);
	if (before)
		sbx_sql_bind_text(&b, before);
	r = sbx_sql_step_done(store->db, stmt, "removing old events", err);
	if (r == 0)
		*removed += (uint32_t)sqlite3_changes(store->db);
	return r;
}

int sbx_store_prune(struct sbx_store *store, const struct sbx_store_keep *keep, uint32_t n_max,
		    struct sbx_err *err, uint32_t *ret_removed)
{
	static const char oldest[] =
		"DELETE FROM sandbox_egress_event WHERE id IN (SELECT id FROM sandbox_egress_event "
		"WHERE id < (SELECT max(id) FROM sandbox_egress_event) ORDER BY id LIMIT ?1)";
	static const char older[] =
		"DELETE FROM sandbox_egress_event WHERE id IN (SELECT id FROM sandbox_egress_event "
		"WHERE ts < ?2 AND id < (SELECT max(id) FROM sandbox_egress_event) "
		"ORDER BY ts LIMIT ?1)";
	char before[SBX_SQL_TS_MAX];
	int64_t surplus = 0, n_old = 0;
	uint32_t removed = 0;
	int r = n_surplus(store, keep->max_rows, err, &surplus);

	sbx_sql_ts(keep->now_ms - keep->days * DAY_MS, before);
	if (r == 0 && keep->days > 0)
		r = number_of(store,
			      "SELECT EXISTS (SELECT 1 FROM sandbox_egress_event WHERE ts < ?1 "
			      "AND id < (SELECT max(id) FROM sandbox_egress_event))",
			      before, err, &n_old);
	if (r == 0 && (surplus || n_old))
		r = sbx_sql_exec(store->db, "BEGIN IMMEDIATE", "waiting to remove old events", err);
	if (r == 0 && surplus)
		r = remove_rows(store, oldest, NULL, surplus < n_max ? surplus : n_max, err,
				&removed);
	if (r == 0 && n_old && removed < n_max)
		r = remove_rows(store, older, before, n_max - removed, err, &removed);
	if (r == 0 && (surplus || n_old))
		r = sbx_sql_exec(store->db, "COMMIT", "removing old events", err);
	if (r)
		sbx_sql_rollback(store->db);
	else
		*ret_removed = removed;
	return r;
}

/* --- counts --- */

/* Rows past their time. ?1: at most so many; ?2: the oldest event, seconds since 1970; ?3: the
 * oldest minute to keep of reasons, and ?6: of all else; ?4: the oldest audit row to keep; ?5: a
 * day ago, milliseconds. A DELETE locks even if it finds nothing, so it comes after a look. */
#define SURPLUS(table, key, condition)                                                             \
	{ "SELECT EXISTS (SELECT 1 FROM " table " WHERE " condition ")",                           \
	  "DELETE FROM " table " WHERE (" key ") IN (SELECT " key " FROM " table                   \
	  " WHERE " condition " LIMIT ?1)" }
#define COUNTS(kind, span, before)                                                                 \
	SURPLUS("egress_deny_count", "kind, span, at, scope, key, workspace, owner",               \
		"kind = " kind " AND span = " span " AND at <= " before)
#define KIND(kind, minute)                                                                         \
	COUNTS(kind, "60", "max(?2 - 60, " minute " - 1)"),                                        \
		COUNTS(kind, "3600", "?2 - 3600"), COUNTS(kind, "21600", "?2 - 21600"),            \
		COUNTS(kind, "86400", "?2 - 86400")

static const struct surplus {
	const char *look, *remove;
} surplus[] = {
	KIND("0", "?6"),
	KIND("1", "?6"),
	KIND("2", "?6"),
	KIND("4", "?3"),
	KIND("5", "?6"),
	KIND("6", "?6"),
	KIND("7", "?6"),
	KIND("8", "?6"),
	SURPLUS("egress_deny_sandbox", "at, kind, key, sandbox_id", "at <= ?2 - 3600"),
	SURPLUS("egress_event_span", "at", "at <= ?2 - 600"),
	SURPLUS("api_audit", "id", "id < ?4"),
	SURPLUS("api_sandbox", "sandbox_id",
		"waits = 1 AND made_ms < ?5 AND "
		"NOT EXISTS (SELECT 1 FROM sandbox WHERE id = api_sandbox.sandbox_id)"),
};

struct limits {
	int64_t oldest_event, oldest_minute, oldest_fine_minute, oldest_audit, day_ago_ms;
};

/* *ret_n: rows that @sql removed, or the number that it selects. */
static int run(struct sbx_store *store, const char *sql, const struct limits *limits,
	       uint32_t n_max, struct sbx_err *err, uint32_t *ret_n)
{
	const int64_t values[] = { n_max, limits->oldest_event, limits->oldest_minute,
				   limits->oldest_audit, limits->day_ago_ms,
				   limits->oldest_fine_minute };
	SBX_AUTO_STMT sqlite3_stmt *stmt = NULL;
	int rc, r = sbx_sql_prepare(store->db, sql, "removing old counts", err, &stmt);

	if (r)
		return r;
	for (int i = 0; i < sqlite3_bind_parameter_count(stmt); i++)
		sqlite3_bind_int64(stmt, i + 1, values[i]);
	rc = sqlite3_step(stmt);
	if (rc != SQLITE_ROW && rc != SQLITE_DONE)
		return sbx_sql_error(store->db, rc, "removing old counts", err);
	*ret_n = (uint32_t)(rc == SQLITE_ROW ? sqlite3_column_int64(stmt, 0) :
					       sqlite3_changes(store->db));
	return 0;
}

int sbx_store_prune_counts(struct sbx_store *store, int64_t now_ms, uint32_t n_max,
			   struct sbx_err *err, uint32_t *ret_removed)
{
	struct limits limits = { .oldest_minute = now_ms / 1000 - SBX_STORE_KEEP_MINUTES_S,
				 .oldest_fine_minute = now_ms / 1000 - SBX_STORE_KEEP_FINE_S,
				 .day_ago_ms = now_ms - DAY_MS };
	uint32_t removed = 0;
	int r = number_of(store,
			  "SELECT CAST(strftime('%s', min(ts)) AS INTEGER) FROM "
			  "sandbox_egress_event",
			  NULL, err, &limits.oldest_event);

	if (r == 0)
		r = number_of(store, "SELECT max(id) FROM api_audit", NULL, err,
			      &limits.oldest_audit);
	limits.oldest_audit -= SBX_STORE_AUDIT_ROWS - 1;
	for (size_t i = 0; r == 0 && i < SBX_N_ELEMENTS(surplus) && removed < n_max; i++) {
		uint32_t n = 0;

		r = run(store, surplus[i].look, &limits, 0, err, &n);
		if (r == 0 && n)
			r = run(store, surplus[i].remove, &limits, n_max - removed, err, &n);
		removed += r == 0 ? n : 0;
	}
	if (r == 0)
		*ret_removed = removed;
	return r;
}
