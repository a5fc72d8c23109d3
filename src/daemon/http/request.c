/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A request from its head to the answer. Answers are made in reply.c, server-sent events in
 * stream.c.
 *
 * libmicrohttpd calls sbx_request_go_on() three times and more: with the head, with each part of
 * the body, and with nothing. The role is judged with the head (head.c), so that nobody else sends
 * a body. If the handler did not answer at once, the connection is suspended. libmicrohttpd does
 * not touch it until the answer is there, and then calls sbx_request_go_on() once more.
 */
#include "daemon/http/request.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/span.h"
#include "control/protocol.h"
#include "daemon/http/listener.h"
#include "sys/process/proc.h"

/* Bytes of a body that are read after the request was refused. Clients look for the answer when
 * they have sent it all, and libmicrohttpd closes a connection that is answered before. */
#define DROP_MAX (4u << 20)
#define AGAIN_MS 20 /* between two looks at a locked database */

const char *sbx_request_header(const struct sbx_http_request *r, const char *name)
{
	return MHD_lookup_connection_value(r->connection, MHD_HEADER_KIND, name);
}

struct sbx_http_connection *sbx_request_connection(const struct sbx_http_request *r)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(r->connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	return info ? info->socket_context : NULL;
}

/* --- what a caller has --- */

static void enlist(struct sbx_http_request *r)
{
	r->where = &r->listener->http->requests;
	r->next = *r->where;
	if (r->next)
		r->next->where = &r->next;
	*r->where = r;
}

static void leave(struct sbx_http_request *r)
{
	*r->where = r->next;
	if (r->next)
		r->next->where = r->where;
}

static bool is_same_caller(const struct sbx_http_request *a, const struct sbx_http_request *b)
{
	return strcmp(a->call.principal.name, b->call.principal.name) == 0;
}

/* Sandboxes that start, and questions to programs, wait in queues that all callers share. */
static bool has_too_many(const struct sbx_http_request *r)
{
	size_t n = 0;

	if (r->call.principal.is_own)
		return false;
	for (const struct sbx_http_request *q = r->listener->http->requests; q; q = q->next)
		n += q->suspended && is_same_caller(q, r);
	return n >= SBX_ACCESS_REQUESTS_MAX;
}

/* Is there room for @n bytes more of its body? */
static bool has_room(const struct sbx_http_request *r, size_t n)
{
	for (const struct sbx_http_request *q = r->listener->http->requests; q; q = q->next)
		n += q->ran || !is_same_caller(q, r) ? 0 : q->n_body;
	return n <= SBX_HTTP_BODIES_MAX;
}

static void refuse_too_many(struct sbx_call *call)
{
	sbx_reply_header(call, MHD_HTTP_HEADER_RETRY_AFTER, "1");
	sbx_reply_problem(call, MHD_HTTP_TOO_MANY_REQUESTS, "too_many", NULL,
			  "%d requests of yours wait for their answers", SBX_ACCESS_REQUESTS_MAX);
}

/* --- answers --- */

void sbx_request_answer(struct sbx_http_request *r, int status, struct MHD_Response *response,
			const char *media)
{
	if (!response) {
		status = MHD_HTTP_INTERNAL_SERVER_ERROR;
		response = MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
	}
	if (response && media)
		MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, media);
	for (size_t i = 0; response && i < r->n_headers; i++)
		MHD_add_response_header(response, r->headers[i].name, r->headers[i].value);
	r->response = response;
	r->status = status;
	if (r->suspended) {
		r->suspended = false;
		sbx_connection_resume(r->listener, r->connection);
	}
}

static void add_default(struct MHD_Response *response, const char *name, const char *value)
{
	if (!MHD_get_response_header(response, name))
		MHD_add_response_header(response, name, value);
}

/* Browsers neither guess types, nor keep answers, nor run what the page did not bring. */
static enum MHD_Result queue(struct sbx_http_request *r)
{
	struct MHD_Response *response = sbx_steal_ptr(&r->response);
	enum MHD_Result result;

