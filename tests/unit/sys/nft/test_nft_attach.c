/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Attach cgroup's rulesets: text against golden files, limits, and the operations on the shared
 * table in namespaces, without cgroups (tests/system/test_attach_rules.py has those, and
 * packets). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <signal.h>
#include <stdlib.h>

#include "sys/nft/nft_attach_internal.h"
#include "sys/nft/nft_batch.h"
#include "sys/nft/nft_form.h"
#include "tests/unit/attach_cases.h"
#include "tests/unit/golden.h"
#include "tests/unit/netns.h"

SBX_DEFINE_CLEANUP(struct sbx_nft_ruleset, sbx_nft_ruleset_free);

static void test_golden(void **state)
{
	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(attach_cases); i++) {
		SBX_CLEANUP(sbx_nft_ruleset_freep) struct sbx_nft_ruleset *rs = NULL;
		SBX_AUTO_FREE char *text = NULL;
		struct sbx_attach_input in = attach_cases[i].in;
		char name[64];

		if (i > 0)
			in.cgroup_path = "sbx.slice/sbx-0123456789ab";
		assert_int_equal(sbx_attach_ruleset_new(&in, &rs), 0);
		text = sbx_nft_ruleset_text(rs);
		snprintf(name, sizeof(name), "attach-%s.txt", attach_cases[i].name);
		golden_compare(name, text);
	}
}

/* --- a change of the policy --- */

static const struct sbx_attach_cidr next_cidrs[] = {
	{ { V4(198, 51, 100, 0), 24 }, 443, 443, SBX_PROTO_TCP, false },
};

static struct sbx_attach_input next_input(void)
{
	struct sbx_attach_input in = attach_case_find("everything")->in;

	in.n_admitted = 0;
	in.cidrs = next_cidrs;
	in.n_cidrs = SBX_N_ELEMENTS(next_cidrs);
	in.n_floors = 2;
	in.n_loopback_ports = 1;
	return in;
}

static void test_golden_narrow(void **state)
{
	SBX_CLEANUP(sbx_nft_ruleset_freep) struct sbx_nft_ruleset *rs = NULL;
	SBX_AUTO_FREE char *text = NULL;
	struct sbx_attach_input from = attach_case_find("everything")->in, to = next_input();

	(void)state;
	assert_int_equal(sbx_attach_narrow_new(&from, &to, &rs), 0);
	text = sbx_nft_ruleset_text(rs);
	golden_compare("attach-narrow.txt", text);
}

/* A gate accepts nothing, and every other own chain as before; no chain but the gate's returns. */
static void test_a_gate_only_refuses(void **state)
{
	SBX_CLEANUP(sbx_nft_ruleset_freep) struct sbx_nft_ruleset *rs = NULL;
	struct sbx_attach_input from = attach_case_find("everything")->in, to = next_input();
	size_t n_returns = 0;

	(void)state;
	to.all_destinations = true;
	assert_int_equal(sbx_attach_narrow_new(&from, &to, &rs), 0);
	for (size_t i = 0; i < rs->n_chains; i++) {
		bool gate = strstr(rs->chains[i].name, "-gate") != NULL;

		for (size_t k = 0; k < rs->chains[i].n_rules; k++) {
			const struct sbx_nft_rule *r = &rs->chains[i].rules[k];
			enum sbx_nft_item_kind last = r->items[r->n_items - 1].kind;

			assert_false(gate && (last == SBX_NFT_ACCEPT || last == SBX_NFT_JUMP));
			assert_false(!gate && last == SBX_NFT_RETURN);
			n_returns += last == SBX_NFT_RETURN;
		}
	}
	assert_true(n_returns > 8);
}

static void test_narrow_input(void **state)
{
	struct sbx_attach_input from = attach_case_find("everything")->in, to = next_input();
	struct sbx_nft_ruleset *rs = NULL;

	(void)state;
#define DIFFERS(change, error)                                                                     \
	do {                                                                                       \
		to = next_input();                                                                 \
		change;                                                                            \
		assert_int_equal(sbx_attach_narrow_new(&from, &to, &rs), error);                   \
		assert_null(rs);                                                                   \
	} while (0)
	DIFFERS(to.id = "feed", -EINVAL);
	DIFFERS(to.id = NULL, -EINVAL);
	DIFFERS(to.level++, -EINVAL);
	DIFFERS(to.cgroup_id++, -EINVAL);
	DIFFERS(to.nflog_group++, -EINVAL);
	DIFFERS(to.n_cidrs = SBX_ATTACH_CIDRS_MAX + 1, -E2BIG);
}

