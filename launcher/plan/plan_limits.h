/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_PLAN_PLAN_LIMITS_H
#define SBX_LAUNCHER_PLAN_PLAN_LIMITS_H

#include "launcher/plan/plan.h"

/* Which limits a cgroup holds, as SBX_CGROUP_BITs. PURE. */

/* The controllers without which a limit that was asked for is not held at all. */
uint32_t sbx_limits_need(const struct sbx_limit_values *l);
/* Is systemd to be asked for a scope? Only where that can hold a limit that nothing else can. */
bool sbx_limits_want_scope(const struct sbx_facts *f, const struct sbx_limit_values *l);
/* The limits that will be held by a cgroup, as far as can be told before it is made. */
uint32_t sbx_limits_held(const struct sbx_facts *f, const struct sbx_limit_values *l);
/* Where no cgroup can be had, or none with the controller: why, and how to get one here. @controllers: those that the
 * mount's root has, as bits. Static text. */
const char *sbx_limits_way_out(const struct sbx_facts *f, uint32_t controllers);
/* What bounds a controller's limit that was asked for, where cgroups hold those in @held: for plan and receipt. */
const char *sbx_limits_enforced_by(uint32_t held, enum sbx_cgroup_controller c);

#endif
