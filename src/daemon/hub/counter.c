/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A timer that counts refusals. A step takes some milliseconds, during which the service does
 * nothing else; so steps have a pause between them that is longer. A step that fails (another
 * program writes, the disk is full) is tried again after a second: lists are exact without it, as
 * long as not too many events are left.
 */
#include "daemon/hub/counter.h"

#include <errno.h>
#include <stdlib.h>

#include "store/store_keep.h"
#include "sys/process/proc.h"

#define WAIT_MS	    20	  /* for another writer */
#define PAUSE_MS    30	  /* between two steps */
#define IDLE_MS	    1000  /* where nothing is left to do */
#define KEEP_MS	    60000 /* between two looks for old counts */
#define MS_PER_S    1000
#define USEC_PER_MS 1000

struct sbx_counter {
	struct sbx_store *store;
	struct event *timer;
	uint64_t keep_at_us; /* CLOCK_MONOTONIC */
};

static void arm(struct sbx_counter *c, int ms)
{
	const struct timeval in = { .tv_sec = ms / MS_PER_S,
				    .tv_usec = ms % MS_PER_S * USEC_PER_MS };

	event_add(c->timer, &in);
}

static void on_timer(evutil_socket_t fd, short what, void *userdata)
{
	struct sbx_counter *c = userdata;
	int64_t now_ms = (int64_t)sbx_clock_realtime_ms();
	uint64_t now_us = sbx_clock_monotonic_us();
	uint32_t n = 0, n_removed = 0;

	(void)fd;
	(void)what;
	sbx_store_count(c->store, now_ms, SBX_STORE_COUNT_BATCH, NULL, &n);
	if (n < SBX_STORE_COUNT_BATCH && now_us >= c->keep_at_us) {
		sbx_store_prune_counts(c->store, now_ms, SBX_STORE_PRUNE_BATCH, NULL, &n_removed);
		if (n_removed < SBX_STORE_PRUNE_BATCH)
			c->keep_at_us = now_us + KEEP_MS * UINT64_C(1000);
	}
	arm(c, n == SBX_STORE_COUNT_BATCH || n_removed == SBX_STORE_PRUNE_BATCH ? PAUSE_MS :
										 IDLE_MS);
}

int sbx_counter_new(struct event_base *base, struct sbx_store *store,
		    struct sbx_counter **ret_counter)
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
