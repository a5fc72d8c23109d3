/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "launcher/cli/options_parse.h"
#include "launcher/host/config.h"
#include "launcher/host/options.h"
#include "policy/forms/option_form.h"
#include "policy/keys/job.h"

#define WORDS_MAX 600

static int parse(struct sbx_options *o, struct sbx_err *err, char *const *words)
{
	static char *argv[WORDS_MAX + 2];
	static char program[] = "sbx-run";
	int n = 1;

	argv[0] = program;
	while (words[n - 1]) {
		argv[n] = words[n - 1];
		n++;
	}
	argv[n] = NULL;
	memset(err, 0, sizeof(*err));
	return sbx_options_parse(n, argv, o, err);
}

#define PARSE(o, err, ...) parse(o, err, (char *const[]){ __VA_ARGS__, NULL })

static void test_defaults(void **state)
{
	struct sbx_options o;
	struct sbx_err err;

	(void)state;
	assert_int_equal(PARSE(&o, &err, "--", "ls", "-l"), 0);
	assert_string_equal(o.profile, "default");
	assert_int_equal(o.argc, 2);
	assert_string_equal(o.argv[0], "ls");
	assert_string_equal(o.argv[1], "-l");
	assert_null(o.argv[2]);
	assert_false(o.air_gap || o.dry_run || o.quiet || o.help || o.version || o.verbose);
	sbx_options_fini(&o);
}

static void test_all(void **state)
{
	struct sbx_options o;
	struct sbx_err err;

	(void)state;
	assert_int_equal(PARSE(&o, &err, "--profile", "p", "--workspace=w", "--analysis-id", "a",
			       "--id", "0123456789ab", "--bind", "/a:/b", "--ro-bind", "/c",
			       "--allow", "x.org", "--allow", "y.org", "--deny", "z.org",
			       "--publish", "8888", "--publish", "0:80", "--air-gap", "--env",
			       "A=1", "--env", "B", "--limit", "tmp=1M", "--chdir", "/d",
			       "--hostname", "h", "--user", "u", "--receipt", "r", "--overlay",
			       "--keep", "k", "--tmpfs", "/t", "--tmpfs=~/u:2M", "--home", "/o",
			       "--device", "/dev/dri", "--root=minimal", "--wait-all", "--cache",
			       "--dry-run", "-v", "-v", "cmd", "--profile", "q"),
			 0);
	assert_string_equal(o.profile, "p");
	assert_string_equal(o.workspace, "w");
	assert_string_equal(o.analysis_id, "a");
	assert_string_equal(o.id, "0123456789ab");
	assert_string_equal(o.chdir, "/d");
	assert_string_equal(o.hostname, "h");
	assert_string_equal(o.user, "u");
	assert_string_equal(o.receipt, "r");
	assert_string_equal(o.keep, "k");
	assert_true(o.overlay && o.cache);
	assert_true(o.wait_all);
	assert_int_equal(o.n_binds, 2);
	assert_string_equal(o.binds[0].source, "/a");
	assert_string_equal(o.binds[0].target, "/b");
	assert_true(o.binds[0].writable);
	assert_string_equal(o.binds[1].source, "/c");
	assert_null(o.binds[1].target);
	assert_false(o.binds[1].writable);
	assert_int_equal(o.n_allow, 2);
	assert_string_equal(o.allow[1], "y.org");
	assert_int_equal(o.n_deny, 1);
	assert_int_equal(o.n_publish, 2);
	assert_string_equal(o.publish[1], "0:80");
	assert_int_equal(o.n_env, 2);
	assert_int_equal(o.n_limits, 1);
	assert_int_equal(o.n_tmpfs, 2);
	assert_string_equal(o.tmpfs[1], "~/u:2M");
	assert_string_equal(o.home, "/o");
	assert_int_equal(o.n_devices, 1);
	assert_string_equal(o.root, "minimal");
	assert_true(o.air_gap);
	assert_true(o.dry_run);
	assert_int_equal(o.verbose, 2);
	assert_int_equal(o.argc, 3); /* options after the command are the command's */
	assert_string_equal(o.argv[1], "--profile");
	sbx_options_fini(&o);
}

