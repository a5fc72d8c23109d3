/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Profile, system policy, flags, ceilings, network: the plan as a whole. */
#include "tests/unit/plan_world.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "launcher/plan/plan_internal.h"
#include "launcher/plan/plan_limits.h"
#include "launcher/plan/planner.h"
#include "sys/fs/path_normalise.h"

static void test_profile_search(void **state)
{
	struct plan_world *w = *state;

	plan_world_must(w, "--profile", "none", "--", "true");
	assert_non_null(strstr(w->plan->profile_file, "/profiles/none.yaml"));
	/* The user's before the shipped one, the host's before both. */
	plan_world_write(w, "user-config/profiles/none.yaml", "name: none\nnetwork: {mode: full}\n",
			 0644);
	plan_world_must(w, "--profile", "none", "--", "true");
	assert_int_equal(w->plan->profile->network.mode, SBX_MODE_FULL);
	plan_world_write(w, "config/profiles/none.yaml", "name: none\nnetwork: {mode: fetch}\n",
			 0644);
	plan_world_must(w, "--profile", "none", "--", "true");
	assert_int_equal(w->plan->profile->network.mode, SBX_MODE_FETCH);
	/* A file. */
	plan_world_write(w, "home/project/p.yaml", "name: mine\nextends: none\n", 0644);
	plan_world_must(w, "--profile", plan_world_path(w, "home/project/p.yaml"), "--", "true");
	assert_string_equal(w->plan->profile->name, "mine");
}

static void test_profile_errors(void **state)
{
	struct plan_world *w = *state;

	plan_world_refused(w, 125, "did you mean 'notebook'", "--profile", "notebok", "--", "true");
	plan_world_refused(w, 125, "there is no profile 'zzz'", "--profile", "zzz", "--", "true");
	plan_world_refused(w, 125, "/profiles, ", "--profile", "zzz", "--", "true");
	plan_world_refused(w, 125, "there is no such profile", "--profile", "/nowhere/p.yaml", "--",
			   "true");
	plan_world_refused(w, 125, "--profile", "--profile", "..", "--", "true");
	plan_world_refused(w, 125, "not a regular file", "--profile", w->dir, "--", "true");
	plan_world_refused(w, 125, "--limit wall_time: ", "--limit", "wall_time=30", "--", "true");
	plan_world_write(w, "config/profiles/bad.yaml", "name: bad\nnetwork:\n  alow: [x.org]\n",
			 0644);
	plan_world_refused(w, 125, "did you mean 'allow'", "--profile", "bad", "--", "true");
	plan_world_said(w, "bad.yaml:3:");
	plan_world_write(w, "config/profiles/e.yaml", "name: e\nextends: nothing\n", 0644);
	plan_world_refused(w, 125, "nothing", "--profile", "e", "--", "true");
	plan_world_write(w, "config/profiles/e.yaml", "name: e\nextends: ../../etc/passwd\n", 0644);
	plan_world_refused(w, 125, "e.yaml", "--profile", "e", "--", "true");
}

static void write_networks(struct plan_world *w, unsigned n)
{
	char text[16384] = "name: nets\nnetwork:\n  allow:\n";

	for (unsigned i = 0; i < n; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "    - 198.%u.%u.0/24\n",
			 51 + i / 250, i % 250);
	plan_world_write(w, "config/profiles/nets.yaml", text, 0644);
}

/* The packet filter has room for so many; the stage would fail with more. */
static void test_too_many_networks(void **state)
{
	struct plan_world *w = *state;

	write_networks(w, SBX_NFT_CIDRS_MAX);
	plan_world_must(w, "--profile", "nets", "--", "true");
	assert_int_equal(w->plan->nft.n_cidrs, SBX_NFT_CIDRS_MAX);
	write_networks(w, SBX_NFT_CIDRS_MAX + 1);
	plan_world_refused(w, 125, "257 networks", "--profile", "nets", "--", "true");
	plan_world_must(w, "--profile", "nets", "--air-gap", "--", "true");
}

