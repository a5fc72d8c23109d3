/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "ctl/main/command_table.h"

#include "base/cleanup.h"
#include "ctl/answers/answers.h"
#include "ctl/data/data.h"
#include "ctl/exec/exec.h"
#include "ctl/frame/help.h"
#include "ctl/live/live.h"
#include "ctl/service/service.h"

static const struct sbx_ctl_command *const commands[] = {
	/* of sandboxes (ctl/live) */
	&sbx_cmd_ps,
	&sbx_cmd_show,
	&sbx_cmd_net,
	&sbx_cmd_publish,
	&sbx_cmd_exec,
	&sbx_cmd_signal,
	&sbx_cmd_freeze,
	&sbx_cmd_thaw,
	&sbx_cmd_kill,
	&sbx_cmd_reload,

	/* of the database (ctl/data) */
	&sbx_cmd_events,
	&sbx_cmd_denies,
	&sbx_cmd_rules_list,
	&sbx_cmd_rules_add,
	&sbx_cmd_rules_set,
	&sbx_cmd_rules_rm,
	&sbx_cmd_rules_test,
	&sbx_cmd_rules_export,
	&sbx_cmd_rules_import,
	&sbx_cmd_workspace_list,
	&sbx_cmd_workspace_show,
	&sbx_cmd_workspace_set,
	&sbx_cmd_review_list,
	&sbx_cmd_review_close,
	&sbx_cmd_db_check,
	&sbx_cmd_db_migrate,
	&sbx_cmd_db_export,

	/* of files and the host (ctl/answers) */
	&sbx_cmd_profile_list,
	&sbx_cmd_profile_show,
	&sbx_cmd_profile_check,
	&sbx_cmd_profile_diff,
	&sbx_cmd_explain,
	&sbx_cmd_doctor,
	&sbx_cmd_gc,

	/* of the service (ctl/service) */
	&sbx_cmd_web,
	&sbx_cmd_token_list,
	&sbx_cmd_token_add,
	&sbx_cmd_token_rm,

	&sbx_cmd_version,
	&sbx_cmd_help,
};
const struct sbx_ctl_table sbx_ctl_commands = { commands, SBX_N_ELEMENTS(commands) };
