/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Connections: whose they are, how many a caller may have, and how long they may wait.
 *
 * Where there are too many, the one that has waited longest for a whole request is cut, and not the
 * new one. So connections that do nothing keep nobody out, also not a caller who shares their
 * address, as all callers of a proxy do. If none of them waits, the new one is cut.
 *
 * All users of this host have its loopback address. The kernel tells them apart: it knows which
 * user's socket the other end of a local TCP connection is.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "daemon/http/listener.h"
#include "launcher/control/peer.h"
#include "sys/net/net.h"
#include "sys/process/proc.h"

/* The user at the other end of a TCP connection, if that is on this host. */
static uid_t owner_of(const struct sbx_http_connection *c, const struct sbx_http_listener *l,
		      uint16_t port)
{
	const struct sbx_net_end here = { c->at, c->port }, there = { c->address, port };
	uid_t uid;

	if (l->http->diag_fd < 0 || (sbx_addr_class(&c->address) != SBX_ADDR_LOOPBACK &&
				     !sbx_addr_equal(&c->address, &c->at)))
		return SBX_UID_UNKNOWN;
	return sbx_net_owner(l->http->diag_fd, &there, &here, &uid) == 0 ? uid : SBX_UID_UNKNOWN;
}

static void describe(struct sbx_http_connection *c, const struct sbx_http_listener *l,
		     struct MHD_Connection *mc)
{
	const union MHD_ConnectionInfo *fd =
		MHD_get_connection_info(mc, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct sockaddr_storage sa = { 0 };
	struct sbx_control_peer peer;
	socklen_t n = sizeof(sa);
	uint16_t port = 0;

	c->fd = fd ? fd->connect_fd : -1;
	if (l->kind == SBX_LISTEN_UNIX) {
		sbx_control_peer_look(c->fd, &peer, &c->foreign);
		c->uid = peer.uid;
		return;
	}
	if (getsockname(c->fd, (struct sockaddr *)&sa, &n) == 0)
		sbx_addr_from_sockaddr((struct sockaddr *)&sa, n, &c->at, &c->port);
	n = sizeof(sa);
	if (getpeername(c->fd, (struct sockaddr *)&sa, &n) == 0)
		sbx_addr_from_sockaddr((struct sockaddr *)&sa, n, &c->address, &port);
	c->uid = owner_of(c, l, port);
}

static void cut(struct sbx_http_connection *c)
{
	c->is_cut = true;
	if (c->fd >= 0)
		shutdown(c->fd, SHUT_RDWR);
}

/* A user of this host has all of its addresses, an owner of IPv6 addresses 2^64 of them. */
static bool is_same_caller(const struct sbx_http_listener *l, const struct sbx_http_connection *a,
			   const struct sbx_http_connection *b)
{
	if (l->kind == SBX_LISTEN_UNIX || a->uid != SBX_UID_UNKNOWN || b->uid != SBX_UID_UNKNOWN)
		return a->uid == b->uid;
	if (a->address.family == 6 && b->address.family == 6)
		return memcmp(a->address.b, b->address.b, 8) == 0;
	return sbx_addr_equal(&a->address, &b->address);
}

/* Makes room for the new connection @c if its caller has more than @max; @of_all: if all have. */
static void make_room(const struct sbx_http_listener *l, struct sbx_http_connection *c, size_t max,
		      bool of_all)
{
	struct sbx_http_connection *oldest = c;
	size_t n = 0;

	for (struct sbx_http_connection *k = l->connections; k; k = k->next) {
		if (k->is_cut || (!of_all && !is_same_caller(l, k, c)))
			continue;
		n++;
		if (k->since_us && k->since_us < oldest->since_us)
			oldest = k;
	}
	if (n > max)
		cut(oldest);
}

static void limit(const struct sbx_http_listener *l, struct sbx_http_connection *c)
{
	if (l->kind == SBX_LISTEN_TCP)
		make_room(l, c, SBX_HTTP_PER_ADDRESS_MAX, false);
	else if (!sbx_access_is_own(l->http->o.access, c->uid))
		make_room(l, c, SBX_ACCESS_PER_UID_MAX, false);
	if (!c->is_cut)
		make_room(l, c, SBX_HTTP_CONNECTIONS_MAX, true);
}

void sbx_connection_notified(void *cls, struct MHD_Connection *mc, void **state,
			     enum MHD_ConnectionNotificationCode code)
{
	struct sbx_http_listener *l = cls;
	struct sbx_http_connection *c = *state;

	if (code == MHD_CONNECTION_NOTIFY_STARTED) {
		c = calloc(1, sizeof(*c));
		*state = c;
		if (!c)
			return;
		describe(c, l, mc);
		l->http->stats.n_connections[l->kind]++;
		c->since_us = sbx_clock_monotonic_us();
		c->next = l->connections;
		c->where = &l->connections;
		if (c->next)
			c->next->where = &c->next;
		l->connections = c;
		limit(l, c);
	} else if (c) {
		l->http->stats.n_connections[l->kind]--;
		*c->where = c->next;
		if (c->next)
			c->next->where = c->where;
		free(c);
		*state = NULL;
	}
}

/* A client that sends a byte now and then is never idle for libmicrohttpd. */
void sbx_connections_sweep(struct sbx_http_listener *l)
{
	uint64_t now = sbx_clock_monotonic_us();

	for (struct sbx_http_connection *c = l->connections; c; c = c->next)
		if (c->since_us && now - c->since_us > SBX_HTTP_REQUEST_S * 1000000ull)
			cut(c);
}
