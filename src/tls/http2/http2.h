/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_TLS_HTTP2_HTTP2_H
#define SBX_TLS_HTTP2_HTTP2_H

#include <nghttp2/nghttp2.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "http/request.h"
#include "http/swap.h"
#include "tls/conn/conn.h"
#include "tls/conn/whole.h"

/*
 * HTTP/2 of one connection: a session with the client and one with the server, and a stream in each
 * for every request (RFC 9113). A stream's bytes are taken from one session's window only as the
 * other has sent them, so that the backpressure of each stream reaches its sender.
 *
 *   http2.c          the sessions, turns
 *   http2_stream.c   streams: heads that are collected, bytes on their way, ends
 *   http2_request.c  from the client to the server
 *   http2_reply.c    from the server to the client
 */

#define SBX_HTTP2_STREAMS_MAX 128
#define SBX_HTTP2_OPEN_MAX    512 /* streams that one of the sides has not closed yet */
#define SBX_HTTP2_INTERIM_MAX 16  /* 1xx responses that wait for the client; more are dropped */
#define SBX_HTTP2_WINDOW      (256 * 1024)  /* bytes of a stream that we take ahead */
#define SBX_HTTP2_CONN_WINDOW (1024 * 1024) /* of all streams of a session together */

/* A head on its way in: names and values copied one after the other. */
struct sbx_http2_head {
	uint8_t *p; /* heap */
	size_t n, n_max;
	size_t n_fields;
	struct sbx_http2_field {
		uint32_t name, n_name, value, n_value; /* offsets in p */
	} *fields; /* heap */
	size_t n_fields_max;
	bool too_long;
};

/* One direction's bytes: taken from a session, not yet sent to the other. */
struct sbx_http2_bytes {
	uint8_t *p; /* heap */
	size_t at, n, n_max;
	size_t n_owed; /* bytes that the sender's window is still without */
	bool end;      /* nothing comes after them */
	bool deferred; /* the other session waits for bytes */
	bool has_trailer;
	struct sbx_http2_head trailer;
};

struct sbx_http2_stream {
	struct sbx_http2 *h;
	struct sbx_http2_stream *prev, *next;
	int32_t down_id, up_id; /* of the client's session and the server's; up_id -1: none yet */
	bool down_open, up_open;
	char asked[SBX_CONN_ASKED_MAX]; /* the request, for people */
	bool is_head; /* the request's method: no response has a body */
	bool replied;	    /* a final response was submitted to the client */
	bool refused;	    /* by us: the response is our own */
	struct sbx_http2_head head; /* of the request, then of the response */
	struct sbx_http2_bytes up, down;
	uint64_t n_body; /* of the request so far */
	size_t n_whole; /* bytes that it added to ctx->n_whole */
	struct sbx_whole *whole; /* not rewritten yet: its body, in `up`, is needed for that */
	uint64_t n_discarded; /* of it, after it was refused */
	struct sbx_swap *request_swap;
	struct sbx_swap *reply_swap; /* NULL: nothing to look for */
};

struct sbx_http2 {
	struct sbx_conn *c;
	nghttp2_session *down, *up; /* up NULL: the server is broken */
	struct sbx_http2_stream *first;
	size_t n_streams;
	size_t n_interim; /* that may wait */
	bool leaving; /* no request can be sent on any more */
	bool going; /* GOAWAY was sent to the client */
	bool lost;  /* the server is gone; `up` is only an object any more */
	bool was_asked; /* a request was sent on */
};

extern const struct sbx_protocol sbx_http2;

/* --- http2.c --- */
/* Sends GOAWAY to the client, once. */
void sbx_http2_say_goodbye(struct sbx_http2 *h);

/* --- http2_stream.c --- */
/* Opened by a request's HEADERS. NULL: out of memory. */
struct sbx_http2_stream *sbx_http2_stream_new(struct sbx_http2 *h, int32_t down_id);
void sbx_http2_stream_free(struct sbx_http2_stream *s);
/* One side is closed; frees the stream when both are. */
void sbx_http2_stream_closed(struct sbx_http2_stream *s, bool down, uint32_t error);
void sbx_http2_head_reset(struct sbx_http2_head *head);
/* Appends a field; over @n_max bytes or SBX_HTTP_HEADERS_MAX fields sets too_long. 0 or -ENOMEM. */
int sbx_http2_head_add(struct sbx_http2_head *head, struct sbx_span name, struct sbx_span value,
		       size_t n_max);
struct sbx_span sbx_http2_name(const struct sbx_http2_head *head, size_t i);
struct sbx_span sbx_http2_value(const struct sbx_http2_head *head, size_t i);
/* A field for nghttp2, which does not change what it borrows. */
static inline nghttp2_nv sbx_http2_nv(struct sbx_span name, struct sbx_span value, uint8_t flags)
{
	union {
		const uint8_t *bytes;
		uint8_t *p;
	} n = { name.p }, v = { value.p };

	return (nghttp2_nv){ .name = n.p, .value = v.p, .namelen = name.n, .valuelen = value.n,
			     .flags = flags };
}
/* Adds bytes for the other session; a sbx_swap_sink. 0 or -ENOMEM. */
int sbx_http2_bytes_put(void *bytes, struct sbx_span data);
/* The other session may have something to send again. */
void sbx_http2_wake(struct sbx_http2_stream *s, bool down);
/* A provider of a direction's bytes; @down: those to the client. */
nghttp2_data_provider sbx_http2_provider(struct sbx_http2_stream *s, bool down);

/* --- http2_request.c --- */
/* Parts of a message of the client. 0; -ENOMEM: the connection ends. */
int sbx_http2_on_request(struct sbx_http2_stream *s, bool end);
int sbx_http2_on_request_data(struct sbx_http2_stream *s, struct sbx_span data);
int sbx_http2_on_request_trailer(struct sbx_http2_stream *s);
int sbx_http2_on_request_end(struct sbx_http2_stream *s);
/* Answers the request with @v, and gives up what was sent on. */
void sbx_http2_refuse(struct sbx_http2_stream *s, const struct sbx_http_verdict *v);
void sbx_http2_fail(struct sbx_http2_stream *s, enum sbx_reason reason, int status,
		    const char *cause);

/* --- http2_reply.c --- */
/* Parts of a message of the server. 0; -errno: the connection to the server ends, and no response
 * is told to be whole. */
int sbx_http2_on_reply(struct sbx_http2_stream *s, bool end);
int sbx_http2_on_reply_data(struct sbx_http2_stream *s, struct sbx_span data);
int sbx_http2_on_reply_end(struct sbx_http2_stream *s);

#endif
