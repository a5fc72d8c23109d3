/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_PLAN_PLAN_LIMITS_H
#define SBX_LAUNCHER_PLAN_PLAN_LIMITS_H

#include "launcher/plan/plan.h"

/* The limits that a cgroup enforces, as sets of SBX_CGROUP_BITs. PURE. */

/* The controllers that alone can enforce a limit of @l. */
uint32_t sbx_limits_need(const struct sbx_limit_values *l);
/* Shall systemd make a scope? Only for a limit that nothing else can enforce. */
bool sbx_limits_want_scope(const struct sbx_facts *f, const struct sbx_limit_values *l);
/* The controllers that will enforce a limit of @l, as far as is known before the cgroup exists. */
uint32_t sbx_limits_held(const struct sbx_facts *f, const struct sbx_limit_values *l);
/* For people: why there is no cgroup, or none with the controller, and how to get one on this host.
 * @controllers: those of the mount's root. Static text. */
const char *sbx_limits_way_out(const struct sbx_facts *f, uint32_t controllers);
/* For plan and receipt: "cgroup", "rlimit" or "nothing", the enforcer of @c's limit. @held: the
 * controllers of the sandbox's cgroup. */
const char *sbx_limits_enforced_by(uint32_t held, enum sbx_cgroup_controller c);

#endif
