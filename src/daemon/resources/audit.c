/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/resources/audit.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "daemon/access/audit_queue.h"
#include "daemon/resources/daemon.h"
#include "store/store_service.h"
#include "sys/process/proc.h"

struct change {
	struct sbx_store_audit row;
	char action[192];
	char *before, *after; /* owned */
};

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

static void change_init(struct change *c, const struct sbx_call *call, const char *object,
			const json_t *before, const json_t *after)
{
	const struct sbx_route *route = call->found.route;

	c->before = text_of(before);
	c->after = text_of(after);
	sbx_text_cut(c->action, sizeof(c->action), "%s %s", sbx_method_str(route->method),
		     route->path);
	c->row = (struct sbx_store_audit){
		.at_ms = (int64_t)sbx_clock_realtime_ms(),
		.principal = call->principal.name,
		.action = c->action,
		.object = object,
		.before_json = c->before,
		.after_json = c->after,
	};
}

static void change_fini(struct change *c)
{
	free(c->before);
	free(c->after);
}

int sbx_audit(struct sbx_call *call, const char *object, const json_t *before, const json_t *after,
	      struct sbx_err *err, int64_t *ret_id)
{
	struct change c;
	int r;

	change_init(&c, call, object, before, after);
	r = sbx_store_audit_add(call->daemon->store, &c.row, err, ret_id);
	change_fini(&c);
	return r;
}

void sbx_audit_made(struct sbx_call *call, const char *object, const json_t *before,
		    const json_t *after)
{
	struct change c;

	change_init(&c, call, object, before, after);
	sbx_audit_queue_add(call->daemon->audit, &c.row);
	change_fini(&c);
}
