/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * HTTP/1 between the two sides of a connection (RFC 9112).
 *
 * A refused request is answered and ends the connection: its body, which may still come, would have
 * to be read to find the next request. If a part of it was sent on, the server sees a message that
 * is cut, never one that is complete.
 */
#include "tls/http1/http1.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tls/conn/refusal.h"

#define TURN_STEPS 64 /* steps before the other connections get a turn */
#define BUFFER_MIN 16384

static int begin(struct sbx_conn *c)
{
	struct sbx_http1 *h = calloc(1, sizeof(*h));
	size_t n_max = c->ctx->rules.head_bytes;

	if (!h)
		return -ENOMEM;
	c->http = h;
	h->n_max = n_max < BUFFER_MIN ? BUFFER_MIN : n_max < SBX_TLS_BUF ? n_max : SBX_TLS_BUF;
	h->in = malloc(h->n_max);
	h->in_reply = malloc(h->n_max);
	if (!h->in || !h->in_reply)
		return -ENOMEM;
	h->request_out.side = &c->server;
	h->reply_out.side = &c->client;
	h->held_request.how = SBX_BODY_HELD;
	sbx_http_judge_init(&h->judge, n_max, true);
	h->judge.over_tls = c->tls;
	return sbx_http1_learn_values(c);
}

int sbx_http1_learn_values(struct sbx_conn *c)
{
	struct sbx_http1 *h = sbx_http1_of(c);

	if (h->knows_values && h->n_rotations == c->ctx->n_rotations)
		return 0;
	h->reply_swap = sbx_swap_free(h->reply_swap);
	h->n_rotations = c->ctx->n_rotations;
	h->knows_values = true;
	return sbx_swap_new_response(&c->ctx->rules, c->name, &h->reply_swap);
}

static void reset_exchange(struct sbx_http1 *h)
{
	struct sbx_side *server = h->request_out.side, *client = h->reply_out.side;

	h->request_swap = sbx_swap_free(h->request_swap);
	h->whole = sbx_whole_free(h->whole);
	sbx_body_fini(&h->held_request);
	sbx_body_fini(&h->request_out);
	sbx_body_fini(&h->request_trailer);
	sbx_body_fini(&h->reply_out);
	sbx_body_fini(&h->reply_trailer);
	h->request_out.side = server;
	h->held_request.how = SBX_BODY_HELD;
	h->reply_out.side = client;
	free(h->held_head);
	h->held_head = NULL;
	h->request = h->reply = SBX_HTTP1_HEAD;
	h->asked[0] = '\0';
	h->n_body = 0;
}

static void end(void *http)
{
	struct sbx_http1 *h = http;

	if (!h)
		return;
	reset_exchange(h);
	sbx_swap_free(h->reply_swap);
	free(h->in);
	free(h->in_reply);
	free(h);
}

enum sbx_http1_step sbx_http1_abort(struct sbx_conn *c)
{
	sbx_conn_abort(c);
	return SBX_HTTP1_GONE;
}

enum sbx_http1_step sbx_http1_refuse(struct sbx_conn *c, const struct sbx_http_verdict *v)
{
	char body[SBX_REFUSAL_MAX], head[512];
	size_t n_body = sbx_refusal_body(v, body);
	int n = snprintf(head, sizeof(head),
			 "HTTP/1.1 %d %s\r\nX-Sbx-Denied: %s\r\n"
			 "Content-Type: text/plain; charset=utf-8\r\n"
			 "Content-Length: %zu\r\nConnection: close\r\n\r\n",
			 v->status, sbx_refusal_phrase(v->status), sbx_reason_str(v->reason),
			 n_body);

	sbx_conn_report(c, v, sbx_http1_of(c)->asked);
	sbx_side_unqueue(&c->server);
	if (sbx_http1_of(c)->reply != SBX_HTTP1_HEAD) /* the server's answer has begun */
		return sbx_http1_abort(c);
	if (sbx_side_write(&c->client, sbx_span(head, (size_t)n)) == SBX_IO_FAILED ||
	    (!sbx_http1_of(c)->to_head &&
	     sbx_side_write(&c->client, sbx_span(body, n_body)) == SBX_IO_FAILED) ||
	    sbx_side_flush(&c->client) != SBX_IO_ON)
		return sbx_http1_abort(c);
	sbx_conn_linger(c);
	return SBX_HTTP1_GONE;
}

enum sbx_http1_step sbx_http1_fail(struct sbx_conn *c, enum sbx_reason reason, int status,
				   const char *cause)
{
	struct sbx_http_verdict v = sbx_refusal_verdict(c, reason, status, cause);

	return sbx_http1_refuse(c, &v);
}

bool sbx_http1_is_framing(struct sbx_span name)
{
	static const char *const names[] = { "host", "content-length", "transfer-encoding",
					     "connection", "upgrade", "keep-alive",
					     "proxy-connection", "te", "http2-settings" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strlen(names[i]) == name.n &&
		    strncasecmp(names[i], (const char *)name.p, name.n) == 0)
			return true;
	return false;
}

/* Is an exchange complete? Then the next begins, or the connection ends. The response is written
 * first: the end of either side, which may be there to be read already, ends the connection. */
static enum sbx_http1_step end_exchange(struct sbx_conn *c)
{
	struct sbx_http1 *h = sbx_http1_of(c);

