/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A request that was judged and rewritten (http1_request.c) goes on to the server: its new head and
 * its body.
 *
 * A body goes on as it came, unless a placeholder may be in it. Then its data is searched, and
 * framed anew if its length may change: a body of a known length is held, so that the server gets a
 * length, too; a longer one is sent in chunks, or refused in HTTP/1.0, which has none. Nothing is
 * written to the server before the turn ends, so a short request with a refused body never leaves.
 */
#include "tls/http1/http1.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http/verdict.h"
#include "wire/http_field.h"

/* --- the head --- */

static int put_text(struct sbx_body *out, const char *text)
{
	return sbx_body_put(out, sbx_span_str(text));
}

static int put_field(struct sbx_body *out, struct sbx_span name, struct sbx_span value)
{
	int e = sbx_body_put(out, name);

	e = e < 0 ? e : put_text(out, ": ");
	e = e < 0 ? e : sbx_body_put(out, value);
	return e < 0 ? e : put_text(out, "\r\n");
}

/* The head without the line of the body's framing and the empty line. */
static int put_head(struct sbx_conn *c, const struct sbx_http_request *r, struct sbx_body *out)
{
	const struct sbx_http1 *h = sbx_http1_of(c);
	int e = sbx_body_put(out, r->method);

	e = e < 0 ? e : put_text(out, " ");
	e = e < 0 ? e : sbx_body_put(out, r->target);
	e = e < 0 ? e : put_text(out, h->http10 ? " HTTP/1.0\r\n" : " HTTP/1.1\r\n");
	e = e < 0 ? e : put_field(out, sbx_span_str("Host"), r->authority);
	for (size_t i = 0; i < r->n_headers && e == 0; i++)
		e = put_field(out, r->headers[i].name, r->headers[i].value);
	if (e == 0 && r->upgrade) {
		e = put_text(out, "Connection: Upgrade\r\n");
		e = e < 0 ? e : put_field(out, sbx_span_str("Upgrade"), r->upgrade_to);
	} else if (e == 0 && h->client_closes != h->http10) {
		e = put_text(out, h->client_closes ? "Connection: close\r\n" :
						     "Connection: keep-alive\r\n");
	}
	return e;
}

/* Queues the head to the server, with the line of the body's framing, or "". */
static int queue_head(struct sbx_conn *c, const struct sbx_http_request *r, const char *framing)
{
	struct sbx_body out = { .side = &c->server, .how = SBX_BODY_PLAIN };
	int e = put_head(c, r, &out);

	e = e < 0 ? e : put_text(&out, framing);
	return e < 0 ? e : put_text(&out, "\r\n");
}

static const char *length_line(uint64_t length, char buf[64])
{
	snprintf(buf, 64, "Content-Length: %llu\r\n", (unsigned long long)length);
	return buf;
}

static int out_of_memory(struct sbx_http_rewritten *w)
{
	sbx_http_rewritten_fini(w);
	return -ENOMEM;
}

/* A client that asked for 100 (Continue) waits for it before it sends the body that is held. */
static int ask_for_body(struct sbx_conn *c, struct sbx_http_request *r)
{
	size_t kept = 0;
	bool waits = false;

	for (size_t i = 0; i < r->n_headers; i++) {
		if (sbx_http_equal(r->headers[i].name, "expect"))
			waits = true;
		else
			r->headers[kept++] = r->headers[i];
	}
	r->n_headers = kept;
	return waits ? sbx_side_queue(&c->client, sbx_span_str("HTTP/1.1 100 Continue\r\n\r\n")) :
		       0;
}

