/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Refusals added up, and how many there were over time. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "daemon/resources/daemon.h"
#include "daemon/resources/print.h"
#include "daemon/resources/sandbox_find.h"
#include "daemon/rows/recent.h"
#include "daemon/rows/rows.h"
#include "daemon/rows/scope.h"
#include "launcher/record/refusals.h"
#include "store/store_keep.h"
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
	char allow[SBX_REFUSAL_ALLOW_MAX];
	json_t *o = json_object();

	sbx_refusal_row_allow(d, allow);
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
	json_object_set_new(o, "allow", sbx_print_text(allow[0] ? allow : NULL));
	return json_array_append_new(userdata, o) == 0 ? 0 : -ENOMEM;
}

static int take_point(int64_t at_ms, int64_t count, void *userdata)
{
	return json_array_append_new(userdata, json_pack("{s:o, s:I}", "at", sbx_print_time(at_ms),
							 "count", (json_int_t)count)) == 0 ?
		       0 :
		       -ENOMEM;
}

/* Seconds are not counted, and minutes are soon forgotten: the events of a part of a minute or hour
 * need not be read, if the window begins with a whole one. */
static int64_t window_begin(int64_t now_ms, int64_t window_ms)
{
	int64_t step_ms = window_ms > SBX_STORE_FINE_MS - 60000 ? 3600000 : 60000;

	return (now_ms - window_ms) / step_ms * step_ms;
}

static int read_series(struct sbx_call *call, const struct sbx_store_denials_filter *f,
		       json_t *points, struct sbx_err *err)
{
	const char *step = sbx_call_text(call, "series");

	if (!step)
		return 0;
	return sbx_store_denials_series(call->daemon->store, SBX_DENIES_BY_REASON, NULL, f,
					strcmp(step, "minute") == 0 ? SBX_STORE_BY_MINUTE :
								      SBX_STORE_BY_HOUR,
					take_point, points, err);
}

/* All that an answer depends on but the database. malloc'ed; NULL: no memory. */
static char *key_of(struct sbx_call *call, const struct sbx_store_denials_filter *f)
{
	const char *by = sbx_call_text(call, "by"), *step = sbx_call_text(call, "series");
	char *key;

	if (asprintf(&key, "%s %s %u %lld %lld %s", by ? by : "", step ? step : "", f->n_max,
		     (long long)f->since_ms, f->by_owner ? (long long)f->owner_uid : -1LL,
		     f->workspace ? f->workspace : "") < 0)
		return NULL;
	return key;
}

static uint64_t processor_us(void)
{
	struct timespec t = { 0 };

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

/* The answer, or NULL: it was answered that there is none. */
static json_t *read_all(struct sbx_call *call, const struct sbx_store_denials_filter *f)
{
	struct sbx_store *store = call->daemon->store;
	json_t *items = json_array(), *points = json_array(), *o = NULL;
	struct sbx_err err = { 0 };
	int64_t uncounted = 0;
	int r;

	r = sbx_store_denials_each(store, by_of(sbx_call_text(call, "by")), f, take_row, items,
				   &err);
	r = r ? r : read_series(call, f, points, &err);
	r = r ? r : sbx_store_uncounted(store, f->since_ms, &err, &uncounted);
	if (r != 0) {
		sbx_call_store_failed(call, r, &err);
	} else {
		o = sbx_print_page(json_incref(items), 0);
		json_object_set_new(o, "uncounted", json_integer(uncounted));
		if (sbx_call_text(call, "series"))
			json_object_set(o, "series", points);
	}
	json_decref(items);
	json_decref(points);
	return o;
}

void sbx_list_denials(struct sbx_call *call)
{
	struct sbx_recent *recent = call->daemon->recent;
	const char *window = sbx_call_text(call, "window");
	uint64_t now_us = sbx_clock_monotonic_us(), began_us = processor_us();
	struct sbx_store_denials_filter f = {
		.now_ms = (int64_t)sbx_clock_realtime_ms(),
		.n_max = (uint32_t)sbx_call_number(call, "limit", SBX_ROWS_LIMIT),
	};
	SBX_AUTO_FREE char *key = NULL;
	struct sbx_scope scope;
	json_t *o;

	if (!sbx_call_scope(call, &scope))
		return;
	f.since_ms = window_begin(f.now_ms, window ? sbx_window_parse(window) : WINDOW_MS);
	f.workspace = scope.workspace;
	f.by_owner = scope.by_owner;
	f.owner_uid = scope.owner_uid;
	key = key_of(call, &f);
	o = key ? sbx_recent_get(recent, key, now_us) : NULL;
	if (!o) {
		o = read_all(call, &f);
		if (o && key)
			sbx_recent_put(recent, key, o, processor_us() - began_us,
				       sbx_clock_monotonic_us());
	}
	if (o)
		sbx_reply_json(call, 200, o);
}
