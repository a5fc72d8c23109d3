/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Refusals of a window of time, from the counts (count.c). A window is cut into days, quarters of
 * days, hours and minutes, as far as it has whole ones:
 *
 *     since   14:21      15:00     18:00       00:00    12:00      14:00     14:20   until
 *       | events | minutes | hours  | quarters | days | quarters | hours | min.. | events |
 *
 * Events are read for what is left at both ends, for what is not counted yet (the newest
 * SBX_STORE_UNCOUNTED_MAX of it), and for the sums of reason overflow. So the answer is what a look
 * at all events would give, unless sbx_store_uncounted() tells of more. Minutes that began more
 * than two hours ago are not kept: a window that begins there begins with the events of up to an
 * hour.
 */
#include <assert.h>

#include "base/text.h"
#include "store/sql.h"
#include "store/store_keep.h"
#include "store/store_service.h"

#define READING "reading refusals"
#define MINUTE	60
#define HOUR	3600
#define QUARTER 21600
#define DAY	86400
#define OPEN	INT64_MAX /* an end that there is not */

#define TEXT_OF(number) #number
#define TEXT(macro)	TEXT_OF(macro)
#define UNCOUNTED_MAX	TEXT(SBX_STORE_UNCOUNTED_MAX)

/* Seconds since 1970; empty if they are equal. */
struct range {
	int64_t from, to;
};

enum { MINUTES, LAST_MINUTES, HOURS, LAST_HOURS, QUARTERS, LAST_QUARTERS, DAYS, N_RANGES };

/* The parts of a window. Texts are in the form of sandbox_egress_event.ts. */
struct window {
	char since[SBX_SQL_TS_MAX], until[SBX_SQL_TS_MAX];
	char head_end[SBX_SQL_TS_MAX], tail_begin[SBX_SQL_TS_MAX]; /* events to and from there */
	struct range ranges[N_RANGES];
};

static int64_t round_down(int64_t v, int64_t unit)
{
	return v / unit * unit;
}

static int64_t round_up(int64_t v, int64_t unit)
{
	return round_down(v + unit - 1, unit);
}

/* Cut from @all what is before the first whole @unit, and what is behind the last. */
static void cut(struct range *all, int64_t unit, struct range *head, struct range *tail)
{
	int64_t first = round_up(all->from, unit), last;

	if (first > all->to)
		first = all->to;
	*head = (struct range){ all->from, first };
	last = all->to == OPEN ? OPEN : round_down(all->to, unit);
	if (last < first)
		last = first;
	*tail = (struct range){ last, all->to };
	*all = (struct range){ first, last };
}

static void plan(const struct sbx_store_denials_filter *filter, struct window *w)
{
	bool by_minute = filter->since_ms >= filter->now_ms - SBX_STORE_FINE_MS;
	int64_t step = by_minute ? MINUTE : HOUR;
	struct range all = { 0, OPEN };

	*w = (struct window){ .until = "\x7f" };
	if (filter->since_ms > 0) {
		sbx_sql_ts(filter->since_ms, w->since);
		all.from = round_up(filter->since_ms, step * 1000) / 1000;
	}
	if (filter->until_ms > 0) {
		sbx_sql_ts(filter->until_ms, w->until);
		all.to = round_down(filter->until_ms / 1000, step);
	}
	if (all.to < all.from) { /* within one step */
		sbx_sql_ts(filter->until_ms, w->head_end);
		sbx_sql_ts(filter->until_ms, w->tail_begin);
		return;
	}
	if (filter->since_ms > 0)
		sbx_sql_ts(all.from * 1000, w->head_end);
	if (filter->until_ms > 0)
		sbx_sql_ts(all.to * 1000, w->tail_begin);
	else
		w->tail_begin[0] = '\x7f';
	if (by_minute)
		cut(&all, HOUR, &w->ranges[MINUTES], &w->ranges[LAST_MINUTES]);
	cut(&all, QUARTER, &w->ranges[HOURS], &w->ranges[LAST_HOURS]);
	cut(&all, DAY, &w->ranges[QUARTERS], &w->ranges[LAST_QUARTERS]);
	w->ranges[DAYS] = all;
}

/* --- the queries --- */

