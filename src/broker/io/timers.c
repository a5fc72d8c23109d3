/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One kernel timer for every deadline. It is set to the earliest head of the queues. It is not
 * moved when that head goes away or is pushed back: then it fires too early, and is set anew.
 */

#include "broker/io/timers.h"

#include <errno.h>
#include <time.h>

uint64_t sbx_now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

static void set_timer(struct sbx_timers *timers, uint64_t due_ms, uint64_t now_ms)
{
	uint64_t wait_ms = due_ms > now_ms ? due_ms - now_ms : 0;
	struct timeval tv = {
		.tv_sec = (time_t)(wait_ms / 1000),
		.tv_usec = (suseconds_t)(wait_ms % 1000 * 1000),
	};

	if (event_add(&timers->ev, &tv) == 0)
		timers->armed_ms = due_ms;
}

static void on_timer(evutil_socket_t fd, short what, void *userdata)
{
	struct sbx_timers *timers = userdata;
	uint64_t now_ms = sbx_now_ms(), next_ms = UINT64_MAX;

	(void)fd;
	(void)what;
	timers->armed_ms = UINT64_MAX;
	for (size_t i = 0; i < SBX_N_TIMERS; i++) {
		struct sbx_timeouts *q = &timers->queues[i];
		struct sbx_timeout *t;

		while ((t = sbx_timeouts_expired(q, now_ms)))
			timers->expire[i](t);
	}
	for (size_t i = 0; i < SBX_N_TIMERS; i++) {
		uint64_t ms = sbx_timeouts_next_ms(&timers->queues[i]);

		next_ms = ms < next_ms ? ms : next_ms;
	}
	if (next_ms < timers->armed_ms)
		set_timer(timers, next_ms, now_ms);
}

int sbx_timers_init(struct sbx_timers *timers, struct event_base *base)
{
	timers->armed_ms = UINT64_MAX;
	return evtimer_assign(&timers->ev, base, on_timer, timers) == 0 ? 0 : -ENOMEM;
}

void sbx_timers_on(struct sbx_timers *timers, enum sbx_timer which, uint32_t timeout_ms,
		   sbx_timer_fn expire)
{
	sbx_timeouts_init(&timers->queues[which], timeout_ms);
	timers->expire[which] = expire;
}

void sbx_timer_arm(struct sbx_timers *timers, enum sbx_timer which, struct sbx_timeout *t)
{
	struct sbx_timeouts *q = &timers->queues[which];
	uint64_t now_ms = sbx_now_ms();

	sbx_timeout_arm(q, t, now_ms);
	if (t->queue && t->due_ms < timers->armed_ms)
		set_timer(timers, t->due_ms, now_ms);
}
