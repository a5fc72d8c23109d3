/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_TLS_HTTP1_HTTP1_H
#define SBX_TLS_HTTP1_HTTP1_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "http/request.h"
#include "http/swap.h"
#include "tls/http1/body.h"
#include "tls/conn/conn.h"
#include "tls/conn/whole.h"
#include "wire/http_head.h"
#include "wire/http_reply.h"

/*
 * HTTP/1 of one connection: one request at a time. A next request that comes early waits, unjudged,
 * until the response to the first is written.
 *
 *   http1.c          turns, the end of an exchange, refusals
 *   http1_request.c  requests from the client, and what is refused of them
 *   http1_forward.c  requests on to the server
 *   http1_reply.c    from the server to the client
 */

#define SBX_HTTP1_WAITING_MAX 65536 /* bytes queued to a side before the other is not read */

enum sbx_http1_part { SBX_HTTP1_HEAD = 0, SBX_HTTP1_BODY, SBX_HTTP1_DONE };

struct sbx_http1 {
	struct sbx_http_judge judge;
	uint8_t *in; /* of the client; heap: not carried yet */
	size_t n_in;
	uint8_t *in_reply; /* of the server; heap: not carried yet */
	size_t n_in_reply;
	size_t n_max; /* of both */
	size_t n_exchanges;
	bool knows_values;
	uint32_t n_rotations; /* of the context, when reply_swap was made */
	bool tunnel; /* another protocol from here on */
	/* The server takes no more of the request; it may still have sent a response, as 413. */
	bool server_deaf;

	/* the request */
	uint8_t request; /* enum sbx_http1_part */
	char asked[SBX_CONN_ASKED_MAX]; /* for people; "" before its head */
	bool to_head, http10, client_closes, upgrades;
	bool request_chunked;
	uint64_t n_body; /* of its body so far, framing included */
	struct sbx_swap *request_swap;
	struct sbx_http_body request_chunks; /* with a swap: finds the data */
	struct sbx_body request_out, request_trailer;
	struct sbx_body held_request; /* its head, while its body is held */
	struct sbx_whole *whole;      /* not rewritten yet: its body is needed for that */

	/* the response */
	uint8_t reply; /* enum sbx_http1_part */
	struct sbx_http_reply head; /* its spans are not valid any more */
	uint64_t reply_left;
	struct sbx_http_body reply_chunks;
	struct sbx_swap *reply_swap;  /* of the connection's host; NULL: nothing to look for */
	bool swaps_reply;	      /* this one's body */
	struct sbx_body reply_out, reply_trailer;
	char *held_head; /* heap: of a response whose body is held */
	size_t n_held_head;
};

/* echo.c. Answers a request of the self-test. */
enum sbx_http1_step sbx_http1_echo(struct sbx_conn *c, const struct sbx_http_request *r);

extern const struct sbx_protocol sbx_http1;

static inline struct sbx_http1 *sbx_http1_of(const struct sbx_conn *c)
{
	return c->http;
}

enum sbx_http1_step {
	SBX_HTTP1_WAIT = 0, /* for a socket */
	SBX_HTTP1_ON,
	SBX_HTTP1_GONE, /* the connection is gone, or lingers: not to be touched */
};

/* http1.c. Answers the request with the verdict, and ends the connection. */
enum sbx_http1_step sbx_http1_refuse(struct sbx_conn *c, const struct sbx_http_verdict *v);
enum sbx_http1_step sbx_http1_fail(struct sbx_conn *c, enum sbx_reason reason, int status,
				   const char *cause);
enum sbx_http1_step sbx_http1_abort(struct sbx_conn *c);

/* Makes reply_swap, if values were replaced since: before the request gets its values, and while no
 * response is under way. 0 or -ENOMEM. */
int sbx_http1_learn_values(struct sbx_conn *c);

/* http1_request.c, http1_reply.c: one step. */
enum sbx_http1_step sbx_http1_request_step(struct sbx_conn *c);
enum sbx_http1_step sbx_http1_reply_step(struct sbx_conn *c);

/*
 * http1_forward.c. The server gets the rewritten @w, which is ended: chooses the framing of the
 * body, and writes the head or keeps it. 0; -EPROTONOSUPPORT: HTTP/1.0 has no framing for it;
 * another -errno.
 */
int sbx_http1_request_begin(struct sbx_conn *c, struct sbx_http_rewritten *w);
/* In the place of begin: waits for the body of a request that is signed with it. */
enum sbx_http1_step sbx_http1_request_hold(struct sbx_conn *c, const struct sbx_http_event *ev,
					   struct sbx_http_request *r);
/* More of the body, framing included, which the judge found good; @end: the last of it. */
enum sbx_http1_step sbx_http1_request_body(struct sbx_conn *c, struct sbx_span bytes, bool end);
/* The request is complete. */
enum sbx_http1_step sbx_http1_request_end(struct sbx_conn *c);

/* Is the field one that frames or routes the message, and that is written anew? */
bool sbx_http1_is_framing(struct sbx_span name);

#endif
