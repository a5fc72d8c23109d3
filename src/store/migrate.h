/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_STORE_MIGRATE_H
#define SBX_STORE_MIGRATE_H

#include <sqlite3.h>
#include <stdint.h>

#include "base/err.h"

/*
 * Bring @db (borrowed; busy timeout set) to version @newest (at least 1) by the files in @dir. They
 * are called NNNN-name.sql and numbered from 0001 without gaps; the database's version is PRAGMA
 * user_version. Each is applied in a transaction of its own, by whichever of several concurrent
 * starters comes first. Does not look at @dir when there is nothing to do, and applies nothing past
 * @newest. A database that is made here gets SBX_MIGRATE_PAGE_SIZE. Private to src/store.
 *
 * 0, SBX_STORE_E_NEWER (store_error.h), or -errno: what was applied before the failure stays.
 */
int sbx_migrate(sqlite3 *db, const char *dir, int newest, struct sbx_err *err);

/* The version of @db; 0: none yet. 0 or -errno with @err. */
int sbx_migrate_version(sqlite3 *db, struct sbx_err *err, int64_t *ret_version);

/* Bytes. A commit writes whole pages, and the next program to open the database reads them all
 * again. A sandbox's row fits a page of this size as well as one of SQLite's usual 4,096. */
#define SBX_MIGRATE_PAGE_SIZE 1024

#endif
