/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "launcher/control/control_events.h"

#include <stdlib.h>

#include "launcher/control/control_limits.h"

#define QUEUE_MAX 65536 /* bytes that wait for a follower; what comes later waits among the kept */

void sbx_control_events_add(struct sbx_control_events *v, const struct sbx_event *e)
{
	if (!v->kept) /* its pages are touched as they are used */
		v->kept = calloc(SBX_CONTROL_EVENTS_KEPT, sizeof(*v->kept));
	v->n++;
	if (v->kept)
		v->kept[v->n % SBX_CONTROL_EVENTS_KEPT] = *e;
}

void sbx_control_events_fini(struct sbx_control_events *v)
{
	free(v->kept);
	*v = (struct sbx_control_events){ 0 };
}

static json_t *event_json(const struct sbx_event *e, uint64_t number)
{
	char ip[SBX_ADDR_STR_MAX] = "";
	json_t *v = json_pack("{s:i, s:s, s:I, s:I, s:s, s:s, s:s, s:i, s:I, s:I, s:I, s:I, s:I}",
			      "v", SBX_CONTROL_VERSION, "event", "egress", "id", (json_int_t)number,
			      "ts_ms", (json_int_t)e->ts_ms, "action", sbx_action_str(e->action),
			      "protocol", sbx_proto_str(e->proto), "reason",
			      sbx_reason_str(e->reason), "port", (int)e->port, "count",
			      (json_int_t)e->count, "bytes_out", (json_int_t)e->bytes_out,
			      "bytes_in", (json_int_t)e->bytes_in, "duration_ms",
			      (json_int_t)e->duration_ms, "generation", (json_int_t)e->generation);

	if (e->addr.family)
		sbx_addr_format(&e->addr, ip, sizeof(ip));
	if (v && (json_object_set_new(v, "ip", json_string(ip)) < 0 ||
		  json_object_set_new(v, "name", sbx_control_text(e->name)) < 0 ||
		  json_object_set_new(v, "rule", sbx_control_text(e->rule)) < 0 ||
		  json_object_set_new(v, "request", sbx_control_text(e->request)) < 0)) {
		json_decref(v);
		return NULL;
	}
	return v;
}

static json_t *lost_json(uint64_t count)
{
	return json_pack("{s:i, s:s, s:I}", "v", SBX_CONTROL_VERSION, "event", "lost", "count",
			 (json_int_t)count);
}

/* False: it has no room, or there is no memory. */
static bool put(struct sbx_control_session *s, json_t *value_take)
{
	size_t n = 0;
	char *line = value_take ? sbx_control_print(value_take, SBX_CONTROL_ANSWER_MAX, &n) : NULL;

	json_decref(value_take);
	return line && sbx_control_session_put(s, line, n) == 0;
}

bool sbx_control_events_fill(const struct sbx_control_events *v, struct sbx_control_session *s)
{
	uint64_t oldest = v->n < SBX_CONTROL_EVENTS_KEPT ? 1 : v->n - SBX_CONTROL_EVENTS_KEPT + 1;

	if (!v->kept)
		oldest = v->n + 1; /* there was no memory */
	while (s->next_event <= v->n && sbx_control_session_n_waiting(s) < QUEUE_MAX) {
		uint64_t next = s->next_event;

		if (next < oldest || !v->kept) {
			if (!put(s, lost_json(oldest - s->next_event)))
				return false;
			s->next_event = oldest;
		} else if (put(s, event_json(&v->kept[next % SBX_CONTROL_EVENTS_KEPT], next))) {
			s->next_event++;
		} else {
			return false;
		}
	}
	return true;
}
