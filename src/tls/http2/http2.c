/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The two HTTP/2 sessions of a connection, and its turns.
 *
 * nghttp2 checks frames and fields (RFC 9113 section 8, its HTTP messaging rules are on) and never
 * touches a socket. Its callbacks run inside mem_recv() and mem_send(), where a session must not be
 * freed: what ends the connection is noted, and done at the end of the turn.
 */
#include "tls/http2/http2.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define TURN_READS  64
#define WAITING_MAX 65536 /* bytes queued to a side before it gets no more */

/* --- callbacks --- */

static bool is_down(const struct sbx_http2 *h, const nghttp2_session *session)
{
	return session == h->down;
}

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *userdata)
{
	struct sbx_http2 *h = userdata;
	struct sbx_http2_stream *s;

	if (!is_down(h, session) || frame->hd.type != NGHTTP2_HEADERS ||
	    frame->headers.cat != NGHTTP2_HCAT_REQUEST)
		return 0;
	/* Streams that the client reset live until the server's session has let them go. */
	if (h->n_streams >= SBX_HTTP2_OPEN_MAX)
		return NGHTTP2_ERR_CALLBACK_FAILURE;
	s = sbx_http2_stream_new(h, frame->hd.stream_id);
	if (!s)
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	nghttp2_session_set_stream_user_data(session, frame->hd.stream_id, s);
	return 0;
}

/* The head that the frame's fields belong to; a client's trailer goes to the trailer at once. */
static struct sbx_http2_head *head_of(struct sbx_http2 *h, nghttp2_session *session,
				      const nghttp2_frame *frame, struct sbx_http2_stream *s)
{
	if (is_down(h, session) && frame->headers.cat != NGHTTP2_HCAT_REQUEST)
		return &s->up.trailer;
	return &s->head;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
		     size_t n_name, const uint8_t *value, size_t n_value, uint8_t flags,
		     void *userdata)
{
	struct sbx_http2 *h = userdata;
	struct sbx_http2_stream *s =
		nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);

	(void)flags;
	if (!s || frame->hd.type != NGHTTP2_HEADERS)
		return 0;
	return sbx_http2_head_add(head_of(h, session, frame, s), sbx_span(name, n_name),
				  sbx_span(value, n_value), h->c->ctx->rules.head_bytes) < 0 ?
		       NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE :
		       0;
}

static int on_down_frame(struct sbx_http2_stream *s, const nghttp2_frame *frame, bool end)
{
	int e = 0;

	if (frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST)
		e = sbx_http2_on_request(s, end);
	else if (frame->hd.type == NGHTTP2_HEADERS)
		e = sbx_http2_on_request_trailer(s);
	return e == 0 && end ? sbx_http2_on_request_end(s) : e;
}

static int on_up_frame(struct sbx_http2_stream *s, const nghttp2_frame *frame, bool end)
{
	int e = frame->hd.type == NGHTTP2_HEADERS ? sbx_http2_on_reply(s, end) : 0;

	return e == 0 && end ? sbx_http2_on_reply_end(s) : e;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *userdata)
{
	struct sbx_http2 *h = userdata;
	struct sbx_http2_stream *s;
	bool end = frame->hd.flags & NGHTTP2_FLAG_END_STREAM;
	int e;

	if (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA)
		return 0;
	s = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
	if (!s)
		return 0;
	e = is_down(h, session) ? on_down_frame(s, frame, end) : on_up_frame(s, frame, end);
	return e < 0 ? NGHTTP2_ERR_CALLBACK_FAILURE : 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *p, size_t n,
		   void *userdata)
{
	struct sbx_http2 *h = userdata;
	struct sbx_http2_stream *s = nghttp2_session_get_stream_user_data(session, id);
	int e;

	(void)flags;
	if (!s) {
		nghttp2_session_consume(session, id, n);
		return 0;
	}
	e = is_down(h, session) ? sbx_http2_on_request_data(s, sbx_span(p, n)) :
				  sbx_http2_on_reply_data(s, sbx_span(p, n));
	return e < 0 ? NGHTTP2_ERR_CALLBACK_FAILURE : 0;
}

static int on_close(nghttp2_session *session, int32_t id, uint32_t error, void *userdata)
{
	struct sbx_http2 *h = userdata;
	struct sbx_http2_stream *s = nghttp2_session_get_stream_user_data(session, id);

	if (s)
		sbx_http2_stream_closed(s, is_down(h, session), error);
	return 0;
}

/* --- what nghttp2 refuses by itself --- */

static void report_malformed(struct sbx_http2 *h)
{
	const struct sbx_http_verdict v = { .reason = SBX_REASON_HTTP_MALFORMED, .status = 400 };

	sbx_conn_report(h->c, &v, "");
}

