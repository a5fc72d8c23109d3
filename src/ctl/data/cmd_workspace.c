/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* sbxctl workspace list, show and set */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "ctl/data/change.h"
#include "ctl/data/data.h"
#include "ctl/frame/list.h"
#include "ctl/frame/places.h"
#include "ctl/print/form.h"
#include "policy/forms/option_form.h"
#include "store/store_rules.h"

SBX_DEFINE_CLEANUP(struct sbx_store, sbx_store_close);

/* --- list and show --- */

static json_t *json_of(const struct sbx_store_workspace *w)
{
	return json_pack("{s:o, s:o, s:I, s:o, s:o}", "name", sbx_json_text(w->name),
			 "network_default", sbx_json_text(w->default_action), "n_rules",
			 (json_int_t)w->n_rules, "changed_by", sbx_json_text(w->changed_by),
			 "changed_ms", w->changed_ms ? json_integer(w->changed_ms) : json_null());
}

static int add_row(const struct sbx_store_workspace *w, void *userdata)
{
	struct sbx_list *list = userdata;
	char age[SBX_FORM_MAX];

	if (list->json)
		return sbx_list_add(list, json_of(w));
	sbx_table_add(list->table, SBX_PLAIN, w->name);
	sbx_table_add(list->table, SBX_PLAIN,
		      w->default_action ? w->default_action : "the profile's");
	sbx_table_addf(list->table, SBX_PLAIN, "%lld", (long long)w->n_rules);
	sbx_table_add(list->table, SBX_PLAIN,
		      w->changed_ms ? sbx_form_age(list->ctl->out.now_ms - w->changed_ms, age) :
				      NULL);
	sbx_table_add(list->table, SBX_PLAIN, w->changed_by);
	return 0;
}

static int run_list(struct sbx_ctl *ctl)
{
	static const struct sbx_column columns[] = {
		{ "WORKSPACE", .shrinks = true }, { "NETWORK DEFAULT", .shrinks = false },
		{ "RULES", .right = true },	  { "CHANGED", .right = true },
		{ "BY", .shrinks = true },
	};
	SBX_CLEANUP(sbx_store_closep) struct sbx_store *store = NULL;
	SBX_CLEANUP(sbx_list_fini) struct sbx_list list = { 0 };
	int r = sbx_ctl_store(ctl, &store);

	if (r != SBX_CTL_DONE)
		return r;
	r = sbx_list_init(&list, ctl, columns, SBX_N_ELEMENTS(columns));
	if (r == 0 && store)
		r = sbx_store_workspaces_each(store, NULL, add_row, &list, &ctl->err);
	if (r == 0)
		r = sbx_list_print(
			&list, "workspaces",
			"there is no workspace: sbx-run --workspace W makes one, and so does "
			"sbxctl rules add --workspace W");
	return sbx_ctl_status(ctl, r, "the workspaces");
}

const struct sbx_ctl_command sbx_cmd_workspace_list = {
	.name = "workspace list",
	.help = "list the workspaces that have rules, settings or sandboxes",
	.example = "sbxctl workspace list",
	.run = run_list,
};

static int print_one(const struct sbx_store_workspace *w, void *userdata)
{
	struct sbx_ctl *ctl = userdata;

	if (ctl->out.json)
		return sbx_out_json(&ctl->out, json_pack("{s:o}", "workspace", json_of(w)), false);
	fputs("workspace        ", ctl->out.f);
	sbx_out_text(&ctl->out, w->name);
	fprintf(ctl->out.f, "\nnetwork default  %s\nrules            %lld\n",
		w->default_action ? w->default_action : "the profile's", (long long)w->n_rules);
	return 0;
}

static int check_name(struct sbx_ctl *ctl)
{
	const char *why = sbx_form_token(ctl->argv[0]);

	if (!why)
		return SBX_CTL_DONE;
	sbx_err_set(&ctl->err, "'%s': %s", ctl->argv[0], why);
	return SBX_CTL_USAGE;
}

static int run_show(struct sbx_ctl *ctl)
{
	const struct sbx_store_workspace nothing = { .name = ctl->argv[0] };
	SBX_CLEANUP(sbx_store_closep) struct sbx_store *store = NULL;
	int r = check_name(ctl);

	if (r == SBX_CTL_DONE)
		r = sbx_ctl_store(ctl, &store);
	if (r != SBX_CTL_DONE)
		return r;
	if (store)
		r = sbx_store_workspaces_each(store, ctl->argv[0], print_one, ctl, &ctl->err);
	else
		r = print_one(&nothing, ctl);
	return sbx_ctl_status(ctl, r, ctl->argv[0]);
}

const struct sbx_ctl_command sbx_cmd_workspace_show = {
	.name = "workspace show",
	.args = "W",
	.n_min = 1,
	.n_max = 1,
	.complete = "workspace",
	.help = "show a workspace",
	.more = "; its rules are listed by rules list --workspace W",
	.example = "sbxctl workspace show shop",
	.run = run_show,
};

/* --- set --- */

struct values {
	const char *action;
};

static const char *check_action(const char *s)
{
	return strcmp(s, "allow") == 0 || strcmp(s, "deny") == 0 || strcmp(s, "unset") == 0 ?
		       NULL :
		       "it must be allow, deny or unset";
}

static const struct sbx_option options[] = {
	{ "network-default", .value = "allow|deny|unset", .kind = SBX_OPTION_STRING,
	  .offset = offsetof(struct values, action), .check = check_action, .complete = "default",
	  .help = "what happens to a connection that no rule and no list decides",
	  .more = "; unset: what the profile says. Floors hold in any case" },
};

static int run_set(struct sbx_ctl *ctl)
{
	const struct values *v = ctl->values;
	SBX_CLEANUP(sbx_store_closep) struct sbx_store *store = NULL;
	char by[128];
	struct sbx_store_workspace w = {
		.name = ctl->argv[0],
		.default_action = v->action && strcmp(v->action, "unset") != 0 ? v->action : NULL,
		.changed_by = sbx_change_by(by, sizeof(by)),
		.changed_ms = ctl->out.now_ms,
	};
	int r = check_name(ctl);

	if (r != SBX_CTL_DONE)
		return r;
	if (!v->action) {
		sbx_err_set(&ctl->err, "say --network-default allow, deny or unset");
		return SBX_CTL_USAGE;
	}
	r = sbx_ctl_store_make(ctl, &store);
	if (r != SBX_CTL_DONE)
		return r;
	r = sbx_store_workspace_set(store, &w, &ctl->err);
	if (r != 0)
		return sbx_ctl_status(ctl, r, ctl->argv[0]);
	return sbx_change_done(ctl, store, w.name,
			       json_pack("{s:o, s:o}", "name", sbx_json_text(w.name),
					 "network_default", sbx_json_text(w.default_action)));
}

const struct sbx_ctl_command sbx_cmd_workspace_set = {
	.name = "workspace set",
	.args = "W",
	.n_min = 1,
	.n_max = 1,
	.complete = "workspace",
	.options = options,
	.n_options = SBX_N_ELEMENTS(options),
	.n_values = sizeof(struct values),
	.help = "set what a workspace's sandboxes may do where nothing else decides",
	.more = "; running sandboxes follow as with rules add",
	.example = "sbxctl workspace set shop --network-default deny",
	.run = run_set,
};
