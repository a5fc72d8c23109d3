/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_CLI_OPTIONS_PARSE_H
#define SBX_LAUNCHER_CLI_OPTIONS_PARSE_H

#include <stdio.h>

#include "base/err.h"
#include "cli/option.h"
#include "launcher/host/options.h"

/* Flags and a job become options (host/options.h). Parsing never acts. */

struct sbx_job;

/* Reads the command line. @argv is untrusted and must outlive @ret_o. --help and --version end the
 * parsing: the words behind them are not looked at. With gc, list_profiles or refusals there is no
 * command. Returns 0; SBX_OPTIONS_E_USAGE with @err (exit status 125); or -ENOMEM. The caller
 * calls sbx_options_fini() whatever the result. */
enum { SBX_OPTIONS_E_USAGE = SBX_OPTION_E_USAGE };
int sbx_options_parse(int argc, char **argv, struct sbx_options *ret_o, struct sbx_err *err);
void sbx_options_fini(struct sbx_options *o);

/* Prints the --help text. 0 or -EIO. */
int sbx_options_print_help(FILE *out);

/* Adds the values of @job to @o: a flag that was given replaces the job's single value, and follows
 * it in a list. Takes @job in any case. To be called once, after sbx_options_parse(), when o->job
 * is set: only this call sets the defaults then. Returns 0; SBX_OPTIONS_E_USAGE with @err; or
 * -ENOMEM. */
int sbx_options_add_job(struct sbx_options *o, struct sbx_job *job, struct sbx_err *err);

#endif
