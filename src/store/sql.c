/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* SQLite's errors as errno and a sentence, and small statements. */

#include "store/sql.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/text.h"

#define TS_MAX_MS INT64_C(253402300799999) /* the last millisecond of the year 9999 */

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

const char *sbx_sql_text(sqlite3_stmt *stmt, int column)
{
	const char *text = (const char *)sqlite3_column_text(stmt, column);

	return text && strlen(text) == (size_t)sqlite3_column_bytes(stmt, column) ? text : NULL;
}

const char *sbx_sql_word(sqlite3_stmt *stmt, int column)
{
	const char *text = sbx_sql_text(stmt, column);

	return text ? text : "";
}

int64_t sbx_sql_number(sqlite3_stmt *stmt, int column, int64_t none)
{
	return sqlite3_column_type(stmt, column) == SQLITE_NULL ?
		       none :
		       sqlite3_column_int64(stmt, column);
}

/* --- conditions --- */

static void add_condition(struct sbx_sql_where *w, const struct sbx_sql_condition *c)
{
	assert(w->n < SBX_SQL_CONDITIONS_MAX);
	w->v[w->n++] = *c;
}

void sbx_sql_where_text(struct sbx_sql_where *w, const char *sql, const char *text)
{
	if (text)
		add_condition(w, &(struct sbx_sql_condition){ .sql = sql, .text = text });
}

void sbx_sql_where_int(struct sbx_sql_where *w, const char *sql, int64_t number)
{
	add_condition(w, &(struct sbx_sql_condition){ .sql = sql, .number = number });
}

int sbx_sql_where_prepare(sqlite3 *db, const char *select, const struct sbx_sql_where *w,
			  const char *rest, const char *what, struct sbx_err *err,
			  sqlite3_stmt **ret_stmt, struct sbx_sql_binder *ret_b)
{
	char sql[4096];
	size_t n;
	int r;

	sbx_text_fit(sql, sizeof(sql), "%s", select);
	n = strlen(sql);
	for (size_t i = 0; i < w->n; i++, n += strlen(sql + n))
		sbx_text_fit(sql + n, sizeof(sql) - n, " %s %s", i ? "AND" : "WHERE", w->v[i].sql);
	sbx_text_fit(sql + n, sizeof(sql) - n, " %s", rest);
	r = sbx_sql_prepare(db, sql, what, err, ret_stmt);
	if (r)
		return r;
	*ret_b = (struct sbx_sql_binder){ .stmt = *ret_stmt };
	for (size_t i = 0; i < w->n; i++) {
		if (w->v[i].text)
			sbx_sql_bind_text(ret_b, w->v[i].text);
		else
			sbx_sql_bind_int(ret_b, w->v[i].number);
	}
	return 0;
}

const char *sbx_sql_ts(int64_t ms, char buf[SBX_SQL_TS_MAX])
{
	int64_t known = ms < 0 ? 0 : ms < TS_MAX_MS ? ms : TS_MAX_MS;
	time_t s = (time_t)(known / 1000);
	struct tm tm;
	size_t n;

	gmtime_r(&s, &tm);
	n = strftime(buf, SBX_SQL_TS_MAX, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(buf + n, SBX_SQL_TS_MAX - n, ".%03uZ", (unsigned)(known % 1000));
	return buf;
}

int sbx_sql_check_text(const char *text, size_t max, const char *what, struct sbx_err *err)
{
	size_t n = text ? strnlen(text, max + 1) : 0;

	if (n > max) {
		sbx_err_set(err, "%s has more than %zu bytes", what, max);
		return -EINVAL;
	}
	for (size_t i = 0; i < n;) {
		size_t unit = sbx_text_unit(text + i, n - i);

		if (!unit) {
			sbx_err_set(err, "%s has a byte that is not printable UTF-8", what);
			return -EINVAL;
		}
		i += unit;
	}
	return 0;
}

void sbx_sql_rollback(sqlite3 *db)
{
	/* A failed rollback leaves nothing to do: SQLite has rolled back by itself then. */
	if (!sqlite3_get_autocommit(db))
		sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
}
