/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The judgement of one git directory, in a directory of the test's own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "launcher/helpers/git_look.h"
#include "tests/unit/scratch.h"

#define HARMLESS "[core]\n\tbare = false\n"
#define EVIL	 "[core]\n\tfsmonitor = x\n"

static char top[64], found_names[512];

static struct sbx_new_entry entries[] = {
	{ (char *)".git/config", false, false },
	{ (char *)".git/config.worktree", false, false },
	{ (char *)".git/commondir", false, false },
	{ (char *)".git/hooks", false, false },
};

/* A file, with the directories that it is in; a path that ends in a slash is a directory. */
static void make(const char *name, const char *text)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", top, name);
	for (char *slash = strchr(path + strlen(top) + 1, '/'); slash;
	     slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(path, 0755);
		*slash = '/';
	}
	if (path[strlen(path) - 1] != '/')
		scratch_write(path, text);
}

static void on_found(struct sbx_new *x, size_t grant, const char *dir, const char *name,
		     const char *to, const char *why)
{
	size_t n = strlen(found_names);

	(void)x;
	assert_int_equal(grant, 0);
	assert_true(why[0] != '\0');
	assert_true(strncmp(dir, to, strlen(to)) == 0);
	snprintf(found_names + n, sizeof(found_names) - n, "%s%s%s ", dir, *dir ? "/" : "", name);
}

static const char *look(struct sbx_new *x)
{
	found_names[0] = '\0';
	sbx_git_look(x, 0, "g", 1, true, on_found);
	return found_names;
}

static struct sbx_new begin(struct sbx_new_grant *grant)
{
	struct sbx_new x = { .n_grants = 1,
			     .grants = grant,
			     .n_entries = SBX_N_ELEMENTS(entries),
			     .entries = entries,
			     .ended = true };

	strcpy(top, "/tmp/sbx-git-look-XXXXXX");
	assert_non_null(mkdtemp(top));
	*grant = (struct sbx_new_grant){ .fd = open(top, O_PATH | O_DIRECTORY | O_CLOEXEC),
					 .path = top };
	assert_true(grant->fd >= 0);
	return x;
}

static void end(struct sbx_new_grant *grant)
{
	close(grant->fd);
	scratch_remove(top);
}

static void test_found(void **state)
{
	static const struct {
		const char *name, *text, *found;
	} cases[] = {
		{ "g/config", HARMLESS, "" },
		{ "g/config", EVIL, "g/config " },
		{ "g/config", "[torn", "g/config " },
		{ "g/config/x", "", "g/config " },
		{ "g/config", "[core]\n\tworktree = ../w\n", "" },
		{ "g/config", "[core]\n\tworktree = ../../w\n", "g/config " },
		{ "g/config", "[core]\n\tworktree = ../w/.git/hooks\n", "g/config " },
		{ "g/config", "[core]\n\tworktree = ../.git\n", "g/config " },
		{ "g/config", "[core]\n\tworktree = ../w/x.git\n", "" },
		{ "g/config.worktree", EVIL, "g/config.worktree " },
		{ "g/hooks/pre-commit.sample", "", "" },
		{ "g/hooks/pre-commit", "", "g/hooks/pre-commit " },
		{ "g/hooks/dir/x", "", "" },
		{ "g/hooks/pre-commit" SBX_UNTRUSTED, "", "" },
		{ "g/hooks", "", "g/hooks " },
		{ "g/commondir", "../other\n", "g/commondir " },
		{ "g/commondir", "/etc\n", "g/commondir " },
		{ "g/commondir", "", "g/commondir " },
		{ "g/modules/a/b/config", EVIL, "g/modules/a/b/config " },
		{ "g/modules/m" SBX_UNTRUSTED "/config", EVIL,
		  "g/modules/m" SBX_UNTRUSTED "/config " },
		{ "g/modules", "", "g/modules " },
		{ "g/worktrees/w/config.worktree", EVIL, "g/worktrees/w/config.worktree " },
		{ "g/objects/config", EVIL, "" },
	};

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++) {
		struct sbx_new_grant grant;
		struct sbx_new x = begin(&grant);

		make("g/", NULL);
		make(cases[i].name, cases[i].text);
		if (strcmp(look(&x), cases[i].found) != 0)
			fail_msg("%s with '%s': '%s'", cases[i].name, cases[i].text, found_names);
		end(&grant);
	}
}

/* A module in a module, by the least that git takes, and what is checked out into a git
 * directory. */
static void test_nested(void **state)
{
	struct sbx_new_grant grant;
	struct sbx_new x = begin(&grant);

	(void)state;
	make("g/modules/m/HEAD", "x");
	make("g/modules/m/y/config", EVIL);
	make("g/modules/m/y/HEAD", "x");
	assert_string_equal(look(&x), "");
	make("g/modules/m/y/commondir", "../..\n");
	assert_string_equal(look(&x), "g/modules/m/y/config ");
	make("bare/HEAD", "x");
	make("bare/objects/", NULL);
	make("g/config", "[core]\n\tworktree = ../bare/hooks\n");
	assert_string_equal(look(&x), "g/config g/modules/m/y/config ");
	end(&grant);
}

