/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_POLICY_PROFILE_PORTS_H
#define SBX_POLICY_PROFILE_PORTS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/profile/profile.h"

/* Sets of ports, as entries have them. PURE. */

struct sbx_ports {
	uint8_t bits[(UINT16_MAX + 1) / CHAR_BIT]; /* all zero: none */
};

bool sbx_ports_has(const struct sbx_ports *ports, unsigned port);
/* Adds the ports of @e, the default ones where it has none. @deny: it is of a deny list. */
void sbx_ports_add(struct sbx_ports *ports, const struct sbx_net_entry *e, bool deny);

/* Do the two entries of an allow list have a port in common? */
bool sbx_ports_shared(const struct sbx_net_entry *a, const struct sbx_net_entry *b);

/* Writes the ports of @e that are not in @taken to @copy; all of them as @e has them. *ret_n_left:
 * how many there are. False: they are more ranges than an entry has. */
bool sbx_ports_left(const struct sbx_net_entry *e, const struct sbx_ports *taken,
		    struct sbx_net_entry *copy, size_t *ret_n_left);

#endif
