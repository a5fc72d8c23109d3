/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_CTL_FRAME_COMMAND_H
#define SBX_CTL_FRAME_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "cli/option.h"
#include "ctl/print/out.h"
#include "launcher/host/facts.h"

/*
 * A command of sbxctl. ctl/main/command_table.c lists them all. The parser, the help, sbxctl(1) and
 * the completions come from that table: `make update-golden` writes them, and
 * tests/unit/ctl/test_command_table.c compares.
 *
 * To add one: a file cmd_NAME.c in a room of src/ctl that defines a `const struct sbx_ctl_command`,
 * its declaration in the room's header, a row in the table; then `make update-golden`, and a text
 * for the manual below the new marker `.\" text`.
 */

/* Exit statuses. */
enum sbx_ctl_status {
	SBX_CTL_DONE = 0, /* done; allow; yes */
	SBX_CTL_NO = 1,	  /* not done: deny, not found, no */
	SBX_CTL_USAGE = 2,
	SBX_CTL_FAILED = 125, /* the answer is not known: I/O, memory, database */
};

struct sbx_ctl;

struct sbx_ctl_command {
	const char *name; /* "ps"; two words for a command of a group: "rules add" */
	const char *args; /* the form of its arguments, "ID..."; NULL: none */
	int n_min, n_max; /* how many arguments; n_max INT_MAX: any number */
	const struct sbx_option *options; /* and those of all commands (sbx_ctl_common_options) */
	size_t n_options, n_values;	  /* n_values: the size of the struct of their values */
	const char *complete; /* the completions' word for the arguments; NULL: nothing to offer */
	/* Behind the first argument stands a command line ("--" before it is dropped), whose
	 * options are its own. Options of sbxctl stand before the first argument then. */
	bool program;
	const char *help;    /* a sentence without its capital and full stop */
	const char *more;    /* the rest of the sentence in the help, or NULL */
	const char *example; /* a command line */
	/* Returns the exit status. If it is not 0, main() prints ctl->err as one line, if set. */
	int (*run)(struct sbx_ctl *ctl);
};

/* The values of the options that all commands have. */
struct sbx_ctl_common {
	bool json, wide, help, version;
};
extern const struct sbx_option sbx_ctl_common_options[];
extern const size_t sbx_n_ctl_common_options;

struct sbx_ctl_table {
	const struct sbx_ctl_command *const *v;
	size_t n;
};

/* The arguments, options and places of a command that runs. */
struct sbx_ctl {
	const struct sbx_ctl_table *table;
	const struct sbx_ctl_command *command;
	const char *group; /* with help: the words whose commands are asked for; "": all */
	struct sbx_ctl_common common;
	void *values; /* the struct of the command's options, zero where none was given */
	int argc;     /* the arguments, n_min to n_max of them */
	char **argv;
	struct sbx_out out;
	struct sbx_err err;	/* of a command that was not done */
	struct sbx_facts facts; /* sbx_ctl_places() */
	bool has_places;
};

#endif
