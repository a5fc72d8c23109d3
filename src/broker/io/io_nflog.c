/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the sandbox's packet filter refused: each logged packet becomes an event with its real
 * address. Packets that were lost because they came faster than they are read are counted as well,
 * as reason overflow.
 *
 * Before RELEASE nobody waits for them: the few that the self-test causes stay in the socket's buffer,
 * so that the broker is not woken, beside the self-test's questions to it, for what is not an event.
 *
 * How many were lost is told by the number of the next one that comes. At the end of a flood there is none:
 * so at the end of the sandbox, if anything was lost, we send one that the filter refuses ourselves, from the
 * stub's socket, which is in the sandbox's namespace and keeps it alive. It goes to IPv4's reserved block, which
 * is refused in every mode. (Only an entry for all networks and ports of UDP carries that, and nothing comes.) With
 * attach cgroup the stub is the host's: there it comes from a socket that belongs to the sandbox's cgroup, and goes
 * to a floor of every policy, which has a route where there is any.
 */

#include "broker/io/broker.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "sys/net/net.h"

#define BATCH 16
#define DRAIN 65536 /* more than its receive buffer holds */

/* Where that one goes: nowhere (RFC 863, RFC 1112 section 4), or to the metadata address. */
#define MARK_ADDR	 0xf0000001
#define MARK_ADDR_CGROUP 0xa9fea9fe
#define MARK_PORT	 9

struct sbx_nflog {
	struct sbx_broker *b;
	struct event ev;
	uint32_t next_seq;
	bool lost_some; /* the kernel said so */
	bool marking;	/* our own is on its way */
	int mark_fd;	/* borrowed: it is sent from here; -1: it cannot be */
	struct sockaddr_in mark_from, mark_to;
};

/* The port it comes from is that socket's alone. */
static bool is_mark(const struct sbx_nflog *n, const struct sbx_nflog_packet *p)
{
	return p->proto == SBX_PROTO_UDP && p->sport == ntohs(n->mark_from.sin_port) &&
	       p->dport == MARK_PORT && p->dst.family == 4 &&
	       memcmp(p->dst.b, &n->mark_to.sin_addr, 4) == 0;
}

static int choose_mark(struct sbx_nflog *n)
{
	bool cgroup = n->b->config.resolved_pins;
	socklen_t size = sizeof(n->mark_from);

	n->mark_fd = n->b->fds[cgroup ? SBX_BFD_MARK : SBX_BFD_DNS_UDP4];
	n->mark_to = (struct sockaddr_in){
		.sin_family = AF_INET,
		.sin_port = htons(MARK_PORT),
		.sin_addr.s_addr = htonl(cgroup ? MARK_ADDR_CGROUP : MARK_ADDR),
	};
	n->mark_from = (struct sockaddr_in){ .sin_family = AF_INET };
	if (n->mark_fd < 0)
		return 0;
	if (cgroup && bind(n->mark_fd, (const struct sockaddr *)&n->mark_from, size) < 0 &&
	    errno != EINVAL) /* it has a port */
		return -errno;
	return getsockname(n->mark_fd, (struct sockaddr *)&n->mark_from, &size) < 0 ? -errno : 0;
}

static void on_packet(void *userdata, const struct sbx_nflog_packet *p)
{
	struct sbx_nflog *n = userdata;
	struct sbx_broker *b = n->b;
	struct sbx_verdict v = sbx_core_judge_logged(&b->core, p->proto, &p->dst, p->dport);
	uint32_t n_lost = p->has_seq ? sbx_nflog_lost(&n->next_seq, p) : 0;

	if (n_lost)
		sbx_broker_event_lost(b, n_lost);
	if (n->marking && is_mark(n, p)) {
		n->marking = false;
		return;
	}
	sbx_broker_event(b, p->proto, &v, &p->dst, p->dport, NULL);
}

/* At most @max datagrams, so that a flood does not starve the flows. */
static void take(struct sbx_nflog *n, int fd, int max)
{
	for (int i = 0; i < max; i++) {
		ssize_t size = recv(fd, n->b->copy, sizeof(n->b->copy), MSG_DONTWAIT);

		if (size < 0 && errno == ENOBUFS) {
			n->lost_some = true; /* the gap in the numbers says how many */
			continue;
		}
		if (size <= 0)
			return;
		sbx_nflog_parse(sbx_span(n->b->copy, (size_t)size), on_packet, n);
	}
}

static void on_read(evutil_socket_t fd, short what, void *userdata)
{
	(void)what;
	take(userdata, fd, BATCH);
}

void sbx_nflog_drain(struct sbx_nflog *n)
{
	if (n)
		take(n, event_get_fd(&n->ev), DRAIN);
}

void sbx_nflog_finish(struct sbx_nflog *n)
{
	sbx_nflog_drain(n);
	if (!n || !n->lost_some || n->mark_fd < 0)
		return;
	n->marking = true;
	/* Refused (EPERM), as it is meant to be. */
	(void)!sendto(n->mark_fd, "", 0, MSG_DONTWAIT | MSG_NOSIGNAL,
		      (const struct sockaddr *)&n->mark_to, sizeof(n->mark_to));
	sbx_nflog_drain(n);
}

int sbx_nflog_new(struct sbx_broker *b, int fd)
{
	struct sbx_nflog *n;
	int r;

	if (fd < 0)
		return 0;
	n = calloc(1, sizeof(*n));
	if (!n)
		return -ENOMEM;
	b->nflog = n;
	n->b = b;
	r = choose_mark(n);
	if (r == 0 && event_assign(&n->ev, b->base, fd, EV_READ | EV_PERSIST, on_read, n) < 0)
		r = -ENOMEM;
	return r;
}

int sbx_nflog_start(struct sbx_nflog *n)
{
	return n && event_add(&n->ev, NULL) < 0 ? -ENOMEM : 0;
}

void sbx_nflog_free(struct sbx_nflog *n)
{
	if (!n)
		return;
	if (event_initialized(&n->ev))
		event_del(&n->ev);
	free(n);
}
