/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The table of flags, and the files that repeat it. SBX_UPDATE_GOLDEN=1 writes them:
 *
 * - man/sbx-run.1: each flag's item begins with `.\" flag: NAME`. The lines from there to `.\"
 * text`
 *   are made from the row. The text behind them is written by hand and stays. A row without an item
 *   gets one.
 * - completion/sbx-run and completion/_sbx-run: the lines between `# flags` and `# end of flags`.
 */
#include "tests/unit/policy_world.h"

#include <ctype.h>

#include "launcher/cli/option_table.h"
#include "launcher/host/options.h"
#include "policy/keys/job.h"
#include "policy/keys/key.h"

#define FOR_EACH_ROW(row) \
	for (const struct sbx_option *row = sbx_option_table; \
	     row < sbx_option_table + sbx_n_option_table; row++)

static bool takes_value(const struct sbx_option *row)
{
	return row->kind != SBX_OPTION_FLAG && row->kind != SBX_OPTION_COUNT;
}

static bool repeats(const struct sbx_option *row)
{
	return row->kind != SBX_OPTION_FLAG && row->kind != SBX_OPTION_STRING;
}

/* The words before and behind the place of @word in @text. */
static char *between(char *text, const char *from, const char *to, char **ret_end)
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
static void compare(const char *file, const char *have, const char *want)
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

/* --- the rows --- */

static void test_rows(void **state)
{
	(void)state;
	FOR_EACH_ROW(row) {
		assert_true(row->flag || row->letter);
		assert_non_null(row->help);
		assert_true(islower((unsigned char)row->help[0]));
		assert_null(strchr(".,:;", row->help[strlen(row->help) - 1]));
		if (takes_value(row))
			assert_true(row->flag && row->value);
		if (row->complete)
			assert_true(takes_value(row));
		assert_true(row->offset < sizeof(struct sbx_options));
		FOR_EACH_ROW(other)
			if (other < row) {
				assert_false(row->flag && other->flag &&
					     strcmp(row->flag, other->flag) == 0);
				assert_false(row->letter && row->letter == other->letter);
			}
	}
}

static const struct sbx_option *row_of_job(const char *key)
{
	FOR_EACH_ROW(row)
		if (row->job && strcmp(row->job, key) == 0)
			return row;
	return NULL;
}

static bool is_name_of(const char *key, const char *flag)
{
	for (; *key && *flag; key++, flag++)
		if (*key != (*flag == '-' ? '_' : *flag))
			return false;
	return *key == *flag;
}

/* A job's key is the flag of that name, takes the same values, and has them as often. */
static void test_job_keys(void **state)
{
	(void)state;
	FOR_EACH_ROW(row)
		if (row->job && !sbx_key_find(&sbx_job_keys, row->job))
			fail_msg("--%s: policy/keys/job.c has no key '%s'", row->flag, row->job);
	for (size_t i = 0; i < sbx_job_keys.n_keys; i++) {
		const struct sbx_key *key = &sbx_job_keys.keys[i];
		const struct sbx_option *row = row_of_job(key->name);

		if (strcmp(key->name, "command") == 0)
			continue;
		if (!row)
			fail_msg("no flag has the job key '%s'", key->name);
		assert_true(is_name_of(key->name, row->flag));
		switch (key->type) {
		case SBX_KEY_SWITCH:
			assert_int_equal(row->kind, SBX_OPTION_FLAG);
			break;
		case SBX_KEY_STRING:
			assert_int_equal(row->kind, SBX_OPTION_STRING);
			break;
		case SBX_KEY_STRINGS:
		case SBX_KEY_WORDS:
			assert_true(takes_value(row) && repeats(row));
			assert_true(key->max <= SBX_OPTIONS_LIST_MAX);
			break;
		default:
			fail_msg("no flag has the type of the job key '%s'", key->name);
		}
		if (key->check && row->check)
			assert_ptr_equal(key->check, row->check);
	}
}

/* --- the manual --- */

static const char *name_of(const struct sbx_option *row)
{
	static char letter[2];

	letter[0] = row->letter;
	return row->flag ? row->flag : letter;
}

static void put_item(FILE *out, const struct sbx_option *row)
{
	fprintf(out, ".\\\" flag: %s\n.It", name_of(row));
	if (row->letter)
		fprintf(out, " Fl %c%s", row->letter, row->flag ? " ," : "");
	if (row->flag)
		fprintf(out, " Fl -%s", row->flag);
	if (row->value)
		fprintf(out, " Ar %s", row->value);
	fprintf(out, "\n%c%s.\n.\\\" text\n", toupper((unsigned char)row->help[0]), row->help + 1);
}

