/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/resources/audit.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "daemon/resources/daemon.h"
#include "store/store_service.h"
#include "sys/process/proc.h"

/* A state that is too large for a row is left out: the change is not refused for it. */
static char *text_of(const json_t *v)
{
	char *text = v ? json_dumps(v, JSON_COMPACT) : NULL;

	if (text && strlen(text) > SBX_STORE_SERVICE_JSON_MAX) {
		free(text);
		return NULL;
	}
	return text;
}

int sbx_audit(struct sbx_call *call, const char *object, const json_t *before, const json_t *after,
	      struct sbx_err *err)
{
	SBX_AUTO_FREE char *before_json = text_of(before), *after_json = text_of(after);
	const struct sbx_route *route = call->found.route;
	char action[192];
	const struct sbx_store_audit row = {
		.at_ms = (int64_t)sbx_clock_realtime_ms(),
		.principal = call->principal.name,
		.action = action,
		.object = object,
		.before_json = before_json,
		.after_json = after_json,
	};

	sbx_text_cut(action, sizeof(action), "%s %s", sbx_method_str(route->method), route->path);
	return sbx_store_audit_add(call->daemon->store, &row, err, NULL);
}
