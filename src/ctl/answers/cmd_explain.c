/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * sbxctl explain: would a sandbox be allowed this, and by which rule? A plan is made as by sbx-run
 * in this directory, and asked. With --id the launcher of a running sandbox is asked about
 * connections: its policy may have changed since it began.
 */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "ctl/answers/answers.h"
#include "ctl/answers/dry_plan.h"
#include "ctl/answers/explain_view.h"
#include "ctl/frame/places.h"
#include "ctl/live/ask.h"
#include "launcher/explain/explain_request.h"
#include "launcher/rules/rule_check.h"
#include "policy/forms/units.h"

SBX_DEFINE_CLEANUP(struct sbx_control_client, sbx_control_disconnect);

struct values {
	const char *profile, *workspace, *id, *address, *method, *path;
	const char *draft, *draft_priority, *draft_replaces;
};

#define STRING(field) .kind = SBX_OPTION_STRING, .offset = offsetof(struct values, field)

static const char *check_rule_id(const char *s)
{
	uint64_t n;

	if (sbx_count_parse(s, &n) < 0 || n == 0 || n >= SBX_RULE_DRAFT)
		return "it is no rule's number";
	return NULL;
}

static const struct sbx_option options[] = {
	{ "profile", .value = "NAME|FILE", STRING(profile), .complete = "profile",
	  .help = "the profile of the sandbox", .more = " (default: default)" },
	{ "workspace", .value = "NAME", STRING(workspace),
	  .help = "the workspace, whose rules hold" },
	{ "id", .value = "ID", STRING(id), .complete = "sandbox", .help = "a running sandbox",
	  .more = ": connections are asked about in its policy as it is now; for mounts and "
		  "commands its profile and workspace are taken" },
	{ "address", .value = "ADDR", STRING(address),
	  .help = "with tcp and udp: an address that the name resolves to" },
	{ "method", .value = "METHOD", STRING(method), .help = "with tcp: the method of a request",
	  .more = " (default: GET)" },
	{ "path", .value = "PATH", STRING(path), .help = "with tcp: the path of a request",
	  .more = " (default: /)" },
	{ "draft", .value = "ACTION:PATTERN", STRING(draft),
	  .help = "judge a rule that is not stored, as if it were",
	  .more = ": ACTION is allow, deny or floor; for a command it is a tool rule" },
	{ "draft-priority", .value = "N", STRING(draft_priority), .check = sbx_rule_check_priority,
	  .help = "the priority of the draft", .more = " (default: 100)" },
	{ "draft-replaces", .value = "RULE", STRING(draft_replaces), .check = check_rule_id,
	  .help = "leave out the rule with this number, whose place the draft takes" },
};

/* --- printing --- */

static void print_match(const struct sbx_out *out, const struct sbx_explained_match *m)
{
	fprintf(out->f, "  %-7s %-10s %-10s ", m->decided ? "decided" : "", m->layer, m->action);
	sbx_out_text(out, m->text);
	if (m->origin[0]) {
		fputs("  [", out->f);
		sbx_out_text(out, m->origin);
		fputs("]", out->f);
	}
	fputc('\n', out->f);
}

static void print_text(const struct sbx_out *out, const struct sbx_explained *e)
{
	enum sbx_colour colour = e->allowed ? SBX_GOOD : SBX_BAD;

	fprintf(out->f, "%s%s%s ", sbx_out_begin(out, colour), e->allowed ? "allow" : "deny",
		sbx_out_end(out, colour));
	sbx_out_text(out, e->subject);
	fprintf(out->f, " (%s)\n", e->reason);
	sbx_out_text(out, e->why);
	fputc('\n', out->f);
	if (e->n_matches)
		fputs("matches:\n", out->f);
	for (size_t i = 0; i < e->n_matches; i++)
		print_match(out, &e->matches[i]);
	if (e->n_more)
		fprintf(out->f, "  and %zu more\n", e->n_more);
	if (e->n_changes)
		fputs("to change it:\n", out->f);
	for (size_t i = 0; i < e->n_changes; i++) {
		fputs("  ", out->f);
		sbx_out_text(out, e->changes[i]);
		fputc('\n', out->f);
	}
}

static int answer(struct sbx_ctl *ctl, const struct sbx_explained *e)
{
	int r = 0, status;

	if (ctl->out.json)
		r = sbx_out_json(&ctl->out, sbx_explained_json(e), false);
	else
		print_text(&ctl->out, e);
	status = sbx_ctl_status(ctl, r, "the answer");
	return status != SBX_CTL_DONE ? status : e->allowed ? SBX_CTL_DONE : SBX_CTL_NO;
}

/* --- the draft of a rule --- */

static int usage(struct sbx_ctl *ctl, const char *what)
{
	sbx_err_set(&ctl->err, "explain: %s", what);
	return SBX_CTL_USAGE;
}

