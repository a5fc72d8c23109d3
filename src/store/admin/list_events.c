/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Pages of events. They are walked by id, which is the order of the commits, so that a page can go
 * on where the last one ended. One index leads to the rows, and the other filters are conditions;
 * SQLite does not know which filter few rows pass, so it is told the index (enum lead).
 *
 * Times: rows are nearly, but not quite, in their order (one launcher waits for a lock while
 * another writes). egress_event_span tells which ids the counted events (count.c) of ten minutes
 * have. So a page between two times looks at the ids of these spans, and at all that are not
 * counted yet. Where too many are not (sbxd does not run, or has just begun), the first page finds
 * the smallest id since a time in the index of times.
 */
#include "store/store_list.h"

#include <assert.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "store/sql.h"
#include "store/store_keep.h"

#define READING	      "reading events"
#define PROBED	      1000  /* rows by which indexes are compared */
#define LOOK_UP	      4	    /* a row by an index takes as long as so many in their order */
#define FEW_SANDBOXES 2000  /* of an owner, */
#define FEW_EVENTS    10000 /* and their events */
#define SPAN_MS INT64_C(600000)

#define OF_OWNER                                                                                   \
	"EXISTS (SELECT 1 FROM api_sandbox AS a WHERE a.sandbox_id = "                             \
	"sandbox_egress_event.sandbox_id AND +a.owner_uid = ?)"
#define COLUMNS                                                                                    \
	"SELECT id, sandbox_id, ts, action, protocol, reason, analysis_id, workspace, "            \
	"remote_ip, fqdn_pinned, rule, request, remote_port, raw_pkts, generation, bytes_out, "    \
	"bytes_in, duration_ms, (SELECT owner_uid FROM api_sandbox WHERE sandbox_id = "            \
	"sandbox_egress_event.sandbox_id) FROM sandbox_egress_event "

static void to_row(sqlite3_stmt *stmt, struct sbx_store_event_row *e)
{
	const char *words[5];

	for (int i = 0; i < 5; i++) {
		words[i] = sbx_sql_text(stmt, i + 1);
		words[i] = words[i] ? words[i] : "";
	}
	*e = (struct sbx_store_event_row){
		.id = sqlite3_column_int64(stmt, 0),
		.sandbox_id = words[0],
		.ts = words[1],
		.action = words[2],
		.protocol = words[3],
		.reason = words[4],
		.analysis_id = sbx_sql_text(stmt, 6),
		.workspace = sbx_sql_text(stmt, 7),
		.remote_ip = sbx_sql_text(stmt, 8),
		.name = sbx_sql_text(stmt, 9),
		.rule = sbx_sql_text(stmt, 10),
		.request = sbx_sql_text(stmt, 11),
		.remote_port = sbx_sql_number(stmt, 12, SBX_STORE_NONE),
		.count = sqlite3_column_int64(stmt, 13),
		.generation = sbx_sql_number(stmt, 14, SBX_STORE_NONE),
		.bytes_out = sbx_sql_number(stmt, 15, SBX_STORE_NONE),
		.bytes_in = sbx_sql_number(stmt, 16, SBX_STORE_NONE),
		.duration_ms = sbx_sql_number(stmt, 17, SBX_STORE_NONE),
		.owner_uid = sbx_sql_number(stmt, 18, SBX_STORE_NONE),
	};
}

/* The integer that @sql tells of one text. */
static int id_of(struct sbx_store *store, const char *sql, const char *text, struct sbx_err *err,
		 int64_t none, int64_t *ret_id)
{
	SBX_AUTO_STMT sqlite3_stmt *stmt = NULL;
	int rc, r = sbx_sql_prepare(store->db, sql, READING, err, &stmt);

	if (r)
		return r;
	sqlite3_bind_text(stmt, 1, text, -1, SQLITE_STATIC);
	rc = sqlite3_step(stmt);
	if (rc != SQLITE_ROW)
		return sbx_sql_error(store->db, rc, READING, err);
	*ret_id = sbx_sql_number(stmt, 0, none);
	return 0;
}

/* Ids to look at, both ends included: of counted events, and of those that are not. */
struct ids {
	int64_t from, to;
};
struct walk {
	struct ids counted, rest;
	int64_t newest; /* there is no higher id */
};

