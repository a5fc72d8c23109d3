/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* sbxctl rules list, add, set and rm */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "ctl/data/change.h"
#include "ctl/data/data.h"
#include "ctl/data/rule_row.h"
#include "ctl/frame/list.h"
#include "ctl/frame/places.h"
#include "ctl/live/ask.h"
#include "launcher/rules/rule_check.h"
#include "policy/forms/option_form.h"
#include "policy/forms/units.h"

SBX_DEFINE_CLEANUP(struct sbx_store, sbx_store_close);

struct values {
	const char *workspace, *type, *action, *priority, *note, *pattern;
	bool host, enable, disable;
};

#define STRING(field) .kind = SBX_OPTION_STRING, .offset = offsetof(struct values, field)
#define FLAG(field)   .kind = SBX_OPTION_FLAG, .offset = offsetof(struct values, field)
#define WORKSPACE(text)                                                                            \
	{                                                                                          \
		"workspace", .value = "W", STRING(workspace), .check = sbx_form_token,             \
			     .complete = "workspace", .help = text                                 \
	}
#define PRIORITY                                                                                   \
	{                                                                                          \
		"priority", .value = "N", STRING(priority), .check = sbx_rule_check_priority,      \
			    .help = "the rank, from 0 to 1000000",                                 \
			    .more = ": of the rules that match, the lowest decides (default: 100)" \
	}
#define NOTE                                                                                       \
	{                                                                                          \
		"note", .value = "TEXT", STRING(note), .help = "why the rule is there"             \
	}

/* There is no database yet. */
static int unknown_rule(struct sbx_ctl *ctl, const char *id)
{
	sbx_err_set(&ctl->err, "there is no rule %s (sbxctl rules list)", id);
	return SBX_CTL_NO;
}

static int parse_id(struct sbx_ctl *ctl, const char *text, int64_t *ret_id)
{
	uint64_t id;

	if (sbx_count_parse(text, &id) != 0 || id == 0 || id > INT64_MAX) {
		sbx_err_set(&ctl->err,
			    "'%s' is no id of a rule: it is a number (sbxctl rules list)", text);
		return SBX_CTL_USAGE;
	}
	*ret_id = (int64_t)id;
	return SBX_CTL_DONE;
}

/* --- list --- */

static bool is_wanted(const struct values *v, const struct sbx_store_rule *r)
{
	if (v->host && r->workspace)
		return false;
	if (v->type && (!r->type || strcmp(r->type, v->type) != 0))
		return false;
	return !v->action || (r->action && strcmp(r->action, v->action) == 0);
}

static int add_row(const struct sbx_store_rule *r, void *userdata)
{
	struct sbx_list *list = userdata;

	if (!is_wanted(list->ctl->values, r))
		return 0;
	if (list->json)
		return sbx_list_add(list, sbx_rule_json(r));
	sbx_table_addf(list->table, SBX_PLAIN, "%lld", (long long)r->id);
	sbx_table_add(list->table, SBX_PLAIN, r->workspace ? r->workspace : "(host)");
	sbx_table_add(list->table, SBX_PLAIN, r->type);
	sbx_table_addf(list->table,
		       r->action && strcmp(r->action, "allow") == 0 ? SBX_GOOD : SBX_BAD, "%s%s%s",
		       r->action ? r->action : "?", r->is_floor ? ", floor" : "",
		       r->enabled ? "" : ", off");
	sbx_table_addf(list->table, SBX_PLAIN, "%lld", (long long)r->priority);
	sbx_table_add(list->table, SBX_PLAIN, r->pattern);
	sbx_table_add(list->table, SBX_PLAIN, r->note);
	return 0;
}

static int run_list(struct sbx_ctl *ctl)
{
	static const struct sbx_column columns[] = {
		{ "ID", .right = true },       { "WORKSPACE", .shrinks = true },
		{ "TYPE", .shrinks = false },  { "ACTION", .shrinks = false },
		{ "PRIORITY", .right = true }, { "PATTERN", .shrinks = true },
		{ "NOTE", .shrinks = true },
	};
	const struct values *v = ctl->values;
	SBX_CLEANUP(sbx_store_closep) struct sbx_store *store = NULL;
	SBX_CLEANUP(sbx_list_fini) struct sbx_list list = { 0 };
	int r = sbx_ctl_store(ctl, &store);

	if (r != SBX_CTL_DONE)
		return r;
	r = sbx_list_init(&list, ctl, columns, SBX_N_ELEMENTS(columns));
	if (r == 0 && store)
		r = sbx_store_rules_each(store, v->workspace, add_row, &list, &ctl->err);
	if (r == 0)
		r = sbx_list_print(
			&list, "rules",
			"there are no rules: add one with sbxctl rules add --workspace W "
			"--action allow PATTERN");
	return sbx_ctl_status(ctl, r, "the rules");
}

