/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The DNS stub.
 *
 * Its sockets are bound to port 53 of every address in the sandbox's namespace, so whatever
 * resolver the sandbox asks, it asks us; PKTINFO tells which address that was, and the answer comes
 * from it. What to answer is decided in core_dns.c, from memory; where real addresses are told,
 * dns_forward.c or dns_pin.c goes on. At most BATCH messages are taken per event, so that a flood of
 * queries leaves the flows their turns.
 */

#include "broker/dns/dns_stub.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define BATCH 32
#define OUT_MAX 4096 /* the longest answer: SBX_RESOLVE_ADDRS_MAX addresses of 28 bytes, and its question */

struct sbx_stub {
	struct sbx_broker *b;
	struct event ev_udp[2]; /* v4, v6 */
	struct sbx_dns_tcp *tcp;
};

union control {
	char room[CMSG_SPACE(sizeof(struct in6_pktinfo)) + CMSG_SPACE(sizeof(struct in_pktinfo))];
	struct cmsghdr align;
};

/* --- answering --- */

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
	/* A lost datagram is asked for again. */
	sendmsg(asker->fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void sbx_stub_send(struct sbx_broker *b, const struct sbx_asker *asker, struct sbx_span message)
{
	if (asker->fd >= 0)
		send_udp(asker, message);
	else
		sbx_dns_tcp_send(b->stub->tcp, asker->connection, message);
}

void sbx_stub_answer(struct sbx_broker *b, const struct sbx_asker *asker,
		     const struct sbx_dns_query *query, enum sbx_dns_rcode rcode,
		     const struct sbx_addr *addrs, size_t n_addrs, uint32_t ttl_s)
{
	uint8_t out[OUT_MAX];
	size_t n, limit = asker->fd >= 0 ? sbx_dns_udp_limit(query) : sizeof(out);

	if (sbx_dns_write_answer(query, rcode, addrs, n_addrs, ttl_s, limit, out, sizeof(out), &n) == 0)
		sbx_stub_send(b, asker, sbx_span(out, n));
}

void sbx_stub_send_rcode(struct sbx_broker *b, const struct sbx_asker *asker,
			 const struct sbx_dns_query *query, enum sbx_dns_rcode rcode)
{
	sbx_stub_answer(b, asker, query, rcode, NULL, 0, 0);
}

static void send_blocked(struct sbx_broker *b, const struct sbx_asker *asker,
			 const struct sbx_dns_query *query, const struct sbx_verdict *v)
{
	uint8_t out[SBX_DNS_UDP_DEFAULT];
	char text[4 * SBX_DNS_BLOCKED_MAX];
	size_t n;

	sbx_policy_explain(b->core.policy, v, query->name, text, sizeof(text));
	if (sbx_dns_write_blocked(query, text, out, sizeof(out), &n) == 0)
		sbx_stub_send(b, asker, sbx_span(out, n));
}

void sbx_stub_refuse(struct sbx_broker *b, const struct sbx_asker *asker,
		     const struct sbx_dns_query *query, enum sbx_dns_rcode rcode,
		     const struct sbx_verdict *v, const struct sbx_addr *addr)
{
	b->stats.dns_refused++;
	if (v->reason == SBX_REASON_PINS_EXHAUSTED || v->reason == SBX_REASON_RESOURCE)
		b->stats.limits_hit++;
	sbx_broker_event(b, SBX_PROTO_DNS, v, addr, 53, query->name);
	if (rcode == SBX_DNS_NXDOMAIN && v->reason != SBX_REASON_RESOLVE_FAILED)
		send_blocked(b, asker, query, v);
	else
		sbx_stub_send_rcode(b, asker, query, rcode);
}

static void refuse_malformed(struct sbx_broker *b, const struct sbx_asker *asker,
			     const struct sbx_dns_query *query, int r)
{
	struct sbx_verdict v = { .reason = SBX_REASON_DNS_MALFORMED, .rule = UINT32_MAX };
	enum sbx_dns_rcode rcode = r == SBX_DNS_E_NOTIMP    ? SBX_DNS_NOTIMP
				   : r == SBX_DNS_E_BADVERS ? SBX_DNS_BADVERS
							    : SBX_DNS_FORMERR;

	sbx_stub_refuse(b, asker, query, rcode, &v, NULL);
}

void sbx_stub_message(struct sbx_broker *b, const struct sbx_asker *asker, struct sbx_span message)
{
	struct sbx_dns_query query;
	struct sbx_dns_decision d;
	int r = sbx_dns_parse_query(message, &query);

	b->stats.dns_queries++;
	if (r == SBX_DNS_E_DROP)
		return;
	if (r != 0) {
		refuse_malformed(b, asker, &query, r);
		return;
	}
	sbx_core_decide_dns(&b->core, &query, &d);
	switch (d.action) {
	case SBX_DNS_ANSWER:
		sbx_stub_answer(b, asker, &query, d.rcode, d.addrs, d.n_addrs, SBX_DNS_PIN_TTL_S);
		break;
	case SBX_DNS_FORWARD:
		sbx_forward_query(b->forward, asker, &query);
		break;
	case SBX_DNS_REFUSE:
		sbx_stub_refuse(b, asker, &query, d.rcode, &d.verdict, NULL);
		break;
	case SBX_DNS_PIN:
		sbx_dns_pin_query(b->dns_pins, asker, &query);
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
		struct sbx_asker asker = { .fd = fd };
		union control control;
		struct iovec iov = { .iov_base = s->b->copy, .iov_len = sizeof(s->b->copy) };
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
			return; /* EAGAIN; or an ICMP error of an earlier answer, which the call
				   cleared */
		asker.n_peer = msg.msg_namelen;
		read_destination(&msg, &asker);
		sbx_stub_message(s->b, &asker, sbx_span(s->b->copy, (size_t)n));
	}
}

static int watch_udp(struct sbx_stub *s, struct event *ev, int fd)
{
	if (fd < 0)
		return 0;
	if (fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
		return -errno;
	if (event_assign(ev, s->b->base, fd, EV_READ | EV_PERSIST, on_udp, s) < 0 ||
	    event_add(ev, NULL) < 0)
		return -ENOMEM;
	return 0;
}

int sbx_stub_new(struct sbx_broker *b)
{
	struct sbx_stub *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	b->stub = s;
	s->b = b;
	r = watch_udp(s, &s->ev_udp[0], b->fds[SBX_BFD_DNS_UDP4]);
	if (r == 0)
		r = watch_udp(s, &s->ev_udp[1], b->fds[SBX_BFD_DNS_UDP6]);
	return r < 0 ? r : sbx_dns_tcp_new(b, &s->tcp);
}

void sbx_stub_free(struct sbx_stub *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < SBX_N_ELEMENTS(s->ev_udp); i++)
		if (event_initialized(&s->ev_udp[i]))
			event_del(&s->ev_udp[i]);
	sbx_dns_tcp_free(s->tcp);
	free(s);
}
