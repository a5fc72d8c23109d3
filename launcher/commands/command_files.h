/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_COMMANDS_COMMAND_FILES_H
#define SBX_LAUNCHER_COMMANDS_COMMAND_FILES_H

#include "base/err.h"
#include "launcher/view/draft.h"
#include "launcher/view/view.h"

/* Fill d->commands->programs, with the command itself (@hit; NULL: there is none) and the files
 * that it needs. */
int sbx_plan_programs(const struct sbx_draft *d, const struct sbx_view_hit *hit,
		      struct sbx_err_list *errs);

#endif
