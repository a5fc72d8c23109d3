/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Workspaces: names that have settings, rules or sandboxes. */
#include <errno.h>
#include <string.h>

#include "daemon/http/etag.h"
#include "daemon/resources/audit.h"
#include "daemon/resources/daemon.h"
#include "daemon/resources/print.h"
#include "daemon/resources/sandbox_find.h"
#include "daemon/rows/followed.h"
#include "daemon/rows/rows.h"
#include "policy/forms/option_form.h"
#include "store/store_rules.h"
#include "sys/process/proc.h"

static json_t *print(const struct sbx_store_workspace *w)
{
	return json_pack("{s:o, s:o, s:I, s:o, s:o}", "name", sbx_print_text(w->name),
			 "network_default_action", sbx_print_text(w->default_action), "n_rules",
			 (json_int_t)w->n_rules, "changed_by", sbx_print_text(w->changed_by),
			 "changed_at", sbx_print_time(w->changed_ms));
}

/* --- the list --- */

struct page {
	const struct sbx_principal *principal;
	int64_t offset, at; /* workspaces to pass over; those that came */
	struct sbx_page page;
};

static int take_row(const struct sbx_store_workspace *w, void *userdata)
{
	struct page *p = userdata;

	if (!w->name || !sbx_principal_sees_workspace(p->principal, w->name))
		return 0;
	if (p->at++ < p->offset)
		return 0;
	return sbx_page_add(&p->page, print(w), p->at);
}

void sbx_list_workspaces(struct sbx_call *call)
{
	struct page p = { .principal = &call->principal,
			  .offset = sbx_call_number(call, "cursor", 0),
			  .page = { .items = json_array(),
				    .limit = sbx_call_number(call, "limit", SBX_ROWS_LIMIT) } };
	struct sbx_err err = { 0 };
	int r = sbx_store_workspaces_each(call->daemon->store, NULL, take_row, &p, &err);

	sbx_call_page(call, &p.page, r, &err);
}

/* --- one --- */

static int take_one(const struct sbx_store_workspace *w, void *userdata)
{
	json_t **ret = userdata;

	*ret = print(w);
	return *ret ? 0 : -ENOMEM;
}

/* Answers unless the caller may see @name, and it is a name. */
static bool may_see(struct sbx_call *call, const char *name)
{
	if (!sbx_form_token(name) && sbx_principal_sees_workspace(&call->principal, name))
		return true;
	sbx_reply_unknown(call, "workspace");
	return false;
}

void sbx_get_settings(struct sbx_call *call)
{
	const char *name = call->found.params[0];
	struct sbx_err err = { 0 };
	json_t *now = NULL;
	int r;

	if (!may_see(call, name))
		return;
	r = sbx_store_workspaces_each(call->daemon->store, name, take_one, &now, &err);
	if (r == 0) {
		json_object_del(now, "n_rules");
		sbx_reply_tagged(call, now);
	} else {
		sbx_call_store_failed(call, r, &err);
	}
}

/* Writes the settings and the audit row. @is_new: there must be none yet. False: it was
 * answered. */
static bool write_settings(struct sbx_call *call, const char *name, bool is_new, json_t **ret_after)
{
	struct sbx_store *store = call->daemon->store;
	const struct sbx_store_workspace w = {
		.name = name,
		.default_action =
			json_string_value(json_object_get(call->body, "network_default_action")),
		.changed_by = call->principal.name,
		.changed_ms = (int64_t)sbx_clock_realtime_ms(),
	};
	json_t *before = NULL, *after = NULL;
	struct sbx_err err = { 0 };
	bool answered = false;
	int r = sbx_store_begin(store, &err);

	r = r ? r : sbx_store_workspaces_each(store, name, take_one, &before, &err);
	if (r == 0) {
		if (!is_new)
			json_object_del(before, "n_rules");
		if (is_new && !json_is_null(json_object_get(before, "changed_at"))) {
			sbx_reply_problem(call, 409, "exists", "name",
					  "there is a workspace of this name");
			answered = true;
		} else if (!sbx_call_matches(call, before)) {
			answered = true;
		}
	}
	if (answered)
		r = -ECANCELED;
	r = r ? r : sbx_store_workspace_set(store, &w, &err);
	r = r ? r : sbx_store_workspaces_each(store, name, take_one, &after, &err);
	r = r ? r : sbx_audit(call, name, before, after, &err);
	r = sbx_store_end(store, r, &err);
	json_decref(before);
	if (r == 0) {
		*ret_after = after;
		return true;
	}
	json_decref(after);
	if (!answered)
		sbx_call_store_failed(call, r, &err);
	return false;
}

void sbx_put_settings(struct sbx_call *call)
{
	const char *name = call->found.params[0];
	json_t *after = NULL;

	if (!may_see(call, name) || !write_settings(call, name, false, &after))
		return;
	json_object_del(after, "n_rules");
	sbx_reply_followed(call, name, 200, after);
}

void sbx_add_workspace(struct sbx_call *call)
{
	const char *name = json_string_value(json_object_get(call->body, "name"));
	json_t *after = NULL;

	if (may_see(call, name) && write_settings(call, name, true, &after))
		sbx_reply_followed(call, name, 201, after);
}
