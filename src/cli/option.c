/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A command line is read by the rows of a table. Only the form of each value is checked here, so
 * that a typing error is reported before anything on the host is looked at.
 */
#include "cli/option.h"

#include <assert.h>
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "policy/forms/option_form.h"
#include "policy/forms/suggest.h"

#define ROWS_MAX  80
#define LONG_BASE 256 /* getopt_long() answers LONG_BASE + row for a long option */

bool sbx_option_takes_value(const struct sbx_option *row)
{
	return row->kind != SBX_OPTION_FLAG && row->kind != SBX_OPTION_COUNT;
}

bool sbx_option_repeats(const struct sbx_option *row)
{
	return row->kind != SBX_OPTION_FLAG && row->kind != SBX_OPTION_STRING;
}

/* --- help --- */

int sbx_help_wrapped(FILE *out, const char *text, int at, int indent)
{
	while (*text) {
		int n_spaces = (int)strspn(text, " "), n = (int)strcspn(text + n_spaces, " ");

		if (at + n_spaces + n > SBX_HELP_WIDTH) {
			at = indent;
			text += n_spaces;
			n_spaces = 0;
			fprintf(out, "\n%*s", indent, "");
		}
		fprintf(out, "%.*s", n_spaces + n, text);
		at += n_spaces + n;
		text += n_spaces + n;
	}
	return at;
}

void sbx_option_print(FILE *out, const struct sbx_option *row)
{
	int n = fprintf(out, "  ");

	if (row->letter)
		n += fprintf(out, "-%c%s", row->letter, row->flag ? ", " : "");
	if (row->flag)
		n += fprintf(out, "--%s", row->flag);
	if (row->value)
		n += fprintf(out, " %s", row->value);
	if (n >= SBX_HELP_COLUMN) {
		fputc('\n', out);
		n = 0;
	}
	fprintf(out, "%*s", SBX_HELP_COLUMN - n, "");
	n = sbx_help_wrapped(out, row->help, SBX_HELP_COLUMN, SBX_HELP_COLUMN);
	sbx_help_wrapped(out, row->more ? row->more : "", n, SBX_HELP_COLUMN);
	fputc('\n', out);
}

/* --- values --- */

static void *field_of(void *values, const struct sbx_option *row)
{
	return (char *)values + row->offset;
}

struct sbx_option_list sbx_option_list_of(void *values, const struct sbx_option *row)
{
	return (struct sbx_option_list){ field_of(values, row),
					 (size_t *)((char *)values + row->n_offset) };
}

int sbx_option_list_add(struct sbx_option_list list, const char *option, const char *value,
			struct sbx_err *err)
{
	if (*list.n >= SBX_OPTION_LIST_MAX) {
		sbx_err_set(err, "--%s was given more than %d times", option, SBX_OPTION_LIST_MAX);
		return SBX_OPTION_E_USAGE;
	}
	if (!*list.v) {
		*list.v = calloc(SBX_OPTION_LIST_MAX, sizeof(**list.v));
		if (!*list.v)
			return -ENOMEM;
	}
	(*list.v)[(*list.n)++] = value;
	return 0;
}

int sbx_option_refuse(const struct sbx_option *row, const char *value, const char *why,
		      struct sbx_err *err)
{
	SBX_AUTO_FREE char *name = NULL;

	if (row->check == sbx_form_env) {
		name = strndup(value, strcspn(value, "="));
		if (!name)
			return -ENOMEM;
		value = name;
	}
	sbx_err_set(err, "--%s '%s': %s", row->flag, value, why);
	return SBX_OPTION_E_USAGE;
}

int sbx_option_set(void *values, const struct sbx_option *row, const char *value,
		   struct sbx_err *err)
{
	const char *why = row->check && value ? row->check(value) : NULL;

	if (why)
		return sbx_option_refuse(row, value, why, err);
	switch (row->kind) {
	case SBX_OPTION_FLAG:
		*(bool *)field_of(values, row) = true;
		return 0;
	case SBX_OPTION_COUNT:
		++*(int *)field_of(values, row);
		return 0;
	case SBX_OPTION_STRING:
		if (*(const char **)field_of(values, row))
			return sbx_option_refuse(row, value, "it was given already", err);
		*(const char **)field_of(values, row) = value;
		return 0;
	case SBX_OPTION_LIST:
		return sbx_option_list_add(sbx_option_list_of(values, row), row->flag, value, err);
	case SBX_OPTION_BIND:
	case SBX_OPTION_RO_BIND:
	case SBX_N_OPTION_KINDS:
		break;
	}
	return -EINVAL;
}

