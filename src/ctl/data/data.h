/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_CTL_DATA_DATA_H
#define SBX_CTL_DATA_DATA_H

#include "ctl/frame/command.h"
#include "store/store_list.h"

/* Commands of the database. */

extern const struct sbx_ctl_command sbx_cmd_events; /* cmd_events.c */
extern const struct sbx_ctl_command sbx_cmd_denies; /* cmd_denies.c */
extern const struct sbx_ctl_command sbx_cmd_rules_list, sbx_cmd_rules_add, sbx_cmd_rules_set,
	sbx_cmd_rules_rm; /* cmd_rules.c */
extern const struct sbx_ctl_command sbx_cmd_rules_export,
	sbx_cmd_rules_import;				/* cmd_rules_file.c */
extern const struct sbx_ctl_command sbx_cmd_rules_test; /* cmd_rules_test.c */
extern const struct sbx_ctl_command sbx_cmd_workspace_list, sbx_cmd_workspace_show,
	sbx_cmd_workspace_set;						       /* cmd_workspace.c */
extern const struct sbx_ctl_command sbx_cmd_review_list, sbx_cmd_review_close; /* cmd_review.c */
extern const struct sbx_ctl_command sbx_cmd_db_check, sbx_cmd_db_migrate,
	sbx_cmd_db_export; /* cmd_db.c */

/* A task as review list and db export have it. NULL: no memory. */
json_t *sbx_task_json(const struct sbx_store_task_row *t); /* cmd_review.c */

#endif