static void test_same(void **state)
{
	SBX_CLEANUP(sbx_nft_ruleset_freep) struct sbx_nft_ruleset *a = NULL;
	SBX_CLEANUP(sbx_nft_ruleset_freep) struct sbx_nft_ruleset *b = NULL;
	SBX_CLEANUP(sbx_nft_ruleset_freep) struct sbx_nft_ruleset *c = NULL;
	struct sbx_attach_input in = next_input();

	(void)state;
	assert_int_equal(sbx_attach_ruleset_new(&in, &a), 0);
	assert_int_equal(sbx_attach_ruleset_new(&in, &b), 0);
	in.n_floors += 2; /* a network in a set, no rule */
	assert_int_equal(sbx_attach_ruleset_new(&in, &c), 0);
	assert_int_equal(sbx_attach_is_same(a, b), 1);
	assert_int_equal(sbx_attach_is_same(a, c), 0);
}

static uint16_t type_at(const struct sbx_nft_batch *b, uint32_t seq)
{
	const struct nlmsghdr *nlh = sbx_nft_batch_message(b, seq);

	return nlh ? nlh->nlmsg_type & 0xff : 0;
}

/* The bytes of a change: the generation demanded, removals before additions, no set of pins, no
 * shared part. */
static void test_change_batch(void **state)
{
	SBX_CLEANUP(sbx_nft_ruleset_freep) struct sbx_nft_ruleset *from = NULL;
	SBX_CLEANUP(sbx_nft_ruleset_freep) struct sbx_nft_ruleset *both = NULL;
	SBX_CLEANUP(sbx_nft_batch_fini) struct sbx_nft_batch b = { 0 };
	struct sbx_attach_input in = attach_case_find("everything")->in, to = next_input();
	static const uint8_t generation[] = { 8, 0, 1, 0, 0x01, 0x02, 0x03, 0x04 };
	size_t n[32] = { 0 };
	const struct nlmsghdr *nlh;
	uint16_t last = 0;

	(void)state;
	assert_int_equal(sbx_attach_ruleset_new(&in, &from), 0);
	assert_int_equal(sbx_attach_narrow_new(&in, &to, &both), 0);
	assert_int_equal(sbx_nft_batch_init_change(&b, from, both, 0x01020304, 7), 0);
	nlh = sbx_nft_batch_message(&b, 7);
	assert_int_equal(nlh->nlmsg_type, NFNL_MSG_BATCH_BEGIN);
	assert_int_equal(nlh->nlmsg_len, 20 + sizeof(generation));
	assert_memory_equal((const char *)nlh + 20, generation, sizeof(generation));
	for (uint32_t seq = 8; seq + 1 < b.next_seq; seq++) {
		uint16_t type = type_at(&b, seq);
		bool removal = type == NFT_MSG_DELRULE || type == NFT_MSG_DELCHAIN ||
			       type == NFT_MSG_DELSET;

		assert_true(type < SBX_N_ELEMENTS(n));
		n[type]++;
		assert_false(removal && last == NFT_MSG_NEWSET);
		last = removal ? last : NFT_MSG_NEWSET;
	}
	assert_int_equal(n[NFT_MSG_DELRULE], 4);
	assert_int_equal(n[NFT_MSG_DELCHAIN], 0);
	assert_int_equal(n[NFT_MSG_DELSET], 2);
	assert_int_equal(n[NFT_MSG_NEWSET], 4);
	assert_int_equal(n[NFT_MSG_NEWCHAIN], 3);
	assert_int_equal(n[NFT_MSG_NEWTABLE] + n[NFT_MSG_DELTABLE] + n[NFT_MSG_DELSETELEM], 0);
	sbx_nft_batch_fini(&b);
	assert_int_equal(sbx_nft_batch_init_change(&b, both, from, 0, 1), 0);
	assert_int_equal(sbx_nft_batch_message(&b, 1)->nlmsg_len, 20);
	memset(n, 0, sizeof(n));
	for (uint32_t seq = 2; seq + 1 < b.next_seq; seq++)
		n[type_at(&b, seq)]++;
	assert_int_equal(n[NFT_MSG_DELRULE], 7);
	assert_int_equal(n[NFT_MSG_DELCHAIN], 3);
	assert_int_equal(n[NFT_MSG_DELSET], 4);
	assert_int_equal(n[NFT_MSG_NEWCHAIN], 0);
}

/* --- the input --- */

static int build(const struct sbx_attach_input *in)
{
	struct sbx_nft_ruleset *rs = NULL;
	int r = sbx_attach_ruleset_new(in, &rs);

	assert_int_equal(r == 0, rs != NULL);
	sbx_nft_ruleset_free(rs);
	return r;
}

