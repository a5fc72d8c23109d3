/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_SYS_NET_NET_H
#define SBX_SYS_NET_NET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/err.h"
#include "base/reason.h"
#include "base/span.h"

/* The sandbox's network namespace and sockets. All fds returned are CLOEXEC and the caller's. */

#define SBX_NET_LO_IFINDEX 1 /* lo is the first interface of every network namespace (net/core/dev.c) */

/* netlink sockets: protocol NETLINK_ROUTE, _NETFILTER or _SOCK_DIAG, bound, with extended errors on.
 * fd or -errno (EPROTONOSUPPORT: the kernel has no such netlink). */
int sbx_net_netlink_open(int protocol);

/* lo up, 100.64.0.1/32 and fd00:5b::1/128 on it (nodad), `local default dev lo` for both
 * families with the own address as preferred source. Without IPv6 in the kernel: IPv4 only,
 * *ret_ipv6 0. 0 or -errno with @err saying which step and what to do. */
int sbx_net_setup_loopback(int rtnl_fd, int *ret_ipv6, struct sbx_err *err);

/* The port of the four carrying listeners, TCP and UDP of both families: outside the range that
 * clients are given ports from, and known before the listeners exist, so that --dry-run prints the
 * ruleset that will be loaded. */
#define SBX_NET_CARRY_PORT 61053

/* The congestion control (tcp(7), RTAX_CC_ALGO) of the sandbox's end of every flow and of ours towards
 * it: nothing is lost or queued on a loopback, so there is nothing to find out. The host's choice, which
 * a new namespace inherits, may be one that measures and paces (bbr). This one is in every kernel. */
#define SBX_NET_CONGESTION "reno"

enum sbx_listener {
	SBX_LISTEN_DNS_UDP4, SBX_LISTEN_DNS_UDP6, /* :53, PKTINFO */
	SBX_LISTEN_DNS_TCP4, SBX_LISTEN_DNS_TCP6,
	SBX_LISTEN_TCP4, SBX_LISTEN_TCP6, /* carrying, TRANSPARENT, backlog 1024+ */
	SBX_LISTEN_UDP4, SBX_LISTEN_UDP6, /* carrying, TRANSPARENT, RECVORIGDSTADDR */
	SBX_N_LISTENERS,
};
/*
 * fd or -errno; non-blocking; *ret_port gets the bound port: 53, or SBX_NET_CARRY_PORT (where that
 * is taken, as in a test: an ephemeral one). v6 sockets are V6ONLY. Needs CAP_NET_BIND_SERVICE for
 * DNS and CAP_NET_RAW or CAP_NET_ADMIN for TRANSPARENT, over the namespace; not a v6 socket without
 * IPv6 (-EAFNOSUPPORT).
 *
 * What the owner of the carrying listeners must know: a process in the sandbox can also dial them
 * by their own port (127.0.0.1:61053); the destination is then that address, which no policy
 * allows. And several datagrams of one UDP flow can reach the UDP listener before the flow has its
 * own socket.
 */
int sbx_net_listener_open(enum sbx_listener which, uint16_t *ret_port);

/* Attach cgroup: the stub's socket (SBX_LISTEN_DNS_UDP4 or _TCP4) at one address of the host's loopback, port 53.
 * fd, non-blocking, or -errno: -EADDRINUSE: somebody has it, or all addresses; -EACCES: no CAP_NET_BIND_SERVICE. */
int sbx_net_stub_open(enum sbx_listener which, const struct sbx_addr *addr);
/* A TCP listener at a port that the kernel chooses. fd or -errno. */
int sbx_net_listen_at(const struct sbx_addr *addr, uint16_t *ret_port);
/* A published port: a TCP listener at an address of this host, SO_REUSEADDR (what a former one left in TIME_WAIT is
 * no hindrance, a listener is), with keepalive for what is accepted. *ret_port: @port, or the kernel's choice for 0.
 * fd, non-blocking, or -errno: -EADDRINUSE, -EACCES (below ip_unprivileged_port_start), -EADDRNOTAVAIL,
 * -EAFNOSUPPORT (no IPv6). */
