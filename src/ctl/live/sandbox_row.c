/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "ctl/live/sandbox_row.h"

#include <stdio.h>

void sbx_row_set_int(json_t *o, const char *key, int64_t v)
{
	if (v != SBX_STORE_NONE)
		json_object_set_new(o, key, json_integer(v));
}

json_t *sbx_sandbox_json(const struct sbx_store_sandbox_row *s)
{
	json_t *o = json_object();

	json_object_set_new(o, "id", sbx_json_text(s->id));
	json_object_set_new(o, "state", sbx_json_text(s->state));
	json_object_set_new(o, "profile", sbx_json_text(s->profile));
	json_object_set_new(o, "workspace", sbx_json_text(s->workspace));
	json_object_set_new(o, "analysis_id", sbx_json_text(s->analysis_id));
	json_object_set_new(o, "command", sbx_json_parse(s->command_json));
	sbx_row_set_int(o, "pid", s->pid);
	sbx_row_set_int(o, "uid", s->uid);
	sbx_row_set_int(o, "created_ms", s->created_ms);
	sbx_row_set_int(o, "released_ms", s->released_ms);
	sbx_row_set_int(o, "ended_ms", s->ended_ms);
	sbx_row_set_int(o, "exit_status", s->exit_status);
	sbx_row_set_int(o, "generation", s->generation);
	json_object_set_new(o, "air_gapped", json_boolean(s->air_gapped));
	json_object_set_new(o, "allow_out", sbx_json_parse(s->allow_json));
	json_object_set_new(o, "deny_out", sbx_json_parse(s->deny_json));
	json_object_set_new(o, "rules", sbx_json_parse(s->rules_json));
	sbx_row_set_int(o, "n_events", s->n_events);
	sbx_row_set_int(o, "cpu_us", s->cpu_us);
	sbx_row_set_int(o, "memory_peak_bytes", s->memory_peak_bytes);
	return o;
}

char *sbx_sandbox_command(const json_t *command)
{
	char *text = NULL;
	json_t *word;
	size_t i, n;
	FILE *out = open_memstream(&text, &n);

	json_array_foreach(command, i, word)
	{
		const char *s = json_string_value(word);

		if (out)
			fprintf(out, "%s%s", i ? " " : "", s ? s : "?");
	}
	if (out)
		fclose(out);
	return text;
}
