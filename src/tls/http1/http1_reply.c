/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Responses, from the server to the client (RFC 9112 sections 4 and 6.3). Towards a host without
 * secrets, head and body go on as they came; they are read only to know their end. Towards a host
 * with secrets, values in the head and in the body become placeholders again. A body is searched
 * whatever its Content-Encoding says: the server that sends a value back can say anything.
 */
#include "tls/http1/http1.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "wire/http_field.h"

static enum sbx_http1_step bad_server(struct sbx_conn *c, const char *text)
{
	if (sbx_http1_of(c)->n_exchanges && !sbx_http1_of(c)->n_in_reply)
		return sbx_http1_abort(c); /* it closed an idle connection: the client asks again */
	return sbx_http1_fail(c, SBX_REASON_UPSTREAM_FAILED, 502, text);
}

static void consume(struct sbx_http1 *h, size_t n)
{
	h->n_in_reply -= n;
	memmove(h->in_reply, h->in_reply + n, h->n_in_reply);
}

/* --- the head --- */

/* Chooses the framing of a body whose values are replaced. */
static void choose_framing(struct sbx_http1 *h)
{
	const struct sbx_http_reply *head = &h->head;

	h->reply_out.how = SBX_BODY_PLAIN;
	if (head->framing == SBX_HTTP_REPLY_CHUNKED)
		h->reply_out.how = SBX_BODY_CHUNKED;
	else if (head->framing == SBX_HTTP_REPLY_LENGTH && !sbx_swap_keeps_length(h->reply_swap))
		h->reply_out.how = head->length <= SBX_BODY_HELD_MAX / 2 ? SBX_BODY_HELD :
				   h->http10				 ? SBX_BODY_PLAIN :
									   SBX_BODY_CHUNKED;
}

/* Does the new head leave out the field? A length or digest that may not hold is not told, nor a
 * name with a value in it. */
static bool is_dropped(const struct sbx_http1 *h, const struct sbx_http_header *line)
{
	if (sbx_swap_is_in_name(h->reply_swap, line->name))
		return true;
	return h->swaps_reply && !sbx_swap_keeps_length(h->reply_swap) &&
	       sbx_http_describes_bytes(line->name);
}

struct head_text {
	char *p; /* heap */
	size_t n;
	FILE *file;
};

/* The text without values, and the end of the line. */
static void write_swapped(struct head_text *t, const struct sbx_http1 *h, struct sbx_span text)
{
	char *swapped = NULL;
	size_t n = text.n;

	if (sbx_swap_text(h->reply_swap, text, &swapped, &n) < 0)
		n = 0;
	if (n)
		fwrite(swapped ? (const uint8_t *)swapped : text.p, 1, n, t->file);
	fputs("\r\n", t->file);
	free(swapped);
}

static void write_line(struct head_text *t, const struct sbx_http1 *h,
		       const struct sbx_http_header *line)
{
	if (is_dropped(h, line))
		return;
	fprintf(t->file, "%.*s: ", (int)line->name.n, (const char *)line->name.p);
	write_swapped(t, h, line->value);
}

/* The head with its values replaced, without the empty line. 0 or -ENOMEM. */
static int write_head(struct sbx_http1 *h, const struct sbx_http_header *lines, size_t n,
		      struct head_text *t)
{
	t->file = open_memstream(&t->p, &t->n);
	if (!t->file)
		return -ENOMEM;
	/* Some clients know "100 Continue" by its phrase (botocore). */
	fprintf(t->file, "HTTP/1.%d %d ", h->head.version_minor, h->head.status);
	write_swapped(t, h, h->head.reason);
	for (size_t i = 0; i < n; i++)
		write_line(t, h, &lines[i]);
	if (h->swaps_reply && h->reply_out.how == SBX_BODY_CHUNKED &&
	    h->head.framing != SBX_HTTP_REPLY_CHUNKED)
		fputs("Transfer-Encoding: chunked\r\n", t->file);
	if (h->swaps_reply && h->reply_out.how == SBX_BODY_PLAIN && h->http10 &&
	    h->head.framing == SBX_HTTP_REPLY_LENGTH && !sbx_swap_keeps_length(h->reply_swap))
		h->client_closes = true; /* the end is the body's end */
	return fclose(t->file) == 0 ? 0 : -ENOMEM;
}

