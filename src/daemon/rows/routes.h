/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_DAEMON_ROWS_ROUTES_H
#define SBX_DAEMON_ROWS_ROUTES_H

#include "base/cleanup.h"
#include "daemon/api/route.h"
#include "daemon/rows/rows.h"
#include "daemon/rows/scope.h"
#include "policy/forms/option_form.h"
#include "store/store_rules.h"

/* Rows of the table of routes (main/route_table.c, which alone includes this). */

#define SBX_ROWS_QUERY(f) .query = (f), .n_query = SBX_N_ELEMENTS(f)
#define SBX_ROWS_BODY(f)  .body = (f), .n_body = SBX_N_ELEMENTS(f)
#define SBX_ROWS_PAGE                                                                              \
	{ "limit", SBX_FIELD_INTEGER, .min = 1, .max = 1000, .help = "items of a page; 100" },     \
	{                                                                                          \
		"cursor", SBX_FIELD_INTEGER, .min = 1, .help = "next_cursor of the page before"    \
	}

static const struct sbx_field sbx_rows_page_query[] = { SBX_ROWS_PAGE };

static const char *const sbx_rows_actions[] = { "allow", "deny", NULL };
static const char *const sbx_rows_rule_types[] = { "network", "tool", NULL };

static const struct sbx_field sbx_rows_workspace_body[] = {
	{ "name", .required = true, .n_max = SBX_TOKEN_MAX, .check = sbx_workspace_check,
	  .help = "printable ASCII without spaces and \"/\"" },
	{ "network_default_action", .nullable = true, .words = sbx_rows_actions,
	  .help = "what happens where no rule and no list decides; null: what the profile says" },
};

static const struct sbx_field sbx_rows_settings_body[] = {
	{ "network_default_action", .required = true, .nullable = true, .words = sbx_rows_actions,
	  .help = "what happens where no rule and no list decides; null: what the profile says" },
};

#define SBX_ROWS_PATTERN                                                                           \
	"pattern", .n_max = SBX_STORE_PATTERN_MAX,                                                 \
		   .help = "an entry of network.allow, or of commands.allow (docs/RULES.md)"
#define SBX_ROWS_PRIORITY                                                                          \
	{                                                                                          \
		"priority", SBX_FIELD_INTEGER,                                                     \
			.min = 0, .max = 1000000,                                                  \
			.help = "of the rules that match, the lowest decides"                      \
	}
#define SBX_ROWS_ENABLED                                                                           \
	{                                                                                          \
		"enabled", SBX_FIELD_BOOLEAN, .help = "it has an effect"                           \
	}
#define SBX_ROWS_NOTE                                                                              \
	{                                                                                          \
		"note", .n_max = SBX_STORE_NOTE_MAX, .help = "why the rule is there"               \
	}
#define SBX_ROWS_RULE_BODY                                                                         \
	{ SBX_ROWS_PATTERN, .required = true },                                                    \
		{ "action", .required = true, .words = sbx_rows_actions, .help = "what it does" }, \
		{ "type", .words = sbx_rows_rule_types, .help = "what the pattern is; network" },  \
		SBX_ROWS_PRIORITY, SBX_ROWS_ENABLED, SBX_ROWS_NOTE

static const struct sbx_field sbx_rows_rule_body[] = { SBX_ROWS_RULE_BODY };
static const struct sbx_field sbx_rows_system_rule_body[] = {
	SBX_ROWS_RULE_BODY,
	{ "is_floor", SBX_FIELD_BOOLEAN, .help = "it denies, and no other rule lifts it" },
};
static const struct sbx_field sbx_rows_rule_change[] = {
	{ SBX_ROWS_PATTERN }, { "action", .words = sbx_rows_actions, .help = "what it does" },
	SBX_ROWS_PRIORITY,    SBX_ROWS_ENABLED,
	SBX_ROWS_NOTE,
};

static const char *const sbx_rows_event_actions[] = { "allow", "deny", "panic", "notice", NULL };

