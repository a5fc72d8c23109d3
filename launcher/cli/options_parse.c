/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The command line of sbx-run, read by the rows of option_table.c. Only the form of each value is
 * checked here, so that a typing error is reported before anything on the host is looked at. The
 * planner judges the meaning of a value: whether a profile exists, whether a path may be granted.
 *
 * Options end at the first word that is not one, or at "--". The command follows, unread.
 *
 * A job's values are read as if they were flags. Then each row is merged: a string of the flags
 * replaces the job's, and a list of the flags follows the job's.
 */
#include "launcher/cli/options_parse.h"

#include <assert.h>
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/sandbox_id.h"
#include "launcher/cli/option_table.h"
#include "policy/forms/option_form.h"
#include "policy/forms/suggest.h"
#include "policy/keys/job.h"
#include "policy/keys/key.h"

#define ROWS_MAX  64
#define LONG_BASE 256 /* getopt_long() answers LONG_BASE + row for a long option */

/* --- help --- */

#define HELP_COLUMN 26
#define HELP_WIDTH  88

static const char help_head[] =
	"usage: sbx-run [OPTION...] -- COMMAND [ARG...]\n"
	"       sbx-run [OPTION...] --job NAME|FILE\n"
	"       sbx-run --gc [-v] | --list-profiles | --refusals [ID]\n"
	"\n"
	"Runs COMMAND in a sandbox where it can touch only the files and connect only to the\n"
	"names that its profile grants. A self-test inside proves that before COMMAND starts.\n"
	"\n";

static const char help_tail[] =
	"\n"
	"Exit status: COMMAND's own, or\n"
	"  128+N  COMMAND was killed by signal N\n"
	"  123    COMMAND succeeded, but the files for --keep could not be kept\n"
	"  124    the wall time was over\n"
	"  125    nothing ran: the run was refused or could not be set up\n"
	"  126    COMMAND was refused or is not executable\n"
	"  127    COMMAND was not found\n"
	"Profiles are described in sbx-profile(5), everything else in sbx-run(1).\n";

/* Prints @text from column @at on, in lines of HELP_WIDTH columns. Returns the last column. */
static int print_wrapped(FILE *out, const char *text, int at)
{
	while (*text) {
		int n_spaces = (int)strspn(text, " "), n = (int)strcspn(text + n_spaces, " ");

		if (at + n_spaces + n > HELP_WIDTH) {
			at = HELP_COLUMN;
			text += n_spaces;
			n_spaces = 0;
			fprintf(out, "\n%*s", HELP_COLUMN, "");
		}
		fprintf(out, "%.*s", n_spaces + n, text);
		at += n_spaces + n;
		text += n_spaces + n;
	}
	return at;
}

static void print_row(FILE *out, const struct sbx_option *row)
{
	int n = fprintf(out, "  ");

	if (row->letter)
		n += fprintf(out, "-%c%s", row->letter, row->flag ? ", " : "");
	if (row->flag)
		n += fprintf(out, "--%s", row->flag);
	if (row->value)
		n += fprintf(out, " %s", row->value);
	if (n >= HELP_COLUMN) {
		fputc('\n', out);
		n = 0;
	}
	fprintf(out, "%*s", HELP_COLUMN - n, "");
	n = print_wrapped(out, row->help, HELP_COLUMN);
	print_wrapped(out, row->more ? row->more : "", n);
	fputc('\n', out);
}

int sbx_options_print_help(FILE *out)
{
	fputs(help_head, out);
	for (size_t i = 0; i < sbx_n_option_table; i++)
		print_row(out, &sbx_option_table[i]);
	fputs(help_tail, out);
	return fflush(out) == 0 && !ferror(out) ? 0 : -EIO;
}

/* --- storing --- */

static void *field_of(struct sbx_options *o, const struct sbx_option *row)
{
	return (char *)o + row->offset;
}

struct list {
	const char ***v;
	size_t *n;
};

static struct list list_of(struct sbx_options *o, const struct sbx_option *row)
{
	return (struct list){ field_of(o, row), (size_t *)((char *)o + row->n_offset) };
}

static int usage(struct sbx_err *err, const char *option, const char *value, const char *why)
{
	sbx_err_set(err, "--%s '%s': %s", option, value, why);
	return SBX_OPTIONS_E_USAGE;
}