/* The directory that commondir names is judged. Held and covered files are passed over. */
static void test_elsewhere(void **state)
{
	struct sbx_new_grant grant;
	struct sbx_new x = begin(&grant);
	struct stat st;
	char path[128];

	(void)state;
	make("g/commondir", "../other\n");
	make("other/config", EVIL);
	assert_string_equal(look(&x), "other/config ");
	snprintf(path, sizeof(path), "%s/other/config", top);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(sbx_new_add_path(&x.held, 0, "other/config", &st), 0);
	assert_string_equal(look(&x), "");
	st.st_ino++; /* another file at its place */
	x.held.v[0].ino = st.st_ino;
	assert_string_equal(look(&x), "other/config ");
	assert_int_equal(sbx_new_add_path(&x.covered, 0, "other", NULL), 0);
	assert_string_equal(look(&x), "g/commondir ");
	free(x.held.v[0].path);
	free(x.held.v);
	free(x.covered.v[0].path);
	free(x.covered.v);
	end(&grant);
}

/* While the sandbox runs, files that make git fail are left; with changed_only also files older
 * than the sandbox. */
static void test_when(void **state)
{
	struct sbx_new_grant grant;
	struct sbx_new x = begin(&grant);

	(void)state;
	make("g/config", "[torn");
	make("g/commondir", "");
	make("g/hooks/update", "");
	assert_string_equal(look(&x), "g/config g/hooks/update g/commondir ");
	x.ended = false;
	assert_string_equal(look(&x), "g/hooks/update ");
	x.ended = true;
	x.changed_only = true;
	assert_string_equal(look(&x), "g/config g/hooks/update g/commondir ");
	x.since = INT64_MAX;
	assert_string_equal(look(&x), "");
	end(&grant);
}

/* With no free descriptor the look finds nothing, and notes the error. */
static void test_no_descriptor(void **state)
{
	struct sbx_new_grant grant;
	struct sbx_new x = begin(&grant);
	struct rlimit limit, none;

	(void)state;
	make("g/config", EVIL);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = (struct rlimit){ .rlim_cur = 0, .rlim_max = limit.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_string_equal(look(&x), "");
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_int_equal(x.failure, -EMFILE);
	x.failure = 0;
	assert_string_equal(look(&x), "g/config ");
	assert_int_equal(x.failure, 0);
	end(&grant);
}

static void test_is_aside(void **state)
{
	(void)state;
	assert_true(sbx_new_is_aside("config" SBX_UNTRUSTED));
	assert_true(sbx_new_is_aside("config" SBX_UNTRUSTED ".2"));
	assert_true(sbx_new_is_aside("config" SBX_UNTRUSTED ".0123456789abcdef"));
	assert_false(sbx_new_is_aside("config"));
	assert_false(sbx_new_is_aside("config" SBX_UNTRUSTED "."));
	assert_false(sbx_new_is_aside("config" SBX_UNTRUSTED ".c"));
	assert_false(sbx_new_is_aside("config" SBX_UNTRUSTED "x"));
	assert_false(sbx_new_is_aside("config" SBX_UNTRUSTED ".2.sample"));
}

static void test_names(void **state)
{
	static const struct {
		const char *text, *name;
		int r;
	} cases[] = {
		{ "gitdir: a/b\n", "a/b", 0 },	 { "gitdir: a b\r\n\n", "a b", 0 },
		{ "gitdir: ", NULL, -EAGAIN },	 { "", NULL, -EAGAIN },
		{ "gitdir: \n", NULL, -EAGAIN }, { "gitdir:a", NULL, -EAGAIN },
	};
	struct sbx_new_grant grant;
	struct sbx_new x = begin(&grant);
	char long_text[5000], path[128];
	FILE *f;

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++) {
		SBX_AUTO_FREE char *name = NULL;

		make("f", cases[i].text);
		assert_int_equal(sbx_git_read_name(&x, 0, "f", "gitdir: ", &name), cases[i].r);
		if (cases[i].name)
			assert_string_equal(name, cases[i].name);
		else
			assert_null(name);
	}
	memset(long_text, '\n', sizeof(long_text) - 1);
	long_text[sizeof(long_text) - 1] = '\0';
	memcpy(long_text, "gitdir: a", 9);
	make("f", long_text);
	snprintf(path, sizeof(path), "%s/nul", top);
	f = fopen(path, "we");
	assert_non_null(f);
	assert_int_equal(fwrite("gitdir: a\n\0x", 1, 12, f), 12);
	fclose(f);
	for (int i = 0; i < 2; i++) {
		char *name;

		assert_int_equal(sbx_git_read_name(&x, 0, i ? "f" : "nul", "gitdir: ", &name),
				 -EXDEV);
		assert_null(name);
	}
	end(&grant);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_found),	      cmocka_unit_test(test_nested),
		cmocka_unit_test(test_elsewhere),     cmocka_unit_test(test_when),
		cmocka_unit_test(test_no_descriptor), cmocka_unit_test(test_is_aside),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
