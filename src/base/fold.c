/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The event folder.
 *
 * Slots live in one slab allocated at the start. A used slot is in a hash chain and in a list. The
 * list is in the order of first sight, in which the windows end too, so a flush takes from the
 * list's head and never searches. Free slots are stacked: a quiet sandbox uses the same few slots
 * again and again, and the rest of the slab is never paged in.
 *
 * The overflow rows, one per action, stand outside the slab: there is always room for a count.
 * Incoming events that are overflow rows already (the broker's, seen by the launcher) go there
 * directly, whatever else they carry. Counts saturate instead of wrapping.
 *
 * Limits: n_keys slots, as many hash buckets rounded up; a chain is walked by comparing 64-bit
 * hashes, so even if the seed leaked an add costs at most n_keys comparisons.
 */

#include "base/fold.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/count.h"

#define N_KEYS_MAX 65536
#define NONE	   UINT32_MAX

struct slot {
	struct sbx_event v;
	uint64_t hash;
	uint64_t first_ms; /* when the event was first seen, by the caller's clock */
	uint32_t chain;	   /* next in the bucket; of a free slot: the next free slot */
	uint32_t next;	   /* next younger */
};

struct overflow {
	struct sbx_event v; /* count 0: nothing held */
	uint64_t first_ms;
};

struct sbx_fold {
	struct slot *slots;
	uint32_t n_slots;
	uint32_t n_touched; /* slots from here on were never used */
	uint32_t free_list;
	uint32_t oldest, youngest;
	uint32_t *buckets;
	uint32_t mask; /* number of buckets - 1; a power of two */
	uint32_t window_ms;
	uint64_t seed;
	uint64_t n_folded, n_overflowed;
	struct overflow overflow[SBX_N_ACTIONS];
};

int sbx_fold_new(uint32_t n_keys, uint32_t window_ms, uint64_t seed,
		 struct sbx_fold **ret_fold)
{
	struct sbx_fold *f;
	uint32_t n_buckets = 1;

	if (n_keys == 0 || n_keys > N_KEYS_MAX || window_ms == 0)
		return -EINVAL;
	while (n_buckets < n_keys)
		n_buckets *= 2;
	f = calloc(1, sizeof(*f));
	if (!f)
		return -ENOMEM;
	f->slots = calloc(n_keys, sizeof(*f->slots));
	f->buckets = malloc(n_buckets * sizeof(*f->buckets));
	if (!f->slots || !f->buckets) {
		sbx_fold_free(f);
		return -ENOMEM;
	}
	f->n_slots = n_keys;
	f->mask = n_buckets - 1;
	f->window_ms = window_ms;
	f->seed = seed;
	f->free_list = f->oldest = f->youngest = NONE;
	memset(f->buckets, 0xff, n_buckets * sizeof(*f->buckets));
	*ret_fold = f;
	return 0;
}

struct sbx_fold *sbx_fold_free(struct sbx_fold *f)
{
	if (f) {
		free(f->slots);
		free(f->buckets);
		free(f);
	}
	return NULL;
}

/* @v is folded into @sum. */
static void add_amounts(struct sbx_event *sum, const struct sbx_event *v)
{
	if (v->ts_ms < sum->ts_ms)
		sum->ts_ms = v->ts_ms;
	sum->count = sbx_count_add(sum->count, v->count);
	sum->bytes_out = sbx_count_add(sum->bytes_out, v->bytes_out);
	sum->bytes_in = sbx_count_add(sum->bytes_in, v->bytes_in);
	if (v->duration_ms > sum->duration_ms)
		sum->duration_ms = v->duration_ms;
}

/* --- the key --- */

static uint64_t mix(uint64_t h)
{
	h ^= h >> 32;
	h *= UINT64_C(0xd6e8feb86659fd93);
	h ^= h >> 32;
	return h;
}

static uint64_t hash_bytes(uint64_t h, const void *p, size_t n)
{
	const uint8_t *b = p;
	uint64_t word;

	for (; n >= sizeof(word); b += sizeof(word), n -= sizeof(word)) {
		memcpy(&word, b, sizeof(word));
		h = mix(h ^ word);
	}
	word = n; /* so that "a" + "b" and "ab" + "" differ */
	for (; n; n--)
		word = word << 8 | *b++;
	return mix(h ^ word);
}

static uint64_t hash_event(uint64_t seed, const struct sbx_event *v)
{
	const uint8_t head[] = {
		v->action,	 v->proto, v->reason, v->addr.family, (uint8_t)(v->port >> 8),
		(uint8_t)v->port
	};
	uint64_t h = hash_bytes(seed, head, sizeof(head));

	h = hash_bytes(h, &v->generation, sizeof(v->generation));
	h = hash_bytes(h, v->addr.b, sizeof(v->addr.b));
	h = hash_bytes(h, v->name, strlen(v->name));
	h = hash_bytes(h, v->rule, strlen(v->rule));
	return hash_bytes(h, v->request, strlen(v->request));
}

static bool same_event(const struct sbx_event *a, const struct sbx_event *b)
{
	return a->action == b->action && a->proto == b->proto && a->reason == b->reason &&
	       a->port == b->port && a->generation == b->generation &&
	       sbx_addr_equal(&a->addr, &b->addr) &&
	       strcmp(a->name, b->name) == 0 && strcmp(a->rule, b->rule) == 0 &&
	       strcmp(a->request, b->request) == 0;
}

/* --- slots --- */

static struct slot *slot_find(struct sbx_fold *f, uint64_t hash, const struct sbx_event *v)
{
	for (uint32_t i = f->buckets[hash & f->mask]; i != NONE; i = f->slots[i].chain) {
		struct slot *s = &f->slots[i];

		if (s->hash == hash && same_event(&s->v, v))
			return s;
	}
	return NULL;
}

/* Puts a free slot into its chain and at the young end of the list; NULL: all slots are used. */
static struct slot *slot_take(struct sbx_fold *f, uint64_t hash, uint64_t now_ms)
{
	uint32_t i = f->free_list, *bucket = &f->buckets[hash & f->mask];
	struct slot *s;

	if (i != NONE)
		f->free_list = f->slots[i].chain;
	else if (f->n_touched < f->n_slots)
		i = f->n_touched++;
	else
		return NULL;
	s = &f->slots[i];
	s->hash = hash;
	s->first_ms = now_ms;
	s->next = NONE;
	s->chain = *bucket;
	*bucket = i;
	if (f->youngest == NONE)
		f->oldest = i;
	else
		f->slots[f->youngest].next = i;
	f->youngest = i;
	return s;
}

static void release_oldest(struct sbx_fold *f)
{
	uint32_t i = f->oldest;
	struct slot *s = &f->slots[i];
	uint32_t *link = &f->buckets[s->hash & f->mask];

	while (*link != i)
		link = &f->slots[*link].chain;
	*link = s->chain;
	f->oldest = s->next;
	if (f->oldest == NONE)
		f->youngest = NONE;
	s->chain = f->free_list;
	f->free_list = i;
}

/* --- adding and flushing --- */

static void overflow_add(struct sbx_fold *f, const struct sbx_event *v, uint64_t now_ms)
{
	/* An action out of range can only be a bug; it must not hide a denial. */
	unsigned action = v->action < SBX_N_ACTIONS ? v->action : SBX_DENY;
	struct overflow *o = &f->overflow[action];

	if (o->v.count == 0) {
		o->first_ms = now_ms;
		o->v = (struct sbx_event){
			.ts_ms = v->ts_ms,
			.action = (uint8_t)action,
			.proto = SBX_PROTO_OTHER,
			.reason = SBX_REASON_OVERFLOW,
		};
	} else {
		f->n_folded = sbx_count_add(f->n_folded, 1);
	}
	add_amounts(&o->v, v);
}

void sbx_fold_add(struct sbx_fold *f, const struct sbx_event *v, uint64_t now_ms,
		  sbx_fold_emit_fn emit, void *userdata)
{
	struct slot *s;
	uint64_t hash;

	sbx_fold_flush(f, now_ms, emit, userdata);
	if (v->reason == SBX_REASON_OVERFLOW) {
		overflow_add(f, v, now_ms);
		return;
	}
	hash = hash_event(f->seed, v);
	s = slot_find(f, hash, v);
	if (s) {
		f->n_folded = sbx_count_add(f->n_folded, 1);
		add_amounts(&s->v, v);
		return;
	}
	s = slot_take(f, hash, now_ms);
	if (s) {
		s->v = *v;
		return;
	}
	f->n_overflowed = sbx_count_add(f->n_overflowed, 1);
	overflow_add(f, v, now_ms);
}

/* Does not overflow, even if the clock is near its end or went back. */
static bool is_due(const struct sbx_fold *f, uint64_t first_ms, uint64_t now_ms)
{
	return now_ms >= first_ms && now_ms - first_ms >= f->window_ms;
}

static void flush(struct sbx_fold *f, bool all, uint64_t now_ms, sbx_fold_emit_fn emit,
		  void *userdata)
{
	while (f->oldest != NONE && (all || is_due(f, f->slots[f->oldest].first_ms, now_ms))) {
		emit(&f->slots[f->oldest].v, userdata);
		release_oldest(f);
	}
	for (size_t i = 0; i < SBX_N_ELEMENTS(f->overflow); i++) {
		struct overflow *o = &f->overflow[i];

		if (o->v.count && (all || is_due(f, o->first_ms, now_ms))) {
			emit(&o->v, userdata);
			o->v.count = 0;
		}
	}
}

void sbx_fold_flush(struct sbx_fold *f, uint64_t now_ms, sbx_fold_emit_fn emit, void *userdata)
{
	flush(f, false, now_ms, emit, userdata);
}

void sbx_fold_flush_all(struct sbx_fold *f, sbx_fold_emit_fn emit, void *userdata)
{
	flush(f, true, 0, emit, userdata);
}

uint64_t sbx_fold_next_ms(const struct sbx_fold *f)
{
	uint64_t first = SBX_FOLD_IDLE;

	if (f->oldest != NONE)
		first = f->slots[f->oldest].first_ms;
	for (size_t i = 0; i < SBX_N_ELEMENTS(f->overflow); i++) {
		if (f->overflow[i].v.count && f->overflow[i].first_ms < first)
			first = f->overflow[i].first_ms;
	}
	return first > SBX_FOLD_IDLE - f->window_ms ? first : first + f->window_ms;
}

uint64_t sbx_fold_n_folded(const struct sbx_fold *f)
{
	return f->n_folded;
}

uint64_t sbx_fold_n_overflowed(const struct sbx_fold *f)
{
	return f->n_overflowed;
}
