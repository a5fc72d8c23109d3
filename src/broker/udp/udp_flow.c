/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * UDP flows.
 *
 * tproxy hands the first datagrams of a flow to the listener, with the destination in a control
 * message. Once the factory's socket exists (bound to that destination, connected to the sender),
 * the kernel prefers it, and the listener gets no more of the flow. Nothing is sent outside before
 * the destination was judged. Meanwhile at most WAITING_MAX datagrams are kept; later ones are
 * dropped, as a full queue drops them.
 *
 * A refused flow makes an event and gets no answer: this process cannot send ICMP into the sandbox.
 * At most limits.n_udp_flows flows; past that the flow that was idle longest makes room if it was
 * idle for EVICT_IDLE_MS, otherwise the new flow is refused.
 */

#include "broker/udp/udp_flow.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "broker/io/report.h"

#define BATCH		32
#define N_BUCKETS	256 /* a power of two */
#define WAITING_MAX	8
#define OPEN_TIMEOUT_MS 10000
#define EVICT_IDLE_MS	5000
#define STUB_PORT	53 /* the DNS stub's, on every address of the namespace */

struct datagram {
	struct datagram *next;
	size_t n;
	uint8_t p[];
};

/*
 * One UDP association: a sandbox's socket and one destination it sends to.
 *
 *   opening   entered by the first datagram. The name is resolved and judged and the outside socket
 *             made, while the factory makes the inside one; a few datagrams wait.
 *   carrying  both sockets are there: datagrams pass both ways, until the flow is idle too long.
 */
struct flow {
	struct sbx_udp *u;
	struct flow *chain; /* of the bucket */
	struct sbx_timeout timeout;
	struct sbx_resolve_waiter waiter;
	struct sbx_addr peer; /* the sandbox's socket */
	uint16_t peer_port;
	struct sbx_flow_target target; /* addr and port are the other half of the key */
	char *lease_name;
	uint32_t cookie; /* of the request to the factory; 0: answered */
	int in_fd;	 /* bound to target.addr, connected to peer; from the factory */
	int out_fd;	 /* connected to the judged address */
	struct event ev_in, ev_out;
	struct sbx_addr reached;
	struct datagram *first, *last; /* waiting, while opening */
	size_t n_waiting;
	uint64_t began_ms, bytes_out, bytes_in;
	bool carried; /* datagrams pass: the flow is an event at its end */
	bool cut;     /* the new policy does not allow it, for cut_verdict */
	struct sbx_verdict cut_verdict;
};

struct sbx_udp {
	struct sbx_context *ctx;
	struct sbx_resolve *resolve;
	struct sbx_factory *factory; /* or NULL */
	struct event ev_listen[2];
	struct flow *buckets[N_BUCKETS];
	size_t n;
};

/* --- the table --- */

static struct flow **bucket_of(struct sbx_udp *u, const struct sbx_addr *peer, uint16_t peer_port,
			       const struct sbx_addr *dst, uint16_t dst_port)
{
	uint32_t h = 2166136261u;

	for (size_t i = 0; i < sizeof(peer->b); i++)
		h = ((h ^ peer->b[i]) * 16777619u ^ dst->b[i]) * 16777619u;
	h = ((h ^ peer_port) * 16777619u ^ dst_port) * 16777619u;
	return &u->buckets[(h ^ h >> 16) & (N_BUCKETS - 1)];
}

static struct flow *find(struct sbx_udp *u, const struct sbx_addr *peer, uint16_t peer_port,
			 const struct sbx_addr *dst, uint16_t dst_port)
{
	struct flow *f = *bucket_of(u, peer, peer_port, dst, dst_port);

	while (f && !(f->peer_port == peer_port && f->target.port == dst_port &&
		      sbx_addr_equal(&f->peer, peer) && sbx_addr_equal(&f->target.addr, dst)))
		f = f->chain;
	return f;
}

static void drop_waiting(struct flow *f)
{
	while (f->first) {
		struct datagram *d = f->first;

		f->first = d->next;
		free(d);
	}
	f->last = NULL;
	f->n_waiting = 0;
}

