/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A TCP flow's life: made, watched, given turns, ended.
 *
 * Each side is registered with the loop once, edge-triggered for both directions, until it is
 * closed. The loop's reports are noted in the side; then the flow's state decides what happens.
 */

#include "broker/tcp/tcp_flow.h"

#include <errno.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "broker/io/report.h"

#define STAGGER_MS 250 /* RFC 8305 section 5 */
#define DRAIN_MS   5000
#define LINGER_MS  2000

void sbx_tcp_set_reset(int fd)
{
	struct linger linger = { .l_onoff = 1, .l_linger = 0 };

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
}

static void unlink_again(struct sbx_tcp_flow *f)
{
	struct sbx_tcp *t = f->t;

	if (!f->again)
		return;
	if (f->again_prev)
		f->again_prev->again_next = f->again_next;
	else
		t->again_first = f->again_next;
	if (f->again_next)
		f->again_next->again_prev = f->again_prev;
	else
		t->again_last = f->again_prev;
	f->again_prev = f->again_next = NULL;
	f->again = false;
}

static void close_side(struct sbx_tcp_side *s)
{
	sbx_context_unwatch(&s->ev);
	s->fd = sbx_fd_close(s->fd);
}

static void count(struct sbx_tcp_flow *f)
{
	struct sbx_msg_stats *s = &f->ctx->stats;

	*(f->inside ? &s->published_bytes_out : &s->bytes_out) += f->up.n_bytes;
	*(f->inside ? &s->published_bytes_in : &s->bytes_in) += f->down.n_bytes;
	f->up.n_bytes = f->down.n_bytes = 0;
}

void sbx_tcp_count(struct sbx_tcp *t)
{
	for (struct sbx_tcp_flow *f = t->first; f; f = f->next)
		count(f);
}

void sbx_tcp_tell(struct sbx_tcp_flow *f)
{
	const struct sbx_carried carried = {
		.bytes_out = f->up.n_bytes,
		.bytes_in = f->down.n_bytes,
		.duration_ms = sbx_now_ms() - f->began_ms,
	};

	if (f->carried)
		sbx_report_flow(f->ctx, SBX_PROTO_TCP, &f->target.verdict,
				sbx_tcp_uses_proxy(f->ctx) ? NULL : &f->reached, f->target.port,
				f->target.name, &carried);
	f->carried = false;
}

void sbx_tcp_close(struct sbx_tcp_flow *f)
{
	struct sbx_tcp *t;

	if (!f)
		return;
	t = f->t;
	sbx_tcp_tell(f);
	count(f);
	sbx_resolve_cancel(&f->waiter);
	sbx_timeout_disarm(&f->timeout);
	unlink_again(f);
	sbx_tcp_check_free(f->check);
	sbx_tcp_dial_free(f->dial);
	sbx_tcp_proxy_free(f->proxy);
	sbx_tcp_dir_fini(t, &f->up);
	sbx_tcp_dir_fini(t, &f->down);
	close_side(&f->in);
	close_side(&f->out);
	if (f->prev)
		f->prev->next = f->next;
	else
		t->first = f->next;
	if (f->next)
		f->next->prev = f->prev;
	if (f->inside)
		t->n_published--;
	else
		t->n_flows--;
	while (f->n_named)
		free(f->named[--f->n_named]);
	free(f->named);
	free(f->lease_name);
	free(f->first);
	free(f);
}

/* Our FIN counts as one byte, and a socket that was reset counts what it has thrown away. */
bool sbx_tcp_has_queued(int fd)
{
	struct tcp_info info = { 0 };
	socklen_t n_info = sizeof(info);
	int n = 0;

	return fd >= 0 && ioctl(fd, SIOCOUTQ, &n) == 0 && n > 1 &&
	       getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &n_info) == 0 &&
	       info.tcpi_state != TCP_CLOSE;
}

/* A close leaves what is queued to the kernel, which goes on sending it whatever happens here. */
void sbx_tcp_finish(struct sbx_tcp_flow *f)
{
	if (!sbx_tcp_has_queued(f->out.fd)) {
		sbx_tcp_close(f);
		return;
	}
	shutdown(f->out.fd, SHUT_WR);
	close_side(&f->in);
	f->state = SBX_TCP_SENDING;
	sbx_timer_arm(&f->ctx->timers, SBX_TIMER_IDLE, &f->timeout);
}

