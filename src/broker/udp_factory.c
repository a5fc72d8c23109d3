/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The socket factory, as the broker sees it: a process in the sandbox's namespace that makes UDP
 * sockets bound to an address that was dialled. It answers in order, by cookie. An answer that is
 * none of the two known ones ends the broker; when the factory is gone, UDP flows are refused.
 */

#include "broker/udp_flow.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "ipc/channel.h"

struct sbx_udp_factory {
	struct sbx_broker *b;
	int fd; /* borrowed; -1: gone */
	struct event ev;
	uint32_t cookie; /* the last one used */
	sbx_udp_made_fn made;
};

static void on_answer(evutil_socket_t channel, short what, void *userdata)
{
	struct sbx_udp_factory *f = userdata;
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
	} else if (r == 0 && n_fds == 1 &&
		   sbx_msg_decode_simple(sbx_span(packet, n), SBX_MSG_UDP_SOCKET_MADE, &cookie) ==
			   0) {
		f->made(f->b->udp, cookie, sbx_fd_steal(&fd));
	} else if (r == 0 && n_fds == 0 &&
		   sbx_msg_decode_simple(sbx_span(packet, n), SBX_MSG_UDP_SOCKET_FAILED, &cookie) ==
			   0) {
		f->made(f->b->udp, cookie, -1);
	} else {
		sbx_broker_exit(f->b, 1);
	}
}

uint32_t sbx_udp_factory_ask(struct sbx_udp_factory *f, const struct sbx_udp_flow *flow)
{
	struct sbx_msg_udp_socket m = {
		.local = flow->target.addr,
		.local_port = flow->target.port,
		.peer = flow->peer,
		.peer_port = flow->peer_port,
	};
	uint8_t packet[128];
	ssize_t n;

	if (!f || f->fd < 0)
		return 0;
	if (++f->cookie == 0)
		f->cookie = 1;
	m.cookie = f->cookie;
	n = sbx_msg_encode_udp_socket(&m, packet, sizeof(packet));
	if (n < 0 || sbx_channel_send(f->fd, packet, (size_t)n, NULL, 0) != 0)
		return 0;
	return f->cookie;
}

int sbx_udp_factory_new(struct sbx_broker *b, int fd, sbx_udp_made_fn made,
			struct sbx_udp_factory **ret_f)
{
	struct sbx_udp_factory *f;

	if (fd < 0)
		return 0;
	f = calloc(1, sizeof(*f));
	if (!f)
		return -ENOMEM;
	*ret_f = f;
	f->b = b;
	f->fd = fd;
	f->made = made;
	if (fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
		return -errno;
	if (event_assign(&f->ev, b->base, fd, EV_READ | EV_PERSIST, on_answer, f) < 0 ||
	    event_add(&f->ev, NULL) < 0)
		return -ENOMEM;
	return 0;
}

void sbx_udp_factory_free(struct sbx_udp_factory *f)
{
	if (!f)
		return;
	if (event_initialized(&f->ev))
		event_del(&f->ev);
	free(f);
}