/* Records the flow, if datagrams passed; once. */
static void tell(struct flow *f)
{
	const struct sbx_carried carried = {
		.bytes_out = f->bytes_out,
		.bytes_in = f->bytes_in,
		.duration_ms = sbx_now_ms() - f->began_ms,
	};

	if (f->carried)
		sbx_report_flow(f->u->ctx, SBX_PROTO_UDP, &f->target.verdict, &f->reached,
				f->target.port, f->target.name, &carried);
	f->carried = false;
}

static void free_flow(struct flow *f)
{
	struct sbx_udp *u = f->u;
	struct flow **at = bucket_of(u, &f->peer, f->peer_port, &f->target.addr, f->target.port);

	tell(f);
	while (*at != f)
		at = &(*at)->chain;
	*at = f->chain;
	u->n--;
	sbx_timeout_disarm(&f->timeout);
	sbx_resolve_cancel(&f->waiter);
	sbx_context_unwatch(&f->ev_in);
	sbx_context_unwatch(&f->ev_out);
	sbx_fd_close(f->in_fd);
	sbx_fd_close(f->out_fd);
	drop_waiting(f);
	free(f->lease_name);
	free(f);
}

static void refuse(struct flow *f, const struct sbx_verdict *v, const struct sbx_addr *addr)
{
	struct sbx_verdict denied = *v;
	struct sbx_context *ctx = f->u->ctx;

	denied.action = SBX_DENY;
	ctx->stats.flows_denied++;
	sbx_report_event(ctx, SBX_PROTO_UDP, &denied, addr ? addr : &f->target.addr, f->target.port,
			 f->target.name);
	free_flow(f);
}

static void refuse_reason(struct flow *f, enum sbx_reason reason)
{
	struct sbx_verdict v = { .reason = reason, .rule = UINT32_MAX };

	refuse(f, &v, NULL);
}

/* --- carrying --- */

static void wait_or_drop(struct flow *f, const uint8_t *p, size_t n)
{
	struct datagram *d = f->n_waiting < WAITING_MAX ? malloc(sizeof(*d) + n) : NULL;

	if (!d)
		return;
	d->next = NULL;
	d->n = n;
	memcpy(d->p, p, n);
	*(f->last ? &f->last->next : &f->first) = d;
	f->last = d;
	f->n_waiting++;
}

static bool is_carrying(const struct flow *f)
{
	return f->in_fd >= 0 && f->out_fd >= 0;
}

static void take_datagram(struct sbx_udp *u, const struct sbx_addr *peer, uint16_t peer_port,
			  const struct sbx_addr *dst, uint16_t dst_port, size_t n);

static void send_out(struct flow *f, const uint8_t *p, size_t n)
{
	if (send(f->out_fd, p, n, MSG_NOSIGNAL) < 0)
		return;
	f->bytes_out += n;
	f->u->ctx->stats.bytes_out += n;
}

/* The factory binds the socket to the destination and then connects it to the sender. Datagrams
 * that other senders sent to that destination in between are in its queue too: each goes to its
 * own flow. */
static void on_in(evutil_socket_t fd, short what, void *userdata)
{
	struct flow *f = userdata;
	struct sbx_context *ctx = f->u->ctx;

	(void)what;
	sbx_timer_arm(&ctx->timers, SBX_TIMER_UDP_IDLE,
		      &f->timeout); /* before reading: a new flow must not evict this one */
	for (int i = 0; i < BATCH; i++) {
		struct sockaddr_storage from;
		socklen_t n_from = sizeof(from);
		ssize_t n = recvfrom(fd, ctx->copy, sizeof(ctx->copy), MSG_DONTWAIT,
				     (struct sockaddr *)&from, &n_from);
		struct sbx_addr peer;
		uint16_t port;

		if (n < 0)
			break;
		if (sbx_addr_from_sockaddr((struct sockaddr *)&from, n_from, &peer, &port) < 0)
			continue;
		if (port == f->peer_port && sbx_addr_equal(&peer, &f->peer))
			send_out(f, ctx->copy, (size_t)n);
		else
			take_datagram(f->u, &peer, port, &f->target.addr, f->target.port,
				      (size_t)n);
	}
}

