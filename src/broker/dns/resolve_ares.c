/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * c-ares and the loop.
 *
 * c-ares is given everything by options, so that it opens no file and reads no environment
 * (broker.c clears it): servers from CONFIG, lookups "b" (DNS only; the hosts file is ours), no
 * search domains, no aliases.
 *
 * UDP or TCP is an option of a c-ares channel, so each way has a channel of its own. A channel's
 * sockets are registered with the loop as c-ares opens them; its earliest timeout is a timer.
 */

#include "broker/dns/resolve_ares.h"

#include <arpa/nameser.h>
#include <errno.h>
#include <event2/event_struct.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define SOCKETS_MAX 32 /* of a channel */

static const struct {
	int flags, timeout_ms, tries;
} ways[SBX_ARES_N_WAYS] = {
	[SBX_ARES_AUTO] = { 0, 2500, 3 },
	[SBX_ARES_UDP] = { ARES_FLAG_IGNTC, 2500, 3 },
	/* Two tries: a server may close the connection after the first of two questions. */
	[SBX_ARES_TCP] = { ARES_FLAG_USEVC, 1000, 2 },
};

struct ares_socket {
	int fd; /* -1: free */
	struct event ev;
};

struct channel {
	struct sbx_ares *a;
	ares_channel channel;
	bool is_open;
	struct event ev_timeout;
	struct ares_socket sockets[SOCKETS_MAX];
};

struct sbx_ares {
	struct event_base *base;
	struct channel v[SBX_ARES_N_WAYS];
};

static void set_timeout(struct channel *c)
{
	struct timeval tv, *next = ares_timeout(c->channel, NULL, &tv);

	if (next)
		event_add(&c->ev_timeout, next);
	else
		event_del(&c->ev_timeout);
}

static void on_socket(evutil_socket_t fd, short what, void *userdata)
{
	struct channel *c = userdata;

	ares_process_fd(c->channel, what & EV_READ ? fd : ARES_SOCKET_BAD,
			what & EV_WRITE ? fd : ARES_SOCKET_BAD);
	set_timeout(c);
}

static void on_timeout(evutil_socket_t fd, short what, void *userdata)
{
	struct channel *c = userdata;

	(void)fd;
	(void)what;
	ares_process_fd(c->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
	set_timeout(c);
}

/* c-ares opened, changed or is about to close a socket. Past SOCKETS_MAX a socket is not
 * watched: its query times out. */
static void on_socket_state(void *userdata, ares_socket_t fd, int readable, int writable)
{
	struct channel *c = userdata;
	struct ares_socket *s = NULL;
	short what = (short)((readable ? EV_READ : 0) | (writable ? EV_WRITE : 0) | EV_PERSIST);

	for (size_t i = 0; i < SOCKETS_MAX; i++) {
		if (c->sockets[i].fd == fd) {
			s = &c->sockets[i];
			break;
		}
		if (c->sockets[i].fd < 0 && !s)
			s = &c->sockets[i];
	}
	if (!s)
		return;
	if (s->fd >= 0)
		event_del(&s->ev);
	s->fd = -1;
	if ((readable || writable) &&
	    event_assign(&s->ev, c->a->base, fd, what, on_socket, c) == 0 &&
	    event_add(&s->ev, NULL) == 0)
		s->fd = fd;
}

static int open_channel(struct channel *c, enum sbx_ares_way way)
{
	char lookups[] = "b";
	char *no_domains[1] = { NULL };
	struct ares_options options = {
		.flags = ARES_FLAG_NOSEARCH | ARES_FLAG_NOALIASES | ways[way].flags,
		.timeout = ways[way].timeout_ms,
		.tries = ways[way].tries,
		.ndots = 1,
		.lookups = lookups,
		.domains = no_domains,
		.sock_state_cb = on_socket_state,
		.sock_state_cb_data = c,
	};
	/* Servers, domains and sort list are set, to nothing: then c-ares 1.18 does not read
	 * resolv.conf. */
	int mask = ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_NDOTS |
		   ARES_OPT_LOOKUPS | ARES_OPT_DOMAINS | ARES_OPT_SERVERS | ARES_OPT_SORTLIST |
		   ARES_OPT_NOROTATE | ARES_OPT_SOCK_STATE_CB;

	if (evtimer_assign(&c->ev_timeout, c->a->base, on_timeout, c) < 0)
		return -ENOMEM;
	if (ares_init_options(&c->channel, &options, mask) != ARES_SUCCESS)
		return -EIO;
	c->is_open = true;
	return 0;
}

int sbx_ares_new(struct event_base *base, int n_ways, struct sbx_ares **ret_ares)
{
	struct sbx_ares *a = calloc(1, sizeof(*a));
	int r = 0;

	if (!a)
		return -ENOMEM;
	*ret_ares = a;
	a->base = base;
	for (int i = 0; i < SBX_ARES_N_WAYS; i++) {
		a->v[i].a = a;
		for (size_t k = 0; k < SOCKETS_MAX; k++)
			a->v[i].sockets[k].fd = -1;
	}
	if (ares_library_init(ARES_LIB_INIT_ALL) != ARES_SUCCESS)
		return -EIO;
	for (int i = 0; r == 0 && i < n_ways; i++)
		r = open_channel(&a->v[i], (enum sbx_ares_way)i);
	return r;
}

void sbx_ares_free(struct sbx_ares *a)
{
	if (!a)
		return;
	for (int i = 0; i < SBX_ARES_N_WAYS; i++) {
		if (!a->v[i].is_open)
			continue;
		ares_destroy(a->v[i].channel);
		event_del(&a->v[i].ev_timeout);
	}
	ares_library_cleanup();
	free(a);
}

void sbx_ares_cancel(struct sbx_ares *a)
{
	for (int i = 0; i < SBX_ARES_N_WAYS; i++) {
		if (!a->v[i].is_open)
			continue;
		ares_cancel(a->v[i].channel);
		set_timeout(&a->v[i]);
	}
}

int sbx_ares_set_servers(struct sbx_ares *a, const struct sbx_resolver *v, size_t n)
{
	struct ares_addr_port_node nodes[SBX_RESOLVERS_MAX] = { 0 };

	for (size_t i = 0; i < n; i++) {
		nodes[i].next = i + 1 < n ? &nodes[i + 1] : NULL;
		nodes[i].udp_port = nodes[i].tcp_port = v[i].port;
		nodes[i].family = v[i].addr.family == 4 ? AF_INET : AF_INET6;
		memcpy(&nodes[i].addr, v[i].addr.b, v[i].addr.family == 4 ? 4 : 16);
	}
	for (int i = 0; i < SBX_ARES_N_WAYS; i++)
		if (a->v[i].is_open &&
		    ares_set_servers_ports(a->v[i].channel, n ? nodes : NULL) != ARES_SUCCESS)
			return -EIO;
	return 0;
}

void sbx_ares_query(struct sbx_ares *a, enum sbx_ares_way way, const char *name, int type,
		    ares_callback done, void *userdata)
{
	ares_query(a->v[way].channel, name, ns_c_in, type, done, userdata);
	set_timeout(&a->v[way]);
}

void sbx_ares_send(struct sbx_ares *a, enum sbx_ares_way way, const uint8_t *query, size_t n_query,
		   ares_callback done, void *userdata)
{
	ares_send(a->v[way].channel, query, (int)n_query, done, userdata);
	set_timeout(&a->v[way]);
}
