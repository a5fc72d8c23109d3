/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The filter of sockets by cgroup, run as the kernel runs it (net/ipv4/inet_diag.c); the kernel's
 * own answer to it; batches of sockets. tests/system/test_attach_live.py has more of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/magic.h>
#include <linux/netlink.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/cleanup.h"
#include "sys/net/net.h"
#include "sys/net/sock_cut.h"
#include "tests/unit/netns.h"

static bool has_target(const uint8_t *bc, long len, long target)
{
	while (len >= 0) {
		struct inet_diag_bc_op op;

		if (target == len)
			return true;
		if (target > len || len < 4)
			return false;
		memcpy(&op, bc, sizeof(op));
		if (op.yes < 4 || op.yes & 3)
			return false;
		len -= op.yes;
		bc += op.yes;
	}
	return false;
}

/* inet_diag_bc_audit() */
static bool is_valid(const uint8_t *all, long n)
{
	const uint8_t *bc = all;
	long len = n;

	while (len > 0) {
		struct inet_diag_bc_op op;
		long min = 4;

		if (len < 4)
			return false;
		memcpy(&op, bc, sizeof(op));
		if (op.code == INET_DIAG_BC_CGROUP_COND)
			min += 8;
		else if (op.code != INET_DIAG_BC_JMP)
			return false;
		if (len < min || op.no < min || op.no > len + 4 || op.no & 3)
			return false;
		if (op.no < len && !has_target(all, n, len - op.no))
			return false;
		if (op.code == INET_DIAG_BC_JMP)
			min = 4;
		if (op.yes < min || op.yes > len + 4 || op.yes & 3)
			return false;
		bc += op.yes;
		len -= op.yes;
	}
	return len == 0;
}

/* inet_diag_bc_run() */
static bool accepts(const uint8_t *bc, long len, uint64_t cgroup)
{
	while (len > 0) {
		struct inet_diag_bc_op op;
		uint64_t id = 0;
		long step;

		memcpy(&op, bc, sizeof(op));
		if (op.code == INET_DIAG_BC_CGROUP_COND)
			memcpy(&id, bc + 4, sizeof(id));
		step = op.code == INET_DIAG_BC_CGROUP_COND && id == cgroup ? op.yes : op.no;
		bc += step;
		len -= step;
	}
	return len == 0;
}

static void test_filter(void **state)
{
	uint64_t ids[SBX_SOCK_CUT_CGROUPS_MAX];
	uint8_t filter[SBX_SOCK_CUT_FILTER_MAX];

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(ids); i++)
		ids[i] = UINT64_C(0x100000001) * (i + 1);
	for (size_t n = 1; n <= SBX_N_ELEMENTS(ids); n++) {
		size_t size = sbx_sock_cut_filter(ids, n, filter);

		assert_true(size <= sizeof(filter) && is_valid(filter, (long)size));
		for (size_t i = 0; i < SBX_N_ELEMENTS(ids); i++)
			assert_int_equal(accepts(filter, (long)size, ids[i]), i < n);
		assert_false(accepts(filter, (long)size, 0));
		assert_false(accepts(filter, (long)size, 1));
	}
}

static bool nothing_stays(void *userdata, const struct sbx_sock_flow *flow)
{
	(void)flow;
	++*(unsigned *)userdata;
	return false;
}

/* The kernel takes filters of every length. */
static void kernel(void)
{
	SBX_AUTO_CLOSE int fd = must(sbx_net_netlink_open(NETLINK_SOCK_DIAG));
	uint64_t ids[SBX_SOCK_CUT_CGROUPS_MAX + 1] = { 0 };
	struct sbx_sock_cut c = { 7, 7 };
	unsigned n_asked = 0;

	for (size_t i = 0; i < SBX_N_ELEMENTS(ids); i++)
		ids[i] = UINT64_C(1) << 40 | i;
	for (size_t n = 0; n <= SBX_SOCK_CUT_CGROUPS_MAX; n++) {
		int r = sbx_sock_cut(fd, ids, n, true, nothing_stays, &n_asked, &c);

		if (r == -EOPNOTSUPP || r == -ENOENT)
			_exit(77);
		CHECK(r == 0 && c.n_ended == 0 && c.n_left == 0);
	}
	CHECK(sbx_sock_cut(fd, ids, SBX_N_ELEMENTS(ids), true, nothing_stays, &n_asked, &c) ==
	      -E2BIG);
	CHECK(n_asked == 0);
}
NETNS_TEST(kernel)

/* --- sockets of this process's cgroup --- */

enum { N_PAIRS = 150 };

struct pairs {
	uint16_t port; /* of the listener */
	int clients[N_PAIRS], servers[N_PAIRS];
	unsigned n_asked, closed_at;
};

