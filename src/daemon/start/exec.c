/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * POST /sandboxes/{id}/exec: a further command in a live sandbox, by the operation exec of its
 * launcher (docs/CONTROL.md).
 *
 * Standard input is a file in memory, so nothing waits for a command that does not read it. Output
 * comes through pipes. For a JSON answer its first MiB is kept, and the rest is read and dropped.
 * For events the pipes are read as fast as the client takes them. When the client is gone, or a
 * background process holds a pipe after the end, the output is dropped: the command does not wait.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "control/client.h"
#include "daemon/output/frame.h"
#include "daemon/resources/audit.h"
#include "daemon/resources/daemon.h"
#include "daemon/resources/resources.h"
#include "daemon/resources/sandbox_find.h"
#include "daemon/start/chunk.h"
#include "sys/process/proc.h"

#define OUTPUT_MAX (1u << 20) /* bytes of each, in a JSON answer */
#define PART_MAX   32768      /* bytes of an event */
#define WAITING	   32768      /* bytes on their way to a client: more are read below that */
#define EXECS_MAX  128	      /* at once, of all sandboxes and callers */
#define SEND_MS	   20
#define STARTED_S  10 /* the longest wait for the launcher's answer */
#define TERM_S	   2  /* between SIGTERM and SIGKILL */
#define LINGER_MS  300

struct exec;

struct output {
	struct exec *x;
	const char *name, *name_base64;
	int fd;
	struct event *event;
	char *p; /* what was kept, or is not sent yet */
	size_t n;
	bool truncated;
};

struct exec {
	struct sbx_call *call; /* NULL: it was answered */
	struct sbx_stream *stream;
	bool streams, started, exited, timed_out;
	struct sbx_control_client *client;
	struct event *on_line, *timer;
	int64_t timeout_s, number, status;
	struct output outputs[2];
	struct exec *next, **where; /* in `execs` */
	char caller[SBX_PRINCIPAL_NAME_MAX];
};

static struct exec *execs; /* all of them */

/* Those of @caller; NULL: of all. */
static size_t n_execs(const char *caller)
{
	size_t n = 0;

	for (const struct exec *x = execs; x; x = x->next)
		n += !caller || strcmp(x->caller, caller) == 0;
	return n;
}

static void enlist(struct exec *x)
{
	x->where = &execs;
	x->next = execs;
	if (x->next)
		x->next->where = &x->next;
	execs = x;
	sbx_text_cut(x->caller, sizeof(x->caller), "%s", x->call->principal.name);
}

static void output_close(struct output *o)
{
	if (o->event)
		event_free(o->event);
	o->event = NULL;
	o->fd = sbx_fd_close(o->fd);
}

static void exec_free(struct exec *x)
{
	for (int i = 0; i < 2; i++) {
		output_close(&x->outputs[i]);
		free(x->outputs[i].p);
	}
	if (x->on_line)
		event_free(x->on_line);
	if (x->timer)
		event_free(x->timer);
	sbx_control_disconnect(x->client);
	*x->where = x->next;
	if (x->next)
		x->next->where = x->where;
	free(x);
}

/* --- the answer --- */

static json_t *result(const struct exec *x)
{
	json_t *o =
		json_pack("{s:I, s:b}", "status", (json_int_t)x->status, "timed_out", x->timed_out);
	bool truncated = false;

	for (int i = 0; o && !x->streams && i < 2; i++) {
		const struct output *out = &x->outputs[i];

		truncated = truncated || out->truncated;
		if (sbx_chunk_set(o, out->name, out->name_base64, sbx_span(out->p, out->n)) < 0) {
			json_decref(o);
			return NULL;
		}
	}
	if (o && !x->streams)
		json_object_set_new(o, "truncated", json_boolean(truncated));
	return o;
}

/* Sends what is kept of @o: without @all not the beginning of a character. */
static void send_part(struct output *o, bool all)
{
	size_t rest = all ? 0 : sbx_frame_unfinished(sbx_span(o->p, o->n));
	json_t *data = json_object();

	if (o->n > rest && data) {
		sbx_chunk_set(data, "text", "base64", sbx_span(o->p, o->n - rest));
		sbx_stream_send_json(o->x->stream, o->name, NULL, data);
	} else {
		json_decref(data);
	}
	memmove(o->p, o->p + o->n - rest, rest);
	o->n = rest;
}

