/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Plans with terminated hosts: the trust store, its mounts and variables, secrets, the JSON. */
#include "tests/unit/plan_world.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "launcher/setup/bwrap_argv.h"
#include "launcher/setup/plan_json.h"
#include "launcher/setup/setup.h"
#include "launcher/view/environment.h"

#define STORE "/etc/ssl/certs/ca-certificates.crt"
#define PEM(name) \
	"-----BEGIN CERTIFICATE-----\n" name "\n-----END CERTIFICATE-----\n"
#define ONLY "network: {allow: [{host: api.example.org, access: read-only}]}\n"
#define TOKEN(from) "secrets: [{name: TOKEN, from: '" from "', hosts: [api.example.org]}]\n"
#define HEADER "secrets: [{name: TOKEN, from: 'env:REAL', hosts: [api.example.org], " \
	       "inject: header, header: 'Authorization: Bearer ${secret}'}]\n"

static int setup(void **state)
{
	int r = plan_world_setup(state);

	if (r == 0)
		plan_world_write(*state, "root" STORE, PEM("host"), 0644);
	return r;
}

static const char *get(const struct plan_world *w, const char *name)
{
	return sbx_environment_get(&w->plan->env, name);
}

static void profile(struct plan_world *w, const char *text)
{
	char all[2048];

	snprintf(all, sizeof(all), "name: t\n%s", text);
	plan_world_write(w, "config/profiles/t.yaml", all, 0644);
}

#define must(w, ...) plan_world_must(w, "--profile", "t", __VA_ARGS__, "--", "true")
#define refused(w, part, ...) \
	plan_world_refused(w, 125, part, "--profile", "t", __VA_ARGS__, "--", "true")

/* --- with and without --- */

static void test_without(void **state)
{
	struct plan_world *w = *state;

	profile(w, "network: {allow: [{host: api.example.org}]}\n");
	must(w, "-q");
	assert_false(w->plan->tls.on);
	assert_null(get(w, "NODE_EXTRA_CA_CERTS"));
	assert_null(plan_world_mount(w, STORE));
	for (uint32_t i = 0; i < w->plan->probes->n_probes; i++)
		assert_int_not_equal(w->plan->probes->probes[i].kind, SBX_PROBE_TRUST);
	/* an air gap may end while the sandbox runs: everything is there for later */
	profile(w, ONLY TOKEN("env:REAL"));
	must(w, "--air-gap");
	assert_true(w->plan->tls.on);
	assert_non_null(get(w, "TOKEN"));
	assert_int_equal(plan_world_n_notes(w), 0);
	/* no flow ever leaves: nothing is terminated, and no secret has a variable */
	must(w, "-q");
	assert_true(w->plan->tls.on);
	assert_non_null(get(w, "TOKEN"));
	assert_int_equal(plan_world_n_notes(w), 0);
	profile(w, "network: {mode: offline}\n" TOKEN("env:REAL"));
	must(w, "-q");
	assert_true(plan_world_noted(w,
				     "the secret TOKEN is left out, and its variable is not set: "
				     "nothing leaves the sandbox (the profile is offline)"));
	/* a header has no variable */
	profile(w, "network: {mode: offline}\n" HEADER);
	must(w, "-q");
	assert_true(plan_world_noted(w, "the secret TOKEN is left out: nothing leaves"));
}

/* A plan that only is printed reads no secret, and says so of a variable that is not set. */
static void test_dry_run(void **state)
{
	struct plan_world *w = *state;

	profile(w, ONLY TOKEN("env:REAL"));
	must(w, "--dry-run");
	assert_true(plan_world_noted(w, "secret TOKEN: REAL is not set here, so a run would be "
					"refused"));
	must(w, "-q"); /* the run says it itself */
	assert_int_equal(plan_world_n_notes(w), 0);
	plan_world_env(w, "REAL=x");
	must(w, "--dry-run");
	assert_int_equal(plan_world_n_notes(w), 0);
}