/* 0: there is no cgroup v2. */
static uint64_t own_cgroup(void)
{
	static const char *const mounts[] = { "/sys/fs/cgroup", "/sys/fs/cgroup/unified" };
	char line[4096], path[8192];
	SBX_AUTO_FCLOSE FILE *f = fopen("/proc/self/cgroup", "re");
	struct statfs fs;
	struct stat st;

	while (f && fgets(line, sizeof(line), f)) {
		if (strncmp(line, "0::", 3) != 0)
			continue;
		line[strcspn(line, "\n")] = '\0';
		for (size_t i = 0; i < SBX_N_ELEMENTS(mounts); i++) {
			snprintf(path, sizeof(path), "%s%s", mounts[i], line + 3);
			if (statfs(path, &fs) == 0 && fs.f_type == CGROUP2_SUPER_MAGIC &&
			    stat(path, &st) == 0)
				return st.st_ino;
		}
	}
	return 0;
}

static void connect_pairs(struct pairs *p, int family)
{
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	struct sockaddr_in in4 = { .sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct sockaddr *sa = family == AF_INET ? (struct sockaddr *)&in4 : (struct sockaddr *)&in6;
	socklen_t n = family == AF_INET ? sizeof(in4) : sizeof(in6);
	SBX_AUTO_CLOSE int listener = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	CHECK(bind(listener, sa, n) == 0 && listen(listener, N_PAIRS) == 0);
	CHECK(getsockname(listener, sa, &n) == 0);
	p->port = ntohs(family == AF_INET ? in4.sin_port : in6.sin6_port);
	for (size_t i = 0; i < N_PAIRS; i++) {
		p->clients[i] = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
		CHECK(connect(p->clients[i], sa, n) == 0);
		p->servers[i] = accept(listener, NULL, NULL);
		CHECK(p->servers[i] >= 0);
	}
}

static void close_pairs(struct pairs *p)
{
	for (size_t i = 0; i < N_PAIRS; i++) {
		sbx_fd_close(p->clients[i]);
		sbx_fd_close(p->servers[i]);
	}
}

static bool is_cut(int fd)
{
	char c;

	return recv(fd, &c, 1, MSG_DONTWAIT) < 0 && errno == ECONNABORTED;
}

/* Clients must end. One of them ends by itself when it has been listed. */
static bool servers_stay(void *userdata, const struct sbx_sock_flow *flow)
{
	const struct linger now = { .l_onoff = 1 };
	struct pairs *p = userdata;

	if (flow->remote_port != p->port)
		return true;
	if (p->n_asked++ == p->closed_at) {
		size_t i = 0;
		struct sockaddr_storage ss;
		socklen_t n;

		do {
			CHECK(i < N_PAIRS);
			n = sizeof(ss);
			CHECK(getsockname(p->clients[i++], (struct sockaddr *)&ss, &n) == 0);
		} while (ntohs(((struct sockaddr_in *)&ss)->sin_port) != flow->local_port);
		i--;
		CHECK(setsockopt(p->clients[i], SOL_SOCKET, SO_LINGER, &now, sizeof(now)) == 0);
		p->clients[i] = sbx_fd_close(p->clients[i]);
	}
	return false;
}

/* More than a batch, and some that end before they are ended: those beside them are not missed,
 * and no other socket is hit. */
static void ends(void)
{
	SBX_AUTO_CLOSE int rtnl = must(sbx_net_netlink_open(NETLINK_ROUTE));
	SBX_AUTO_CLOSE int fd = must(sbx_net_netlink_open(NETLINK_SOCK_DIAG));
	uint64_t cgroup = own_cgroup();
	struct sbx_err err = { 0 };
	int ipv6 = 0;

	must(sbx_net_setup_loopback(rtnl, &ipv6, &err));
	if (!cgroup)
		_exit(77);
	for (int family = 0; family < (ipv6 ? 2 : 1); family++) {
		struct pairs p = { .closed_at = 20 };
		struct sbx_sock_cut c = { 0 };
		int r;

		connect_pairs(&p, family ? AF_INET6 : AF_INET);
		r = sbx_sock_cut(fd, &cgroup, 1, true, servers_stay, &p, &c);
		if (p.n_asked == 0 && (r == -EOPNOTSUPP || r == -ENOENT))
			_exit(77);
		CHECK(r == 0 && p.n_asked == N_PAIRS);
		CHECK(c.n_ended == N_PAIRS - 1 && c.n_left == 0);
		for (size_t i = 0; i < N_PAIRS; i++) {
			CHECK(p.clients[i] < 0 || is_cut(p.clients[i]));
			CHECK(!is_cut(p.servers[i]));
		}
		close_pairs(&p);
	}
}
NETNS_TEST(ends)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_filter),
		cmocka_unit_test(test_kernel),
		cmocka_unit_test(test_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