static void test_bind_split(void **state)
{
	static const struct {
		char *in, *source, *target;
		bool read_only;
	} cases[] = {
		{ "/a", "/a", NULL, false },
		{ "/a:/b", "/a", "/b", false },
		{ "/a:~/b", "/a", "~/b", false },
		{ "/a:/b:ro", "/a", "/b", true }, /* as docker has it */
		{ "/a:/b:rw", "/a", "/b", false },
		{ "/a:ro", "/a", NULL, true },
		{ "/a:rw", "/a", NULL, false },
		{ "/a:/ro", "/a", "/ro", false },
		{ "/a:/b\\:ro", "/a", "/b:ro", false },
		{ "/a\\:ro", "/a:ro", NULL, false },
		{ "/a\\:/b", "/a:/b", NULL, false }, /* an escaped colon never splits */
		{ "/a\\:/b:/c\\:d", "/a:/b", "/c:d", false },
		{ "/a\\:/b:/c\\:d:ro", "/a:/b", "/c:d", true },
		{ "/a\\\\:/b", "/a\\", "/b", false }, /* an escaped backslash before a real colon */
		{ "/a\\\\\\:/b", "/a\\:/b", NULL, false },
		{ "/a\\b", "/a\\b", NULL, false }, /* a backslash before anything else is itself */
		{ "/a\\", "/a\\", NULL, false },
	};

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++) {
		struct sbx_options o;
		struct sbx_err err;

		assert_int_equal(PARSE(&o, &err, "--bind", cases[i].in, "x"), 0);
		assert_string_equal(o.binds[0].source, cases[i].source);
		if (cases[i].target)
			assert_string_equal(o.binds[0].target, cases[i].target);
		else
			assert_null(o.binds[0].target);
		assert_int_equal(o.binds[0].writable, !cases[i].read_only);
		sbx_options_fini(&o);
	}
}

struct bad_case {
	char *words[6];
	const char *says;
};

static void must_be_refused(const struct bad_case *cases, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct sbx_options o;
		struct sbx_err err;

		if (parse(&o, &err, cases[i].words) != SBX_OPTIONS_E_USAGE)
			fail_msg("case %zu (%s) was taken", i, cases[i].says);
		if (!strstr(err.msg, cases[i].says))
			fail_msg("case %zu: '%s' is not in '%s'", i, cases[i].says, err.msg);
		sbx_options_fini(&o);
	}
}

static void test_bind_errors(void **state)
{
	static const struct bad_case cases[] = {
		{ { "--bind", "", "ls", NULL }, "SRC" },
		{ { "--bind", ":/x", "ls", NULL }, "SRC" },
		{ { "--bind", "/a:", "ls", NULL }, "SRC[:DST][:ro|:rw]" },
		{ { "--bind", "/a:b", "ls", NULL }, "\\:" },
		{ { "--bind", "/a:/b:", "ls", NULL }, "ro or rw" },
		{ { "--bind", "/a:/b:RO", "ls", NULL }, "ro or rw" },
		{ { "--bind", "/a:/b:/c", "ls", NULL }, "ro or rw" },
		{ { "--bind", "/a:/b:z", "ls", NULL }, "ro or rw" },
		{ { "--bind", "/a:ro:ro", "ls", NULL }, "SRC[:DST][:ro|:rw]" },
		{ { "--bind", "/a:/b:ro:ro", "ls", NULL }, "ro or rw" },
		{ { "--bind", "/a:/b:ro,z", "ls", NULL }, "ro or rw" },
		{ { "--ro-bind", "/a:/b:rw", "ls", NULL }, "--bind" },
		{ { "--ro-bind", "/a:rw", "ls", NULL }, "--bind" },
	};

	(void)state;
	must_be_refused(cases, SBX_N_ELEMENTS(cases));
}

