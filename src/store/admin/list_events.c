/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Pages of events. They are walked by id, which is the order of the commits, so that a page can go
 * on where the last one ended. A `+` keeps SQLite from another index, for which it would have to
 * sort all that is left for each page.
 *
 * Times: rows are nearly, but not quite, in their order (one launcher waits for a lock while
 * another writes). The first page finds the smallest id of the span in the index of times alone.
 */
#include "store/store_list.h"

#include <assert.h>

#include "base/cleanup.h"
#include "store/sql.h"

#define COLUMNS                                                                                    \
	"SELECT id, sandbox_id, ts, action, protocol, reason, analysis_id, workspace, "            \
	"remote_ip, fqdn_pinned, rule, request, remote_port, raw_pkts, generation, bytes_out, "    \
	"bytes_in, duration_ms FROM sandbox_egress_event"

static void to_row(sqlite3_stmt *stmt, struct sbx_store_event_row *e)
{
	const char *words[5];

	for (int i = 0; i < 5; i++) {
		words[i] = sbx_sql_text(stmt, i + 1);
		words[i] = words[i] ? words[i] : "";
	}
	*e = (struct sbx_store_event_row){
		.id = sqlite3_column_int64(stmt, 0),
		.sandbox_id = words[0],
		.ts = words[1],
		.action = words[2],
		.protocol = words[3],
		.reason = words[4],
		.analysis_id = sbx_sql_text(stmt, 6),
		.workspace = sbx_sql_text(stmt, 7),
		.remote_ip = sbx_sql_text(stmt, 8),
		.name = sbx_sql_text(stmt, 9),
		.rule = sbx_sql_text(stmt, 10),
		.request = sbx_sql_text(stmt, 11),
		.remote_port = sbx_sql_number(stmt, 12, SBX_STORE_NONE),
		.count = sqlite3_column_int64(stmt, 13),
		.generation = sbx_sql_number(stmt, 14, SBX_STORE_NONE),
		.bytes_out = sbx_sql_number(stmt, 15, SBX_STORE_NONE),
		.bytes_in = sbx_sql_number(stmt, 16, SBX_STORE_NONE),
		.duration_ms = sbx_sql_number(stmt, 17, SBX_STORE_NONE),
	};
}

/* The smallest id of a row since @since; one past the largest if there is none. */
static int first_since(struct sbx_store *store, const char *since, struct sbx_err *err,
		       int64_t *ret_id)
{
	SBX_AUTO_STMT sqlite3_stmt *stmt = NULL;
	int rc, r = sbx_sql_prepare(store->db,
				    "SELECT min(id) FROM sandbox_egress_event WHERE ts >= ?1",
				    "reading events", err, &stmt);

	if (r)
		return r;
	sqlite3_bind_text(stmt, 1, since, -1, SQLITE_STATIC);
	rc = sqlite3_step(stmt);
	if (rc != SQLITE_ROW)
		return sbx_sql_error(store->db, rc, "reading events", err);
	*ret_id = sbx_sql_number(stmt, 0, INT64_MAX);
	return 0;
}

int sbx_store_events_page(struct sbx_store *store, const struct sbx_store_event_filter *filter,
			  sbx_store_event_fn fn, void *userdata, struct sbx_err *err)
{
	SBX_AUTO_STMT sqlite3_stmt *stmt = NULL;
	char since[SBX_SQL_TS_MAX], until[SBX_SQL_TS_MAX];
	struct sbx_sql_where where = { 0 };
	struct sbx_sql_binder b;
	int64_t after = filter->after;
	int rc, r = 0;

	if (filter->since_ms > 0) {
		sbx_sql_ts(filter->since_ms, since);
		sbx_sql_where_text(&where, "+ts >= ?", since);
		if (after == 0 && !filter->sandbox_id)
			r = first_since(store, since, err, &after);
		if (r)
			return r;
		after -= after > filter->after; /* a first row, not the last that came */
	}
	if (after > 0)
		sbx_sql_where_int(&where, "id > ?", after);
	if (filter->before > 0)
		sbx_sql_where_int(&where, "id < ?", filter->before);
	if (filter->until_ms > 0)
		sbx_sql_where_text(&where, "+ts < ?", sbx_sql_ts(filter->until_ms, until));
	sbx_sql_where_text(&where, "sandbox_id = ?", filter->sandbox_id);
	sbx_sql_where_text(&where, "+analysis_id = ?", filter->analysis_id);
	sbx_sql_where_text(&where, "workspace = ?", filter->workspace);
	sbx_sql_where_text(&where, "action = ?", filter->action);
	sbx_sql_where_text(&where, "reason = ?", filter->reason);
	r = sbx_sql_where_prepare(store->db, COLUMNS, &where,
				  filter->newest_first ? "ORDER BY id DESC LIMIT ?" :
							 "ORDER BY id LIMIT ?",
				  "reading events", err, &stmt, &b);
	if (r)
		return r;
	sbx_sql_bind_int(&b, filter->n_max ? filter->n_max : SBX_STORE_PAGE);
	while ((rc = sqlite3_step(stmt)) == SQLITE_ROW) {
		struct sbx_store_event_row e;

		to_row(stmt, &e);
		r = fn(&e, userdata);
		if (r)
			return r;
	}
	return rc == SQLITE_DONE ? 0 : sbx_sql_error(store->db, rc, "reading events", err);
}

