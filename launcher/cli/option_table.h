/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_CLI_OPTION_TABLE_H
#define SBX_LAUNCHER_CLI_OPTION_TABLE_H

#include <stddef.h>

/*
 * The flags of sbx-run: one row each, in the order of --help. Parsing, merging a job behind the
 * flags, and --help walk this table. `make update-golden` writes the flags of sbx-run(1) and of
 * the completions from it, and tests/unit/launcher/cli/test_option_table.c compares them. PURE.
 */

/* The type of the row's field in struct sbx_options. */
enum sbx_option_kind {
	SBX_OPTION_FLAG = 0, /* bool; no value */
	SBX_OPTION_COUNT,    /* int: how often the flag was given; no value */
	SBX_OPTION_STRING,   /* const char *; given at most once */
	SBX_OPTION_LIST,     /* const char **, its length at n_offset; may be repeated */
	SBX_OPTION_BIND,     /* an entry of binds; may be repeated */
	SBX_OPTION_RO_BIND,  /* the same, read-only */
	SBX_N_OPTION_KINDS,
};

struct sbx_option {
	const char *flag; /* without its dashes; NULL: the flag is only a letter */
	const char *value; /* its form in --help; NULL: the flag takes no value */
	enum sbx_option_kind kind;
	char letter;	  /* 'v' for -v; 0: none */
	size_t offset, n_offset;	    /* in struct sbx_options */
	const char *(*check)(const char *); /* of a value: the reason against it, or NULL */
	const char *job;      /* the key of policy/keys/job.c with the same meaning, or NULL */
	const char *complete; /* the completions' word for its values; NULL: nothing to offer */
	const char *help;     /* a sentence without its capital and full stop */
	const char *more;     /* the rest of the sentence in --help, or NULL */
};

extern const struct sbx_option sbx_option_table[];
extern const size_t sbx_n_option_table;

#endif
