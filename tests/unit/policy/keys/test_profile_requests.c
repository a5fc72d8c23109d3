/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The keys of terminated hosts and of secrets: read, refused, printed. */

#include "tests/unit/policy_world.h"

static struct sbx_err_list errs;

/* One mistake, in the line of the last entry. */
static void refused_text(const char *yaml, const char *message)
{
	struct sbx_profile *p = NULL;
	int r;

	memset(&errs, 0, sizeof(errs));
	r = sbx_profile_parse(sbx_span_str(yaml), "t.yaml", load_shipped, NULL, &errs, &p);
	sbx_profile_free(p);
	if (r != SBX_PROFILE_E_INVALID || errs.n != 1 || !strstr(errs.v[0].msg, message)) {
		print_errors(&errs);
		fail_msg("expected '%s' of\n%s", message, yaml);
	}
	assert_string_equal(errs.v[0].file, "t.yaml");
	assert_true(errs.v[0].line > 0 && errs.v[0].column > 0);
}

static void round_trip(const struct sbx_profile *p)
{
	SBX_AUTO_FREE char *text = sbx_profile_print(p), *again = NULL;
	SBX_CLEANUP(sbx_profile_freep) struct sbx_profile *q = good_profile(text);

	again = sbx_profile_print(q);
	assert_string_equal(text, again);
}

/* An allow entry with @keys is fine, @message NULL, or refused. It prints to itself. */
static void entry(const char *keys, const char *message)
{
	char yaml[1024];

	snprintf(yaml, sizeof(yaml), "network:\n  allow:\n    - {%s}\n", keys);
	if (message) {
		refused_text(yaml, message);
		return;
	}
	SBX_CLEANUP(sbx_profile_freep) struct sbx_profile *p = good_profile(yaml);
	round_trip(p);
}

static void secret(const char *keys, const char *message)
{
	char yaml[1024];

	snprintf(yaml, sizeof(yaml), "secrets:\n  - {%s}\n", keys);
	if (message) {
		refused_text(yaml, message);
		return;
	}
	SBX_CLEANUP(sbx_profile_freep) struct sbx_profile *p = good_profile(yaml);
	round_trip(p);
}

static void test_everything(void **state)
{
	SBX_AUTO_FREE char *yaml = NULL, *text = NULL;
	const struct sbx_net_entry *e;
	const struct sbx_secret *s;
	size_t n;

	(void)state;
	yaml = read_source_file("tests/fuzz/corpus/profile/requests.yaml", &n);
	assert_non_null(yaml);
	SBX_CLEANUP(sbx_profile_freep) struct sbx_profile *p = good_profile(yaml);
	assert_string_equal(p->network.extra_ca, "/etc/ssl/corp.pem");
	e = p->network.allow.v;
	assert_int_equal(e[0].access, SBX_ACCESS_READ_ONLY);
	assert_int_equal(e[1].access, SBX_ACCESS_LISTED);
	assert_int_equal(e[1].methods.n, 2);
	assert_string_equal(e[1].methods.v[1], "POST");
	assert_string_equal(e[1].paths.v[0], "/v1/**");
	assert_int_equal(e[1].headers.n, 2);
	assert_string_equal(e[1].headers.v[0], "X-Team: blue");
	assert_string_equal(e[1].headers.v[1], "~odd: ");
	assert_true(e[1].inspect && e[1].websocket && !e[1].passthrough);
	assert_int_equal(e[1].max_request_bytes, 10 << 20);
	assert_string_equal(e[1].cert, "~/c.pem");
	assert_string_equal(e[1].key, "/k.pem");
	assert_true(e[2].passthrough);
	for (size_t i = 0; i < p->network.allow.n; i++)
		assert_false(e[i].terminate); /* reading decides nothing */

	assert_int_equal(p->n_secrets, 4);
	s = p->secrets;
	assert_string_equal(s[0].name, "GITHUB_TOKEN");
	assert_int_equal(s[0].from, SBX_SECRET_ENV);
	assert_string_equal(s[0].source, "GITHUB_TOKEN");
	assert_int_equal(s[0].hosts.n, 1);
	assert_string_equal(s[0].prefix, "ghp_");
	assert_int_equal(s[0].in, 7);
	assert_true(s[0].detect);
	assert_int_equal(s[0].inject, SBX_SECRET_PLACEHOLDER);
	assert_int_equal(s[0].line, 16);
	assert_int_equal(s[1].from, SBX_SECRET_COMMAND);
	assert_null(s[1].source);
	assert_string_equal(s[1].command.v[2], "a b\n");
	assert_true(s[1].hosts.v[1].wildcard);
	assert_int_equal(s[1].inject, SBX_SECRET_HEADER);
	assert_string_equal(s[1].header, "Authorization");
	assert_string_equal(s[1].template_text, "Bearer ${secret}");
	assert_true(s[1].keep_present);
	assert_string_equal(s[1].methods.v[0], "GET");
	assert_string_equal(s[1].paths.v[0], "/repos/**");
	assert_int_equal(s[2].inject, SBX_SECRET_AWS_SIGV4);
	assert_int_equal(s[2].from, SBX_SECRET_COMMAND);
	assert_int_equal(s[2].in, SBX_SECRET_IN_HEADER);
	assert_int_equal(s[3].from, SBX_SECRET_CREDENTIAL);
	assert_false(s[3].keep_present);
	round_trip(p);
	text = sbx_profile_print(p);
	assert_non_null(strstr(text, "\"~odd\": \"\"\n"));
	assert_non_null(strstr(text, "header: \"Authorization: Bearer ${secret}\"\n"));
}

