/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Requests, as they come from the client. Each head is judged and written anew; no byte of it is
 * copied without having been understood. http1_forward.c sends it on to the server.
 */
#include "tls/http1/http1.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "http/verdict.h"
#include "wire/http_field.h"

/* --- from the judge's event to the request --- */

static bool has_token(struct sbx_span list, const char *token)
{
	struct sbx_span item;

	while (sbx_http_list_next(&list, &item))
		if (sbx_http_equal(item, token))
			return true;
	return false;
}

/* The fields that say how the connection goes on. */
static void note_connection(struct sbx_http1 *h, struct sbx_http_request *r,
			    const struct sbx_http_header *f)
{
	if (sbx_http_equal(f->name, "connection")) {
		h->client_closes |= has_token(f->value, "close");
		if (h->http10 && has_token(f->value, "keep-alive"))
			h->client_closes = false;
	} else if (sbx_http_equal(f->name, "upgrade")) {
		r->upgrade = true;
		r->upgrade_to = r->upgrade_to.n ? sbx_span("", 0) : f->value;
	}
}

/* The origin form of the target; an absolute one names the host, which was compared. */
static struct sbx_span origin_form(struct sbx_span target)
{
	const uint8_t *end = target.p + target.n, *p;

	if (!target.n || target.p[0] == '/' || target.p[0] == '*')
		return target;
	p = memmem(target.p, target.n, "://", 3);
	if (!p)
		return target;
	for (p += 3; p < end && *p != '/' && *p != '?'; p++)
		;
	return p < end && *p == '/' ? sbx_span(p, (size_t)(end - p)) : sbx_span("/", 1);
}

/* Is the request that begins in @in one of HEAD, whose response has no body? Methods have a case: a
 * server may answer `head` with a body. A request that is not well-formed is asked, too. */
static bool is_head(const struct sbx_http1 *h)
{
	return h->n_in >= 5 && memcmp(h->in, "HEAD ", 5) == 0;
}

static enum sbx_http1_step too_many(struct sbx_conn *c)
{
	char text[128];

	sbx_text_cut(text, sizeof(text), "the request has more than %d header fields",
		     SBX_HTTP_HEADERS_MAX);
	return sbx_http1_fail(c, SBX_REASON_OVERSIZED, 431, text);
}

static enum sbx_http1_step read_head(struct sbx_conn *c, const struct sbx_http_event *ev,
				     struct sbx_http_request *r)
{
	struct sbx_http_header lines[SBX_HTTP_HEADERS_MAX + 16];
	struct sbx_http1 *h = sbx_http1_of(c);
	size_t n = sbx_http_head_fields(sbx_span(h->in, ev->n), lines, SBX_N_ELEMENTS(lines));

	sbx_http_request_text(&c->ctx->rules, ev->method, origin_form(ev->target), h->asked,
			      sizeof(h->asked));
	h->to_head = is_head(h);
	if (n > SBX_N_ELEMENTS(lines))
		return too_many(c);
	*r = (struct sbx_http_request){
		.method = ev->method,
		.target = origin_form(ev->target),
		.tls = c->tls || c->echo,
		.has_body = ev->framing == SBX_HTTP_FRAMING_CHUNKED ||
			    (ev->framing == SBX_HTTP_FRAMING_LENGTH && ev->content_length),
		.has_length = ev->framing == SBX_HTTP_FRAMING_LENGTH,
		.length = ev->content_length,
	};
	h->http10 = h->client_closes = ev->version_minor == 0;
	h->request_chunked = ev->framing == SBX_HTTP_FRAMING_CHUNKED;
	r->authority = sbx_span_str(c->authority);
	for (size_t i = 0; i < n; i++) {
		note_connection(h, r, &lines[i]);
		if (sbx_http1_is_framing(lines[i].name))
			continue;
		if (r->n_headers == SBX_HTTP_HEADERS_MAX)
			return too_many(c);
		r->headers[r->n_headers++] = lines[i];
	}
	/* The judge saw an upgrade in another way, as HTTP2-Settings. */
	if (ev->upgrade && !r->upgrade) {
		r->upgrade = true;
		r->upgrade_to = sbx_span("", 0);
	}
	h->upgrades = r->upgrade;
	return SBX_HTTP1_ON;
}

