/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_BROKER_DNS_DNS_FORWARD_H
#define SBX_BROKER_DNS_DNS_FORWARD_H

#include <stddef.h>

#include "broker/dns/dns_asker.h"
#include "broker/dns/resolve.h"

/* Real answers, for the modes that give them. Freeing the resolver drops the queries under way. */
struct sbx_forward {
	struct sbx_resolve *resolve; /* borrowed */
	size_t n;		     /* queries under way */
	struct sbx_forwarded *first; /* those queries */
};

/* Asks the resolvers the question of @query and passes the answer on. */
void sbx_forward_query(struct sbx_forward *f, const struct sbx_asker *asker,
		       const struct sbx_dns_query *query);

/* As sbx_stub_judge_again(). */
size_t sbx_forward_judge_again(struct sbx_forward *f);

#endif
