/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Upkeep. Events are counted by their ids, without a look at them: a row that somebody removed by
 * hand counts until all older ones are gone.
 */
#include "store/store_keep.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "store/sql.h"

#define DAY_MS	     INT64_C(86400000)
#define PAGE	     200 /* rows that are in memory at once */
#define PROBLEMS_MAX 100

/* --- old events --- */

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

/* --- damage --- */

static int check(struct sbx_store *store, const char *pragma, bool is_list,
		 void (*tell)(const char *problem, void *userdata), void *userdata,
		 struct sbx_err *err)
{
	SBX_AUTO_STMT sqlite3_stmt *stmt = NULL;
	int rc, n = 0, r = sbx_sql_prepare(store->db, pragma, "looking for damage", err, &stmt);
	char line[512];

	if (r)
		return r;
	while ((rc = sqlite3_step(stmt)) == SQLITE_ROW && n < PROBLEMS_MAX) {
		const char *text = sbx_sql_text(stmt, 0);

		if (is_list && text && strcmp(text, "ok") == 0)
			continue;
		if (is_list)
			sbx_text_cut(line, sizeof(line), "%s", text ? text : "?");
		else
			sbx_text_cut(line, sizeof(line),
				     "%s, row %lld: what it belongs to is missing",
				     text ? text : "?",
				     (long long)sqlite3_column_int64(stmt, 1));
		line[strcspn(line, "\n")] = '\0';
		tell(line, userdata);
		n++;
	}
	return rc == SQLITE_DONE || rc == SQLITE_ROW ?
		       0 :
		       sbx_sql_error(store->db, rc, "looking for damage", err);
}

int sbx_store_check(struct sbx_store *store, void (*tell)(const char *problem, void *userdata),
		    void *userdata, struct sbx_err *err)
{
	int r = check(store, "PRAGMA integrity_check(100)", true, tell, userdata, err);

	return r ? r : check(store, "PRAGMA foreign_key_check", false, tell, userdata, err);
}

/* --- export --- */

static json_t *value(sqlite3_stmt *stmt, int i)
{
	const char *text;
	char escaped[4096];
	json_t *v;

	switch (sqlite3_column_type(stmt, i)) {
	case SQLITE_NULL:
		return json_null();
	case SQLITE_INTEGER:
		return json_integer(sqlite3_column_int64(stmt, i));
	case SQLITE_FLOAT:
		return json_real(sqlite3_column_double(stmt, i));
	default:
		text = (const char *)sqlite3_column_text(stmt, i);
		v = text ? json_stringn(text, (size_t)sqlite3_column_bytes(stmt, i)) : NULL;
		if (!v && text) /* another program's, and no UTF-8 */
			v = json_string(sbx_escape(text, strlen(text), escaped, sizeof(escaped)));
		return v;
	}
}

/* One row as a line; malloc'ed or NULL. */
static char *to_line(const char *table, sqlite3_stmt *stmt)
{
	json_t *o = json_pack("{s:s}", "table", table);
	char *text = NULL;
	bool ok = o != NULL;

	for (int i = 1; ok && i < sqlite3_column_count(stmt); i++)
		ok = json_object_set_new(o, sqlite3_column_name(stmt, i), value(stmt, i)) == 0;
	if (ok)
		text = json_dumps(o, JSON_COMPACT);
	json_decref(o);
	return text;
}

struct page {
	char *v[PAGE];
	size_t n;
};

static void page_fini(struct page *p)
{
	for (size_t i = 0; i < p->n; i++)
		free(p->v[i]);
	p->n = 0;
}

/* The rows of @table after @cursor, which moves on. */
static int read_page(struct sbx_store *store, const char *table, const char *sql, int64_t *cursor,
		     struct page *page, struct sbx_err *err)
{
	SBX_AUTO_STMT sqlite3_stmt *stmt = NULL;
	int rc, r = sbx_sql_prepare(store->db, sql, "exporting", err, &stmt);

	if (r)
		return r;
	sqlite3_bind_int64(stmt, 1, *cursor);
	sqlite3_bind_int64(stmt, 2, PAGE);
	while ((rc = sqlite3_step(stmt)) == SQLITE_ROW && page->n < PAGE) {
		char *text = to_line(table, stmt);

		if (!text) {
			sbx_err_set(err, "exporting: out of memory");
			return -ENOMEM;
		}
		page->v[page->n++] = text;
		*cursor = sqlite3_column_int64(stmt, 0);
	}
	return rc == SQLITE_DONE || rc == SQLITE_ROW ?
		       0 :
		       sbx_sql_error(store->db, rc, "exporting", err);
}

static int export_table(struct sbx_store *store, const char *table, const char *sql,
			int (*line)(const char *json, void *userdata), void *userdata,
			struct sbx_err *err)
{
	SBX_CLEANUP(page_fini) struct page page = { .n = 0 };
	int64_t cursor = -1;
	bool more = true;
	int r = 0;

	while (more && r == 0) {
		r = read_page(store, table, sql, &cursor, &page, err);
		more = page.n == PAGE;
		for (size_t i = 0; r == 0 && i < page.n; i++)
			r = line(page.v[i], userdata);
		page_fini(&page);
	}
	return r;
}

#define BY_ROWID(table) "SELECT rowid, * FROM " table " WHERE rowid > ?1 ORDER BY rowid LIMIT ?2"

int sbx_store_export(struct sbx_store *store, int (*line)(const char *json, void *userdata),
		     void *userdata, struct sbx_err *err)
{
	static const struct {
		const char *table, *sql;
	} tables[] = {
		/* without a rowid: numbered by name */
		{ "workspace", "SELECT * FROM (SELECT row_number() OVER (ORDER BY name) AS n, * "
			       "FROM workspace) WHERE n > ?1 ORDER BY n LIMIT ?2" },
		{ "sandbox_rule", BY_ROWID("sandbox_rule") },
		{ "sandbox", BY_ROWID("sandbox") },
		{ "egress_review_task", BY_ROWID("egress_review_task") },
		{ "sandbox_egress_event", BY_ROWID("sandbox_egress_event") },
	};
	int r = 0;

	for (size_t i = 0; i < SBX_N_ELEMENTS(tables) && r == 0; i++)
		r = export_table(store, tables[i].table, tables[i].sql, line, userdata, err);
	return r;
}
