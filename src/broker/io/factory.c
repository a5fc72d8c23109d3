/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The socket factory is a process in the sandbox's namespace that makes sockets on request: UDP
 * sockets bound to an address that was dialled, TCP sockets that connect to a published port. It
 * answers in order; an answer has the cookie of its request.
 *
 * An answer that is not in the table below ends the broker. When the factory is gone, every flow
 * that needs it is refused. A flow is also refused if its socket came while our file table was
 * full: neither the sandbox nor a client outside can end the broker by filling that table.
 */

#include "broker/io/factory.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "ipc/channel.h"

struct sbx_factory {
	struct sbx_context *ctx;
	struct {
		sbx_factory_fn made;
		void *userdata;
	} kinds[SBX_N_FACTORY_KINDS];
	int fd; /* borrowed; -1: gone */
	struct event ev;
	uint32_t cookie; /* the last one used */
};

static const struct {
	size_t n_fds;
	enum sbx_msg_type type;
	enum sbx_factory_kind kind;
} answers[] = {
	{ 1, SBX_MSG_UDP_SOCKET_MADE, SBX_FACTORY_UDP },
	{ 0, SBX_MSG_UDP_SOCKET_FAILED, SBX_FACTORY_UDP },
	{ 1, SBX_MSG_TCP_SOCKET_MADE, SBX_FACTORY_TCP },
	{ 0, SBX_MSG_TCP_SOCKET_FAILED, SBX_FACTORY_TCP },
};

static void on_answer(evutil_socket_t channel, short what, void *userdata)
{
	struct sbx_factory *f = userdata;
	SBX_AUTO_CLOSE int fd = -1;
	uint8_t packet[64];
	size_t n, n_fds;
	uint32_t cookie;
	int r = sbx_channel_recv(channel, packet, sizeof(packet), &n, &fd, 1, &n_fds, NULL);

	(void)what;
	if (r == SBX_CHANNEL_E_AGAIN)
		return;
	if (r == SBX_CHANNEL_E_CLOSED) {
		event_del(&f->ev);
		f->fd = -1;
		return;
	}
	if (r == SBX_CHANNEL_E_NO_FDS)
		f->ctx->stats.limits_hit++;
	for (size_t i = 0; (r == 0 || r == SBX_CHANNEL_E_NO_FDS) && i < SBX_N_ELEMENTS(answers);
	     i++)
		if ((r == 0 ? n_fds : 1) == answers[i].n_fds &&
		    sbx_msg_decode_simple(sbx_span(packet, n), answers[i].type, &cookie) == 0 &&
		    cookie != 0) { /* 0: never a request's */
			enum sbx_factory_kind kind = answers[i].kind;

			f->kinds[kind].made(f->kinds[kind].userdata, cookie, sbx_fd_steal(&fd));
			return;
		}
	sbx_context_exit(f->ctx, 1);
}

static uint32_t next_cookie(struct sbx_factory *f)
{
	if (!f || f->fd < 0)
		return 0;
	if (++f->cookie == 0)
		f->cookie = 1;
	return f->cookie;
}

/* @n: the return code of the encoder. */
static uint32_t ask(struct sbx_factory *f, const uint8_t *packet, ssize_t n)
{
	return n >= 0 && sbx_channel_send(f->fd, packet, (size_t)n, NULL, 0) == 0 ? f->cookie : 0;
}

uint32_t sbx_factory_ask_udp(struct sbx_factory *f, struct sbx_msg_udp_socket *m)
{
	uint8_t packet[128];

	m->cookie = next_cookie(f);
	return m->cookie ? ask(f, packet, sbx_msg_encode_udp_socket(m, packet, sizeof(packet))) : 0;
}

uint32_t sbx_factory_ask_tcp(struct sbx_factory *f, struct sbx_msg_tcp_socket *m)
{
	uint8_t packet[64];

	m->cookie = next_cookie(f);
	return m->cookie ? ask(f, packet, sbx_msg_encode_tcp_socket(m, packet, sizeof(packet))) : 0;
}

void sbx_factory_on(struct sbx_factory *f, enum sbx_factory_kind kind, sbx_factory_fn made,
		    void *userdata)
{
	if (!f)
		return;
	f->kinds[kind].made = made;
	f->kinds[kind].userdata = userdata;
}

int sbx_factory_new(struct sbx_context *ctx, struct sbx_factory **ret_factory)
{
	int fd = ctx->fds[SBX_BFD_FACTORY];
	struct sbx_factory *f;

	if (fd < 0)
		return 0;
	f = calloc(1, sizeof(*f));
	if (!f)
		return -ENOMEM;
	*ret_factory = f;
	f->ctx = ctx;
	f->fd = fd;
	return sbx_context_watch(ctx, &f->ev, fd, on_answer, f);
}

void sbx_factory_free(struct sbx_factory *f)
{
	if (!f)
		return;
	sbx_context_unwatch(&f->ev);
	free(f);
}