/* Leave out of @w the ids that have no event between the filter's times. */
static int bound_by_times(struct sbx_store *store, const struct sbx_store_event_filter *filter,
			  struct sbx_err *err, struct walk *w)
{
	static const char first_sql[] =
		"SELECT min(first_id) FROM egress_event_span WHERE at >= "
		"CAST(strftime('%s', ?1) AS INTEGER) / 600 * 600";
	static const char last_sql[] =
		"SELECT max(last_id) FROM egress_event_span WHERE at <= "
		"CAST(strftime('%s', ?1) AS INTEGER) / 600 * 600";
	char since[SBX_SQL_TS_MAX], until[SBX_SQL_TS_MAX];
	int64_t counted = 0, first = w->counted.from, last = w->counted.to;
	int r = sbx_sql_int(store->db,
			    "SELECT coalesce(max(CASE WHEN gap_last > 0 THEN gap_first - 1 "
			    "ELSE last_id END), 0) FROM egress_counted",
			    READING, err, &counted);

	if (r)
		return r;
	sbx_sql_ts(filter->since_ms, since);
	if (w->newest - counted > SBX_STORE_UNCOUNTED_MAX) {
		if (filter->since_ms > 0 && filter->after == 0)
			r = id_of(store, "SELECT min(id) FROM sandbox_egress_event WHERE ts >= ?1",
				  since, err, INT64_MAX, &w->counted.from);
		return r;
	}
	if (filter->since_ms > 0)
		r = id_of(store, first_sql, since, err, INT64_MAX, &first);
	if (r == 0 && filter->until_ms > 0)
		r = id_of(store, last_sql, sbx_sql_ts(filter->until_ms - 1, until), err, 0, &last);
	w->rest.from = w->counted.from > counted + 1 ? w->counted.from : counted + 1;
	w->rest.to = w->counted.to;
	if (first > w->counted.from)
		w->counted.from = first;
	if (last > counted)
		last = counted;
	if (last < w->counted.to)
		w->counted.to = last;
	return r;
}

/* Which ids to look at. */
static int plan(struct sbx_store *store, const struct sbx_store_event_filter *filter,
		struct sbx_err *err, struct walk *w)
{
	int r = sbx_store_events_last(store, &w->newest, err);

	w->counted = (struct ids){ filter->after + 1, w->newest };
	if (filter->before > 0 && filter->before <= w->newest)
		w->counted.to = filter->before - 1;
	w->rest = (struct ids){ 1, 0 };
	if (r || filter->sandbox_id || (filter->since_ms <= 0 && filter->until_ms <= 0))
		return r;
	return bound_by_times(store, filter, err, w);
}

/* --- the index --- */

enum lead {
	BY_ID = 0, /* none: all events in their order */
	BY_SANDBOX,
	BY_ANALYSIS,
	BY_NAME,
	BY_ADDRESS,
	BY_REASON,
	BY_WORKSPACE,
	BY_ACTION, /* of a rare one */
	BY_OWNER,  /* of an owner with few events: all are sorted */
	N_LEADS
};

#define FIRST_CHOICE BY_NAME
#define LAST_CHOICE  BY_ACTION

static const char *const indexes[N_LEADS] = {
	[BY_ID] = "NOT INDEXED",
	[BY_SANDBOX] = "INDEXED BY sandbox_egress_event_sandbox",
	[BY_ANALYSIS] = "INDEXED BY sandbox_egress_event_analysis",
	[BY_NAME] = "INDEXED BY sandbox_egress_event_name",
	[BY_ADDRESS] = "INDEXED BY sandbox_egress_event_ip",
	[BY_REASON] = "INDEXED BY sandbox_egress_event_reason",
	[BY_WORKSPACE] = "INDEXED BY sandbox_egress_event_workspace",
	[BY_ACTION] = "INDEXED BY sandbox_egress_event_rare",
	[BY_OWNER] = "INDEXED BY sandbox_egress_event_sandbox",
};

/* The filter that an index leads by; NULL: there is none. */
static const char *leader(const struct sbx_store_event_filter *f, enum lead lead)
{
	const char *action = f->action;
	bool is_rare = action && (strcmp(action, "panic") == 0 || strcmp(action, "notice") == 0);

	switch (lead) {
	case BY_SANDBOX:
		return f->sandbox_id;
	case BY_ANALYSIS:
		return f->analysis_id;
	case BY_NAME:
		return f->name;
	case BY_ADDRESS:
		return f->remote_ip;
	case BY_REASON:
		return f->reason;
	case BY_WORKSPACE:
		return f->workspace;
	case BY_ACTION:
		return is_rare ? action : NULL;
	default:
		return NULL;
	}
}

