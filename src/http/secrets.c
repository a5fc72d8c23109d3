/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Applies secrets to the head of a request.
 *
 * The client sends placeholders; the server gets values. The order keeps a value from going where
 * it should not: headers that are replaced are taken out first, then all that the client wrote is
 * searched, and only when everything found is allowed are values written. Written values are never
 * searched again, so a value cannot pull in another.
 *
 * A string is searched as sent, and as the server will decode it: the path and the query without
 * their percent encoding, Basic credentials without their base64. A placeholder consists of bytes
 * that no encoding needs to touch, so a client that encodes one does so on purpose or by habit;
 * either way the server would see the plain string.
 *
 * All memory is in the result's blocks, which are wiped; spans of the client's own bytes are
 * borrowed from its request.
 */

#include "http/request.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/text.h"
#include "http/aws_sigv4.h"
#include "http/encode.h"
#include "http/head.h"
#include "http/match.h"
#include "http/memory.h"
#include "http/secret_use.h"
#include "wire/http_field.h"

#define STRINGS_MAX (2 * SBX_HTTP_SECRETS_MAX) /* a placeholder, and a value */

static_assert(SBX_HTTP_SECRETS_MAX <= 64, "in_body has a bit for each secret");

/* One call of sbx_http_rewrite(). */
struct rewrite {
	const struct sbx_http_rules *rules;
	struct sbx_http_rewritten *out;
	struct sbx_http_verdict *v;
	size_t n_taken; /* bytes of out->memory */
	struct sbx_secret_use use;
	struct sbx_match match;
	struct sbx_span strings[STRINGS_MAX]; /* of `match` */
	const struct sbx_http_secret *signer; /* of a request that is signed anew */
	struct sbx_aws_authorization signing;
	/* Of each string in `match`: its secret, and whether it is the value. */
	struct {
		uint8_t secret;
		bool is_value;
	} found[STRINGS_MAX];
};

/* A string that is searched as the server will see it. */
struct text {
	struct sbx_span sent, seen;
	const uint32_t *from; /* seen.p[i] was sent at from[i]; NULL: seen is what was sent */
};

static struct text plain_text(struct sbx_span s)
{
	return (struct text){ .sent = s, .seen = s };
}

/* Zeroed memory that is wiped with the result. NULL: refused. */
static uint8_t *take(struct rewrite *w, size_t n)
{
	uint8_t *p;

	if (n > SBX_HTTP_REWRITTEN_MAX - w->n_taken) {
		sbx_http_refuse(w->v, SBX_REASON_OVERSIZED, 431,
				"the head of a request to %s is too long with its secrets in it; "
				"send fewer placeholders",
				w->use.host);
		return NULL;
	}
	p = sbx_http_memory_take(&w->out->memory, n);
	if (!p)
		sbx_http_refuse(w->v, SBX_REASON_RESOURCE, 503, "out of memory");
	else
		w->n_taken += n;
	return p;
}

/* --- searching --- */

static void add_string(struct rewrite *w, size_t secret, struct sbx_span s, bool is_value)
{
	size_t i = sbx_match_add(&w->match, s);

	w->found[i].secret = (uint8_t)secret;
	w->found[i].is_value = is_value;
}

static void add_strings(struct rewrite *w)
{
	sbx_match_init(&w->match, w->strings, STRINGS_MAX);
	for (size_t i = 0; i < w->rules->n_secrets; i++) {
		const struct sbx_http_secret *s = &w->rules->secrets[i];

		add_string(w, i, s->placeholder, false);
		if (s->detect && sbx_secret_use_sought(s).n)
			add_string(w, i, sbx_secret_use_sought(s), true);
	}
}

/* The next string in @seen from *pos on, which becomes its begin. NULL: none. */
static const struct sbx_http_secret *next(const struct rewrite *w, struct sbx_span seen,
					  size_t *pos, bool *ret_is_value)
{
	size_t i;

	if (!seen.n ||
	    sbx_match_next(&w->match, seen, *pos, seen.n, true, pos, &i) != SBX_MATCH_FOUND)
		return NULL;
	*ret_is_value = w->found[i].is_value;
	return &w->rules->secrets[w->found[i].secret];
}

