/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The head of a request: its caller is judged, its route is found, its query is read. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "daemon/http/framing.h"
#include "daemon/http/listener.h"
#include "daemon/http/request.h"

#define DOUBLED (1u << 31)

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
	const struct sbx_http_connection *c = sbx_request_connection(r);
	unsigned seen = 0;

	MHD_get_connection_values(r->connection, MHD_HEADER_KIND, count_header, &seen);
	*ret = (struct sbx_caller){
		.kind = r->listener->kind,
		.browser = { .uid = c->uid,
			     .port = c->port,
			     .is_tls = r->listener->is_tls,
			     .fetch_site = sbx_request_header(r, "Sec-Fetch-Site") },
		.foreign = c->foreign,
		.at = &c->at,
		.address = &c->address,
		.host = sbx_request_header(r, MHD_HTTP_HEADER_HOST),
		.origin = sbx_request_header(r, MHD_HTTP_HEADER_ORIGIN),
		.authorization = sbx_request_header(r, MHD_HTTP_HEADER_AUTHORIZATION),
		.cookie = sbx_request_header(r, MHD_HTTP_HEADER_COOKIE),
		.is_doubled = seen & DOUBLED,
		.is_proxied = sbx_request_header(r, "Forwarded") ||
			      sbx_request_header(r, "X-Forwarded-For"),
		/* an unknown one changes nothing: it is refused later */
		.method = method < 0 ? SBX_POST : (enum sbx_method)method,
	};
}

static void refuse_caller(struct sbx_call *call, const struct sbx_access_refusal *why)
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
	struct sbx_access_refusal why;

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
	char text[1024], names[384];
	json_t *v = NULL;

	(void)kind;
	sbx_fields_names(q->route->query, q->route->n_query, names, sizeof(names));
	for (size_t i = 0; i < q->route->n_query; i++)
		if (strcmp(q->route->query[i].name, key) == 0)
			field = &q->route->query[i];
	if (!field)
		sbx_err_set(&err, "there is no parameter %s; %s", key, names);
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

/* The connection is closed: what follows may be the rest of this request. */
static void refuse_framing(struct sbx_call *call, const char *why)
{
	call->http->unframed = true;
	sbx_reply_header(call, MHD_HTTP_HEADER_CONNECTION, "close");
	sbx_reply_problem(call, MHD_HTTP_BAD_REQUEST, "invalid", NULL, "%s", why);
}

bool sbx_request_head(struct sbx_http_request *r, const char *url, const char *method_name,
		      const char *version)
{
	struct sbx_call *call = &r->call;
	const char *accept = sbx_request_header(r, MHD_HTTP_HEADER_ACCEPT),
		   *host = sbx_request_header(r, "Host");
	const char *ambiguous = sbx_framing_is_ambiguous(r->connection, version);
	int method = sbx_method_parse(method_name);
	struct sbx_caller caller;
	struct sbx_access_refusal why;

	if (!sbx_request_connection(r)) { /* no memory for it */
		sbx_reply_problem(call, MHD_HTTP_SERVICE_UNAVAILABLE, "busy", NULL, "try again");
		return false;
	}
	if (ambiguous) {
		refuse_framing(call, ambiguous);
		return false;
	}
	call->if_match = sbx_request_header(r, MHD_HTTP_HEADER_IF_MATCH);
	call->if_none_match = sbx_request_header(r, MHD_HTTP_HEADER_IF_NONE_MATCH);
	call->last_event_id = sbx_request_header(r, "Last-Event-ID");
	call->host = host ? host : "";
	call->wants_events = accept && strstr(accept, "text/event-stream");
	call->wants_html = accept && strstr(accept, "text/html");
	describe_caller(r, method, &caller);
	call->browser = caller.browser;
	if (sbx_access_admit(r->listener->http->o.access, &caller, &why) != 0) {
		refuse_caller(call, &why);
		return false;
	}
	return find_route(r, url, method) && judge_caller(r, &caller) && take_query(r);
}
