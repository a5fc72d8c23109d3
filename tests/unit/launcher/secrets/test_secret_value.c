/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Each source of a secret, and each refusal beside its twin. */
#include "launcher/secrets/secret_value.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "tests/unit/scratch.h"

#define VALUE "ghp_real-value-0123456789"

struct fixture {
	char dir[64];
	char home[80];
	char *environ[8];
	struct sbx_facts facts;
	char buf[SBX_SECRET_BUFFER];
	size_t n;
	struct sbx_err err;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	sbx_text_fit(f->dir, sizeof(f->dir), "/tmp/sbx-secret-XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	sbx_text_fit(f->home, sizeof(f->home), "%s/home", f->dir);
	assert_int_equal(mkdir(f->home, 0700), 0);
	f->facts.home = f->home;
	f->facts.environ = f->environ;
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	scratch_remove(f->dir);
	free(f);
	return 0;
}

static void write_file(const struct fixture *f, const char *name, const char *text, size_t n)
{
	char path[160];
	FILE *file;

	sbx_text_fit(path, sizeof(path), "%s/%s", f->dir, name);
	file = fopen(path, "we");
	assert_non_null(file);
	assert_int_equal(fwrite(text, 1, n, file), n);
	assert_int_equal(fclose(file), 0);
}

static int read_from(struct fixture *f, const struct sbx_secret *s)
{
	f->err = (struct sbx_err){ 0 };
	f->n = 0;
	return sbx_secret_value_read(s, &f->facts, 2000, f->buf, &f->n, &f->err);
}

static void gives(struct fixture *f, const struct sbx_secret *s, const char *value)
{
	int r = read_from(f, s);

	if (r != 0)
		fail_msg("%s", f->err.msg);
	assert_int_equal(f->n, strlen(value));
	assert_memory_equal(f->buf, value, f->n);
}

/* Refused with a message that names the secret and has @part in it, and no byte is left. */
static void refuses(struct fixture *f, const struct sbx_secret *s, const char *part)
{
	assert_true(read_from(f, s) < 0);
	if (!strstr(f->err.msg, part) || !strstr(f->err.msg, "secret TOKEN"))
		fail_msg("no '%s' in: %s", part, f->err.msg);
	assert_null(strstr(f->err.msg, "ghp_real"));
	for (size_t i = 0; i < sizeof(f->buf); i++)
		assert_int_equal(f->buf[i], 0);
}

static struct sbx_secret secret_of(enum sbx_secret_from from, char *source)
{
	static char name[] = "TOKEN";

	return (struct sbx_secret){ .name = name, .from = from, .source = source };
}

/* --- env --- */

static void test_env(void **state)
{
	static char source[] = "GH", set[] = "GH=" VALUE, other[] = "GHX=no", empty[] = "GH=",
		    token[] = "ghp_0123456789abcdefghijklmnopqrstuvwxyz",
		    longest[] = "GOOGLE_APPLICATION_CREDENTIALS";
	struct fixture *f = *state;
	struct sbx_secret s = secret_of(SBX_SECRET_ENV, source);

	f->environ[0] = other;
	refuses(f, &s, "from env:GH: the variable is not set");
	s.name = s.source = token; /* a value in the place of the name */
	assert_int_equal(read_from(f, &s), -ENOENT);
	assert_non_null(strstr(f->err.msg, "secret ghp_01...: no variable has that name"));
	assert_null(strstr(f->err.msg, "ghp_012"));
	s.name = s.source = longest;
	assert_int_equal(read_from(f, &s), -ENOENT);
	assert_non_null(strstr(f->err.msg, "secret GOOGLE_APPLICATION_CREDENTIALS cannot be read"));
	s = secret_of(SBX_SECRET_ENV, source);
	f->environ[1] = set;
	gives(f, &s, VALUE);
	f->environ[1] = empty;
	refuses(f, &s, "it is empty");
}

/* A value that could not sign is refused before the start. */
static void test_aws(void **state)
{
	static const char key60[] =
		"GH=AKIA:012345678901234567890123456789012345678901234567890123456789";
	static char source[] = "GH", pair[] = "GH=AKIA:ghp_real", whole[] = "GH=ghp_real",
		    no_id[] = "GH=:ghp_real", no_key[] = "GH=ghp_real:", two[] = "GH=A:gh:p_real";
	static char most[sizeof(key60)], more[sizeof(key60) + 1];
	static char *const bad[] = { whole, no_id, no_key, more };
	struct fixture *f = *state;
	struct sbx_secret s = secret_of(SBX_SECRET_ENV, source);

	memcpy(most, key60, sizeof(key60));
	sbx_text_fit(more, sizeof(more), "%sx", key60);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		f->environ[0] = bad[i];
		s.inject = SBX_SECRET_AWS_SIGV4;
		refuses(f, &s, "it is not ACCESSKEYID:SECRETKEY, as signing: aws-sigv4 needs it");
		s.inject = SBX_SECRET_PLACEHOLDER;
		gives(f, &s, bad[i] + 3);
	}
	s.inject = SBX_SECRET_AWS_SIGV4;
	f->environ[0] = pair;
	gives(f, &s, pair + 3);
	f->environ[0] = two;
	gives(f, &s, two + 3);
	f->environ[0] = most;
	gives(f, &s, most + 3);
}

