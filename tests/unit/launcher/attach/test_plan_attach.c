/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The lists of attach cgroup beside the policy that they are made of, example by example. */
#include "tests/unit/attach_walk.h"

#include "policy/keys/profile_parse.h"
#include "tests/unit/netns.h"

/* --- a policy and its lists --- */

struct attached {
	struct sbx_profile *profile;
	struct sbx_system_policy *system;
	struct world w;
	struct sbx_attach_lists l;
};

static void attached_fini(struct attached *a)
{
	sbx_attach_lists_fini(&a->l);
	world_fini(&a->w);
	sbx_profile_free(a->profile);
	sbx_system_policy_free(a->system);
}

/* @network: the inside of the profile's network block. */
static struct attached attach_air(const char *network, const char *system_yaml, bool air_gap)
{
	const struct sbx_live live = { .air_gapped = air_gap };
	struct sbx_policy_input in = { .live = &live, .generation = 7 };
	struct attached a = { 0 };
	struct sbx_err err = { 0 };
	char yaml[2048];

	snprintf(yaml, sizeof(yaml), "network:\n  attach: cgroup\n%s", network);
	a.profile = good_profile(yaml);
	a.system = system_yaml ? good_system(system_yaml) : NULL;
	in.profile = a.profile;
	in.system = a.system;
	if (lists_of(&in, &a.w, &a.l, &err) != 0)
		fail_msg("%s", err.msg);
	check_input(&a.l);
	return a;
}

static struct attached attach(const char *network, const char *system_yaml)
{
	return attach_air(network, system_yaml, false);
}

enum { REFUSED = 0, PASSES = 1, STRICTER = 2 /* than the policy, which allows */ };

static void check(const struct attached *a, const char *text, enum sbx_proto proto, uint16_t port,
		  int want)
{
	struct sbx_addr addr = addr_of(text);
	bool policy = sbx_policy_decide_addr(a->w.p, &addr, proto, port).action == SBX_ALLOW;
	bool kernel = kernel_out(&a->l, &addr, proto, port);

	if (policy != (want != REFUSED) || kernel != (want == PASSES))
		fail_msg("%s %s %u: policy %d, kernel %d", text, sbx_proto_str(proto), port, policy,
			 kernel);
}

static void check_lo(const struct attached *a, const char *text, uint16_t port, bool want)
{
	struct sbx_addr addr = addr_of(text);

	if (kernel_lo(&a->l, &addr, TCP, port) != want)
		fail_msg("by lo: %s %u", text, port);
}

static void check_floor(const struct attached *a, const char *text, bool want)
{
	struct sbx_addr addr = addr_of(text);

	if (in_floors(&a->l, &addr) != want)
		fail_msg("%s is %sa floor", text, want ? "not " : "");
}

/* --- by example --- */

static void test_names_alone(void **state)
{
	SBX_CLEANUP(attached_fini)
	struct attached a = attach("  allow: [example.org]\n  deny: [192.0.2.0/24]\n", NULL);

	(void)state;
	assert_int_equal(a.l.n_cidrs, 0);
	assert_int_equal(a.l.n_admitted, 0);
	assert_false(a.l.all_destinations);
	assert_true(a.l.n_floors > 0);
	check(&a, "192.0.2.1", TCP, 443, REFUSED);
	check(&a, "8.8.8.8", TCP, 443, REFUSED);
}

