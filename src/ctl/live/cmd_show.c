/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * sbxctl show: one sandbox. A running one is asked for what is in force now; of one that has ended
 * the database has what was recorded. Keys of the answer that are missing are left out.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "ctl/frame/places.h"
#include "ctl/live/ask.h"
#include "ctl/live/live.h"
#include "ctl/live/sandbox_now.h"
#include "ctl/live/sandbox_row.h"
#include "ctl/live/show_text.h"
#include "ctl/print/form.h"
#include "ctl/print/table.h"

SBX_DEFINE_CLEANUP(struct sbx_store, sbx_store_close);
SBX_DEFINE_CLEANUP(struct sbx_table, sbx_table_free);

struct values {
	bool ruleset;
};

static const struct sbx_option options[] = {
	{ "ruleset", .kind = SBX_OPTION_FLAG, .offset = offsetof(struct values, ruleset),
	  .help = "print also the kernel's ruleset of a running sandbox" },
};

/* --- lines --- */

static void line(struct sbx_ctl *ctl, const char *name, const char *text)
{
	if (!text || !text[0])
		return;
	fprintf(ctl->out.f, "%s%-10s%s ", sbx_out_begin(&ctl->out, SBX_BOLD), name,
		sbx_out_end(&ctl->out, SBX_BOLD));
	sbx_out_text(&ctl->out, text);
	fputc('\n', ctl->out.f);
}

