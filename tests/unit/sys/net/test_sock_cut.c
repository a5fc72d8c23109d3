/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The filter of sockets by cgroup, run as the kernel runs it (net/ipv4/inet_diag.c); the kernel's
 * own answer to it. tests/system/test_attach_live.py has sockets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <string.h>

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_filter),
		cmocka_unit_test(test_kernel),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
