/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* sbxctl review list and close: sandboxes whose refusals somebody should look at. */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "ctl/data/data.h"
#include "ctl/frame/list.h"
#include "ctl/frame/places.h"
#include "ctl/print/form.h"
#include "policy/forms/option_form.h"
#include "policy/forms/units.h"

SBX_DEFINE_CLEANUP(struct sbx_store, sbx_store_close);

struct values {
	bool all;
	const char *workspace, *note;
};

/* --- list --- */

struct list {
	struct sbx_list rows;
	size_t n; /* of the page that was read last */
	int64_t last;
};

static void list_fini(struct list *l)
{
	sbx_list_fini(&l->rows);
}

json_t *sbx_task_json(const struct sbx_store_task_row *t)
{
	return json_pack("{s:I, s:o, s:o, s:o, s:o, s:I, s:I, s:I, s:o}", "id", (json_int_t)t->id,
			 "sandbox_id", sbx_json_text(t->sandbox_id), "workspace",
			 sbx_json_text(t->workspace), "cause", sbx_json_text(t->cause), "state",
			 sbx_json_text(t->state), "n_denies", (json_int_t)t->n_denies, "first_ms",
			 (json_int_t)t->first_ms, "last_ms", (json_int_t)t->last_ms, "note",
			 sbx_json_text(t->note));
}

static int add_row(const struct sbx_store_task_row *t, void *userdata)
{
	struct list *list = userdata;
	struct sbx_table *table = list->rows.table;
	char age[SBX_FORM_MAX];

	list->n++;
	list->last = t->id;
	if (list->rows.json)
		return sbx_list_add(&list->rows, sbx_task_json(t));
	sbx_table_addf(table, SBX_PLAIN, "%lld", (long long)t->id);
	sbx_table_add(table, strcmp(t->state, "open") == 0 ? SBX_BAD : SBX_PLAIN, t->state);
	sbx_table_add(table, SBX_PLAIN, t->sandbox_id);
	sbx_table_add(table, SBX_PLAIN, t->workspace);
	sbx_table_addf(table, SBX_PLAIN, "%lld", (long long)t->n_denies);
	sbx_table_add(table, SBX_PLAIN, sbx_form_age(list->rows.ctl->out.now_ms - t->last_ms, age));
	sbx_table_add(table, SBX_PLAIN, t->cause);
	sbx_table_add(table, SBX_PLAIN, t->note);
	return 0;
}

static int read_rows(struct sbx_ctl *ctl, struct sbx_store *store, struct list *list)
{
	const struct values *v = ctl->values;
	struct sbx_store_task_filter filter = { .state = v->all ? NULL : "open",
						.workspace = v->workspace };
	int r = 0;

	do {
		list->n = 0;
		r = sbx_store_tasks_each(store, &filter, add_row, list, &ctl->err);
		filter.before = list->last;
	} while (r == 0 && list->n == SBX_STORE_PAGE);
	return r;
}

static int run_list(struct sbx_ctl *ctl)
{
	static const struct sbx_column columns[] = {
		{ "ID", .right = true },	 { "STATE", .shrinks = false },
		{ "SANDBOX", .shrinks = false }, { "WORKSPACE", .shrinks = true },
		{ "DENIES", .right = true },	 { "LAST", .right = true },
		{ "CAUSE", .shrinks = true },	 { "NOTE", .shrinks = true },
	};
	SBX_CLEANUP(sbx_store_closep) struct sbx_store *store = NULL;
	SBX_CLEANUP(list_fini) struct list list = { .n = 0 };
	int r = sbx_ctl_store(ctl, &store);

	if (r != SBX_CTL_DONE)
		return r;
	r = sbx_list_init(&list.rows, ctl, columns, SBX_N_ELEMENTS(columns));
	if (r == 0 && store)
		r = read_rows(ctl, store, &list);
	if (r == 0)
		r = sbx_list_print(&list.rows, "tasks",
				   "there is nothing to review (a profile's `review` says when a "
				   "sandbox is reported)");
	return sbx_ctl_status(ctl, r, "the tasks");
}

static const struct sbx_option list_options[] = {
	{ "all", .letter = 'a', .kind = SBX_OPTION_FLAG, .offset = offsetof(struct values, all),
	  .help = "list also closed tasks" },
	{ "workspace", .value = "W", .kind = SBX_OPTION_STRING,
	  .offset = offsetof(struct values, workspace), .check = sbx_form_token,
	  .complete = "workspace", .help = "list only those of this workspace" },
};

const struct sbx_ctl_command sbx_cmd_review_list = {
	.name = "review list",
	.options = list_options,
	.n_options = SBX_N_ELEMENTS(list_options),
	.n_values = sizeof(struct values),
	.help = "list the sandboxes whose refusals somebody should look at",
	.example = "sbxctl review list",
	.run = run_list,
};

/* --- close --- */

static int run_close(struct sbx_ctl *ctl)
{
	const struct values *v = ctl->values;
	SBX_CLEANUP(sbx_store_closep) struct sbx_store *store = NULL;
	uint64_t id;
	int r;

	if (sbx_count_parse(ctl->argv[0], &id) != 0 || id == 0 || id > INT64_MAX) {
		sbx_err_set(&ctl->err,
			    "'%s' is no id of a task: it is a number (sbxctl review "
			    "list)",
			    ctl->argv[0]);
		return SBX_CTL_USAGE;
	}
	r = sbx_ctl_store(ctl, &store);
	if (r != SBX_CTL_DONE)
		return r;
	r = store ? sbx_store_task_set(store, (int64_t)id, false, v->note, &ctl->err) :
		    SBX_STORE_E_UNKNOWN;
	if (r == SBX_STORE_E_UNKNOWN)
		sbx_err_set(&ctl->err, "there is no task %s (sbxctl review list)", ctl->argv[0]);
	if (r == 0 && ctl->out.json)
		r = sbx_out_json(&ctl->out, json_pack("{s:I}", "id", (json_int_t)id), false);
	else if (r == 0)
		fprintf(ctl->out.f, "%s: closed\n", ctl->argv[0]);
	return sbx_ctl_status(ctl, r, "the task");
}

static const struct sbx_option close_options[] = {
	{ "note", .value = "TEXT", .kind = SBX_OPTION_STRING,
	  .offset = offsetof(struct values, note), .help = "what was found" },
};

const struct sbx_ctl_command sbx_cmd_review_close = {
	.name = "review close",
	.args = "ID",
	.n_min = 1,
	.n_max = 1,
	.options = close_options,
	.n_options = SBX_N_ELEMENTS(close_options),
	.n_values = sizeof(struct values),
	.help = "close a task of review list",
	.more = "; later refusals of the same cause do not open it again",
	.example = "sbxctl review close 7 --note 'a mirror was missing'",
	.run = run_close,
};
