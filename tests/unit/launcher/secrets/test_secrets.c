/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* All secrets of a run, their memory, and their placeholders. */
#include "launcher/secrets/secrets.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"
#include "launcher/secrets/secret_value.h"
#include "tests/unit/scratch.h"

/* --- placeholders --- */

static void check_placeholder(const char *prefix, size_t n_value, size_t n_random)
{
	const char *first = prefix ? prefix : "sbx_secret_";
	char one[SBX_PLACEHOLDER_MAX + 1], two[SBX_PLACEHOLDER_MAX + 1];

	assert_int_equal(sbx_secret_placeholder(prefix, n_value, one), 0);
	assert_int_equal(sbx_secret_placeholder(prefix, n_value, two), 0);
	assert_int_equal(strncmp(one, first, strlen(first)), 0);
	assert_int_equal(strlen(one), strlen(first) + n_random);
	assert_int_equal(strlen(two), strlen(one));
	assert_string_not_equal(one, two);
	for (const char *c = one + strlen(first); *c; c++)
		assert_true(isalnum((unsigned char)*c));
}

static void test_placeholders(void **state)
{
	char text[SBX_PLACEHOLDER_MAX + 1], prefix[SBX_PLACEHOLDER_MAX + 1];

	(void)state;
	check_placeholder(NULL, 8, 22);
	check_placeholder(NULL, 11 + 21, 22);
	check_placeholder(NULL, 11 + 22, 22);
	check_placeholder(NULL, 11 + 23, 23);
	check_placeholder("ghp_", 40, 36); /* as long as the value */
	check_placeholder("ghp_", 512, 508);
	check_placeholder("ghp_", 513, 22);
	check_placeholder("", 3, 22);
	memset(prefix, 'p', SBX_PLACEHOLDER_MAX);
	prefix[SBX_PLACEHOLDER_MAX - 22] = '\0';
	check_placeholder(prefix, 3, 22);
	prefix[SBX_PLACEHOLDER_MAX - 22] = 'p';
	prefix[SBX_PLACEHOLDER_MAX - 21] = '\0';
	assert_int_equal(sbx_secret_placeholder(prefix, 3, text), -EINVAL);
}

/* --- reading --- */

static char a_set[] = "A=first-value", b_set[] = "B=second";
static char a[] = "A", b[] = "B", c[] = "C";
static void set_again(void)
{
	sbx_text_fit(a_set, sizeof(a_set), "A=first-value");
	sbx_text_fit(b_set, sizeof(b_set), "B=second");
}

static char *with_both[] = { a_set, b_set, NULL }, *with_one[] = { a_set, NULL };

static void test_read(void **state)
{
	struct sbx_secret secrets[] = { { .name = a, .source = a }, { .name = c, .source = b } };
	const struct sbx_profile p = { .n_secrets = 2, .secrets = secrets };
	struct sbx_facts f = { .environ = with_both };
	static struct sbx_secrets s;
	struct sbx_err err = { 0 };

	(void)state;
	set_again();
	assert_int_equal(sbx_secrets_read(&s, &p, NULL, 0, &f, &err), 0);
	assert_int_equal(s.n, 2);
	assert_string_equal(a_set, "A="); /* children have no copy */
	assert_string_equal(b_set, "B=");
	assert_int_equal(s.values[0].n, 11);
	assert_memory_equal(s.values[0].p, "first-value", 11);
	assert_int_equal(s.values[1].n, 6);
	assert_memory_equal(s.values[1].p, "second", 6);
	assert_string_not_equal(s.placeholders[0], s.placeholders[1]);
	sbx_secrets_wipe(&s);
	assert_int_equal(s.values[0].n, 0);
	assert_null(s.values[0].p);
	assert_int_equal(strlen(s.placeholders[0]), 33); /* they stay */
	sbx_secrets_fini(&s);

	set_again();
	f.environ = with_one;
	assert_int_equal(sbx_secrets_read(&s, &p, NULL, 0, &f, &err), -ENOENT);
	assert_non_null(strstr(err.msg, "secret C cannot be read from env:B"));
	assert_null(s.memory);
	sbx_secrets_fini(&s);
}

/* It may be run again, and need the variable again. */
static void test_with_command(void **state)
{
	static char program[] = "true", echo[] = "echo";
	char *argv[] = { echo, program };
	struct sbx_secret secrets[] = { { .name = a, .source = a },
					{ .name = c, .from = SBX_SECRET_COMMAND,
					  .command = { 2, argv } } };
	const struct sbx_profile p = { .n_secrets = 2, .secrets = secrets };
	const struct sbx_facts f = { .environ = with_one };
	static struct sbx_secrets s;
	struct sbx_err err = { 0 };

	(void)state;
	set_again();
	assert_int_equal(sbx_secrets_read(&s, &p, NULL, 0, &f, &err), 0);
	assert_memory_equal(s.values[1].p, "true", 4);
	assert_string_equal(a_set, "A=first-value");
	sbx_secrets_forget_environment(&p, &f);
	assert_string_equal(a_set, "A=");
	sbx_secrets_fini(&s);
}

