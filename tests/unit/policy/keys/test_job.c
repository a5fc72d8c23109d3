/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Jobs: what they may say, and every mistake with its place. */
#include "tests/unit/policy_world.h"

#include "policy/keys/job.h"

SBX_DEFINE_CLEANUP(struct sbx_job, sbx_job_free);
#define AUTO_JOB SBX_CLEANUP(sbx_job_freep) struct sbx_job *

static struct sbx_err_list errs;

static struct sbx_job *parse_span(struct sbx_span yaml)
{
	struct sbx_job *j = NULL;
	int r;

	memset(&errs, 0, sizeof(errs));
	r = sbx_job_parse(yaml, "job.yaml", &errs, &j);
	assert_int_equal(r, errs.n > 0 ? SBX_JOB_E_INVALID : 0);
	assert_int_equal(j == NULL, r != 0);
	return j;
}

static struct sbx_job *parse(const char *yaml)
{
	return parse_span(sbx_span_str(yaml));
}

static struct sbx_job *must(const char *yaml)
{
	struct sbx_job *j = parse(yaml);

	if (!j)
		print_errors(&errs);
	assert_non_null(j);
	return j;
}

static void test_everything(void **state)
{
	AUTO_JOB j = must("profile: notebook\n"
			  "workspace: w1\n"
			  "analysis_id: a-7\n"
			  "user: build\n"
			  "bind: [/data/a, '/data/b:/b']\n"
			  "ro_bind: [/data/c]\n"
			  "allow: [example.org, '*.example.net:443', 192.0.2.0/24:5432]\n"
			  "secret: [T@example.org, 'U=file:/x@example.org,*.example.net']\n"
			  "deny: [evil.example]\n"
			  "publish: [8888, '0:80', '[::1]:8080:80']\n"
			  "env: [LANG, A=b=c, 'EMPTY=']\n"
			  "limit: [memory=1G, wall_time=30s]\n"
			  "chdir: /data/a\n"
			  "hostname: box\n"
			  "air_gap: true\n"
			  "receipt: out/receipt.json\n"
			  "overlay: true\n"
			  "cache: true\n"
			  "wait_all: true\n"
			  "wait: true\n"
			  "keep: out/kept\n"
			  "command: [sh, -c, \"echo 'a\tb'\\nexit 1\\n\", '', 10]\n");

	(void)state;
	assert_string_equal(j->profile, "notebook");
	assert_string_equal(j->workspace, "w1");
	assert_string_equal(j->analysis_id, "a-7");
	assert_string_equal(j->user, "build");
	assert_string_equal(j->chdir, "/data/a");
	assert_string_equal(j->hostname, "box");
	assert_string_equal(j->receipt, "out/receipt.json");
	assert_true(j->air_gap);
	assert_true(j->overlay && j->cache && j->wait_all && j->wait);
	assert_string_equal(j->keep, "out/kept");
	assert_int_equal(j->bind.n, 2);
	assert_string_equal(j->bind.v[1], "/data/b:/b");
	assert_int_equal(j->ro_bind.n, 1);
	assert_int_equal(j->secret.n, 2);
	assert_string_equal(j->secret.v[0], "T@example.org");
	assert_int_equal(j->allow.n, 3);
	assert_string_equal(j->allow.v[2], "192.0.2.0/24:5432");
	assert_int_equal(j->deny.n, 1);
	assert_int_equal(j->publish.n, 3);
	assert_string_equal(j->publish.v[2], "[::1]:8080:80");
	assert_int_equal(j->env.n, 3);
	assert_string_equal(j->env.v[1], "A=b=c");
	assert_int_equal(j->limit.n, 2);
	assert_int_equal(j->command.n, 5);
	assert_string_equal(j->command.v[2], "echo 'a\tb'\nexit 1\n");
	assert_string_equal(j->command.v[3], "");
	assert_string_equal(j->command.v[4], "10");
	assert_null(j->command.v[5]);
}

static void test_nothing(void **state)
{
	AUTO_JOB j = must("{}");
	AUTO_JOB empty = must("command: []\nbind: []\n");

	(void)state;
	assert_null(j->profile);
	assert_null(j->command.v);
	assert_false(j->air_gap);
	assert_false(j->overlay || j->cache || j->wait_all || j->wait);
	assert_int_equal(empty->command.n, 0);
	assert_int_equal(empty->bind.n, 0);
	assert_null(parse(""));
	assert_null(parse("# nothing\n"));
	assert_null(parse("- a\n- b\n"));
	assert_null(parse("just text"));
}

