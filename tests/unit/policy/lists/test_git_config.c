/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "policy/lists/git_config.h"

static enum sbx_git_config_verdict judge(const char *text, struct sbx_git_config *ret)
{
	return sbx_git_config_judge(sbx_span_str(text), ret);
}

static void test_harmless(void **state)
{
	static const char *const texts[] = {
		"",
		"\n\n# nothing\n; nothing\n",
		"[alias]\n", /* no key in it */
		"\xef\xbb\xbf[core]\n\tbare = false\n",
		/* git init; git clone; git remote add; git switch -c; git submodule add */
		"[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = "
		"false\n\tlogallrefupdates = true\n",
		/* the parentheses: these two are one text (clang asks) */
		("[remote \"origin\"]\n\turl = https://example.org/a.git\n\tfetch = "
		 "+refs/heads/*:refs/remotes/origin/*\n"
		 "[branch \"main\"]\n\tremote = origin\n\tmerge = refs/heads/main\n"),
		"[branch \"x\"]\r\n\tremote = .\r\n\tmerge = "
		"refs/heads/main\r\n\tvscode-merge-base = origin/main\r\n",
		"[submodule \"a/b\"]\n\turl = ../b\n\tactive = true\n\tupdate = rebase\n",
		"[user]\nname = A \"B\" C ; comment\nemail = a@example.org\n",
		"[CORE] Bare=false\n[Remote.origin] URL = git@example.org:a/b\n",
		"[core] bare\n[core] filemode",
		"[extensions]\n\tworktreeConfig = true\n\tobjectFormat = sha256\n",
		"[remote \"a]b\\\"c\\\\\"] fetch = x\n",
		"[pull] rebase = \\\n true\n",
	};
	struct sbx_git_config found;

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(texts); i++)
		if (judge(texts[i], &found) != SBX_GIT_CONFIG_HARMLESS)
			fail_msg("'%s': %s, line %zu", texts[i], found.key, found.line);
}

static void test_acts(void **state)
{
	static const struct {
		const char *text, *key;
		size_t line;
	} cases[] = {
		{ "[core]\n\tbare = false\n\tfsmonitor = ./x\n", "core.fsmonitor", 3 },
		{ "[CORE]\n\tFsMonitor = ./x\n", "core.fsmonitor", 2 },
		{ "[core]hooksPath=x", "core.hookspath", 1 },
		{ "[core]\n sshCommand = x", "core.sshcommand", 2 },
		{ "[core]\n pager = x", "core.pager", 2 },
		{ "[core]\n editor", "core.editor", 2 },
		{ "[alias]\n st = !x", "alias.st", 2 },
		{ "[include]\n path = x", "include.path", 2 },
		{ "[includeIf \"gitdir:/\"]\n path = x", "includeif.*.path", 2 },
		{ "[filter \"x\"]\n clean = x", "filter.*.clean", 2 },
		{ "[filter.x]\n smudge = x", "filter.*.smudge", 2 },
		{ "[diff]\n external = x", "diff.external", 2 },
		{ "[diff \"x\"]\n textconv = x", "diff.*.textconv", 2 },
		{ "[merge \"x\"]\n driver = x", "merge.*.driver", 2 },
		{ "[credential]\n helper = x", "credential.helper", 2 },
		{ "[gpg]\n program = x", "gpg.program", 2 },
		{ "[remote \"o\"]\n uploadpack = x", "remote.*.uploadpack", 2 },
		{ "[remote \"o\"]\n vcs = x", "remote.*.vcs", 2 },
		{ "[remote \"o\"]\n url = ext::sh -c x", "remote.*.url", 2 },
		{ "[remote \"o\"]\n url = e\"xt:\":sh", "remote.*.url", 2 },
		{ "[remote \"o\"]\n url = \"\" -oProxyCommand=x", "remote.*.url", 2 },
		{ "[remote \"o\"]\n url = a \\\n::b", "remote.*.url", 2 },
		{ "[branch \"m\"]\n remote = ext::x", "branch.*.remote", 2 },
		{ "[submodule \"a\"]\n update = !x", "submodule.*.update", 2 },
		{ "[url \"ext::x\"]\n insteadOf = https://", "url.*.insteadof", 2 },
		{ "[protocol \"ext\"]\n allow = always", "protocol.*.allow", 2 },
		{ "[core \"x\"]\n bare = true", "core.*.bare", 2 }, /* nothing that git knows */
		{ "[remote]\n url = x", "remote.url", 2 },
		{ "# [core]\n[core]\n# bare\n fsmonitor = x", "core.fsmonitor", 4 },
		/* Git takes a key before any section, and sections without a name. */
		{ "bare = true\n[core]\n fsmonitor = x", ".bare", 1 },
		{ "[]\n[core]\n fsmonitor = x", "core.fsmonitor", 3 },
		{ "[ \"x\"]\n[core]\n fsmonitor = x", "core.fsmonitor", 3 },
		{ "[.core]\n fsmonitor = x", ".*.fsmonitor", 2 },
		{ "[]\n bare = true", ".bare", 2 },
		{ "[core]\n fsmonitor = x\\", "core.fsmonitor",
		  2 },				  /* and a backslash at the end */
		{ "[core] bare = \"x\n", "", 1 }, /* and what git refuses */
	};
	struct sbx_git_config found;

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++) {
		enum sbx_git_config_verdict v = judge(cases[i].text, &found);

		assert_int_equal(v, *cases[i].key ? SBX_GIT_CONFIG_ACTS : SBX_GIT_CONFIG_UNCLEAR);
		assert_string_equal(found.key, cases[i].key);
		assert_int_equal(found.line, cases[i].line);
	}
}

