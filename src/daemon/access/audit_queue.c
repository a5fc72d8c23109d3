/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/access/audit_queue.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "sys/process/proc.h"

static const struct timeval interval = { .tv_sec = SBX_AUDIT_RETRY_S };

struct waiting {
	struct waiting *next;
	struct sbx_store_audit row; /* its texts are owned */
};

struct sbx_audit_queue {
	struct sbx_store *store;
	struct event *retry;
	struct waiting *first, **end;
	size_t n;
	uint64_t n_lost;
};

static void waiting_free(struct waiting *w)
{
	free((char *)(uintptr_t)w->row.principal);
	free((char *)(uintptr_t)w->row.action);
	free((char *)(uintptr_t)w->row.object);
	free((char *)(uintptr_t)w->row.before_json);
	free((char *)(uintptr_t)w->row.after_json);
	free(w);
}

/* A copy of @from, in @*ret; NULL for NULL. False: no memory. */
static bool copy(const char *from, const char **ret)
{
	*ret = from ? strdup(from) : NULL;
	return *ret || !from;
}

static struct waiting *waiting_new(const struct sbx_store_audit *row)
{
	struct waiting *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->row.at_ms = row->at_ms;
	if (copy(row->principal, &w->row.principal) && copy(row->action, &w->row.action) &&
	    copy(row->object, &w->row.object) && copy(row->before_json, &w->row.before_json) &&
	    copy(row->after_json, &w->row.after_json))
		return w;
	waiting_free(w);
	return NULL;
}

static int tell_lost(struct sbx_audit_queue *q)
{
	char text[64];
	const struct sbx_store_audit row = {
		.at_ms = (int64_t)sbx_clock_realtime_ms(),
		.principal = "sbxd",
		.action = "audit rows lost",
		.after_json = text,
	};

	sbx_text_fit(text, sizeof(text), "{\"lost\":%llu}", (unsigned long long)q->n_lost);
	return sbx_store_audit_add(q->store, &row, NULL, NULL);
}

/* Could the database take a row, now or ever? One that it refuses for what it is, is lost. */
static int write_one(struct sbx_audit_queue *q, const struct sbx_store_audit *row)
{
	int r = sbx_store_audit_add(q->store, row, NULL, NULL);

	if (r != -EINVAL)
		return r;
	q->n_lost++;
	return 0;
}

static void flush(struct sbx_audit_queue *q)
{
	while (q->first && write_one(q, &q->first->row) == 0) {
		struct waiting *w = q->first;

		q->first = w->next;
		if (!q->first)
			q->end = &q->first;
		waiting_free(w);
		q->n--;
	}
	if (!q->first && q->n_lost && tell_lost(q) == 0)
		q->n_lost = 0;
	if (q->first || q->n_lost)
		event_add(q->retry, &interval);
}

static void on_retry(evutil_socket_t fd, short what, void *userdata)
{
	(void)fd;
	(void)what;
	flush(userdata);
}

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
	flush(q);
	while (q->first) {
		struct waiting *w = q->first;

		q->first = w->next;
		waiting_free(w);
	}
	event_free(q->retry);
	free(q);
	return NULL;
}

void sbx_audit_queue_add(struct sbx_audit_queue *q, const struct sbx_store_audit *row)
{
	struct waiting *w;

	if (!q->first && write_one(q, row) == 0)
		return;
	w = q->n < SBX_AUDIT_QUEUE_MAX ? waiting_new(row) : NULL;
	if (w) {
		*q->end = w;
		q->end = &w->next;
		q->n++;
	} else {
		q->n_lost++;
	}
	if (!event_pending(q->retry, EV_TIMEOUT, NULL))
		event_add(q->retry, &interval);
}
