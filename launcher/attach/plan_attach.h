/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_ATTACH_PLAN_ATTACH_H
#define SBX_LAUNCHER_ATTACH_PLAN_ATTACH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "policy/profile.h"
#include "sys/nft/nft_attach.h"

/* The lists of struct sbx_attach_input that say by address what the policy says. All are owned. */
struct sbx_attach_lists {
	size_t n_floors, n_admitted, n_cidrs, n_loopback_ports;
	struct sbx_cidr *floors; /* none inside another; none holds 127/8 or ::1 */
	struct sbx_attach_cidr *admitted, *cidrs;
	uint16_t *loopback_ports;
	bool all_destinations;
};

enum { SBX_ATTACH_LISTS_E_TOO_MANY = 1 };

/*
 * PURE. Attach cgroup: what the kernel has to know of a checked profile (its flags merged in) and the system
 * policy (NULL: none). A TCP or UDP packet to an address that no name is pinned to, on a port from 1 on, is
 * judged as sbx_policy_decide_addr() judges it under the policy compiled from the same; but it is stricter with
 *
 *   - packets of IPv6 to ::ffff:0:0/96, which are never sent: to the kernel those are IPv4;
 *   - Teredo (2001::/32) and local NAT64 (64:ff9b:1::/48): what they embed is at no fixed place, or inverted,
 *     so all of them are refused;
 *   - what goes out by lo, to an address of this host: only where the system policy's `admit` holds as well.
 *
 * No port is 0, but where every port is allowed the kernel does not look at it.
 *
 * What a pin may lead to is judged where it is made (sbx_policy_decide_resolved()). The floors, which pins do
 * not lift either, hold nothing that this policy would pin: floors, address classes that nothing lifts, and,
 * while there is room, networks to deny. What holds for some ports or one protocol, a floor as well, is in the
 * other lists alone.
 *
 * The ports of loopback_ports that a floor of the system policy denies at a loopback address are left out, and
 * with an air gap all.
 *
 * *@ret is written on success; end it with sbx_attach_lists_fini(). 0; SBX_ATTACH_LISTS_E_TOO_MANY with @err:
 * more than a sandbox has room for; -ENOMEM, -E2BIG (sbx_policy_compile()).
 */
int sbx_attach_lists_new(const struct sbx_profile *profile, const struct sbx_system_policy *system,
			 bool air_gap, struct sbx_attach_lists *ret, struct sbx_err *err);
/* Also of a zeroed struct, and twice. */
void sbx_attach_lists_fini(struct sbx_attach_lists *l);

#endif
