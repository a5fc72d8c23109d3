/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_ATTACH_PLAN_ATTACH_H
#define SBX_LAUNCHER_ATTACH_PLAN_ATTACH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "policy/decide/policy.h"
#include "policy/profile/profile.h"
#include "sys/nft/nft_attach.h"

/* The policy as the lists of struct sbx_attach_input. All arrays are owned. */
struct sbx_attach_lists {
	size_t n_floors, n_admitted, n_cidrs, n_loopback_ports;
	struct sbx_cidr *floors; /* none inside another; none holds 127/8 or ::1 */
	struct sbx_attach_cidr *admitted, *cidrs;
	uint16_t *loopback_ports;
	bool all_destinations;
};

enum { SBX_ATTACH_LISTS_E_TOO_MANY = 1 };

/*
 * PURE. Attach cgroup: makes the kernel's lists from @policy and the @in that it was compiled from
 * (both are borrowed for the call): the networks are @in's, the verdicts are @policy's. The kernel
 * then judges a TCP or UDP packet to an address without a
 * pin as sbx_policy_decide_addr() does. It is stricter in three cases:
 *
 *   - IPv6 packets to ::ffff:0:0/96 are refused. They are never sent: the kernel makes them IPv4.
 *   - Teredo (2001::/32) and local NAT64 (64:ff9b:1::/48) are refused as a whole: the address that
 *     they embed has no fixed place, or is inverted.
 *   - A packet through lo, to an address of this host, also needs the system policy's `admit`.
 *
 * Ports are 1 to 65535. A rule for every port does not look at the port.
 *
 * A pin is judged when it is made (sbx_policy_decide_resolved()), and cannot lift a floor. The list
 * of floors has the floors for all ports and protocols, the address classes that nothing lifts,
 * and, while there is room, denied networks. Floors for some ports or one protocol are rules in the
 * other lists.
 *
 * loopback_ports leaves out each port that a floor of the system policy denies at a loopback
 * address, and with an air gap every port: they are ports of the host.
 *
 * *@ret is written only on success; end it with sbx_attach_lists_fini(). Returns 0;
 * SBX_ATTACH_LISTS_E_TOO_MANY with @err: more than a sandbox has room for; or -ENOMEM.
 */
int sbx_attach_lists_new(const struct sbx_policy_input *in, const struct sbx_policy *policy,
			 struct sbx_attach_lists *ret, struct sbx_err *err);
/* Takes a zeroed struct, too, and may be called twice. */
void sbx_attach_lists_fini(struct sbx_attach_lists *l);

#endif
