/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * POST /explain: would a sandbox be allowed this, and by which rule? Of a live sandbox its launcher
 * is asked about connections, because its policy may have changed. Everything else is answered by
 * planning, in a child. A denial is an answer.
 */
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "daemon/hub/sbxctl.h"
#include "daemon/resources/daemon.h"
#include "daemon/resources/print.h"
#include "daemon/resources/resources.h"
#include "daemon/resources/sandbox_find.h"
#include "launcher/rules/rule_check.h"

#define WORDS_MAX 30
#define DRAFT_MAX (SBX_STORE_PATTERN_MAX + 16)

static const char *member(const struct sbx_call *call, const char *name)
{
	return json_string_value(json_object_get(call->body, name));
}

static bool has(const struct sbx_call *call, const char *name)
{
	return json_object_get(call->body, name) != NULL;
}

static void refuse(struct sbx_call *call, const char *field, const char *why)
{
	sbx_reply_problem(call, 422, "invalid", field, "%s: %s", field, why);
}

/* --- is it one question? --- */

/* False: it was answered. */
static bool check_question(struct sbx_call *call)
{
	static const char *const of_flows[] = { "host", "port", "address", "method", "path" };
	static const char *const words[] = { "host",  "address", "method",   "path",
					     "mount", "command", "workspace" };
	int n = has(call, "protocol") + has(call, "mount") + has(call, "command");

	if (n != 1) {
		refuse(call, "protocol", "ask one thing: give protocol, mount or command");
		return false;
	}
	for (size_t i = 0; i < SBX_N_ELEMENTS(of_flows); i++) {
		bool needed = i < 2 && has(call, "protocol");

		if (needed ? has(call, of_flows[i]) :
			     has(call, "protocol") || !has(call, of_flows[i]))
			continue;
		refuse(call, of_flows[i],
		       needed ? "it is missing: a connection has a host and a port" :
				"it belongs to a connection: give protocol, host and port");
		return false;
	}
	for (size_t i = 0; i < SBX_N_ELEMENTS(words); i++) {
		if (!has(call, words[i]) || sbx_sbxctl_takes(member(call, words[i])))
			continue;
		refuse(call, words[i], "it must not be empty or begin with '-'");
		return false;
	}
	if (has(call, "id") && (has(call, "profile") || has(call, "workspace"))) {
		refuse(call, "id", "a sandbox has its own profile and workspace");
		return false;
	}
	return true;
}

/* --- the draft of a rule --- */

static const char *of_rule(const struct sbx_call *call, const char *name, const char *otherwise)
{
	const char *s = json_string_value(
		json_object_get(json_object_get(call->body, "rule"), name));

	return s ? s : otherwise;
}

/* False: it was answered. */
static bool check_draft(struct sbx_call *call)
{
	const json_t *rule = json_object_get(call->body, "rule");
	const char *type = of_rule(call, "type", "network");
	bool is_floor = json_is_true(json_object_get(rule, "is_floor"));
	const struct sbx_store_rule r = {
		.workspace = is_floor ? NULL : "w",
		.type = type,
		.pattern = of_rule(call, "pattern", ""),
		.action = of_rule(call, "action", ""),
		.is_floor = is_floor,
	};
	struct sbx_err err = { 0 };
	int e;

	if (!rule)
		return true;
	if (has(call, "id") || has(call, "mount")) {
		refuse(call, "rule", has(call, "id") ? "a draft is judged without a live sandbox" :
						       "no rule is about mounts");
		return false;
	}
	if ((strcmp(type, "tool") == 0) != has(call, "command")) {
		refuse(call, "rule.type",
		       "a tool rule is for a command, a network rule for a connection");
		return false;
	}
	e = sbx_rule_check(&r, &err);
	if (e < 0)
		sbx_reply_json(call, 200, NULL);
	else if (e > 0)
		refuse(call, is_floor && strcmp(r.action, "deny") != 0 ? "rule.action" :
									 "rule.pattern",
		       err.msg);
	return e == 0;
}

static size_t add_option(const char **words, size_t n, const char *flag, const char *value)
{
	if (value) {
		words[n++] = flag;
		words[n++] = value;
	}
	return n;
}

struct draft {
	char text[DRAFT_MAX], priority[24], id[24];
};

