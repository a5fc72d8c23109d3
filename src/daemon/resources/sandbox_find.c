/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/resources/sandbox_find.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "daemon/resources/daemon.h"
#include "daemon/resources/print.h"
#include "store/store_service.h"

/* --- owners --- */

struct owner {
	json_t *sandbox; /* borrowed; gets what the row tells */
	uid_t uid;
};

static int take_owner(const struct sbx_store_api_sandbox *s, void *userdata)
{
	struct owner *o = userdata;

	o->uid = s->owner_uid;
	json_object_set_new(o->sandbox, "owner", sbx_print_text(s->owner));
	json_object_set_new(o->sandbox, "metadata", sbx_print_json(s->metadata_json));
	json_object_set_new(o->sandbox, "timeout_at", sbx_print_time(s->timeout_ms));
	return 0;
}

int sbx_sandbox_owner(struct sbx_store *store, json_t *sandbox, uid_t *ret_uid, struct sbx_err *err)
{
	const char *id = json_string_value(json_object_get(sandbox, "id"));
	struct owner o = { .sandbox = sandbox, .uid = getuid() };
	int r = sbx_store_api_sandbox_get(store, id ? id : "", take_owner, &o, err);

	if (r == SBX_STORE_E_UNKNOWN) {
		json_object_set_new(sandbox, "owner", json_null());
		json_object_set_new(sandbox, "metadata", json_object());
		json_object_set_new(sandbox, "timeout_at", json_null());
		r = 0;
	}
	*ret_uid = o.uid;
	return r;
}

/* --- one --- */

static int take(const struct sbx_store_sandbox_row *s, void *userdata)
{
	json_t **sandbox = userdata;

	*sandbox = sbx_print_sandbox(s);
	return *sandbox ? 0 : -ENOMEM;
}

json_t *sbx_call_sandbox(struct sbx_call *call, const char *id)
{
	struct sbx_store *store = call->daemon->store;
	struct sbx_err err = { 0 };
	json_t *sandbox = NULL;
	const char *workspace;
	uid_t owner = (uid_t)-1;
	int r = sbx_id_is_valid(id) ? sbx_store_sandbox_get(store, id, take, &sandbox, &err) :
				      SBX_STORE_E_UNKNOWN;

	r = r ? r : sbx_sandbox_owner(store, sandbox, &owner, &err);
	workspace = json_string_value(json_object_get(sandbox, "workspace"));
	if (r == 0 && sbx_principal_sees(&call->principal, workspace, owner))
		return sandbox;
	json_decref(sandbox);
	if (r >= 0)
		sbx_reply_unknown(call, "sandbox");
	else
		sbx_call_store_failed(call, r, &err);
	return NULL;
}

void sbx_call_ask(struct sbx_call *call, const char *id, json_t *request_take, sbx_ask_fn fn,
		  void *userdata)
{
	sbx_ask(call->daemon->base, call->daemon->facts.runtime_dir, id, request_take, NULL, 0, fn,
		userdata);
}

void sbx_call_refused(struct sbx_call *call, int result, json_t *answer, const struct sbx_err *err)
{
	static const int statuses[SBX_N_CONTROL_CODES] = {
		[SBX_CONTROL_INVALID] = 422, [SBX_CONTROL_DENIED] = 403,
		[SBX_CONTROL_UNKNOWN] = 404, [SBX_CONTROL_GONE] = 409,
		[SBX_CONTROL_BUSY] = 409,    [SBX_CONTROL_FAILED] = 502,
		[SBX_CONTROL_CHANGED] = 412,
	};
	enum sbx_control_code code;

	switch (result) {
	case SBX_CONTROL_E_REFUSED:
		code = sbx_control_refusal_code(answer);
		sbx_reply_problem(call, statuses[code], sbx_control_code_str(code),
				  json_string_value(json_object_get(answer, "field")), "%s",
				  err->msg);
		return;
	case SBX_CONTROL_E_NONE:
	case SBX_CONTROL_E_GONE:
		sbx_reply_problem(call, 409, "gone", NULL, "the sandbox has ended");
		return;
	case SBX_CONTROL_E_TIMED_OUT:
		sbx_reply_problem(call, 504, "timed_out", NULL, "%s", err->msg);
		return;
	default:
		sbx_reply_problem(call, 502, "failed", NULL, "%s", err->msg);
	}
}

void sbx_call_child_failed(struct sbx_call *call, int result, const struct sbx_err *err)
{
	if (result == SBX_CHILD_E_BUSY)
		sbx_reply_problem(call, 503, "busy", NULL, "%s: try again", err->msg);
	else if (result == SBX_CHILD_E_TIMED_OUT)
		sbx_reply_problem(call, 504, "timed_out", NULL, "%s", err->msg);
	else
		sbx_reply_problem(call, 502, "failed", NULL, "%s", err->msg);
}

void sbx_call_store_failed(struct sbx_call *call, int r, const struct sbx_err *err)
{
	if (r == -EBUSY && !call->audit_id && sbx_call_again(call))
		return;
	if (r == -EBUSY)
		sbx_reply_problem(call, 503, "busy", NULL, "the database is locked: try again");
	else if (r == -EINVAL)
		sbx_reply_problem(call, 422, "invalid", NULL, "%s", err->msg);
	else if (r == -ENOSPC)
		sbx_reply_problem(call, 507, "full", NULL, "%s", err->msg);
	else
		sbx_reply_problem(call, 503, "database", NULL, "%s",
				  err->msg[0] ? err->msg : strerror(-r));
}

void sbx_call_page(struct sbx_call *call, struct sbx_page *page, int r, const struct sbx_err *err)
{
	if (r >= 0) {
		sbx_reply_json(call, 200, sbx_print_page(page->items, page->next));
		return;
	}
	json_decref(page->items);
	sbx_call_store_failed(call, r, err);
}
