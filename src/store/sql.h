/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_STORE_SQL_H
#define SBX_STORE_SQL_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"

/* Between SQLite and this library: SQLite's errors as ours, statements that clean up. Private to
 * src/store. */

struct sbx_store {
	sqlite3 *db;
	int wal_pages; /* after our last commit */
	bool changing; /* between sbx_store_begin() and sbx_store_end() */
};

/* SQLite's @rc as a negative errno. */
int sbx_sql_errno(int rc);
/* Fill @err with "@what: " and the database's words (of @db, or of @rc alone when @db is NULL);
 * returns sbx_sql_errno(rc). */
int sbx_sql_error(sqlite3 *db, int rc, const char *what, struct sbx_err *err);
/* Run @sql, which returns nothing of interest. 0 or -errno. */
int sbx_sql_exec(sqlite3 *db, const char *sql, const char *what, struct sbx_err *err);
/* The one integer of @sql's first row. 0 or -errno (-ENODATA: no row). */
int sbx_sql_int(sqlite3 *db, const char *sql, const char *what, struct sbx_err *err,
		int64_t *ret_v);
/* Compile @sql. 0 or -errno. */
int sbx_sql_prepare(sqlite3 *db, const char *sql, const char *what, struct sbx_err *err,
		    sqlite3_stmt **ret_stmt);
/* Run a statement that returns no rows. 0 or -errno. */
int sbx_sql_step_done(sqlite3 *db, sqlite3_stmt *stmt, const char *what, struct sbx_err *err);

/* Parameters in the order of the calls, from ?1. A bound value must live until the step. */
struct sbx_sql_binder {
	sqlite3_stmt *stmt; /* borrowed */
	int at;
};
void sbx_sql_bind_text(struct sbx_sql_binder *b, const char *s); /* NULL is NULL */
void sbx_sql_bind_int(struct sbx_sql_binder *b, int64_t v);

/* A column's text; NULL for NULL and for a text with a NUL byte in it. Valid until the next
 * step. */
const char *sbx_sql_text(sqlite3_stmt *stmt, int column);
/* The same of a text that the table says is there: "" if it is not. */
const char *sbx_sql_word(sqlite3_stmt *stmt, int column);
/* A column's integer; @none for NULL. */
int64_t sbx_sql_number(sqlite3_stmt *stmt, int column, int64_t none);

/* A condition: the sandbox in column @id was started by the service for the owner "?". */
#define SBX_SQL_IS_OWNED(id) id " IN (SELECT sandbox_id FROM api_sandbox WHERE owner_uid = ?)"

/* A WHERE clause of constant conditions, each with one "?". All are joined by AND. A value must
 * live until the step. */
#define SBX_SQL_CONDITIONS_MAX 16
struct sbx_sql_where {
	size_t n;
	struct sbx_sql_condition {
		const char *sql;
		const char *text; /* NULL: the number */
		int64_t number;
	} v[SBX_SQL_CONDITIONS_MAX];
};
/* @text NULL: no condition. */
void sbx_sql_where_text(struct sbx_sql_where *w, const char *sql, const char *text);
void sbx_sql_where_int(struct sbx_sql_where *w, const char *sql, int64_t number);
/* Compile "@select [WHERE ...] @rest" and bind the values; @rest may have more "?" after those.
 * @b binds the next of them. 0 or -errno. */
int sbx_sql_where_prepare(sqlite3 *db, const char *select, const struct sbx_sql_where *w,
			  const char *rest, const char *what, struct sbx_err *err,
			  sqlite3_stmt **ret_stmt, struct sbx_sql_binder *ret_b);

/* The form of a time in sandbox_egress_event.ts. @ms: CLOCK_REALTIME; cut to the years 1970 to
 * 9999. Returns @buf. */
#define SBX_SQL_TS_MAX 32
const char *sbx_sql_ts(int64_t ms, char buf[SBX_SQL_TS_MAX]);

/* Is @text clean (sbx_text_unit) and at most @max bytes? NULL is. 0, or -EINVAL with @err, which
 * says that @what is not. */
int sbx_sql_check_text(const char *text, size_t max, const char *what, struct sbx_err *err);

/* Undo an open transaction, if there is one. */
void sbx_sql_rollback(sqlite3 *db);

static inline void sbx_sql_finalizep(sqlite3_stmt **s)
{
	sqlite3_finalize(*s);
}
#define SBX_AUTO_STMT SBX_CLEANUP(sbx_sql_finalizep)

#endif
