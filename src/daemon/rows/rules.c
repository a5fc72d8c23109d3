/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Rules of workspaces, and those of the host ("system rules"). A change reads the row, judges it,
 * writes it and its audit row in one transaction, and then tells the launchers that follow.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "daemon/http/etag.h"
#include "daemon/resources/audit.h"
#include "daemon/resources/daemon.h"
#include "daemon/resources/print.h"
#include "daemon/resources/sandbox_find.h"
#include "daemon/rows/followed.h"
#include "daemon/rows/rows.h"
#include "daemon/rows/scope.h"
#include "launcher/rules/rule_check.h"
#include "sys/process/proc.h"

/* --- the place: a workspace, or the host --- */

/* Answers unless the caller may see the rules of the path's workspace. */
static bool may_see(struct sbx_call *call, const char *workspace)
{
	if (!workspace || sbx_principal_sees_workspace(&call->principal, workspace))
		return true;
	sbx_reply_unknown(call, "workspace");
	return false;
}

/* The same, for a change. */
static bool may_change(struct sbx_call *call, const char *workspace)
{
	if (workspace)
		return may_see(call, workspace);
	if (sbx_principal_sees_workspace(&call->principal, NULL))
		return true;
	sbx_reply_problem(call, 403, "denied", NULL,
			  "these rules hold for every workspace, and the credentials are for one");
	return false;
}

/* --- the list --- */

struct page {
	const char *workspace;
	int64_t offset, at; /* rules to pass over; those that came */
	struct sbx_page page;
};

/* Rules of the host come first. */
static int take_row(const struct sbx_store_rule *r, void *userdata)
{
	struct page *p = userdata;

	if (!r->workspace != !p->workspace)
		return !p->workspace;
	if (p->at++ < p->offset)
		return 0;
	return sbx_page_add(&p->page, sbx_print_rule(r), p->at);
}

static void list_rules(struct sbx_call *call, const char *workspace)
{
	struct page p = { .workspace = workspace,
			  .offset = sbx_call_number(call, "cursor", 0),
			  .page = { .items = json_array(),
				    .limit = sbx_call_number(call, "limit", SBX_ROWS_LIMIT) } };
	struct sbx_err err = { 0 };
	int r = sbx_store_rules_each(call->daemon->store, workspace, take_row, &p, &err);

	if (r >= 0) {
		sbx_reply_tagged(call, sbx_print_page(p.page.items, p.page.next));
	} else {
		json_decref(p.page.items);
		sbx_call_store_failed(call, r, &err);
	}
}

/* --- one --- */

/* A rule of the database, as the judge of a change sees it. */
struct found {
	struct sbx_call *call;
	const char *workspace;
	const json_t *body; /* the change; NULL: there is none */
	json_t *before;	    /* owned; NULL: the place has no such rule */
	bool shipped;	    /* a floor that holds without its row */
	int checked;	    /* what sbx_rule_check() says of the changed rule, with @err */
	struct sbx_err err;
};

static void apply(const json_t *body, struct sbx_store_rule *r)
{
	const char *pattern = json_string_value(json_object_get(body, "pattern"));
	const char *action = json_string_value(json_object_get(body, "action"));
	const char *note = json_string_value(json_object_get(body, "note"));
	const json_t *priority = json_object_get(body, "priority");

	r->pattern = pattern ? pattern : r->pattern;
	r->action = action ? action : r->action;
	r->note = note ? note : r->note;
	r->priority = priority ? json_integer_value(priority) : r->priority;
}

static int take_one(const struct sbx_store_rule *r, void *userdata)
{
	struct found *f = userdata;
	struct sbx_store_rule changed = *r;

	if (!r->workspace != !f->workspace ||
	    (f->workspace && strcmp(r->workspace, f->workspace) != 0))
		return 0;
	f->before = sbx_print_rule(r);
	f->shipped = sbx_rule_is_shipped(r);
	if (f->body) {
		apply(f->body, &changed);
		f->checked = sbx_rule_check(&changed, &f->err);
	}
	return 0;
}

/* Answers unless it was read and is there. */
static bool read_rule(struct found *f, int64_t id)
{
	struct sbx_err err = { 0 };
	int r;

	assert(f->call);
	r = id ? sbx_store_rule_get(f->call->daemon->store, id, take_one, f, &err) :
		 SBX_STORE_E_UNKNOWN;

	if (r == 0 && f->before)
		return true;
	if (r >= 0)
		sbx_reply_unknown(f->call, "rule");
	else
		sbx_call_store_failed(f->call, r, &err);
	return false;
}

static void get_rule(struct sbx_call *call, const char *workspace)
{
	struct found f = { .call = call, .workspace = workspace };

	if (read_rule(&f, sbx_call_id(call, workspace ? 1 : 0)))
		sbx_reply_tagged(call, f.before);
}

/* --- changes --- */

static int print_one(const struct sbx_store_rule *r, void *userdata)
{
	json_t **ret = userdata;

	*ret = sbx_print_rule(r);
	return *ret ? 0 : -ENOMEM;
}

/* The end of a change: the audit row, the commit, the launchers. @before is taken; NULL: there was
 * none. */
static void finish(struct sbx_call *call, const char *workspace, int64_t id, int r,
		   json_t *before_take, struct sbx_err *err)
{
	enum sbx_method method = call->found.route->method;
	struct sbx_store *store = call->daemon->store;
	json_t *after = NULL;
	char object[32];

	sbx_text_fit(object, sizeof(object), "rule %lld", (long long)id);
	if (r == 0 && method != SBX_DELETE)
		r = sbx_store_rule_get(store, id, print_one, &after, err);
	if (r == 0)
		r = sbx_audit(call, object, before_take, after, err);
	r = sbx_store_end(store, r, err);
	json_decref(before_take);
	if (r != 0) {
		json_decref(after);
		sbx_call_store_failed(call, r, err);
		return;
	}
	sbx_reply_followed(call, workspace, method == SBX_POST ? 201 : 200,
			   after ? after : json_pack("{s:I}", "id", (json_int_t)id));
}