#define SBX_ROWS_EVENTS                                                                            \
	{ "action", .words = sbx_rows_event_actions, .help = "of this action" },                   \
		{ "reason", .help = "of this reason" }, { "name", .help = "about this name" },     \
		{ "ip", .help = "about this address" },                                            \
		{ "since", .check = sbx_time_check, .help = "from then on (RFC 3339)" },           \
		{ "until", .check = sbx_time_check, .help = "before then (RFC 3339)" },            \
		{ "after", SBX_FIELD_INTEGER, .min = 0, .max = INT64_MAX - 1,                      \
		  .help = "with a higher id; a stream begins behind it, as with Last-Event-ID" },  \
		SBX_ROWS_PAGE
#define SBX_ROWS_WORKSPACE                                                                         \
	{                                                                                          \
		"workspace", .help = "of this workspace"                                           \
	}
static const struct sbx_field sbx_rows_events_query[] = {
	SBX_ROWS_EVENTS,
	SBX_ROWS_WORKSPACE,
	{ "sandbox", .help = "of this sandbox: its id" },
};
static const struct sbx_field sbx_rows_sandbox_events_query[] = { SBX_ROWS_EVENTS };

static const char *const sbx_rows_denials_by[] = { "ip",      "name",	"workspace",
						   "sandbox", "reason", NULL };
static const char *const sbx_rows_steps[] = { "minute", "hour", NULL };
static const struct sbx_field sbx_rows_denials_query[] = {
	{ "by", .words = sbx_rows_denials_by, .help = "what is counted; name" },
	{ "window", .check = sbx_window_check,
	  .help = "how far back: 90s, 15m, 24h, 7d; 24h. Widened to a whole minute, from 2h on to "
		  "a whole hour" },
	{ "series", .words = sbx_rows_steps, .help = "also the number in each minute or hour" },
	{ "limit", SBX_FIELD_INTEGER, .min = 1, .max = 1000, .help = "items; 100" },
	SBX_ROWS_WORKSPACE,
};

static const char *const sbx_rows_task_states[] = { "open", "closed", NULL };
static const struct sbx_field sbx_rows_tasks_query[] = {
	{ "state", .words = sbx_rows_task_states, .help = "of this state" },
	SBX_ROWS_WORKSPACE,
	SBX_ROWS_PAGE,
};
static const struct sbx_field sbx_rows_task_body[] = {
	{ "state", .required = true, .words = sbx_rows_task_states, .help = "what it becomes" },
	{ "note", .n_max = 1024, .help = "what was found" },
};

