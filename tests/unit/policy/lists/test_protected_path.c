/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The table of protected paths, what an entry means, and docs/PROTECTED.md, whose tables are made
 * here of the C one; SBX_UPDATE_GOLDEN=1 writes them. */

#include "tests/unit/policy_world.h"

#include <fnmatch.h>

#include "policy/keys/profile_parse.h"
#include "policy/lists/protected_path.h"

#define DOCUMENT "docs/PROTECTED.md"

static bool is_text(const char *s)
{
	return s && *s && !strchr(s, '|') && !strchr(s, '\n') && s[strlen(s) - 1] != '.';
}

/* As check_relative_path() in policy/keys/key.c asks for it. */
static void check_path(const char *path)
{
	assert_true(*path && *path != '/' && path[strlen(path) - 1] != '/');
	assert_null(strstr(path, "//"));
	assert_null(strstr(path, "/./"));
	for (const char *dots = path; (dots = strstr(dots, "..")); dots++)
		fail_msg("%s has '..'", path);
	assert_true(strchr(path, '*') == NULL || sbx_protected_path_is_pattern(path));
	for (const char *c = path; *c; c++)
		assert_true(*c > ' ' && *c < 127 && *c != '|' && *c != '`');
}

static void test_table(void **state)
{
	(void)state;
	for (size_t i = 0; i < sbx_n_protected_rows; i++) {
		const struct sbx_protected_row *row = &sbx_protected_rows[i];

		assert_true(is_text(row->tool) && is_text(row->acts) && is_text(row->source));
		assert_true(row->asks < SBX_N_PROTECTED_ASKS);
		assert_in_range(row->group, i ? row[-1].group : 0, SBX_N_PROTECTED_GROUPS - 1);
		assert_non_null(row->paths[0]);
		assert_null(row->paths[SBX_PROTECTED_PATHS_MAX]);
		for (const char *const *path = row->paths; *path; path++) {
			check_path(*path);
			assert_false(row->cover_absent && sbx_protected_path_is_pattern(*path));
			assert_false(row->cover_absent && row->asks != SBX_PROTECTED_ASKS_NO);
		}
	}
}

static size_t count(const char *path)
{
	size_t n = 0;

	for (size_t i = 0; i < sbx_n_protected_rows; i++)
		for (const char *const *p = sbx_protected_rows[i].paths; *p; p++)
			n += strcmp(*p, path) == 0;
	return n;
}

static void test_no_doubles(void **state)
{
	(void)state;
	for (size_t i = 0; i < sbx_n_protected_rows; i++)
		for (const char *const *p = sbx_protected_rows[i].paths; *p; p++)
			assert_int_equal(count(*p), 1);
}

/* Files that agents edit as ordinary work are not protected. */
static void test_not_listed(void **state)
{
	static const char *const work[] = {
		"CLAUDE.md",	"AGENTS.md",	  "GEMINI.md", ".cursorrules",
		"package.json", "pyproject.toml", "Makefile",  "justfile",
		"flake.nix",	"node_modules",	  ".venv",     ".github",
		".yarn",	".config",	  ".cargo",    "pnpm-workspace.yaml"
	};

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(work); i++)
		assert_int_equal(count(work[i]), 0);
}

static bool has(const struct sbx_str_list *list, const char *s)
{
	for (size_t i = 0; i < list->n; i++)
		if (strcmp(list->v[i], s) == 0)
			return true;
	return false;
}

/* The system policy's list is the table's; the owner's own entries come first. */
static void test_policy(void **state)
{
	static const char yaml[] = "protected_paths: [mine, .cursor]\nunprotected_paths: [.npmrc, "
				   "'*.code-workspace']\n";
	SBX_CLEANUP(sbx_system_policy_freep)
	struct sbx_system_policy *def = sbx_system_policy_default(),
				 *own = NULL;
	struct sbx_err_list errs = { 0 };
	size_t n = 0;

	(void)state;
	for (size_t i = 0; i < sbx_n_protected_rows; i++)
		for (const char *const *p = sbx_protected_rows[i].paths; *p; p++, n++)
			assert_string_equal(def->protected_paths.v[n], *p);
	assert_int_equal(def->protected_paths.n, n);
	assert_int_equal(def->n_own_protected_paths, 0);
	assert_int_equal(sbx_system_policy_parse(sbx_span_str(yaml), "system.yaml", &errs, &own),
			 0);
	assert_int_equal(own->n_own_protected_paths, 2);
	assert_string_equal(own->protected_paths.v[1], ".cursor");
	assert_int_equal(own->protected_paths.n, n); /* two more and two less */
	assert_false(has(&own->protected_paths, ".npmrc"));
	assert_false(has(&own->protected_paths, "*.code-workspace"));
	assert_true(has(&own->protected_paths, ".yarnrc.yml"));
}

