/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* POST /sandboxes/{id}/timeout. The launcher keeps the clock, so it holds without the service. */
#include <errno.h>
#include <stdlib.h>

#include "daemon/resources/audit.h"
#include "daemon/resources/daemon.h"
#include "daemon/resources/print.h"
#include "daemon/resources/resources.h"
#include "daemon/resources/sandbox_find.h"
#include "store/store_service.h"
#include "sys/process/proc.h"

#define RETRY_MS  20
#define TRIES_MAX 50

struct deadline {
	struct sbx_call *call;
	int64_t at_ms;
	int n_tries;
};

/* The row is for people: the launcher's clock holds. Sandboxes of others have no such row. */
static void record(evutil_socket_t fd, short what, void *userdata)
{
	static const struct timeval later = { .tv_usec = RETRY_MS * 1000 };
	struct deadline *d = userdata;
	struct sbx_call *call = d->call;
	struct sbx_err ignored = { 0 };
	int r = sbx_store_api_sandbox_set_timeout(call->daemon->store, call->found.params[0],
						  d->at_ms, &ignored);
	json_t *after;

	(void)fd;
	(void)what;
	if (r == -EBUSY && d->n_tries++ < TRIES_MAX &&
	    event_base_once(call->daemon->base, -1, EV_TIMEOUT, record, d, &later) == 0)
		return;
	after = json_pack("{s:o}", "deadline", sbx_print_time(d->at_ms));
	free(d);
	sbx_audit_end(call, 0, after);
	sbx_reply_json(call, 200, after);
}

static void on_set(void *userdata, int result, json_t *answer, const struct sbx_err *err)
{
	struct sbx_call *call = userdata;
	int64_t left = json_integer_value(json_object_get(answer, "wall_left_ms"));
	struct deadline *d = result == 0 ? malloc(sizeof(*d)) : NULL;

	if (d) {
		*d = (struct deadline){ call, (int64_t)sbx_clock_realtime_ms() + left, 0 };
		record(-1, 0, d);
		return;
	}
	sbx_audit_end(call, result, NULL);
	if (result == 0)
		sbx_reply_json(call, 200, NULL);
	else
		sbx_call_refused(call, result, answer, err);
}

void sbx_post_timeout(struct sbx_call *call)
{
	const char *id = call->found.params[0];
	json_int_t seconds = json_integer_value(json_object_get(call->body, "timeout"));
	json_t *sandbox = sbx_call_sandbox(call, id);

	json_decref(sandbox);
	if (!sandbox)
		return;
	sbx_audit_begin(call, id, NULL, call->body);
	sbx_call_ask(call, id, json_pack("{s:s, s:I}", "op", "timeout", "timeout", seconds), on_set,
		     call);
}