/* The last event. on_closed() frees @x. */
static void end_stream(struct exec *x, json_t *data_take)
{
	sbx_stream_send_json(x->stream, "exit", NULL, data_take);
	x->exited = true;
	for (int i = 0; i < 2; i++)
		output_close(&x->outputs[i]);
	evtimer_del(x->timer);
	event_del(x->on_line);
	sbx_stream_end(x->stream);
}

/* The command has ended, and its output was read. */
static void finish(struct exec *x)
{
	if (x->stream) {
		for (int i = 0; i < 2; i++)
			send_part(&x->outputs[i], true);
		end_stream(x, result(x));
		return;
	}
	if (x->call)
		sbx_reply_json(x->call, 200, result(x));
	exec_free(x);
}

/* @x is gone, or will go with its stream. */
static void fail(struct exec *x, int r, json_t *answer, const struct sbx_err *err)
{
	const char *field = json_string_value(json_object_get(answer, "field"));
	json_int_t status = json_integer_value(json_object_get(answer, "status"));

	if (!x->started)
		sbx_audit_end(x->call, r, NULL);
	if (x->stream) {
		end_stream(x, json_pack("{s:n, s:b}", "status", "timed_out", x->timed_out));
		return;
	}
	if (field && strncmp(field, "argv", 4) == 0)
		json_object_set_new(answer, "field", json_string("command"));
	if (x->call && status)
		sbx_reply_problem(x->call, 422,
				  status == 126 ? "not_executable" :
				  status == 127 ? "not_found" :
						  "refused",
				  status == 125 ? NULL : "command", "%s", err->msg);
	else if (x->call)
		sbx_call_refused(x->call, r, answer, err);
	exec_free(x);
}

/* --- its output --- */

static bool may_read(const struct exec *x)
{
	return !x->stream || sbx_stream_waiting(x->stream) <= WAITING;
}

static void set_timer(struct exec *x, int64_t ms)
{
	const struct timeval t = { .tv_sec = (time_t)(ms / 1000),
				   .tv_usec = (suseconds_t)(ms % 1000) * 1000 };

	evtimer_add(x->timer, &t);
}

static void finish_if_done(struct exec *x)
{
	if (!x->exited)
		return;
	if (x->outputs[0].fd < 0 && x->outputs[1].fd < 0)
		finish(x);
	else if (!evtimer_pending(x->timer, NULL))
		set_timer(x, LINGER_MS);
}

/* A JSON answer keeps the first OUTPUT_MAX bytes. */
static void keep(struct output *o, const char *p, size_t n)
{
	size_t room = OUTPUT_MAX - o->n;
	char *grown;

	if (n > room) {
		o->truncated = true;
		n = room;
	}
	if (!o->x->call || n == 0)
		return;
	grown = realloc(o->p, o->n + n);
	if (!grown) {
		o->truncated = true;
		return;
	}
	memcpy(grown + o->n, p, n);
	o->p = grown;
	o->n += n;
}

static void on_output(evutil_socket_t fd, short what, void *userdata)
{
	static char buf[PART_MAX];
	struct output *o = userdata;
	struct exec *x = o->x;
	ssize_t n;

	(void)what;
	if (!may_read(x)) {
		event_del(o->event); /* on_taken() goes on */
		return;
	}
	if (x->stream)
		n = read(fd, o->p + o->n, PART_MAX - o->n);
	else
		n = read(fd, buf, sizeof(buf));
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		output_close(o);
		if (x->stream)
			send_part(o, true);
		finish_if_done(x);
		return;
	}
	if (x->stream) {
		o->n += (size_t)n;
		send_part(o, false);
	} else {
		keep(o, buf, (size_t)n);
	}
}

static void on_taken(void *userdata)
{
	struct exec *x = userdata;

	for (int i = 0; i < 2; i++)
		if (x->outputs[i].event)
			event_add(x->outputs[i].event, NULL);
}

