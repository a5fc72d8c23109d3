/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Events: a page of them, the newest first, or a stream that goes on.
 *
 * A page whose filter no index serves is read in several turns of the loop, and after BUDGET_US it
 * ends where it is: then it has fewer items than were asked for, and a cursor.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "daemon/hub/watch.h"
#include "daemon/resources/daemon.h"
#include "daemon/resources/print.h"
#include "daemon/resources/sandbox_find.h"
#include "daemon/rows/rows.h"
#include "daemon/rows/scope.h"
#include "sys/process/proc.h"

#define BUDGET_US 2000000
#define TIME_MAX  32

/* The query as a filter, with texts of the call. False: it was answered. */
static bool read_filter(struct sbx_call *call, struct sbx_store_event_filter *ret)
{
	const char *since = sbx_call_text(call, "since"), *until = sbx_call_text(call, "until");
	struct sbx_scope scope;

	if (!sbx_call_scope(call, &scope))
		return false;
	*ret = (struct sbx_store_event_filter){
		.sandbox_id = sbx_call_text(call, "sandbox"),
		.workspace = scope.workspace,
		.by_owner = scope.by_owner,
		.owner_uid = scope.owner_uid,
		.action = sbx_call_text(call, "action"),
		.reason = sbx_call_text(call, "reason"),
		.name = sbx_call_text(call, "name"),
		.remote_ip = sbx_call_text(call, "ip"),
		.since_ms = since ? sbx_parse_time(since) : 0,
		.until_ms = until ? sbx_parse_time(until) : 0,
	};
	return true;
}

/* --- a page --- */

struct page {
	struct sbx_call *call;
	struct sbx_store_event_filter filter;
	struct event *turn;
	json_t *items;
	size_t limit;
	uint64_t end_us;
};

static int take_row(const struct sbx_store_event_row *e, void *userdata)
{
	struct page *p = userdata;

	return json_array_append_new(p->items, sbx_print_event(e)) == 0 ? 0 : -ENOMEM;
}

static void page_free(struct page *p)
{
	if (p->turn)
		event_free(p->turn);
	json_decref(p->items);
	free(p);
}

/* Reads on until the page is full, the rows are over, or the time is. */
static void on_turn(evutil_socket_t fd, short what, void *userdata)
{
	static const struct timeval now = { 0 };
	struct page *p = userdata;
	struct sbx_err err = { 0 };
	int64_t next = 0;
	int r;

	(void)fd;
	(void)what;
	p->filter.n_max = (uint32_t)(p->limit - json_array_size(p->items));
	r = sbx_store_events_look(p->call->daemon->store, &p->filter, SBX_STORE_LOOK_IDS, take_row,
				  p, &err, &next);
	if (next <= p->filter.after + 1)
		next = 0;
	p->filter.before = next;
	if (r == 0 && next && json_array_size(p->items) < p->limit &&
	    sbx_clock_monotonic_us() < p->end_us && evtimer_add(p->turn, &now) == 0)
		return;
	if (r == 0)
		sbx_reply_json(p->call, 200, sbx_print_page(json_incref(p->items), next));
	else
		sbx_call_store_failed(p->call, r, &err);
	page_free(p);
}

static void list_events(struct sbx_call *call, const struct sbx_store_event_filter *filter)
{
	struct page *p = calloc(1, sizeof(*p));

	if (!p) {
		sbx_reply_json(call, 200, NULL);
		return;
	}
	*p = (struct page){ .call = call,
			    .filter = *filter,
			    .turn = evtimer_new(call->daemon->base, on_turn, p),
			    .items = json_array(),
			    .limit = (size_t)sbx_call_number(call, "limit", SBX_ROWS_LIMIT),
			    .end_us = sbx_clock_monotonic_us() + BUDGET_US };
	p->filter.newest_first = true;
	p->filter.before = sbx_call_number(call, "cursor", 0);
	p->filter.after = sbx_call_number(call, "after", 0);
	if (p->turn && p->items) {
		on_turn(-1, 0, p);
		return;
	}
	page_free(p);
	sbx_reply_json(call, 200, NULL);
}

/* --- a stream --- */

struct stream {
	struct sbx_stream *out;
	struct sbx_follower *follower;
	struct sbx_store_event_filter filter;
	json_t *query; /* has the filter's texts, except for the next two */
	char sandbox_id[SBX_ID_LEN + 1], workspace[SBX_WORKSPACE_MAX];
	char since[TIME_MAX], until[TIME_MAX]; /* as an event has its time; "": any */
};

static bool is_equal(const char *wanted, const char *text)
{
	return !wanted || (text && strcmp(wanted, text) == 0);
}