#define REFUSED(change, error)                                                                     \
	do {                                                                                       \
		struct sbx_attach_input in = attach_case_find("everything")->in;                   \
		assert_int_equal(build(&in), 0);                                                   \
		change;                                                                            \
		assert_int_equal(build(&in), error);                                               \
	} while (0)

static void test_input(void **state)
{
	static const uint16_t no_port = 0;
	static const struct sbx_cidr host_bits = { V4(10, 1, 2, 3), 24 };
	static const struct sbx_attach_cidr bad_net = { { V4(10, 0, 0, 0), 33 }, 1, 2, 0, false };
	static const struct sbx_attach_cidr bad_ports = { { V4(10, 0, 0, 0), 8 }, 2, 1, 0, false };
	static const struct sbx_attach_cidr bad_proto = {
		{ V4(10, 0, 0, 0), 8 }, 1, 2, SBX_PROTO_ICMP, false
	};

	(void)state;
	REFUSED(in.id = NULL, -EINVAL);
	REFUSED(in.id = "", -EINVAL);
	REFUSED(in.id = "0123456789abc", -EINVAL);
	REFUSED(in.id = "0123456789aB", -EINVAL);
	REFUSED(in.id = "a; flush", -EINVAL);
	REFUSED(in.level = 0, -EINVAL);
	REFUSED(in.level = SBX_ATTACH_LEVEL_MAX + 1, -EINVAL);
	REFUSED(in.cgroup_path = "a\" : accept", -EINVAL);
	REFUSED(in.cgroup_path = "", -EINVAL);
	REFUSED(in.dns_addr = ((struct sbx_addr)V4(10, 0, 0, 1)), -EINVAL);
	REFUSED(in.dns_port = 0, -EINVAL);
	REFUSED((in.floors = &host_bits, in.n_floors = 1), -EINVAL);
	REFUSED(in.n_floors = SBX_ATTACH_FLOORS_MAX + 1, -E2BIG);
	REFUSED((in.loopback_ports = &no_port, in.n_loopback_ports = 1), -EINVAL);
	REFUSED(in.n_loopback_ports = SBX_ATTACH_PORTS_MAX + 1, -E2BIG);
	REFUSED((in.cidrs = &bad_net, in.n_cidrs = 1), -EINVAL);
	REFUSED((in.admitted = &bad_ports, in.n_admitted = 1), -EINVAL);
	REFUSED((in.cidrs = &bad_proto, in.n_cidrs = 1), -EINVAL);
	REFUSED(in.n_cidrs = SBX_ATTACH_CIDRS_MAX + 1, -E2BIG);
}

/* A chain that ends without a verdict passes every packet: no chain may end so. */
static void test_every_chain_ends_in_a_refusal(void **state)
{
	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(attach_cases); i++) {
		SBX_CLEANUP(sbx_nft_ruleset_freep) struct sbx_nft_ruleset *rs = NULL;

		assert_int_equal(sbx_attach_ruleset_new(&attach_cases[i].in, &rs), 0);
		for (size_t k = 0; k < rs->n_chains; k++) {
			const struct sbx_nft_chain *c = &rs->chains[k];
			const struct sbx_nft_rule *last = &c->rules[c->n_rules - 1];

			if (c->hook_name)
				continue;
			assert_int_equal(last->n_items, 1);
			assert_true(last->items[0].kind == SBX_NFT_DROP ||
				    (last->items[0].kind == SBX_NFT_GOTO &&
				     strcmp(last->items[0].u.name, "sb-0123456789ab-no") == 0));
		}
	}
}

/* Networks inside others are left out, the rest is sorted: the kernel takes none twice. */
static void test_floors_do_not_overlap(void **state)
{
	static const struct sbx_cidr floors[] = {
		{ V4(10, 1, 0, 0), 16 }, { V4(10, 0, 0, 0), 8 },  { V4(10, 1, 2, 3), 32 },
		{ V4(9, 0, 0, 0), 8 },	 { V4(10, 0, 0, 0), 32 }, { V4(10, 0, 0, 0), 8 },
		{ { 6, { 0 } }, 0 },	 { { 6, { 0xff } }, 8 },
	};
	SBX_CLEANUP(sbx_nft_ruleset_freep) struct sbx_nft_ruleset *rs = NULL;
	SBX_AUTO_FREE char *text = NULL;
	struct sbx_attach_input in = attach_case_find("names")->in;

	(void)state;
	in.floors = floors;
	in.n_floors = SBX_N_ELEMENTS(floors);
	assert_int_equal(sbx_attach_ruleset_new(&in, &rs), 0);
	text = sbx_nft_ruleset_text(rs);
	assert_non_null(text);
	assert_non_null(strstr(text, "elements = { 9.0.0.0/8,\n\t\t\t     10.0.0.0/8 }"));
	assert_non_null(strstr(text, "elements = { ::/0 }"));
}

