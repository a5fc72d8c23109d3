/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The sandbox's sockets, routes and ruleset together. Each refusal stands beside the same request
 * with one changed word, which is allowed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <linux/capability.h>
#include <netinet/ip.h>
#include <sys/syscall.h>

#include "tests/unit/netns.h"

static const struct family {
	const char *self, *loopback, *synthetic, *outside, *resolver, *multicast;
	enum sbx_listener tcp, udp, dns_udp, dns_tcp;
} families[] = {
	{ "100.64.0.1", "127.0.0.1", "198.18.0.5", "203.0.113.9", "192.0.2.53", "224.0.0.251",
	  SBX_LISTEN_TCP4, SBX_LISTEN_UDP4, SBX_LISTEN_DNS_UDP4, SBX_LISTEN_DNS_TCP4 },
	{ "fd00:5b::1", "::1", "fd00:5b:1::5", "2001:db8:77::9", "2001:db8:53::53", "ff0e::fb",
	  SBX_LISTEN_TCP6, SBX_LISTEN_UDP6, SBX_LISTEN_DNS_UDP6, SBX_LISTEN_DNS_TCP6 },
};

#define FOR_FAMILIES(f) for (const struct family *f = families; f < families + 2; f++)

/* Bytes go both ways between two connected sockets. */
static void expect_talk(int a, int b)
{
	char buf[8] = { 0 };

	CHECK(send(a, "ping", 4, MSG_NOSIGNAL) == 4 && readable(b, 1000));
	CHECK(recv(b, buf, sizeof(buf), 0) == 4 && memcmp(buf, "ping", 4) == 0);
	CHECK(send(b, "pong", 4, MSG_NOSIGNAL) == 4 && readable(a, 1000));
	CHECK(recv(a, buf, sizeof(buf), 0) == 4 && memcmp(buf, "pong", 4) == 0);
}

/* TCP to text:port comes out of @listener with that address as its own. */
static void expect_tcp_carried(struct netns *n, int listener, const char *text, uint16_t port)
{
	SBX_AUTO_CLOSE int fd = socket_for(text, SOCK_STREAM);
	SBX_AUTO_CLOSE int accepted = -1;
	int r = connect_to(fd, text, port);

	if (r < 0)
		fprintf(stderr, "# %s port %u: %s\n", text, port, strerror(-r));
	CHECK(r == 0 && readable(listener, 1000));
	accepted = must(accept4(listener, NULL, NULL, SOCK_CLOEXEC));
	CHECK(name_is(accepted, false, text, port));
	CHECK(name_is(fd, true, text, port));
	expect_talk(fd, accepted);
	expect_no_nflog(n);
}

/* A server of the sandbox's own at text is reached by the sandbox's own client. */
static void expect_own_server(const char *text, uint16_t port)
{
	SBX_AUTO_CLOSE int server = socket_for(text, SOCK_STREAM);
	SBX_AUTO_CLOSE int client = socket_for(text, SOCK_STREAM);
	SBX_AUTO_CLOSE int accepted = -1;

	CHECK(bind_to(server, text, port) == 0 && listen(server, 4) == 0);
	CHECK(connect_to(client, text, port) == 0 && readable(server, 1000));
	accepted = must(accept4(server, NULL, NULL, SOCK_CLOEXEC));
	expect_talk(client, accepted);
}

struct datagram {
	char data[64];
	struct sockaddr_storage from;
	socklen_t n_from;
	struct sbx_addr to; /* by the control message */
	uint16_t to_port;   /* 0 with PKTINFO */
};

static void read_destination(struct msghdr *m, struct datagram *d)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		void *p = CMSG_DATA(c);

		if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
			d->to.family = 4;
			memcpy(d->to.b, &((struct in_pktinfo *)p)->ipi_addr, 4);
		} else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO) {
			d->to.family = 6;
			memcpy(d->to.b, &((struct in6_pktinfo *)p)->ipi6_addr, 16);
		} else if ((c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_ORIGDSTADDR) ||
			   (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_ORIGDSTADDR)) {
			CHECK(sbx_addr_from_sockaddr(p, c->cmsg_len - CMSG_LEN(0), &d->to,
						     &d->to_port) == 0);
		}
	}
}

static struct datagram receive(int fd)
{
	struct datagram d = { 0 };
	char control[256];
	struct iovec iov = { d.data, sizeof(d.data) - 1 };
	struct msghdr m = {
		.msg_name = &d.from,
		.msg_namelen = sizeof(d.from),
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};

