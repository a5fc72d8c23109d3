/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_DAEMON_ROWS_ROWS_H
#define SBX_DAEMON_ROWS_ROWS_H

#include "daemon/http/call.h"

/* The handlers of what the database has; main/route_table.c says which paths are theirs. */

#define SBX_ROWS_LIMIT 100 /* items of a page, unless the caller says another number */

/* workspaces.c */
void sbx_list_workspaces(struct sbx_call *call);
void sbx_add_workspace(struct sbx_call *call);
void sbx_get_settings(struct sbx_call *call);
void sbx_put_settings(struct sbx_call *call);

/* rules.c; system rules are those of the host */
void sbx_list_rules(struct sbx_call *call);
void sbx_add_rule(struct sbx_call *call);
void sbx_get_rule(struct sbx_call *call);
void sbx_set_rule(struct sbx_call *call);
void sbx_delete_rule(struct sbx_call *call);
void sbx_list_system_rules(struct sbx_call *call);
void sbx_add_system_rule(struct sbx_call *call);
void sbx_get_system_rule(struct sbx_call *call);
void sbx_set_system_rule(struct sbx_call *call);
void sbx_delete_system_rule(struct sbx_call *call);

/* events.c */
void sbx_list_events(struct sbx_call *call);
void sbx_list_sandbox_events(struct sbx_call *call);

/* denials.c */
void sbx_list_denials(struct sbx_call *call);

/* tasks.c */
void sbx_list_tasks(struct sbx_call *call);
void sbx_set_task(struct sbx_call *call);

/* tokens.c */
void sbx_list_tokens(struct sbx_call *call);
void sbx_add_token(struct sbx_call *call);
void sbx_delete_token(struct sbx_call *call);

/* audit_list.c */
void sbx_list_audit(struct sbx_call *call);

#endif