static void test_usage_errors(void **state)
{
	static const struct bad_case cases[] = {
		{ { NULL }, "no command" },
		{ { "--", NULL }, "no command" },
		{ { "", NULL }, "no command" },
		{ { "--proifle", "x", "--", "ls", NULL }, "did you mean '--profile'" },
		{ { "--air-gapp", "--", "ls", NULL }, "did you mean '--air-gap'" },
		{ { "--frobnicate", "--", "ls", NULL }, "unknown option '--frobnicate'" },
		{ { "-x", "--", "ls", NULL }, "unknown option '-x'" },
		{ { "--profile", NULL }, "needs a value" },
		{ { "--bind", "--", "ls", NULL }, "'--bind' needs a value before '--'" },
		{ { "--allow", "--profile", "none", "ls", NULL },
		  "'--allow' needs a value before '--profile'" },
		{ { "--dry-run=yes", "ls", NULL }, "takes no value" },
		{ { "--profile", "", "ls", NULL }, "empty" },
		{ { "--profile", "a", "--profile", "b", "ls", NULL }, "already" },
		{ { "--id", "0123456789AB", "ls", NULL }, "12 hex" },
		{ { "--id", "0123456789a", "ls", NULL }, "12 hex" },
		{ { "--id", "0123456789abc", "ls", NULL }, "12 hex" },
		{ { "--id", "../../../../x", "ls", NULL }, "12 hex" },
		{ { "--hostname", "-a", "ls", NULL }, "--hostname" },
		{ { "--hostname", "a-", "ls", NULL }, "--hostname" },
		{ { "--hostname", "a..b", "ls", NULL }, "--hostname" },
		{ { "--hostname", "a_b", "ls", NULL }, "--hostname" },
		{ { "--hostname", "", "ls", NULL }, "--hostname" },
		{ { "--workspace", "a b", "ls", NULL }, "--workspace" },
		{ { "--workspace", "", "ls", NULL }, "--workspace" },
		{ { "--analysis-id", "a\nb", "ls", NULL }, "--analysis-id" },
		{ { "--env", "1A=2", "ls", NULL }, "--env" },
		{ { "--env", "=x", "ls", NULL }, "--env" },
		{ { "--env", "A-B=x", "ls", NULL }, "--env 'A-B': " },
		{ { "--limit", "tmp", "ls", NULL }, "KEY=VALUE" },
		{ { "--limit", "=1", "ls", NULL }, "KEY=VALUE" },
		{ { "--chdir", "rel", "ls", NULL }, "absolute" },
		{ { "--device", "nvidia0", "ls", NULL }, "below /dev" },
		{ { "--device", "/dev", "ls", NULL }, "below /dev" },
		{ { "--device", "/dev/", "ls", NULL }, "one to three names" },
		{ { "--device", "/dev//x", "ls", NULL }, "one to three names" },
		{ { "--device", "/dev/dri/", "ls", NULL }, "one to three names" },
		{ { "--device", "/dev/../etc", "ls", NULL }, "one to three names" },
		{ { "--device", "/dev/./x", "ls", NULL }, "one to three names" },
		{ { "--device", "/dev/a/b/c/d", "ls", NULL }, "one to three names" },
		{ { "--device", "/dev/a\\*", "ls", NULL }, "backslash" },
		{ { "--root", "mini", "ls", NULL }, "host, minimal or" },
		{ { "--root", "", "ls", NULL }, "host, minimal or" },
		{ { "--root", "./image", "ls", NULL }, "host, minimal or" },
		{ { "--home", "rel", "ls", NULL }, "absolute" },
		{ { "--home", "~x/y", "ls", NULL }, "absolute" },
		{ { "--home", "/a", "--home", "/b", "ls", NULL }, "already" },
		{ { "--tmpfs", "", "ls", NULL }, "absolute DIR" },
		{ { "--tmpfs", "x:2M", "ls", NULL }, "absolute DIR" },
		{ { "--tmpfs", "/x:", "ls", NULL }, "a size from 1M" },
		{ { "--tmpfs", "/x:1", "ls", NULL }, "a size from 1M" },
		{ { "--tmpfs", "/x:-2M", "ls", NULL }, "a size from 1M" },
		{ { "--tmpfs", "/x:1025T", "ls", NULL }, "a size from 1M" },
		{ { "--tmpfs", "/x:99999999999999999999T", "ls", NULL }, "a size from 1M" },
		{ { "-v", "-q", "ls", NULL }, "exclude" },
		{ { "--refusals", "ls", NULL }, "12 hex digits" },
		{ { "--refusals", "0123456789ab", "ls", NULL }, "stands alone" },
		{ { "--refusals", "--gc", NULL }, "stands alone" },
		{ { "--scratch", "--overlay", "ls", NULL }, "exclude" },
		{ { "--wait", "ls", NULL }, "--wait runs no command: leave out 'ls'" },
		{ { "--wait", "--", "", NULL }, "--wait runs no command" },
		{ { "--wait-all", NULL }, "no command was given" },
		{ { "--scratch", "--keep", "x", "ls", NULL }, "exclude" },
	};

	(void)state;
	must_be_refused(cases, SBX_N_ELEMENTS(cases));
}

