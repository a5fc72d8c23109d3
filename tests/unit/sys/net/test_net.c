/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The loopback of a sandbox's namespace, the host's addresses, NFLOG's accounts, refused
 * rulesets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netinet/tcp.h>
#include <stdlib.h>

#include "sys/net/nlmsg.h"
#include "sys/nft/nft_batch.h"
#include "sys/nft/nft_form.h"
#include "tests/unit/netns.h"

static int setup_loopback(int *ret_ipv6, struct sbx_err *err)
{
	SBX_AUTO_CLOSE int fd = must(sbx_net_netlink_open(NETLINK_ROUTE));

	return sbx_net_setup_loopback(fd, ret_ipv6, err);
}

/* A datagram to @to would have the source address @source. */
static void expect_source(const char *to, const char *source)
{
	SBX_AUTO_CLOSE int fd = socket_for(to, SOCK_DGRAM);

	CHECK(connect_to(fd, to, 443) == 0);
	CHECK(name_is(fd, false, source, 0));
}

static void loopback(void)
{
	struct sbx_err err = { 0 };
	SBX_AUTO_CLOSE int before = must(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
	int ipv6 = -1;

	CHECK(connect_to(before, "203.0.113.9", 443) == -ENETUNREACH);
	CHECK(setup_loopback(&ipv6, &err) == 0);
	CHECK(ipv6 == 1 && err.msg[0] == '\0');
	expect_source("203.0.113.9", "100.64.0.1");
	expect_source("198.18.0.5", "100.64.0.1");
	expect_source("100.64.0.1", "100.64.0.1");
	expect_source("127.0.0.1", "127.0.0.1");
	expect_source("2001:db8::9", "fd00:5b::1");
	expect_source("fd00:5b:1::5", "fd00:5b::1");
	expect_source("fd00:5b::1", "fd00:5b::1");
	expect_source("::1", "::1");
	/* Once only: a namespace that was used is not taken over silently. */
	CHECK(setup_loopback(&ipv6, &err) == -EEXIST);
	CHECK(strstr(err.msg, "add 100.64.0.1 to lo"));
}

static void expect_congestion(int fd, const char *want)
{
	char name[16] = ""; /* TCP_CA_NAME_MAX */
	socklen_t n = sizeof(name);

	CHECK(getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &n) == 0);
	CHECK(strcmp(name, want) == 0);
}

/* The namespace does not use the congestion control it inherits from the host, if that is
 * another. */
