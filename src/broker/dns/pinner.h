/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_BROKER_DNS_PINNER_H
#define SBX_BROKER_DNS_PINNER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "broker/core/core_resolve_result.h"
#include "broker/dns/resolve.h"
#include "broker/io/context.h"
#include "broker/names/resolved_pins.h"

/* Resolved pins (attach cgroup): pins the addresses of names, and asks the launcher to tell the
 * kernel. */

struct sbx_pinner;
struct sbx_pinned;
typedef void (*sbx_pinned_fn)(struct sbx_pinned *p, bool ok);

/* A name's addresses on their way to the kernel. The waiter embeds it; zeroed: not waiting. */
struct sbx_pinned {
	struct sbx_pinned *prev, *next;
	struct sbx_pinner *pinner; /* NULL: not waiting */
	uint32_t serial;	   /* of the PINS that completes it; 0: not sent yet */
	sbx_pinned_fn done;
	char name[SBX_HOSTNAME_MAX + 1];
	size_t n; /* addresses that may be told to the sandbox */
	struct sbx_addr v[SBX_RESOLVED_PINS_ADDRS_MAX];
};

/* Borrows @resolve. *ret_pinner stays NULL unless the kernel judges by pins; it is half made
 * after an error, and to be freed all the same. 0 or -ENOMEM. */
int sbx_pinner_new(struct sbx_context *ctx, struct sbx_resolve *resolve,
		   struct sbx_pinner **ret_pinner);
void sbx_pinner_free(struct sbx_pinner *pinner);

/* Takes the result of resolving @name: because the sandbox @asked, or because the name was due.
 * @ret_p (not waiting) gets the name and the addresses. Call sbx_pinner_wait() next, or
 * sbx_pinner_push() if nothing waits for the addresses. */
void sbx_pinner_resolved(struct sbx_pinner *pinner, const char *name, bool asked,
			 const struct sbx_resolve_result *result, struct sbx_pinned *ret_p);
/* Calls @done once, maybe from inside this call: with true when the kernel has all that was pinned
 * before the call, with false if the pins could not be put. */
void sbx_pinner_wait(struct sbx_pinner *pinner, struct sbx_pinned *w, sbx_pinned_fn done);
void sbx_pinner_cancel(struct sbx_pinned *w);
/*
 * The core has another policy: pins and waiters are judged by it. First all pins go that it does
 * not allow; when the kernel has no such pin any more, names that it allows get pins again that are
 * known. @done is called once, maybe from inside this call, when the kernel has all of that; not at
 * all while the kernel cannot be told. A second call takes the place of the first.
 */
typedef void (*sbx_pinner_done_fn)(void *userdata);
void sbx_pinner_policy_changed(struct sbx_pinner *pinner, sbx_pinner_done_fn done, void *userdata);
/* Sends the changes that are due. */
void sbx_pinner_push(struct sbx_pinner *pinner);

/* PINNED (@ok) or PINS_FAILED came. False: no message with @serial is under way. Accepts NULL. */
bool sbx_pinner_answered(struct sbx_pinner *pinner, uint32_t serial, bool ok);
/* STOP came: sends nothing to the launcher any more. Accepts NULL. */
void sbx_pinner_stop(struct sbx_pinner *pinner);

#endif
