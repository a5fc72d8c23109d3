/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Writes events to the database. They come from less trusted processes and tell about an untrusted
 * one, so their text is cleaned and their rows are bounded: a sandbox gets SBX_STORE_EVENTS_MAX
 * rows, and from then on counts are added to one overflow row per action. The sandbox's own row has
 * the number of its event rows (n_events), which is read and written in the same transaction as the
 * events. So neither a restart nor a second writer gets around the bound, and counting never scans.
 */

#include "store/store.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "store/sql.h"

/* @s of at most @size-1 bytes, cleaned; NULL for "". */
static const char *clean(const char *s, size_t size, char *buf)
{
	size_t n = strnlen(s, size - 1);

	for (size_t i = 0; i < n;) {
		size_t unit = sbx_text_unit(s + i, n - i);

		assert(unit <= n - i);
		memcpy(buf + i, unit ? s + i : "?", unit ? unit : 1);
		i += unit ? unit : 1;
	}
	buf[n] = '\0';
	return n ? buf : NULL;
}

static int64_t as_count(uint64_t n)
{
	return n == 0 ? 1 : n > INT64_MAX ? INT64_MAX : (int64_t)n;
}

static int64_t as_amount(uint64_t n)
{
	return n > INT64_MAX ? INT64_MAX : (int64_t)n;
}

/* Only a flow that has ended has amounts. */
static bool is_flow(const struct sbx_event *v)
{
	return v->bytes_out || v->bytes_in || v->duration_ms;
}

static void bind_unless(struct sbx_sql_binder *b, uint64_t v, bool is_null)
{
	if (is_null)
		sbx_sql_bind_text(b, NULL);
	else
		sbx_sql_bind_int(b, as_amount(v));
}

/* A batch being written: open between BEGIN and COMMIT. */
struct batch {
	struct sbx_store *store;
	const char *sandbox_id, *analysis_id;
	char *workspace; /* the sandbox's; owned, or NULL */
	sqlite3_stmt *insert; /* borrowed */
	int64_t n_rows;	      /* event rows of the sandbox now */
};

static int insert_event(struct batch *batch, const struct sbx_event *v, struct sbx_err *err)
{
	char ts[SBX_SQL_TS_MAX], addr[SBX_ADDR_STR_MAX];
	char name[sizeof(v->name)], rule[sizeof(v->rule)], request[sizeof(v->request)];
	struct sbx_sql_binder b = { .stmt = batch->insert };
	int r;

	sbx_sql_bind_text(&b, batch->sandbox_id);
	sbx_sql_bind_text(&b, batch->analysis_id);
	sbx_sql_bind_text(&b, sbx_sql_ts(as_amount(v->ts_ms), ts));
	sbx_sql_bind_text(&b, sbx_action_str(v->action));
	sbx_sql_bind_text(&b, sbx_proto_str(v->proto));
	sbx_sql_bind_text(&b,
			  v->addr.family ? sbx_addr_format(&v->addr, addr, sizeof(addr)) : NULL);
	if (v->port || v->addr.family)
		sbx_sql_bind_int(&b, v->port);
	else
		sbx_sql_bind_text(&b, NULL);
	sbx_sql_bind_text(&b, clean(v->name, sizeof(v->name), name));
	sbx_sql_bind_text(&b, sbx_reason_str(v->reason));
	sbx_sql_bind_text(&b, clean(v->rule, sizeof(v->rule), rule));
	sbx_sql_bind_text(&b, clean(v->request, sizeof(v->request), request));
	sbx_sql_bind_int(&b, as_count(v->count));
	sbx_sql_bind_text(&b, batch->workspace);
	bind_unless(&b, v->generation, v->generation == 0);
	bind_unless(&b, v->bytes_out, !is_flow(v));
	bind_unless(&b, v->bytes_in, !is_flow(v));
	bind_unless(&b, v->duration_ms, !is_flow(v));
	r = sbx_sql_step_done(batch->store->db, batch->insert, "adding an event", err);
	sqlite3_reset(batch->insert);
	batch->n_rows++;
	return r;
}

/* Add to the newest overflow row of an action, or make one: at most SBX_N_ACTIONS rows past the
 * cap. They are the sandbox's newest rows, so a search from the newest back finds them at once. It
 * looks at all rows only if there is no overflow row, or only one below the cap. */
static int add_to_overflow(struct batch *batch, const struct sbx_event *sum, struct sbx_err *err)
{
	SBX_AUTO_STMT sqlite3_stmt *stmt = NULL;
	struct sbx_sql_binder b = { 0 };
	int r;

	r = sbx_sql_prepare(
		batch->store->db,
		"UPDATE sandbox_egress_event SET raw_pkts = "
		"CASE WHEN raw_pkts > 9223372036854775807 - ?1 THEN 9223372036854775807 "
		"ELSE raw_pkts + ?1 END "
		"WHERE id = (SELECT id FROM sandbox_egress_event WHERE sandbox_id = ?2 "
		"AND action = ?3 AND reason = 'overflow' ORDER BY id DESC LIMIT 1)",
		"adding to the overflow", err, &stmt);
	if (r)
		return r;
	b.stmt = stmt;
	sbx_sql_bind_int(&b, as_count(sum->count));
	sbx_sql_bind_text(&b, batch->sandbox_id);
	sbx_sql_bind_text(&b, sbx_action_str(sum->action));
	r = sbx_sql_step_done(batch->store->db, stmt, "adding to the overflow", err);
	if (r || sqlite3_changes(batch->store->db) > 0)
		return r;
	return insert_event(batch, sum, err);
}