static void test_system_policy(void **state)
{
	struct plan_world *w = *state;

	plan_world_must(w, "--", "true");
	assert_null(w->plan->system_file);
	plan_world_write(w, "config/system.yaml", "max: {pids: 100}\n", 0644);
	if (plan_world_plan(w, "--", "true", NULL) == 0)
		assert_non_null(w->plan->system_file);
	plan_world_write(w, "config/system.yaml", "nonsense: 1\n", 0644);
	plan_world_refused(w, 125, "system.yaml:1:", "--", "true");
	/* A file that others can write is refused. */
	plan_world_write(w, "config/system.yaml", "", 0666);
	plan_world_refused(w, 125, "chmod", "--", "true");
	/* A system.yaml that is no file is an error: it does not count as absent. */
	unlink(plan_world_path(w, "config/system.yaml"));
	plan_world_mkdir(w, "config/system.yaml");
	plan_world_refused(w, 125, "system.yaml", "--", "true");
	rmdir(plan_world_path(w, "config/system.yaml"));
	plan_world_link(w, "config/system.yaml", "system.yaml"); /* ELOOP is not "no such file" */
	plan_world_refused(w, 125, "cannot be read", "--", "true");
}

static void test_flags(void **state)
{
	struct plan_world *w = *state;
	struct sbx_addr addr;

	plan_world_must(w, "--profile", "install", "--allow", "extra.example:8443", "--deny",
			"pypi.org", "--", "true");
	assert_int_equal(
		sbx_policy_decide_name(w->plan->policy, "extra.example", SBX_PROTO_TCP, 8443)
			.action,
		SBX_ALLOW);
	assert_int_equal(
		sbx_policy_decide_name(w->plan->policy, "extra.example", SBX_PROTO_TCP, 443).action,
		SBX_DENY);
	assert_int_equal(
		sbx_policy_decide_name(w->plan->policy, "pypi.org", SBX_PROTO_TCP, 443).action,
		SBX_DENY);
	assert_int_equal(sbx_policy_decide_name(w->plan->policy, "files.pythonhosted.org",
						SBX_PROTO_TCP, 443)
				 .action,
			 SBX_ALLOW);
	plan_world_must(w, "--allow", "192.0.2.0/24:5432", "--", "true");
	assert_int_equal(w->plan->nft.n_cidrs, 1);
	assert_int_equal(w->plan->nft.cidrs[0].port_first, 5432);
	assert_int_equal(sbx_addr_parse("192.0.2.9", &addr), 0);
	assert_int_equal(sbx_policy_decide_addr(w->plan->policy, &addr, SBX_PROTO_TCP, 5432).action,
			 SBX_ALLOW);
	/* All that is wrong is said at once. */
	plan_world_refused(w, 125, "--allow", "--allow", "no spaces.org", "--deny", "bad..name",
			   "--limit", "tmpp=1M", "--", "true");
	assert_int_equal(w->errs.n, 3);
	plan_world_said(w, "--deny");
	plan_world_said(w, "tmpp");
	plan_world_must(w, "--profile", "none", "--allow", "x.example", "--", "true");
	assert_true(plan_world_noted(w, "offline"));
}

/* The machine's where system.yaml sets none. */
static void test_ceilings(void **state)
{
	struct plan_world *w = *state;

	plan_world_must(w, "--limit", "memory=2G", "--", "true");
	w->facts.machine_memory_bytes = 1ull << 30;
	plan_world_refused(w, 125, "memory", "--limit", "memory=2G", "--", "true");
	plan_world_must(w, "--limit", "memory=512M", "--", "true");
	w->facts.machine_cpus_milli = 2000;
	plan_world_refused(w, 125, "cpus", "--limit", "cpus=2.5", "--", "true");
	plan_world_must(w, "--limit", "cpus=2", "--", "true");
}

/* A profile has of seccomp.allow what the system policy lets it ask for: ptrace, where that says
 * nothing. */
