/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* sbxctl ps */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "ctl/frame/places.h"
#include "ctl/live/live.h"
#include "ctl/live/sandbox_now.h"
#include "ctl/live/sandbox_row.h"
#include "ctl/live/watch.h"
#include "ctl/print/form.h"
#include "ctl/print/table.h"
#include "policy/forms/option_form.h"
#include "policy/forms/units.h"

#define MAX_USUAL 100

SBX_DEFINE_CLEANUP(struct sbx_table, sbx_table_free);
SBX_DEFINE_CLEANUP(struct sbx_store, sbx_store_close);

struct values {
	bool all, watch;
	const char *workspace, *analysis, *max;
};

#define AT(field) .offset = offsetof(struct values, field)

static const struct sbx_option options[] = {
	{ "all", .letter = 'a', .kind = SBX_OPTION_FLAG, AT(all),
	  .help = "list also sandboxes that have ended", .more = ", the newest first" },
	{ "watch", .letter = 'w', .kind = SBX_OPTION_FLAG, AT(watch),
	  .help = "draw the list anew every second until q is typed",
	  .more = " or Ctrl-C (in a terminal; elsewhere it is printed once)" },
	{ "max", .value = "N", .kind = SBX_OPTION_STRING, AT(max), .check = sbx_form_count_check,
	  .help = "list at most N sandboxes", .more = " (default: all that live; with --all 100)" },
	{ "workspace", .value = "W", .kind = SBX_OPTION_STRING, AT(workspace),
	  .check = sbx_form_token, .complete = "workspace",
	  .help = "list only the sandboxes of this workspace" },
	{ "analysis-id", .value = "ID", .kind = SBX_OPTION_STRING, AT(analysis),
	  .check = sbx_form_token, .help = "list only those with this id of the caller's" },
};

/* --- rows --- */

struct list {
	json_t *rows; /* sbx_sandbox_json() of each */
	int64_t cursor;
};

static int add(const struct sbx_store_sandbox_row *s, void *userdata)
{
	struct list *list = userdata;

	list->cursor = s->cursor;
	return json_array_append_new(list->rows, sbx_sandbox_json(s)) == 0 ? 0 : -ENOMEM;
}

/* In pages: a page's rows are read while nothing is printed. */
static int read_rows(struct sbx_ctl *ctl, struct sbx_store *store, json_t *rows)
{
	const struct values *v = ctl->values;
	struct sbx_store_sandbox_filter filter = { .live = !v->all,
						   .workspace = v->workspace,
						   .analysis_id = v->analysis };
	struct list list = { .rows = rows };
	uint64_t max = v->all ? MAX_USUAL : UINT64_MAX, n = 0;
	size_t before;
	int r = 0;

	if (v->max)
		sbx_count_parse(v->max, &max);
	do {
		before = n;
		filter.n_max = max - n < SBX_STORE_PAGE ? (uint32_t)(max - n) : SBX_STORE_PAGE;
		r = sbx_store_sandboxes_each(store, &filter, add, &list, &ctl->err);
		filter.before = list.cursor;
		n = json_array_size(rows);
	} while (r == 0 && n < max && n - before == filter.n_max);
	return r;
}

/* Each time anew: the database may come later, or be another one. */
static int read_now(struct sbx_ctl *ctl, json_t **ret_rows)
{
	SBX_CLEANUP(sbx_store_closep) struct sbx_store *store = NULL;
	json_t *rows = json_array();
	int r = sbx_ctl_store(ctl, &store);

	if (r == SBX_CTL_DONE && store)
		r = sbx_ctl_status(ctl, read_rows(ctl, store, rows), "the sandboxes");
	if (r == SBX_CTL_DONE)
		sbx_sandboxes_now(ctl, rows);
	else
		json_decref(rows);
	*ret_rows = r == SBX_CTL_DONE ? rows : NULL;
	return r;
}

/* --- the table --- */

static const char *text_of(const json_t *row, const char *key)
{
	return json_string_value(json_object_get(row, key));
}

static bool is_dead(const json_t *row)
{
	return json_is_false(json_object_get(row, "launcher_alive"));
}

/* The policy in force, if it is not the one of the start. */
static const char *net_of(const json_t *row)
{
	if (json_is_true(json_object_get(row, "air_gapped")))
		return "air gap";
	return json_integer_value(json_object_get(row, "generation")) > 1 ? "changed" : "";
}

