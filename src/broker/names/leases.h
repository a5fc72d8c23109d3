/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_BROKER_NAMES_LEASES_H
#define SBX_BROKER_NAMES_LEASES_H

#include <stdint.h>

#include "base/addr.h"
#include "base/cleanup.h"

/*
 * Leases: a lease notes the name that last resolved to an address, so that a flow to the address
 * can be judged and recorded by name. Only a sandbox with real DNS answers (config->dns_real) has
 * them. When the table is full, the oldest lease makes room. PURE.
 */

struct sbx_leases;

int sbx_leases_new(uint32_t n_max, struct sbx_leases **ret_leases); /* 0 or -ENOMEM */
struct sbx_leases *sbx_leases_free(struct sbx_leases *l);
SBX_DEFINE_CLEANUP(struct sbx_leases, sbx_leases_free);

/* Notes that @name (copied) gave @addr for @ttl_s seconds, and for at least SBX_LEASE_MIN_S:
 * programs keep an answer longer than its TTL. The latest name of an address wins. 0 or -ENOMEM. */
#define SBX_LEASE_MIN_S 300
int sbx_leases_add(struct sbx_leases *l, const struct sbx_addr *addr, const char *name,
		   uint32_t ttl_s, uint64_t now_ms);
/* The name of @addr's lease, borrowed until the next call with this table. NULL: it has no lease,
 * or the lease is over. */
const char *sbx_leases_name(const struct sbx_leases *l, const struct sbx_addr *addr,
			    uint64_t now_ms);

#endif