static void test_seccomp(void **state)
{
	struct plan_world *w = *state;

	plan_world_must(w, "--", "true");
	assert_int_equal(w->plan->seccomp_lifts, 0);
	plan_world_write(w, "config/profiles/s.yaml", "name: s\nseccomp: {allow: [ptrace]}\n",
			 0644);
	plan_world_must(w, "--profile", "s", "--", "true");
	assert_int_equal(w->plan->seccomp_lifts, SBX_SECCOMP_BIT(SBX_SECCOMP_LIFT_PTRACE));
	plan_world_write(w, "config/system.yaml", "seccomp: {allow: []}\n", 0644);
	plan_world_refused(w, 125, "seccomp.allow: 'ptrace' is not among", "--profile", "s", "--",
			   "true");
	plan_world_said(w, "config/system.yaml");
	plan_world_write(w, "config/system.yaml", "seccomp: {allow: [ptrace]}\n", 0644);
	plan_world_must(w, "--profile", "s", "--", "true");
	unlink(plan_world_path(w, "config/system.yaml"));

	plan_world_write(w, "config/profiles/s2.yaml",
			 "name: s2\nextends: s\nseccomp: {allow: [move_pages]}\n", 0644);
	plan_world_refused(w, 125, "'move_pages' is not among", "--profile", "s2", "--", "true");
	plan_world_write(w, "config/system.yaml", "seccomp: {allow: [move_pages, ptrace]}\n", 0644);
	plan_world_must(w, "--profile", "s2", "--", "true");
	assert_int_equal(w->plan->seccomp_lifts, SBX_SECCOMP_BIT(SBX_SECCOMP_LIFT_PTRACE) |
			 SBX_SECCOMP_BIT(SBX_SECCOMP_LIFT_MOVE_PAGES));
	plan_world_write(w, "config/profiles/s.yaml", "name: s\nseccomp: {allow: [ptrac]}\n", 0644);
	plan_world_refused(w, 125, "did you mean 'ptrace'", "--profile", "s", "--", "true");
	plan_world_write(w, "config/profiles/s.yaml", "name: s\nseccomp: {allow: [mount]}\n", 0644);
	plan_world_refused(w, 125, "'mount' can never be allowed: the view of files", "--profile",
			   "s", "--", "true");
}

static void test_attach(void **state)
{
	struct plan_world *w = *state;

	plan_world_write(
		w, "config/profiles/u.yaml",
		"name: u\nnetwork: {attach: cgroup, upstream_proxy: \"http://p.example:1\"}\n",
		0644);
	plan_world_refused(w, 125, "network.upstream_proxy", "--profile", "u", "--", "true");
	plan_world_write(
		w, "config/profiles/u.yaml",
		"name: u\nnetwork: {attach: netns, upstream_proxy: \"http://p.example:1\"}\n",
		0644);
	plan_world_must(w, "--profile", "u", "--", "true");
	plan_world_write(w, "config/profiles/u.yaml", "name: u\nnetwork: {attach: cgroup}\n", 0644);
	plan_world_refused(w, 125, "network.attach", "--profile", "u", "--", "true");
}

