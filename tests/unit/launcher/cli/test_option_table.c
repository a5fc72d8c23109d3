/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The table of flags, and the files that repeat it: man/sbx-run.1, and completion/sbx-run and
 * completion/_sbx-run between `# flags` and `# end of flags`. SBX_UPDATE_GOLDEN=1 writes them. */
#include "tests/unit/option_files.h"

#include "launcher/cli/option_table.h"
#include "launcher/host/options.h"
#include "policy/keys/job.h"
#include "policy/keys/key.h"

#define FOR_EACH_ROW(row) \
	for (const struct sbx_option *row = sbx_option_table; \
	     row < sbx_option_table + sbx_n_option_table; row++)

/* --- the rows --- */

static void test_rows(void **state)
{
	(void)state;
	check_option_rows(sbx_option_table, sbx_n_option_table, sizeof(struct sbx_options));
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
			assert_true(sbx_option_takes_value(row) && sbx_option_repeats(row));
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

static void test_manual(void **state)
{
	(void)state;
	check_man_options("man/sbx-run.1", ".Sh OPTIONS\n.Bl -tag -width Ds\n", sbx_option_table,
			  sbx_n_option_table);
}

/* --- the completions --- */

static void put_zsh(FILE *out, const struct sbx_option *row)
{
	put_zsh_option(out, row, "_sbx_run");
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
	compare_source(file, text, want);
}

/* Both scripts know each word that the table has for a kind of value. */
static void test_completions(void **state)
{
	size_t n;
	SBX_AUTO_FREE char *bash = read_source_file("completion/sbx-run", &n);
	SBX_AUTO_FREE char *zsh = read_source_file("completion/_sbx-run", &n);
	char word[64];

	(void)state;
	check_completion("completion/sbx-run", put_bash_option);
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
