/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* sbxctl db check, migrate and export */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "ctl/data/data.h"
#include "ctl/data/event_row.h"
#include "ctl/data/rule_row.h"
#include "ctl/frame/places.h"
#include "ctl/live/sandbox_row.h"
#include "store/store_look.h"

SBX_DEFINE_CLEANUP(struct sbx_store, sbx_store_close);

/* --- check --- */

static int run_check(struct sbx_ctl *ctl)
{
	struct sbx_store_look look = { 0 };
	struct sbx_err err = { 0 };
	int r, status = sbx_ctl_places(ctl);
	const char *state;

	if (status != SBX_CTL_DONE)
		return status;
	r = sbx_store_look(ctl->facts.state_dir, &look, &err);
	state = r == -EUCLEAN			 ? "damaged" :
		r != 0				 ? "unreadable" :
		!look.exists			 ? "none" :
		look.version > SBX_STORE_VERSION ? "newer" :
		look.version < SBX_STORE_VERSION ? "older" :
						   "good";
	status = r == 0 && (!look.exists || look.version == SBX_STORE_VERSION) ? SBX_CTL_DONE :
		 r == 0 || r == -EUCLEAN				       ? SBX_CTL_NO :
										 SBX_CTL_FAILED;
	if (ctl->out.json) {
		r = sbx_out_json(&ctl->out,
				 json_pack("{s:o, s:s, s:I, s:i, s:o}", "directory",
					   sbx_json_text(ctl->facts.state_dir), "state", state,
					   "version", (json_int_t)look.version, "newest",
					   SBX_STORE_VERSION, "error",
					   sbx_json_text(err.msg[0] ? err.msg : NULL)),
				 false);
		return r == 0 ? status : sbx_ctl_status(ctl, r, "the answer");
	}
	sbx_out_text(&ctl->out, ctl->facts.state_dir);
	fprintf(ctl->out.f, "/sbx.db: %s, version %lld of %d\n", state, (long long)look.version,
		SBX_STORE_VERSION);
	if (err.msg[0])
		ctl->err = err;
	else if (!look.exists)
		sbx_ctl_tell_empty(ctl, "the first sbx-run makes the database");
	else if (look.version < SBX_STORE_VERSION)
		sbx_err_set(&ctl->err,
			    "sbxctl db migrate, or the next sbx-run, brings it up to date");
	else if (look.version > SBX_STORE_VERSION)
		sbx_err_set(&ctl->err, "a newer sbx made it: use that one");
	return status;
}

const struct sbx_ctl_command sbx_cmd_db_check = {
	.name = "db check",
	.help = "say whether the database is whole and up to date",
	.more = "; nothing is made or changed, and the exit status is 1 if it is not",
	.example = "sbxctl db check",
	.run = run_check,
};

/* --- migrate --- */

static int run_migrate(struct sbx_ctl *ctl)
{
	SBX_CLEANUP(sbx_store_closep) struct sbx_store *store = NULL;
	int r = sbx_ctl_store_make(ctl, &store);

	if (r != SBX_CTL_DONE)
		return r;
	if (ctl->out.json)
		return sbx_ctl_status(ctl,
				      sbx_out_json(&ctl->out,
						   json_pack("{s:o, s:i}", "directory",
							     sbx_json_text(ctl->facts.state_dir),
							     "version", SBX_STORE_VERSION),
						   false),
				      "the answer");
	sbx_out_text(&ctl->out, ctl->facts.state_dir);
	fprintf(ctl->out.f, "/sbx.db: version %d\n", SBX_STORE_VERSION);
	return SBX_CTL_DONE;
}

const struct sbx_ctl_command sbx_cmd_db_migrate = {
	.name = "db migrate",
	.help = "bring the database up to date, and make it where there is none",
	.more = "; sbx-run does the same at its start",
	.example = "sbxctl db migrate",
	.run = run_migrate,
};

/* --- export --- */

struct export
{
	struct sbx_ctl *ctl;
	size_t n;
	int64_t at;
};

