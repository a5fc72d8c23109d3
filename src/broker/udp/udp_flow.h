/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_BROKER_UDP_UDP_FLOW_H
#define SBX_BROKER_UDP_UDP_FLOW_H

#include "broker/dns/resolve.h"
#include "broker/io/context.h"
#include "broker/io/factory.h"

/* All UDP flows. */

struct sbx_udp;

/* Borrows @resolve and @factory. *ret_udp is half made after an error, and to be freed all the
 * same. 0 or -errno. */
int sbx_udp_new(struct sbx_context *ctx, struct sbx_resolve *resolve, struct sbx_factory *factory,
		struct sbx_udp **ret_udp);
void sbx_udp_free(struct sbx_udp *u);

/* A policy was changed, as in tcp/tcp_flow.h: first judges every flow by @next, then cuts. */
void sbx_udp_judge_again(struct sbx_udp *u, const struct sbx_core *next);
size_t sbx_udp_cut(struct sbx_udp *u);
/* Calls @fn for each open flow. */
void sbx_udp_list(struct sbx_udp *u, void (*fn)(void *userdata, const struct sbx_msg_flow *flow),
		  void *userdata);
/* STOP came: records all flows that are open. */
void sbx_udp_tell_all(struct sbx_udp *u);

#endif