static void test_entry(void **state)
{
	(void)state;
	entry("host: a.example, access: read-only", NULL);
	entry("host: a.example, access: readonly", "entry.access: 'readonly': write read-only");
	entry("host: a.example, access: none", "write read-only");
	entry("host: a.example, access: [GET]", "a mapping of keys: write read-only, {methods:");
	entry("host: a.example, access: {}", "a mapping of keys: write read-only, {methods:");
	entry("host: a.example, methods: [GET]", "in entry: write access: {methods: [...]}");
	entry("host: a.example, paths: [/a]", "in entry: write access: {paths: [...]}");
	entry("host: a.example, access: read-only, websocket: true", "entry.websocket: nothing is");
	entry("host: a.example, access: any, websocket: true", NULL);
	secret("name: A, value: x, hosts: [a.example]", "write from: env:VARIABLE, and leave");
	entry("host: a.example, access: {methods: [GET]}", NULL);
	entry("host: a.example, access: {paths: [/a/]}", NULL);
	entry("host: a.example, access: {methods: []}", "an empty list");
	entry("host: a.example, access: {methods: [GET], paths: []}", "an empty list");
	entry("host: a.example, access: {methods: [get]}", "entry.access.methods: 'get'");
	entry("host: a.example, access: {methods: [CONNECT]}", "CONNECT and TRACE");
	entry("host: a.example, access: {paths: [a]}", "begins with '/'");
	entry("host: a.example, access: {path: [/a]}", "did you mean 'paths'?");
	entry("host: a.example, headers: {X-A: 1, X-B: '2'}", NULL);
	entry("host: a.example, headers: {X-A: 1, x-a: 2}", "'x-a' is there twice");
	entry("host: a.example, headers: {X-A: 1, X-Ab: 2}", NULL);
	entry("host: a.example, headers: {'X A': 1}", "letters, digits");
	entry("host: a.example, headers: {Host: b}", "frames or routes");
	entry("host: a.example, headers: {X-A: [1]}", "must be a string");
	entry("host: a.example, headers: {X-A: \"a\\nb\"}", "control");
	entry("host: a.example, headers: [X-A]", "a mapping of names to values");
	entry("host: a.example, max_request_bytes: 10M", NULL);
	entry("host: a.example, max_request_bytes: 0", "out of range");
	entry("host: a.example, mtls: {cert: /c, key: ~/k}", NULL);
	entry("host: a.example, mtls: {cert: /c}", "both cert and key");
	entry("host: a.example, mtls: {key: /c}", "both cert and key");
	entry("host: a.example, mtls: {cert: c, key: /k}", "absolute path");
	entry("host: a.example, inspect: true, websocket: true", NULL);
	entry("host: a.example, inspect: yes", "one of false, true");
}