/* Judges all that is found; *ret_n counts the placeholders, all of which are allowed in @place. */
static bool judge(struct rewrite *w, struct sbx_span seen, unsigned place, const char *where,
		  size_t *ret_n)
{
	const struct sbx_http_secret *s;
	bool is_value;

	*ret_n = 0;
	for (size_t pos = 0; (s = next(w, seen, &pos, &is_value));) {
		if (is_value)
			return sbx_secret_use_detected(&w->use, s, where, w->v);
		if (!sbx_secret_use_judge(&w->use, s, place, where, w->v))
			return false;
		pos += s->placeholder.n;
		(*ret_n)++;
	}
	return true;
}

static bool judge_nowhere(struct rewrite *w, struct sbx_span seen, const char *where)
{
	size_t n;

	return judge(w, seen, 0, where, &n);
}

/* --- replacing --- */

static size_t sent_at(const struct text *t, size_t seen)
{
	return t->from ? t->from[seen] : seen;
}

static size_t put(uint8_t *out, size_t n, size_t n_max, struct sbx_span s)
{
	if (out && s.n && s.n <= n_max - n)
		memcpy(out + n, s.p, s.n);
	return n + s.n;
}

/* Writes @t with values for its placeholders, all of which judge() allowed. With @out NULL
 * counts. */
static size_t write_values(const struct rewrite *w, const struct text *t, bool percent,
			   uint8_t *out, size_t n_max)
{
	const struct sbx_http_secret *s;
	size_t n = 0, done = 0;
	bool is_value;

	for (size_t pos = 0; (s = next(w, t->seen, &pos, &is_value));) {
		size_t begin = sent_at(t, pos);

		pos += s->placeholder.n;
		n = put(out, n, n_max, sbx_span(t->sent.p + done, begin - done));
		if (percent)
			n += sbx_http_percent_encode(s->value, out ? out + n : NULL);
		else
			n = put(out, n, n_max, s->value);
		done = sent_at(t, pos);
	}
	return put(out, n, n_max, sbx_span(t->sent.p + done, t->sent.n - done));
}

static bool replace(struct rewrite *w, const struct text *t, bool percent, struct sbx_span *ret)
{
	size_t n = write_values(w, t, percent, NULL, 0);
	uint8_t *p = take(w, n);

	if (!p)
		return false;
	write_values(w, t, percent, p, n);
	*ret = sbx_span(p, n);
	return true;
}

/* --- the target --- */

static bool decode(struct rewrite *w, struct sbx_span s, bool plus, struct text *ret)
{
	uint8_t *p = take(w, s.n + 1);
	uint32_t *from = (uint32_t *)(void *)(p ? take(w, (s.n + 1) * sizeof(*from)) : NULL);

	if (!from)
		return false;
	*ret = (struct text){ .sent = s, .from = from };
	ret->seen = sbx_span(p, sbx_http_percent_decode(s, plus, p, from));
	return true;
}

/* "PATH?QUERY" with a new query. */
static bool join_target(struct rewrite *w, struct sbx_span path, struct sbx_span query)
{
	size_t n = path.n + 1 + query.n;
	uint8_t *p = take(w, n);

	if (!p)
		return false;
	put(p, put(p, put(p, 0, n, path), n, sbx_span("?", 1)), n, query);
	w->out->request.target = sbx_span(p, n);
	return true;
}

static bool rewrite_query(struct rewrite *w, struct sbx_span path, struct sbx_span query)
{
	struct text t;
	struct sbx_span out;
	size_t n;

	/* A value may have spaces, which forms write as '+'. */
	if (memchr(query.p, '+', query.n)) {
		if (!decode(w, query, true, &t) ||
		    !judge(w, t.seen, SBX_HTTP_IN_QUERY, "the query", &n))
			return false;
	}
	if (!decode(w, query, false, &t) || !judge(w, t.seen, SBX_HTTP_IN_QUERY, "the query", &n))
		return false;
	return !n || (replace(w, &t, true, &out) && join_target(w, path, out));
}

