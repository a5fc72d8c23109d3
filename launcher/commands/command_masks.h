/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_COMMANDS_COMMAND_MASKS_H
#define SBX_LAUNCHER_COMMANDS_COMMAND_MASKS_H

#include "base/err.h"
#include "launcher/commands/commands.h"
#include "launcher/view/draft.h"

/* Appends to d->view->mounts, when all others are there. */
int sbx_plan_masks(const struct sbx_draft *d, struct sbx_err_list *errs);
/* The masked file at @path (without symlinks); NULL: none. */
const struct sbx_masked *sbx_command_masked(const struct sbx_draft *d, const char *path);

#endif
