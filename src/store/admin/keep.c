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