static bool rewrite_target(struct rewrite *w)
{
	struct sbx_span target = w->out->request.target;
	const uint8_t *mark = target.n ? memchr(target.p, '?', target.n) : NULL;
	struct sbx_span path = sbx_span(target.p, mark ? (size_t)(mark - target.p) : target.n);
	struct text t;

	if (!judge_nowhere(w, path, "the path") || !decode(w, path, false, &t) ||
	    !judge_nowhere(w, t.seen, "the path"))
		return false;
	if (!mark || target.n - path.n == 1)
		return true;
	return rewrite_query(w, path, sbx_span(mark + 1, target.n - path.n - 1));
}

/* --- headers --- */

/* Names come in any case, and HTTP/2 knows lower case only. */
static bool judge_name(struct rewrite *w, struct sbx_span name)
{
	for (size_t i = 0; i < w->rules->n_secrets; i++) {
		const struct sbx_http_secret *s = &w->rules->secrets[i];

		for (size_t at = 0; at + s->placeholder.n <= name.n; at++)
			if (sbx_http_same_name(sbx_span(name.p + at, s->placeholder.n),
					       s->placeholder))
				return sbx_secret_use_judge(&w->use, s, 0, "a header's name", w->v);
	}
	return true;
}

/* The credentials in "Basic CREDENTIALS" (RFC 7617). false: it is something else. */
static bool basic_credentials(const struct sbx_http_header *h, struct sbx_span *ret)
{
	const size_t n = 5;

	if (!sbx_http_equal(h->name, "authorization") &&
	    !sbx_http_equal(h->name, "proxy-authorization"))
		return false;
	if (h->value.n <= n || !sbx_http_equal(sbx_span(h->value.p, n), "basic") ||
	    (h->value.p[n] != ' ' && h->value.p[n] != '\t'))
		return false;
	*ret = sbx_http_trim(sbx_span(h->value.p + n, h->value.n - n));
	return true;
}

static bool rewrite_basic(struct rewrite *w, struct sbx_http_header *h, struct sbx_span credentials)
{
	static const char scheme[] = "Basic ";
	const size_t n_scheme = sizeof(scheme) - 1;
	struct sbx_span seen, out;
	struct text t;
	uint8_t *p = take(w, credentials.n + 1);
	size_t n;

	if (!p)
		return false;
	/* Credentials that are no base64 were searched as they are. */
	if (!sbx_http_base64_decode(credentials, p, &n))
		return true;
	seen = sbx_span(p, n);
	if (!judge(w, seen, SBX_HTTP_IN_HEADER, "a header", &n))
		return false;
	if (!n)
		return true;
	t = plain_text(seen);
	if (!replace(w, &t, false, &out))
		return false;
	n = n_scheme + sbx_base64_encode(out, NULL);
	p = take(w, n);
	if (!p)
		return false;
	memcpy(p, scheme, n_scheme);
	sbx_base64_encode(out, p + n_scheme);
	h->value = sbx_span(p, n);
	return true;
}

static bool rewrite_header(struct rewrite *w, struct sbx_http_header *h)
{
	struct text t = plain_text(h->value);
	struct sbx_span credentials;
	size_t n;

	if (!judge_name(w, h->name) || !judge(w, h->value, SBX_HTTP_IN_HEADER, "a header", &n))
		return false;
	if (n)
		return replace(w, &t, false, &h->value);
	return !basic_credentials(h, &credentials) || rewrite_basic(w, h, credentials);
}

static bool add_header(struct rewrite *w, struct sbx_span name, struct sbx_span value)
{
	struct sbx_http_request *r = &w->out->request;

	if (r->n_headers == SBX_HTTP_HEADERS_MAX)
		return sbx_http_refuse(w->v, SBX_REASON_OVERSIZED, 431,
				       "a request to %s has too many headers: with those that sbx "
				       "sets, there may be %d",
				       w->use.host, SBX_HTTP_HEADERS_MAX);
	r->headers[r->n_headers++] =
		(struct sbx_http_header){ .name = name, .value = sbx_http_trim(value) };
	return true;
}

