/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_BROKER_UDP_FLOW_H
#define SBX_BROKER_UDP_FLOW_H

#include <stdbool.h>
#include <stdint.h>

#include "broker/broker.h"
#include "broker/resolve.h"

/*
 * One UDP association: a sandbox's socket and one destination it sends to.
 *
 *   opening   entered by the first datagram. The name is resolved and judged, the outside socket
 *             made, and the factory asked for the inside one, side by side; a few datagrams wait.
 *   carrying  both sockets are there: datagrams pass both ways until none has for a while.
 */
struct sbx_udp_flow {
	struct sbx_udp *u;
	struct sbx_udp_flow *chain; /* of the bucket */
	struct sbx_timeout timeout;
	struct sbx_resolve_waiter waiter;
	struct sbx_addr peer; /* the sandbox's socket */
	uint16_t peer_port;
	struct sbx_flow_target target; /* addr and port are the other half of the key */
	char *lease_name;
	uint32_t cookie; /* of the factory's answer; 0: it came */
	int in_fd;	 /* bound to target.addr, connected to peer; from the factory */
	int out_fd;	 /* connected to the judged address */
	struct event ev_in, ev_out;
	struct sbx_addr reached;
	struct sbx_udp_datagram *first, *last; /* waiting, while opening */
	size_t n_waiting;
};

int sbx_udp_new(struct sbx_broker *b); /* 0 or -errno */
void sbx_udp_free(struct sbx_udp *u);

/* --- udp_factory.c --- */
struct sbx_udp_factory;
/* @made is called with an inside socket (@fd, taken over) or -1, and the cookie of the request. */
typedef void (*sbx_udp_made_fn)(struct sbx_udp *u, uint32_t cookie, int fd_take);
int sbx_udp_factory_new(struct sbx_broker *b, int fd, sbx_udp_made_fn made,
			struct sbx_udp_factory **ret_f);
void sbx_udp_factory_free(struct sbx_udp_factory *f);
/* Ask for a socket. Returns the cookie, never 0; 0: it cannot be asked for now. */
uint32_t sbx_udp_factory_ask(struct sbx_udp_factory *f, const struct sbx_udp_flow *flow);

#endif