static void test_entry_context(void **state)
{
	(void)state;
	/* Only for names that are allowed, and for TCP. */
	entry("cidr: 192.0.2.0/24, access: read-only", "only in network.allow");
	entry("cidr: 192.0.2.0/24, passthrough: true", "only in network.allow");
	entry("cidr: 192.0.2.0/24, private: true", NULL);
	refused_text("network: {deny: [{host: a.example, access: read-only}]}\n",
		     "entry.access: only in network.allow");
	refused_text("network: {deny: [{host: a.example, passthrough: true}]}\n",
		     "entry.passthrough: only in network.allow");
	entry("host: a.example, protocol: udp, inspect: true", "only over TCP");
	entry("host: a.example, protocol: tcp, inspect: true", NULL);
	entry("host: a.example, check: none, headers: {X-A: b}", "leave out check: none");
	entry("host: a.example, check: none, passthrough: true", NULL);
	entry("host: a.example, check: http, headers: {X-A: b}", NULL);
	/* passthrough with any other of them */
	entry("host: a.example, passthrough: true", NULL);
	entry("host: a.example, passthrough: true, access: read-only", "entry.access: needs");
	entry("host: a.example, passthrough: true, access: {methods: [GET]}",
	      "entry.access: needs");
	entry("host: a.example, passthrough: true, headers: {A: b}", "entry.headers: needs");
	entry("host: a.example, passthrough: true, inspect: true", "entry.inspect: needs");
	entry("host: a.example, passthrough: true, websocket: true", "entry.websocket: needs");
	entry("host: a.example, passthrough: true, max_request_bytes: 1K",
	      "entry.max_request_bytes: needs");
	entry("host: a.example, passthrough: true, mtls: {cert: /c, key: /k}", "entry.mtls: needs");
}

static void test_system_policy(void **state)
{
	static const char *const texts[] = {
		"floors: [{host: a.example, inspect: true}]\n",
		"admit: [{cidr: 10.0.0.0/8, inspect: true}]\n",
	};

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(texts); i++) {
		struct sbx_system_policy *s = NULL;

		memset(&errs, 0, sizeof(errs));
		assert_int_equal(sbx_system_policy_parse(sbx_span_str(texts[i]), "s", &errs, &s),
				 SBX_PROFILE_E_INVALID);
		assert_non_null(strstr(errs.v[0].msg, "entry.inspect: only in network.allow"));
	}
}

#define FINE "name: A, from: env:B, hosts: a.example"

