/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_BROKER_DNS_DNS_STUB_H
#define SBX_BROKER_DNS_DNS_STUB_H

#include <netinet/in.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/span.h"
#include "broker/io/broker.h"

/* The DNS server that the sandbox sees: dns_stub.c (UDP, and what both transports do), dns_tcp.c,
 * dns_forward.c (real answers), dns_pin.c (real answers that are pinned). */

/* Where an answer goes. Copied freely; the connection may be gone by then. */
struct sbx_asker {
	int fd; /* UDP: the socket it came by (never closed before the broker ends); TCP: -1 */
	uint64_t connection; /* TCP: its serial number */
	struct sockaddr_storage peer;
	socklen_t n_peer;
	uint8_t family;	   /* 4 or 6; 0: no local address is known */
	uint8_t local[16]; /* the address that was asked: answers come from it */
	uint32_t ifindex;
};

int sbx_stub_new(struct sbx_broker *b); /* 0 or -errno */
void sbx_stub_free(struct sbx_stub *s);
/* One message of the sandbox: answered now, dropped, or handed to the forwarder or to the pins. */
void sbx_stub_message(struct sbx_broker *b, const struct sbx_asker *asker, struct sbx_span message);
/* Send one answer, if the asker is still there. */
void sbx_stub_send(struct sbx_broker *b, const struct sbx_asker *asker, struct sbx_span message);
/* Answer with those of @addrs that were asked for. */
void sbx_stub_answer(struct sbx_broker *b, const struct sbx_asker *asker,
		     const struct sbx_dns_query *query, enum sbx_dns_rcode rcode,
		     const struct sbx_addr *addrs, size_t n_addrs, uint32_t ttl_s);
/* Answer without records, and record why. NXDOMAIN of a name that policy refuses says why, too. @addr: what was
 * judged, or NULL. */
void sbx_stub_refuse(struct sbx_broker *b, const struct sbx_asker *asker,
		     const struct sbx_dns_query *query, enum sbx_dns_rcode rcode,
		     const struct sbx_verdict *v, const struct sbx_addr *addr);
/* Answer without records. */
void sbx_stub_send_rcode(struct sbx_broker *b, const struct sbx_asker *asker,
			 const struct sbx_dns_query *query, enum sbx_dns_rcode rcode);

/* --- dns_tcp.c --- */
struct sbx_dns_tcp;
int sbx_dns_tcp_new(struct sbx_broker *b, struct sbx_dns_tcp **ret_t);
void sbx_dns_tcp_free(struct sbx_dns_tcp *t);
void sbx_dns_tcp_send(struct sbx_dns_tcp *t, uint64_t connection, struct sbx_span message);

/* --- dns_forward.c --- */
int sbx_forward_new(struct sbx_broker *b);
void sbx_forward_free(struct sbx_forward *f);
/* Ask the resolvers what @query asks and pass the answer on. */
void sbx_forward_query(struct sbx_forward *f, const struct sbx_asker *asker,
		       const struct sbx_dns_query *query);

/* --- dns_pin.c --- */
int sbx_dns_pins_new(struct sbx_broker *b);
void sbx_dns_pins_free(struct sbx_dns_pins *d);
/* Resolve the name, have its addresses pinned and tell them. */
void sbx_dns_pin_query(struct sbx_dns_pins *d, const struct sbx_asker *asker,
		       const struct sbx_dns_query *query);

#endif