int sbx_http1_request_begin(struct sbx_conn *c, struct sbx_http_rewritten *w)
{
	struct sbx_http1 *h = sbx_http1_of(c);
	struct sbx_http_request *r = &w->request;
	char line[64];
	int e;

	if (r->has_body && sbx_swap_new_request(&c->ctx->rules, w, c->name, &h->request_swap) < 0)
		return out_of_memory(w);
	if (h->request_swap)
		sbx_http_body_init(&h->request_chunks, SBX_HTTP_FRAMING_CHUNKED, 0);
	h->request_out.how = SBX_BODY_PLAIN;
	if (h->request_chunked) {
		h->request_out.how = h->request_swap ? SBX_BODY_CHUNKED : SBX_BODY_PLAIN;
		e = queue_head(c, r, "Transfer-Encoding: chunked\r\n");
	} else if (!r->has_length) {
		e = queue_head(c, r, "");
	} else if (!h->request_swap || sbx_swap_keeps_length(h->request_swap)) {
		e = queue_head(c, r, length_line(r->length, line));
	} else if (r->length <= SBX_BODY_HELD_MAX / 2) {
		h->request_out.how = SBX_BODY_HELD;
		e = ask_for_body(c, r);
		e = e < 0 ? e : put_head(c, r, &h->held_request);
	} else if (h->http10) {
		e = -EPROTONOSUPPORT;
	} else {
		h->request_out.how = SBX_BODY_CHUNKED;
		e = queue_head(c, r, "Transfer-Encoding: chunked\r\n");
	}
	sbx_http_rewritten_fini(w);
	return e;
}

enum sbx_http1_step sbx_http1_request_hold(struct sbx_conn *c, const struct sbx_http_event *ev,
					   struct sbx_http_request *r)
{
	const struct sbx_http_verdict too_long = sbx_whole_too_long();
	struct sbx_http1 *h = sbx_http1_of(c);

	if (r->has_length && r->length > SBX_WHOLE_MAX)
		return sbx_http1_refuse(c, &too_long);
	if (ask_for_body(c, r) < 0 || sbx_whole_new(r, h->in, ev->n, &h->whole) < 0)
		return sbx_http1_abort(c);
	if (h->request_chunked)
		sbx_http_body_init(&h->request_chunks, SBX_HTTP_FRAMING_CHUNKED, 0);
	h->request_out.how = SBX_BODY_HELD;
	return SBX_HTTP1_ON;
}

/* --- the body --- */

static int feed(struct sbx_http1 *h, struct sbx_span data, bool end, struct sbx_http_verdict *v)
{
	if (h->whole)
		return sbx_body_put(&h->request_out, data);
	return sbx_swap_feed(h->request_swap, data, end, sbx_body_put, &h->request_out, v);
}

/* Looks through the data of @bytes, which the judge found good. */
static int swap_body(struct sbx_http1 *h, struct sbx_span bytes, bool end,
		     struct sbx_http_verdict *v)
{
	int e = 0;

	if (!h->request_chunked)
		return feed(h, bytes, end, v);
	while (bytes.n && e == 0) {
		struct sbx_span data;
		size_t n;
		int r = sbx_body_next(&h->request_trailer, &h->request_chunks, bytes, &data, &n);

		if (r < 0)
			return r;
		if (r == SBX_HTTP_E_REJECT)
			return -EBADMSG;
		if (data.n)
			e = feed(h, data, false, v);
		if (n == 0)
			break;
		bytes = sbx_span(bytes.p + n, bytes.n - n);
	}
	return e == 0 && end ? feed(h, sbx_span("", 0), true, v) : e;
}

static enum sbx_http1_step too_long(struct sbx_conn *c)
{
	const struct sbx_http_verdict v = sbx_whole_too_long();

	if (sbx_http1_of(c)->whole)
		return sbx_http1_refuse(c, &v);
	return sbx_http1_fail(c, SBX_REASON_OVERSIZED, 413,
			      "its body is too long with its secrets in it");
}

static enum sbx_http1_step search_body(struct sbx_conn *c, struct sbx_span bytes, bool end)
{
	struct sbx_http_verdict v;

	switch (swap_body(sbx_http1_of(c), bytes, end, &v)) {
	case 0:
		return SBX_HTTP1_ON;
	case SBX_SWAP_E_REFUSED:
		return sbx_http1_refuse(c, &v);
	case -EFBIG:
		return too_long(c);
	default:
		return sbx_http1_abort(c);
	}
}