	CHECK(readable(fd, 1000));
	CHECK(recvmsg(fd, &m, 0) >= 0);
	d.n_from = m.msg_namelen;
	read_destination(&m, &d);
	return d;
}

static bool addr_is(const struct sbx_addr *a, const char *text)
{
	struct sbx_addr want;

	CHECK(sbx_addr_parse(text, &want) == 0);
	return sbx_addr_equal(a, &want);
}

static bool from_is(const struct datagram *d, const char *text, uint16_t port)
{
	struct sbx_addr a;
	uint16_t got;

	CHECK(sbx_addr_from_sockaddr((const struct sockaddr *)&d->from, d->n_from, &a, &got) == 0);
	return addr_is(&a, text) && got == port;
}

/* The flow's own socket, as the factory makes it for what the listener got. */
static int flow_for(const struct datagram *d)
{
	struct sbx_addr peer;
	uint16_t peer_port;

	CHECK(sbx_addr_from_sockaddr((const struct sockaddr *)&d->from, d->n_from, &peer,
				     &peer_port) == 0);
	return must(sbx_net_udp_flow_open(&d->to, d->to_port, &peer, peer_port));
}

/* The first datagram reaches the listener, the next ones the flow's own socket, and the answers
 * come from the address that was asked, to connected and unconnected clients. */
static void expect_udp_carried(struct netns *n, int listener, const char *text, uint16_t port)
{
	SBX_AUTO_CLOSE int client = socket_for(text, SOCK_DGRAM);
	SBX_AUTO_CLOSE int other = socket_for(text, SOCK_DGRAM);
	SBX_AUTO_CLOSE int flow = -1;
	SBX_AUTO_CLOSE int other_flow = -1;
	struct datagram d;

	CHECK(send_to(client, text, port, "one") == 0);
	d = receive(listener);
	CHECK(strcmp(d.data, "one") == 0 && addr_is(&d.to, text) && d.to_port == port);
	flow = flow_for(&d);
	CHECK(send_to(client, text, port, "two") == 0);
	CHECK(strcmp(receive(flow).data, "two") == 0);
	CHECK(send(flow, "answer", 6, 0) == 6);
	d = receive(client);
	CHECK(strcmp(d.data, "answer") == 0 && from_is(&d, text, port));

	/* A second client to the same destination has a flow beside the first one's. */
	CHECK(connect_to(other, text, port) == 0 && send(other, "three", 5, 0) == 5);
	d = receive(listener);
	CHECK(strcmp(d.data, "three") == 0);
	other_flow = flow_for(&d);
	CHECK(send(other_flow, "to other", 8, 0) == 8);
	CHECK(strcmp(receive(other).data, "to other") == 0);
	CHECK(send(other, "four", 4, 0) == 4 && strcmp(receive(other_flow).data, "four") == 0);
	CHECK(!readable(flow, 0) && !readable(listener, 0));
	expect_no_nflog(n);
}

/* Any resolver's address is the stub: it learns which was asked and answers from there. */
static void expect_dns(struct netns *n, const struct family *f, const char *resolver)
{
	SBX_AUTO_CLOSE int client = socket_for(resolver, SOCK_DGRAM);
	char control[CMSG_SPACE(sizeof(struct in6_pktinfo))] = { 0 };
	char reply[] = "reply";
	struct iovec iov = { reply, 5 };
	struct datagram d;
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control };
	struct cmsghdr *c = (struct cmsghdr *)control;
	bool v4 = f->dns_udp == SBX_LISTEN_DNS_UDP4;

	CHECK(send_to(client, resolver, 53, "query") == 0);
	d = receive(n->listeners[f->dns_udp]);
	CHECK(strcmp(d.data, "query") == 0 && addr_is(&d.to, resolver));
	m.msg_name = &d.from;
	m.msg_namelen = d.n_from;
	c->cmsg_level = v4 ? IPPROTO_IP : IPPROTO_IPV6;
	c->cmsg_type = v4 ? IP_PKTINFO : IPV6_PKTINFO;
	c->cmsg_len = CMSG_LEN(v4 ? sizeof(struct in_pktinfo) : sizeof(struct in6_pktinfo));
	m.msg_controllen = c->cmsg_len;
	if (v4)
		memcpy(&((struct in_pktinfo *)CMSG_DATA(c))->ipi_spec_dst, d.to.b, 4);
	else
		memcpy(&((struct in6_pktinfo *)CMSG_DATA(c))->ipi6_addr, d.to.b, 16);
	CHECK(sendmsg(n->listeners[f->dns_udp], &m, 0) == 5);
	d = receive(client);
	CHECK(strcmp(d.data, "reply") == 0 && from_is(&d, resolver, 53));
	expect_tcp_carried(n, n->listeners[f->dns_tcp], resolver, 53);
}

