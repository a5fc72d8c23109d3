/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* sbxctl token list, add and rm */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "ctl/data/change.h"
#include "ctl/frame/list.h"
#include "ctl/frame/places.h"
#include "ctl/print/form.h"
#include "ctl/service/service.h"
#include "policy/forms/option_form.h"
#include "policy/forms/units.h"
#include "store/secret_text.h"
#include "store/store_service.h"

SBX_DEFINE_CLEANUP(struct sbx_store, sbx_store_close);

/* The system's service has a user and a database of its own: a token in root's is of no use there.
 * SBX_STATE_DIR says which is meant. */
#define SYSTEM_SOCKET "/run/sbxd/api.sock"

static int check_service(struct sbx_ctl *ctl)
{
	if (geteuid() != 0 || getenv("SBX_STATE_DIR") || access(SYSTEM_SOCKET, F_OK) < 0)
		return SBX_CTL_DONE;
	sbx_err_set(&ctl->err,
		    "the system's sbxd has a database of its own: runuser -u sbx -- env "
		    "SBX_STATE_DIR=/var/lib/sbxd SBX_RUNTIME_DIR=/run/sbxd sbxctl token ...; for "
		    "one that runs as root set SBX_STATE_DIR");
	return SBX_CTL_NO;
}

/* --- list --- */

static json_t *json_of(const struct sbx_store_token *t)
{
	return json_pack("{s:o, s:o, s:o, s:I, s:o, s:o, s:o}", "name", sbx_json_text(t->name),
			 "role", sbx_json_text(t->role), "workspace", sbx_json_text(t->workspace),
			 "created_ms", (json_int_t)t->created_ms, "created_by",
			 sbx_json_text(t->created_by), "expires_ms",
			 t->expires_ms ? json_integer(t->expires_ms) : json_null(), "last_used_ms",
			 t->last_used_ms ? json_integer(t->last_used_ms) : json_null());
}

static int add_row(const struct sbx_store_token *t, void *userdata)
{
	struct sbx_list *list = userdata;
	int64_t now = list->ctl->out.now_ms;
	bool ended = t->expires_ms && t->expires_ms <= now;
	char text[SBX_FORM_MAX];

	if (list->json)
		return sbx_list_add(list, json_of(t));
	sbx_table_add(list->table, SBX_PLAIN, t->name);
	sbx_table_add(list->table, SBX_PLAIN, t->role);
	sbx_table_add(list->table, SBX_PLAIN, t->workspace ? t->workspace : "(all)");
	sbx_table_add(list->table, ended ? SBX_BAD : SBX_PLAIN,
		      ended	    ? "expired" :
		      t->expires_ms ? sbx_form_time(t->expires_ms, text) :
				      "never");
	sbx_table_add(list->table, SBX_PLAIN,
		      t->last_used_ms ? sbx_form_age(now - t->last_used_ms, text) : NULL);
	sbx_table_add(list->table, SBX_PLAIN, sbx_form_age(now - t->created_ms, text));
	sbx_table_add(list->table, SBX_PLAIN, t->created_by);
	return 0;
}

static int run_list(struct sbx_ctl *ctl)
{
	static const struct sbx_column columns[] = {
		{ "TOKEN", .shrinks = true },	  { "ROLE", .shrinks = false },
		{ "WORKSPACE", .shrinks = true }, { "EXPIRES", .shrinks = false },
		{ "USED", .right = true },	  { "MADE", .right = true },
		{ "BY", .shrinks = true },
	};
	SBX_CLEANUP(sbx_store_closep) struct sbx_store *store = NULL;
	SBX_CLEANUP(sbx_list_fini) struct sbx_list list = { 0 };
	int r = check_service(ctl);

	r = r == SBX_CTL_DONE ? sbx_ctl_store(ctl, &store) : r;
	if (r != SBX_CTL_DONE)
		return r;
	r = sbx_list_init(&list, ctl, columns, SBX_N_ELEMENTS(columns));
	if (r == 0 && store)
		r = sbx_store_tokens_each(store, add_row, &list, &ctl->err);
	if (r == 0)
		r = sbx_list_print(&list, "tokens",
				   "there are no tokens: sbxctl token add NAME --role viewer makes "
				   "one");
	return sbx_ctl_status(ctl, r, "the tokens");
}

const struct sbx_ctl_command sbx_cmd_token_list = {
	.name = "token list",
	.help = "list the tokens of programs that call sbxd",
	.example = "sbxctl token list",
	.run = run_list,
};

/* --- add --- */

struct values {
	const char *role, *workspace, *expires;
};

static const char *check_role(const char *s)
{
	return strcmp(s, "viewer") == 0 || strcmp(s, "operator") == 0 || strcmp(s, "admin") == 0 ?
		       NULL :
		       "it must be viewer, operator or admin";
}

/* A time to live, or a time. */
static int parse_expires(const char *s, int64_t now_ms, int64_t *ret_ms)
{
	uint64_t ms;

	if (sbx_time_parse(s, &ms) != 0)
		return sbx_form_instant(s, now_ms, ret_ms);
	if (ms == 0 || ms > INT64_MAX / 4)
		return -EINVAL;
	*ret_ms = now_ms + (int64_t)ms;
	return 0;
}

static const char *check_expires(const char *s)
{
	int64_t ms;

	return parse_expires(s, 0, &ms) == 0 ?
		       NULL :
		       "it must be a time to live (12h, 90d) or a time in UTC (2027-01-31)";
}

