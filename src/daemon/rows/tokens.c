/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tokens of programs that call the service. The text of one is in the answer that makes it, and
 * nowhere else. */
#include <errno.h>
#include <string.h>

#include "daemon/resources/audit.h"
#include "daemon/resources/daemon.h"
#include "daemon/resources/print.h"
#include "daemon/resources/sandbox_find.h"
#include "daemon/rows/rows.h"
#include "store/secret_text.h"
#include "store/store_rules.h"
#include "store/store_service.h"
#include "sys/process/proc.h"

static json_t *print(const struct sbx_store_token *t)
{
	json_t *o = json_object();

	json_object_set_new(o, "name", sbx_print_text(t->name));
	json_object_set_new(o, "role", sbx_print_text(t->role));
	json_object_set_new(o, "workspace", sbx_print_text(t->workspace));
	json_object_set_new(o, "created_by", sbx_print_text(t->created_by));
	json_object_set_new(o, "created_at", sbx_print_time(t->created_ms));
	json_object_set_new(o, "expires_at", sbx_print_time(t->expires_ms));
	json_object_set_new(o, "last_used_at", sbx_print_time(t->last_used_ms));
	return o;
}

static int take_row(const struct sbx_store_token *t, void *userdata)
{
	return json_array_append_new(userdata, print(t)) == 0 ? 0 : -ENOMEM;
}

void sbx_list_tokens(struct sbx_call *call)
{
	struct sbx_page p = { .items = json_array() };
	struct sbx_err err = { 0 };
	int r = sbx_store_tokens_each(call->daemon->store, take_row, p.items, &err);

	sbx_call_page(call, &p, r, &err);
}

static void reply_failed(struct sbx_call *call, int r, const struct sbx_err *err)
{
	if (r == SBX_STORE_E_EXISTS)
		sbx_reply_problem(call, 409, "exists", "name", "there is a token of this name");
	else if (r == SBX_STORE_E_UNKNOWN)
		sbx_reply_unknown(call, "token");
	else
		sbx_call_store_failed(call, r, err);
}

/* --- add --- */

static int add(struct sbx_call *call, const struct sbx_store_token *t, struct sbx_err *err,
	       json_t **ret_after)
{
	struct sbx_store *store = call->daemon->store;
	int r = sbx_store_begin(store, err);

	*ret_after = print(t);
	r = r ? r : sbx_store_token_add(store, t, err);
	r = r ? r : sbx_audit(call, t->name, NULL, *ret_after, err);
	return sbx_store_end(store, r, err);
}

void sbx_add_token(struct sbx_call *call)
{
	const json_t *expires = json_object_get(call->body, "expires_s");
	char text[SBX_API_TOKEN_MAX], hash[SBX_SECRET_HASH_MAX];
	struct sbx_store_token t = {
		.name = json_string_value(json_object_get(call->body, "name")),
		.hash = hash,
		.role = json_string_value(json_object_get(call->body, "role")),
		.workspace = json_string_value(json_object_get(call->body, "workspace")),
		.created_by = call->principal.name,
		.created_ms = (int64_t)sbx_clock_realtime_ms(),
	};
	struct sbx_err err = { 0 };
	json_t *after = NULL;
	int r;

	if (t.workspace && strcmp(t.role, "admin") == 0) {
		sbx_reply_problem(call, 422, "invalid", "workspace",
				  "an admin is not of one workspace");
		return;
	}
	if (expires)
		t.expires_ms = t.created_ms + json_integer_value(expires) * 1000;
	r = sbx_api_token_make(text);
	sbx_secret_hash(text, hash);
	r = r ? r : add(call, &t, &err, &after);
	if (r == 0) {
		json_object_set_new(after, "token", json_string(text));
		sbx_reply_json(call, 201, after);
	} else {
		json_decref(after);
		reply_failed(call, r, &err);
	}
	explicit_bzero(text, sizeof(text));
}

/* --- remove --- */

struct wanted {
	const char *name;
	json_t *token; /* NULL: there is none */
};

static int take_wanted(const struct sbx_store_token *t, void *userdata)
{
	struct wanted *w = userdata;

	if (strcmp(t->name, w->name) == 0)
		w->token = print(t);
	return 0;
}

void sbx_delete_token(struct sbx_call *call)
{
	struct sbx_store *store = call->daemon->store;
	struct wanted w = { .name = call->found.params[0] };
	struct sbx_err err = { 0 };
	int r = sbx_store_begin(store, &err);

	r = r ? r : sbx_store_tokens_each(store, take_wanted, &w, &err);
	r = r ? r : sbx_store_token_remove(store, w.name, &err);
	r = r ? r : sbx_audit(call, w.name, w.token, NULL, &err);
	r = sbx_store_end(store, r, &err);
	json_decref(w.token);
	if (r == 0)
		sbx_reply_empty(call, 204);
	else
		reply_failed(call, r, &err);
}