/* --- the cases --- */

static void fetch(void)
{
	struct netns n = netns_setup("fetch");

	FOR_FAMILIES(f)
	{
		expect_tcp_carried(&n, n.listeners[f->tcp], f->synthetic, 8443);
		expect_tcp_refused(&n, f->outside, 8443);
		expect_udp_refused(&n, f->synthetic, 443);
		expect_udp_refused(&n, f->outside, 443);
		expect_own_server(f->loopback, 8080);
		expect_own_server(f->self, 8081);
		expect_dns(&n, f, f->resolver);
		expect_dns(&n, f, f->loopback);
		expect_dns(&n, f, f->synthetic);
	}
	expect_dns(&n, &families[0], "127.0.0.53");
	/* The ends of the synthetic ranges, and the addresses just outside. */
	expect_tcp_carried(&n, n.listeners[SBX_LISTEN_TCP4], "198.19.255.255", 1);
	expect_tcp_refused(&n, "198.20.0.0", 1);
	expect_tcp_refused(&n, "198.17.255.255", 65535);
	expect_tcp_carried(&n, n.listeners[SBX_LISTEN_TCP6], "fd00:5b:1:ffff::1", 65535);
	expect_tcp_refused(&n, "fd00:5b:2::", 1);
	expect_tcp_refused(&n, "fd00:5b::2", 443);
	/* Metadata has no rule of its own. */
	expect_tcp_refused(&n, "169.254.169.254", 80);
	expect_tcp_refused(&n, "fd00:ec2::254", 80);
}

/* An IPv4-mapped address is an IPv4 packet, whatever the socket's family. */
static void mapped(void)
{
	struct netns n = netns_setup("fetch");
	SBX_AUTO_CLOSE int refused = socket_for("::", SOCK_STREAM);
	SBX_AUTO_CLOSE int carried = socket_for("::", SOCK_STREAM);

	CHECK(connect_to(refused, "::ffff:203.0.113.9", 443) == -ECONNREFUSED);
	expect_nflog(&n, SBX_PROTO_TCP, "203.0.113.9", 443);
	CHECK(connect_to(carried, "::ffff:198.18.0.5", 443) == 0);
	CHECK(readable(n.listeners[SBX_LISTEN_TCP4], 1000));
}

static void fetch_udp(void)
{
	struct netns n = netns_setup("fetch-udp");

	FOR_FAMILIES(f)
	{
		expect_udp_carried(&n, n.listeners[f->udp], f->synthetic, 443);
		expect_udp_refused(&n, f->outside, 443);
		expect_udp_refused(&n, f->multicast, 5353);
		expect_dns(&n, f, f->resolver);
	}
}

static void offline(void)
{
	struct netns n = netns_setup("offline");

	FOR_FAMILIES(f)
	{
		expect_tcp_refused(&n, f->synthetic, 443);
		expect_udp_refused(&n, f->synthetic, 443);
		expect_tcp_refused(&n, f->outside, 443);
		expect_tcp_refused(&n, f->resolver, 53);
		expect_udp_refused(&n, f->resolver, 53);
		expect_own_server(f->loopback, 8080);
		expect_own_server(f->self, 8081);
	}
}

static void offline_dns(void)
{
	struct netns n = netns_setup("offline-dns");

	FOR_FAMILIES(f)
	{
		expect_dns(&n, f, f->resolver);
		expect_tcp_refused(&n, f->resolver, 54);
		expect_udp_refused(&n, f->resolver, 54);
		expect_tcp_refused(&n, f->synthetic, 443);
	}
}

