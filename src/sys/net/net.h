/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_SYS_NET_NET_H
#define SBX_SYS_NET_NET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/addr.h"
#include "base/err.h"
#include "base/reason.h"
#include "base/span.h"

/* The sandbox's network namespace and sockets. All fds returned are CLOEXEC and the caller's. */

/* lo is the first interface of every network namespace (net/core/dev.c) */
#define SBX_NET_LO_IFINDEX 1

/* Open a netlink socket: protocol NETLINK_ROUTE, _NETFILTER or _SOCK_DIAG, bound, with extended
 * errors on. fd or -errno (EPROTONOSUPPORT: the kernel has no such netlink). */
int sbx_net_netlink_open(int protocol);

/* Set lo up, with 100.64.0.1/32 and fd00:5b::1/128 (nodad) and `local default dev lo` for both
 * families, with the own address as preferred source. Without IPv6 in the kernel: IPv4 only,
 * *ret_ipv6 0. 0 or -errno with @err naming the step and the remedy. */
int sbx_net_setup_loopback(int rtnl_fd, int *ret_ipv6, struct sbx_err *err);

/* The port of the four carrying listeners, TCP and UDP of both families. It is outside the range
 * of ports that the kernel gives to clients, and fixed, so that --dry-run can print the ruleset
 * before the listeners exist. */
#define SBX_NET_CARRY_PORT 61053

/* The congestion control (tcp(7), RTAX_CC_ALGO) of the sandbox's end of every flow, and of ours
 * towards it. A loopback loses and queues nothing, so there is nothing to measure; the host's
 * choice, which a new namespace inherits, may measure and pace (bbr). Every kernel has this one. */
#define SBX_NET_CONGESTION "reno"

enum sbx_listener {
	SBX_LISTEN_DNS_UDP4, SBX_LISTEN_DNS_UDP6, /* :53, PKTINFO */
	SBX_LISTEN_DNS_TCP4, SBX_LISTEN_DNS_TCP6,
	SBX_LISTEN_TCP4, SBX_LISTEN_TCP6, /* carrying, TRANSPARENT, backlog 1024+ */
	SBX_LISTEN_UDP4, SBX_LISTEN_UDP6, /* carrying, TRANSPARENT, RECVORIGDSTADDR */
	SBX_N_LISTENERS,
};
/*
 * Open a listener. fd, non-blocking, or -errno. *ret_port is the bound port: 53, or
 * SBX_NET_CARRY_PORT (where that is taken, as in a test: an ephemeral one). v6 sockets are V6ONLY;
 * without IPv6 -EAFNOSUPPORT. Needs CAP_NET_BIND_SERVICE for DNS and CAP_NET_RAW or CAP_NET_ADMIN
 * for TRANSPARENT, over the namespace.
 *
 * The owner of the carrying listeners must know: a process in the sandbox can dial them directly by
 * their port (127.0.0.1:61053). The destination is then that address, which no policy allows.
 * Several datagrams of one UDP flow can reach the UDP listener before the flow has its own socket.
 */
int sbx_net_listener_open(enum sbx_listener which, uint16_t *ret_port);

/* For attach cgroup: the stub's socket (SBX_LISTEN_DNS_UDP4 or _TCP4) at port 53 of one address
 * of the host's loopback. fd, non-blocking, or -errno: -EADDRINUSE: another socket has that
 * address, or all addresses; -EACCES: no CAP_NET_BIND_SERVICE. */
int sbx_net_stub_open(enum sbx_listener which, const struct sbx_addr *addr);
/* A TCP listener at a port that the kernel chooses. fd or -errno. */
int sbx_net_listen_at(const struct sbx_addr *addr, uint16_t *ret_port);
/* A published port: a TCP listener at an address of this host, with SO_REUSEADDR (connections of
 * a former listener in TIME_WAIT do not prevent it; another listener does), and keepalive for
 * accepted connections. @port 0: the kernel chooses. *ret_port is the port. fd, non-blocking, or
 * -errno: -EADDRINUSE, -EACCES (below ip_unprivileged_port_start), -EADDRNOTAVAIL, -EAFNOSUPPORT
 * (no IPv6). */
int sbx_net_publish_open(const struct sbx_addr *addr, uint16_t port, uint16_t *ret_port);
/* A UDP socket with a port that the kernel chooses, bound to no address. IPv4. fd or -errno. */
int sbx_net_udp_open(void);

