/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/hub/ask.h"

#include <errno.h>
#include <stdlib.h>

/* Connecting and sending wait only for a launcher that is stopped, and not longer than this. */
#define SEND_MS 20

struct ask {
	struct sbx_control_client *client;
	struct event *event;
	sbx_ask_fn fn;
	void *userdata;
};

static void ask_free(struct ask *a)
{
	if (a->event)
		event_free(a->event);
	sbx_control_disconnect(a->client);
	free(a);
}

/* Tells the asker, and ends. */
static void finish(struct ask *a, int result, json_t *answer, const struct sbx_err *err)
{
	sbx_ask_fn fn = a->fn;
	void *userdata = a->userdata;

	ask_free(a);
	fn(userdata, result, answer, err);
	json_decref(answer);
}

static void on_ready(evutil_socket_t fd, short what, void *userdata)
{
	struct ask *a = userdata;
	struct sbx_err err = { 0 };
	json_t *answer = NULL;
	int r = sbx_control_receive(a->client, 0, &answer, &err);

	(void)fd;
	if (r == SBX_CONTROL_E_TIMED_OUT && !(what & EV_TIMEOUT))
		return; /* a part of a line */
	if (r == 0)
		r = sbx_control_answer_judge(answer, &err);
	finish(a, r, answer, &err);
}

static int begin(struct ask *a, struct event_base *base, const char *runtime_dir, const char *id,
		 json_t *request_take, const int *fds, size_t n_fds, struct sbx_err *err)
{
	static const struct timeval limit = { .tv_sec = SBX_ASK_MS / 1000 };
	int r = sbx_control_connect(runtime_dir, id, SEND_MS, &a->client, err);

	if (r != 0) {
		json_decref(request_take);
		return r;
	}
	r = sbx_control_send(a->client, request_take, fds, n_fds, err);
	if (r != 0)
		return r;
	a->event = event_new(base, sbx_control_fd(a->client), EV_READ | EV_PERSIST, on_ready, a);
	return a->event && event_add(a->event, &limit) == 0 ? 0 : -ENOMEM;
}

void sbx_ask(struct event_base *base, const char *runtime_dir, const char *id, json_t *request_take,
	     const int *fds, size_t n_fds, sbx_ask_fn fn, void *userdata)
{
	struct sbx_err err = { 0 };
	struct ask *a = calloc(1, sizeof(*a));
	int r;

	if (!a) {
		json_decref(request_take);
		sbx_err_set(&err, "out of memory");
		fn(userdata, -ENOMEM, NULL, &err);
		return;
	}
	a->fn = fn;
	a->userdata = userdata;
	r = begin(a, base, runtime_dir, id, request_take, fds, n_fds, &err);
	if (r != 0)
		finish(a, r, NULL, &err);
}
