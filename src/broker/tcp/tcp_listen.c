/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The TCP listeners.
 *
 * Two were made in the sandbox's network namespace; tproxy hands them connections whose
 * getsockname() is the address that the sandbox dialled. The others are published ports, on the
 * host (tcp_publish.c). Accepting is level-triggered and in batches.
 *
 * Past limits.n_flows, or without a file descriptor left, connections are still accepted and reset;
 * a spare fd is closed for that moment. A backlog that is not emptied would make clients hang
 * instead of fail, and the loop spin.
 */

#include "broker/tcp/tcp_flow.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "broker/io/report.h"

#define ACCEPT_BATCH 16
#define PAUSE_MS     100 /* no connection is accepted for so long when the spare fd is gone too */

/* Reads the address that the sandbox dialled, and decides the flow. */
static bool decide(struct sbx_tcp *t, int fd, struct sbx_flow_target *ret_target)
{
	struct sockaddr_storage ss;
	socklen_t n_ss = sizeof(ss);
	struct sbx_addr addr;
	uint16_t port;

	if (getsockname(fd, (struct sockaddr *)&ss, &n_ss) < 0 ||
	    sbx_addr_from_sockaddr((struct sockaddr *)&ss, n_ss, &addr, &port) != 0)
		return false;
	sbx_core_decide_flow(&t->ctx->core, SBX_PROTO_TCP, &addr, port, sbx_now_ms(), ret_target);
	return true;
}

/* Records and resets a connection for which there is no room. */
static void turn_away_consume(struct sbx_tcp *t, int fd, enum sbx_reason reason)
{
	struct sbx_flow_target target;

	if (decide(t, fd, &target)) {
		struct sbx_verdict v = { .reason = reason, .rule = UINT32_MAX };

		t->ctx->stats.flows_denied++;
		t->ctx->stats.limits_hit++;
		sbx_report_event(t->ctx, SBX_PROTO_TCP, &v, &target.addr, target.port, target.name);
	}
	sbx_tcp_set_reset(fd);
	sbx_fd_close(fd);
}

static void take_flow(struct sbx_tcp *t, int fd)
{
	struct sbx_flow_target target;
	struct sbx_tcp_flow *f;

	if (t->n_flows + t->n_handed >= t->ctx->config.limits.n_flows) {
		turn_away_consume(t, fd, SBX_REASON_FLOW_LIMIT);
		return;
	}
	f = decide(t, fd, &target) ? sbx_tcp_flow_new(t, fd, &target) : NULL;
	if (f)
		sbx_tcp_open(f);
	else
		turn_away_consume(t, fd, SBX_REASON_RESOURCE);
}

static void take(struct sbx_tcp_listener *l, int fd)
{
	if (l->inside)
		sbx_tcp_publish_take_consume(l->t, l->inside, fd);
	else
		take_flow(l->t, fd);
}

/* No fd is left (the kernel says so even if the backlog is empty): accepts with the spare one,
 * resets, and gets the spare back. 0: shed one; 1: the backlog is empty; -1: there is no spare
 * either. */
static int shed(struct sbx_tcp_listener *l, int listen_fd)
{
	struct sbx_tcp *t = l->t;
	int fd, error;

	t->spare_fd = sbx_fd_close(t->spare_fd);
	fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	error = errno;
	if (fd >= 0 && l->inside)
		sbx_tcp_publish_turn_away_consume(t, fd);
	else if (fd >= 0)
		turn_away_consume(t, fd, SBX_REASON_RESOURCE);
	t->spare_fd = fcntl(t->listen_fd, F_DUPFD_CLOEXEC, 3);
	if (t->spare_fd < 0 || (fd < 0 && error != EAGAIN))
		return -1;
	return fd < 0;
}

static bool is_there(const struct sbx_tcp_listener *l)
{
	return event_initialized(&l->ev);
}

static void pause_listening(struct sbx_tcp *t)
{
	struct timeval tv = { .tv_usec = PAUSE_MS * 1000 };

	for (size_t i = 0; i < SBX_N_ELEMENTS(t->listeners); i++)
		if (is_there(&t->listeners[i]))
			event_del(&t->listeners[i].ev);
	event_add(&t->ev_resume, &tv);
}

static void on_resume(evutil_socket_t fd, short what, void *userdata)
{
	struct sbx_tcp *t = userdata;

	(void)fd;
	(void)what;
	if (t->spare_fd < 0)
		t->spare_fd = fcntl(t->listen_fd, F_DUPFD_CLOEXEC, 3);
	for (size_t i = 0; i < SBX_N_ELEMENTS(t->listeners); i++)
		if (is_there(&t->listeners[i]))
			event_add(&t->listeners[i].ev, NULL);
}

