/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Real answers, for the modes that give them. A query that core_dns.c lets through goes to the
 * resolvers by c-ares, rewritten: a fresh id, our flags, the question, and OPT if it had one. The
 * answer goes back under the asker's id.
 *
 * The answer to a query for addresses is judged first: each name of its CNAME chain. Its addresses
 * are remembered under the name asked for (leases), so that the flow to them can be judged and
 * recorded by name. At most FORWARDS_MAX queries are under way; more get SERVFAIL.
 */

#include "broker/dns/dns_forward.h"

#include <ares.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define FORWARDS_MAX 256

struct sbx_forwarded {
	struct sbx_forwarded *prev, *next;
	struct sbx_forward *f;
	bool refused; /* the asker got its answer: the policy was changed */
	struct sbx_asker asker;
	struct sbx_dns_query query;
};

/* Has this host a route to @addr? The connect sends nothing. */
static bool is_routable(const struct sbx_addr *addr)
{
	struct sockaddr_storage ss;
	socklen_t n = sbx_addr_to_sockaddr(addr, 53, &ss);
	SBX_AUTO_CLOSE int fd = socket(ss.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	return fd < 0 || connect(fd, (struct sockaddr *)&ss, n) == 0;
}

/* Are there only IPv6 addresses that this host cannot reach? The sandbox must not learn them: we
 * would accept its connection before it fails outside, and the client would not try IPv4. */
static bool is_useless(const struct sbx_dns_answer *answer)
{
	for (size_t i = 0; i < answer->n_addrs; i++)
		if (answer->addrs[i].family == 4 || is_routable(&answer->addrs[i]))
			return false;
	return answer->n_addrs > 0;
}

/* Judges the answer to a query for addresses. False: the asker got another answer already. */
static bool judge(const struct sbx_forwarded *w, struct sbx_span message)
{
	struct sbx_context *ctx = w->asker.ctx;
	struct sbx_dns_answer answer;
	struct sbx_verdict v;
	uint16_t id = (uint16_t)(message.p[0] << 8 | message.p[1]);

	if (sbx_dns_parse_answer(message, &w->query, id, &answer) != 0) {
		sbx_asker_rcode(&w->asker, &w->query, SBX_DNS_SERVFAIL);
		return false;
	}
	v = sbx_core_judge_cnames(&ctx->core, &answer);
	if (v.action != SBX_ALLOW) {
		sbx_asker_refuse(&w->asker, &w->query, SBX_DNS_NXDOMAIN, &v, NULL);
		return false;
	}
	if (is_useless(&answer)) {
		sbx_asker_rcode(&w->asker, &w->query, SBX_DNS_NOERROR);
		return false;
	}
	for (size_t i = 0; i < answer.n_addrs && w->query.is_hostname; i++)
		sbx_leases_add(ctx->core.leases, &answer.addrs[i], w->query.name, answer.ttl_s,
			       sbx_now_ms());
	return true;
}

/* Over UDP an answer that is too long is cut to its question, with TC set (RFC 2181 section 9). */
static size_t cut(const struct sbx_forwarded *w, uint8_t *p, size_t n)
{
	size_t n_head = SBX_DNS_HEADER_LEN + w->query.n_question;

	if (w->asker.fd < 0 || n <= sbx_dns_udp_limit(&w->query) || n < n_head)
		return n;
	p[2] |= 0x02;
	memset(p + 6, 0, 6); /* answer, authority, additional counts */
	return n_head;
}

static void free_forwarded(struct sbx_forwarded *w)
{
	struct sbx_forward *f = w->f;

	*(w->prev ? &w->prev->next : &f->first) = w->next;
	if (w->next)
		w->next->prev = w->prev;
	f->n--;
	free(w);
}

static void ask(struct sbx_forwarded *w);

static void on_answer(void *userdata, int status, int timeouts, unsigned char *p, int n)
{
	struct sbx_forwarded *w = userdata;
	bool has_addrs = w->query.qtype == SBX_DNS_TYPE_A || w->query.qtype == SBX_DNS_TYPE_AAAA;
	const struct sbx_verdict failed = { .reason = SBX_REASON_RESOLVE_FAILED,
					    .rule = UINT32_MAX };
	struct sbx_span message = sbx_span(p, n > 0 ? (size_t)n : 0);

	(void)timeouts;
	if (status == ARES_EDESTRUCTION) { /* w->f is gone */
		free(w);
		return;
	}
	if (w->refused) {
		free_forwarded(w);
		return;
	}
	if (status == ARES_ECANCELLED) { /* others were unwanted: asks again */
		ask(w);
		return;
	}
	if (status != ARES_SUCCESS || message.n < SBX_DNS_HEADER_LEN) {
		sbx_asker_refuse(&w->asker, &w->query, SBX_DNS_SERVFAIL, &failed, NULL);
	} else if (!has_addrs || judge(w, message)) {
		size_t n_out = cut(w, p, message.n);

		p[0] = (uint8_t)(w->query.id >> 8);
		p[1] = (uint8_t)w->query.id;
		sbx_asker_send(&w->asker, sbx_span(p, n_out));
	}
	free_forwarded(w);
}

/* The answer may come from inside this call: then @w is gone. */
static void ask(struct sbx_forwarded *w)
{
	uint8_t out[SBX_DNS_HEADER_LEN + SBX_DNS_QUESTION_MAX + 64];
	size_t n;

	if (sbx_dns_write_query(&w->query, w->query.id, out, sizeof(out), &n) == 0) {
		sbx_resolve_send(w->f->resolve, out, n, on_answer, w);
		return;
	}
	sbx_asker_rcode(&w->asker, &w->query, SBX_DNS_SERVFAIL);
	free_forwarded(w);
}

size_t sbx_forward_judge_again(struct sbx_forward *f)
{
	size_t n = 0;

	for (struct sbx_forwarded *w = f->first; w; w = w->next) {
		struct sbx_dns_decision d;

		if (w->refused)
			continue;
		sbx_core_decide_dns(&w->asker.ctx->core, &w->query, &d);
		if (d.action != SBX_DNS_REFUSE)
			continue;
		w->refused = true;
		sbx_asker_refuse(&w->asker, &w->query, d.rcode, &d.verdict, NULL);
		n++;
	}
	return n;
}

void sbx_forward_query(struct sbx_forward *f, const struct sbx_asker *asker,
		       const struct sbx_dns_query *query)
{
	struct sbx_forwarded *w = f->n < FORWARDS_MAX ? calloc(1, sizeof(*w)) : NULL;

	if (!w) {
		asker->ctx->stats.limits_hit++;
		sbx_asker_rcode(asker, query, SBX_DNS_SERVFAIL);
		return;
	}
	w->f = f;
	w->asker = *asker;
	w->query = *query;
	w->next = f->first;
	if (w->next)
		w->next->prev = w;
	f->first = w;
	f->n++;
	ask(w);
}
