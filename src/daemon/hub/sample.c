/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Entries are in a hash table of chains. The timer runs while there are entries. At each tick it
 * goes on from where it stopped, and asks until SBX_SAMPLE_AT_ONCE are under way: so many sandboxes
 * are spread over time, and none waits for ever. An entry that is being asked stays until it is
 * answered.
 */
#include "daemon/hub/sample.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/sandbox_id.h"
#include "base/text.h"
#include "daemon/hub/ask.h"
#include "sys/process/proc.h"

#define BUCKETS 1024 /* a power of two */

struct entry {
	struct entry *next;
	struct sbx_sampler *all;
	char id[SBX_ID_LEN + 1];
	uint64_t wanted_ms, due_ms;
	bool asking;
	json_t *usage; /* NULL: none yet */
};

struct sbx_sampler {
	struct event_base *base;
	const char *runtime_dir;
	struct event *tick;
	struct entry *buckets[BUCKETS];
	size_t n, n_asking, at;
};

static uint64_t now_ms(void)
{
	return sbx_clock_monotonic_us() / 1000;
}

static struct entry **bucket(struct sbx_sampler *s, const char *id)
{
	uint32_t h = 2166136261u;

	for (; *id; id++)
		h = (h ^ (unsigned char)*id) * 16777619u;
	return &s->buckets[h & (BUCKETS - 1)];
}

static void on_answer(void *userdata, int result, json_t *answer, const struct sbx_err *err)
{
	struct entry *e = userdata;
	json_t *usage = result == 0 ? json_object_get(answer, "usage") : NULL;

	(void)err;
	e->asking = false;
	e->all->n_asking--;
	e->due_ms = now_ms() + (usage ? SBX_SAMPLE_EVERY_MS : SBX_SAMPLE_FAILED_MS);
	json_decref(e->usage);
	e->usage = json_incref(usage);
}

static void ask(struct entry *e)
{
	struct sbx_sampler *s = e->all;

	e->asking = true;
	s->n_asking++;
	sbx_ask(s->base, s->runtime_dir, e->id, json_pack("{s:s}", "op", "usage"), NULL, 0,
		on_answer, e);
}

/* Asks the due entries of one bucket, and forgets those that nobody wants. */
static void visit(struct sbx_sampler *s, struct entry **p, uint64_t now)
{
	while (*p) {
		struct entry *e = *p;

		if (!e->asking && now - e->wanted_ms > SBX_SAMPLE_WANTED_MS) {
			*p = e->next;
			s->n--;
			json_decref(e->usage);
			free(e);
			continue;
		}
		if (!e->asking && now >= e->due_ms && s->n_asking < SBX_SAMPLE_AT_ONCE)
			ask(e);
		p = &e->next;
	}
}

static void on_tick(evutil_socket_t fd, short what, void *userdata)
{
	struct sbx_sampler *s = userdata;
	uint64_t now = now_ms();

	(void)fd;
	(void)what;
	for (size_t i = 0; i < BUCKETS && s->n_asking < SBX_SAMPLE_AT_ONCE; i++) {
		visit(s, &s->buckets[s->at], now);
		s->at = (s->at + 1) & (BUCKETS - 1);
	}
	if (s->n == 0)
		event_del(s->tick);
}

static struct entry *add(struct sbx_sampler *s, const char *id)
{
	static const struct timeval interval = { .tv_usec = SBX_SAMPLE_TICK_MS * 1000 };
	struct entry **p = bucket(s, id), *e = NULL;

	if (s->n < SBX_SAMPLE_MAX)
		e = calloc(1, sizeof(*e));
	if (!e)
		return NULL;
	e->all = s;
	sbx_text_cut(e->id, sizeof(e->id), "%s", id);
	e->next = *p;
	*p = e;
	s->n++;
	if (!event_pending(s->tick, EV_TIMEOUT, NULL))
		event_add(s->tick, &interval);
	return e;
}

json_t *sbx_sampler_get(struct sbx_sampler *s, const char *id)
{
	struct entry *e = *bucket(s, id);

	while (e && strcmp(e->id, id) != 0)
		e = e->next;
	if (!e)
		e = add(s, id);
	if (!e)
		return NULL;
	e->wanted_ms = now_ms();
	return e->usage;
}

int sbx_sampler_new(struct event_base *base, const char *runtime_dir,
		    struct sbx_sampler **ret_sampler)
{
	struct sbx_sampler *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->base = base;
	s->runtime_dir = runtime_dir;
	s->tick = event_new(base, -1, EV_PERSIST, on_tick, s);
	if (!s->tick) {
		free(s);
		return -ENOMEM;
	}
	*ret_sampler = s;
	return 0;
}

struct sbx_sampler *sbx_sampler_free(struct sbx_sampler *s)
{
	if (!s)
		return NULL;
	for (size_t i = 0; i < BUCKETS; i++)
		while (s->buckets[i]) {
			struct entry *e = s->buckets[i];

			s->buckets[i] = e->next;
			json_decref(e->usage);
			free(e);
		}
	event_free(s->tick);
	free(s);
	return NULL;
}