static int write_batch(struct batch *batch, const struct sbx_event *v, size_t n,
		       struct sbx_err *err)
{
	struct sbx_event spill[SBX_N_ACTIONS] = { { 0 } };
	int r;

	for (size_t i = 0; i < n; i++) {
		unsigned action = v[i].action < SBX_N_ACTIONS ? v[i].action : SBX_DENY;
		struct sbx_event *s = &spill[action];
		uint64_t count = (uint64_t)as_count(v[i].count);

		if (batch->n_rows < SBX_STORE_EVENTS_MAX) {
			struct sbx_event clamped = v[i];

			clamped.action = (uint8_t)action;
			r = insert_event(batch, &clamped, err);
			if (r)
				return r;
			continue;
		}
		if (s->count == 0)
			s->ts_ms = v[i].ts_ms;
		s->count = s->count > INT64_MAX - count ? INT64_MAX : s->count + count;
	}
	for (unsigned action = 0; action < SBX_N_ACTIONS; action++) {
		if (spill[action].count == 0)
			continue;
		spill[action].action = (uint8_t)action;
		spill[action].proto = SBX_PROTO_OTHER;
		spill[action].reason = SBX_REASON_OVERFLOW;
		r = add_to_overflow(batch, &spill[action], err);
		if (r)
			return r;
	}
	return 0;
}

/* The row counter of the sandbox: @set < 0 reads it, otherwise writes it. */
static int row_counter(struct batch *batch, int64_t set, struct sbx_err *err)
{
	SBX_AUTO_STMT sqlite3_stmt *stmt = NULL;
	struct sbx_sql_binder b = { 0 };
	const char *workspace;
	int rc, r;

	r = sbx_sql_prepare(batch->store->db,
			    set < 0 ? "SELECT n_events, workspace FROM sandbox WHERE id = ?1"
				    : "UPDATE sandbox SET n_events = ?2 WHERE id = ?1",
			    "counting events", err, &stmt);
	if (r)
		return r;
	b.stmt = stmt;
	sbx_sql_bind_text(&b, batch->sandbox_id);
	if (set >= 0) {
		sbx_sql_bind_int(&b, set);
		return sbx_sql_step_done(batch->store->db, stmt, "counting events", err);
	}
	rc = sqlite3_step(stmt);
	if (rc == SQLITE_DONE) {
		sbx_err_set(err, "no sandbox %s", batch->sandbox_id);
		return SBX_STORE_E_UNKNOWN;
	}
	if (rc != SQLITE_ROW)
		return sbx_sql_error(batch->store->db, rc, "counting events", err);
	batch->n_rows = sqlite3_column_int64(stmt, 0);
	if (sqlite3_column_type(stmt, 1) == SQLITE_NULL)
		return 0;
	workspace = (const char *)sqlite3_column_text(stmt, 1);
	batch->workspace = workspace ? strdup(workspace) : NULL;
	return batch->workspace ? 0 : -ENOMEM;
}

int sbx_store_events_add(struct sbx_store *store, const char *sandbox_id, const char *analysis_id,
			 const struct sbx_event *v, size_t n, struct sbx_err *err)
{
	SBX_AUTO_STMT sqlite3_stmt *insert = NULL;
	struct batch batch = { .store = store,
			       .sandbox_id = sandbox_id,
			       .analysis_id = analysis_id };
	int r;

	if (n == 0)
		return 0;
	r = sbx_sql_prepare(
		store->db,
		"INSERT INTO sandbox_egress_event (sandbox_id, analysis_id, ts, action, protocol, "
		"remote_ip, remote_port, fqdn_pinned, reason, rule, request, raw_pkts, "
		"workspace, generation, bytes_out, bytes_in, duration_ms) "
		"VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, "
		"?17)",
		"adding an event", err, &insert);
	if (r)
		return r;
	batch.insert = insert;
	r = sbx_sql_exec(store->db, "BEGIN IMMEDIATE", "waiting to add events", err);
	if (r)
		return r;
	r = row_counter(&batch, -1, err);
	if (!r)
		r = write_batch(&batch, v, n, err);
	if (!r)
		r = row_counter(&batch, batch.n_rows, err);
	if (!r)
		r = sbx_sql_exec(store->db, "COMMIT", "committing events", err);
	if (r)
		sbx_sql_rollback(store->db);
	free(batch.workspace);
	return r;
}
