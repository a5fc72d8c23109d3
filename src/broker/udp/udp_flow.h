/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_BROKER_UDP_UDP_FLOW_H
#define SBX_BROKER_UDP_UDP_FLOW_H

#include <stdbool.h>
#include <stdint.h>

#include "broker/dns/resolve.h"
#include "broker/io/broker.h"

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

#endif
