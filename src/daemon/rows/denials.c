/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Refusals added up, and how many there were over time. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/resources/daemon.h"
#include "daemon/resources/print.h"
#include "daemon/resources/sandbox_find.h"
#include "daemon/rows/rows.h"
#include "daemon/rows/scope.h"
#include "store/store_service.h"
#include "sys/process/proc.h"

#define WINDOW_MS (24 * 3600 * INT64_C(1000)) /* unless the caller says another */

static enum sbx_store_denies_by by_of(const char *word)
{
	static const char *const words[] = { "ip", "name", "sandbox", "workspace", "reason" };

	for (int i = 0; word && i < SBX_N_DENIES_BY; i++)
		if (strcmp(word, words[i]) == 0)
			return (enum sbx_store_denies_by)i;
	return SBX_DENIES_BY_NAME;
}

static int take_row(const struct sbx_store_denies_row *d, void *userdata)
{
	json_t *o = json_object();

	json_object_set_new(o, "key", sbx_print_text(d->key));
	json_object_set_new(o, "count", json_integer(d->count));
	json_object_set_new(o, "n_rows", json_integer(d->n_rows));
	json_object_set_new(o, "n_sandboxes", json_integer(d->n_sandboxes));
	json_object_set_new(o, "first", sbx_print_text(d->first_ts));
	json_object_set_new(o, "last", sbx_print_text(d->last_ts));
	json_object_set_new(o, "last_reason", sbx_print_text(d->last_reason));
	json_object_set_new(o, "last_name", sbx_print_text(d->last_name));
	json_object_set_new(o, "last_ip", sbx_print_text(d->last_ip));
	json_object_set_new(o, "last_port", sbx_print_number(d->last_port));
	json_object_set_new(o, "last_protocol", sbx_print_text(d->last_protocol));
	json_object_set_new(o, "last_rule", sbx_print_text(d->last_rule));
	return json_array_append_new(userdata, o) == 0 ? 0 : -ENOMEM;
}

static int take_point(int64_t at_ms, int64_t count, void *userdata)
{
	return json_array_append_new(userdata, json_pack("{s:o, s:I}", "at", sbx_print_time(at_ms),
							 "count", (json_int_t)count)) == 0 ?
		       0 :
		       -ENOMEM;
}

/* Counts are not kept by owner: a caller who sees only their own sandboxes has few events, and they
 * are read. The same where the counts are behind. */
static int read_rows(struct sbx_call *call, enum sbx_store_denies_by by,
		     const struct sbx_scope *scope, const struct sbx_store_denials_filter *f,
		     json_t *items, struct sbx_err *err)
{
	const struct sbx_store_event_filter events = { .since_ms = f->since_ms,
						       .workspace = scope->workspace,
						       .by_owner = scope->by_owner,
						       .owner_uid = scope->owner_uid,
						       .n_max = f->n_max };

	if (scope->by_owner)
		return sbx_store_denies_each(call->daemon->store, by, &events, take_row, items,
					     err);
	return sbx_store_denials_each(call->daemon->store, by, f, take_row, items, err);
}

static int read_series(struct sbx_call *call, const struct sbx_scope *scope,
		       const struct sbx_store_denials_filter *f, json_t *points,
		       struct sbx_err *err)
{
	const char *step = sbx_call_text(call, "series");

	if (!step || scope->by_owner)
		return 0;
	return sbx_store_denials_series(call->daemon->store, SBX_DENIES_BY_REASON, NULL, f,
					strcmp(step, "minute") == 0 ? SBX_STORE_BY_MINUTE :
								      SBX_STORE_BY_HOUR,
					take_point, points, err);
}

void sbx_list_denials(struct sbx_call *call)
{
	const char *window = sbx_call_text(call, "window");
	struct sbx_store_denials_filter f = {
		.now_ms = (int64_t)sbx_clock_realtime_ms(),
		.n_max = (uint32_t)sbx_call_number(call, "limit", SBX_ROWS_LIMIT),
	};
	json_t *items = json_array(), *points = json_array(), *o;
	struct sbx_err err = { 0 };
	struct sbx_scope scope;
	int r;

	if (!sbx_call_scope(call, &scope)) {
		json_decref(items);
		json_decref(points);
		return;
	}
	f.since_ms = f.now_ms - (window ? sbx_window_parse(window) : WINDOW_MS);
	f.workspace = scope.workspace;
	r = read_rows(call, by_of(sbx_call_text(call, "by")), &scope, &f, items, &err);
	r = r ? r : read_series(call, &scope, &f, points, &err);
	if (r == SBX_STORE_E_BEHIND) {
		sbx_reply_problem(call, 503, "behind", NULL, "%s: try again soon", err.msg);
	} else if (r != 0) {
		sbx_call_store_failed(call, r, &err);
	} else {
		o = sbx_print_page(json_incref(items), 0);
		if (sbx_call_text(call, "series"))
			json_object_set(o, "series", points);
		sbx_reply_json(call, 200, o);
	}
	json_decref(items);
	json_decref(points);
}