static void test_specificity(void **state)
{
	SBX_CLEANUP(attached_fini)
	struct attached a =
		attach("  allow: [198.51.100.0/24, \"198.51.100.77:443,8000-8010\",\n"
		       "          203.0.113.9, \"2001:db8::/32\", \"192.0.2.0/24:53/udp\"]\n"
		       "  deny: [198.51.100.64/26, 203.0.113.9, \"2001:db8:1::/48\"]\n",
		       NULL);

	(void)state;
	check(&a, "198.51.100.1", TCP, 1, PASSES);
	check(&a, "198.51.100.1", UDP, 1, REFUSED);
	check(&a, "198.51.99.255", TCP, 1, REFUSED);
	check(&a, "198.51.100.64", TCP, 443, REFUSED);
	check(&a, "198.51.100.128", TCP, 443, PASSES);
	check(&a, "198.51.100.77", TCP, 443, PASSES);
	check(&a, "198.51.100.77", TCP, 444, REFUSED);
	check(&a, "198.51.100.77", TCP, 8010, PASSES);
	check(&a, "198.51.100.77", TCP, 8011, REFUSED);
	check(&a, "203.0.113.9", TCP, 443, REFUSED); /* a tie */
	check(&a, "2001:db8:2::1", TCP, 443, PASSES);
	check(&a, "2001:db8:1::1", TCP, 443, REFUSED);
	check(&a, "192.0.2.1", UDP, 53, PASSES);
	check(&a, "192.0.2.1", TCP, 53, REFUSED);
	/* .77 with two ports, the refusal around it, the network; UDP; IPv6, whose refusal is a
	 * floor. */
	assert_int_equal(a.l.n_cidrs, 2 + 1 + 1 + 1 + 1);
	check_floor(&a, "2001:db8:1::1", true);
	assert_int_equal(a.l.cidrs[0].cidr.prefix, 32);
	assert_int_equal(a.l.cidrs[2].cidr.prefix, 26);
	assert_int_equal(a.l.cidrs[3].cidr.prefix, 24);
	assert_int_equal(a.l.n_admitted, 0);
}

/* An entry for other ports decides nothing: the larger network decides. */
static void test_ports_fall_through(void **state)
{
	SBX_CLEANUP(attached_fini)
	struct attached a =
		attach("  allow: [\"198.51.100.0/24:1000-2000\", \"198.51.100.7:1500\"]\n"
		       "  deny: [\"198.51.100.7:1400-1600\", \"198.51.100.8:1500/tcp\"]\n",
		       NULL);

	(void)state;
	check(&a, "198.51.100.7", TCP, 1399, PASSES);
	check(&a, "198.51.100.7", TCP, 1400, REFUSED);
	check(&a, "198.51.100.7", TCP, 1500, REFUSED); /* a tie */
	check(&a, "198.51.100.7", TCP, 1600, REFUSED);
	check(&a, "198.51.100.7", TCP, 1601, PASSES);
	check(&a, "198.51.100.8", TCP, 1500, REFUSED);
	check(&a, "198.51.100.8", TCP, 1501, PASSES);
	assert_int_equal(a.l.n_cidrs, 3);
	/* The other way round in the smaller network: refused ports and passing ports touch. */
	SBX_CLEANUP(attached_fini)
	struct attached t =
		attach("  allow: [\"198.51.100.0/24:1-100\", \"198.51.100.7:101-200\"]\n"
		       "  deny: [\"198.51.100.7:1-100\"]\n",
		       NULL);
	check(&t, "198.51.100.7", TCP, 100, REFUSED);
	check(&t, "198.51.100.7", TCP, 101, PASSES);
	check(&t, "198.51.100.8", TCP, 100, PASSES);
	check(&t, "198.51.100.8", TCP, 101, REFUSED);
}