static void cidrs(void)
{
	struct netns n = netns_setup("fetch-cidrs");
	int tcp4 = n.listeners[SBX_LISTEN_TCP4], tcp6 = n.listeners[SBX_LISTEN_TCP6];

	expect_tcp_carried(&n, tcp4, "192.0.2.7", 5432);
	expect_tcp_refused(&n, "192.0.2.8", 5432);
	expect_tcp_refused(&n, "192.0.2.7", 5433);
	expect_tcp_carried(&n, tcp4, "10.1.2.3", 80);
	expect_tcp_carried(&n, tcp4, "10.1.2.255", 90);
	expect_tcp_refused(&n, "10.1.2.3", 79);
	expect_tcp_refused(&n, "10.1.2.3", 91);
	expect_tcp_refused(&n, "10.1.3.3", 80);
	expect_tcp_carried(&n, tcp4, "172.31.255.255", 1);
	expect_tcp_refused(&n, "172.32.0.0", 1);
	expect_udp_carried(&n, n.listeners[SBX_LISTEN_UDP4], "203.0.113.127", 123);
	expect_udp_refused(&n, "203.0.113.128", 123);
	expect_udp_refused(&n, "203.0.113.127", 124);
	expect_tcp_refused(&n, "203.0.113.127", 123);
	expect_tcp_carried(&n, tcp6, "2001:db8::9", 443);
	expect_tcp_refused(&n, "2001:db8::a", 443);
	expect_tcp_carried(&n, tcp6, "2001:db8:1:ffff::", 8999);
	expect_tcp_refused(&n, "2001:db8:1:ffff::", 9000);
	expect_udp_carried(&n, n.listeners[SBX_LISTEN_UDP6], "2001:db8:0:8001::", 7);
	expect_udp_refused(&n, "2001:db8:0:7fff::", 7);
	/* An entry for every address does not take loopback and the own addresses. */
	expect_tcp_carried(&n, tcp4, "203.0.113.9", 9418);
	expect_tcp_carried(&n, tcp6, "2001:db8:77::9", 9418);
	FOR_FAMILIES(f)
	{
		expect_own_server(f->loopback, 9418);
		expect_own_server(f->self, 9418);
	}
}

static void full(void)
{
	struct netns n = netns_setup("full");

	FOR_FAMILIES(f)
	{
		expect_tcp_carried(&n, n.listeners[f->tcp], f->outside, 25);
		expect_tcp_carried(&n, n.listeners[f->tcp], f->synthetic, 443);
		expect_udp_carried(&n, n.listeners[f->udp], f->outside, 443);
		expect_dns(&n, f, f->resolver);
		expect_own_server(f->loopback, 8080);
		expect_own_server(f->self, 8081);
		/* The packet would be lost at the listener, so it is refused. */
		expect_udp_refused(&n, f->multicast, 5353);
	}
	/* The broker, not the ruleset, refuses these in mode full. */
	expect_tcp_carried(&n, n.listeners[SBX_LISTEN_TCP4], "169.254.169.254", 80);
}

static void no_ipv6_listeners(void)
{
	struct netns n = netns_setup("fetch-no-ipv6");

	expect_tcp_carried(&n, n.listeners[SBX_LISTEN_TCP4], "198.18.0.5", 443);
	expect_tcp_refused(&n, "fd00:5b:1::5", 443);
}

/* No process in the sandbox has a raw socket. Packets of one would be refused and reported. */
static void icmp(void)
{
	struct netns n = netns_setup("full");
	const uint8_t echo4[8] = { 8, 0, 0xf7, 0xff }, echo6[8] = { 128 };
	SBX_AUTO_CLOSE int raw4 = must(socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMP));
	SBX_AUTO_CLOSE int raw6 = must(socket(AF_INET6, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMPV6));
	SBX_AUTO_CLOSE int sctp = must(socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_SCTP));

	CHECK(connect_to(raw4, "203.0.113.9", 0) == 0 && connect_to(raw6, "2001:db8::9", 0) == 0);
	CHECK(send(raw4, echo4, sizeof(echo4), 0) < 0 && errno == EPERM);
	expect_nflog(&n, SBX_PROTO_ICMP, "203.0.113.9", 0);
	CHECK(send(raw6, echo6, sizeof(echo6), 0) < 0 && errno == EPERM);
	expect_nflog(&n, SBX_PROTO_ICMP, "2001:db8::9", 0);
	CHECK(connect_to(sctp, "203.0.113.9", 0) == 0);
	CHECK(send(sctp, "\x03\xe8\x07\xd0\0\0\0\0\0\0\0\0", 12, 0) < 0 && errno == EPERM);
	expect_nflog(&n, SBX_PROTO_OTHER, "203.0.113.9", 2000);
	/* The twin: the own address answers. */
	CHECK(connect_to(raw4, "100.64.0.1", 0) == 0);
	CHECK(send(raw4, echo4, sizeof(echo4), 0) == sizeof(echo4) && readable(raw4, 1000));
	expect_no_nflog(&n);
}

