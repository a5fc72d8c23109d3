/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The service itself: is it there, can it work, how is it spoken to. */
#include <errno.h>
#include <unistd.h>

#include "daemon/resources/daemon.h"
#include "daemon/resources/resources.h"
#include "store/store_rules.h"
#include "sys/process/proc.h"

#define LOOK_US 1000000

void sbx_get_health(struct sbx_call *call)
{
	sbx_reply_json(call, 200,
		       json_pack("{s:s, s:s}", "status", "ok", "version", PACKAGE_VERSION));
}

/* Another writer is no fault: its change is soon done. */
static bool can_write(struct sbx_daemon *d)
{
	struct sbx_write_look *look = &d->write_look;
	uint64_t now_us = sbx_clock_monotonic_us();

	if (look->at_us == 0 || now_us - look->at_us >= LOOK_US) {
		look->err = (struct sbx_err){ 0 };
		look->result = sbx_store_can_write(d->store, &look->err);
		look->at_us = now_us;
	}
	return look->result == 0 || look->result == -EBUSY;
}

void sbx_get_ready(struct sbx_call *call)
{
	struct sbx_daemon *d = call->daemon;
	bool database = can_write(d);
	bool runtime = access(d->facts.runtime_dir, R_OK | X_OK) == 0;

	sbx_reply_json(call, database && runtime ? 200 : 503,
		       json_pack("{s:s, s:s, s:s}", "status",
				 database && runtime ? "ok" : "unavailable", "database",
				 database ? "ok" : d->write_look.err.msg, "runtime",
				 runtime ? "ok" : "the runtime directory cannot be read"));
}

void sbx_get_openapi(struct sbx_call *call)
{
	sbx_reply_json(call, 200, sbx_openapi(call->daemon->routes, call->daemon->schemas));
}