/* The condition by which an index is searched. */
static void where_lead(struct sbx_sql_where *where, const struct sbx_store_event_filter *f,
		       enum lead lead)
{
	static const char *const conditions[] = {
		[BY_SANDBOX] = "sandbox_id = ?", [BY_ANALYSIS] = "analysis_id = ?",
		[BY_NAME] = "fqdn_pinned = ?",	 [BY_ADDRESS] = "remote_ip = ?",
		[BY_REASON] = "reason = ?",	 [BY_WORKSPACE] = "workspace = ?",
	};

	if (lead == BY_OWNER)
		sbx_sql_where_int(where, SBX_SQL_IS_OWNED("sandbox_id"), f->owner_uid);
	else if (lead == BY_ACTION && strcmp(f->action, "panic") == 0)
		sbx_sql_where_text(where, "action = 'panic' AND action = ?", f->action);
	else if (lead == BY_ACTION)
		sbx_sql_where_text(where, "action = 'notice' AND action = ?", f->action);
	else if (lead != BY_ID)
		sbx_sql_where_text(where, conditions[lead], leader(f, lead));
}

static const char *order(bool newest_first)
{
	return newest_first ? "ORDER BY id DESC LIMIT 1 OFFSET ?" : "ORDER BY id LIMIT 1 OFFSET ?";
}

/* The id behind @n rows of @lead; 0: there are no more. */
static int id_behind(struct sbx_store *store, const struct sbx_store_event_filter *filter,
		     enum lead lead, const struct ids *ids, bool newest_first, int64_t n,
		     struct sbx_err *err, int64_t *ret_id)
{
	SBX_AUTO_STMT sqlite3_stmt *stmt = NULL;
	struct sbx_sql_where where = { 0 };
	struct sbx_sql_binder b;
	char select[128];
	int rc, r;

	sbx_text_fit(select, sizeof(select), "SELECT id FROM sandbox_egress_event %s",
		     indexes[lead]);
	where_lead(&where, filter, lead);
	sbx_sql_where_int(&where, "id >= ?", ids->from);
	sbx_sql_where_int(&where, "id <= ?", ids->to);
	r = sbx_sql_where_prepare(store->db, select, &where, order(newest_first), READING, err,
				  &stmt, &b);
	if (r)
		return r;
	sbx_sql_bind_int(&b, n);
	rc = sqlite3_step(stmt);
	if (rc != SQLITE_ROW && rc != SQLITE_DONE)
		return sbx_sql_error(store->db, rc, READING, err);
	*ret_id = rc == SQLITE_ROW ? sqlite3_column_int64(stmt, 0) : 0;
	return 0;
}

/* Of several filters with an index, the one whose newest rows reach back furthest: it lets the
 * fewest pass. */
static int choose(struct sbx_store *store, const struct sbx_store_event_filter *filter,
		  const struct ids *ids, struct sbx_err *err, enum lead *ret_lead)
{
	int64_t least = INT64_MAX, id = 0;
	int n = 0, r = 0;

	for (enum lead lead = FIRST_CHOICE; lead <= LAST_CHOICE; lead++)
		if (leader(filter, lead)) {
			*ret_lead = lead;
			n++;
		}
	for (enum lead lead = FIRST_CHOICE; n > 1 && lead <= LAST_CHOICE && r == 0; lead++) {
		if (!leader(filter, lead))
			continue;
		r = id_behind(store, filter, lead, ids, true, PROBED, err, &id);
		if (r == 0 && id < least) {
			least = id;
			*ret_lead = lead;
		}
	}
	return r;
}

