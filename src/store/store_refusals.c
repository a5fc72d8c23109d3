/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reads back the refusals of a run. Another program may have written rows: rows that are no valid
 * event are left out. */
#include "store/store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "store/sql.h"

void sbx_store_found_fini(struct sbx_store_found *f)
{
	free(f->profile);
	free(f->command_json);
	free(f->state);
	free(f->receipt_json);
	*f = (struct sbx_store_found){ 0 };
}

/* malloc'ed; NULL becomes "" unless it @may_be_null. -ENOMEM. */
static int column(sqlite3_stmt *stmt, int i, bool may_be_null, char **ret_text)
{
	const char *text = (const char *)sqlite3_column_text(stmt, i);

	*ret_text = text || !may_be_null ? strdup(text ? text : "") : NULL;
	return *ret_text || may_be_null ? 0 : -ENOMEM;
}

int sbx_store_find(struct sbx_store *store, const char *id, struct sbx_store_found *ret_found,
		   struct sbx_err *err)
{
	static const char sql[] = "SELECT id, profile, command, state, receipt FROM sandbox "
				  "WHERE ?1 IS NULL OR id = ?1 ORDER BY rowid DESC LIMIT 1";
	SBX_AUTO_STMT sqlite3_stmt *stmt = NULL;
	struct sbx_store_found found = { 0 };
	struct sbx_sql_binder b = { 0 };
	const char *found_id;
	int rc, r = sbx_sql_prepare(store->db, sql, "looking for the sandbox", err, &stmt);

	if (r)
		return r;
	b.stmt = stmt;
	sbx_sql_bind_text(&b, id);
	rc = sqlite3_step(stmt);
	if (rc == SQLITE_DONE)
		return SBX_STORE_E_UNKNOWN;
	if (rc != SQLITE_ROW)
		return sbx_sql_error(store->db, rc, "looking for the sandbox", err);
	found_id = (const char *)sqlite3_column_text(stmt, 0);
	if (!found_id || sbx_text_copy(found.id, sizeof(found.id), found_id) < 0)
		return SBX_STORE_E_UNKNOWN; /* nothing that sbx-run wrote */
	r = column(stmt, 1, false, &found.profile);
	if (r == 0)
		r = column(stmt, 2, false, &found.command_json);
	if (r == 0)
		r = column(stmt, 3, false, &found.state);
	if (r == 0)
		r = column(stmt, 4, true, &found.receipt_json);
	if (r == 0)
		*ret_found = found;
	else
		sbx_store_found_fini(&found);
	return r;
}

static void cut(sqlite3_stmt *stmt, int i, char *buf, size_t n_buf)
{
	const char *text = (const char *)sqlite3_column_text(stmt, i);

	sbx_text_cut(buf, n_buf, "%s", text ? text : "");
}

/* The number of the word in column @i; @n if it is none of the words. */
static unsigned int number(sqlite3_stmt *stmt, int i, const char *(*word)(unsigned int),
			   unsigned int n)
{
	const char *text = (const char *)sqlite3_column_text(stmt, i);
	unsigned int v = 0;

	while (v < n && (!text || strcmp(word(v), text) != 0))
		v++;
	return v;
}

static const char *proto_word(unsigned int v)
{
	return sbx_proto_str((enum sbx_proto)v);
}

static const char *reason_word(unsigned int v)
{
	return sbx_reason_str((enum sbx_reason)v);
}

static bool to_event(sqlite3_stmt *stmt, struct sbx_event *e)
{
	unsigned int proto = number(stmt, 0, proto_word, SBX_N_PROTOS);
	unsigned int reason = number(stmt, 4, reason_word, SBX_N_REASONS);
	const char *ip = (const char *)sqlite3_column_text(stmt, 1);
	int64_t port = sqlite3_column_int64(stmt, 2), count = sqlite3_column_int64(stmt, 7);

	*e = (struct sbx_event){ 0 };
	if (proto == SBX_N_PROTOS || reason == SBX_N_REASONS || port < 0 || port > UINT16_MAX ||
	    count < 1)
		return false;
	if (ip && sbx_addr_parse(ip, &e->addr) < 0)
		return false;
	e->proto = (uint8_t)proto;
	e->reason = (uint8_t)reason;
	e->port = (uint16_t)port;
	e->count = (uint64_t)count;
	cut(stmt, 3, e->name, sizeof(e->name));
	cut(stmt, 5, e->rule, sizeof(e->rule));
	cut(stmt, 6, e->request, sizeof(e->request));
	return true;
}

int sbx_store_events_each(struct sbx_store *store, const char *id, enum sbx_action action,
			  void (*fn)(const struct sbx_event *e, void *userdata), void *userdata,
			  struct sbx_err *err)
{
	/* SQLite's sum is an error when it overflows. */
	static const char sql[] =
		"SELECT protocol, remote_ip, remote_port, fqdn_pinned, reason, rule, request, "
		"sum(min(raw_pkts, 1000000000000)) "
		"FROM sandbox_egress_event WHERE sandbox_id = ?1 AND action = ?2 "
		"GROUP BY protocol, remote_ip, remote_port, fqdn_pinned, reason, rule, request "
		"ORDER BY min(id)";
	SBX_AUTO_STMT sqlite3_stmt *stmt = NULL;
	struct sbx_sql_binder b = { 0 };
	struct sbx_event e;
	int rc, r = sbx_sql_prepare(store->db, sql, "reading refusals", err, &stmt);

	if (r)
		return r;
	b.stmt = stmt;
	sbx_sql_bind_text(&b, id);
	sbx_sql_bind_text(&b, sbx_action_str(action));
	while ((rc = sqlite3_step(stmt)) == SQLITE_ROW)
		if (to_event(stmt, &e)) {
			e.action = (uint8_t)action;
			fn(&e, userdata);
		}
	return rc == SQLITE_DONE ? 0 : sbx_sql_error(store->db, rc, "reading refusals", err);
}