static void test_upstream_proxy(void **state)
{
	static const struct {
		const char *url, *admit, *says; /* NULL: it is planned */
	} cases[] = {
		{ "http://proxy.example:3128", "", NULL },
		{ "http://203.0.113.7:3128", "", NULL },
		{ "http://10.0.0.7:3128", "", "10.0.0.7:3128 is a private address" },
		{ "http://10.0.0.7:3128", "", "add '10.0.0.7:3128' under admit in" },
		{ "http://10.0.0.7:3128", "10.0.0.0/8", NULL },
		{ "http://10.0.0.7:3128", "\"10.0.0.7:3128\"", NULL },
		{ "http://10.0.0.7:3128", "\"10.0.0.7:3128/udp\"", "a private address" },
		{ "http://10.0.0.7:3128", "\"10.0.0.7:3127\"", "a private address" },
		{ "http://127.0.0.1:3128", "", "127.0.0.1:3128 is a loopback address" },
		{ "http://127.0.0.1:3128", "\"127.0.0.0/8:3128\"", NULL },
		{ "http://localhost:3128", "", "127.0.0.1:3128 is a loopback address" },
		{ "http://a.localhost:3128", "", "127.0.0.1:3128 is a loopback address" },
		{ "http://localhost:3128", "\"127.0.0.1:3128\"", NULL },
		{ "http://localhost.example:3128", "", NULL },
		{ "http://notlocalhost:3128", "", NULL },
		{ "http://[fd00::7]:3128", "", "add '[fd00::7]:3128' under admit in" },
		{ "http://[::ffff:10.0.0.7]:3128", "", "a private address" },
		{ "http://169.254.169.254:80", "0.0.0.0/0",
		  "no proxy is used at 169.254.169.254:80 (metadata)" },
		{ "http://0.0.0.0:80", "0.0.0.0/0",
		  "no proxy is used at 0.0.0.0:80 (unspecified)" },
		{ "http://203.0.113.7:3128", "]\nfloors: [203.0.113.0/24",
		  "(a floor of the system policy)" },
	};
	struct plan_world *w = *state;
	char text[300];

	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++) {
		snprintf(text, sizeof(text), "name: u\nnetwork: {upstream_proxy: \"%s\"}\n",
			 cases[i].url);
		plan_world_write(w, "config/profiles/u.yaml", text, 0644);
		snprintf(text, sizeof(text), "admit: [%s]\n", cases[i].admit);
		plan_world_write(w, "config/system.yaml", text, 0644);
		if (cases[i].says)
			plan_world_refused(w, 125, cases[i].says, "--profile", "u", "--", "true");
		else
			plan_world_must(w, "--profile", "u", "--", "true");
	}
	/* It is not asked for where nothing is carried. */
	plan_world_write(
		w, "config/profiles/u.yaml",
		"name: u\nnetwork: {mode: offline, upstream_proxy: \"http://127.0.0.1:3128\"}\n",
		0644);
	plan_world_must(w, "--profile", "u", "--", "true");
}

static void publishes(const struct plan_world *w, size_t i, const char *outside, unsigned inside)
{
	char buf[SBX_PUBLISH_STR_MAX];

	assert_true(i < w->plan->n_publish);
	assert_string_equal(sbx_publish_format(&w->plan->publish[i], buf, sizeof(buf)), outside);
	assert_int_equal(w->plan->publish[i].inside, inside);
}

static void test_publish(void **state)
{
	struct plan_world *w = *state;

	plan_world_must(w, "--", "true");
	assert_int_equal(w->plan->n_publish, 0);
	plan_world_must(w, "--publish", "8888", "--publish", "[::1]:0:8888", "--", "true");
	assert_int_equal(w->plan->n_publish, 2);
	publishes(w, 0, "127.0.0.1:8888", 8888);
	publishes(w, 1, "[::1]:0", 8888);
	/* A published port is no way out: the sandbox carries nothing. */
	plan_world_must(w, "--profile", "none", "--publish", "8888", "--", "true");
	assert_int_equal(w->plan->n_publish, 1);
	assert_false(w->plan->carries);
	plan_world_refused(w, 125, "--publish 'x'", "--publish", "x", "--", "true");
	plan_world_refused(w, 125, "published already", "--publish", "1:80", "--publish", "1:81",
			   "--", "true");
	plan_world_must(w, "--publish", "1:80", "--publish", "127.0.0.2:1:81", "--", "true");
	plan_world_must(w, "--publish", "0:80", "--publish", "0:81", "--", "true");
	plan_world_refused(w, 125, "sbx's own", "--publish", "8053:53", "--", "true");
	plan_world_must(w, "--publish", "53:54", "--", "true");
	plan_world_refused(w, 125, "sbx's own", "--publish", "61053", "--", "true");
	plan_world_must(w, "--publish", "61053:61054", "--", "true");
}

