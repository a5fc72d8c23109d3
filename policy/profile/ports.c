/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "policy/profile/ports.h"

#include <string.h>

#include "policy/profile/net_entry.h"

bool sbx_ports_has(const struct sbx_ports *ports, unsigned port)
{
	return ports->bits[port / CHAR_BIT] & (1u << (port % CHAR_BIT));
}

static void add_range(struct sbx_ports *ports, struct sbx_port_range range)
{
	for (unsigned port = range.first; port <= range.last; port++)
		ports->bits[port / CHAR_BIT] |= (uint8_t)(1u << (port % CHAR_BIT));
}

void sbx_ports_add(struct sbx_ports *ports, const struct sbx_net_entry *e, bool deny)
{
	struct sbx_port_range ranges[SBX_PORTS_MAX];
	size_t n = sbx_net_entry_ranges(e, deny, ranges);

	for (size_t i = 0; i < n; i++)
		add_range(ports, ranges[i]);
}

bool sbx_ports_shared(const struct sbx_net_entry *a, const struct sbx_net_entry *b)
{
	struct sbx_port_range x[SBX_PORTS_MAX], y[SBX_PORTS_MAX];
	size_t n_x = sbx_net_entry_ranges(a, false, x), n_y = sbx_net_entry_ranges(b, false, y);

	for (size_t i = 0; i < n_x; i++) {
		for (size_t k = 0; k < n_y; k++) {
			if (x[i].first <= y[k].last && y[k].first <= x[i].last)
				return true;
		}
	}
	return false;
}

bool sbx_ports_left(const struct sbx_net_entry *e, const struct sbx_ports *taken,
		    struct sbx_net_entry *copy, size_t *ret_n_left)
{
	struct sbx_ports own = { { 0 } };
	size_t n_own = 0, n_left = 0, n = 0;
	unsigned last = 0; /* no port */

	sbx_ports_add(&own, e, false);
	for (unsigned port = 1; port <= UINT16_MAX; port++) {
		if (!sbx_ports_has(&own, port))
			continue;
		n_own++;
		if (sbx_ports_has(taken, port))
			continue;
		n_left++;
		if (last == 0 || last + 1 != port) {
			if (n == SBX_PORTS_MAX)
				return false;
			copy->ports[n++].first = (uint16_t)port;
		}
		copy->ports[n - 1].last = (uint16_t)port;
		last = port;
	}
	copy->n_ports = n;
	*ret_n_left = n_left;
	if (n_left == n_own) { /* as it was written */
		memcpy(copy->ports, e->ports, sizeof(copy->ports));
		copy->n_ports = e->n_ports;
	}
	return true;
}
