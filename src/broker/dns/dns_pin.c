/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Resolved pins (attach cgroup): an allowed name is resolved, the kernel is told to let its
 * addresses pass, and only then the asker gets them. So every address in an answer can be dialled
 * at once.
 *
 * At most QUERIES_MAX queries wait; more get SERVFAIL, and so does a query that waits too long.
 * Queries for one name share its resolution (resolve.c) and its pins.
 */

#include "broker/dns/dns_pin.h"

#include <errno.h>
#include <stdlib.h>

#define QUERIES_MAX 256

struct asked {
	struct sbx_dns_pins *d;
	struct asked *prev, *next;
	struct sbx_asker asker;
	struct sbx_dns_query query;
	struct sbx_timeout timeout;
	struct sbx_resolve_waiter waiter; /* 1. the name is resolved */
	struct sbx_pinned pinned;	  /* 2. its addresses are pinned */
	enum sbx_dns_rcode rcode;	  /* the answer's */
	uint32_t ttl_s;			  /* the answer's */
};

struct sbx_dns_pins {
	struct sbx_context *ctx;
	struct sbx_resolve *resolve;
	struct sbx_pinner *pinner;
	struct asked *first;
	size_t n;
};

static void free_asked(struct asked *a)
{
	sbx_resolve_cancel(&a->waiter);
	sbx_pinner_cancel(&a->pinned);
	sbx_timeout_disarm(&a->timeout);
	*(a->prev ? &a->prev->next : &a->d->first) = a->next;
	if (a->next)
		a->next->prev = a->prev;
	a->d->n--;
	free(a);
}

static void expire(struct sbx_timeout *t)
{
	struct asked *a = sbx_container_of(t, struct asked, timeout);

	a->d->ctx->stats.limits_hit++;
	sbx_asker_rcode(&a->asker, &a->query, SBX_DNS_SERVFAIL);
	free_asked(a);
}

/* The addresses that were found are not allowed any more. */
static void refuse_now(struct asked *a)
{
	const struct sbx_verdict v =
		sbx_policy_decide_name(a->d->ctx->core.policy, a->query.name, SBX_PROTO_DNS, 0);

	if (v.action == SBX_ALLOW)
		sbx_asker_rcode(&a->asker, &a->query, SBX_DNS_SERVFAIL);
	else
		sbx_asker_refuse(&a->asker, &a->query, SBX_DNS_NXDOMAIN, &v, NULL);
}

static void on_pinned(struct sbx_pinned *p, bool ok)
{
	struct asked *a = sbx_container_of(p, struct asked, pinned);
	const struct sbx_verdict failed = { .reason = SBX_REASON_FIREWALL, .rule = UINT32_MAX };

	if (ok && p->n == 0) /* the policy was changed meanwhile */
		refuse_now(a);
	else if (ok)
		sbx_asker_answer(&a->asker, &a->query, a->rcode, p->v, p->n, a->ttl_s);
	else
		sbx_asker_refuse(&a->asker, &a->query, SBX_DNS_SERVFAIL, &failed, NULL);
	free_asked(a);
}

static void on_resolved(struct sbx_resolve_waiter *w, const struct sbx_resolve_result *result)
{
	struct asked *a = sbx_container_of(w, struct asked, waiter);
	struct sbx_pinner *pinner = a->d->pinner;
	struct sbx_dns_decision d;

	a->ttl_s = result->ttl_s < SBX_DNS_REAL_TTL_MAX_S ? result->ttl_s : SBX_DNS_REAL_TTL_MAX_S;
	sbx_pinner_resolved(pinner, a->query.name, true, result, &a->pinned);
	sbx_core_decide_pinned(&a->d->ctx->core, &a->query, result, a->pinned.v, a->pinned.n, &d);
	a->rcode = d.rcode;
	if (a->pinned.n) {
		sbx_pinner_wait(pinner, &a->pinned, on_pinned);
		return;
	}
	if (d.action == SBX_DNS_REFUSE)
		sbx_asker_refuse(&a->asker, &a->query, d.rcode, &d.verdict,
				 d.n_addrs ? &d.addrs[0] : NULL);
	else
		sbx_asker_rcode(&a->asker, &a->query, d.rcode);
	free_asked(a);
	sbx_pinner_push(pinner);
}

void sbx_dns_pin_query(struct sbx_dns_pins *d, const struct sbx_asker *asker,
		       const struct sbx_dns_query *query)
{
	struct asked *a = d->n < QUERIES_MAX ? calloc(1, sizeof(*a)) : NULL;
	const struct sbx_resolve_result *result;

	if (!a) {
		d->ctx->stats.limits_hit++;
		sbx_asker_rcode(asker, query, SBX_DNS_SERVFAIL);
		return;
	}
	a->d = d;
	a->asker = *asker;
	a->query = *query;
	a->next = d->first;
	if (a->next)
		a->next->prev = a;
	d->first = a;
	d->n++;
	sbx_timer_arm(&d->ctx->timers, SBX_TIMER_DNS_PIN, &a->timeout);
	result = sbx_resolve_name(d->resolve, a->query.name, &a->waiter, on_resolved);
	if (result)
		on_resolved(&a->waiter, result);
}

int sbx_dns_pins_new(struct sbx_context *ctx, struct sbx_resolve *resolve,
		     struct sbx_pinner *pinner, struct sbx_dns_pins **ret_pins)
{
	struct sbx_dns_pins *d = calloc(1, sizeof(*d));

	if (!d)
		return -ENOMEM;
	*ret_pins = d;
	d->ctx = ctx;
	d->resolve = resolve;
	d->pinner = pinner;
	sbx_timers_on(&ctx->timers, SBX_TIMER_DNS_PIN, ctx->config.limits.connect_timeout_ms,
		      expire);
	return 0;
}

void sbx_dns_pins_free(struct sbx_dns_pins *d)
{
	if (!d)
		return;
	while (d->first)
		free_asked(d->first);
	free(d);
}
