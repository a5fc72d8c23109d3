/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The server: listeners, connections, and a request from its head to the handler. Answers are in
 * reply.c, server-sent events in stream.c.
 *
 * libmicrohttpd waits in an epoll descriptor of its own for each listener, which is one more
 * descriptor of the daemon's loop. It calls on_request() three times and more: with the head, with
 * each part of the body, and with nothing. The role is judged with the head, so that nobody else
 * sends a body. If the handler did not answer at once, the connection is suspended. libmicrohttpd
 * does not touch it until the answer is there, and then calls on_request() once more.
 */
#include "daemon/http/server.h"

#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "base/addr.h"
#include "base/cleanup.h"
#include "base/span.h"
#include "base/text.h"
#include "control/protocol.h"
#include "daemon/http/request.h"
#include "launcher/control/peer.h"
#include "sys/process/proc.h"

#define LISTENERS_MAX 8
#define SWEEP_S	      2 /* how often late connections and ended credentials are looked for */
#define DOUBLED	      (1u << 31)
/* Bytes of a body that are read after the request was refused. Clients look for the answer when
 * they have sent it all, and libmicrohttpd closes a connection that is answered before. */
#define DROP_MAX (4u << 20)

struct connection {
	struct connection *next, **where; /* in the listener's list */
	int fd;
	uid_t uid;		     /* unix */
	const char *foreign;	     /* unix: why its process may not call; NULL: it may */
	struct sbx_addr at, address; /* tcp: ours, and that of the peer */
	uint16_t port;		     /* ours */
	time_t since; /* its next request is whole SBX_HTTP_REQUEST_S later; 0: it is */
};

struct sbx_http_listener {
	struct sbx_http *http;
	enum sbx_listener_kind kind;
	bool is_tls;
	struct MHD_Daemon *mhd;
	struct event *event;
	struct connection *connections;
};

struct sbx_http {
	struct sbx_http_options o;
	struct event *sweep;
	struct sbx_stream *streams; /* stream.c's */
	struct sbx_http_stats stats;
	size_t n_listeners;
	struct sbx_http_listener listeners[LISTENERS_MAX];
};

static time_t now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + 1; /* never 0 */
}

struct event_base *sbx_listener_base(const struct sbx_http_listener *l)
{
	return l->http->o.base;
}

struct sbx_stream **sbx_listener_streams(const struct sbx_http_listener *l)
{
	return &l->http->streams;
}

void sbx_listener_failed(const struct sbx_http_listener *l, const char *line)
{
	if (l->http->o.failed)
		l->http->o.failed(line);
}

struct sbx_http_stats *sbx_listener_stats(const struct sbx_http_listener *l)
{
	return &l->http->stats;
}

