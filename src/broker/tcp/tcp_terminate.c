/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Flows to terminated hosts: handed over to sbx-tls.
 *
 * Such a flow is judged and dialled as any other. Then, in the place of the relay, both sockets and
 * the client's first bytes go to sbx-tls, and the flow here ends. It still counts as one of
 * limits.n_flows until TLS_DONE comes for it.
 *
 * It is handed over in the loop's next round: with EVENT_BASE_FLAG_EPOLL_USE_CHANGELIST the sockets
 * leave the epoll only then. A socket that is closed here before and stays open in sbx-tls would
 * wake the broker for every byte of it.
 *
 * The server's socket stays open here, too: when a new policy does not allow the flow any more, the
 * broker shuts it down itself, so that nothing more can be sent through it whatever sbx-tls does.
 * (It is not disconnected: sbx-tls could connect it anew by a send with MSG_FASTOPEN.) TLS_CUT lets
 * sbx-tls reset both sides. It says TLS_DONE when its sockets are closed; then ours is the last,
 * and its close throws away what is queued.
 *
 * The broker never waits for sbx-tls: a flow that does not fit the channel stays in HANDING until
 * the channel has room. sbx-tls sends EVENT for a request that it refused; the rule is looked up
 * here. After the end of the channel no such flow is carried; the launcher, which sees the end of
 * sbx-tls too, ends the sandbox.
 *
 * Until the command is released, a flow to the echo port of the self-test's name goes there, too:
 * an echo in sbx-tls proves that secrets are put in and taken out.
 */

#include "broker/tcp/tcp_flow.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <linux/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "broker/io/report.h"
#include "ipc/channel.h"

#define PACKET_MAX (SBX_TLS_FIRST_MAX + SBX_TLS_RULE_MAX + SBX_TLS_REQUESTS_MAX + 1024)
static_assert(PACKET_MAX <= SBX_COPY_MAX, "a packet fits the buffer for copies");

/* A flow that sbx-tls carries. */
struct sbx_tcp_handed {
	struct sbx_tcp_handed *prev, *next;
	uint32_t flow; /* the number in TLS_FLOW */
	int fd;	       /* the server's socket, which sbx-tls has too; -1: the echo has none */
	struct sbx_flow_target target; /* name: of the pins */
	struct sbx_addr reached;
	uint64_t began_ms;
	bool carried; /* it is an event at its end */
	bool cut;     /* the new policy does not allow it, for cut_verdict */
	bool told;    /* sbx-tls was told to cut it */
	struct sbx_verdict cut_verdict;
};

/* --- flows to hand over --- */

static struct sbx_tcp_handed *handed_new(struct sbx_tcp_flow *f)
{
	struct sbx_tcp_handed *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	h->flow = f->t->next_handed;
	h->fd = -1;
	h->target = f->target;
	h->reached = f->reached;
	h->began_ms = f->began_ms;
	return h;
}

static void let_go(struct sbx_tcp_flow *f, struct sbx_tcp_handed *h)
{
	struct sbx_tcp *t = f->t;

	h->fd = sbx_fd_steal(&f->out.fd);
	h->carried = f->carried;
	f->carried = false;
	h->next = t->handed;
	if (h->next)
		h->next->prev = h;
	t->handed = h;
	t->n_handed++;
	sbx_tcp_close(f);
}

static void handed_free(struct sbx_tcp *t, struct sbx_tcp_handed *h)
{
	*(h->prev ? &h->prev->next : &t->handed) = h->next;
	if (h->next)
		h->next->prev = h->prev;
	t->n_handed--;
	sbx_fd_close(h->fd);
	free(h);
}

