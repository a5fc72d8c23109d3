/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* POST /sandboxes/{id}/timeout. The launcher keeps the clock, so it holds without the service. */
#include "daemon/resources/audit.h"
#include "daemon/resources/daemon.h"
#include "daemon/resources/print.h"
#include "daemon/resources/resources.h"
#include "daemon/resources/sandbox_find.h"
#include "store/store_service.h"
#include "sys/process/proc.h"

static void on_set(void *userdata, int result, json_t *answer, const struct sbx_err *err)
{
	struct sbx_call *call = userdata;
	int64_t left = json_integer_value(json_object_get(answer, "wall_left_ms"));
	int64_t at = (int64_t)sbx_clock_realtime_ms() + left;
	struct sbx_err ignored = { 0 };
	json_t *after;

	if (result != 0) {
		sbx_call_refused(call, result, answer, err);
		return;
	}
	/* For people: the launcher's clock holds. Sandboxes of others have no such row. */
	sbx_store_api_sandbox_set_timeout(call->daemon->store, call->found.params[0], at, &ignored);
	after = json_pack("{s:o}", "deadline", sbx_print_time(at));
	sbx_audit_made(call, call->found.params[0], NULL, after);
	sbx_reply_json(call, 200, after);
}

void sbx_post_timeout(struct sbx_call *call)
{
	const char *id = call->found.params[0];
	json_int_t seconds = json_integer_value(json_object_get(call->body, "timeout"));
	json_t *sandbox = sbx_call_sandbox(call, id);

	json_decref(sandbox);
	if (sandbox)
		sbx_call_ask(call, id, json_pack("{s:s, s:I}", "op", "timeout", "timeout", seconds),
			     on_set, call);
}
