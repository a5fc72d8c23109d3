/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Connections from outside to a server inside.
 *
 * The listener is on the host; the other end is a socket that the factory makes in the sandbox's network namespace
 * and that connects to one port of its loopback, 127.0.0.1 and where that is refused ::1. So such a flow is no way
 * out: nobody inside chooses where it leads or begins it, no policy is asked, and there is no event of it, only
 * counts. The sides keep their names: `in` is the sandbox's, `out` the one that connected.
 *
 * Where nobody listens inside, or anything else is in the way, the client is reset. So is whoever connects before the
 * release: until then there is only the self-test inside.
 *
 * They have a limit of their own (limits.n_published): who connects from outside cannot use up what the sandbox's own
 * flows need. No idle timeout: it is the server's to end what is idle, a debugger's or a notebook's connection may be
 * for hours, and a peer that is gone is found by TCP's keepalive (sbx_net_publish_open). At most ASKED_MAX requests
 * are with the factory at a time; more connections wait in the kernel's backlog.
 */

#include "broker/tcp/tcp_flow.h"

#include <errno.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "broker/io/factory.h"

/* Answers carry an fd each, and as many must fit the channel. */
#define ASKED_MAX 64

static void reset_consume(struct sbx_tcp *t, int fd)
{
	t->b->stats.published_failed++;
	sbx_tcp_set_reset(fd);
	sbx_fd_close(fd);
}

void sbx_tcp_publish_turn_away_consume(struct sbx_tcp *t, int fd)
{
	t->b->stats.limits_hit++;
	reset_consume(t, fd);
}

void sbx_tcp_publish_fail(struct sbx_tcp_flow *f)
{
	f->b->stats.published_failed++;
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
	f->cookie = sbx_factory_ask_tcp(f->b->factory, &m);
	if (f->cookie)
		f->b->tcp->n_asked++;
	else
		sbx_tcp_publish_fail(f);
}

/* Not at this family's address. */
static void refused(struct sbx_tcp_flow *f)
{
	sbx_tcp_unwatch(&f->in);
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

	if (!sbx_control_is_released(t->b->control)) {
		reset_consume(t, fd);
		return;
	}
	f = t->n_published < t->b->config.limits.n_published ? sbx_tcp_flow_new_inward(t, fd, inside) : NULL;
	if (!f) {
		sbx_tcp_publish_turn_away_consume(t, fd);
		return;
	}
	if (sbx_tcp_watch(f, &f->out) < 0) {
		sbx_tcp_publish_fail(f);
		return;
	}
	sbx_timer_arm(f->b, SBX_TIMER_CONNECT, &f->timeout);
	ask(f, 4);
}

static struct sbx_tcp_flow *find(struct sbx_tcp *t, uint32_t cookie)
{
	struct sbx_tcp_flow *f = t->first;

	while (f && (f->cookie != cookie || f->state != SBX_TCP_ENTERING))
		f = f->next;
	return f;
}

void sbx_tcp_made(struct sbx_broker *b, uint32_t cookie, int fd_take)
{
	struct sbx_tcp *t = b->tcp;
	struct sbx_tcp_flow *f = find(t, cookie);

	if (t->n_asked == 0) { /* nobody asked */
		sbx_fd_close(fd_take);
		sbx_broker_exit(b, 1);
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

	/* Writable and nothing else is a connection that stands; an error shows as readable too. */
	if ((what & (EV_READ | EV_WRITE)) != EV_WRITE &&
	    getsockopt(f->in.fd, SOL_SOCKET, SO_ERROR, &error, &n) < 0)
		error = errno;
	if (error == ECONNREFUSED) {
		refused(f);
	} else if (error != 0) {
		sbx_tcp_publish_fail(f);
	} else {
		sbx_timeout_disarm(&f->timeout);
		f->b->stats.published++;
		f->state = SBX_TCP_RELAYING;
		f->in.writable = f->out.writable = true;
		sbx_tcp_relay_event(f);
	}
}

bool sbx_tcp_publish_is_drained(const struct sbx_tcp *t)
{
	if (!t || t->n_published == 0)
		return true;
	for (const struct sbx_tcp_flow *f = t->first; f; f = f->next)
		if (f->inside && f->state == SBX_TCP_RELAYING && !f->up.done)
			return false;
	return true;
}
