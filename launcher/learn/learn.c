/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The things that a run wanted, each different one once. The sandbox decides how many there are, so
 * the table is bounded, and its search looks at hashes.
 */
#include "launcher/learn/learn.h"

#include <stdlib.h>
#include <string.h>

#include "base/count.h"

#define ROOM_AT_FIRST 16

/* FNV-1a */
static uint32_t hash_bytes(uint32_t hash, const void *p, size_t n)
{
	const unsigned char *c = p;

	for (size_t i = 0; i < n; i++)
		hash = (hash ^ c[i]) * 16777619u;
	return hash;
}

static uint32_t hash_event(const struct sbx_event *e)
{
	const uint8_t kinds[] = { e->action, e->proto, e->reason, e->port & 0xff, e->port >> 8 };
	uint32_t hash = hash_bytes(2166136261u, kinds, sizeof(kinds));

	hash = hash_bytes(hash, e->name, strlen(e->name) + 1);
	hash = hash_bytes(hash, e->rule, strlen(e->rule) + 1);
	return hash_bytes(hash, e->request, strlen(e->request));
}

/* A name's addresses are not looked at: a server with many is one. */
static bool is_same(const struct sbx_event *a, const struct sbx_event *b)
{
	return a->action == b->action && a->reason == b->reason && a->proto == b->proto &&
	       a->port == b->port && strcmp(a->name, b->name) == 0 &&
	       (a->name[0] || sbx_addr_equal(&a->addr, &b->addr)) &&
	       strcmp(a->rule, b->rule) == 0 && strcmp(a->request, b->request) == 0;
}

/* Makes room for one more. False: there is none. */
static bool grow(struct sbx_learn *l)
{
	size_t n_room = l->n_room ? 2 * l->n_room : ROOM_AT_FIRST;
	struct sbx_learned *v;

	if (l->n < l->n_room)
		return true;
	if (l->n == SBX_LEARN_MAX)
		return false;
	v = realloc(l->v, n_room * sizeof(*v));
	if (!v)
		return false;
	l->v = v;
	l->n_room = n_room;
	return true;
}

void sbx_learn_event(struct sbx_learn *l, const struct sbx_event *e)
{
	uint32_t hash = hash_event(e);

	for (size_t i = 0; i < l->n; i++) {
		struct sbx_learned *x = &l->v[i];

		if (x->hash != hash || !is_same(&x->e, e))
			continue;
		x->e.count = sbx_count_add(x->e.count, e->count);
		if (e->ts_ms > x->last_ms)
			x->last_ms = e->ts_ms;
		return;
	}
	if (e->reason == SBX_REASON_OVERFLOW || !grow(l)) {
		l->n_others = sbx_count_add(l->n_others, e->count);
		return;
	}
	l->v[l->n++] = (struct sbx_learned){ .e = *e, .last_ms = e->ts_ms, .hash = hash };
}

void sbx_learn_fini(struct sbx_learn *l)
{
	free(l->v);
	*l = SBX_LEARN_INIT;
}
