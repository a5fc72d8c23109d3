/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_TESTS_STORE_WORLD_H
#define SBX_TESTS_STORE_WORLD_H

/* A database in a directory of its own, and an SQLite that runs out of memory. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/store.h"
#include "tests/unit/scratch.h"

#define ID "0123456789ab"

struct fixture {
	char root[64];	/* removed at the end */
	char state[96]; /* the state directory */
	char db[128];
	char migrations[256]; /* the shipped ones */
	struct sbx_err err;
};

static inline int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	const char *src = getenv("SBX_SRCDIR");

	strcpy(f->root, "/tmp/sbx-test-store.XXXXXX");
	if (!mkdtemp(f->root))
		return -1;
	snprintf(f->state, sizeof(f->state), "%s/a/b/sbx", f->root);
	snprintf(f->db, sizeof(f->db), "%s/sbx.db", f->state);
	snprintf(f->migrations, sizeof(f->migrations), "%s/migrations", src ? src : ".");
	*state = f;
	return 0;
}

static inline int teardown(void **state)
{
	struct fixture *f = *state;

	scratch_remove(f->root);
	free(f);
	return 0;
}

static inline struct sbx_store *open_store(struct fixture *f)
{
	struct sbx_store *store = NULL;
	int r = sbx_store_open(f->state, f->migrations, &f->err, &store);

	if (r)
		fail_msg("open: %d: %s", r, f->err.msg);
	return store;
}

/* The first column of the first row by an independent connection; "" for none. */
static inline const char *query(struct fixture *f, const char *sql)
{
	static char out[4][1024];
	static int turn;
	char *to = out[turn++ % 4];
	sqlite3_stmt *stmt = NULL;
	sqlite3 *db = NULL;
	const unsigned char *text;

	to[0] = '\0';
	assert_int_equal(sqlite3_open_v2(f->db, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
	sqlite3_busy_timeout(db, 5000);
	sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) != SQLITE_OK)
		fail_msg("%s: %s", sql, sqlite3_errmsg(db));
	if (sqlite3_step(stmt) == SQLITE_ROW && (text = sqlite3_column_text(stmt, 0)))
		snprintf(to, 1024, "%s", text);
	sqlite3_finalize(stmt);
	sqlite3_close(db);
	return to;
}

static inline int begin(struct sbx_store *store, const char *id, struct sbx_err *err)
{
	const struct sbx_store_sandbox s = {
		.id = id,
		.profile = "notebook",
		.command_json = "[\"true\"]",
		.pid = 4711,
		.pid_start = 99,
		.uid = 1000,
		.created_ms = INT64_C(1700000000123),
	};

	return sbx_store_sandbox_begin(store, &s, err);
}

static inline struct sbx_event event(const char *name)
{
	struct sbx_event v = {
		.ts_ms = UINT64_C(1700000000123),
		.action = SBX_DENY,
		.proto = SBX_PROTO_TCP,
		.reason = SBX_REASON_DEFAULT_DENY,
		.port = 443,
		.count = 1,
	};

	sbx_addr_parse("2001:db8::1", &v.addr);
	snprintf(v.name, sizeof(v.name), "%s", name);
	return v;
}

/* SQLite's own allocator, one allocation of which fails. */
static sqlite3_mem_methods real_memory;
static int good_allocations = -1; /* before the one that fails; -1: none will */

static inline bool out_of_memory(void)
{
	return good_allocations >= 0 && good_allocations-- == 0;
}

static inline void *failing_malloc(int n)
{
	return out_of_memory() ? NULL : real_memory.xMalloc(n);
}

static inline void *failing_realloc(void *p, int n)
{
	return out_of_memory() ? NULL : real_memory.xRealloc(p, n);
}

/* Before SQLite's first use. */
static inline void replace_memory(void)
{
	sqlite3_mem_methods failing;

	assert_int_equal(sqlite3_config(SQLITE_CONFIG_GETMALLOC, &real_memory), SQLITE_OK);
	failing = real_memory;
	failing.xMalloc = failing_malloc;
	failing.xRealloc = failing_realloc;
	assert_int_equal(sqlite3_config(SQLITE_CONFIG_MALLOC, &failing), SQLITE_OK);
}

#endif