static enum sbx_http1_step send_new_head(struct sbx_conn *c, struct sbx_span head)
{
	struct sbx_http_header lines[SBX_HTTP_HEADERS_MAX];
	struct sbx_http1 *h = sbx_http1_of(c);
	struct head_text t = { 0 };
	size_t n = sbx_http_head_fields(head, lines, SBX_N_ELEMENTS(lines));
	int e;

	if (n > SBX_N_ELEMENTS(lines))
		return bad_server(c, "the server's response has too many header fields");
	h->swaps_reply = h->head.framing != SBX_HTTP_REPLY_NONE &&
			 h->head.framing != SBX_HTTP_REPLY_SWITCH;
	if (h->swaps_reply)
		choose_framing(h);
	e = write_head(h, lines, n, &t);
	if (e == 0 && h->swaps_reply && h->reply_out.how == SBX_BODY_HELD) {
		h->held_head = sbx_steal_ptr(&t.p);
		h->n_held_head = t.n;
		return SBX_HTTP1_ON;
	}
	if (e == 0)
		e = sbx_side_queue(&c->client, sbx_span(t.p, t.n));
	free(t.p);
	if (e == 0)
		e = sbx_side_queue(&c->client, sbx_span("\r\n", 2));
	return e < 0 ? sbx_http1_abort(c) : SBX_HTTP1_ON;
}

/* Queues the trailer with its values replaced, and "0" before it. One with too many fields is left
 * out, as RFC 9112 section 7.1.2 allows. 0 or -errno. */
static int send_trailer(struct sbx_conn *c)
{
	struct sbx_http_header lines[SBX_HTTP_HEADERS_MAX];
	struct sbx_http1 *h = sbx_http1_of(c);
	struct head_text t = { 0 };
	size_t n = sbx_http_head_fields(sbx_span(h->reply_trailer.held, h->reply_trailer.n_held),
					lines, SBX_N_ELEMENTS(lines));
	int e;

	t.file = open_memstream(&t.p, &t.n);
	if (!t.file)
		return -ENOMEM;
	fputs("0\r\n", t.file);
	for (size_t i = 0; n <= SBX_N_ELEMENTS(lines) && i < n; i++)
		write_line(&t, h, &lines[i]);
	fputs("\r\n", t.file);
	e = fclose(t.file) == 0 ? sbx_side_queue(&c->client, sbx_span(t.p, t.n)) : -ENOMEM;
	free(t.p);
	return e;
}

static enum sbx_http1_step end_reply(struct sbx_conn *c)
{
	struct sbx_http1 *h = sbx_http1_of(c);
	int e = 0;

	h->reply = SBX_HTTP1_DONE;
	if (!h->swaps_reply)
		return SBX_HTTP1_ON;
	if (h->reply_out.how == SBX_BODY_HELD)
		e = sbx_body_send(&h->reply_out, sbx_span(h->held_head, h->n_held_head));
	else
		e = h->reply_trailer.n_held ? send_trailer(c) : sbx_body_end(&h->reply_out);
	return e < 0 ? sbx_http1_abort(c) : SBX_HTTP1_ON;
}

static void begin_body(struct sbx_http1 *h)
{
	h->reply = SBX_HTTP1_BODY;
	h->reply_left = h->head.length;
	if (h->head.framing == SBX_HTTP_REPLY_CHUNKED)
		sbx_http_body_init(&h->reply_chunks, SBX_HTTP_FRAMING_CHUNKED, 0);
}

static enum sbx_http1_step on_head(struct sbx_conn *c)
{
	struct sbx_http1 *h = sbx_http1_of(c);
	struct sbx_span head = sbx_span(h->in_reply, h->head.n);
	bool interim = h->head.status < 200 && h->head.status != 101;
	enum sbx_http1_step step = SBX_HTTP1_ON;

