/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The event folder.
 *
 * Slots live in one slab allocated at the start. A used slot is in a hash chain and in one of three
 * lists:
 *
 *     new event ---> EARLY ---> KNOWN <---> HELD <--- new event, if too many are early
 *                   (emitted)     |   (emitted)
 *                                 v a window later
 *                                free
 *
 * A slot that is EARLY is emitted soon, one that is HELD with the end of its window. A KNOWN slot
 * holds no event: it says that an equal one was emitted less than a window ago. Every slot stays in
 * a list for the same time, so a list is in the order in which they leave it: a flush takes from
 * the heads and never searches. A new event takes the oldest KNOWN slot if no other is free. Free
 * slots are stacked: a quiet sandbox uses the same few slots again and again, and the rest of the
 * slab is never paged in.
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

enum place { EARLY, HELD, KNOWN, N_PLACES };

struct slot {
	struct sbx_event v;
	uint64_t hash;
	uint64_t since_ms; /* when it came into its list, by the caller's clock */
	uint32_t chain;	   /* next in the bucket; of a free slot: the next free slot */
	uint32_t older, younger;
	enum place place;
};

struct list {
	uint32_t oldest, youngest;
	uint32_t stay_ms; /* how long a slot is in it */
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
	struct list lists[N_PLACES];
	uint64_t early_since_ms; /* when a window of early events began */
	uint32_t n_early;	 /* events that were early in it */
	uint32_t *buckets;
	uint32_t mask; /* number of buckets - 1; a power of two */
	uint64_t seed;
	uint64_t n_folded, n_overflowed;
	struct overflow overflow[SBX_N_ACTIONS];
};

int sbx_fold_new(uint32_t n_keys, uint32_t window_ms, uint32_t early_ms, uint64_t seed,
		 struct sbx_fold **ret_fold)
{
	struct sbx_fold *f;
	uint32_t n_buckets = 1;

	if (n_keys == 0 || n_keys > N_KEYS_MAX || window_ms == 0 || early_ms > window_ms)
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
	f->seed = seed;
	f->free_list = NONE;
	for (size_t i = 0; i < N_PLACES; i++)
		f->lists[i] = (struct list){ NONE, NONE, window_ms };
	f->lists[EARLY].stay_ms = early_ms;
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
	       sbx_addr_equal(&a->addr, &b->addr) && strcmp(a->name, b->name) == 0 &&
	       strcmp(a->rule, b->rule) == 0 && strcmp(a->request, b->request) == 0;
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

static void list_remove(struct sbx_fold *f, uint32_t i)
{
	struct slot *s = &f->slots[i];
	struct list *l = &f->lists[s->place];

	*(s->older == NONE ? &l->oldest : &f->slots[s->older].younger) = s->younger;
	*(s->younger == NONE ? &l->youngest : &f->slots[s->younger].older) = s->older;
}

/* At the young end of a list. */
static void list_add(struct sbx_fold *f, uint32_t i, enum place place, uint64_t now_ms)
{
	struct slot *s = &f->slots[i];
	struct list *l = &f->lists[place];

	s->place = place;
	s->since_ms = now_ms;
	s->older = l->youngest;
	s->younger = NONE;
	*(l->youngest == NONE ? &l->oldest : &f->slots[l->youngest].younger) = i;
	l->youngest = i;
}

static void release(struct sbx_fold *f, uint32_t i)
{
	struct slot *s = &f->slots[i];
	uint32_t *link = &f->buckets[s->hash & f->mask];

	while (*link != i)
		link = &f->slots[*link].chain;
	*link = s->chain;
	list_remove(f, i);
	s->chain = f->free_list;
	f->free_list = i;
}

/* Is an early event allowed now? Counts it. */
static bool take_early(struct sbx_fold *f, uint64_t now_ms)
{
	uint32_t window_ms = f->lists[HELD].stay_ms;

	if (f->lists[EARLY].stay_ms == 0)
		return false;
	if (now_ms < f->early_since_ms || now_ms - f->early_since_ms >= window_ms) {
		f->early_since_ms = now_ms;
		f->n_early = 0;
	}
	if (f->n_early == SBX_FOLD_EARLY_MAX)
		return false;
	f->n_early++;
	return true;
}

/* Puts a free slot into its chain and a list; NULL: all slots hold an event. */
static struct slot *slot_take(struct sbx_fold *f, uint64_t hash, uint64_t now_ms)
{
	uint32_t i, *bucket = &f->buckets[hash & f->mask];
	struct slot *s;

