/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The state of a sandbox as JSON. The parts that never change come from the plan's own JSON
 * (setup/plan_json.h), so that a dry run, a receipt and this say the same in the same words.
 */
#include "launcher/serve/show.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "control/protocol.h"
#include "launcher/serve/network.h"
#include "launcher/setup/plan_json.h"

/* bytes of an answer besides the flows; the last ones are for "v", "ok" and "flows_left_out" */
#define SHOWN_MAX  (SBX_CONTROL_ANSWER_MAX - SBX_SERVE_FLOWS_BYTES - 256)
#define CUT_POLICY 128 /* entries that stay of a policy that does not fit */

static json_t *planned(const struct sbx_show_facts *f)
{
	SBX_AUTO_FREE char *text = sbx_plan_json(f->plan, f->setup);

	return text ? json_loads(text, 0, NULL) : NULL;
}

static json_t *policy(const struct sbx_policy *p)
{
	json_t *list = json_array();
	struct sbx_policy_entry e;
	bool of_workspace;
	const char *action = sbx_action_str(sbx_policy_default(p, &of_workspace));

	for (uint32_t i = 0; list && sbx_policy_entry(p, i, &e); i++)
		json_array_append_new(list, json_pack("{s:o, s:s, s:s, s:o}", "entry",
						      sbx_control_text(e.text), "action",
						      sbx_action_str(e.action), "layer",
						      sbx_layer_str(e.layer), "origin",
						      sbx_control_text(e.origin)));
	json_array_append_new(
		list,
		json_pack("{s:s, s:s, s:s, s:s}", "entry", "*", "action", action, "layer",
			  sbx_layer_str(SBX_LAYER_DEFAULT), "origin",
			  of_workspace ? "sbxctl workspace" : "the profile"));
	return list;
}

static json_t *usage(const struct sbx_cgroup_run *c)
{
	struct sbx_cgroup_usage u = SBX_CGROUP_USAGE_UNKNOWN;

	if (c->dirs.command_fd >= 0)
		sbx_cgroup_usage_read(c->dirs.command_fd, &u);
	return json_pack("{s:o, s:o, s:o, s:o, s:o}", "cpu_us", sbx_control_number(u.cpu_us),
			 "memory_peak_bytes", sbx_control_number(u.memory_peak_bytes), "pids_peak",
			 sbx_control_number(u.pids_peak), "oom_kills",
			 sbx_control_number(u.oom_kills), "pids_refused",
			 sbx_control_number(u.pids_refused));
}

static json_t *selftest(const struct sbx_show_facts *f)
{
	const struct sbx_msg_probes *probes = &f->setup->probes;
	json_t *list = json_array();

	for (uint32_t i = 0; list && f->verdicts && i < f->verdicts->n_verdicts; i++)
		json_array_append_new(
			list,
			json_pack("{s:s, s:b, s:o}", "probe",
				  sbx_probe_kind_str((enum sbx_probe_kind)probes->probes[i].kind),
				  "ok", (int)f->verdicts->v[i].ok, "detail",
				  sbx_control_text(f->verdicts->v[i].detail)));
	return list;
}

json_t *sbx_show_published(const struct sbx_publish *v, size_t n)
{
	json_t *list = json_array();

	for (size_t i = 0; list && i < n; i++) {
		char where[SBX_PUBLISH_STR_MAX];

		json_array_append_new(
			list, json_sprintf("%s:%u", sbx_publish_format(&v[i], where, sizeof(where)),
					   v[i].inside));
	}
	return list;
}

/* The words of the plan that docs/control.schema.json has too. */
static void copy_planned(json_t *to, const json_t *plan)
{
	static const char *const names[] = { "id",	    "profile", "workspace",
					     "analysis_id", "limits",  "network" };

	for (size_t i = 0; i < SBX_N_ELEMENTS(names); i++)
		json_object_set(to, names[i], json_object_get(plan, names[i]));
	json_object_set_new(to, "command", json_array()); /* with --wait there is none */
	json_array_extend(json_object_get(to, "command"),
			  json_object_get(json_object_get(plan, "command"), "argv"));
	json_object_set(to, "ruleset", json_object_get(plan, "nft"));
	json_object_set(to, "attach", json_object_get(json_object_get(plan, "network"), "attach"));
}

static bool fits(const json_t *v)
{
	SBX_AUTO_FREE char *text = json_dumps(v, JSON_COMPACT);

	return text && strlen(text) < SHOWN_MAX;
}

/* Leaves out the longest parts until the rest fits an answer. */
static void cut(json_t *sandbox)
{
	json_t *entries = json_object_get(sandbox, "policy");
	bool whole = fits(sandbox);

	if (!whole)
		json_object_set_new(sandbox, "ruleset", json_null());
	if (!whole && !fits(sandbox))
		while (json_array_size(entries) > CUT_POLICY) /* the default stays the last */
			json_array_remove(entries, json_array_size(entries) - 2);
	if (!whole && !fits(sandbox))
		json_object_set_new(sandbox, "command", json_array());
	json_object_set_new(sandbox, "truncated", json_boolean(!whole));
}

/* Before the release there is the planned policy alone. */
static void set_policy(json_t *sandbox, const struct sbx_show_facts *f)
{
	const struct sbx_live_state planned = {
		.generation = sbx_policy_generation(f->plan->policy),
		.live = f->plan->live, /* borrowed */
		.policy = f->plan->policy,
	};
	const struct sbx_live_state *now = f->live ? f->live : &planned;

	sbx_serve_network_state(sandbox, now);
	json_object_set_new(sandbox, "policy", policy(now->policy));
}

json_t *sbx_show_json(const struct sbx_show_facts *f)
{
	json_t *plan = planned(f), *sandbox = plan ? json_object() : NULL;

	if (!sandbox) {
		json_decref(plan);
		return NULL;
	}
	copy_planned(sandbox, plan);
	json_decref(plan);
	json_object_set_new(sandbox, "state", json_string(f->state));
	json_object_set_new(sandbox, "pid", json_integer(getpid()));
	json_object_set_new(sandbox, "started_ms", json_integer(f->started_ms));
	json_object_set_new(sandbox, "wall_left_ms", sbx_control_number(f->wall_left_ms));
	set_policy(sandbox, f);
	json_object_set_new(sandbox, "flows", json_array());
	json_object_set_new(sandbox, "flows_left_out", json_integer(0));
	json_object_set_new(sandbox, "usage", usage(f->cgroup));
	json_object_set_new(sandbox, "selftest", selftest(f));
	json_object_set_new(sandbox, "execs", json_integer((json_int_t)f->n_execs));
	json_object_set_new(sandbox, "published",
			    sbx_show_published(f->setup->publish, f->setup->n_publish));
	cut(sandbox);
	return json_pack("{s:o}", "sandbox", sandbox);
}