/* An ICMP error makes one recv fail. The datagram that caused it is lost, as datagrams may be. */
static void on_out(evutil_socket_t fd, short what, void *userdata)
{
	struct flow *f = userdata;
	struct sbx_context *ctx = f->u->ctx;

	(void)what;
	for (int i = 0; i < BATCH; i++) {
		ssize_t n = recv(fd, ctx->copy, sizeof(ctx->copy), MSG_DONTWAIT);

		if (n < 0)
			break;
		if (send(f->in_fd, ctx->copy, (size_t)n, MSG_NOSIGNAL) < 0)
			continue;
		f->bytes_in += (uint64_t)n;
		ctx->stats.bytes_in += (uint64_t)n;
	}
	sbx_timer_arm(&ctx->timers, SBX_TIMER_UDP_IDLE, &f->timeout);
}

/* Begins to carry if both sockets are there. */
static void begin(struct flow *f)
{
	struct sbx_context *ctx = f->u->ctx;

	if (!is_carrying(f))
		return;
	if (event_assign(&f->ev_in, ctx->base, f->in_fd, EV_READ | EV_PERSIST, on_in, f) < 0 ||
	    event_assign(&f->ev_out, ctx->base, f->out_fd, EV_READ | EV_PERSIST, on_out, f) < 0 ||
	    event_add(&f->ev_in, NULL) < 0 || event_add(&f->ev_out, NULL) < 0) {
		refuse_reason(f, SBX_REASON_RESOURCE);
		return;
	}
	f->carried = true;
	for (struct datagram *d = f->first; d; d = d->next)
		send_out(f, d->p, d->n);
	drop_waiting(f);
	sbx_timer_arm(&ctx->timers, SBX_TIMER_UDP_IDLE, &f->timeout);
}

/* --- opening --- */

static int connect_out(const struct sbx_addr *addr, uint16_t port)
{
	struct sockaddr_storage ss;
	socklen_t n = sbx_addr_to_sockaddr(addr, port, &ss);
	SBX_AUTO_CLOSE int fd = socket(ss.ss_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0 || connect(fd, (struct sockaddr *)&ss, n) < 0)
		return -errno;
	return sbx_fd_steal(&fd);
}

/* The first of the judged addresses that this host has a route to. */
static void dial(struct flow *f, const struct sbx_candidates *c)
{
	int fd = -EHOSTUNREACH;

	for (size_t i = 0; i < c->n && fd < 0; i++) {
		f->reached = c->v[i];
		fd = connect_out(&c->v[i], f->target.port);
	}
	if (fd < 0) {
		refuse_reason(f, fd == -EMFILE || fd == -ENFILE ? SBX_REASON_RESOURCE
								: SBX_REASON_CONNECT_FAILED);
		return;
	}
	f->out_fd = fd;
	begin(f);
}

static void on_addresses(struct flow *f, const struct sbx_addr *v, size_t n, uint8_t first_family)
{
	struct sbx_candidates c;

	sbx_core_candidates(&f->u->ctx->core, &f->target, v, n, first_family, &c);
	if (c.n)
		dial(f, &c);
	else
		refuse(f, &c.refused, &c.refused_addr);
}

static void on_resolved(struct sbx_resolve_waiter *w, const struct sbx_resolve_result *result)
{
	struct flow *f = sbx_container_of(w, struct flow, waiter);

	if (result->n == 0)
		refuse_reason(f, SBX_REASON_RESOLVE_FAILED);
	else
		on_addresses(f, result->v, result->n, result->first_family);
}

