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
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "broker/io/report.h"
#include "ipc/channel.h"

#define PACKET_MAX (SBX_TLS_FIRST_MAX + 1024)
static_assert(PACKET_MAX <= SBX_COPY_MAX, "a packet fits the buffer for copies");

/* --- flows to hand over --- */

static void let_go(struct sbx_tcp_flow *f)
{
	struct sbx_tcp *t = f->t;

	t->n_handed++;
	sbx_tcp_close(f);
}

/* 0: handed over, the flow is gone. SBX_CHANNEL_E_AGAIN: later. Other: the channel is broken. */
static int hand_over(struct sbx_tcp_flow *f)
{
	struct sbx_tcp *t = f->t;
	bool echo = f->target.kind == SBX_FLOW_SELFTEST;
	struct sbx_msg_tls_flow m = {
		.flow = t->next_handed,
		.entry = echo ? SBX_TLS_ECHO : f->target.verdict.terminate - 1,
		.tls = f->target.check == SBX_CHECK_TLS,
		.addr = f->target.addr,
		.port = f->target.port,
		.first = sbx_span(f->first, f->n_first),
	};
	const int fds[] = { f->in.fd, f->out.fd };
	uint8_t *packet = f->ctx->copy;
	ssize_t n;
	int r;

	sbx_text_fit(m.name, sizeof(m.name), "%s", f->target.name);
	n = sbx_msg_encode_tls_flow(&m, packet, PACKET_MAX);
	if (n < 0)
		return (int)n;
	r = sbx_channel_send(f->ctx->fds[SBX_BFD_TLS], packet, (size_t)n, fds, echo ? 1 : 2);
	if (r == 0) {
		t->next_handed++;
		let_go(f);
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
	if (f->target.kind != SBX_FLOW_SELFTEST)
		sbx_report_event(f->ctx, SBX_PROTO_TCP, &f->target.verdict,
				 sbx_tcp_uses_proxy(f->ctx) ? NULL : &f->reached, f->target.port,
				 f->target.name);
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
	t->ctx->fds[SBX_BFD_TLS] = sbx_fd_close(t->ctx->fds[SBX_BFD_TLS]);
}

static void on_room(evutil_socket_t fd, short what, void *userdata)
{
	struct sbx_tcp *t = userdata;
	struct sbx_tcp_flow *next;
	int r = 0;

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

static int on_done(struct sbx_tcp *t, struct sbx_span packet)
{
	struct sbx_msg_tls_done m;

	if (sbx_msg_decode_tls_done(packet, &m) < 0 || !t->n_handed)
		return -EBADMSG;
	t->n_handed--;
	t->ctx->stats.bytes_out += m.bytes_out;
	t->ctx->stats.bytes_in += m.bytes_in;
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
}
