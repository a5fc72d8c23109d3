/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Sandboxes: the list, one of them, its end. Of a live one the launcher tells the present state. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/sandbox_id.h"
#include "base/text.h"
#include "daemon/resources/audit.h"
#include "daemon/resources/daemon.h"
#include "daemon/resources/print.h"
#include "daemon/resources/resources.h"
#include "daemon/resources/sandbox_find.h"

#define LIMIT 100 /* of a page, unless the caller says another */

/* --- the list --- */

struct page {
	struct sbx_call *call;
	struct sbx_page page;
};

/* Of a live one, as its launcher told a moment ago. */
static json_t *usage(const struct page *p, const json_t *sandbox)
{
	const char *id = json_string_value(json_object_get(sandbox, "id"));
	json_t *sample = json_is_true(json_object_get(sandbox, "live")) ?
				 sbx_sampler_get(p->call->daemon->sampler, id) :
				 NULL;

	return sample ? json_incref(sample) : json_null();
}

static int take_row(const struct sbx_store_sandbox_row *s, void *userdata)
{
	struct page *p = userdata;

	return sbx_page_add(&p->page, sbx_print_sandbox(s), s->cursor);
}

/* The filter leaves what the caller sees; this judges each all the same, and adds the owners. */
static int judge_rows(struct page *p, struct sbx_err *err)
{
	for (size_t i = json_array_size(p->page.items); i-- > 0;) {
		json_t *sandbox = json_array_get(p->page.items, i);
		const char *workspace = json_string_value(json_object_get(sandbox, "workspace"));
		uid_t owner;
		int r = sbx_sandbox_owner(p->call->daemon->store, sandbox, &owner, err);

		if (r < 0)
			return r;
		if (!sbx_principal_sees(&p->call->principal, workspace, owner))
			json_array_remove(p->page.items, i);
		else
			json_object_set_new(sandbox, "usage", usage(p, sandbox));
	}
	return 0;
}

void sbx_list_sandboxes(struct sbx_call *call)
{
	const struct sbx_principal *principal = &call->principal;
	const char *state = sbx_call_text(call, "state"), *own = principal->workspace;
	const char *workspace = sbx_call_text(call, "workspace");
	struct page p = { .call = call,
			  .page = { .items = json_array(),
				    .limit = sbx_call_number(call, "limit", LIMIT) } };
	struct sbx_store_sandbox_filter filter = {
		.live = state && strcmp(state, "live") == 0,
		.state = state && strcmp(state, "live") != 0 ? state : NULL,
		.workspace = own[0] ? own : workspace,
		.by_owner = principal->own_only,
		.owner_uid = principal->uid,
		.before = sbx_call_number(call, "cursor", 0),
		.n_max = (uint32_t)p.page.limit + 1,
	};
	struct sbx_err err = { 0 };
	int r = 0;

	/* of another workspace it sees none */
	if (!own[0] || !workspace || strcmp(own, workspace) == 0)
		r = sbx_store_sandboxes_each(call->daemon->store, &filter, take_row, &p, &err);
	if (r >= 0)
		r = judge_rows(&p, &err);
	sbx_call_page(call, &p.page, r, &err);
}

/* --- one --- */

struct show {
	struct sbx_call *call;
	int status;
	json_t *sandbox;  /* owned; of the database */
	json_t *warnings; /* owned; of its start, or NULL */
};

/* Takes @sandbox and @warnings; @sandbox NULL: it was answered. */
static void reply_shown(struct sbx_call *call, int status, json_t *sandbox, json_t *warnings)
{
	if (sandbox && warnings)
		json_object_set(sandbox, "warnings", warnings);
	json_decref(warnings);
	if (sandbox)
		sbx_reply_json(call, status, sandbox);
}

/* The launcher's answer is newer than the row. */
static void merge(json_t *sandbox, const json_t *now)
{
	static const char *const keys[] = {
		"state",   "generation", "air_gapped", "allow_out",	 "deny_out",	 "attach",
		"network", "policy",	 "flows",      "flows_left_out", "limits",	 "usage",
		"ruleset", "selftest",	 "execs",      "published",	 "wall_left_ms", NULL
	};

	sbx_print_members(sandbox, now, keys);
	sbx_print_rules(sandbox, json_object_get(now, "rules"));
	json_object_set_new(sandbox, "allow_internet_access",
			    json_boolean(!json_is_true(json_object_get(now, "air_gapped"))));
}