/* --- file --- */

/* A uid of the pool is another one in each run, so nobody can give it a file. */
static void test_file_of_the_pool(void **state)
{
	static char source[] = "~/token";
	struct fixture *f = *state;
	struct sbx_secret s = secret_of(SBX_SECRET_FILE, source);
	char path[160];

	write_file(f, "home/token", VALUE, strlen(VALUE));
	sbx_text_fit(path, sizeof(path), "%s/token", f->home);
	assert_int_equal(chmod(path, 0), 0);
	/* root reads as the sandbox's user */
	f->facts.privileged = geteuid() == 0;
	f->facts.uid = f->facts.privileged ? 65534 : geteuid();
	f->facts.gid = f->facts.privileged ? 65534 : getegid();
	refuses(f, &s, "may not read it; give that user the file");
	f->facts.throwaway_user = true;
	refuses(f, &s,
		"one of the pool, may not read it, and the next run has another uid: name a user "
		"with --user, or use env: or credential:");
}

static void test_file(void **state)
{
	static char source[] = "~/token";
	struct fixture *f = *state;
	struct sbx_secret s = secret_of(SBX_SECRET_FILE, source);

	refuses(f, &s, "from file:~/token: there is no such file");
	write_file(f, "home/token", VALUE "\n", strlen(VALUE) + 1);
	gives(f, &s, VALUE);
	write_file(f, "home/token", VALUE, strlen(VALUE));
	gives(f, &s, VALUE);
}

static void test_file_kind(void **state)
{
	struct fixture *f = *state;
	char path[160];
	struct sbx_secret s = secret_of(SBX_SECRET_FILE, path);

	sbx_text_fit(path, sizeof(path), "%s", f->home);
	refuses(f, &s, "no regular file");
	sbx_text_fit(path, sizeof(path), "%s/fifo", f->dir);
	assert_int_equal(mkfifo(path, 0600), 0);
	refuses(f, &s, "no regular file");
	sbx_text_fit(path, sizeof(path), "%s/plain", f->dir);
	write_file(f, "plain", VALUE, strlen(VALUE));
	gives(f, &s, VALUE);
}

