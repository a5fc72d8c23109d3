/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* POST /sandboxes. The answer comes when the command was released, or when it will not be. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "daemon/resources/audit.h"
#include "daemon/resources/daemon.h"
#include "daemon/resources/print.h"
#include "daemon/resources/resources.h"
#include "daemon/resources/sandbox_find.h"
#include "daemon/start/job.h"
#include "daemon/start/secret_files.h"
#include "daemon/start/start.h"
#include "store/store_rules.h"
#include "store/store_service.h"
#include "sys/process/proc.h"

#define RETRY_S	     "2"
#define FORGET_S     5
#define FORGET_TRIES 720 /* an hour */

/* Of a sandbox that is to start: its owner's row, and the audit's. */
struct rows {
	struct sbx_daemon *daemon;
	char id[SBX_ID_LEN + 1];
	int64_t audit_id;
	int n_tries; /* to remove them, left */
};

struct create {
	struct sbx_call *call;
	struct rows rows;
};

static void reply_refused(struct sbx_call *call, const struct sbx_start_result *r)
{
	/* sbx-run(1), EXIT STATUS */
	const char *code = r->status == 125 ? "refused" :
			   r->status == 126 ? "not_executable" :
			   r->status == 127 ? "not_found" :
					      "ended";
	char text[1024], field[SBX_JOB_FIELD_MAX];
	const char *end = memchr(r->said, '\n', r->n_said);

	sbx_job_complaint(r->said, end ? (size_t)(end - r->said) : r->n_said, text, sizeof(text),
			  field);
	if (!text[0])
		sbx_text_cut(text, sizeof(text), "sbx-run ended with status %d before the command",
			     r->status);
	sbx_reply_problem(call, 422, code, field[0] ? field : NULL, "%s", text);
}

/* systemd's unit did not come to its first answer. */
static void reply_no_unit(struct sbx_call *call, int error)
{
	const char *what;

	if (error == ENOENT || error == ECONNREFUSED)
		what = "sbx-sandbox.socket is not active: systemctl start sbx-sandbox.socket";
	else if (error == EACCES)
		what = "SocketUser= of sbx-sandbox.socket is not the user of sbxd.service";
	else
		what = "sbx-sandbox@.service failed, or too many run: "
		       "journalctl -u 'sbx-sandbox*' says why";
	sbx_reply_problem(call, 503, "no_unit", NULL, "systemd starts no sandbox (%s): %s",
			  strerror(error), what);
}

/* If the sandbox was never recorded. 0 or -errno. */
static int remove_rows(const struct rows *rows)
{
	struct sbx_store *store = rows->daemon->store;
	char found[SBX_ID_LEN + 1];
	struct sbx_err err = { 0 };
	int r = sbx_store_sandbox_find(store, rows->id, found, &err);

	if (r != SBX_STORE_E_UNKNOWN)
		return r < 0 ? r : 0;
	r = sbx_store_begin(store, &err);
	r = r ? r : sbx_store_api_sandbox_remove(store, rows->id, &err);
	r = r ? r : sbx_store_audit_remove(store, rows->audit_id, &err);
	return sbx_store_end(store, r, &err);
}

static void on_again(evutil_socket_t fd, short what, void *userdata);

/* On a full disk, or in a locked database, it is tried again. */
static void forget(const struct rows *rows)
{
	static const struct timeval interval = { .tv_sec = FORGET_S };
	struct rows *again;

	if (remove_rows(rows) == 0 || rows->n_tries == 0)
		return;
	again = malloc(sizeof(*again));
	if (!again)
		return;
	*again = *rows;
	again->n_tries--;
	if (event_base_once(again->daemon->base, -1, EV_TIMEOUT, on_again, again, &interval) < 0)
		free(again);
}

static void on_again(evutil_socket_t fd, short what, void *userdata)
{
	struct rows *rows = userdata;

	(void)fd;
	(void)what;
	forget(rows);
	free(rows);
}

/* The lines that sbx-run warned with. NULL: no memory. */
static json_t *warnings_of(const struct sbx_start_result *r)
{
	json_t *list = json_array();
	char line[SBX_START_SAID_MAX];
	size_t n;

	for (size_t at = 0; list && at < r->n_said; at += n + 1) {
		const char *end = memchr(r->said + at, '\n', r->n_said - at);

		n = end ? (size_t)(end - r->said) - at : r->n_said - at;
		sbx_text_cut(line, sizeof(line), "%.*s", (int)n, r->said + at);
		json_array_append_new(list, sbx_print_text(line));
	}
	return list;
}