int sbx_store_events_last(struct sbx_store *store, int64_t *ret_id, struct sbx_err *err)
{
	return sbx_sql_int(store->db, "SELECT coalesce(max(id), 0) FROM sandbox_egress_event",
			   "reading events", err, ret_id);
}

/* --- refusals --- */

/* The newest row of each group tells what it was about. SQLite's sum is an error when it
 * overflows. */
#define GROUPED(key)                                                                               \
	"SELECT s.k, n, n_rows, n_sandboxes, first_ts, last_ts, e.reason, e.fqdn_pinned, "         \
	"e.remote_ip, e.rule, e.remote_port, e.protocol FROM (SELECT " key                         \
	" AS k, sum(min(raw_pkts, 1000000000000)) AS n, count(*) AS n_rows, "                      \
	"count(DISTINCT sandbox_id) AS n_sandboxes, min(ts) AS first_ts, max(ts) AS last_ts, "     \
	"max(id) AS last FROM sandbox_egress_event"

static const char *const grouped[] = {
	[SBX_DENIES_BY_ADDRESS] = GROUPED("remote_ip"),
	[SBX_DENIES_BY_NAME] = GROUPED("coalesce(fqdn_pinned, remote_ip)"),
	[SBX_DENIES_BY_SANDBOX] = GROUPED("sandbox_id"),
	[SBX_DENIES_BY_WORKSPACE] = GROUPED("workspace"),
	[SBX_DENIES_BY_REASON] = GROUPED("reason"),
};
static_assert(SBX_N_ELEMENTS(grouped) == SBX_N_DENIES_BY, "a query for each");

static void to_denies(sqlite3_stmt *stmt, struct sbx_store_denies_row *d)
{
	*d = (struct sbx_store_denies_row){
		.key = sbx_sql_text(stmt, 0),
		.count = sqlite3_column_int64(stmt, 1),
		.n_rows = sqlite3_column_int64(stmt, 2),
		.n_sandboxes = sqlite3_column_int64(stmt, 3),
		.first_ts = sbx_sql_text(stmt, 4),
		.last_ts = sbx_sql_text(stmt, 5),
		.last_reason = sbx_sql_text(stmt, 6),
		.last_name = sbx_sql_text(stmt, 7),
		.last_ip = sbx_sql_text(stmt, 8),
		.last_rule = sbx_sql_text(stmt, 9),
		.last_port = sbx_sql_number(stmt, 10, SBX_STORE_NONE),
		.last_protocol = sbx_sql_text(stmt, 11),
	};
}

int sbx_store_denies_each(struct sbx_store *store, enum sbx_store_denies_by by,
			  const struct sbx_store_event_filter *filter,
			  int (*fn)(const struct sbx_store_denies_row *d, void *userdata),
			  void *userdata, struct sbx_err *err)
{
	SBX_AUTO_STMT sqlite3_stmt *stmt = NULL;
	char since[SBX_SQL_TS_MAX], until[SBX_SQL_TS_MAX];
	struct sbx_sql_where where = { 0 };
	struct sbx_sql_binder b;
	int rc, r;

	sbx_sql_where_text(&where, "action = ?", "deny");
	if (filter->since_ms > 0)
		sbx_sql_where_text(&where, "ts >= ?", sbx_sql_ts(filter->since_ms, since));
	if (filter->until_ms > 0)
		sbx_sql_where_text(&where, "ts < ?", sbx_sql_ts(filter->until_ms, until));
	sbx_sql_where_text(&where, "sandbox_id = ?", filter->sandbox_id);
	sbx_sql_where_text(&where, "analysis_id = ?", filter->analysis_id);
	sbx_sql_where_text(&where, "workspace = ?", filter->workspace);
	sbx_sql_where_text(&where, "reason = ?", filter->reason);
	r = sbx_sql_where_prepare(store->db, grouped[by], &where,
				  "GROUP BY 1 ORDER BY n DESC, last DESC LIMIT ?) AS s "
				  "JOIN sandbox_egress_event AS e ON e.id = s.last "
				  "ORDER BY n DESC, last DESC",
				  "reading refusals", err, &stmt, &b);
	if (r)
		return r;
	sbx_sql_bind_int(&b, filter->n_max ? filter->n_max : SBX_STORE_PAGE);
	while ((rc = sqlite3_step(stmt)) == SQLITE_ROW) {
		struct sbx_store_denies_row d;

		to_denies(stmt, &d);
		r = fn(&d, userdata);
		if (r)
			return r;
	}
	return rc == SQLITE_DONE ? 0 : sbx_sql_error(store->db, rc, "reading refusals", err);
}
