/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/unit/policy_world.h"

#include "policy/keys/key.h"
#include "policy/keys/profile_parse.h"

static struct sbx_err_list errs;

static int parse_with(const char *yaml, sbx_profile_loader load, void *userdata)
{
	struct sbx_profile *p = NULL;
	int r;

	memset(&errs, 0, sizeof(errs));
	r = sbx_profile_parse(sbx_span_str(yaml), "t.yaml", load, userdata, &errs, &p);
	assert_int_equal(r == 0, p != NULL);
	assert_int_equal(r == SBX_PROFILE_E_INVALID, errs.n > 0);
	sbx_profile_free(p);
	return r;
}

/* One mistake, reported once, there. */
static void refused(const char *yaml, int line, int column, const char *message)
{
	assert_int_equal(parse_with(yaml, load_shipped, NULL), SBX_PROFILE_E_INVALID);
	if (errs.n != 1 || !strstr(errs.v[0].msg, message) || errs.v[0].line != line ||
	    errs.v[0].column != column) {
		print_errors(&errs);
		fail_msg("expected t.yaml:%d:%d: %s", line, column, message);
	}
	assert_string_equal(errs.v[0].file, "t.yaml");
}

/* The printed profile parses to a profile that prints the same. */
static void round_trip(const struct sbx_profile *p)
{
	SBX_AUTO_FREE char *text = sbx_profile_print(p), *again = NULL;
	SBX_CLEANUP(sbx_profile_freep) struct sbx_profile *q = good_profile(text);

	again = sbx_profile_print(q);
	assert_string_equal(text, again);
}

static const char everything[] =
	"name: everything\n"
	"description: >\n"
	"  Two lines\n"
	"  of \"prose\".\n"
	"filesystem:\n"
	"  mounts:\n"
	"    - /data/ref\n"
	"    - /data/in:/in:rw\n"
	"    - {source: ~/cache, target: /cache, writable: true, optional: true, idmap: "
	"read-only}\n"
	"  allowed_prefixes: [/data, ~/work]\n"
	"  blocked_segments: [private, \"null\"]\n"
	"  unmask: [~/app/secrets, /srv/x/private]\n"
	"commands:\n"
	"  allow: [python3, /usr/bin/env]\n"
	"  deny: [gdb]\n"
	"limits: {memory: 512M, cpus: 1.5, pids: 100, disk: 2G, tmp: 64M, home: 1G, open_files: "
	"1024,\n"
	"         wall_time: 90s, enforce: strict}\n"
	"network:\n"
	"  mode: fetch\n"
	"  default: allow\n"
	"  allow:\n"
	"    - pypi.org\n"
	"    - \"*.example.com:443\"\n"
	"    - 10.1.2.0/24:5432\n"
	"    - \"[2001:db8::/32]:443\"\n"
	"    - {host: git.corp.example, ports: [22, 1000-2000], private: true, check: none}\n"
	"    - {cidr: \"2001:db8::/48\", ports: 53, protocol: udp, check: none}\n"
	"  deny:\n"
	"    - \"*.example.net\"\n"
	"    - {host: ads.example.com}\n"
	"  dns:\n"
	"    resolvers: [192.0.2.53, \"[2001:db8::53]:5353\"]\n"
	"  attach: cgroup\n"
	"  repin_interval: 10m\n"
	"  loopback_ports: [8080, 5432]\n"
	"  publish: [8888, 0:80, \"127.0.0.2:8080:80\", \"[::1]:8080\"]\n"
	"  upstream_proxy: http://proxy.example:3128\n"
	"environment:\n"
	"  pass: [TERM, LC_*]\n"
	"  set: {GREETING: \"hello: \\\"world\\\"\\n\", EMPTY: \"\", N: 5}\n"
	"selftest:\n"
	"  - dns_refused: example.net\n"
	"  - connect_refused: \"192.0.2.1:25/udp\"\n"
	"  - connect_name: \"pypi.org:443\"\n"
	"    expect: hello\n"
	"  - path_absent: /etc/shadow\n"
	"  - path_readonly: /usr\n";