/* Parameters of both queries: ?1 kind, ?2 scope, ?3 and ?4 workspace and owner of counts, or NULL,
 * ?5 and ?6 of events, or NULL, ?7 since, ?8 until. The next are each query's own. */
#define OF_OWNER                                                                                   \
	"EXISTS (SELECT 1 FROM api_sandbox AS a WHERE a.sandbox_id = "                             \
	"sandbox_egress_event.sandbox_id AND a.owner_uid = ?6)"
#define EVENTS                                                                                     \
	"FROM sandbox_egress_event WHERE action = 'deny' AND (?5 IS NULL OR +workspace = ?5) "     \
	"AND (?6 IS NULL OR " OF_OWNER ") AND "
#define COUNTS                                                                                     \
	"c.kind = ?1 AND c.span = step.span AND c.at = step.at AND c.scope = ?2 "                  \
	"AND (?3 IS NULL OR c.workspace = ?3) AND (?4 IS NULL OR c.owner = ?4) "
/* Rows of `part` (span, first second, end) as `step`: the times that have counts, from the newest
 * back. So only rows of the scope are read. */
#define STEPS                                                                                      \
	", step(span, lo, at) AS (SELECT span, lo, (SELECT max(at) FROM egress_deny_count AS c "   \
	"WHERE c.kind = ?1 AND c.span = part.span AND c.at < part.hi) FROM part WHERE lo < hi "    \
	"UNION ALL SELECT span, lo, (SELECT max(at) FROM egress_deny_count AS c "                  \
	"WHERE c.kind = ?1 AND c.span = step.span AND c.at < step.at) FROM step "                  \
	"WHERE step.at >= lo) "
#define IS_COUNTED "+id <= (SELECT last_id FROM egress_counted) AND +reason <> 'overflow'"
#define NOT_COUNTED                                                                                \
	"id > max((SELECT last_id FROM egress_counted), "                                          \
	"(SELECT max(id) FROM sandbox_egress_event) - " UNCOUNTED_MAX ") AND +reason <> 'overflow'"
#define OVERFLOW "reason = 'overflow'"

/* ?9 head_end, ?10 tail_begin, ?11 how many rows, from ?12 on the ranges. */
#define ROWS(key)                                                                                  \
	"SELECT coalesce(" key ", ''), min(raw_pkts, 1000000000000), 1, sandbox_id, id, id " EVENTS
#define GROUPED(counted, key)                                                                      \
	"WITH RECURSIVE part(span, lo, hi) AS (VALUES (60, ?12, ?13), (60, ?14, ?15), "            \
	"(3600, ?16, ?17), (3600, ?18, ?19), (21600, ?20, ?21), (21600, ?22, ?23), "               \
	"(86400, ?24, ?25))" STEPS                                                                 \
	"SELECT k, g.n, g.n_rows, boxes, first.ts, last.ts, last.reason, last.fqdn_pinned, "       \
	"last.remote_ip, last.rule, last.remote_port, last.protocol FROM (SELECT k, sum(n) AS n, " \
	"sum(n_rows) AS n_rows, count(DISTINCT box) AS boxes, min(f) AS f, max(l) AS l FROM ("     \
	"SELECT " counted " AS k, n, n_rows, NULL AS box, first_id AS f, last_id AS l "            \
	"FROM step CROSS JOIN egress_deny_count AS c ON " COUNTS "WHERE step.at >= lo UNION ALL "  \
	ROWS(key) IS_COUNTED " AND ts >= ?7 AND ts < ?9 UNION ALL "                                \
	ROWS(key) IS_COUNTED " AND ts >= ?10 AND ts < ?8 UNION ALL "                               \
	ROWS(key) NOT_COUNTED " AND +ts >= ?7 AND +ts < ?8 UNION ALL "                             \
	ROWS(key) OVERFLOW " AND +ts >= ?7 AND +ts < ?8) "                                         \
	"GROUP BY k ORDER BY n DESC, l DESC LIMIT ?11) AS g "                                      \
	"LEFT JOIN sandbox_egress_event AS first ON first.id = g.f "                               \
	"LEFT JOIN sandbox_egress_event AS last ON last.id = g.l ORDER BY g.n DESC, g.l DESC"