/* --- what sbx sets --- */

static bool injects(const struct rewrite *w, const struct sbx_http_secret *s)
{
	return s->inject == SBX_HTTP_INJECT_HEADER && sbx_secret_use_applies(&w->use, s);
}

/* A header that is replaced does not leave, so no placeholder in it is misdirected. This includes
 * X_Api_Key where X-Api-Key is set: servers that take the two for one could use the client's. */
static void remove_replaced(struct rewrite *w, const struct sbx_http_entry *e)
{
	for (size_t i = 0; i < e->headers.n; i++)
		sbx_http_head_remove(&w->out->request, sbx_http_head_split(e->headers.v[i]).name);
	for (size_t i = 0; i < w->rules->n_secrets; i++)
		if (w->rules->secrets[i].override && injects(w, &w->rules->secrets[i]))
			sbx_http_head_remove(&w->out->request, w->rules->secrets[i].header);
}

static bool inject(struct rewrite *w, const struct sbx_http_secret *s)
{
	static const char mark[] = SBX_HTTP_TEMPLATE_MARK;
	const size_t n_mark = sizeof(mark) - 1;
	struct sbx_span t = s->template_text;
	const uint8_t *at = memmem(t.p, t.n, mark, n_mark);
	size_t n_before = at ? (size_t)(at - t.p) : t.n, n_after, n;
	uint8_t *p;

	if (!at)
		return true;
	n_after = t.n - n_before - n_mark;
	n = n_before + s->value.n + n_after;
	if (s->override)
		sbx_http_head_remove(&w->out->request, s->header);
	else if (sbx_http_head_has_alike(&w->out->request, s->header))
		return true;
	p = take(w, n);
	if (!p)
		return false;
	put(p, put(p, put(p, 0, n, sbx_span(t.p, n_before)), n, s->value), n,
	    sbx_span(at + n_mark, n_after));
	return add_header(w, s->header, sbx_span(p, n));
}

static bool set_headers(struct rewrite *w, const struct sbx_http_entry *e)
{
	for (size_t i = 0; i < e->headers.n; i++) {
		struct sbx_http_header h = sbx_http_head_split(e->headers.v[i]);

		if (!add_header(w, h.name, h.value))
			return false;
	}
	for (size_t i = 0; i < w->rules->n_secrets; i++)
		if (injects(w, &w->rules->secrets[i]) && !inject(w, &w->rules->secrets[i]))
			return false;
	return true;
}

/* --- signing --- */

static bool is_signed(const struct sbx_http_request *r, struct sbx_aws_authorization *ret_signing)
{
	const struct sbx_http_header *h = sbx_http_head_find(r, sbx_span_str("authorization"));

	return h && sbx_aws_parse(h->value, ret_signing);
}

/* The secret whose placeholder signed the request, if it signs here; NULL: none. */
static const struct sbx_http_secret *find_signer(const struct sbx_http_rules *rules,
						 const struct sbx_secret_use *use,
						 const struct sbx_aws_authorization *signing)
{
	for (size_t i = 0; i < rules->n_secrets; i++) {
		const struct sbx_http_secret *s = &rules->secrets[i];

		if (s->inject == SBX_HTTP_INJECT_AWS_SIGV4 &&
		    sbx_http_same(s->placeholder, signing->id) &&
		    sbx_secret_use_applies(use, s))
			return s;
	}
	return NULL;
}

/* Takes out the client's signature with the placeholder: it does not leave. */
static void take_signature(struct rewrite *w)
{
	if (is_signed(&w->out->request, &w->signing))
		w->signer = find_signer(w->rules, &w->use, &w->signing);
	if (w->signer)
		sbx_http_head_remove(&w->out->request, sbx_span_str("authorization"));
}

bool sbx_http_signs_body(const struct sbx_http_rules *rules, const char *host,
			 const struct sbx_http_request *r)
{
	struct sbx_secret_use use;
	struct sbx_aws_authorization signing;

	if (!r->has_body || sbx_http_head_find(r, sbx_span_str("x-amz-content-sha256")) ||
	    !is_signed(r, &signing))
		return false;
	sbx_secret_use_init(&use, host, r);
	return find_signer(rules, &use, &signing) != NULL;
}

