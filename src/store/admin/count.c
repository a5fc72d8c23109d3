/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Adds new events to the counts of refusals and to the spans of ids. It runs beside the writers of
 * events, in short transactions, so that a launcher writes its events as fast as without counts.
 * Readers (denials.c) add the events that are not counted yet themselves, if they are few. So a
 * count is exact, whichever program wrote the event.
 *
 * Where there are many (the first start over a large database), they become a gap, and the gap is
 * counted from its newest end back, after what comes meanwhile: so the counts of the last hours are
 * there at once.
 *
 *     counted, by the last run | gap: not counted | counted, newest first | last_id: new ones
 *
 * An event with a time that is none counts as of 1970.
 */
#include "base/cleanup.h"
#include "store/sql.h"
#include "store/store_keep.h"

#define COUNTING "counting refusals"
#define LATE_S	 60 /* an event may be committed so much later than one with a newer time */

/* ?1 and ?2: after which event, and up to which. `o` is the owner. */
#define REFUSALS(which)                                                                            \
	"WITH batch AS MATERIALIZED (SELECT id, "                                                  \
	"coalesce(CAST(strftime('%s', ts) AS INTEGER), 0) AS s, sandbox_id AS box, "               \
	"coalesce(workspace, '') AS w, coalesce((SELECT owner_uid FROM api_sandbox AS a "          \
	"WHERE a.sandbox_id = e.sandbox_id), -1) AS o, coalesce(remote_ip, '') AS ip, "            \
	"coalesce(fqdn_pinned, remote_ip, '') AS name, reason, "                                   \
	"min(raw_pkts, 1000000000000) AS n FROM sandbox_egress_event AS e "                        \
	"WHERE id > ?1 AND id <= ?2 AND action = 'deny'" which ") "

/* Kinds are those of migrations/0005-scale.sql. Rows of minutes only since ?3, or ?4 in kind 4. */
static const char count_sql[] = REFUSALS(" AND reason <> 'overflow'")
	"INSERT INTO egress_deny_count "
	"SELECT kind, span, s / span * span, scope, key, w, o, sum(n), count(*), min(id), max(id) "
	"FROM (SELECT 0 AS kind, '' AS scope, ip AS key, '' AS w, -1 AS o, s, id, n FROM batch "
	"UNION ALL SELECT 1, '', name, '', -1, s, id, n FROM batch "
	"UNION ALL SELECT 5, w, ip, '', o, s, id, n FROM batch WHERE w <> '' "
	"UNION ALL SELECT 6, w, name, '', o, s, id, n FROM batch WHERE w <> '' "
	"UNION ALL SELECT 7, CAST(o AS TEXT), ip, '', -1, s, id, n FROM batch WHERE o >= 0 "
	"UNION ALL SELECT 8, CAST(o AS TEXT), name, '', -1, s, id, n FROM batch WHERE o >= 0 "
	"UNION ALL SELECT 2, '', box, w, o, s, id, n FROM batch "
	"UNION ALL SELECT 4, '', reason, w, o, s, id, n FROM batch) "
	"JOIN (SELECT 60 AS span UNION ALL SELECT 3600 UNION ALL SELECT 21600 "
	"UNION ALL SELECT 86400) "
	"WHERE span > 60 OR s >= ?3 OR (kind = 4 AND s >= ?4) GROUP BY 1, 2, 3, 4, 5, 6, 7 "
	"ON CONFLICT DO UPDATE SET n = min(n + excluded.n, 1000000000000), "
	"n_rows = n_rows + excluded.n_rows, first_id = min(first_id, excluded.first_id), "
	"last_id = max(last_id, excluded.last_id)";

static const char sandboxes_sql[] = REFUSALS("")
	"INSERT OR IGNORE INTO egress_deny_sandbox "
	"SELECT DISTINCT s / 3600 * 3600, kind, key, box, w, o FROM ("
	"SELECT 0 AS kind, ip AS key, w, o, s, box FROM batch "
	"UNION ALL SELECT 1, name, w, o, s, box FROM batch "
	"UNION ALL SELECT 3, w, w, o, s, box FROM batch "
	"UNION ALL SELECT 4, reason, w, o, s, box FROM batch)";

