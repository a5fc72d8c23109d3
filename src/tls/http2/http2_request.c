/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Requests of HTTP/2: judged when their head is complete, submitted to the server, or refused. */
#include "tls/http2/http2.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hostname.h"
#include "tls/conn/refusal.h"
#include "wire/http_field.h"

#define DISCARD_MAX (1u << 20) /* bytes of a refused request's body */

static bool is(struct sbx_span s, const char *text)
{
	return s.n == strlen(text) && memcmp(s.p, text, s.n) == 0;
}

/* --- refusals --- */

void sbx_http2_refuse(struct sbx_http2_stream *s, const struct sbx_http_verdict *v)
{
	char body[SBX_REFUSAL_MAX], status[8], length[24];
	size_t n_body = sbx_refusal_body(v, body);
	nghttp2_data_provider provider = sbx_http2_provider(s, true);

	sbx_conn_report(s->h->c, v, s->asked);
	if (s->up_open)
		nghttp2_submit_rst_stream(s->h->up, NGHTTP2_FLAG_NONE, s->up_id, NGHTTP2_CANCEL);
	if (s->replied) { /* the server's answer has begun */
		s->refused = true;
		nghttp2_submit_rst_stream(s->h->down, NGHTTP2_FLAG_NONE, s->down_id,
					  NGHTTP2_CANCEL);
		return;
	}
	snprintf(status, sizeof(status), "%d", v->status);
	snprintf(length, sizeof(length), "%zu", n_body);
	const nghttp2_nv fields[] = {
		sbx_http2_nv(sbx_span_str(":status"), sbx_span_str(status), 0),
		sbx_http2_nv(sbx_span_str("content-type"),
			     sbx_span_str("text/plain; charset=utf-8"), 0),
		sbx_http2_nv(sbx_span_str("x-sbx-denied"),
			     sbx_span_str(sbx_reason_str(v->reason)), 0),
		sbx_http2_nv(sbx_span_str("content-length"), sbx_span_str(length), 0),
	};
	s->refused = s->replied = s->down.end = true;
	if (sbx_http2_bytes_put(&s->down, sbx_span(body, s->is_head ? 0 : n_body)) < 0 ||
	    nghttp2_submit_response(s->h->down, s->down_id, fields, SBX_N_ELEMENTS(fields),
				    s->is_head ? NULL : &provider) != 0)
		nghttp2_submit_rst_stream(s->h->down, NGHTTP2_FLAG_NONE, s->down_id,
					  NGHTTP2_INTERNAL_ERROR);
}

void sbx_http2_fail(struct sbx_http2_stream *s, enum sbx_reason reason, int status,
		    const char *cause)
{
	struct sbx_http_verdict v = sbx_refusal_verdict(s->h->c, reason, status, cause);

	sbx_http2_refuse(s, &v);
}

/* --- the head --- */

struct pseudo {
	struct sbx_span method, scheme, authority, path;
};

/* Reads a count of bytes; nghttp2 has checked that it is a number. */
static uint64_t read_length(struct sbx_span value)
{
	uint64_t n = 0;

	for (size_t i = 0; i < value.n && n < UINT64_MAX / 16; i++)
		n = n * 10 + (uint64_t)(value.p[i] - '0');
	return n;
}

static void read_head(const struct sbx_http2_stream *s, bool end, struct pseudo *p,
		      struct sbx_http_request *r)
{
	*p = (struct pseudo){ 0 };
	*r = (struct sbx_http_request){ .tls = true };
	for (size_t i = 0; i < s->head.n_fields; i++) {
		struct sbx_span name = sbx_http2_name(&s->head, i);
		struct sbx_span value = sbx_http2_value(&s->head, i);

		if (is(name, ":method"))
			p->method = value;
		else if (is(name, ":scheme"))
			p->scheme = value;
		else if (is(name, ":authority") || (is(name, "host") && !p->authority.n))
			p->authority = value;
		else if (is(name, ":path"))
			p->path = value;
		else if (is(name, "content-length")) {
			r->has_length = true;
			r->length = read_length(value);
		} else if (!is(name, "host"))
			r->headers[r->n_headers++] = (struct sbx_http_header){ name, value };
	}
	r->method = p->method;
	r->target = p->path;
	r->authority = sbx_span_str(s->h->c->authority);
	r->has_body = !end && !(r->has_length && !r->length);
}

