/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_BROKER_MAIN_CONTROL_H
#define SBX_BROKER_MAIN_CONTROL_H

#include <stdint.h>

#include "broker/dns/pinner.h"
#include "broker/io/context.h"
#include "broker/io/nflog.h"
#include "broker/main/swap.h"
#include "broker/tcp/tcp_flow.h"

/* The launcher's messages, and the parts that act on them (borrowed). */
struct sbx_control {
	struct sbx_context *ctx;
	struct sbx_nflog *nflog;   /* or NULL */
	struct sbx_pinner *pinner; /* or NULL */
	struct sbx_tcp *tcp;
	struct sbx_swap *swap;
	int fd; /* the channel */
	struct event ev_read, ev_drain;
	uint64_t drain_until_ms; /* flows are carried until then at most; 0: STOP has not come */
};

/* Reads @c->fd from now on; the members above ev_read are set. 0 or -errno. */
int sbx_control_init(struct sbx_control *c);
void sbx_control_fini(struct sbx_control *c);

#endif