/* A sbx_factory_fn. */
static void on_made(void *userdata, uint32_t cookie, int fd_take)
{
	struct sbx_udp *u = userdata;

	for (size_t i = 0; i < N_BUCKETS; i++)
		for (struct flow *f = u->buckets[i]; f; f = f->chain) {
			if (f->cookie != cookie)
				continue;
			f->cookie = 0;
			f->in_fd = fd_take;
			if (fd_take < 0)
				refuse_reason(f, SBX_REASON_RESOURCE);
			else
				begin(f);
			return;
		}
	sbx_fd_close(fd_take); /* the flow is gone already */
}

static uint32_t ask(struct flow *f)
{
	struct sbx_msg_udp_socket m = {
		.local = f->target.addr,
		.local_port = f->target.port,
		.peer = f->peer,
		.peer_port = f->peer_port,
	};

	return sbx_factory_ask_udp(f->u->factory, &m);
}

static void open_flow(struct flow *f)
{
	struct sbx_context *ctx = f->u->ctx;
	const struct sbx_resolve_result *result;

	ctx->stats.flows++;
	f->cookie = ask(f);
	if (!f->cookie) {
		refuse_reason(f, SBX_REASON_RESOURCE);
		return;
	}
	sbx_timer_arm(&ctx->timers, SBX_TIMER_UDP_OPEN, &f->timeout);
	if (f->target.kind == SBX_FLOW_ADDRESS) {
		on_addresses(f, &f->target.addr, 1, f->target.addr.family);
		return;
	}
	result = sbx_resolve_name(f->u->resolve, f->target.name, &f->waiter, on_resolved);
	if (result)
		on_resolved(&f->waiter, result);
}

/* False: the table is full, and no flow was idle for long enough to end. */
static bool make_room(struct sbx_udp *u)
{
	struct sbx_timeouts *idle = &u->ctx->timers.queues[SBX_TIMER_UDP_IDLE];
	uint64_t now_ms = sbx_now_ms();

	if (u->n < u->ctx->config.limits.n_udp_flows)
		return true;
	if (!idle->first || idle->first->due_ms - idle->timeout_ms + EVICT_IDLE_MS > now_ms)
		return false;
	free_flow(sbx_container_of(idle->first, struct flow, timeout));
	return true;
}

static void refuse_new(struct sbx_udp *u, const struct sbx_flow_target *t, struct sbx_verdict v)
{
	u->ctx->stats.flows_denied++;
	u->ctx->stats.limits_hit +=
		v.reason == SBX_REASON_FLOW_LIMIT || v.reason == SBX_REASON_RESOURCE;
	v.action = SBX_DENY;
	sbx_report_event(u->ctx, SBX_PROTO_UDP, &v, &t->addr, t->port, t->name);
}

static struct flow *new_flow(struct sbx_udp *u, const struct sbx_flow_target *target,
			     const struct sbx_addr *peer, uint16_t peer_port)
{
	struct flow *f = calloc(1, sizeof(*f)), **bucket;

	if (!f)
		return NULL;
	f->u = u;
	f->peer = *peer;
	f->peer_port = peer_port;
	f->target = *target;
	f->in_fd = f->out_fd = -1;
	f->began_ms = sbx_now_ms();
	if (target->kind == SBX_FLOW_ADDRESS && target->name) {
		f->target.name = f->lease_name = strdup(target->name);
		if (!f->lease_name) {
			free(f);
			return NULL;
		}
	}
	bucket = bucket_of(u, peer, peer_port, &target->addr, target->port);
	f->chain = *bucket;
	*bucket = f;
	u->n++;
	return f;
}

/* Is @peer a source address that the sandbox may use? Every address is local in the sandbox, so
 * a datagram may claim any source. If the source is an address outside, the answers to it would
 * come back here as a new flow: two servers outside would answer each other for ever. The same
 * holds for our stub and a server: a datagram from the stub's port answers a query that was sent
 * in the server's name. */
static bool is_of_sandbox(const struct sbx_addr *peer, uint16_t port)
{
	return port != STUB_PORT &&
	       (sbx_addr_equal(peer, &sbx_self4) || sbx_addr_equal(peer, &sbx_self6) ||
		sbx_addr_class(peer) == SBX_ADDR_LOOPBACK);
}

