/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * May a secret be used in a request? The one list of conditions, for heads and for bodies.
 *
 * A placeholder that is on its way to a wrong place is refused, although it is worth nothing there:
 * it is the mark of a program that was talked into sending a credential elsewhere. The texts name
 * the secret and what to change, never a value.
 */

#include "http/secret_use.h"

#include "base/text.h"
#include "http/head.h"

void sbx_secret_use_init(struct sbx_secret_use *u, const char *host,
			 const struct sbx_http_request *r)
{
	struct sbx_span query;

	u->host = host;
	u->tls = r->tls;
	u->method = r->method;
	if (!sbx_http_head_overrides(r, &u->override))
		u->override = sbx_span(NULL, 0);
	u->path_why = NULL;
	sbx_http_path_canonical(r->target, u->path, &query, &u->path_why);
}

/* Does something replace the method or the path on which the secret depends? */
static bool is_overridden(const struct sbx_secret_use *u, const struct sbx_http_secret *s)
{
	return u->override.n && (s->methods.n || s->paths.n);
}

static bool method_applies(const struct sbx_secret_use *u, const struct sbx_http_secret *s)
{
	return !s->methods.n || sbx_http_list_has(&s->methods, u->method);
}

static bool path_applies(const struct sbx_secret_use *u, const struct sbx_http_secret *s)
{
	if (!s->paths.n)
		return true;
	for (size_t i = 0; i < s->paths.n && !u->path_why; i++)
		if (sbx_http_path_matches(s->paths.v[i], u->path))
			return true;
	return false;
}

bool sbx_secret_use_applies(const struct sbx_secret_use *u, const struct sbx_http_secret *s)
{
	return sbx_http_secret_is_for(s, u->host) && u->tls && !is_overridden(u, s) &&
	       method_applies(u, s) && path_applies(u, s);
}

#define REFUSE(v, ...)	sbx_http_refuse(v, SBX_REASON_SECRET_MISDIRECTED, 403, __VA_ARGS__)
#define THE_PLACEHOLDER "the placeholder of secret '%.*s' was in %s of a request to %s"

static bool judge_place(const struct sbx_secret_use *u, const struct sbx_http_secret *s,
			unsigned place, const char *where, struct sbx_http_verdict *v)
{
	if (place & s->in)
		return true;
	if (!place)
		return REFUSE(v,
			      THE_PLACEHOLDER ", where no placeholder is replaced; send it in a "
					      "header, the query or the body, as the secret's "
					      "'in' allows",
			      SBX_HTTP_SPAN_ARGS(s->name), where, u->host);
	return REFUSE(v,
		      THE_PLACEHOLDER ", but the secret is not used there; if it should be, add "
				      "%s to its 'in'",
		      SBX_HTTP_SPAN_ARGS(s->name), where, u->host,
		      place == SBX_HTTP_IN_HEADER ? "header" :
		      place == SBX_HTTP_IN_QUERY  ? "query" :
						    "body");
}

static bool judge_path(const struct sbx_secret_use *u, const struct sbx_http_secret *s,
		       const char *where, struct sbx_http_verdict *v)
{
	char list[160];

	if (path_applies(u, s))
		return true;
	if (u->path_why)
		return REFUSE(v,
			      THE_PLACEHOLDER ", and servers read the request's path in more "
					      "than one way: %s; write the path in its plain form",
			      SBX_HTTP_SPAN_ARGS(s->name), where, u->host, u->path_why);
	sbx_http_list_text(&s->paths, list, sizeof(list));
	return REFUSE(v,
		      THE_PLACEHOLDER ", but the secret is for the paths %s only; if it should be "
				      "used here, add the path to its paths",
		      SBX_HTTP_SPAN_ARGS(s->name), where, u->host, list);
}

