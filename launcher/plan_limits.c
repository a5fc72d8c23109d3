/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which limits a cgroup holds. PURE. */
#include "launcher/plan_limits.h"

uint32_t sbx_limits_need(const struct sbx_limit_values *l)
{
	return (l->memory_bytes ? SBX_CGROUP_BIT(SBX_CGROUP_MEMORY) : 0) |
	       (l->cpus_milli ? SBX_CGROUP_BIT(SBX_CGROUP_CPU) : 0) |
	       (l->io_weight ? SBX_CGROUP_BIT(SBX_CGROUP_IO) : 0);
}

bool sbx_limits_want_scope(const struct sbx_facts *f, const struct sbx_limit_values *l)
{
	return f->scope_helper && sbx_limits_need(l) & ~f->cgroup_place.controllers;
}

const char *sbx_limits_enforced_by(uint32_t held, enum sbx_cgroup_controller c)
{
	return held & SBX_CGROUP_BIT(c) ? "cgroup" : c == SBX_CGROUP_PIDS ? "rlimit" : "nothing";
}

uint32_t sbx_limits_held(const struct sbx_facts *f, const struct sbx_limit_values *l)
{
	uint32_t asked = sbx_limits_need(l) | (l->pids ? SBX_CGROUP_BIT(SBX_CGROUP_PIDS) : 0);

	return asked & (sbx_limits_want_scope(f, l) ? ~0u : f->cgroup_place.controllers);
}
