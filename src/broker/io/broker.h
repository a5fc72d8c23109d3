/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_BROKER_IO_BROKER_H
#define SBX_BROKER_IO_BROKER_H

#include <event2/event.h>
#include <event2/event_struct.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "broker/core/core.h"
#include "broker/core/core_timeouts.h"
#include "ipc/messages.h"

/* The context of one sbx-broker, handed to everything it does. Each part belongs to the file named
 * beside it, which also makes and frees what it points to. */

#define sbx_container_of(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

/* io_timers.c */
enum sbx_timer {
	SBX_TIMER_HANDSHAKE = 0, /* a TCP flow's first bytes */
	SBX_TIMER_CONNECT,	 /* resolving and dialling */
	SBX_TIMER_STAGGER,	 /* until the next address is tried too (RFC 8305 section 5) */
	SBX_TIMER_IDLE,		 /* a TCP flow without a byte */
	SBX_TIMER_DRAIN,	 /* a refused request's earlier answers */
	SBX_TIMER_LINGER,	 /* a refusal being read by the client */
	SBX_TIMER_DNS_TCP,
	SBX_TIMER_DNS_PIN, /* a query whose name is resolved and pinned */
	SBX_TIMER_UDP_OPEN, /* a UDP flow before its socket came and its address is known */
	SBX_TIMER_UDP_IDLE,
	SBX_N_TIMERS,
};

struct sbx_broker;
typedef void (*sbx_timer_fn)(struct sbx_broker *b, struct sbx_timeout *t);

struct sbx_timers {
	struct sbx_timeouts queues[SBX_N_TIMERS];
	sbx_timer_fn expire[SBX_N_TIMERS];
	struct event ev;
	uint64_t armed_ms; /* when ev fires; UINT64_MAX: not pending */
};

#define SBX_COPY_MAX 65536 /* bytes moved by one copy, and the longest datagram */

struct sbx_broker {
	struct event_base *base;
	bool follows;	 /* names are resolved to be pinned, and followed (attach cgroup) */
	int exit_status; /* of the loop's end */
	uint32_t n_files_max; /* RLIMIT_NOFILE */

	/* broker.c */
	struct sbx_msg_config config; /* its limits as low as n_files_max makes them */
	uint32_t n_pipes_max;	      /* of all flows together */
	int fds[SBX_N_BROKER_FDS]; /* -1: not there */
	void *policy_blob;
	struct sbx_policy *policy;
	uint8_t *hosts;
	size_t n_hosts;
	struct sbx_core core;
	struct sbx_msg_stats stats;

	struct sbx_timers timers;
	struct sbx_control *control; /* io_control.c */
	struct sbx_own *own;	     /* io_own.c */
	struct sbx_resolve *resolve; /* resolve.c */
	struct sbx_stub *stub;	     /* dns_stub.c */
	struct sbx_forward *forward; /* dns_forward.c */
	struct sbx_dns_pins *dns_pins; /* dns_pin.c */
	struct sbx_pinner *pinner;   /* io_realpins.c; NULL without real pins */
	struct sbx_tcp *tcp;	     /* tcp_listen.c */
	struct sbx_udp *udp;	     /* udp_flow.c */
	struct sbx_factory *factory; /* factory.c */
	struct sbx_nflog *nflog;     /* io_nflog.c */

	/* One buffer for every copy: nothing stays in it between two callbacks. */
	uint8_t copy[SBX_COPY_MAX];
};

/* End the process soon: the loop is left after the current callback. */
void sbx_broker_exit(struct sbx_broker *b, int status);

/* --- io_timers.c --- */
int sbx_timers_init(struct sbx_broker *b); /* 0 or -ENOMEM */
void sbx_timers_on(struct sbx_broker *b, enum sbx_timer which, uint32_t timeout_ms,
		   sbx_timer_fn expire);
void sbx_timer_arm(struct sbx_broker *b, enum sbx_timer which, struct sbx_timeout *t);
/* Milliseconds of CLOCK_MONOTONIC_COARSE: a few ns to read, a few ms behind. */
uint64_t sbx_now_ms(void);

/* --- io_control.c --- */

/* Take over @fd (non-blocking from here on): STOP, end of file, events. 0 or -errno. */
int sbx_control_new(struct sbx_broker *b, int fd);
void sbx_control_free(struct sbx_control *c);
/* Send one packet, now or as soon as the launcher reads; borrowed until then, and there is one at a time. 0,
 * or -errno: the channel is broken. */
int sbx_control_send(struct sbx_broker *b, struct sbx_span packet);
/* Did RELEASE come? What is recorded before it is dropped. */
bool sbx_control_is_released(const struct sbx_control *c);
/* Record one refusal or one carried flow. @addr may be NULL, @name NULL. Never fails: what cannot
 * be told apart any more is still counted. */
void sbx_broker_event(struct sbx_broker *b, enum sbx_proto proto, const struct sbx_verdict *v,
		      const struct sbx_addr *addr, uint16_t port, const char *name);
/* @n refusals about which nothing else is known. */
void sbx_broker_event_lost(struct sbx_broker *b, uint32_t n);

/* --- io_own.c --- */
int sbx_own_new(struct sbx_broker *b); /* 0 or -errno; before seccomp */
void sbx_own_free(struct sbx_own *o);

/* --- io_nflog.c --- */
int sbx_nflog_new(struct sbx_broker *b, int fd); /* borrows fd */
/* From now on take in what comes, as it comes. 0 or -ENOMEM. Accepts NULL. */
int sbx_nflog_start(struct sbx_nflog *n);
/* Take in all that is there now, also before the start. Accepts NULL. */
void sbx_nflog_drain(struct sbx_nflog *n);
/* The same when nothing more can come, and count what was lost since the last that was read. */
void sbx_nflog_finish(struct sbx_nflog *n);
void sbx_nflog_free(struct sbx_nflog *n);

#endif
