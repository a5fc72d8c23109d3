/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The defaults: large enough that a package manager or a browser test never meets them, small
 * enough that one sandbox at all its limits stays within a few tens of MiB and one fd table.
 */

#include "base/limits.h"

const struct sbx_limits sbx_limits_default = {
	.n_flows = 512,
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
};