static void test_everything(void **state)
{
	SBX_CLEANUP(sbx_profile_freep) struct sbx_profile *p = good_profile(everything);

	(void)state;
	assert_string_equal(p->name, "everything");
	assert_string_equal(p->description, "Two lines of \"prose\".");
	assert_int_equal(p->filesystem.n_mounts, 3);
	assert_null(p->filesystem.mounts[0].target);
	assert_false(p->filesystem.mounts[0].writable);
	assert_string_equal(p->filesystem.mounts[1].source, "/data/in");
	assert_string_equal(p->filesystem.mounts[1].target, "/in");
	assert_true(p->filesystem.mounts[1].writable);
	assert_true(p->filesystem.mounts[2].optional);
	assert_true(p->filesystem.mounts[2].idmap_or_read_only);
	assert_false(p->filesystem.mounts[0].idmap_or_read_only);
	assert_string_equal(p->filesystem.blocked_segments.v[1], "null");
	assert_int_equal(p->commands.allow.n, 2);
	assert_int_equal(p->limits.memory_bytes, 512u << 20);
	assert_int_equal(p->limits.cpus_milli, 1500);
	assert_int_equal(p->limits.wall_time_ms, 90000);
	assert_true(p->limits.strict);
	assert_int_equal(p->network.default_action, SBX_ALLOW);
	assert_int_equal(p->network.allow.n, 6);
	assert_string_equal(p->network.allow.v[4].text, "git.corp.example:22,1000-2000");
	assert_true(p->network.allow.v[4].private_ok);
	assert_true(p->network.allow.v[4].check_set);
	assert_int_equal(p->network.allow.v[4].check, SBX_CHECK_NONE);
	assert_int_equal(p->network.allow.v[4].line, 26);
	assert_int_equal(p->network.allow.v[5].proto, SBX_PROTO_UDP);
	assert_int_equal(p->network.n_resolvers, 2);
	assert_int_equal(p->network.resolvers[0].port, 53);
	assert_int_equal(p->network.resolvers[1].port, 5353);
	assert_int_equal(p->network.attach, SBX_NET_ATTACH_CGROUP);
	assert_int_equal(p->network.repin_interval_ms, 600000);
	assert_int_equal(p->network.loopback_ports.n, 2);
	assert_string_equal(p->network.loopback_ports.v[1], "5432");
	assert_int_equal(p->network.publish.n, 4);
	assert_string_equal(p->network.publish.v[1], "0:80");
	assert_string_equal(p->network.publish.v[3], "[::1]:8080");
	assert_string_equal(p->network.proxy_host, "proxy.example");
	assert_int_equal(p->network.proxy_port, 3128);
	assert_int_equal(p->environment.n_set, 3);
	assert_string_equal(p->environment.set[0].value, "hello: \"world\"\n");
	assert_string_equal(p->environment.set[1].value, "");
	assert_int_equal(p->n_probes, 5);
	assert_int_equal(p->probes[1].proto, SBX_PROTO_UDP);
	assert_int_equal(p->probes[1].port, 25);
	assert_string_equal(p->probes[2].name, "pypi.org");
	assert_string_equal(p->probes[2].expect, "hello");
	round_trip(p);
}

/* Colons and backslashes in names, as --bind has them; newlines are YAML's. */
static void test_mount_strings(void **state)
{
	static const struct {
		const char *yaml, *source, *target;
		bool writable;
	} cases[] = {
		{ "'/a\\:b'", "/a:b", NULL, false },
		{ "/a:ro", "/a", NULL, false },
		{ "/a:/b:ro", "/a", "/b", false },
		{ "'/a\\:/b:/c\\:ro'", "/a:/b", "/c:ro", false },
		{ "'/a\\:/b:/c\\:ro:rw'", "/a:/b", "/c:ro", true },
		{ "'/a\\:rw'", "/a:rw", NULL, false },
		{ "'/a\\\\:rw'", "/a\\", NULL, true },
		{ "'/a\\b:/c d'", "/a\\b", "/c d", false },
		{ "\"/a\\nb:/c\\n:rw\"", "/a\nb", "/c\n", true },
		{ "{source: '/a:/b\\:c', target: '/d:e'}", "/a:/b\\:c", "/d:e", false },
	};

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++) {
		SBX_CLEANUP(sbx_profile_freep) struct sbx_profile *p = NULL;
		char yaml[256];

		snprintf(yaml, sizeof(yaml), "filesystem: {mounts: [%s]}\n", cases[i].yaml);
		p = good_profile(yaml);
		assert_int_equal(p->filesystem.n_mounts, 1);
		assert_string_equal(p->filesystem.mounts[0].source, cases[i].source);
		if (cases[i].target)
			assert_string_equal(p->filesystem.mounts[0].target, cases[i].target);
		else
			assert_null(p->filesystem.mounts[0].target);
		assert_int_equal(p->filesystem.mounts[0].writable, cases[i].writable);
		round_trip(p);
	}
}

