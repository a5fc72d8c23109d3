/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The manual's lists of keys are the key tables: between the markers
 *
 *     .\" keys: PATH .\" end of keys
 *
 * man/sbx-profile.5 holds exactly what is made here of the block PATH, and man/sbx-run.1 of a
 * job's. SBX_UPDATE_GOLDEN=1 writes them. */

#include "tests/unit/policy_world.h"

#include "base/seccomp_lift.h"
#include "policy/keys/key.h"
#include "policy/keys/key_scalar.h"
#include "policy/lists/shipped.h"

/* Text without backquotes: each sentence on a line of its own, as mdoc wants it. */
static void put_text(FILE *out, const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		fputc(s[i], out);
		if (s[i] == '.' && i + 1 < n && s[i + 1] == ' ') {
			fputc('\n', out);
			i++;
		}
	}
	fputc('\n', out);
}

/* A help sentence as mdoc: what is in backquotes becomes a literal on a line of its own, with the
 * punctuation that follows it. */
static void put_prose(FILE *out, const char *s)
{
	while (*s) {
		size_t n = strcspn(s, "`");

		if (s[n] == '`') {
			const char *end = strchr(s + n + 1, '`');

			assert_non_null(end);
			while (n > 0 && s[n - 1] == ' ')
				n--;
			if (n > 0)
				put_text(out, s, n);
			s += n + strspn(s + n, " ") + 1;
			fprintf(out, ".Ql \"%.*s\"", (int)(end - s), s);
			s = end + 1;
			if (strchr(".,:;", *s) && *s)
				fprintf(out, " %c", *s++);
			fputs("\n", out);
			s += strspn(s, " ");
		} else {
			put_text(out, s, n);
			s += n;
		}
	}
}

/* The form of a value, where the help alone does not tell it. */
static void put_form(FILE *out, const struct sbx_key *key)
{
	const char *form = sbx_key_form(key->type);
	char range[256];

	if (key->type == SBX_KEY_STRING || key->type == SBX_KEY_PROSE ||
	    key->type == SBX_KEY_BLOCK || key->type == SBX_KEY_EXTENDS)
		return;
	sbx_key_range(key, range, sizeof(range));
	if (key->words)
		fprintf(out, "One of %s", range);
	else
		fprintf(out, "%c%s%s%s", form[0] - 'a' + 'A', form + 1, *range ? ", " : "", range);
	if (key->words && *key->words[key->def])
		fprintf(out, "; %s unless said", key->words[key->def]);
	fputs(".\n", out);
}

static void put_list(FILE *out, const char *head, const char *const *list)
{
	if (!list)
		return;
	fputs(head, out);
	for (const char *const *s = list; *s; s++)
		fprintf(out, "%s%s", s == list ? "\n" : ",\n", *s);
	fputs(".\n", out);
}

static void put_key(FILE *out, const struct sbx_key *key)
{
	fprintf(out, ".It Ic %s\n", key->name);
	put_prose(out, key->help);
	put_form(out, key);
	put_list(out, "Unless said:", key->def_list);
	put_list(out, "Always:", key->besides);
}

/* Every block below @block, itself first: blocks in blocks, and items of lists. */
static size_t blocks_of(const struct sbx_key_block *block, const struct sbx_key_block **blocks,
			size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (blocks[i] == block)
			return n;
	}
	assert_true(n < 32);
	blocks[n++] = block;
	for (size_t i = 0; i < block->n_keys; i++) {
		if (block->keys[i].block)
			n = blocks_of(block->keys[i].block, blocks, n);
	}
	return n;
}

static void put_block(FILE *out, const struct sbx_key_block *block)
{
	fputs(".Bl -tag -width Ds\n", out);
	for (size_t i = 0; i < block->n_keys; i++)
		put_key(out, &block->keys[i]);
	fputs(".El\n", out);
}

/* The page with every list between markers made anew. Each block must have its markers. */
static char *remade(const char *name, const char *page, const struct sbx_key_block *const *blocks,
		    const char *const *titles, size_t n_blocks)
{
	static const char end_marker[] = ".\\\" end of keys\n";
	char *text = NULL;
	size_t n;
	FILE *out = open_memstream(&text, &n);

	for (size_t i = 0; i < n_blocks; i++) {
		char marker[64];
		const char *start, *end;

		snprintf(marker, sizeof(marker), ".\\\" keys: %s\n", titles[i]);
		start = strstr(page, marker);
		if (!start)
			fail_msg("%s has no list of the keys of '%s'", name, titles[i]);
		start += strlen(marker);
		end = strstr(start, end_marker);
		assert_non_null(end);
		fprintf(out, "%.*s", (int)(start - page), page);
		put_block(out, blocks[i]);
		page = end;
	}
	fputs(page, out);
	fclose(out);
	return text;
}