static void test_private(void **state)
{
	SBX_CLEANUP(attached_fini) struct attached plain = attach("  allow: [0.0.0.0/0]\n", NULL);
	SBX_CLEANUP(attached_fini)
	struct attached lifted = attach(
		"  allow: [{cidr: 0.0.0.0/0, private: true}]\n  deny: [10.1.0.0/16]\n", NULL);
	SBX_CLEANUP(attached_fini)
	struct attached one = attach(
		"  allow: [0.0.0.0/0, {cidr: 10.2.0.0/16, ports: 5432, private: true}]\n", NULL);

	(void)state;
	check(&plain, "8.8.8.8", TCP, 443, PASSES);
	check(&plain, "10.0.0.1", TCP, 443, REFUSED);
	check(&plain, "192.168.1.1", TCP, 443, REFUSED);
	check(&lifted, "8.8.8.8", TCP, 443, PASSES);
	check(&lifted, "10.0.0.1", TCP, 443, PASSES);
	check(&lifted, "10.1.0.1", TCP, 443, REFUSED);
	check(&lifted, "192.168.1.1", TCP, 443, PASSES);
	check(&lifted, "169.254.1.1", TCP, 443, REFUSED);
	check(&lifted, "169.254.169.254", TCP, 80, REFUSED);
	check(&lifted, "100.100.100.200", TCP, 80, REFUSED);
	check(&lifted, "100.100.100.201", TCP, 80, PASSES);
	check(&lifted, "127.0.0.1", TCP, 80, REFUSED);
	check(&lifted, "224.0.0.1", TCP, 80, REFUSED);
	check(&lifted, "0.0.0.1", TCP, 80, REFUSED);
	check(&lifted, "255.255.255.255", TCP, 80, REFUSED);
	check(&one, "10.2.0.1", TCP, 5432, PASSES);
	check(&one, "10.2.0.1", TCP, 5433, REFUSED);
	check(&one, "10.3.0.1", TCP, 5432, REFUSED);
	check_lo(&lifted, "10.0.0.1", 443, false); /* nobody admits it */
}

static void test_full(void **state)
{
	SBX_CLEANUP(attached_fini)
	struct attached bare = attach("  mode: full\n", NULL);
	SBX_CLEANUP(attached_fini)
	struct attached a =
		attach("  mode: full\n  deny: [\"198.51.100.0/24:25\", 203.0.113.0/24]\n"
		       "  allow: [203.0.113.9]\n",
		       NULL);

	(void)state;
	assert_true(bare.l.all_destinations);
	check(&bare, "8.8.8.8", TCP, 1, PASSES);
	check(&bare, "8.8.8.8", UDP, 65535, PASSES);
	check(&bare, "2606:4700::1111", TCP, 443, PASSES);
	check(&bare, "10.0.0.1", TCP, 443, REFUSED);
	check(&bare, "fd00::1", TCP, 443, REFUSED);
	check(&bare, "fe80::1", TCP, 443, REFUSED);
	check(&bare, "4000::1", TCP, 443, REFUSED);
	check(&bare, "127.0.0.1", TCP, 443, REFUSED);
	check(&bare, "::1", TCP, 443, REFUSED);
	check(&bare, "2001:2::1", TCP, 443, REFUSED);
	/* Each packet walks these: loopback; 64:ff9b::/96, 2001::/23, 2000::/3, all other IPv6. */
	assert_int_equal(bare.l.n_cidrs, 1 + 2 + 1 + 2 + 1);
	check(&a, "198.51.100.1", TCP, 25, REFUSED);
	check(&a, "198.51.100.1", UDP, 25, REFUSED);
	check(&a, "198.51.100.1", TCP, 26, PASSES);
	check(&a, "203.0.113.1", TCP, 443, REFUSED);
	check(&a, "203.0.113.9", TCP, 443, PASSES);
	check(&a, "203.0.113.9", UDP, 443, REFUSED);
	/* A network that is denied on all ports is a floor, unless a smaller network in it is
	 * allowed. */
	check_floor(&a, "203.0.113.1", false);
	SBX_CLEANUP(attached_fini)
	struct attached d =
		attach("  mode: full\n  deny: [198.51.100.0/24, \"203.0.113.0/24:1-65534\"]\n"
		       "  allow: [198.51.100.0/24]\n",
		       NULL);
	check(&d, "198.51.100.1", TCP, 443, REFUSED);
	check(&d, "64:ff9b::198.51.100.1", TCP, 443, REFUSED);
	check_floor(&d, "198.51.100.1", true);
	check_floor(&d, "64:ff9b::198.51.100.1", true);
	check(&d, "203.0.113.1", TCP, 65534, REFUSED);
	check(&d, "203.0.113.1", TCP, 65535, PASSES);
	check_floor(&d, "203.0.113.1", false);
}

