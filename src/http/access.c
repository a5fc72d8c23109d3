/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Judges a request by the access of its entry.
 *
 * An entry admits a request by its method and its canonical path alone. So everything that
 * could make a server act on another method or path is refused where the access is not "any": a
 * path with two readings, and the fields by which frameworks replace the method or the path. "any"
 * promises nothing about paths, and an odd path must not break a client there; nor an encoded slash
 * where no paths are listed.
 *
 * Read-only admits what cannot change anything by the definition of its method (RFC 9110 section
 * 9.2.1) and has no body, because servers exist that read a GET's body. Git needs an exception: a
 * fetch asks with a POST, and a push begins with a GET (gitprotocol-http(5)).
 */

#include "http/request.h"

#include <inttypes.h>
#include <string.h>

#include "http/encode.h"
#include "http/head.h"
#include "http/path.h"
#include "http/verdict.h"
#include "wire/http_field.h"

/* Everything that the steps work with. */
struct judged {
	const struct sbx_http_entry *e;
	const char *host;
	const struct sbx_http_request *r;
	char path[SBX_HTTP_PATH_MAX + 1]; /* canonical; "" with access "any" */
	bool has_encoded_slash;		  /* which no entry with paths has */
	struct sbx_span query;
};

static bool is(struct sbx_span s, const char *text)
{
	return sbx_http_same(s, sbx_span_str(text));
}

static bool ends_with(const char *s, const char *end)
{
	size_t n = strlen(s), n_end = strlen(end);

	return n >= n_end && !strcmp(s + n - n_end, end);
}

static bool judge_method_alone(const struct judged *j, struct sbx_http_verdict *v)
{
	struct sbx_span m = j->r->method;

	if (!sbx_http_equal(m, "TRACE") && !sbx_http_equal(m, "CONNECT"))
		return true;
	return sbx_http_refuse(
		v, SBX_REASON_ACCESS_METHOD, 405,
		"%s is terminated here (entry '%.*s'), and sbx carries no %.*s to such "
		"hosts; if it is needed, set passthrough: true",
		j->host, SBX_HTTP_SPAN_ARGS(j->e->text), SBX_HTTP_SPAN_ARGS(m));
}

static bool judge_upgrade(const struct judged *j, struct sbx_http_verdict *v)
{
	const struct sbx_http_entry *e = j->e;

	if (!j->r->upgrade)
		return true;
	if (e->access == SBX_HTTP_ACCESS_READ_ONLY)
		return sbx_http_refuse(v, SBX_REASON_HTTP_UPGRADE, 403,
				       "%s is read-only here (entry '%.*s', access: read-only): an "
				       "upgrade to another protocol is not allowed; to allow "
				       "websockets, set websocket: true and access: any",
				       j->host, SBX_HTTP_SPAN_ARGS(e->text));
	if (!e->websocket)
		return sbx_http_refuse(
			v, SBX_REASON_HTTP_UPGRADE, 403,
			"%s may not be asked for another protocol (entry '%.*s'): the "
			"request has an Upgrade; to allow websockets, set websocket: "
			"true",
			j->host, SBX_HTTP_SPAN_ARGS(e->text));
	if (is(j->r->method, "GET") && sbx_http_equal(j->r->upgrade_to, "websocket"))
		return true;
	return sbx_http_refuse(v, SBX_REASON_HTTP_UPGRADE, 403,
			       "%s may be asked for websockets alone (entry '%.*s', websocket: "
			       "true): only a GET with 'Upgrade: websocket' is allowed",
			       j->host, SBX_HTTP_SPAN_ARGS(e->text));
}

static bool judge_overrides(const struct judged *j, struct sbx_http_verdict *v)
{
	struct sbx_span name;

	if (!sbx_http_head_overrides(j->r, &name))
		return true;
	return sbx_http_refuse(
		v, SBX_REASON_ACCESS_METHOD, 403,
		"%s has rules about requests (entry '%.*s'): %.*s, which replaces the "
		"method or the path for some servers, is not allowed; send the method "
		"and the path themselves, or set access: any",
		j->host, SBX_HTTP_SPAN_ARGS(j->e->text), SBX_HTTP_SPAN_ARGS(name));
}

static bool judge_path_form(struct judged *j, struct sbx_http_verdict *v)
{
	const char *why;
	int r = sbx_http_path_canonical(j->r->target, j->path, &j->query, &why);

	j->has_encoded_slash = r == SBX_HTTP_PATH_E_SLASH;
	if (r == 0 || (j->has_encoded_slash && !j->e->paths.n))
		return true;
	return sbx_http_refuse(
		v, SBX_REASON_PATH_AMBIGUOUS, 400,
		"%s has rules about requests (entry '%.*s'), and servers read this "
		"request's path in more than one way: %s; write the path in its plain "
		"form, or set access: any",
		j->host, SBX_HTTP_SPAN_ARGS(j->e->text), why);
}

/* A push asks GET /REPOSITORY/info/refs?service=git-receive-pack first. However the query is
 * written, this finds the name of the service in it. */
static bool begins_push(const struct judged *j)
{
	static const char service[] = "git-receive-pack";
	uint8_t query[SBX_HTTP_PATH_MAX];
	size_t n;

	if (!ends_with(j->path, "/info/refs"))
		return false;
	if (j->query.n > sizeof(query))
		return true;
	n = sbx_http_percent_decode(j->query, true, query, NULL);
	return n && memmem(query, n, service, sizeof(service) - 1);
}

/* POST /REPOSITORY/git-upload-pack: the client's side of a fetch, which is in the body alone. A
 * server with an API beside git may have other things with such a name, and take a query. */