/* One below, at and past each bound. */
static void test_bounds(void **state)
{
	char word[200];
	char *words[WORDS_MAX] = { NULL };
	struct sbx_options o;
	struct sbx_err err;

	(void)state;
	memset(word, 'a', sizeof(word));
	word[SBX_TOKEN_MAX] = '\0';
	assert_int_equal(PARSE(&o, &err, "--workspace", word, "ls"), 0);
	sbx_options_fini(&o);
	word[SBX_TOKEN_MAX] = 'a';
	word[SBX_TOKEN_MAX + 1] = '\0';
	assert_int_equal(PARSE(&o, &err, "--workspace", word, "ls"), SBX_OPTIONS_E_USAGE);
	sbx_options_fini(&o);
	word[63] = '\0';
	assert_int_equal(PARSE(&o, &err, "--hostname", word, "ls"), 0);
	sbx_options_fini(&o);
	word[63] = 'a';
	word[64] = '\0';
	assert_int_equal(PARSE(&o, &err, "--hostname", word, "ls"), SBX_OPTIONS_E_USAGE);
	sbx_options_fini(&o);
	for (size_t i = 0; i <= SBX_OPTIONS_LIST_MAX; i++) {
		words[2 * i] = "--bind";
		words[2 * i + 1] = "/x";
	}
	assert_int_equal(parse(&o, &err, words), SBX_OPTIONS_E_USAGE);
	assert_non_null(strstr(err.msg, "more than"));
	sbx_options_fini(&o);
	words[2 * SBX_OPTIONS_LIST_MAX] = "ls";
	words[2 * SBX_OPTIONS_LIST_MAX + 1] = NULL;
	assert_int_equal(parse(&o, &err, words), 0);
	assert_int_equal(o.n_binds, SBX_OPTIONS_LIST_MAX);
	sbx_options_fini(&o);
}

static void test_help_and_version(void **state)
{
	struct sbx_options o;
	struct sbx_err err;

	(void)state;
	assert_int_equal(PARSE(&o, &err, "--help"), 0);
	assert_true(o.help);
	sbx_options_fini(&o);
	assert_int_equal(PARSE(&o, &err, "--version", "--no-such"), 0);
	assert_true(o.version);
	sbx_options_fini(&o);
	assert_int_equal(PARSE(&o, &err, "-h"), 0);
	assert_true(o.help && !o.version);
	sbx_options_fini(&o);
	assert_int_equal(PARSE(&o, &err, "-vV", "--no-such"), 0);
	assert_true(o.version && !o.help);
	sbx_options_fini(&o);
	assert_int_equal(PARSE(&o, &err, "--list-profiles"), 0);
	assert_true(o.list_profiles);
	sbx_options_fini(&o);
	assert_int_equal(PARSE(&o, &err, "--list-profiles", "ls"), SBX_OPTIONS_E_USAGE);
	sbx_options_fini(&o);
	assert_int_equal(PARSE(&o, &err, "--", "x", "--help"), 0);
	assert_false(o.help);
	sbx_options_fini(&o);
}

static void test_profile_is_file(void **state)
{
	(void)state;
	assert_true(sbx_options_profile_is_file("./p"));
	assert_true(sbx_options_profile_is_file("/a/b"));
	assert_true(sbx_options_profile_is_file("p.yaml"));
	assert_false(sbx_options_profile_is_file("p"));
	assert_false(sbx_options_profile_is_file(".yaml"));
}

/* --- jobs --- */

static struct sbx_job *job(const char *yaml)
{
	struct sbx_job *j = NULL;

	assert_int_equal(sbx_job_parse(sbx_span_str(yaml), "job.yaml", NULL, &j), 0);
	return j;
}

static void test_wait(void **state)
{
	struct sbx_options o;
	struct sbx_err err;

	(void)state;
	assert_int_equal(PARSE(&o, &err, "--wait"), 0);
	assert_true(o.wait && o.argc == 0 && !o.argv[0]);
	sbx_options_fini(&o);
	assert_int_equal(PARSE(&o, &err, "--wait", "--"), 0);
	assert_true(o.wait && o.argc == 0 && !o.argv[0]);
	sbx_options_fini(&o);
	assert_int_equal(PARSE(&o, &err, "--job", "x"), 0);
	assert_int_equal(sbx_options_add_job(&o, job("wait: true\n"), &err), 0);
	assert_true(o.wait && o.argc == 0 && !o.argv[0]);
	sbx_options_fini(&o);
	assert_int_equal(PARSE(&o, &err, "--job", "x"), 0);
	assert_int_equal(sbx_options_add_job(&o, job("wait: true\ncommand: [ls]\n"), &err),
			 SBX_OPTIONS_E_USAGE);
	assert_non_null(strstr(err.msg, "--wait runs no command: leave out 'ls'"));
	sbx_options_fini(&o);
}