static const struct sbx_option list_options[] = {
	WORKSPACE("list the rules of this workspace, and the host's"),
	{ "host", FLAG(host), .help = "list only rules of the host" },
	{ "type", .value = "network|tool", STRING(type), .check = sbx_rule_check_type,
	  .complete = "type", .help = "list only rules of this type" },
	{ "action", .value = "allow|deny", STRING(action), .check = sbx_rule_check_action,
	  .complete = "verdict", .help = "list only rules with this action" },
};

const struct sbx_ctl_command sbx_cmd_rules_list = {
	.name = "rules list",
	.options = list_options,
	.n_options = SBX_N_ELEMENTS(list_options),
	.n_values = sizeof(struct values),
	.help = "list the rules of workspaces and of the host",
	.example = "sbxctl rules list --workspace shop",
	.run = run_list,
};

/* --- add --- */

/* Rules of the host hold for every workspace: they are asked for by name. */
static int check_place(struct sbx_ctl *ctl, const struct values *v)
{
	if ((v->workspace != NULL) == v->host) {
		sbx_err_set(&ctl->err, v->host ?
					       "--workspace and --host exclude each other" :
					       "say --workspace W, or --host for every workspace");
		return SBX_CTL_USAGE;
	}
	return SBX_CTL_DONE;
}

static int run_add(struct sbx_ctl *ctl)
{
	const struct values *v = ctl->values;
	SBX_CLEANUP(sbx_store_closep) struct sbx_store *store = NULL;
	char by[128];
	struct sbx_store_rule rule = {
		.workspace = v->workspace,
		.type = v->type ? v->type : "network",
		.pattern = ctl->argv[0],
		.action = v->action,
		.priority = SBX_STORE_PRIORITY,
		.enabled = !v->disable,
		.note = v->note,
		.created_by = sbx_change_by(by, sizeof(by)),
		.created_ms = ctl->out.now_ms,
	};
	uint64_t priority;
	int64_t id = 0;
	int r = check_place(ctl, v);

	if (r != SBX_CTL_DONE)
		return r;
	if (!v->action) {
		sbx_err_set(&ctl->err, "say --action allow or --action deny");
		return SBX_CTL_USAGE;
	}
	if (v->priority && sbx_count_parse(v->priority, &priority) == 0)
		rule.priority = (int64_t)priority;
	r = sbx_rule_check(&rule, &ctl->err);
	if (r != 0)
		return r > 0 ? SBX_CTL_USAGE : sbx_ctl_status(ctl, r, "the rule");
	r = sbx_ctl_store_make(ctl, &store);
	if (r != SBX_CTL_DONE)
		return r;
	r = sbx_store_rule_add(store, &rule, &ctl->err, &id);
	if (r != 0)
		return sbx_ctl_status(ctl, r, "the rule");
	if (!ctl->out.json)
		fprintf(ctl->out.f, "%lld\n", (long long)id);
	if (strcmp(rule.type, "network") == 0 && strcmp(rule.action, "allow") == 0)
		sbx_ctl_note_floor(rule.pattern);
	return sbx_change_done(ctl, store, v->workspace, json_pack("{s:I}", "id", (json_int_t)id));
}

static const struct sbx_option add_options[] = {
	WORKSPACE("a rule for the sandboxes of this workspace"),
	{ "host", FLAG(host), .help = "a rule for every sandbox" },
	{ "type", .value = "network|tool", STRING(type), .check = sbx_rule_check_type,
	  .complete = "type",
	  .help = "what PATTERN is: an entry of network.allow, or of commands.allow",
	  .more = " (default: network)" },
	{ "action", .value = "allow|deny", STRING(action), .check = sbx_rule_check_action,
	  .complete = "verdict", .help = "what the rule does", .more = "; required" },
	PRIORITY,
	NOTE,
	{ "disable", FLAG(disable), .help = "add it without effect",
	  .more = " (rules set --enable)" },
};

const struct sbx_ctl_command sbx_cmd_rules_add = {
	.name = "rules add",
	.args = "PATTERN",
	.n_min = 1,
	.n_max = 1,
	.options = add_options,
	.n_options = SBX_N_ELEMENTS(add_options),
	.n_values = sizeof(struct values),
	.help = "add a rule, and print its id",
	.more = ". Running sandboxes follow a network rule at once: the command waits for them, "
		"and "
		"the exit status is 1 if one does not. A tool rule holds for runs that begin later",
	.example = "sbxctl rules add --workspace shop --action allow '*.example.org:443'",
	.run = run_add,
};

/* --- set --- */

/* The workspace of a rule, before it is changed or removed. */
struct found {
	char *workspace;	/* malloc'ed; NULL: of the host */
	const struct values *v; /* the change; NULL: it is removed */
	struct sbx_ctl *ctl;
};

