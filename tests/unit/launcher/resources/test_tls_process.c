/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The launcher's side of sbx-tls. This program itself stands in for sbx-tls: the host of the first
 * rule says which answer it gives. */
#include "launcher/resources/tls_process.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "http/rules.h"
#include "ipc/channel.h"
#include "launcher/resources/program.h"
#include "sys/process/proc.h"
#include "tests/unit/scratch.h"

#define PEM "-----BEGIN CERTIFICATE-----\nAA==\n"

/* --- the stand-in --- */

static bool is(struct sbx_span s, const char *text)
{
	return s.n == strlen(text) && memcmp(s.p, text, s.n) == 0;
}

/* The number of what is not as the tests' profile has it; 0: nothing. */
static int judge_rules(const struct sbx_http_rules *r)
{
	const struct sbx_http_entry *e = r->entries;
	const struct sbx_http_secret *s = r->secrets;

	if (strcmp(r->id, "0123456789ab") != 0 || r->n_entries != 2 || r->n_secrets != 3)
		return 1;
	if (r->n_leaves != 1024 || r->n_flows != sbx_limits_default.n_flows || !r->java)
		return 2;
	if (!is(e[1].host, "*.wild.org") || e[1].access != SBX_HTTP_ACCESS_LISTED ||
	    e[1].methods.n != 1 || !is(e[1].methods.v[0], "PUT") || !is(e[1].cert, "CERT") ||
	    !is(e[1].key, "KEY") || e[0].cert.n != 0)
		return 3;
	if (!is(s->name, "TOKEN") || !is(s->value, "real") || s->hosts.n != 1 ||
	    !is(s->hosts.v[0], "*.wild.org") || !s->override || s->in != SBX_HTTP_IN_QUERY ||
	    !is(s->placeholder, "sbx_secret_0123456789abcdef"))
		return 4;
	if (!is(s[1].value, "value-of-the-self-test-0") || s[1].hosts.n != 1 ||
	    !is(s[1].hosts.v[0], SBX_SELFTEST_NAME) || s[2].hosts.n != 1 ||
	    is(s[2].hosts.v[0], SBX_SELFTEST_NAME))
		return 5;
	return 0;
}

static int map_fd(int fd, struct sbx_span *ret)
{
	struct stat st;
	void *p;

	if (fstat(fd, &st) < 0)
		return -1;
	p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	*ret = sbx_span(p, (size_t)st.st_size);
	return p == MAP_FAILED ? -1 : 0;
}

/* The good answer in a file whose bytes can change: the launcher would wait for them. */
static int write_pem(int fd)
{
	return fd >= 0 && write(fd, PEM, sizeof(PEM) - 1) == sizeof(PEM) - 1 ? fd : -1;
}

