/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "broker/dns/dns_asker.h"

#include <string.h>

#include "broker/io/report.h"

#define OUT_MAX 4096 /* SBX_RESOLVE_ADDRS_MAX addresses of 28 bytes, and the question */

union control {
	char room[CMSG_SPACE(sizeof(struct in6_pktinfo)) + CMSG_SPACE(sizeof(struct in_pktinfo))];
	struct cmsghdr align;
};

static void send_udp(const struct sbx_asker *asker, struct sbx_span message)
{
	struct iovec iov = { .iov_base = (void *)(uintptr_t)message.p, .iov_len = message.n };
	union control control;
	struct msghdr msg = {
		.msg_name = (void *)(uintptr_t)&asker->peer,
		.msg_namelen = asker->n_peer,
		.msg_iov = &iov,
		.msg_iovlen = 1,
	};
	struct cmsghdr *cmsg;

	memset(&control, 0, sizeof(control));
	msg.msg_control = control.room;
	if (asker->family == 4) {
		struct in_pktinfo info = { .ipi_ifindex = (int)asker->ifindex };

		memcpy(&info.ipi_spec_dst, asker->local, 4);
		msg.msg_controllen = CMSG_SPACE(sizeof(info));
		cmsg = CMSG_FIRSTHDR(&msg);
		cmsg->cmsg_level = IPPROTO_IP;
		cmsg->cmsg_type = IP_PKTINFO;
		cmsg->cmsg_len = CMSG_LEN(sizeof(info));
		memcpy(CMSG_DATA(cmsg), &info, sizeof(info));
	} else if (asker->family == 6) {
		struct in6_pktinfo info = { .ipi6_ifindex = asker->ifindex };

		memcpy(&info.ipi6_addr, asker->local, 16);
		msg.msg_controllen = CMSG_SPACE(sizeof(info));
		cmsg = CMSG_FIRSTHDR(&msg);
		cmsg->cmsg_level = IPPROTO_IPV6;
		cmsg->cmsg_type = IPV6_PKTINFO;
		cmsg->cmsg_len = CMSG_LEN(sizeof(info));
		memcpy(CMSG_DATA(cmsg), &info, sizeof(info));
	} else {
		msg.msg_control = NULL;
	}
	/* If the answer is lost, the client asks again. */
	sendmsg(asker->fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void sbx_asker_send(const struct sbx_asker *asker, struct sbx_span message)
{
	if (asker->fd >= 0)
		send_udp(asker, message);
	else
		sbx_dns_tcp_send(asker->tcp, asker->connection, message);
}

void sbx_asker_answer(const struct sbx_asker *asker, const struct sbx_dns_query *query,
		      enum sbx_dns_rcode rcode, const struct sbx_addr *addrs, size_t n_addrs,
		      uint32_t ttl_s)
{
	uint8_t out[OUT_MAX];
	size_t n, limit = asker->fd >= 0 ? sbx_dns_udp_limit(query) : sizeof(out);

	if (sbx_dns_write_answer(query, rcode, addrs, n_addrs, ttl_s, limit, out, sizeof(out),
				 &n) == 0)
		sbx_asker_send(asker, sbx_span(out, n));
}

void sbx_asker_rcode(const struct sbx_asker *asker, const struct sbx_dns_query *query,
		     enum sbx_dns_rcode rcode)
{
	sbx_asker_answer(asker, query, rcode, NULL, 0, 0);
}

static void send_blocked(const struct sbx_asker *asker, const struct sbx_dns_query *query,
			 const struct sbx_verdict *v)
{
	uint8_t out[SBX_DNS_UDP_DEFAULT];
	char text[4 * SBX_DNS_BLOCKED_MAX];
	size_t n;

	sbx_policy_explain(asker->ctx->core.policy, v, query->name, text, sizeof(text));
	if (sbx_dns_write_blocked(query, text, out, sizeof(out), &n) == 0)
		sbx_asker_send(asker, sbx_span(out, n));
}

void sbx_asker_refuse(const struct sbx_asker *asker, const struct sbx_dns_query *query,
		      enum sbx_dns_rcode rcode, const struct sbx_verdict *v,
		      const struct sbx_addr *addr)
{
	struct sbx_context *ctx = asker->ctx;

	ctx->stats.dns_refused++;
	if (v->reason == SBX_REASON_PINS_EXHAUSTED || v->reason == SBX_REASON_RESOURCE)
		ctx->stats.limits_hit++;
	sbx_report_event(ctx, SBX_PROTO_DNS, v, addr, 53, query->name);
	if (rcode == SBX_DNS_NXDOMAIN && v->reason != SBX_REASON_RESOLVE_FAILED)
		send_blocked(asker, query, v);
	else
		sbx_asker_rcode(asker, query, rcode);
}
