/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/resources/sandbox_find.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "daemon/resources/daemon.h"
#include "daemon/resources/print.h"

struct found {
	const struct sbx_principal *principal;
	json_t *sandbox; /* NULL: it is not the caller's to see */
};

static int take(const struct sbx_store_sandbox_row *s, void *userdata)
{
	struct found *f = userdata;

	if (sbx_principal_sees(f->principal, s->workspace, getuid()))
		f->sandbox = sbx_print_sandbox(s);
	return 0;
}

json_t *sbx_call_sandbox(struct sbx_call *call, const char *id)
{
	struct found f = { .principal = &call->principal };
	struct sbx_err err = { 0 };
	int r = sbx_id_is_valid(id) ?
			sbx_store_sandbox_get(call->daemon->store, id, take, &f, &err) :
			SBX_STORE_E_UNKNOWN;

	if (r == 0 && f.sandbox)
		return f.sandbox;
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

void sbx_call_store_failed(struct sbx_call *call, int r, const struct sbx_err *err)
{
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
