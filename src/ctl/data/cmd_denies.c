/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* sbxctl denies: refusals added up, with what would allow them. */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "ctl/data/data.h"
#include "ctl/frame/list.h"
#include "ctl/frame/places.h"
#include "ctl/print/form.h"
#include "launcher/record/refusals.h"
#include "policy/decide/policy.h"
#include "policy/forms/option_form.h"
#include "policy/forms/units.h"
#include "store/store_list.h"

#define MAX_USUAL 50
#define ANY_ID	  "sbxctl net ID " /* left out in the table: the flag alone fits a terminal */

SBX_DEFINE_CLEANUP(struct sbx_store, sbx_store_close);

static const char *const by_words[] = { "address", "name", "sandbox", "workspace", "reason" };
_Static_assert(SBX_N_ELEMENTS(by_words) == SBX_N_DENIES_BY, "a word for each");

static int by_of(const char *word)
{
	int i = 0;

	while (i < SBX_N_DENIES_BY && strcmp(word, by_words[i]) != 0)
		i++;
	return i;
}

static const char *check_by(const char *s)
{
	return by_of(s) < SBX_N_DENIES_BY ?
		       NULL :
		       "it must be address, name, sandbox, workspace or reason";
}

struct values {
	const char *by, *since, *sandbox, *workspace, *max;
};

#define STRING(field) .kind = SBX_OPTION_STRING, .offset = offsetof(struct values, field)

static const struct sbx_option options[] = {
	{ "by", .value = "WHAT", STRING(by), .check = check_by, .complete = "by",
	  .help = "count by address, name, sandbox, workspace or reason",
	  .more = " (default: name)" },
	{ "since", .value = "TIME", STRING(since), .check = sbx_form_instant_check,
	  .help = "count refusals from then on",
	  .more = ": an age (10m, 2h, 3d) or a time in UTC" },
	{ "sandbox", .value = "ID", STRING(sandbox), .check = sbx_form_not_empty, .complete = "any",
	  .help = "count only those of this sandbox" },
	{ "workspace", .value = "W", STRING(workspace), .check = sbx_form_token,
	  .complete = "workspace", .help = "count only those of this workspace" },
	{ "max", .value = "N", STRING(max), .check = sbx_form_count_check,
	  .help = "print at most N lines", .more = " (default: 50)" },
};

struct list {
	struct sbx_list rows;
	bool by_sandbox;
};

static void list_fini(struct list *l)
{
	sbx_list_fini(&l->rows);
}

/* The remedy for a refusal. "" if there is none. */
static void remedy_of(const struct list *list, const struct sbx_store_denies_row *d,
		      const char *entry, char *buf, size_t n_buf)
{
	const struct values *v = list->rows.ctl->values;
	enum sbx_reason reason = sbx_reason_find(d->last_reason);
	const char *text = reason == SBX_REASON_AIR_GAP ?
				   "--no-air-gap (nothing lifts mode offline)" :
				   sbx_policy_remedy(reason);

	if (entry[0] && v->workspace)
		sbx_text_cut(buf, n_buf, "sbxctl rules add --workspace %s --action allow '%s'",
			     v->workspace, entry);
	else if (entry[0])
		sbx_text_cut(buf, n_buf, "sbxctl net %s --allow '%s'",
			     list->by_sandbox && d->key ? d->key :
			     v->sandbox			? v->sandbox :
							  "ID",
			     entry);
	else
		sbx_text_cut(buf, n_buf, "%s", text ? text : "");
}

