/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A database is looked at, for `sbxctl doctor`. The file is opened for reading alone.
 * Where it is in WAL mode SQLite may make the -wal and -shm beside it, as every reader does.
 */
#include "store/store_look.h"

#include <errno.h>
#include <sqlite3.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "store/migrate.h"
#include "store/sql.h"
#include "store/store_error.h"

static void close_db(sqlite3 **db)
{
	sqlite3_close(*db);
}

/* PRAGMA quick_check answers "ok", or with what is wrong. */
static int check(sqlite3 *db, struct sbx_err *err)
{
	SBX_AUTO_STMT sqlite3_stmt *stmt = NULL;
	const char *text;
	int r = sbx_sql_prepare(db, "PRAGMA quick_check(1)", "checking it", err, &stmt);

	if (r < 0)
		return r;
	r = sqlite3_step(stmt);
	if (r != SQLITE_ROW)
		return sbx_sql_error(db, r, "checking it", err);
	text = (const char *)sqlite3_column_text(stmt, 0);
	if (text && strcmp(text, "ok") == 0)
		return 0;
	sbx_err_set(err, "database: damaged: %s", text ? text : "no answer");
	return -EUCLEAN;
}

int sbx_store_look(const char *state_dir, struct sbx_store_look *ret_look, struct sbx_err *err)
{
	SBX_CLEANUP(close_db) sqlite3 *db = NULL;
	char path[4096];
	struct stat st;
	int r;

	*ret_look = (struct sbx_store_look){ 0 };
	if (sbx_text_format(path, sizeof(path), "%s/sbx.db", state_dir) < 0)
		return -ENAMETOOLONG;
	if (stat(path, &st) < 0) {
		if (errno == ENOENT)
			return 0;
		r = -errno;
		sbx_err_set(err, "database %s: %s", path, strerror(-r));
		return r;
	}
	ret_look->exists = true;
	ret_look->mode = st.st_mode & 07777;
	r = sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, NULL);
	if (r != SQLITE_OK)
		return sbx_sql_error(db, r, "opening it", err);
	sqlite3_extended_result_codes(db, 1);
	sqlite3_busy_timeout(db, SBX_STORE_BUSY_MS);
	r = sbx_migrate_version(db, err, &ret_look->version);
	return r < 0 ? r : check(db, err);
}