static void test_trust(void **state)
{
	static const char *const names[] = {
		"NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE",	   "REQUESTS_CA_BUNDLE",
		"CURL_CA_BUNDLE",      "PIP_CERT",	   "GIT_SSL_CAINFO",
		"AWS_CA_BUNDLE",       "CARGO_HTTP_CAINFO", "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
		"DENO_CERT",	       "NIX_SSL_CERT_FILE",
	};
	struct plan_world *w = *state;
	const struct sbx_mount_op *op;

	profile(w, ONLY);
	must(w, "-q");
	assert_true(w->plan->tls.on);
	assert_int_equal(w->plan->tls.n_entries, 1);
	assert_string_equal(w->plan->tls.trust, PEM("host"));
	for (size_t i = 0; i < SBX_N_ELEMENTS(names); i++)
		assert_string_equal(get(w, names[i]), STORE);
	assert_null(get(w, "SSL_CERT_DIR"));
	op = plan_world_mount(w, STORE);
	assert_non_null(op);
	assert_int_equal(op->kind, SBX_MOUNT_FILE);
	assert_int_equal(op->fill, SBX_FILL_TRUST);
	assert_false(w->plan->tls.java);
	assert_null(plan_world_mount(w, "/etc/ssl/certs/java/cacerts"));
	/* the last mount turns the root read-only */
	assert_int_equal(w->plan->view.mounts[w->plan->view.n_mounts - 1].kind,
			 SBX_MOUNT_REMOUNT_RO);
}

/* --- places --- */

static void test_other_places(void **state)
{
	struct plan_world *w = *state;

	plan_world_mkdir(w, "root/etc/ssl/certs/java");
	plan_world_write(w, "root/etc/ssl/certs/java/cacerts", "java", 0644);
	plan_world_mkdir(w, "root/etc/pki");
	plan_world_mkdir(w, "root/etc/pki/tls");
	plan_world_mkdir(w, "root/etc/pki/tls/certs");
	plan_world_write(w, "root/etc/pki/tls/real.pem", PEM("host"), 0644);
	plan_world_link(w, "root/etc/pki/tls/certs/ca-bundle.crt", "../real.pem");
	plan_world_link(w, "root/etc/ssl/cert.pem", "certs/ca-certificates.crt");
	profile(w, ONLY);
	must(w, "-q");
	assert_true(w->plan->tls.java);
	assert_int_equal(plan_world_mount(w, "/etc/ssl/certs/java/cacerts")->fill, SBX_FILL_JAVA);
	assert_int_equal(plan_world_mount(w, "/etc/pki/tls/real.pem")->fill, SBX_FILL_TRUST);
	assert_int_equal(plan_world_mount(w, STORE)->fill, SBX_FILL_TRUST);
	/* links lead to what is covered already */
	assert_null(plan_world_mount(w, "/etc/ssl/cert.pem"));
	assert_null(plan_world_mount(w, "/etc/pki/tls/certs/ca-bundle.crt"));
}

/* A root without a trust store gets one; nothing can be made in a directory of the host's. */
static void test_minimal(void **state)
{
	struct plan_world *w = *state;
	char bind[160];

	profile(w, "filesystem: {root: minimal}\n" ONLY);
	snprintf(bind, sizeof(bind), "%s/root/usr:/usr", w->dir);
	plan_world_must(w, "--profile", "t", "--ro-bind", bind, "--", "/usr/bin/true");
	assert_int_equal(plan_world_mount(w, STORE)->fill, SBX_FILL_TRUST);
	assert_string_equal(get(w, "SSL_CERT_FILE"), STORE);
	plan_world_mkdir(w, "home/ssl");
	snprintf(bind, sizeof(bind), "%s/home/ssl:/etc/ssl", w->dir);
	plan_world_must(w, "--profile", "t", "--ro-bind", bind, "--ro-bind",
			plan_world_path(w, "root/usr"), "--",
			plan_world_path(w, "root/usr/bin/true"));
	assert_null(plan_world_mount(w, STORE));
	assert_string_equal(get(w, "SSL_CERT_FILE"), "/run/sbx/ca-certificates.crt");
	assert_int_equal(plan_world_mount(w, "/run/sbx/ca-certificates.crt")->fill,
			 SBX_FILL_TRUST);
}

/* --- what is trusted --- */

static void test_extra_ca(void **state)
{
	struct plan_world *w = *state;

	plan_world_write(w, "home/extra.pem", PEM("extra"), 0644);
	profile(w, "network: {extra_ca: ~/extra.pem, "
		   "allow: [{host: api.example.org, access: read-only}]}\n");
	must(w, "-q");
	assert_string_equal(w->plan->tls.trust, PEM("host") PEM("extra"));
	plan_world_write(w, "home/extra.pem", "no certificate\n", 0644);
	refused(w, "network.extra_ca: ~/extra.pem: it has no certificate in PEM", "-q");
}