void sbx_tcp_publish_resume(struct sbx_tcp *t)
{
	if (!t->publish_waits || evtimer_pending(&t->ev_resume, NULL))
		return;
	t->publish_waits = false;
	for (size_t i = 0; i < SBX_N_ELEMENTS(t->listeners); i++)
		if (is_there(&t->listeners[i]) && t->listeners[i].inside)
			event_add(&t->listeners[i].ev, NULL);
}

static void on_listen(evutil_socket_t listen_fd, short what, void *userdata)
{
	struct sbx_tcp_listener *l = userdata;
	struct sbx_tcp *t = l->t;

	(void)what;
	for (int i = 0; i < ACCEPT_BATCH; i++) {
		int fd;

		if (l->inside && !sbx_tcp_publish_has_room(t)) {
			t->publish_waits = true;
			event_del(&l->ev);
			return;
		}
		fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd >= 0) {
			take(l, fd);
		} else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM ||
			   errno == ENOBUFS) {
			int r = shed(l, listen_fd);

			if (r < 0)
				pause_listening(t);
			if (r != 0)
				return;
		} else if (errno != ECONNABORTED && errno != EINTR) {
			return; /* EAGAIN: the backlog is empty */
		}
	}
}

static int listen_on(struct sbx_tcp *t, struct sbx_tcp_listener *l, int fd)
{
	l->t = t;
	if (fd >= 0)
		t->listen_fd = fd;
	return sbx_context_watch(t->ctx, &l->ev, fd, on_listen, l);
}

/* Every accepted connection inherits these options. No network that could be congested is between
 * us and the sandbox: an algorithm that paces (BBR) only costs. */
static int listen_inside(struct sbx_tcp *t, struct sbx_tcp_listener *l, int fd)
{
	int on = 1;

	if (fd < 0)
		return 0;
	if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) < 0)
		return -errno;
	setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", strlen("reno"));
	return listen_on(t, l, fd);
}

int sbx_tcp_listen(struct sbx_tcp *t)
{
	const struct sbx_msg_config *config = &t->ctx->config;
	const int *fds = t->ctx->fds;
	int r;

	t->listen_fd = -1;
	if (evtimer_assign(&t->ev_resume, t->ctx->base, on_resume, t) < 0)
		return -ENOMEM;
	r = listen_inside(t, &t->listeners[0], fds[SBX_BFD_TCP4]);
	if (r == 0)
		r = listen_inside(t, &t->listeners[1], fds[SBX_BFD_TCP6]);
	for (uint32_t i = 0; i < config->n_publish && r == 0; i++) {
		t->listeners[2 + i].inside = config->publish[i];
		r = listen_on(t, &t->listeners[2 + i], fds[SBX_BFD_PUBLISH + i]);
	}
	if (r < 0 || t->listen_fd < 0)
		return r; /* nothing is carried */
	t->spare_fd = fcntl(t->listen_fd, F_DUPFD_CLOEXEC, 3);
	return t->spare_fd < 0 ? -errno : 0;
}

int sbx_tcp_publish_add_consume(struct sbx_tcp *t, uint16_t inside, int fd_take)
{
	SBX_AUTO_CLOSE int fd = fd_take;
	size_t i = 2;
	int r;

	while (i < SBX_N_ELEMENTS(t->listeners) && is_there(&t->listeners[i]))
		i++;
	if (i == SBX_N_ELEMENTS(t->listeners) || inside == 0)
		return -EINVAL;
	t->listeners[i].inside = inside;
	r = listen_on(t, &t->listeners[i], fd);
	if (r < 0)
		return r;
	t->ctx->fds[SBX_BFD_PUBLISH + i - 2] = sbx_fd_steal(&fd);
	if (t->spare_fd < 0)
		t->spare_fd = fcntl(t->listen_fd, F_DUPFD_CLOEXEC, 3);
	return 0;
}

void sbx_tcp_unlisten(struct sbx_tcp *t)
{
	for (size_t i = 0; i < SBX_N_ELEMENTS(t->listeners); i++)
		sbx_context_unwatch(&t->listeners[i].ev);
	sbx_context_unwatch(&t->ev_resume);
	t->spare_fd = sbx_fd_close(t->spare_fd);
}