/* 0: handed over, the flow is gone. SBX_CHANNEL_E_AGAIN: later. Other: the channel is broken. */
static int hand_over(struct sbx_tcp_flow *f)
{
	struct sbx_tcp *t = f->t;
	bool echo = f->target.kind == SBX_FLOW_SELFTEST;
	bool live = !echo && f->target.verdict.terminate == SBX_TERMINATE_LIVE;
	struct sbx_msg_tls_flow m = {
		.flow = t->next_handed,
		.entry = echo ? SBX_TLS_ECHO :
			 live ? SBX_TLS_LIVE :
				f->target.verdict.terminate - 1,
		.tls = f->target.check == SBX_CHECK_TLS,
		.addr = f->target.addr,
		.port = f->target.port,
		.first = sbx_span(f->first, f->n_first),
	};
	const int fds[] = { f->in.fd, f->out.fd };
	struct sbx_tcp_handed *h = handed_new(f);
	uint8_t *packet = f->ctx->copy;
	ssize_t n;
	int r;

	if (!h)
		return -ENOMEM;

	sbx_text_fit(m.name, sizeof(m.name), "%s", f->target.name);
	if (live) {
		m.rule = sbx_span_str(sbx_policy_rule_text(f->ctx->core.policy,
							   f->target.verdict.rule));
		m.requests = sbx_span_str(f->target.verdict.requests);
	}
	n = sbx_msg_encode_tls_flow(&m, packet, PACKET_MAX);
	r = n < 0 ? (int)n :
		    sbx_channel_send(f->ctx->fds[SBX_BFD_TLS], packet, (size_t)n, fds,
				     echo ? 1 : 2);
	if (r == 0) {
		t->next_handed++;
		let_go(f, h);
	} else {
		free(h);
	}
	return r;
}

static void wait_for_room(struct sbx_tcp *t)
{
	event_add(&t->ev_hand, NULL);
}

bool sbx_tcp_terminate_start(struct sbx_tcp_flow *f)
{
	f->state = SBX_TCP_HANDING;
	f->carried = f->target.kind != SBX_FLOW_SELFTEST;
	sbx_context_unwatch(&f->in.ev);
	sbx_context_unwatch(&f->out.ev);
	sbx_tcp_again(f);
	return false;
}

void sbx_tcp_terminate_event(struct sbx_tcp_flow *f)
{
	int r = hand_over(f);

	if (r == SBX_CHANNEL_E_AGAIN)
		wait_for_room(f->t);
	else if (r == SBX_CHANNEL_E_CLOSED)
		sbx_tcp_refuse_reason(f, SBX_REASON_NOT_TERMINATED);
	else if (r != 0)
		sbx_context_exit(f->ctx, 1);
}

/* --- flows that sbx-tls carries --- */

/* The bytes that the server's connection carried, TLS's own among them. */
static struct sbx_carried so_far(const struct sbx_tcp_handed *h)
{
	struct sbx_carried c = { .duration_ms = sbx_now_ms() - h->began_ms };
	struct tcp_info info = { 0 };
	socklen_t n = sizeof(info);

	if (h->fd >= 0 && getsockopt(h->fd, IPPROTO_TCP, TCP_INFO, &info, &n) == 0) {
		c.bytes_out = info.tcpi_bytes_acked;
		c.bytes_in = info.tcpi_bytes_received;
	}
	return c;
}

static void tell(struct sbx_tcp *t, struct sbx_tcp_handed *h, const struct sbx_carried *c)
{
	if (h->carried)
		sbx_report_flow(t->ctx, SBX_PROTO_TCP, &h->target.verdict,
				sbx_tcp_uses_proxy(t->ctx) ? NULL : &h->reached, h->target.port,
				h->target.name, c);
	h->carried = false;
}

static void tell_so_far(struct sbx_tcp *t, struct sbx_tcp_handed *h)
{
	struct sbx_carried c = so_far(h);

	tell(t, h, &c);
}

void sbx_tcp_handed_judge_again(struct sbx_tcp *t, const struct sbx_core *next)
{
	for (struct sbx_tcp_handed *h = t->handed; h; h = h->next) {
		const struct sbx_core_opened o = {
			.reached = &h->reached,
			.proxy_port = t->ctx->config.proxy_port,
		};

		if (h->target.kind == SBX_FLOW_SELFTEST)
			continue;
		h->cut_verdict = sbx_core_judge_again(next, &o, &h->target);
		h->cut = h->cut_verdict.action != SBX_ALLOW;
		if (h->cut)
			tell_so_far(t, h); /* by the policy that allowed it */
	}
}