/* Have the sandboxes that the service started for @owner few events? */
static int has_few(struct sbx_store *store, uid_t owner, struct sbx_err *err, bool *ret_few)
{
	static const char sql[] =
		"SELECT count(*), coalesce(sum(n_events), 0) FROM (SELECT s.n_events FROM "
		"api_sandbox AS a CROSS JOIN sandbox AS s ON s.id = a.sandbox_id "
		"WHERE a.owner_uid = ?1 LIMIT ?2)";
	SBX_AUTO_STMT sqlite3_stmt *stmt = NULL;
	int rc, r = sbx_sql_prepare(store->db, sql, READING, err, &stmt);

	if (r)
		return r;
	sqlite3_bind_int64(stmt, 1, owner);
	sqlite3_bind_int64(stmt, 2, FEW_SANDBOXES);
	rc = sqlite3_step(stmt);
	if (rc != SQLITE_ROW)
		return sbx_sql_error(store->db, rc, READING, err);
	*ret_few = sqlite3_column_int64(stmt, 0) < FEW_SANDBOXES &&
		   sqlite3_column_int64(stmt, 1) < FEW_EVENTS;
	return 0;
}

static int find_lead(struct sbx_store *store, const struct sbx_store_event_filter *filter,
		     const struct ids *ids, struct sbx_err *err, enum lead *ret_lead)
{
	bool few = false;
	int r;

	*ret_lead = filter->sandbox_id ? BY_SANDBOX : filter->analysis_id ? BY_ANALYSIS : BY_ID;
	if (*ret_lead != BY_ID)
		return 0;
	r = choose(store, filter, ids, err, ret_lead);
	if (r == 0 && *ret_lead == BY_ID && filter->by_owner)
		r = has_few(store, filter->owner_uid, err, &few);
	if (few)
		*ret_lead = BY_OWNER;
	return r;
}

/* Are there filters besides the leading one, which rows may not pass? */
static bool has_others(const struct sbx_store_event_filter *f, enum lead lead)
{
	int n = !!f->sandbox_id + !!f->analysis_id + !!f->name + !!f->remote_ip + !!f->reason +
		!!f->workspace + !!f->action + f->by_owner;

	return n > (lead != BY_ID);
}

/* --- reading --- */

/* A page being read. */
struct page {
	const struct sbx_store_event_filter *filter;
	sbx_store_event_fn fn;
	void *userdata;
	enum lead lead;
	uint32_t left; /* rows that may still come */
	int64_t last;  /* id of the last one; 0: none came */
};

static int prepare(struct sbx_store *store, const struct page *page, const struct ids *ids,
		   char since[SBX_SQL_TS_MAX], char until[SBX_SQL_TS_MAX], struct sbx_err *err,
		   sqlite3_stmt **ret_stmt)
{
	const struct sbx_store_event_filter *f = page->filter;
	struct sbx_sql_where where = { 0 };
	enum lead lead = page->lead;
	struct sbx_sql_binder b;
	char select[1024];
	int r;

	sbx_text_fit(select, sizeof(select), COLUMNS "%s", indexes[lead]);
	where_lead(&where, f, lead);
	sbx_sql_where_int(&where, "id >= ?", ids->from);
	sbx_sql_where_int(&where, "id <= ?", ids->to);
	if (f->since_ms > 0)
		sbx_sql_where_text(&where, "+ts >= ?", sbx_sql_ts(f->since_ms, since));
	if (f->until_ms > 0)
		sbx_sql_where_text(&where, "+ts < ?", sbx_sql_ts(f->until_ms, until));
	sbx_sql_where_text(&where, "+analysis_id = ?", lead == BY_ANALYSIS ? NULL : f->analysis_id);
	sbx_sql_where_text(&where, "+workspace = ?", lead == BY_WORKSPACE ? NULL : f->workspace);
	sbx_sql_where_text(&where, "+action = ?", lead == BY_ACTION ? NULL : f->action);
	sbx_sql_where_text(&where, "+reason = ?", lead == BY_REASON ? NULL : f->reason);
	sbx_sql_where_text(&where, "+fqdn_pinned = ?", lead == BY_NAME ? NULL : f->name);
	sbx_sql_where_text(&where, "+remote_ip = ?", lead == BY_ADDRESS ? NULL : f->remote_ip);
	if (f->by_owner && lead != BY_OWNER)
		sbx_sql_where_int(&where, OF_OWNER, f->owner_uid);
	r = sbx_sql_where_prepare(store->db, select, &where,
				  f->newest_first ? lead == BY_OWNER ?
						    "ORDER BY +id DESC LIMIT ?" :
						    "ORDER BY id DESC LIMIT ?" :
				  lead == BY_OWNER ? "ORDER BY +id LIMIT ?" :
						     "ORDER BY id LIMIT ?",
				  READING, err, ret_stmt, &b);
	if (r == 0)
		sbx_sql_bind_int(&b, page->left);
	return r;
}

