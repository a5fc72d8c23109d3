/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "ctl/live/sandbox_row.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

/* Sets @key unless the number is not known. */
static void set_int(json_t *o, const char *key, int64_t v)
{
	if (v != SBX_STORE_NONE)
		json_object_set_new(o, key, json_integer(v));
}

bool sbx_sandbox_has_launcher(const struct sbx_store_sandbox_row *s)
{
	return s->ended_ms == SBX_STORE_NONE && s->pid > 0 &&
	       (kill((pid_t)s->pid, 0) == 0 || errno != ESRCH);
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
	set_int(o, "pid", s->pid);
	set_int(o, "uid", s->uid);
	set_int(o, "created_ms", s->created_ms);
	set_int(o, "released_ms", s->released_ms);
	set_int(o, "ended_ms", s->ended_ms);
	set_int(o, "exit_status", s->exit_status);
	set_int(o, "generation", s->generation);
	json_object_set_new(o, "air_gapped", json_boolean(s->air_gapped));
	json_object_set_new(o, "allow_out", sbx_json_parse(s->allow_json));
	json_object_set_new(o, "deny_out", sbx_json_parse(s->deny_json));
	set_int(o, "n_events", s->n_events);
	set_int(o, "cpu_us", s->cpu_us);
	set_int(o, "memory_peak_bytes", s->memory_peak_bytes);
	if (s->ended_ms == SBX_STORE_NONE)
		json_object_set_new(o, "launcher_alive", json_boolean(sbx_sandbox_has_launcher(s)));
	return o;
}

char *sbx_sandbox_command(const char *command_json)
{
	json_t *list = command_json ? json_loads(command_json, 0, NULL) : NULL, *word;
	char *text = NULL;
	size_t i, n;
	FILE *out = open_memstream(&text, &n);

	json_array_foreach(list, i, word)
	{
		const char *s = json_string_value(word);

		if (out)
			fprintf(out, "%s%s", i ? " " : "", s ? s : "?");
	}
	json_decref(list);
	if (out)
		fclose(out);
	return text;
}

enum sbx_colour sbx_sandbox_colour(const struct sbx_store_sandbox_row *s)
{
	if (s->ended_ms == SBX_STORE_NONE)
		return sbx_sandbox_has_launcher(s) ? SBX_GOOD : SBX_BAD;
	return strcmp(s->state, sbx_store_state_str(SBX_STATE_DONE)) == 0 ? SBX_PLAIN : SBX_BAD;
}