/* The changed rule must be one that planning takes. */
static int look_at(const struct sbx_store_rule *rule, void *userdata)
{
	struct found *f = userdata;
	const struct values *v = f->v;
	struct sbx_store_rule changed = *rule;
	uint64_t priority;

	if (rule->workspace && !(f->workspace = strdup(rule->workspace)))
		return -ENOMEM;
	if (!v)
		return 0;
	if (v->pattern)
		changed.pattern = v->pattern;
	if (v->action)
		changed.action = v->action;
	if (v->priority && sbx_count_parse(v->priority, &priority) == 0)
		changed.priority = (int64_t)priority;
	if (v->note)
		changed.note = v->note;
	return sbx_rule_check(&changed, &f->ctl->err) == 0 ? 0 : -EINVAL;
}

static int run_set(struct sbx_ctl *ctl)
{
	const struct values *v = ctl->values;
	SBX_CLEANUP(sbx_store_closep) struct sbx_store *store = NULL;
	struct found found = { .v = v, .ctl = ctl };
	char by[128];
	struct sbx_store_rule_change change = SBX_STORE_RULE_UNCHANGED;
	uint64_t priority;
	int64_t id;
	int r = parse_id(ctl, ctl->argv[0], &id);

	if (r != SBX_CTL_DONE)
		return r;
	if ((v->enable && v->disable) ||
	    !(v->enable || v->disable || v->pattern || v->action || v->priority || v->note)) {
		sbx_err_set(&ctl->err, v->enable ? "--enable and --disable exclude each other" :
						   "nothing is to be changed (sbxctl help rules "
						   "set)");
		return SBX_CTL_USAGE;
	}
	change.pattern = v->pattern;
	change.action = v->action;
	change.note = v->note;
	if (v->priority && sbx_count_parse(v->priority, &priority) == 0)
		change.priority = (int64_t)priority;
	change.enabled = v->enable ? 1 : v->disable ? 0 : -1;
	change.changed_by = sbx_change_by(by, sizeof(by));
	change.changed_ms = ctl->out.now_ms;
	r = sbx_ctl_store(ctl, &store);
	if (r != SBX_CTL_DONE)
		return r;
	if (!store)
		return unknown_rule(ctl, ctl->argv[0]);
	r = sbx_store_rule_get(store, id, look_at, &found, &ctl->err);
	if (r == 0)
		r = sbx_store_rule_set(store, id, &change, &ctl->err);
	if (r == -EINVAL)
		r = SBX_CTL_USAGE;
	else if (r != 0)
		r = sbx_ctl_status(ctl, r, "the rule");
	else
		r = sbx_change_done(ctl, store, found.workspace,
				    json_pack("{s:I}", "id", (json_int_t)id));
	free(found.workspace);
	return r;
}

static const struct sbx_option set_options[] = {
	{ "pattern", .value = "PATTERN", STRING(pattern), .check = sbx_form_not_empty,
	  .help = "what it matches" },
	{ "action", .value = "allow|deny", STRING(action), .check = sbx_rule_check_action,
	  .complete = "verdict", .help = "what it does" },
	PRIORITY,
	NOTE,
	{ "enable", FLAG(enable), .help = "let it take effect" },
	{ "disable", FLAG(disable), .help = "keep it without effect" },
};

const struct sbx_ctl_command sbx_cmd_rules_set = {
	.name = "rules set",
	.args = "ID",
	.n_min = 1,
	.n_max = 1,
	.complete = "rule",
	.options = set_options,
	.n_options = SBX_N_ELEMENTS(set_options),
	.n_values = sizeof(struct values),
	.help = "change a rule",
	.more = "; running sandboxes follow as with rules add",
	.example = "sbxctl rules set 24 --disable",
	.run = run_set,
};

/* --- rm --- */

static int remove_one(struct sbx_ctl *ctl, struct sbx_store *store, const char *word)
{
	struct found found = { .ctl = ctl };
	int64_t id;
	int r = parse_id(ctl, word, &id);

	if (r != SBX_CTL_DONE)
		return r;
	r = sbx_store_rule_get(store, id, look_at, &found, &ctl->err);
	if (r == 0)
		r = sbx_store_rule_remove(store, id, &ctl->err);
	if (r != 0)
		r = sbx_ctl_status(ctl, r, "the rule");
	else
		r = sbx_change_done(ctl, store, found.workspace,
				    json_pack("{s:I}", "id", (json_int_t)id));
	free(found.workspace);
	return r;
}

static int run_rm(struct sbx_ctl *ctl)
{
	SBX_CLEANUP(sbx_store_closep) struct sbx_store *store = NULL;
	int r = sbx_ctl_store(ctl, &store);

	if (r != SBX_CTL_DONE)
		return r;
	return store ? remove_one(ctl, store, ctl->argv[0]) : unknown_rule(ctl, ctl->argv[0]);
}

const struct sbx_ctl_command sbx_cmd_rules_rm = {
	.name = "rules rm",
	.args = "ID",
	.n_min = 1,
	.n_max = 1,
	.complete = "rule",
	.help = "remove a rule",
	.more = "; running sandboxes follow as with rules add. The floors that sbx ships hold also "
		"without their rows",
	.example = "sbxctl rules rm 24",
	.run = run_rm,
};
