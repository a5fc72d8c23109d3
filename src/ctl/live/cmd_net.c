/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* sbxctl net, reload and publish: a running sandbox may reach or be reached by something else. */
#include <limits.h>
#include <string.h>

#include "base/cleanup.h"
#include "ctl/frame/places.h"
#include "ctl/live/ask.h"
#include "ctl/live/live.h"
#include "policy/forms/option_form.h"

/* --- net --- */

struct values {
	bool air_gap, no_air_gap, replace;
	const char **allow, **deny, **rule;
	size_t n_allow, n_deny, n_rule;
};

#define FLAG(field) .kind = SBX_OPTION_FLAG, .offset = offsetof(struct values, field)
#define LIST(field)                                                                                \
	.kind = SBX_OPTION_LIST, .offset = offsetof(struct values, field),                         \
	.n_offset = offsetof(struct values, n_##field), .check = sbx_form_not_empty

static const struct sbx_option options[] = {
	{ "air-gap", FLAG(air_gap), .help = "cut every flow, and refuse new ones",
	  .more = "; entries of --allow are still reached" },
	{ "no-air-gap", FLAG(no_air_gap), .help = "end the air gap" },
	{ "allow", .value = "PATTERN", LIST(allow),
	  .help = "allow connections to this name or network from now on",
	  .more = ": example.org, '*.example.org:443', 192.0.2.0/24:5432" },
	{ "deny", .value = "PATTERN", LIST(deny),
	  .help = "refuse connections to this name or network from now on",
	  .more = ", and cut those that are open" },
	{ "rule", .value = "RULE", LIST(rule),
	  .help = "let these live rules take the place of those that are in force",
	  .more = ", allow|deny PATTERN [METHODS [PATH...]]: 'allow api.example.org GET,HEAD "
		  "/v1/a'" },
	{ "replace", FLAG(replace), .help = "let these entries replace all that were added before",
	  .more = "; with no --allow, --deny and --rule none is left" },
};

static json_t *array_of(const char **v, size_t n)
{
	json_t *list = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(list, sbx_json_text(v[i]));
	return list;
}

/* NULL with ctl->err: nothing was asked for, or too much. */
static json_t *request_of(struct sbx_ctl *ctl, const struct values *v)
{
	json_t *request;

	if (v->air_gap && v->no_air_gap) {
		sbx_err_set(&ctl->err, "--air-gap and --no-air-gap exclude each other");
		return NULL;
	}
	if (!v->air_gap && !v->no_air_gap && !v->replace && !v->n_allow && !v->n_deny &&
	    !v->n_rule) {
		sbx_err_set(&ctl->err,
			    "nothing is to be changed (--air-gap, --no-air-gap, --allow, "
			    "--deny, --rule, --replace; sbxctl show prints what is in force)");
		return NULL;
	}
	request = json_pack("{s:s}", "op", "network");
	if (v->air_gap || v->no_air_gap)
		json_object_set_new(request, "air_gapped", json_boolean(v->air_gap));
	if (v->n_allow || v->replace)
		json_object_set_new(request, v->replace ? "allow_out" : "add_allow",
				    array_of(v->allow, v->n_allow));
	if (v->n_deny || v->replace)
		json_object_set_new(request, v->replace ? "deny_out" : "add_deny",
				    array_of(v->deny, v->n_deny));
	if (v->n_rule || v->replace)
		json_object_set_new(request, "rules", array_of(v->rule, v->n_rule));
	return request;
}

/* The answer of the operations network and reload. Takes @answer. */
static int print_change(struct sbx_ctl *ctl, const char *id, json_t *answer)
{
	long long cut = json_integer_value(json_object_get(answer, "cut"));

	if (ctl->out.json) {
		json_object_del(answer, "v");
		json_object_del(answer, "ok");
		json_object_set_new(answer, "id", json_string(id));
		return sbx_ctl_status(ctl, sbx_out_json(&ctl->out, answer, false), "the answer");
	}
	fprintf(ctl->out.f, "%s: generation %lld%s, %lld flow%s cut\n", id,
		(long long)json_integer_value(json_object_get(answer, "generation")),
		json_is_true(json_object_get(answer, "air_gapped")) ? ", air gap" : "", cut,
		cut == 1 ? "" : "s");
	json_decref(answer);
	return SBX_CTL_DONE;
}

/* Names the flag in place of the request's member: "--allow" of "add_allow[0]: ". */
static void name_flag(struct sbx_err *err)
{
	const char *rest = strstr(err->msg, ": ");
	const char *flag = strncmp(err->msg, "add_allow[", 10) == 0 ||
					   strncmp(err->msg, "allow_out[", 10) == 0 ?
				   "--allow" :
			   strncmp(err->msg, "add_deny[", 9) == 0 ||
					   strncmp(err->msg, "deny_out[", 9) == 0 ?
				   "--deny" :
			   strncmp(err->msg, "rules[", 6) == 0 ? "--rule" :
								 NULL;
	struct sbx_err named = { 0 };

	if (!flag || !rest)
		return;
	sbx_err_set(&named, "%s %s", flag, rest + 2);
	*err = named;
}

static int run_net(struct sbx_ctl *ctl)
{
	const struct values *v = ctl->values;
	char id[SBX_ID_LEN + 1];
	json_t *answer = NULL, *request = request_of(ctl, v);
	int r;

	if (!request)
		return SBX_CTL_USAGE;
	r = sbx_ctl_ask(ctl, ctl->argv[0], request, id, &answer);
	if (r != SBX_CTL_DONE)
		name_flag(&ctl->err);
	for (size_t i = 0; r == SBX_CTL_DONE && i < v->n_allow; i++)
		sbx_ctl_note_floor(v->allow[i]);
	return r == SBX_CTL_DONE ? print_change(ctl, id, answer) : r;
}

const struct sbx_ctl_command sbx_cmd_net = {
	.name = "net",
	.args = "ID",
	.n_min = 1,
	.n_max = 1,
	.complete = "sandbox",
	.options = options,
	.n_options = SBX_N_ELEMENTS(options),
	.n_values = sizeof(struct values),
	.help = "change what a running sandbox may reach",
	.more = ". The answer comes when what is no longer allowed is cut, with the number of "
		"flows",
	.example = "sbxctl net 3f2a --air-gap --allow api.example.org",
	.run = run_net,
};

/* --- reload --- */

static int run_reload(struct sbx_ctl *ctl)
{
	char id[SBX_ID_LEN + 1];
	json_t *answer = NULL;
	int r = sbx_ctl_ask(ctl, ctl->argv[0],
			    json_pack("{s:s, s:s}", "op", "reload", "what", "all"), id, &answer);

	return r == SBX_CTL_DONE ? print_change(ctl, id, answer) : r;
}

const struct sbx_ctl_command sbx_cmd_reload = {
	.name = "reload",
	.args = "ID",
	.n_min = 1,
	.n_max = 1,
	.complete = "sandbox",
	.help = "let a running sandbox read its profile, the system policy and the rules again",
	.more = "; if they are not valid, the old policy stays",
	.example = "sbxctl reload 3f2a",
	.run = run_reload,
};

/* --- publish --- */

static int run_publish(struct sbx_ctl *ctl)
{
	char id[SBX_ID_LEN + 1];
	json_t *answer = NULL, *published, *item, *request = json_pack("{s:s}", "op", "publish");
	size_t i;
	int r;

	if (ctl->argc > 1)
		json_object_set_new(
			request, "ports",
			array_of((const char **)(uintptr_t)(ctl->argv + 1), (size_t)ctl->argc - 1));
	r = sbx_ctl_ask(ctl, ctl->argv[0], request, id, &answer);
	if (r != SBX_CTL_DONE)
		return r;
	published = json_object_get(answer, "published");
	if (ctl->out.json) {
		r = sbx_out_json(&ctl->out,
				 json_pack("{s:s, s:O?}", "id", id, "published", published), false);
		json_decref(answer);
		return sbx_ctl_status(ctl, r, "the answer");
	}
	json_array_foreach(published, i, item)
	{
		if (!json_is_string(item))
			continue;
		sbx_out_text(&ctl->out, json_string_value(item));
		fputc('\n', ctl->out.f);
	}
	json_decref(answer);
	return SBX_CTL_DONE;
}

const struct sbx_ctl_command sbx_cmd_publish = {
	.name = "publish",
	.args = "ID [[ADDR:]PORT[:PORT]...]",
	.n_min = 1,
	.n_max = INT_MAX,
	.complete = "sandbox",
	.help = "let programs outside connect to a server of a running sandbox",
	.more = ": the first PORT is this host's (0: any free one), the second the sandbox's; "
		"without ports, list what is published",
	.example = "sbxctl publish 3f2a 8080",
	.run = run_publish,
};
