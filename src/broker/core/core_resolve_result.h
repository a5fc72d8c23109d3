/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_BROKER_CORE_CORE_RESOLVE_RESULT_H
#define SBX_BROKER_CORE_CORE_RESOLVE_RESULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"

/* The result of resolving a name: its two answers (A, AAAA) become one result. PURE. */

#define SBX_RESOLVE_ADDRS_MAX 64 /* of a result, and of each answer */

enum sbx_resolve_status {
	SBX_RESOLVE_FAILED = 0, /* no answer, or a useless one */
	SBX_RESOLVE_FOUND,	/* answered; maybe without addresses */
	SBX_RESOLVE_NXDOMAIN,	/* the name does not exist */
};

struct sbx_resolve_answer { /* of one family */
	enum sbx_resolve_status status;
	bool partial;	/* truncated, and TCP gave no whole answer; or more addresses than fit */
	uint32_t ttl_s; /* the smallest of the addresses' TTLs */
	size_t n;
	struct sbx_addr v[SBX_RESOLVE_ADDRS_MAX];
};

struct sbx_resolve_result {
	size_t n;	      /* 0: no address is known */
	uint8_t first_family; /* to try first: 6, or the family that was reached last */
	enum sbx_resolve_status status4, status6;
	bool partial;	/* there may be addresses that are not here */
	uint32_t ttl_s; /* what is left of the TTL; 0 without addresses */
	struct sbx_addr v[SBX_RESOLVE_ADDRS_MAX];
};

/* Alternates the families (IPv6 first) and keeps the order within each: if only some addresses
 * fit or are tried, both families have their share. A family that failed leaves the result
 * partial. */
void sbx_resolve_result_merge(const struct sbx_resolve_answer *v4,
			      const struct sbx_resolve_answer *v6,
			      struct sbx_resolve_result *ret_result);

#endif
