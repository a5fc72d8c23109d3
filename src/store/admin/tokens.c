/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Bearer tokens of the service, by the hash of their text. */
#include <errno.h>
#include <string.h>

#include "store/sql.h"
#include "store/store_service.h"

#define READING "reading tokens"
#define SELECT                                                                                     \
	"SELECT name, hash, role, workspace, created_by, created_ms, expires_ms, last_used_ms "    \
	"FROM api_token"

/* Call @fn for each row of @stmt. 0, @fn's or -errno. */
static int each(struct sbx_store *store, sqlite3_stmt *stmt, sbx_store_token_fn fn, void *userdata,
		struct sbx_err *err, int *n)
{
	int rc;

	while ((rc = sqlite3_step(stmt)) == SQLITE_ROW) {
		const struct sbx_store_token t = {
			.name = sbx_sql_word(stmt, 0),
			.hash = sbx_sql_word(stmt, 1),
			.role = sbx_sql_word(stmt, 2),
			.workspace = sbx_sql_text(stmt, 3),
			.created_by = sbx_sql_word(stmt, 4),
			.created_ms = sqlite3_column_int64(stmt, 5),
			.expires_ms = sqlite3_column_int64(stmt, 6),
			.last_used_ms = sqlite3_column_int64(stmt, 7),
		};
		int r = fn(&t, userdata);

		if (r)
			return r;
		++*n;
	}
	return rc == SQLITE_DONE ? 0 : sbx_sql_error(store->db, rc, READING, err);
}

static int check(const struct sbx_store_token *t, struct sbx_err *err)
{
	int r = sbx_sql_check_text(t->name, SBX_STORE_SERVICE_TEXT_MAX, "the name", err);

	if (r == 0)
		r = sbx_sql_check_text(t->workspace, SBX_STORE_SERVICE_TEXT_MAX, "the workspace",
				       err);
	if (r == 0)
		r = sbx_sql_check_text(t->created_by, SBX_STORE_SERVICE_TEXT_MAX, "created_by",
				       err);
	return r;
}

int sbx_store_token_add(struct sbx_store *store, const struct sbx_store_token *t,
			struct sbx_err *err)
{
	SBX_AUTO_STMT sqlite3_stmt *stmt = NULL;
	struct sbx_sql_binder b = { 0 };
	int rc, r = check(t, err);

	if (r == 0)
		r = sbx_sql_prepare(store->db,
				    "INSERT INTO api_token (name, hash, role, workspace, "
				    "created_by, created_ms, expires_ms) "
				    "SELECT ?1, ?2, ?3, ?4, ?5, ?6, nullif(?7, 0) "
				    "WHERE (SELECT count(*) FROM api_token) < ?8",
				    "adding a token", err, &stmt);
	if (r)
		return r;
	b.stmt = stmt;
	sbx_sql_bind_text(&b, t->name);
	sbx_sql_bind_text(&b, t->hash);
	sbx_sql_bind_text(&b, t->role);
	sbx_sql_bind_text(&b, t->workspace);
	sbx_sql_bind_text(&b, t->created_by);
	sbx_sql_bind_int(&b, t->created_ms);
	sbx_sql_bind_int(&b, t->expires_ms);
	sbx_sql_bind_int(&b, SBX_STORE_TOKENS_MAX);
	rc = sqlite3_step(stmt);
	if (rc == SQLITE_CONSTRAINT_PRIMARYKEY || rc == SQLITE_CONSTRAINT_UNIQUE) {
		sbx_err_set(err, "a token %s exists already", t->name);
		return SBX_STORE_E_EXISTS;
	}
	if (rc != SQLITE_DONE)
		return sbx_sql_error(store->db, rc, "adding a token", err);
	if (sqlite3_changes(store->db) == 1)
		return 0;
	sbx_err_set(err, "there are %d tokens already: remove one first", SBX_STORE_TOKENS_MAX);
	return -ENOSPC;
}

int sbx_store_tokens_each(struct sbx_store *store, sbx_store_token_fn fn, void *userdata,
			  struct sbx_err *err)
{
	SBX_AUTO_STMT sqlite3_stmt *stmt = NULL;
	int n = 0, r = sbx_sql_prepare(store->db, SELECT " ORDER BY name", READING, err, &stmt);

	return r ? r : each(store, stmt, fn, userdata, err, &n);
}

int sbx_store_token_find(struct sbx_store *store, const char *hash, sbx_store_token_fn fn,
			 void *userdata, struct sbx_err *err)
{
	SBX_AUTO_STMT sqlite3_stmt *stmt = NULL;
	int n = 0, r = sbx_sql_prepare(store->db, SELECT " WHERE hash = ?1", READING, err, &stmt);

	if (r)
		return r;
	sqlite3_bind_text(stmt, 1, hash, -1, SQLITE_STATIC);
	r = each(store, stmt, fn, userdata, err, &n);
	if (r || n)
		return r;
	sbx_err_set(err, "no such token");
	return SBX_STORE_E_UNKNOWN;
}

int sbx_store_token_remove(struct sbx_store *store, const char *name, struct sbx_err *err)
{
	SBX_AUTO_STMT sqlite3_stmt *stmt = NULL;
	int r = sbx_sql_prepare(store->db, "DELETE FROM api_token WHERE name = ?1",
				"removing a token", err, &stmt);

	if (r)
		return r;
	sqlite3_bind_text(stmt, 1, name, -1, SQLITE_STATIC);
	r = sbx_sql_step_done(store->db, stmt, "removing a token", err);
	if (r || sqlite3_changes(store->db) == 1)
		return r;
	sbx_err_set(err, "there is no token %s", name);
	return SBX_STORE_E_UNKNOWN;
}

/* Milliseconds between the use that is noted and @now_ms; 0: there is no such token. */
static int unnoted_for(struct sbx_store *store, const char *name, int64_t now_ms,
		       struct sbx_err *err, int64_t *ret_ms)
{
	SBX_AUTO_STMT sqlite3_stmt *stmt = NULL;
	int rc, r = sbx_sql_prepare(store->db,
				    "SELECT abs(coalesce(last_used_ms, 0) - ?2) FROM api_token "
				    "WHERE name = ?1",
				    READING, err, &stmt);

	if (r)
		return r;
	sqlite3_bind_text(stmt, 1, name, -1, SQLITE_STATIC);
	sqlite3_bind_int64(stmt, 2, now_ms);
	rc = sqlite3_step(stmt);
	if (rc != SQLITE_ROW && rc != SQLITE_DONE)
		return sbx_sql_error(store->db, rc, READING, err);
	*ret_ms = rc == SQLITE_ROW ? sqlite3_column_int64(stmt, 0) : 0;
	return 0;
}

int sbx_store_token_used(struct sbx_store *store, const char *name, int64_t now_ms,
			 struct sbx_err *err)
{
	SBX_AUTO_STMT sqlite3_stmt *stmt = NULL;
	int64_t unnoted_ms = 0;
	/* Read first: an UPDATE takes the write lock even if it finds no row. */
	int r = unnoted_for(store, name, now_ms, err, &unnoted_ms);

	if (r || unnoted_ms < SBX_STORE_TOKEN_USE_MS)
		return r;
	r = sbx_sql_prepare(store->db, "UPDATE api_token SET last_used_ms = ?2 WHERE name = ?1",
			    "noting the use of a token", err, &stmt);
	if (r)
		return r;
	sqlite3_bind_text(stmt, 1, name, -1, SQLITE_STATIC);
	sqlite3_bind_int64(stmt, 2, now_ms);
	return sbx_sql_step_done(store->db, stmt, "noting the use of a token", err);
}
