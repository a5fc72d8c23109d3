/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tasks for people who review: one row for each sandbox and cause. */
#include "store/store_list.h"

#include "store/sql.h"

int sbx_store_tasks_each(struct sbx_store *store, const struct sbx_store_task_filter *filter,
			 int (*fn)(const struct sbx_store_task_row *t, void *userdata),
			 void *userdata, struct sbx_err *err)
{
	SBX_AUTO_STMT sqlite3_stmt *stmt = NULL;
	struct sbx_sql_where where = { 0 };
	struct sbx_sql_binder b;
	int rc, r;

	sbx_sql_where_text(&where, "state = ?", filter->state);
	sbx_sql_where_text(&where, "sandbox_id = ?", filter->sandbox_id);
	sbx_sql_where_text(&where, "workspace = ?", filter->workspace);
	if (filter->by_owner)
		sbx_sql_where_int(&where, SBX_SQL_IS_OWNED("sandbox_id"), filter->owner_uid);
	if (filter->id > 0)
		sbx_sql_where_int(&where, "id = ?", filter->id);
	if (filter->before > 0)
		sbx_sql_where_int(&where, "id < ?", filter->before);
	r = sbx_sql_where_prepare(store->db,
				  "SELECT id, sandbox_id, cause, state, workspace, note, n_denies, "
				  "first_ms, last_ms FROM egress_review_task",
				  &where, "ORDER BY id DESC LIMIT ?", "reading tasks", err, &stmt,
				  &b);
	if (r)
		return r;
	sbx_sql_bind_int(&b, filter->n_max ? filter->n_max : SBX_STORE_PAGE);
	while ((rc = sqlite3_step(stmt)) == SQLITE_ROW) {
		const struct sbx_store_task_row t = {
			.id = sqlite3_column_int64(stmt, 0),
			.sandbox_id = sbx_sql_text(stmt, 1),
			.cause = sbx_sql_text(stmt, 2),
			.state = sbx_sql_text(stmt, 3),
			.workspace = sbx_sql_text(stmt, 4),
			.note = sbx_sql_text(stmt, 5),
			.n_denies = sqlite3_column_int64(stmt, 6),
			.first_ms = sqlite3_column_int64(stmt, 7),
			.last_ms = sqlite3_column_int64(stmt, 8),
		};

		r = fn(&t, userdata);
		if (r)
			return r;
	}
	return rc == SQLITE_DONE ? 0 : sbx_sql_error(store->db, rc, "reading tasks", err);
}

/* *ret_id is 0 if there is none. */
static int find_task(struct sbx_store *store, const struct sbx_store_task_note *note,
		     struct sbx_err *err, int64_t *ret_id)
{
	static const char sql[] =
		"SELECT id FROM egress_review_task WHERE sandbox_id = ?1 AND cause = ?2";
	SBX_AUTO_STMT sqlite3_stmt *stmt = NULL;
	struct sbx_sql_binder b = { 0 };
	int rc, r = sbx_sql_prepare(store->db, sql, "reading tasks", err, &stmt);

	if (r)
		return r;
	b.stmt = stmt;
	sbx_sql_bind_text(&b, note->sandbox_id);
	sbx_sql_bind_text(&b, note->cause);
	rc = sqlite3_step(stmt);
	*ret_id = rc == SQLITE_ROW ? sqlite3_column_int64(stmt, 0) : 0;
	return rc == SQLITE_ROW || rc == SQLITE_DONE ?
		       0 :
		       sbx_sql_error(store->db, rc, "reading tasks", err);
}

static int write_task(struct sbx_store *store, const struct sbx_store_task_note *note,
		      struct sbx_err *err)
{
	static const char sql[] =
		"INSERT INTO egress_review_task (sandbox_id, workspace, cause, n_denies, first_ms, "
		"last_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?5) ON CONFLICT (sandbox_id, cause) "
		"DO UPDATE SET n_denies = max(n_denies, excluded.n_denies), "
		"last_ms = max(last_ms, excluded.last_ms)";
	SBX_AUTO_STMT sqlite3_stmt *stmt = NULL;
	struct sbx_sql_binder b = { 0 };
	int rc, r = sbx_sql_prepare(store->db, sql, "writing a task", err, &stmt);

	if (r)
		return r;
	b.stmt = stmt;
	sbx_sql_bind_text(&b, note->sandbox_id);
	sbx_sql_bind_text(&b, note->workspace);
	sbx_sql_bind_text(&b, note->cause);
	sbx_sql_bind_int(&b, note->n_denies);
	sbx_sql_bind_int(&b, note->now_ms);
	rc = sqlite3_step(stmt);
	if (rc == SQLITE_CONSTRAINT_FOREIGNKEY) {
		sbx_err_set(err, "no sandbox %s", note->sandbox_id);
		return SBX_STORE_E_UNKNOWN;
	}
	return rc == SQLITE_DONE ? 0 : sbx_sql_error(store->db, rc, "writing a task", err);
}

int sbx_store_task_note(struct sbx_store *store, const struct sbx_store_task_note *note,
			struct sbx_err *err, int64_t *ret_id, bool *ret_opened)
{
	int64_t before = 0, after = 0;
	int r = sbx_sql_check_text(note->cause, 255, "the cause", err);

	if (r == 0)
		r = sbx_sql_exec(store->db, "BEGIN IMMEDIATE", "waiting to write a task", err);
	if (r)
		return r;
	r = find_task(store, note, err, &before);
	if (r == 0)
		r = write_task(store, note, err);
	if (r == 0)
		r = find_task(store, note, err, &after);
	if (r == 0)
		r = sbx_sql_exec(store->db, "COMMIT", "committing a task", err);
	if (r) {
		sbx_sql_rollback(store->db);
		return r;
	}
	*ret_id = after;
	*ret_opened = before == 0;
	return 0;
}

int sbx_store_task_set(struct sbx_store *store, int64_t id, bool open, const char *note,
		       struct sbx_err *err)
{
	SBX_AUTO_STMT sqlite3_stmt *stmt = NULL;
	struct sbx_sql_binder b = { 0 };
	int r = sbx_sql_check_text(note, 1024, "the note", err);

	if (r == 0)
		r = sbx_sql_prepare(store->db,
				    "UPDATE egress_review_task SET state = ?1, "
				    "note = coalesce(?2, note) WHERE id = ?3",
				    "changing a task", err, &stmt);
	if (r)
		return r;
	b.stmt = stmt;
	sbx_sql_bind_text(&b, open ? "open" : "closed");
	sbx_sql_bind_text(&b, note);
	sbx_sql_bind_int(&b, id);
	r = sbx_sql_step_done(store->db, stmt, "changing a task", err);
	if (r || sqlite3_changes(store->db) == 1)
		return r;
	sbx_err_set(err, "there is no task %lld (sbxctl review list)", (long long)id);
	return SBX_STORE_E_UNKNOWN;
}