/* --- in a namespace --- */

static int nl;

static int add(const char *id, uint32_t level, uint64_t cgroup_id, struct sbx_err *err)
{
	SBX_CLEANUP(sbx_nft_ruleset_freep) struct sbx_nft_ruleset *rs = NULL;
	struct sbx_attach_input in = attach_case_find("everything")->in;
	int r;

	in.id = id;
	in.level = level;
	in.cgroup_id = cgroup_id;
	CHECK(sbx_attach_ruleset_new(&in, &rs) == 0);
	r = sbx_attach_add(rs, nl, err);
	if (r < 0 && err == NULL)
		fprintf(stderr, "# add %s: %s\n", id, strerror(-r));
	return r;
}

static int n_listed(void)
{
	struct sbx_attach_entry v[16];

	return sbx_attach_list(nl, v, SBX_N_ELEMENTS(v));
}

/* The netns ruleset is loaded only where there is no table of that name. */
static bool has_table(void)
{
	SBX_CLEANUP(sbx_nft_ruleset_freep) struct sbx_nft_ruleset *rs = NULL;

	CHECK(sbx_nft_ruleset_new(&nft_case_find("offline")->in, &rs) == 0);
	return sbx_nft_ruleset_apply(rs, nl, NULL) == -EEXIST;
}

static void add_list_remove(void)
{
	struct sbx_attach_entry v[4];
	struct sbx_err err = { 0 };

	nl = must(sbx_net_netlink_open(NETLINK_NETFILTER));
	CHECK(n_listed() == 0);
	CHECK(sbx_attach_remove("aa", 2, 1001, nl, &err) == 0); /* nothing there: nothing to do */
	CHECK(add("aa", 2, 1001, NULL) == 0);
	CHECK(add("bb", 2, 1002, NULL) == 0);
	CHECK(add("cc", 3, UINT64_C(0x1234567800000001), NULL) == 0);
	CHECK(add("aa", 2, 1009, &err) == -EEXIST);
	CHECK(add("dd", 2, 1001, &err) == -EEXIST && err.msg[0]);
	CHECK(add("dd", 3, 0, &err) == -EINVAL);
	CHECK(sbx_attach_list(nl, v, 4) == 3 && n_listed() == 3);
	for (int i = 0; i < 3; i++) {
		bool is_aa =
			strcmp(v[i].id, "aa") == 0 && v[i].level == 2 && v[i].cgroup_id == 1001;
		bool is_bb =
			strcmp(v[i].id, "bb") == 0 && v[i].level == 2 && v[i].cgroup_id == 1002;
		bool is_cc = strcmp(v[i].id, "cc") == 0 && v[i].level == 3 &&
			     v[i].cgroup_id == UINT64_C(0x1234567800000001);

		CHECK(is_aa || is_bb || is_cc);
	}
	CHECK(sbx_attach_list(nl, v, 1) == 3);
	CHECK(sbx_attach_remove("aa", 2, 1001, nl, &err) == 0 && n_listed() == 2);
	CHECK(sbx_attach_remove("aa", 2, 1001, nl, &err) == 0 && n_listed() == 2);
	CHECK(sbx_attach_remove("bb", 2, 1002, nl, &err) == 0 && n_listed() == 1);
	CHECK(has_table());
	CHECK(add("bb", 2, 1002, NULL) == 0 && n_listed() == 2);
	CHECK(sbx_attach_remove("cc", 3, UINT64_C(0x1234567800000001), nl, &err) == 0);
	CHECK(has_table());
	CHECK(sbx_attach_remove("bb", 2, 1002, nl, &err) == 0 && n_listed() == 0);
	CHECK(!has_table());
}
NETNS_TEST(add_list_remove)

/* The kernel refuses to remove a level or table in use: a sandbox that was just added stays. */
static void in_use(void)
{
	nl = must(sbx_net_netlink_open(NETLINK_NETFILTER));
	CHECK(add("aa", 2, 1001, NULL) == 0);
	CHECK(sbx_attach_remove_level("level2", nl) == -EBUSY);
	CHECK(sbx_attach_remove_table(nl) == -EBUSY);
	CHECK(sbx_attach_has("level2", 1001, "sb-aa", nl) == 0);
	CHECK(sbx_attach_has("level2", 1001, "sb-bb", nl) == -EPROTO);
	CHECK(sbx_attach_has("level2", 1002, "sb-aa", nl) == -ENOENT);
	CHECK(sbx_attach_remove("aa", 2, 1001, nl, NULL) == 0);
	CHECK(sbx_attach_remove_level("level2", nl) == -ENOENT);
}
NETNS_TEST(in_use)

