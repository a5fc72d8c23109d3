/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_DAEMON_HTTP_REQUEST_H
#define SBX_DAEMON_HTTP_REQUEST_H

#include <microhttpd.h>
#include <stdbool.h>
#include <stddef.h>

#include "daemon/http/call.h"
#include "daemon/http/stats.h"

/* A request of the server, inside of http/. */

#define SBX_REPLY_HEADERS_MAX 4

struct sbx_http_listener;

struct sbx_http_request {
	struct sbx_call call;
	struct sbx_http_listener *listener;
	struct MHD_Connection *connection;
	uint64_t began_us; /* monotonic: its head came */
	char *body;
	size_t n_body, n_dropped;
	bool too_large; /* the rest of the body is dropped */
	bool ran;	/* the handler was called, or is not to be */
	bool suspended; /* libmicrohttpd waits for the answer */
	int status;
	struct MHD_Response *response; /* owned; the answer that is not queued yet */
	size_t n_headers;
	struct {
		char name[48], value[512];
	} headers[SBX_REPLY_HEADERS_MAX];
};

/* The answer is known: it is queued now or, if the connection waits, soon. */
void sbx_request_answer(struct sbx_http_request *r, int status, struct MHD_Response *response_take,
			const char *media);
/* Goes on with a suspended connection. */
void sbx_request_resume(struct sbx_http_request *r);
/* The same for a stream, whose request may be gone. */
void sbx_connection_resume(struct sbx_http_listener *l, struct MHD_Connection *c);
struct sbx_http_stats *sbx_listener_stats(const struct sbx_http_listener *l);
void sbx_listener_failed(const struct sbx_http_listener *l, const char *line);
struct event_base *sbx_listener_base(const struct sbx_http_listener *l);

/* All streams of the server, a list. */
struct sbx_stream **sbx_listener_streams(const struct sbx_http_listener *l);
struct sbx_stream *sbx_stream_next(const struct sbx_stream *s);
const struct sbx_principal *sbx_stream_principal(const struct sbx_stream *s);

#endif