/* 0: told, or told before. SBX_CHANNEL_E_*, -errno. */
static int tell_to_cut(struct sbx_tcp *t, struct sbx_tcp_handed *h)
{
	uint8_t packet[16];
	ssize_t n = sbx_msg_encode_simple(SBX_MSG_TLS_CUT, h->flow, packet, sizeof(packet));
	int r;

	if (h->told)
		return 0;
	r = n < 0 ? (int)n :
		    sbx_channel_send(t->ctx->fds[SBX_BFD_TLS], packet, (size_t)n, NULL, 0);
	h->told = r == 0;
	return r;
}

static int tell_all_to_cut(struct sbx_tcp *t)
{
	int r = 0;

	for (struct sbx_tcp_handed *h = t->handed; h && r == 0; h = h->next)
		if (h->cut)
			r = tell_to_cut(t, h);
	return r;
}

size_t sbx_tcp_handed_cut(struct sbx_tcp *t)
{
	size_t n = 0;
	int r;

	for (struct sbx_tcp_handed *h = t->handed; h; h = h->next) {
		if (!h->cut)
			continue;
		h->cut_verdict.action = SBX_DENY;
		t->ctx->stats.flows_denied++;
		sbx_report_event(t->ctx, SBX_PROTO_TCP, &h->cut_verdict, &h->target.addr,
				 h->target.port, h->target.name);
		sbx_tcp_set_reset(h->fd);
		shutdown(h->fd, SHUT_RDWR);
		n++;
	}
	t->n_cutting = n;
	r = tell_all_to_cut(t);
	if (r == SBX_CHANNEL_E_AGAIN)
		wait_for_room(t);
	else if (r != 0 && r != SBX_CHANNEL_E_CLOSED)
		sbx_context_exit(t->ctx, 1);
	return n;
}

/* @n flows less are being cut. */
static void finish_cutting(struct sbx_tcp *t, size_t n)
{
	t->n_cutting -= n;
	if (n && t->n_cutting == 0 && t->on_cut)
		t->on_cut(t->cut_userdata);
}

void sbx_tcp_handed_list(struct sbx_tcp *t, sbx_flow_fn fn, void *userdata)
{
	for (const struct sbx_tcp_handed *h = t->handed; h; h = h->next) {
		struct sbx_carried c = so_far(h);
		struct sbx_msg_flow m;

		if (!h->carried)
			continue;
		sbx_report_open_flow(t->ctx, &h->target,
				     sbx_tcp_uses_proxy(t->ctx) ? NULL : &h->reached, &c, &m);
		fn(userdata, &m);
	}
}

void sbx_tcp_handed_tell_all(struct sbx_tcp *t)
{
	for (struct sbx_tcp_handed *h = t->handed; h; h = h->next)
		tell_so_far(t, h);
}

/* sbx-tls is gone: the flows that waited for it are refused. */
static void close_channel(struct sbx_tcp *t)
{
	struct sbx_tcp_flow *next;

	for (struct sbx_tcp_flow *f = t->first; f; f = next) {
		next = f->next;
		if (f->state == SBX_TCP_HANDING)
			sbx_tcp_refuse_reason(f, SBX_REASON_NOT_TERMINATED);
	}
	sbx_tcp_terminate_fini(t);
	finish_cutting(t, t->n_cutting);
	t->ctx->fds[SBX_BFD_TLS] = sbx_fd_close(t->ctx->fds[SBX_BFD_TLS]);
}

static void on_room(evutil_socket_t fd, short what, void *userdata)
{
	struct sbx_tcp *t = userdata;
	struct sbx_tcp_flow *next;
	int r = tell_all_to_cut(t);

	(void)fd;
	(void)what;
	for (struct sbx_tcp_flow *f = t->first; f && r == 0; f = next) {
		next = f->next;
		if (f->state == SBX_TCP_HANDING)
			r = hand_over(f);
	}
	if (r == SBX_CHANNEL_E_AGAIN)
		wait_for_room(t);
	else if (r == SBX_CHANNEL_E_CLOSED)
		close_channel(t);
	else if (r != 0)
		sbx_context_exit(t->ctx, 1);
}

