/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The packet log: each packet that the sandbox's filter refused becomes an event with its real
 * address. Packets that come faster than they are read are lost; they are counted under the reason
 * overflow.
 *
 * Before RELEASE nothing is read. The few packets of the self-test stay in the socket's buffer, so
 * that they do not wake the broker while it answers the self-test's questions.
 *
 * The kernel numbers the packets: the next packet tells how many were lost before it. After a flood
 * there may be no next packet. So if anything was lost, we end by sending a packet that the filter
 * refuses, the mark.
 *   - The mark goes out by the stub's socket, which keeps the sandbox's namespace alive, to IPv4's
 *     reserved block, which every mode refuses. Only a policy that allows all networks and ports of
 *     UDP lets the mark pass; then the last losses are not counted.
 *   - With attach cgroup the stub is in the host's namespace. There the mark goes out by a socket
 *     that belongs to the sandbox's cgroup, to the metadata address: every policy refuses it, and
 *     it has a route on every host that has routes.
 */

#include "broker/io/nflog.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "broker/io/report.h"
#include "sys/net/net.h"

#define BATCH 16
#define DRAIN 65536 /* more datagrams than the log's receive buffer holds */

/* The mark's destination: discard (RFC 863) in the reserved block (RFC 1112 section 4), or the
 * metadata address. */
#define MARK_ADDR	 0xf0000001
#define MARK_ADDR_CGROUP 0xa9fea9fe
#define MARK_PORT	 9

struct sbx_nflog {
	struct sbx_context *ctx;
	struct event ev;
	uint32_t next_seq;
	bool lost_some; /* the kernel said so */
	bool marking;	/* the mark is on its way */
	int mark_fd;	/* borrowed: sends the mark; -1: none can be sent */
	struct sockaddr_in mark_from, mark_to;
};

/* Only mark_fd sends from its port. */
static bool is_mark(const struct sbx_nflog *n, const struct sbx_nflog_packet *p)
{
	return p->proto == SBX_PROTO_UDP && p->sport == ntohs(n->mark_from.sin_port) &&
	       p->dport == MARK_PORT && p->dst.family == 4 &&
	       memcmp(p->dst.b, &n->mark_to.sin_addr, 4) == 0;
}

static int choose_mark(struct sbx_nflog *n)
{
	bool cgroup = n->ctx->config.resolved_pins;
	socklen_t size = sizeof(n->mark_from);

	n->mark_fd = n->ctx->fds[cgroup ? SBX_BFD_MARK : SBX_BFD_DNS_UDP4];
	n->mark_to = (struct sockaddr_in){
		.sin_family = AF_INET,
		.sin_port = htons(MARK_PORT),
		.sin_addr.s_addr = htonl(cgroup ? MARK_ADDR_CGROUP : MARK_ADDR),
	};
	n->mark_from = (struct sockaddr_in){ .sin_family = AF_INET };
	if (n->mark_fd < 0)
		return 0;
	if (cgroup && bind(n->mark_fd, (const struct sockaddr *)&n->mark_from, size) < 0 &&
	    errno != EINVAL) /* EINVAL: bound already */
		return -errno;
	return getsockname(n->mark_fd, (struct sockaddr *)&n->mark_from, &size) < 0 ? -errno : 0;
}

static void on_packet(void *userdata, const struct sbx_nflog_packet *p)
{
	struct sbx_nflog *n = userdata;
	struct sbx_context *ctx = n->ctx;
	const char *name;
	struct sbx_verdict v =
		sbx_core_judge_logged(&ctx->core, p->proto, &p->dst, p->dport, &name);
	uint32_t n_lost = p->has_seq ? sbx_nflog_lost(&n->next_seq, p) : 0;

	if (n_lost)
		sbx_report_lost(ctx, n_lost);
	if (n->marking && is_mark(n, p)) {
		n->marking = false;
		return;
	}
	sbx_report_event(ctx, p->proto, &v, &p->dst, p->dport, name);
}

/* Reads at most @max datagrams, so that a flood does not starve the flows. */
static void take(struct sbx_nflog *n, int fd, int max)
{
	for (int i = 0; i < max; i++) {
		ssize_t size = recv(fd, n->ctx->copy, sizeof(n->ctx->copy), MSG_DONTWAIT);

		if (size < 0 && errno == ENOBUFS) {
			n->lost_some = true; /* the gap in the numbers says how many */
			continue;
		}
		if (size <= 0)
			return;
		sbx_nflog_parse(sbx_span(n->ctx->copy, (size_t)size), on_packet, n);
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
	/* Fails with EPERM: the filter refuses it, as intended. */
	(void)!sendto(n->mark_fd, "", 0, MSG_DONTWAIT | MSG_NOSIGNAL,
		      (const struct sockaddr *)&n->mark_to, sizeof(n->mark_to));
	sbx_nflog_drain(n);
}

int sbx_nflog_new(struct sbx_context *ctx, struct sbx_nflog **ret_nflog)
{
	int fd = ctx->fds[SBX_BFD_NFLOG];
	struct sbx_nflog *n;

	if (fd < 0)
		return 0;
	n = calloc(1, sizeof(*n));
	if (!n)
		return -ENOMEM;
	*ret_nflog = n;
	n->ctx = ctx;
	if (event_assign(&n->ev, ctx->base, fd, EV_READ | EV_PERSIST, on_read, n) < 0)
		return -ENOMEM;
	return choose_mark(n);
}

int sbx_nflog_start(struct sbx_nflog *n)
{
	return n && event_add(&n->ev, NULL) < 0 ? -ENOMEM : 0;
}

void sbx_nflog_free(struct sbx_nflog *n)
{
	if (!n)
		return;
	sbx_context_unwatch(&n->ev);
	free(n);
}