	if (h->head.status == 101 && !h->upgrades)
		return bad_server(c, "an upgrade that was not asked for");
	h->swaps_reply = false;
	if (h->head.status == 401)
		sbx_tls_ask_again(c->ctx, c->name);
	if (h->reply_swap)
		step = send_new_head(c, head);
	else if (sbx_side_queue(&c->client, head) < 0)
		step = sbx_http1_abort(c);
	if (step == SBX_HTTP1_GONE)
		return step;
	consume(h, h->head.n);
	if (interim)
		return SBX_HTTP1_ON;
	if (h->head.status == 101) {
		h->tunnel = true;
		return SBX_HTTP1_ON;
	}
	begin_body(h);
	return h->head.framing == SBX_HTTP_REPLY_NONE ||
			       (h->head.framing == SBX_HTTP_REPLY_LENGTH && !h->head.length) ?
		       end_reply(c) :
		       SBX_HTTP1_ON;
}

/* --- the body --- */

static enum sbx_http1_step feed(struct sbx_conn *c, struct sbx_span data, bool end)
{
	struct sbx_http1 *h = sbx_http1_of(c);
	struct sbx_http_verdict v;

	return sbx_swap_feed(h->reply_swap, data, end, sbx_body_put, &h->reply_out, &v) == 0 ?
		       SBX_HTTP1_ON :
		       sbx_http1_abort(c);
}

static enum sbx_http1_step pass(struct sbx_conn *c, struct sbx_span bytes)
{
	return sbx_side_write(&c->client, bytes) == SBX_IO_FAILED ? sbx_http1_abort(c) :
								    SBX_HTTP1_ON;
}

/* @data of a body without chunks; @end: it is the last. */
static enum sbx_http1_step on_data(struct sbx_conn *c, struct sbx_span data, bool end)
{
	bool swaps = sbx_http1_of(c)->swaps_reply;
	enum sbx_http1_step step = swaps ? feed(c, data, end) : pass(c, data);

	return step == SBX_HTTP1_ON && end ? end_reply(c) : step;
}

/* Chunked bytes as they came. */
static enum sbx_http1_step pass_chunks(struct sbx_conn *c, struct sbx_span bytes, size_t *ret_n)
{
	struct sbx_http1 *h = sbx_http1_of(c);
	int r = sbx_http_body_feed(&h->reply_chunks, bytes, ret_n);
	enum sbx_http1_step step = pass(c, sbx_span(bytes.p, *ret_n));

	if (step != SBX_HTTP1_ON)
		return step;
	if (r == SBX_HTTP_E_REJECT)
		return sbx_http1_abort(c);
	return r == 0 ? end_reply(c) : SBX_HTTP1_ON;
}

static enum sbx_http1_step swap_chunks(struct sbx_conn *c, struct sbx_span bytes, size_t *ret_n)
{
	struct sbx_http1 *h = sbx_http1_of(c);
	enum sbx_http1_step step = SBX_HTTP1_ON;
	size_t n = 1;

	*ret_n = 0;
	while (step == SBX_HTTP1_ON && n && *ret_n < bytes.n) {
		struct sbx_span data, rest = sbx_span(bytes.p + *ret_n, bytes.n - *ret_n);
		int r = sbx_body_next(&h->reply_trailer, &h->reply_chunks, rest, &data, &n);

		if (r < 0 || r == SBX_HTTP_E_REJECT)
			return sbx_http1_abort(c);
		*ret_n += n;
		if (data.n || r == 0)
			step = feed(c, data, r == 0);
		if (r == 0)
			return step == SBX_HTTP1_ON ? end_reply(c) : step;
	}
	return step;
}

/* Carries @bytes of the body. *ret_n: those that belong to it. */
static enum sbx_http1_step carry(struct sbx_conn *c, struct sbx_span bytes, size_t *ret_n)
{
	struct sbx_http1 *h = sbx_http1_of(c);

	if (h->head.framing == SBX_HTTP_REPLY_CHUNKED)
		return h->swaps_reply ? swap_chunks(c, bytes, ret_n) :
					pass_chunks(c, bytes, ret_n);
	*ret_n = bytes.n;
	if (h->head.framing == SBX_HTTP_REPLY_CLOSE)
		return on_data(c, bytes, false);
	if (*ret_n > h->reply_left)
		*ret_n = (size_t)h->reply_left;
	h->reply_left -= *ret_n;
	return on_data(c, sbx_span(bytes.p, *ret_n), h->reply_left == 0);
}