/* All files together may have 4 MiB. */
static void test_too_much(void **state)
{
	const char extra[] = PEM("extra");
	const size_t n_max = 4u << 20;
	struct plan_world *w = *state;
	char *store = malloc(n_max + 2);

	assert_non_null(store);
	memset(store, 'x', n_max + 1);
	memcpy(store, PEM("host"), strlen(PEM("host")));
	plan_world_write(w, "home/extra.pem", extra, 0644);
	profile(w, "network: {extra_ca: ~/extra.pem, "
		   "allow: [{host: api.example.org, access: read-only}]}\n");
	store[n_max - strlen(extra) - 1] = '\0';
	plan_world_write(w, "root" STORE, store, 0644);
	must(w, "-q");
	assert_int_equal(w->plan->tls.n_trust, n_max);
	assert_string_equal(w->plan->tls.trust + n_max - strlen(extra) - 2, "x\n" PEM("extra"));
	store[n_max - strlen(extra) - 1] = 'x';
	for (size_t n = n_max - strlen(extra); n <= n_max; n += strlen(extra)) {
		store[n] = '\0';
		plan_world_write(w, "root" STORE, store, 0644);
		refused(w, "network.extra_ca: ~/extra.pem: with it, the trusted certificates are "
			   "longer than 4 MiB", "-q");
		store[n] = 'x';
	}
	store[n_max + 1] = '\0'; /* a host's store that is too long is not taken */
	plan_world_write(w, "root" STORE, store, 0644);
	must(w, "-q");
	assert_string_equal(w->plan->tls.trust, PEM("extra"));
	free(store);
	plan_world_write(w, "root" STORE, PEM("host"), 0644);
}

static void test_no_store(void **state)
{
	struct plan_world *w = *state;

	profile(w, ONLY);
	plan_world_write(w, "root" STORE, "", 0644);
	must(w, "-q");
	assert_int_equal(w->plan->tls.n_trust, 0);
	assert_non_null(strstr(w->plan->notes.v[w->plan->notes.n - 1],
			       "this host has no trust store"));
	plan_world_write(w, "root" STORE, PEM("host"), 0644);
	must(w, "-q");
}

/* A company's authority, which the caller's programs know by these variables. */
static void test_named(void **state)
{
	struct plan_world *w = *state;
	char entry[160];

	plan_world_write(w, "home/corp.pem", "-----BEGIN CERTIFICATE-----\ncorp", 0644);
	snprintf(entry, sizeof(entry), "REQUESTS_CA_BUNDLE=%s/home/corp.pem", w->dir);
	plan_world_env(w, entry);
	snprintf(entry, sizeof(entry), "CURL_CA_BUNDLE=%s/home/corp.pem", w->dir);
	plan_world_env(w, entry);
	plan_world_env(w, "SSL_CERT_FILE=" STORE);
	plan_world_env(w, "PIP_CERT=/nonexistent/file");
	plan_world_env(w, "SSL_CERT_DIR=/etc/ssl/certs");
	profile(w, ONLY "environment: {pass: ['SSL_*', PIP_CERT]}\n");
	must(w, "-q");
	assert_string_equal(w->plan->tls.trust,
			    PEM("host") "-----BEGIN CERTIFICATE-----\ncorp\n");
	assert_string_equal(get(w, "REQUESTS_CA_BUNDLE"), STORE);
	assert_string_equal(get(w, "SSL_CERT_FILE"), STORE);
	assert_string_equal(get(w, "PIP_CERT"), STORE);
	assert_null(get(w, "SSL_CERT_DIR"));
	/* what the profile and a flag say wins */
	profile(w, ONLY "environment: {set: {PIP_CERT: /mine.pem}}\n");
	must(w, "--env", "CURL_CA_BUNDLE=/other.pem");
	assert_string_equal(get(w, "PIP_CERT"), "/mine.pem");
	assert_string_equal(get(w, "CURL_CA_BUNDLE"), "/other.pem");
	assert_string_equal(get(w, "SSL_CERT_FILE"), STORE);
}

