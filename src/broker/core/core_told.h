/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_BROKER_CORE_CORE_TOLD_H
#define SBX_BROKER_CORE_CORE_TOLD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/cleanup.h"

/* Remembers the @n_max latest pairs of a name and an address that were recorded, so that each is
 * recorded once. PURE. */

struct sbx_told;

int sbx_told_new(uint32_t n_max, struct sbx_told **ret_told); /* 0 or -ENOMEM */
struct sbx_told *sbx_told_free(struct sbx_told *told);
SBX_DEFINE_CLEANUP(struct sbx_told, sbx_told_free);

/* Is the pair new? Remembers it (unless there is no memory). */
bool sbx_told_add(struct sbx_told *told, const char *name, const struct sbx_addr *addr);

#endif
