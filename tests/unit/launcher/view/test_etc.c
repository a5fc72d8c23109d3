/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The prepared /etc: its files, the files that are never in it, and when it is made anew. */
#include "tests/unit/plan_world.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "launcher/view/etc.h"

static struct sbx_path source = { .fd = -1 };

/* Plans and prepares; returns the fd, which the next call closes. */
static int prepare(struct plan_world *w)
{
	struct sbx_err err = { 0 };

	plan_world_must(w, "--", "true");
	sbx_path_fini(&source);
	if (sbx_etc_prepare(&w->plan->view, w->plan->facts, plan_world_path(w, "state/etc"),
			    &source, &err) != 0)
		fail_msg("%s", err.msg);
	assert_true(source.fd >= 0);
	return source.fd;
}

static bool there(int fd, const char *name)
{
	return faccessat(fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static ino_t inode(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	return st.st_ino;
}

static size_t count_dirs(struct plan_world *w)
{
	DIR *dir = opendir(plan_world_path(w, "state/etc"));
	size_t n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n - 2;
}

static void expect_link(int fd, const char *name, const char *target)
{
	char text[256];
	ssize_t n = readlinkat(fd, name, text, sizeof(text) - 1);

	assert_true(n > 0);
	text[n] = '\0';
	assert_string_equal(text, target);
}

static void expect_text(int fd, const char *name, const char *part)
{
	SBX_AUTO_CLOSE int file = openat(fd, name, O_RDONLY | O_CLOEXEC);
	char text[1024];
	ssize_t n;

	assert_true(file >= 0);
	n = read(file, text, sizeof(text) - 1);
	assert_true(n >= 0);
	text[n] = '\0';
	assert_non_null(strstr(text, part));
}

static void test_contents(void **state)
{
	static const char *const never[] = { "shadow", "ssh", "machine-id", "ssl/private",
					     "npmrc" };
	struct plan_world *w = *state;
	struct stat st;
	int fd = prepare(w);

	expect_link(fd, "passwd", "../run/sbx/passwd");
	expect_link(fd, "hosts", "../run/sbx/hosts");
	expect_link(fd, "localtime", "/usr/share/zoneinfo/UTC");
	expect_link(fd, "alternatives/awk", "/usr/bin/mawk");
	expect_link(fd, "resolv.conf", "../run/sbx/resolv.conf");
	expect_text(fd, "nsswitch.conf", "hosts: files dns");
	expect_text(fd, "ssl/certs/ca-certificates.crt", PLAN_WORLD_CERTIFICATES);
	expect_text(fd, "gitconfig", "[init]"); /* its twin with a token, npmrc, is left out */
	for (size_t i = 0; i < SBX_N_ELEMENTS(never); i++)
		if (there(fd, never[i]))
			fail_msg("%s is there", never[i]);
	assert_int_equal(fstatat(fd, "gitconfig", &st, 0), 0);
	assert_int_equal(st.st_mode & 0777, 0444);
	assert_int_equal(fstatat(fd, "ssl", &st, 0), 0);
	assert_int_equal(st.st_mode & 0777, 0755);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0755);
}

static void test_odd_entries(void **state)
{
	struct plan_world *w = *state;
	int fd;

	assert_int_equal(mkfifo(plan_world_path(w, "root/etc/services"), 0644), 0);
	plan_world_link(w, "root/etc/timezone", plan_world_path(w, "home/project/data.txt"));
	plan_world_link(w, "root/etc/shells", "../../home/project");
	plan_world_write(w, "root/etc/protocols", "x", 0600); /* not for everyone */
	plan_world_link(w, "root/etc/mime.types", "nothing");
	fd = prepare(w);
	assert_false(there(fd, "services"));
	assert_false(there(fd, "shells"));
	assert_false(there(fd, "protocols"));
	assert_true(there(fd, "mime.types")); /* a dangling link is a link */
	expect_text(fd, "timezone", "");      /* leads out of the sandbox: copied */
}

static void test_screened(void **state)
{
	struct plan_world *w = *state;

	plan_world_write(w, "root/etc/npmrc", "registry=https://registry.example/\n", 0644);
	plan_world_write(w, "root/etc/pip.conf", "index-url = https://me:pw@pypi.example/\n", 0644);
	plan_world_write(w, "root/etc/wgetrc", "# use https://example.org/ @home\n", 0644);
	plan_world_write(w, "root/etc/gitconfig", "[http]\n\textraHeader = \"X-Auth-Token: a\"\n",
			 0644);
	assert_true(there(prepare(w), "npmrc"));
	assert_false(there(source.fd, "pip.conf"));
	assert_true(there(source.fd, "wgetrc"));
	assert_false(there(source.fd, "gitconfig"));
}

/* A program's directory is there as a whole, but for the file in it that has a secret. */
static void test_screened_below(void **state)
{
	struct plan_world *w = *state;
	char path[4096];

	snprintf(path, sizeof(path), "%s", plan_world_path(w, "root/etc/chromium.d"));
	assert_int_equal(mkdir(path, 0755), 0);
	plan_world_write(w, "root/etc/chromium.d/apikeys", "export ID=x\nexport CLIENT_SECRET=y\n",
			 0644);
	plan_world_write(w, "root/etc/chromium.d/default-flags", "export FLAGS=--x\n", 0644);
	assert_true(there(prepare(w), "chromium.d/default-flags"));
	assert_false(there(source.fd, "chromium.d/apikeys"));
	plan_world_write(w, "root/etc/chromium.d/apikeys", "export ID=x\n", 0644);
	assert_true(there(prepare(w), "chromium.d/apikeys"));
}

/* Beside the host's own, and not where it has something else. */
static void test_added(void **state)
{
	static const char *const dirs[] = { "chromium", "chromium/policies",
					    "chromium/policies/managed" };
	struct plan_world *w = *state;
	char path[4096];

	expect_text(prepare(w), "chromium/policies/managed/sbx.json",
		    "{\"EncryptedClientHelloEnabled\": false}\n");
	expect_text(source.fd, "opt/chrome/policies/managed/sbx.json", "EncryptedClientHello");
	for (size_t i = 0; i < SBX_N_ELEMENTS(dirs); i++) {
		snprintf(path, sizeof(path), "%s/%s", plan_world_path(w, "root/etc"), dirs[i]);
		assert_int_equal(mkdir(path, 0755), 0);
	}
	plan_world_write(w, "root/etc/chromium/policies/managed/host.json", "host", 0644);
	expect_text(prepare(w), "chromium/policies/managed/host.json", "host");
	expect_text(source.fd, "chromium/policies/managed/sbx.json", "EncryptedClientHello");
	plan_world_write(w, "root/etc/chromium/policies/managed/sbx.json", "mine", 0644);
	expect_text(prepare(w), "chromium/policies/managed/sbx.json", "mine");
	snprintf(path, sizeof(path), "%s/chromium", plan_world_path(w, "root/etc"));
	assert_int_equal(rename(path, plan_world_path(w, "root/etc/elsewhere")), 0);
	plan_world_link(w, "root/etc/chromium", "/etc/elsewhere");
	assert_false(there(prepare(w), "chromium/policies"));
	assert_true(there(source.fd, "opt/chrome/policies/managed/sbx.json"));
	assert_int_equal(unlink(path), 0);
	plan_world_write(w, "root/etc/chromium", "a file", 0644);
	expect_text(prepare(w), "chromium", "a file");
}

/* The same host, the same directory; a changed one, another. */
static void test_reuse(void **state)
{
	struct plan_world *w = *state;
	ino_t first = inode(prepare(w));

	assert_int_equal(inode(prepare(w)), first);
	assert_int_equal(count_dirs(w), 1);
	plan_world_write(w, "root/etc/gitconfig", "[init]\n\tdefaultBranch = main\n", 0644);
	assert_int_not_equal(inode(prepare(w)), first);
	expect_text(source.fd, "gitconfig", "main");
	plan_world_write(w, "root/etc/ssl/certs/ca-certificates.crt",
			 "-----BEGIN CERTIFICATE-----\nmore\n-----END CERTIFICATE-----\n", 0644);
	prepare(w);
	expect_text(source.fd, "ssl/certs/ca-certificates.crt", "more");
	plan_world_link(w, "root/etc/alternatives/vi", "/usr/bin/vim");
	prepare(w);
	assert_true(there(source.fd, "alternatives/vi"));
	plan_world_write(w, "root/etc/services", "ssh 22/tcp\n", 0644);
	prepare(w);
	assert_true(there(source.fd, "services"));
	assert_int_equal(count_dirs(w), 5);
	assert_int_equal(mkdir(plan_world_path(w, "root/etc/vim"), 0755), 0);
	assert_int_equal(mkdir(plan_world_path(w, "root/etc/vim/below"), 0755), 0);
	plan_world_write(w, "root/etc/vim/below/file", "before", 0644);
	expect_text(prepare(w), "vim/below/file", "before");
	plan_world_write(w, "root/etc/vim/below/file", "after", 0644); /* in place */
	expect_text(prepare(w), "vim/below/file", "after");
	plan_world_link(w, "root/etc/papersize", plan_world_path(w, "home/project/data.txt"));
	expect_text(prepare(w), "papersize", "");
	plan_world_write(w, "home/project/data.txt", "of the target", 0644); /* it is copied */
	expect_text(prepare(w), "papersize", "of the target");
}

/* A prepared /etc that others could have written is not used. */
static void test_untrusted(void **state)
{
	struct plan_world *w = *state;
	struct sbx_err err = { 0 };

	assert_int_equal(fchmodat(prepare(w), ".", 0777, 0), 0);
	plan_world_must(w, "--", "true");
	sbx_path_fini(&source);
	assert_int_equal(sbx_etc_prepare(&w->plan->view, w->plan->facts,
					 plan_world_path(w, "state/etc"), &source, &err),
			 -EPERM);
	assert_true(err.msg[0]);
	assert_int_equal(source.fd, -1);
	plan_world_must(w, "--", "true");
	assert_true(sbx_etc_prepare(&w->plan->view, w->plan->facts,
				    plan_world_path(w, "nowhere/etc"), &source, &err) < 0);
}

static void test_table(void **state)
{
	const char *link;

	(void)state;
	assert_true(sbx_etc_has("ssl"));
	assert_true(sbx_etc_has("ssl/certs/x"));
	assert_true(sbx_etc_has("GNUstep")); /* the ends of the sorted table */
	assert_true(sbx_etc_has("zsh"));
	assert_true(sbx_etc_has("java-17-openjdk"));
	assert_true(sbx_etc_has("python3.11"));
	assert_true(sbx_etc_has("fpc.cfg"));
	assert_true(sbx_etc_has("chromium.d/default-flags"));
	assert_false(sbx_etc_has("sslx"));
	assert_false(sbx_etc_has("ss"));
	assert_false(sbx_etc_has(""));
	assert_false(sbx_etc_has("shadow"));
	assert_true(sbx_etc_is_made("passwd", &link));
	assert_non_null(link);
	assert_true(sbx_etc_is_made("resolv.conf", &link));
	assert_non_null(link);
	assert_true(sbx_etc_is_made("nsswitch.conf", &link));
	assert_null(link);
	assert_false(sbx_etc_is_made("passwd-", &link));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, plan_world_setup, plan_world_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_contents),  TEST(test_odd_entries),
		TEST(test_screened),  TEST(test_screened_below),
		TEST(test_added),     TEST(test_reuse),
		TEST(test_untrusted), cmocka_unit_test(test_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