/* Sends the bytes as they came. A server that takes no more may have sent a response. */
static void pass_body(struct sbx_conn *c, struct sbx_span bytes)
{
	struct sbx_http1 *h = sbx_http1_of(c);

	if (h->server_deaf || sbx_side_write(&c->server, bytes) != SBX_IO_FAILED)
		return;
	h->server_deaf = true;
	sbx_side_unqueue(&c->server);
}

enum sbx_http1_step sbx_http1_request_body(struct sbx_conn *c, struct sbx_span bytes, bool end)
{
	const struct sbx_http1 *h = sbx_http1_of(c);

	if (h->request_swap || h->whole)
		return search_body(c, bytes, end);
	pass_body(c, bytes);
	return SBX_HTTP1_ON;
}

/* --- its end --- */

/* The body is complete, and the request can be signed. It gets the values of now, and a length, so
 * no trailer. */
static enum sbx_http1_step send_whole(struct sbx_conn *c)
{
	struct sbx_http1 *h = sbx_http1_of(c);
	struct sbx_span body = sbx_span(h->request_out.held, h->request_out.n_held);
	struct sbx_http_rewritten w;
	struct sbx_http_verdict v;
	uint8_t *swapped;
	char line[64];
	size_t n;
	int e;

	if (sbx_http1_learn_values(c) < 0)
		return sbx_http1_abort(c);
	if (!sbx_whole_rewrite(c, h->whole, body, &w, &swapped, &n, &v))
		return sbx_http1_refuse(c, &v);
	e = queue_head(c, &w.request, length_line(n, line));
	if (e == 0)
		e = sbx_side_queue(&c->server, sbx_span(swapped ? swapped : body.p, n));
	if (swapped)
		explicit_bzero(swapped, n);
	free(swapped);
	sbx_http_rewritten_fini(&w);
	h->whole = sbx_whole_free(h->whole);
	return e < 0 ? sbx_http1_abort(c) : SBX_HTTP1_ON;
}

/* May the trailer go on as it came? 0, -errno, or SBX_SWAP_E_REFUSED with @ret_verdict. */
static int judge_trailer(const struct sbx_conn *c, struct sbx_http_verdict *ret_verdict)
{
	const struct sbx_body *lines = &sbx_http1_of(c)->request_trailer;
	struct sbx_swap *swap = NULL;
	int e = sbx_swap_new_trailer(&c->ctx->rules, c->name, c->tls, &swap);

	if (e == 0 && swap)
		e = sbx_swap_search(swap, sbx_span(lines->held, lines->n_held), ret_verdict);
	sbx_swap_free(swap);
	return e;
}

/* The last chunk, with the trailer. As above. */
static int end_chunks(struct sbx_conn *c, struct sbx_http_verdict *ret_verdict)
{
	struct sbx_http1 *h = sbx_http1_of(c);
	const struct sbx_body *trailer = &h->request_trailer;
	int e;

	if (!trailer->n_held)
		return sbx_body_end(&h->request_out);
	e = judge_trailer(c, ret_verdict);
	return e ? e : sbx_side_queue(&c->server, sbx_span(trailer->held, trailer->n_held));
}

enum sbx_http1_step sbx_http1_request_end(struct sbx_conn *c)
{
	struct sbx_http1 *h = sbx_http1_of(c);
	const struct sbx_body *head = &h->held_request;
	struct sbx_http_verdict v;
	int e = 0;

	h->request = SBX_HTTP1_DONE;
	if (h->whole)
		return send_whole(c);
	if (h->request_out.how == SBX_BODY_HELD)
		e = sbx_body_send(&h->request_out, sbx_span(head->held, head->n_held));
	else if (h->request_swap)
		e = end_chunks(c, &v);
	if (e == SBX_SWAP_E_REFUSED)
		return sbx_http1_refuse(c, &v);
	return e < 0 ? sbx_http1_abort(c) : SBX_HTTP1_ON;
}
