/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_CLI_OPTIONS_PARSE_H
#define SBX_LAUNCHER_CLI_OPTIONS_PARSE_H

#include "base/err.h"
#include "launcher/host/options.h"

/* Flags and a job become options (host/options.h). Parsing never acts. */

struct sbx_job;

/* 0, SBX_OPTIONS_E_USAGE with @err (exit status 125), -ENOMEM. @ret_o is for sbx_options_fini()
 * whatever the result. --help and --version end the parsing: the rest is not looked at.
 * With gc, list_profiles or refusals there is no command. */
enum { SBX_OPTIONS_E_USAGE = 1 };
int sbx_options_parse(int argc, char **argv, struct sbx_options *ret_o, struct sbx_err *err);
void sbx_options_fini(struct sbx_options *o);
const char *sbx_options_help(void); /* the --help text */

/* Let @job, which is taken in any case, say what the flags did not, and come before them in lists. 0;
 * SBX_OPTIONS_E_USAGE with @err; -ENOMEM. After sbx_options_parse(), once; without it options with a job lack
 * their defaults. */
int sbx_options_add_job(struct sbx_options *o, struct sbx_job *job, struct sbx_err *err);

#endif
