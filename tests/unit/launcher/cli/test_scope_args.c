/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The arguments that sbx-scope takes, and the buses that it connects to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "launcher/cli/scope_args.h"

static struct sbx_scope_args args;

/* Arguments that are fine, but for the one at @at. */
static int parse(int at, char *value)
{
	char *argv[] = { "sbx-scope",	 "--system", "sbx-0123456789ab.scope", "sbx.slice", "4711",
			 "sandbox 0123", NULL };
	struct sbx_err err = { 0 };
	int r;

	argv[at] = value;
	memset(&args, 0, sizeof(args));
	r = sbx_scope_args_parse(6, argv, &args, &err);
	assert_int_equal(r != 0, err.msg[0] != '\0');
	return r;
}

static void test_fine(void **state)
{
	(void)state;
	assert_int_equal(parse(1, "--user"), 0);
	assert_true(args.user);
	assert_int_equal(parse(1, "--system"), 0);
	assert_false(args.user);
	assert_string_equal(args.name, "sbx-0123456789ab.scope");
	assert_string_equal(args.slice, "sbx.slice");
	assert_int_equal(args.pid, 4711);
	assert_string_equal(args.description, "sandbox 0123");
	assert_int_equal(parse(3, "-.slice"), 0);
	assert_int_equal(parse(3, "sbx-a\\x2db.slice"), 0);
	assert_int_equal(parse(4, "2"), 0);
	assert_int_equal(parse(4, "4194304"), 0);
	assert_int_equal(parse(5, "\xc3\xa4 \"quoted\" %n $HOME"), 0);
}

static void test_refused(void **state)
{
	static const struct {
		int at;
		char *value;
	} cases[] = {
		{ 1, "" },
		{ 1, "--global" },
		{ 1, "system" },
		{ 2, "" },
		{ 2, ".scope" },
		{ 2, "a.service" },
		{ 2, "a.scope.slice" },
		{ 2, "a/b.scope" },
		{ 2, "../x.scope" },
		{ 2, "..scope" },
		{ 2, "a b.scope" },
		{ 2, "a\n.scope" },
		{ 2, "a@b.scope" },
		{ 2, "\xc3\xa4.scope" },
		{ 2, "%n.scope" },
		{ 2, "a.scopE" },
		{ 3, "" },
		{ 3, "sbx.scope" },
		{ 3, ".slice" },
		{ 3, "a/b.slice" },
		{ 3, "system" },
		{ 4, "" },
		{ 4, "0" },
		{ 4, "1" },
		{ 4, "-1" },
		{ 4, "+5" },
		{ 4, "05" },
		{ 4, " 5" },
		{ 4, "5 " },
		{ 4, "0x10" },
		{ 4, "4194305" },
		{ 4, "4294967298" },
		{ 4, "99999999999999999999" },
		{ 5, "" },
		{ 5, "a\nb" },
		{ 5, "\x1b[0m" },
		{ 5, "\xff" },
		{ 5, "\xe2\x80\xae" },
	};

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++)
		if (parse(cases[i].at, cases[i].value) != SBX_SCOPE_E_USAGE)
			fail_msg("argument %d, '%s' was taken", cases[i].at, cases[i].value);
}

static void test_lengths(void **state)
{
	char name[SBX_SCOPE_NAME_MAX + 2], text[SBX_SCOPE_DESCRIPTION_MAX + 2];

	(void)state;
	memset(name, 'a', sizeof(name));
	strcpy(name + SBX_SCOPE_NAME_MAX + 1 - 6, ".scope");
	assert_int_equal(parse(2, name), SBX_SCOPE_E_USAGE);
	assert_int_equal(parse(2, name + 1), 0);
	memset(text, 'a', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(parse(5, text), SBX_SCOPE_E_USAGE);
	assert_int_equal(parse(5, text + 1), 0);
}

static void test_count(void **state)
{
	char *argv[] = { "sbx-scope", "--system", "a.scope", "b.slice", "5", "d", "e", NULL };
	struct sbx_err err = { 0 };

	(void)state;
	assert_int_equal(sbx_scope_args_parse(6, argv, &args, &err), 0);
	assert_int_equal(sbx_scope_args_parse(7, argv, &args, &err), SBX_SCOPE_E_USAGE);
	argv[5] = NULL;
	assert_int_equal(sbx_scope_args_parse(5, argv, &args, NULL), SBX_SCOPE_E_USAGE);
	argv[0] = NULL;
	assert_int_equal(sbx_scope_args_parse(0, argv, &args, NULL), SBX_SCOPE_E_USAGE);
}

static void test_addresses(void **state)
{
	static const char *const bad[] = { "",
					   "unixexec:path=/bin/sh",
					   "unix:path=relative",
					   "tcp:host=localhost",
					   "unix:path=/a;unixexec:path=/bin/sh",
					   "unix:tmpdir=/tmp",
					   "autolaunch:",
					   " unix:path=/a" };

	(void)state;
	assert_true(sbx_scope_address_ok("unix:path=/run/user/1000/bus"));
	assert_true(sbx_scope_address_ok("unix:abstract=/tmp/dbus-x,guid=0123"));
	for (size_t i = 0; i < SBX_N_ELEMENTS(bad); i++)
		assert_false(sbx_scope_address_ok(bad[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fine),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_lengths),
		cmocka_unit_test(test_count),
		cmocka_unit_test(test_addresses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