/* A stream or connection of the client that nghttp2 ends: a refusal like any other, with an event.
 * None are a server's RST_STREAM that is passed on (its stream is closed by then), and the end of a
 * request that was refused before (some clients then send less than their content-length). */
static int on_sent(nghttp2_session *session, const nghttp2_frame *frame, void *userdata)
{
	struct sbx_http2 *h = userdata;
	const struct sbx_http2_stream *s;

	if (!is_down(h, session))
		return 0;
	if (frame->hd.type == NGHTTP2_GOAWAY && frame->goaway.error_code != NGHTTP2_NO_ERROR)
		report_malformed(h);
	if (frame->hd.type != NGHTTP2_RST_STREAM ||
	    frame->rst_stream.error_code != NGHTTP2_PROTOCOL_ERROR)
		return 0;
	s = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
	if (!s || (!s->refused && (s->up_open || s->up_id < 0)))
		report_malformed(h);
	return 0;
}

/* A response that nghttp2 refuses before the client got one is answered as in HTTP/1. */
static int on_invalid(nghttp2_session *session, const nghttp2_frame *frame, int error,
		      void *userdata)
{
	struct sbx_http2 *h = userdata;
	struct sbx_http2_stream *s =
		nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);

	(void)error;
	if (!is_down(h, session) && s && s->down_open && !s->replied)
		sbx_http2_fail(s, SBX_REASON_UPSTREAM_FAILED, 502,
			       "the server's response is not well-formed HTTP/2");
	return 0;
}

/* --- sessions --- */

static int new_session(struct sbx_http2 *h, bool server, nghttp2_session **ret)
{
	nghttp2_session_callbacks *callbacks;
	nghttp2_option *option;
	int r = -ENOMEM;

	if (nghttp2_session_callbacks_new(&callbacks) != 0)
		return -ENOMEM;
	nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin_headers);
	nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
	nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
	nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
	nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, on_sent);
	nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(callbacks, on_invalid);
	if (nghttp2_option_new(&option) == 0) {
		nghttp2_option_set_no_auto_window_update(option, 1);
		if ((server ? nghttp2_session_server_new2(ret, callbacks, h, option) :
			      nghttp2_session_client_new2(ret, callbacks, h, option)) == 0)
			r = 0;
		nghttp2_option_del(option);
	}
	nghttp2_session_callbacks_del(callbacks);
	return r;
}

static int submit_settings(nghttp2_session *session, bool server)
{
	const nghttp2_settings_entry v[] = {
		{ NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, SBX_HTTP2_WINDOW },
		{ server ? NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS : NGHTTP2_SETTINGS_ENABLE_PUSH,
		  server ? SBX_HTTP2_STREAMS_MAX : 0 },
	};

	if (nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, v, SBX_N_ELEMENTS(v)) != 0 ||
	    nghttp2_session_set_local_window_size(session, NGHTTP2_FLAG_NONE, 0,
						  SBX_HTTP2_CONN_WINDOW) != 0)
		return -ENOMEM;
	return 0;
}

static int begin(struct sbx_conn *c)
{
	struct sbx_http2 *h = calloc(1, sizeof(*h));

	if (!h)
		return -ENOMEM;
	h->c = c;
	c->http = h;
	if (new_session(h, true, &h->down) < 0 || submit_settings(h->down, true) < 0)
		return -ENOMEM;
	if (c->broken.reason != SBX_REASON_UNKNOWN)
		return 0;
	return new_session(h, false, &h->up) < 0 ? -ENOMEM : submit_settings(h->up, false);
}

static void end(void *http)
{
	struct sbx_http2 *h = http;

	if (!h)
		return;
	while (h->first)
		sbx_http2_stream_free(h->first);
	nghttp2_session_del(h->down);
	nghttp2_session_del(h->up);
	free(h);
}

/* --- turns --- */

enum turn { WAIT = 0, ON, GONE };

void sbx_http2_say_goodbye(struct sbx_http2 *h)
{
	if (h->going)
		return;
	h->going = true;
	nghttp2_submit_goaway(h->down, NGHTTP2_FLAG_NONE,
			      nghttp2_session_get_last_proc_stream_id(h->down), NGHTTP2_NO_ERROR,
			      NULL, 0);
}

/* Tells the client to go elsewhere, with no stream open: some clients read no response that comes
 * behind a GOAWAY (Python's h2). A new request gets it at once. */
static bool say_goodbye_when_idle(struct sbx_http2 *h)
{
	if (!h->leaving || h->going || h->n_streams)
		return false;
	sbx_http2_say_goodbye(h);
	return true;
}

/* The server is gone: open requests fail, and the client will go elsewhere. If none was sent on,
 * the server may want a certificate that it did not get: then requests are answered with the
 * reason. */
