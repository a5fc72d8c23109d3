/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/unit/plan_world.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "launcher/user/git_identity.h"

static void expect(const char *text, const char *name, const char *email)
{
	struct sbx_git_identity id = { "old", "old@example.org" };

	if (!sbx_git_identity_parse(text, &id))
		fail_msg("refused: %s", text);
	if (strcmp(id.name, name) != 0 || strcmp(id.email, email) != 0)
		fail_msg("%s: '%s' '%s'", text, id.name, id.email);
}

/* Each line was given to git 2.39 as a file of its own: `git config -f FILE user.name`. */
static void test_parse(void **state)
{
	static const char long_value[] = "[user]\nname=";
	char text[1024];

	(void)state;
	expect("", "old", "old@example.org");
	expect("[user]\n\tname = A B\n\temail = a@b.example\n", "A B", "a@b.example");
	expect("[USER]NAME=x\n[core]\nname=y\n[user \"sub\"]\nname=z\n[user]\nEmail=e", "x", "e");
	expect("# c\n; c\n[user] ; c\nname = a b  \t # not\nemail=\"a;b\" ;c\n", "a b", "a;b");
	expect("[user]\nname = \" a \" b\"c \"\n", " a  bc ", "old@example.org");
	expect("[user]\nname = a\\\nb\\t\\\"\\\\\r\nname2 = no\n", "ab\t\"\\", "old@example.org");
	expect("\xef\xbb\xbf[user]\nname\nemail = e\r\n", "old", "e");
	expect("[user]\nname = first\nname = last\n", "last", "old@example.org");
	expect("[include]\npath = /x\n[includeIf \"gitdir:[]\"]\npath = /y\n[user]\nname=x\n", "x",
	       "old@example.org");
	/* A value that could add a line to the written file is refused. */
	expect("[user]\nname = a\\n[core]\n", "old", "old@example.org");
	expect("[user]\nname = a\033b\n", "old", "old@example.org");
	memset(text, 'a', sizeof(text));
	memcpy(text, long_value, sizeof(long_value) - 1);
	text[sizeof(long_value) - 1 + 256] = '\0';
	expect(text, "old", "old@example.org");
	text[sizeof(long_value) - 1 + 255] = '\0';
	expect(text, text + sizeof(long_value) - 1, "old@example.org");
}

static void test_refused(void **state)
{
	static const char *const texts[] = {
		"[user\nname=x\n",	 "[user]\nname=\"x\n", "[user]\n=x\n",
		"[user]\nname x\n",	 "[user]\nname=\\q\n", "[user]\nname # x\n",
		"[user \"\n]\nname=x\n",
	};

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(texts); i++) {
		struct sbx_git_identity id = { "old", "" };

		if (sbx_git_identity_parse(texts[i], &id) || strcmp(id.name, "old") != 0)
			fail_msg("taken: %s", texts[i]);
	}
}

/* The printed identity parses to the same identity. */
static void test_print(void **state)
{
	const struct sbx_git_identity id = { "a \"b\" \\ # c ; ", " [d]@e.example" };
	struct sbx_git_identity again = { "", "" }, whole = { "", "" };
	SBX_AUTO_FREE char *text = sbx_git_identity_print(&id), *more = NULL;

	(void)state;
	assert_true(sbx_git_identity_parse(text, &again));
	assert_string_equal(again.name, id.name);
	assert_string_equal(again.email, id.email);
	memset(whole.name, '"', sizeof(whole.name) - 1);
	memset(whole.email, '\\', sizeof(whole.email) - 1);
	more = sbx_git_identity_print(&whole);
	assert_true(sbx_git_identity_parse(more, &again));
	assert_memory_equal(&again, &whole, sizeof(whole));
}

/* The user's two files, and nothing of the workspace's. */
static void test_plan(void **state)
{
	struct plan_world *w = *state;
	const struct sbx_mount_op *op;
	bool set = false;

	plan_world_mkdir(w, "home/project/.git");
	plan_world_write(w, "home/project/.git/config", "[user]\nname=wrong\n", 0644);
	plan_world_must(w, "--", "true");
	assert_null(plan_world_mount(w, "/run/sbx/gitconfig"));
	plan_world_mkdir(w, "home/.config/git");
	plan_world_write(w, "home/.config/git/config", "[user]\nname=other\nemail=e@example.org\n",
			 0644);
	plan_world_write(w, "home/.gitconfig",
			 "[user]\nname=N\n[core]\nsshCommand=touch /x\n[http]\nextraHeader=token\n",
			 0644);
	plan_world_must(w, "--", "true");
	op = plan_world_mount(w, "/run/sbx/gitconfig");
	assert_non_null(op);
	assert_string_equal(op->text, "[include]\n\tpath = /etc/gitconfig\n[user]\n\tname = "
				      "\"N\"\n\temail = \"e@example.org\"\n");
	for (size_t i = 0; i < w->plan->env.n; i++)
		set |= strcmp(w->plan->env.v[i], "GIT_CONFIG_SYSTEM=/run/sbx/gitconfig") == 0;
	assert_true(set);
	plan_world_write(w, "config/profiles/h.yaml", "environment: {git_identity: hide}\n", 0644);
	plan_world_must(w, "--profile", "h", "--", "true");
	assert_null(plan_world_mount(w, "/run/sbx/gitconfig"));
	w->facts.throwaway_user = true;
	plan_world_must(w, "--", "true");
	assert_null(plan_world_mount(w, "/run/sbx/gitconfig"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parse),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_print),
		cmocka_unit_test_setup_teardown(test_plan, plan_world_setup, plan_world_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
