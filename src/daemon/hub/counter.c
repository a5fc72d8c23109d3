/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A timer that counts refusals and removes old rows, a slice at a time. The service does nothing
 * else during a slice, and nobody else writes the database; so a slice has as many rows as take
 * some milliseconds, and the pause after it is longer. A slice that fails (another program writes,
 * the disk is full) is tried again after a second: lists are exact without it, as long as not too
 * many events are left.
 */
#include "daemon/hub/counter.h"

#include <errno.h>
#include <stdlib.h>

#include "sys/process/proc.h"

#define WAIT_MS	    20	  /* for another writer */
#define PAUSE_MS    10	  /* between two slices, at least */
#define IDLE_MS	    1000  /* where nothing is left to do */
#define KEEP_MS	    60000 /* between two looks for old rows */
#define SHORT_US    6000  /* a slice that takes less may be larger, */
#define LONG_US	    15000 /* and one that takes more is too large */
#define LEAST	    50	  /* rows of a slice: on a busy machine 250 may take 100 ms */
#define COUNT_MAX   16000 /* events that a slice counts, */
#define REMOVE_MAX  4000  /* and rows that it removes, at most */
#define MS_PER_S    1000
#define USEC_PER_MS 1000

struct sbx_counter {
	struct sbx_store *store;
	struct event *timer;
	struct sbx_store_keep keep; /* days and rows of events; both 0: none is removed */
	uint32_t n_count, n_remove; /* rows of a slice */
	uint64_t keep_at_us;	    /* CLOCK_MONOTONIC */
};

static void arm(struct sbx_counter *c, uint64_t ms)
{
	const struct timeval in = { .tv_sec = (time_t)(ms / MS_PER_S),
				    .tv_usec = (suseconds_t)(ms % MS_PER_S * USEC_PER_MS) };

	event_add(c->timer, &in);
}

/* The rows of the next slice, after one of *@n rows that took @took_us. */
static void fit(uint32_t *n, uint32_t most, uint64_t took_us)
{
	if (took_us > LONG_US)
		*n = *n / 2 < LEAST ? LEAST : *n / 2;
	else if (took_us < SHORT_US)
		*n = *n * 2 > most ? most : *n * 2;
}

/* Old events first: counts are kept as long as they. True: there may be more of them. */
static bool remove_old(struct sbx_counter *c, int64_t now_ms)
{
	uint32_t n = 0;

	c->keep.now_ms = now_ms;
	if (c->keep.days || c->keep.max_rows)
		sbx_store_prune(c->store, &c->keep, c->n_remove, NULL, &n);
	if (n < c->n_remove) {
		n = 0;
		sbx_store_prune_counts(c->store, now_ms, c->n_remove, NULL, &n);
	}
	return n >= c->n_remove;
}

static void on_timer(evutil_socket_t fd, short what, void *userdata)
{
	struct sbx_counter *c = userdata;
	int64_t now_ms = (int64_t)sbx_clock_realtime_ms();
	uint64_t began_us = sbx_clock_monotonic_us(), took_us;
	bool more;
	uint32_t n = 0;

	(void)fd;
	(void)what;
	sbx_store_count(c->store, now_ms, c->n_count, NULL, &n);
	more = n == c->n_count;
	took_us = sbx_clock_monotonic_us() - began_us;
	if (more) {
		fit(&c->n_count, COUNT_MAX, took_us);
	} else if (began_us >= c->keep_at_us) {
		more = remove_old(c, now_ms);
		took_us = sbx_clock_monotonic_us() - began_us;
		if (more)
			fit(&c->n_remove, REMOVE_MAX, took_us);
		else
			c->keep_at_us = began_us + KEEP_MS * UINT64_C(1000);
	}
	arm(c, !more ? IDLE_MS : PAUSE_MS + 2 * took_us / USEC_PER_MS);
}

int sbx_counter_new(struct event_base *base, struct sbx_store *store,
		    const struct sbx_store_keep *keep, struct sbx_counter **ret_counter)
{
	struct sbx_counter *c = calloc(1, sizeof(*c));

	if (c)
		c->timer = evtimer_new(base, on_timer, c);
	if (!c || !c->timer) {
		sbx_store_close(store);
		free(c);
		return -ENOMEM;
	}
	c->store = store;
	c->keep = *keep;
	c->n_count = LEAST;
	c->n_remove = LEAST;
	sbx_store_set_busy_ms(store, WAIT_MS);
	arm(c, 0);
	*ret_counter = c;
	return 0;
}

struct sbx_counter *sbx_counter_free(struct sbx_counter *c)
{
	if (c) {
		event_free(c->timer);
		sbx_store_close(c->store);
		free(c);
	}
	return NULL;
}
