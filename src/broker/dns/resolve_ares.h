/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_BROKER_DNS_RESOLVE_ARES_H
#define SBX_BROKER_DNS_RESOLVE_ARES_H

#include <ares.h>
#include <event2/event.h>
#include <stddef.h>
#include <stdint.h>

#include "base/probe.h"

/* c-ares in the broker's loop. A callback is an ares_callback of ares_query(3). It is called once,
 * maybe from inside the call; with ARES_EDESTRUCTION if sbx_ares_free() ends the query. */

enum sbx_ares_way {
	SBX_ARES_AUTO = 0, /* by UDP, and by TCP if the answer is truncated */
	SBX_ARES_UDP,	   /* a truncated answer is given as it came */
	SBX_ARES_TCP,	   /* with a short timeout: the caller has a truncated answer already */
	SBX_ARES_N_WAYS,
};

struct sbx_ares;

/* Before seccomp: c-ares seeds itself from /dev/urandom. @n_ways: SBX_ARES_N_WAYS, or 1 for AUTO
 * alone; each way adds some 40 us to the start. *ret_ares is half made after an error, and to be
 * freed all the same. 0, -ENOMEM, -EIO. */
int sbx_ares_new(struct event_base *base, int n_ways, struct sbx_ares **ret_ares);
void sbx_ares_free(struct sbx_ares *ares);
/* Ends every question, with ARES_ECANCELLED; what is asked from inside a callback stays. */
void sbx_ares_cancel(struct sbx_ares *ares);
int sbx_ares_set_servers(struct sbx_ares *ares, const struct sbx_resolver *v,
			 size_t n); /* 0 or -EIO */

void sbx_ares_query(struct sbx_ares *ares, enum sbx_ares_way way, const char *name, int type,
		    ares_callback done, void *userdata);
void sbx_ares_send(struct sbx_ares *ares, enum sbx_ares_way way, const uint8_t *query,
		   size_t n_query, ares_callback done, void *userdata);

#endif