static void take_datagram(struct sbx_udp *u, const struct sbx_addr *peer, uint16_t peer_port,
			  const struct sbx_addr *dst, uint16_t dst_port, size_t n)
{
	const struct sbx_verdict no_room = { .reason = SBX_REASON_FLOW_LIMIT, .rule = UINT32_MAX };
	const struct sbx_verdict no_memory = { .reason = SBX_REASON_RESOURCE, .rule = UINT32_MAX };
	const struct sbx_verdict spoofed = { .reason = SBX_REASON_FIREWALL, .rule = UINT32_MAX };
	struct flow *f = find(u, peer, peer_port, dst, dst_port);
	struct sbx_flow_target target;

	if (f) {
		if (is_carrying(f))
			send_out(f, u->ctx->copy, n);
		else
			wait_or_drop(f, u->ctx->copy, n);
		return;
	}
	sbx_core_decide_flow(&u->ctx->core, SBX_PROTO_UDP, dst, dst_port, sbx_now_ms(), &target);
	if (!is_of_sandbox(peer, peer_port)) {
		refuse_new(u, &target, spoofed);
		return;
	}
	if (target.kind != SBX_FLOW_NAME && target.kind != SBX_FLOW_ADDRESS) {
		refuse_new(u, &target, target.verdict);
		return;
	}
	if (!make_room(u)) {
		refuse_new(u, &target, no_room);
		return;
	}
	f = new_flow(u, &target, peer, peer_port);
	if (!f) {
		refuse_new(u, &target, no_memory);
		return;
	}
	wait_or_drop(f, u->ctx->copy, n);
	open_flow(f);
}

/* --- the listeners --- */

static bool read_destination(struct msghdr *msg, struct sbx_addr *ret_addr, uint16_t *ret_port)
{
	for (struct cmsghdr *cmsg = CMSG_FIRSTHDR(msg); cmsg; cmsg = CMSG_NXTHDR(msg, cmsg)) {
		struct sockaddr_storage ss = { 0 };
		size_t n = cmsg->cmsg_len - CMSG_LEN(0);

		if (!((cmsg->cmsg_level == IPPROTO_IP && cmsg->cmsg_type == IP_ORIGDSTADDR) ||
		      (cmsg->cmsg_level == IPPROTO_IPV6 && cmsg->cmsg_type == IPV6_ORIGDSTADDR)))
			continue;
		memcpy(&ss, CMSG_DATA(cmsg), n < sizeof(ss) ? n : sizeof(ss));
		return sbx_addr_from_sockaddr((struct sockaddr *)&ss, (socklen_t)n, ret_addr,
					      ret_port) == 0;
	}
	return false;
}

static void on_listen(evutil_socket_t fd, short what, void *userdata)
{
	struct sbx_udp *u = userdata;

	(void)what;
	for (int i = 0; i < BATCH; i++) {
		union {
			char room[CMSG_SPACE(sizeof(struct sockaddr_in6)) * 2];
			struct cmsghdr align;
		} control;
		struct sockaddr_storage from;
		struct iovec iov = { .iov_base = u->ctx->copy, .iov_len = sizeof(u->ctx->copy) };
		struct msghdr msg = {
			.msg_name = &from,
			.msg_namelen = sizeof(from),
			.msg_iov = &iov,
			.msg_iovlen = 1,
			.msg_control = control.room,
			.msg_controllen = sizeof(control.room),
		};
		ssize_t n = recvmsg(fd, &msg, MSG_DONTWAIT);
		struct sbx_addr peer, dst;
		uint16_t peer_port, dst_port;

		if (n < 0)
			return;
		if (sbx_addr_from_sockaddr((struct sockaddr *)&from, msg.msg_namelen, &peer,
					   &peer_port) == 0 &&
		    read_destination(&msg, &dst, &dst_port))
			take_datagram(u, &peer, peer_port, &dst, dst_port, (size_t)n);
	}
}

static void expire_open(struct sbx_timeout *t)
{
	struct flow *f = sbx_container_of(t, struct flow, timeout);

	refuse_reason(f, f->out_fd < 0 ? SBX_REASON_RESOLVE_FAILED : SBX_REASON_RESOURCE);
}

