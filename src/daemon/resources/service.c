/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The service itself: is it there, can it work, how is it spoken to. */
#include <unistd.h>

#include "daemon/resources/daemon.h"
#include "daemon/resources/resources.h"
#include "store/store_rules.h"

void sbx_get_health(struct sbx_call *call)
{
	sbx_reply_json(call, 200,
		       json_pack("{s:s, s:s}", "status", "ok", "version", PACKAGE_VERSION));
}

void sbx_get_ready(struct sbx_call *call)
{
	const struct sbx_daemon *d = call->daemon;
	struct sbx_err err = { 0 };
	int64_t version;
	bool database = sbx_store_data_version(d->store, &version, &err) == 0;
	bool runtime = access(d->facts.runtime_dir, R_OK | X_OK) == 0;

	sbx_reply_json(call, database && runtime ? 200 : 503,
		       json_pack("{s:s, s:s, s:s}", "status",
				 database && runtime ? "ok" : "unavailable", "database",
				 database ? "ok" : err.msg, "runtime",
				 runtime ? "ok" : "the runtime directory cannot be read"));
}

void sbx_get_openapi(struct sbx_call *call)
{
	sbx_reply_json(call, 200, sbx_openapi(call->daemon->routes, call->daemon->schemas));
}