const struct sbx_http_stats *sbx_http_stats(const struct sbx_http *h)
{
	return &h->stats;
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
	if (r->suspended)
		sbx_request_resume(r);
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

static void kick(struct sbx_http_listener *l)
{
	event_active(l->event, EV_TIMEOUT, 0);
}

void sbx_connection_resume(struct sbx_http_listener *l, struct MHD_Connection *c)
{
	MHD_resume_connection(c);
	kick(l);
}

void sbx_request_resume(struct sbx_http_request *r)
{
	r->suspended = false;
	sbx_connection_resume(r->listener, r->connection);
}

/* --- the head --- */

static const char *header(const struct sbx_http_request *r, const char *name)
{
	return MHD_lookup_connection_value(r->connection, MHD_HEADER_KIND, name);
}

static struct connection *connection_of(const struct sbx_http_request *r)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(r->connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	return info ? info->socket_context : NULL;
}

/* Notes that a field which access is judged by is there twice. */
static enum MHD_Result count_header(void *cls, enum MHD_ValueKind kind, const char *key,
				    const char *value)
{
	static const char *const once[] = { MHD_HTTP_HEADER_HOST, MHD_HTTP_HEADER_ORIGIN,
					    MHD_HTTP_HEADER_AUTHORIZATION, MHD_HTTP_HEADER_COOKIE,
					    "Sec-Fetch-Site" };
	unsigned *seen = cls;

	(void)kind;
	(void)value;
	for (size_t i = 0; i < SBX_N_ELEMENTS(once); i++)
		if (strcasecmp(key, once[i]) == 0)
			*seen |= *seen & (1u << i) ? DOUBLED : 1u << i;
	return MHD_YES;
}

static void describe_caller(const struct sbx_http_request *r, int method, struct sbx_caller *ret)
{
	const struct connection *c = connection_of(r);
	unsigned seen = 0;

	MHD_get_connection_values(r->connection, MHD_HEADER_KIND, count_header, &seen);
	*ret = (struct sbx_caller){
		.kind = r->listener->kind,
		.is_tls = r->listener->is_tls,
		.uid = c->uid,
		.foreign = c->foreign,
		.at = &c->at,
		.port = c->port,
		.address = &c->address,
		.host = header(r, MHD_HTTP_HEADER_HOST),
		.origin = header(r, MHD_HTTP_HEADER_ORIGIN),
		.authorization = header(r, MHD_HTTP_HEADER_AUTHORIZATION),
		.cookie = header(r, MHD_HTTP_HEADER_COOKIE),
		.fetch_site = header(r, "Sec-Fetch-Site"),
		.is_doubled = seen & DOUBLED,
		.is_proxied = header(r, "Forwarded") || header(r, "X-Forwarded-For"),
		/* an unknown one changes nothing: it is refused later */
		.method = method < 0 ? SBX_POST : (enum sbx_method)method,
	};
}

static void refuse_caller(struct sbx_call *call, const struct sbx_refusal *why)
{
	char seconds[16];

	if (why->status == MHD_HTTP_UNAUTHORIZED)
		sbx_reply_header(call, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer");
	if (why->retry_s) {
		sbx_text_fit(seconds, sizeof(seconds), "%u", why->retry_s);
		sbx_reply_header(call, MHD_HTTP_HEADER_RETRY_AFTER, seconds);
	}
	sbx_reply_problem(call, why->status, why->code, NULL, "%s", why->err.msg);
}

/* Answers, unless the principal may use the route. */
static bool judge_caller(struct sbx_http_request *r, const struct sbx_caller *caller)
{
	struct sbx_call *call = &r->call;
	enum sbx_role role = call->found.route->role, own;
	struct sbx_refusal why;

	if (sbx_access_identify(r->listener->http->o.access, caller, role == SBX_ROLE_NONE,
				&call->principal, &why) != 0) {
		refuse_caller(call, &why);
		return false;
	}
	own = call->principal.role;
	if (own >= role)
		return true;
	if (own == SBX_ROLE_NONE) {
		sbx_reply_header(call, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer");
		sbx_reply_problem(call, MHD_HTTP_UNAUTHORIZED, "no_credentials", NULL,
				  "send a token (Authorization: Bearer ...; sbxctl token add makes "
				  "one), or open the page by sbxctl web");
	} else {
		sbx_reply_problem(call, MHD_HTTP_FORBIDDEN, "denied", NULL,
				  "this takes the role %s, and yours is %s", sbx_role_str(role),
				  sbx_role_str(own));
	}
	return false;
}

static void refuse_method(struct sbx_http_request *r, unsigned allowed)
{
	char text[64] = "";

	for (int i = 0; i < SBX_N_METHODS; i++)
		if (allowed & (1u << i))
			sbx_text_cut(text + strlen(text), sizeof(text) - strlen(text), "%s%s",
				     text[0] ? ", " : "", sbx_method_str((enum sbx_method)i));
	sbx_reply_header(&r->call, MHD_HTTP_HEADER_ALLOW, text);
	sbx_reply_problem(&r->call, MHD_HTTP_METHOD_NOT_ALLOWED, "method", NULL,
			  "this path takes %s", text);
}

/* Finds the route. False: it was answered. */
static bool find_route(struct sbx_http_request *r, const char *url, int method)
{
	unsigned allowed = 0;
	int e = sbx_route_find(r->listener->http->o.routes,
			       method < 0 ? SBX_N_METHODS : (enum sbx_method)method, url,
			       &r->call.found, &allowed);

	if (e == SBX_ROUTE_E_PATH)
		sbx_reply_problem(&r->call, MHD_HTTP_NOT_FOUND, "unknown", NULL,
				  "there is no such path; GET /openapi.json lists them");
	else if (e)
		refuse_method(r, allowed);
	return e == 0;
}

struct query {
	struct sbx_http_request *r;
	const struct sbx_route *route;
	bool refused;
};

static enum MHD_Result take_parameter(void *cls, enum MHD_ValueKind kind, const char *key,
				      const char *value)
{
	struct query *q = cls;
	struct sbx_call *call = &q->r->call;
	const struct sbx_field *field = NULL;
	struct sbx_err err = { 0 };
	char text[1024];
	json_t *v = NULL;

	(void)kind;
	for (size_t i = 0; i < q->route->n_query; i++)
		if (strcmp(q->route->query[i].name, key) == 0)
			field = &q->route->query[i];
	if (!field)
		sbx_err_set(&err, "there is no parameter %s", key);
	else if (json_object_get(call->query, key))
		sbx_err_set(&err, "%s: it is there twice", key);
	else if (sbx_percent_decode(text, sizeof(text), value ? value : "",
				    value ? strlen(value) : 0) < 0)
		sbx_err_set(&err, "%s: it is too long, or badly encoded", key);
	else
		v = sbx_field_from_text(field, text, &err);
	if (v && json_object_set_new(call->query, key, v) == 0)
		return MHD_YES;
	sbx_reply_problem(call, MHD_HTTP_BAD_REQUEST, "invalid", key, "%s", err.msg);
	q->refused = true;
	return MHD_NO;
}

static bool take_query(struct sbx_http_request *r)
{
	struct query q = { .r = r, .route = r->call.found.route };
	char name[SBX_FIELD_NAME_MAX];
	struct sbx_err err = { 0 };

	r->call.query = json_object();
	MHD_get_connection_values(r->connection, MHD_GET_ARGUMENT_KIND, take_parameter, &q);
	if (q.refused)
		return false;
	if (sbx_fields_check(q.route->query, q.route->n_query, r->call.query, name, &err) == 0)
		return true;
	sbx_reply_problem(&r->call, MHD_HTTP_BAD_REQUEST, "invalid", name, "%s", err.msg);
	return false;
}

static unsigned long long body_length(const struct sbx_http_request *r)
{
	const char *length = header(r, MHD_HTTP_HEADER_CONTENT_LENGTH);

	return length ? strtoull(length, NULL, 10) : 0;
}

/* A form of another site can send text/plain, and never application/json. */
static bool check_body_head(struct sbx_http_request *r)
{
	const char *type = header(r, MHD_HTTP_HEADER_CONTENT_TYPE);
	static const char json[] = "application/json";

	if (body_length(r) > SBX_HTTP_BODY_MAX) {
		sbx_reply_problem(&r->call, MHD_HTTP_CONTENT_TOO_LARGE, "too_large", NULL,
				  "a body has at most %d bytes", SBX_HTTP_BODY_MAX);
		return false;
	}
	if (!r->call.found.route->body)
		return true;
	if (type && strncasecmp(type, json, sizeof(json) - 1) == 0 &&
	    strchr("; \t", type[sizeof(json) - 1]))
		return true;
	sbx_reply_problem(&r->call, MHD_HTTP_UNSUPPORTED_MEDIA_TYPE, "media_type", NULL,
			  "send the body as Content-Type: application/json");
	return false;
}

static void take_head(struct sbx_http_request *r, const char *url, const char *method_name)
{
	struct sbx_call *call = &r->call;
	const char *accept = header(r, MHD_HTTP_HEADER_ACCEPT), *host = header(r, "Host");
	int method = sbx_method_parse(method_name);
	struct sbx_caller caller;
	struct sbx_refusal why;

	if (!connection_of(r)) { /* no memory for it */
		sbx_reply_problem(call, MHD_HTTP_SERVICE_UNAVAILABLE, "busy", NULL, "try again");
		return;
	}
	call->if_match = header(r, MHD_HTTP_HEADER_IF_MATCH);
	call->if_none_match = header(r, MHD_HTTP_HEADER_IF_NONE_MATCH);
	call->last_event_id = header(r, "Last-Event-ID");
	call->host = host ? host : "";
	call->wants_events = accept && strstr(accept, "text/event-stream");
	call->is_tls = r->listener->is_tls;
	describe_caller(r, method, &caller);
	if (sbx_access_admit(r->listener->http->o.access, &caller, &why) != 0)
		refuse_caller(call, &why);
	else if (find_route(r, url, method) && judge_caller(r, &caller) && take_query(r))
		check_body_head(r);
}

/* --- the body, and the handler --- */

static enum MHD_Result take_body(struct sbx_http_request *r, const char *p, size_t n)
{
	char *grown;

	if (n > SBX_HTTP_BODY_MAX - r->n_body)
		r->too_large = true;
	if (r->ran || r->too_large) {
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
		sbx_reply_problem(&r->call, MHD_HTTP_CONTENT_TOO_LARGE, "too_large", NULL,
				  "a body has at most %d bytes", SBX_HTTP_BODY_MAX);
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

static void request_free(struct sbx_http_request *r)
{
	if (r->response)
		MHD_destroy_response(r->response);
	json_decref(r->call.query);
	json_decref(r->call.body);
	free(r->body);
	free(r);
}

static enum MHD_Result on_request(void *cls, struct MHD_Connection *mc, const char *url,
				  const char *method, const char *version, const char *data,
				  size_t *n_data, void **state)
{
	struct sbx_http_listener *l = cls;
	struct sbx_http_request *r = *state;

	(void)version;
	if (!r) {
		r = calloc(1, sizeof(*r));
		if (!r)
			return MHD_NO;
		*state = r;
		r->began_us = sbx_clock_monotonic_us();
		r->listener = l;
		r->connection = mc;
		r->call.http = r;
		r->call.daemon = l->http->o.daemon;
		take_head(r, url, method);
		r->ran = r->response != NULL;
		return r->ran && body_length(r) > DROP_MAX ? queue(r) : MHD_YES;
	}
	if (*n_data > 0) {
		enum MHD_Result result = take_body(r, data, *n_data);

		*n_data = 0;
		return result;
	}
	if (!r->ran) {
		struct connection *c = connection_of(r);

		r->ran = true;
		if (c)
			c->since = 0;
		if (parse_body(r))
			r->call.found.route->run(&r->call);
	}
	if (r->response)
		return queue(r);
	r->suspended = true;
	MHD_suspend_connection(mc);
	return MHD_YES;
}

static void on_completed(void *cls, struct MHD_Connection *mc, void **state,
			 enum MHD_RequestTerminationCode code)
{
	struct sbx_http_request *r = *state;
	struct connection *c;

	(void)cls;
	(void)mc;
	(void)code;
	if (!r)
		return;
	c = connection_of(r);
	if (c)
		c->since = now_s();
	request_free(r);
	*state = NULL;
}

/* --- connections --- */

static void describe(struct connection *c, const struct sbx_http_listener *l,
		     struct MHD_Connection *mc)
{
	const union MHD_ConnectionInfo *fd =
		MHD_get_connection_info(mc, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct sockaddr_storage sa = { 0 };
	struct sbx_control_peer peer;
	socklen_t n = sizeof(sa);
	uint16_t port;

	c->fd = fd ? fd->connect_fd : -1;
	if (l->kind == SBX_LISTEN_UNIX) {
		sbx_control_peer_look(c->fd, &peer, &c->foreign);
		c->uid = peer.uid;
		return;
	}
	if (getsockname(c->fd, (struct sockaddr *)&sa, &n) == 0)
		sbx_addr_from_sockaddr((struct sockaddr *)&sa, n, &c->at, &c->port);
	n = sizeof(sa);
	if (getpeername(c->fd, (struct sockaddr *)&sa, &n) == 0)
		sbx_addr_from_sockaddr((struct sockaddr *)&sa, n, &c->address, &port);
}

/* libmicrohttpd counts connections by address, and not by uid. */
static bool has_too_many(const struct sbx_http_listener *l, const struct connection *c)
{
	size_t n = 0;

	if (l->kind != SBX_LISTEN_UNIX || sbx_access_is_own(l->http->o.access, c->uid))
		return false;
	for (const struct connection *k = l->connections; k; k = k->next)
		n += k->uid == c->uid;
	return n > SBX_ACCESS_PER_UID_MAX;
}

static void on_connection(void *cls, struct MHD_Connection *mc, void **state,
			  enum MHD_ConnectionNotificationCode code)
{
	struct sbx_http_listener *l = cls;
	struct connection *c = *state;

	if (code == MHD_CONNECTION_NOTIFY_STARTED) {
		c = calloc(1, sizeof(*c));
		*state = c;
		if (!c)
			return;
		describe(c, l, mc);
		l->http->stats.n_connections[l->kind]++;
		c->since = now_s();
		c->next = l->connections;
		c->where = &l->connections;
		if (c->next)
			c->next->where = &c->next;
		l->connections = c;
		if (has_too_many(l, c))
			shutdown(c->fd, SHUT_RDWR);
	} else if (c) {
		l->http->stats.n_connections[l->kind]--;
		*c->where = c->next;
		if (c->next)
			c->next->where = c->where;
		free(c);
		*state = NULL;
	}
}

/* Streams whose credentials hold no longer end. */
static void judge_streams(struct sbx_http *h)
{
	struct sbx_stream *next;

	for (struct sbx_stream *s = h->streams; s; s = next) {
		next = sbx_stream_next(s);
		if (!sbx_access_holds(h->o.access, sbx_stream_principal(s)))
			sbx_stream_end(s);
	}
}

/* A client that sends a byte now and then is never idle. */
static void on_sweep(evutil_socket_t fd, short what, void *userdata)
{
	struct sbx_http *h = userdata;
	time_t now = now_s();

	(void)fd;
	(void)what;
	for (size_t i = 0; i < h->n_listeners; i++)
		for (struct connection *c = h->listeners[i].connections; c; c = c->next)
			if (c->since && now - c->since > SBX_HTTP_REQUEST_S && c->fd >= 0)
				shutdown(c->fd, SHUT_RDWR);
	judge_streams(h);
}

/* --- listeners --- */

static void on_ready(evutil_socket_t fd, short what, void *userdata)
{
	struct sbx_http_listener *l = userdata;
	unsigned long long ms;

	(void)fd;
	(void)what;
	MHD_run(l->mhd);
	if (MHD_get_timeout(l->mhd, &ms) == MHD_YES) {
		struct timeval t = { .tv_sec = (time_t)(ms / 1000),
				     .tv_usec = (suseconds_t)(ms % 1000 * 1000) };

		event_add(l->event, &t);
	} else {
		event_add(l->event, NULL);
	}
}

/* Paths and parameters are decoded after they were taken apart, not before. */
static size_t leave_encoded(void *cls, struct MHD_Connection *mc, char *s)
{
	(void)cls;
	(void)mc;
	return strlen(s);
}

static struct MHD_Daemon *start(struct sbx_http_listener *l, int fd, const char *certificate,
				const char *key)
{
	unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | (certificate ? MHD_USE_TLS : 0);
	struct MHD_OptionItem tls[] = {
		{ MHD_OPTION_HTTPS_MEM_CERT, 0, (void *)(uintptr_t)certificate },
		{ MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)(uintptr_t)key },
		{ MHD_OPTION_END, 0, NULL },
	};

	if (!certificate)
		tls[0] = tls[2];
	return MHD_start_daemon(flags, 0, NULL, NULL, on_request, l, MHD_OPTION_LISTEN_SOCKET, fd,
				MHD_OPTION_NOTIFY_COMPLETED, on_completed, l,
				MHD_OPTION_NOTIFY_CONNECTION, on_connection, l,
				MHD_OPTION_UNESCAPE_CALLBACK, leave_encoded, l,
				MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)SBX_HTTP_HEADER_MAX,
				MHD_OPTION_CONNECTION_LIMIT, (unsigned)SBX_HTTP_CONNECTIONS_MAX,
				MHD_OPTION_PER_IP_CONNECTION_LIMIT,
				l->kind == SBX_LISTEN_TCP ? (unsigned)SBX_HTTP_PER_ADDRESS_MAX : 0u,
				MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)SBX_HTTP_IDLE_S,
				MHD_OPTION_ARRAY, tls, MHD_OPTION_END);
}

static void note_address(const struct sbx_http_listener *l, int fd)
{
	struct sockaddr_storage sa = { 0 };
	socklen_t n = sizeof(sa);
	struct sbx_addr addr;
	uint16_t port;

	if (l->kind == SBX_LISTEN_TCP && getsockname(fd, (struct sockaddr *)&sa, &n) == 0 &&
	    sbx_addr_from_sockaddr((struct sockaddr *)&sa, n, &addr, &port) == 0)
		sbx_access_listens(l->http->o.access, &addr, port, l->is_tls);
}

int sbx_http_listen(struct sbx_http *h, enum sbx_listener_kind kind, int fd_take,
		    const char *certificate, const char *key, struct sbx_err *err)
{
	SBX_AUTO_CLOSE int fd = fd_take;
	struct sbx_http_listener *l = &h->listeners[h->n_listeners];
	const union MHD_DaemonInfo *info;
	int listening;

	if (h->n_listeners == LISTENERS_MAX) {
		sbx_err_set(err, "more than %d listening sockets", LISTENERS_MAX);
		return -E2BIG;
	}
	*l = (struct sbx_http_listener){ .http = h, .kind = kind, .is_tls = certificate != NULL };
	l->mhd = start(l, fd, certificate, key);
	if (!l->mhd) {
		sbx_err_set(err, "libmicrohttpd did not start%s",
			    certificate ? ": are the certificate and the key PEM files?" : "");
		return -EINVAL;
	}
	listening = sbx_fd_steal(&fd); /* it is libmicrohttpd's now */
	h->n_listeners++;
	info = MHD_get_daemon_info(l->mhd, MHD_DAEMON_INFO_EPOLL_FD);
	l->event = event_new(h->o.base, info->epoll_fd, EV_READ | EV_PERSIST, on_ready, l);
	if (!l->event || event_add(l->event, NULL) < 0) {
		sbx_err_set(err, "out of memory");
		return -ENOMEM;
	}
	kick(l);
	note_address(l, listening);
	return 0;
}

int sbx_http_new(const struct sbx_http_options *options, struct sbx_http **ret_http)
{
	static const struct timeval interval = { .tv_sec = SWEEP_S };
	struct sbx_http *h = calloc(1, sizeof(*h));

	if (!h)
		return -ENOMEM;
	h->o = *options;
	h->sweep = event_new(h->o.base, -1, EV_PERSIST, on_sweep, h);
	if (!h->sweep || event_add(h->sweep, &interval) < 0 ||
	    sbx_http_stats_init(&h->stats, h->o.routes) < 0) {
		sbx_http_free(h);
		return -ENOMEM;
	}
	*ret_http = h;
	return 0;
}

struct sbx_http *sbx_http_free(struct sbx_http *h)
{
	if (!h)
		return NULL;
	for (size_t i = 0; i < h->n_listeners; i++) {
		if (h->listeners[i].event)
			event_free(h->listeners[i].event);
		/* Not MHD_stop_daemon(): it waits for suspended connections to be resumed. The
		 * process ends. */
	}
	if (h->sweep)
		event_free(h->sweep);
	sbx_http_stats_fini(&h->stats);
	free(h);
	return NULL;
}