static void expire_idle(struct sbx_timeout *t)
{
	free_flow(sbx_container_of(t, struct flow, timeout));
}

int sbx_udp_new(struct sbx_context *ctx, struct sbx_resolve *resolve, struct sbx_factory *factory,
		struct sbx_udp **ret_udp)
{
	struct sbx_udp *u = calloc(1, sizeof(*u));
	int r;

	if (!u)
		return -ENOMEM;
	*ret_udp = u;
	u->ctx = ctx;
	u->resolve = resolve;
	u->factory = factory;
	sbx_factory_on(factory, SBX_FACTORY_UDP, on_made, u);
	sbx_timers_on(&ctx->timers, SBX_TIMER_UDP_OPEN, OPEN_TIMEOUT_MS, expire_open);
	sbx_timers_on(&ctx->timers, SBX_TIMER_UDP_IDLE, ctx->config.limits.udp_idle_timeout_ms,
		      expire_idle);
	r = sbx_context_watch(ctx, &u->ev_listen[0], ctx->fds[SBX_BFD_UDP4], on_listen, u);
	if (r == 0)
		r = sbx_context_watch(ctx, &u->ev_listen[1], ctx->fds[SBX_BFD_UDP6], on_listen, u);
	return r;
}

/* --- a policy that was changed --- */

/* The flow after @f, of all; @f NULL: the first. */
static struct flow *next_of(struct sbx_udp *u, struct flow *f)
{
	size_t i = 0;

	if (f && f->chain)
		return f->chain;
	if (f)
		i = (size_t)(bucket_of(u, &f->peer, f->peer_port, &f->target.addr, f->target.port) -
			     u->buckets) +
		    1;
	while (i < N_BUCKETS && !u->buckets[i])
		i++;
	return i < N_BUCKETS ? u->buckets[i] : NULL;
}

void sbx_udp_judge_again(struct sbx_udp *u, const struct sbx_core *next)
{
	for (struct flow *f = next_of(u, NULL); f; f = next_of(u, f)) {
		const struct sbx_core_opened o = { .reached = f->out_fd >= 0 ? &f->reached : NULL };

		f->cut_verdict = sbx_core_judge_again(next, &o, &f->target);
		f->cut = f->cut_verdict.action != SBX_ALLOW;
		if (f->cut)
			tell(f); /* by the policy that allowed it */
	}
}

size_t sbx_udp_cut(struct sbx_udp *u)
{
	struct flow *f = next_of(u, NULL), *after;
	size_t n = 0;

	for (; f; f = after) {
		after = next_of(u, f);
		if (!f->cut)
			continue;
		refuse(f, &f->cut_verdict, NULL);
		n++;
	}
	return n;
}

void sbx_udp_list(struct sbx_udp *u, void (*fn)(void *userdata, const struct sbx_msg_flow *flow),
		  void *userdata)
{
	for (struct flow *f = next_of(u, NULL); f; f = next_of(u, f)) {
		const struct sbx_carried carried = {
			.bytes_out = f->bytes_out,
			.bytes_in = f->bytes_in,
			.duration_ms = sbx_now_ms() - f->began_ms,
		};
		struct sbx_msg_flow m;

		sbx_report_open_flow(u->ctx, &f->target, f->carried ? &f->reached : NULL, &carried,
				     &m);
		fn(userdata, &m);
	}
}

void sbx_udp_tell_all(struct sbx_udp *u)
{
	for (struct flow *f = next_of(u, NULL); f; f = next_of(u, f))
		tell(f);
}

void sbx_udp_free(struct sbx_udp *u)
{
	if (!u)
		return;
	for (size_t i = 0; i < N_BUCKETS; i++)
		while (u->buckets[i])
			free_flow(u->buckets[i]);
	for (size_t i = 0; i < SBX_N_ELEMENTS(u->ev_listen); i++)
		sbx_context_unwatch(&u->ev_listen[i]);
	free(u);
}