/* A flag about a port of the sandbox takes the profile's place. */
static void test_publish_profile(void **state)
{
	struct plan_world *w = *state;

	plan_world_write(w, "config/profiles/p.yaml",
			 "network: {publish: [8080, \"9090:90\", \"9091:90\"]}\n", 0644);
	plan_world_must(w, "--profile", "p", "--", "true");
	assert_int_equal(w->plan->n_publish, 3);
	publishes(w, 1, "127.0.0.1:9090", 90);
	plan_world_must(w, "--profile", "p", "--publish", "0:90", "--publish", "7070", "--",
			"true");
	assert_int_equal(w->plan->n_publish, 3);
	publishes(w, 0, "127.0.0.1:8080", 8080);
	publishes(w, 1, "127.0.0.1:0", 90);
	publishes(w, 2, "127.0.0.1:7070", 7070);
	plan_world_refused(w, 125, "published already", "--profile", "p", "--publish", "8080:1",
			   "--", "true");
	plan_world_must(w, "--profile", "p", "--publish", "8080:8080", "--", "true");
	/* An air gap beats a profile, and contradicts a flag. */
	plan_world_must(w, "--profile", "p", "--air-gap", "--", "true");
	assert_int_equal(w->plan->n_publish, 0);
	assert_true(plan_world_noted(w, "nothing is published"));
	plan_world_refused(w, 125, "exclude each other", "--profile", "p", "--air-gap", "--publish",
			   "1", "--", "true");
	/* The host's network needs no publishing. */
	plan_world_write(w, "config/profiles/c.yaml", "network: {attach: cgroup}\n", 0644);
	plan_world_refused(w, 125, "publish 80: only with attach: netns", "--profile", "c",
			   "--publish", "80", "--", "true");
	plan_world_write(w, "config/profiles/c.yaml", "network: {attach: netns}\n", 0644);
	plan_world_must(w, "--profile", "c", "--publish", "80", "--", "true");
}

static void test_publish_bounds(void **state)
{
	struct plan_world *w = *state;
	char text[512] = "network: {publish: [0:1000";

	for (int i = 1; i < SBX_PUBLISH_MAX; i++)
		sprintf(text + strlen(text), ", 0:%d", 1000 + i);
	strcat(text, "]}\n");
	plan_world_write(w, "config/profiles/p.yaml", text, 0644);
	plan_world_must(w, "--profile", "p", "--", "true");
	assert_int_equal(w->plan->n_publish, SBX_PUBLISH_MAX);
	plan_world_must(w, "--profile", "p", "--publish", "1:1000", "--", "true");
	plan_world_refused(w, 125, "at most 16 ports", "--profile", "p", "--publish", "1", "--",
			   "true");
	sprintf(text + strlen(text) - 3, ", 0:2000]}\n");
	plan_world_write(w, "config/profiles/p.yaml", text, 0644);
	plan_world_refused(w, 125, "network.publish has more than 16 entries", "--profile", "p",
			   "--", "true");
}

