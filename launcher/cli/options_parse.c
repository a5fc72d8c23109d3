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

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/sandbox_id.h"
#include "cli/option.h"
#include "launcher/cli/option_table.h"
#include "policy/forms/option_form.h"
#include "policy/keys/job.h"
#include "policy/keys/key.h"

/* --- help --- */

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

int sbx_options_print_help(FILE *out)
{
	fputs(help_head, out);
	for (size_t i = 0; i < sbx_n_option_table; i++)
		sbx_option_print(out, &sbx_option_table[i]);
	fputs(help_tail, out);
	return fflush(out) == 0 && !ferror(out) ? 0 : -EIO;
}

/* --- storing --- */

static void *field_of(struct sbx_options *o, const struct sbx_option *row)
{
	return (char *)o + row->offset;
}

static int add_bind(struct sbx_options *o, const struct sbx_option *row, const char *value,
		    struct sbx_err *err)
{
	bool writable = row->kind == SBX_OPTION_BIND;
	const char *why = writable ? sbx_form_bind(value) : sbx_form_ro_bind(value);
	struct sbx_bind_form form;
	struct sbx_bind_option *b;
	char *block;

	if (!why)
		why = sbx_form_bind_split(value, &form);
	if (why)
		return sbx_option_refuse(row, value, why, err);
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

/* @value: NULL for a row that takes none. */
static int set_option(struct sbx_options *o, const struct sbx_option *row, const char *value,
		      struct sbx_err *err)
{
	if (row->kind == SBX_OPTION_BIND || row->kind == SBX_OPTION_RO_BIND)
		return add_bind(o, row, value, err);
	return sbx_option_set(o, row, value, err);
}

/* --- parsing --- */

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
	if (o->wait && o->argc > 0) {
		sbx_err_set(err, "--wait runs no command: leave out '%s', or run it later by "
				 "sbxctl exec", o->argv[0]);
		return SBX_OPTIONS_E_USAGE;
	}
	if (!o->wait && (o->argc < 1 || !o->argv[0][0])) {
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
	o->argc = argc - sbx_option_rest();
	o->argv = argv + sbx_option_rest();
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

int sbx_options_parse(int argc, char **argv, struct sbx_options *ret_o, struct sbx_err *err)
{
	struct sbx_option_reader reader = {
		.hint = "sbx-run --help",
		.argc = argc,
		.argv = argv,
		.rows = sbx_option_table,
		.n_rows = sbx_n_option_table,
	};
	struct sbx_option_item item;
	int n_options = 0;

	memset(ret_o, 0, sizeof(*ret_o));
	for (;;) {
		int r = sbx_option_next(&reader, &item, err);

		if (r == SBX_OPTION_E_END)
			return finish(ret_o, argc, argv, n_options, err);
		if (r == 0) {
			n_options += item.row->flag && !item.row->letter;
			r = set_option(ret_o, item.row, item.value, err);
		}
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
static int merge_list(struct sbx_option_list o, struct sbx_option_list job,
		      const char *option, struct sbx_err *err)
{
	const char **had = *o.v;
	int r = 0;

	for (size_t i = 0; i < *o.n && r == 0; i++)
		r = sbx_option_list_add(job, option, had[i], err);
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
		return merge_list(sbx_option_list_of(o, row), sbx_option_list_of(job, row),
				  row->flag, err);
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
			free(*sbx_option_list_of(o, &sbx_option_table[i]).v);
	sbx_job_free(o->job_values);
	memset(o, 0, sizeof(*o));
}