/* Is the authority the name and port that the connection was opened for? */
static bool is_ours(const struct sbx_conn *c, struct sbx_span authority)
{
	const uint8_t *colon = memrchr(authority.p, ':', authority.n);
	size_t n = colon ? (size_t)(colon - authority.p) : authority.n;
	char host[SBX_HOSTNAME_MAX + 1], port[8];

	if (sbx_hostname_normalise((const char *)authority.p, n, host) != 0 ||
	    strcmp(host, c->name) != 0)
		return false;
	snprintf(port, sizeof(port), "%u", c->port);
	return !colon || is(sbx_span(colon + 1, authority.n - n - 1), port);
}

/* A host of a second field must be the same one. */
static bool hosts_agree(const struct sbx_http2_stream *s, struct sbx_span authority)
{
	for (size_t i = 0; i < s->head.n_fields; i++) {
		struct sbx_span value = sbx_http2_value(&s->head, i);

		if (is(sbx_http2_name(&s->head, i), "host") &&
		    (value.n != authority.n || memcmp(value.p, authority.p, value.n) != 0))
			return false;
	}
	return true;
}

/* Bytes that the client did not send so may have a secret's value in them: they do not enter the
 * server's table of fields (RFC 7541 section 7.1.3). */
static uint8_t index_flag(const struct sbx_http2_head *head, struct sbx_span name,
			  struct sbx_span value)
{
	bool is_new = value.n && (value.p < head->p || value.p >= head->p + head->n);

	return is_new || is(name, "authorization") || is(name, "cookie") ?
		       NGHTTP2_NV_FLAG_NO_INDEX :
		       NGHTTP2_NV_FLAG_NONE;
}

/* nghttp2 copies the fields, with their names in lower case. A request that was held is a copy of
 * s->head: all its fields count as new. */
static int submit(struct sbx_http2_stream *s, const struct sbx_http_request *r, bool end)
{
	nghttp2_nv fields[SBX_HTTP_HEADERS_MAX + 8];
	char length[24];
	nghttp2_data_provider provider = sbx_http2_provider(s, false);
	size_t n = 0;

	fields[n++] = sbx_http2_nv(sbx_span_str(":method"), r->method, 0);
	fields[n++] = sbx_http2_nv(sbx_span_str(":scheme"), sbx_span_str("https"), 0);
	fields[n++] = sbx_http2_nv(sbx_span_str(":authority"), r->authority, 0);
	fields[n++] = sbx_http2_nv(sbx_span_str(":path"), r->target,
				   index_flag(&s->head, sbx_span_str(":path"), r->target));
	for (size_t i = 0; i < r->n_headers; i++) {
		const struct sbx_http_header *h = &r->headers[i];

		fields[n++] = sbx_http2_nv(h->name, h->value,
					   index_flag(&s->head, h->name, h->value));
	}
	if (r->has_length && (!s->request_swap || sbx_swap_keeps_length(s->request_swap))) {
		snprintf(length, sizeof(length), "%llu", (unsigned long long)r->length);
		fields[n++] = sbx_http2_nv(sbx_span_str("content-length"), sbx_span_str(length), 0);
	}
	s->up_id = nghttp2_submit_request(s->h->up, NULL, fields, n, end ? NULL : &provider, s);
	s->up_open = s->up_id >= 0;
	s->h->was_asked |= s->up_open;
	return s->up_id < 0 ? -ENOMEM : 0;
}

/* Starts the request at the server, unless that is about to close. */
static int send_on(struct sbx_http2_stream *s, struct sbx_http_rewritten *w, bool end)
{
	struct sbx_http2 *h = s->h;
	int e = 0;

	if (h->lost || !nghttp2_session_check_request_allowed(h->up)) {
		sbx_http2_say_goodbye(h);
		nghttp2_submit_rst_stream(h->down, NGHTTP2_FLAG_NONE, s->down_id,
					  NGHTTP2_REFUSED_STREAM); /* the client asks again */
		return 0;
	}
	/* with the values of now, which are those that the request has */
	e = sbx_swap_new_response(&h->c->ctx->rules, h->c->name, &s->reply_swap);
	if (e == 0 && !end && !s->whole)
		e = sbx_swap_new_request(&h->c->ctx->rules, w, h->c->name, &s->request_swap);
	return e < 0 ? e : submit(s, &w->request, end);
}

