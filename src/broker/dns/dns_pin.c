/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Real pins (attach cgroup): an allowed name is resolved, the kernel told to let its addresses pass, and
 * only then the asker told of them, so that what is told can be dialled at once.
 *
 * At most QUERIES_MAX queries wait; more get SERVFAIL, and so does one that waits for too long. Those for one
 * name share its resolution (resolve.c) and its pins.
 */

#include "broker/dns/dns_stub.h"

#include <errno.h>
#include <stdlib.h>

#include "broker/dns/resolve.h"
#include "broker/io/io_resolved_pins.h"

#define QUERIES_MAX 256

struct asked {
	struct sbx_dns_pins *d;
	struct asked *prev, *next;
	struct sbx_asker asker;
	struct sbx_dns_query query;
	struct sbx_timeout timeout;
	struct sbx_resolve_waiter waiter; /* first for this, */
	struct sbx_pinned pinned;	  /* then for that */
	enum sbx_dns_rcode rcode;	  /* to say then */
	uint32_t ttl_s;
};

struct sbx_dns_pins {
	struct sbx_broker *b;
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

static void expire(struct sbx_broker *b, struct sbx_timeout *t)
{
	struct asked *a = sbx_container_of(t, struct asked, timeout);

	b->stats.limits_hit++;
	sbx_stub_send_rcode(b, &a->asker, &a->query, SBX_DNS_SERVFAIL);
	free_asked(a);
}

static void on_pinned(struct sbx_pinned *p, bool ok)
{
	struct asked *a = sbx_container_of(p, struct asked, pinned);
	const struct sbx_verdict failed = { .reason = SBX_REASON_FIREWALL, .rule = UINT32_MAX };
	struct sbx_broker *b = a->d->b;

	if (ok)
		sbx_stub_answer(b, &a->asker, &a->query, a->rcode, p->v, p->n, a->ttl_s);
	else
		sbx_stub_refuse(b, &a->asker, &a->query, SBX_DNS_SERVFAIL, &failed, NULL);
	free_asked(a);
}

static void on_resolved(struct sbx_resolve_waiter *w, const struct sbx_resolved *result)
{
	struct asked *a = sbx_container_of(w, struct asked, waiter);
	struct sbx_broker *b = a->d->b;
	struct sbx_dns_decision d;

	a->ttl_s = result->ttl_s < SBX_DNS_REAL_TTL_MAX_S ? result->ttl_s : SBX_DNS_REAL_TTL_MAX_S;
	sbx_pinner_resolved(b->pinner, a->query.name, true, result, &a->pinned);
	sbx_core_decide_pinned(&b->core, &a->query, result, a->pinned.v, a->pinned.n, &d);
	a->rcode = d.rcode;
	if (a->pinned.n) {
		sbx_pinner_wait(b->pinner, &a->pinned, on_pinned);
		return;
	}
	if (d.action == SBX_DNS_REFUSE)
		sbx_stub_refuse(b, &a->asker, &a->query, d.rcode, &d.verdict,
				d.n_addrs ? &d.addrs[0] : NULL);
	else
		sbx_stub_send_rcode(b, &a->asker, &a->query, d.rcode);
	free_asked(a);
	sbx_pinner_push(b->pinner);
}

void sbx_dns_pin_query(struct sbx_dns_pins *d, const struct sbx_asker *asker,
		       const struct sbx_dns_query *query)
{
	struct asked *a = d->n < QUERIES_MAX ? calloc(1, sizeof(*a)) : NULL;
	const struct sbx_resolved *result;

	if (!a) {
		d->b->stats.limits_hit++;
		sbx_stub_send_rcode(d->b, asker, query, SBX_DNS_SERVFAIL);
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
	sbx_timer_arm(d->b, SBX_TIMER_DNS_PIN, &a->timeout);
	result = sbx_resolve_name(d->b->resolve, a->query.name, &a->waiter, on_resolved);
	if (result)
		on_resolved(&a->waiter, result);
}

int sbx_dns_pins_new(struct sbx_broker *b)
{
	struct sbx_dns_pins *d = calloc(1, sizeof(*d));

	if (!d)
		return -ENOMEM;
	b->dns_pins = d;
	d->b = b;
	sbx_timers_on(b, SBX_TIMER_DNS_PIN, b->config.limits.connect_timeout_ms, expire);
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
