/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The table of commands, and the files that repeat it. SBX_UPDATE_GOLDEN=1 writes them:
 *
 * - man/sbxctl.1: the options of all commands, and the list of commands between `.\" commands` and
 *   `.\" end of commands`. A command's item begins with `.\" command: NAME`; the text behind
 *   `.\" text` is written by hand and stays.
 * - completion/sbxctl and completion/_sbxctl: the lines between `# commands` and `# end of
 *   commands`.
 */
#include "tests/unit/option_files.h"

#include <limits.h>

#include "ctl/frame/command.h"
#include "ctl/main/command_table.h"

#define FOR_EACH_COMMAND(c)                                                                        \
	for (const struct sbx_ctl_command *const *c##_p = sbx_ctl_commands.v, *c;                  \
	     c##_p < sbx_ctl_commands.v + sbx_ctl_commands.n && (c = *c##_p); c##_p++)

/* --- the rows --- */

static void check_arguments(const struct sbx_ctl_command *c)
{
	assert_true(c->n_min >= 0 && c->n_min <= c->n_max);
	assert_true((c->args != NULL) == (c->n_max > 0));
	if (c->complete)
		assert_non_null(c->args);
	if (c->program)
		assert_int_equal(c->n_max, INT_MAX);
	if (c->n_max == INT_MAX)
		assert_non_null(strstr(c->args, "..."));
}

static void test_rows(void **state)
{
	char start[64];

	(void)state;
	check_option_rows(sbx_ctl_common_options, sbx_n_ctl_common_options,
			  sizeof(struct sbx_ctl_common));
	FOR_EACH_COMMAND(c)
	{
		assert_non_null(c->run);
		assert_true(islower((unsigned char)c->help[0]));
		assert_null(strchr(".,:;", c->help[strlen(c->help) - 1]));
		check_arguments(c);
		check_option_rows(c->options, c->n_options, c->n_values);
		snprintf(start, sizeof(start), "sbxctl %s", c->name);
		if (strncmp(c->example, start, strlen(start)) != 0)
			fail_msg("the example of '%s' shows another command", c->name);
		for (size_t i = 0; i < c->n_options; i++)
			for (size_t k = 0; k < sbx_n_ctl_common_options; k++)
				assert_string_not_equal(c->options[i].flag,
							sbx_ctl_common_options[k].flag);
		FOR_EACH_COMMAND(other)
		if (other != c)
			assert_string_not_equal(other->name, c->name);
	}
}

/* --- the manual --- */

/* "[COMMAND]", "ID...", "NAME|FILE" as mdoc(7). */
static void put_man_command(FILE *out, const struct sbx_ctl_command *c)
{
	fprintf(out, ".\\\" command: %s\n.It Cm %s%s", c->name, c->name,
		c->n_options ? " Oo Ar option ... Oc" : "");
	if (c->args)
		fprintf(out, " Ar %s", c->args);
	fprintf(out, "\n%c%s%s.\n", toupper((unsigned char)c->help[0]), c->help + 1,
		c->more ? c->more : "");
	if (c->n_options)
		fputs(".Bl -tag -width Ds\n", out);
	for (size_t i = 0; i < c->n_options; i++) {
		const struct sbx_option *row = &c->options[i];

		fputs(".It", out);
		if (row->letter)
			fprintf(out, " Fl %c ,", row->letter);
		fprintf(out, " Fl -%s", row->flag);
		if (row->value)
			fprintf(out, " Ar %s", row->value);
		fprintf(out, "\n%c%s%s.\n", toupper((unsigned char)row->help[0]), row->help + 1,
			row->more ? row->more : "");
	}
	if (c->n_options)
		fputs(".El\n", out);
	fprintf(out, ".Pp\n.Dl %s\n.\\\" text\n", c->example);
}

static void test_manual(void **state)
{
	static const char file[] = "man/sbxctl.1";
	size_t n;
	SBX_AUTO_FREE char *want = NULL, *page = NULL;
	char *end, *text;
	FILE *out = open_memstream(&want, &n);

	(void)state;
	check_man_options(file, ".Sh OPTIONS\n.Bl -tag -width Ds\n", sbx_ctl_common_options,
			  sbx_n_ctl_common_options);
	page = read_source_file(file, &n);
	text = between(page, ".\\\" commands\n", ".\\\" end of commands\n", &end);
	fprintf(out, "%.*s", (int)(text - page), page);
	FOR_EACH_COMMAND(c)
	{
		char marker[64];

		snprintf(marker, sizeof(marker), ".\\\" command: %s\n", c->name);
		put_man_command(out, c);
		if (strncmp(text, marker, strlen(marker)) == 0)
			text = keep_text(out, text, ".\\\" command: ", end);
	}
	if (text != end)
		fail_msg("no command is '%.40s', or the commands have another order", text);
	fputs(end, out);
	fclose(out);
	compare_source(file, page, want);
}

/* --- the completions --- */

static void put_bash_words(FILE *out, const struct sbx_option *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const char *kind = !sbx_option_takes_value(&rows[i]) ? "flag" :
				   rows[i].complete		     ? rows[i].complete :
								       "value";

		if (rows[i].letter)
			fprintf(out, " -%c=%s", rows[i].letter, kind);
		fprintf(out, " --%s=%s", rows[i].flag, kind);
	}
}