static const struct {
	const char *word;
	enum sbx_action action;
	bool is_floor;
} actions[] = {
	{ "allow:", SBX_ALLOW, false },
	{ "deny:", SBX_DENY, false },
	{ "floor:", SBX_DENY, true },
};

/* The form of the draft alone; it is judged with the stored rules later. */
static int check_draft(struct sbx_ctl *ctl, const struct sbx_rule_draft *draft)
{
	struct sbx_rules rules = { 0 };
	struct sbx_err err = { 0 };
	int r = sbx_rules_add_draft(&rules, draft, &err);

	sbx_rules_fini(&rules);
	if (r <= 0)
		return sbx_ctl_status(ctl, r, "the draft");
	sbx_err_set(&ctl->err, "explain: --draft: %s", err.msg);
	return SBX_CTL_USAGE;
}

static int parse_draft(struct sbx_ctl *ctl, const struct values *v, enum sbx_rule_type type,
		       struct sbx_rule_draft *ret_draft)
{
	struct sbx_rule_draft d = { .type = type, .priority = SBX_RULE_PRIORITY };
	uint64_t n;

	if (!v->draft)
		return v->draft_priority || v->draft_replaces ?
			       usage(ctl, "--draft-priority and --draft-replaces are for --draft") :
			       SBX_CTL_DONE;
	for (size_t i = 0; i < SBX_N_ELEMENTS(actions) && !d.pattern; i++) {
		size_t n_word = strlen(actions[i].word);

		if (strncmp(v->draft, actions[i].word, n_word) != 0)
			continue;
		d.action = actions[i].action;
		d.is_floor = actions[i].is_floor;
		d.pattern = v->draft + n_word;
	}
	if (!d.pattern)
		return usage(ctl, "--draft is allow:PATTERN, deny:PATTERN or floor:PATTERN");
	if (v->draft_priority && sbx_count_parse(v->draft_priority, &n) == 0)
		d.priority = (int64_t)n;
	if (v->draft_replaces && sbx_count_parse(v->draft_replaces, &n) == 0)
		d.replaces = (int64_t)n;
	*ret_draft = d;
	return check_draft(ctl, &d);
}

/* --- asking --- */

struct question {
	struct sbx_ctl *ctl;
	const struct values *values;
	const char *words[8]; /* the flags of sbx-run */
	struct sbx_dry_plan *base;
	struct sbx_rule_draft draft;
	struct values named; /* --id: the values with the names of the launcher's answer */
	json_t *shown;	     /* that answer */
};

/* The plan without what is asked about. Where the current directory cannot be granted, one that
 * does not need it. */
static int plan_base(struct question *q)
{
	const struct sbx_rule_draft *draft = q->draft.pattern ? &q->draft : NULL;
	size_t n = 0;
	int r;

	q->words[n++] = "--profile";
	q->words[n++] = q->values->profile ? q->values->profile : "default";
	if (q->values->workspace) {
		q->words[n++] = "--workspace";
		q->words[n++] = q->values->workspace;
	}
	r = sbx_dry_plan_new(q->words, NULL, draft, &q->base);
	if (r > 0) {
		q->base = sbx_dry_plan_free(q->base);
		q->words[n] = "--scratch";
		r = sbx_dry_plan_new(q->words, NULL, draft, &q->base);
	}
	if (r == 0 && q->base)
		return SBX_CTL_DONE;
	if (r > 0 && q->base->errs.n)
		q->ctl->err = q->base->errs.v[0];
	else
		sbx_err_set(&q->ctl->err, "no plan can be made: %s", strerror(r < 0 ? -r : EINVAL));
	return SBX_CTL_FAILED;
}

/* --- a running sandbox --- */

/* One request to the launcher of --id. *ret_answer is the caller's. */
static int ask_launcher(struct question *q, json_t *request_take, json_t **ret_answer)
{
	SBX_CLEANUP(sbx_control_disconnectp) struct sbx_control_client *client = NULL;
	char id[SBX_ID_LEN + 1];
	int r, status = SBX_CTL_FAILED;

	if (sbx_ctl_connect(q->ctl, q->values->id, id, &client) != SBX_CTL_DONE) {
		json_decref(request_take);
		return status;
	}
	r = sbx_control_ask(client, request_take, NULL, 0, ret_answer, &q->ctl->err);
	if (r == 0)
		return SBX_CTL_DONE;
	if (r == SBX_CONTROL_E_REFUSED &&
	    sbx_control_refusal_code(*ret_answer) == SBX_CONTROL_INVALID)
		status = SBX_CTL_USAGE;
	json_decref(*ret_answer);
	*ret_answer = NULL;
	return status;
}

static int ask_running(struct question *q, const struct sbx_explain_asked *asked)
{
	static struct sbx_explained e; /* large */
	json_t *got = NULL;
	int r, status = ask_launcher(q, sbx_explain_request(asked), &got);

	if (status != SBX_CTL_DONE)
		return status;
	r = sbx_explained_parse(json_object_get(got, "explain"), &e);
	json_decref(got);
	if (r == 0)
		return answer(q->ctl, &e);
	sbx_err_set(&q->ctl->err, "the launcher of %s gave no answer", q->values->id);
	return SBX_CTL_FAILED;
}