/* The socket reports its end: the last byte was taken, or a RST came. */
static void on_sent(struct sbx_tcp_flow *f)
{
	if (!sbx_tcp_has_queued(f->out.fd))
		sbx_tcp_close(f);
}

void sbx_tcp_abort(struct sbx_tcp_flow *f)
{
	if (f->in.fd >= 0)
		sbx_tcp_set_reset(f->in.fd);
	if (f->out.fd >= 0)
		sbx_tcp_set_reset(f->out.fd);
	sbx_tcp_close(f);
}

void sbx_tcp_again(struct sbx_tcp_flow *f)
{
	struct sbx_tcp *t = f->t;
	struct timeval now = { 0 };

	if (f->again)
		return;
	f->again = true;
	f->again_prev = t->again_last;
	if (t->again_last)
		t->again_last->again_next = f;
	else
		t->again_first = f;
	t->again_last = f;
	event_add(&t->ev_again, &now);
}

static void dispatch(struct sbx_tcp_flow *f)
{
	switch ((enum sbx_tcp_state)f->state) {
	case SBX_TCP_OPENING:
		if (f->check_pending)
			sbx_tcp_check_event(f);
		break;
	case SBX_TCP_DIALLING:
	case SBX_TCP_ENTERING:
		break;
	case SBX_TCP_HANDING:
		sbx_tcp_terminate_event(f);
		break;
	case SBX_TCP_PROXYING:
		sbx_tcp_proxy_event(f);
		break;
	case SBX_TCP_RELAYING:
	case SBX_TCP_DRAINING:
		sbx_tcp_relay_event(f);
		break;
	case SBX_TCP_LINGERING:
		sbx_tcp_linger_event(f);
		break;
	case SBX_TCP_SENDING:
		on_sent(f);
		break;
	}
}

/* Gives each flow of the list one turn. A flow with more to do puts itself on the list again. */
static void on_again(evutil_socket_t fd, short what, void *userdata)
{
	struct sbx_tcp *t = userdata;
	size_t n = 0;

	(void)fd;
	(void)what;
	for (struct sbx_tcp_flow *f = t->again_first; f; f = f->again_next)
		n++;
	while (n-- && t->again_first) {
		struct sbx_tcp_flow *f = t->again_first;

		unlink_again(f);
		dispatch(f);
	}
}

static void note(struct sbx_tcp_side *s, short what)
{
	if (what & EV_READ)
		s->readable = true;
	if (what & EV_WRITE)
		s->writable = true;
}

static void on_in(evutil_socket_t fd, short what, void *userdata)
{
	struct sbx_tcp_flow *f = userdata;

	(void)fd;
	note(&f->in, what);
	if (f->state == SBX_TCP_ENTERING)
		sbx_tcp_publish_event(f, what);
	else
		dispatch(f);
}

static void on_out(evutil_socket_t fd, short what, void *userdata)
{
	struct sbx_tcp_flow *f = userdata;

	(void)fd;
	note(&f->out, what);
	if (f->state == SBX_TCP_DIALLING)
		sbx_tcp_dial_event(f, what);
	else
		dispatch(f);
}

int sbx_tcp_watch(struct sbx_tcp_flow *f, struct sbx_tcp_side *s)
{
	const short what = EV_READ | EV_WRITE | EV_ET | EV_PERSIST;

	if (event_assign(&s->ev, f->ctx->base, s->fd, what, s == &f->in ? on_in : on_out, f) < 0 ||
	    event_add(&s->ev, NULL) < 0)
		return -ENOMEM;
	return 0;
}

/* A flow without sockets. */
static struct sbx_tcp_flow *new_flow(struct sbx_tcp *t)
{
	struct sbx_tcp_flow *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->ctx = t->ctx;
	f->t = t;
	f->began_ms = sbx_now_ms();
	f->in.fd = f->out.fd = -1;
	f->up.src = f->down.dst = &f->in;
	f->up.dst = f->down.src = &f->out;
	f->next = t->first;
	if (t->first)
		t->first->prev = f;
	t->first = f;
	return f;
}