static void test_covers_absent(void **state)
{
	static const char *const covered[] = { ".git/config", "HEAD", ".gitmodules",
					       ".bashrc",     "mine", "a/b" };
	static const char *const uncovered[] = { ".cursor",	     ".npmrc", ".cargo/config.toml",
						 "*.code-workspace", ".envrc", ".vscode",
						 ".mcp.json",	     "*",      "a/*.sql" };

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(covered); i++)
		assert_true(sbx_protected_path_covers_absent(covered[i]));
	for (size_t i = 0; i < SBX_N_ELEMENTS(uncovered); i++)
		assert_false(sbx_protected_path_covers_absent(uncovered[i]));
}

static void test_row_of(void **state)
{
	(void)state;
	assert_string_equal(sbx_protected_row_of("mise.*.toml")->tool, "mise");
	assert_int_equal(sbx_protected_row_of(".envrc")->asks, SBX_PROTECTED_ASKS_EACH);
	assert_int_equal(sbx_protected_row_of(".vscode")->asks, SBX_PROTECTED_ASKS_ONCE);
	/* an entry, not a name that one matches */
	assert_null(sbx_protected_row_of("mise.dev.toml"));
	assert_null(sbx_protected_row_of(""));
}

static void test_is_pattern(void **state)
{
	(void)state;
	assert_true(sbx_protected_path_is_pattern("*"));
	assert_true(sbx_protected_path_is_pattern("a/b*"));
	assert_false(sbx_protected_path_is_pattern("a*/b")); /* refused where it is read */
	assert_false(sbx_protected_path_is_pattern("a?[b]\\"));
	assert_false(sbx_protected_path_is_pattern(""));
}

static void test_matches(void **state)
{
	static const struct {
		const char *entry, *name;
		bool match;
	} cases[] = {
		{ "*.code-workspace", "x.code-workspace", true },
		{ "*.code-workspace", ".code-workspace", true },
		{ "*.code-workspace", ".hidden.code-workspace", true },
		{ "*.code-workspace", "x.code-workspace.bak", false },
		{ "*.code-workspace", "x.code-workspac", false },
		{ "*.code-workspace", "x.Code-Workspace", false },
		{ "*.code-workspace", "\xff\n\x01 *?[.code-workspace", true },
		{ "*.code-workspace", "", false },
		{ ".direnv/*.rc", "flake-profile-a5.rc", true },
		{ ".direnv/*.rc", ".direnv", false },
		{ "mise.*.toml", "mise.dev.local.toml", true },
		{ "mise.*.toml", "mise.toml", false },
		{ "mise.*.toml", "mise..toml", true },
		{ "*", "", true },
		{ "*", "anything", true },
		{ "**", "anything", true },
		{ "a*", "a", true },
		{ "*a", "ba", true },
		{ "*a", "bab", false },
		{ "a*b*c", "axbxbxc", true },
		{ "a*b*c", "axcxb", false },
		{ "*aab", "aaaab", true },
		{ "*ab*ab", "abab", true },
		{ "*ab*ab", "ab", false },
		{ "a?c", "abc", false },
		{ "a?c", "a?c", true },
		{ "[a]", "a", false },
		{ "a\\*", "a\\b", true }, /* a backslash is a byte as any other */
		{ "a*", "b", false },
	};

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++)
		if (sbx_protected_path_matches(cases[i].entry, cases[i].name) != cases[i].match)
			fail_msg("'%s' and '%s'", cases[i].entry, cases[i].name);
}

/* Text @n in base @n_letters, of up to @max letters. False: there are no more. */
static bool spell(size_t n, const char *letters, size_t max, char *text)
{
	size_t n_letters = strlen(letters), at = 0;

	for (; n > 0 && at < max; n = (n - 1) / n_letters)
		text[at++] = letters[(n - 1) % n_letters];
	text[at] = '\0';
	return n == 0;
}

/* All short patterns and names, as fnmatch(3) sees them. */
static void test_matches_as_fnmatch(void **state)
{
	char entry[8], name[8];

	(void)state;
	for (size_t i = 0; spell(i, "ab*", 5, entry); i++)
		for (size_t k = 0; spell(k, "ab", 6, name); k++)
			if (sbx_protected_path_matches(entry, name) !=
			    (fnmatch(entry, name, 0) == 0))
				fail_msg("'%s' and '%s'", entry, name);
}

