/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_COMMANDS_COMMAND_H
#define SBX_LAUNCHER_COMMANDS_COMMAND_H

#include <stdbool.h>

#include "launcher/commands/commands.h"
#include "launcher/view/draft.h"

/* Judge the command, if there is one, and the lists of commands: fill d->commands, and append masks
 * to the mounts. Called after the view and the environment are complete. 0, an exit status
 * (125-127) with @errs, or -errno. */
int sbx_plan_command(const struct sbx_draft *d, struct sbx_err_list *errs);

/* Judge @command alone: by the lists, and by where it leads in the view as it was planned. 0 with
 * *ret_hit; 126 or 127 with @errs. *ret_denied: the lists deny it; otherwise it was not found, or
 * cannot be executed, as far as the planned view tells. */
struct sbx_view_hit;
int sbx_command_judge(const struct sbx_draft *d, const char *command, struct sbx_view_hit *ret_hit,
		      bool *ret_denied, struct sbx_err_list *errs);

#endif
