/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_BROKER_DNS_RESOLVE_H
#define SBX_BROKER_DNS_RESOLVE_H

#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "broker/core/core_resolve_result.h"
#include "broker/io/context.h"

struct sbx_resolve;

/*
 * Names to addresses, outside the sandbox: from the host's hosts file, else from its resolvers by
 * c-ares. A result is kept for its TTL (1 to 60 s; 2 s if nothing was found). The addresses are not
 * judged here: every caller judges them, by sbx_core_candidates() or sbx_core_may_pin().
 */

struct sbx_resolve_waiter;
typedef void (*sbx_resolve_fn)(struct sbx_resolve_waiter *w,
			       const struct sbx_resolve_result *result);

/* The caller embeds it. Zeroed: not waiting. */
struct sbx_resolve_waiter {
	struct sbx_resolve_waiter *prev, *next;
	struct sbx_resolve_entry *entry; /* NULL: not waiting */
	sbx_resolve_fn done;
};

/* Before seccomp: c-ares seeds itself from /dev/urandom. *ret_resolve is half made after an
 * error, and to be freed all the same. 0, -ENOMEM, -errno. */
int sbx_resolve_new(struct sbx_context *ctx, struct sbx_resolve **ret_resolve);
/* Takes the servers from ctx->config, and borrows the hosts file's text. 0 or -EIO. */
int sbx_resolve_configure(struct sbx_resolve *r, struct sbx_span hosts);
void sbx_resolve_free(struct sbx_resolve *r);

/* Asks for @name (normalised, or an address in text). Returns the result if it is known
 * (borrowed until the next call here). Otherwise returns NULL and calls @done once, later, never
 * from inside this call. */
const struct sbx_resolve_result *sbx_resolve_name(struct sbx_resolve *r, const char *name,
						  struct sbx_resolve_waiter *w,
						  sbx_resolve_fn done);
/* As sbx_resolve_name(), but does not use a kept result: asks the resolvers, unless they are being
 * asked already. */
const struct sbx_resolve_result *sbx_resolve_anew(struct sbx_resolve *r, const char *name,
						  struct sbx_resolve_waiter *w,
						  sbx_resolve_fn done);
/* Sends the resolvers the caller's DNS message; c-ares gives it a fresh id. Calls @done, an
 * ares_callback (ares_send(3)), once, maybe from inside this call. */
void sbx_resolve_send(struct sbx_resolve *r, const uint8_t *query, size_t n_query,
		      void (*done)(void *userdata, int status, int timeouts, unsigned char *answer,
				   int n_answer),
		      void *userdata);
/* The policy was changed, and @n_forwards questions of sbx_resolve_send() are not wanted any more.
 * If there are any, or names that nobody waits for, no packet more is sent for them; the other
 * questions are asked again. */
void sbx_resolve_drop_unwanted(struct sbx_resolve *r, size_t n_forwards);
void sbx_resolve_cancel(struct sbx_resolve_waiter *w);
/* @addr was reached: the next flow to @name tries its family first. */
void sbx_resolve_reached(struct sbx_resolve *r, const char *name, const struct sbx_addr *addr);

#endif
