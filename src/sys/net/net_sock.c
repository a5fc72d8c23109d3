/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The sockets that are made inside the sandbox's network namespace and used by the broker outside.
 *
 * Every address of the world is local to the namespace, so a wildcard bind to port 53 serves as
 * every resolver. tproxy redirects to the carrying listeners; it demands IP_TRANSPARENT of a socket
 * that gets a packet. An accepted socket inherits it, and getsockname() is the address that was
 * dialled. A datagram's destination comes with IP_ORIGDSTADDR. An answer needs a socket bound to
 * that address, which only a process in the namespace can make (sbx_net_udp_flow_open).
 *
 * No listener sets SO_REUSEADDR or SO_REUSEPORT, so no process in the sandbox can bind the same
 * port with a more specific address and take packets away from it. The flow sockets must share:
 * many peers with one destination have the same local address and port. A process in the sandbox
 * can share it too, but the lookup prefers a connected socket, and the process could only take its
 * own packets.
 */
#include "sys/net/net.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "base/cleanup.h"

/* Keepalive for connections from outside: finds out after two minutes that a peer is gone. */
#define KEEPALIVE_IDLE_S     60
#define KEEPALIVE_INTERVAL_S 10
#define KEEPALIVE_PROBES     6

#define BACKLOG 4096 /* the kernel caps it at net.core.somaxconn */

static const struct {
	int family, type;
	bool carrying; /* TRANSPARENT, and any port will do; otherwise a DNS listener */
} kinds[SBX_N_LISTENERS] = {
	[SBX_LISTEN_DNS_UDP4] = { AF_INET, SOCK_DGRAM, false },
	[SBX_LISTEN_DNS_UDP6] = { AF_INET6, SOCK_DGRAM, false },
	[SBX_LISTEN_DNS_TCP4] = { AF_INET, SOCK_STREAM, false },
	[SBX_LISTEN_DNS_TCP6] = { AF_INET6, SOCK_STREAM, false },
	[SBX_LISTEN_TCP4] = { AF_INET, SOCK_STREAM, true },
	[SBX_LISTEN_TCP6] = { AF_INET6, SOCK_STREAM, true },
	[SBX_LISTEN_UDP4] = { AF_INET, SOCK_DGRAM, true },
	[SBX_LISTEN_UDP6] = { AF_INET6, SOCK_DGRAM, true },
};

static int set_on(int fd, int level, int option)
{
	int on = 1;

	return setsockopt(fd, level, option, &on, sizeof(on)) < 0 ? -errno : 0;
}

static int set_transparent(int fd, int family)
{
	return family == AF_INET ? set_on(fd, IPPROTO_IP, IP_TRANSPARENT)
				 : set_on(fd, IPPROTO_IPV6, IPV6_TRANSPARENT);
}

/* Ask for the destination address of each datagram. */
static int set_destination_info(int fd, int family, bool carrying)
{
	int r;

	if (family == AF_INET)
		return set_on(fd, IPPROTO_IP, carrying ? IP_RECVORIGDSTADDR : IP_PKTINFO);
	if (carrying)
		return set_on(fd, IPPROTO_IPV6, IPV6_RECVORIGDSTADDR);
	r = set_on(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO);
	/* An answer must come from the address that was asked. IPv6 otherwise takes only an
	 * interface's address as a source: a local route is not enough. */
	return r < 0 ? r : set_on(fd, IPPROTO_IPV6, IPV6_FREEBIND);
}

static int bind_any(int fd, int family, uint16_t port)
{
	struct sockaddr_in any4 = { .sin_family = AF_INET, .sin_port = htons(port) };
	struct sockaddr_in6 any6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	int r = family == AF_INET ? bind(fd, (struct sockaddr *)&any4, sizeof(any4))
				  : bind(fd, (struct sockaddr *)&any6, sizeof(any6));

	return r < 0 ? -errno : 0;
}

