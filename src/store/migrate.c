/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Migrations: files in a directory of the installation (trusted), applied in the order of their
 * numbers. The version is read before and again inside the write transaction: if two programs start
 * at once, one applies the file and the other finds it done. A crash in the middle undoes the
 * transaction.
 *
 * The program, not the directory, says up to which number files are applied: it must not apply a
 * file that it does not know. And nearly every run finds nothing to do, without a look at the
 * directory.
 */

#include "store/migrate.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "store/sql.h"
#include "store/store_error.h"

#define MIGRATION_MAX (1 << 20) /* bytes of one file */
#define NAME_MAX_LEN  255

/* The number of "NNNN-name.sql", 0 for any other name. */
static int file_number(const char *name)
{
	int number = 0;
	size_t n = strlen(name);

	if (n < strlen("0001-x.sql") || strcmp(name + n - 4, ".sql") != 0 || name[4] != '-')
		return 0;
	for (int i = 0; i < 4; i++) {
		if (name[i] < '0' || name[i] > '9')
			return 0;
		number = number * 10 + (name[i] - '0');
	}
	return number;
}

/* The name of file number @want in @path, which must be complete as far as it goes. */
static int find(const char *path, int want, struct sbx_err *err, char ret_name[NAME_MAX_LEN + 1])
{
	SBX_AUTO_CLOSEDIR DIR *dir = opendir(path);
	int n_files = 0, newest = 0;

	ret_name[0] = '\0';
	if (!dir) {
		int r = -errno;

		sbx_err_set(err, "migrations %s: %s (is sbx installed completely?)", path,
			    strerror(-r));
		return r;
	}
	for (;;) {
		struct dirent *e = readdir(dir);
		int number = e ? file_number(e->d_name) : 0;

		if (!e)
			break;
		if (number == 0)
			continue;
		n_files++;
		if (number > newest)
			newest = number;
		if (number == want) {
			if (ret_name[0]) {
				sbx_err_set(err, "migrations %s: two files have number %04d", path,
					    number);
				return -EINVAL;
			}
			sbx_text_fit(ret_name, NAME_MAX_LEN + 1, "%s", e->d_name);
		}
	}
	if (n_files == 0) {
		sbx_err_set(err,
			    "migrations %s: no NNNN-name.sql there (is sbx installed completely?)",
			    path);
		return -ENOENT;
	}
	if (n_files != newest) {
		sbx_err_set(err, "migrations %s: %d files, but the newest is number %04d", path,
			    n_files, newest);
		return -EINVAL;
	}
	if (!ret_name[0]) {
		sbx_err_set(err, "migrations %s: number %04d is missing", path, want);
		return -ENOENT;
	}
	return 0;
}

/* The text of a file, ended with NUL; the caller frees it. */
static int read_text(const char *dir, const char *name, struct sbx_err *err, char **ret_text)
{
	SBX_AUTO_FREE char *path = NULL, *text = NULL;
	SBX_AUTO_CLOSE int fd = -1;
	size_t n = 0;

	if (asprintf(&path, "%s/%s", dir, name) < 0) {
		path = NULL;
		sbx_err_set(err, "migration %s: out of memory", name);
		return -ENOMEM;
	}
	fd = open(path, O_RDONLY | O_CLOEXEC);
	text = malloc(MIGRATION_MAX + 1);
	if (fd < 0 || !text) {
		int r = fd < 0 ? -errno : -ENOMEM;

		sbx_err_set(err, "migration %s: %s", path, strerror(-r));
		return r;
	}
	for (;;) {
		ssize_t got = read(fd, text + n, MIGRATION_MAX + 1 - n);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0) {
			int r = -errno;

			sbx_err_set(err, "migration %s: %s", path, strerror(-r));
			return r;
		}
		n += (size_t)got;
		if (got == 0 || n > MIGRATION_MAX)
			break;
	}
	if (n == 0 || n > MIGRATION_MAX || memchr(text, 0, n)) {
		sbx_err_set(err, "migration %s: empty, over 1 MiB or not text", path);
		return -EINVAL;
	}
	text[n] = '\0';
	*ret_text = sbx_steal_ptr(&text);
	return 0;
}