/* One mistake each, at its place. */
static void test_mistakes(void **state)
{
	static const struct {
		const char *yaml;
		int line, column;
		const char *part;
	} cases[] = {
		{ "profil: x\n", 1, 1, "did you mean 'profile'?" },
		{ "command: [true]\nalow: [a.example]\n", 2, 1,
		  "unknown key 'alow' (did you mean 'allow'?)" },
		{ "id: 0123456789ab\n", 1, 1, "unknown key 'id'" },
		{ "network: {}\n", 1, 1, "unknown key 'network'" },
		{ "profile: a\nprofile: b\n", 2, 1, "twice" },
		{ "profile: ''\n", 1, 10, "profile: '': must not be empty" },
		{ "profile: [a]\n", 1, 10, "profile must be a string" },
		{ "profile: ~\n", 1, 10, "profile must be a string" },
		{ "workspace: a b\n", 1, 12, "printable ASCII" },
		{ "hostname: -x\n", 1, 11, "hostname" },
		{ "hostname: a_b\n", 1, 11, "letters, digits" },
		{ "chdir: work\n", 1, 8, "absolute" },
		{ "air_gap: yes\n", 1, 10, "not one of false, true" },
		{ "command: ls -l\n", 1, 10, "command must be a list of strings" },
		{ "command: [ls, {a: b}]\n", 1, 15, "command must be a list of strings" },
		{ "command: [ls, ~]\n", 1, 15, "command must be a list of strings" },
		{ "command: ['', a]\n", 1, 1, "its first word is empty" },
		{ "bind:\n  - /a\n  - ''\n", 3, 5, "SRC[:DST][:ro|:rw]" },
		{ "bind: [':/b']\n", 1, 8, "SRC[:DST][:ro|:rw]" },
		{ "bind: ['/a:/b:/c']\n", 1, 8, "ro or rw" },
		{ "ro_bind: ['/a:/b:rw']\n", 1, 11, "--bind" },
		{ "ro_bind: [\"/a\\tb\"]\n", 1, 11, "tabs and newlines" },
		{ "allow:\n  - ok.example\n  - bad_name!.example\n", 3, 5, "allow: " },
		{ "allow: ['*.com']\n", 1, 9, "allow: " },
		{ "secret: [T]\n", 1, 10, "secret: 'T': write NAME=FROM@HOST" },
		{ "secret: ['T@*.com']\n", 1, 10, "secret: " },
		{ "deny: ['a.example:99999']\n", 1, 8, "deny: " },
		{ "env: [1A=x]\n", 1, 7, "a variable's name starts with" },
		{ "env: [A-B=x]\n", 1, 7, "env: 'A-B': a variable's name has letters" },
		{ "env: [=x]\n", 1, 7, "env: '': a variable's name starts with" },
		{ "env: {A: b}\n", 1, 6, "env must be a list of strings" },
		{ "limit: [memory]\n", 1, 9, "KEY=VALUE" },
		{ "limit: [memory=lots]\n", 1, 9, "limit: limits.memory: 'lots' is not a size" },
		{ "limit: [wall_time=1h, wall_tine=1h]\n", 1, 23, "KEY=VALUE" },
	};

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++) {
		assert_null(parse(cases[i].yaml));
		if (errs.n != 1 || errs.v[0].line != cases[i].line ||
		    errs.v[0].column != cases[i].column || !strstr(errs.v[0].msg, cases[i].part)) {
			print_errors(&errs);
			fail_msg("%s", cases[i].yaml);
		}
		assert_string_equal(errs.v[0].file, "job.yaml");
	}
}

/* The value of a variable may be a secret. */
static void test_no_value_in_messages(void **state)
{
	(void)state;
	assert_null(parse("env: [A-B=hidden, 1=hidden, =hidden]\n"));
	assert_int_equal(errs.n, 3);
	for (size_t i = 0; i < errs.n; i++)
		assert_null(strstr(errs.v[i].msg, "hidden"));
}

/* A wildcard over a public suffix is allowed in a deny list: it admits nothing. */
static void test_deny_takes_more(void **state)
{
	AUTO_JOB j = must("deny: ['*.com']\n");

	(void)state;
	assert_int_equal(j->deny.n, 1);
}

static void test_all_mistakes_at_once(void **state)
{
	(void)state;
	assert_null(parse("profil: x\nbind: [':/b', '']\nallow: [a..b]\nair_gap: maybe\n"));
	assert_int_equal(errs.n, 5);
	assert_int_equal(errs.v[4].line, 4);
}

/* One past each limit. */
static void test_bounds(void **state)
{
	static const struct {
		const char *key, *item;
		size_t max;
	} lists[] = { { "bind", "/a", SBX_JOB_LIST_MAX },
		      { "env", "A=1", SBX_JOB_LIST_MAX },
		      { "allow", "a.example", SBX_JOB_LIST_MAX },
		      { "command", "x", SBX_JOB_WORDS_MAX } };

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(lists); i++) {
		for (size_t more = 0; more < 2; more++) {
			SBX_AUTO_FREE char *text = NULL;
			size_t n;
			FILE *out = open_memstream(&text, &n);
			AUTO_JOB j = NULL;

			fprintf(out, "%s:\n", lists[i].key);
			for (size_t k = 0; k < lists[i].max + more; k++)
				fprintf(out, "- %s\n", lists[i].item);
			fclose(out);
			j = parse(text);
			assert_int_equal(j == NULL, more == 1);
			if (!j)
				assert_non_null(strstr(errs.v[0].msg, "more than"));
		}
	}
}

/* Every prefix is a job or a refusal with a reason. */
static void test_prefixes(void **state)
{
	static const char yaml[] =
		"profile: none\nbind:\n  - /a:/b\nlimit: [memory=1G]\ncommand: [sh, \"-c\"]\n";

	(void)state;
	for (size_t n = 0; n < sizeof(yaml); n++) {
		SBX_AUTO_FREE char *copy = malloc(n + 1);
		AUTO_JOB j = NULL;

		memcpy(copy, yaml, n);
		j = parse_span(sbx_span(copy, n));
		for (size_t i = 0; i < errs.n; i++)
			assert_true(errs.v[i].msg[0] && errs.v[i].line > 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_everything),	cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_mistakes),	cmocka_unit_test(test_no_value_in_messages),
		cmocka_unit_test(test_deny_takes_more), cmocka_unit_test(test_all_mistakes_at_once),
		cmocka_unit_test(test_bounds),		cmocka_unit_test(test_prefixes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