static void test_no_exit(void **state)
{
	static const char *const nets[] = { "8.8.8.8", "198.51.100.7", "2606:4700::1111",
					    "10.0.0.1" };
	SBX_CLEANUP(attached_fini)
	struct attached fetch =
		attach("  allow: [198.51.100.0/24]\n  loopback_ports: [8080]\n", NULL);
	SBX_CLEANUP(attached_fini)
	struct attached gap = attach_air("  allow: [198.51.100.0/24]\n  loopback_ports: [8080]\n",
					 "admit: [10.0.0.0/8]", true);
	SBX_CLEANUP(attached_fini)
	struct attached full_gap = attach_air("  mode: full\n", "admit: [10.0.0.0/8]", true);
	SBX_CLEANUP(attached_fini)
	struct attached offline = attach("  mode: offline\n  allow: [198.51.100.0/24]\n"
					 "  loopback_ports: [8080]\n",
					 NULL);
	const struct attached *closed[] = { &gap, &full_gap, &offline };

	(void)state;
	check(&fetch, "198.51.100.7", TCP, 443, PASSES);
	check_lo(&fetch, "127.0.0.1", 8080, true);
	for (size_t i = 0; i < SBX_N_ELEMENTS(closed); i++) {
		assert_int_equal(closed[i]->l.n_cidrs + closed[i]->l.n_admitted, 0);
		assert_false(closed[i]->l.all_destinations);
		for (size_t k = 0; k < SBX_N_ELEMENTS(nets); k++)
			check(closed[i], nets[k], TCP, 443, REFUSED);
	}
	check_lo(&gap, "127.0.0.1", 8080, false);
	check_lo(&offline, "127.0.0.1", 8080, true); /* the profile says both */
}

static void test_admit(void **state)
{
	const char *system = "admit: [\"10.1.0.0/16:5000-6000\", 10.2.0.0/16, 169.254.0.0/16,\n"
			     "        203.0.113.0/24, \"fd00::/8\"]\n";
	SBX_CLEANUP(attached_fini) struct attached none = attach("  allow: [a.example]\n", system);
	SBX_CLEANUP(attached_fini)
	struct attached a =
		attach("  allow: [\"10.0.0.0/8:5432\", 203.0.113.0/25, 198.51.100.0/24]\n"
		       "  deny: [10.1.9.0/24]\n",
		       system);
	SBX_CLEANUP(attached_fini) struct attached full = attach("  mode: full\n", system);

	(void)state;
	check(&none, "10.2.0.1", TCP, 443, REFUSED);
	check_lo(&none, "10.2.0.1", 443, false);
	check(&a, "10.1.0.1", TCP, 5432, PASSES);
	check(&a, "10.1.0.1", TCP, 5433, REFUSED);
	check(&a, "10.1.9.1", TCP, 5432, REFUSED);
	check(&a, "10.3.0.1", TCP, 5432, REFUSED);
	check_lo(&a, "10.1.0.1", 5432, true);
	check_lo(&a, "10.1.0.1", 5433, false);
	check_lo(&a, "10.1.9.1", 5432, false);
	check_lo(&a, "10.2.0.1", 5432, true);
	check_lo(&a, "10.2.0.1", 443, false);
	check(&a, "198.51.100.1", TCP, 443, PASSES);
	check_lo(&a, "198.51.100.1", 443, false); /* allowed, not admitted: not this host's */
	check_lo(&a, "203.0.113.1", 443, true);
	check(&a, "203.0.113.200", TCP, 443, REFUSED);
	check_lo(&a, "203.0.113.200", 443, false); /* admitted, not allowed */
	check(&full, "10.2.0.1", UDP, 1, PASSES);
	check(&full, "10.1.0.1", TCP, 4999, REFUSED);
	check(&full, "10.1.0.1", TCP, 5000, PASSES);
	check(&full, "169.254.1.1", TCP, 443, PASSES);
	check(&full, "169.254.169.254", TCP, 80, REFUSED);
	check(&full, "fd00::1", TCP, 443, PASSES);
	check(&full, "fd00:ec2::254", TCP, 80, REFUSED);
	check_lo(&full, "127.0.0.1", 443, false);
	check_lo(&full, "169.254.169.254", 80, false);
}

