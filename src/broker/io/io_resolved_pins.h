/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_BROKER_IO_IO_RESOLVED_PINS_H
#define SBX_BROKER_IO_IO_RESOLVED_PINS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "broker/core/core_resolved.h"
#include "broker/core/core_resolved_pins.h"

struct sbx_broker;
struct sbx_pinner;

/* Real pins (attach cgroup): what names lead to is pinned, and the launcher asked to tell the kernel. */

struct sbx_pinned;
typedef void (*sbx_pinned_fn)(struct sbx_pinned *p, bool ok);

/* A name's addresses on their way to the kernel. Embedded in who waits for them; zeroed: not waiting. */
struct sbx_pinned {
	struct sbx_pinned *prev, *next;
	struct sbx_pinner *pinner; /* NULL: not waiting */
	uint32_t serial;	   /* of the PINS that says the last of it; 0: not sent yet */
	sbx_pinned_fn done;
	char name[SBX_HOSTNAME_MAX + 1];
	size_t n; /* those that may be told to the sandbox */
	struct sbx_addr v[SBX_REALPINS_ADDRS_MAX];
};

/* b->pinner stays NULL without real pins. 0 or -ENOMEM. */
int sbx_pinner_new(struct sbx_broker *b);
void sbx_pinner_free(struct sbx_pinner *pinner);

/* @name was resolved, or was not; @asked: for the sandbox. @ret_p (not waiting) gets the name and the
 * addresses. Then sbx_pinner_wait(), or sbx_pinner_push() where nobody waits. */
void sbx_pinner_resolved(struct sbx_pinner *pinner, const char *name, bool asked,
			 const struct sbx_resolved *result, struct sbx_pinned *ret_p);
/* @done is called once, maybe from inside: true when the kernel has all that was pinned before; false where
 * it was refused. */
void sbx_pinner_wait(struct sbx_pinner *pinner, struct sbx_pinned *w, sbx_pinned_fn done);
void sbx_pinner_cancel(struct sbx_pinned *w);
/* Send what there is to send. */
void sbx_pinner_push(struct sbx_pinner *pinner);

/* PINNED or PINS_FAILED came. False: nobody asked. Accepts NULL. */
bool sbx_pinner_answered(struct sbx_pinner *pinner, uint32_t serial, bool ok);
/* STOP came: nothing is asked of the launcher any more. Accepts NULL. */
void sbx_pinner_stop(struct sbx_pinner *pinner);

#endif