/* --- secrets --- */

static void test_variables(void **state)
{
	struct plan_world *w = *state;

	plan_world_env(w, "REAL=ghp_real");
	plan_world_env(w, "TOKEN=ghp_other");
	profile(w, ONLY TOKEN("env:REAL") "environment: {pass: ['RE*', REAL, TOKEN]}\n");
	must(w, "-q");
	assert_string_equal(get(w, "TOKEN"), ""); /* the run knows the placeholder */
	assert_true(plan_world_noted(w, "environment.pass: REAL is not passed: the secret TOKEN is "
					"read from it"));
	assert_true(plan_world_noted(w, "environment.pass: TOKEN is not passed: the secret TOKEN "
					"has that variable"));
	assert_int_equal(plan_world_n_notes(w), 2);
	assert_null(get(w, "REAL"));
	refused(w, "--env TOKEN: the secret TOKEN has that variable", "--env", "TOKEN=x");
	refused(w, "--env TOKEN: the secret TOKEN has that variable", "--env", "TOKEN");
	refused(w, "--env REAL: the secret TOKEN has that variable", "--env", "REAL");
	must(w, "--env", "REAL=harmless");
	assert_string_equal(get(w, "REAL"), "harmless");
	profile(w, ONLY TOKEN("env:REAL") "environment: {set: {TOKEN: x}}\n");
	refused(w, "environment.set: 'TOKEN' is a secret's variable", "-q");
}

/* A secret that becomes a header has no variable; one of that name is free. */
static void test_header(void **state)
{
	struct plan_world *w = *state;

	plan_world_env(w, "REAL=ghp_real");
	profile(w, ONLY HEADER "environment: {pass: ['RE*', REAL]}\n");
	must(w, "-q");
	assert_null(get(w, "TOKEN"));
	assert_null(get(w, "REAL"));
	must(w, "--env", "TOKEN=x");
	assert_string_equal(get(w, "TOKEN"), "x");
}

/* --- the run's part --- */

static void test_setup(void **state)
{
	static struct sbx_setup s;
	static struct sbx_secrets secrets = { .n = 1, .placeholders = { "sbx_secret_abc" } };
	struct plan_world *w = *state;
	SBX_AUTO_FREE char *args = NULL;
	const struct sbx_probe *probe;
	int fills[SBX_N_FILLS];
	char text[2048] = "", authority[SBX_PROBE_EXPECT_MAX + 16] = "";
	struct sbx_mount_op op;
	size_t n;

	memset(fills, -1, sizeof(fills));
	profile(w, ONLY TOKEN("env:REAL"));
	must(w, "-q");
	sbx_setup_init(&s);
	sbx_setup_start(&s, w->plan);
	op = sbx_setup_mount(&s, plan_world_mount(w, STORE));
	assert_int_equal(op.n_text, 0);
	memset(authority, 'a', sizeof(authority) - 2);
	authority[0] = 'A';
	assert_int_equal(sbx_setup_trust(&s, sbx_span_str(authority)), 0);
	strcat(authority, "\n");
	op = sbx_setup_mount(&s, plan_world_mount(w, STORE));
	assert_int_equal(op.n_text, 0);
	fills[SBX_FILL_TRUST] = memfd_create("trust", MFD_CLOEXEC);
	assert_int_equal(sbx_setup_write_fills(&s, w->plan, fills), 0);
	assert_true(pread(fills[SBX_FILL_TRUST], text, sizeof(text), 0) < (int)sizeof(text));
	n = strlen(PEM("host"));
	assert_memory_equal(text, PEM("host"), n);
	assert_string_equal(text + n, authority);
	fills[SBX_FILL_JAVA] = fills[SBX_FILL_TRUST]; /* no text is known */
	assert_int_equal(sbx_setup_write_fills(&s, w->plan, fills), -EBADMSG);
	fills[SBX_FILL_JAVA] = -1;
	close(fills[SBX_FILL_TRUST]);
	fills[SBX_FILL_TRUST] = open("/dev/null", O_WRONLY | O_CLOEXEC); /* no file */
	assert_int_equal(sbx_setup_write_fills(&s, w->plan, fills), -EBADMSG);
	close(fills[SBX_FILL_TRUST]);
	/* the self-test expects the end of it, and sends placeholders of its own */
	probe = &s.probes.probes[s.probes.n_probes - 3];
	assert_int_equal(probe->kind, SBX_PROBE_TRUST);
	assert_string_equal(probe->name, STORE);
	assert_string_equal(probe->expect,
			    authority + strlen(authority) - (SBX_PROBE_EXPECT_MAX - 1));
	strcpy(secrets.selftest[0].placeholder, "sbx_secret_probe");
	strcpy(secrets.selftest[1].placeholder, "sbx_secret_other");
	assert_int_equal(sbx_setup_placeholders(&s, w->plan, &secrets), 0);
	assert_int_equal(probe[1].kind, SBX_PROBE_SECRET);
	assert_string_equal(probe[1].expect, "sbx_secret_probe");
	assert_int_equal(probe[2].kind, SBX_PROBE_SECRET_REFUSED);
	assert_string_equal(probe[2].expect, "sbx_secret_other");
	assert_int_equal(sbx_bwrap_args(w->plan, &s, &args, &n), 0);
	assert_non_null(memmem(args, n, "--setenv\0TOKEN\0sbx_secret_abc\0", 30));
	for (size_t i = 0; i < w->plan->env.n; i++)
		if (w->plan->env.origin[i] != SBX_ENV_SECRET)
			assert_string_equal(s.env[i], w->plan->env.v[i]);
	assert_null(s.env[w->plan->env.n]);
	sbx_setup_fini(&s);
}

