/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_INIT_INIT_DNS_H
#define SBX_LAUNCHER_INIT_INIT_DNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/span.h"

/* The part of DNS (RFC 1035) that the probes need. */

#define SBX_DNS_MAX	  1232 /* of an answer; the stub's answers are much smaller */
#define SBX_DNS_ADDRS_MAX 4

struct sbx_dns_answer {
	uint8_t rcode;
	bool blocked;	/* with the extended error Blocked (RFC 8914): policy refused the name */
	size_t n_addrs; /* A or AAAA records, by the query; v has the first of them */
	struct sbx_addr v[SBX_DNS_ADDRS_MAX];
};

/* PURE. Write a query, with OPT, for the A (@family 4) or AAAA (6) records of @name. The bytes
 * written, or -EINVAL: @name is not a name. */
int sbx_dns_query(const char *name, uint8_t family, uint16_t id, uint8_t *p, size_t n);
/* PURE. Read the answer to that query. 0, or -EBADMSG: not an answer to it, truncated or
 * malformed. */
int sbx_dns_answer(struct sbx_span packet, const char *name, uint8_t family, uint16_t id,
		   struct sbx_dns_answer *ret_answer);

#endif