static bool wants(const struct sbx_store_event_row *e, void *userdata)
{
	const struct stream *s = userdata;
	const struct sbx_store_event_filter *f = &s->filter;

	if (f->by_owner && e->owner_uid != (int64_t)f->owner_uid)
		return false;
	if (s->since[0] && strcmp(e->ts, s->since) < 0)
		return false;
	if (s->until[0] && strcmp(e->ts, s->until) >= 0)
		return false;
	return is_equal(f->sandbox_id, e->sandbox_id) && is_equal(f->workspace, e->workspace) &&
	       is_equal(f->action, e->action) && is_equal(f->reason, e->reason) &&
	       is_equal(f->name, e->name) && is_equal(f->remote_ip, e->remote_ip);
}

static int send_event(const char *event, const char *id, const char *data, void *userdata)
{
	const struct stream *s = userdata;

	return sbx_stream_send(s->out, event, id, data);
}

static size_t waiting(void *userdata)
{
	const struct stream *s = userdata;

	return sbx_stream_waiting(s->out);
}

static void on_closed(void *userdata)
{
	struct stream *s = userdata;

	sbx_watch_leave(s->follower);
	json_decref(s->query);
	free(s);
}

static void put_time(int64_t ms, char out[TIME_MAX])
{
	json_t *text = ms > 0 ? sbx_print_time(ms) : NULL;
	const char *s = json_string_value(text);

	sbx_text_fit(out, TIME_MAX, "%s", s ? s : "");
	json_decref(text);
}

/* NULL: no memory. */
static struct stream *stream_new(const struct sbx_call *call,
				 const struct sbx_store_event_filter *filter)
{
	struct stream *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->query = json_incref(call->query);
	s->filter = *filter;
	if (filter->sandbox_id) {
		sbx_text_cut(s->sandbox_id, sizeof(s->sandbox_id), "%s", filter->sandbox_id);
		s->filter.sandbox_id = s->sandbox_id;
	}
	if (filter->workspace) {
		sbx_text_cut(s->workspace, sizeof(s->workspace), "%s", filter->workspace);
		s->filter.workspace = s->workspace;
	}
	put_time(filter->since_ms, s->since);
	put_time(filter->until_ms, s->until);
	return s;
}

/* The row that the client has seen; with a time and no row, those before it; -1: it begins with
 * now. False: it was answered. */
static bool read_after(struct sbx_call *call, const struct sbx_store_event_filter *filter,
		       int64_t *ret_after)
{
	char *end;

	*ret_after = sbx_call_number(call, "after", filter->since_ms > 0 ? 0 : -1);
	if (!call->last_event_id || !call->last_event_id[0])
		return true;
	errno = 0;
	*ret_after = strtoll(call->last_event_id, &end, 10);
	if (errno == 0 && !*end && *ret_after >= 0)
		return true;
	sbx_reply_problem(call, 400, "invalid", "Last-Event-ID", "it is no id of an event");
	return false;
}

static void follow_events(struct sbx_call *call, const struct sbx_store_event_filter *filter)
{
	struct sbx_watch *watch = call->daemon->watch;
	struct sbx_follow follow = { .wants = wants,
				     .send = send_event,
				     .waiting = waiting,
				     .queue_max = SBX_STREAM_QUEUE_MAX / 2 };
	struct sbx_err err = { 0 };
	struct stream *s;
	int64_t after;
	int r;

	if (!read_after(call, filter, &after))
		return;
	s = stream_new(call, filter);
	if (!s) {
		sbx_reply_json(call, 200, NULL);
		return;
	}
	follow.filter = s->filter;
	follow.userdata = s;
	r = sbx_watch_follow(watch, &follow, after, &s->follower, &err);
	if (r != 0) {
		on_closed(s);
		sbx_call_store_failed(call, r, &err);
		return;
	}
	s->out = sbx_reply_stream(call, on_closed, s);
	if (!s->out)
		on_closed(s);
}

/* --- the handlers --- */

static void answer(struct sbx_call *call, const struct sbx_store_event_filter *filter)
{
	if (call->wants_events)
		follow_events(call, filter);
	else
		list_events(call, filter);
}

void sbx_list_events(struct sbx_call *call)
{
	struct sbx_store_event_filter filter;

	if (read_filter(call, &filter))
		answer(call, &filter);
}

void sbx_list_sandbox_events(struct sbx_call *call)
{
	struct sbx_store_event_filter filter;
	json_t *sandbox = sbx_call_sandbox(call, call->found.params[0]);

	json_decref(sandbox);
	if (!sandbox || !read_filter(call, &filter))
		return;
	/* the sandbox was judged: its events need not be looked up by owner */
	filter.by_owner = false;
	filter.sandbox_id = call->found.params[0];
	answer(call, &filter);
}