static size_t n_unmapped; /* mappings that are as large as one value's buffer */

int __real_munmap(void *p, size_t n);
int __wrap_munmap(void *p, size_t n);
int __wrap_munmap(void *p, size_t n)
{
	if (n >= SBX_SECRET_BUFFER) {
		n_unmapped++;
		assert_null(memmem(p, n, "value", 5));
	}
	return __real_munmap(p, n);
}

/* A value that has been read is wiped, although its secret is refused afterwards. */
static void test_wiped_without_a_placeholder(void **state)
{
	char prefix[SBX_PLACEHOLDER_MAX + 1];
	struct sbx_secret secret = { .name = a, .source = a, .prefix = prefix };
	const struct sbx_profile p = { .n_secrets = 1, .secrets = &secret };
	const struct sbx_facts f = { .environ = with_one };
	static struct sbx_secrets s;
	struct sbx_err err = { 0 };

	(void)state;
	set_again();
	memset(prefix, 'p', SBX_PLACEHOLDER_MAX);
	prefix[SBX_PLACEHOLDER_MAX] = '\0';
	n_unmapped = 0;
	assert_int_equal(sbx_secrets_read(&s, &p, NULL, 0, &f, &err), -EINVAL);
	assert_int_equal(n_unmapped, 1);
	sbx_secrets_fini(&s);
}

/* A child of the launcher has no value. */
static void test_child(void **state)
{
	struct sbx_secret secret = { .name = a, .source = a };
	const struct sbx_profile p = { .n_secrets = 1, .secrets = &secret };
	const struct sbx_facts f = { .environ = with_one };
	static struct sbx_secrets s;
	struct sbx_err err = { 0 };
	int status;
	pid_t pid;

	(void)state;
	set_again();
	assert_int_equal(sbx_secrets_read(&s, &p, NULL, 0, &f, &err), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		for (size_t i = 0; i < s.values[0].n; i++)
			if (s.values[0].p[i] != 0)
				_exit(1);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_memory_equal(s.values[0].p, "first-value", 11);
	sbx_secrets_fini(&s);
}

/* --- client certificates --- */

static void put(const char *path, const char *text)
{
	FILE *f = fopen(path, "we");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static void test_mtls(void **state)
{
	static char text[] = "api.example.org", home[] = "/nonexistent";
	char dir[] = "/tmp/sbx-secrets-XXXXXX", cert[64], key[64];
	struct sbx_net_entry plain = { .text = text }, mtls = { .text = text, .cert = cert,
								.key = key };
	const struct sbx_net_entry *entries[] = { &plain, &mtls };
	const struct sbx_profile p = { .n_secrets = 0 };
	const struct sbx_facts f = { .environ = with_one, .home = home };
	static struct sbx_secrets s;
	struct sbx_err err = { 0 };

	(void)state;
	assert_non_null(mkdtemp(dir));
	sbx_text_fit(cert, sizeof(cert), "%s/cert.pem", dir);
	sbx_text_fit(key, sizeof(key), "%s/key.pem", dir);
	put(cert, "-----BEGIN CERTIFICATE-----\nAA==\n");
	assert_int_equal(sbx_secrets_read(&s, &p, entries, 2, &f, &err), -ENOENT);
	assert_non_null(strstr(err.msg, "key of the client certificate of 'api.example.org'"));
	sbx_secrets_fini(&s);

	put(key, "ghp_real\n");
	err = (struct sbx_err){ 0 };
	assert_true(sbx_secrets_read(&s, &p, entries, 2, &f, &err) < 0);
	assert_non_null(strstr(err.msg, "it is not PEM"));
	sbx_secrets_fini(&s);

	put(key, "-----BEGIN PRIVATE KEY-----\nAA==\n");
	assert_int_equal(sbx_secrets_read(&s, &p, entries, 2, &f, &err), 0);
	assert_int_equal(s.n_mtls, 2);
	assert_int_equal(s.mtls[0].cert.n, 0);
	assert_memory_equal(s.mtls[1].cert.p, "-----BEGIN CERTIFICATE-----", 27);
	assert_memory_equal(s.mtls[1].key.p, "-----BEGIN PRIVATE KEY-----", 27);
	sbx_secrets_wipe(&s);
	assert_int_equal(s.mtls[1].key.n, 0);
	sbx_secrets_fini(&s);
	scratch_remove(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_placeholders),
		cmocka_unit_test(test_read),
		cmocka_unit_test(test_with_command),
		cmocka_unit_test(test_wiped_without_a_placeholder),
		cmocka_unit_test(test_child),
		cmocka_unit_test(test_mtls),
	};

	return cmocka_run_group_tests_name("secrets", tests, NULL, NULL);
}