static const struct query {
	int in_all, in_workspace, of_owner; /* kinds */
	const char *sql;
} queries[] = {
	[SBX_DENIES_BY_ADDRESS] = { 0, 5, 7, GROUPED("c.key", "remote_ip") },
	[SBX_DENIES_BY_NAME] = { 1, 6, 8, GROUPED("c.key", "coalesce(fqdn_pinned, remote_ip)") },
	[SBX_DENIES_BY_SANDBOX] = { 2, 2, 2, GROUPED("c.key", "sandbox_id") },
	[SBX_DENIES_BY_WORKSPACE] = { 4, 4, 4, GROUPED("c.workspace", "workspace") },
	[SBX_DENIES_BY_REASON] = { 4, 4, 4, GROUPED("c.key", "reason") },
};
static_assert(SBX_N_ELEMENTS(queries) == SBX_N_DENIES_BY, "a query for each");

/* Which counts a reader gets. */
struct scope {
	int kind;
	const char *name; /* the filter's, or uid */
	char uid[16];
	bool by_workspace, by_owner; /* rows of the kind are of several: those of the filter's */
};

static void find_scope(enum sbx_store_denies_by by, const struct sbx_store_denials_filter *filter,
		       struct scope *s)
{
	const struct query *q = &queries[by];
	bool apart = q->in_all != q->in_workspace;

	*s = (struct scope){ .kind = q->in_all, .name = "" };
	s->by_workspace = filter->workspace && !apart;
	s->by_owner = filter->by_owner && (!apart || filter->workspace);
	if (apart && filter->workspace) {
		s->kind = q->in_workspace;
		s->name = filter->workspace;
	} else if (apart && filter->by_owner) {
		s->kind = q->of_owner;
		sbx_text_fit(s->uid, sizeof(s->uid), "%u", (unsigned int)filter->owner_uid);
		s->name = s->uid;
	}
}

static void bind_owner(struct sbx_sql_binder *b, const struct sbx_store_denials_filter *filter,
		       bool by_owner)
{
	if (by_owner)
		sbx_sql_bind_int(b, filter->owner_uid);
	else
		sbx_sql_bind_text(b, NULL);
}

/* ?1 to ?6 of both queries. */
static void bind_scope(struct sbx_sql_binder *b, const struct scope *s,
		       const struct sbx_store_denials_filter *filter)
{
	sbx_sql_bind_int(b, s->kind);
	sbx_sql_bind_text(b, s->name);
	sbx_sql_bind_text(b, s->by_workspace ? filter->workspace : NULL);
	bind_owner(b, filter, s->by_owner);
	sbx_sql_bind_text(b, filter->workspace);
	bind_owner(b, filter, filter->by_owner);
}

/* Sandboxes of a key, from the newest hour back. Each step finds the hour before, past hours
 * without a row. For a reader of some of the sandboxes of a key with many, not all are looked
 * at. */
static const char boxes_sql[] =
	"WITH RECURSIVE hour(at) AS ("
	"SELECT max(at) FROM egress_deny_sandbox WHERE at < ?6 UNION ALL "
	"SELECT (SELECT max(at) FROM egress_deny_sandbox WHERE at < hour.at) FROM hour "
	"WHERE hour.at >= ?5) "
	"SELECT count(DISTINCT box) FROM (SELECT s.sandbox_id AS box, s.workspace, s.owner FROM "
	"hour CROSS JOIN egress_deny_sandbox AS s ON s.at = hour.at AND s.kind = ?1 "
	"AND s.key = ?2 WHERE hour.at >= ?5 LIMIT ?7) "
	"WHERE (?3 IS NULL OR workspace = ?3) AND (?4 IS NULL OR owner = ?4)";

/* A list being read. */
struct list {
	struct sbx_store *store;
	enum sbx_store_denies_by by;
	const struct sbx_store_denials_filter *filter;
	struct scope scope;
	sqlite3_stmt *boxes; /* borrowed; by key */
	int64_t hours_from, hours_to;
};