static int bound_port(int fd, uint16_t *ret_port)
{
	struct sockaddr_storage ss = { 0 };
	socklen_t n = sizeof(ss);
	struct sbx_addr addr;

	if (getsockname(fd, (struct sockaddr *)&ss, &n) < 0)
		return -errno;
	return sbx_addr_from_sockaddr((struct sockaddr *)&ss, n, &addr, ret_port);
}

int sbx_net_listener_open(enum sbx_listener which, uint16_t *ret_port)
{
	int family = kinds[which].family, type = kinds[which].type;
	bool carrying = kinds[which].carrying;
	SBX_AUTO_CLOSE int fd = socket(family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int r = 0;

	if (fd < 0)
		return -errno;
	if (family == AF_INET6)
		r = set_on(fd, IPPROTO_IPV6, IPV6_V6ONLY);
	if (r == 0 && carrying)
		r = set_transparent(fd, family);
	if (r == 0 && type == SOCK_DGRAM)
		r = set_destination_info(fd, family, carrying);
	if (r == 0) {
		r = bind_any(fd, family, carrying ? SBX_NET_CARRY_PORT : 53);
		if (r == -EADDRINUSE && carrying)
			r = bind_any(fd, family, 0);
	}
	if (r == 0 && type == SOCK_STREAM) /* only for speed: an error does not matter */
		setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, SBX_NET_CONGESTION,
			   sizeof(SBX_NET_CONGESTION) - 1);
	if (r == 0 && type == SOCK_STREAM && listen(fd, BACKLOG) < 0)
		r = -errno;
	if (r == 0)
		r = bound_port(fd, ret_port);
	return r < 0 ? r : sbx_fd_steal(&fd);
}

static int bind_to(int fd, const struct sbx_addr *addr, uint16_t port)
{
	struct sockaddr_storage ss;
	socklen_t n = sbx_addr_to_sockaddr(addr, port, &ss);

	return bind(fd, (struct sockaddr *)&ss, n) < 0 ? -errno : 0;
}