static void test_defaults(void **state)
{
	SBX_CLEANUP(sbx_profile_freep) struct sbx_profile *p = good_profile("{}");
	SBX_CLEANUP(sbx_profile_freep)
	struct sbx_profile *none = good_profile("environment: {pass: []}");
	SBX_AUTO_FREE char *text = sbx_profile_print(none);

	(void)state;
	assert_string_equal(p->name, "test");
	assert_null(p->description);
	assert_int_equal(p->network.mode, SBX_MODE_FETCH);
	assert_int_equal(p->network.default_action, SBX_DENY);
	assert_false(p->limits.strict);
	assert_int_equal(p->environment.pass.n, 0);
	assert_int_equal(none->environment.pass.n, 0);
	assert_string_equal(text, "name: test\n");
	round_trip(p);
	round_trip(none);
}

static void test_values(void **state)
{
	(void)state;
	refused("", 1, 1, "the file is empty");
	refused("- a\n", 1, 1, "the document must be a mapping");
	refused("network:\n  alow: []\n", 2, 3,
		"unknown key 'alow' in network (did you mean 'allow'?)");
	refused("netwrok: {}\n", 1, 1, "unknown key 'netwrok' (did you mean 'network'?)");
	refused("? [a]\n: b\n", 1, 3, "unknown key");
	refused("name: a\nname: b\n", 2, 1, "key 'name' is there twice (first in line 1)");
	refused("network: {mode: offline, mode: full}\n", 1, 26, "twice");
	refused("name: [a]\n", 1, 7, "name must be a string");
	refused("name:\n", 1, 6, "name must be a string");
	refused("name: a/b\n", 1, 7, "letters, digits");
	refused("name: .hidden\n", 1, 7, "starts with");
	refused("network: fetch\n", 1, 10, "network must be a mapping of keys");
	refused("network:\n  mode: fecth\n", 2, 9,
		"one of offline, fetch, full (did you mean 'fetch'?)");
	refused("network: {allow: pypi.org}\n", 1, 18, "network.allow must be a list");
	refused("network:\n  allow:\n    - ok.example\n    - [x]\n", 4, 7, "an entry is a string");
	refused("network:\n  allow:\n    -\n", 3, 6, "an entry is a string");
	refused("network:\n  allow:\n    - http://x.example/\n", 3, 7, "URL");
	refused("network:\n  allow:\n    - *.example.org\n", 3, 8, "quote a name");
	refused("network: {allow: [{host: a.example, cidr: 10.0.0.0/8}]}\n", 1, 19,
		"one of host and cidr");
	refused("network: {allow: [{ports: 1}]}\n", 1, 19, "one of host and cidr");
	refused("network: {allow: [{host: 'a.example:1'}]}\n", 1, 19, "ports go under ports");
	refused("network: {allow: [{host: 192.0.2.1}]}\n", 1, 19, "cidr");
	refused("network: {allow: [{host: a.example, ports: []}]}\n", 1, 44,
		"entry.ports must be a port");
	refused("network: {allow: [{host: a.example, prots: 1}]}\n", 1, 37,
		"did you mean 'ports'?");
	refused("network: {allow: [{host: a.example, private: yes}]}\n", 1, 46,
		"one of false, true");
	refused("network: {allow: [{host: a.example, protocol: ''}]}\n", 1, 47, "one of tcp, udp");
	refused("network: {dns: {resolvers: [dns.example]}}\n", 1, 29, "not ADDRESS[:PORT]");
	refused("network: {dns: {resolvers: [192.0.2.1/udp]}}\n", 1, 29, "not ADDRESS[:PORT]");
	refused("network: {attach: host}\n", 1, 19, "netns, cgroup");
	refused("network: {repin_interval: 10s}\n", 1, 27, "30s");
	refused("network: {loopback_ports: [0]}\n", 1, 28, "a port is a number");
	refused("network: {loopback_ports: [8000-8010]}\n", 1, 28, "a port is a number");
	refused("network: {loopback_ports: [65536]}\n", 1, 28, "a port is a number");
	refused("network: {publish: [0]}\n", 1, 21, "the sandbox's must be said");
	refused("network: {publish: [myhost:80:80]}\n", 1, 21, "an address of this host");
	refused("network: {publish: [8000-8010]}\n", 1, 21,
		"network.publish: '8000-8010': a port is a number");
	refused("network: {upstream_proxy: https://p.example:1}\n", 1, 27, "a URL such as");
	refused("network: {upstream_proxy: http://p.example}\n", 1, 27, "a URL such as");
	refused("network: {upstream_proxy: 'http://u:p@p.example:1'}\n", 1, 27, "password");
	refused("limits: {memory: 1K}\n", 1, 18,
		"limits.memory: '1K' is out of range (1M to 1024T)");
	refused("limits: {memory: lots}\n", 1, 18, "is not a size such as 512M");
	refused("limits: {wall_time: 30}\n", 1, 21, "a time such as 30s");
	refused("limits: {cpus: 0}\n", 1, 16, "out of range (0.01 to 4096)");
	refused("limits: {enforce: stirct}\n", 1, 19, "did you mean 'strict'?");
	refused("filesystem: {unmask: [secrets]}\n", 1, 23, "an absolute path");
	refused("filesystem: {unmask: [/a/../secrets]}\n", 1, 23, "'..'");
	refused("filesystem: {blocked_segments: [a/b]}\n", 1, 33, "without '/'");
	refused("filesystem: {allowed_prefixes: [/a, b]}\n", 1, 37, "absolute path");
	refused("commands: {deny: [bin/sh]}\n", 1, 19, "a name or an absolute path");
	refused("environment: {pass: ['*']}\n", 1, 22, "secrets");
	refused("environment: {pass: ['A*B']}\n", 1, 22, "one '*' at the end");
	refused("environment: {set: {A-B: 1}}\n", 1, 21, "letters, digits");
	refused("environment: {set: {A: 1, A: 2}}\n", 1, 27, "twice");
	refused("environment: {set: {A: [1]}}\n", 1, 24, "must be a string");
	refused("selftest: [dns_refused]\n", 1, 12, "probe must be a mapping");
	refused("selftest: [{}]\n", 1, 12, "a probe is a mapping such as");
	refused("selftest: [{dns_refused: a.example, path_absent: /x}]\n", 1, 12, "not two");
	refused("selftest: [{dns_refused: 'a.example:53'}]\n", 1, 12, "only a name");
	refused("selftest: [{dns_refused: a.example, expect: x}]\n", 1, 12, "expect belongs");
	refused("selftest: [{connect_refused: 'a.example:1'}]\n", 1, 12, "takes ADDRESS:PORT");
	refused("selftest: [{connect_refused: 192.0.2.1}]\n", 1, 12, "takes ADDRESS:PORT");
	refused("selftest: [{connect_name: '192.0.2.1:1'}]\n", 1, 12, "takes NAME:PORT");
	refused("selftest: [{path_absent: etc}]\n", 1, 26, "absolute path");
	refused("selftest: [{loopback: x}]\n", 1, 13, "unknown key 'loopback' in probe");
}