/* A line: {"table": "...", "row": {...}}. */
static int put(struct export *x, const char *table, json_t *row)
{
	x->n++;
	return sbx_out_json(&x->ctl->out, json_pack("{s:s, s:o}", "table", table, "row", row),
			    true);
}

static int put_sandbox(const struct sbx_store_sandbox_row *s, void *userdata)
{
	struct export *x = userdata;
	json_t *row = sbx_sandbox_json(s);

	x->at = s->cursor;
	json_object_set_new(row, "policy_hash", sbx_json_text(s->policy_hash));
	json_object_set_new(row, "selftest", sbx_json_parse(s->selftest_json));
	json_object_set_new(row, "receipt", sbx_json_parse(s->receipt_json));
	return put(x, "sandbox", row);
}

static int put_event(const struct sbx_store_event_row *e, void *userdata)
{
	struct export *x = userdata;

	x->at = e->id;
	return put(x, "event", sbx_event_json(e));
}

static int put_rule(const struct sbx_store_rule *r, void *userdata)
{
	return put(userdata, "rule", sbx_rule_json(r));
}

static int put_workspace(const struct sbx_store_workspace *w, void *userdata)
{
	return put(userdata, "workspace",
		   json_pack("{s:o, s:o, s:o, s:I}", "name", sbx_json_text(w->name),
			     "network_default", sbx_json_text(w->default_action), "changed_by",
			     sbx_json_text(w->changed_by), "changed_ms",
			     (json_int_t)w->changed_ms));
}

static int put_task(const struct sbx_store_task_row *t, void *userdata)
{
	struct export *x = userdata;

	x->at = t->id;
	return put(x, "task", sbx_task_json(t));
}

/* Pages that begin behind the last row of the one before. */
static int put_pages(struct export *x, struct sbx_store *store)
{
	struct sbx_store_sandbox_filter sandboxes = { 0 };
	struct sbx_store_event_filter events = { 0 };
	struct sbx_store_task_filter tasks = { 0 };
	int r = 0;

	for (x->n = SBX_STORE_PAGE; r == 0 && x->n == SBX_STORE_PAGE; sandboxes.before = x->at) {
		x->n = 0;
		r = sbx_store_sandboxes_each(store, &sandboxes, put_sandbox, x, &x->ctl->err);
	}
	for (x->n = SBX_STORE_PAGE; r == 0 && x->n == SBX_STORE_PAGE; events.after = x->at) {
		x->n = 0;
		r = sbx_store_events_page(store, &events, put_event, x, &x->ctl->err);
	}
	for (x->n = SBX_STORE_PAGE; r == 0 && x->n == SBX_STORE_PAGE; tasks.before = x->at) {
		x->n = 0;
		r = sbx_store_tasks_each(store, &tasks, put_task, x, &x->ctl->err);
	}
	return r;
}

static int run_export(struct sbx_ctl *ctl)
{
	SBX_CLEANUP(sbx_store_closep) struct sbx_store *store = NULL;
	struct export x = { .ctl = ctl };
	int r = sbx_ctl_store(ctl, &store);

	if (r != SBX_CTL_DONE)
		return r;
	if (!store) {
		sbx_ctl_tell_empty(ctl,
				   "no sandbox has run yet, so there is no database: start one "
				   "with sbx-run -- COMMAND");
		return SBX_CTL_DONE;
	}
	r = sbx_store_rules_each(store, NULL, put_rule, &x, &ctl->err);
	if (r == 0)
		r = sbx_store_workspaces_each(store, NULL, put_workspace, &x, &ctl->err);
	if (r == 0)
		r = put_pages(&x, store);
	return sbx_ctl_status(ctl, r, "the database");
}

const struct sbx_ctl_command sbx_cmd_db_export = {
	.name = "db export",
	.help = "print every row as JSON, one line each",
	.more = ": rules, workspaces, sandboxes, events and tasks",
	.example = "sbxctl db export",
	.run = run_export,
};