/* Comes last: the signature is over the request as it is sent. */
static bool sign(struct rewrite *w)
{
	const char *why = NULL;
	struct sbx_span value;
	int r;

	if (!w->signer)
		return true;
	r = sbx_aws_sign(&w->signing, w->use.host, &w->out->request, w->signer->value,
			 &w->out->memory, &value, &why);
	if (r == -ENOMEM)
		return sbx_http_refuse(w->v, SBX_REASON_RESOURCE, 503, "out of memory");
	if (r < 0)
		return sbx_http_refuse(
			w->v, SBX_REASON_SECRET_MISDIRECTED, 403,
			"a request to %s cannot be signed with secret '%.*s': %s; let "
			"the client send the body's hash in the head, or change the "
			"secret",
			w->use.host, SBX_HTTP_SPAN_ARGS(w->signer->name), why);
	return add_header(w, sbx_span_str("Authorization"), value);
}

/* Is @part, from a ';' on, the parameter that names a character encoding? */
static bool is_charset(struct sbx_span part)
{
	static const char name[] = "charset";
	const size_t n = sizeof(name) - 1;

	if (!part.n || part.p[0] != ';')
		return false;
	part = sbx_http_trim(sbx_span(part.p + 1, part.n - 1));
	return part.n > n && sbx_http_equal(sbx_span(part.p, n), name);
}

/* Takes the parameters that name a character encoding out of a list of media types. */
static bool drop_charsets(struct rewrite *w, struct sbx_span *value)
{
	struct sbx_span in = *value;
	size_t n = 0;
	uint8_t *p;

	if (!in.n || !memchr(in.p, ';', in.n))
		return true;
	p = take(w, in.n);
	if (!p)
		return false;
	for (size_t i = 0, end; i < in.n; i = end) {
		for (end = i + 1; end < in.n && in.p[end] != ';' && in.p[end] != ','; end++)
			;
		if (!is_charset(sbx_span(in.p + i, end - i)))
			n = put(p, n, in.n, sbx_span(in.p + i, end - i));
	}
	if (n < in.n)
		*value = sbx_span(p, n);
	return true;
}

/* In a compressed response or gRPC message, in UTF-16, or in a response that has only what changed
 * (RFC 3229), no value would be found. A server that is not asked may choose a coding (RFC 9110
 * section 12.5.3); the encoding of text it chooses as the client wishes (ASP.NET). */
static bool ask_uncoded(struct rewrite *w)
{
	const struct sbx_span name = sbx_span_str("Accept-Encoding");
	struct sbx_http_request *r = &w->out->request;
	bool any = false;

	for (size_t i = 0; i < w->rules->n_secrets; i++)
		any |= sbx_http_secret_is_for(&w->rules->secrets[i], w->use.host);
	if (!any)
		return true;
	sbx_http_head_remove(r, sbx_span_str("a-im"));
	sbx_http_head_remove(r, sbx_span_str("accept-charset"));
	sbx_http_head_remove(r, sbx_span_str("grpc-accept-encoding"));
	sbx_http_head_remove(r, sbx_span_str("connect-accept-encoding"));
	for (size_t i = 0; i < r->n_headers; i++) {
		if (sbx_http_names_alike(r->headers[i].name, name))
			r->headers[i].value = sbx_span_str("identity");
		if (sbx_http_equal(r->headers[i].name, "accept") &&
		    !drop_charsets(w, &r->headers[i].value))
			return false;
	}
	return sbx_http_head_find(r, name) || add_header(w, name, sbx_span_str("identity"));
}

/* --- the body --- */

