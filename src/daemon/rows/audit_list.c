/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The audit: who changed what, and when. */
#include "daemon/resources/daemon.h"
#include "daemon/resources/print.h"
#include "daemon/resources/sandbox_find.h"
#include "daemon/rows/rows.h"
#include "store/store_service.h"

static int take_row(const struct sbx_store_audit *a, void *userdata)
{
	json_t *o = json_object();

	json_object_set_new(o, "id", json_integer(a->id));
	json_object_set_new(o, "at", sbx_print_time(a->at_ms));
	json_object_set_new(o, "principal", sbx_print_text(a->principal));
	json_object_set_new(o, "action", sbx_print_text(a->action));
	json_object_set_new(o, "object", sbx_print_text(a->object));
	json_object_set_new(o, "before", sbx_print_json(a->before_json));
	json_object_set_new(o, "after", sbx_print_json(a->after_json));
	json_object_set_new(o, "outcome", a->made ? json_string("made") : json_null());
	return sbx_page_add(userdata, o, a->id);
}

void sbx_list_audit(struct sbx_call *call)
{
	struct sbx_page p = { .items = json_array(),
			      .limit = sbx_call_number(call, "limit", SBX_ROWS_LIMIT) };
	const struct sbx_store_audit_filter filter = {
		.before = sbx_call_number(call, "cursor", 0),
		.principal = sbx_call_text(call, "principal"),
		.object = sbx_call_text(call, "object"),
		.n_max = (uint32_t)p.limit + 1,
	};
	struct sbx_err err = { 0 };
	int r = sbx_store_audit_page(call->daemon->store, &filter, take_row, &p, &err);

	sbx_call_page(call, &p, r, &err);
}