	if (!response)
		return MHD_NO;
	add_default(response, "X-Content-Type-Options", "nosniff");
	add_default(response, "Referrer-Policy", "no-referrer");
	add_default(response, "Cache-Control", "no-store");
	add_default(response, "Content-Security-Policy",
		    "default-src 'none'; frame-ancestors 'none'");
	sbx_http_stats_add(&r->listener->http->stats, r->call.found.route, r->status,
			   (double)(sbx_clock_monotonic_us() - r->began_us) / 1e6);
	result = MHD_queue_response(r->connection, (unsigned)r->status, response);
	MHD_destroy_response(response);
	return result;
}

/* --- the body --- */

static unsigned long long body_length(const struct sbx_http_request *r)
{
	const char *length = sbx_request_header(r, MHD_HTTP_HEADER_CONTENT_LENGTH);

	return length ? strtoull(length, NULL, 10) : 0;
}

static void refuse_too_large(struct sbx_http_request *r)
{
	sbx_reply_problem(&r->call, MHD_HTTP_CONTENT_TOO_LARGE, "too_large", NULL,
			  "a body has at most %d bytes", SBX_HTTP_BODY_MAX);
}

/* Answers if the body's fields are wrong. A form of another site can send text/plain, and never
 * application/json. */
static void check_body_head(struct sbx_http_request *r)
{
	const char *type = sbx_request_header(r, MHD_HTTP_HEADER_CONTENT_TYPE);
	static const char json[] = "application/json";
	size_t n = sizeof(json) - 1;

	if (body_length(r) > SBX_HTTP_BODY_MAX)
		refuse_too_large(r);
	else if (r->call.found.route->body &&
		 (!type || strncasecmp(type, json, n) != 0 || !strchr("; \t", type[n])))
		sbx_reply_problem(&r->call, MHD_HTTP_UNSUPPORTED_MEDIA_TYPE, "media_type", NULL,
				  "send the body as Content-Type: application/json");
}

static enum MHD_Result take_body(struct sbx_http_request *r, const char *p, size_t n)
{
	char *grown;

	if (n > SBX_HTTP_BODY_MAX - r->n_body)
		r->too_large = true;
	if (!r->ran && !r->too_large && !r->no_room && !has_room(r, n)) {
		r->no_room = true; /* the others of the caller go on */
		free(r->body);
		r->body = NULL;
		r->n_body = 0;
	}
	if (r->ran || r->too_large || r->no_room) {
		r->n_dropped += n;
		return r->n_dropped > DROP_MAX ? MHD_NO : MHD_YES;
	}
	grown = realloc(r->body, r->n_body + n);
	if (!grown)
		return MHD_NO;
	r->body = grown;
	memcpy(r->body + r->n_body, p, n);
	r->n_body += n;
	return MHD_YES;
}

/* False: it was answered. */
static bool parse_body(struct sbx_http_request *r)
{
	const struct sbx_route *route = r->call.found.route;
	char name[SBX_FIELD_NAME_MAX];
	struct sbx_err err = { 0 };

	if (r->too_large) {
		refuse_too_large(r);
		return false;
	}
	if (r->no_room) {
		sbx_reply_header(&r->call, MHD_HTTP_HEADER_RETRY_AFTER, "1");
		sbx_reply_problem(&r->call, MHD_HTTP_TOO_MANY_REQUESTS, "too_many", NULL,
				  "the bodies of your requests that are under way have more than "
				  "%u bytes", SBX_HTTP_BODIES_MAX);
		return false;
	}
	if (!route->body && r->n_body == 0)
		return true;
	if (!route->body) {
		sbx_reply_problem(&r->call, MHD_HTTP_BAD_REQUEST, "invalid", "body",
				  "this takes no body");
		return false;
	}
	r->call.body = sbx_control_parse(sbx_span(r->n_body ? r->body : "", r->n_body), &err);
	if (!r->call.body) {
		sbx_reply_problem(&r->call, MHD_HTTP_BAD_REQUEST, "invalid", "body", "%s", err.msg);
		return false;
	}
	if (sbx_fields_check(route->body, route->n_body, r->call.body, name, &err) == 0)
		return true;
	sbx_reply_problem(&r->call, MHD_HTTP_UNPROCESSABLE_CONTENT, "invalid", name, "%s", err.msg);
	return false;
}

