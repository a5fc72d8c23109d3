/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "ctl/main/command_table.h"

#include "base/cleanup.h"
#include "ctl/answers/answers.h"
#include "ctl/frame/help.h"

static const struct sbx_ctl_command *const commands[] = {
	/* of live sandboxes (ctl/live) */

	/* of the database (ctl/data) */

	/* of files and the host (ctl/answers) */
	&sbx_cmd_profile_list, &sbx_cmd_profile_show, &sbx_cmd_profile_check,
	&sbx_cmd_profile_diff, &sbx_cmd_explain, &sbx_cmd_doctor, &sbx_cmd_gc,

	&sbx_cmd_version,      &sbx_cmd_help,
};
const struct sbx_ctl_table sbx_ctl_commands = { commands, SBX_N_ELEMENTS(commands) };