/* The server's end. */
static enum sbx_http1_step server_ended(struct sbx_conn *c, enum sbx_io how)
{
	struct sbx_http1 *h = sbx_http1_of(c);

	if (h->reply == SBX_HTTP1_BODY && h->head.framing == SBX_HTTP_REPLY_CLOSE &&
	    how == SBX_IO_EOF)
		return on_data(c, sbx_span("", 0), true);
	if (h->reply != SBX_HTTP1_HEAD)
		return sbx_http1_abort(c);
	if (h->request == SBX_HTTP1_HEAD && !h->n_exchanges) {
		sbx_conn_break(c); /* the first request is answered with the reason */
		return SBX_HTTP1_ON;
	}
	if (h->request == SBX_HTTP1_HEAD) { /* between two exchanges */
		sbx_conn_linger(c);
		return SBX_HTTP1_GONE;
	}
	return bad_server(c, "the server closed the connection before it answered");
}

/* A body needs no buffer of its own: it is read into the shared one and written at once. */
static enum sbx_http1_step body_step(struct sbx_conn *c)
{
	struct sbx_http1 *h = sbx_http1_of(c);
	enum sbx_http1_step step;
	enum sbx_io r;
	size_t n, n_used;

	if (h->n_in_reply) {
		step = carry(c, sbx_span(h->in_reply, h->n_in_reply), &n_used);
		if (step != SBX_HTTP1_GONE)
			consume(h, n_used);
		return step;
	}
	r = sbx_side_read(&c->server, c->ctx->buf, h->n_max, &n);
	if (r == SBX_IO_WAIT)
		return SBX_HTTP1_WAIT;
	if (r != SBX_IO_ON)
		return server_ended(c, r);
	step = carry(c, sbx_span(c->ctx->buf, n), &n_used);
	if (step == SBX_HTTP1_GONE)
		return step;
	n -= n_used;
	assert(n <= h->n_max); /* no more was read */
	memcpy(h->in_reply, c->ctx->buf + n_used, n);
	h->n_in_reply = n;
	return step;
}

static enum sbx_http1_step read_head(struct sbx_conn *c)
{
	struct sbx_http1 *h = sbx_http1_of(c);
	enum sbx_io r;
	size_t n;

	if (h->n_in_reply == h->n_max)
		return bad_server(c, "the head of the server's response is too long");
	r = sbx_side_read(&c->server, h->in_reply + h->n_in_reply, h->n_max - h->n_in_reply, &n);
	h->n_in_reply += n;
	if (r == SBX_IO_WAIT)
		return SBX_HTTP1_WAIT;
	if (r != SBX_IO_ON)
		return server_ended(c, r);
	return SBX_HTTP1_ON;
}

static enum sbx_http1_step head_step(struct sbx_conn *c)
{
	struct sbx_http1 *h = sbx_http1_of(c);

	if (!h->n_in_reply)
		return read_head(c);
	if (h->request == SBX_HTTP1_HEAD || h->whole) /* an answer to no request */
		return sbx_http1_abort(c);
	switch (sbx_http_reply_parse(sbx_span(h->in_reply, h->n_in_reply), h->to_head, &h->head)) {
	case 0:
		return on_head(c);
	case SBX_HTTP_E_MORE:
		return read_head(c);
	default:
		return bad_server(c, "the server's response is not well-formed HTTP/1");
	}
}

enum sbx_http1_step sbx_http1_reply_step(struct sbx_conn *c)
{
	struct sbx_http1 *h = sbx_http1_of(c);

	if (c->server.fd < 0 || h->reply == SBX_HTTP1_DONE ||
	    sbx_side_waiting(&c->client) > SBX_HTTP1_WAITING_MAX)
		return SBX_HTTP1_WAIT;
	return h->reply == SBX_HTTP1_BODY ? body_step(c) : head_step(c);
}