#define PIN(host, port_, age_, ms)                                                                 \
	{                                                                                          \
		.addr = V4(192, 0, 2, host), .proto = SBX_PROTO_TCP, .port = port_, .age = age_,   \
		.timeout_ms = ms                                                                   \
	}

static void pins(void)
{
	struct sbx_attach_pin v[] = {
		PIN(1, 443, SBX_ATTACH_CURRENT, 60000),
		PIN(1, 80, SBX_ATTACH_CURRENT, 60000),
		PIN(1, 443, SBX_ATTACH_OLD, 60000),
		{ .addr = { 6, { 0x20, 1 } },
		  .proto = SBX_PROTO_UDP,
		  .port = 443,
		  .timeout_ms = 1 },
	};
	struct sbx_attach_pin *many = calloc(2500, sizeof(*many));
	struct sbx_err err = { 0 };

	nl = must(sbx_net_netlink_open(NETLINK_NETFILTER));
	CHECK(sbx_attach_pin("aa", v, 4, nl, &err) == -ENOENT && err.msg[0]);
	CHECK(add("aa", 2, 1001, NULL) == 0);
	CHECK(sbx_attach_pin("bb", v, 4, nl, NULL) == -ENOENT);
	for (int i = 0; i < 3; i++)
		CHECK(sbx_attach_pin("aa", v, 4, nl, NULL) == 0);
	v[0].timeout_ms = v[3].timeout_ms = 0; /* taken, there or not */
	for (int i = 0; i < 3; i++)
		CHECK(sbx_attach_pin("aa", v, 4, nl, NULL) == 0);
	CHECK(sbx_attach_pin("aa", v, 0, nl, NULL) == 0);
	v[1] = v[0];
	CHECK(sbx_attach_pin("aa", v, 4, nl, NULL) == -EINVAL); /* twice */
	v[1] = (struct sbx_attach_pin)PIN(1, 0, SBX_ATTACH_CURRENT, 1);
	CHECK(sbx_attach_pin("aa", v, 4, nl, NULL) == -EINVAL);
	v[1] = (struct sbx_attach_pin)PIN(1, 1, SBX_ATTACH_N_AGES, 1);
	CHECK(sbx_attach_pin("aa", v, 4, nl, NULL) == -EINVAL);
	v[1] = (struct sbx_attach_pin)PIN(1, 1, SBX_ATTACH_OLD, SBX_ATTACH_PIN_TIMEOUT_MAX + 1);
	CHECK(sbx_attach_pin("aa", v, 4, nl, NULL) == -EINVAL);
	/* More than one message holds. */
	CHECK(many);
	for (int i = 0; i < 2500; i++)
		many[i] =
			(struct sbx_attach_pin)PIN(9, (uint16_t)(i + 1), SBX_ATTACH_CURRENT, 60000);
	CHECK(sbx_attach_pin("aa", many, 2500, nl, NULL) == 0);
	CHECK(sbx_attach_pin("aa", many, 2500, nl, NULL) == 0);
	CHECK(sbx_attach_remove("aa", 2, 1001, nl, NULL) == 0 && !has_table());
}
NETNS_TEST(pins)

static void fill_pins(struct sbx_attach_pin *v, int n, int host, uint64_t timeout_ms)
{
	for (int i = 0; i < n; i++)
		v[i] = (struct sbx_attach_pin)PIN((uint8_t)host, (uint16_t)(i + 1), i % 2,
						  timeout_ms);
}

/* At most n_max pins exist at once; new ones fit when earlier ones have run out. */
static void room(void)
{
	struct sbx_attach_room room = { .n_max = 130 };
	struct sbx_attach_pin v[80];

	nl = must(sbx_net_netlink_open(NETLINK_NETFILTER));
	CHECK(add("aa", 2, 1001, NULL) == 0);
	for (int i = 0; i < 5; i++) { /* the same 60 */
		fill_pins(v, 60, 9, i < 4 ? 60000 : 1000);
		CHECK(sbx_attach_take_room(&room, "aa", v, 60, nl) == 0);
		CHECK(sbx_attach_pin("aa", v, 60, nl, NULL) == 0);
	}
	fill_pins(v, 80, 8, 60000);
	CHECK(sbx_attach_take_room(&room, "aa", v, 80, nl) == -ENOSPC && room.n == 60);
	CHECK(sbx_attach_take_room(&room, "aa", v, 70, nl) == 0 && room.n == 130);
	CHECK(sbx_attach_take_room(&room, "bb", v, 40, nl) == -ENOENT);
	fill_pins(v, 80, 8, 0);
	CHECK(sbx_attach_take_room(&room, "aa", v, 80, nl) == 0); /* to take away needs none */
	poll(NULL, 0, 1200);
	fill_pins(v, 80, 8, 60000);
	CHECK(sbx_attach_take_room(&room, "aa", v, 80, nl) == 0 && room.n == 80);
	CHECK(sbx_attach_remove("aa", 2, 1001, nl, NULL) == 0 && !has_table());
}
NETNS_TEST(room)

