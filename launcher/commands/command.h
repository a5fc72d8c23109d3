/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_COMMANDS_COMMAND_H
#define SBX_LAUNCHER_COMMANDS_COMMAND_H

#include "launcher/commands/commands.h"
#include "launcher/view/draft.h"

/* Judge the command and the lists of commands: fill d->commands, and append masks to the mounts.
 * Called after the view and the environment are complete. 0, an exit status (125-127) with @errs,
 * or -errno. */
int sbx_plan_command(const struct sbx_draft *d, struct sbx_err_list *errs);

#endif