static int list_add(struct list list, const char *option, const char *value, struct sbx_err *err)
{
	if (*list.n >= SBX_OPTIONS_LIST_MAX) {
		sbx_err_set(err, "--%s was given more than %d times", option, SBX_OPTIONS_LIST_MAX);
		return SBX_OPTIONS_E_USAGE;
	}
	if (!*list.v) {
		*list.v = calloc(SBX_OPTIONS_LIST_MAX, sizeof(**list.v));
		if (!*list.v)
			return -ENOMEM;
	}
	(*list.v)[(*list.n)++] = value;
	return 0;
}

static int add_bind(struct sbx_options *o, const char *option, const char *value, bool writable,
		    struct sbx_err *err)
{
	const char *why = writable ? sbx_form_bind(value) : sbx_form_ro_bind(value);
	struct sbx_bind_form form;
	struct sbx_bind_option *b;
	char *block;

	if (!why)
		why = sbx_form_bind_split(value, &form);
	if (why)
		return usage(err, option, value, why);
	if (o->n_binds >= SBX_OPTIONS_LIST_MAX) {
		sbx_err_set(err, "--bind and --ro-bind were given more than %d times",
			    SBX_OPTIONS_LIST_MAX);
		return SBX_OPTIONS_E_USAGE;
	}
	if (!o->binds) {
		o->binds = calloc(SBX_OPTIONS_LIST_MAX, sizeof(*o->binds));
		if (!o->binds)
			return -ENOMEM;
	}
	block = malloc(strlen(value) + 2);
	if (!block)
		return -ENOMEM;
	b = &o->binds[o->n_binds++];
	b->source = block;
	b->writable = writable && strcmp(form.mode, "ro") != 0;
	block = sbx_form_bind_unescape(value, form.n_source, block);
	if (form.target) {
		b->target = block;
		sbx_form_bind_unescape(form.target, form.n_target, block);
	}
	return 0;
}

/* A variable's value may be a secret: the message has its name alone. */
static int usage_value(struct sbx_err *err, const struct sbx_option *row, const char *value,
		       const char *why)
{
	SBX_AUTO_FREE char *name = NULL;

	if (row->check != sbx_form_env)
		return usage(err, row->flag, value, why);
	name = strndup(value, strcspn(value, "="));
	return name ? usage(err, row->flag, name, why) : -ENOMEM;
}

/* @value: NULL for a row that takes none. */
static int set_option(struct sbx_options *o, const struct sbx_option *row, const char *value,
		      struct sbx_err *err)
{
	const char *why = row->check ? row->check(value) : NULL;

	if (why)
		return usage_value(err, row, value, why);
	switch (row->kind) {
	case SBX_OPTION_FLAG:
		*(bool *)field_of(o, row) = true;
		return 0;
	case SBX_OPTION_COUNT:
		++*(int *)field_of(o, row);
		return 0;
	case SBX_OPTION_STRING:
		if (*(const char **)field_of(o, row))
			return usage(err, row->flag, value, "it was given already");
		*(const char **)field_of(o, row) = value;
		return 0;
	case SBX_OPTION_LIST:
		return list_add(list_of(o, row), row->flag, value, err);
	case SBX_OPTION_BIND:
	case SBX_OPTION_RO_BIND:
		return add_bind(o, row->flag, value, row->kind == SBX_OPTION_BIND, err);
	case SBX_N_OPTION_KINDS:
		break;
	}
	return -EINVAL;
}

/* --- parsing --- */

static int unknown_option(const char *word, struct sbx_err *err)
{
	size_t n = strcspn(word, "=");
	SBX_AUTO_FREE char *name = NULL;
	struct sbx_suggest s;

	/* A word of several letters (-xyz) is reported whole. */
	if (strncmp(word, "--", 2) != 0) {
		sbx_err_set(err, "unknown option '%s' (sbx-run --help lists them all)", word);
		return SBX_OPTIONS_E_USAGE;
	}
	name = strndup(word + 2, n - 2);
	if (!name)
		return -ENOMEM;
	s = sbx_suggest(name);
	for (size_t i = 0; i < sbx_n_option_table; i++)
		if (sbx_option_table[i].flag)
			sbx_suggest_offer(&s, sbx_option_table[i].flag);
	if (s.best)
		sbx_err_set(err, "unknown option '--%s' (did you mean '--%s'?)", name, s.best);
	else
		sbx_err_set(err, "unknown option '--%s' (sbx-run --help lists them all)", name);
	return SBX_OPTIONS_E_USAGE;
}

/* The message for getopt_long()'s answer '?' or ':'. */
static int bad_option(char **argv, int at, int answer, struct sbx_err *err)
{
	const char *word = argv[at];

	if (answer == ':')
		sbx_err_set(err, "option '%s' needs a value", word);
	else if (optopt >= LONG_BASE)
		sbx_err_set(err, "option '--%s' takes no value",
			    sbx_option_table[optopt - LONG_BASE].flag);
	else
		return unknown_option(word, err);
	return SBX_OPTIONS_E_USAGE;
}