/* The host's owner decides which addresses a port may be published on. */
static void test_publish_scope(void **state)
{
	static const struct {
		const char *system, *ask, *why;
	} cases[] = {
		{ "", "127.9.9.9:80", NULL },
		{ "", "0.0.0.0:80", "publish: any" },
		{ "", "192.0.2.1:80", "publish: any" },
		{ "", "[::]:80", "publish: any" },
		{ "", "[::1]:80", NULL },
		{ "", "[::ffff:127.0.0.1]:80", "publish: any" },
		{ "publish: loopback\n", "0.0.0.0:80", "publish: any" },
		{ "publish: any\n", "0.0.0.0:80", NULL },
		{ "publish: any\n", "[::]:80", NULL },
		{ "publish: none\n", "80", "publishes nothing" },
		{ "publish: any\n", "80", NULL },
	};
	struct plan_world *w = *state;

	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++) {
		SBX_AUTO_FREE char *profile = NULL;

		assert_true(asprintf(&profile, "network: {publish: [\"%s\"]}\n", cases[i].ask) > 0);
		plan_world_write(w, "config/system.yaml", cases[i].system, 0644);
		plan_world_write(w, "config/profiles/p.yaml", profile, 0644);
		if (cases[i].why) {
			plan_world_refused(w, 125, cases[i].why, "--publish", cases[i].ask, "--",
					   "true");
			plan_world_refused(w, 125, cases[i].why, "--profile", "p", "--", "true");
			continue;
		}
		plan_world_must(w, "--publish", cases[i].ask, "--", "true");
		plan_world_must(w, "--profile", "p", "--", "true");
		assert_int_equal(w->plan->n_publish, 1);
	}
	plan_world_write(w, "config/system.yaml", "publish: none\n", 0644);
	plan_world_must(w, "--", "true");
}

static void test_modes(void **state)
{
	struct plan_world *w = *state;

	plan_world_must(w, "--profile", "none", "--", "true");
	assert_false(w->plan->carries || w->plan->dns_real || w->plan->nft.all_destinations ||
		     w->plan->nft.udp);
	assert_int_equal(w->plan->nft.dns, 1);
	plan_world_must(w, "--profile", "install", "--", "true");
	assert_true(w->plan->carries);
	assert_false(w->plan->dns_real || w->plan->nft.all_destinations || w->plan->nft.udp);
	plan_world_must(w, "--profile", "full", "--", "true");
	assert_true(w->plan->carries && w->plan->dns_real && w->plan->nft.all_destinations &&
		    w->plan->nft.udp);
	plan_world_must(w, "--profile", "full", "--air-gap", "--", "true");
	assert_true(w->plan->air_gap);
	assert_false(w->plan->carries || w->plan->nft.all_destinations || w->plan->nft.udp);
	assert_int_equal(w->plan->nft.n_cidrs, 0);
	plan_world_write(w, "config/profiles/u.yaml",
			 "name: u\nnetwork:\n  allow:\n    - {host: x.example, ports: [123], "
			 "protocol: udp}\n",
			 0644);
	plan_world_must(w, "--profile", "u", "--", "true");
	assert_int_equal(w->plan->nft.udp, 1);
}

static void test_resolvers(void **state)
{
	struct plan_world *w = *state;
	char text[SBX_ADDR_STR_MAX];

	plan_world_must(w, "--", "true");
	assert_int_equal(w->plan->n_resolvers, 2); /* the scoped one cannot be used */
	assert_string_equal(sbx_addr_format(&w->plan->resolvers[1].addr, text, sizeof(text)),
			    "2001:db8::53");
	assert_int_equal(w->plan->resolvers[0].port, 53);
	plan_world_set(&w->facts.resolv_conf, "");
	plan_world_must(w, "--", "true");
	assert_int_equal(w->plan->n_resolvers, 1);
	assert_string_equal(sbx_addr_format(&w->plan->resolvers[0].addr, text, sizeof(text)),
			    "127.0.0.1");
	plan_world_set(&w->facts.resolv_conf, "#nameserver 192.0.2.1\nnameservers "
					      "192.0.2.2\nnameserver\t192.0.2.3\r\nnameserver x\n"
					      "nameserver 192.0.2.4");
	plan_world_must(w, "--", "true");
	assert_int_equal(w->plan->n_resolvers, 2);
	plan_world_set(&w->facts.resolv_conf,
		       "nameserver 192.0.2.1\nnameserver 192.0.2.2\nnameserver 192.0.2.3\n"
		       "nameserver 192.0.2.4\nnameserver 192.0.2.5\nnameserver 192.0.2.6\n"
		       "nameserver 192.0.2.7\nnameserver 192.0.2.8\nnameserver 192.0.2.9\n");
	plan_world_must(w, "--", "true");
	assert_int_equal(w->plan->n_resolvers, SBX_RESOLVERS_MAX);
	plan_world_write(
		w, "config/profiles/r.yaml",
		"name: r\nnetwork:\n  mode: offline\n  dns: {resolvers: [\"192.0.2.99:5353\"]}\n",
		0644);
	if (plan_world_plan(w, "--profile", "r", "--", "true", NULL) == 0) {
		assert_int_equal(w->plan->n_resolvers, 1);
		assert_int_equal(w->plan->resolvers[0].port, 5353);
		assert_true(w->plan->dns_real);
	}
}

