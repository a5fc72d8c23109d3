/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_BASE_LIMITS_H
#define SBX_BASE_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

#define SBX_PUBLISH_MAX 16 /* ports of a sandbox that are published on the host */

/* Every bound on a resource that an untrusted party controls, in one place. Counts unless the
 * name says otherwise. */
struct sbx_limits {
	uint32_t n_flows;              /* TCP flows carried at once per sandbox */
	uint32_t n_published;          /* connections from outside to published ports at once */
	uint32_t n_udp_flows;          /* UDP flows at once */
	uint32_t n_pins;               /* names with a synthetic address */
	uint32_t n_dns_tcp;            /* DNS connections at once */
	/* different events folded at once; past it: reason overflow */
	uint32_t n_event_keys;
	uint32_t client_hello_bytes;   /* bytes of TLS records up to the end of the ClientHello */
	uint32_t http_head_bytes;      /* one request head */
	uint32_t handshake_timeout_ms; /* from accept to a complete ClientHello or request head */
	uint32_t connect_timeout_ms;   /* resolving and dialling together */
	uint32_t idle_timeout_ms;      /* a TCP flow without a byte either way; 0: never */
	uint32_t udp_idle_timeout_ms;
	uint32_t dns_tcp_timeout_ms;
	uint32_t n_addresses;          /* resolved addresses considered per name */
	uint32_t n_leaves;             /* certificates that sbx-tls keeps for terminated hosts */
};

extern const struct sbx_limits sbx_limits_default;

/* Lower the counts of everything that holds files, all by the same part and none below 1, until
 * @n_files free places in the file table suffice; @published: count connections from outside
 * too. Returns the number of pipes that fit besides. */
uint32_t sbx_limits_fit(struct sbx_limits *l, bool published, uint32_t n_files);

#endif