/* A network that is both allowed and admitted is listed once. In an admitted network only the
 * denied ports are refused. */
static void test_admit_and_ports(void **state)
{
	SBX_CLEANUP(attached_fini)
	struct attached once = attach("  allow: [10.0.0.0/8]\n", "admit: [10.0.0.0/8]\n");
	SBX_CLEANUP(attached_fini)
	struct attached a = attach("  allow: [198.51.100.0/24]\n"
				   "  deny: [\"198.51.100.7:1-10,21-30\"]\n",
				   "admit: [\"198.51.100.0/24:1-10,21-30\"]\n");

	(void)state;
	assert_int_equal(once.l.n_admitted, 1);
	assert_int_equal(once.l.n_cidrs, 0);
	check(&a, "198.51.100.7", TCP, 10, REFUSED);
	check(&a, "198.51.100.7", TCP, 11, PASSES);
	check(&a, "198.51.100.7", TCP, 20, PASSES);
	check(&a, "198.51.100.7", TCP, 21, REFUSED);
	check(&a, "198.51.100.8", TCP, 21, PASSES);
	check_lo(&a, "198.51.100.8", 21, true);
	check_lo(&a, "198.51.100.8", 20, false);
	check_lo(&a, "198.51.100.7", 21, false);
}

static void test_embedded(void **state)
{
	SBX_CLEANUP(attached_fini)
	struct attached a =
		attach("  allow: [\"64:ff9b::/96\", \"2002::/16\", \"64:ff9b:1::/48\",\n"
		       "          \"2001::/16\", 198.51.100.7]\n"
		       "  deny: [198.51.100.0/24, \"203.0.113.0/24:25\"]\n",
		       "floors: [192.0.2.0/24]\nadmit: [\"64:ff9b::a01:0/112\"]\n");
	SBX_CLEANUP(attached_fini)
	struct attached p = attach("  allow: [{cidr: \"64:ff9b::/96\", private: true}]\n", NULL);

	(void)state;
	check(&a, "64:ff9b::8.8.8.8", TCP, 443, PASSES);
	check(&a, "2002:808:808::1", TCP, 443, PASSES);
	check(&a, "64:ff9b::10.0.0.1", TCP, 443, REFUSED);
	check(&a, "64:ff9b::10.1.0.1", TCP, 443, PASSES); /* admitted */
	check(&a, "64:ff9b::127.0.0.1", TCP, 443, REFUSED);
	check(&a, "64:ff9b::169.254.169.254", TCP, 80, REFUSED);
	check(&a, "2002:a9fe:a9fe::", TCP, 80, REFUSED);
	check(&a, "2002:a00:1::1", TCP, 443, REFUSED);
	check(&a, "64:ff9b::198.51.100.1", TCP, 443, REFUSED);
	check(&a, "64:ff9b::198.51.100.7", TCP, 443,
	      PASSES); /* the smaller network lifts the deny */
	check(&a, "2002:c633:6401::1", TCP, 443, REFUSED);
	check(&a, "64:ff9b::203.0.113.1", TCP, 25, REFUSED);
	check(&a, "64:ff9b::203.0.113.1", TCP, 26, PASSES);
	check(&a, "64:ff9b::192.0.2.1", TCP, 443, REFUSED);
	check(&a, "2002:c000:201::", TCP, 443, REFUSED);
	check_floor(&a, "64:ff9b::192.0.2.1", true);
	check_floor(&a, "64:ff9b::169.254.169.254", true);
	check(&a, "64:ff9b:1::8.8.8.8", TCP, 443, STRICTER);
	check(&a, "2001:0:808:808::f7f7:f7f7", TCP, 443, STRICTER);
	check(&a, "::ffff:198.51.100.7", TCP, 443, STRICTER);
	check(&a, "::ffff:8.8.8.8", TCP, 443, REFUSED);
	check(&p, "64:ff9b::10.0.0.1", TCP, 443, PASSES);
	check(&p, "64:ff9b::169.254.0.1", TCP, 443, REFUSED);
	SBX_CLEANUP(attached_fini) struct attached full = attach("  mode: full\n", NULL);
	check(&full, "::ffff:8.8.8.8", TCP, 443, STRICTER);
	check_floor(&full, "::ffff:8.8.8.8", true);
	check(&full, "8.8.8.8", TCP, 443, PASSES);
	check(&full, "64:ff9b:1::8.8.8.8", TCP, 443, STRICTER);
	check(&full, "64:ff9b::8.8.8.8", TCP, 443, PASSES);
}

