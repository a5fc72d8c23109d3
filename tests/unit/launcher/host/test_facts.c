/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "launcher/host/facts.h"
#include "launcher/host/facts_gather.h"
#include "launcher/host/facts_user.h"
#include "launcher/host/lookup_ids.h"

static void test_relocate(void **state)
{
	static const struct {
		const char *exe_dir, *bindir, *compiled, *want;
	} cases[] = {
		{ "/x/bin", "/usr/local/bin", "/usr/local/libexec/sbx", "/x/libexec/sbx" },
		{ "/usr/local/bin", "/usr/local/bin", "/usr/local/share/sbx",
		  "/usr/local/share/sbx" },
		{ "/a/b/bin", "/opt/bin", "/opt/share/sbx", "/a/b/share/sbx" },
		{ "/x/sbin", "/usr/local/bin", "/usr/local/libexec/sbx", NULL },
		{ "/x/usr/bin", "/usr/bin", "/usr/libexec/sbx", "/x/usr/libexec/sbx" },
		{ "/build/launcher", "/usr/local/bin", "/usr/local/libexec/sbx", NULL },
		{ "/x/bin", "/usr/bin", "/opt/libexec/sbx", NULL }, /* nothing in common */
		{ "/bin", "/usr/local/bin", "/usr/local/libexec", "/libexec" },
	};

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++) {
		SBX_AUTO_FREE char *got =
			sbx_facts_relocate(cases[i].exe_dir, cases[i].bindir, cases[i].compiled);

		if (!cases[i].want)
			assert_null(got);
		else if (!got)
			fail_msg("%s: nothing", cases[i].exe_dir);
		else
			assert_string_equal(got, cases[i].want);
	}
}

/* Only the entry asked for is taken from getent's answer. */
static void test_user_in_text(void **state)
{
	static const char text[] = "Kim:x:4711:4712:Kim:/home/Kim:/bin/sh\n"
				   "no:x:line\n"
				   "root:x:-1:0::/:/bin/sh\n"
				   "last:x:4294967295:1::/:/bin/sh\n"
				   "kim:x:4713:4714::/home/kim:/bin/zsh";
	struct sbx_user u;

	(void)state;
	assert_int_equal(sbx_user_in_text(text, "kim", 0, &u), 0);
	assert_int_equal(u.uid, 4713);
	assert_int_equal(u.gid, 4714);
	assert_string_equal(u.home, "/home/kim");
	assert_string_equal(u.shell, "/bin/zsh");
	sbx_user_fini(&u);
	assert_int_equal(sbx_user_in_text(text, NULL, 4711, &u), 0);
	assert_string_equal(u.name, "Kim");
	sbx_user_fini(&u);
	assert_int_equal(sbx_user_in_text(text, "4711", 0, &u), 1);
	assert_int_equal(sbx_user_in_text(text, "KIM", 0, &u), 1);
	assert_int_equal(sbx_user_in_text(text, "", 0, &u), 1);
	assert_int_equal(sbx_user_in_text(text, NULL, 0, &u), 1);
	assert_int_equal(sbx_user_in_text(text, NULL, (uid_t)-1, &u), 1);
	assert_int_equal(sbx_user_in_text("", "kim", 0, &u), 1);
}

static void test_user_database(void **state)
{
	struct sbx_user u;

	(void)state;
	assert_int_equal(sbx_user_by_uid(0, &u), 0);
	assert_string_equal(u.name, "root");
	sbx_user_fini(&u);
}

static struct sbx_facts as_root(void)
{
	struct sbx_facts f = { .privileged = true };

	memcpy(f.id, "0123456789ab", sizeof(f.id));
	return f;
}

static struct sbx_facts as_user(uid_t uid)
{
	struct sbx_facts f = { .caller_uid = uid, .caller_gid = uid };

	memcpy(f.id, "0123456789ab", sizeof(f.id));
	return f;
}

static void test_root_alone(void **state)
{
	struct sbx_options o = { 0 };
	struct sbx_err err = { 0 };
	struct sbx_facts f = as_root();

	(void)state;
	assert_int_equal(sbx_facts_user(&o, NULL, NULL, &f, &err), 0);
	assert_true(f.throwaway_user);
	assert_in_range(f.uid, 10001, 65000);
	assert_int_equal(f.gid, f.uid);
	assert_string_equal(f.home, "/home/sandbox");
	assert_int_not_equal(f.broker_uid, f.uid);
	assert_int_not_equal(f.broker_uid, 0);
	sbx_facts_fini(&f);
}

static void test_sudo(void **state)
{
	static const struct {
		const char *uid, *gid;
		bool taken;
	} cases[] = {
		{ "4711", "4712", true },
		{ "0", "4712", false },
		{ "4711", "0", false },
		{ "4711", NULL, false },
		{ "-1", "4712", false },
		{ "4294967295", "4712", false },
		{ "4711x", "4712", false },
		{ "", "", false },
		{ "99999999999999999999", "1", false },
		{ " 4711", "4712", false },
	};

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++) {
		struct sbx_options o = { 0 };
		struct sbx_err err = { 0 };
		struct sbx_facts f = as_root();

		assert_int_equal(sbx_facts_user(&o, cases[i].uid, cases[i].gid, &f, &err), 0);
		assert_int_equal(f.throwaway_user, !cases[i].taken);
		assert_int_not_equal(f.uid, 0);
		if (cases[i].taken) {
			assert_int_equal(f.uid, 4711);
			assert_int_equal(f.gid, 4712);
		}
		sbx_facts_fini(&f);
	}
}