static int answer_fd(struct sbx_span host)
{
	static char text[20000] = PEM;
	int fds[2];

	if (is(host, "bad.org"))
		return sbx_memfd_new("a", "no certificate", 14);
	if (is(host, "nul.org"))
		return sbx_memfd_new("a", PEM "\0" PEM, 2 * sizeof(PEM) - 1);
	if (is(host, "empty.org"))
		return memfd_create("a", MFD_CLOEXEC);
	if (is(host, "file.org"))
		return write_pem(open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
	if (is(host, "open.org"))
		return write_pem(memfd_create("a", MFD_CLOEXEC | MFD_ALLOW_SEALING));
	if (is(host, "pipe.org"))
		return pipe2(fds, O_CLOEXEC) < 0 ? -1 : fds[0];
	return sbx_memfd_new("a", text, is(host, "long.org") ? 16385 :
					is(host, "most.org") ? 16384 :
							       sizeof(PEM) - 1);
}

static int stand_in(void)
{
	struct sbx_http_rules rules = { 0 };
	struct sbx_span bytes, trust;
	uint8_t packet[64];
	uint32_t value;
	size_t n, n_fds;
	int fds[SBX_N_TLS_FDS], out[SBX_N_TLS_READY_FDS], wrong = 10;
	ssize_t n_out;

	if (environ[0] || sbx_channel_recv(3, packet, sizeof(packet), &n, fds, SBX_N_TLS_FDS,
					   &n_fds, NULL) != 0)
		return 20;
	if (sbx_msg_decode_simple(sbx_span(packet, n), SBX_MSG_TLS_CONFIG, &value) != 0 ||
	    n_fds != SBX_N_TLS_FDS)
		return 21;
	if (map_fd(fds[SBX_TFD_RULES], &bytes) == 0 && sbx_http_rules_decode(bytes, &rules) == 0)
		wrong = judge_rules(&rules);
	if (wrong != 0)
		return wrong;
	if (map_fd(fds[SBX_TFD_BUNDLE], &trust) < 0 || !is(trust, "HOST\n"))
		return 22;
	/* the broker hears from us */
	if (sbx_channel_send(fds[SBX_TFD_BROKER], "!", 1, NULL, 0) != 0)
		return 23;
	out[SBX_TRFD_AUTHORITY] = answer_fd(rules.entries[0].host);
	out[SBX_TRFD_JAVA] = sbx_memfd_new("j", is(rules.entries[0].host, "jks.org") ?
							"\xfe\xed" : "0\x82", 2);
	n_out = sbx_msg_encode_simple(SBX_MSG_TLS_READY, 0, packet, sizeof(packet));
	if (sbx_channel_send(3, packet, (size_t)n_out, out, SBX_N_TLS_READY_FDS) != 0)
		return 24;
	if (sbx_channel_recv(3, packet, sizeof(packet), &n, fds, 1, &n_fds, NULL) != 0)
		return 0;
	/* SECRET: handed back, so that the test sees it */
	return sbx_channel_send(3, packet, n, fds, n_fds);
}

/* --- the launcher --- */

struct fixture {
	char dir[64];
	struct sbx_facts facts;
	struct sbx_profile profile;
	struct sbx_secret secret;
	struct sbx_net_entry entries[2], wild;
	const struct sbx_net_entry *terminated[2];
	struct sbx_secret_mtls mtls[2];
	struct sbx_secrets secrets;
	struct sbx_plan plan;
	struct sbx_tls_process tls;
	struct sbx_setup setup;
	struct sbx_err err;
};

static char wild_host[] = "wild.org", wild_text[] = "*.wild.org", put_word[] = "PUT";
static char token[] = "TOKEN", host_store[] = "HOST\n";
static char *methods[] = { put_word };

static void fill(struct fixture *f)
{
	f->facts.libexec_dir = f->dir;
	f->wild = (struct sbx_net_entry){ .text = wild_text, .host = wild_host, .wildcard = true };
	f->entries[1] = f->wild;
	f->entries[1].access = SBX_ACCESS_LISTED;
	f->entries[1].methods = (struct sbx_str_list){ 1, methods };
	f->terminated[0] = &f->entries[0];
	f->terminated[1] = &f->entries[1];
	f->secret = (struct sbx_secret){ .name = token, .in = SBX_SECRET_IN_QUERY,
					 .hosts = { .n = 1, .v = &f->wild } };
	f->profile.n_secrets = 1;
	f->profile.secrets = &f->secret;
	f->secrets.n = 1;
	f->secrets.values[0] = sbx_span_str("real");
	sbx_text_fit(f->secrets.placeholders[0], sizeof(f->secrets.placeholders[0]),
		     "sbx_secret_0123456789abcdef");
	for (size_t i = 0; i < SBX_N_ELEMENTS(f->secrets.selftest); i++) {
		struct sbx_selftest_secret *t = &f->secrets.selftest[i];

		sbx_text_fit(t->value, sizeof(t->value), "value-of-the-self-test-%zu", i);
		sbx_text_fit(t->placeholder, sizeof(t->placeholder),
			     "sbx_secret_self_test_%zu_0123456789", i);
	}
	f->mtls[1] = (struct sbx_secret_mtls){ sbx_span_str("CERT"), sbx_span_str("KEY") };
	f->secrets.n_mtls = 2;
	f->secrets.mtls = f->mtls;
	sbx_text_fit(f->plan.id, sizeof(f->plan.id), "0123456789ab");
	f->plan.facts = &f->facts;
	f->plan.profile = &f->profile;
	f->plan.tls = (struct sbx_plan_tls){ .on = true, .n_entries = 2, .entries = f->terminated,
					     .trust = host_store, .n_trust = 5, .java = true };
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	char path[96], self[256];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	assert_non_null(f);
	assert_true(n > 0);
	self[n] = '\0';
	alarm(60);
	sbx_text_fit(f->dir, sizeof(f->dir), "/tmp/sbx-tls-XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	sbx_text_fit(path, sizeof(path), "%s/sbx-tls", f->dir);
	assert_int_equal(symlink(self, path), 0);
	sbx_tls_process_init(&f->tls);
	sbx_setup_init(&f->setup);
	fill(f);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	sbx_tls_process_fini(&f->tls);
	assert_int_equal(f->tls.fd, -1);
	assert_int_equal(f->tls.pid, 0);
	sbx_setup_fini(&f->setup);
	scratch_remove(f->dir);
	free(f);
	alarm(0);
	return 0;
}

static int start(struct fixture *f, const char *host)
{
	static char name[64];

	sbx_text_fit(name, sizeof(name), "%s", host);
	f->entries[0].host = f->entries[0].text = name;
	return sbx_tls_process_start(&f->tls, &f->plan, &f->secrets, -1, &f->err);
}

/* Takes the stand-in's answer, as supervise.c does. 0: it ended without one. */
static bool answers(struct fixture *f)
{
	uint8_t packet[64];
	size_t n, n_fds;
	int flags;

	flags = fcntl(f->tls.fd, F_GETFL);
	assert_true(flags & O_NONBLOCK);
	assert_int_equal(fcntl(f->tls.fd, F_SETFL, flags & ~O_NONBLOCK), 0);
	return sbx_channel_recv(f->tls.fd, packet, sizeof(packet), &n, f->tls.ready_fds,
				SBX_N_TLS_READY_FDS, &n_fds, NULL) == 0;
}

static bool starts(struct fixture *f, const char *host)
{
	assert_int_equal(start(f, host), 0);
	return answers(f);
}

static int ready(struct fixture *f, const char *host)
{
	assert_true(starts(f, host));
	return sbx_tls_process_read_ready(&f->tls, &f->plan, &f->setup, &f->err);
}

static void test_ready(void **state)
{
	struct fixture *f = *state;
	char byte;

	assert_int_equal(ready(f, "good.org"), 0);
	assert_string_equal(f->setup.authority, PEM);
	assert_int_equal(f->setup.n_java, 2);
	assert_int_equal(f->tls.ready_fds[0], -1);
	assert_true(f->tls.broker_fd >= 0);
	assert_int_equal(read(f->tls.broker_fd, &byte, 1), 1);
	assert_int_equal(byte, '!');
}

static void test_secret(void **state)
{
	struct fixture *f = *state;
	SBX_AUTO_CLOSE int value = sbx_memfd_new("s", "new", 3), back = -1;
	uint8_t packet[64];
	size_t n, n_fds;
	uint32_t index;
	char text[8];

	assert_int_equal(ready(f, "good.org"), 0);
	sbx_tls_process_send_secret(&f->tls, 7, value);
	assert_int_equal(sbx_channel_recv(f->tls.fd, packet, sizeof(packet), &n, &back, 1, &n_fds,
					  NULL), 0);
	assert_int_equal(sbx_msg_decode_simple(sbx_span(packet, n), SBX_MSG_SECRET, &index), 0);
	assert_int_equal(index, 7);
	assert_int_equal(pread(back, text, sizeof(text), 0), 3);
	assert_memory_equal(text, "new", 3);
}

static void is_refused(void **state, const char *host)
{
	struct fixture *f = *state;

	assert_int_equal(ready(f, host), -EBADMSG);
	assert_non_null(strstr(f->err.msg, "sbx-tls broke its protocol"));
}

static void test_not_pem(void **state)
{
	is_refused(state, "bad.org");
}

static void test_nul(void **state)
{
	is_refused(state, "nul.org");
}

static void test_empty(void **state)
{
	is_refused(state, "empty.org");
}

static void test_pipe(void **state)
{
	is_refused(state, "pipe.org");
}

static void test_file(void **state)
{
	is_refused(state, "file.org");
}

static void test_not_sealed(void **state)
{
	is_refused(state, "open.org");
}

static void test_long(void **state)
{
	is_refused(state, "long.org");
}

/* Padding behind the text is as bad as a NUL in it. */
static void test_most(void **state)
{
	is_refused(state, "most.org");
}

static void test_not_pkcs12(void **state)
{
	is_refused(state, "jks.org");
}

/* --- it does not start --- */

static void test_unfit(void **state)
{
	static char bad[] = "put";
	struct fixture *f = *state;
	char *lower[] = { bad };

	f->entries[1].methods.v = lower;
	f->entries[0].host = f->entries[0].text = wild_host;
	assert_true(sbx_tls_process_start(&f->tls, &f->plan, &f->secrets, -1, &f->err) < 0);
	assert_non_null(strstr(f->err.msg, "an entry's methods"));
}

/* The values were wiped already. */
static void test_no_values(void **state)
{
	struct fixture *f = *state;

	f->secrets.n_mtls = 0;
	f->entries[0].host = f->entries[0].text = wild_host;
	assert_int_equal(sbx_tls_process_start(&f->tls, &f->plan, &f->secrets, -1, &f->err),
			 -EINVAL);
}

static void test_missing(void **state)
{
	struct fixture *f = *state;
	char path[96];
	int e;

	sbx_text_fit(path, sizeof(path), "%s/sbx-tls", f->dir);
	assert_int_equal(unlink(path), 0);
	e = start(f, "good.org");
	if (e == -EPIPE) /* on a busy machine it ends before it can be configured */
		return;
	assert_int_equal(e, 0);
	assert_false(answers(f));
}

/* Only a channel that ended is told as a program that ended. */
static void test_configure(void **state)
{
	struct sbx_err ended = { 0 }, failed = { 0 };
	int ours, theirs;

	(void)state;
	assert_int_equal(sbx_channel_pair(&ours, &theirs), 0);
	assert_int_equal(sbx_program_configure(ours, "sbx-x", "c", 1, (const int[]){ -1 }, 1,
					       &failed),
			 -EBADF);
	assert_string_equal(failed.msg, "cannot configure sbx-x: Bad file descriptor");
	assert_int_equal(sbx_program_configure(ours, "sbx-x", "c", 1, NULL, 0, NULL), 0);
	close(theirs);
	assert_int_equal(sbx_program_configure(ours, "sbx-x", "c", 1, NULL, 0, &ended), -EPIPE);
	assert_string_equal(ended.msg, "sbx-x ended before it was configured");
	close(ours);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(test_ready),  TEST(test_secret), TEST(test_not_pem),    TEST(test_nul),
		TEST(test_empty),  TEST(test_pipe),   TEST(test_long),	     TEST(test_most),
		TEST(test_not_pkcs12), TEST(test_unfit), TEST(test_no_values), TEST(test_missing),
		TEST(test_file),   TEST(test_not_sealed), cmocka_unit_test(test_configure),
	};

	if (argc == 1 && strcmp(argv[0], "sbx-tls") == 0)
		return stand_in();
	return cmocka_run_group_tests_name("tls_process", tests, NULL, NULL);
}
