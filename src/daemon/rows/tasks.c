/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tasks for people who review: sandboxes whose refusals somebody should look at. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "daemon/resources/audit.h"
#include "daemon/resources/daemon.h"
#include "daemon/resources/print.h"
#include "daemon/resources/sandbox_find.h"
#include "daemon/rows/rows.h"
#include "daemon/rows/scope.h"
#include "store/store_list.h"
#include "store/store_rules.h"

static json_t *print(const struct sbx_store_task_row *t)
{
	json_t *o = json_object();

	json_object_set_new(o, "id", json_integer(t->id));
	json_object_set_new(o, "sandbox_id", sbx_print_text(t->sandbox_id));
	json_object_set_new(o, "workspace", sbx_print_text(t->workspace));
	json_object_set_new(o, "cause", sbx_print_text(t->cause));
	json_object_set_new(o, "state", sbx_print_text(t->state));
	json_object_set_new(o, "n_denies", json_integer(t->n_denies));
	json_object_set_new(o, "first_at", sbx_print_time(t->first_ms));
	json_object_set_new(o, "last_at", sbx_print_time(t->last_ms));
	json_object_set_new(o, "note", sbx_print_text(t->note));
	return o;
}

static int take_row(const struct sbx_store_task_row *t, void *userdata)
{
	return sbx_page_add(userdata, print(t), t->id);
}

void sbx_list_tasks(struct sbx_call *call)
{
	struct sbx_page p = { .limit = sbx_call_number(call, "limit", SBX_ROWS_LIMIT) };
	struct sbx_store_task_filter filter = { .state = sbx_call_text(call, "state"),
						.before = sbx_call_number(call, "cursor", 0),
						.n_max = (uint32_t)p.limit + 1 };
	struct sbx_err err = { 0 };
	struct sbx_scope scope;
	int r;

	if (!sbx_call_scope(call, &scope))
		return;
	filter.workspace = scope.workspace;
	filter.by_owner = scope.by_owner;
	filter.owner_uid = scope.owner_uid;
	p.items = json_array();
	r = sbx_store_tasks_each(call->daemon->store, &filter, take_row, &p, &err);
	sbx_call_page(call, &p, r, &err);
}

/* --- a change --- */

static int take_one(const struct sbx_store_task_row *t, void *userdata)
{
	json_t **ret = userdata;

	*ret = print(t);
	return 0;
}

/* *ret_task is NULL if the caller sees none of this id. */
static int read_task(struct sbx_call *call, int64_t id, json_t **ret_task, struct sbx_err *err)
{
	const struct sbx_principal *p = &call->principal;
	const struct sbx_store_task_filter filter = {
		.id = id,
		.workspace = p->workspace[0] ? p->workspace : NULL,
		.by_owner = p->own_only,
		.owner_uid = p->uid,
	};

	return sbx_store_tasks_each(call->daemon->store, &filter, take_one, ret_task, err);
}

void sbx_set_task(struct sbx_call *call)
{
	struct sbx_store *store = call->daemon->store;
	const char *state = json_string_value(json_object_get(call->body, "state"));
	const char *note = json_string_value(json_object_get(call->body, "note"));
	int64_t id = sbx_call_id(call, 0);
	json_t *before = NULL, *after = NULL;
	struct sbx_err err = { 0 };
	char object[32];
	int r = sbx_store_begin(store, &err);

	r = r || !id ? r : read_task(call, id, &before, &err);
	if (r == 0 && !before)
		r = SBX_STORE_E_UNKNOWN;
	r = r ? r : sbx_store_task_set(store, id, strcmp(state, "open") == 0, note, &err);
	r = r ? r : read_task(call, id, &after, &err);
	sbx_text_fit(object, sizeof(object), "task %lld", (long long)id);
	r = r ? r : sbx_audit(call, object, before, after, &err);
	r = sbx_store_end(store, r, &err);
	json_decref(before);
	if (r == 0) {
		sbx_reply_json(call, 200, after);
		return;
	}
	json_decref(after);
	if (r == SBX_STORE_E_UNKNOWN)
		sbx_reply_unknown(call, "task");
	else
		sbx_call_store_failed(call, r, &err);
}
