/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Leases. PURE.
 *
 * A ring of leases in order of age, found through a chained hash on the address. The ring is as
 * long as the limit, so memory is bounded by it; a new lease overwrites the oldest.
 */

#include "broker/names/leases.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX

struct lease {
	struct sbx_addr addr; /* family 0: unused */
	char *name;
	uint64_t until_ms;
	uint32_t chain; /* the next of the same bucket, or NONE */
};

struct sbx_leases {
	uint32_t n_max, n_buckets; /* n_buckets is a power of two */
	uint32_t next;		   /* the oldest lease, which is overwritten next */
	struct lease *ring;
	uint32_t *buckets;
};

int sbx_leases_new(uint32_t n_max, struct sbx_leases **ret_leases)
{
	SBX_CLEANUP(sbx_leases_freep) struct sbx_leases *l = calloc(1, sizeof(*l));

	if (!l)
		return -ENOMEM;
	l->n_max = n_max ? n_max : 1;
	for (l->n_buckets = 16; l->n_buckets < l->n_max; l->n_buckets *= 2)
		;
	l->ring = calloc(l->n_max, sizeof(*l->ring));
	l->buckets = malloc(l->n_buckets * sizeof(*l->buckets));
	if (!l->ring || !l->buckets)
		return -ENOMEM;
	for (uint32_t i = 0; i < l->n_buckets; i++)
		l->buckets[i] = NONE;
	*ret_leases = sbx_steal_ptr(&l);
	return 0;
}

struct sbx_leases *sbx_leases_free(struct sbx_leases *l)
{
	if (!l)
		return NULL;
	for (uint32_t i = 0; l->ring && i < l->n_max; i++)
		free(l->ring[i].name);
	free(l->ring);
	free(l->buckets);
	free(l);
	return NULL;
}

static uint32_t *bucket_of(const struct sbx_leases *l, const struct sbx_addr *addr)
{
	uint32_t h = 2166136261u;

	for (size_t i = 0; i < sizeof(addr->b); i++)
		h = (h ^ addr->b[i]) * 16777619u;
	return &l->buckets[h & (l->n_buckets - 1)];
}

static uint32_t find(const struct sbx_leases *l, const struct sbx_addr *addr)
{
	uint32_t i = *bucket_of(l, addr);

	while (i != NONE && !sbx_addr_equal(&l->ring[i].addr, addr))
		i = l->ring[i].chain;
	return i;
}

static void unlink_lease(struct sbx_leases *l, uint32_t index)
{
	uint32_t *at = bucket_of(l, &l->ring[index].addr);

	while (*at != index)
		at = &l->ring[*at].chain;
	*at = l->ring[index].chain;
}

int sbx_leases_add(struct sbx_leases *l, const struct sbx_addr *addr, const char *name,
		   uint32_t ttl_s, uint64_t now_ms)
{
	uint64_t until_ms = now_ms + 1000ull * (ttl_s > SBX_LEASE_MIN_S ? ttl_s : SBX_LEASE_MIN_S);
	uint32_t i = find(l, addr), *bucket;
	char *copy = NULL;

	if (i != NONE && strcmp(l->ring[i].name, name) == 0) {
		l->ring[i].until_ms = until_ms;
		return 0;
	}
	copy = strdup(name);
	if (!copy)
		return -ENOMEM;
	if (i == NONE) {
		i = l->next;
		l->next = (i + 1) % l->n_max;
		if (l->ring[i].addr.family)
			unlink_lease(l, i);
		l->ring[i].addr = *addr;
		bucket = bucket_of(l, addr);
		l->ring[i].chain = *bucket;
		*bucket = i;
	}
	free(l->ring[i].name);
	l->ring[i].name = copy;
	l->ring[i].until_ms = until_ms;
	return 0;
}

const char *sbx_leases_name(const struct sbx_leases *l, const struct sbx_addr *addr,
			    uint64_t now_ms)
{
	uint32_t i = find(l, addr);

	return i != NONE && l->ring[i].until_ms > now_ms ? l->ring[i].name : NULL;
}