/* --- messages of sbx-tls --- */

/* sbx-tls has ended the flow, and the server has not taken all of it. */
static void finish_sending(struct sbx_tcp *t, struct sbx_tcp_handed *h)
{
	struct sbx_tcp_flow *f;

	if (!sbx_tcp_has_queued(h->fd))
		return;
	f = sbx_tcp_flow_new(t, -1, &h->target);
	if (!f) {
		sbx_tcp_set_reset(h->fd);
		return;
	}
	f->reached = h->reached;
	f->out.fd = sbx_fd_steal(&h->fd);
	if (sbx_tcp_watch(f, &f->out) < 0)
		sbx_tcp_abort(f);
	else
		sbx_tcp_finish(f);
}

static int on_done(struct sbx_tcp *t, struct sbx_span packet)
{
	struct sbx_tcp_handed *h = t->handed;
	struct sbx_carried c = { 0 };
	struct sbx_msg_tls_done m;
	bool cut;

	if (sbx_msg_decode_tls_done(packet, &m) < 0)
		return -EBADMSG;
	while (h && h->flow != m.flow)
		h = h->next;
	if (!h)
		return -EBADMSG;
	t->ctx->stats.bytes_out += m.bytes_out;
	t->ctx->stats.bytes_in += m.bytes_in;
	c.bytes_out = m.bytes_out;
	c.bytes_in = m.bytes_in;
	c.duration_ms = sbx_now_ms() - h->began_ms;
	tell(t, h, &c);
	cut = h->cut;
	if (!cut)
		finish_sending(t, h);
	handed_free(t, h);
	finish_cutting(t, cut ? 1 : 0);
	return 0;
}

static int on_event(struct sbx_tcp *t, struct sbx_span packet)
{
	struct sbx_event e;
	struct sbx_verdict v;

	if (sbx_msg_decode_event(packet, &e) < 0 || e.action != SBX_DENY ||
	    e.proto != SBX_PROTO_TCP)
		return -EBADMSG;
	v = sbx_policy_decide_name(t->ctx->core.policy, e.name, SBX_PROTO_TCP, e.port);
	v.action = SBX_DENY;
	v.reason = e.reason;
	t->ctx->stats.flows_denied++;
	sbx_report_request(t->ctx, &v, &e.addr, e.port, e.name, e.request);
	return 0;
}

void sbx_tcp_terminate_drain(struct sbx_tcp *t)
{
	int fd = t->ctx->fds[SBX_BFD_TLS], r = 0;
	uint8_t packet[2048];
	size_t n;

	if (fd < 0)
		return;
	while (r == 0 && (r = sbx_channel_recv(fd, packet, sizeof(packet), &n, NULL, 0, NULL,
					       NULL)) == 0) {
		struct sbx_span bytes = sbx_span(packet, n);

		r = sbx_msg_type(bytes) == SBX_MSG_EVENT ? on_event(t, bytes) : on_done(t, bytes);
	}
	if (r == SBX_CHANNEL_E_CLOSED)
		close_channel(t);
	else if (r != SBX_CHANNEL_E_AGAIN)
		sbx_context_exit(t->ctx, 1);
}

static void on_message(evutil_socket_t fd, short what, void *userdata)
{
	(void)fd;
	(void)what;
	sbx_tcp_terminate_drain(userdata);
}

int sbx_tcp_terminate_init(struct sbx_tcp *t)
{
	int fd = t->ctx->fds[SBX_BFD_TLS];

	if (fd < 0)
		return 0;
	if (event_assign(&t->ev_hand, t->ctx->base, fd, EV_WRITE, on_room, t) < 0)
		return -ENOMEM;
	return sbx_context_watch(t->ctx, &t->ev_tls, fd, on_message, t);
}

void sbx_tcp_terminate_fini(struct sbx_tcp *t)
{
	sbx_context_unwatch(&t->ev_hand);
	sbx_context_unwatch(&t->ev_tls);
	for (; t->handed; handed_free(t, t->handed))
		tell_so_far(t, t->handed);
}