static int read_ids(struct sbx_store *store, struct page *page, const struct ids *ids,
		    struct sbx_err *err)
{
	SBX_AUTO_STMT sqlite3_stmt *stmt = NULL;
	char since[SBX_SQL_TS_MAX], until[SBX_SQL_TS_MAX];
	int rc, r;

	if (ids->from > ids->to || page->left == 0)
		return 0;
	r = prepare(store, page, ids, since, until, err, &stmt);
	if (r)
		return r;
	while ((rc = sqlite3_step(stmt)) == SQLITE_ROW) {
		struct sbx_store_event_row e;

		to_row(stmt, &e);
		page->left--;
		page->last = e.id;
		r = page->fn(&e, page->userdata);
		if (r)
			return r;
	}
	return rc == SQLITE_DONE ? 0 : sbx_sql_error(store->db, rc, READING, err);
}

int sbx_store_events_page(struct sbx_store *store, const struct sbx_store_event_filter *filter,
			  sbx_store_event_fn fn, void *userdata, struct sbx_err *err)
{
	struct page page = { .filter = filter,
			     .fn = fn,
			     .userdata = userdata,
			     .left = filter->n_max ? filter->n_max : SBX_STORE_PAGE };
	struct walk w;
	int r = plan(store, filter, err, &w);

	if (r == 0)
		r = find_lead(store, filter, &w.counted, err, &page.lead);
	if (r == 0)
		r = read_ids(store, &page, filter->newest_first ? &w.rest : &w.counted, err);
	if (r == 0)
		r = read_ids(store, &page, filter->newest_first ? &w.counted : &w.rest, err);
	return r;
}

/* Look at the first @n rows of @ids at most. *ret_next, if not 0: those were not all, and the rest
 * begins there. */
static int shorten(struct sbx_store *store, const struct page *page, struct ids *ids, int64_t n,
		   struct sbx_err *err, int64_t *ret_next)
{
	bool newest_first = page->filter->newest_first;
	int64_t id = 0;
	int r = 0;

	*ret_next = 0;
	if (ids->from > ids->to || page->lead == BY_OWNER)
		return 0;
	if (page->lead != BY_ID)
		r = id_behind(store, page->filter, page->lead, ids, newest_first,
			      n / LOOK_UP + 1, err, &id);
	else if (ids->to - ids->from >= n)
		id = newest_first ? ids->to - n : ids->from + n;
	if (r || !id)
		return r;
	if (newest_first)
		*ret_next = ids->from = id + 1;
	else
		*ret_next = ids->to = id - 1;
	return 0;
}

int sbx_store_events_look(struct sbx_store *store, const struct sbx_store_event_filter *filter,
			  int64_t n_ids, sbx_store_event_fn fn, void *userdata,
			  struct sbx_err *err, int64_t *ret_next)
{
	struct page page = { .filter = filter,
			     .fn = fn,
			     .userdata = userdata,
			     .left = filter->n_max ? filter->n_max : SBX_STORE_PAGE };
	int64_t next = 0;
	struct ids *ids[2];
	struct walk w;
	int r = plan(store, filter, err, &w);

	if (r == 0)
		r = find_lead(store, filter, &w.counted, err, &page.lead);
	ids[0] = filter->newest_first ? &w.rest : &w.counted;
	ids[1] = filter->newest_first ? &w.counted : &w.rest;
	for (int i = 0; i < 2 && r == 0 && !next && page.left; i++) {
		if (has_others(filter, page.lead))
			r = shorten(store, &page, ids[i], n_ids, err, &next);
		if (r == 0)
			r = read_ids(store, &page, ids[i], err);
	}
	if (r == 0)
		*ret_next = page.left == 0 ? page.last : next;
	return r;
}

int sbx_store_events_last(struct sbx_store *store, int64_t *ret_id, struct sbx_err *err)
{
	return sbx_sql_int(store->db, "SELECT coalesce(max(id), 0) FROM sandbox_egress_event",
			   READING, err, ret_id);
}

/* --- refusals --- */

/* The newest row of each group tells what it was about. SQLite's sum is an error when it
 * overflows. */
