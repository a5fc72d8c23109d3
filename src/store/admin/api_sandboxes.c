/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The service's own rows of the sandboxes that it started. */
#include <errno.h>

#include "base/sandbox_id.h"
#include "store/sql.h"
#include "store/store_service.h"

#define READING "reading a sandbox of the service"
#define WRITING "recording a sandbox of the service"

static int unknown(const char *id, struct sbx_err *err)
{
	sbx_err_set(err, "the service did not start a sandbox %s", id);
	return SBX_STORE_E_UNKNOWN;
}

static int check(const struct sbx_store_api_sandbox *s, struct sbx_err *err)
{
	int r = sbx_sql_check_text(s->owner, SBX_STORE_SERVICE_TEXT_MAX, "the owner", err);

	if (!sbx_id_is_valid(s->sandbox_id)) {
		sbx_err_set(err, "an id has %d of the digits 0-9 and a-f", SBX_ID_LEN);
		return -EINVAL;
	}
	return r ? r :
		   sbx_sql_check_text(s->metadata_json, SBX_STORE_SERVICE_JSON_MAX, "the metadata",
				      err);
}

int sbx_store_api_sandbox_add(struct sbx_store *store, const struct sbx_store_api_sandbox *s,
			      struct sbx_err *err)
{
	SBX_AUTO_STMT sqlite3_stmt *stmt = NULL;
	struct sbx_sql_binder b = { 0 };
	int rc, r = check(s, err);

	if (r == 0)
		r = sbx_sql_prepare(store->db,
				    "INSERT INTO api_sandbox (sandbox_id, owner_uid, owner, "
				    "metadata, timeout_ms, made_ms) "
				    "VALUES (?1, ?2, ?3, coalesce(?4, '{}'), nullif(?5, 0), ?6)",
				    WRITING, err, &stmt);
	if (r)
		return r;
	b.stmt = stmt;
	sbx_sql_bind_text(&b, s->sandbox_id);
	sbx_sql_bind_int(&b, s->owner_uid);
	sbx_sql_bind_text(&b, s->owner);
	sbx_sql_bind_text(&b, s->metadata_json);
	sbx_sql_bind_int(&b, s->timeout_ms);
	sbx_sql_bind_int(&b, s->made_ms);
	rc = sqlite3_step(stmt);
	if (rc == SQLITE_CONSTRAINT_PRIMARYKEY) {
		sbx_err_set(err, "a sandbox with id %s exists already", s->sandbox_id);
		return SBX_STORE_E_EXISTS;
	}
	return rc == SQLITE_DONE ? 0 : sbx_sql_error(store->db, rc, WRITING, err);
}

int sbx_store_api_sandbox_get(struct sbx_store *store, const char *sandbox_id,
			      sbx_store_api_sandbox_fn fn, void *userdata, struct sbx_err *err)
{
	SBX_AUTO_STMT sqlite3_stmt *stmt = NULL;
	struct sbx_store_api_sandbox s;
	int rc, r = sbx_sql_prepare(store->db,
				    "SELECT sandbox_id, owner_uid, owner, metadata, timeout_ms, "
				    "made_ms FROM api_sandbox WHERE sandbox_id = ?1",
				    READING, err, &stmt);

	if (r)
		return r;
	sqlite3_bind_text(stmt, 1, sandbox_id, -1, SQLITE_STATIC);
	rc = sqlite3_step(stmt);
	if (rc != SQLITE_ROW)
		return rc == SQLITE_DONE ? unknown(sandbox_id, err) :
					   sbx_sql_error(store->db, rc, READING, err);
	s = (struct sbx_store_api_sandbox){
		.sandbox_id = sbx_sql_word(stmt, 0),
		.owner_uid = (uid_t)sqlite3_column_int64(stmt, 1),
		.owner = sbx_sql_word(stmt, 2),
		.metadata_json = sbx_sql_word(stmt, 3),
		.timeout_ms = sqlite3_column_int64(stmt, 4),
		.made_ms = sqlite3_column_int64(stmt, 5),
	};
	return fn(&s, userdata);
}

/* Run @sql, whose parameters are the id and a number, on the one row of @id. */
static int change(struct sbx_store *store, const char *sql, const char *id, int64_t number,
		  struct sbx_err *err)
{
	SBX_AUTO_STMT sqlite3_stmt *stmt = NULL;
	int r = sbx_sql_prepare(store->db, sql, WRITING, err, &stmt);

	if (r)
		return r;
	sqlite3_bind_text(stmt, 1, id, -1, SQLITE_STATIC);
	if (sqlite3_bind_parameter_count(stmt) == 2)
		sqlite3_bind_int64(stmt, 2, number);
	r = sbx_sql_step_done(store->db, stmt, WRITING, err);
	return r || sqlite3_changes(store->db) == 1 ? r : unknown(id, err);
}

int sbx_store_api_sandbox_set_timeout(struct sbx_store *store, const char *sandbox_id,
				      int64_t timeout_ms, struct sbx_err *err)
{
	return change(store,
		      "UPDATE api_sandbox SET timeout_ms = nullif(?2, 0) WHERE sandbox_id = ?1",
		      sandbox_id, timeout_ms, err);
}

int sbx_store_api_sandbox_remove(struct sbx_store *store, const char *sandbox_id,
				 struct sbx_err *err)
{
	return change(store, "DELETE FROM api_sandbox WHERE sandbox_id = ?1", sandbox_id, 0, err);
}