/* A floor for some ports leaves the other ports and pinned addresses alone. */
static void test_floors(void **state)
{
	SBX_CLEANUP(attached_fini)
	struct attached a =
		attach("  mode: full\n", "floors: [\"0.0.0.0/0:25\", \"198.51.100.0/24:53/udp\",\n"
					 "         203.0.113.0/24]\n");

	(void)state;
	check(&a, "8.8.8.8", TCP, 25, REFUSED);
	check(&a, "8.8.8.8", TCP, 26, PASSES);
	check(&a, "64:ff9b::8.8.8.8", TCP, 25, REFUSED);
	check(&a, "64:ff9b::8.8.8.8", TCP, 26, PASSES);
	check(&a, "198.51.100.1", UDP, 53, REFUSED);
	check(&a, "198.51.100.1", TCP, 53, PASSES);
	check(&a, "203.0.113.1", TCP, 443, REFUSED);
	check_floor(&a, "8.8.8.8", false);
	check_floor(&a, "203.0.113.1", true);
	check_floor(&a, "2002:cb00:7101::9", true);
	check_floor(&a, "169.254.169.254", true);
	check_floor(&a, "169.254.169.253", true);
	check_floor(&a, "10.0.0.1", true);
	check_floor(&a, "127.0.0.1", false); /* has its own rules */
	check_floor(&a, "::1", false);
	check_floor(&a, "64:ff9b::127.0.0.1", true);
	/* The built-in floors hold with `shipped: drop` too, and without a system policy. */
	SBX_CLEANUP(attached_fini) struct attached d = attach("", "shipped: drop\n");
	check_floor(&d, "168.63.129.16", true);
	check_floor(&d, "fd00:ec2::254", true);
	check_floor(&d, "fd00:ec2::23", true);
}

/* Classes that names may be pinned to are no floors; the others are. */
static void test_floors_leave_pins(void **state)
{
	SBX_CLEANUP(attached_fini) struct attached none = attach("  allow: [a.example]\n", NULL);
	SBX_CLEANUP(attached_fini)
	struct attached host = attach("  allow: [{host: a.example, private: true}]\n", NULL);
	SBX_CLEANUP(attached_fini)
	struct attached admit = attach("  allow: [a.example]\n", "admit: [10.1.0.0/16]\n");

	(void)state;
	check_floor(&none, "10.1.0.1", true);
	check_floor(&host, "10.1.0.1", false);
	check_floor(&host, "fd00::1", false);
	check_floor(&host, "64:ff9b::10.1.0.1", false);
	check_floor(&host, "169.254.1.1", true);
	check_floor(&host, "100.100.100.200", true);
	check_floor(&admit, "10.1.0.1", false);
	check_floor(&admit, "192.168.0.1", true);
	/* Neither entry allows anything by itself. */
	check(&host, "10.1.0.1", TCP, 443, REFUSED);
	check(&admit, "10.1.0.1", TCP, 443, REFUSED);
	check_lo(&admit, "10.1.0.1", 443, false);
}