/* The client is gone, or everything was sent. */
static void on_closed(void *userdata)
{
	struct exec *x = userdata;

	x->stream = NULL;
	if (x->exited) {
		exec_free(x);
		return;
	}
	on_taken(x);
}

/* --- the launcher --- */

static void on_exit_line(struct exec *x, const json_t *line)
{
	x->exited = true;
	x->status = json_integer_value(json_object_get(line, "status"));
	evtimer_del(x->timer);
	finish_if_done(x);
}

/* False: it was answered, and @x is gone. */
static bool begin_stream(struct exec *x)
{
	struct sbx_call *call = x->call;

	x->call = NULL;
	for (int i = 0; i < 2; i++)
		x->outputs[i].p = malloc(PART_MAX);
	if (!x->outputs[0].p || !x->outputs[1].p) {
		sbx_reply_json(call, 200, NULL);
		exec_free(x);
		return false;
	}
	x->stream = sbx_reply_stream(call, on_closed, x);
	if (!x->stream) {
		exec_free(x);
		return false;
	}
	sbx_stream_pull(x->stream, on_taken);
	return true;
}

/* False: @x is gone. */
static bool on_started(struct exec *x, int64_t number)
{
	sbx_audit_end(x->call, 0, NULL);
	x->started = true;
	x->number = number;
	evtimer_del(x->timer);
	if (x->timeout_s)
		set_timer(x, x->timeout_s * 1000);
	if (x->streams && !begin_stream(x))
		return false;
	on_taken(x);
	return true;
}

/* False: @x is gone, or is about to go. */
static bool on_one_line(struct exec *x, json_t *line)
{
	const char *event = json_string_value(json_object_get(line, "event"));
	struct sbx_err err = { 0 };
	int r;

	if (event) {
		if (strcmp(event, "exit") != 0)
			return true;
		on_exit_line(x, line);
		return false;
	}
	if (x->started)
		return true; /* the answer to a signal */
	r = sbx_control_answer_judge(line, &err);
	if (r == 0)
		return on_started(x, json_integer_value(json_object_get(line, "exec")));
	fail(x, r, line, &err);
	return false;
}

static void on_line(evutil_socket_t fd, short what, void *userdata)
{
	struct exec *x = userdata;
	bool goes_on = true;

	(void)fd;
	(void)what;
	do {
		struct sbx_err err = { 0 };
		json_t *line = NULL;
		int r = sbx_control_receive(x->client, 0, &line, &err);

		if (r == SBX_CONTROL_E_TIMED_OUT)
			return;
		if (r != 0 && x->exited)
			event_del(x->on_line);
		else if (r != 0)
			fail(x, r, NULL, &err);
		goes_on = r == 0 && on_one_line(x, line);
		json_decref(line);
	} while (goes_on && sbx_control_has_line(x->client));
}

static void send_signal(struct exec *x, const char *name)
{
	struct sbx_err err = { 0 };

	sbx_control_send(x->client,
			 json_pack("{s:s, s:s, s:I}", "op", "signal", "signal", name, "exec",
				   (json_int_t)x->number),
			 NULL, 0, &err);
}

static void on_timer(evutil_socket_t fd, short what, void *userdata)
{
	struct exec *x = userdata;
	struct sbx_err err = { 0 };

	(void)fd;
	(void)what;
	if (x->exited) {
		finish(x);
	} else if (!x->started) {
		sbx_err_set(&err, "the launcher did not answer in %d s", STARTED_S);
		fail(x, SBX_CONTROL_E_TIMED_OUT, NULL, &err);
	} else {
		send_signal(x, x->timed_out ? "KILL" : "TERM");
		x->timed_out = true;
		set_timer(x, TERM_S * 1000);
	}
}

/* --- beginning --- */

static json_t *request(const json_t *body)
{
	json_t *o = json_pack("{s:s}", "op", "exec");

	json_object_set(o, "argv", json_object_get(body, "command"));
	if (json_object_get(body, "env"))
		json_object_set(o, "env", json_object_get(body, "env"));
	if (json_object_get(body, "chdir"))
		json_object_set(o, "chdir", json_object_get(body, "chdir"));
	return o;
}

