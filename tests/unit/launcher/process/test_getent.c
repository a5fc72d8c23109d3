/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Asking getent: programs in its place that answer, refuse, babble or hang; and the real one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher/process/getent.h"
#include "sys/process/proc.h"

static char dir[] = "/tmp/sbx-getent-XXXXXX";
static char path[64];

static void write_file(const char *text)
{
	FILE *f = fopen(path, "we");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(chmod(path, 0700), 0);
}

static int make_dir(void **state)
{
	(void)state;
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/getent", dir);
	return 0;
}

static int remove_dir(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(dir);
}

/* Ask a shell script in the place of getent. No child of it is left behind. */
static int ask(const char *script, int timeout_ms, char text[SBX_GETENT_TEXT_MAX])
{
	static const char *const keys[] = { "kim", "4711" };
	char whole[512];
	int r;

	snprintf(whole, sizeof(whole), "#!/bin/sh\n%s\n", script);
	write_file(whole);
	r = sbx_getent_passwd(path, keys, 2, timeout_ms, text);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
	return r;
}

static void test_answers(void **state)
{
	char text[SBX_GETENT_TEXT_MAX];

	(void)state;
	assert_int_equal(ask("echo \"$0 $*\" | sed 's,.*/,,'", 5000, text), 0);
	assert_string_equal(text, "getent passwd kim 4711\n");
	assert_int_equal(ask("echo kim:x; exit 2", 5000, text), 0); /* one of the two */
	assert_string_equal(text, "kim:x\n");
	assert_int_equal(ask("exit 2", 5000, text), 0);
	assert_string_equal(text, "");
	assert_int_equal(ask("yes | head -c 4095", 5000, text), 0);
	assert_int_equal(strlen(text), 4095);
}

static void test_refuses(void **state)
{
	char text[SBX_GETENT_TEXT_MAX];
	static const char *const keys[] = { "kim" };

	(void)state;
	assert_int_equal(ask("echo kim:x; exit 1", 5000, text), -EIO);
	assert_int_equal(ask("echo kim:x; exit 3", 5000, text), -EIO);
	assert_int_equal(ask("echo kim:x; kill -9 $$", 5000, text), -EIO);
	assert_int_equal(ask("yes | head -c 4096", 5000, text), -EMSGSIZE);
	assert_int_equal(ask("exec yes", 5000, text), -EMSGSIZE);
	assert_int_equal(ask("printf 'kim\\0'", 5000, text), -EMSGSIZE);
	assert_int_equal(sbx_getent_passwd("/nonexistent/getent", keys, 1, 5000, text), -ENOENT);
	assert_int_equal(sbx_getent_passwd("/etc/passwd", keys, 1, 5000, text), -EACCES);
}

/* A name service that does not answer, before or after its output has ended. */
static void test_hangs(void **state)
{
	char text[SBX_GETENT_TEXT_MAX];
	uint64_t began = sbx_clock_monotonic_us();

	(void)state;
	assert_int_equal(ask("exec sleep 60", 100, text), -ETIMEDOUT);
	assert_int_equal(ask("echo kim; exec sleep 60 >&-", 100, text), -ETIMEDOUT);
	assert_in_range(sbx_clock_monotonic_us() - began, 200000, 30000000);
}

/* getent gets none of the launcher's variables, and no descriptor but its first three. */
static void test_has_nothing(void **state)
{
	char text[SBX_GETENT_TEXT_MAX];
	int fd = dup(1);

	(void)state;
	assert_true(fd >= 0);
	setenv("SBX_SECRET", "x", 1);
	assert_int_equal(ask("/usr/bin/env | grep SECRET; exit 0", 5000, text), 0);
	assert_string_equal(text, "");
	assert_int_equal(
		ask("cd /proc/$$/fd; for f in 0 2 3 4 5 6 7 8 9; do readlink $f; done; exit 0",
		    5000, text),
		0);
	assert_ptr_equal(strstr(text, "/dev/null\n/dev/null\n"), text);
	assert_null(strstr(text, "pipe:")); /* its answer is 1 */
	assert_null(strstr(text, "/dev/pts"));
	unsetenv("SBX_SECRET");
	close(fd);
}

static void test_the_real_one(void **state)
{
	static const char *const keys[] = { "root", "no-such-user-here" };
	char text[SBX_GETENT_TEXT_MAX];

	(void)state;
	if (access(SBX_GETENT, X_OK) < 0)
		skip();
	assert_int_equal(sbx_getent_passwd(SBX_GETENT, keys, 2, SBX_GETENT_TIMEOUT_MS, text), 0);
	assert_ptr_equal(strstr(text, "root:"), text);
}

static void test_nsswitch(void **state)
{
	static const struct {
		const char *text;
		bool files_only;
	} cases[] = {
		{ "passwd: files\n", true },
		{ "# passwd: ldap\n \tpasswd \t:\tfiles # and no more\ngroup: files systemd\n",
		  true },
		{ "passwd: files", true },
		{ "passwd: files systemd\n", false },
		{ "passwd: files [NOTFOUND=return]\n", false },
		{ "passwd: compat\n", false },
		{ "passwd:\n", false },
		{ "passwd_compat: files\n", false },
		{ "passwd: ldap\npasswd: files\n", false },
		{ "group: files\n", false },
		{ "", false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		write_file(cases[i].text);
		assert_int_equal(sbx_nsswitch_files_only(path), cases[i].files_only);
	}
	assert_false(sbx_nsswitch_files_only("/nonexistent/nsswitch.conf"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_answers),	     cmocka_unit_test(test_refuses),
		cmocka_unit_test(test_hangs),	     cmocka_unit_test(test_has_nothing),
		cmocka_unit_test(test_the_real_one), cmocka_unit_test(test_nsswitch),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