static void congestion(void)
{
	struct sbx_err err = { 0 };
	uint16_t port;
	int ipv6 = -1;
	SBX_AUTO_CLOSE int unconnected = must(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
	char host[16] = "";
	socklen_t n = sizeof(host);

	CHECK(getsockopt(unconnected, IPPROTO_TCP, TCP_CONGESTION, host, &n) == 0);
	CHECK(setup_loopback(&ipv6, &err) == 0);
	for (const char *const *to =
		     (const char *[]){ "203.0.113.9", "198.18.0.5", "2001:db8::9", NULL };
	     *to; to++) {
		SBX_AUTO_CLOSE int fd = socket_for(*to, SOCK_STREAM);

		CHECK(connect_to(fd, *to, 443) == -ECONNREFUSED);
		expect_congestion(fd, SBX_NET_CONGESTION);
	}
	SBX_AUTO_CLOSE int own = socket_for("127.0.0.1", SOCK_STREAM);
	CHECK(connect_to(own, "127.0.0.1", 443) == -ECONNREFUSED);
	expect_congestion(own, host);
	for (int i = 0; i < 2; i++) {
		SBX_AUTO_CLOSE int fd =
			must(sbx_net_listener_open(i ? SBX_LISTEN_TCP6 : SBX_LISTEN_TCP4, &port));

		expect_congestion(fd, SBX_NET_CONGESTION);
	}
}

static void no_ipv6(void)
{
	struct sbx_err err = { 0 };
	int ipv6 = -1;

	if (access("/proc/sys/net/ipv6/conf/all/disable_ipv6", W_OK) < 0)
		return;
	write_file("/proc/sys/net/ipv6/conf/all/disable_ipv6", "1");
	CHECK(setup_loopback(&ipv6, &err) == 0);
	CHECK(ipv6 == 0 && err.msg[0] == '\0');
	expect_source("203.0.113.9", "100.64.0.1");
	/* Closed, not open: without the route there is no way at all. */
	SBX_AUTO_CLOSE int fd = must(socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
	CHECK(connect_to(fd, "2001:db8::9", 443) < 0);
}

/* A namespace that is another user namespace's: what AppArmor's restriction looks like. */
static void no_permission(void)
{
	struct sbx_err err = { 0 };
	struct sbx_nft_ruleset *rs = NULL;
	int ipv6 = -1, nft;

	CHECK(unshare(CLONE_NEWUSER) == 0);
	CHECK(setup_loopback(&ipv6, &err) == -EPERM);
	CHECK(strstr(err.msg, "AppArmor") && strstr(err.msg, "run as root"));
	err = (struct sbx_err){ 0 };
	nft = must(sbx_net_netlink_open(NETLINK_NETFILTER));
	CHECK(sbx_nft_ruleset_new(&nft_cases[0].in, &rs) == 0);
	CHECK(sbx_nft_ruleset_apply(rs, nft, &err) == -EPERM);
	CHECK(strstr(err.msg, "no permission to use nf_tables") && strstr(err.msg, "AppArmor"));
	sbx_nft_ruleset_free(rs);
	CHECK(sbx_net_nflog_open(1, 128) == -EPERM);
}

static void own_addresses(void)
{
	SBX_AUTO_CLOSE int fd = must(sbx_net_netlink_open(NETLINK_ROUTE));
	SBX_AUTO_CLOSE int watch = must(sbx_net_own_watch());
	struct sbx_addr v[8];
	struct sbx_err err;
	int ipv6, n;

	CHECK(sbx_net_own_addresses(fd, v, 8) == 0);
	CHECK(!readable(watch, 0));
	CHECK(setup_loopback(&ipv6, &err) == 0);
	CHECK(readable(watch, 0));
	CHECK(sbx_net_own_addresses(fd, v, 3) == -EOVERFLOW);
	/* The rest of that dump was read: the next one is whole. */
	n = sbx_net_own_addresses(fd, v, 8);
	CHECK(n == 4);
	for (const char *const *want =
		     (const char *[]){ "127.0.0.1", "100.64.0.1", "::1", "fd00:5b::1", NULL };
	     *want; want++) {
		struct sbx_addr a;
		int found = 0;

		CHECK(sbx_addr_parse(*want, &a) == 0);
		for (int i = 0; i < n; i++)
			found += sbx_addr_equal(&v[i], &a);
		CHECK(found == 1);
	}
}

/* `ip route add TYPE CIDR dev lo`, in the table of local ones. */
static void add_route(int fd, uint16_t what, uint8_t type, const char *cidr)
{
	struct nlmsghdr nlh = { .nlmsg_type = what,
				.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK |
					       (what == RTM_NEWROUTE ? NLM_F_CREATE : 0),
				.nlmsg_seq = 1 };
	struct rtmsg rtm = { .rtm_table = RT_TABLE_LOCAL,
			     .rtm_type = type,
			     .rtm_protocol = RTPROT_STATIC };
	struct sbx_writer w;
	struct sbx_cidr c;
	uint8_t buf[128], answer[512];
	struct nlmsgerr e;
	size_t at;

	CHECK(sbx_cidr_parse(cidr, &c) == 0);
	rtm.rtm_family = c.addr.family == 4 ? AF_INET : AF_INET6;
	rtm.rtm_dst_len = c.prefix;
	rtm.rtm_scope = type == RTN_LOCAL ? RT_SCOPE_HOST : RT_SCOPE_UNIVERSE;
	w = sbx_writer(buf, sizeof(buf));
	at = sbx_nlmsg_begin(&w, &nlh, &rtm, sizeof(rtm));
	sbx_nlattr_put(&w, RTA_DST, c.addr.b, c.addr.family == 4 ? 4 : 16);
	if (type != RTN_BLACKHOLE)
		sbx_nlattr_put_u32(&w, RTA_OIF, SBX_NET_LO_IFINDEX);
	sbx_nlmsg_end(&w, at);
	CHECK(send(fd, buf, w.pos, 0) == (ssize_t)w.pos);
	CHECK(recv(fd, answer, sizeof(answer), 0) >= (ssize_t)NLMSG_LENGTH(sizeof(e)));
	memcpy(&e, answer + NLMSG_HDRLEN, sizeof(e));
	if (e.error)
		fprintf(stderr, "# %s: %s\n", cidr, strerror(-e.error));
	CHECK(e.error == 0);
}

/* Read @watch empty: was there anything that changes what is this host's own? */
static bool own_changed(int watch)
{
	uint8_t buf[8192];
	bool changed = false;
	ssize_t n;

	CHECK(readable(watch, 1000));
	while ((n = recv(watch, buf, sizeof(buf), 0)) > 0)
		changed |= sbx_net_own_changed(sbx_span(buf, (size_t)n));
	return changed;
}

static void local_routes(void)
{
	static const char *const extra[] = { "203.0.113.7/32", "198.51.100.0/24", "2001:db8:1::/64",
					     "2001:db8::7/128" };
	SBX_AUTO_CLOSE int fd = must(sbx_net_netlink_open(NETLINK_ROUTE));
	SBX_AUTO_CLOSE int other = must(sbx_net_netlink_open(NETLINK_ROUTE));
	SBX_AUTO_CLOSE int watch = must(sbx_net_own_watch());
	struct sbx_cidr v[16];
	struct sbx_addr own[8];
	struct sbx_err err;
	int ipv6, n;

	CHECK(sbx_net_local_routes(fd, v, 16) == 0);
	CHECK(setup_loopback(&ipv6, &err) == 0);
	CHECK(own_changed(watch));
	/* Those of the four addresses and 127.0.0.0/8; not the ones that make everything local.
	 * IPv6's come a moment later, each with word of it. */
	while ((n = sbx_net_local_routes(fd, v, 16)) < 5)
		CHECK(n > 0 && own_changed(watch));
	CHECK(n == 5);
	while (readable(watch, 50))
		own_changed(watch);
	CHECK(sbx_net_local_routes(fd, v, 4) == -EOVERFLOW &&
	      sbx_net_local_routes(fd, v, 0) == -EOVERFLOW);
	for (size_t i = 0; i < SBX_N_ELEMENTS(extra); i++) {
		add_route(other, RTM_NEWROUTE, RTN_LOCAL, extra[i]);
		CHECK(own_changed(watch));
	}
	add_route(other, RTM_NEWROUTE, RTN_ANYCAST, "2001:db8:2::/128");
	CHECK(own_changed(watch));
	add_route(other, RTM_NEWROUTE, RTN_BLACKHOLE, "192.0.2.0/24");
	CHECK(!own_changed(watch));
	n = sbx_net_local_routes(fd, v, 16);
	CHECK(n == 5 + 5);
	for (size_t i = 0; i < SBX_N_ELEMENTS(extra); i++) {
		struct sbx_cidr want;
		int found = 0;

		CHECK(sbx_cidr_parse(extra[i], &want) == 0);
		for (int k = 0; k < n; k++)
			found += v[k].prefix == want.prefix &&
				 sbx_addr_equal(&v[k].addr, &want.addr);
		CHECK(found == 1);
	}
	/* Routes add nothing to the interfaces' addresses, and the socket still answers both
	 * questions. */
	CHECK(sbx_net_own_addresses(fd, own, 8) == 4);
	add_route(other, RTM_DELROUTE, RTN_LOCAL, extra[0]);
	CHECK(own_changed(watch));
	CHECK(sbx_net_local_routes(fd, v, 16) == n - 1);
}

/* Nothing of the kernel's own (multicast reports, duplicate detection) is refused and reported. */
static void quiet(void)
{
	struct netns n = netns_setup("fetch");

	CHECK(!readable(n.nflog, 1300));
	expect_tcp_refused(&n, "203.0.113.9", 443);
}

static void nflog_group_is_exclusive(void)
{
	SBX_AUTO_CLOSE int first = must(sbx_net_nflog_open(7, 128));
	SBX_AUTO_CLOSE int other = must(sbx_net_nflog_open(8, 128));

	CHECK(sbx_net_nflog_open(7, 128) == -EPERM);
	CHECK(fcntl(first, F_GETFD) & FD_CLOEXEC && fcntl(first, F_GETFL) & O_NONBLOCK);
	(void)other;
}

struct tally {
	uint32_t next_seq;
	uint64_t seen, lost;
};

static void tally_add(void *userdata, const struct sbx_nflog_packet *p)
{
	struct tally *t = userdata;

	CHECK(p->has_seq && p->proto == SBX_PROTO_UDP && p->dport == 443);
	t->lost += sbx_nflog_lost(&t->next_seq, p);
	t->seen++;
}

/* Read everything; true when the kernel said on the way that packets were lost. */
static bool tally_drain(int fd, struct tally *t)
{
	bool overrun = false;

	for (;;) {
		char buf[4096];
		ssize_t n = recv(fd, buf, sizeof(buf), 0);

		if (n >= 0)
			CHECK(sbx_nflog_parse(sbx_span(buf, n), tally_add, t) == 0);
		else if (errno == ENOBUFS)
			overrun = true;
		else
			break;
	}
	CHECK(errno == EAGAIN);
	return overrun;
}

/* A flood that no program reads: the lost packets are counted exactly once a later packet
 * arrives. */
static void nflog_flood(void)
{
	struct netns n = netns_setup("fetch");
	SBX_AUTO_CLOSE int fd = socket_for("203.0.113.9", SOCK_DGRAM);
	struct tally t = { 0 };
	int sent = 40000;

	for (int i = 0; i < sent; i++)
		CHECK(send_to(fd, "203.0.113.9", 443, "flood") == -EPERM);
	CHECK(tally_drain(n.nflog, &t));
	CHECK(t.seen > 100 && t.seen < (uint64_t)sent);
	CHECK(send_to(fd, "203.0.113.9", 443, "one more") == -EPERM);
	CHECK(!tally_drain(n.nflog, &t));
	CHECK(t.seen + t.lost == (uint64_t)sent + 1);
}

/* --- refused and altered rulesets --- */

static void table_exists(void)
{
	struct netns n = netns_setup("fetch");
	struct sbx_nft_ruleset *rs = NULL;
	struct sbx_err err = { 0 };

	CHECK(sbx_nft_ruleset_new(&nft_case_find("full")->in, &rs) == 0);
	CHECK(sbx_nft_ruleset_apply(rs, n.nft, &err) == -EEXIST);
	CHECK(strstr(err.msg, "already"));
	sbx_nft_ruleset_free(rs);
	/* All or nothing: the first one stands. */
	expect_tcp_refused(&n, "203.0.113.9", 443);
}

/* The kernel's answer about an unknown expression leads to the name of the expression. */
static void unknown_expression(void)
{
	SBX_AUTO_CLOSE int fd = must(sbx_net_netlink_open(NETLINK_NETFILTER));
	struct sbx_nft_batch b;
	struct sbx_nft_ruleset *rs = NULL;
	struct sbx_err err = { 0 };
	char *name;

	CHECK(sbx_nft_ruleset_new(&nft_case_find("fetch")->in, &rs) == 0);
	CHECK(sbx_nft_batch_init(&b, rs, 1) == 0);
	name = memmem(b.p, b.n, "tproxy", 6);
	CHECK(name);
	memcpy(name, "tprozy", 6);
	CHECK(sbx_nft_batch_send(&b, fd, &err) == -ENOENT);
	CHECK(strstr(err.msg, "tprozy"));
	/* Nothing of it took effect, and the socket is good for another. */
	err = (struct sbx_err){ 0 };
	CHECK(sbx_nft_batch_read_back(&b, rs, fd, &err) == -EPROTO);
	CHECK(strstr(err.msg, "too few chains"));
	CHECK(sbx_nft_ruleset_apply(rs, fd, &err) == 0);
	sbx_nft_batch_fini(&b);
	sbx_nft_ruleset_free(rs);
}

/* The ruleset in the kernel is compared with the one that was sent: one changed byte is found. */
static void read_back_compares(void)
{
	SBX_AUTO_CLOSE int fd = must(sbx_net_netlink_open(NETLINK_NETFILTER));
	struct sbx_nft_ruleset *rs = NULL;

	CHECK(sbx_nft_ruleset_new(&nft_case_find("fetch")->in, &rs) == 0);
	CHECK(sbx_nft_ruleset_apply(rs, fd, NULL) == 0);
	for (size_t i = 0; i < SBX_N_ELEMENTS(nft_cases); i++) {
		struct sbx_nft_ruleset *other = NULL;
		struct sbx_nft_batch b;
		struct sbx_err err = { 0 };
		int r;

		CHECK(sbx_nft_ruleset_new(&nft_cases[i].in, &other) == 0);
		CHECK(sbx_nft_batch_init(&b, other, 1) == 0);
		r = sbx_nft_batch_read_back(&b, other, fd, &err);
		CHECK(r == (strcmp(nft_cases[i].name, "fetch") == 0 ? 0 : -EPROTO));
		sbx_nft_batch_fini(&b);
		sbx_nft_ruleset_free(other);
	}
	for (int what = 0; what < 5; what++) {
		struct sbx_nft_chain *out = &rs->chains[1];
		struct sbx_nft_item *item = &out->rules[0].items[0];
		struct sbx_nft_ruleset saved = *rs;
		struct sbx_nft_item saved_item = *item;
		struct sbx_nft_batch b;
		struct sbx_err err = { 0 };

		out->policy_drop ^= what == 0;
		out->priority += what == 1;
		out->n_rules -= what == 2;
		item->u.cidr.addr.b[3] ^= what == 3;
		item->negate ^= what == 4;
		CHECK(sbx_nft_batch_init(&b, rs, 1) == 0);
		CHECK(sbx_nft_batch_read_back(&b, rs, fd, &err) == -EPROTO);
		CHECK(strstr(err.msg, "not the one that was sent"));
		sbx_nft_batch_fini(&b);
		*rs = saved;
		*item = saved_item;
	}
	sbx_nft_ruleset_free(rs);
}

/* The most that a profile may have fits one batch, for an ordinary user too. */
static void most_cidrs(void)
{
	SBX_AUTO_CLOSE int fd = must(sbx_net_netlink_open(NETLINK_NETFILTER));
	struct sbx_nft_cidr v[SBX_NFT_CIDRS_MAX];
	struct sbx_nft_input in = nft_case_find("fetch-udp")->in;
	struct sbx_nft_ruleset *rs = NULL;
	struct sbx_nft_batch b;
	struct sbx_err err = { 0 };

	for (size_t i = 0; i < SBX_NFT_CIDRS_MAX; i++)
		v[i] = (struct sbx_nft_cidr){
			{ { 6, { 0x20, 0x01, 0x0d, 0xb8, [5] = i, [14] = 0x80 } }, 113 },
			80,
			90,
			SBX_PROTO_TCP
		};
	in.n_cidrs = SBX_NFT_CIDRS_MAX;
	in.cidrs = v;
	CHECK(sbx_nft_ruleset_new(&in, &rs) == 0);
	/* Twice the default of net.core.wmem_max is what an ordinary user's socket can be given. */
	CHECK(sbx_nft_batch_init(&b, rs, 1) == 0 && b.n < 2 * 212992 - 32);
	sbx_nft_batch_fini(&b);
	if (sbx_nft_ruleset_apply(rs, fd, &err) < 0)
		fprintf(stderr, "# %s\n", err.msg);
	CHECK(err.msg[0] == '\0');
	sbx_nft_ruleset_free(rs);
}

NETNS_TEST(loopback)
NETNS_TEST(congestion)
NETNS_TEST(no_ipv6)
NETNS_TEST(no_permission)
NETNS_TEST(own_addresses)
NETNS_TEST(local_routes)
NETNS_TEST(quiet)
NETNS_TEST(nflog_group_is_exclusive)
NETNS_TEST(nflog_flood)
NETNS_TEST(table_exists)
NETNS_TEST(unknown_expression)
NETNS_TEST(read_back_compares)
NETNS_TEST(most_cidrs)

/* Outside any namespace of ours. */
static void test_host(void **state)
{
	SBX_AUTO_CLOSE int fd = sbx_net_netlink_open(NETLINK_ROUTE);
	struct sbx_addr v[512];

	(void)state;
	assert_true(fd >= 0);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	assert_true(sbx_net_own_addresses(fd, v, SBX_N_ELEMENTS(v)) >= 0);
	assert_int_equal(sbx_net_netlink_open(9999), -EPROTONOSUPPORT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_loopback),
		cmocka_unit_test(test_congestion),
		cmocka_unit_test(test_no_ipv6),
		cmocka_unit_test(test_no_permission),
		cmocka_unit_test(test_own_addresses), cmocka_unit_test(test_local_routes),
		cmocka_unit_test(test_quiet),
		cmocka_unit_test(test_nflog_group_is_exclusive),
		cmocka_unit_test(test_nflog_flood),
		cmocka_unit_test(test_table_exists),
		cmocka_unit_test(test_unknown_expression),
		cmocka_unit_test(test_read_back_compares),
		cmocka_unit_test(test_most_cidrs),
		cmocka_unit_test(test_host),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