/* --- the JSON --- */

static json_t *json_of(struct plan_world *w)
{
	SBX_AUTO_FREE char *text = sbx_plan_json(w->plan, NULL);
	json_t *o;

	assert_non_null(text);
	assert_null(strstr(text, "ghp_real"));
	assert_null(strstr(text, "BEGIN CERTIFICATE"));
	o = json_loads(text, 0, NULL);
	assert_non_null(o);
	return o;
}

static void is_json(const json_t *o, const char *want)
{
	SBX_AUTO_FREE char *text = json_dumps(o, JSON_COMPACT);

	assert_string_equal(text, want);
}

static void test_json(void **state)
{
	struct plan_world *w = *state;
	json_t *o;

	plan_world_env(w, "REAL=ghp_real");
	profile(w, "network: {allow: [{host: api.example.org, access: read-only, "
		   "max_request_bytes: 1M}, {host: '*.b.org', inspect: true}, c.org, "
		   "{host: d.org, access: {methods: [GET]}}, e.b.org]}\n"
		   "secrets:\n"
		   "- {name: A, from: 'env:REAL', hosts: [api.example.org, x.b.org]}\n"
		   "- {name: B, command: [pass, ghp_real], hosts: ['*.b.org'], inject: header, "
		   "header: 'X-Key: ${secret}'}\n");
	must(w, "-q");
	o = json_of(w);
	is_json(json_object_get(o, "secrets"),
		"[{\"name\":\"A\",\"from\":\"env:REAL\",\"hosts\":[\"api.example.org\","
		"\"x.b.org\"],\"inject\":\"placeholder\"},{\"name\":\"B\",\"from\":"
		"\"command:pass\",\"hosts\":[\"*.b.org\"],\"inject\":\"header\"}]");
	is_json(json_object_get(json_object_get(o, "network"), "terminated"),
		"[{\"host\":\"api.example.org\",\"why\":[\"access\",\"max_request_bytes\","
		"\"secret A\"],\"access\":\"read-only\"},{\"host\":\"*.b.org\",\"why\":["
		"\"inspect\",\"secret A\",\"secret B\"],\"access\":\"any\"},{\"host\":\"d.org\","
		"\"why\":[\"access\"],\"access\":{\"methods\":[\"GET\"],\"paths\":[]}},"
		"{\"host\":\"e.b.org\",\"why\":[\"inspect\",\"secret B\"],\"access\":\"any\"}]");
	json_decref(o);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, plan_world_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_without),   TEST(test_trust),	 TEST(test_other_places),
		TEST(test_minimal),   TEST(test_extra_ca), TEST(test_too_much),
		TEST(test_no_store),
		TEST(test_named),     TEST(test_variables), TEST(test_header),
		TEST(test_setup),     TEST(test_json),
		TEST(test_dry_run),
	};

	return cmocka_run_group_tests_name("plan_tls", tests, NULL, NULL);
}
