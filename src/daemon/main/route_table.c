/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The API. To add a route: a row here (or in rows/routes.h), a handler in the resource's file, the
 * schema of its answer in docs/api-schemas.json.
 */
#include "daemon/main/route_table.h"
#include "base/cleanup.h"
#include "daemon/api/net_rule.h"
#include "daemon/resources/resources.h"
#include "daemon/rows/routes.h"
#include "policy/forms/option_form.h"

static const char *const states[] = {
	"live",	  "preparing", "running",    "done", "failed_safety_setup", "failed_policy", "lost",
	"killed", "timed_out", "oom_killed", NULL
};

static const struct sbx_field login_query[] = {
	{ "code", .required = true, .n_max = 64, .help = "of the link" },
};

static const struct sbx_field sandboxes_query[] = {
	{ "state", .words = states, .help = "of this state; live: has not ended" },
	{ "workspace", .help = "of this workspace" },
	SBX_ROWS_PAGE,
};

#define NET_RULES(text)                                                                            \
	{                                                                                          \
		"rules", SBX_FIELD_OBJECTS, .n_max = SBX_NET_RULES_MAX,                            \
			.members = sbx_net_rule_fields, .n_members = SBX_N_NET_RULE_FIELDS,        \
			.help = (text)                                                             \
	}

static const struct sbx_field network_body[] = {
	{ "air_gapped", SBX_FIELD_BOOLEAN,
	  .help = "nothing is reached but resolvers, and what allow_out and rules allow" },
	{ "allow_out", SBX_FIELD_STRINGS, .n_max = 1000, .help = "replaces the live allow list" },
	{ "deny_out", SBX_FIELD_STRINGS, .n_max = 1000, .help = "replaces the live deny list" },
	NET_RULES("replaces the live rules, which are judged with the lists"),
};

static const char *const protocols[] = { "tcp", "udp", NULL };

static const struct sbx_field explain_rule[] = {
	{ SBX_ROWS_PATTERN, .required = true },
	{ "action", .required = true, .words = sbx_rows_actions, .help = "what it would do" },
	{ "type", .words = sbx_rows_rule_types, .help = "network, or tool for a command" },
	SBX_ROWS_PRIORITY,
	{ "is_floor", SBX_FIELD_BOOLEAN, .help = "it would be a floor of the host" },
	SBX_ROWS_NOTE,
	{ "id", SBX_FIELD_INTEGER, .min = 1, .max = INT64_MAX - 1,
	  .help = "of the rule whose place it would take" },
};

static const struct sbx_field explain_body[] = {
	{ "protocol", .words = protocols, .help = "of a connection; it has host and port, too" },
	{ "host", .n_max = 253, .help = "a name or an address" },
	{ "port", SBX_FIELD_INTEGER, .min = 1, .max = 65535, .help = "the port" },
	{ "address", .n_max = 45, .help = "an address that the name resolves to" },
	{ "method", .n_max = 32, .help = "of a request; GET" },
	{ "path", .n_max = 4096, .help = "of a request; /" },
	{ "mount", .n_max = 4096, .help = "instead: a path of the host; with :ro, to be read" },
	{ "command", .help = "instead: a command" },
	{ "profile", .check = sbx_check_profile_name, .help = "of the sandbox; default" },
	{ "workspace", .n_max = 64, .check = sbx_form_token, .help = "whose rules hold" },
	{ "id", .n_max = 12, .help = "a live sandbox, in the place of profile and workspace" },
	{ "rule", SBX_FIELD_OBJECT, .members = explain_rule,
	  .n_members = SBX_N_ELEMENTS(explain_rule),
	  .help = "a draft, judged as if it were a rule of the workspace" },
};

static const struct sbx_field start_network[] = {
	{ "allow_out", SBX_FIELD_STRINGS,
	  .help = "the live allow list that it begins with, above the profile's" },
	{ "deny_out", SBX_FIELD_STRINGS,
	  .help = "the live deny list that it begins with" },
	NET_RULES("the live rules that it begins with"),
};

#define TIMEOUT_MAX 31536000

static const struct sbx_field start_body[] = {
	{ "profile", .required = true, .n_max = 128, .help = "a profile's name" },
	{ "workspace", .n_max = 128, .help = "the workspace that it is recorded under" },
	{ "analysis_id", .n_max = 128, .help = "an id of yours, recorded with it" },
	{ "command", SBX_FIELD_STRINGS, .any_text = true, .n_max = 4096,
	  .help = "the command and its arguments; absent: the sandbox waits for exec" },
	{ "env", SBX_FIELD_MAP, .any_text = true, .help = "variables" },
	{ "limits", SBX_FIELD_MAP, .n_max = 64,
	  .help = "limits, as {\"memory\": \"1G\", \"cpus\": \"2\"}" },
	{ "metadata", SBX_FIELD_MAP, .n_max = 64, .help = "texts of yours, kept with it" },
	{ "timeout", SBX_FIELD_INTEGER, .min = 1, .max = TIMEOUT_MAX,
	  .help = "seconds after which it is ended" },
	{ "allow_internet_access", SBX_FIELD_BOOLEAN,
	  .help = "false: it starts air-gapped, and reaches what network allows" },
	{ "network", SBX_FIELD_OBJECT, .members = start_network,
	  .n_members = SBX_N_ELEMENTS(start_network), .help = "its reach" },
	{ "secrets", SBX_FIELD_STRINGS, .n_max = 32,
	  .help = "secrets that the service has, NAME or NAME@HOST" },
};

