/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Lists sandboxes. The newest come first, by rowid: the order in which their runs began. There are
 * few live ones, and many that have ended: a list of the live ones must not read the others. A `+`
 * keeps SQLite from a walk by rowid where few rows pass.
 */
#include "store/store_list.h"

#include <string.h>

#include "base/text.h"
#include "store/sql.h"

#define COLUMNS                                                                                    \
	"SELECT rowid, id, profile, state, command, analysis_id, workspace, policy_hash, "         \
	"selftest, receipt, pid, pid_start, uid, created_ms, released_ms, ended_ms, exit_status, " \
	"cpu_us, memory_peak_bytes, cpu_pressure_us, memory_pressure_us, io_pressure_us, "         \
	"n_events, generation, air_gapped, allow_out, deny_out, rules FROM sandbox"

static void to_row(sqlite3_stmt *stmt, struct sbx_store_sandbox_row *s)
{
	*s = (struct sbx_store_sandbox_row){
		.cursor = sqlite3_column_int64(stmt, 0),
		.id = sbx_sql_word(stmt, 1),
		.profile = sbx_sql_word(stmt, 2),
		.state = sbx_sql_word(stmt, 3),
		.command_json = sbx_sql_word(stmt, 4),
		.analysis_id = sbx_sql_text(stmt, 5),
		.workspace = sbx_sql_text(stmt, 6),
		.policy_hash = sbx_sql_text(stmt, 7),
		.selftest_json = sbx_sql_text(stmt, 8),
		.receipt_json = sbx_sql_text(stmt, 9),
		.pid = sqlite3_column_int64(stmt, 10),
		.pid_start = sqlite3_column_int64(stmt, 11),
		.uid = sqlite3_column_int64(stmt, 12),
		.created_ms = sqlite3_column_int64(stmt, 13),
		.released_ms = sbx_sql_number(stmt, 14, SBX_STORE_NONE),
		.ended_ms = sbx_sql_number(stmt, 15, SBX_STORE_NONE),
		.exit_status = sbx_sql_number(stmt, 16, SBX_STORE_NONE),
		.cpu_us = sbx_sql_number(stmt, 17, SBX_STORE_NONE),
		.memory_peak_bytes = sbx_sql_number(stmt, 18, SBX_STORE_NONE),
		.cpu_pressure_us = sbx_sql_number(stmt, 19, SBX_STORE_NONE),
		.memory_pressure_us = sbx_sql_number(stmt, 20, SBX_STORE_NONE),
		.io_pressure_us = sbx_sql_number(stmt, 21, SBX_STORE_NONE),
		.n_events = sqlite3_column_int64(stmt, 22),
		.generation = sqlite3_column_int64(stmt, 23),
		.air_gapped = sqlite3_column_int(stmt, 24) != 0,
		.allow_json = sbx_sql_word(stmt, 25),
		.deny_json = sbx_sql_word(stmt, 26),
		.rules_json = sbx_sql_word(stmt, 27),
	};
}

#define FEW   5000
#define OWNED                                                                                      \
	"EXISTS (SELECT 1 FROM api_sandbox AS a WHERE a.sandbox_id = sandbox.id "                  \
	"AND +a.owner_uid = ?)"

static bool is_live_state(const char *state)
{
	return strcmp(state, "preparing") == 0 || strcmp(state, "running") == 0;
}

/* Did the service start few sandboxes for @owner? */
static int has_few(struct sbx_store *store, uid_t owner, struct sbx_err *err, bool *ret_few)
{
	SBX_AUTO_STMT sqlite3_stmt *stmt = NULL;
	int rc, r = sbx_sql_prepare(store->db,
				    "SELECT count(*) FROM (SELECT 1 FROM api_sandbox "
				    "WHERE owner_uid = ?1 LIMIT ?2)",
				    "listing sandboxes", err, &stmt);

	if (r)
		return r;
	sqlite3_bind_int64(stmt, 1, owner);
	sqlite3_bind_int64(stmt, 2, FEW);
	rc = sqlite3_step(stmt);
	if (rc != SQLITE_ROW)
		return sbx_sql_error(store->db, rc, "listing sandboxes", err);
	*ret_few = sqlite3_column_int64(stmt, 0) < FEW;
	return 0;
}

