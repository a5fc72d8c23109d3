/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Connections from outside to a server inside.
 *
 * The listener is on the host. The other end is a socket that the factory makes in the sandbox's
 * network namespace; it connects to one port of the loopback, 127.0.0.1 or, if that refuses, ::1.
 * The sandbox neither begins such a flow nor chooses its destination, so the flow is no way out: no
 * policy is asked, and it makes counts but no event. `in` is the sandbox's side, `out` the
 * client's. Under an air gap such connections are reset: the answers would leave the sandbox.
 *
 * The client is reset if no server listens inside or anything else fails, and before RELEASE: until
 * then only the self-test is inside.
 *
 * These flows have a limit of their own (limits.n_published), so that clients outside cannot use up
 * the limit of the sandbox's own flows. They have no idle timeout: a debugger's or a notebook's
 * connection may be idle for hours, the server may end it, and TCP's keepalive finds a peer that is
 * gone (sbx_net_publish_open). At most ASKED_MAX requests are with the factory at a time; more
 * connections wait in the kernel's backlog.
 */

#include "broker/tcp/tcp_flow.h"

#include <errno.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "broker/io/report.h"

/* Each answer carries an fd; all of them must fit the channel. */
#define ASKED_MAX 64

static void reset_consume(struct sbx_tcp *t, int fd)
{
	t->ctx->stats.published_failed++;
	sbx_tcp_set_reset(fd);
	sbx_fd_close(fd);
}

void sbx_tcp_publish_turn_away_consume(struct sbx_tcp *t, int fd)
{
	t->ctx->stats.limits_hit++;
	reset_consume(t, fd);
}

void sbx_tcp_publish_fail(struct sbx_tcp_flow *f)
{
	f->ctx->stats.published_failed++;
	sbx_tcp_abort(f);
}

bool sbx_tcp_publish_has_room(const struct sbx_tcp *t)
{
	return t->n_asked < ASKED_MAX;
}

static void ask(struct sbx_tcp_flow *f, uint8_t family)
{
	struct sbx_msg_tcp_socket m = { .family = family, .port = f->inside };

	f->family = family;
	f->cookie = sbx_factory_ask_tcp(f->t->factory, &m);
	if (f->cookie)
		f->t->n_asked++;
	else
		sbx_tcp_publish_fail(f);
}

/* No server listens at this family's address. */
static void refused(struct sbx_tcp_flow *f)
{
	sbx_context_unwatch(&f->in.ev);
	sbx_fd_close(f->in.fd);
	f->in = (struct sbx_tcp_side){ .fd = -1 };
	if (f->family == 4)
		ask(f, 6);
	else
		sbx_tcp_publish_fail(f);
}

void sbx_tcp_publish_take_consume(struct sbx_tcp *t, uint16_t inside, int fd)
{
	struct sbx_tcp_flow *f;

	if (!sbx_report_is_released(t->ctx->report) ||
	    sbx_policy_air_gapped(t->ctx->core.policy)) {
		reset_consume(t, fd);
		return;
	}
	f = t->n_published < t->ctx->config.limits.n_published
		    ? sbx_tcp_flow_new_inward(t, fd, inside)
		    : NULL;
	if (!f) {
		sbx_tcp_publish_turn_away_consume(t, fd);
		return;
	}
	if (sbx_tcp_watch(f, &f->out) < 0) {
		sbx_tcp_publish_fail(f);
		return;
	}
	sbx_timer_arm(&f->ctx->timers, SBX_TIMER_CONNECT, &f->timeout);
	ask(f, 4);
}

static struct sbx_tcp_flow *find(struct sbx_tcp *t, uint32_t cookie)
{
	struct sbx_tcp_flow *f = t->first;

	while (f && (f->cookie != cookie || f->state != SBX_TCP_ENTERING))
		f = f->next;
	return f;
}

void sbx_tcp_publish_made(void *tcp, uint32_t cookie, int fd_take)
{
	struct sbx_tcp *t = tcp;
	struct sbx_tcp_flow *f = find(t, cookie);

	if (t->n_asked == 0) { /* no request is under way */
		sbx_fd_close(fd_take);
		sbx_context_exit(t->ctx, 1);
		return;
	}
	t->n_asked--;
	if (f) {
		f->cookie = 0;
		f->in.fd = fd_take;
		if (fd_take < 0)
			refused(f);
		else if (sbx_tcp_watch(f, &f->in) < 0)
			sbx_tcp_publish_fail(f);
	} else if (fd_take >= 0) { /* the flow is gone already */
		sbx_tcp_set_reset(fd_take);
		sbx_fd_close(fd_take);
	}
	sbx_tcp_publish_resume(t);
}

void sbx_tcp_publish_event(struct sbx_tcp_flow *f, short what)
{
	int error = 0;
	socklen_t n = sizeof(error);

	/* Writable alone: connected. An error makes the socket readable too. */
	if ((what & (EV_READ | EV_WRITE)) != EV_WRITE &&
	    getsockopt(f->in.fd, SOL_SOCKET, SO_ERROR, &error, &n) < 0)
		error = errno;
	if (error == ECONNREFUSED) {
		refused(f);
	} else if (error != 0) {
		sbx_tcp_publish_fail(f);
	} else {
		sbx_timeout_disarm(&f->timeout);
		f->ctx->stats.published++;
		f->state = SBX_TCP_RELAYING;
		f->in.writable = f->out.writable = true;
		sbx_tcp_relay_event(f);
	}
}

bool sbx_tcp_publish_is_drained(const struct sbx_tcp *t)
{
	if (t->n_published == 0)
		return true;
	for (const struct sbx_tcp_flow *f = t->first; f; f = f->next)
		if (f->inside && f->state == SBX_TCP_RELAYING && !f->up.done)
			return false;
	return true;
}
