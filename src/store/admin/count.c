/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Adds new events to the counts of refusals and to the spans of ids. It runs beside the writers of
 * events, in short transactions, so that a launcher writes its events as fast as without counts.
 * egress_counted has the last event that was added. Readers (denials.c) add the later ones
 * themselves. So a count is exact at any time, whichever program wrote the event.
 *
 * An event with a time that is none counts as of 1970.
 */
#include "base/cleanup.h"
#include "store/sql.h"
#include "store/store_keep.h"

#define COUNTING "counting refusals"

/* ?1 and ?2: after which event, and up to which. */
#define REFUSALS(which)                                                                            \
	"WITH batch AS MATERIALIZED (SELECT id, "                                                  \
	"coalesce(CAST(strftime('%s', ts) AS INTEGER), 0) AS s, sandbox_id AS box, "               \
	"coalesce(workspace, '') AS w, coalesce(remote_ip, '') AS ip, "                            \
	"coalesce(fqdn_pinned, remote_ip, '') AS name, reason, "                                   \
	"min(raw_pkts, 1000000000000) AS n "                                                       \
	"FROM sandbox_egress_event WHERE id > ?1 AND id <= ?2 AND action = 'deny'" which ") "

/* Kinds are those of migrations/0004-service.sql. Rows of minutes only since ?3. */
static const char count_sql[] = REFUSALS(" AND reason <> 'overflow'")
	"INSERT INTO egress_deny_count "
	"SELECT kind, span, s / span * span, key, w, sum(n), count(*), min(id), max(id) FROM ("
	"SELECT 0 AS kind, ip AS key, '' AS w, s, id, n FROM batch "
	"UNION ALL SELECT 1, name, '', s, id, n FROM batch "
	"UNION ALL SELECT 5, ip, w, s, id, n FROM batch WHERE w <> '' "
	"UNION ALL SELECT 6, name, w, s, id, n FROM batch WHERE w <> '' "
	"UNION ALL SELECT 2, box, w, s, id, n FROM batch "
	"UNION ALL SELECT 4, reason, w, s, id, n FROM batch) "
	"JOIN (SELECT 60 AS span UNION ALL SELECT 3600 UNION ALL SELECT 86400) "
	"WHERE span > 60 OR s >= ?3 GROUP BY 1, 2, 3, 4, 5 "
	"ON CONFLICT DO UPDATE SET n = min(n + excluded.n, 1000000000000), "
	"n_rows = n_rows + excluded.n_rows, last_id = max(last_id, excluded.last_id)";

static const char sandboxes_sql[] = REFUSALS("")
	"INSERT OR IGNORE INTO egress_deny_sandbox "
	"SELECT DISTINCT s / 3600 * 3600, kind, key, box, w FROM ("
	"SELECT 0 AS kind, ip AS key, w, s, box FROM batch "
	"UNION ALL SELECT 1, name, w, s, box FROM batch "
	"UNION ALL SELECT 3, w, w, s, box FROM batch "
	"UNION ALL SELECT 4, reason, w, s, box FROM batch)";

static const char spans_sql[] =
	"INSERT INTO egress_event_span "
	"SELECT coalesce(CAST(strftime('%s', ts) AS INTEGER), 0) / 600 * 600, min(id), max(id) "
	"FROM sandbox_egress_event WHERE id > ?1 AND id <= ?2 GROUP BY 1 "
	"ON CONFLICT DO UPDATE SET first_id = min(first_id, excluded.first_id), "
	"last_id = max(last_id, excluded.last_id)";

struct batch {
	int64_t after, upto; /* ids */
	int64_t minutes_from;
	int64_t n;
};

static int run(struct sbx_store *store, const char *sql, const struct batch *batch,
	       struct sbx_err *err)
{
	SBX_AUTO_STMT sqlite3_stmt *stmt = NULL;
	int r = sbx_sql_prepare(store->db, sql, COUNTING, err, &stmt);

	if (r)
		return r;
	sqlite3_bind_int64(stmt, 1, batch->after);
	if (sqlite3_bind_parameter_count(stmt) > 1)
		sqlite3_bind_int64(stmt, 2, batch->upto);
	if (sqlite3_bind_parameter_count(stmt) > 2)
		sqlite3_bind_int64(stmt, 3, batch->minutes_from);
	return sbx_sql_step_done(store->db, stmt, COUNTING, err);
}

/* The next events that are not counted, at most @n_max. */
static int look(struct sbx_store *store, uint32_t n_max, struct sbx_err *err, struct batch *batch)
{
	static const char sql[] =
		"SELECT last, max(id), count(id) FROM (SELECT last_id AS last FROM egress_counted) "
		"LEFT JOIN (SELECT id FROM sandbox_egress_event "
		"WHERE id > (SELECT last_id FROM egress_counted) ORDER BY id LIMIT ?1)";
	SBX_AUTO_STMT sqlite3_stmt *stmt = NULL;
	int rc, r = sbx_sql_prepare(store->db, sql, COUNTING, err, &stmt);

	if (r)
		return r;
	sqlite3_bind_int64(stmt, 1, n_max);
	rc = sqlite3_step(stmt);
	if (rc != SQLITE_ROW)
		return sbx_sql_error(store->db, rc, COUNTING, err);
	batch->after = sqlite3_column_int64(stmt, 0);
	batch->upto = sqlite3_column_int64(stmt, 1);
	batch->n = sqlite3_column_int64(stmt, 2);
	return 0;
}

static int add(struct sbx_store *store, const struct batch *batch, struct sbx_err *err)
{
	const struct batch done = { .after = batch->upto };
	int r = run(store, count_sql, batch, err);

	if (r == 0)
		r = run(store, sandboxes_sql, batch, err);
	if (r == 0)
		r = run(store, spans_sql, batch, err);
	if (r == 0)
		r = run(store, "UPDATE egress_counted SET last_id = ?1", &done, err);
	return r;
}

int sbx_store_count(struct sbx_store *store, int64_t now_ms, uint32_t n_max, struct sbx_err *err,
		    uint32_t *ret_counted)
{
	struct batch batch = { .minutes_from = now_ms / 1000 - SBX_STORE_KEEP_MINUTES_S };
	int r = look(store, n_max, err, &batch);

	if (r || batch.n == 0) {
		if (r == 0)
			*ret_counted = 0;
		return r;
	}
	r = sbx_sql_exec(store->db, "BEGIN IMMEDIATE", "waiting to count refusals", err);
	if (r == 0)
		r = look(store, n_max, err, &batch); /* another program may have counted */
	if (r == 0 && batch.n > 0)
		r = add(store, &batch, err);
	if (r == 0)
		r = sbx_sql_exec(store->db, "COMMIT", COUNTING, err);
	if (r)
		sbx_sql_rollback(store->db);
	else
		*ret_counted = (uint32_t)batch.n;
	return r;
}