static void test_mount_values(void **state)
{
	(void)state;
	/* an escaped backslash */
	refused("filesystem: {mounts: ['/a\\\\:b']}\n", 1, 23, "absolute path");
	refused("filesystem: {mounts: [data]}\n", 1, 23, "absolute path");
	refused("filesystem: {mounts: [/data/../etc]}\n", 1, 23, "'..'");
	refused("filesystem: {mounts: ['/data:in']}\n", 1, 23,
		"mount.target: 'in': an absolute path");
	refused("filesystem: {mounts: ['/a:/b:/c']}\n", 1, 23, "ro or rw");
	refused("filesystem: {mounts: ['/a:/b:z']}\n", 1, 23, "ro or rw");
	refused("filesystem: {mounts: ['/a:']}\n", 1, 23, "SRC[:DST][:ro|:rw]");
	refused("filesystem: {mounts: [{target: /x}]}\n", 1, 23, "with source:");
	refused("filesystem: {mounts: [{source: /x, writable: 1}]}\n", 1, 46, "one of false, true");
}

static void test_all_errors(void **state)
{
	static const struct {
		int line, column;
	} want[] = { { 1, 1 }, { 2, 9 }, { 4, 9 }, { 6, 7 }, { 7, 7 }, { 8, 1 } };

	(void)state;
	assert_int_equal(parse_with("nmae: x\n"
				    "limits: 5\n"
				    "network:\n"
				    "  mode: fast\n"
				    "  allow:\n"
				    "    - \"*.com\"\n"
				    "    - a b\n"
				    "sandbox: yes\n",
				    NULL, NULL),
			 SBX_PROFILE_E_INVALID);
	assert_int_equal(errs.n, SBX_N_ELEMENTS(want));
	for (size_t i = 0; i < errs.n; i++) {
		assert_int_equal(errs.v[i].line, want[i].line);
		assert_int_equal(errs.v[i].column, want[i].column);
	}
}