static void add_and_remove(int child, int times)
{
	char id[16];

	nl = must(sbx_net_netlink_open(NETLINK_NETFILTER));
	snprintf(id, sizeof(id), "%x", 0xa0 + child);
	for (int i = 0; i < times; i++) {
		CHECK(add(id, 2, (uint64_t)(2000 + child), NULL) == 0);
		CHECK(sbx_attach_remove(id, 2, (uint64_t)(2000 + child), nl, NULL) == 0);
	}
}

/* Several processes create and remove the shared table all the time. */
static void racing(void)
{
	pid_t pids[4];

	for (int i = 0; i < 4; i++) {
		pids[i] = fork();
		CHECK(pids[i] >= 0);
		if (pids[i] == 0) {
			add_and_remove(i, 60);
			_exit(0);
		}
	}
	for (int i = 0; i < 4; i++) {
		int status = 0;

		CHECK(waitpid(pids[i], &status, 0) == pids[i] && status == 0);
	}
	nl = must(sbx_net_netlink_open(NETLINK_NETFILTER));
	CHECK(n_listed() == 0 && !has_table());
}
NETNS_TEST(racing)

/* A process that is killed at any point leaves all of a sandbox's rules or none: listed ones can be
 * removed. */
static void killed_anywhere(void)
{
	struct sbx_attach_entry v[4];

	nl = must(sbx_net_netlink_open(NETLINK_NETFILTER));
	for (int i = 0; i < 40; i++) {
		pid_t pid = fork();
		int n;

		CHECK(pid >= 0);
		if (pid == 0) {
			add_and_remove(0, 1000);
			_exit(0);
		}
		usleep((useconds_t)(500 + i * 97));
		CHECK(kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid);
		n = sbx_attach_list(nl, v, 4);
		CHECK(n == 0 || n == 1);
		if (n == 1)
			CHECK(sbx_attach_remove(v[0].id, v[0].level, v[0].cgroup_id, nl, NULL) ==
			      0);
		CHECK(n_listed() == 0);
	}
	CHECK(add("aa", 2, 1001, NULL) == 0);
	CHECK(sbx_attach_remove("aa", 2, 1001, nl, NULL) == 0 && !has_table());
}
NETNS_TEST(killed_anywhere)

static void count_pin(void *userdata, const struct sbx_attach_pin *p)
{
	size_t *n = userdata;
	struct sbx_attach_pin want = PIN(9, 7, SBX_ATTACH_OLD, 0);

	n[0]++;
	n[1] += p->addr.family == 6 && p->addr.b[0] == 0x20 && p->port == 53 &&
		p->proto == SBX_PROTO_UDP && p->age == SBX_ATTACH_CURRENT;
	n[2] += memcmp(&p->addr, &want.addr, sizeof(want.addr)) == 0 && p->port == 7 &&
		p->proto == SBX_PROTO_TCP && p->age == SBX_ATTACH_OLD;
}