static const char *const streams[] = { "stdout", "stderr", NULL };

static const struct sbx_field output_query[] = {
	{ "offset", SBX_FIELD_INTEGER, .min = 0,
	  .help = "begin here: the id of an event, or next_offset of a page" },
	{ "stream", .words = streams, .help = "this one alone" },
	{ "limit", SBX_FIELD_INTEGER, .min = 1, .max = 1000, .help = "items of a page; 100" },
};

static const struct sbx_field exec_body[] = {
	{ "command", SBX_FIELD_STRINGS, .required = true, .any_text = true, .n_max = 4096,
	  .help = "the command and its arguments" },
	{ "env", SBX_FIELD_MAP, .any_text = true,
	  .help = "variables, besides the first command's" },
	{ "chdir", .help = "the directory inside where it starts" },
	{ "stdin", .any_text = true, .n_max = 262144, .help = "its standard input" },
	{ "timeout", SBX_FIELD_INTEGER, .min = 1, .max = TIMEOUT_MAX,
	  .help = "seconds after which it gets SIGTERM, and SIGKILL two later" },
};

static const struct sbx_field timeout_body[] = {
	{ "timeout", SBX_FIELD_INTEGER, .required = true, .min = 1, .max = TIMEOUT_MAX,
	  .help = "seconds from now" },
};

static const struct sbx_field token_body[] = {
	{ "name", .required = true, .n_max = 128, .check = sbx_workspace_check,
	  .help = "the program's: printable ASCII without spaces and \"/\"" },
	{ "role", .required = true, .words = sbx_role_names + SBX_ROLE_VIEWER,
	  .help = "what it may do" },
	{ "workspace", .n_max = SBX_WORKSPACE_MAX - 1, .check = sbx_workspace_check,
	  .help = "it sees and changes this one alone" },
	{ "expires_s", SBX_FIELD_INTEGER, .min = 1, .max = INT64_C(100) * 366 * 86400,
	  .help = "seconds after which it is refused; never otherwise" },
};
static const struct sbx_field audit_query[] = {
	{ "principal", .help = "by this caller" },
	{ "object", .help = "of this object" },
	SBX_ROWS_PAGE,
};

