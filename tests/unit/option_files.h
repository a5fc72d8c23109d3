/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_TESTS_OPTION_FILES_H
#define SBX_TESTS_OPTION_FILES_H

/*
 * Files that repeat a table of options: a manual and the completions. The tests of the tables
 * compare them; SBX_UPDATE_GOLDEN=1 writes them.
 *
 * An option's item in a manual begins with `.\" flag: NAME`. The lines from there to `.\" text` are
 * made from the row. The text behind them is written by hand and stays. A row without an item gets
 * one.
 */
#include "tests/unit/policy_world.h"

#include <ctype.h>

#include "cli/option.h"

/* The words before and behind the place of @word in @text. */
static inline char *between(char *text, const char *from, const char *to, char **ret_end)
{
	char *start = strstr(text, from);

	if (!start)
		fail_msg("'%s' is missing", from);
	start += strlen(from);
	*ret_end = strstr(start, to);
	assert_non_null(*ret_end);
	return start;
}

/* @file has the text @want; SBX_UPDATE_GOLDEN writes it. */
static inline void compare_source(const char *file, const char *have, const char *want)
{
	char path[4096];
	FILE *f;

	if (!getenv("SBX_UPDATE_GOLDEN")) {
		assert_string_equal(have, want);
		return;
	}
	snprintf(path, sizeof(path), "%s/%s", getenv("SBX_SRCDIR"), file);
	f = fopen(path, "we");
	assert_non_null(f);
	assert_true(fputs(want, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

/* The rules for the rows of any table; @n_values: the size of their struct. */
static inline void check_option_rows(const struct sbx_option *rows, size_t n_rows, size_t n_values)
{
	for (const struct sbx_option *row = rows; row < rows + n_rows; row++) {
		assert_true(row->flag || row->letter);
		assert_non_null(row->help);
		assert_true(islower((unsigned char)row->help[0]));
		assert_null(strchr(".,:;", row->help[strlen(row->help) - 1]));
		if (sbx_option_takes_value(row))
			assert_true(row->flag && row->value);
		if (row->complete)
			assert_true(sbx_option_takes_value(row));
		assert_true(row->offset < n_values);
		for (const struct sbx_option *other = rows; other < row; other++) {
			assert_false(row->flag && other->flag &&
				     strcmp(row->flag, other->flag) == 0);
			assert_false(row->letter && row->letter == other->letter);
		}
	}
}

/* --- the manual --- */

static inline const char *option_name(const struct sbx_option *row)
{
	static char letter[2];

	letter[0] = row->letter;
	return row->flag ? row->flag : letter;
}

static inline void put_man_option(FILE *out, const struct sbx_option *row)
{
	fprintf(out, ".\\\" flag: %s\n.It", option_name(row));
	if (row->letter)
		fprintf(out, " Fl %c%s", row->letter, row->flag ? " ," : "");
	if (row->flag)
		fprintf(out, " Fl -%s", row->flag);
	if (row->value)
		fprintf(out, " Ar %s", row->value);
	fprintf(out, "\n%c%s.\n.\\\" text\n", toupper((unsigned char)row->help[0]), row->help + 1);
}

/* The item at @text is the row's. Its text, from `.\" text` to the @next item or @end, stays.
 * Returns the end of the item. */
static inline char *keep_text(FILE *out, char *text, const char *next, char *end)
{
	char *stop;

	text = strstr(text, ".\\\" text\n");
	assert_non_null(text);
	text += strlen(".\\\" text\n");
	stop = strstr(text, next);
	if (!stop || stop > end)
		stop = end;
	fprintf(out, "%.*s", (int)(stop - text), text);
	return stop;
}

/* The list of options in the manual @file between @from and the next ".El". */
static inline void check_man_options(const char *file, const char *from,
				     const struct sbx_option *rows, size_t n_rows)
{
	size_t n;
	SBX_AUTO_FREE char *page = read_source_file(file, &n);
	SBX_AUTO_FREE char *want = NULL;
	FILE *out = open_memstream(&want, &n);
	char *end, *at = page, *text = between(page, from, ".El\n", &end);

	fprintf(out, "%.*s", (int)(text - at), at);
	for (const struct sbx_option *row = rows; row < rows + n_rows; row++) {
		char marker[64];

		snprintf(marker, sizeof(marker), ".\\\" flag: %s\n", option_name(row));
		put_man_option(out, row);
		if (strncmp(text, marker, strlen(marker)) == 0)
			text = keep_text(out, text, ".\\\" flag: ", end);
	}
	if (text != end)
		fail_msg("no row is the flag of '%.40s', or the rows have another order", text);
	fputs(end, out);
	fclose(out);
	compare_source(file, page, want);
}

/* --- the completions --- */

static inline void put_bash_option(FILE *out, const struct sbx_option *row)
{
	if (row->flag)
		fprintf(out, "\t[--%s]=%s\n", row->flag,
			!sbx_option_takes_value(row) ? "flag" :
			row->complete		     ? row->complete :
						       "value");
}

/* @s in single quotes, with a backslash before each of @special. */
static inline void put_zsh_quoted(FILE *out, const char *s, const char *special)
{
	for (; *s; s++)
		if (*s == '\'')
			fputs("'\\''", out);
		else
			fprintf(out, "%s%c", strchr(special, *s) ? "\\" : "", *s);
}

static inline void put_zsh_spec(FILE *out, const struct sbx_option *row, const char *before,
				const char *name, const char *functions)
{
	fprintf(out, "\t%s%s[", before, name);
	put_zsh_quoted(out, row->help, "[]:");
	fputc(']', out);
	if (sbx_option_takes_value(row)) {
		fputc(':', out);
		put_zsh_quoted(out, row->value, ":");
		fprintf(out, ":%s_%s", functions, row->complete ? row->complete : "value");
	}
	fputs("'\n", out);
}

/* @functions: their common beginning, before the word for a kind of value */
static inline void put_zsh_option(FILE *out, const struct sbx_option *row, const char *functions)
{
	char name[64], before[64];

	snprintf(before, sizeof(before), "'%s", sbx_option_repeats(row) ? "*" : "");
	if (row->flag)
		snprintf(name, sizeof(name), "--%s", row->flag);
	else
		snprintf(name, sizeof(name), "-%c", row->letter);
	if (row->flag && row->letter) {
		snprintf(before, sizeof(before), "'(-%c --%s)'{-%c,--%s}'", row->letter, row->flag,
			 row->letter, row->flag);
		name[0] = '\0';
	}
	put_zsh_spec(out, row, before, name, functions);
}

#endif