static void on_started(void *userdata, const struct sbx_start_result *r)
{
	struct create *c = userdata;
	struct sbx_call *call = c->call;
	char path[64];

	if (r->end != SBX_START_RUNS && r->end != SBX_START_LATE)
		forget(&c->rows);
	switch (r->end) {
	case SBX_START_RUNS:
		sbx_audit_end(call, 0, NULL);
		sbx_text_fit(path, sizeof(path), "/sandboxes/%s", c->rows.id);
		sbx_reply_header(call, "Location", path);
		sbx_call_show(call, c->rows.id, 201, warnings_of(r));
		break;
	case SBX_START_REFUSED:
		reply_refused(call, r);
		break;
	case SBX_START_LATE:
		sbx_reply_problem(call, 504, "timed_out", NULL,
				  "the sandbox was not ready after %d s, and is ended",
				  SBX_START_S);
		break;
	case SBX_START_FULL:
		sbx_reply_header(call, "Retry-After", RETRY_S);
		sbx_reply_problem(call, 503, "busy", NULL, "%d sandboxes wait to be started",
				  SBX_STARTS_WAITING_MAX);
		break;
	case SBX_START_FAILED:
		sbx_reply_problem(call, r->error == ENOSPC || r->error == EDQUOT ? 507 : 500,
				  "failed", NULL, "cannot start a sandbox: %s", strerror(r->error));
		break;
	case SBX_START_NO_UNIT:
		reply_no_unit(call, r->error);
		break;
	}
	free(c);
}

/* The principal's own workspace, if it is bound to one. False: it was answered. */
static bool settle_workspace(struct sbx_call *call)
{
	const char *asked = json_string_value(json_object_get(call->body, "workspace"));

	if (!call->principal.workspace[0])
		return true;
	if (!asked)
		return json_object_set_new(call->body, "workspace",
					   json_string(call->principal.workspace)) == 0;
	if (strcmp(asked, call->principal.workspace) == 0)
		return true;
	sbx_reply_problem(call, 403, "denied", "workspace", "your workspace is %s",
			  call->principal.workspace);
	return false;
}

/* NULL: it was answered. */
static char *make_job(struct sbx_call *call)
{
	char field[SBX_JOB_FIELD_MAX] = "";
	struct sbx_err err = { 0 };
	char *text = NULL;
	size_t place = 0;
	json_t *secrets = sbx_secret_files(&call->daemon->facts,
					   json_object_get(call->body, "secrets"), &place, &err);
	int r;

	if (!secrets) {
		sbx_text_fit(field, sizeof(field), "secrets[%zu]", place);
		sbx_reply_problem(call, 422, "invalid", field, "%s", err.msg);
		return NULL;
	}
	r = sbx_job_text(call->body, secrets, &text, field, &err);
	json_decref(secrets);
	if (r > 0)
		sbx_reply_problem(call, 422, "invalid", field, "%s", err.msg);
	else if (r < 0)
		sbx_reply_json(call, 201, NULL);
	return text;
}

/* Values of variables may be secrets. */
static int note(struct create *c, struct sbx_err *err)
{
	json_t *after = json_copy(c->call->body);
	int r;

	json_object_del(after, "env");
	r = sbx_audit_wanted(c->call, c->rows.id, after, err);
	c->rows.audit_id = c->call->audit_id;
	json_decref(after);
	return r;
}

/* Its owner and its audit row, before the sandbox is there: nobody else sees it in between, and it
 * has both also if the service is killed meanwhile. False: it was answered. */
static bool remember(struct create *c)
{
	struct sbx_call *call = c->call;
	const json_t *timeout = json_object_get(call->body, "timeout");
	const json_t *metadata = json_object_get(call->body, "metadata");
	SBX_AUTO_FREE char *text = metadata ? json_dumps(metadata, JSON_COMPACT) : NULL;
	int64_t now = (int64_t)sbx_clock_realtime_ms();
	const struct sbx_store_api_sandbox row = {
		.sandbox_id = c->rows.id,
		.owner_uid = call->principal.own_only ? call->principal.uid : getuid(),
		.owner = call->principal.name,
		.metadata_json = text,
		.timeout_ms = timeout ? now + json_integer_value(timeout) * 1000 : 0,
		.made_ms = now,
	};
	struct sbx_err err = { 0 };
	struct sbx_store *store = call->daemon->store;
	int r = sbx_store_begin(store, &err);

	r = r ? r : sbx_store_api_sandbox_add(store, &row, &err);
	r = r ? r : note(c, &err);
	r = sbx_store_end(store, r, &err);
	if (r != 0)
		sbx_call_store_failed(call, r > 0 ? -EEXIST : r, &err);
	return r == 0;
}

void sbx_create_sandbox(struct sbx_call *call)
{
	SBX_AUTO_FREE char *text = NULL;
	struct create *c;

	if (!settle_workspace(call))
		return;
	text = make_job(call);
	if (!text)
		return;
	c = calloc(1, sizeof(*c));
	if (!c) {
		sbx_reply_json(call, 201, NULL);
		return;
	}
	c->call = call;
	c->rows.daemon = call->daemon;
	c->rows.n_tries = FORGET_TRIES;
	sbx_random_id(c->rows.id);
	if (!remember(c)) {
		free(c);
		return;
	}
	sbx_start(call->daemon->starts, c->rows.id, text, on_started, c);
}