int sbx_net_publish_open(const struct sbx_addr *addr, uint16_t port, uint16_t *ret_port);
/* A UDP socket with a port of its own, bound to no address. IPv4. fd or -errno. */
int sbx_net_udp_open(void);

/* One of the factory's two products: a UDP socket bound to @local (transparent) and connected to @peer.
 * Non-blocking. fd or -errno: -EADDRINUSE when a process in the sandbox has bound @local itself.
 * Needs CAP_NET_RAW, and CAP_NET_BIND_SERVICE for a local port below 1024; nothing else. */
int sbx_net_udp_flow_open(const struct sbx_addr *local, uint16_t local_port,
			  const struct sbx_addr *peer, uint16_t peer_port);

/* The other: a TCP socket that connects to @port of the loopback of @family (4 or 6). Non-blocking, mostly not
 * connected yet. fd or -errno; -ECONNREFUSED also when it had met itself, as happens where nobody listens. */
int sbx_net_tcp_inside_open(uint8_t family, uint16_t port);

/* NFLOG: bind @group on an nfnetlink socket (non-blocking afterwards), copy_range bytes of each
 * packet, each packet sent at once and numbered. fd or -errno (-EPERM: no CAP_NET_ADMIN over the
 * namespace, or another socket has the group). */
int sbx_net_nflog_open(uint16_t group, uint32_t copy_range);

struct sbx_nflog_packet {
	struct sbx_addr dst, src; /* family 0: not an IP packet */
	uint16_t dport, sport;    /* 0 where the protocol has none */
	enum sbx_proto proto;     /* tcp, udp, icmp, other */
	uint8_t l4proto;
	bool has_seq;
	uint32_t seq; /* counts the group's packets from 0, those lost on the way too */
};
/* PURE. Walk one netlink datagram (hostile payload): calls @cb for each packet logged. 0 or
 * -EBADMSG. */
int sbx_nflog_parse(struct sbx_span datagram,
		    void (*cb)(void *userdata, const struct sbx_nflog_packet *packet),
		    void *userdata);

/*
 * PURE. How many packets were logged and lost (the socket's queue was full: recv gave ENOBUFS)
 * before @p. *next_seq starts at 0 and is the caller's to keep, one per socket. So losses are
 * counted exactly as soon as a later packet arrives. Where ENOBUFS is the last that was read, the
 * number is unknown until then: at least one. The kernel also drops, uncounted, a packet for which
 * it has no memory.
 */
uint32_t sbx_nflog_lost(uint32_t *next_seq, const struct sbx_nflog_packet *p);

/* The host's own addresses: dump into @v (at most n_max). Count, or -errno (-EOVERFLOW: there
 * are more than n_max, and none may be left out). */
int sbx_net_own_addresses(int rtnl_fd, struct sbx_addr *v, size_t n_max);
/* The networks and addresses that routes of any table make local (or anycast: IPv6 delivers it here, too). With those of
 * interfaces; one of length 0, which is how transparent proxies take what is marked for them, is left out. As above. */
int sbx_net_local_routes(int rtnl_fd, struct sbx_cidr *v, size_t n_max);
/* A non-blocking NETLINK_ROUTE socket subscribed to changes of addresses and routes: where the answers of the two
 * functions may have changed it is readable, and sbx_net_own_changed() (PURE) is true of a datagram, or recv says
 * ENOBUFS. fd or -errno. */
int sbx_net_own_watch(void);
bool sbx_net_own_changed(struct sbx_span datagram);

/* The remote end of every TCP connection (that is not closed) and connected UDP socket of this network
 * namespace, of whichever process: @fn is called for each. @diag_fd: sbx_net_netlink_open(NETLINK_SOCK_DIAG).
 * 0 or -errno, after some calls perhaps: not all were seen (-ENOENT: a kernel without inet_diag, udp_diag). */
typedef void (*sbx_net_remote_fn)(void *userdata, const struct sbx_addr *addr, enum sbx_proto proto,
				  uint16_t port);
int sbx_net_open_remotes(int diag_fd, sbx_net_remote_fn fn, void *userdata);

#endif
