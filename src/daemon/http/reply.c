/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Answers of handlers. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/text.h"
#include "daemon/http/listener.h"
#include "daemon/http/request.h"

const char *sbx_call_text(const struct sbx_call *call, const char *name)
{
	return json_string_value(json_object_get(call->query, name));
}

int64_t sbx_call_number(const struct sbx_call *call, const char *name, int64_t otherwise)
{
	const json_t *v = json_object_get(call->query, name);

	return v ? json_integer_value(v) : otherwise;
}

void sbx_reply_header(struct sbx_call *call, const char *name, const char *value)
{
	struct sbx_http_request *r = call->http;

	if (r->n_headers == SBX_REPLY_HEADERS_MAX)
		return;
	sbx_text_cut(r->headers[r->n_headers].name, sizeof(r->headers[0].name), "%s", name);
	sbx_text_cut(r->headers[r->n_headers++].value, sizeof(r->headers[0].value), "%s", value);
}

/* @text is malloc'ed and taken. */
static void reply_take(struct sbx_call *call, int status, const char *media, char *text_take,
		       size_t n)
{
	struct MHD_Response *response =
		MHD_create_response_from_buffer(n, text_take, MHD_RESPMEM_MUST_FREE);

	if (!response)
		free(text_take);
	sbx_request_answer(call->http, status, response, media);
}

static void reply_value(struct sbx_call *call, int status, const char *media, json_t *value_take)
{
	char *text = value_take ? json_dumps(value_take, JSON_COMPACT) : NULL;

	json_decref(value_take);
	if (text)
		reply_take(call, status, media, text, strlen(text));
	else
		sbx_request_answer(call->http, status, NULL, NULL);
}

void sbx_reply_json(struct sbx_call *call, int status, json_t *value_take)
{
	reply_value(call, status, "application/json", value_take);
}

void sbx_reply_empty(struct sbx_call *call, int status)
{
	sbx_request_answer(call->http, status,
			   MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT), NULL);
}

void sbx_reply_text(struct sbx_call *call, int status, const char *media, const char *text,
		    size_t n)
{
	sbx_request_answer(
		call->http, status,
		MHD_create_response_from_buffer(n, (void *)(uintptr_t)text, MHD_RESPMEM_MUST_COPY),
		media);
}

void sbx_reply_file(struct sbx_call *call, const char *media, int fd_take, uint64_t size)
{
	struct MHD_Response *response = MHD_create_response_from_fd64(size, fd_take);

	if (!response)
		sbx_fd_close(fd_take);
	sbx_request_answer(call->http, MHD_HTTP_OK, response, media);
}

static const char *title(int status)
{
	const char *text = MHD_get_reason_phrase_for((unsigned)status);

	return text ? text : "Error";
}

/* The path is the table's: nothing of the caller's gets into the line. */
static void tell_failure(const struct sbx_call *call, const char *detail)
{
	const struct sbx_route *route = call->found.route;
	void (*failed)(const char *line) = call->http->listener->http->o.failed;
	char line[SBX_ERR_MSG_MAX + 160];

	if (!failed)
		return;
	if (route)
		sbx_text_cut(line, sizeof(line), "%s %s: %s", sbx_method_str(route->method),
			     route->path, detail);
	else
		sbx_text_cut(line, sizeof(line), "%s", detail);
	failed(line);
}

void sbx_reply_problem(struct sbx_call *call, int status, const char *code, const char *field,
		       const char *fmt, ...)
{
	struct sbx_err err = { 0 };
	json_t *o;
	va_list ap;

	va_start(ap, fmt);
	sbx_err_vset(&err, fmt, ap);
	va_end(ap);
	if (status >= 500)
		tell_failure(call, err.msg);
	o = json_pack("{s:s, s:s, s:i, s:s, s:s}", "type", "about:blank", "title", title(status),
		      "status", status, "code", code, "detail", err.msg);
	if (o && field && field[0])
		json_object_set_new(o, "field", json_string(field));
	reply_value(call, status, "application/problem+json", o);
}

void sbx_reply_unknown(struct sbx_call *call, const char *what)
{
	sbx_reply_problem(call, MHD_HTTP_NOT_FOUND, "unknown", NULL, "there is no such %s", what);
}
