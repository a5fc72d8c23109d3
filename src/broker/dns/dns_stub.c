/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The DNS stub.
 *
 * Its sockets are bound to port 53 of every address in the sandbox's namespace, so every query of
 * the sandbox comes here, whatever resolver it is for. (With attach cgroup the stub has an address
 * of its own; sys/net/dns_capture.c leads all queries there, or they are refused.) PKTINFO tells
 * the address that was asked; the answer gets it as its source. core_dns.c decides the answer, from
 * memory; where real addresses are given, dns_forward.c or dns_pin.c takes over. At most BATCH
 * messages are read per event, so that a flood of queries leaves the flows their turns.
 */

#include "broker/dns/dns_stub.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "broker/dns/dns_asker.h"
#include "broker/dns/dns_forward.h"
#include "broker/dns/dns_pin.h"
#include "broker/dns/dns_tcp.h"

#define BATCH 32

struct sbx_stub {
	struct sbx_context *ctx;
	struct event ev_udp[2]; /* v4, v6 */
	struct sbx_dns_tcp *tcp;
	struct sbx_forward forward;
	struct sbx_dns_pins *pins;
};

union control {
	char room[CMSG_SPACE(sizeof(struct in6_pktinfo)) + CMSG_SPACE(sizeof(struct in_pktinfo))];
	struct cmsghdr align;
};

static void refuse_malformed(const struct sbx_asker *asker, const struct sbx_dns_query *query,
			     int r)
{
	struct sbx_verdict v = { .reason = SBX_REASON_DNS_MALFORMED, .rule = UINT32_MAX };
	enum sbx_dns_rcode rcode = r == SBX_DNS_E_NOTIMP    ? SBX_DNS_NOTIMP
				   : r == SBX_DNS_E_BADVERS ? SBX_DNS_BADVERS
							    : SBX_DNS_FORMERR;

	sbx_asker_refuse(asker, query, rcode, &v, NULL);
}

/* Answers, drops or hands on one message of the sandbox. */
static void take_message(struct sbx_stub *s, const struct sbx_asker *asker, struct sbx_span message)
{
	struct sbx_context *ctx = s->ctx;
	struct sbx_dns_query query;
	struct sbx_dns_decision d;
	int r = sbx_dns_parse_query(message, &query);

	ctx->stats.dns_queries++;
	if (r == SBX_DNS_E_DROP)
		return;
	if (r != 0) {
		refuse_malformed(asker, &query, r);
		return;
	}
	sbx_core_decide_dns(&ctx->core, &query, &d);
	switch (d.action) {
	case SBX_DNS_ANSWER:
		sbx_asker_answer(asker, &query, d.rcode, d.addrs, d.n_addrs, SBX_DNS_PIN_TTL_S);
		break;
	case SBX_DNS_FORWARD:
		sbx_forward_query(&s->forward, asker, &query);
		break;
	case SBX_DNS_REFUSE:
		sbx_asker_refuse(asker, &query, d.rcode, &d.verdict, NULL);
		break;
	case SBX_DNS_PIN:
		sbx_dns_pin_query(s->pins, asker, &query);
		break;
	}
}

/* --- UDP --- */

static void read_destination(struct msghdr *msg, struct sbx_asker *asker)
{
	for (struct cmsghdr *cmsg = CMSG_FIRSTHDR(msg); cmsg; cmsg = CMSG_NXTHDR(msg, cmsg)) {
		if (cmsg->cmsg_level == IPPROTO_IP && cmsg->cmsg_type == IP_PKTINFO) {
			struct in_pktinfo info;

			memcpy(&info, CMSG_DATA(cmsg), sizeof(info));
			asker->family = 4;
			memcpy(asker->local, &info.ipi_addr, 4);
			asker->ifindex = (uint32_t)info.ipi_ifindex;
		} else if (cmsg->cmsg_level == IPPROTO_IPV6 && cmsg->cmsg_type == IPV6_PKTINFO) {
			struct in6_pktinfo info;

			memcpy(&info, CMSG_DATA(cmsg), sizeof(info));
			asker->family = 6;
			memcpy(asker->local, &info.ipi6_addr, 16);
			asker->ifindex = info.ipi6_ifindex;
		}
	}
}

static void on_udp(evutil_socket_t fd, short what, void *userdata)
{
	struct sbx_stub *s = userdata;

	(void)what;
	for (int i = 0; i < BATCH; i++) {
		struct sbx_asker asker = { .ctx = s->ctx, .fd = fd };
		union control control;
		struct iovec iov = { .iov_base = s->ctx->copy, .iov_len = sizeof(s->ctx->copy) };
		struct msghdr msg = {
			.msg_name = &asker.peer,
			.msg_namelen = sizeof(asker.peer),
			.msg_iov = &iov,
			.msg_iovlen = 1,
			.msg_control = control.room,
			.msg_controllen = sizeof(control.room),
		};
		ssize_t n = recvmsg(fd, &msg, MSG_DONTWAIT);

		if (n < 0)
			return; /* EAGAIN, or an ICMP error of an earlier answer */
		asker.n_peer = msg.msg_namelen;
		read_destination(&msg, &asker);
		take_message(s, &asker, sbx_span(s->ctx->copy, (size_t)n));
	}
}

static void on_tcp(void *userdata, uint64_t connection, struct sbx_span message)
{
	struct sbx_stub *s = userdata;
	struct sbx_asker asker = {
		.ctx = s->ctx, .fd = -1, .tcp = s->tcp, .connection = connection
	};

	take_message(s, &asker, message);
}

int sbx_stub_new(struct sbx_context *ctx, struct sbx_resolve *resolve, struct sbx_pinner *pinner,
		 struct sbx_stub **ret_stub)
{
	struct sbx_stub *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	*ret_stub = s;
	s->ctx = ctx;
	s->forward.resolve = resolve;
	r = sbx_dns_pins_new(ctx, resolve, pinner, &s->pins);
	if (r == 0)
		r = sbx_context_watch(ctx, &s->ev_udp[0], ctx->fds[SBX_BFD_DNS_UDP4], on_udp, s);
	if (r == 0)
		r = sbx_context_watch(ctx, &s->ev_udp[1], ctx->fds[SBX_BFD_DNS_UDP6], on_udp, s);
	return r < 0 ? r : sbx_dns_tcp_new(ctx, on_tcp, s, &s->tcp);
}

size_t sbx_stub_judge_again(struct sbx_stub *s)
{
	return sbx_forward_judge_again(&s->forward);
}

void sbx_stub_free(struct sbx_stub *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < SBX_N_ELEMENTS(s->ev_udp); i++)
		sbx_context_unwatch(&s->ev_udp[i]);
	sbx_dns_tcp_free(s->tcp);
	sbx_dns_pins_free(s->pins);
	free(s);
}