static enum sbx_colour colour_of(const json_t *row)
{
	const char *state = text_of(row, "state");

	if (!json_object_get(row, "ended_ms"))
		return is_dead(row) ? SBX_BAD : SBX_GOOD;
	return strcmp(state, sbx_store_state_str(SBX_STATE_DONE)) == 0 ? SBX_PLAIN : SBX_BAD;
}

static void add_row(struct sbx_ctl *ctl, struct sbx_table *table, const json_t *row)
{
	const struct values *v = ctl->values;
	SBX_AUTO_FREE char *command = sbx_sandbox_command(json_object_get(row, "command"));
	const json_t *exit_status = json_object_get(row, "exit_status");
	int64_t created = json_integer_value(json_object_get(row, "created_ms"));
	char age[SBX_FORM_MAX];

	sbx_table_add(table, SBX_PLAIN, text_of(row, "id"));
	sbx_table_add(table, colour_of(row), is_dead(row) ? "dead" : text_of(row, "state"));
	if (v->all && exit_status)
		sbx_table_addf(table, SBX_PLAIN, "%lld",
			       (long long)json_integer_value(exit_status));
	else if (v->all)
		sbx_table_add(table, SBX_PLAIN, NULL);
	sbx_table_add(table, SBX_PLAIN, sbx_form_age(ctl->out.now_ms - created, age));
	sbx_table_add(table, SBX_PLAIN, text_of(row, "profile"));
	sbx_table_add(table, SBX_PLAIN, text_of(row, "workspace"));
	sbx_table_add(table, SBX_PLAIN, net_of(row));
	sbx_table_add(table, SBX_PLAIN, command);
}

static int print_table(struct sbx_ctl *ctl, const json_t *rows)
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
	SBX_CLEANUP(sbx_table_freep)
	struct sbx_table *table =
		v->all ? sbx_table_new(columns, SBX_N_ELEMENTS(columns)) :
			 sbx_table_new(columns_live, SBX_N_ELEMENTS(columns_live));
	const json_t *row;
	size_t i;

	if (!table)
		return -ENOMEM;
	json_array_foreach(rows, i, row)
	{
		add_row(ctl, table, row);
	}
	return sbx_table_print(table, &ctl->out);
}

/* The sentences below a table. */
static void tell(const struct sbx_ctl *ctl, const json_t *rows)
{
	const struct values *v = ctl->values;
	size_t i, n_dead = 0;
	const json_t *row;

	json_array_foreach(rows, i, row) n_dead += is_dead(row);
	if (json_array_size(rows) == 0)
		sbx_ctl_tell_empty(ctl, v->all ? "no sandbox is recorded: start one with sbx-run "
						 "-- COMMAND" :
						 "no sandbox runs: start one with sbx-run -- "
						 "COMMAND, or list ended ones with --all");
	if (n_dead)
		sbx_ctl_tell_empty(ctl, "the launcher of a dead sandbox was killed: sbxctl gc "
					"removes what it left");
}

/* --- the command --- */

static int draw(struct sbx_ctl *ctl)
{
	json_t *rows = NULL;
	int r = read_now(ctl, &rows), e;

	if (r != SBX_CTL_DONE)
		return r;
	fprintf(ctl->out.f, "%zu sandbox%s; q ends\n", json_array_size(rows),
		json_array_size(rows) == 1 ? "" : "es");
	e = print_table(ctl, rows);
	json_decref(rows);
	return sbx_ctl_status(ctl, e, "the sandboxes");
}

static int run(struct sbx_ctl *ctl)
{
	const struct values *v = ctl->values;
	json_t *rows = NULL;
	int r, e;

	if (v->watch && ctl->out.terminal && !ctl->out.json)
		return sbx_ctl_watch(ctl, draw);
	r = read_now(ctl, &rows);
	if (r != SBX_CTL_DONE)
		return r;
	if (ctl->out.json)
		return sbx_ctl_status(ctl,
				      sbx_out_json(&ctl->out,
						   json_pack("{s:o}", "sandboxes", rows), false),
				      "the sandboxes");
	e = print_table(ctl, rows);
	if (e == 0)
		tell(ctl, rows);
	json_decref(rows);
	return sbx_ctl_status(ctl, e, "the sandboxes");
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