/* From one ruleset to the next and back, with pins that stay; nothing is left of it. */
static void changing(void)
{
	SBX_CLEANUP(sbx_nft_ruleset_freep) struct sbx_nft_ruleset *from = NULL;
	SBX_CLEANUP(sbx_nft_ruleset_freep) struct sbx_nft_ruleset *both = NULL;
	SBX_CLEANUP(sbx_nft_ruleset_freep) struct sbx_nft_ruleset *to = NULL;
	SBX_CLEANUP(sbx_nft_batch_fini) struct sbx_nft_batch b = { 0 };
	struct sbx_attach_input in = attach_case_find("everything")->in, next = next_input();
	struct sbx_attach_pin v[] = {
		PIN(9, 7, SBX_ATTACH_OLD, 60000),
		{ .addr = { 6, { 0x20 } },
		  .proto = SBX_PROTO_UDP,
		  .port = 53,
		  .timeout_ms = 60000 },
	};
	struct sbx_nft_refusal refusal;
	struct sbx_err err = { 0 };
	size_t n[3] = { 0 };
	uint32_t generation = 0, again = 0;

	in.id = next.id = "aa";
	in.cgroup_id = next.cgroup_id = 1001;
	nl = must(sbx_net_netlink_open(NETLINK_NETFILTER));
	CHECK(sbx_attach_ruleset_new(&in, &from) == 0 && sbx_attach_ruleset_new(&next, &to) == 0);
	CHECK(sbx_attach_narrow_new(&in, &next, &both) == 0);
	CHECK(sbx_attach_change(from, both, nl, &err) == -EPROTO && err.msg[0]);
	CHECK(sbx_attach_add(from, nl, NULL) == 0);
	CHECK(sbx_attach_pin("aa", v, 2, nl, NULL) == 0);
	CHECK(sbx_attach_change(to, both, nl, NULL) == -EPROTO); /* it has other rules */
	CHECK(sbx_attach_verify(from, nl, NULL) == 0);
	for (int i = 0; i < 3; i++) {
		CHECK(sbx_attach_change(from, both, nl, NULL) == 0);
		CHECK(sbx_attach_verify(both, nl, NULL) == 0);
		CHECK(sbx_attach_change(both, to, nl, NULL) == 0);
		CHECK(sbx_attach_verify(to, nl, NULL) == 0);
		CHECK(sbx_attach_verify(from, nl, NULL) == -EPROTO);
		CHECK(sbx_attach_change(to, from, nl, NULL) == 0);
	}
	CHECK(sbx_attach_pins_each("aa", nl, count_pin, n) == 0);
	CHECK(n[0] == 2 && n[1] == 1 && n[2] == 1);
	CHECK(sbx_attach_pins_each("bb", nl, count_pin, n) == -ENOENT);
	/* A batch for another generation is refused whole. */
	CHECK(sbx_attach_generation(nl, &generation) == 0);
	CHECK(sbx_attach_pin("aa", v, 2, nl, NULL) == 0);
	CHECK(sbx_attach_generation(nl, &again) == 0 && again != generation);
	CHECK(sbx_nft_batch_init_change(&b, from, both, generation, 1) == 0);
	CHECK(sbx_nft_batch_transact(&b, nl, &refusal) == -ERESTART);
	CHECK(sbx_attach_verify(from, nl, NULL) == 0);
	/* The rules of an unfinished change are removed, too. */
	CHECK(sbx_attach_change(from, both, nl, NULL) == 0);
	CHECK(sbx_attach_remove("aa", 2, 1001, nl, NULL) == 0 && !has_table());
}
NETNS_TEST(changing)

/* The watch tells of changes, ours too; only the ruleset that is right now verifies. */
static void watching(void)
{
	SBX_CLEANUP(sbx_nft_ruleset_freep) struct sbx_nft_ruleset *from = NULL;
	SBX_CLEANUP(sbx_nft_ruleset_freep) struct sbx_nft_ruleset *to = NULL;
	struct sbx_attach_input in = attach_case_find("everything")->in, next = next_input();
	int watch;

	in.id = next.id = "aa";
	in.cgroup_id = next.cgroup_id = 1001;
	nl = must(sbx_net_netlink_open(NETLINK_NETFILTER));
	watch = must(sbx_attach_watch_open());
	CHECK(sbx_attach_ruleset_new(&in, &from) == 0 && sbx_attach_ruleset_new(&next, &to) == 0);
	CHECK(sbx_attach_add(from, nl, NULL) == 0);
	CHECK(sbx_attach_watch_read(watch, from) == 1 && sbx_attach_watch_read(watch, from) == 0);
	CHECK(sbx_attach_change(from, to, nl, NULL) == 0);
	CHECK(sbx_attach_watch_read(watch, to) == 1);
	CHECK(sbx_attach_verify(to, nl, NULL) == 0);
	CHECK(add("bb", 2, 1002, NULL) == 0); /* next door */
	CHECK(sbx_attach_watch_read(watch, to) == 0);
	CHECK(sbx_attach_remove("bb", 2, 1002, nl, NULL) == 0);
	CHECK(sbx_attach_remove("aa", 2, 1001, nl, NULL) == 0 && !has_table());
	CHECK(sbx_attach_watch_read(watch, to) == 1 && sbx_attach_verify(to, nl, NULL) < 0);
}
NETNS_TEST(watching)

static void groups(void)
{
	uint16_t group[3] = { 0 };
	int fd[3];

	for (int i = 0; i < 3; i++)
		fd[i] = must(sbx_attach_nflog_open(42, 128, &group[i]));
	CHECK(group[0] >= 1024 && group[0] != group[1] && group[1] != group[2] &&
	      group[0] != group[2]);
	close(fd[0]); /* free again with its socket */
	must(sbx_attach_nflog_open(42, 128, &group[1]));
	CHECK(group[1] == group[0]);
}
NETNS_TEST(groups)

/* --- what is open --- */

struct remote {
	const char *text;
	enum sbx_proto proto;
	uint16_t port;
	unsigned n;
};