static void test_normalise(void **state)
{
	static const struct {
		const char *in, *out;
	} cases[] = {
		{ "/", "/" },
		{ "//", "/" },
		{ "/a", "/a" },
		{ "/a/", "/a" },
		{ "//a//b/.", "/a/b" },
		{ "/./a", "/a" },
		{ "/..a/b..", "/..a/b.." },
		{ "/a/../b", NULL },
		{ "a", NULL },
		{ "", NULL },
		{ "/a\nb/\xff\\:", "/a\nb/\xff\\:" },
		{ "/..", NULL },
	};

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++) {
		SBX_AUTO_FREE char *out = sbx_path_normalise(cases[i].in);

		if (cases[i].out)
			assert_string_equal(out, cases[i].out);
		else
			assert_null(out);
	}
	/* Lengths count as the path comes out. */
	for (size_t n = 4090; n <= 4100; n++) {
		SBX_AUTO_FREE char *path = plan_world_long_path("", n, 255),
				   *slashes = plan_world_long_path("/a", n, 0);
		SBX_AUTO_FREE char *out = sbx_path_normalise(path),
				   *pattern = sbx_path_normalise_pattern(path);

		assert_int_equal(!!out, n < PATH_MAX);
		assert_string_equal(pattern, path);
		free(out);
		memset(slashes + 2, '/', n - 2);
		out = sbx_path_normalise(slashes);
		assert_string_equal(out, "/a");
	}
	for (size_t n = 250; n <= 260; n++) {
		SBX_AUTO_FREE char *path = plan_world_long_path("", n, 1000),
				   *out = sbx_path_normalise(path);

		assert_int_equal(!!out, n <= 1 + NAME_MAX);
	}
}

/* A grant at @target, which has room for what is protected below it or not. */
static void try_target(struct plan_world *w, const char *target, bool read_only)
{
	const char *limits = "a place that is an absolute path without '..', of at most 4095 bytes "
			     "and with names of at most 255";
	SBX_AUTO_FREE char *bind = NULL;
	int r;

	assert_true(asprintf(&bind, "%s:%s", plan_world_path(w, "home/other"), target) > 0);
	r = plan_world_plan(w, read_only ? "--ro-bind" : "--bind", bind, "--", "true", NULL);
	if (strlen(target) >= PATH_MAX || strlen(strrchr(target, '/') + 1) > NAME_MAX) {
		assert_int_equal(r, 125);
		plan_world_said(w, limits);
	} else if (read_only || strlen(target) + strlen("/.git/commondir") < PATH_MAX) {
		assert_int_equal(r, 0);
		assert_non_null(plan_world_mount(w, target));
	} else if (r != 0) { /* what is to be protected there has no name that can be used */
		plan_world_said(w, "File name too long");
	}
}

/* The message says how to name a directory beside the caller's. */
static void test_relative_source(void **state)
{
	struct plan_world *w = *state;

	assert_int_equal(plan_world_plan(w, "--bind", "data", "--", "true", NULL), 125);
	plan_world_said(w, "and not 'data'; one in this directory begins with ./");
}