static bool judge(const struct sbx_secret_use *u, const struct sbx_http_secret *s, unsigned place,
		  const char *where, struct sbx_http_verdict *v)
{
	char list[160];

	if (!sbx_http_secret_is_for(s, u->host)) {
		sbx_http_list_text(&s->hosts, list, sizeof(list));
		return REFUSE(v,
			      THE_PLACEHOLDER ", but the secret is for %s only; if it should go "
					      "there, add %s to its hosts",
			      SBX_HTTP_SPAN_ARGS(s->name), where, u->host, list, u->host);
	}
	if (!u->tls)
		return REFUSE(v,
			      THE_PLACEHOLDER " without TLS; secrets are sent over TLS only, so "
					      "use https",
			      SBX_HTTP_SPAN_ARGS(s->name), where, u->host);
	if (s->inject == SBX_HTTP_INJECT_HEADER)
		return REFUSE(v,
			      THE_PLACEHOLDER ", but sbx itself sets this secret in the header "
					      "%.*s; leave the placeholder out, or use 'inject: "
					      "placeholder'",
			      SBX_HTTP_SPAN_ARGS(s->name), where, u->host,
			      SBX_HTTP_SPAN_ARGS(s->header));
	if (s->inject == SBX_HTTP_INJECT_AWS_SIGV4)
		return REFUSE(v,
			      THE_PLACEHOLDER ", but the secret signs requests only; use it as "
					      "the access key of an AWS client",
			      SBX_HTTP_SPAN_ARGS(s->name), where, u->host);
	if (is_overridden(u, s))
		return REFUSE(v,
			      THE_PLACEHOLDER ", which has %.*s, by which some servers replace the "
					      "method or the path, and the secret is for some of "
					      "them only; send the method and the path themselves",
			      SBX_HTTP_SPAN_ARGS(s->name), where, u->host,
			      SBX_HTTP_SPAN_ARGS(u->override));
	if (!method_applies(u, s)) {
		sbx_http_list_text(&s->methods, list, sizeof(list));
		return REFUSE(v,
			      THE_PLACEHOLDER ", but the secret is for the methods %s only; if it "
					      "should be used with %.*s, add that to its methods",
			      SBX_HTTP_SPAN_ARGS(s->name), where, u->host, list,
			      SBX_HTTP_SPAN_ARGS(u->method));
	}
	return judge_path(u, s, where, v) && judge_place(u, s, place, where, v);
}

static bool about(const struct sbx_http_secret *s, struct sbx_http_verdict *v)
{
	sbx_text_cut(v->secret, sizeof(v->secret), "%.*s", SBX_HTTP_SPAN_ARGS(s->name));
	return false;
}

bool sbx_secret_use_judge(const struct sbx_secret_use *u, const struct sbx_http_secret *s,
			  unsigned place, const char *where, struct sbx_http_verdict *v)
{
	return judge(u, s, place, where, v) || about(s, v);
}

struct sbx_span sbx_secret_use_sought(const struct sbx_http_secret *s)
{
	struct sbx_span v = s->value;
	const uint8_t *colon =
		s->inject == SBX_HTTP_INJECT_AWS_SIGV4 && v.n ? memchr(v.p, ':', v.n) : NULL;

	if (colon)
		v = sbx_span(colon + 1, v.n - (size_t)(colon + 1 - v.p));
	return v.n >= SBX_HTTP_VALUE_SEEN_MIN ? v : sbx_span(NULL, 0);
}

bool sbx_secret_use_detected(const struct sbx_secret_use *u, const struct sbx_http_secret *s,
			     const char *where, struct sbx_http_verdict *v)
{
	sbx_http_refuse(
		v, SBX_REASON_SECRET_DETECTED, 403,
		"the real value of secret '%.*s' was in %s of a request to %s; "
		"programs inside work with its placeholder: find out how the value got "
		"in, and renew it; 'detect: false' switches this check off",
		SBX_HTTP_SPAN_ARGS(s->name), where, u->host);
	return about(s, v);
}
