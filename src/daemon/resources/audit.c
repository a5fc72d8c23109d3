/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/resources/audit.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "control/client.h"
#include "daemon/access/audit_queue.h"
#include "daemon/resources/daemon.h"
#include "store/store_service.h"
#include "sys/process/proc.h"

struct change {
	struct sbx_store_audit row;
	char action[192];
	char *before, *after; /* owned */
};

/* A state that is too large for a row, or has a DEL, is left out: the change is not refused for
 * it. */
static char *text_of(const json_t *v)
{
	char *text = v ? json_dumps(v, JSON_COMPACT | JSON_ENSURE_ASCII) : NULL;

	if (text && (strlen(text) > SBX_STORE_SERVICE_JSON_MAX || strchr(text, '\x7f'))) {
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

static int add(struct sbx_call *call, const char *object, const json_t *before, const json_t *after,
	       bool made, struct sbx_err *err)
{
	struct change c;
	int r;

	change_init(&c, call, object, before, after);
	c.row.made = made;
	r = sbx_store_audit_add(call->daemon->store, &c.row, err, &call->audit_id);
	change_fini(&c);
	return r;
}

int sbx_audit(struct sbx_call *call, const char *object, const json_t *before, const json_t *after,
	      struct sbx_err *err)
{
	return add(call, object, before, after, true, err);
}

int sbx_audit_wanted(struct sbx_call *call, const char *object, const json_t *wanted,
		     struct sbx_err *err)
{
	return add(call, object, NULL, wanted, false, err);
}

void sbx_audit_begin(struct sbx_call *call, const char *object, const json_t *before,
		     const json_t *wanted)
{
	struct change c;

	change_init(&c, call, object, before, wanted);
	call->audit_id = sbx_audit_queue_begin(call->daemon->audit, &c.row);
	change_fini(&c);
}

static enum sbx_audit_end end_of(int result)
{
	switch (result) {
	case 0:
		return SBX_AUDIT_MADE;
	case SBX_CONTROL_E_NONE:
	case SBX_CONTROL_E_REFUSED:
		return SBX_AUDIT_REFUSED;
	default: /* the launcher may have done it */
		return SBX_AUDIT_UNKNOWN;
	}
}

void sbx_audit_end(struct sbx_call *call, int result, const json_t *after)
{
	char *text = text_of(after);

	sbx_audit_queue_end(call->daemon->audit, call->audit_id, end_of(result), text);
	free(text);
}
