/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Sums for /metrics: of new events alone, and by the index of live sandboxes. */
#include "store/sql.h"
#include "store/store_tally.h"

#define COUNTING "counting"

int sbx_store_tally_events(struct sbx_store *store, int64_t after, uint32_t n_max,
			   void (*fn)(const char *action, const char *reason, int64_t n,
				      void *userdata),
			   void *userdata, struct sbx_err *err, int64_t *ret_last)
{
	static const char sql[] =
		"SELECT action, reason, sum(min(raw_pkts, 1000000000)), max(id) FROM "
		"(SELECT id, action, reason, raw_pkts FROM sandbox_egress_event "
		"WHERE id > ?1 ORDER BY id LIMIT ?2) GROUP BY action, reason";
	SBX_AUTO_STMT sqlite3_stmt *stmt = NULL;
	int rc, r = sbx_sql_prepare(store->db, sql, COUNTING, err, &stmt);
	int64_t last = after;

	if (r)
		return r;
	sqlite3_bind_int64(stmt, 1, after);
	sqlite3_bind_int64(stmt, 2, n_max);
	while ((rc = sqlite3_step(stmt)) == SQLITE_ROW) {
		fn(sbx_sql_word(stmt, 0), sbx_sql_word(stmt, 1), sqlite3_column_int64(stmt, 2),
		   userdata);
		if (sqlite3_column_int64(stmt, 3) > last)
			last = sqlite3_column_int64(stmt, 3);
	}
	if (rc != SQLITE_DONE)
		return sbx_sql_error(store->db, rc, COUNTING, err);
	*ret_last = last;
	return 0;
}

int sbx_store_tally_live(struct sbx_store *store,
			 void (*fn)(const char *state, int64_t n, void *userdata), void *userdata,
			 struct sbx_err *err)
{
	static const char sql[] =
		"SELECT state, count(*) FROM sandbox WHERE ended_ms IS NULL GROUP BY state";
	SBX_AUTO_STMT sqlite3_stmt *stmt = NULL;
	int rc, r = sbx_sql_prepare(store->db, sql, COUNTING, err, &stmt);

	if (r)
		return r;
	while ((rc = sqlite3_step(stmt)) == SQLITE_ROW)
		fn(sbx_sql_word(stmt, 0), sqlite3_column_int64(stmt, 1), userdata);
	return rc == SQLITE_DONE ? 0 : sbx_sql_error(store->db, rc, COUNTING, err);
}