static const struct sbx_route rows[] = {
	{ SBX_GET, SBX_ROLE_NONE, "/healthz", "getHealth", .status = 200, .answer = "Health",
	  .help = "say that the service answers", .run = sbx_get_health },
	{ SBX_GET, SBX_ROLE_NONE, "/readyz", "getReady", .status = 200,
	  .status_2 = 503, .answer = "Ready",
	  .help = "say whether the service can do its work", .run = sbx_get_ready },
	{ SBX_GET, SBX_ROLE_NONE, "/openapi.json", "getOpenapi", .status = 200,
	  .media = "application/json", .help = "describe the API", .run = sbx_get_openapi },
	{ SBX_GET, SBX_ROLE_NONE, "/", "getRoot", .status = 302, .help = "go to the page",
	  .run = sbx_get_root },
	{ SBX_GET, SBX_ROLE_NONE, "/ui/", "getPage", .status = 200, .media = "text/html",
	  .tagged = true, .help = "the page", .run = sbx_get_page },
	{ SBX_GET, SBX_ROLE_NONE, "/ui/{*}", "getPageFile", .status = 200, .media = "text/html",
	  .tagged = true, .help = "a file of the page", .run = sbx_get_page },
	{ SBX_GET, SBX_ROLE_VIEWER, "/metrics", "getMetrics", .status = 200, .media = "text/plain",
	  .help = "tell figures of the service and of all sandboxes, for Prometheus",
	  .run = sbx_get_metrics },
	{ SBX_GET, SBX_ROLE_VIEWER, "/session", "getSession", .status = 200, .answer = "Session",
	  .help = "say who the caller is", .run = sbx_get_session },
	{ SBX_POST, SBX_ROLE_OPERATOR, "/session/links", "postSessionLink", .status = 201,
	  .answer = "SessionLink", .help = "make a link that opens the page for the caller, once",
	  .run = sbx_post_session_link },
	{ SBX_GET, SBX_ROLE_NONE, "/login", "getLogin", SBX_ROWS_QUERY(login_query), .status = 303,
	  .shown = true,
	  .help = "use a link: set the session's cookie, and lead to the page",
	  .run = sbx_get_login },
	{ SBX_POST, SBX_ROLE_VIEWER, "/session/logout", "postSessionLogout", .status = 204,
	  .help = "end the caller's session", .run = sbx_post_session_logout },
	{ SBX_GET, SBX_ROLE_VIEWER, "/sandboxes", "listSandboxes", SBX_ROWS_QUERY(sandboxes_query),
	  .status = 200, .answer = "Sandbox", .is_list = true,
	  .help = "list sandboxes, the newest first", .run = sbx_list_sandboxes },
	{ SBX_POST, SBX_ROLE_OPERATOR, "/sandboxes", "createSandbox", SBX_ROWS_BODY(start_body),
	  .status = 201, .answer = "Sandbox",
	  .example = "{\"profile\": \"none\", \"command\": [\"echo\", \"hello\"]}",
	  .help = "start a sandbox; the answer comes when its command was released",
	  .run = sbx_create_sandbox },
	{ SBX_GET, SBX_ROLE_VIEWER, "/sandboxes/{id}", "getSandbox", .status = 200,
	  .answer = "Sandbox", .help = "show a sandbox as it is now", .run = sbx_get_sandbox },
	{ SBX_DELETE, SBX_ROLE_OPERATOR, "/sandboxes/{id}", "deleteSandbox", .status = 204,
	  .help = "kill a sandbox; the answer comes when it has ended", .run = sbx_delete_sandbox },
	{ SBX_POST, SBX_ROLE_OPERATOR, "/sandboxes/{id}/timeout", "postTimeout",
	  SBX_ROWS_BODY(timeout_body), .status = 200, .answer = "Timeout",
	  .help = "set when a sandbox is ended", .run = sbx_post_timeout },
	{ SBX_GET, SBX_ROLE_VIEWER, "/sandboxes/{id}/output", "getOutput",
	  SBX_ROWS_QUERY(output_query), .status = 200, .answer = "Output", .streams = true,
	  .help = "read what a sandbox wrote to its standard output and error",
	  .run = sbx_get_output },
	{ SBX_POST, SBX_ROLE_OPERATOR, "/sandboxes/{id}/exec", "postExec", SBX_ROWS_BODY(exec_body),
	  .status = 200, .answer = "Exec", .streams = true,
	  .example = "{\"command\": [\"ls\", \"-l\"]}",
	  .help = "run a further command in a sandbox", .run = sbx_post_exec },
	{ SBX_GET, SBX_ROLE_VIEWER, "/sandboxes/{id}/network", "getNetwork", .status = 200,
	  .answer = "Network", .help = "show the live lists and the air gap",
	  .run = sbx_get_network },
	{ SBX_PUT, SBX_ROLE_OPERATOR, "/sandboxes/{id}/network", "putNetwork",
	  SBX_ROWS_BODY(network_body), .status = 200, .answer = "Network",
	  .example = "{\"air_gapped\": false, \"rules\": [{\"action\": \"allow\", "
		     "\"host\": \"api.example.org\", \"methods\": [\"GET\", \"HEAD\"]}]}",
	  .help = "change what a sandbox may reach, and cut what it may not",
	  .run = sbx_put_network },
	{ SBX_GET, SBX_ROLE_ADMIN, "/tokens", "listTokens", .status = 200, .answer = "Token",
	  .is_list = true, .help = "list the tokens", .run = sbx_list_tokens },
	{ SBX_POST, SBX_ROLE_ADMIN, "/tokens", "addToken", SBX_ROWS_BODY(token_body), .status = 201,
	  .answer = "NewToken", .help = "make a token; its text is in this answer alone",
	  .run = sbx_add_token },
	{ SBX_DELETE, SBX_ROLE_ADMIN, "/tokens/{token}", "deleteToken", .status = 204,
	  .help = "remove a token; its streams and sessions end", .run = sbx_delete_token },
	{ SBX_GET, SBX_ROLE_ADMIN, "/audit", "listAudit", SBX_ROWS_QUERY(audit_query),
	  .status = 200, .answer = "Audit", .is_list = true,
	  .help = "list changes, the newest first", .run = sbx_list_audit },
	SBX_ROWS_ROUTES{ SBX_GET, SBX_ROLE_VIEWER, "/sandboxes/{id}/metrics", "getSandboxMetrics",
			 .status = 200, .answer = "Usage",
			 .help = "tell what a sandbox uses; of an ended one, what it used",
			 .run = sbx_get_sandbox_metrics },
	{ SBX_POST, SBX_ROLE_VIEWER, "/explain", "explain", SBX_ROWS_BODY(explain_body),
	  .status = 200, .answer = "Explanation",
	  .example = "{\"profile\": \"build\", \"protocol\": \"tcp\", \"host\": \"pypi.org\", "
		     "\"port\": 443}",
	  .help = "say whether a sandbox may do something, and which rule decides",
	  .run = sbx_post_explain },
	{ SBX_GET, SBX_ROLE_VIEWER, "/profiles", "listProfiles", .status = 200,
	  .answer = "ProfileRow", .is_list = true, .help = "list the profiles",
	  .run = sbx_list_profiles },
	{ SBX_GET, SBX_ROLE_VIEWER, "/profiles/{name}", "getProfile", .status = 200,
	  .answer = "Profile", .help = "show a profile with all that it extends",
	  .run = sbx_get_profile },
};

const struct sbx_route_table sbx_routes = { rows, SBX_N_ELEMENTS(rows) };