static void check_page(const char *page_name, const struct sbx_key_block *const *blocks,
		       const char *const *titles, size_t n)
{
	SBX_AUTO_FREE char *page = NULL, *want = NULL;
	size_t n_page;

	page = read_source_file(page_name, &n_page);
	assert_non_null(page);
	want = remade(page_name, page, blocks, titles, n);
	if (getenv("SBX_UPDATE_GOLDEN")) {
		char name[4096];
		FILE *f;

		snprintf(name, sizeof(name), "%s/%s", getenv("SBX_SRCDIR"), page_name);
		f = fopen(name, "we");
		assert_non_null(f);
		fputs(want, f);
		assert_int_equal(fclose(f), 0);
	} else {
		assert_string_equal(page, want);
	}
}

static void test_every_key(void **state)
{
	const struct sbx_key_block *blocks[32];
	const char *titles[32];
	size_t n, n_profile;

	(void)state;
	n_profile = blocks_of(&sbx_profile_keys, blocks, 0);
	n = blocks_of(&sbx_system_keys, blocks, n_profile);
	for (size_t i = 0; i < n; i++)
		titles[i] = blocks[i]->path;
	titles[0] = "profile";
	titles[n_profile] = "system policy";
	for (size_t i = n_profile + 1; i < n; i++) {
		if (strcmp(titles[i], "commands") == 0)
			titles[i] = "commands of the system policy";
		if (strcmp(titles[i], "seccomp") == 0)
			titles[i] = "seccomp of the system policy";
	}
	check_page("man/sbx-profile.5", blocks, titles, n);
}

static void test_seccomp(void **state)
{
	SBX_AUTO_FREE char *page = NULL;
	size_t n_page;

	(void)state;
	page = read_source_file("man/sbx-profile.5", &n_page);
	assert_non_null(page);
	for (int i = 0; i < SBX_N_SECCOMP_LIFTS; i++) {
		char item[64];

		snprintf(item, sizeof(item), ".It Ic %s\n",
			 sbx_seccomp_lift_str((enum sbx_seccomp_lift)i));
		if (!strstr(strstr(page, ".Sh SYSTEM CALLS"), item))
			fail_msg("man/sbx-profile.5 does not explain '%s'",
				 sbx_seccomp_lift_str((enum sbx_seccomp_lift)i));
	}
}

static void test_jobs(void **state)
{
	const struct sbx_key_block *blocks[] = { &sbx_job_keys };
	const char *titles[] = { "job" };

	(void)state;
	check_page("man/sbx-run.1", blocks, titles, 1);
}

/* MASKS has each shipped name. */
static void test_masks(void **state)
{
	char *text, *end;
	const char *src = getenv("SBX_SRCDIR");
	char path[512], word[64];
	FILE *f;
	size_t n;

	(void)state;
	snprintf(path, sizeof(path), "%s/man/sbx-profile.5", src ? src : ".");
	f = fopen(path, "r");
	assert_non_null(f);
	text = calloc(1, 1 << 20);
	assert_non_null(text);
	n = fread(text, 1, (1 << 20) - 1, f);
	assert_true(n > 0);
	fclose(f);
	for (char *c = text; *c; c++)
		if (*c == '\n')
			*c = ' ';
	end = strstr(text, ".Sh MASKS");
	assert_non_null(end);
	memmove(text, end, strlen(end) + 1);
	end = strstr(text, "Not masked, with the reason");
	assert_non_null(end);
	*end = '\0';
	for (const char *const *name = sbx_shipped_blocked_segments; *name; name++) {
		char first[64]; /* of a line: \&.ssh */

		snprintf(word, sizeof(word), " %s ", *name);
		snprintf(first, sizeof(first), " \\&%s ", *name);
		if (!strstr(text, word) && !strstr(text, first))
			fail_msg("MASKS lacks %s", *name);
	}
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_key),
		cmocka_unit_test(test_seccomp),
		cmocka_unit_test(test_jobs),
		cmocka_unit_test(test_masks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