/* Errors that the kernel reports to the sandbox by ICMP arrive: a closed port says so. */
static void icmp_errors(void)
{
	struct netns n = netns_setup("fetch");

	FOR_FAMILIES(f)
	{
		SBX_AUTO_CLOSE int fd = socket_for(f->self, SOCK_DGRAM);
		SBX_AUTO_CLOSE int tcp = socket_for(f->self, SOCK_STREAM);
		char c;

		CHECK(connect_to(fd, f->self, 9) == 0 && send(fd, "x", 1, 0) == 1);
		CHECK(recv(fd, &c, 1, 0) < 0 && errno == ECONNREFUSED);
		CHECK(connect_to(tcp, f->self, 9) == -ECONNREFUSED);
		expect_no_nflog(&n);
	}
}

/* A connected datagram socket hears the refusal as an error too. */
static void connected_udp_refused(void)
{
	struct netns n = netns_setup("fetch");
	static const int errors[2] = { EHOSTUNREACH, EACCES };

	FOR_FAMILIES(f)
	{
		SBX_AUTO_CLOSE int fd = socket_for(f->outside, SOCK_DGRAM);
		char c;

		CHECK(connect_to(fd, f->outside, 443) == 0);
		CHECK(send(fd, "x", 1, 0) < 0 && errno == EPERM);
		expect_nflog(&n, SBX_PROTO_UDP, f->outside, 443);
		CHECK(recv(fd, &c, 1, MSG_DONTWAIT) < 0 && errno == errors[f - families]);
	}
}

/* A spoofed source gains nothing: the answer to it is refused, nothing leaves. */
static void spoofed_source(void)
{
	struct netns n = netns_setup("fetch");
	SBX_AUTO_CLOSE int fd = socket_for("0.0.0.0", SOCK_STREAM | SOCK_NONBLOCK);
	SBX_AUTO_CLOSE int own = socket_for("0.0.0.0", SOCK_STREAM);
	struct sbx_nflog_packet p;

	CHECK(bind_to(fd, "203.0.113.77", 40000) == 0);
	CHECK(connect_to(fd, "198.18.0.5", 443) == -EINPROGRESS);
	CHECK(!readable(n.listeners[SBX_LISTEN_TCP4], 50));
	CHECK(nflog_next(&n, &p));
	CHECK(addr_is(&p.dst, "203.0.113.77") && addr_is(&p.src, "198.18.0.5"));
	CHECK(p.dport == 40000 && p.sport == 443);
	/* The twin: another address of ours as the source works. */
	CHECK(bind_to(own, "127.0.0.9", 40000) == 0);
	CHECK(connect_to(own, "198.18.0.5", 443) == 0);
	CHECK(readable(n.listeners[SBX_LISTEN_TCP4], 1000));
}

/* Nothing in the sandbox can bind in front of a listener. */
static void listeners_are_exclusive(void)
{
	struct netns n = netns_setup("fetch-udp");
	int on = 1;

	FOR_FAMILIES(f)
	{
		for (int type = SOCK_STREAM; type <= SOCK_DGRAM; type++) {
			SBX_AUTO_CLOSE int fd = socket_for(f->self, type);

			setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
			setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on));
			/* IPv6 would not let it bind an address of no interface at all. */
			setsockopt(fd, IPPROTO_IPV6, IPV6_FREEBIND, &on, sizeof(on));
			CHECK(bind_to(fd, f->synthetic, SBX_NET_CARRY_PORT) == -EADDRINUSE);
			CHECK(bind_to(fd, f->resolver, 53) == -EADDRINUSE);
			CHECK(bind_to(fd, f->resolver, 54) == 0);
		}
	}
	(void)n;
}

static void keep_caps(uint64_t keep)
{
	struct __user_cap_header_struct h = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct d[2] = { 0 };

	for (int i = 0; i < 2; i++)
		d[i].permitted = d[i].effective = (uint32_t)(keep >> 32 * i);
	CHECK(syscall(SYS_capset, &h, d) == 0);
}

/* The factory keeps exactly the capabilities that it needs: with fewer it cannot make the flow's
 * socket. */
