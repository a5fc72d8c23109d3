/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The audit of changes that came through the service. A row whose change comes after it is
 * completed when the change was made, and taken back when it was not. Other rows are never
 * changed. */
#include "store/sql.h"
#include "store/store_list.h"
#include "store/store_service.h"

#define MADE "made"

static int check(const struct sbx_store_audit *a, struct sbx_err *err)
{
	int r = sbx_sql_check_text(a->principal, SBX_STORE_SERVICE_TEXT_MAX, "the principal", err);

	if (r == 0)
		r = sbx_sql_check_text(a->action, SBX_STORE_SERVICE_TEXT_MAX, "the action", err);
	if (r == 0)
		r = sbx_sql_check_text(a->object, SBX_STORE_SERVICE_TEXT_MAX, "the object", err);
	if (r == 0)
		r = sbx_sql_check_text(a->before_json, SBX_STORE_SERVICE_JSON_MAX,
				       "the state before", err);
	if (r == 0)
		r = sbx_sql_check_text(a->after_json, SBX_STORE_SERVICE_JSON_MAX,
				       "the state after", err);
	return r;
}

int sbx_store_audit_add(struct sbx_store *store, const struct sbx_store_audit *a,
			struct sbx_err *err, int64_t *ret_id)
{
	SBX_AUTO_STMT sqlite3_stmt *stmt = NULL;
	struct sbx_sql_binder b = { 0 };
	int r = check(a, err);

	if (r == 0)
		r = sbx_sql_prepare(store->db,
				    "INSERT INTO api_audit (at_ms, principal, action, object, "
				    "before_json, after_json, outcome) "
				    "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
				    "writing the audit", err, &stmt);
	if (r)
		return r;
	b.stmt = stmt;
	sbx_sql_bind_int(&b, a->at_ms);
	sbx_sql_bind_text(&b, a->principal);
	sbx_sql_bind_text(&b, a->action);
	sbx_sql_bind_text(&b, a->object);
	sbx_sql_bind_text(&b, a->before_json);
	sbx_sql_bind_text(&b, a->after_json);
	sbx_sql_bind_text(&b, a->made ? MADE : NULL);
	r = sbx_sql_step_done(store->db, stmt, "writing the audit", err);
	if (r == 0 && ret_id)
		*ret_id = sqlite3_last_insert_rowid(store->db);
	return r;
}

int sbx_store_audit_made(struct sbx_store *store, int64_t id, const char *after_json,
			 struct sbx_err *err)
{
	SBX_AUTO_STMT sqlite3_stmt *stmt = NULL;
	struct sbx_sql_binder b = { 0 };
	int r = sbx_sql_check_text(after_json, SBX_STORE_SERVICE_JSON_MAX, "the state after", err);

	if (r == 0)
		r = sbx_sql_prepare(store->db,
				    "UPDATE api_audit SET outcome = '" MADE "', "
				    "after_json = coalesce(?1, after_json) WHERE id = ?2",
				    "writing the audit", err, &stmt);
	if (r)
		return r;
	b.stmt = stmt;
	sbx_sql_bind_text(&b, after_json);
	sbx_sql_bind_int(&b, id);
	return sbx_sql_step_done(store->db, stmt, "writing the audit", err);
}

int sbx_store_audit_remove(struct sbx_store *store, int64_t id, struct sbx_err *err)
{
	SBX_AUTO_STMT sqlite3_stmt *stmt = NULL;
	struct sbx_sql_binder b = { 0 };
	int r = sbx_sql_prepare(store->db, "DELETE FROM api_audit WHERE id = ?1",
				"writing the audit", err, &stmt);

	if (r)
		return r;
	b.stmt = stmt;
	sbx_sql_bind_int(&b, id);
	return sbx_sql_step_done(store->db, stmt, "writing the audit", err);
}

int sbx_store_audit_page(struct sbx_store *store, const struct sbx_store_audit_filter *filter,
			 sbx_store_audit_fn fn, void *userdata, struct sbx_err *err)
{
	SBX_AUTO_STMT sqlite3_stmt *stmt = NULL;
	struct sbx_sql_where where = { 0 };
	struct sbx_sql_binder b;
	int rc, r;

	if (filter->before > 0)
		sbx_sql_where_int(&where, "id < ?", filter->before);
	sbx_sql_where_text(&where, "principal = ?", filter->principal);
	sbx_sql_where_text(&where, "object = ?", filter->object);
	r = sbx_sql_where_prepare(store->db,
				  "SELECT id, at_ms, principal, action, object, before_json, "
				  "after_json, outcome IS NOT NULL FROM api_audit",
				  &where, "ORDER BY id DESC LIMIT ?", "reading the audit", err,
				  &stmt, &b);
	if (r)
		return r;
	sbx_sql_bind_int(&b, filter->n_max ? filter->n_max : SBX_STORE_PAGE);
	while ((rc = sqlite3_step(stmt)) == SQLITE_ROW) {
		const struct sbx_store_audit a = {
			.id = sqlite3_column_int64(stmt, 0),
			.at_ms = sqlite3_column_int64(stmt, 1),
			.principal = sbx_sql_word(stmt, 2),
			.action = sbx_sql_word(stmt, 3),
			.object = sbx_sql_text(stmt, 4),
			.before_json = sbx_sql_text(stmt, 5),
			.after_json = sbx_sql_text(stmt, 6),
			.made = sqlite3_column_int(stmt, 7) != 0,
		};

		r = fn(&a, userdata);
		if (r)
			return r;
	}
	return rc == SQLITE_DONE ? 0 : sbx_sql_error(store->db, rc, "reading the audit", err);
}
