/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Dials the addresses that were judged, in their order: the next after 250 ms, or as soon as one
 * has failed (RFC 8305). The first that connects wins. Nothing is looked up here: exactly the
 * judged addresses are dialled.
 *
 * The first attempt uses the flow's own side `out`, so that the usual case costs nothing extra;
 * only its rivals have events of their own.
 */

#include "broker/tcp/tcp_flow.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"

#define RIVALS_MAX 3

struct rival {
	struct sbx_tcp_flow *flow;
	int fd; /* -1: free */
	struct event ev;
	struct sbx_addr addr;
};

struct sbx_tcp_dial {
	struct sbx_tcp_flow *flow;
	struct sbx_candidates c;
	size_t next; /* index in c of the next address to dial */
	uint16_t port;
	bool no_fds; /* an attempt failed for want of a file descriptor */
	struct sbx_timeout stagger;
	struct rival rivals[RIVALS_MAX];
};

static void rival_drop(struct rival *r)
{
	if (r->fd < 0)
		return;
	event_del(&r->ev);
	r->fd = sbx_fd_close(r->fd);
}

void sbx_tcp_dial_free(struct sbx_tcp_dial *d)
{
	if (!d)
		return;
	for (size_t i = 0; i < RIVALS_MAX; i++)
		rival_drop(&d->rivals[i]);
	sbx_timeout_disarm(&d->stagger);
	free(d);
}

/* A socket whose connect is under way, or -errno. */
static int begin_connect(const struct sbx_addr *addr, uint16_t port)
{
	struct sockaddr_storage ss;
	socklen_t n = sbx_addr_to_sockaddr(addr, port, &ss);
	SBX_AUTO_CLOSE int fd =
		socket(ss.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);
	int on = 1;

	if (fd < 0)
		return -errno;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)); /* slower without, not wrong */
	if (connect(fd, (struct sockaddr *)&ss, n) < 0 && errno != EINPROGRESS)
		return -errno;
	return sbx_fd_steal(&fd);
}

/* @addr answered: f->out is the connection. */
static bool won(struct sbx_tcp_flow *f, const struct sbx_addr *addr)
{
	f->reached = *addr;
	if (f->target.kind == SBX_FLOW_NAME && f->dial->c.n > 1)
		sbx_resolve_reached(f->t->resolve, f->target.name, addr);
	sbx_tcp_dial_free(f->dial);
	f->dial = NULL;
	f->out.writable = true;
	return sbx_tcp_uses_proxy(f->ctx) ? sbx_tcp_proxy_start(f) : sbx_tcp_relay_start(f);
}

static void on_rival(evutil_socket_t fd, short what, void *userdata);

/* Starts one attempt with the next address. 0, or -errno if it cannot begin. */
static int attempt(struct sbx_tcp_flow *f)
{
	struct sbx_tcp_dial *d = f->dial;
	const struct sbx_addr *addr = &d->c.v[d->next++];
	struct rival *r = NULL;
	int fd;

	for (size_t i = 0; f->out.fd >= 0 && i < RIVALS_MAX && !r; i++)
		if (d->rivals[i].fd < 0)
			r = &d->rivals[i];
	if (f->out.fd >= 0 && !r) { /* all rivals run: wait for one to fail */
		d->next--;
		return 0;
	}
	fd = begin_connect(addr, d->port);
	if (fd < 0) {
		d->no_fds |= fd == -EMFILE || fd == -ENFILE;
		return fd;
	}
	if (!r) {
		f->out.fd = fd;
		f->reached = *addr;
		if (sbx_tcp_watch(f, &f->out) == 0)
			return 0;
		f->out.fd = sbx_fd_close(fd);
		return -ENOMEM;
	}
	r->fd = fd;
	r->addr = *addr;
	if (event_assign(&r->ev, f->ctx->base, fd, EV_WRITE | EV_PERSIST, on_rival, r) < 0 ||
	    event_add(&r->ev, NULL) < 0) {
		r->fd = sbx_fd_close(fd);
		return -ENOMEM;
	}
	return 0;
}

static bool anything_running(const struct sbx_tcp_flow *f)
{
	if (f->out.fd >= 0)
		return true;
	for (size_t i = 0; i < RIVALS_MAX; i++)
		if (f->dial->rivals[i].fd >= 0)
			return true;
	return false;
}

/* Tries the next address, and further ones while they fail at once. False: none is left, the
 * flow is refused and gone. */