/* The number of sandboxes that a key is about; @known of them, or more. */
static int count_boxes(const struct list *list, const char *key, int64_t n_rows, int64_t known,
		       struct sbx_err *err, int64_t *ret_n)
{
	const struct sbx_store_denials_filter *filter = list->filter;
	struct sbx_sql_binder b = { .stmt = list->boxes };
	int64_t n = known;
	int rc;

	*ret_n = 1;
	if (n_rows == 1 || list->by == SBX_DENIES_BY_SANDBOX)
		return 0;
	sqlite3_reset(list->boxes);
	sbx_sql_bind_int(&b, list->by);
	sbx_sql_bind_text(&b, key);
	sbx_sql_bind_text(&b, filter->workspace);
	bind_owner(&b, filter, filter->by_owner);
	sbx_sql_bind_int(&b, list->hours_from);
	sbx_sql_bind_int(&b, list->hours_to);
	sbx_sql_bind_int(&b, SBX_STORE_SANDBOXES_COUNTED);
	rc = sqlite3_step(list->boxes);
	if (rc != SQLITE_ROW)
		return sbx_sql_error(list->store->db, rc, READING, err);
	if (sqlite3_column_int64(list->boxes, 0) > n)
		n = sqlite3_column_int64(list->boxes, 0);
	*ret_n = n > n_rows ? n_rows : n < 1 ? 1 : n;
	return 0;
}

static int tell(const struct list *list, sqlite3_stmt *stmt,
		int (*fn)(const struct sbx_store_denies_row *d, void *userdata), void *userdata,
		struct sbx_err *err)
{
	const char *key = sbx_sql_text(stmt, 0);
	struct sbx_store_denies_row d = {
		.key = key && key[0] ? key : NULL,
		.count = sqlite3_column_int64(stmt, 1),
		.n_rows = sqlite3_column_int64(stmt, 2),
		.first_ts = sbx_sql_text(stmt, 4),
		.last_ts = sbx_sql_text(stmt, 5),
		.last_reason = sbx_sql_text(stmt, 6),
		.last_name = sbx_sql_text(stmt, 7),
		.last_ip = sbx_sql_text(stmt, 8),
		.last_rule = sbx_sql_text(stmt, 9),
		.last_port = sbx_sql_number(stmt, 10, SBX_STORE_NONE),
		.last_protocol = sbx_sql_text(stmt, 11),
	};
	int r = count_boxes(list, key ? key : "", d.n_rows, sqlite3_column_int64(stmt, 3), err,
			    &d.n_sandboxes);

	return r ? r : fn(&d, userdata);
}

static void bind_window(sqlite3_stmt *stmt, const struct scope *scope,
			const struct sbx_store_denials_filter *filter, const struct window *w)
{
	struct sbx_sql_binder b = { .stmt = stmt };

	bind_scope(&b, scope, filter);
	sbx_sql_bind_text(&b, w->since);
	sbx_sql_bind_text(&b, w->until);
	sbx_sql_bind_text(&b, w->head_end);
	sbx_sql_bind_text(&b, w->tail_begin);
	sbx_sql_bind_int(&b, filter->n_max ? filter->n_max : SBX_STORE_PAGE);
	for (int i = 0; i < N_RANGES; i++) {
		sbx_sql_bind_int(&b, w->ranges[i].from);
		sbx_sql_bind_int(&b, w->ranges[i].to);
	}
}

int sbx_store_denials_each(struct sbx_store *store, enum sbx_store_denies_by by,
			   const struct sbx_store_denials_filter *filter,
			   int (*fn)(const struct sbx_store_denies_row *d, void *userdata),
			   void *userdata, struct sbx_err *err)
{
	SBX_AUTO_STMT sqlite3_stmt *stmt = NULL, *boxes = NULL;
	struct list list = { .store = store, .by = by, .filter = filter };
	struct window w;
	int rc, r = sbx_sql_prepare(store->db, queries[by].sql, READING, err, &stmt);

	if (r == 0)
		r = sbx_sql_prepare(store->db, boxes_sql, READING, err, &boxes);
	if (r)
		return r;
	plan(filter, &w);
	find_scope(by, filter, &list.scope);
	bind_window(stmt, &list.scope, filter, &w);
	list.boxes = boxes;
	list.hours_from = filter->since_ms > 0 ? round_down(filter->since_ms / 1000, HOUR) : 0;
	list.hours_to = filter->until_ms > 0 ? round_up(filter->until_ms, 1000) / 1000 : OPEN;
	while ((rc = sqlite3_step(stmt)) == SQLITE_ROW) {
		r = tell(&list, stmt, fn, userdata, err);
		if (r)
			return r;
	}
	return rc == SQLITE_DONE ? 0 : sbx_sql_error(store->db, rc, READING, err);
}

