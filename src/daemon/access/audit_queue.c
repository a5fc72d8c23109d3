/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/access/audit_queue.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "sys/process/proc.h"

static const struct timeval interval = { .tv_sec = SBX_AUDIT_RETRY_S };

/* The end of a row, or a row that is not written. Texts are owned. */
struct waiting {
	struct waiting *next;
	int64_t id; /* below 0: the row is not written */
	struct sbx_store_audit row;
	enum sbx_audit_end end;
	const char *after_json;
};

struct sbx_audit_queue {
	struct sbx_store *store;
	struct event *retry;
	struct waiting *first, **end;
	size_t n;
	int64_t last_id; /* of a row that was not written; they go down from 0 */
	uint64_t n_lost;
};

static void waiting_free(struct waiting *w)
{
	free((char *)(uintptr_t)w->row.principal);
	free((char *)(uintptr_t)w->row.action);
	free((char *)(uintptr_t)w->row.object);
	free((char *)(uintptr_t)w->row.before_json);
	free((char *)(uintptr_t)w->row.after_json);
	free((char *)(uintptr_t)w->after_json);
	free(w);
}

/* A copy of @from, in @*ret; NULL for NULL. False: no memory. */
static bool copy(const char *from, const char **ret)
{
	*ret = from ? strdup(from) : NULL;
	return *ret || !from;
}

/* A copy of @from, unless NULL. NULL: no memory. */
static struct waiting *waiting_new(int64_t id, const struct sbx_store_audit *from)
{
	struct waiting *w = calloc(1, sizeof(*w));
	struct sbx_store_audit *row;

	if (!w)
		return NULL;
	w->id = id;
	row = &w->row;
	if (!from)
		return w;
	row->at_ms = from->at_ms;
	if (copy(from->principal, &row->principal) && copy(from->action, &row->action) &&
	    copy(from->object, &row->object) && copy(from->before_json, &row->before_json) &&
	    copy(from->after_json, &row->after_json))
		return w;
	waiting_free(w);
	return NULL;
}

/* --- writing --- */

static int tell_lost(struct sbx_audit_queue *q)
{
	char text[64];
	const struct sbx_store_audit row = {
		.at_ms = (int64_t)sbx_clock_realtime_ms(),
		.principal = "sbxd",
		.action = "audit rows lost",
		.after_json = text,
		.made = true,
	};

	sbx_text_fit(text, sizeof(text), "{\"lost\":%llu}", (unsigned long long)q->n_lost);
	return sbx_store_audit_add(q->store, &row, NULL, NULL);
}

static int write_row(struct sbx_audit_queue *q, const struct waiting *w)
{
	struct sbx_store_audit row = w->row;

	row.made = w->end == SBX_AUDIT_MADE;
	if (w->after_json)
		row.after_json = w->after_json;
	return sbx_store_audit_add(q->store, &row, NULL, NULL);
}

/* Could the database take it, now or ever? */
static bool write_one(struct sbx_audit_queue *q, const struct waiting *w)
{
	int r;

	if (w->id < 0)
		r = write_row(q, w);
	else if (w->end == SBX_AUDIT_MADE)
		r = sbx_store_audit_made(q->store, w->id, w->after_json, NULL);
	else
		r = sbx_store_audit_remove(q->store, w->id, NULL);
	if (r == -EINVAL && w->id < 0)
		q->n_lost++;
	return r == 0 || r == -EINVAL;
}

static void arm(struct sbx_audit_queue *q)
{
	if ((q->first || q->n_lost) && !event_pending(q->retry, EV_TIMEOUT, NULL))
		event_add(q->retry, &interval);
}

/* Removes what stands at @at. */
static void drop(struct sbx_audit_queue *q, struct waiting **at)
{
	struct waiting *w = *at;

	*at = w->next;
	if (!*at)
		q->end = at;
	waiting_free(w);
	q->n--;
}

/* Rows whose end is still to come stay, unless @all are to be written. */
static void flush(struct sbx_audit_queue *q, bool all)
{
	struct waiting **at = &q->first;

	while (*at) {
		if ((*at)->end == SBX_AUDIT_OPEN && !all)
			at = &(*at)->next;
		else if (write_one(q, *at))
			drop(q, at);
		else
			break;
	}
	if (!*at && q->n_lost && tell_lost(q) == 0)
		q->n_lost = 0;
}

static void on_retry(evutil_socket_t fd, short what, void *userdata)
{
	(void)fd;
	(void)what;
	flush(userdata, false);
	arm(userdata);
}

/* --- the queue --- */

int sbx_audit_queue_new(struct event_base *base, struct sbx_store *store,
			struct sbx_audit_queue **ret_queue)
{
	struct sbx_audit_queue *q = calloc(1, sizeof(*q));

	if (!q)
		return -ENOMEM;
	q->store = store;
	q->end = &q->first;
	q->retry = event_new(base, -1, 0, on_retry, q);
	if (!q->retry) {
		free(q);
		return -ENOMEM;
	}
	*ret_queue = q;
	return 0;
}

struct sbx_audit_queue *sbx_audit_queue_free(struct sbx_audit_queue *q)
{
	if (!q)
		return NULL;
	flush(q, true);
	while (q->first)
		drop(q, &q->first);
	event_free(q->retry);
	free(q);
	return NULL;
}

/* Takes @w. NULL: there is no room, or no memory. */
static struct waiting *append(struct sbx_audit_queue *q, struct waiting *w)
{
	if (!w || q->n == SBX_AUDIT_QUEUE_MAX) {
		if (w)
			waiting_free(w);
		return NULL;
	}
	*q->end = w;
	q->end = &w->next;
	q->n++;
	return w;
}

int64_t sbx_audit_queue_begin(struct sbx_audit_queue *q, const struct sbx_store_audit *row)
{
	int64_t id;

	if (sbx_store_audit_add(q->store, row, NULL, &id) == 0)
		return id;
	id = --q->last_id;
	if (!append(q, waiting_new(id, row)))
		q->n_lost++;
	arm(q);
	return id;
}

/* Where row @id waits, or the end. */
static struct waiting **find(struct sbx_audit_queue *q, int64_t id)
{
	struct waiting **at = &q->first;

	while (*at && (*at)->id != id)
		at = &(*at)->next;
	return at;
}

static void end_waiting(struct sbx_audit_queue *q, int64_t id, enum sbx_audit_end end,
			const char *after_json)
{
	struct waiting **at = find(q, id);

	if (*at && id < 0 && end == SBX_AUDIT_REFUSED) {
		drop(q, at);
	} else if (*at) {
		(*at)->end = end;
		copy(after_json, &(*at)->after_json);
	}
}

void sbx_audit_queue_end(struct sbx_audit_queue *q, int64_t id, enum sbx_audit_end end,
			 const char *after_json)
{
	const struct waiting now = { .id = id, .end = end, .after_json = after_json };

	if (id > 0 && (end == SBX_AUDIT_UNKNOWN || write_one(q, &now)))
		return;
	if (id > 0)
		append(q, waiting_new(id, NULL));
	end_waiting(q, id, end, after_json);
	arm(q);
}