static void test_job_alone(void **state)
{
	struct sbx_options o;
	struct sbx_err err;

	(void)state;
	assert_int_equal(PARSE(&o, &err, "--job", "nightly"), 0);
	assert_string_equal(o.job, "nightly");
	assert_int_equal(sbx_options_add_job(
				 &o,
				 job("profile: p\nworkspace: w\nanalysis_id: a\nuser: u\n"
				     "chdir: /c\nhostname: h\nreceipt: r\nair_gap: true\noverlay: "
				     "true\ncache: true\nwait_all: true\nkeep: k\n"
				     "bind: ['/a\\:b:/c']\nro_bind: [/d]\nallow: [x.org]\n"
				     "deny: [y.org]\npublish: [1]\nenv: [A=1]\nlimit: [tmp=1M]\n"
				     "tmpfs: [/t]\nhome: /o\ndevice: [/dev/kfd]\nroot: /r\n"
				     "command: [ls, -l]\n"),
				 &err),
			 0);
	assert_string_equal(o.profile, "p");
	assert_string_equal(o.workspace, "w");
	assert_string_equal(o.analysis_id, "a");
	assert_string_equal(o.user, "u");
	assert_string_equal(o.chdir, "/c");
	assert_string_equal(o.hostname, "h");
	assert_string_equal(o.receipt, "r");
	assert_string_equal(o.keep, "k");
	assert_true(o.air_gap && o.overlay && o.wait_all && o.cache);
	assert_int_equal(o.n_binds, 2);
	assert_string_equal(o.binds[0].source, "/a:b");
	assert_string_equal(o.binds[0].target, "/c");
	assert_true(o.binds[0].writable && !o.binds[1].writable);
	assert_int_equal(o.n_allow, 1);
	assert_int_equal(o.n_deny, 1);
	assert_int_equal(o.n_publish, 1);
	assert_string_equal(o.publish[0], "1");
	assert_string_equal(o.env[0], "A=1");
	assert_string_equal(o.limits[0], "tmp=1M");
	assert_int_equal(o.n_tmpfs, 1);
	assert_string_equal(o.tmpfs[0], "/t");
	assert_string_equal(o.home, "/o");
	assert_int_equal(o.n_devices, 1);
	assert_string_equal(o.devices[0], "/dev/kfd");
	assert_string_equal(o.root, "/r");
	assert_int_equal(o.argc, 2);
	assert_string_equal(o.argv[1], "-l");
	assert_null(o.argv[2]);
	sbx_options_fini(&o);
}

/* Flags override, and come last in lists; nothing of the job goes away by a flag but what it
 * names. */
static void test_job_and_flags(void **state)
{
	struct sbx_options o;
	struct sbx_err err;

	(void)state;
	assert_int_equal(PARSE(&o, &err, "--job", "./x.yaml", "--profile", "mine", "--bind", "/e",
			       "--allow", "z.org", "--publish", "3", "--tmpfs", "/u", "--home",
			       "/mine", "--env", "A=2", "--limit", "tmp=2M", "--limit", "home=1M"),
			 0);
	assert_int_equal(sbx_options_add_job(
				 &o,
				 job("profile: p\nhostname: h\nair_gap: true\nbind: [/a]\n"
				     "allow: [x.org]\ndeny: [y.org]\npublish: [1, 2]\nenv: [A=1]\n"
				     "limit: [tmp=1M]\ntmpfs: [/t]\nhome: /o\ncommand: [ls]\n"),
				 &err),
			 0);
	assert_string_equal(o.profile, "mine");
	assert_string_equal(o.home, "/mine");
	assert_int_equal(o.n_tmpfs, 2);
	assert_string_equal(o.tmpfs[0], "/t");
	assert_string_equal(o.tmpfs[1], "/u");
	assert_string_equal(o.hostname, "h");
	assert_true(o.air_gap);
	assert_int_equal(o.n_binds, 2);
	assert_string_equal(o.binds[0].source, "/a");
	assert_string_equal(o.binds[1].source, "/e");
	assert_int_equal(o.n_allow, 2);
	assert_string_equal(o.allow[0], "x.org");
	assert_string_equal(o.allow[1], "z.org");
	assert_int_equal(o.n_deny, 1);
	assert_int_equal(o.n_publish, 3);
	assert_string_equal(o.publish[0], "1");
	assert_string_equal(o.publish[2], "3");
	assert_string_equal(o.env[0], "A=1");
	assert_string_equal(o.env[1], "A=2");
	assert_int_equal(o.n_limits, 3);
	assert_string_equal(o.limits[0], "tmp=1M");
	assert_string_equal(o.limits[2], "home=1M");
	sbx_options_fini(&o);
}