static size_t add_draft(const struct sbx_call *call, struct draft *d, const char **words, size_t n)
{
	const json_t *rule = json_object_get(call->body, "rule");
	const json_t *priority = json_object_get(rule, "priority"), *id;

	if (!rule)
		return n;
	id = json_object_get(rule, "id");
	sbx_text_fit(d->text, sizeof(d->text), "%s:%s",
		     json_is_true(json_object_get(rule, "is_floor")) ? "floor" :
								       of_rule(call, "action", ""),
		     of_rule(call, "pattern", ""));
	sbx_text_fit(d->priority, sizeof(d->priority), "%lld",
		     (long long)json_integer_value(priority));
	sbx_text_fit(d->id, sizeof(d->id), "%lld", (long long)json_integer_value(id));
	n = add_option(words, n, "--draft", d->text);
	n = add_option(words, n, "--draft-priority", priority ? d->priority : NULL);
	return add_option(words, n, "--draft-replaces", id ? d->id : NULL);
}

/* --- by planning --- */

static void on_planned(void *userdata, int result, int status, json_t *answer,
		       const struct sbx_err *err)
{
	struct sbx_call *call = userdata;

	if (result != 0)
		sbx_call_child_failed(call, result, err);
	else if (answer && (status == SBX_SBXCTL_DONE || status == SBX_SBXCTL_NO))
		sbx_reply_json(call, 200, json_incref(answer));
	else
		sbx_reply_problem(call, 422, "refused", NULL, "%s", err->msg);
}

static void plan(struct sbx_call *call)
{
	static const char *const kinds[] = { "mount", "command" };
	const char *words[WORDS_MAX] = { "explain" }, *own = call->principal.workspace;
	struct draft draft;
	char port[8];
	size_t n = 1;

	n = add_option(words, n, "--id", member(call, "id"));
	n = add_option(words, n, "--profile", member(call, "profile"));
	if (!has(call, "id"))
		n = add_option(words, n, "--workspace", own[0] ? own : member(call, "workspace"));
	n = add_option(words, n, "--address", member(call, "address"));
	n = add_option(words, n, "--method", member(call, "method"));
	n = add_option(words, n, "--path", member(call, "path"));
	n = add_draft(call, &draft, words, n);
	words[n++] = "--";
	if (has(call, "protocol")) {
		snprintf(port, sizeof(port), "%d",
			 (int)json_integer_value(json_object_get(call->body, "port")));
		words[n++] = member(call, "protocol");
		words[n++] = member(call, "host");
		words[n++] = port;
	}
	for (size_t i = 0; i < SBX_N_ELEMENTS(kinds); i++) {
		if (!has(call, kinds[i]))
			continue;
		words[n++] = kinds[i];
		words[n++] = member(call, kinds[i]);
	}
	sbx_sbxctl_ask(call->daemon->children, call->daemon->sbxctl, words, on_planned, call);
}

/* --- of a live sandbox --- */

static void on_explained(void *userdata, int result, json_t *answer, const struct sbx_err *err)
{
	struct sbx_call *call = userdata;

	if (result == 0)
		sbx_reply_json(call, 200, json_incref(json_object_get(answer, "explain")));
	else
		sbx_call_refused(call, result, answer, err);
}

static void ask_launcher(struct sbx_call *call)
{
	static const char *const keys[] = { "protocol", "host", "port", "address",
					    "method",	"path", NULL };
	json_t *request = json_pack("{s:s}", "op", "explain");

	sbx_print_members(request, call->body, keys);
	sbx_call_ask(call, member(call, "id"), request, on_explained, call);
}

void sbx_post_explain(struct sbx_call *call)
{
	const char *workspace = member(call, "workspace"), *own = call->principal.workspace;
	json_t *sandbox = NULL;

	if (!check_question(call) || !check_draft(call))
		return;
	if (own[0] && workspace && strcmp(own, workspace) != 0) {
		sbx_reply_unknown(call, "workspace");
		return;
	}
	if (has(call, "id")) {
		sandbox = sbx_call_sandbox(call, member(call, "id"));
		if (!sandbox)
			return;
		json_decref(sandbox);
	}
	if (sandbox && has(call, "protocol"))
		ask_launcher(call);
	else
		plan(call);
}