static void factory_capabilities(void)
{
	struct netns n = netns_setup("fetch-udp");
	struct sbx_addr local, peer;
	int fd;

	CHECK(sbx_addr_parse("198.18.0.5", &local) == 0 &&
	      sbx_addr_parse("100.64.0.1", &peer) == 0);
	keep_caps(1u << CAP_NET_RAW | 1u << CAP_NET_BIND_SERVICE);
	fd = must(sbx_net_udp_flow_open(&local, 443, &peer, 40000));
	CHECK(name_is(fd, false, "198.18.0.5", 443) && name_is(fd, true, "100.64.0.1", 40000));
	CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC && fcntl(fd, F_GETFL) & O_NONBLOCK);
	keep_caps(1u << CAP_NET_RAW);
	CHECK(sbx_net_udp_flow_open(&local, 443, &peer, 40001) == -EACCES);
	fd = must(sbx_net_udp_flow_open(&local, 1443, &peer, 40001));
	keep_caps(0);
	CHECK(sbx_net_udp_flow_open(&local, 1443, &peer, 40002) == -EPERM);
	(void)n;
}

/* --- published ports --- */

static struct sbx_addr parsed(const char *text)
{
	struct sbx_addr a;

	CHECK(sbx_addr_parse(text, &a) == 0);
	return a;
}

static int error_of(int fd)
{
	socklen_t n = sizeof(int);
	struct pollfd p = { .fd = fd, .events = POLLOUT };
	int error = 0;

	CHECK(poll(&p, 1, 1000) == 1);
	CHECK(getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &n) == 0);
	return error;
}

/* The factory's connection reaches a server of the sandbox's own, from loopback; with no rights at
 * all. */
static void inside(void)
{
	struct netns n = netns_setup("offline");

	keep_caps(0);
	FOR_FAMILIES (f) {
		uint8_t family = strchr(f->loopback, ':') ? 6 : 4;
		SBX_AUTO_CLOSE int server = socket_for(f->loopback, SOCK_STREAM);
		SBX_AUTO_CLOSE int fd = -1, accepted = -1;

		CHECK(bind_to(server, f->loopback, 8888) == 0);
		fd = must(sbx_net_tcp_inside_open(family, 8888)); /* bound and not listening */
		CHECK(error_of(fd) == ECONNREFUSED);
		fd = sbx_fd_close(fd);
		CHECK(listen(server, 4) == 0);
		fd = must(sbx_net_tcp_inside_open(family, 8888));
		CHECK(error_of(fd) == 0 && readable(server, 1000));
		CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC && fcntl(fd, F_GETFL) & O_NONBLOCK);
		accepted = must(accept4(server, NULL, NULL, SOCK_CLOEXEC));
		CHECK(name_is(accepted, false, f->loopback, 8888));
		CHECK(name_is(fd, true, f->loopback, 8888));
		expect_talk(fd, accepted);
		fd = sbx_fd_close(fd);
		fd = must(sbx_net_tcp_inside_open(family, 8889));
		CHECK(error_of(fd) == ECONNREFUSED);
	}
	CHECK(sbx_net_tcp_inside_open(0, 80) == -EINVAL);
	CHECK(sbx_net_tcp_inside_open(4, 0) == -EINVAL);
	expect_no_nflog(&n);
}

/* The only port left for the client is the one it connects to: the client would connect to
 * itself. */
static void inside_not_itself(void)
{
	SBX_AUTO_CLOSE int server = -1, fd = -1;

	netns_setup("offline");
	write_file("/proc/sys/net/ipv4/ip_local_port_range", "40000 40000");
	server = socket_for("127.0.0.1", SOCK_STREAM);
	CHECK(connect_to(server, "127.0.0.1", 40000) == 0); /* it does happen */
	server = sbx_fd_close(server);
	write_file("/proc/sys/net/ipv4/ip_local_port_range", "40001 40001");
	FOR_FAMILIES (f)
	CHECK(sbx_net_tcp_inside_open(strchr(f->loopback, ':') ? 6 : 4, 40001) == -ECONNREFUSED);
	/* And the port is free for the server. */
	server = socket_for("127.0.0.1", SOCK_STREAM);
	CHECK(bind_to(server, "127.0.0.1", 40001) == 0 && listen(server, 4) == 0);
	write_file("/proc/sys/net/ipv4/ip_local_port_range", "40002 40002");
	fd = must(sbx_net_tcp_inside_open(4, 40001));
	CHECK(error_of(fd) == 0);
}

