/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* SQLite's errors as errno and a sentence, and small statements. */

#include "store/sql.h"

#include <errno.h>

int sbx_sql_errno(int rc)
{
	switch (rc & 0xff) { /* the primary code: https://www.sqlite.org/rescode.html */
	case SQLITE_OK:
	case SQLITE_ROW:
	case SQLITE_DONE:
		return 0;
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return -EBUSY;
	case SQLITE_FULL:
		return -ENOSPC;
	case SQLITE_READONLY:
		return -EROFS;
	case SQLITE_PERM:
	case SQLITE_AUTH:
		return -EACCES;
	case SQLITE_CANTOPEN:
		return -ENOENT;
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
		return -EUCLEAN;
	case SQLITE_NOMEM:
		return -ENOMEM;
	case SQLITE_TOOBIG:
		return -EFBIG;
	case SQLITE_ERROR:
	case SQLITE_CONSTRAINT:
	case SQLITE_MISMATCH:
	case SQLITE_RANGE:
	case SQLITE_MISUSE:
	case SQLITE_SCHEMA:
		return -EINVAL;
	default: /* SQLITE_IOERR and the rest */
		return -EIO;
	}
}

int sbx_sql_error(sqlite3 *db, int rc, const char *what, struct sbx_err *err)
{
	const char *file = db ? sqlite3_db_filename(db, "main") : NULL;

	sbx_err_set(err, "database %s: %s: %s", file ? file : "", what,
		    db ? sqlite3_errmsg(db) : sqlite3_errstr(rc));
	return sbx_sql_errno(rc);
}

int sbx_sql_exec(sqlite3 *db, const char *sql, const char *what, struct sbx_err *err)
{
	int rc = sqlite3_exec(db, sql, NULL, NULL, NULL);

	return rc == SQLITE_OK ? 0 : sbx_sql_error(db, rc, what, err);
}

int sbx_sql_int(sqlite3 *db, const char *sql, const char *what, struct sbx_err *err, int64_t *ret_v)
{
	SBX_AUTO_STMT sqlite3_stmt *stmt = NULL;
	int rc = sqlite3_prepare_v2(db, sql, -1, &stmt, NULL);

	if (rc == SQLITE_OK)
		rc = sqlite3_step(stmt);
	if (rc == SQLITE_DONE) {
		sbx_err_set(err, "database %s: %s: no answer", sqlite3_db_filename(db, "main"),
			    what);
		return -ENODATA;
	}
	if (rc != SQLITE_ROW)
		return sbx_sql_error(db, rc, what, err);
	*ret_v = sqlite3_column_int64(stmt, 0);
	return 0;
}

int sbx_sql_prepare(sqlite3 *db, const char *sql, const char *what, struct sbx_err *err,
		    sqlite3_stmt **ret_stmt)
{
	int rc = sqlite3_prepare_v2(db, sql, -1, ret_stmt, NULL);

	return rc == SQLITE_OK ? 0 : sbx_sql_error(db, rc, what, err);
}

int sbx_sql_step_done(sqlite3 *db, sqlite3_stmt *stmt, const char *what, struct sbx_err *err)
{
	int rc = sqlite3_step(stmt);

	return rc == SQLITE_DONE ? 0 : sbx_sql_error(db, rc, what, err);
}

/* Neither bind allocates (the text is borrowed), so with the right number of parameters neither
 * fails. */
void sbx_sql_bind_text(struct sbx_sql_binder *b, const char *s)
{
	if (s)
		sqlite3_bind_text(b->stmt, ++b->at, s, -1, SQLITE_STATIC);
	else
		sqlite3_bind_null(b->stmt, ++b->at);
}

void sbx_sql_bind_int(struct sbx_sql_binder *b, int64_t v)
{
	sqlite3_bind_int64(b->stmt, ++b->at, v);
}

void sbx_sql_rollback(sqlite3 *db)
{
	/* A failed rollback leaves nothing to do: SQLite has rolled back by itself then. */
	if (!sqlite3_get_autocommit(db))
		sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
}
