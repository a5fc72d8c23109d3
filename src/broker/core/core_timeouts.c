/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "broker/core/core_timeouts.h"

#include <stddef.h>

void sbx_timeouts_init(struct sbx_timeouts *q, uint32_t timeout_ms)
{
	*q = (struct sbx_timeouts){ .timeout_ms = timeout_ms };
}

void sbx_timeout_disarm(struct sbx_timeout *t)
{
	if (!t->queue)
		return;
	if (t->prev)
		t->prev->next = t->next;
	else
		t->queue->first = t->next;
	if (t->next)
		t->next->prev = t->prev;
	else
		t->queue->last = t->prev;
	*t = (struct sbx_timeout){ 0 };
}

void sbx_timeout_arm(struct sbx_timeouts *q, struct sbx_timeout *t, uint64_t now_ms)
{
	uint64_t due_ms = now_ms + q->timeout_ms;

	if (t->queue == q && q->last == t) { /* a busy flow is at the end already */
		t->due_ms = due_ms;
		return;
	}
	sbx_timeout_disarm(t);
	if (q->timeout_ms == 0)
		return;
	t->queue = q;
	t->due_ms = due_ms;
	t->prev = q->last;
	if (q->last)
		q->last->next = t;
	else
		q->first = t;
	q->last = t;
}

struct sbx_timeout *sbx_timeouts_expired(struct sbx_timeouts *q, uint64_t now_ms)
{
	struct sbx_timeout *t = q->first;

	if (!t || t->due_ms > now_ms)
		return NULL;
	sbx_timeout_disarm(t);
	return t;
}

uint64_t sbx_timeouts_next_ms(const struct sbx_timeouts *q)
{
	return q->first ? q->first->due_ms : UINT64_MAX;
}