static bool judge_body(struct rewrite *w)
{
	struct sbx_http_request *r = &w->out->request;
	struct sbx_http_verdict ignored;
	size_t last = 0;

	w->out->body_form = sbx_http_head_form(r);
	for (size_t i = 0; i < w->rules->n_secrets; i++) {
		if (!sbx_secret_use_judge(&w->use, &w->rules->secrets[i], SBX_HTTP_IN_BODY,
					  "the body", &ignored))
			continue;
		w->out->in_body |= UINT64_C(1) << i;
		last = i;
	}
	if (!w->out->in_body || !sbx_http_head_hides_body(r))
		return true;
	return sbx_http_refuse(
		w->v, SBX_REASON_SECRET_MISDIRECTED, 403,
		"a request to %s has a compressed body, in which the placeholder of "
		"secret '%.*s' cannot be seen; send it uncompressed, or take body out "
		"of the secret's 'in'",
		w->use.host, SBX_HTTP_SPAN_ARGS(w->rules->secrets[last].name));
}

/* --- the whole --- */

static bool rewrite(struct rewrite *w, const struct sbx_http_entry *e)
{
	struct sbx_http_request *r = &w->out->request;

	add_strings(w);
	remove_replaced(w, e);
	take_signature(w);
	if (!judge_nowhere(w, r->method, "the method") || !rewrite_target(w))
		return false;
	for (size_t i = 0; i < r->n_headers; i++)
		if (!rewrite_header(w, &r->headers[i]))
			return false;
	if (!set_headers(w, e))
		return false;
	return ask_uncoded(w) && judge_body(w) && sign(w);
}

bool sbx_http_rewrite(const struct sbx_http_rules *rules, const struct sbx_http_entry *e,
		      const char *host, const struct sbx_http_request *r,
		      struct sbx_http_rewritten *ret, struct sbx_http_verdict *ret_verdict)
{
	struct rewrite *w = calloc(1, sizeof(*w));
	bool done;

	*ret = (struct sbx_http_rewritten){ 0 };
	if (!w)
		return sbx_http_refuse(ret_verdict, SBX_REASON_RESOURCE, 503, "out of memory");
	ret->request = *r;
	w->rules = rules;
	w->out = ret;
	w->v = ret_verdict;
	sbx_secret_use_init(&w->use, host, r);
	done = rewrite(w, e);
	free(w);
	if (done)
		return sbx_http_allow(ret_verdict);
	sbx_http_rewritten_fini(ret);
	return false;
}

void sbx_http_rewritten_fini(struct sbx_http_rewritten *w)
{
	sbx_http_memory_free(&w->memory);
	*w = (struct sbx_http_rewritten){ 0 };
}

/* --- the text of a request --- */

static bool has(struct sbx_span text, struct sbx_span sought)
{
	return sought.n && text.n >= sought.n && memmem(text.p, text.n, sought.p, sought.n);
}

/* Has @sent a placeholder or a value in it, as sent or as the server will decode it? */
static bool has_secret(const struct sbx_http_rules *rules, struct sbx_span sent)
{
	uint8_t decoded[SBX_HTTP_PATH_MAX];
	struct sbx_span seen = sent;

	if (sent.n > sizeof(decoded))
		return rules->n_secrets > 0;
	if (rules->n_secrets && sent.n)
		seen = sbx_span(decoded, sbx_http_percent_decode(sent, false, decoded, NULL));
	for (size_t i = 0; i < rules->n_secrets; i++) {
		const struct sbx_http_secret *s = &rules->secrets[i];
		struct sbx_span value = sbx_secret_use_sought(s);

		if (has(sent, s->placeholder) || has(seen, s->placeholder) || has(sent, value) ||
		    has(seen, value))
			return true;
	}
	return false;
}

void sbx_http_request_text(const struct sbx_http_rules *rules, struct sbx_span method,
			   struct sbx_span target, char *out, size_t n_out)
{
	struct sbx_span path;

	sbx_span_cut(&target, '?', &path);
	if (has_secret(rules, method))
		method = sbx_span_str("(a method with a secret in it)");
	if (has_secret(rules, path))
		path = sbx_span_str("(a path with a secret in it)");
	sbx_text_cut(out, n_out, "%.*s %.*s", SBX_HTTP_SPAN_ARGS(method), SBX_HTTP_SPAN_ARGS(path));
}