static void on_remote(void *userdata, const struct sbx_addr *addr, enum sbx_proto proto,
		      uint16_t port)
{
	struct remote *r = userdata;
	struct sbx_addr want;

	CHECK(sbx_addr_parse(r->text, &want) == 0);
	r->n += sbx_addr_equal(addr, &want) && proto == r->proto && port == r->port;
}

static unsigned n_open(const char *text, enum sbx_proto proto, uint16_t port)
{
	SBX_AUTO_CLOSE int fd = must(sbx_net_netlink_open(NETLINK_SOCK_DIAG));
	struct remote r = { text, proto, port, 0 };
	int error = sbx_net_open_remotes(fd, on_remote, &r);

	if (error == -ENOENT) {
		fprintf(stderr, "# this kernel has no inet_diag or udp_diag\n");
		_exit(77);
	}
	CHECK(error == 0);
	return r.n;
}

static void open_remotes(void)
{
	SBX_AUTO_CLOSE int rtnl = must(sbx_net_netlink_open(NETLINK_ROUTE));
	int ipv6, server, client, accepted, udp4, udp6;

	CHECK(sbx_net_setup_loopback(rtnl, &ipv6, NULL) == 0 && ipv6 == 1);
	CHECK(n_open("192.0.2.7", SBX_PROTO_TCP, 443) == 0);
	server = socket_for("0.0.0.0", SOCK_STREAM);
	CHECK(bind_to(server, "0.0.0.0", 443) == 0 && listen(server, 4) == 0);
	client = socket_for("192.0.2.7", SOCK_STREAM);
	CHECK(connect_to(client, "192.0.2.7", 443) == 0);
	accepted = must(accept(server, NULL, NULL));
	CHECK(n_open("192.0.2.7", SBX_PROTO_TCP, 443) == 1);
	CHECK(n_open("192.0.2.7", SBX_PROTO_TCP, 80) == 0 &&
	      n_open("192.0.2.7", SBX_PROTO_UDP, 443) == 0);
	udp4 = socket_for("192.0.2.8", SOCK_DGRAM);
	udp6 = socket_for("2001:db8::8", SOCK_DGRAM);
	CHECK(connect_to(udp4, "192.0.2.8", 443) == 0 && connect_to(udp6, "2001:db8::8", 443) == 0);
	CHECK(n_open("192.0.2.8", SBX_PROTO_UDP, 443) == 1);
	CHECK(n_open("2001:db8::8", SBX_PROTO_UDP, 443) == 1);
	close(accepted);
	close(client);
	close(udp4);
	CHECK(n_open("192.0.2.7", SBX_PROTO_TCP, 443) == 0 &&
	      n_open("192.0.2.8", SBX_PROTO_UDP, 443) == 0);
	/* By an IPv6 socket to an IPv4 address. */
	client = socket_for("::", SOCK_STREAM);
	CHECK(connect_to(client, "::ffff:192.0.2.7", 443) == 0);
	CHECK(n_open("192.0.2.7", SBX_PROTO_TCP, 443) == 1);
	close(udp6);
}
NETNS_TEST(open_remotes)

static void without_rights(void)
{
	struct sbx_err err = { 0 };
	uint16_t group;

	nl = must(sbx_net_netlink_open(NETLINK_NETFILTER));
	CHECK(add("aa", 2, 1001, NULL) == 0);
	/* rights in there are none over the network namespace */
	CHECK(unshare(CLONE_NEWUSER) == 0);
	close(nl);
	nl = must(sbx_net_netlink_open(NETLINK_NETFILTER));
	CHECK(add("bb", 2, 1002, &err) == -EPERM && strstr(err.msg, "CAP_NET_ADMIN"));
	CHECK(sbx_attach_remove("aa", 2, 1001, nl, NULL) == -EPERM);
	CHECK(sbx_attach_nflog_open(1, 128, &group) == -EPERM);
}
NETNS_TEST(without_rights)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_golden),
		cmocka_unit_test(test_golden_narrow),
		cmocka_unit_test(test_a_gate_only_refuses),
		cmocka_unit_test(test_narrow_input),
		cmocka_unit_test(test_same),
		cmocka_unit_test(test_change_batch),
		cmocka_unit_test(test_input),
		cmocka_unit_test(test_every_chain_ends_in_a_refusal),
		cmocka_unit_test(test_floors_do_not_overlap),
		cmocka_unit_test(test_add_list_remove),
		cmocka_unit_test(test_in_use),
		cmocka_unit_test(test_pins),
		cmocka_unit_test(test_room),
		cmocka_unit_test(test_racing),
		cmocka_unit_test(test_killed_anywhere),
		cmocka_unit_test(test_changing),
		cmocka_unit_test(test_watching),
		cmocka_unit_test(test_groups),
		cmocka_unit_test(test_open_remotes),
		cmocka_unit_test(test_without_rights),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