/* --- over time --- */

/* ?9 span, ?10 key or NULL, ?11 and ?12 the range. */
#define MORE(key, which)                                                                           \
	"UNION ALL SELECT coalesce(CAST(strftime('%s', ts) AS INTEGER), 0) / ?9 * ?9, "            \
	"min(raw_pkts, 1000000000000) " EVENTS "(?10 IS NULL OR coalesce(" key ", '') = ?10) "     \
	"AND +ts >= ?7 AND +ts < ?8 AND " which
#define SERIES(counted, key)                                                                       \
	"WITH RECURSIVE part(span, lo, hi) AS (VALUES (?9, ?11, ?12))" STEPS                       \
	"SELECT at, sum(n) FROM (SELECT c.at AS at, c.n AS n FROM step "                           \
	"CROSS JOIN egress_deny_count AS c ON " COUNTS                                             \
	"AND (?10 IS NULL OR " counted " = ?10) WHERE step.at >= lo "                              \
	MORE(key, NOT_COUNTED " ") MORE(key, OVERFLOW) ") GROUP BY at ORDER BY at"

static const char *const series[] = {
	[SBX_DENIES_BY_ADDRESS] = SERIES("c.key", "remote_ip"),
	[SBX_DENIES_BY_NAME] = SERIES("c.key", "coalesce(fqdn_pinned, remote_ip)"),
	[SBX_DENIES_BY_SANDBOX] = SERIES("c.key", "sandbox_id"),
	[SBX_DENIES_BY_WORKSPACE] = SERIES("c.workspace", "workspace"),
	[SBX_DENIES_BY_REASON] = SERIES("c.key", "reason"),
};
static_assert(SBX_N_ELEMENTS(series) == SBX_N_DENIES_BY, "a query for each");

int sbx_store_denials_series(struct sbx_store *store, enum sbx_store_denies_by by, const char *key,
			     const struct sbx_store_denials_filter *filter,
			     enum sbx_store_span span,
			     int (*fn)(int64_t at_ms, int64_t count, void *userdata),
			     void *userdata, struct sbx_err *err)
{
	SBX_AUTO_STMT sqlite3_stmt *stmt = NULL;
	int64_t seconds = span == SBX_STORE_BY_MINUTE ? MINUTE : HOUR;
	int64_t from = round_down(filter->since_ms / 1000, seconds), to = OPEN;
	char since[SBX_SQL_TS_MAX], until[SBX_SQL_TS_MAX] = "\x7f";
	struct sbx_sql_binder b = { 0 };
	struct scope scope;
	int rc, r;

	/* In all: there are the fewest rows of reasons. */
	if (!key)
		by = SBX_DENIES_BY_REASON;
	r = sbx_sql_prepare(store->db, series[by], READING, err, &stmt);
	if (r)
		return r;
	if (filter->until_ms > 0) {
		to = round_up(filter->until_ms, seconds * 1000) / 1000;
		sbx_sql_ts(to * 1000, until);
	}
	b.stmt = stmt;
	find_scope(by, filter, &scope);
	bind_scope(&b, &scope, filter);
	sbx_sql_bind_text(&b, sbx_sql_ts(from * 1000, since));
	sbx_sql_bind_text(&b, until);
	sbx_sql_bind_int(&b, seconds);
	sbx_sql_bind_text(&b, key);
	sbx_sql_bind_int(&b, from);
	sbx_sql_bind_int(&b, to);
	while ((rc = sqlite3_step(stmt)) == SQLITE_ROW) {
		r = fn(sqlite3_column_int64(stmt, 0) * 1000, sqlite3_column_int64(stmt, 1),
		       userdata);
		if (r)
			return r;
	}
	return rc == SQLITE_DONE ? 0 : sbx_sql_error(store->db, rc, READING, err);
}
