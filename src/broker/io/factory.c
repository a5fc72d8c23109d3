/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The socket factory, as the broker sees it: a process in the sandbox's namespace that makes sockets on request: UDP
 * ones bound to an address that was dialled, TCP ones that connect to a published port. It answers in order, by
 * cookie. An answer that is none of the known ones ends the broker; when the factory is gone, what needs it is
 * refused. So is what a socket came for that our table of files had no room for: whoever fills the table, from
 * inside or from outside, ends nothing by it.
 */

#include "broker/io/factory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "ipc/channel.h"

struct sbx_factory {
	struct sbx_broker *b;
	int fd; /* borrowed; -1: gone */
	struct event ev;
	uint32_t cookie; /* the last one used */
};

static const struct {
	enum sbx_msg_type type;
	size_t n_fds;
	void (*made)(struct sbx_broker *b, uint32_t cookie, int fd_take);
} answers[] = {
	{ SBX_MSG_UDP_SOCKET_MADE, 1, sbx_udp_made },
	{ SBX_MSG_UDP_SOCKET_FAILED, 0, sbx_udp_made },
	{ SBX_MSG_TCP_SOCKET_MADE, 1, sbx_tcp_made },
	{ SBX_MSG_TCP_SOCKET_FAILED, 0, sbx_tcp_made },
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
		f->b->stats.limits_hit++;
	for (size_t i = 0; (r == 0 || r == SBX_CHANNEL_E_NO_FDS) && i < SBX_N_ELEMENTS(answers); i++)
		if ((r == 0 ? n_fds : 1) == answers[i].n_fds &&
		    sbx_msg_decode_simple(sbx_span(packet, n), answers[i].type, &cookie) == 0 &&
		    cookie != 0) { /* 0: what has its answer */
			answers[i].made(f->b, cookie, sbx_fd_steal(&fd));
			return;
		}
	sbx_broker_exit(f->b, 1);
}

static uint32_t next_cookie(struct sbx_factory *f)
{
	if (!f || f->fd < 0)
		return 0;
	if (++f->cookie == 0)
		f->cookie = 1;
	return f->cookie;
}

/* @n: what the encoder returned. */
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

int sbx_factory_new(struct sbx_broker *b)
{
	int fd = b->fds[SBX_BFD_FACTORY];
	struct sbx_factory *f;

	if (fd < 0)
		return 0;
	f = calloc(1, sizeof(*f));
	if (!f)
		return -ENOMEM;
	b->factory = f;
	f->b = b;
	f->fd = fd;
	if (fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
		return -errno;
	if (event_assign(&f->ev, b->base, fd, EV_READ | EV_PERSIST, on_answer, f) < 0 ||
	    event_add(&f->ev, NULL) < 0)
		return -ENOMEM;
	return 0;
}

void sbx_factory_free(struct sbx_factory *f)
{
	if (!f)
		return;
	if (event_initialized(&f->ev))
		event_del(&f->ev);
	free(f);
}