/* A long name against many stars takes no more than their product. */
static void test_matches_in_time(void **state)
{
	char entry[128], name[256];

	(void)state;
	for (size_t i = 0; i + 2 < sizeof(entry); i += 2)
		memcpy(entry + i, "*a", 2);
	entry[sizeof(entry) - 2] = 'b';
	entry[sizeof(entry) - 1] = '\0';
	memset(name, 'a', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	for (int i = 0; i < 1000; i++)
		assert_false(sbx_protected_path_matches(entry, name));
}

/* Read like any other entry: a `*` stands in the last part alone. */
static void test_in_a_file(void **state)
{
	static const struct {
		const char *yaml, *why;
	} cases[] = {
		{ "protected_paths: ['gen/*.sql', '*', 'a?b']\n", NULL },
		{ "unprotected_paths: ['*.code-workspace']\n", NULL },
		{ "protected_paths: ['*/x']\n", "only in the last part" },
		{ "protected_paths: ['a/*b/c']\n", "only in the last part" },
		{ "unprotected_paths: ['**/x']\n", "only in the last part" },
	};

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++) {
		SBX_CLEANUP(sbx_system_policy_freep) struct sbx_system_policy *s = NULL;
		struct sbx_err_list errs = { 0 };
		int r = sbx_system_policy_parse(sbx_span_str(cases[i].yaml), "system.yaml", &errs,
						&s);

		assert_int_equal(r != 0, cases[i].why != NULL);
		if (cases[i].why)
			assert_non_null(strstr(errs.v[0].msg, cases[i].why));
	}
}

/* --- the document --- */

static void put_rows(FILE *out, enum sbx_protected_group group)
{
	fputs("\n| path | tool | it acts when | asks first | absent | source "
	      "|\n|---|---|---|---|---|---|\n",
	      out);
	for (size_t i = 0; i < sbx_n_protected_rows; i++) {
		const struct sbx_protected_row *row = &sbx_protected_rows[i];

		if (row->group != group)
			continue;
		for (const char *const *p = row->paths; *p; p++)
			fprintf(out, "%s`%s`", p == row->paths ? "| " : ", ", *p);
		fprintf(out, " | %s | %s | %s | %s | %s |\n", row->tool, row->acts,
			sbx_protected_asks_str(row->asks), row->cover_absent ? "covered" : "-",
			row->source);
	}
	fputs("\n", out);
}

static char *remade(const char *text)
{
	static const char start_marker[] = "<!-- paths -->\n",
			  end_marker[] = "<!-- end of paths -->\n";
	char *made = NULL;
	size_t n;
	FILE *out = open_memstream(&made, &n);

	for (int g = 0; g < SBX_N_PROTECTED_GROUPS; g++) {
		char marker[128];
		const char *start, *end;

		snprintf(marker, sizeof(marker), "\n## %s\n",
			 sbx_protected_group_str((enum sbx_protected_group)g));
		start = strstr(text, marker);
		start = start ? strstr(start, start_marker) : NULL;
		if (!start)
			fail_msg(DOCUMENT " has no paths of '%s'",
				 sbx_protected_group_str((enum sbx_protected_group)g));
		start += strlen(start_marker);
		end = strstr(start, end_marker);
		assert_non_null(end);
		fprintf(out, "%.*s", (int)(start - text), text);
		put_rows(out, (enum sbx_protected_group)g);
		text = end;
	}
	fputs(text, out);
	fclose(out);
	return made;
}

static void test_document(void **state)
{
	SBX_AUTO_FREE char *text = NULL, *want = NULL;
	size_t n;

	(void)state;
	text = read_source_file(DOCUMENT, &n);
	assert_non_null(text);
	want = remade(text);
	if (getenv("SBX_UPDATE_GOLDEN")) {
		char name[4096];
		FILE *f;

		snprintf(name, sizeof(name), "%s/" DOCUMENT, getenv("SBX_SRCDIR"));
		f = fopen(name, "we");
		assert_non_null(f);
		fputs(want, f);
		assert_int_equal(fclose(f), 0);
	} else {
		assert_string_equal(text, want);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),		cmocka_unit_test(test_no_doubles),
		cmocka_unit_test(test_not_listed),	cmocka_unit_test(test_policy),
		cmocka_unit_test(test_covers_absent),	cmocka_unit_test(test_is_pattern),
		cmocka_unit_test(test_matches),		cmocka_unit_test(test_matches_as_fnmatch),
		cmocka_unit_test(test_matches_in_time), cmocka_unit_test(test_in_a_file),
		cmocka_unit_test(test_row_of),		cmocka_unit_test(test_document),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