/* The profile and the workspace of --id; they live as long as q->shown. */
static int take_names(struct question *q)
{
	struct values *v = &q->named;
	const json_t *sandbox;
	int status = ask_launcher(q, json_pack("{s:s}", "op", "show"), &q->shown);

	if (status != SBX_CTL_DONE)
		return status;
	sandbox = json_object_get(q->shown, "sandbox");
	*v = *q->values;
	v->profile = json_string_value(json_object_get(sandbox, "profile"));
	v->workspace = json_string_value(json_object_get(sandbox, "workspace"));
	q->values = v;
	if (v->profile)
		return SBX_CTL_DONE;
	sbx_err_set(&q->ctl->err, "the launcher of %s gave no answer", v->id);
	return SBX_CTL_FAILED;
}

static int ask_flow(struct question *q, enum sbx_proto proto)
{
	struct sbx_ctl *ctl = q->ctl;
	struct sbx_explain_asked asked = {
		.proto = proto,
		.host = ctl->argv[1],
		.address = q->values->address,
		.method = q->values->method,
		.path = q->values->path,
		.workspace = q->values->workspace,
	};
	static struct sbx_explained e; /* large */
	int r;

	if (ctl->argc != 3)
		return usage(ctl, "tcp and udp take HOST PORT");
	asked.port = sbx_port_parse(ctl->argv[2]);
	if (asked.port == 0)
		return usage(ctl, "a port is a number from 1 to 65535");
	if (proto != SBX_PROTO_TCP && (asked.method || asked.path))
		return usage(ctl, "--method and --path are for tcp");
	if (q->values->id)
		return ask_running(q, &asked);
	r = plan_base(q);
	if (r != SBX_CTL_DONE)
		return r;
	r = sbx_explain_flow(q->base->plan->policy, q->base->plan->profile, &asked, &e, &ctl->err);
	if (r > 0)
		return SBX_CTL_USAGE;
	return r < 0 ? sbx_ctl_status(ctl, r, "explain") : answer(ctl, &e);
}

static int ask_view(struct question *q, bool command)
{
	struct sbx_ctl *ctl = q->ctl;
	static struct sbx_explained e; /* large */
	int r;

	if (ctl->argc != 2)
		return usage(ctl, command ? "command takes one NAME" : "mount takes one PATH");
	if (q->values->address || q->values->method || q->values->path)
		return usage(ctl, "--address, --method and --path are for connections");
	r = q->values->id ? take_names(q) : SBX_CTL_DONE;
	if (r == SBX_CTL_DONE)
		r = plan_base(q);
	if (r != SBX_CTL_DONE)
		return r;
	r = (command ? sbx_explain_command : sbx_explain_mount)(q->base, q->words, ctl->argv[1],
								&e);
	return r < 0 ? sbx_ctl_status(ctl, r, "explain") : answer(ctl, &e);
}

static int run(struct sbx_ctl *ctl)
{
	struct question q = { .ctl = ctl, .values = ctl->values };
	const char *kind = ctl->argv[0];
	int status;

	if (q.values->id && (q.values->profile || q.values->workspace))
		status = usage(ctl, "--id has its profile and workspace");
	else if (q.values->draft && (q.values->id || strcmp(kind, "mount") == 0))
		status = usage(ctl, "--draft is for connections and commands, without --id");
	else
		status = parse_draft(ctl, q.values,
				     strcmp(kind, "command") == 0 ? SBX_RULE_TOOL :
								    SBX_RULE_NETWORK,
				     &q.draft);
	if (status != SBX_CTL_DONE)
		return status;
	if (strcmp(kind, "tcp") == 0 || strcmp(kind, "udp") == 0)
		status = ask_flow(&q, kind[0] == 't' ? SBX_PROTO_TCP : SBX_PROTO_UDP);
	else if (strcmp(kind, "mount") == 0 || strcmp(kind, "command") == 0)
		status = ask_view(&q, kind[0] == 'c');
	else
		status = usage(ctl, "the first word is tcp, udp, mount or command");
	sbx_dry_plan_free(q.base);
	json_decref(q.shown);
	return status;
}

const struct sbx_ctl_command sbx_cmd_explain = {
	.name = "explain",
	.args = "tcp|udp|mount|command WHAT [PORT]",
	.n_min = 2,
	.n_max = 3,
	.options = options,
	.n_options = SBX_N_ELEMENTS(options),
	.n_values = sizeof(struct values),
	.help = "say whether a sandbox may do something, and which rule decides",
	.more = ": connect to HOST PORT, be granted a PATH, execute a command; exit status 0: "
		"allow, "
		"1: deny",
	.example = "sbxctl explain --profile build tcp pypi.org 443",
	.run = run,
};
