/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_BROKER_DNS_DNS_ASKER_H
#define SBX_BROKER_DNS_DNS_ASKER_H

#include <netinet/in.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/span.h"
#include "broker/dns/dns_tcp.h"
#include "broker/io/context.h"

/* The sender of a query: the answer goes there. May be copied and kept; its connection may be gone
 * when the answer is sent. */
struct sbx_asker {
	struct sbx_context *ctx;
	int fd; /* UDP: the stub's socket (open until the broker ends); TCP: -1 */
	struct sbx_dns_tcp *tcp;
	uint64_t connection; /* TCP: the connection's serial number */
	struct sockaddr_storage peer;
	socklen_t n_peer;
	uint8_t family;	   /* 4 or 6; 0: no local address is known */
	uint8_t local[16]; /* the address that was asked: the answer's source */
	uint32_t ifindex;
};

/* Sends one answer, if the asker is still there. */
void sbx_asker_send(const struct sbx_asker *asker, struct sbx_span message);
/* Answers with those of @addrs that @query asks for. */
void sbx_asker_answer(const struct sbx_asker *asker, const struct sbx_dns_query *query,
		      enum sbx_dns_rcode rcode, const struct sbx_addr *addrs, size_t n_addrs,
		      uint32_t ttl_s);
/* Answers without records. */
void sbx_asker_rcode(const struct sbx_asker *asker, const struct sbx_dns_query *query,
		     enum sbx_dns_rcode rcode);
/* Answers without records and records the refusal. NXDOMAIN for a name that policy refuses
 * carries the reason as text. @addr: the address that was judged, or NULL. */
void sbx_asker_refuse(const struct sbx_asker *asker, const struct sbx_dns_query *query,
		      enum sbx_dns_rcode rcode, const struct sbx_verdict *v,
		      const struct sbx_addr *addr);

#endif