static void test_secret(void **state)
{
	(void)state;
	secret(FINE, NULL);
	secret("from: env:B, hosts: a.example", "a secret needs name:");
	secret("name: A-B, from: env:B, hosts: a.example", "secret.name: 'A-B'");
	secret("name: A, hosts: a.example", "one of from and command");
	secret(FINE ", command: [x]", "one of from and command");
	secret("name: A, command: [x, ''], hosts: a.example", "not empty");
	secret("name: A, command: [], hosts: a.example", "words of a command");
	secret("name: A, from: {command: [x, y]}, hosts: a.example", NULL);
	secret("name: A, from: {command: [/x, ./y]}, hosts: a.example", NULL);
	secret("name: A, from: {command: [./x]}, hosts: a.example", "the absolute path");
	secret("name: A, command: [bin/x], hosts: a.example", "the absolute path");
	secret("name: A, from: {}, hosts: a.example", "a word or a mapping");
	secret("name: A, from: env, hosts: a.example", "write env:VARIABLE");
	secret("name: A, from: 'env:', hosts: a.example", "letters, digits");
	secret("name: A, from: 'var:B', hosts: a.example", "write env:VARIABLE");
	secret("name: A, from: 'command:x', hosts: a.example", "from: {command: [WORD, ...]}");
	secret("name: A, from: file:~/x, hosts: a.example", NULL);
	secret("name: A, from: file:/x, hosts: a.example", NULL);
	secret("name: A, from: file:x, hosts: a.example", "an absolute path");
	secret("name: A, from: file:/a/../x, hosts: a.example", "'..'");
	secret("name: A, from: credential:c, hosts: a.example", NULL);
	secret("name: A, from: credential:../c, hosts: a.example", "credential's name");
	secret(FINE ", prefix: ghp_", NULL);
	secret(FINE ", prefix: 'a b'", "secret.prefix");
	secret(FINE ", in: [query, body]", NULL);
	secret(FINE ", in: [cookie]", "header, query and body");
	secret(FINE ", in: []", "an empty list");
	secret(FINE ", methods: [GET], paths: [/a]", NULL);
	secret(FINE ", methods: [get]", "secret.methods: 'get'");
	secret(FINE ", paths: []", "an empty list");
	secret(FINE ", detect: true", NULL);
	secret(FINE ", value: hunter2", "unknown key 'value' in secret");
	refused_text("secrets: {A: b}\n", "secrets must be a list of secrets");
	refused_text("secrets: [A]\n", "secret must be a mapping of keys");
	refused_text("secrets:\n  - {" FINE "}\n  - {" FINE "}\n",
		     "secret 'A' is there twice (first in line 2)");
	refused_text("network: {extra_ca: ca.pem}\n", "network.extra_ca: 'ca.pem'");
}

static void test_secret_hosts(void **state)
{
	(void)state;
	secret("name: A, from: env:B", "hosts must name");
	secret("name: A, from: env:B, hosts: []", "hosts must name");
	secret("name: A, from: env:B, hosts: {a: b}", "a name or a list of names");
	secret("name: A, from: env:B, hosts: [a.example, '*.b.example']", NULL);
	secret("name: A, from: env:B, hosts: '*.github.io'", "public suffix");
	secret("name: A, from: env:B, hosts: '*'", "every name");
	secret("name: A, from: env:B, hosts: 192.0.2.1", "only a name");
	secret("name: A, from: env:B, hosts: '2001:db8::1'", "only a name");
	secret("name: A, from: env:B, hosts: 'a.example:443'", "only a name");
	secret("name: A, from: env:B, hosts: https://a.example/", "only a name");
	secret("name: A, from: env:B, hosts: [192.0.2.0/24]", "only a name");
}

static void test_secret_inject(void **state)
{
	(void)state;
	secret(FINE ", inject: placeholder", NULL);
	secret(FINE ", inject: cookie", "write placeholder or header");
	secret(FINE ", inject: header", "inject: header needs header:");
	secret(FINE ", inject: header, header: 'X-A: ${secret}'", NULL);
	secret(FINE ", inject: {header: 'X-A: ${secret}'}", NULL);
	secret(FINE ", inject: {header: 'X-A: ${secret}'}, header: 'X-B: ${secret}'",
	       "the header is there twice");
	secret(FINE ", header: 'X-A: ${secret}'", "header belongs to inject: header");
	secret(FINE ", inject: placeholder, header: 'X-A: ${secret}'", "belongs to inject: header");
	secret(FINE ", inject: {header: 'X-A: secret'}", "${secret}");
	secret(FINE ", inject: {header: 'X-A: ${secret}'}, in: [body]", "in belongs to");
	secret(FINE ", inject: {header: 'X-A: ${secret}'}, override: false", NULL);
	secret(FINE ", override: false", "override belongs to inject: header");
	secret(FINE ", override: true", NULL);
	secret(FINE ", signing: aws-sigv4", NULL);
	secret(FINE ", signing: aws", "is not one of aws-sigv4");
	secret(FINE ", signing: aws-sigv4, inject: placeholder", "signing excludes");
	secret(FINE ", signing: aws-sigv4, in: [body]", "signing excludes");
}

