/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_BROKER_DNS_DNS_TCP_H
#define SBX_BROKER_DNS_DNS_TCP_H

#include <stdint.h>

#include "base/span.h"
#include "broker/io/context.h"

/* DNS over TCP: the connections, without the meaning of their messages. */

struct sbx_dns_tcp;

/* Called for each query. @connection: the serial number of the connection that it came by. */
typedef void (*sbx_dns_tcp_fn)(void *userdata, uint64_t connection, struct sbx_span message);

/* *ret_t is half made after an error, and to be freed all the same. 0 or -errno. */
int sbx_dns_tcp_new(struct sbx_context *ctx, sbx_dns_tcp_fn message, void *userdata,
		    struct sbx_dns_tcp **ret_t);
void sbx_dns_tcp_free(struct sbx_dns_tcp *t);
/* Queues one answer. Does nothing if the connection is gone. */
void sbx_dns_tcp_send(struct sbx_dns_tcp *t, uint64_t connection, struct sbx_span message);

#endif