/* Never as kernel uid 0, however it is written. */
static void test_never_root(void **state)
{
	static const char *const names[] = { "root", "0", "00", "000000000" };

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(names); i++) {
		struct sbx_options o = { .user = names[i] };
		struct sbx_err err = { 0 };
		struct sbx_facts f = as_root();

		assert_int_equal(sbx_facts_user(&o, NULL, NULL, &f, &err), 1);
		assert_non_null(strstr(err.msg, "never runs as root ("));
		sbx_facts_fini(&f);
	}
}

static void test_user_flag(void **state)
{
	struct sbx_options o = { .user = "4711" };
	struct sbx_err err = { 0 };
	struct sbx_facts f = as_root();

	(void)state;
	assert_int_equal(sbx_facts_user(&o, "4242", "4242", &f, &err), 0);
	assert_int_equal(f.uid, 4711); /* before SUDO_UID */
	assert_false(f.throwaway_user);
	sbx_facts_fini(&f);

	f = as_root();
	o.user = "no-such-user-here";
	assert_int_equal(sbx_facts_user(&o, NULL, NULL, &f, &err), 1);
	assert_non_null(strstr(err.msg, "no such user"));
	sbx_facts_fini(&f);

	/* An ordinary user can run only as that user. */
	memset(&err, 0, sizeof(err));
	f = as_user(4711);
	o.user = "nobody";
	assert_int_equal(sbx_facts_user(&o, NULL, NULL, &f, &err), 1);
	assert_non_null(strstr(err.msg, "only root"));
	sbx_facts_fini(&f);
	memset(&err, 0, sizeof(err));
	f = as_user(4711);
	o.user = "4712"; /* nor a number that nobody has */
	assert_int_equal(sbx_facts_user(&o, NULL, NULL, &f, &err), 1);
	assert_non_null(strstr(err.msg, "only root"));
	sbx_facts_fini(&f);
	o.user = "nobody";
	f = as_user(65534);
	assert_int_equal(sbx_facts_user(&o, NULL, NULL, &f, &err), 0);
	assert_int_equal(f.broker_uid, 65534);
	assert_string_not_equal(f.shell, "/usr/sbin/nologin"); /* usable in a sandbox */
	sbx_facts_fini(&f);
	f = as_user(65534);
	f.caller_gid = 4242; /* newgrp(1): oneself is who one is now */
	assert_int_equal(sbx_facts_user(&o, NULL, NULL, &f, &err), 0);
	assert_int_equal(f.gid, 4242);
	sbx_facts_fini(&f);
	f = as_user(4711);
	o.user = NULL;
	assert_int_equal(sbx_facts_user(&o, "1", "1", &f, &err), 0); /* SUDO_UID is root's affair */
	assert_int_equal(f.uid, 4711);
	sbx_facts_fini(&f);
}

/* A service user's home (/usr/sbin and the like) is no place for a scratch home. */
static void test_odd_homes(void **state)
{
	struct sbx_options o = { .user = "daemon" };
	struct sbx_err err = { 0 };
	struct sbx_facts f = as_root();

	(void)state;
	if (!getpwnam("daemon"))
		skip();
	assert_int_equal(sbx_facts_user(&o, NULL, NULL, &f, &err), 0);
	assert_string_equal(f.home, "/home/sandbox");
	sbx_facts_fini(&f);
}

static void set_environment(void)
{
	unsetenv("SUDO_UID");
	unsetenv("SBX_STATE_DIR");
	unsetenv("SBX_RUNTIME_DIR");
	unsetenv("SBX_CONFIG_DIR");
	setenv("XDG_STATE_HOME", "relative", 1); /* ignored */
	unsetenv("XDG_RUNTIME_DIR");
	unsetenv("XDG_CONFIG_HOME");
}

/* Each to its last byte, and one more. */
static void test_long_dirs(void **state)
{
	static const struct {
		const char *name, *below;
		size_t max;
	} dirs[] = {
		{ "SBX_STATE_DIR", "", 480 },
		{ "XDG_STATE_HOME", "/sbx", 480 },
		{ "SBX_RUNTIME_DIR", "", 4096 - 512 },
		{ "SBX_CONFIG_DIR", "", 4096 - 512 },
		{ "XDG_CONFIG_HOME", "/sbx", 4096 - 512 },
	};

	(void)state;
	unsetenv("SBX_STATE_DIR");
	for (size_t i = 0; i < SBX_N_ELEMENTS(dirs); i++)
		for (size_t more = 0; more < 2; more++) {
			size_t n = dirs[i].max + more - strlen(dirs[i].below);
			/* not looked at */
			bool is_root_s =
				getuid() == 0 && strcmp(dirs[i].name, "XDG_STATE_HOME") == 0;
			SBX_AUTO_FREE char *path = calloc(1, n + 1);
			struct sbx_err err = { 0 };
			struct sbx_facts f;

			assert_non_null(path);
			memset(path, 'd', n);
			for (size_t at = 0; at < n; at += 200) /* no name is too long */
				path[at] = '/';
			setenv(dirs[i].name, path, 1);
			assert_int_equal(sbx_facts_gather_places(&f, &err),
					 more && !is_root_s ? SBX_FACTS_E_UNUSABLE : 0);
			assert_int_equal(!!strstr(err.msg, "directory has a path of more than"),
					 more && !is_root_s);
			sbx_facts_fini(&f);
			unsetenv(dirs[i].name);
		}
}