void sbx_option_values_fini(void *values, const struct sbx_option *rows, size_t n_rows)
{
	for (size_t i = 0; i < n_rows; i++)
		if (rows[i].kind == SBX_OPTION_LIST)
			free(*sbx_option_list_of(values, &rows[i]).v);
}

/* --- reading --- */

static size_t n_all(const struct sbx_option_reader *r)
{
	return r->n_rows + r->n_common;
}

static const struct sbx_option *row_at(const struct sbx_option_reader *r, size_t i)
{
	return i < r->n_rows ? &r->rows[i] : &r->common[i - r->n_rows];
}

static int unknown_option(const struct sbx_option_reader *r, const char *word, struct sbx_err *err)
{
	size_t n = strcspn(word, "=");
	SBX_AUTO_FREE char *name = NULL;
	struct sbx_suggest s;

	/* A word of several letters (-xyz) is reported whole. */
	if (strncmp(word, "--", 2) != 0) {
		sbx_err_set(err, "unknown option '%s' (%s lists them all)", word, r->hint);
		return SBX_OPTION_E_USAGE;
	}
	name = strndup(word + 2, n - 2);
	if (!name)
		return -ENOMEM;
	s = sbx_suggest(name);
	for (size_t i = 0; i < n_all(r); i++)
		if (row_at(r, i)->flag)
			sbx_suggest_offer(&s, row_at(r, i)->flag);
	if (s.best)
		sbx_err_set(err, "unknown option '--%s' (did you mean '--%s'?)", name, s.best);
	else
		sbx_err_set(err, "unknown option '--%s' (%s lists them all)", name, r->hint);
	return SBX_OPTION_E_USAGE;
}

/* The message for getopt_long()'s answer '?' or ':'. */
static int bad_option(const struct sbx_option_reader *r, const char *word, int answer,
		      struct sbx_err *err)
{
	if (answer == ':')
		sbx_err_set(err, "option '%s' needs a value", word);
	else if (optopt >= LONG_BASE)
		sbx_err_set(err, "option '--%s' takes no value",
			    row_at(r, (size_t)(optopt - LONG_BASE))->flag);
	else
		return unknown_option(r, word, err);
	return SBX_OPTION_E_USAGE;
}

/* The table as getopt_long(3) wants it. */
static void make_getopt(const struct sbx_option_reader *r, struct option *ret_long, char *ret_short)
{
	/* '+': stop at the first word that is no option; '-': tell each such word as option 1 */
	*ret_short++ = r->words ? '-' : '+';
	*ret_short++ = ':'; /* tell a missing value from an unknown option */
	for (size_t i = 0; i < n_all(r); i++) {
		const struct sbx_option *row = row_at(r, i);

		if (row->letter) {
			*ret_short++ = row->letter;
			if (sbx_option_takes_value(row))
				*ret_short++ = ':';
		}
		if (row->flag)
			*ret_long++ = (struct option){
				.name = row->flag,
				.has_arg = sbx_option_takes_value(row) ? required_argument :
									 no_argument,
				.val = LONG_BASE + (int)i,
			};
	}
	*ret_short = '\0';
	*ret_long = (struct option){ 0 };
}

/* The row for getopt_long()'s answer. */
static size_t index_of(const struct sbx_option_reader *r, int answer)
{
	size_t i = 0;

	if (answer >= LONG_BASE)
		return (size_t)(answer - LONG_BASE);
	while (row_at(r, i)->letter != answer)
		i++;
	return i;
}

int sbx_option_next(struct sbx_option_reader *r, struct sbx_option_item *ret, struct sbx_err *err)
{
	struct option long_options[ROWS_MAX + 1];
	char letters[2 * ROWS_MAX + 3];
	int at, c;

	assert(n_all(r) <= ROWS_MAX);
	make_getopt(r, long_options, letters);
	if (!r->begun) {
		optind = 0; /* glibc: start anew */
		opterr = 0;
		r->begun = true;
	}
	at = optind > 0 ? optind : 1;
	c = getopt_long(r->argc, r->argv, letters, long_options, NULL);
	if (c == -1)
		return SBX_OPTION_E_END;
	if (c == '?' || c == ':')
		return bad_option(r, r->argv[at], c, err);
	if (c == 1) {
		*ret = (struct sbx_option_item){ .value = optarg };
		return 0;
	}
	/* The value was forgotten, and getopt_long() took the next option, or "--", for it. */
	if (optarg && optarg == r->argv[optind - 1] && strncmp(optarg, "--", 2) == 0) {
		sbx_err_set(err, "option '%s' needs a value before '%s'", r->argv[at], optarg);
		return SBX_OPTION_E_USAGE;
	}
	ret->index = index_of(r, c);
	ret->row = row_at(r, ret->index);
	ret->value = optarg;
	return 0;
}

int sbx_option_rest(void)
{
	return optind;
}
