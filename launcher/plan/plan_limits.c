/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The limits that a cgroup enforces. PURE. */
#include "launcher/plan/plan_limits.h"

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

const char *sbx_limits_way_out(const struct sbx_facts *f, uint32_t controllers)
{
	if (!f->cgroup.mount[0])
		return "no cgroup v2 is mounted: boot with systemd.unified_cgroup_hierarchy=1, or, "
		       "in a container, mount cgroup2 on /sys/fs/cgroup";
	if (!controllers)
		return "cgroup v2 has no controllers here, v1 holds them, or the container's host: "
		       "boot "
		       "with systemd.unified_cgroup_hierarchy=1, or give the container its own "
		       "cgroup";
	if (!f->cgroup.systemd)
		return f->caller_uid == 0 ? "there is no cgroup v2 that may be changed: mount "
					    "cgroup2 writable on /sys/fs/cgroup" :
					    "there is no cgroup v2 that this user may change: "
					    "start it as root, or "
					    "let root make a cgroup, give it to this user and put "
					    "the shell in it";
	if (f->caller_uid == 0)
		return "this cgroup is not delegated: start it with systemd-run --scope -p "
		       "Delegate=yes sbx-run ..., or in a unit with Delegate=yes";
	return "this cgroup is not delegated: start it with systemd-run --user --scope -p "
	       "Delegate=yes "
	       "sbx-run ..., for which a user without a session needs loginctl enable-linger USER, "
	       "once, by root";
}