#define GROUPED(key)                                                                               \
	"SELECT s.k, n, n_rows, n_sandboxes, first_ts, last_ts, e.reason, e.fqdn_pinned, "         \
	"e.remote_ip, e.rule, e.remote_port, e.protocol FROM (SELECT " key                         \
	" AS k, sum(min(raw_pkts, 1000000000000)) AS n, count(*) AS n_rows, "                      \
	"count(DISTINCT sandbox_id) AS n_sandboxes, min(ts) AS first_ts, max(ts) AS last_ts, "     \
	"max(id) AS last FROM sandbox_egress_event"

static const char *const grouped[] = {
	[SBX_DENIES_BY_ADDRESS] = GROUPED("remote_ip"),
	[SBX_DENIES_BY_NAME] = GROUPED("coalesce(fqdn_pinned, remote_ip)"),
	[SBX_DENIES_BY_SANDBOX] = GROUPED("sandbox_id"),
	[SBX_DENIES_BY_WORKSPACE] = GROUPED("workspace"),
	[SBX_DENIES_BY_REASON] = GROUPED("reason"),
};
static_assert(SBX_N_ELEMENTS(grouped) == SBX_N_DENIES_BY, "a query for each");

static void to_denies(sqlite3_stmt *stmt, struct sbx_store_denies_row *d)
{
	*d = (struct sbx_store_denies_row){
		.key = sbx_sql_text(stmt, 0),
		.count = sqlite3_column_int64(stmt, 1),
		.n_rows = sqlite3_column_int64(stmt, 2),
		.n_sandboxes = sqlite3_column_int64(stmt, 3),
		.first_ts = sbx_sql_text(stmt, 4),
		.last_ts = sbx_sql_text(stmt, 5),
		.last_reason = sbx_sql_text(stmt, 6),
		.last_name = sbx_sql_text(stmt, 7),
		.last_ip = sbx_sql_text(stmt, 8),
		.last_rule = sbx_sql_text(stmt, 9),
		.last_port = sbx_sql_number(stmt, 10, SBX_STORE_NONE),
		.last_protocol = sbx_sql_text(stmt, 11),
	};
}

int sbx_store_denies_each(struct sbx_store *store, enum sbx_store_denies_by by,
			  const struct sbx_store_event_filter *filter,
			  int (*fn)(const struct sbx_store_denies_row *d, void *userdata),
			  void *userdata, struct sbx_err *err)
{
	SBX_AUTO_STMT sqlite3_stmt *stmt = NULL;
	char since[SBX_SQL_TS_MAX], until[SBX_SQL_TS_MAX];
	struct sbx_sql_where where = { 0 };
	struct sbx_sql_binder b;
	int rc, r;

	sbx_sql_where_text(&where, "action = ?", "deny");
	if (filter->since_ms > 0)
		sbx_sql_where_text(&where, "ts >= ?", sbx_sql_ts(filter->since_ms, since));
	if (filter->until_ms > 0)
		sbx_sql_where_text(&where, "ts < ?", sbx_sql_ts(filter->until_ms, until));
	sbx_sql_where_text(&where, "sandbox_id = ?", filter->sandbox_id);
	sbx_sql_where_text(&where, "analysis_id = ?", filter->analysis_id);
	sbx_sql_where_text(&where, "workspace = ?", filter->workspace);
	sbx_sql_where_text(&where, "reason = ?", filter->reason);
	if (filter->by_owner)
		sbx_sql_where_int(&where, SBX_SQL_IS_OWNED("sandbox_id"), filter->owner_uid);
	r = sbx_sql_where_prepare(store->db, grouped[by], &where,
				  "GROUP BY 1 ORDER BY n DESC, last DESC LIMIT ?) AS s "
				  "JOIN sandbox_egress_event AS e ON e.id = s.last "
				  "ORDER BY n DESC, last DESC",
				  "reading refusals", err, &stmt, &b);
	if (r)
		return r;
	sbx_sql_bind_int(&b, filter->n_max ? filter->n_max : SBX_STORE_PAGE);
	while ((rc = sqlite3_step(stmt)) == SQLITE_ROW) {
		struct sbx_store_denies_row d;

		to_denies(stmt, &d);
		r = fn(&d, userdata);
		if (r)
			return r;
	}
	return rc == SQLITE_DONE ? 0 : sbx_sql_error(store->db, rc, "reading refusals", err);
}
