/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_BROKER_DNS_DNS_STUB_H
#define SBX_BROKER_DNS_DNS_STUB_H

#include "broker/dns/pinner.h"
#include "broker/dns/resolve.h"
#include "broker/io/context.h"

/* The DNS server that the sandbox sees. */

struct sbx_stub;

/* Borrows @resolve and @pinner (or NULL). *ret_stub is half made after an error, and to be freed
 * all the same. 0 or -errno. */
int sbx_stub_new(struct sbx_context *ctx, struct sbx_resolve *resolve, struct sbx_pinner *pinner,
		 struct sbx_stub **ret_stub);
void sbx_stub_free(struct sbx_stub *s); /* before @resolve and @pinner */
/* The core has another policy: refuses those queries under way that it does not let be asked.
 * Returns their number. */
size_t sbx_stub_judge_again(struct sbx_stub *s);

#endif
