/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_BROKER_IO_TIMERS_H
#define SBX_BROKER_IO_TIMERS_H

#include <event2/event.h>
#include <event2/event_struct.h>
#include <stdint.h>

#include "broker/core/core_timeouts.h"

enum sbx_timer {
	SBX_TIMER_HANDSHAKE = 0, /* a TCP flow's first bytes */
	SBX_TIMER_CONNECT,	 /* resolving and dialling */
	SBX_TIMER_STAGGER,	 /* until the next address is tried too (RFC 8305 section 5) */
	SBX_TIMER_IDLE,		 /* a TCP flow without a byte */
	SBX_TIMER_DRAIN,	 /* a refused request's earlier answers */
	SBX_TIMER_LINGER,	 /* a refusal being read by the client */
	SBX_TIMER_DNS_TCP,
	SBX_TIMER_DNS_PIN,  /* a query whose name is resolved and pinned */
	SBX_TIMER_UDP_OPEN, /* a UDP flow until its socket came and its address is known */
	SBX_TIMER_UDP_IDLE,
	SBX_N_TIMERS,
};

typedef void (*sbx_timer_fn)(struct sbx_timeout *t);

struct sbx_timers {
	struct sbx_timeouts queues[SBX_N_TIMERS];
	sbx_timer_fn expire[SBX_N_TIMERS];
	struct event ev;
	uint64_t armed_ms; /* when ev fires; UINT64_MAX: not pending */
};

int sbx_timers_init(struct sbx_timers *timers, struct event_base *base); /* 0 or -ENOMEM */
/* Sets the time and the function of one kind of deadline. */
void sbx_timers_on(struct sbx_timers *timers, enum sbx_timer which, uint32_t timeout_ms,
		   sbx_timer_fn expire);
void sbx_timer_arm(struct sbx_timers *timers, enum sbx_timer which, struct sbx_timeout *t);
/* Milliseconds of CLOCK_MONOTONIC_COARSE: a few ns to read, a few ms behind. */
uint64_t sbx_now_ms(void);

#endif