static bool is_git_fetch(const struct judged *j)
{
	struct sbx_span type = { 0 };
	size_t n_types = 0;

	if (!is(j->r->method, "POST") || j->has_encoded_slash || j->query.n ||
	    !sbx_http_head_has_body(j->r) || !ends_with(j->path, "/git-upload-pack"))
		return false;
	for (size_t i = 0; i < j->r->n_headers; i++) {
		if (!sbx_http_equal(j->r->headers[i].name, "content-type"))
			continue;
		type = j->r->headers[i].value;
		n_types++;
	}
	return n_types == 1 && sbx_http_equal(type, "application/x-git-upload-pack-request");
}

static bool refuse_push(const struct judged *j, struct sbx_http_verdict *v)
{
	return sbx_http_refuse(
		v, SBX_REASON_ACCESS_METHOD, 403,
		"%s is read-only here (entry '%.*s', access: read-only): a git push is "
		"not allowed, only clone and fetch; to push, use a profile with access: any "
		"for the host",
		j->host, SBX_HTTP_SPAN_ARGS(j->e->text));
}

static bool judge_read_only(const struct judged *j, struct sbx_http_verdict *v)
{
	struct sbx_span m = j->r->method;

	if (is_git_fetch(j))
		return true;
	if (begins_push(j) || ends_with(j->path, "/git-receive-pack"))
		return refuse_push(j, v);
	if (!is(m, "GET") && !is(m, "HEAD") && !is(m, "OPTIONS"))
		return sbx_http_refuse(
			v, SBX_REASON_ACCESS_METHOD, 403,
			"%s is read-only here (entry '%.*s', access: read-only): %.*s "
			"is not allowed; to allow it, use a profile whose entry for the host "
			"has 'access: {methods: [GET, HEAD, %.*s]}', or 'access: any'",
			j->host, SBX_HTTP_SPAN_ARGS(j->e->text), SBX_HTTP_SPAN_ARGS(m),
			SBX_HTTP_SPAN_ARGS(m));
	if (sbx_http_head_has_body(j->r))
		return sbx_http_refuse(
			v, SBX_REASON_REQUEST_BODY, 403,
			"%s is read-only here (entry '%.*s', access: read-only): a "
			"%.*s with a body is not allowed; send it without one, or use a "
			"profile whose entry for the host has 'access: {methods: [%.*s]}'",
			j->host, SBX_HTTP_SPAN_ARGS(j->e->text), SBX_HTTP_SPAN_ARGS(m),
			SBX_HTTP_SPAN_ARGS(m));
	return true;
}

static bool judge_listed(const struct judged *j, struct sbx_http_verdict *v)
{
	const struct sbx_http_entry *e = j->e;
	struct sbx_span m = j->r->method;
	char allowed[160];

	if (e->methods.n && !sbx_http_list_has(&e->methods, m)) {
		sbx_http_list_text(&e->methods, allowed, sizeof(allowed));
		return sbx_http_refuse(v, SBX_REASON_ACCESS_METHOD, 403,
				       "%s may be asked with %s only (entry '%.*s'): %.*s is not "
				       "allowed; to allow it, add %.*s to the entry's methods",
				       j->host, allowed, SBX_HTTP_SPAN_ARGS(e->text),
				       SBX_HTTP_SPAN_ARGS(m), SBX_HTTP_SPAN_ARGS(m));
	}
	if (!e->paths.n)
		return true;
	for (size_t i = 0; i < e->paths.n; i++)
		if (sbx_http_path_matches(e->paths.v[i], j->path))
			return true;
	sbx_http_list_text(&e->paths, allowed, sizeof(allowed));
	return sbx_http_refuse(
		v, SBX_REASON_ACCESS_PATH, 403,
		"%s may be asked for the paths %s only (entry '%.*s'): %.150s is not "
		"one of them; to allow it, add it to the entry's paths",
		j->host, allowed, SBX_HTTP_SPAN_ARGS(e->text), j->path);
}

static bool judge_size(const struct judged *j, struct sbx_http_verdict *v)
{
	const struct sbx_http_entry *e = j->e;

	if (!e->max_request_bytes || !j->r->has_length || j->r->length <= e->max_request_bytes)
		return true;
	return sbx_http_refuse(
		v, SBX_REASON_REQUEST_SIZE, 413,
		"%s gets request bodies of at most %" PRIu64 " bytes (entry '%.*s'): "
		"this one has %" PRIu64 "; to allow it, raise max_request_bytes",
		j->host, e->max_request_bytes, SBX_HTTP_SPAN_ARGS(e->text), j->r->length);
}

bool sbx_http_judge_access(const struct sbx_http_entry *e, const char *host,
			   const struct sbx_http_request *r, struct sbx_http_verdict *ret_verdict)
{
	struct judged j = { .e = e, .host = host, .r = r };

	if (!judge_method_alone(&j, ret_verdict) || !judge_upgrade(&j, ret_verdict))
		return false;
	if (e->access != SBX_HTTP_ACCESS_ANY &&
	    (!judge_overrides(&j, ret_verdict) || !judge_path_form(&j, ret_verdict)))
		return false;
	if (e->access == SBX_HTTP_ACCESS_READ_ONLY && !judge_read_only(&j, ret_verdict))
		return false;
	if (e->access == SBX_HTTP_ACCESS_LISTED && !judge_listed(&j, ret_verdict))
		return false;
	if (!judge_size(&j, ret_verdict))
		return false;
	return sbx_http_allow(ret_verdict);
}