/* --- waiting for the database --- */

static void arm_again(struct sbx_http *h)
{
	static const struct timeval pause = { .tv_usec = AGAIN_MS * 1000 };

	if (h->again && !event_pending(h->on_again, EV_TIMEOUT, NULL))
		event_add(h->on_again, &pause);
}

bool sbx_call_again(struct sbx_call *call)
{
	struct sbx_http_request *r = call->http, **at = &r->listener->http->again;
	uint64_t now_us = sbx_clock_monotonic_us();

	if (!r->again_us) { /* others were first */
		r->again_us = now_us;
		while (*at)
			at = &(*at)->next_again;
	} else if (now_us - r->again_us > SBX_HTTP_LOCKED_S * 1000000ull) {
		return false;
	}
	r->next_again = *at;
	*at = r;
	arm_again(r->listener->http);
	return true;
}

/* One that finds the database locked ends the turn: the others would find the same, and each look
 * takes the loop's time. */
void sbx_requests_again(evutil_socket_t fd, short what, void *userdata)
{
	struct sbx_http *h = userdata;
	struct sbx_http_request *tried = NULL;

	(void)fd;
	(void)what;
	while (h->again && h->again != tried) {
		tried = h->again;
		h->again = tried->next_again;
		tried->call.found.route->run(&tried->call);
	}
	arm_again(h);
}

/* --- libmicrohttpd --- */

static void request_free(struct sbx_http_request *r)
{
	leave(r);
	if (r->response)
		MHD_destroy_response(r->response);
	json_decref(r->call.query);
	json_decref(r->call.body);
	free(r->body);
	free(r);
}

enum MHD_Result sbx_request_go_on(void *cls, struct MHD_Connection *mc, const char *url,
				  const char *method, const char *version, const char *data,
				  size_t *n_data, void **state)
{
	struct sbx_http_listener *l = cls;
	struct sbx_http_request *r = *state;

	if (!r) {
		r = calloc(1, sizeof(*r));
		if (!r)
			return MHD_NO;
		*state = r;
		r->began_us = sbx_clock_monotonic_us();
		r->listener = l;
		enlist(r);
		r->connection = mc;
		r->call.http = r;
		r->call.daemon = l->http->o.daemon;
		if (sbx_request_head(r, url, method, version))
			check_body_head(r);
		r->ran = r->response != NULL;
		return r->unframed || (r->ran && body_length(r) > DROP_MAX) ? queue(r) : MHD_YES;
	}
	if (*n_data > 0) {
		enum MHD_Result result = take_body(r, data, *n_data);

		*n_data = 0;
		return result;
	}
	if (!r->ran) {
		struct sbx_http_connection *c = sbx_request_connection(r);

		r->ran = true;
		if (c)
			c->since_us = 0;
		if (has_too_many(r))
			refuse_too_many(&r->call);
		else if (parse_body(r))
			r->call.found.route->run(&r->call);
	}
	if (r->response)
		return queue(r);
	r->suspended = true;
	MHD_suspend_connection(mc);
	return MHD_YES;
}

void sbx_request_completed(void *cls, struct MHD_Connection *mc, void **state,
			   enum MHD_RequestTerminationCode code)
{
	struct sbx_http_request *r = *state;
	struct sbx_http_connection *c;

	(void)cls;
	(void)mc;
	(void)code;
	if (!r)
		return;
	c = sbx_request_connection(r);
	if (c)
		c->since_us = sbx_clock_monotonic_us();
	request_free(r);
	*state = NULL;
}
