/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_CLI_OPTION_H
#define SBX_CLI_OPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/err.h"

/*
 * The options of a command line as a table: one row each, in the order of --help. Reading, --help,
 * the manual's list and the completions come from the rows. sbx-run and sbxctl have such tables.
 */

/* The type of the row's field. The values of an option are fields of one struct. */
enum sbx_option_kind {
	SBX_OPTION_FLAG = 0, /* bool; no value */
	SBX_OPTION_COUNT,    /* int: how often the flag was given; no value */
	SBX_OPTION_STRING,   /* const char *; given at most once */
	SBX_OPTION_LIST,     /* const char **, its length (size_t) at n_offset; may be repeated */
	SBX_OPTION_BIND,     /* of sbx-run: an entry of binds; may be repeated */
	SBX_OPTION_RO_BIND,  /* the same, read-only */
	SBX_N_OPTION_KINDS,
};

#define SBX_OPTION_LIST_MAX 256 /* values of an option that may be repeated */

struct sbx_option {
	const char *flag;  /* without its dashes; NULL: the flag is only a letter */
	const char *value; /* its form in --help; NULL: the flag takes no value */
	enum sbx_option_kind kind;
	char letter;			    /* 'v' for -v; 0: none */
	size_t offset, n_offset;	    /* in the struct of the values */
	const char *(*check)(const char *); /* of a value: the reason against it, or NULL */
	const char *job;      /* the key of policy/keys/job.c with the same meaning, or NULL */
	const char *complete; /* the completions' word for its values; NULL: nothing to offer */
	const char *help;     /* a sentence without its capital and full stop */
	const char *more;     /* the rest of the sentence in --help, or NULL */
};

bool sbx_option_takes_value(const struct sbx_option *row);
/* May the option be given several times? */
bool sbx_option_repeats(const struct sbx_option *row);

/* --- help --- */

#define SBX_HELP_COLUMN 26 /* where the sentences begin */
#define SBX_HELP_WIDTH	88

/* Print @text from column @at on, in lines of SBX_HELP_WIDTH columns that begin at @indent.
 * Returns the last column. */
int sbx_help_wrapped(FILE *out, const char *text, int at, int indent);
/* Print the item of one option. */
void sbx_option_print(FILE *out, const struct sbx_option *row);

/* --- reading --- */

/* Reads a command line by one or two tables. One reader at a time: getopt_long(3) has state. The
 * strings are borrowed, and @argv is untrusted. */
struct sbx_option_reader {
	const char *hint; /* for messages: where all options are listed, "sbx-run --help" */
	int argc;
	char **argv; /* argv[0] is not looked at */
	const struct sbx_option *rows, *common;
	size_t n_rows, n_common;
	bool words; /* words may stand between options; false: the first word ends them */
	bool begun;
};

/* An option, or with @row NULL a word. @index: of the row in the table, first rows then common. */
struct sbx_option_item {
	const struct sbx_option *row;
	size_t index;
	const char *value; /* NULL: the option takes none */
};

enum {
	SBX_OPTION_E_USAGE = 1,
	SBX_OPTION_E_END, /* no options are left; sbx_option_rest() has the words */
};
/* Read the next one. 0; SBX_OPTION_E_END; SBX_OPTION_E_USAGE with @err; -ENOMEM. */
int sbx_option_next(struct sbx_option_reader *r, struct sbx_option_item *ret, struct sbx_err *err);
/* After SBX_OPTION_E_END: the index in argv of the first word behind the options or "--". */
int sbx_option_rest(void);

/* --- values --- */

/* Check @value and store it in the row's field of @values. Not for SBX_OPTION_BIND and _RO_BIND.
 * Of a value NAME=VALUE whose check is sbx_form_env() messages have the name alone: it may be a
 * secret. 0, SBX_OPTION_E_USAGE with @err, -ENOMEM. */
int sbx_option_set(void *values, const struct sbx_option *row, const char *value,
		   struct sbx_err *err);
/* The message about the value of a row. Returns SBX_OPTION_E_USAGE, or -ENOMEM. */
int sbx_option_refuse(const struct sbx_option *row, const char *value, const char *why,
		      struct sbx_err *err);
/* The field of a SBX_OPTION_LIST. */
struct sbx_option_list {
	const char ***v; /* malloc'ed; room for SBX_OPTION_LIST_MAX */
	size_t *n;
};
struct sbx_option_list sbx_option_list_of(void *values, const struct sbx_option *row);
/* 0, SBX_OPTION_E_USAGE with @err, -ENOMEM. */
int sbx_option_list_add(struct sbx_option_list list, const char *option, const char *value,
			struct sbx_err *err);
/* Free the lists. */
void sbx_option_values_fini(void *values, const struct sbx_option *rows, size_t n_rows);

#endif