static void test_job_and_command(void **state)
{
	struct sbx_options o;
	struct sbx_err err;

	(void)state;
	assert_int_equal(PARSE(&o, &err, "--job", "x", "--", "true"), 0);
	assert_int_equal(sbx_options_add_job(&o, job("command: [ls]"), &err), SBX_OPTIONS_E_USAGE);
	assert_non_null(strstr(err.msg, "has a command"));
	sbx_options_fini(&o);

	assert_int_equal(PARSE(&o, &err, "--job", "x", "--", "true"), 0);
	assert_int_equal(sbx_options_add_job(&o, job("workspace: w"), &err), 0);
	assert_string_equal(o.argv[0], "true");
	assert_string_equal(o.profile, "default");
	sbx_options_fini(&o);

	assert_int_equal(PARSE(&o, &err, "--job", "x"), 0);
	assert_int_equal(sbx_options_add_job(&o, job("workspace: w"), &err), SBX_OPTIONS_E_USAGE);
	assert_non_null(strstr(err.msg, "no command"));
	sbx_options_fini(&o);
	assert_int_equal(PARSE(&o, &err, "--job", "x", "--", ""), 0);
	assert_int_equal(sbx_options_add_job(&o, job("workspace: w"), &err), SBX_OPTIONS_E_USAGE);
	sbx_options_fini(&o);
	assert_int_equal(PARSE(&o, &err, "--job", "x", "--job", "y"), SBX_OPTIONS_E_USAGE);
	sbx_options_fini(&o);
	assert_int_equal(PARSE(&o, &err, "--job", ""), SBX_OPTIONS_E_USAGE);
	sbx_options_fini(&o);
}

/* A job's list and the flags' together are bounded as the flags are. */
static void test_job_bounds(void **state)
{
	static char *words[WORDS_MAX];
	struct sbx_options o;
	struct sbx_err err;
	size_t n = 0;

	(void)state;
	words[n++] = "--job";
	words[n++] = "x";
	for (int i = 0; i < SBX_OPTIONS_LIST_MAX - 1; i++) {
		words[n++] = "--deny";
		words[n++] = "a.example";
	}
	words[n] = NULL;
	assert_int_equal(parse(&o, &err, words), 0);
	assert_int_equal(sbx_options_add_job(&o, job("deny: [b.example]\ncommand: [ls]"), &err), 0);
	assert_int_equal(o.n_deny, SBX_OPTIONS_LIST_MAX);
	sbx_options_fini(&o);
	assert_int_equal(parse(&o, &err, words), 0);
	assert_int_equal(
		sbx_options_add_job(&o, job("deny: [b.example, c.example]\ncommand: [ls]"), &err),
		SBX_OPTIONS_E_USAGE);
	sbx_options_fini(&o);
	for (size_t i = 2; i < n; i += 2) {
		words[i] = "--bind";
		words[i + 1] = "/a";
	}
	assert_int_equal(parse(&o, &err, words), 0);
	assert_int_equal(sbx_options_add_job(&o, job("ro_bind: [/b]\ncommand: [ls]"), &err), 0);
	assert_int_equal(o.n_binds, SBX_OPTIONS_LIST_MAX);
	sbx_options_fini(&o);
	assert_int_equal(parse(&o, &err, words), 0);
	assert_int_equal(sbx_options_add_job(&o, job("ro_bind: [/b, /c]\ncommand: [ls]"), &err),
			 SBX_OPTIONS_E_USAGE);
	sbx_options_fini(&o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults),	cmocka_unit_test(test_all),
		cmocka_unit_test(test_bind_split),	cmocka_unit_test(test_bind_errors),
			cmocka_unit_test(test_usage_errors),
		cmocka_unit_test(test_bounds),		cmocka_unit_test(test_help_and_version),
		cmocka_unit_test(test_profile_is_file),
		cmocka_unit_test(test_wait),
		cmocka_unit_test(test_job_alone),
		cmocka_unit_test(test_job_and_flags),
		cmocka_unit_test(test_job_and_command),
		cmocka_unit_test(test_job_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
