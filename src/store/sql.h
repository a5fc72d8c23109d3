/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_STORE_SQL_H
#define SBX_STORE_SQL_H

#include <sqlite3.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"

/* Between SQLite and this library: SQLite's errors as ours, statements that clean up. Private to
 * src/store. */

struct sbx_store {
	sqlite3 *db;
	int wal_pages;     /* after our last commit */
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

/* Undo an open transaction, if there is one. */
void sbx_sql_rollback(sqlite3 *db);

static inline void sbx_sql_finalizep(sqlite3_stmt **s)
{
	sqlite3_finalize(*s);
}
#define SBX_AUTO_STMT SBX_CLEANUP(sbx_sql_finalizep)

#endif
