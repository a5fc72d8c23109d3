/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_SYS_NFT_NFT_PIN_H
#define SBX_SYS_NFT_NFT_PIN_H

#include <stdint.h>

#include "base/addr.h"
#include "base/reason.h"

/* A pin: an address, protocol and port that a sandbox of attach cgroup may send to for some
 * time. */

#define SBX_ATTACH_PIN_TIMEOUT_MAX (UINT64_C(30) * 24 * 3600 * 1000)

enum sbx_attach_age {
	SBX_ATTACH_CURRENT = 0, /* new flows too */
	SBX_ATTACH_OLD,		/* TCP connections that are open already, and UDP */
	SBX_ATTACH_N_AGES,
};

/* The caller has judged the address. timeout_ms 0: remove the pin. */
struct sbx_attach_pin {
	struct sbx_addr addr;
	enum sbx_proto proto; /* tcp or udp */
	uint16_t port;
	enum sbx_attach_age age;
	uint64_t timeout_ms; /* from now; at most SBX_ATTACH_PIN_TIMEOUT_MAX */
};

#endif