static const char spans_sql[] =
	"INSERT INTO egress_event_span "
	"SELECT coalesce(CAST(strftime('%s', ts) AS INTEGER), 0) / 600 * 600, min(id), max(id) "
	"FROM sandbox_egress_event WHERE id > ?1 AND id <= ?2 GROUP BY 1 "
	"ON CONFLICT DO UPDATE SET first_id = min(first_id, excluded.first_id), "
	"last_id = max(last_id, excluded.last_id)";

/* The row of egress_counted. */
struct counted {
	int64_t last, gap_first, gap_last;
	int64_t newest; /* event */
};

struct batch {
	int64_t after, upto; /* ids */
	int64_t minutes_from, reasons_from; /* seconds since 1970 */
	int64_t n;
	struct counted then; /* when it was counted */
};

/* Run @sql with the first of @values (NULL: none), as many as it has parameters. *ret_v: its first
 * row, @n_v integers; NULL: it has none. */
static int run(struct sbx_store *store, const char *sql, const int64_t *values, int64_t *ret_v,
	       int n_v, struct sbx_err *err)
{
	SBX_AUTO_STMT sqlite3_stmt *stmt = NULL;
	int rc, r = sbx_sql_prepare(store->db, sql, COUNTING, err, &stmt);

	if (r)
		return r;
	for (int i = 0; values && i < sqlite3_bind_parameter_count(stmt); i++)
		sqlite3_bind_int64(stmt, i + 1, values[i]);
	if (!ret_v)
		return sbx_sql_step_done(store->db, stmt, COUNTING, err);
	rc = sqlite3_step(stmt);
	if (rc != SQLITE_ROW)
		return sbx_sql_error(store->db, rc, COUNTING, err);
	for (int i = 0; i < n_v; i++)
		ret_v[i] = sqlite3_column_int64(stmt, i);
	return 0;
}

static int read_counted(struct sbx_store *store, struct sbx_err *err, struct counted *ret)
{
	static const char sql[] = "SELECT last_id, gap_first, gap_last, coalesce((SELECT max(id) "
				  "FROM sandbox_egress_event), 0) FROM egress_counted";
	int64_t v[4];
	int r = run(store, sql, NULL, v, 4, err);

	if (r == 0)
		*ret = (struct counted){ v[0], v[1], v[2], v[3] };
	return r;
}

/* The oldest events past the last that was counted. */
static int look_up(struct sbx_store *store, const struct counted *c, uint32_t n_max,
		   struct sbx_err *err, struct batch *batch)
{
	static const char sql[] =
		"SELECT coalesce(max(id), ?1), count(id) FROM (SELECT id FROM sandbox_egress_event "
		"WHERE id > ?1 ORDER BY id LIMIT ?2)";
	const int64_t values[] = { c->last, n_max };
	int64_t v[2];
	int r = run(store, sql, values, v, 2, err);

	if (r)
		return r;
	batch->after = c->last;
	batch->upto = v[0];
	batch->n = v[1];
	batch->then = *c;
	batch->then.last = v[0];
	return 0;
}

/* The newest events of the gap. */
static int look_back(struct sbx_store *store, const struct counted *c, uint32_t n_max,
		     struct sbx_err *err, struct batch *batch)
{
	static const char sql[] =
		"SELECT coalesce(min(id), ?1), count(id) FROM (SELECT id FROM sandbox_egress_event "
		"WHERE id >= ?1 AND id <= ?2 ORDER BY id DESC LIMIT ?3)";
	const int64_t values[] = { c->gap_first, c->gap_last, n_max };
	int64_t v[2];
	int r = run(store, sql, values, v, 2, err);