/* A socket that the factory makes: UDP, bound to @local (transparent) and connected to @peer.
 * Non-blocking. fd or -errno: -EADDRINUSE when a process in the sandbox has bound @local itself.
 * Needs CAP_NET_RAW, and CAP_NET_BIND_SERVICE for a local port below 1024; nothing else. */
int sbx_net_udp_flow_open(const struct sbx_addr *local, uint16_t local_port,
			  const struct sbx_addr *peer, uint16_t peer_port);

/* The factory's other socket: TCP, connecting to @port of the loopback of @family (4 or 6).
 * Non-blocking, mostly not connected yet. fd or -errno; -ECONNREFUSED also when the socket
 * connected to itself, as happens when there is no listener. */
int sbx_net_tcp_inside_open(uint8_t family, uint16_t port);

/* NFLOG: bind @group on an nfnetlink socket (non-blocking afterwards): copy_range bytes of each
 * packet, each packet sent at once and numbered. fd or -errno (-EPERM: no CAP_NET_ADMIN over the
 * namespace, or another socket has the group). */
int sbx_net_nflog_open(uint16_t group, uint32_t copy_range);

struct sbx_nflog_packet {
	struct sbx_addr dst, src; /* family 0: not an IP packet */
	uint16_t dport, sport;    /* 0 where the protocol has none */
	enum sbx_proto proto;     /* tcp, udp, icmp, other */
	uint8_t l4proto;
	bool has_seq;
	uint32_t seq; /* number of the packet in the group, from 0; lost packets are counted too */
};
/* PURE. Walk one netlink datagram (hostile payload) and call @cb for each packet logged. 0 or
 * -EBADMSG. */
int sbx_nflog_parse(struct sbx_span datagram,
		    void (*cb)(void *userdata, const struct sbx_nflog_packet *packet),
		    void *userdata);

/*
 * PURE. The number of packets that were logged and lost before @p (recv gave ENOBUFS: the socket's
 * queue was full). *next_seq starts at 0; the caller keeps one per socket. Losses are counted
 * exactly once a later packet arrives; until then, after ENOBUFS, at least one is lost. A packet
 * for which the kernel has no memory is dropped uncounted.
 */
uint32_t sbx_nflog_lost(uint32_t *next_seq, const struct sbx_nflog_packet *p);

/* Dump the host's own addresses into @v (at most n_max). The count, or -errno (-EOVERFLOW: there
 * are more than n_max; none may be left out). */
int sbx_net_own_addresses(int rtnl_fd, struct sbx_addr *v, size_t n_max);
/* Dump the networks and addresses that routes of any table make local (or anycast: IPv6 delivers
 * those here, too), including those of interfaces. A route of prefix length 0 is left out:
 * transparent proxies receive marked packets by it. As above. */
int sbx_net_local_routes(int rtnl_fd, struct sbx_cidr *v, size_t n_max);
/* A non-blocking NETLINK_ROUTE socket subscribed to changes of addresses and routes. The answers
 * of the two functions may have changed when sbx_net_own_changed() (PURE) is true of a datagram
 * read from it, or recv gives ENOBUFS. fd or -errno. */
int sbx_net_own_watch(void);
bool sbx_net_own_changed(struct sbx_span datagram);

/* Call @fn for the remote end of every TCP connection (that is not closed) and connected UDP
 * socket of this network namespace, of any process. @diag_fd:
 * sbx_net_netlink_open(NETLINK_SOCK_DIAG). 0; or -errno, perhaps after some calls, so that some
 * were not seen (-ENOENT: the kernel lacks inet_diag or udp_diag). */
typedef void (*sbx_net_remote_fn)(void *userdata, const struct sbx_addr *addr, enum sbx_proto proto,
				  uint16_t port);
int sbx_net_open_remotes(int diag_fd, sbx_net_remote_fn fn, void *userdata);

/* An end of a TCP connection. */
struct sbx_net_end {
	struct sbx_addr addr;
	uint16_t port;
};
/* The user whose process made the socket with the end @end of a TCP connection in this network
 * namespace; @far is its other end. 0; -ENOENT: this host has no such socket, or it is closed;
 * -errno. */
int sbx_net_owner(int diag_fd, const struct sbx_net_end *end, const struct sbx_net_end *far,
		  uid_t *ret_uid);

#endif