static enum sbx_http1_step check_host(struct sbx_conn *c, const struct sbx_http_event *ev)
{
	char text[512];

	if (!ev->host[0])
		return sbx_http1_fail(c, SBX_REASON_HOST_ABSENT, 400, "the request has no Host");
	if (strcmp(ev->host, c->name) == 0 && (!ev->host_port || ev->host_port == c->port))
		return SBX_HTTP1_ON;
	sbx_text_cut(text, sizeof(text),
		     "the connection was opened for %s, and the request is for %s", c->name,
		     ev->host);
	return sbx_http1_fail(c, SBX_REASON_HOST_MISMATCH, 421, text);
}

static void consume(struct sbx_http1 *h, size_t n)
{
	h->n_in -= n;
	memmove(h->in, h->in + n, h->n_in);
}

static enum sbx_http1_step refuse_http10(struct sbx_conn *c)
{
	struct sbx_http_verdict v;

	sbx_http_refuse(&v, SBX_REASON_OVERSIZED, 413,
			"a request to %s was not carried: its length changes with its secrets in "
			"it, and in HTTP/1.0 such a body can have at most %u bytes; send it in "
			"HTTP/1.1 (entry '%.*s')",
			c->name, SBX_BODY_HELD_MAX / 2, SBX_HTTP_SPAN_ARGS(c->entry->text));
	return sbx_http1_refuse(c, &v);
}

/* The server gets the head, or will: on to the body. */
static enum sbx_http1_step head_done(struct sbx_conn *c, size_t n)
{
	struct sbx_http1 *h = sbx_http1_of(c);

	h->request = SBX_HTTP1_BODY;
	consume(h, n);
	return sbx_http_judge_idle(&h->judge) ? sbx_http1_request_end(c) : SBX_HTTP1_ON;
}

static enum sbx_http1_step on_head(struct sbx_conn *c, const struct sbx_http_event *ev)
{
	struct sbx_http_request r = { 0 };
	struct sbx_http_rewritten w = { 0 };
	struct sbx_http_verdict v;
	enum sbx_http1_step step = read_head(c, ev, &r);
	int e;

	if (step == SBX_HTTP1_ON)
		step = check_host(c, ev);
	if (step != SBX_HTTP1_ON)
		return step;
	if (!sbx_http_judge_access(c->entry, c->name, &r, &v))
		return sbx_http1_refuse(c, &v);
	if (c->broken.reason == SBX_REASON_UNKNOWN &&
	    sbx_http_signs_body(&c->ctx->rules, c->name, &r)) {
		step = sbx_http1_request_hold(c, ev, &r);
		return step == SBX_HTTP1_ON ? head_done(c, ev->n) : step;
	}
	if (!sbx_http_rewrite(&c->ctx->rules, c->entry, c->name, &r, &w, &v))
		return sbx_http1_refuse(c, &v);
	if (c->broken.reason != SBX_REASON_UNKNOWN) {
		sbx_http_rewritten_fini(&w);
		return sbx_http1_refuse(c, &c->broken);
	}
	if (sbx_http1_learn_values(c) < 0) {
		sbx_http_rewritten_fini(&w);
		return sbx_http1_abort(c);
	}
	if (c->echo) {
		step = sbx_http1_echo(c, &w.request);
		sbx_http_rewritten_fini(&w);
		return step;
	}
	e = sbx_http1_request_begin(c, &w);
	if (e < 0)
		return e == -EPROTONOSUPPORT ? refuse_http10(c) : sbx_http1_abort(c);
	return head_done(c, ev->n);
}