struct sbx_tcp_flow *sbx_tcp_flow_new_inward(struct sbx_tcp *t, int fd, uint16_t inside)
{
	struct sbx_tcp_flow *f = new_flow(t);

	if (!f)
		return NULL;
	f->state = SBX_TCP_ENTERING;
	f->inside = inside;
	f->out.fd = fd;
	t->n_published++;
	return f;
}

struct sbx_tcp_flow *sbx_tcp_flow_new(struct sbx_tcp *t, int fd,
				      const struct sbx_flow_target *target)
{
	bool copy = target->kind == SBX_FLOW_ADDRESS && target->name;
	SBX_AUTO_FREE char *name = copy ? strdup(target->name) : NULL;
	struct sbx_tcp_flow *f = copy && !name ? NULL : new_flow(t);

	if (!f)
		return NULL;
	f->target = *target;
	if (copy)
		f->target.name = f->lease_name = sbx_steal_ptr(&name);
	f->in.fd = fd;
	t->n_flows++;
	return f;
}

/* --- deadlines --- */

static void expire_handshake(struct sbx_timeout *t)
{
	struct sbx_tcp_flow *f = sbx_container_of(t, struct sbx_tcp_flow, timeout);

	sbx_tcp_refuse_reason(f, SBX_REASON_HANDSHAKE_TIMEOUT);
}

static void expire_connect(struct sbx_timeout *t)
{
	struct sbx_tcp_flow *f = sbx_container_of(t, struct sbx_tcp_flow, timeout);
	bool proxy = sbx_tcp_uses_proxy(f->ctx);

	if (f->state == SBX_TCP_ENTERING)
		sbx_tcp_publish_fail(f);
	else if (f->state == SBX_TCP_OPENING && !proxy)
		sbx_tcp_refuse_reason(f, SBX_REASON_RESOLVE_FAILED);
	else
		sbx_tcp_refuse_reason(f,
				      proxy ? SBX_REASON_PROXY_FAILED : SBX_REASON_CONNECT_FAILED);
}

static void expire_close(struct sbx_timeout *t)
{
	sbx_tcp_abort(sbx_container_of(t, struct sbx_tcp_flow, timeout));
}

int sbx_tcp_new(struct sbx_context *ctx, struct sbx_resolve *resolve, struct sbx_factory *factory,
		struct sbx_tcp **ret_tcp)
{
	struct sbx_tcp *t = calloc(1, sizeof(*t));
	const struct sbx_limits *limits = &ctx->config.limits;

	if (!t)
		return -ENOMEM;
	*ret_tcp = t;
	t->ctx = ctx;
	t->resolve = resolve;
	t->factory = factory;
	t->spare_fd = -1;
	sbx_timers_on(&ctx->timers, SBX_TIMER_HANDSHAKE, limits->handshake_timeout_ms,
		      expire_handshake);
	sbx_timers_on(&ctx->timers, SBX_TIMER_CONNECT, limits->connect_timeout_ms, expire_connect);
	sbx_timers_on(&ctx->timers, SBX_TIMER_STAGGER, STAGGER_MS, sbx_tcp_dial_stagger);
	sbx_timers_on(&ctx->timers, SBX_TIMER_IDLE, limits->idle_timeout_ms, expire_close);
	sbx_timers_on(&ctx->timers, SBX_TIMER_DRAIN, DRAIN_MS, expire_close);
	sbx_timers_on(&ctx->timers, SBX_TIMER_LINGER, LINGER_MS, expire_close);
	if (evtimer_assign(&t->ev_again, ctx->base, on_again, t) < 0)
		return -ENOMEM;
	sbx_factory_on(factory, SBX_FACTORY_TCP, sbx_tcp_publish_made, t);
	if (sbx_tcp_terminate_init(t) < 0)
		return -ENOMEM;
	return sbx_tcp_listen(t);
}

void sbx_tcp_free(struct sbx_tcp *t)
{
	if (!t)
		return;
	while (t->first)
		sbx_tcp_close(t->first);
	sbx_tcp_terminate_fini(t);
	sbx_tcp_pipes_free(t);
	sbx_tcp_unlisten(t);
	sbx_context_unwatch(&t->ev_again);
	free(t);
}
