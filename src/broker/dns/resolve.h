/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_BROKER_DNS_RESOLVE_H
#define SBX_BROKER_DNS_RESOLVE_H

#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "broker/core/core_resolved.h"

struct sbx_broker;
struct sbx_resolve;

/*
 * Names to addresses, outside: the host's hosts file first, then its resolvers by c-ares, A and
 * AAAA side by side. What was found is kept for its TTL (1 to 60 s; nothing found: 2 s). The
 * addresses are not judged here: every use is, by sbx_core_candidates() or sbx_core_may_pin().
 */

struct sbx_resolve_waiter;
typedef void (*sbx_resolve_fn)(struct sbx_resolve_waiter *w, const struct sbx_resolved *result);

/* Embedded in who asks. Zeroed: not waiting. */
struct sbx_resolve_waiter {
	struct sbx_resolve_waiter *prev, *next;
	struct sbx_resolve_entry *entry; /* NULL: not waiting */
	sbx_resolve_fn done;
};

/* 0, -ENOMEM, -errno. Before seccomp: c-ares seeds itself from /dev/urandom. */
int sbx_resolve_new(struct sbx_broker *b);
/* Take the servers from b->config. 0 or -EIO. */
int sbx_resolve_configure(struct sbx_broker *b);
void sbx_resolve_free(struct sbx_resolve *r);

/* Ask for @name (normalised, or an address in text). Returns the result when it is known (borrowed
 * until the next call here); otherwise NULL, and @w->done is called later, once, never from inside
 * this call. */
const struct sbx_resolved *sbx_resolve_name(struct sbx_resolve *r, const char *name,
					    struct sbx_resolve_waiter *w, sbx_resolve_fn done);
/* The same, but what is kept does not count: it is asked for now, unless it is already. */
const struct sbx_resolved *sbx_resolve_anew(struct sbx_resolve *r, const char *name,
					    struct sbx_resolve_waiter *w, sbx_resolve_fn done);
/* Ask the resolvers a query of the caller's own (DNS message; c-ares gives it its id). @done is
 * called once, maybe from inside this call: an ares_callback (ares_send(3)). */
void sbx_resolve_send(struct sbx_resolve *r, const uint8_t *query, size_t n_query,
		      void (*done)(void *userdata, int status, int timeouts, unsigned char *answer,
				   int n_answer),
		      void *userdata);
void sbx_resolve_cancel(struct sbx_resolve_waiter *w);
/* @addr was reached: the next flow to @name tries its family first. */
void sbx_resolve_reached(struct sbx_resolve *r, const char *name, const struct sbx_addr *addr);

#endif