static void lose_server(struct sbx_http2 *h)
{
	struct sbx_http2_stream *next;

	h->lost = true;
	if (!h->was_asked) {
		sbx_conn_break(h->c);
		return;
	}
	for (struct sbx_http2_stream *s = h->first; s; s = next) {
		next = s->next;
		if (!s->up_open)
			continue;
		s->up_open = false;
		if (!s->replied)
			sbx_http2_fail(s, SBX_REASON_UPSTREAM_FAILED, 502,
				       "the server closed the connection before it answered");
		else if (!s->down.end)
			nghttp2_submit_rst_stream(h->down, NGHTTP2_FLAG_NONE, s->down_id,
						  NGHTTP2_INTERNAL_ERROR);
	}
	sbx_side_fini(&h->c->server);
	h->leaving = true;
}

static bool has_room(const struct sbx_side *side)
{
	return side->fd >= 0 && sbx_side_waiting(side) <= WAITING_MAX;
}

static enum turn read_side(struct sbx_http2 *h, struct sbx_side *side, nghttp2_session *session)
{
	uint8_t *buf = h->c->ctx->buf;
	enum sbx_io r;
	ssize_t used;
	size_t n;

	if (!has_room(side))
		return WAIT;
	r = sbx_side_read(side, buf, SBX_TLS_BUF, &n);
	if (r == SBX_IO_WAIT)
		return WAIT;
	if (r != SBX_IO_ON)
		return GONE;
	used = nghttp2_session_mem_recv(session, buf, n);
	if (used == NGHTTP2_ERR_BAD_CLIENT_MAGIC) /* there is no GOAWAY then */
		report_malformed(h);
	return used == (ssize_t)n ? ON : GONE;
}

/* Writes what the session has, as far as the queue and the socket take it. WAIT: the session has
 * nothing, or the socket is full and an event will come. */
static enum turn write_side(struct sbx_side *side, nghttp2_session *session)
{
	enum turn turn = WAIT;

	while (has_room(side)) {
		const uint8_t *p;
		ssize_t n = nghttp2_session_mem_send(session, &p);

		if (n < 0)
			return GONE;
		if (n == 0)
			break;
		if (sbx_side_queue(side, sbx_span(p, (size_t)n)) < 0)
			return GONE;
		turn = ON;
	}
	if (side->fd < 0 || !sbx_side_waiting(side))
		return turn;
	switch (sbx_side_flush(side)) {
	case SBX_IO_ON: /* the queue has room again, and no event comes for that */
		return ON;
	case SBX_IO_WAIT:
		return turn;
	default:
		return GONE;
	}
}

static enum turn step_server(struct sbx_http2 *h)
{
	struct sbx_side *server = &h->c->server;
	enum turn in, out;

	if (!h->up || h->lost)
		return WAIT;
	in = read_side(h, server, h->up);
	out = in == GONE ? GONE : write_side(server, h->up);
	if (out == GONE ||
	    (!nghttp2_session_want_read(h->up) && !nghttp2_session_want_write(h->up)))
		lose_server(h);
	else if (!nghttp2_session_check_request_allowed(h->up))
		h->leaving = true;
	return in == ON || out == ON ? ON : WAIT;
}

/* WAIT: nothing can be done before one of the sockets has an event. */
static enum turn step(struct sbx_http2 *h)
{
	struct sbx_conn *c = h->c;
	enum turn in = read_side(h, &c->client, h->down), up, out;

	if (in == GONE)
		return GONE;
	up = step_server(h);
	out = write_side(&c->client, h->down);
	if (out == GONE)
		return GONE;
	if (!sbx_side_waiting(&c->client))
		h->n_interim = 0;
	if (say_goodbye_when_idle(h))
		return ON;
	if (in == ON || up == ON || out == ON)
		return ON;
	/* Frames that left to the client may have paid the server's window or ended a stream. */
	return has_room(&c->server) && nghttp2_session_want_write(h->up) ? ON : WAIT;
}

static bool pump(struct sbx_conn *c)
{
	struct sbx_http2 *h = c->http;
	enum turn turn = ON;

	for (int i = 0; turn == ON && i < TURN_READS; i++)
		turn = step(h);
	if (turn == GONE) {
		sbx_conn_free(c);
		return false;
	}
	if (!sbx_side_waiting(&c->client) && !nghttp2_session_want_read(h->down) &&
	    !nghttp2_session_want_write(h->down)) {
		sbx_conn_linger(c);
		return false;
	}
	if (h->going && !h->n_streams && !sbx_side_waiting(&c->client) &&
	    !nghttp2_session_want_write(h->down)) {
		sbx_conn_linger(c);
		return false;
	}
	if (turn == ON)
		sbx_conn_again(c);
	return true;
}

const struct sbx_protocol sbx_http2 = { .begin = begin, .end = end, .pump = pump };
