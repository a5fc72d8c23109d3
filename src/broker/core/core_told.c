/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Names and addresses that were recorded. PURE.
 *
 * A ring in order of age, found through a chained hash. A new entry overwrites the oldest; a pair
 * that was overwritten is recorded again when it comes back. Entries are compared in full: a name
 * server could choose addresses that collide in a hash.
 */

#include "broker/core/core_told.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX

struct entry {
	char *name; /* NULL: unused */
	struct sbx_addr addr;
	uint32_t chain; /* the next of the same bucket, or NONE */
};

struct sbx_told {
	uint32_t n_max, n_buckets; /* n_buckets is a power of two */
	uint32_t next;		   /* the oldest entry, which is overwritten next */
	struct entry *ring;
	uint32_t *buckets;
};

int sbx_told_new(uint32_t n_max, struct sbx_told **ret_told)
{
	SBX_CLEANUP(sbx_told_freep) struct sbx_told *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->n_max = n_max ? n_max : 1;
	for (t->n_buckets = 16; t->n_buckets < t->n_max && t->n_buckets < 1u << 20;
	     t->n_buckets *= 2)
		;
	t->ring = calloc(t->n_max, sizeof(*t->ring));
	t->buckets = malloc(t->n_buckets * sizeof(*t->buckets));
	if (!t->ring || !t->buckets)
		return -ENOMEM;
	memset(t->buckets, 0xff, t->n_buckets * sizeof(*t->buckets));
	*ret_told = sbx_steal_ptr(&t);
	return 0;
}

struct sbx_told *sbx_told_free(struct sbx_told *t)
{
	if (!t)
		return NULL;
	for (uint32_t i = 0; t->ring && i < t->n_max; i++)
		free(t->ring[i].name);
	free(t->ring);
	free(t->buckets);
	free(t);
	return NULL;
}

static uint32_t *bucket_of(const struct sbx_told *t, const char *name, const struct sbx_addr *addr)
{
	uint32_t h = 2166136261u;

	for (; *name; name++)
		h = (h ^ (uint8_t)*name) * 16777619u;
	for (size_t i = 0; i < sizeof(addr->b); i++)
		h = (h ^ addr->b[i]) * 16777619u;
	return &t->buckets[h & (t->n_buckets - 1)];
}

static void forget(struct sbx_told *t, uint32_t index)
{
	struct entry *e = &t->ring[index];
	uint32_t *at;

	if (!e->name)
		return;
	at = bucket_of(t, e->name, &e->addr);
	while (*at != index)
		at = &t->ring[*at].chain;
	*at = e->chain;
	free(e->name);
	e->name = NULL;
}

bool sbx_told_add(struct sbx_told *t, const char *name, const struct sbx_addr *addr)
{
	uint32_t *bucket = bucket_of(t, name, addr), index = t->next;
	char *copy;

	for (uint32_t i = *bucket; i != NONE; i = t->ring[i].chain)
		if (sbx_addr_equal(&t->ring[i].addr, addr) && strcmp(t->ring[i].name, name) == 0)
			return false;
	copy = strdup(name);
	if (!copy)
		return true;
	forget(t, index);
	t->ring[index] = (struct entry){ .name = copy, .addr = *addr, .chain = *bucket };
	*bucket = index;
	t->next = (index + 1) % t->n_max;
	return true;
}