	if (r)
		return r;
	batch->after = v[0] - 1;
	batch->upto = c->gap_last;
	batch->n = v[1];
	batch->then = *c;
	batch->then.gap_last = v[0] - 1;
	if (v[0] == c->gap_first || v[1] < n_max)
		batch->then.gap_first = batch->then.gap_last = 0;
	return 0;
}

/* The next events that are not counted, at most @n_max. False in *ret_any: there is nothing to
 * do. */
static int look(struct sbx_store *store, uint32_t n_max, struct sbx_err *err, struct batch *batch,
		bool *ret_any)
{
	struct counted c;
	int r = read_counted(store, err, &c);

	if (r)
		return r;
	if (c.gap_last == 0 && c.newest - c.last > SBX_STORE_UNCOUNTED_MAX) {
		c.gap_first = c.last + 1;
		c.gap_last = c.last = c.newest;
	}
	*ret_any = c.newest > c.last || c.gap_last > 0;
	return c.newest > c.last ? look_up(store, &c, n_max, err, batch) :
				   look_back(store, &c, n_max, err, batch);
}

static int add(struct sbx_store *store, const struct batch *batch, struct sbx_err *err)
{
	static const char then_sql[] =
		"UPDATE egress_counted SET last_id = ?1, gap_first = ?2, gap_last = ?3";
	const int64_t values[] = { batch->after, batch->upto, batch->minutes_from,
				   batch->reasons_from };
	const int64_t then[] = { batch->then.last, batch->then.gap_first, batch->then.gap_last };
	int r = run(store, count_sql, values, NULL, 0, err);

	r = r ? r : run(store, sandboxes_sql, values, NULL, 0, err);
	r = r ? r : run(store, spans_sql, values, NULL, 0, err);
	return r ? r : run(store, then_sql, then, NULL, 0, err);
}

int sbx_store_count(struct sbx_store *store, int64_t now_ms, uint32_t n_max, struct sbx_err *err,
		    uint32_t *ret_counted)
{
	struct batch batch = { .minutes_from = now_ms / 1000 - SBX_STORE_KEEP_FINE_S,
			       .reasons_from = now_ms / 1000 - SBX_STORE_KEEP_MINUTES_S };
	bool any = false;
	int r = look(store, n_max, err, &batch, &any);

	if (r || !any) {
		if (r == 0)
			*ret_counted = 0;
		return r;
	}
	r = sbx_sql_exec(store->db, "BEGIN IMMEDIATE", "waiting to count refusals", err);
	if (r == 0)
		r = look(store, n_max, err, &batch, &any); /* another program may have counted */
	if (r == 0 && any)
		r = add(store, &batch, err);
	if (r == 0)
		r = sbx_sql_exec(store->db, "COMMIT", COUNTING, err);
	if (r)
		sbx_sql_rollback(store->db);
	else
		*ret_counted = (uint32_t)batch.n;
	return r;
}

int sbx_store_uncounted(struct sbx_store *store, int64_t since_ms, struct sbx_err *err,
			int64_t *ret_n)
{
	static const char newest_sql[] =
		"SELECT coalesce(CAST(strftime('%s', max(ts)) AS INTEGER), 0) FROM (SELECT ts FROM "
		"sandbox_egress_event WHERE id <= ?1 ORDER BY id DESC LIMIT 1)";
	struct counted c;
	int64_t at = 0, n;
	int r = read_counted(store, err, &c);

	if (r)
		return r;
	n = c.newest - c.last > SBX_STORE_UNCOUNTED_MAX ?
		    c.newest - c.last - SBX_STORE_UNCOUNTED_MAX :
		    0;
	if (c.gap_last > 0)
		r = run(store, newest_sql, &c.gap_last, &at, 1, err);
	if (c.gap_last > 0 && at >= since_ms / 1000 - LATE_S)
		n += c.gap_last - c.gap_first + 1;
	if (r == 0)
		*ret_n = n;
	return r;
}
