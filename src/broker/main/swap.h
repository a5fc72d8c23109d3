/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_BROKER_MAIN_SWAP_H
#define SBX_BROKER_MAIN_SWAP_H

#include <stdbool.h>
#include <stdint.h>

#include "broker/dns/dns_stub.h"
#include "broker/dns/pinner.h"
#include "broker/dns/resolve.h"
#include "broker/io/context.h"
#include "broker/tcp/tcp_flow.h"
#include "broker/udp/udp_flow.h"

#define SBX_POLICY_BYTES_MAX (64u << 20)

/* The policy that holds, and its change. */
struct sbx_swap {
	struct sbx_context *ctx; /* this and the next five are borrowed */
	struct sbx_tcp *tcp;
	struct sbx_udp *udp;
	struct sbx_stub *stub;
	struct sbx_resolve *resolve;
	struct sbx_pinner *pinner; /* or NULL */
	void *blob; /* owned, as is the next */
	struct sbx_policy *policy;
	struct event ev_late; /* sbx-tls, or the kernel, takes too long */
	uint32_t n_cut;
	bool pinning;	/* the kernel does not have the pins of the new policy yet */
	bool under_way; /* POLICY_DONE was not sent yet */
};

/* Loads the policy of CONFIG from @fd. 0 or -errno. */
int sbx_swap_load_consume(struct sbx_swap *s, int *fd);
/* The members above blob are set. 0 or -ENOMEM. */
int sbx_swap_init(struct sbx_swap *s);
void sbx_swap_fini(struct sbx_swap *s);

/* POLICY came with @fd (closed here): changes the policy and answers. Ends the process if one is
 * under way. */
void sbx_swap_take_consume(struct sbx_swap *s, int *fd);
/* FLOWS came: answers. */
void sbx_swap_list_flows(struct sbx_swap *s);

#endif