/* More mistakes than the list holds are counted. */
static void test_error_flood(void **state)
{
	static char yaml[32 * 1024];
	size_t n = 0;

	(void)state;
	for (int i = 0; i < 1000; i++)
		n += (size_t)snprintf(yaml + n, sizeof(yaml) - n, "key%d: x\n", i);
	assert_int_equal(parse_with(yaml, NULL, NULL), SBX_PROFILE_E_INVALID);
	assert_int_equal(errs.n, SBX_ERR_LIST_MAX);
	assert_int_equal(errs.n_dropped, 1000 - SBX_ERR_LIST_MAX);
	assert_int_equal(sbx_profile_parse(sbx_span_str(yaml), "t", NULL, NULL, NULL,
					   &(struct sbx_profile *){ NULL }),
			 SBX_PROFILE_E_INVALID);
}

static void test_list_bounds(void **state)
{
	static char yaml[SBX_ERR_MSG_MAX * 400];
	SBX_CLEANUP(sbx_profile_freep) struct sbx_profile *p = NULL;
	size_t n;

	(void)state;
	/* 20,000 entries are taken, one more is not. */
	n = (size_t)sprintf(yaml, "network: {allow: [");
	for (int i = 0; i < 20000; i++)
		n += (size_t)sprintf(yaml + n, "a%x.xy,", i);
	strcpy(yaml + n, "]}");
	p = good_profile(yaml);
	assert_int_equal(p->network.allow.n, 20000);
	strcpy(yaml + n, "b.xy]}");
	refused(yaml, 1, (int)n + 1, "network.allow has more than 20000 entries");
	n = (size_t)sprintf(yaml, "selftest: [");
	for (int i = 0; i < SBX_PROBES_MAX / 2 + 1; i++)
		n += (size_t)sprintf(yaml + n, "{path_absent: /x},");
	strcpy(yaml + n, "]");
	refused(yaml, 1, 12 + 18 * (SBX_PROBES_MAX / 2), "selftest has more than 32 entries");
	refused("network: {dns: {resolvers: [1.1.1.1, 1.1.1.1, 1.1.1.1, 1.1.1.1, 1.1.1.1, 1.1.1.1, "
		"1.1.1.1, 1.1.1.1, 1.1.1.9]}}",
		1, 101, "more than 8");
}

/* --- extends --- */

struct file {
	const char *name, *text;
};

static char *load_from(void *userdata, const char *name, size_t *ret_n, char *ret_file,
		       size_t n_file)
{
	for (const struct file *f = userdata; f->name; f++) {
		if (strcmp(f->name, name) != 0)
			continue;
		snprintf(ret_file, n_file, "%s.yaml", name);
		*ret_n = strlen(f->text);
		return strdup(f->text);
	}
	return NULL;
}