static enum sbx_http1_step on_body(struct sbx_conn *c, size_t n)
{
	struct sbx_http1 *h = sbx_http1_of(c);
	bool end = sbx_http_judge_idle(&h->judge);

	h->n_body += n;
	if (c->entry->max_request_bytes && h->n_body > c->entry->max_request_bytes)
		return sbx_http1_fail(c, SBX_REASON_REQUEST_SIZE, 413,
				      "the request's body is longer than the entry's "
				      "max_request_bytes");
	if (sbx_http1_request_body(c, sbx_span(h->in, n), end) == SBX_HTTP1_GONE)
		return SBX_HTTP1_GONE;
	consume(h, n);
	return end ? sbx_http1_request_end(c) : SBX_HTTP1_ON;
}

/* --- steps --- */

static enum sbx_http1_step refuse_syntax(struct sbx_conn *c)
{
	struct sbx_http1 *h = sbx_http1_of(c);
	enum sbx_reason reason = h->judge.reason;
	int status = reason == SBX_REASON_HOST_MISMATCH ? 421 :
		     reason == SBX_REASON_HTTP_UPGRADE	? 405 :
							  400;
	char text[128];

	if (h->request == SBX_HTTP1_HEAD)
		h->to_head = is_head(h);
	if (reason != SBX_REASON_OVERSIZED)
		return sbx_http1_fail(c, reason, status, sbx_reason_help(reason));
	if (h->request == SBX_HTTP1_BODY)
		return sbx_http1_fail(c, SBX_REASON_HTTP_MALFORMED, 400,
				      "the extension of a chunk, or the trailer, is too long");
	sbx_text_cut(text, sizeof(text), "the request's head is longer than %u bytes",
		     c->ctx->rules.head_bytes);
	return sbx_http1_fail(c, reason, 431, text);
}

/* The client's end: after a whole request, its answers are still carried. */
static enum sbx_http1_step client_ended(struct sbx_conn *c)
{
	struct sbx_http1 *h = sbx_http1_of(c);

	if (h->request == SBX_HTTP1_DONE)
		return SBX_HTTP1_WAIT;
	if (h->request == SBX_HTTP1_BODY || h->n_in)
		return sbx_http1_abort(c);
	sbx_conn_free(c);
	return SBX_HTTP1_GONE;
}

static enum sbx_http1_step read_more(struct sbx_conn *c)
{
	struct sbx_http1 *h = sbx_http1_of(c);
	enum sbx_io r;
	size_t n;

	if (h->n_in == h->n_max)
		return SBX_HTTP1_WAIT; /* the judge refuses a longer head itself */
	r = sbx_side_read(&c->client, h->in + h->n_in, h->n_max - h->n_in, &n);
	h->n_in += n;
	switch (r) {
	case SBX_IO_ON:
		return SBX_HTTP1_ON;
	case SBX_IO_WAIT:
		return SBX_HTTP1_WAIT;
	case SBX_IO_FAILED:
		return sbx_http1_abort(c);
	default:
		return client_ended(c);
	}
}

enum sbx_http1_step sbx_http1_request_step(struct sbx_conn *c)
{
	struct sbx_http1 *h = sbx_http1_of(c);
	struct sbx_http_event ev;

	if (h->request == SBX_HTTP1_DONE)
		return SBX_HTTP1_WAIT;
	if (sbx_side_waiting(&c->server) > SBX_HTTP1_WAITING_MAX)
		return SBX_HTTP1_WAIT;
	if (!h->n_in)
		return read_more(c);
	switch (sbx_http_judge_next(&h->judge, sbx_span(h->in, h->n_in), &ev)) {
	case 0:
		return ev.kind == SBX_HTTP_HEAD ? on_head(c, &ev) : on_body(c, ev.n);
	case SBX_HTTP_E_MORE:
		return read_more(c);
	default:
		return refuse_syntax(c);
	}
}
