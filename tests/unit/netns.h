/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_TESTS_NETNS_H
#define SBX_TESTS_NETNS_H

/*
 * Tests that need a network namespace of their own: each runs in a child in fresh user and network
 * namespaces, set up as a sandbox's are. No root is needed; where user namespaces are refused the
 * test is skipped and says so.
 *
 * In the child CHECK() reports and exits; cmocka's asserts stay in the parent.
 */

#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "sys/net/net.h"
#include "sys/nft/nft.h"
#include "tests/unit/nft_cases.h"

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			int e_ = errno;                                                            \
			fprintf(stderr, "# %s:%d: not true: %s (errno %d, %s)\n", __FILE__,        \
				__LINE__, #condition, e_, strerror(e_));                           \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)

/* A socket that must exist, or be gone: `fd` or the child ends. */
static inline int must(int fd)
{
	if (fd < 0) {
		fprintf(stderr, "# expected a descriptor: %s\n", strerror(fd == -1 ? errno : -fd));
		_exit(1);
	}
	return fd;
}

static inline double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

static inline void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	CHECK(fd >= 0);
	CHECK(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
}

/* In the child: become root of fresh namespaces, or exit with 77. */
static inline void netns_enter(void)
{
	char map[64];
	uid_t uid = getuid();
	gid_t gid = getgid();

	if (unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0)
		_exit(77);
	write_file("/proc/self/setgroups", "deny");
	snprintf(map, sizeof(map), "0 %u 1", (unsigned)uid);
	write_file("/proc/self/uid_map", map);
	snprintf(map, sizeof(map), "0 %u 1", (unsigned)gid);
	write_file("/proc/self/gid_map", map);
}

/* Run @body in a child in its namespaces. The exit status: 0 passed, 77 no namespaces. A child that
 * hangs is ended by its own alarm. */
static inline int netns_run(void (*body)(void))
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		alarm(20);
		netns_enter();
		body();
		fflush(NULL);
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return -1;
	return WEXITSTATUS(status);
}

#define NETNS_TEST(body)                                                                           \
	static void test_##body(void **state)                                                      \
	{                                                                                          \
		int r = netns_run(body);                                                           \
		(void)state;                                                                       \
		if (r == 77) {                                                                     \
			print_message("no user namespaces for this user\n");                       \
			skip();                                                                    \
		}                                                                                  \
		assert_int_equal(r, 0);                                                            \
	}

/* --- a sandbox's network --- */

struct netns {
	int listeners[SBX_N_LISTENERS]; /* -1 where the case has none */
	int nflog, nft;
	uint32_t next_seq;
};

/* Loopback, listeners, NFLOG and the ruleset of a case, in the order the stage does it. */
static inline struct netns netns_setup(const char *name)
{
	const struct nft_case *c = nft_case_find(name);
	SBX_AUTO_CLOSE int rtnl = must(sbx_net_netlink_open(NETLINK_ROUTE));
	struct sbx_nft_ruleset *rs = NULL;
	struct sbx_err err = { 0 };
	struct netns n = { .nflog = -1 };
	int ipv6 = -1, r;

	CHECK(c);
	r = sbx_net_setup_loopback(rtnl, &ipv6, &err);
	if (r < 0)
		fprintf(stderr, "# %s\n", err.msg);
	CHECK(r == 0 && ipv6 == 1);
	for (int i = 0; i < SBX_N_LISTENERS; i++) {
		uint16_t port = 0;

		n.listeners[i] = must(sbx_net_listener_open(i, &port));
		CHECK(port == (i <= SBX_LISTEN_DNS_TCP6 ? 53 : SBX_NET_CARRY_PORT));
	}
	n.nflog = must(sbx_net_nflog_open(c->in.nflog_group, 128));
	n.nft = must(sbx_net_netlink_open(NETLINK_NETFILTER));
	CHECK(sbx_nft_ruleset_new(&c->in, &rs) == 0);
	r = sbx_nft_ruleset_apply(rs, n.nft, &err);
	if (r < 0)
		fprintf(stderr, "# %s\n", err.msg);
	CHECK(r == 0);
	sbx_nft_ruleset_free(rs);
	return n;
}

static inline struct sockaddr_storage sockaddr_of(const char *text, uint16_t port, socklen_t *ret_n)
{
	struct sockaddr_storage ss;
	struct sbx_addr a;

	CHECK(sbx_addr_parse(text, &a) == 0);
	*ret_n = sbx_addr_to_sockaddr(&a, port, &ss);
	return ss;
}

static inline int bind_to(int fd, const char *text, uint16_t port)
{
	socklen_t n;
	struct sockaddr_storage ss = sockaddr_of(text, port, &n);

	return bind(fd, (struct sockaddr *)&ss, n) < 0 ? -errno : 0;
}

