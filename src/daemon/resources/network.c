/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The reach of a live sandbox. A change answers when the flows that it forbids were cut. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "control/protocol.h"
#include "daemon/api/net_rule.h"
#include "daemon/http/etag.h"
#include "daemon/resources/audit.h"
#include "daemon/resources/daemon.h"
#include "daemon/resources/print.h"
#include "daemon/resources/resources.h"
#include "daemon/resources/sandbox_find.h"

#define LISTS_MAX (SBX_CONTROL_LINE_MAX - 64) /* bytes; the rest is for "v" and "generation" */

static void print_etag(const json_t *from, char ret_tag[SBX_ETAG_MAX])
{
	sbx_text_fit(ret_tag, SBX_ETAG_MAX, "\"g%lld\"",
		     (long long)json_integer_value(json_object_get(from, "generation")));
}

static void reply(struct sbx_call *call, const json_t *from)
{
	static const char *const keys[] = { "generation", "cut",      "air_gapped",
					    "allow_out",  "deny_out", NULL };
	json_t *o = json_object();
	char etag[SBX_ETAG_MAX];

	sbx_print_members(o, from, keys);
	sbx_print_rules(o, json_object_get(from, "rules"));
	print_etag(from, etag);
	sbx_reply_header(call, "ETag", etag);
	sbx_reply_json(call, 200, o);
}

static void on_shown(void *userdata, int result, json_t *answer, const struct sbx_err *err)
{
	if (result == 0)
		reply(userdata, json_object_get(answer, "sandbox"));
	else
		sbx_call_refused(userdata, result, answer, err);
}

/* The state in an audit row. @from: the object of the API, or a launcher's. NULL: no memory. */
static json_t *state_of(const json_t *from, bool of_launcher)
{
	static const char *const keys[] = { "generation", "air_gapped", "allow_out",
					    "deny_out",	  "rules",	NULL };
	json_t *o = json_object();

	sbx_print_members(o, from, keys);
	if (of_launcher)
		sbx_print_rules(o, json_object_get(from, "rules"));
	return o;
}

void sbx_get_network(struct sbx_call *call)
{
	json_t *sandbox = sbx_call_sandbox(call, call->found.params[0]);

	if (sandbox)
		sbx_call_ask(call, call->found.params[0], json_pack("{s:s}", "op", "show"),
			     on_shown, call);
	json_decref(sandbox);
}

static void on_changed(void *userdata, int result, json_t *answer, const struct sbx_err *err)
{
	struct sbx_call *call = userdata;
	json_t *after = result == 0 ? state_of(answer, true) : NULL;

	sbx_audit_end(call, result, after);
	json_decref(after);
	call->daemon->n_cut += (uint64_t)json_integer_value(json_object_get(answer, "cut"));
	if (result == 0)
		reply(call, answer);
	else
		sbx_call_refused(call, result, answer, err);
}

/* Is the request too long for a launcher's line? Then it was answered. */
static bool is_too_long(struct sbx_call *call, const json_t *request)
{
	static const char *const lists[] = { "rules", "allow_out", "deny_out" };
	size_t n = json_dumpb(request, NULL, 0, JSON_ENSURE_ASCII), longest = 0;
	const char *field = lists[0];

	if (n <= LISTS_MAX)
		return false;
	for (size_t i = 0; i < SBX_N_ELEMENTS(lists); i++) {
		n = json_dumpb(json_object_get(request, lists[i]), NULL, 0, JSON_ENCODE_ANY);
		if (n > longest) {
			longest = n;
			field = lists[i];
		}
	}
	sbx_reply_problem(call, 422, "invalid", field,
			  "%s: with the other lists it has more than %d bytes, which a launcher "
			  "takes at once",
			  field, LISTS_MAX);
	return true;
}

/* Sends the change to the launcher, after its audit row. */
static void change_there(struct sbx_call *call, const json_t *was, bool of_launcher,
			 json_t *request_take)
{
	const char *id = call->found.params[0];
	json_t *before = state_of(was, of_launcher);

	sbx_audit_begin(call, id, before, call->body);
	json_decref(before);
	sbx_call_ask(call, id, request_take, on_changed, call);
}

/* @was: the sandbox before, by its launcher, which refuses if it has another @generation by then;
 * or by the database with 0, when any will do. */
static void change(struct sbx_call *call, const json_t *was, json_int_t generation)
{
	static const char *const keys[] = { "air_gapped", "allow_out", "deny_out", NULL };
	const json_t *rules = json_object_get(call->body, "rules");
	char field[SBX_FIELD_NAME_MAX] = "";
	struct sbx_err err = { 0 };
	json_t *texts = rules ? sbx_net_rules_texts(rules, "rules", field, &err) : NULL;
	json_t *request = json_pack("{s:s, s:o*}", "op", "network", "rules", texts);

	if (field[0]) {
		json_decref(request);
		sbx_reply_problem(call, 422, "invalid", field, "%s: %s", field, err.msg);
		return;
	}
	sbx_print_members(request, call->body, keys);
	if (request && is_too_long(call, request)) {
		json_decref(request);
		return;
	}
	if (!request || (rules && !texts)) {
		json_decref(request);
		sbx_reply_json(call, 200, NULL);
		return;
	}
	if (generation)
		json_object_set_new(request, "generation", json_integer(generation));
	change_there(call, was, generation != 0, request);
}

/* If-Match: the generation is still the one that the caller saw. The launcher looks once more, as
 * others may ask in between. */
static void on_compared(void *userdata, int result, json_t *answer, const struct sbx_err *err)
{
	struct sbx_call *call = userdata;
	const json_t *now = json_object_get(answer, "sandbox");
	char etag[SBX_ETAG_MAX];

	if (result != 0) {
		sbx_call_refused(call, result, answer, err);
		return;
	}
	print_etag(now, etag);
	if (sbx_etag_listed(call->if_match, etag, false))
		change(call, now, json_integer_value(json_object_get(now, "generation")));
	else
		sbx_reply_problem(call, 412, "changed", NULL,
				  "the policy was changed meanwhile: it is %s now", etag);
}

void sbx_put_network(struct sbx_call *call)
{
	json_t *sandbox = sbx_call_sandbox(call, call->found.params[0]);

	if (!sandbox)
		return;
	if (json_object_size(call->body) == 0)
		sbx_reply_problem(call, 422, "invalid", NULL,
				  "give air_gapped, allow_out, deny_out or rules");
	else if (call->if_match && strcmp(call->if_match, "*") != 0)
		sbx_call_ask(call, call->found.params[0], json_pack("{s:s}", "op", "show"),
			     on_compared, call);
	else
		change(call, sandbox, 0);
	json_decref(sandbox);
}
