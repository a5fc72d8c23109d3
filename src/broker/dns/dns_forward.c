/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Real answers, for the modes that give them: a query that core_dns.c lets through goes to the
 * resolvers by c-ares, rewritten (a fresh id, our flags, the question, OPT where it had one), and
 * the answer comes back under the asker's id.
 *
 * Answers with addresses are read first: each name of the CNAME chain is judged, and the addresses
 * are remembered under the name asked for (leases), so that the flow to them can be judged and
 * recorded by name. At most FORWARDS_MAX queries are under way; more get SERVFAIL.
 */

#include "broker/dns/dns_stub.h"

#include <ares.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "broker/dns/resolve.h"

#define FORWARDS_MAX 256

struct sbx_forward {
	struct sbx_broker *b;
	size_t n;
};

struct forwarded {
	struct sbx_forward *f;
	struct sbx_asker asker;
	struct sbx_dns_query query;
};

/* Has this host a way there? Asked of the routes, by a connect that sends nothing. */
static bool is_routable(const struct sbx_addr *addr)
{
	struct sockaddr_storage ss;
	socklen_t n = sbx_addr_to_sockaddr(addr, 53, &ss);
	SBX_AUTO_CLOSE int fd = socket(ss.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	return fd < 0 || connect(fd, (struct sockaddr *)&ss, n) == 0;
}

/* On a host without IPv6 the sandbox must not be told of IPv6 addresses: a connection to one would be
 * accepted here before it fails outside, and the client not try the next. */
static bool is_useless(const struct sbx_dns_answer *answer)
{
	for (size_t i = 0; i < answer->n_addrs; i++)
		if (answer->addrs[i].family == 4 || is_routable(&answer->addrs[i]))
			return false;
	return answer->n_addrs > 0;
}

/* Read an answer with addresses. False: it is answered already, refused for one. */
static bool judge(struct sbx_broker *b, const struct forwarded *w, struct sbx_span message)
{
	struct sbx_dns_answer answer;
	struct sbx_verdict v;
	uint16_t id = (uint16_t)(message.p[0] << 8 | message.p[1]);

	if (sbx_dns_parse_answer(message, &w->query, id, &answer) != 0) {
		sbx_stub_send_rcode(b, &w->asker, &w->query, SBX_DNS_SERVFAIL);
		return false;
	}
	v = sbx_core_judge_cnames(&b->core, &answer);
	if (v.action != SBX_ALLOW) {
		sbx_stub_refuse(b, &w->asker, &w->query, SBX_DNS_NXDOMAIN, &v, NULL);
		return false;
	}
	if (is_useless(&answer)) {
		sbx_stub_send_rcode(b, &w->asker, &w->query, SBX_DNS_NOERROR);
		return false;
	}
	for (size_t i = 0; i < answer.n_addrs && w->query.is_hostname; i++)
		sbx_leases_add(b->core.leases, &answer.addrs[i], w->query.name, answer.ttl_s,
			       sbx_now_ms());
	return true;
}

/* Over UDP an answer that is too long is cut to its question, with TC set (RFC 2181 section 9). */
static size_t cut(const struct forwarded *w, uint8_t *p, size_t n)
{
	size_t n_head = SBX_DNS_HEADER_LEN + w->query.n_question;

	if (w->asker.fd < 0 || n <= sbx_dns_udp_limit(&w->query) || n < n_head)
		return n;
	p[2] |= 0x02;
	memset(p + 6, 0, 6); /* answer, authority, additional counts */
	return n_head;
}

static void on_answer(void *userdata, int status, int timeouts, unsigned char *p, int n)
{
	struct forwarded *w = userdata;
	struct sbx_broker *b = w->f->b;
	bool has_addrs = w->query.qtype == SBX_DNS_TYPE_A || w->query.qtype == SBX_DNS_TYPE_AAAA;
	const struct sbx_verdict failed = { .reason = SBX_REASON_RESOLVE_FAILED, .rule = UINT32_MAX };
	struct sbx_span message = sbx_span(p, n > 0 ? (size_t)n : 0);

	(void)timeouts;
	w->f->n--;
	if (status == ARES_EDESTRUCTION) {
		free(w);
		return;
	}
	if (status != ARES_SUCCESS || message.n < SBX_DNS_HEADER_LEN) {
		sbx_stub_refuse(b, &w->asker, &w->query, SBX_DNS_SERVFAIL, &failed, NULL);
	} else if (!has_addrs || judge(b, w, message)) {
		size_t n_out = cut(w, p, message.n);

		p[0] = (uint8_t)(w->query.id >> 8);
		p[1] = (uint8_t)w->query.id;
		sbx_stub_send(b, &w->asker, sbx_span(p, n_out));
	}
	free(w);
}

void sbx_forward_query(struct sbx_forward *f, const struct sbx_asker *asker,
		       const struct sbx_dns_query *query)
{
	struct forwarded *w = f->n < FORWARDS_MAX ? calloc(1, sizeof(*w)) : NULL;
	uint8_t out[SBX_DNS_HEADER_LEN + SBX_DNS_QUESTION_MAX + 64];
	size_t n;

	if (!w || sbx_dns_write_query(query, query->id, out, sizeof(out), &n) != 0) {
		f->b->stats.limits_hit += !w;
		free(w);
		sbx_stub_send_rcode(f->b, asker, query, SBX_DNS_SERVFAIL);
		return;
	}
	w->f = f;
	w->asker = *asker;
	w->query = *query;
	f->n++;
	sbx_resolve_send(f->b->resolve, out, n, on_answer, w);
}

int sbx_forward_new(struct sbx_broker *b)
{
	struct sbx_forward *f = calloc(1, sizeof(*f));

	if (!f)
		return -ENOMEM;
	b->forward = f;
	f->b = b;
	return 0;
}

void sbx_forward_free(struct sbx_forward *f)
{
	free(f);
}
