/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/access/audit_queue.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>


static const struct timeval interval = { .tv_sec = SBX_AUDIT_RETRY_S };

struct ending {
	struct ending *next;
	int64_t id;
	bool made;
	char *after_json; /* owned */
};

struct sbx_audit_queue {
	struct sbx_store *store;
	struct event *retry;
	struct ending *first, **end;
	size_t n;
};

static void ending_free(struct ending *e)
{
	free(e->after_json);
	free(e);
}

/* NULL: no memory. */
static struct ending *ending_copy(const struct ending *from)
{
	struct ending *e = malloc(sizeof(*e));

	if (!e)
		return NULL;
	*e = *from;
	e->next = NULL;
	e->after_json = from->after_json ? strdup(from->after_json) : NULL;
	if (e->after_json || !from->after_json)
		return e;
	free(e);
	return NULL;
}

/* Could the database take it, now or ever? */
static bool write_one(struct sbx_audit_queue *q, const struct ending *e)
{
	int r = e->made ? sbx_store_audit_made(q->store, e->id, e->after_json, NULL) :
			  sbx_store_audit_remove(q->store, e->id, NULL);

	return r == 0 || r == -EINVAL;
}

static void flush(struct sbx_audit_queue *q)
{
	while (q->first && write_one(q, q->first)) {
		struct ending *e = q->first;

		q->first = e->next;
		if (!q->first)
			q->end = &q->first;
		ending_free(e);
		q->n--;
	}
	if (q->first)
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
		struct ending *e = q->first;

		q->first = e->next;
		ending_free(e);
	}
	event_free(q->retry);
	free(q);
	return NULL;
}

static void add(struct sbx_audit_queue *q, const struct ending *ending)
{
	struct ending *e;

	if (!q->first && write_one(q, ending))
		return;
	e = q->n < SBX_AUDIT_QUEUE_MAX ? ending_copy(ending) : NULL;
	if (!e)
		return;
	*q->end = e;
	q->end = &e->next;
	q->n++;
	if (!event_pending(q->retry, EV_TIMEOUT, NULL))
		event_add(q->retry, &interval);
}

void sbx_audit_queue_made(struct sbx_audit_queue *q, int64_t id, const char *after_json)
{
	add(q, &(struct ending){ .id = id,
				 .made = true,
				 .after_json = (char *)(uintptr_t)after_json });
}

void sbx_audit_queue_remove(struct sbx_audit_queue *q, int64_t id)
{
	add(q, &(struct ending){ .id = id });
}