static void test_unclear(void **state)
{
	static const char *const texts[] = {
		"[core\n",
		"[core] bare = \"x",
		"[core] bare = a\\q\n",
		"[\n]\n",
		"[core \"x]\n",
		"[core \"x\" ]\n",
		"[core] bare: x\n",
		"[core] ba_re = x\n",
		"[core] =x\n",
		"[c\xc3\xb6re]\n",
		"[core \"a\nb\"]\n",
		"[core] 1bare = true\n",
		"[core] \"bare\" = 1",
		"[core]\n\fbare = 1",
	};
	static const uint8_t nul[] = "[remote \"o\"] url = a\0::b\n",
			     nul_name[] = "[x \"\0\"]\n[core] fsmonitor = x",
			     nul_key[] = "[remote \"o.uploadpack\0\"] url = x\n";
	struct sbx_git_config found;

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(texts); i++)
		if (judge(texts[i], &found) != SBX_GIT_CONFIG_UNCLEAR)
			fail_msg("'%s'", texts[i]);
	assert_int_equal(sbx_git_config_judge(sbx_span(nul, sizeof(nul) - 1), &found),
			 SBX_GIT_CONFIG_ACTS); /* git takes it */
	assert_int_equal(sbx_git_config_judge(sbx_span(nul_name, sizeof(nul_name) - 1), &found),
			 SBX_GIT_CONFIG_ACTS);
	assert_string_equal(found.key, "core.fsmonitor");
	assert_int_equal(sbx_git_config_judge(sbx_span(nul_key, sizeof(nul_key) - 1), &found),
			 SBX_GIT_CONFIG_ACTS);
}

static void test_worktree(void **state)
{
	struct sbx_git_config found;

	(void)state;
	assert_int_equal(judge("[core]\n bare = false\n", &found), SBX_GIT_CONFIG_HARMLESS);
	assert_string_equal(found.worktree, "");
	assert_int_equal(judge("[core]\n worktree = /a\n[core]\n worktree = ../../../a\n", &found),
			 SBX_GIT_CONFIG_HARMLESS);
	assert_string_equal(found.worktree, "../../../a");
	assert_int_equal(judge("[core]\n worktree\n", &found), SBX_GIT_CONFIG_ACTS);
	assert_int_equal(judge("[core]\n worktree = a b\t\n", &found), SBX_GIT_CONFIG_HARMLESS);
	assert_string_equal(found.worktree, "a b");
	assert_int_equal(judge("[core]\n worktree = a\tb\n", &found),
			 SBX_GIT_CONFIG_ACTS); /* "a b" before git 2.45 */
}

/* Past the buffers. */
static void test_long(void **state)
{
	const size_t n_max = SBX_GIT_CONFIG_MAX + 1;
	SBX_AUTO_FREE char *text = malloc(n_max + 1);
	struct sbx_git_config found;

	(void)state;
	assert_non_null(text);
	memset(text, 'a', n_max);
	text[n_max] = '\0';
	memcpy(text, "[core]\n", 7);
	assert_int_equal(judge(text, &found), SBX_GIT_CONFIG_UNCLEAR); /* too large */
	text[n_max - 1] = '\0';
	assert_int_equal(judge(text, &found), SBX_GIT_CONFIG_ACTS); /* a long key */
	memset(text, 'a', 10);
	text[0] = '[';
	strcpy(text + 200, "]\nbare = 1");
	assert_int_equal(judge(text, &found), SBX_GIT_CONFIG_ACTS); /* a long section */
	memset(text, 'a', 6000);
	memcpy(text, "[remote \"o\"] url = a", 20);
	text[6000] = '\0';
	assert_int_equal(judge(text, &found), SBX_GIT_CONFIG_ACTS); /* a long address */
	memcpy(text, "[user] name = aaaaaaa", 20);
	assert_int_equal(judge(text, &found), SBX_GIT_CONFIG_HARMLESS);
	memcpy(text, "[core] worktree = aaa", 20);
	assert_int_equal(judge(text, &found), SBX_GIT_CONFIG_ACTS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_harmless), cmocka_unit_test(test_acts),
		cmocka_unit_test(test_unclear),	 cmocka_unit_test(test_worktree),
		cmocka_unit_test(test_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