	if (h->reply != SBX_HTTP1_DONE)
		return SBX_HTTP1_WAIT;
	switch (sbx_side_flush(&c->client)) {
	case SBX_IO_ON:
		break;
	case SBX_IO_WAIT:
		return SBX_HTTP1_WAIT;
	default:
		return sbx_http1_abort(c);
	}
	/* An answer before the end of the request's body: what is left of it has no reader. Bytes
	 * behind the response are no answer to the next request. */
	if (h->request != SBX_HTTP1_DONE || h->client_closes || !h->head.keeps || h->n_in_reply) {
		sbx_conn_linger(c);
		return SBX_HTTP1_GONE;
	}
	h->n_exchanges++;
	reset_exchange(h);
	return SBX_HTTP1_ON;
}

/* --- another protocol: bytes are carried as they are --- */

static enum sbx_http1_step carry(struct sbx_conn *c, struct sbx_side *from, struct sbx_side *to,
				 uint8_t *kept, size_t *n_kept)
{
	enum sbx_io r;
	size_t n;

	if (*n_kept) {
		if (sbx_side_write(to, sbx_span(kept, *n_kept)) == SBX_IO_FAILED)
			return sbx_http1_abort(c);
		*n_kept = 0;
		return SBX_HTTP1_ON;
	}
	if (sbx_side_waiting(to) > SBX_HTTP1_WAITING_MAX)
		return SBX_HTTP1_WAIT;
	r = sbx_side_read(from, c->ctx->buf, sizeof(c->ctx->buf), &n);
	if (r == SBX_IO_WAIT)
		return SBX_HTTP1_WAIT;
	if (r == SBX_IO_FAILED)
		return sbx_http1_abort(c);
	if (r != SBX_IO_ON) {
		if (to->shut || sbx_side_waiting(to))
			return SBX_HTTP1_WAIT;
		sbx_side_shutdown(to);
		if (!from->shut)
			return SBX_HTTP1_ON;
		sbx_conn_free(c);
		return SBX_HTTP1_GONE;
	}
	return sbx_side_write(to, sbx_span(c->ctx->buf, n)) == SBX_IO_FAILED ? sbx_http1_abort(c)
									     : SBX_HTTP1_ON;
}

static enum sbx_http1_step tunnel(struct sbx_conn *c)
{
	struct sbx_http1 *h = sbx_http1_of(c);
	enum sbx_http1_step up = carry(c, &c->client, &c->server, h->in, &h->n_in), down;

	if (up == SBX_HTTP1_GONE)
		return up;
	down = carry(c, &c->server, &c->client, h->in_reply, &h->n_in_reply);
	return down == SBX_HTTP1_WAIT ? up : down;
}

/* --- turns --- */

static enum sbx_http1_step step(struct sbx_conn *c)
{
	enum sbx_http1_step up, down, end;

	if (sbx_http1_of(c)->tunnel)
		return tunnel(c);
	up = sbx_http1_request_step(c);
	if (up == SBX_HTTP1_GONE || sbx_http1_of(c)->tunnel)
		return up;
	down = sbx_http1_reply_step(c);
	if (down == SBX_HTTP1_GONE)
		return down;
	end = end_exchange(c);
	if (end != SBX_HTTP1_WAIT)
		return end;
	return up == SBX_HTTP1_ON || down == SBX_HTTP1_ON ? SBX_HTTP1_ON : SBX_HTTP1_WAIT;
}

static bool flush(struct sbx_conn *c)
{
	if (sbx_side_flush(&c->client) == SBX_IO_FAILED) {
		sbx_conn_abort(c);
		return false;
	}
	if (c->server.fd >= 0 && sbx_side_flush(&c->server) == SBX_IO_FAILED) {
		sbx_http1_of(c)->server_deaf = true;
		sbx_side_unqueue(&c->server);
		sbx_conn_again(c); /* to read the reason */
	}
	return true;
}

/* After a turn: does a side that was full have room again, or is the last of an exchange written?
 * No event will tell. */
static bool has_more(const struct sbx_conn *c, bool was_full)
{
	bool full = sbx_side_waiting(&c->client) > SBX_HTTP1_WAITING_MAX ||
		    sbx_side_waiting(&c->server) > SBX_HTTP1_WAITING_MAX;

	return (was_full && !full) ||
	       (sbx_http1_of(c)->reply == SBX_HTTP1_DONE && !sbx_side_waiting(&c->client));
}

static bool pump(struct sbx_conn *c)
{
	enum sbx_http1_step r = SBX_HTTP1_ON;
	bool was_full;

	if (!flush(c))
		return false;
	for (int i = 0; r == SBX_HTTP1_ON && i < TURN_STEPS; i++)
		r = step(c);
	if (r == SBX_HTTP1_GONE)
		return false;
	was_full = sbx_side_waiting(&c->client) > SBX_HTTP1_WAITING_MAX ||
		   sbx_side_waiting(&c->server) > SBX_HTTP1_WAITING_MAX;
	if (!flush(c))
		return false;
	if (r == SBX_HTTP1_ON || has_more(c, was_full))
		sbx_conn_again(c);
	return true;
}

const struct sbx_protocol sbx_http1 = { .begin = begin, .end = end, .pump = pump };