static int add(const struct sbx_store_denies_row *d, void *userdata)
{
	struct list *list = userdata;
	struct sbx_table *table = list->rows.table;
	char entry[SBX_REFUSAL_ALLOW_MAX], remedy[1024], age[SBX_FORM_MAX];
	int64_t last_ms;

	sbx_refusal_row_allow(d, entry);
	remedy_of(list, d, entry, remedy, sizeof(remedy));
	if (list->rows.json) {
		json_t *o =
			json_pack("{s:o, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "key",
				  sbx_json_text(d->key), "count", (json_int_t)d->count,
				  "n_sandboxes", (json_int_t)d->n_sandboxes, "first_ts",
				  sbx_json_text(d->first_ts), "last_ts", sbx_json_text(d->last_ts),
				  "last_reason", sbx_json_text(d->last_reason), "last_name",
				  sbx_json_text(d->last_name), "last_ip", sbx_json_text(d->last_ip),
				  "last_rule", sbx_json_text(d->last_rule), "allow",
				  sbx_json_text(entry[0] ? entry : NULL));

		if (d->last_port != SBX_STORE_NONE)
			json_object_set_new(o, "last_port", json_integer(d->last_port));
		json_object_set_new(o, "remedy", sbx_json_text(remedy[0] ? remedy : NULL));
		return sbx_list_add(&list->rows, o);
	}
	sbx_table_addf(table, SBX_PLAIN, "%lld", (long long)d->count);
	sbx_table_add(table, SBX_PLAIN, d->key);
	sbx_table_addf(table, SBX_PLAIN, "%lld", (long long)d->n_sandboxes);
	if (d->last_ts && sbx_form_instant(d->last_ts, list->rows.ctl->out.now_ms, &last_ms) == 0)
		sbx_table_add(table, SBX_PLAIN,
			      sbx_form_age(list->rows.ctl->out.now_ms - last_ms, age));
	else
		sbx_table_add(table, SBX_PLAIN, d->last_ts);
	sbx_table_add(table, SBX_BAD, d->last_reason);
	if (entry[0] && strncmp(remedy, ANY_ID, strlen(ANY_ID)) == 0)
		sbx_table_add(table, SBX_PLAIN, remedy + strlen(ANY_ID));
	else
		sbx_table_add(table, SBX_PLAIN, remedy);
	return 0;
}

static int read_rows(struct sbx_ctl *ctl, struct sbx_store *store, enum sbx_store_denies_by by,
		     struct list *list)
{
	const struct values *v = ctl->values;
	struct sbx_store_event_filter filter = { .workspace = v->workspace };
	char id[SBX_ID_LEN + 1] = "";
	uint64_t max = MAX_USUAL;
	int r;

	if (v->max)
		sbx_count_parse(v->max, &max);
	filter.n_max = (uint32_t)max;
	if (v->since)
		sbx_form_instant(v->since, ctl->out.now_ms, &filter.since_ms);
	if (v->sandbox) {
		r = sbx_store_sandbox_find(store, v->sandbox, id, &ctl->err);
		if (r != 0)
			return r;
		filter.sandbox_id = id;
	}
	return sbx_store_denies_each(store, by, &filter, add, list, &ctl->err);
}

static int run(struct sbx_ctl *ctl)
{
	static const struct sbx_column columns[] = {
		{ "COUNT", .right = true },	{ "WHAT", .shrinks = true },
		{ "RUNS", .right = true },	{ "LAST", .shrinks = false },
		{ "REASON", .shrinks = false }, { "REMEDY", .shrinks = true },
	};
	const struct values *v = ctl->values;
	int by = v->by ? by_of(v->by) : SBX_DENIES_BY_NAME;
	SBX_CLEANUP(sbx_store_closep) struct sbx_store *store = NULL;
	SBX_CLEANUP(list_fini)
	struct list list = { .by_sandbox = by == SBX_DENIES_BY_SANDBOX };
	int r = sbx_ctl_store(ctl, &store);

	if (r != SBX_CTL_DONE)
		return r;
	r = sbx_list_init(&list.rows, ctl, columns, SBX_N_ELEMENTS(columns));
	if (r == 0 && store)
		r = read_rows(ctl, store, (enum sbx_store_denies_by)by, &list);
	if (r == 0 && ctl->out.json)
		r = sbx_out_json(
			&ctl->out,
			json_pack("{s:s, s:O}", "by", by_words[by], "denies", list.rows.json),
			false);
	else if (r == 0)
		r = sbx_list_print(&list.rows, "denies",
				   store ? "nothing was refused" :
					   "no sandbox has run yet: start one with sbx-run -- "
					   "COMMAND");
	return sbx_ctl_status(ctl, r, "the refusals");
}

const struct sbx_ctl_command sbx_cmd_denies = {
	.name = "denies",
	.options = options,
	.n_options = SBX_N_ELEMENTS(options),
	.n_values = sizeof(struct values),
	.help = "count what sandboxes were refused, the most frequent first",
	.more = ", and say what would allow it",
	.example = "sbxctl denies --by name --since 1h",
	.run = run,
};