static void test_loopback(void **state)
{
	const char *ports = "  loopback_ports: [8080, 5432]\n";
	SBX_CLEANUP(attached_fini) struct attached a = attach(ports, NULL);
	SBX_CLEANUP(attached_fini)
	struct attached one = attach(ports, "floors: [\"127.0.0.1:5432\"]\n");
	SBX_CLEANUP(attached_fini) struct attached host = attach(ports, "floors: [127.0.0.1]\n");
	SBX_CLEANUP(attached_fini) struct attached all = attach(ports, "floors: [0.0.0.0/0]\n");
	SBX_CLEANUP(attached_fini) struct attached six = attach(ports, "floors: [\"::/0\"]\n");

	(void)state;
	assert_int_equal(a.l.n_loopback_ports, 2);
	check_lo(&a, "127.0.0.1", 8080, true);
	check_lo(&a, "127.0.0.1", 8081, false);
	assert_int_equal(one.l.n_loopback_ports, 1);
	assert_int_equal(one.l.loopback_ports[0], 8080);
	assert_int_equal(host.l.n_loopback_ports, 0);
	assert_int_equal(all.l.n_loopback_ports, 0);
	assert_int_equal(six.l.n_loopback_ports, 0);
	/* The stub, which is there, is not cut off. */
	for (const char *const *s =
		     (const char *const[]){ "127.0.0.1", "127.255.255.255", "::1", NULL };
	     *s; s++) {
		check_floor(&host, *s, false);
		check_floor(&all, *s, false);
		check_floor(&six, *s, false);
	}
	check_floor(&all, "126.255.255.255", true);
	check_floor(&all, "128.0.0.0", true);
	check_floor(&all, "255.255.255.255", true);
	check_floor(&six, "::2", true);
	check_floor(&six, "ffff::", true);
	check_floor(&six, "::", true);
}

/* --- limits --- */

/* @n networks 9.0.0.0/24, 9.0.1.0/24, ... with @ports behind them. */
static void add_networks(struct sbx_net_list *list, unsigned n, unsigned first_byte,
			 const char *ports)
{
	char text[64];

	for (unsigned i = 0; i < n; i++) {
		snprintf(text, sizeof(text), "%u.%u.%u.0/24%s", first_byte, i / 250, i % 250,
			 ports);
		assert_int_equal(sbx_net_list_add_pattern(list, text, "test", NULL), 0);
	}
}

struct many {
	bool full;
	unsigned n_allow, n_deny, n_floors, n_admit;
	const char *ports; /* of all; NULL: every */
	const char *said;  /* NULL: there is room */
};

static void check_many(const struct many *m)
{
	SBX_CLEANUP(sbx_profile_freep)
	struct sbx_profile *p = good_profile(m->full ? "network: {attach: cgroup, mode: full}\n"
						     : "network: {attach: cgroup}\n");
	SBX_CLEANUP(sbx_system_policy_freep) struct sbx_system_policy *s = good_system("");
	SBX_CLEANUP(sbx_attach_lists_fini) struct sbx_attach_lists l = { 0 };
	SBX_CLEANUP(world_fini) struct world w = { 0 };
	const struct sbx_policy_input in = { .profile = p, .system = s, .generation = 7 };
	const char *ports = m->ports ? m->ports : "";
	struct sbx_err err = { 0 };

	add_networks(&p->network.allow, m->n_allow, 8, ports);
	add_networks(&p->network.deny, m->n_deny, 9, ports);
	add_networks(&s->floors, m->n_floors, 9, ports);
	add_networks(&s->admit, m->n_admit, 9, ports);
	if (lists_of(&in, &w, &l, &err) == 0)
		check_input(&l);
	else
		assert_ptr_equal(l.floors, NULL);
	if (m->said ? !strstr(err.msg, m->said) : err.msg[0] != '\0')
		fail_msg("expected '%s', not '%s'", m->said ? m->said : "", err.msg);
}

