/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/resources/print.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/text.h"
#include "control/protocol.h"
#include "daemon/api/net_rule.h"

json_t *sbx_print_text(const char *s)
{
	return s ? sbx_control_text(s) : json_null();
}

json_t *sbx_print_json(const char *text)
{
	json_t *v = text ? json_loads(text, JSON_DECODE_ANY, NULL) : NULL;

	return v ? v : json_null();
}

json_t *sbx_print_number(int64_t v)
{
	return v == SBX_STORE_NONE ? json_null() : json_integer(v);
}

json_t *sbx_print_time(int64_t ms)
{
	time_t t = (time_t)(ms / 1000);
	struct tm tm;
	char text[64];
	size_t n;

	if (ms < 1 || !gmtime_r(&t, &tm))
		return json_null();
	n = strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
	sbx_text_fit(text + n, sizeof(text) - n, ".%03dZ", (int)(ms % 1000));
	return json_string(text);
}

int64_t sbx_parse_time(const char *s)
{
	struct tm tm = { 0 };
	const char *p = strptime(s, "%Y-%m-%dT%H:%M:%S", &tm);
	int hours, minutes, n = 0, ms = 0, digits = 0;
	int64_t offset = 0;

	if (!p)
		return -EINVAL;
	if (*p == '.')
		for (p++; *p >= '0' && *p <= '9'; p++, digits++)
			if (digits < 3)
				ms = ms * 10 + (*p - '0');
	for (; digits > 0 && digits < 3; digits++)
		ms *= 10;
	if (*p == '+' || *p == '-') {
		if (sscanf(p + 1, "%2d:%2d%n", &hours, &minutes, &n) != 2 || n != 5 || p[6])
			return -EINVAL;
		offset = (hours * 60 + minutes) * 60 * (*p == '-' ? -1 : 1);
	} else if (strcmp(p, "Z") != 0) {
		return -EINVAL;
	}
	return ((int64_t)timegm(&tm) - offset) * 1000 + ms;
}

void sbx_print_members(json_t *to, const json_t *from, const char *const *keys)
{
	for (; *keys; keys++) {
		json_t *v = json_object_get(from, *keys);

		if (v)
			json_object_set(to, *keys, v);
	}
}

json_t *sbx_print_page(json_t *items_take, int64_t next)
{
	char cursor[24];

	sbx_text_fit(cursor, sizeof(cursor), "%lld", (long long)next);
	return json_pack("{s:o, s:s?}", "items", items_take, "next_cursor", next ? cursor : NULL);
}

int sbx_page_add(struct sbx_page *p, json_t *item_take, int64_t cursor)
{
	if ((int64_t)json_array_size(p->items) == p->limit) {
		json_decref(item_take);
		p->next = p->last;
		return 1;
	}
	p->last = cursor;
	return json_array_append_new(p->items, item_take) == 0 ? 0 : -ENOMEM;
}

void sbx_print_rules(json_t *to, const json_t *texts)
{
	json_object_set_new(to, "rules", sbx_net_rules_objects(texts));
}

static void set_rules(json_t *o, const char *text)
{
	json_t *texts = sbx_print_json(text);

	sbx_print_rules(o, texts);
	json_decref(texts);
}