/* Where no launcher answers, the row is the answer, read again: it has the end now, or the sandbox
 * is live until somebody records the end. */
static void on_shown(void *userdata, int result, json_t *answer, const struct sbx_err *err)
{
	struct show *s = userdata;

	(void)err;
	if (result == 0) {
		merge(s->sandbox, json_object_get(answer, "sandbox"));
	} else {
		char id[SBX_ID_LEN + 1];

		sbx_text_fit(id, sizeof(id), "%s",
			     json_string_value(json_object_get(s->sandbox, "id")));
		json_decref(s->sandbox);
		s->sandbox = sbx_call_sandbox(s->call, id);
	}
	reply_shown(s->call, s->status, s->sandbox, s->warnings);
	free(s);
}

void sbx_call_show(struct sbx_call *call, const char *id, int status, json_t *warnings_take)
{
	json_t *sandbox = sbx_call_sandbox(call, id);
	struct show *s;

	if (!sandbox || !json_is_true(json_object_get(sandbox, "live"))) {
		reply_shown(call, status, sandbox, warnings_take);
		return;
	}
	s = malloc(sizeof(*s));
	if (!s) {
		json_decref(sandbox);
		json_decref(warnings_take);
		sbx_reply_json(call, status, NULL);
		return;
	}
	*s = (struct show){ call, status, sandbox, warnings_take };
	sbx_call_ask(call, id, json_pack("{s:s}", "op", "show"), on_shown, s);
}

void sbx_get_sandbox(struct sbx_call *call)
{
	sbx_call_show(call, call->found.params[0], 200, NULL);
}

/* --- its end --- */

#define LOOK_MS	  20
#define LOOKS_MAX (5000 / LOOK_MS)

struct ending {
	struct sbx_call *call;
	unsigned n_looks;
};

/* The launcher answers before its sandbox is gone. The caller's next question finds it ended: so
 * the answer waits for the row, but not without end for a launcher that is itself being killed. */
static void on_look(evutil_socket_t fd, short what, void *userdata)
{
	const struct timeval later = { .tv_usec = LOOK_MS * 1000 };
	struct ending *e = userdata;
	struct sbx_call *call = e->call;
	json_t *sandbox = sbx_call_sandbox(call, call->found.params[0]);
	bool is_live = json_is_true(json_object_get(sandbox, "live"));

	(void)fd;
	(void)what;
	json_decref(sandbox);
	if (is_live && e->n_looks++ < LOOKS_MAX &&
	    event_base_once(call->daemon->base, -1, EV_TIMEOUT, on_look, e, &later) == 0)
		return;
	free(e);
	if (sandbox)
		sbx_reply_empty(call, 204);
}

static void reply_at_end(struct sbx_call *call)
{
	struct ending *e = malloc(sizeof(*e));

	if (!e) {
		sbx_reply_empty(call, 204);
		return;
	}
	*e = (struct ending){ .call = call };
	on_look(-1, 0, e);
}

static void on_killed(void *userdata, int result, json_t *answer, const struct sbx_err *err)
{
	struct sbx_call *call = userdata;

	sbx_audit_end(call, result, NULL);
	if (result == 0 || result == SBX_CONTROL_E_NONE || result == SBX_CONTROL_E_GONE)
		reply_at_end(call);
	else
		sbx_call_refused(call, result, answer, err);
}

void sbx_delete_sandbox(struct sbx_call *call)
{
	const char *id = call->found.params[0];
	json_t *sandbox = sbx_call_sandbox(call, id), *before, *wanted;

	if (!sandbox)
		return;
	json_decref(sandbox);
	before = json_pack("{s:b}", "live", 1);
	wanted = json_pack("{s:b}", "live", 0);
	sbx_audit_begin(call, id, before, wanted);
	json_decref(before);
	json_decref(wanted);
	sbx_call_ask(call, id, json_pack("{s:s}", "op", "kill"), on_killed, call);
}