static void test_long_targets(void **state)
{
	static const size_t more[] = { 1000, 5000, 9000, 70000 };
	struct plan_world *w = *state;

	for (size_t n = 4075; n <= 4100 + SBX_N_ELEMENTS(more); n++) {
		SBX_AUTO_FREE char *target =
			plan_world_long_path("", n <= 4100 ? n : more[n - 4101], 200);

		try_target(w, target, false);
		try_target(w, target, true);
	}
	for (size_t n = 250; n <= 260; n++) {
		SBX_AUTO_FREE char *target = plan_world_long_path("/x", n, 1000), *name = NULL;

		assert_true(asprintf(&name, "/y/%s", target + 1) > 0);
		try_target(w, name, false);
		try_target(w, name, true);
	}
}

/* Planning creates nothing: the world is the same afterwards. */
static void test_creates_nothing(void **state)
{
	struct plan_world *w = *state;
	struct stat before, after;
	static const char *const dirs[] = { "", "state", "run", "config", "home", "home/project" };

	for (size_t i = 0; i < SBX_N_ELEMENTS(dirs); i++) {
		char *path = plan_world_path(w, dirs[i]);

		assert_int_equal(stat(path, &before), 0);
		plan_world_must(w, "--", "true");
		assert_int_equal(stat(path, &after), 0);
		assert_memory_equal(&before.st_mtim, &after.st_mtim, sizeof(before.st_mtim));
	}
}

/* Nothing of a plan outlives it: no fd, whatever the way it ended. */
static void test_fds(void **state)
{
	struct plan_world *w = *state;
	int before = dup(0), after;

	close(before);
	plan_world_must(w, "--", "true");
	w->plan = sbx_plan_free(w->plan);
	plan_world_refused(w, 125, "--bind", "--bind", "/etc:/x", "--", "true");
	plan_world_refused(w, 126, "sudo", "--", "sudo");
	plan_world_refused(w, 127, "nothing", "--", "nothing");
	after = dup(0);
	close(after);
	assert_int_equal(before, after);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, plan_world_setup, plan_world_teardown)

/* The proposed remedy fits this machine and this user. */
static void test_way_out(void **state)
{
	static const struct {
		const char *mount;
		uint32_t controllers;
		bool systemd;
		uid_t uid;
		const char *said, *not_said;
	} t[] = {
		{ "", 0, true, 0, "systemd.unified_cgroup_hierarchy=1", "Delegate" },
		{ "/sys/fs/cgroup/unified", 0, true, 1000, "v1 holds them", "Delegate" },
		{ "/sys/fs/cgroup", 2, false, 0, "mount cgroup2 writable", "systemd" },
		{ "/sys/fs/cgroup", 2, false, 1000, "start it as root", "systemd" },
		{ "/sys/fs/cgroup", 2, true, 0, "systemd-run --scope -p Delegate=yes", "--user" },
		{ "/sys/fs/cgroup", 2, true, 1000, "systemd-run --user --scope -p Delegate=yes",
		  "unified" },
		{ "/sys/fs/cgroup", 2, true, 1000, "loginctl enable-linger", "unified" },
	};

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(t); i++) {
		struct sbx_facts f = { .caller_uid = t[i].uid,
				       .cgroup = { .systemd = t[i].systemd } };
		const char *said;

		snprintf(f.cgroup.mount, sizeof(f.cgroup.mount), "%s", t[i].mount);
		said = sbx_limits_way_out(&f, t[i].controllers);
		assert_non_null(strstr(said, t[i].said));
		assert_null(strstr(said, t[i].not_said));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_profile_search),
		TEST(test_profile_errors),
		TEST(test_too_many_networks),
		TEST(test_system_policy),
		TEST(test_flags),
		TEST(test_ceilings),
		TEST(test_attach),
		TEST(test_upstream_proxy),
		TEST(test_publish),
		TEST(test_publish_profile),
		TEST(test_publish_bounds),
		TEST(test_publish_scope),
		TEST(test_seccomp),
		TEST(test_modes),
		TEST(test_resolvers),
		TEST(test_long_targets),
		TEST(test_relative_source),
		TEST(test_creates_nothing),
		TEST(test_fds),
		cmocka_unit_test(test_normalise),
		cmocka_unit_test(test_way_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