/* Values that no header could carry are refused. */
static void test_content(void **state)
{
	static char source[] = "~/token";
	struct fixture *f = *state;
	struct sbx_secret s = secret_of(SBX_SECRET_FILE, source);
	static const struct {
		const char *text, *part;
		size_t n;
	} rows[] = {
		{ "", "it is empty", 0 },
		{ "\n", "it is empty", 1 },
		{ "ghp_real\n\n", "more than one line", 10 },
		{ "ghp_real\nb\n", "more than one line", 11 },
		{ "ghp_real\r\n", "more than one line", 10 },
		{ "ghp_real\0b", "NUL byte", 10 },
		{ "ghp_real\033", "control character", 9 },
		{ "ghp_real\177", "control character", 9 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		write_file(f, "home/token", rows[i].text, rows[i].n);
		refuses(f, &s, rows[i].part);
	}
	write_file(f, "home/token", "a b\tc\n", 6);
	gives(f, &s, "a b\tc");
}

static void test_longest(void **state)
{
	static char source[] = "~/token", text[SBX_SECRET_VALUE_MAX + 4];
	struct fixture *f = *state;
	struct sbx_secret s = secret_of(SBX_SECRET_FILE, source);

	memset(text, 'x', sizeof(text));
	write_file(f, "home/token", text, SBX_SECRET_VALUE_MAX);
	assert_int_equal(read_from(f, &s), 0);
	assert_int_equal(f->n, SBX_SECRET_VALUE_MAX);
	text[SBX_SECRET_VALUE_MAX] = '\n';
	write_file(f, "home/token", text, SBX_SECRET_VALUE_MAX + 1);
	assert_int_equal(read_from(f, &s), 0);
	assert_int_equal(f->n, SBX_SECRET_VALUE_MAX);
	text[SBX_SECRET_VALUE_MAX] = 'x';
	write_file(f, "home/token", text, SBX_SECRET_VALUE_MAX + 1);
	refuses(f, &s, "longer than 65536 bytes");
	write_file(f, "home/token", text, SBX_SECRET_VALUE_MAX + 3);
	refuses(f, &s, "longer than 65536 bytes");
}

/* --- credential --- */

static void test_credential(void **state)
{
	static char good[] = "token", up[] = "../home/token", dots[] = "..", absent[] = "other";
	struct fixture *f = *state;
	struct sbx_secret s = secret_of(SBX_SECRET_CREDENTIAL, good);
	char set[128];

	write_file(f, "token", VALUE, strlen(VALUE));
	write_file(f, "home/token", VALUE, strlen(VALUE));
	refuses(f, &s, "there is no $CREDENTIALS_DIRECTORY");
	sbx_text_fit(set, sizeof(set), "CREDENTIALS_DIRECTORY=%s", f->dir);
	f->environ[0] = set;
	gives(f, &s, VALUE);
	s.source = absent;
	refuses(f, &s, "from credential:other: there is no such file");
	s.source = up;
	refuses(f, &s, "has no '/'");
	s.source = dots;
	refuses(f, &s, "has no '/'");
}

/* --- command --- */

static void test_command(void **state)
{
	static char sh[] = "sh", c[] = "-c", script[256], missing[] = "sbx-no-such-program";
	static char path[] = "PATH=/usr/bin:/bin", set[] = "GH=" VALUE;
	/* a profile's list has no NULL at its end */
	char *argv[] = { sh, c, script, set }, *none[] = { missing, set };
	struct fixture *f = *state;
	struct sbx_secret s = secret_of(SBX_SECRET_COMMAND, NULL);
	static const struct {
		const char *script, *part; /* NULL: it gives VALUE */
	} rows[] = {
		{ "echo " VALUE, NULL },
		{ "echo \"$GH\"", NULL },		     /* the caller's environment */
		{ "echo " VALUE "; echo noise >&2", NULL },
		{ "read -r x; echo " VALUE "$x", NULL }, /* stdin is empty */
		{ "echo " VALUE "; exit 3", "ended with status 3" },
		{ "echo " VALUE "; kill -9 $$", "killed by signal 9" },
		{ "echo ghp_real; echo two", "more than one line" },
		{ "true", "it is empty" },
		{ "yes ghp_real", "printed more than 65536 bytes" },
		{ "echo ghp_real; exec sleep 60", "did not end in 2 s" },
		{ "echo ghp_real; exec >&-; exec sleep 60", "did not end in 2 s" },
	};

	f->environ[0] = path;
	f->environ[1] = set;
	s.command = (struct sbx_str_list){ .n = 3, .v = argv };
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		sbx_text_fit(script, sizeof(script), "%s", rows[i].script);
		if (rows[i].part)
			refuses(f, &s, rows[i].part);
		else
			gives(f, &s, VALUE);
	}
	s.command = (struct sbx_str_list){ .n = 1, .v = none };
	refuses(f, &s, "from command:sbx-no-such-program: the command ended with status 127");
}

/* Of a command the arguments may be secret themselves. */
static void test_source(void **state)
{
	static char pass[] = "pass", key[] = "ghp_real", var[] = "GH";
	char *argv[] = { pass, key, NULL }, text[64];
	struct sbx_secret s = secret_of(SBX_SECRET_COMMAND, NULL);

	(void)state;
	s.command = (struct sbx_str_list){ .n = 2, .v = argv };
	sbx_secret_source(&s, text, sizeof(text));
	assert_string_equal(text, "command:pass");
	assert_true(sbx_secret_changes(&s));
	s = secret_of(SBX_SECRET_ENV, var);
	sbx_secret_source(&s, text, sizeof(text));
	assert_string_equal(text, "env:GH");
	assert_false(sbx_secret_changes(&s));
	s.from = SBX_SECRET_FILE;
	assert_true(sbx_secret_changes(&s));
	s.from = SBX_SECRET_CREDENTIAL;
	assert_false(sbx_secret_changes(&s));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_env),	      TEST(test_file),	  TEST(test_file_kind), TEST(test_content),
		TEST(test_longest),   TEST(test_credential), TEST(test_command),
		TEST(test_aws),	      TEST(test_file_of_the_pool),
		cmocka_unit_test(test_source),
	};

	return cmocka_run_group_tests_name("secret_value", tests, NULL, NULL);
}