json_t *sbx_print_sandbox(const struct sbx_store_sandbox_row *s)
{
	json_t *o = json_object();

	json_object_set_new(o, "id", sbx_print_text(s->id));
	json_object_set_new(o, "profile", sbx_print_text(s->profile));
	json_object_set_new(o, "workspace", sbx_print_text(s->workspace));
	json_object_set_new(o, "analysis_id", sbx_print_text(s->analysis_id));
	json_object_set_new(o, "state", sbx_print_text(s->state));
	json_object_set_new(o, "live", json_boolean(s->ended_ms == SBX_STORE_NONE));
	json_object_set_new(o, "command", sbx_print_json(s->command_json));
	json_object_set_new(o, "created_at", sbx_print_time(s->created_ms));
	json_object_set_new(o, "started_at", sbx_print_time(s->released_ms));
	json_object_set_new(o, "ended_at", sbx_print_time(s->ended_ms));
	json_object_set_new(o, "exit_status", sbx_print_number(s->exit_status));
	json_object_set_new(o, "generation", json_integer(s->generation));
	json_object_set_new(o, "air_gapped", json_boolean(s->air_gapped));
	json_object_set_new(o, "allow_internet_access", json_boolean(!s->air_gapped));
	json_object_set_new(o, "allow_out", sbx_print_json(s->allow_json));
	json_object_set_new(o, "deny_out", sbx_print_json(s->deny_json));
	set_rules(o, s->rules_json);
	json_object_set_new(o, "n_events", json_integer(s->n_events));
	json_object_set_new(o, "cpu_us", sbx_print_number(s->cpu_us));
	json_object_set_new(o, "memory_peak_bytes", sbx_print_number(s->memory_peak_bytes));
	return o;
}

json_t *sbx_print_event(const struct sbx_store_event_row *e)
{
	json_t *o = json_object();

	json_object_set_new(o, "id", json_integer(e->id));
	json_object_set_new(o, "sandbox_id", sbx_print_text(e->sandbox_id));
	json_object_set_new(o, "workspace", sbx_print_text(e->workspace));
	json_object_set_new(o, "analysis_id", sbx_print_text(e->analysis_id));
	json_object_set_new(o, "at", sbx_print_text(e->ts));
	json_object_set_new(o, "action", sbx_print_text(e->action));
	json_object_set_new(o, "protocol", sbx_print_text(e->protocol));
	json_object_set_new(o, "name", sbx_print_text(e->name));
	json_object_set_new(o, "ip", sbx_print_text(e->remote_ip));
	json_object_set_new(o, "port", sbx_print_number(e->remote_port));
	json_object_set_new(o, "reason", sbx_print_text(e->reason));
	json_object_set_new(o, "rule", sbx_print_text(e->rule));
	json_object_set_new(o, "request", sbx_print_text(e->request));
	json_object_set_new(o, "count", json_integer(e->count));
	json_object_set_new(o, "generation", sbx_print_number(e->generation));
	json_object_set_new(o, "bytes_out", sbx_print_number(e->bytes_out));
	json_object_set_new(o, "bytes_in", sbx_print_number(e->bytes_in));
	json_object_set_new(o, "duration_ms", sbx_print_number(e->duration_ms));
	return o;
}

char *sbx_print_event_text(const struct sbx_store_event_row *e)
{
	json_t *o = sbx_print_event(e);
	char *text = json_dumps(o, JSON_COMPACT);

	json_decref(o);
	return text;
}

json_t *sbx_print_rule(const struct sbx_store_rule *r)
{
	json_t *o = json_object();

	json_object_set_new(o, "id", json_integer(r->id));
	json_object_set_new(o, "workspace", sbx_print_text(r->workspace));
	json_object_set_new(o, "type", sbx_print_text(r->type));
	json_object_set_new(o, "pattern", sbx_print_text(r->pattern));
	json_object_set_new(o, "action", sbx_print_text(r->action));
	json_object_set_new(o, "priority", json_integer(r->priority));
	json_object_set_new(o, "enabled", json_boolean(r->enabled));
	json_object_set_new(o, "is_floor", json_boolean(r->is_floor));
	json_object_set_new(o, "note", sbx_print_text(r->note));
	json_object_set_new(o, "created_by", sbx_print_text(r->created_by));
	json_object_set_new(o, "created_at", sbx_print_time(r->created_ms));
	json_object_set_new(o, "changed_by", sbx_print_text(r->changed_by));
	json_object_set_new(o, "changed_at", sbx_print_time(r->changed_ms));
	return o;
}