static void test_extends(void **state)
{
	struct file files[] = {
		{ "root", "name: root\ndescription: the root\nlimits: {memory: 1G, pids: 10, "
			  "enforce: strict}\n"
			  "network: {mode: offline, allow: [a.example], deny: [x.example]}\n"
			  "environment: {pass: [A], set: {K: root, L: root}}\n"
			  "commands: {deny: [gdb]}\n" },
		{ "mid",
		  "extends: root\nlimits: {pids: 20}\nnetwork: {mode: fetch, allow: [b.example]}\n"
		  "environment: {set: {K: mid}}\n" },
		{ NULL, NULL },
	};
	SBX_CLEANUP(sbx_profile_freep) struct sbx_profile *p = NULL;
	int r;

	(void)state;
	memset(&errs, 0, sizeof(errs));
	r = sbx_profile_parse(sbx_span_str("extends: mid\nlimits: {enforce: best-effort}\n"
					   "network: {allow: [c.example], deny: [y.example]}\n"
					   "environment: {pass: [B], set: {M: leaf}}\n"),
			      "dir/leaf.yaml", load_from, files, &errs, &p);
	print_errors(&errs);
	assert_int_equal(r, 0);
	/* Name and description are not inherited. */
	assert_string_equal(p->name, "leaf");
	assert_null(p->description);
	assert_int_equal(p->limits.memory_bytes, 1u << 30);
	assert_int_equal(p->limits.pids, 20);
	assert_false(p->limits.strict);
	assert_int_equal(p->network.mode, SBX_MODE_FETCH);
	assert_int_equal(p->network.allow.n, 3);
	assert_string_equal(p->network.allow.v[0].text, "a.example");
	assert_string_equal(p->network.allow.v[1].text, "b.example");
	assert_string_equal(p->network.allow.v[2].text, "c.example");
	assert_int_equal(p->network.deny.n, 2);
	assert_int_equal(p->environment.pass.n, 2);
	assert_int_equal(p->environment.n_set, 3);
	assert_string_equal(p->environment.set[0].value, "mid");
	assert_string_equal(p->environment.set[1].value, "root");
	assert_string_equal(p->environment.set[2].value, "leaf");
	assert_int_equal(p->commands.deny.n, 1);
	round_trip(p);
}

static void test_extends_refused(void **state)
{
	struct file files[] = {
		{ "a", "extends: b\n" },
		{ "b", "extends: a\n" },
		{ "broken", "network:\n  mod: full\n" },
		{ "c1", "extends: c2" },
		{ "c2", "extends: c3" },
		{ "c3", "extends: c4" },
		{ "c4", "extends: c5" },
		{ "c5", "extends: c6" },
		{ "c6", "extends: c7" },
		{ "c7", "extends: c8" },
		{ "c8", "name: c8" },
		{ NULL, NULL },
	};

	(void)state;
	refused("extends: nothing\n", 1, 10, "extends: 'nothing': there is no such profile");
	refused("extends: [a]\n", 1, 10, "name of a profile");
	refused("extends: ../x\n", 1, 10, "name of a profile");
	assert_int_equal(parse_with("extends: a", load_from, files), SBX_PROFILE_E_INVALID);
	assert_int_equal(errs.n, 1);
	assert_string_equal(errs.v[0].file, "b.yaml");
	assert_non_null(strstr(errs.v[0].msg, "extends itself"));
	/* The parent's mistakes are told under the parent's name, and the child's as well. */
	assert_int_equal(parse_with("extends: broken\nlimts: {}\n", load_from, files),
			 SBX_PROFILE_E_INVALID);
	assert_int_equal(errs.n, 2);
	assert_string_equal(errs.v[0].file, "broken.yaml");
	assert_int_equal(errs.v[0].line, 2);
	assert_string_equal(errs.v[1].file, "t.yaml");
	/* Eight deep is fine, nine is not. */
	assert_int_equal(parse_with("extends: c1", load_from, files), 0);
	files[10].text = "extends: broken";
	assert_int_equal(parse_with("extends: c1", load_from, files), SBX_PROFILE_E_INVALID);
	assert_non_null(strstr(errs.v[0].msg, "more than 8"));
}

/* --- limits --- */

static void test_limit_set(void **state)
{
	struct sbx_limit_values l = { 0 };
	struct sbx_err err = { 0 };

	(void)state;
	assert_int_equal(sbx_limit_set(&l, "memory=2G", &err), 0);
	assert_int_equal(l.memory_bytes, UINT64_C(2) << 30);
	assert_int_equal(sbx_limit_set(&l, "cpus=0.5", &err), 0);
	assert_int_equal(l.cpus_milli, 500);
	assert_int_equal(sbx_limit_set(&l, "enforce=strict", &err), 0);
	assert_true(l.strict);
	assert_int_equal(sbx_limit_set(&l, "memory=2X", &err), SBX_PROFILE_E_INVALID);
	assert_string_equal(err.msg, "limits.memory: '2X' is not a size such as 512M");
	for (const char *const *s = (const char *const[]){ "memory", "=2G", "mem=2G", "", NULL };
	     *s; s++) {
		err.msg[0] = '\0';
		assert_int_equal(sbx_limit_set(&l, *s, &err), SBX_PROFILE_E_INVALID);
		assert_non_null(strstr(err.msg, "KEY=VALUE"));
	}
	assert_int_equal(l.memory_bytes, UINT64_C(2) << 30);
}