static void test_limits(void **state)
{
	static const struct many cases[] = {
		{ .n_allow = 256 },
		{ .n_allow = 257,
		  .said = "network.allow: 257 networks, and attach cgroup has room for 256: write "
			  "fewer "
			  "and wider networks and port ranges, or use attach netns" },
		{ .n_allow = 128, .ports = ":1,3" },
		{ .n_allow = 129,
		  .ports = ":1,3",
		  .said = "network.allow and network.deny: 258 rules" },
		{ .full = true, .n_deny = 120 },
		{ .full = true, .n_deny = 200, .said = "network.allow and network.deny: " },
		{ .full = true,
		  .n_deny = 257,
		  .said = "network.allow and network.deny: 257 networks" },
		/* An address that nothing leads to needs no rule. */
		{ .n_allow = 1, .n_deny = 5000 },
		{ .n_deny = 5000 },
		{ .n_allow = 1, .n_admit = 5000 },
		{ .n_allow = 1, .n_floors = 5000, .ports = ":25" },
		{ .n_floors = 50 },
		{ .n_floors = 86, .said = "floors of the system policy: " },
		{ .full = true, .n_deny = 80, .ports = ":25/tcp" },
		{ .full = true, .n_floors = 80, .ports = ":25/tcp" },
		{ .full = true,
		  .n_floors = 257,
		  .ports = ":25",
		  .said = "floors of the system policy: 257 networks" },
		{ .full = true, .n_admit = 128 },
		{ .full = true, .n_admit = 129, .said = "admit of the system policy: 258 rules" },
		{ .full = true,
		  .n_admit = 257,
		  .said = "admit of the system policy: 257 networks" },
	};

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++)
		check_many(&cases[i]);
}

/* --- the kernel takes them --- */

static void taken(void)
{
	static const char *const networks[] = {
		"",
		"  mode: full\n  deny: [192.0.2.0/25, 192.0.2.128/25, \"198.51.100.0/24:25\"]\n",
		("  allow: [{cidr: 0.0.0.0/0, private: true}, \"::/0\"]\n"
		 "  deny: [\"10.0.0.0/9:1-99/udp\"]\n"),
	};
	static const char *const systems[] = { "", "admit: [10.0.0.0/8]\n",
					       "floors: [0.0.0.0/0, \"::/0\"]\n" };
	int nl = must(sbx_net_netlink_open(NETLINK_NETFILTER));

	for (size_t i = 0; i < SBX_N_ELEMENTS(networks) * SBX_N_ELEMENTS(systems); i++) {
		SBX_CLEANUP(attached_fini)
		struct attached a = attach(networks[i % 3], systems[i / 3]);
		struct sbx_attach_input in = input_of(&a.l);
		struct sbx_nft_ruleset *rs = NULL;
		struct sbx_err err = { 0 };
		int r;

		in.cgroup_id = 1001;
		CHECK(sbx_attach_ruleset_new(&in, &rs) == 0);
		r = sbx_attach_add(rs, nl, &err);
		if (r < 0)
			fprintf(stderr, "# %s\n", err.msg);
		CHECK(r == 0);
		CHECK(sbx_attach_remove(in.id, in.level, in.cgroup_id, nl, NULL) == 0);
		sbx_nft_ruleset_free(rs);
	}
}
NETNS_TEST(taken)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names_alone),
		cmocka_unit_test(test_specificity),
		cmocka_unit_test(test_ports_fall_through),
		cmocka_unit_test(test_private),
		cmocka_unit_test(test_full),
		cmocka_unit_test(test_no_exit),
		cmocka_unit_test(test_admit),
		cmocka_unit_test(test_admit_and_ports),
		cmocka_unit_test(test_embedded),
		cmocka_unit_test(test_floors),
		cmocka_unit_test(test_floors_leave_pins),
		cmocka_unit_test(test_loopback),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_taken),
	};

	return cmocka_run_group_tests_name("plan_attach", tests, NULL, NULL);
}