/* The command's ends, which are closed when they were sent. */
static int open_stdio(struct exec *x, const char *text, int fds[3])
{
	int r;

	fds[0] = sbx_memfd_new("stdin", text, strlen(text));
	if (fds[0] < 0)
		return fds[0];
	for (int i = 0; i < 2; i++) {
		r = sbx_fd_pipe(&x->outputs[i].fd, &fds[i + 1]);
		r = r ? r : sbx_fd_set_nonblocking(x->outputs[i].fd);
		if (r < 0)
			return r;
	}
	return 0;
}

static int begin(struct exec *x, const char *id, struct sbx_err *err)
{
	struct sbx_daemon *d = x->call->daemon;
	const char *text = json_string_value(json_object_get(x->call->body, "stdin"));
	int fds[3] = { -1, -1, -1 };
	int r = sbx_control_connect(d->facts.runtime_dir, id, SEND_MS, &x->client, err);

	r = r ? r : open_stdio(x, text ? text : "", fds);
	r = r ? r : sbx_control_send(x->client, request(x->call->body), fds, 3, err);
	for (int i = 0; i < 3; i++)
		sbx_fd_close(fds[i]);
	if (r != 0)
		return r;
	x->on_line =
		event_new(d->base, sbx_control_fd(x->client), EV_READ | EV_PERSIST, on_line, x);
	x->timer = evtimer_new(d->base, on_timer, x);
	for (int i = 0; i < 2; i++)
		x->outputs[i].event = event_new(d->base, x->outputs[i].fd, EV_READ | EV_PERSIST,
						on_output, &x->outputs[i]);
	if (!x->on_line || !x->timer || !x->outputs[0].event || !x->outputs[1].event ||
	    event_add(x->on_line, NULL) < 0)
		return -ENOMEM;
	set_timer(x, STARTED_S * 1000);
	return 0;
}

/* Values of variables and the input may be secrets. */
static void note(struct sbx_call *call)
{
	const json_t *command = json_object_get(call->body, "command");
	json_t *wanted = json_pack("{s:O}", "command", command);

	sbx_audit_begin(call, call->found.params[0], NULL, wanted);
	json_decref(wanted);
}

/* False: it was answered. One whose client has gone runs on, so it is no request that waits. */
static bool may_begin(struct sbx_call *call)
{
	const struct sbx_principal *p = &call->principal;
	bool too_many = !p->is_own && n_execs(p->name) >= SBX_ACCESS_EXECS_MAX;

	if (!too_many && n_execs(NULL) < EXECS_MAX)
		return true;
	sbx_reply_header(call, "Retry-After", "1");
	if (too_many)
		sbx_reply_problem(call, 429, "too_many", NULL, "%d commands of yours run already",
				  SBX_ACCESS_EXECS_MAX);
	else
		sbx_reply_problem(call, 503, "busy", NULL, "%d commands run already", EXECS_MAX);
	return false;
}

void sbx_post_exec(struct sbx_call *call)
{
	const char *id = call->found.params[0];
	json_t *sandbox = sbx_call_sandbox(call, id);
	struct sbx_err err = { 0 };
	struct exec *x;
	int r;

	json_decref(sandbox);
	if (!sandbox)
		return;
	if (!json_string_length(json_array_get(json_object_get(call->body, "command"), 0))) {
		sbx_reply_problem(call, 422, "invalid", "command", "its first word is missing");
		return;
	}
	if (!may_begin(call))
		return;
	x = calloc(1, sizeof(*x));
	if (!x) {
		sbx_reply_json(call, 200, NULL);
		return;
	}
	note(call);
	x->call = call;
	enlist(x);
	x->streams = call->wants_events;
	x->timeout_s = json_integer_value(json_object_get(call->body, "timeout"));
	x->outputs[0] = (struct output){ x, "stdout", "stdout_base64", -1, NULL, NULL, 0, false };
	x->outputs[1] = (struct output){ x, "stderr", "stderr_base64", -1, NULL, NULL, 0, false };
	r = begin(x, id, &err);
	if (r != 0)
		fail(x, r, NULL, &err);
}