static inline int connect_to(int fd, const char *text, uint16_t port)
{
	socklen_t n;
	struct sockaddr_storage ss = sockaddr_of(text, port, &n);

	return connect(fd, (struct sockaddr *)&ss, n) < 0 ? -errno : 0;
}

static inline int send_to(int fd, const char *text, uint16_t port, const char *what)
{
	socklen_t n;
	struct sockaddr_storage ss = sockaddr_of(text, port, &n);

	return sendto(fd, what, strlen(what), 0, (struct sockaddr *)&ss, n) < 0 ? -errno : 0;
}

static inline int socket_for(const char *text, int type)
{
	return must(socket(strchr(text, ':') ? AF_INET6 : AF_INET, type | SOCK_CLOEXEC, 0));
}

static inline bool readable(int fd, int timeout_ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, timeout_ms) == 1 && p.revents & POLLIN;
}

/* Is this socket's own address (or its peer's) text:port? */
static inline bool name_is(int fd, bool peer, const char *text, uint16_t port)
{
	struct sockaddr_storage ss = { 0 };
	socklen_t n = sizeof(ss);
	struct sbx_addr got, want;
	uint16_t got_port;

	CHECK((peer ? getpeername : getsockname)(fd, (struct sockaddr *)&ss, &n) == 0);
	CHECK(sbx_addr_from_sockaddr((struct sockaddr *)&ss, n, &got, &got_port) == 0);
	CHECK(sbx_addr_parse(text, &want) == 0);
	return sbx_addr_equal(&got, &want) && (port == 0 || got_port == port);
}

struct nflog_one {
	unsigned n;
	struct sbx_nflog_packet last;
};

static inline void nflog_keep(void *userdata, const struct sbx_nflog_packet *p)
{
	struct nflog_one *one = userdata;

	one->n++;
	one->last = *p;
}

/* The next refused packet that was reported; false when there is none. */
static inline bool nflog_next(struct netns *n, struct sbx_nflog_packet *ret_p)
{
	char buf[4096];
	struct nflog_one one = { 0 };
	ssize_t r = recv(n->nflog, buf, sizeof(buf), 0);

	if (r < 0) {
		CHECK(errno == EAGAIN);
		return false;
	}
	CHECK(sbx_nflog_parse(sbx_span(buf, r), nflog_keep, &one) == 0);
	CHECK(one.n == 1 && one.last.has_seq);
	CHECK(sbx_nflog_lost(&n->next_seq, &one.last) == 0);
	*ret_p = one.last;
	return true;
}

/* The next report is about this packet. It is there already when the refused call returns. */
static inline void expect_nflog(struct netns *n, enum sbx_proto proto, const char *text,
				uint16_t port)
{
	struct sbx_nflog_packet p;
	struct sbx_addr want;
	char buf[SBX_ADDR_STR_MAX];

	CHECK(sbx_addr_parse(text, &want) == 0);
	CHECK(nflog_next(n, &p));
	if (!sbx_addr_equal(&p.dst, &want) || p.dport != port || p.proto != proto) {
		fprintf(stderr, "# reported %d %s port %u, expected %d %s port %u\n", p.proto,
			sbx_addr_format(&p.dst, buf, sizeof(buf)), p.dport, proto, text, port);
		_exit(1);
	}
}

static inline void expect_no_nflog(struct netns *n)
{
	struct sbx_nflog_packet p;
	char buf[SBX_ADDR_STR_MAX];

	if (nflog_next(n, &p)) {
		fprintf(stderr, "# unexpected report: proto %d dst %s port %u\n", p.l4proto,
			sbx_addr_format(&p.dst, buf, sizeof(buf)), p.dport);
		_exit(1);
	}
}

/* TCP to text:port is refused within 50 ms and reported. */
static inline void expect_tcp_refused(struct netns *n, const char *text, uint16_t port)
{
	SBX_AUTO_CLOSE int fd = socket_for(text, SOCK_STREAM);
	double start = now_ms();
	int r = connect_to(fd, text, port);

	if (r != -ECONNREFUSED || now_ms() - start > 50)
		fprintf(stderr, "# %s port %u: %s after %.1f ms\n", text, port, strerror(-r),
			now_ms() - start);
	CHECK(r == -ECONNREFUSED);
	CHECK(now_ms() - start < 50);
	expect_nflog(n, SBX_PROTO_TCP, text, port);
	expect_no_nflog(n);
}

/* A datagram to text:port is refused by the call itself and reported. */
static inline void expect_udp_refused(struct netns *n, const char *text, uint16_t port)
{
	SBX_AUTO_CLOSE int fd = socket_for(text, SOCK_DGRAM);
	int r = send_to(fd, text, port, "x");

	if (r != -EPERM)
		fprintf(stderr, "# %s port %u: %s\n", text, port, strerror(-r));
	CHECK(r == -EPERM);
	expect_nflog(n, SBX_PROTO_UDP, text, port);
	expect_no_nflog(n);
}

#endif
