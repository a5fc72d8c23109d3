/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_BROKER_DNS_DNS_PIN_H
#define SBX_BROKER_DNS_DNS_PIN_H

#include "broker/dns/dns_asker.h"
#include "broker/dns/pinner.h"
#include "broker/dns/resolve.h"

/* Queries whose name is resolved and pinned (attach cgroup). */

struct sbx_dns_pins;

/* Borrows @resolve and @pinner, which outlive it. 0 or -ENOMEM. */
int sbx_dns_pins_new(struct sbx_context *ctx, struct sbx_resolve *resolve,
		     struct sbx_pinner *pinner, struct sbx_dns_pins **ret_pins);
void sbx_dns_pins_free(struct sbx_dns_pins *d);
/* Resolves the name, has its addresses pinned and answers with them. */
void sbx_dns_pin_query(struct sbx_dns_pins *d, const struct sbx_asker *asker,
		       const struct sbx_dns_query *query);

#endif
