/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The operation `exec`: a request with three descriptors becomes a command of the sandbox
 * (launcher/exec). Two lines tell its fate: the answer when it runs, or was refused, and the event
 * `exit`. The session is held in between.
 */
#include "launcher/serve/exec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/cleanup.h"

struct sbx_serve_exec {
	struct sbx_serve_exec *next;
	struct sbx_serve_execs *s;
	struct sbx_control_token token;
	uint32_t number;
};

static void forget(struct sbx_serve_exec *x)
{
	struct sbx_serve_exec **at = &x->s->first;

	while (*at && *at != x)
		at = &(*at)->next;
	if (*at)
		*at = x->next;
	free(x);
}

/* --- answers --- */

/* @status: the exit status that a program like sbxctl takes from it. */
static void refuse(struct sbx_control *c, struct sbx_control_token t, int status, const char *why)
{
	enum sbx_control_code code = status == 126 ? SBX_CONTROL_DENIED :
				     status == 127 ? SBX_CONTROL_UNKNOWN :
						     SBX_CONTROL_FAILED;

	sbx_control_answer(c, t,
			   json_pack("{s:b, s:s, s:o, s:i}", "ok", 0, "code",
				     sbx_control_code_str(code), "error", sbx_control_text(why),
				     "status", status));
}

static void on_started(void *userdata, uint32_t number)
{
	struct sbx_serve_exec *x = userdata;

	sbx_control_answer(x->s->control, x->token, json_pack("{s:I}", "exec", (json_int_t)number));
}

static void on_exited(void *userdata, uint32_t number, int wait_status)
{
	struct sbx_serve_exec *x = userdata;
	json_t *v = json_pack("{s:I, s:i}", "exec", (json_int_t)number, "status",
			      WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) :
						       128 + WTERMSIG(wait_status));

	if (v && WIFSIGNALED(wait_status))
		json_object_set_new(v, "signal", json_integer(WTERMSIG(wait_status)));
	sbx_control_tell(x->s->control, x->token, "exit", v);
	sbx_control_release(x->s->control, x->token);
	forget(x);
}

static void on_failed(void *userdata, uint32_t number, int status, const char *why)
{
	struct sbx_serve_exec *x = userdata;

	(void)number;
	refuse(x->s->control, x->token, status, why);
	sbx_control_release(x->s->control, x->token);
	forget(x);
}

/* --- the request --- */

/* Strings of a list, borrowed; the array is malloc'ed and ends with NULL. */
static char **words(const json_t *list)
{
	size_t n = json_array_size(list);
	char **v = calloc(n + 1, sizeof(*v));

	for (size_t i = 0; v && i < n; i++)
		v[i] = (char *)(uintptr_t)json_string_value(json_array_get(list, i));
	return v;
}

static void free_env(char ***env)
{
	for (size_t i = 0; *env && (*env)[i]; i++)
		free((*env)[i]);
	free(*env);
}

/* "NAME=VALUE" of each member; malloc'ed. NULL: no memory. */
static char **variables(json_t *map)
{
	char **v = calloc(json_object_size(map) + 1, sizeof(*v));
	const char *name;
	json_t *value;
	size_t n = 0;

	json_object_foreach(map, name, value)
	{
		if (!v || asprintf(&v[n], "%s=%s", name, json_string_value(value)) < 0) {
			if (v)
				v[n] = NULL;
			free_env(&v);
			return NULL;
		}
		n++;
	}
	return v;
}

static int start(struct sbx_serve_exec *x, struct sbx_control_request *rq, struct sbx_err *err)
{
	const struct sbx_exec_done done = { on_started, on_exited, on_failed, x };
	json_t *map = json_object_get(rq->body, "env");
	SBX_AUTO_FREE char **argv = words(json_object_get(rq->body, "argv"));
	SBX_CLEANUP(free_env) char **env = map ? variables(map) : NULL;
	const struct sbx_exec_request request = {
		.argv = argv,
		.env = env,
		.chdir = json_string_value(json_object_get(rq->body, "chdir")),
		.tty = json_is_true(json_object_get(rq->body, "tty")),
		.stdio = { rq->fds[0], rq->fds[1], rq->fds[2] },
	};

	if (!argv || (map && !env)) {
		sbx_err_set(err, "sbx-run has no memory left");
		return 125;
	}
	if (!argv[0]) {
		sbx_err_set(err, "argv is empty");
		return 125;
	}
	return sbx_execs_start(x->s->execs, &request, &done, &x->number, err);
}

void sbx_serve_exec(struct sbx_serve_execs *s, struct sbx_control_request *rq)
{
	struct sbx_serve_exec *x = calloc(1, sizeof(*x));
	struct sbx_err err = { 0 };
	int status;

	if (!x) {
		refuse(s->control, rq->token, 125, "sbx-run has no memory left");
		return;
	}
	*x = (struct sbx_serve_exec){ .next = s->first, .s = s, .token = rq->token };
	s->first = x;
	status = start(x, rq, &err);
	if (status == 0) {
		sbx_control_hold(s->control, rq->token);
		return;
	}
	refuse(s->control, rq->token, status, err.msg);
	forget(x);
}

void sbx_serve_exec_gone(struct sbx_serve_execs *s, struct sbx_control_token t)
{
	for (struct sbx_serve_exec *x = s->first, *next; x; x = next) {
		next = x->next;
		if (x->token.serial != t.serial)
			continue;
		sbx_execs_forget(s->execs, x->number);
		forget(x);
	}
}

void sbx_serve_execs_fini(struct sbx_serve_execs *s)
{
	while (s->first) {
		sbx_execs_forget(s->execs, s->first->number);
		forget(s->first);
	}
}