int sbx_http2_on_request(struct sbx_http2_stream *s, bool end)
{
	struct sbx_conn *c = s->h->c;
	struct sbx_http_request r;
	struct sbx_http_rewritten w = { 0 };
	struct sbx_http_verdict v;
	struct pseudo p;
	int e;

	read_head(s, end, &p, &r);
	s->is_head = is(p.method, "HEAD");
	sbx_http_request_text(&c->ctx->rules, p.method, p.path, s->asked, sizeof(s->asked));
	if (s->head.too_long) {
		sbx_http2_fail(s, SBX_REASON_OVERSIZED, 431, "the request's head is too long");
		return 0;
	}
	if (!is_ours(c, p.authority) || !hosts_agree(s, p.authority)) {
		sbx_http2_fail(s, SBX_REASON_HOST_MISMATCH, 421,
			       "the request is for another host than the connection");
		return 0;
	}
	if (!is(p.scheme, "https")) {
		sbx_http2_fail(s, SBX_REASON_HTTP_MALFORMED, 400, "the scheme is not https");
		return 0;
	}
	if (!sbx_http_judge_access(c->entry, c->name, &r, &v)) {
		sbx_http2_refuse(s, &v);
		return 0;
	}
	if (c->broken.reason == SBX_REASON_UNKNOWN &&
	    sbx_http_signs_body(&c->ctx->rules, c->name, &r))
		return sbx_whole_new(&r, s->head.p, s->head.n, &s->whole);
	if (!sbx_http_rewrite(&c->ctx->rules, c->entry, c->name, &r, &w, &v)) {
		sbx_http2_refuse(s, &v);
		return 0;
	}
	if (c->broken.reason != SBX_REASON_UNKNOWN) {
		sbx_http2_refuse(s, &c->broken);
		e = 0;
	} else {
		e = send_on(s, &w, end);
	}
	sbx_http_rewritten_fini(&w);
	sbx_http2_head_reset(&s->head);
	return e;
}

/* --- the body --- */

/* The rest of a refused request's body. A client that is still sending when RST_STREAM comes may
 * throw away the response that it has (curl 7.88 does), so a short rest is read; a longer one is
 * ended (RFC 9113 section 8.1). */
static void discard(struct sbx_http2_stream *s, size_t n)
{
	nghttp2_session_consume(s->h->down, s->down_id, n);
	s->up.n_owed -= n;
	s->n_discarded += n;
	if (s->n_discarded > DISCARD_MAX && s->n_discarded - n <= DISCARD_MAX)
		nghttp2_submit_rst_stream(s->h->down, NGHTTP2_FLAG_NONE, s->down_id,
					  NGHTTP2_NO_ERROR);
}

/* Keeps the body of a request that is signed with it. The client may send on: the limit is ours. */
static int hold(struct sbx_http2_stream *s, struct sbx_span data)
{
	struct sbx_tls_context *ctx = s->h->c->ctx;
	struct sbx_http_verdict v;

	nghttp2_session_consume(s->h->down, s->down_id, data.n);
	s->up.n_owed -= data.n;
	if (s->n_body <= SBX_WHOLE_MAX && data.n <= SBX_WHOLE_ALL_MAX - ctx->n_whole) {
		ctx->n_whole += data.n;
		s->n_whole += data.n;
		return sbx_http2_bytes_put(&s->up, data);
	}
	v = s->n_body > SBX_WHOLE_MAX ? sbx_whole_too_long() : sbx_whole_too_many();
	sbx_http2_refuse(s, &v);
	return 0;
}

