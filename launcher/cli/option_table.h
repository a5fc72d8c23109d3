/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_CLI_OPTION_TABLE_H
#define SBX_LAUNCHER_CLI_OPTION_TABLE_H

#include <stddef.h>

#include "cli/option.h"

/*
 * The flags of sbx-run: one row each, in the order of --help (cli/option.h). Parsing, merging a job
 * behind the flags, and --help walk this table. `make update-golden` writes the flags of sbx-run(1)
 * and of the completions from it, and tests/unit/launcher/cli/test_option_table.c compares them.
 * PURE.
 */

extern const struct sbx_option sbx_option_table[];
extern const size_t sbx_n_option_table;

#endif