static void publishing(void)
{
	struct sbx_addr v4 = parsed("127.0.0.1"), v6 = parsed("::1"), any6 = parsed("::"),
			other = parsed("2001:db8::77");
	SBX_AUTO_CLOSE int fd = -1, second = -1, six = -1, client = -1, accepted = -1;
	SBX_AUTO_CLOSE int rtnl = must(sbx_net_netlink_open(NETLINK_ROUTE));
	struct sbx_err err = { 0 };
	uint16_t port = 0, port6 = 0;
	socklen_t n = sizeof(int);
	int ipv6, value = 0;

	CHECK(sbx_net_setup_loopback(rtnl, &ipv6, &err) == 0);
	CHECK(sbx_net_publish_open(&other, 8888, &port) == -EADDRNOTAVAIL);
	fd = must(sbx_net_publish_open(&v4, 0, &port));
	CHECK(port != 0);
	CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC && fcntl(fd, F_GETFL) & O_NONBLOCK);
	/* though both may share an old port */
	CHECK(sbx_net_publish_open(&v4, port, &port) == -EADDRINUSE);
	six = must(sbx_net_publish_open(&v6, port, &port6));	      /* a port of its own */
	CHECK(port6 == port);
	client = socket_for("127.0.0.1", SOCK_STREAM);
	CHECK(connect_to(client, "127.0.0.1", port) == 0);
	accepted = must(accept4(fd, NULL, NULL, SOCK_CLOEXEC));
	CHECK(getsockopt(accepted, SOL_SOCKET, SO_KEEPALIVE, &value, &n) == 0 && value);
	expect_talk(client, accepted);
	/* A connection that our side ends first does not keep the port. */
	accepted = sbx_fd_close(accepted);
	client = sbx_fd_close(client);
	fd = sbx_fd_close(fd);
	second = must(sbx_net_publish_open(&v4, port, &port));
	/* :: is not 0.0.0.0 as well. */
	six = sbx_fd_close(six);
	six = must(sbx_net_publish_open(&any6, port, &port6));
	keep_caps(0);
	CHECK(sbx_net_publish_open(&v4, 1023, &port) == -EACCES);
	second = sbx_fd_close(second);
	second = must(sbx_net_publish_open(&v4, 1024, &port));
}

static void flow_arguments(void)
{
	struct sbx_addr four = { 4, { 198, 18, 0, 5 } }, six = { 6, { 0xfd } }, none = { 0 };

	CHECK(sbx_net_udp_flow_open(&four, 443, &six, 1) == -EINVAL);
	CHECK(sbx_net_udp_flow_open(&none, 443, &none, 1) == -EINVAL);
	CHECK(sbx_net_udp_flow_open(&four, 0, &four, 1) == -EINVAL);
	CHECK(sbx_net_udp_flow_open(&four, 1, &four, 0) == -EINVAL);
}

NETNS_TEST(fetch)
NETNS_TEST(mapped)
NETNS_TEST(fetch_udp)
NETNS_TEST(offline)
NETNS_TEST(offline_dns)
NETNS_TEST(cidrs)
NETNS_TEST(full)
NETNS_TEST(no_ipv6_listeners)
NETNS_TEST(icmp)
NETNS_TEST(icmp_errors)
NETNS_TEST(connected_udp_refused)
NETNS_TEST(spoofed_source)
NETNS_TEST(listeners_are_exclusive)
NETNS_TEST(factory_capabilities)
NETNS_TEST(inside)
NETNS_TEST(inside_not_itself)
NETNS_TEST(publishing)
NETNS_TEST(flow_arguments)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fetch),
		cmocka_unit_test(test_mapped),
		cmocka_unit_test(test_fetch_udp),
		cmocka_unit_test(test_offline),
		cmocka_unit_test(test_offline_dns),
		cmocka_unit_test(test_cidrs),
		cmocka_unit_test(test_full),
		cmocka_unit_test(test_no_ipv6_listeners),
		cmocka_unit_test(test_icmp),
		cmocka_unit_test(test_icmp_errors),
		cmocka_unit_test(test_connected_udp_refused),
		cmocka_unit_test(test_spoofed_source),
		cmocka_unit_test(test_listeners_are_exclusive),
		cmocka_unit_test(test_factory_capabilities),
		cmocka_unit_test(test_inside),
		cmocka_unit_test(test_inside_not_itself),
		cmocka_unit_test(test_publishing),
		cmocka_unit_test(test_flow_arguments),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