static void flag(const char *text, const char *message)
{
	SBX_CLEANUP(sbx_profile_freep)
	struct sbx_profile *p = good_profile("secrets: [{" FINE "}]\n");
	struct sbx_err err = { 0 };
	int r = sbx_profile_add_secret_flag(p, text, &err);

	if (!message) {
		assert_int_equal(r, 0);
		assert_int_equal(p->n_secrets, 2);
		assert_int_equal(p->secrets[1].in, SBX_SECRET_IN_HEADER);
		round_trip(p);
	} else if (r != SBX_PROFILE_E_INVALID || !strstr(err.msg, message) ||
		   strncmp(err.msg, "--secret ", 9) != 0) {
		fail_msg("expected '%s', not '%s'", message, err.msg);
	}
}

/* A value in the place of its source is in no message. */
static void test_value_unseen(void **state)
{
	static const char *const flags[] = {
		"T=hunter2@a.example",	   "T=hun@ter2@a.example", "T=hunter2",
		"T=hunter2@",		   "T=hunter2@*.com",	   "T=Env:hunter2@a.example",
		"T:hunter2@a.example",	   "T-X=hunter2@a.example", "1T=hunter2@a.example",
		"T@hunter2@a.example",	   "T=hun=ter2@a.example",  "T= env:hunter2@a.example",
		"T=hunter2@PATH,a.example",
	};
	static const char *const yamls[] = {
		"secrets: [{name: A, hosts: a.example, from: hunter2}]\n",
		"secrets: [{name: A, hosts: a.example, from: \"hunter2\\t\"}]\n",
		"secrets: [{name: A, hosts: a.example, from: 'x:hunter2'}]\n",
		"secrets: [{name: A, hosts: a.example, from: {env: hunter2}}]\n",
		"secrets: [{name: A, hosts: a.example, from: [hunter2]}]\n",
		"secrets: [{name: A, hosts: a.example, command: hunter2}]\n",
		"secrets: [{name: PATH, hosts: a.example, from: hunter2}]\n",
	};

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(flags); i++) {
		SBX_CLEANUP(sbx_profile_freep) struct sbx_profile *p = good_profile("{}\n");
		struct sbx_err err = { 0 };

		assert_int_equal(sbx_profile_add_secret_flag(p, flags[i], &err),
				 SBX_PROFILE_E_INVALID);
		if (strstr(err.msg, "hun") || strstr(err.msg, "ter2") ||
		    !strstr(err.msg, "NAME=FROM@HOST"))
			fail_msg("'%s': %s", flags[i], err.msg);
	}
	for (size_t i = 0; i < SBX_N_ELEMENTS(yamls); i++) {
		struct sbx_profile *p = NULL;

		memset(&errs, 0, sizeof(errs));
		assert_int_equal(sbx_profile_parse(sbx_span_str(yamls[i]), "t.yaml", load_shipped,
						   NULL, &errs, &p),
				 SBX_PROFILE_E_INVALID);
		for (size_t k = 0; k < errs.n; k++)
			if (strstr(errs.v[k].msg, "hunter2"))
				fail_msg("%s%s", yamls[i], errs.v[k].msg);
	}
}

/* Names that programs inside need as they are. */
static void test_reserved_names(void **state)
{
	static const char *const names[] = {
		"PATH",		"HOME",		 "USER",	  "LOGNAME",
		"SHELL",	"LD_PRELOAD",	 "LD_LIBRARY_PATH", "SSL_CERT_FILE",
		"SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "DENO_CERT", "SBX_SANDBOX_ID",
		"SBX_X",
	};

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(names); i++) {
		char text[128];

		snprintf(text, sizeof(text), "%s@a.example", names[i]);
		flag(text, "choose another name");
		snprintf(text, sizeof(text), "name: %s, from: env:B, hosts: a.example", names[i]);
		secret(text, "choose another name");
		/* the source may have any name */
		snprintf(text, sizeof(text), "T=env:%s@a.example", names[i]);
		flag(text, NULL);
	}
	flag("PATH2@a.example", NULL);
	flag("LD@a.example", NULL);
}