int sbx_store_sandboxes_each(struct sbx_store *store, const struct sbx_store_sandbox_filter *filter,
			     sbx_store_sandbox_fn fn, void *userdata, struct sbx_err *err)
{
	SBX_AUTO_STMT sqlite3_stmt *stmt = NULL;
	struct sbx_sql_where where = { 0 };
	struct sbx_sql_binder b;
	bool live = filter->live || (filter->state && is_live_state(filter->state)), few = live;
	int rc, r = 0;

	if (filter->by_owner && !live)
		r = has_few(store, filter->owner_uid, err, &few);
	if (r)
		return r;
	if (live)
		sbx_sql_where_int(&where, "ended_ms IS NULL AND 1 = ?", 1);
	if (filter->before > 0)
		sbx_sql_where_int(&where, few ? "+rowid < ?" : "rowid < ?", filter->before);
	if (filter->by_owner)
		sbx_sql_where_int(&where,
				  few && !live ? SBX_SQL_IS_OWNED("id") : OWNED,
				  filter->owner_uid);
	sbx_sql_where_text(&where, few ? "+workspace = ?" : "workspace = ?", filter->workspace);
	sbx_sql_where_text(&where, few ? "+analysis_id = ?" : "analysis_id = ?",
			   filter->analysis_id);
	sbx_sql_where_text(&where, few ? "+state = ?" : "ended_ms IS NOT NULL AND state = ?",
			   filter->state);
	r = sbx_sql_where_prepare(store->db, live ? COLUMNS " INDEXED BY sandbox_live" : COLUMNS,
				  &where,
				  few ? "ORDER BY +rowid DESC LIMIT ?" :
					"ORDER BY rowid DESC LIMIT ?",
				  "listing sandboxes", err, &stmt, &b);
	if (r)
		return r;
	sbx_sql_bind_int(&b, filter->n_max ? filter->n_max : SBX_STORE_PAGE);
	while ((rc = sqlite3_step(stmt)) == SQLITE_ROW) {
		struct sbx_store_sandbox_row s;

		to_row(stmt, &s);
		r = fn(&s, userdata);
		if (r)
			return r;
	}
	return rc == SQLITE_DONE ? 0 : sbx_sql_error(store->db, rc, "listing sandboxes", err);
}

int sbx_store_sandbox_get(struct sbx_store *store, const char *id, sbx_store_sandbox_fn fn,
			  void *userdata, struct sbx_err *err)
{
	SBX_AUTO_STMT sqlite3_stmt *stmt = NULL;
	char past[SBX_ID_LEN + 2]; /* sorts after every id that begins with @id */
	size_t n = strnlen(id, SBX_ID_LEN + 1);
	struct sbx_store_sandbox_row s;
	int rc, r;

	if (n == 0 || n > SBX_ID_LEN || strspn(id, "0123456789abcdef") != n) {
		sbx_err_set(err, "an id has %d of the digits 0-9 and a-f, or is the first of them",
			    SBX_ID_LEN);
		return SBX_STORE_E_UNKNOWN;
	}
	memcpy(past, id, n);
	past[n] = 'g';
	past[n + 1] = '\0';
	r = sbx_sql_prepare(store->db, COLUMNS " WHERE id >= ?1 AND id < ?2 LIMIT 2",
			    "looking for the sandbox", err, &stmt);
	if (r)
		return r;
	/* The row itself is read last, because a step ends its texts. */
	for (int pass = 0; pass < 2; pass++) {
		int found = 0;

		sqlite3_reset(stmt);
		sqlite3_bind_text(stmt, 1, id, -1, SQLITE_STATIC);
		sqlite3_bind_text(stmt, 2, past, -1, SQLITE_STATIC);
		while ((rc = sqlite3_step(stmt)) == SQLITE_ROW && pass == 0)
			found++;
		if (rc != SQLITE_DONE && rc != SQLITE_ROW)
			return sbx_sql_error(store->db, rc, "looking for the sandbox", err);
		if (pass == 0 && found != 1) {
			sbx_err_set(err,
				    found ? "several sandboxes begin with %s: write more of "
					    "the id" :
					    "no sandbox %s is recorded (sbxctl ps --all lists "
				    "them)",
				    id);
			return SBX_STORE_E_UNKNOWN;
		}
		if (pass == 1 && rc != SQLITE_ROW)
			return SBX_STORE_E_UNKNOWN; /* it went meanwhile */
	}
	to_row(stmt, &s);
	return fn(&s, userdata);
}

static int take_id(const struct sbx_store_sandbox_row *s, void *userdata)
{
	return sbx_text_copy(userdata, SBX_ID_LEN + 1, s->id);
}

int sbx_store_sandbox_find(struct sbx_store *store, const char *id, char ret_id[SBX_ID_LEN + 1],
			   struct sbx_err *err)
{
	return sbx_store_sandbox_get(store, id, take_id, ret_id, err);
}