static bool advance(struct sbx_tcp_flow *f)
{
	struct sbx_tcp_dial *d = f->dial;

	while (d->next < d->c.n && attempt(f) < 0)
		;
	if (d->next < d->c.n)
		sbx_timer_arm(&f->ctx->timers, SBX_TIMER_STAGGER, &d->stagger);
	if (anything_running(f))
		return true;
	return sbx_tcp_refuse_reason(f, d->no_fds		     ? SBX_REASON_RESOURCE
					: sbx_tcp_uses_proxy(f->ctx) ? SBX_REASON_PROXY_FAILED
								     : SBX_REASON_CONNECT_FAILED);
}

static int socket_error(int fd)
{
	int error = 0;
	socklen_t n = sizeof(error);

	return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &n) < 0 ? errno : error;
}

static void on_rival(evutil_socket_t fd, short what, void *userdata)
{
	struct rival *r = userdata;
	struct sbx_tcp_flow *f = r->flow;
	struct sbx_addr addr = r->addr;

	(void)what;
	if (socket_error(fd) != 0) {
		rival_drop(r);
		advance(f);
		return;
	}
	event_del(&r->ev);
	r->fd = -1;
	sbx_context_unwatch(&f->out.ev);
	sbx_fd_close(f->out.fd);
	f->out = (struct sbx_tcp_side){ .fd = fd };
	if (sbx_tcp_watch(f, &f->out) < 0)
		sbx_tcp_refuse_reason(f, SBX_REASON_RESOURCE);
	else
		won(f, &addr);
}

bool sbx_tcp_dial_event(struct sbx_tcp_flow *f, short what)
{
	struct sbx_addr addr = f->reached;

	/* Writable alone: connected. An error makes the socket readable too. */
	if ((what & (EV_READ | EV_WRITE)) == EV_WRITE || socket_error(f->out.fd) == 0)
		return won(f, &addr);
	sbx_context_unwatch(&f->out.ev);
	sbx_fd_close(f->out.fd);
	f->out = (struct sbx_tcp_side){ .fd = -1 };
	return advance(f);
}

/* Those of the addresses, in their order, that @next lets be dialled. */
static void judge_all(const struct sbx_tcp_flow *f, const struct sbx_core *next,
		      struct sbx_candidates *c)
{
	const struct sbx_tcp_dial *d = f->dial;

	if (!sbx_tcp_uses_proxy(f->ctx)) {
		sbx_core_candidates(next, &f->target, d->c.v, d->c.n, d->c.v[0].family, c);
		return;
	}
	*c = (struct sbx_candidates){
		.refused = { .reason = SBX_REASON_PROXY_ADDRESS, .rule = UINT32_MAX }
	};
	for (size_t i = 0; i < d->c.n; i++)
		if (sbx_policy_admits_proxy(next->policy, &d->c.v[i], d->port,
					    sbx_core_is_own(next, &d->c.v[i])))
			c->v[c->n++] = d->c.v[i];
}

struct sbx_verdict sbx_tcp_dial_again(struct sbx_tcp_flow *f, const struct sbx_core *next)
{
	uint16_t port = f->dial->port;
	struct sbx_candidates c;

	judge_all(f, next, &c);
	if (c.n == 0)
		return c.refused;
	if (c.n < f->dial->c.n) {
		sbx_tcp_dial_free(f->dial);
		f->dial = NULL;
		sbx_context_unwatch(&f->out.ev);
		sbx_fd_close(f->out.fd);
		f->out = (struct sbx_tcp_side){ .fd = -1 };
		sbx_tcp_dial_start(f, &c, port);
	}
	return (struct sbx_verdict){ .action = SBX_ALLOW };
}

void sbx_tcp_dial_stagger(struct sbx_timeout *t)
{
	advance(sbx_container_of(t, struct sbx_tcp_dial, stagger)->flow);
}

bool sbx_tcp_dial_start(struct sbx_tcp_flow *f, const struct sbx_candidates *c, uint16_t port)
{
	struct sbx_tcp_dial *d = calloc(1, sizeof(*d));

	if (!d)
		return sbx_tcp_refuse_reason(f, SBX_REASON_RESOURCE);
	d->flow = f;
	d->c = *c;
	d->port = port;
	for (size_t i = 0; i < RIVALS_MAX; i++)
		d->rivals[i] = (struct rival){ .flow = f, .fd = -1 };
	f->dial = d;
	f->state = SBX_TCP_DIALLING;
	return advance(f);
}