int sbx_migrate_version(sqlite3 *db, struct sbx_err *err, int64_t *ret_version)
{
	return sbx_sql_int(db, "PRAGMA user_version", "reading its version", err, ret_version);
}

/* Sets the page size of an empty database. Does nothing to any other. */
static int set_page_size(sqlite3 *db, struct sbx_err *err)
{
	char pragma[64];

	snprintf(pragma, sizeof(pragma), "PRAGMA page_size=%d", SBX_MIGRATE_PAGE_SIZE);
	return sbx_sql_exec(db, pragma, "choosing its page size", err);
}

/*
 * WAL is a property of the file, so this is done once in its life. Changing it needs exclusive
 * access to the file, for which SQLite does not wait in every case: two programs that start at once
 * have to retry.
 */
static int set_wal(sqlite3 *db, struct sbx_err *err)
{
	const struct timespec pause = { .tv_nsec = 5 * 1000 * 1000 };

	for (int left = SBX_STORE_BUSY_MS / 5;; left--) {
		SBX_AUTO_STMT sqlite3_stmt *stmt = NULL;
		int rc = sqlite3_prepare_v2(db, "PRAGMA journal_mode=WAL", -1, &stmt, NULL);

		if (rc == SQLITE_OK)
			rc = sqlite3_step(stmt);
		if (rc == SQLITE_ROW) {
			const char *mode = (const char *)sqlite3_column_text(stmt, 0);

			if (mode && strcmp(mode, "wal") == 0)
				return 0;
			sbx_err_set(err,
				    "database %s: its file system cannot hold a WAL database: "
				    "choose another SBX_STATE_DIR",
				    sqlite3_db_filename(db, "main"));
			return -EOPNOTSUPP;
		}
		if ((rc & 0xff) != SQLITE_BUSY || left == 0)
			return sbx_sql_error(db, rc, "turning on WAL", err);
		nanosleep(&pause, NULL);
	}
}

/* Inside a write transaction: run the file and set the version, unless another program did
 * meanwhile. */
static int apply_in_transaction(sqlite3 *db, int number, const char *name, const char *text,
				struct sbx_err *err)
{
	char what[NAME_MAX_LEN + 32], pragma[64];
	int64_t version;
	int r;

	r = sbx_migrate_version(db, err, &version);
	if (r || version >= number)
		return r;
	sbx_text_cut(what, sizeof(what), "migration %s", name);
	r = sbx_sql_exec(db, text, what, err);
	if (r)
		return r;
	if (sqlite3_get_autocommit(db)) {
		sbx_err_set(err, "migration %s ends the transaction it is run in", name);
		return -EINVAL;
	}
	snprintf(pragma, sizeof(pragma), "PRAGMA user_version=%d", number);
	return sbx_sql_exec(db, pragma, what, err);
}

static int apply(sqlite3 *db, const char *dir, int number, struct sbx_err *err)
{
	SBX_AUTO_FREE char *text = NULL;
	char name[NAME_MAX_LEN + 1];
	int r;

	r = find(dir, number, err, name);
	if (r)
		return r;
	r = read_text(dir, name, err, &text);
	if (r)
		return r;
	r = sbx_sql_exec(db, "BEGIN IMMEDIATE", "waiting to migrate", err);
	if (r)
		return r;
	r = apply_in_transaction(db, number, name, text, err);
	if (!r)
		r = sbx_sql_exec(db, "COMMIT", "committing a migration", err);
	if (r)
		sbx_sql_rollback(db);
	return r;
}

int sbx_migrate(sqlite3 *db, const char *dir, int newest, struct sbx_err *err)
{
	int64_t version;
	int r;

	r = sbx_migrate_version(db, err, &version);
	if (r)
		return r;
	if (version == newest)
		return 0;
	if (version > newest || version < 0) {
		sbx_err_set(err,
			    "database %s has version %" PRId64
			    ", this sbx knows %d: it was made by a newer "
			    "sbx; install that, or choose another SBX_STATE_DIR",
			    sqlite3_db_filename(db, "main"), version, newest);
		return SBX_STORE_E_NEWER;
	}
	r = set_page_size(db, err);
	if (!r)
		r = set_wal(db, err);
	for (int number = (int)version + 1; !r && number <= newest; number++)
		r = apply(db, dir, number, err);
	return r;
}