/* Sets the defaults, and checks what concerns several options. */
static int complete(struct sbx_options *o, struct sbx_err *err)
{
	if (!o->profile)
		o->profile = "default";
	if (o->scratch && (o->overlay || o->keep)) {
		sbx_err_set(err, "--scratch and --%s exclude each other",
			    o->keep ? "keep" : "overlay");
		return SBX_OPTIONS_E_USAGE;
	}
	if (o->argc < 1 || !o->argv[0][0]) {
		sbx_err_set(err, "no command was given: sbx-run [OPTION...] -- COMMAND [ARG...]");
		return SBX_OPTIONS_E_USAGE;
	}
	return 0;
}

/* @n_options: how many long options were given. */
static int finish(struct sbx_options *o, int argc, char **argv, int n_options, struct sbx_err *err)
{
	if (o->verbose && o->quiet) {
		sbx_err_set(err, "-v and -q exclude each other");
		return SBX_OPTIONS_E_USAGE;
	}
	o->argc = argc - optind;
	o->argv = argv + optind;
	if ((o->gc || o->list_profiles) && (o->argc > 0 || n_options > 1)) {
		sbx_err_set(err, "--%s stands alone, or with -v", o->gc ? "gc" : "list-profiles");
		return SBX_OPTIONS_E_USAGE;
	}
	if (o->refusals &&
	    (o->argc > 1 || n_options > 1 || (o->argc == 1 && !sbx_id_is_valid(o->argv[0])))) {
		sbx_err_set(err,
			    "--refusals stands alone, or with the id of a sandbox, 12 hex digits");
		return SBX_OPTIONS_E_USAGE;
	}
	return o->job || o->gc || o->list_profiles || o->refusals ? 0 : complete(o, err);
}

/* The table as getopt_long(3) wants it. */
static void make_getopt(struct option *ret_long, char *ret_short)
{
	*ret_short++ = '+'; /* stop at the first word that is no option */
	*ret_short++ = ':'; /* tell a missing value from an unknown option */
	for (size_t i = 0; i < sbx_n_option_table; i++) {
		const struct sbx_option *row = &sbx_option_table[i];

		if (row->letter)
			*ret_short++ = row->letter;
		if (row->flag)
			*ret_long++ = (struct option){
				.name = row->flag,
				.has_arg = row->kind >= SBX_OPTION_STRING ? required_argument :
									    no_argument,
				.val = LONG_BASE + (int)i,
			};
	}
	*ret_short = '\0';
	*ret_long = (struct option){ 0 };
}

/* The row for getopt_long()'s answer. */
static const struct sbx_option *row_of(int answer)
{
	size_t i = 0;

	if (answer >= LONG_BASE)
		return &sbx_option_table[answer - LONG_BASE];
	while (sbx_option_table[i].letter != answer)
		i++;
	return &sbx_option_table[i];
}

int sbx_options_parse(int argc, char **argv, struct sbx_options *ret_o, struct sbx_err *err)
{
	struct option long_options[ROWS_MAX + 1];
	char letters[ROWS_MAX + 3];
	int n_options = 0;

	assert(sbx_n_option_table <= ROWS_MAX);
	make_getopt(long_options, letters);
	memset(ret_o, 0, sizeof(*ret_o));
	optind = 0; /* glibc: start anew */
	opterr = 0;
	for (;;) {
		int at = optind > 0 ? optind : 1;
		int c = getopt_long(argc, argv, letters, long_options, NULL), r;

		if (c == -1)
			return finish(ret_o, argc, argv, n_options, err);
		if (c == '?' || c == ':')
			return bad_option(argv, at, c, err);
		n_options += c >= LONG_BASE;
		/* The value was forgotten, and getopt_long() took the next option, or "--", for
		 * it. */
		if (optarg && optarg == argv[optind - 1] && strncmp(optarg, "--", 2) == 0) {
			sbx_err_set(err, "option '%s' needs a value before '%s'", argv[at], optarg);
			return SBX_OPTIONS_E_USAGE;
		}
		r = set_option(ret_o, row_of(c), optarg, err);
		if (r != 0 || ret_o->help || ret_o->version)
			return r;
	}
}

/* --- jobs --- */

