/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_PLAN_ATTACH_INPUT_H
#define SBX_LAUNCHER_PLAN_ATTACH_INPUT_H

#include "launcher/plan/plan.h"
#include "sys/nft/nft_attach.h"

/* Where the stub of sandbox @id may listen, @i from 0 on. */
struct sbx_addr sbx_plan_attach_stub(const char *id, unsigned i);
/* What the host's ruleset is made of, borrowed from the plan; level, group and cgroup are examples. */
void sbx_plan_attach_input(const struct sbx_plan *p, struct sbx_attach_input *ret_in);
/* The depth of @path, a directory below the mount of cgroup2; 0: it is not below. */
uint32_t sbx_plan_attach_level(const char *mount, const char *path);

#endif
