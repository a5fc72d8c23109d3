/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Attach cgroup: the plan's lists become the input of the host's ruleset. PURE. */
#include "launcher/attach/attach_input.h"

#include <stdlib.h>
#include <string.h>

#define GROUP_EXAMPLE 1024 /* shown until the run has found a free group */

struct sbx_addr sbx_attach_stub_addr(const char *id, unsigned i)
{
	unsigned n = (unsigned)strtoul(id + SBX_ID_LEN - 4, NULL, 16) + i * 251;

	return (struct sbx_addr){ 4, { 127, 53, (uint8_t)(n >> 8), (uint8_t)(1 + n % 254) } };
}

uint32_t sbx_attach_level(const char *mount, const char *path)
{
	size_t n = strlen(mount);
	uint32_t level = 0;

	if (strncmp(path, mount, n) != 0 || path[n] != '/')
		return 0;
	for (const char *s = path + n; *s; s++)
		level += s[0] == '/' && s[1] != '/' && s[1] != '\0';
	return level;
}

void sbx_attach_input_of(const char *id, const struct sbx_attach_lists *l,
			 const struct sbx_addr *stub, struct sbx_attach_input *in)
{
	*in = (struct sbx_attach_input){
		.id = id,
		.nflog_group = GROUP_EXAMPLE,
		.level = 1,
		.dns_addr = *stub,
		.dns_port = 53,
		.n_floors = l->n_floors,
		.floors = l->floors,
		.n_loopback_ports = l->n_loopback_ports,
		.loopback_ports = l->loopback_ports,
		.n_admitted = l->n_admitted,
		.admitted = l->admitted,
		.n_cidrs = l->n_cidrs,
		.cidrs = l->cidrs,
		.all_destinations = l->all_destinations,
	};
}