static void test_ceilings(void **state)
{
	struct sbx_limit_values ask = { .memory_bytes = 2u << 20, .pids = 100 }, most = { 0 };
	struct sbx_err err = { 0 };

	(void)state;
	assert_int_equal(sbx_limits_check(&ask, &most, &err), 0);
	most.memory_bytes = 2u << 20;
	most.wall_time_ms = 1000;
	assert_int_equal(sbx_limits_check(&ask, &most, &err), 0);
	most.pids = 99;
	assert_int_equal(sbx_limits_check(&ask, &most, &err), SBX_PROFILE_E_INVALID);
	assert_string_equal(err.msg,
			    "limits.pids: 100 is above this host's ceiling of 99 (ceilings.pids of "
			    "the system policy)");
}

/* @yaml is the network part, with the attach that @said says; "" for one that is fine. */
static void attach(const char *said, const char *yaml)
{
	char text[512];
	struct sbx_err err = { 0 };
	int r;

	snprintf(text, sizeof(text), "network:\n  attach: %s\n%s", said[0] ? "cgroup" : "netns",
		 yaml);
	SBX_CLEANUP(sbx_profile_freep) struct sbx_profile *p = good_profile(text);

	r = sbx_profile_check_attach(p, &err);
	if (said[0] == '\0' || strcmp(said, "cgroup") == 0)
		assert_int_equal(r, 0);
	else if (r != SBX_PROFILE_E_INVALID || !strstr(err.msg, said))
		fail_msg("expected '%s', not '%s'", said, err.msg);
}

static void test_attach(void **state)
{
	struct sbx_err err = { 0 };

	(void)state;
	assert_int_equal(sbx_port_parse("65535"), 65535);
	assert_int_equal(sbx_port_parse("080"), 0);
	assert_int_equal(sbx_port_parse(""), 0);
	attach("", "");
	attach("cgroup", "  loopback_ports: [8080]\n  repin_interval: 1m\n  mode: full\n");
	attach("", "  publish: [8080]\n");
	attach("publish 8080: only with attach: netns", "  publish: [8080]\n");
	attach("", "  upstream_proxy: http://p.example:3128\n");
	attach("network.upstream_proxy", "  upstream_proxy: http://p.example:3128\n");
	attach("", "  default: allow\n");
	attach("network.default", "  default: allow\n");
	attach("", "  allow: [{host: a.example, ports: [443], check: tls}]\n");
	attach("entry a.example:443: its check",
	       "  allow: [{host: a.example, ports: [443], check: tls}]\n");
	attach("cgroup", "  allow: [{host: a.example, ports: [443], check: none}, a.example]\n");
	attach("cgroup", "  allow: [\"a.example:1000-1063\", \"10.1.2.0/24:1-65535\"]\n");
	attach("64 ports", "  allow: [\"a.example:1000-1063,443\"]\n");
	attach("64 ports", "  allow: [\"a.example:*\"]\n");
	attach("", "  allow: [\"a.example:*\"]\n");
	attach("network.deny: entry *.a.example: a name",
	       "  mode: full\n  deny: [\"*.a.example\"]\n");
	attach("network.deny: entry a.example:25: a name",
	       "  mode: full\n  deny: [192.0.2.0/24, \"a.example:25\"]\n");
	attach("cgroup", "  mode: full\n  deny: [192.0.2.0/24]\n");
	attach("cgroup", "  mode: fetch\n  deny: [a.example]\n");
	attach("", "  mode: full\n  deny: [a.example]\n");
	SBX_CLEANUP(sbx_profile_freep) struct sbx_profile *p =
		good_profile("network: {loopback_ports: [8080]}\n");
	assert_int_equal(sbx_profile_check_attach(p, &err), SBX_PROFILE_E_INVALID);
	assert_non_null(strstr(err.msg, "network.loopback_ports"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_everything),  cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_mount_values),	    cmocka_unit_test(test_all_errors),
		cmocka_unit_test(test_error_flood), cmocka_unit_test(test_list_bounds),
		cmocka_unit_test(test_extends),	    cmocka_unit_test(test_extends_refused),
		cmocka_unit_test(test_attach),	    cmocka_unit_test(test_mount_strings),
		cmocka_unit_test(test_limit_set),   cmocka_unit_test(test_ceilings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
