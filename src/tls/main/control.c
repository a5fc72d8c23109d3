/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Messages to a running sbx-tls. The broker and the launcher are more trusted than the sandbox;
 * still a message that is not expected ends the process, and with it the sandbox.
 *
 * The end of either channel is the end of the sandbox.
 */
#include "tls/main/control.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "ipc/channel.h"
#include "tls/conn/conn.h"

#define MESSAGES_MAX 64 /* read in one turn */

static int watch(struct sbx_tls_control *c, struct event *ev, int fd, event_callback_fn callback)
{
	int e = sbx_fd_set_nonblocking(fd);

	if (e < 0)
		return e;
	if (event_assign(ev, c->ctx->base, fd, EV_READ | EV_PERSIST, callback, c) < 0 ||
	    event_add(ev, NULL) < 0)
		return -ENOMEM;
	return 0;
}

/* --- flows --- */

/* Tells the broker that a flow without a connection is done. */
static void turn_away(struct sbx_tls_context *ctx, const struct sbx_msg_tls_flow *m)
{
	const struct sbx_msg_tls_done done = { .flow = m->flow };
	uint8_t packet[64];
	ssize_t n = sbx_msg_encode_tls_done(&done, packet, sizeof(packet));

	if (n > 0)
		sbx_tls_send(ctx, packet, (size_t)n);
}

/* Is it a flow that this process can carry, with its sockets? */
static bool is_fine(const struct sbx_tls_context *ctx, const struct sbx_msg_tls_flow *m,
		    size_t n_fds)
{
	if (m->entry == SBX_TLS_ECHO)
		return n_fds == 1;
	if (n_fds != 2)
		return false;
	return m->entry == SBX_TLS_LIVE ? sbx_conn_may_be_live(ctx, m) :
					  m->entry < ctx->rules.n_entries;
}

/* False: nothing more to read now. */
static bool receive_flow(struct sbx_tls_context *ctx)
{
	struct sbx_msg_tls_flow m;
	int fds[2] = { -1, -1 };
	uint32_t flow;
	size_t n, n_fds;
	int r = sbx_channel_recv(ctx->broker_fd, ctx->buf, sizeof(ctx->buf), &n, fds, 2, &n_fds,
				 NULL);

	if (r == SBX_CHANNEL_E_AGAIN)
		return false;
	if (r == SBX_CHANNEL_E_NO_FDS &&
	    sbx_msg_decode_tls_flow(sbx_span(ctx->buf, n), &m) == 0) {
		turn_away(ctx, &m);
		return true;
	}
	if (r != 0) {
		sbx_tls_exit(ctx, r == SBX_CHANNEL_E_CLOSED ? 0 : 1);
		return false;
	}
	if (n_fds == 0 &&
	    sbx_msg_decode_simple(sbx_span(ctx->buf, n), SBX_MSG_TLS_CUT, &flow) == 0) {
		sbx_conn_cut(ctx, flow);
		return true;
	}
	if (sbx_msg_decode_tls_flow(sbx_span(ctx->buf, n), &m) < 0 ||
	    !is_fine(ctx, &m, n_fds)) {
		for (size_t i = 0; i < n_fds; i++)
			sbx_fd_close(fds[i]);
		sbx_tls_exit(ctx, 1);
		return false;
	}
	if (ctx->n_conns >= ctx->rules.n_flows) {
		sbx_fd_close(fds[0]);
		sbx_fd_close(fds[1]);
		turn_away(ctx, &m);
	} else {
		r = sbx_conn_new(ctx, &m, fds);
		if (r == -EBADMSG)
			sbx_tls_exit(ctx, 1);
		else if (r < 0)
			turn_away(ctx, &m);
	}
	return true;
}

static void on_broker(evutil_socket_t fd, short what, void *userdata)
{
	struct sbx_tls_control *c = userdata;

	(void)fd;
	(void)what;
	for (int i = 0; i < MESSAGES_MAX && receive_flow(c->ctx); i++)
		;
}

/* --- secrets that were read again --- */

/* A value that was read again: a memfd of the launcher's. */
static int take_value(struct sbx_tls_context *ctx, int fd, size_t i)
{
	ssize_t n = pread(fd, ctx->buf, sizeof(ctx->buf), 0);
	int r = n < 0 ? -EBADMSG :
			sbx_tls_replace_value(ctx, i, sbx_span(ctx->buf, (size_t)n));

	explicit_bzero(ctx->buf, sizeof(ctx->buf));
	return r;
}

static void on_launcher(evutil_socket_t fd, short what, void *userdata)
{
	struct sbx_tls_control *c = userdata;
	struct sbx_tls_context *ctx = c->ctx;
	uint8_t buf[64];
	uint32_t index;
	size_t n, n_fds = 0;
	int value_fd = -1;
	int r = sbx_channel_recv(fd, buf, sizeof(buf), &n, &value_fd, 1, &n_fds, NULL);

	(void)what;
	if (r == SBX_CHANNEL_E_AGAIN)
		return;
	if (r != 0) {
		sbx_tls_exit(ctx, r == SBX_CHANNEL_E_CLOSED ? 0 : 1);
		return;
	}
	if (sbx_msg_decode_simple(sbx_span(buf, n), SBX_MSG_SECRET, &index) < 0 || n_fds != 1 ||
	    index >= ctx->rules.n_secrets || take_value(ctx, value_fd, index) < 0)
		sbx_tls_exit(ctx, 1);
	sbx_fd_close(value_fd);
}

int sbx_tls_control_init(struct sbx_tls_control *c)
{
	int e = watch(c, &c->ev_broker, c->ctx->broker_fd, on_broker);

	return e < 0 ? e : watch(c, &c->ev_launcher, c->ctx->launcher_fd, on_launcher);
}

void sbx_tls_control_fini(struct sbx_tls_control *c)
{
	if (event_initialized(&c->ev_broker))
		event_del(&c->ev_broker);
	if (event_initialized(&c->ev_launcher))
		event_del(&c->ev_launcher);
}