/* Sets @row in @o to the value of @key in @j. */
static int set_from_job(struct sbx_options *o, const struct sbx_option *row,
			const struct sbx_job *j, const struct sbx_key *key, struct sbx_err *err)
{
	const void *field = (const char *)j + key->offset;
	const struct sbx_str_list *list = field;
	int r = 0;

	if (key->type == SBX_KEY_SWITCH)
		return *(const bool *)field ? set_option(o, row, NULL, err) : 0;
	if (key->type == SBX_KEY_STRING) {
		const char *value = *(char *const *)field;

		return value ? set_option(o, row, value, err) : 0;
	}
	for (size_t i = 0; i < list->n && r == 0; i++)
		r = set_option(o, row, list->v[i], err);
	return r;
}

/* Puts the list of @o behind the job's. Afterwards each struct owns the array that the other
 * had. */
static int merge_list(struct list o, struct list job, const char *option, struct sbx_err *err)
{
	const char **had = *o.v;
	int r = 0;

	for (size_t i = 0; i < *o.n && r == 0; i++)
		r = list_add(job, option, had[i], err);
	if (r != 0)
		return r;
	*o.v = *job.v;
	*o.n = *job.n;
	*job.v = had;
	return 0;
}

/* The same for binds. The entries have one owner: @o. */
static int merge_binds(struct sbx_options *o, struct sbx_options *job, struct sbx_err *err)
{
	struct sbx_bind_option *binds;

	if (o->n_binds + job->n_binds > SBX_OPTIONS_LIST_MAX) {
		sbx_err_set(err, "the job and the flags have more than %d binds",
			    SBX_OPTIONS_LIST_MAX);
		return SBX_OPTIONS_E_USAGE;
	}
	if (job->n_binds == 0)
		return 0;
	binds = o->binds;
	if (binds)
		memcpy(job->binds + job->n_binds, binds, o->n_binds * sizeof(*binds));
	o->binds = job->binds;
	o->n_binds += job->n_binds;
	job->binds = binds;
	job->n_binds = 0;
	return 0;
}

/* Lets the job's value of @row stand behind the flags'. */
static int merge(struct sbx_options *o, struct sbx_options *job, const struct sbx_option *row,
		 struct sbx_err *err)
{
	switch (row->kind) {
	case SBX_OPTION_FLAG:
		*(bool *)field_of(o, row) |= *(bool *)field_of(job, row);
		return 0;
	case SBX_OPTION_STRING:
		if (!*(const char **)field_of(o, row))
			*(const char **)field_of(o, row) = *(const char **)field_of(job, row);
		return 0;
	case SBX_OPTION_LIST:
		return merge_list(list_of(o, row), list_of(job, row), row->flag, err);
	case SBX_OPTION_BIND:
	case SBX_OPTION_RO_BIND: /* nothing is left for the second of the two */
		return merge_binds(o, job, err);
	case SBX_OPTION_COUNT: /* no job has one */
	case SBX_N_OPTION_KINDS:
		break;
	}
	return -EINVAL;
}

static int merge_job(struct sbx_options *o, const struct sbx_job *job, struct sbx_err *err)
{
	struct sbx_options values = { 0 };
	const struct sbx_key *key;
	int r = 0;

	for (size_t i = 0; i < sbx_n_option_table && r == 0; i++) {
		const struct sbx_option *row = &sbx_option_table[i];

		key = row->job ? sbx_key_find(&sbx_job_keys, row->job) : NULL;
		if (key)
			r = set_from_job(&values, row, job, key, err);
	}
	for (size_t i = 0; i < sbx_n_option_table && r == 0; i++)
		if (sbx_option_table[i].job)
			r = merge(o, &values, &sbx_option_table[i], err);
	sbx_options_fini(&values);
	return r;
}

int sbx_options_add_job(struct sbx_options *o, struct sbx_job *job, struct sbx_err *err)
{
	int r;

	o->job_values = job;
	if (job->command.n > 0 && o->argc > 0) {
		sbx_err_set(err, "--job '%s' has a command: none may be given beside it", o->job);
		return SBX_OPTIONS_E_USAGE;
	}
	if (job->command.n > 0) {
		o->argc = (int)job->command.n;
		o->argv = job->command.v;
	}
	r = merge_job(o, job, err);
	return r == 0 ? complete(o, err) : r;
}

void sbx_options_fini(struct sbx_options *o)
{
	for (size_t i = 0; i < o->n_binds; i++)
		free(o->binds[i].source);
	free(o->binds);
	for (size_t i = 0; i < sbx_n_option_table; i++)
		if (sbx_option_table[i].kind == SBX_OPTION_LIST)
			free(*list_of(o, &sbx_option_table[i]).v);
	sbx_job_free(o->job_values);
	memset(o, 0, sizeof(*o));
}
