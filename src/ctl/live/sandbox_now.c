/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "ctl/live/sandbox_now.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "control/client.h"
#include "ctl/frame/places.h"
#include "sys/process/proc.h"

#define ONE_MS 300 /* the longest wait for one launcher */

SBX_DEFINE_CLEANUP(struct sbx_control_client, sbx_control_disconnect);

/* Copies what the answer of `show` has. */
static void take(json_t *row, const json_t *sandbox)
{
	static const char *const keys[] = { "state", "generation", "air_gapped", "allow_out",
					    "deny_out", "rules" };

	for (size_t i = 0; i < SBX_N_ELEMENTS(keys); i++) {
		json_t *v = json_object_get(sandbox, keys[i]), *old = json_object_get(row, keys[i]);

		if (v && (json_typeof(v) == json_typeof(old) ||
			  (json_is_boolean(v) && json_is_boolean(old))))
			json_object_set(row, keys[i], v);
	}
}

static void ask(const char *runtime_dir, json_t *row, uint32_t timeout_ms)
{
	SBX_CLEANUP(sbx_control_disconnectp) struct sbx_control_client *client = NULL;
	const char *id = json_string_value(json_object_get(row, "id"));
	struct sbx_err err = { 0 };
	json_t *answer = NULL;

	if (sbx_control_connect(runtime_dir, id, timeout_ms, &client, &err) == 0 &&
	    sbx_control_ask(client, json_pack("{s:s}", "op", "show"), NULL, 0, &answer, &err) == 0)
		take(row, json_object_get(answer, "sandbox"));
	json_decref(answer);
}

void sbx_sandboxes_now(struct sbx_ctl *ctl, json_t *rows)
{
	uint64_t until = sbx_clock_monotonic_us() + SBX_CTL_NOW_MS * UINT64_C(1000), now;
	const char *dir = ctl->facts.runtime_dir;
	json_t *row;
	size_t i;

	json_array_foreach(rows, i, row)
	{
		const char *id = json_string_value(json_object_get(row, "id"));
		bool alive;

		if (!id || json_object_get(row, "ended_ms"))
			continue;
		alive = sbx_control_has_launcher(dir, id);
		json_object_set_new(row, "launcher_alive", json_boolean(alive));
		now = sbx_clock_monotonic_us();
		if (alive && now < until) {
			uint32_t left_ms = (uint32_t)((until - now) / 1000) + 1;

			ask(dir, row, left_ms < ONE_MS ? left_ms : ONE_MS);
		}
	}
}