int sbx_net_stub_open(enum sbx_listener which, const struct sbx_addr *addr)
{
	int type = kinds[which].type;
	SBX_AUTO_CLOSE int fd = socket(AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int r;

	if (fd < 0)
		return -errno;
	r = type == SOCK_DGRAM ? set_destination_info(fd, AF_INET, false) :
				 set_on(fd, SOL_SOCKET, SO_REUSEADDR);
	if (r == 0)
		r = bind_to(fd, addr, 53);
	if (r == 0 && type == SOCK_STREAM && listen(fd, BACKLOG) < 0)
		r = -errno;
	return r < 0 ? r : sbx_fd_steal(&fd);
}

int sbx_net_listen_at(const struct sbx_addr *addr, uint16_t *ret_port)
{
	SBX_AUTO_CLOSE int fd = socket(addr->family == 6 ? AF_INET6 : AF_INET,
				       SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int r;

	if (fd < 0)
		return -errno;
	r = bind_to(fd, addr, 0);
	if (r == 0 && listen(fd, 1) < 0)
		r = -errno;
	if (r == 0)
		r = bound_port(fd, ret_port);
	return r < 0 ? r : sbx_fd_steal(&fd);
}

static int set_number(int fd, int option, int value)
{
	return setsockopt(fd, IPPROTO_TCP, option, &value, sizeof(value)) < 0 ? -errno : 0;
}

static int set_keepalive(int fd)
{
	int r = set_on(fd, SOL_SOCKET, SO_KEEPALIVE);

	if (r == 0)
		r = set_number(fd, TCP_KEEPIDLE, KEEPALIVE_IDLE_S);
	if (r == 0)
		r = set_number(fd, TCP_KEEPINTVL, KEEPALIVE_INTERVAL_S);
	return r < 0 ? r : set_number(fd, TCP_KEEPCNT, KEEPALIVE_PROBES);
}

int sbx_net_publish_open(const struct sbx_addr *addr, uint16_t port, uint16_t *ret_port)
{
	SBX_AUTO_CLOSE int fd = socket(addr->family == 6 ? AF_INET6 : AF_INET,
				       SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int r = fd < 0 ? -errno : set_on(fd, SOL_SOCKET, SO_REUSEADDR);

	if (r == 0 && addr->family == 6)
		r = set_on(fd, IPPROTO_IPV6, IPV6_V6ONLY);
	if (r == 0)
		r = set_keepalive(fd);
	if (r == 0)
		r = set_on(fd, IPPROTO_TCP, TCP_NODELAY);
	if (r == 0)
		r = bind_to(fd, addr, port);
	/* listen(2) at once: two sockets that are bound and do not listen yet would share the
	 * port. */
	if (r == 0 && listen(fd, BACKLOG) < 0)
		r = -errno;
	if (r == 0)
		r = bound_port(fd, ret_port);
	return r < 0 ? r : sbx_fd_steal(&fd);
}

int sbx_net_udp_open(void)
{
	SBX_AUTO_CLOSE int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int r = fd < 0 ? -errno : bind_any(fd, AF_INET, 0);

	return r < 0 ? r : sbx_fd_steal(&fd);
}

int sbx_net_udp_flow_open(const struct sbx_addr *local, uint16_t local_port,
			  const struct sbx_addr *peer, uint16_t peer_port)
{
	SBX_AUTO_CLOSE int fd = -1;
	int family = local->family == 4 ? AF_INET : AF_INET6;
	struct sockaddr_storage from, to;
	socklen_t n_from, n_to;
	int r;

	if (local->family != peer->family || (local->family != 4 && local->family != 6) ||
	    local_port == 0 || peer_port == 0)
		return -EINVAL;
	fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	r = set_transparent(fd, family);
	if (r == 0)
		r = set_on(fd, SOL_SOCKET, SO_REUSEADDR);
	if (r == 0 && family == AF_INET6)
		r = set_on(fd, IPPROTO_IPV6, IPV6_V6ONLY);
	if (r < 0)
		return r;
	n_from = sbx_addr_to_sockaddr(local, local_port, &from);
	n_to = sbx_addr_to_sockaddr(peer, peer_port, &to);
	if (bind(fd, (struct sockaddr *)&from, n_from) < 0 ||
	    connect(fd, (struct sockaddr *)&to, n_to) < 0)
		return -errno;
	return sbx_fd_steal(&fd);
}

int sbx_net_tcp_inside_open(uint8_t family, uint16_t port)
{
	static const struct sbx_addr loopback4 = { 4, { 127, 0, 0, 1 } },
				     loopback6 = { 6, { [15] = 1 } };
	const struct linger reset = { .l_onoff = 1, .l_linger = 0 };
	SBX_AUTO_CLOSE int fd = -1;
	struct sockaddr_storage to;
	uint16_t own_port = 0;
	socklen_t n;
	int r;

	if ((family != 4 && family != 6) || port == 0)
		return -EINVAL;
	n = sbx_addr_to_sockaddr(family == 4 ? &loopback4 : &loopback6, port, &to);
	fd = socket(to.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	r = set_on(fd, IPPROTO_TCP, TCP_NODELAY);
	if (r < 0)
		return r;
	setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, SBX_NET_CONGESTION,
		   sizeof(SBX_NET_CONGESTION) - 1);
	if (connect(fd, (struct sockaddr *)&to, n) < 0 && errno != EINPROGRESS)
		return -errno;
	/* Without a listener, the kernel may choose the port itself as source port and connect the
	 * socket to itself (RFC 9293 section 3.5). Then a client outside would get its own bytes
	 * back, and the server in the sandbox could not start. */
	r = bound_port(fd, &own_port);
	if (r == 0 && own_port == port) {
		setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
		r = -ECONNREFUSED;
	}
	return r < 0 ? r : sbx_fd_steal(&fd);
}
