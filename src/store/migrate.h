/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_STORE_MIGRATE_H
#define SBX_STORE_MIGRATE_H

#include <sqlite3.h>

#include "base/err.h"

/*
 * Bring @db (borrowed; busy timeout set) to the version of the newest file in @dir. Files are
 * called NNNN-name.sql and numbered from 0001 without gaps; the database's version is PRAGMA
 * user_version. Each is applied in a transaction of its own, by whichever of several concurrent
 * starters comes first. Reads the directory only, and no file, when there is nothing to do. Private
 * to src/store.
 *
 * 0, SBX_STORE_E_NEWER (store.h), or -errno: what was applied before the failure stays.
 */
int sbx_migrate(sqlite3 *db, const char *dir, struct sbx_err *err);

#endif
