/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* sbxctl ps */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "ctl/frame/places.h"
#include "ctl/live/live.h"
#include "ctl/live/sandbox_row.h"
#include "ctl/print/form.h"
#include "ctl/print/table.h"
#include "policy/forms/option_form.h"
#include "policy/forms/units.h"

#define MAX_USUAL 100

SBX_DEFINE_CLEANUP(struct sbx_table, sbx_table_free);
SBX_DEFINE_CLEANUP(struct sbx_store, sbx_store_close);

struct values {
	bool all;
	const char *workspace, *analysis, *max;
};

#define AT(field) .offset = offsetof(struct values, field)

static const struct sbx_option options[] = {
	{ "all", .letter = 'a', .kind = SBX_OPTION_FLAG, AT(all),
	  .help = "list also sandboxes that have ended", .more = ", the newest first" },
	{ "max", .value = "N", .kind = SBX_OPTION_STRING, AT(max), .check = sbx_form_count_check,
	  .help = "list at most N sandboxes", .more = " (default: all that live; with --all 100)" },
	{ "workspace", .value = "W", .kind = SBX_OPTION_STRING, AT(workspace),
	  .check = sbx_form_token, .complete = "workspace",
	  .help = "list only the sandboxes of this workspace" },
	{ "analysis-id", .value = "ID", .kind = SBX_OPTION_STRING, AT(analysis),
	  .check = sbx_form_token, .help = "list only those with this id of the caller's" },
};

struct list {
	const struct sbx_ctl *ctl;
	struct sbx_table *table;
	json_t *json;
	bool all;
	size_t n, n_dead;
	int64_t cursor;
};

/* The policy in force, if it is not the one of the start. */
static const char *net_of(const struct sbx_store_sandbox_row *s)
{
	return s->air_gapped ? "air gap" : s->generation > 1 ? "changed" : "";
}

static void add_row(struct list *list, const struct sbx_store_sandbox_row *s)
{
	SBX_AUTO_FREE char *command = sbx_sandbox_command(s->command_json);
	bool dead = s->ended_ms == SBX_STORE_NONE && !sbx_sandbox_has_launcher(s);
	char age[SBX_FORM_MAX];

	list->n_dead += dead;
	sbx_table_add(list->table, SBX_PLAIN, s->id);
	sbx_table_add(list->table, sbx_sandbox_colour(s), dead ? "dead" : s->state);
	if (list->all && s->exit_status != SBX_STORE_NONE)
		sbx_table_addf(list->table, SBX_PLAIN, "%lld", (long long)s->exit_status);
	else if (list->all)
		sbx_table_add(list->table, SBX_PLAIN, NULL);
	sbx_table_add(list->table, SBX_PLAIN,
		      sbx_form_age(list->ctl->out.now_ms - s->created_ms, age));
	sbx_table_add(list->table, SBX_PLAIN, s->profile);
	sbx_table_add(list->table, SBX_PLAIN, s->workspace);
	sbx_table_add(list->table, SBX_PLAIN, net_of(s));
	sbx_table_add(list->table, SBX_PLAIN, command);
}

static int add(const struct sbx_store_sandbox_row *s, void *userdata)
{
	struct list *list = userdata;

	list->n++;
	list->cursor = s->cursor;
	if (list->json)
		json_array_append_new(list->json, sbx_sandbox_json(s));
	else
		add_row(list, s);
	return 0;
}

/* In pages: a page's rows are read while nothing is printed. */
static int read_rows(struct sbx_store *store, const struct values *v, struct list *list,
		     struct sbx_err *err)
{
	struct sbx_store_sandbox_filter filter = { .live = !v->all,
						   .workspace = v->workspace,
						   .analysis_id = v->analysis };
	uint64_t max = v->all ? MAX_USUAL : UINT64_MAX;
	size_t before;
	int r = 0;

	if (v->max)
		sbx_count_parse(v->max, &max);
	do {
		before = list->n;
		filter.n_max =
			max - list->n < SBX_STORE_PAGE ? (uint32_t)(max - list->n) : SBX_STORE_PAGE;
		r = sbx_store_sandboxes_each(store, &filter, add, list, err);
		filter.before = list->cursor;
	} while (r == 0 && list->n < max && list->n - before == filter.n_max);
	return r;
}

static int print(struct sbx_ctl *ctl, struct list *list)
{
	int r;

	if (list->json)
		return sbx_out_json(&ctl->out, json_pack("{s:o}", "sandboxes", list->json), false);
	r = sbx_table_print(list->table, &ctl->out);
	if (r == 0 && list->n == 0)
		sbx_ctl_tell_empty(ctl, list->all ?
						"no sandbox is recorded: start one with sbx-run "
						"-- COMMAND" :
						"no sandbox runs: start one with sbx-run -- "
						"COMMAND, or list ended ones with --all");
	if (r == 0 && list->n_dead)
		sbx_ctl_tell_empty(ctl, "the launcher of a dead sandbox was killed: sbxctl gc "
					"removes what it left");
	return r;
}

static int run(struct sbx_ctl *ctl)
{
	static const struct sbx_column columns[] = {
		{ "ID", .shrinks = false },	{ "STATE", .shrinks = true },
		{ "EXIT", .right = true },	{ "AGE", .right = true },
		{ "PROFILE", .shrinks = true }, { "WORKSPACE", .shrinks = true },
		{ "NET", .shrinks = false },	{ "COMMAND", .shrinks = true },
	};
	static const struct sbx_column columns_live[] = {
		{ "ID", .shrinks = false },	  { "STATE", .shrinks = true },
		{ "AGE", .right = true },	  { "PROFILE", .shrinks = true },
		{ "WORKSPACE", .shrinks = true }, { "NET", .shrinks = false },
		{ "COMMAND", .shrinks = true },
	};
	const struct values *v = ctl->values;
	SBX_CLEANUP(sbx_store_closep) struct sbx_store *store = NULL;
	SBX_CLEANUP(sbx_table_freep)
	struct sbx_table *table =
		v->all ? sbx_table_new(columns, SBX_N_ELEMENTS(columns)) :
			 sbx_table_new(columns_live, SBX_N_ELEMENTS(columns_live));
	struct list list = {
		.ctl = ctl,
		.table = table,
		.all = v->all,
		.json = ctl->out.json ? json_array() : NULL,
	};
	int r = sbx_ctl_store(ctl, &store);

	if (r != SBX_CTL_DONE)
		return r;
	r = table ? 0 : -ENOMEM;
	if (r == 0 && store)
		r = read_rows(store, v, &list, &ctl->err);
	if (r == 0)
		r = print(ctl, &list);
	return sbx_ctl_status(ctl, r, "the sandboxes");
}

const struct sbx_ctl_command sbx_cmd_ps = {
	.name = "ps",
	.options = options,
	.n_options = SBX_N_ELEMENTS(options),
	.n_values = sizeof(struct values),
	.help = "list the sandboxes that live",
	.more = ", with the state, the age and what was changed about their network",
	.example = "sbxctl ps --all",
	.run = run,
};