static void test_manual(void **state)
{
	size_t n;
	SBX_AUTO_FREE char *page = read_source_file("man/sbx-run.1", &n);
	SBX_AUTO_FREE char *want = NULL;
	FILE *out = open_memstream(&want, &n);
	char *end, *at = page,
		   *text = between(page, ".Sh OPTIONS\n.Bl -tag -width Ds\n", ".El\n", &end);

	(void)state;
	fprintf(out, "%.*s", (int)(text - at), at);
	FOR_EACH_ROW(row) {
		char marker[64];
		const char *next;

		snprintf(marker, sizeof(marker), ".\\\" flag: %s\n", name_of(row));
		put_item(out, row);
		if (strncmp(text, marker, strlen(marker)) != 0)
			continue;
		text = strstr(text, ".\\\" text\n");
		assert_non_null(text);
		text += strlen(".\\\" text\n");
		next = strstr(text, ".\\\" flag: ");
		if (!next || next > end)
			next = end;
		fprintf(out, "%.*s", (int)(next - text), text);
		text += next - text;
	}
	if (text != end)
		fail_msg("no row is the flag of '%.40s', or the rows have another order", text);
	fputs(end, out);
	fclose(out);
	compare("man/sbx-run.1", page, want);
}

/* --- the completions --- */

static void put_bash(FILE *out, const struct sbx_option *row)
{
	if (row->flag)
		fprintf(out, "\t[--%s]=%s\n", row->flag,
			!takes_value(row) ? "flag" : row->complete ? row->complete : "value");
}

/* @s in single quotes, with a backslash before each of @special. */
static void put_quoted(FILE *out, const char *s, const char *special)
{
	for (; *s; s++)
		if (*s == '\'')
			fputs("'\\''", out);
		else
			fprintf(out, "%s%c", strchr(special, *s) ? "\\" : "", *s);
}

static void put_zsh_spec(FILE *out, const struct sbx_option *row, const char *before,
			 const char *name)
{
	fprintf(out, "\t%s%s[", before, name);
	put_quoted(out, row->help, "[]:");
	fputc(']', out);
	if (takes_value(row)) {
		fputc(':', out);
		put_quoted(out, row->value, ":");
		fprintf(out, ":_sbx_run_%s", row->complete ? row->complete : "value");
	}
	fputs("'\n", out);
}

static void put_zsh(FILE *out, const struct sbx_option *row)
{
	char name[64], before[64];

	snprintf(before, sizeof(before), "'%s", repeats(row) ? "*" : "");
	if (row->flag)
		snprintf(name, sizeof(name), "--%s", row->flag);
	else
		snprintf(name, sizeof(name), "-%c", row->letter);
	if (row->flag && row->letter) {
		snprintf(before, sizeof(before), "'(-%c --%s)'{-%c,--%s}'", row->letter, row->flag,
			 row->letter, row->flag);
		name[0] = '\0';
	}
	put_zsh_spec(out, row, before, name);
}

static void check_completion(const char *file, void (*put)(FILE *out, const struct sbx_option *row))
{
	size_t n;
	SBX_AUTO_FREE char *text = read_source_file(file, &n);
	SBX_AUTO_FREE char *want = NULL;
	FILE *out = open_memstream(&want, &n);
	char *end, *start = between(text, "# flags: make update-golden writes them\n",
				    "# end of flags\n", &end);

	fprintf(out, "%.*s", (int)(start - text), text);
	FOR_EACH_ROW(row)
		put(out, row);
	fputs(end, out);
	fclose(out);
	compare(file, text, want);
}

/* Both scripts know each word that the table has for a kind of value. */
static void test_completions(void **state)
{
	size_t n;
	SBX_AUTO_FREE char *bash = read_source_file("completion/sbx-run", &n);
	SBX_AUTO_FREE char *zsh = read_source_file("completion/_sbx-run", &n);
	char word[64];

	(void)state;
	check_completion("completion/sbx-run", put_bash);
	check_completion("completion/_sbx-run", put_zsh);
	FOR_EACH_ROW(row) {
		if (!row->complete)
			continue;
		snprintf(word, sizeof(word), "\t%s)\n", row->complete);
		assert_non_null(strstr(bash, word));
		snprintf(word, sizeof(word), "_sbx_run_%s()\n", row->complete);
		assert_non_null(strstr(zsh, word));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_job_keys),
		cmocka_unit_test(test_manual),
		cmocka_unit_test(test_completions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