	if (f->free_list == NONE && f->n_touched == f->n_slots && f->lists[KNOWN].oldest != NONE)
		release(f, f->lists[KNOWN].oldest);
	i = f->free_list;
	if (i != NONE)
		f->free_list = f->slots[i].chain;
	else if (f->n_touched < f->n_slots)
		i = f->n_touched++;
	else
		return NULL;
	s = &f->slots[i];
	s->hash = hash;
	s->chain = *bucket;
	*bucket = i;
	list_add(f, i, take_early(f, now_ms) ? EARLY : HELD, now_ms);
	return s;
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
	if (s && s->place == KNOWN) {
		uint32_t i = (uint32_t)(s - f->slots);

		list_remove(f, i);
		list_add(f, i, HELD, now_ms);
		s->v = *v;
		return;
	}
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
static bool is_due(uint64_t since_ms, uint32_t stay_ms, uint64_t now_ms)
{
	return now_ms >= since_ms && now_ms - since_ms >= stay_ms;
}

/* The oldest slot of a list if its time is over, else NONE. */
static uint32_t due(const struct sbx_fold *f, enum place place, uint64_t now_ms)
{
	const struct list *l = &f->lists[place];

	if (l->oldest == NONE || !is_due(f->slots[l->oldest].since_ms, l->stay_ms, now_ms))
		return NONE;
	return l->oldest;
}

/* Emits a slot, which becomes KNOWN. */
static void emit_slot(struct sbx_fold *f, uint32_t i, uint64_t now_ms, sbx_fold_emit_fn emit,
		      void *userdata)
{
	emit(&f->slots[i].v, userdata);
	list_remove(f, i);
	list_add(f, i, KNOWN, now_ms);
}

/* Early events are written together: with one that is due go all. */
static void flush_early(struct sbx_fold *f, uint64_t now_ms, sbx_fold_emit_fn emit, void *userdata)
{
	if (due(f, EARLY, now_ms) != NONE)
		while (f->lists[EARLY].oldest != NONE)
			emit_slot(f, f->lists[EARLY].oldest, now_ms, emit, userdata);
}

static void flush_overflow(struct sbx_fold *f, bool all, uint64_t now_ms, sbx_fold_emit_fn emit,
			   void *userdata)
{
	for (size_t i = 0; i < SBX_N_ELEMENTS(f->overflow); i++) {
		struct overflow *o = &f->overflow[i];

		if (o->v.count && (all || is_due(o->first_ms, f->lists[HELD].stay_ms, now_ms))) {
			emit(&o->v, userdata);
			o->v.count = 0;
		}
	}
}

void sbx_fold_flush(struct sbx_fold *f, uint64_t now_ms, sbx_fold_emit_fn emit, void *userdata)
{
	uint32_t i;

	while ((i = due(f, KNOWN, now_ms)) != NONE)
		release(f, i);
	while ((i = due(f, HELD, now_ms)) != NONE)
		emit_slot(f, i, now_ms, emit, userdata);
	flush_early(f, now_ms, emit, userdata);
	flush_overflow(f, false, now_ms, emit, userdata);
}

/* In the order in which they came into their lists. */
void sbx_fold_flush_all(struct sbx_fold *f, sbx_fold_emit_fn emit, void *userdata)
{
	while (f->lists[KNOWN].oldest != NONE)
		release(f, f->lists[KNOWN].oldest);
	for (;;) {
		uint32_t early = f->lists[EARLY].oldest, held = f->lists[HELD].oldest, i = held;

		if (early != NONE &&
		    (held == NONE || f->slots[early].since_ms <= f->slots[held].since_ms))
			i = early;
		if (i == NONE)
			break;
		emit(&f->slots[i].v, userdata);
		release(f, i);
	}
	flush_overflow(f, true, 0, emit, userdata);
	f->n_early = 0; /* of what comes, events may be early again */
}

static void earlier(uint64_t *first, uint64_t since_ms, uint32_t stay_ms)
{
	uint64_t at = since_ms > SBX_FOLD_IDLE - stay_ms ? since_ms : since_ms + stay_ms;

	if (at < *first)
		*first = at;
}

uint64_t sbx_fold_next_ms(const struct sbx_fold *f)
{
	uint64_t first = SBX_FOLD_IDLE;

	for (size_t i = 0; i < KNOWN; i++)
		if (f->lists[i].oldest != NONE)
			earlier(&first, f->slots[f->lists[i].oldest].since_ms, f->lists[i].stay_ms);
	for (size_t i = 0; i < SBX_N_ELEMENTS(f->overflow); i++)
		if (f->overflow[i].v.count)
			earlier(&first, f->overflow[i].first_ms, f->lists[HELD].stay_ms);
	return first;
}

uint64_t sbx_fold_n_folded(const struct sbx_fold *f)
{
	return f->n_folded;
}

uint64_t sbx_fold_n_overflowed(const struct sbx_fold *f)
{
	return f->n_overflowed;
}
