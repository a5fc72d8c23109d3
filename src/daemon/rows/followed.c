/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Tells launchers that rules were changed. At most ASKS_MAX of them are asked at a time. An ask
 * cannot be called off: the state lives until the last one has ended, also if the client was
 * answered before.
 */
#include "daemon/rows/followed.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "daemon/http/etag.h"
#include "daemon/hub/ask.h"
#include "daemon/resources/daemon.h"
#include "store/store_list.h"

#define LIVE_MAX     4096
#define ASKS_MAX     64
#define FAILURES_MAX 20 /* that the answer names */

struct followed {
	struct sbx_call *call; /* NULL: it was answered */
	struct sbx_daemon *daemon;
	struct event *deadline;
	json_t *body;
	int status;
	char (*ids)[SBX_ID_LEN + 1];
	size_t n, n_asked, n_answered;
	size_t n_told, n_failed;
	json_int_t n_cut;
	json_t *failures;
	bool asking; /* an ask may end inside of sbx_ask() */
};

struct one {
	struct followed *all;
	const char *id;
};

static void followed_free(struct followed *f)
{
	if (f->deadline)
		event_free(f->deadline);
	json_decref(f->body);
	json_decref(f->failures);
	free(f->ids);
	free(f);
}

static void fail(struct followed *f, const char *id, const char *why)
{
	f->n_failed++;
	if (json_array_size(f->failures) < FAILURES_MAX)
		json_array_append_new(f->failures,
				      json_pack("{s:s?, s:s}", "sandbox_id", id, "detail", why));
}

static void answer(struct followed *f)
{
	struct sbx_call *call = sbx_steal_ptr(&f->call);
	char tag[SBX_ETAG_MAX];

	if (call->found.route->method != SBX_DELETE && sbx_etag(f->body, tag) == 0)
		sbx_reply_header(call, "ETag", tag);
	json_object_set_new(f->body, "followed",
			    json_pack("{s:I, s:I, s:I, s:O}", "sandboxes", (json_int_t)f->n_told,
				      "failed", (json_int_t)f->n_failed, "cut", f->n_cut,
				      "failures", f->failures));
	sbx_reply_json(call, f->status, json_incref(f->body));
}

/* Answers and frees, as far as it is time. */
static void settle(struct followed *f)
{
	if (f->asking)
		return;
	if (f->call && f->n_answered == f->n)
		answer(f);
	if (!f->call && f->n_answered == f->n_asked)
		followed_free(f);
}

static void ask_more(struct followed *f);

/* A launcher reads the rules when its sandbox begins and whenever it is told. One that is not
 * there, or is gone, has none to follow. */
static void on_told(void *userdata, int result, json_t *told, const struct sbx_err *err)
{
	struct one *one = userdata;
	struct followed *f = one->all;
	bool gone = result == SBX_CONTROL_E_NONE || result == SBX_CONTROL_E_GONE ||
		    (result == SBX_CONTROL_E_REFUSED &&
		     sbx_control_refusal_code(told) == SBX_CONTROL_GONE);

	f->n_answered++;
	if (result == 0) {
		f->n_told++;
		f->n_cut += json_integer_value(json_object_get(told, "cut"));
	} else if (!gone) {
		fail(f, one->id, err->msg[0] ? err->msg : "it did not answer");
	}
	free(one);
	if (f->call)
		ask_more(f);
	settle(f);
}

static void ask_more(struct followed *f)
{
	if (f->asking)
		return;
	f->asking = true;
	while (f->n_asked < f->n && f->n_asked - f->n_answered < ASKS_MAX) {
		struct one *one = malloc(sizeof(*one));
		const char *id = f->ids[f->n_asked++];

		if (!one) {
			f->n_answered++;
			fail(f, id, "out of memory");
			continue;
		}
		*one = (struct one){ f, id };
		sbx_ask(f->daemon->base, f->daemon->facts.runtime_dir, id,
			json_pack("{s:s, s:s}", "op", "reload", "what", "rules"), NULL, 0, on_told,
			one);
	}
	f->asking = false;
}

static void on_deadline(evutil_socket_t fd, short what, void *userdata)
{
	struct followed *f = userdata;

	(void)fd;
	(void)what;
	if (!f->call)
		return;
	f->n_failed += f->n - f->n_answered;
	json_array_append_new(f->failures, json_pack("{s:n, s:s}", "sandbox_id", "detail",
						     "some launchers did not answer in time"));
	answer(f);
	settle(f);
}

static int add_live(const struct sbx_store_sandbox_row *s, void *userdata)
{
	struct followed *f = userdata;

	if (f->n < LIVE_MAX && sbx_id_is_valid(s->id))
		sbx_text_fit(f->ids[f->n++], SBX_ID_LEN + 1, "%s", s->id);
	return 0;
}

/* 0 or -errno. */
static int begin(struct followed *f, const char *workspace, struct sbx_err *err)
{
	static const struct timeval limit = { .tv_sec = SBX_FOLLOWED_S };
	const struct sbx_store_sandbox_filter filter = { .live = true,
							 .workspace = workspace,
							 .n_max = LIVE_MAX };

	f->ids = calloc(LIVE_MAX, sizeof(*f->ids));
	f->deadline = evtimer_new(f->daemon->base, on_deadline, f);
	if (!f->ids || !f->deadline || evtimer_add(f->deadline, &limit) < 0)
		return -ENOMEM;
	return sbx_store_sandboxes_each(f->daemon->store, &filter, add_live, f, err);
}

void sbx_reply_followed(struct sbx_call *call, const char *workspace, int status, json_t *body_take)
{
	struct followed *f = calloc(1, sizeof(*f));
	struct sbx_err err = { 0 };

	if (!f || !body_take) {
		free(f);
		json_decref(body_take);
		sbx_reply_json(call, 200, NULL);
		return;
	}
	*f = (struct followed){ .call = call,
				.daemon = call->daemon,
				.body = body_take,
				.status = status,
				.failures = json_array() };
	if (begin(f, workspace, &err) < 0)
		fail(f, NULL, err.msg[0] ? err.msg : "out of memory");
	ask_more(f);
	settle(f);
}