static void add_rule(struct sbx_call *call, const char *workspace)
{
	const json_t *body = call->body, *enabled = json_object_get(body, "enabled");
	const char *type = json_string_value(json_object_get(body, "type"));
	struct sbx_store_rule rule = {
		.workspace = workspace,
		.type = type ? type : "network",
		.priority = SBX_STORE_PRIORITY,
		.enabled = !enabled || json_is_true(enabled),
		.is_floor = json_is_true(json_object_get(body, "is_floor")),
		.created_by = call->principal.name,
		.created_ms = (int64_t)sbx_clock_realtime_ms(),
	};
	struct sbx_err err = { 0 };
	int64_t id = 0;
	int r;

	apply(body, &rule);
	if (rule.is_floor && strcmp(rule.action, "deny") != 0) {
		sbx_reply_problem(call, 422, "invalid", "action", "a floor denies");
		return;
	}
	if (sbx_rule_check(&rule, &err) != 0) {
		sbx_reply_problem(call, 422, "invalid", "pattern", "%s", err.msg);
		return;
	}
	r = sbx_store_begin(call->daemon->store, &err);
	r = r ? r : sbx_store_rule_add(call->daemon->store, &rule, &err, &id);
	finish(call, workspace, id, r, NULL, &err);
}

static bool judge_change(struct found *f, int64_t id)
{
	if (!read_rule(f, id) || !sbx_call_matches(f->call, f->before))
		return false;
	if (f->shipped) {
		sbx_reply_problem(f->call, 409, "floor", NULL,
				  "sbx itself enforces this floor, with and without this row: "
				  "it cannot be changed or removed");
		return false;
	}
	if (f->checked != 0)
		sbx_reply_problem(f->call, 422, "invalid", "pattern", "%s", f->err.msg);
	return f->checked == 0;
}

/* Begins a change of a rule that is there. False: it was answered. */
static bool begin_change(struct found *f, int64_t id)
{
	struct sbx_store *store;
	struct sbx_err err = { 0 };
	int r;

	assert(f->call);
	store = f->call->daemon->store;
	r = sbx_store_begin(store, &err);

	if (r != 0) {
		sbx_call_store_failed(f->call, r, &err);
		return false;
	}
	if (judge_change(f, id))
		return true;
	sbx_store_end(store, -ECANCELED, &err);
	json_decref(f->before);
	return false;
}

static void set_rule(struct sbx_call *call, const char *workspace)
{
	struct found f = { .call = call, .workspace = workspace, .body = call->body };
	struct sbx_store_rule_change change = SBX_STORE_RULE_UNCHANGED;
	const json_t *enabled = json_object_get(call->body, "enabled");
	struct sbx_store_rule wanted = { .priority = -1 };
	int64_t id = sbx_call_id(call, workspace ? 1 : 0);
	struct sbx_err err = { 0 };
	int r;

	if (!begin_change(&f, id))
		return;
	apply(call->body, &wanted);
	change.pattern = wanted.pattern;
	change.action = wanted.action;
	change.note = wanted.note;
	change.priority = wanted.priority;
	if (enabled)
		change.enabled = json_is_true(enabled);
	change.changed_by = call->principal.name;
	change.changed_ms = (int64_t)sbx_clock_realtime_ms();
	r = sbx_store_rule_set(call->daemon->store, id, &change, &err);
	finish(call, workspace, id, r, f.before, &err);
}

static void delete_rule(struct sbx_call *call, const char *workspace)
{
	struct found f = { .call = call, .workspace = workspace };
	int64_t id = sbx_call_id(call, workspace ? 1 : 0);
	struct sbx_err err = { 0 };
	int r;

	if (!begin_change(&f, id))
		return;
	r = sbx_store_rule_remove(call->daemon->store, id, &err);
	finish(call, workspace, id, r, f.before, &err);
}

/* --- the handlers --- */

void sbx_list_rules(struct sbx_call *call)
{
	if (may_see(call, call->found.params[0]))
		list_rules(call, call->found.params[0]);
}

void sbx_add_rule(struct sbx_call *call)
{
	if (may_change(call, call->found.params[0]))
		add_rule(call, call->found.params[0]);
}

void sbx_get_rule(struct sbx_call *call)
{
	if (may_see(call, call->found.params[0]))
		get_rule(call, call->found.params[0]);
}

void sbx_set_rule(struct sbx_call *call)
{
	if (may_change(call, call->found.params[0]))
		set_rule(call, call->found.params[0]);
}

void sbx_delete_rule(struct sbx_call *call)
{
	if (may_change(call, call->found.params[0]))
		delete_rule(call, call->found.params[0]);
}

void sbx_list_system_rules(struct sbx_call *call)
{
	list_rules(call, NULL);
}

void sbx_add_system_rule(struct sbx_call *call)
{
	if (may_change(call, NULL))
		add_rule(call, NULL);
}

void sbx_get_system_rule(struct sbx_call *call)
{
	get_rule(call, NULL);
}

void sbx_set_system_rule(struct sbx_call *call)
{
	if (may_change(call, NULL))
		set_rule(call, NULL);
}

void sbx_delete_system_rule(struct sbx_call *call)
{
	if (may_change(call, NULL))
		delete_rule(call, NULL);
}