/* A wrong form comes with the right one. */
static void test_right_form(void **state)
{
	(void)state;
	secret("name: A, from: {env: B}, hosts: a.example", "write from: env:VARIABLE");
	secret("name: A, from: {file: /b}, hosts: a.example", "write from: file:PATH");
	secret("name: A, from: {credential: b}, hosts: a.example", "write from: credential:NAME");
	secret("name: A, from: [x, y], hosts: a.example", "write env:VARIABLE, file:PATH");
	secret(FINE ", methods: GET", "secret.methods must be a list of strings: write [GET]");
	secret(FINE ", in: body", "must be a list of strings: write [body]");
	entry("host: a.example, access: {methods: GET}", "write [GET]");
	flag("T=env:1@a.example", "'T=env:1@a.example': a variable's name has letters, digits and "
	     "'_', and does not begin with a digit");
	flag("T@a.example,b.example:443", "'T@a.example,b.example:443': 'b.example:443': only");
	flag("A@a.example", "--secret 'A' is a secret of the profile already (line 1)");
}

static void test_flag(void **state)
{
	SBX_CLEANUP(sbx_profile_freep) struct sbx_profile *p = good_profile("{}\n");
	struct sbx_err err = { 0 };

	(void)state;
	flag("T@a.example", NULL);
	flag("T=env:U@a.example,*.b.example", NULL);
	flag("T=credential:x@a.example", NULL);
	flag("T", "write NAME=FROM@HOST");
	flag("T=env:U", "write NAME=FROM@HOST");
	flag("T@", "'T@': write a host behind the '@'");
	flag("sk_live_0123456789abcdef-x@a.example", "'sk_liv...': a variable's name has");
	flag("@a.example", "letters, digits");
	flag("T=@a.example", "FROM is env:VARIABLE");
	flag("T=hunter2@a.example", "'T...': write NAME=FROM@HOST, where FROM is env:VARIABLE");
	flag("T=command:ls@a.example", "in the profile");
	flag("T@a.example,", "no name and no address");
	flag("T@a.example:443", "only a name");

	assert_int_equal(sbx_profile_add_secret_flag(p, "T=file:~/me@home@a.example", &err), 0);
	assert_string_equal(p->secrets[0].source, "~/me@home");
	assert_string_equal(p->secrets[0].hosts.v[0].host, "a.example");
	assert_int_equal(sbx_profile_add_secret_flag(p, "U@a.example", &err), 0);
	assert_int_equal(sbx_profile_add_secret_flag(p, "U@b.example", &err),
			 SBX_PROFILE_E_INVALID);
	assert_string_equal(err.msg,
			    "--secret 'U' is there twice: name all its hosts in one, "
			    "U@HOST,HOST");
	err = (struct sbx_err){ 0 };
	assert_int_equal(p->secrets[1].from, SBX_SECRET_ENV);
	assert_string_equal(p->secrets[1].source, "U");
	for (int i = 2; i <= SBX_SECRETS_MAX; i++) {
		char text[32];

		snprintf(text, sizeof(text), "N%d@a.example", i);
		assert_int_equal(sbx_profile_add_secret_flag(p, text, &err),
				 i < SBX_SECRETS_MAX ? 0 : SBX_PROFILE_E_INVALID);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_everything),    cmocka_unit_test(test_entry),
		cmocka_unit_test(test_entry_context), cmocka_unit_test(test_system_policy),
		cmocka_unit_test(test_secret),	      cmocka_unit_test(test_secret_hosts),
		cmocka_unit_test(test_secret_inject), cmocka_unit_test(test_flag),
		cmocka_unit_test(test_value_unseen),  cmocka_unit_test(test_reserved_names),
		cmocka_unit_test(test_right_form),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
