/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The audit: who changed what, and when. */
#include <errno.h>

#include "daemon/resources/daemon.h"
#include "daemon/resources/print.h"
#include "daemon/resources/sandbox_find.h"
#include "daemon/rows/rows.h"
#include "store/store_service.h"

struct page {
	json_t *items;
	size_t limit;
	int64_t last, next; /* next 0: there is no more */
};

static int take_row(const struct sbx_store_audit *a, void *userdata)
{
	struct page *p = userdata;
	json_t *o = json_object();

	if (json_array_size(p->items) == p->limit) {
		json_decref(o);
		p->next = p->last;
		return 1;
	}
	p->last = a->id;
	json_object_set_new(o, "id", json_integer(a->id));
	json_object_set_new(o, "at", sbx_print_time(a->at_ms));
	json_object_set_new(o, "principal", sbx_print_text(a->principal));
	json_object_set_new(o, "action", sbx_print_text(a->action));
	json_object_set_new(o, "object", sbx_print_text(a->object));
	json_object_set_new(o, "before", sbx_print_json(a->before_json));
	json_object_set_new(o, "after", sbx_print_json(a->after_json));
	return json_array_append_new(p->items, o) == 0 ? 0 : -ENOMEM;
}

void sbx_list_audit(struct sbx_call *call)
{
	struct page p = { .items = json_array(),
			  .limit = (size_t)sbx_call_number(call, "limit", SBX_ROWS_LIMIT) };
	const struct sbx_store_audit_filter filter = {
		.before = sbx_call_number(call, "cursor", 0),
		.principal = sbx_call_text(call, "principal"),
		.object = sbx_call_text(call, "object"),
		.n_max = (uint32_t)p.limit + 1,
	};
	struct sbx_err err = { 0 };
	int r = sbx_store_audit_page(call->daemon->store, &filter, take_row, &p, &err);

	if (r >= 0) {
		sbx_reply_json(call, 200, sbx_print_page(p.items, p.next));
	} else {
		json_decref(p.items);
		sbx_call_store_failed(call, r, &err);
	}
}