/* A scalar for people. malloc'ed or NULL. */
static char *scalar(const json_t *v)
{
	if (json_is_string(v))
		return strdup(json_string_value(v));
	return v && !json_is_null(v) ? json_dumps(v, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;
}

/* "a, b" of an array of strings, "k=v, ..." of an object. malloc'ed or NULL. */
static char *joined(json_t *v)
{
	char *text = NULL;
	const char *key;
	json_t *item;
	size_t i, n;
	FILE *out;

	if (!json_is_array(v) && !json_is_object(v))
		return scalar(v);
	out = open_memstream(&text, &n);
	if (!out)
		return NULL;
	json_array_foreach(v, i, item)
	{
		SBX_AUTO_FREE char *s = scalar(item);

		fprintf(out, "%s%s", i ? ", " : "", s ? s : "?");
	}
	if (json_is_object(v)) {
		i = 0;
		json_object_foreach(v, key, item)
		{
			SBX_AUTO_FREE char *s = scalar(item);

			if (s)
				fprintf(out, "%s%s=%s", i++ ? ", " : "", key, s);
		}
	}
	fclose(out);
	return text;
}

static void line_of(struct sbx_ctl *ctl, json_t *sandbox, const char *key, const char *name)
{
	SBX_AUTO_FREE char *text = joined(json_object_get(sandbox, key));

	line(ctl, name, text);
}

static void line_take(struct sbx_ctl *ctl, const char *name, char *text)
{
	line(ctl, name, text);
	free(text);
}

static void times(struct sbx_ctl *ctl, json_t *sandbox)
{
	static const char *const keys[] = { "created_ms", "started_ms", "released_ms", "ended_ms" };
	static const char *const names[] = { "created", "started", "released", "ended" };
	char time[SBX_FORM_MAX], age[SBX_FORM_MAX], text[2 * SBX_FORM_MAX + 8];

	for (size_t i = 0; i < SBX_N_ELEMENTS(keys); i++) {
		json_t *v = json_object_get(sandbox, keys[i]);

		if (!json_is_integer(v) || json_integer_value(v) <= 0)
			continue;
		sbx_text_cut(text, sizeof(text), "%s (%s ago)",
			     sbx_form_time(json_integer_value(v), time),
			     sbx_form_age(ctl->out.now_ms - json_integer_value(v), age));
		line(ctl, names[i], text);
	}
	if (json_is_integer(json_object_get(sandbox, "wall_left_ms")))
		line(ctl, "ends in",
		     sbx_form_age(json_integer_value(json_object_get(sandbox, "wall_left_ms")),
				  age));
}

static void policy_line(struct sbx_ctl *ctl, json_t *sandbox)
{
	char text[96];

	sbx_text_cut(text, sizeof(text), "generation %lld%s",
		     (long long)json_integer_value(json_object_get(sandbox, "generation")),
		     json_is_true(json_object_get(sandbox, "air_gapped")) ? ", air gap" : "");
	line(ctl, "policy", text);
	line_of(ctl, sandbox, "allow_out", "allowed");
	line_of(ctl, sandbox, "deny_out", "denied");
	line_of(ctl, sandbox, "rules", "rules");
}

/* --- tables --- */

struct field {
	const char *key;
	enum { TEXT, BYTES, AGE } form;
};

static void cell(struct sbx_ctl *ctl, struct sbx_table *t, json_t *row, const struct field *f)
{
	json_t *v = json_object_get(row, f->key);
	char buf[SBX_FORM_MAX];
	SBX_AUTO_FREE char *text = f->form == TEXT ? joined(v) : NULL;
	enum sbx_colour colour = SBX_PLAIN;

	if (f->form == TEXT && text && strcmp(f->key, "action") == 0)
		colour = strcmp(text, "allow") == 0 ? SBX_GOOD : SBX_BAD;
	if (f->form == BYTES && json_is_integer(v))
		sbx_table_add(t, colour, sbx_form_bytes((uint64_t)json_integer_value(v), buf));
	else if (f->form == AGE && json_is_integer(v))
		sbx_table_add(t, colour,
			      sbx_form_age(ctl->out.now_ms - json_integer_value(v), buf));
	else
		sbx_table_add(t, colour, text);
}

static int table(struct sbx_ctl *ctl, json_t *rows, const struct sbx_column *columns,
		 const struct field *fields, size_t n)
{
	SBX_CLEANUP(sbx_table_freep) struct sbx_table *t = NULL;
	json_t *row;
	size_t i;

	if (!json_is_array(rows) || json_array_size(rows) == 0)
		return 0;
	t = sbx_table_new(columns, n);
	if (!t)
		return -ENOMEM;
	json_array_foreach(rows, i, row) for (size_t k = 0; k < n; k++)
		cell(ctl, t, row, &fields[k]);
	fputc('\n', ctl->out.f);
	return sbx_table_print(t, &ctl->out);
}

static int tables(struct sbx_ctl *ctl, json_t *sandbox)
{
	static const struct sbx_column policy[] = { { "ENTRY", .shrinks = true },
						    { "ACTION", .shrinks = false },
						    { "LAYER", .shrinks = false },
						    { "ORIGIN", .shrinks = true } };
	static const struct field policy_keys[] = {
		{ "entry", TEXT }, { "action", TEXT }, { "layer", TEXT }, { "origin", TEXT }
	};
	static const struct sbx_column flows[] = {
		{ "FLOW TO", .shrinks = true }, { "ADDRESS", .shrinks = true },
		{ "PORT", .right = true },	{ "PROTOCOL", .shrinks = false },
		{ "OUT", .right = true },	{ "IN", .right = true },
		{ "AGE", .right = true },	{ "RULE", .shrinks = true }
	};
	static const struct field flow_keys[] = { { "name", TEXT },	  { "ip", TEXT },
						  { "port", TEXT },	  { "protocol", TEXT },
						  { "bytes_out", BYTES }, { "bytes_in", BYTES },
						  { "since_ms", AGE },	  { "rule", TEXT } };
	int r = table(ctl, json_object_get(sandbox, "policy"), policy, policy_keys,
		      SBX_N_ELEMENTS(policy));

	if (r == 0)
		r = table(ctl, json_object_get(sandbox, "flows"), flows, flow_keys,
			  SBX_N_ELEMENTS(flows));
	return r;
}

/* Text of our own: lines and their indentation are kept, everything else is escaped. */
static void print_ruleset(struct sbx_ctl *ctl, const char *text)
{
	fputc('\n', ctl->out.f);
	while (*text) {
		SBX_AUTO_FREE char *one = NULL;

		for (; *text == '\t'; text++)
			fputs("    ", ctl->out.f);
		one = strndup(text, strcspn(text, "\n"));
		if (one)
			sbx_out_text(&ctl->out, one);
		fputc('\n', ctl->out.f);
		text += strcspn(text, "\n");
		text += *text == '\n';
	}
}

/* An answer has a bound, and the launcher cut what is longer. */
static void left_out(struct sbx_ctl *ctl, json_t *sandbox)
{
	long long n = json_integer_value(json_object_get(sandbox, "flows_left_out"));

	if (n > 0)
		fprintf(ctl->out.f, "... and %lld more flow%s\n", n, n == 1 ? "" : "s");
	if (json_is_true(json_object_get(sandbox, "truncated")))
		sbx_ctl_tell_empty(ctl, "the policy or the ruleset is too long to be shown whole");
}

static int print(struct sbx_ctl *ctl, json_t *sandbox)
{
	const struct values *v = ctl->values;
	const char *ruleset = json_string_value(json_object_get(sandbox, "ruleset"));
	const json_t *usage = json_object_get(sandbox, "usage"), *used = usage ? usage : sandbox;
	int r;

	line_of(ctl, sandbox, "id", "sandbox");
	line_of(ctl, sandbox, "state", "state");
	line_of(ctl, sandbox, "exit_status", "exit");
	line_take(ctl, "command", sbx_sandbox_command(json_object_get(sandbox, "command")));
	line_of(ctl, sandbox, "profile", "profile");
	line_of(ctl, sandbox, "workspace", "workspace");
	line_of(ctl, sandbox, "analysis_id", "analysis");
	line_of(ctl, sandbox, "pid", "launcher");
	times(ctl, sandbox);
	line_take(ctl, "network", sbx_show_network(json_object_get(sandbox, "network")));
	policy_line(ctl, sandbox);
	line_of(ctl, sandbox, "published", "published");
	line_take(ctl, "limits", sbx_show_limits(json_object_get(sandbox, "limits")));
	line_take(ctl, "usage", sbx_show_usage(used));
	line_take(ctl, "self-test", sbx_show_selftest(json_object_get(sandbox, "selftest")));
	if (json_integer_value(json_object_get(sandbox, "execs")) > 0)
		line_of(ctl, sandbox, "execs", "execs");
	r = tables(ctl, sandbox);
	left_out(ctl, sandbox);
	if (v->ruleset && ruleset)
		print_ruleset(ctl, ruleset);
	return r;
}

/* --- the two sources --- */

struct row {
	const struct sbx_ctl *ctl;
	json_t **ret;
};

/* The recorded probes, [name, ok, detail] each, in the form of a launcher's answer. */
static json_t *probes(const char *text)
{
	json_t *recorded = sbx_json_parse(text), *list, *probe;
	size_t i;

	if (!json_is_array(recorded))
		return recorded;
	list = json_array();
	json_array_foreach(recorded, i, probe)
	{
		json_array_append_new(list, json_pack("{s:O?, s:b, s:O?}", "probe",
						      json_array_get(probe, 0), "ok",
						      json_is_true(json_array_get(probe, 1)),
						      "detail", json_array_get(probe, 2)));
	}
	json_decref(recorded);
	return list;
}

static int take_row(const struct sbx_store_sandbox_row *s, void *userdata)
{
	const struct row *row = userdata;
	const struct sbx_ctl *ctl = row->ctl;
	json_t **ret = row->ret;

	*ret = sbx_sandbox_json(s);
	if (s->ended_ms == SBX_STORE_NONE)
		json_object_set_new(*ret, "launcher_alive",
				    json_boolean(sbx_control_has_launcher(ctl->facts.runtime_dir,
									  s->id)));
	json_object_set_new(*ret, "selftest", probes(s->selftest_json));
	return *ret ? 0 : -ENOMEM;
}

/* The row of the sandbox, if there is one. */
static int recorded(struct sbx_ctl *ctl, const char *which, json_t **ret)
{
	SBX_CLEANUP(sbx_store_closep) struct sbx_store *store = NULL;
	struct row row = { .ctl = ctl, .ret = ret };
	int r = sbx_ctl_store(ctl, &store);

	if (r != SBX_CTL_DONE)
		return r;
	if (!store) {
		sbx_err_set(&ctl->err,
			    "there is no sandbox '%s': none has run yet (sbx-run -- "
			    "COMMAND)",
			    which);
		return SBX_CTL_NO;
	}
	r = sbx_store_sandbox_get(store, which, take_row, &row, &ctl->err);
	return sbx_ctl_status(ctl, r, which);
}

static int run(struct sbx_ctl *ctl)
{
	char id[SBX_ID_LEN + 1];
	json_t *answer = NULL, *sandbox = NULL;
	int r = sbx_ctl_ask(ctl, ctl->argv[0], json_pack("{s:s}", "op", "show"), id, &answer);

	if (r == SBX_CTL_DONE) {
		sandbox = json_incref(json_object_get(answer, "sandbox"));
	} else if (r == SBX_CTL_NO) {
		memset(&ctl->err, 0, sizeof(ctl->err));
		r = recorded(ctl, ctl->argv[0], &sandbox);
	}
	json_decref(answer);
	if (r != SBX_CTL_DONE)
		return r;
	if (ctl->out.json)
		return sbx_ctl_status(
			ctl, sbx_out_json(&ctl->out, json_pack("{s:o}", "sandbox", sandbox), false),
			"the answer");
	r = print(ctl, sandbox);
	json_decref(sandbox);
	return sbx_ctl_status(ctl, r, "the answer");
}

const struct sbx_ctl_command sbx_cmd_show = {
	.name = "show",
	.args = "ID",
	.n_min = 1,
	.n_max = 1,
	.complete = "any",
	.options = options,
	.n_options = SBX_N_ELEMENTS(options),
	.n_values = sizeof(struct values),
	.help = "show a sandbox",
	.more = ": what it may reach now and by which rule, its open flows, limits and usage",
	.example = "sbxctl show 3f2a",
	.run = run,
};