static void test_gather(void **state)
{
	struct sbx_options o = { .id = "0123456789ab", .dry_run = true };
	struct sbx_err err = { 0 };
	struct sbx_facts f;

	(void)state;
	if (access("/usr/bin/bwrap", X_OK) < 0)
		skip();
	set_environment();
	if (sbx_facts_gather(&o, &f, &err) != 0)
		fail_msg("%s", err.msg);
	assert_string_equal(f.id, "0123456789ab");
	assert_int_not_equal(f.uid, 0);
	assert_int_equal(f.state_dir[0], '/');
	assert_int_equal(f.runtime_dir[0], '/');
	assert_string_equal(f.config_dir, "/etc/sbx");
	assert_string_equal(f.bwrap, "/usr/bin/bwrap");
	assert_true(f.machine_memory_bytes > 0 && f.machine_cpus_milli >= 1000);
	sbx_facts_fini(&f);

	/* in two parts: who, and with what, and then the rest */
	assert_int_equal(sbx_facts_gather_first(&o, &f, &err), 0);
	assert_string_equal(f.bwrap, "/usr/bin/bwrap");
	assert_non_null(f.libexec_dir);
	assert_int_equal(f.caller_uid, getuid());
	if (!f.privileged) {
		assert_int_equal(f.uid, getuid());
		assert_int_equal(f.gid, getgid());
		assert_null(f.user_name);
		assert_null(f.runtime_dir);
	}
	assert_null(f.hosts);
	assert_int_equal(sbx_facts_gather_rest(&o, &f, &err), 0);
	assert_non_null(f.user_name);
	assert_non_null(f.hosts);
	assert_non_null(f.runtime_dir);
	sbx_facts_fini(&f);

	setenv("SBX_STATE_DIR", "/a/state", 1);
	setenv("SBX_RUNTIME_DIR", "/a/run", 1);
	setenv("SBX_CONFIG_DIR", "/a/config", 1);
	o.id = NULL;
	assert_int_equal(sbx_facts_gather(&o, &f, &err), 0);
	assert_string_equal(f.state_dir, "/a/state");
	assert_string_equal(f.runtime_dir, "/a/run");
	assert_string_equal(f.config_dir, "/a/config");
	assert_int_equal(strspn(f.id, "0123456789abcdef"), 12);
	sbx_facts_fini(&f);

	setenv("SBX_RUNTIME_DIR", "run", 1);
	assert_int_equal(sbx_facts_gather(&o, &f, &err), SBX_FACTS_E_UNUSABLE);
	assert_non_null(strstr(err.msg, "SBX_RUNTIME_DIR"));
	sbx_facts_fini(&f);
	set_environment();
}

/* The launcher becomes the user and returns; meanwhile it has none of root's groups. */
static void test_as_user(void **state)
{
	struct sbx_facts f = { .privileged = true, .uid = 4711, .gid = 4712 };
	gid_t groups[] = { 0, 4713 }, back[4];
	struct sbx_lookup_ids saved;

	(void)state;
	if (geteuid() != 0)
		skip();
	assert_int_equal(setgroups(2, groups), 0);
	assert_int_equal(sbx_lookup_ids_use_sandbox(&f, &saved), 0);
	assert_int_equal(geteuid(), 4711);
	assert_int_equal(getegid(), 4712);
	assert_int_equal(getgroups(0, NULL), 0);
	sbx_lookup_ids_restore(&saved);
	assert_int_equal(geteuid(), 0);
	assert_int_equal(getegid(), 0);
	assert_int_equal(getgroups(4, back), 2);
	assert_int_equal(back[1], 4713);
	sbx_lookup_ids_restore(&saved); /* nothing to do any more */
	f.privileged = false;
	assert_int_equal(sbx_lookup_ids_use_sandbox(&f, &saved), 0);
	assert_int_equal(geteuid(), 0);
	sbx_lookup_ids_restore(&saved);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_relocate),      cmocka_unit_test(test_user_in_text),
		cmocka_unit_test(test_user_database), cmocka_unit_test(test_root_alone),
		cmocka_unit_test(test_sudo),	      cmocka_unit_test(test_never_root),
		cmocka_unit_test(test_user_flag),     cmocka_unit_test(test_odd_homes),
		cmocka_unit_test(test_long_dirs),     cmocka_unit_test(test_gather),
		cmocka_unit_test(test_as_user),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
