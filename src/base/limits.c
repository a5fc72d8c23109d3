/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The defaults: large enough that a package manager or a browser test never meets them, small
 * enough that one sandbox at all its limits stays within a few tens of MiB and one fd table.
 */

#include "base/limits.h"

const struct sbx_limits sbx_limits_default = {
	.n_flows = 512,
	.n_published = 512,
	.n_udp_flows = 256,
	.n_pins = 16384,
	.n_dns_tcp = 32,
	.n_event_keys = 512,
	/* One full TLS record and its header; hellos with post-quantum key shares take about 1,800.
	 */
	.client_hello_bytes = 16384 + 5,
	.http_head_bytes = 32768,
	.handshake_timeout_ms = 10 * 1000,
	.connect_timeout_ms = 15 * 1000,
	.idle_timeout_ms = 15 * 60 * 1000,
	.udp_idle_timeout_ms = 60 * 1000,
	.dns_tcp_timeout_ms = 10 * 1000,
	.n_addresses = 16,
	.n_leaves = 1024,
};

/* Files that one flow holds without its pipes: both sides and, while it is dialled, a second
 * address. */
#define FLOW_FILES	3
#define PUBLISHED_FILES 2
#define UDP_FILES	2
#define DNS_FILES	1

static uint64_t needed(const struct sbx_limits *l, bool published)
{
	return (uint64_t)l->n_flows * FLOW_FILES +
	       (published ? (uint64_t)l->n_published * PUBLISHED_FILES : 0) +
	       (uint64_t)l->n_udp_flows * UDP_FILES + (uint64_t)l->n_dns_tcp * DNS_FILES;
}

static void lower(uint32_t *n, uint64_t part, uint64_t whole)
{
	uint64_t less = *n * part / whole;

	*n = less ? (uint32_t)less : *n ? 1 : 0;
}

uint32_t sbx_limits_fit(struct sbx_limits *l, bool published, uint32_t n_files)
{
	/* a quarter is for pipes */
	uint64_t whole = needed(l, published), part = n_files - n_files / 4;

	if (whole > part) {
		lower(&l->n_flows, part, whole);
		lower(&l->n_published, part, whole);
		lower(&l->n_udp_flows, part, whole);
		lower(&l->n_dns_tcp, part, whole);
		whole = needed(l, published);
	}
	return whole < n_files ? (uint32_t)((n_files - whole) / 2) : 0;
}