static const struct sbx_option options[] = {
	{ "role", .value = "viewer|operator|admin", .kind = SBX_OPTION_STRING,
	  .offset = offsetof(struct values, role), .check = check_role, .complete = "role",
	  .help = "a viewer sees; an operator also starts, changes and ends sandboxes and changes "
		  "the rules of workspaces; an admin may all",
	  .more = "; required" },
	{ "workspace", .value = "W", .kind = SBX_OPTION_STRING,
	  .offset = offsetof(struct values, workspace), .check = sbx_form_token,
	  .complete = "workspace", .help = "the token sees and changes this workspace alone" },
	{ "expires", .value = "D", .kind = SBX_OPTION_STRING,
	  .offset = offsetof(struct values, expires), .check = check_expires,
	  .help = "refuse the token after this time to live, or from this time on",
	  .more = " (12h, 90d; 2027-01-31)" },
};

static int check(struct sbx_ctl *ctl, const struct values *v, struct sbx_store_token *t)
{
	const char *why = sbx_form_token(t->name);

	if (!why && strchr(t->name, '/'))
		why = "it must not have a \"/\": the API has names in its paths";
	if (why)
		sbx_err_set(&ctl->err, "'%s': %s", t->name, why);
	else if (!v->role)
		sbx_err_set(&ctl->err, "say --role viewer, operator or admin");
	else if (v->workspace && strcmp(v->role, "admin") == 0)
		sbx_err_set(&ctl->err, "an admin is not of one workspace: leave --workspace out, "
				       "or say --role operator");
	else if (v->expires && (parse_expires(v->expires, ctl->out.now_ms, &t->expires_ms) < 0 ||
				t->expires_ms <= ctl->out.now_ms))
		sbx_err_set(&ctl->err, "--expires %s is in the past", v->expires);
	else
		return SBX_CTL_DONE;
	return SBX_CTL_USAGE;
}

static int print_token(struct sbx_ctl *ctl, const struct sbx_store_token *t, const char *text)
{
	json_t *o;

	if (ctl->out.json) {
		o = json_of(t);
		if (o)
			json_object_set_new(o, "token", json_string(text));
		return sbx_ctl_status(ctl, sbx_out_json(&ctl->out, o, false), "the answer");
	}
	fprintf(ctl->out.f, "%s\n", text);
	if (ctl->out.terminal)
		fputs("sbxctl: this is the only time that the token is shown\n", stderr);
	return SBX_CTL_DONE;
}

static int run_add(struct sbx_ctl *ctl)
{
	const struct values *v = ctl->values;
	SBX_CLEANUP(sbx_store_closep) struct sbx_store *store = NULL;
	char by[128], text[SBX_API_TOKEN_MAX], hash[SBX_SECRET_HASH_MAX];
	struct sbx_store_token t = {
		.name = ctl->argv[0],
		.hash = hash,
		.role = v->role,
		.workspace = v->workspace,
		.created_by = sbx_change_by(by, sizeof(by)),
		.created_ms = ctl->out.now_ms,
	};
	int r = check(ctl, v, &t);

	r = r == SBX_CTL_DONE ? check_service(ctl) : r;
	if (r != SBX_CTL_DONE)
		return r;
	r = sbx_ctl_store_make(ctl, &store);
	if (r != SBX_CTL_DONE)
		return r;
	r = sbx_api_token_make(text);
	if (r == 0) {
		sbx_secret_hash(text, hash);
		r = sbx_store_token_add(store, &t, &ctl->err);
	}
	if (r == SBX_STORE_E_EXISTS)
		sbx_err_set(&ctl->err, "there is a token %s already (sbxctl token rm %s)", t.name,
			    t.name);
	r = r == 0 ? print_token(ctl, &t, text) : sbx_ctl_status(ctl, r, "the token");
	explicit_bzero(text, sizeof(text));
	return r;
}

const struct sbx_ctl_command sbx_cmd_token_add = {
	.name = "token add",
	.args = "NAME",
	.n_min = 1,
	.n_max = 1,
	.options = options,
	.n_options = SBX_N_ELEMENTS(options),
	.n_values = sizeof(struct values),
	.help = "make a token for a program that calls sbxd, and print it",
	.more = ". The database has its hash alone, so it is never shown again",
	.example = "sbxctl token add ci --role operator --workspace shop --expires 90d",
	.run = run_add,
};

/* --- rm --- */

static int run_rm(struct sbx_ctl *ctl)
{
	SBX_CLEANUP(sbx_store_closep) struct sbx_store *store = NULL;
	int r = check_service(ctl);

	r = r == SBX_CTL_DONE ? sbx_ctl_store(ctl, &store) : r;
	if (r != SBX_CTL_DONE)
		return r;
	r = store ? sbx_store_token_remove(store, ctl->argv[0], &ctl->err) : SBX_STORE_E_UNKNOWN;
	if (r == SBX_STORE_E_UNKNOWN)
		sbx_err_set(&ctl->err, "there is no token %s (sbxctl token list)", ctl->argv[0]);
	if (r == 0 && ctl->out.json)
		r = sbx_out_json(&ctl->out, json_pack("{s:o}", "name", sbx_json_text(ctl->argv[0])),
				 false);
	return sbx_ctl_status(ctl, r, "the token");
}

const struct sbx_ctl_command sbx_cmd_token_rm = {
	.name = "token rm",
	.args = "NAME",
	.n_min = 1,
	.n_max = 1,
	.complete = "token",
	.help = "remove a token",
	.more = ". sbxd refuses it at once, and ends its streams and its sessions",
	.example = "sbxctl token rm ci",
	.run = run_rm,
};