/* The body is complete, and the request can be signed. */
static int send_whole(struct sbx_http2_stream *s)
{
	struct sbx_span body = sbx_span(s->up.p + s->up.at, s->up.n - s->up.at);
	struct sbx_http_rewritten w;
	struct sbx_http_verdict v;
	uint8_t *swapped;
	size_t n;
	int e = 0;

	if (!sbx_whole_rewrite(s->h->c, s->whole, body, &w, &swapped, &n, &v)) {
		sbx_http2_refuse(s, &v);
		return 0;
	}
	if (swapped) {
		s->up.at = s->up.n = 0;
		e = sbx_http2_bytes_put(&s->up, sbx_span(swapped, n));
		explicit_bzero(swapped, n);
		free(swapped);
	}
	s->up.end = true;
	if (e == 0)
		e = send_on(s, &w, false);
	sbx_http_rewritten_fini(&w);
	sbx_http2_head_reset(&s->head);
	s->whole = sbx_whole_free(s->whole);
	return e;
}

int sbx_http2_on_request_data(struct sbx_http2_stream *s, struct sbx_span data)
{
	uint64_t n_max = s->h->c->entry->max_request_bytes;
	struct sbx_http_verdict v;
	int e;

	s->n_body += data.n;
	s->up.n_owed += data.n;
	if (s->refused || (!s->up_open && !s->whole)) {
		discard(s, data.n);
		return 0;
	}
	if (n_max && s->n_body > n_max) {
		sbx_http2_fail(s, SBX_REASON_REQUEST_SIZE, 413,
			       "the request's body is longer than the entry's max_request_bytes");
		return 0;
	}
	if (s->whole)
		return hold(s, data);
	e = s->request_swap ? sbx_swap_feed(s->request_swap, data, false, sbx_http2_bytes_put,
					    &s->up, &v) :
			      sbx_http2_bytes_put(&s->up, data);
	if (e == SBX_SWAP_E_REFUSED) {
		sbx_http2_refuse(s, &v);
		return 0;
	}
	sbx_http2_wake(s, false);
	return e;
}

/* --- the trailer --- */

/* Looks for placeholders and values in the fields. 0, SBX_SWAP_E_REFUSED, -errno. */
static int search(const struct sbx_http2_head *head, struct sbx_swap *swap,
		  struct sbx_http_verdict *v)
{
	int e = 0;

	for (size_t i = 0; i < head->n_fields && e == 0; i++) {
		e = sbx_swap_search(swap, sbx_http2_name(head, i), v);
		if (e == 0)
			e = sbx_swap_search(swap, sbx_http2_value(head, i), v);
	}
	return e;
}

int sbx_http2_on_request_trailer(struct sbx_http2_stream *s)
{
	struct sbx_conn *c = s->h->c;
	struct sbx_swap *swap = NULL;
	struct sbx_http_verdict v;
	int e;

	if (s->refused || (!s->up_open && !s->whole))
		return 0;
	if (s->up.trailer.too_long) {
		sbx_http2_fail(s, SBX_REASON_OVERSIZED, 431, "the request's trailer is too long");
		return 0;
	}
	s->up.has_trailer = s->up.trailer.n_fields > 0;
	if (!s->up.has_trailer)
		return 0;
	e = sbx_swap_new_trailer(&c->ctx->rules, c->name, true, &swap);
	if (e < 0 || !swap)
		return e;
	e = search(&s->up.trailer, swap, &v);
	sbx_swap_free(swap);
	if (e == SBX_SWAP_E_REFUSED) {
		sbx_http2_refuse(s, &v);
		return 0;
	}
	return e;
}

int sbx_http2_on_request_end(struct sbx_http2_stream *s)
{
	struct sbx_http_verdict v;
	int e = 0;

	if (s->whole && !s->refused && send_whole(s) < 0)
		sbx_http2_fail(s, SBX_REASON_RESOURCE, 503, "out of memory");
	if (s->refused || !s->up_open)
		return 0;
	if (s->request_swap)
		e = sbx_swap_feed(s->request_swap, sbx_span("", 0), true, sbx_http2_bytes_put,
				  &s->up, &v);
	if (e == SBX_SWAP_E_REFUSED) {
		sbx_http2_refuse(s, &v);
		return 0;
	}
	if (e < 0)
		return e;
	s->up.end = true;
	sbx_http2_wake(s, false);
	return 0;
}