static void put_bash(FILE *out, const struct sbx_ctl_command *c)
{
	fprintf(out, "\t['%s']='%s%s", c->name, c->program ? "program:" : "",
		!c->args    ? "none" :
		c->complete ? c->complete :
			      "value");
	put_bash_words(out, c->options, c->n_options);
	put_bash_words(out, sbx_ctl_common_options, sbx_n_ctl_common_options);
	fputs("'\n", out);
}

static void put_zsh(FILE *out, const struct sbx_ctl_command *c)
{
	fprintf(out, "\t('%s')\n\tspecs+=(\n", c->name);
	for (size_t i = 0; i < c->n_options; i++)
		put_zsh_option(out, &c->options[i], "_sbxctl");
	if (c->program)
		fprintf(out, "\t'1:ID:_sbxctl_%s'\n\t'*::command:_normal'\n", c->complete);
	else if (c->args) {
		fprintf(out, "\t'*:");
		put_zsh_quoted(out, c->args, ":");
		fprintf(out, ":_sbxctl_%s'\n", c->complete ? c->complete : "value");
	}
	fputs("\t) ;;\n", out);
}

static void put_zsh_command(FILE *out, const struct sbx_ctl_command *c)
{
	fprintf(out, "\t'");
	put_zsh_quoted(out, c->name, ":");
	fputc(':', out);
	put_zsh_quoted(out, c->help, "");
	fputs("'\n", out);
}

static void check_part(const char *file, const char *what,
		       void (*put)(FILE *out, const struct sbx_ctl_command *c))
{
	size_t n;
	SBX_AUTO_FREE char *text = read_source_file(file, &n);
	SBX_AUTO_FREE char *want = NULL;
	FILE *out = open_memstream(&want, &n);
	char from[80], to[80], *end, *start;

	snprintf(from, sizeof(from), "# %s: make update-golden writes them\n", what);
	snprintf(to, sizeof(to), "# end of %s\n", what);
	start = between(text, from, to, &end);
	fprintf(out, "%.*s", (int)(start - text), text);
	FOR_EACH_COMMAND(c)
	put(out, c);
	fputs(end, out);
	fclose(out);
	compare_source(file, text, want);
}

/* Both scripts have a function or case for @word. */
static void check_word(const char *bash, const char *zsh, const char *word)
{
	char text[64];

	snprintf(text, sizeof(text), "\t%s)\n", word);
	if (!strstr(bash, text))
		fail_msg("completion/sbxctl does not know '%s'", word);
	snprintf(text, sizeof(text), "_sbxctl_%s()\n", word);
	if (!strstr(zsh, text))
		fail_msg("completion/_sbxctl does not know '%s'", word);
}

static void test_completions(void **state)
{
	size_t n;
	SBX_AUTO_FREE char *bash = read_source_file("completion/sbxctl", &n);
	SBX_AUTO_FREE char *zsh = read_source_file("completion/_sbxctl", &n);

	(void)state;
	check_part("completion/sbxctl", "commands", put_bash);
	check_part("completion/_sbxctl", "names", put_zsh_command);
	check_part("completion/_sbxctl", "commands", put_zsh);
	FOR_EACH_COMMAND(c)
	{
		if (c->complete)
			check_word(bash, zsh, c->complete);
		for (size_t i = 0; i < c->n_options; i++)
			if (c->options[i].complete)
				check_word(bash, zsh, c->options[i].complete);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_manual),
		cmocka_unit_test(test_completions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
