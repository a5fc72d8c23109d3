/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_ATTACH_ATTACH_INPUT_H
#define SBX_LAUNCHER_ATTACH_ATTACH_INPUT_H

#include "base/sandbox_id.h"
#include "launcher/attach/plan_attach.h"
#include "sys/nft/nft_attach.h"

/* The @i-th address, from 0 on, where the stub of sandbox @id may listen. */
struct sbx_addr sbx_attach_stub_addr(const char *id, unsigned i);
/* The input of the host's ruleset, borrowed from @id and @l, with the stub's address; level, group
 * and cgroup are examples. */
void sbx_attach_input_of(const char *id, const struct sbx_attach_lists *l,
			 const struct sbx_addr *stub, struct sbx_attach_input *ret_in);
/* The depth of @path, a directory below the mount of cgroup2; 0: it is not below. */
uint32_t sbx_attach_level(const char *mount, const char *path);

#endif