#define SBX_ROWS_ROUTES                                                                            \
	{ SBX_GET,                                                                                 \
	  SBX_ROLE_VIEWER,                                                                         \
	  "/workspaces",                                                                           \
	  "listWorkspaces",                                                                        \
	  SBX_ROWS_QUERY(sbx_rows_page_query),                                                     \
	  .status = 200,                                                                           \
	  .answer = "Workspace",                                                                   \
	  .is_list = true,                                                                         \
	  .help = "list the workspaces that have settings, rules or sandboxes",                    \
	  .run = sbx_list_workspaces },                                                            \
		{ SBX_POST,                                                                        \
		  SBX_ROLE_OPERATOR,                                                               \
		  "/workspaces",                                                                   \
		  "addWorkspace",                                                                  \
		  SBX_ROWS_BODY(sbx_rows_workspace_body),                                          \
		  .status = 201,                                                                   \
		  .answer = "Workspace",                                                           \
		  .help = "make a workspace",                                                      \
		  .run = sbx_add_workspace },                                                      \
		{ SBX_GET,                                                                         \
		  SBX_ROLE_VIEWER,                                                                 \
		  "/workspaces/{workspace}/sandbox/settings",                                      \
		  "getSettings",                                                                   \
		  .status = 200,                                                                   \
		  .answer = "Settings",                                                            \
		  .tagged = true,                                                                  \
		  .help = "show the settings of a workspace",                                      \
		  .run = sbx_get_settings },                                                       \
		{ SBX_PUT,                                                                         \
		  SBX_ROLE_OPERATOR,                                                               \
		  "/workspaces/{workspace}/sandbox/settings",                                      \
		  "putSettings",                                                                   \
		  SBX_ROWS_BODY(sbx_rows_settings_body),                                           \
		  .status = 200,                                                                   \
		  .answer = "Settings",                                                            \
		  .tagged = true,                                                                  \
		  .help = "change the settings of a workspace; its running sandboxes follow",      \
		  .run = sbx_put_settings },                                                       \
		{ SBX_GET,                                                                         \
		  SBX_ROLE_VIEWER,                                                                 \
		  "/workspaces/{workspace}/sandbox/rules",                                         \
		  "listRules",                                                                     \
		  SBX_ROWS_QUERY(sbx_rows_page_query),                                             \
		  .status = 200,                                                                   \
		  .answer = "Rule",                                                                \
		  .is_list = true,                                                                 \
		  .tagged = true,                                                                  \
		  .help = "list the rules of a workspace: by type, and the first to decide first", \
		  .run = sbx_list_rules },                                                         \
		{ SBX_POST,                                                                        \
		  SBX_ROLE_OPERATOR,                                                               \
		  "/workspaces/{workspace}/sandbox/rules",                                         \
		  "addRule",                                                                       \
		  SBX_ROWS_BODY(sbx_rows_rule_body),                                               \
		  .status = 201,                                                                   \
		  .answer = "Rule",                                                                \
		  .help = "add a rule; running sandboxes follow network rules",                    \
		  .run = sbx_add_rule },                                                           \
		{ SBX_GET,                                                                         \
		  SBX_ROLE_VIEWER,                                                                 \
		  "/workspaces/{workspace}/sandbox/rules/{rule}",                                  \
		  "getRule",                                                                       \
		  .status = 200,                                                                   \
		  .answer = "Rule",                                                                \
		  .tagged = true,                                                                  \
		  .help = "show a rule",                                                           \
		  .run = sbx_get_rule },                                                           \
		{ SBX_PATCH,                                                                       \
		  SBX_ROLE_OPERATOR,                                                               \
		  "/workspaces/{workspace}/sandbox/rules/{rule}",                                  \
		  "setRule",                                                                       \
		  SBX_ROWS_BODY(sbx_rows_rule_change),                                             \
		  .status = 200,                                                                   \
		  .answer = "Rule",                                                                \
		  .tagged = true,                                                                  \
		  .help = "change a rule; running sandboxes follow",                               \
		  .run = sbx_set_rule },                                                           \
		{ SBX_DELETE,                                                                      \
		  SBX_ROLE_OPERATOR,                                                               \
		  "/workspaces/{workspace}/sandbox/rules/{rule}",                                  \
		  "deleteRule",                                                                    \
		  .status = 200,                                                                   \
		  .answer = "Removed",                                                             \
		  .tagged = true,                                                                  \
		  .help = "remove a rule; running sandboxes follow",                               \
		  .run = sbx_delete_rule },                                                        \
		{ SBX_GET,                                                                         \
		  SBX_ROLE_VIEWER,                                                                 \
		  "/sandbox/system-rules",                                                         \
		  "listSystemRules",                                                               \
		  SBX_ROWS_QUERY(sbx_rows_page_query),                                             \
		  .status = 200,                                                                   \
		  .answer = "Rule",                                                                \
		  .is_list = true,                                                                 \
		  .tagged = true,                                                                  \
		  .help = "list the rules for every workspace, floors included",                   \
		  .run = sbx_list_system_rules },                                                  \
		{ SBX_POST,                                                                        \
		  SBX_ROLE_ADMIN,                                                                  \
		  "/sandbox/system-rules",                                                         \
		  "addSystemRule",                                                                 \
		  SBX_ROWS_BODY(sbx_rows_system_rule_body),                                        \
		  .status = 201,                                                                   \
		  .answer = "Rule",                                                                \
		  .help = "add a rule for every workspace",                                        \
		  .run = sbx_add_system_rule },                                                    \
		{ SBX_GET,                                                                         \
		  SBX_ROLE_VIEWER,                                                                 \
		  "/sandbox/system-rules/{rule}",                                                  \
		  "getSystemRule",                                                                 \
		  .status = 200,                                                                   \
		  .answer = "Rule",                                                                \
		  .tagged = true,                                                                  \
		  .help = "show such a rule",                                                      \
		  .run = sbx_get_system_rule },                                                    \
		{ SBX_PATCH,                                                                       \
		  SBX_ROLE_ADMIN,                                                                  \
		  "/sandbox/system-rules/{rule}",                                                  \
		  "setSystemRule",                                                                 \
		  SBX_ROWS_BODY(sbx_rows_rule_change),                                             \
		  .status = 200,                                                                   \
		  .answer = "Rule",                                                                \
		  .tagged = true,                                                                  \
		  .help = "change such a rule; no floor that sbx ships",                           \
		  .run = sbx_set_system_rule },                                                    \
		{ SBX_DELETE,                                                                      \
		  SBX_ROLE_ADMIN,                                                                  \
		  "/sandbox/system-rules/{rule}",                                                  \
		  "deleteSystemRule",                                                              \
		  .status = 200,                                                                   \
		  .answer = "Removed",                                                             \
		  .tagged = true,                                                                  \
		  .help = "remove such a rule; no floor that sbx ships",                           \
		  .run = sbx_delete_system_rule },                                                 \
		{ SBX_GET,                                                                         \
		  SBX_ROLE_VIEWER,                                                                 \
		  "/events",                                                                       \
		  "listEvents",                                                                    \
		  SBX_ROWS_QUERY(sbx_rows_events_query),                                           \
		  .status = 200,                                                                   \
		  .answer = "Event",                                                               \
		  .is_list = true,                                                                 \
		  .streams = true,                                                                 \
		  .help = "list events, the newest first, or follow them",                         \
		  .run = sbx_list_events },                                                        \
		{ SBX_GET,                                                                         \
		  SBX_ROLE_VIEWER,                                                                 \
		  "/sandboxes/{id}/events",                                                        \
		  "listSandboxEvents",                                                             \
		  SBX_ROWS_QUERY(sbx_rows_sandbox_events_query),                                   \
		  .status = 200,                                                                   \
		  .answer = "Event",                                                               \
		  .is_list = true,                                                                 \
		  .streams = true,                                                                 \
		  .help = "the same, of one sandbox",                                              \
		  .run = sbx_list_sandbox_events },                                                \
		{ SBX_GET,                                                                         \
		  SBX_ROLE_VIEWER,                                                                 \
		  "/denials",                                                                      \
		  "listDenials",                                                                   \
		  SBX_ROWS_QUERY(sbx_rows_denials_query),                                          \
		  .status = 200,                                                                   \
		  .answer = "Denials",                                                             \
		  .help = "count refusals, the most frequent first",                               \
		  .run = sbx_list_denials },                                                       \
		{ SBX_GET,                                                                         \
		  SBX_ROLE_VIEWER,                                                                 \
		  "/review-tasks",                                                                 \
		  "listReviewTasks",                                                               \
		  SBX_ROWS_QUERY(sbx_rows_tasks_query),                                            \
		  .status = 200,                                                                   \
		  .answer = "ReviewTask",                                                          \
		  .is_list = true,                                                                 \
		  .help = "list the sandboxes whose refusals somebody should look at",             \
		  .run = sbx_list_tasks },                                                         \
		{ SBX_POST,                                                                        \
		  SBX_ROLE_OPERATOR,                                                               \
		  "/review-tasks/{task}",                                                          \
		  "setReviewTask",                                                                 \
		  SBX_ROWS_BODY(sbx_rows_task_body),                                               \
		  .status = 200,                                                                   \
		  .answer = "ReviewTask",                                                          \
		  .help = "close a task, or open it again",                                        \
		  .run = sbx_set_task },

#endif
