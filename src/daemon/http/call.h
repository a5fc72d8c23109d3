/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_DAEMON_HTTP_CALL_H
#define SBX_DAEMON_HTTP_CALL_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/access/access.h"
#include "daemon/api/principal.h"
#include "daemon/api/route.h"

/*
 * A request on its way to a handler, and the answer.
 *
 * A handler is called when the caller's role is enough, and the query and the body are as the
 * route's row says. It answers exactly once, by one of the sbx_reply_ functions, from inside the
 * call or later; @call is not valid afterwards. It need not care about clients that went away.
 */
struct sbx_daemon; /* resources/daemon.h */

struct sbx_call {
	struct sbx_daemon *daemon;
	struct sbx_principal principal;
	struct sbx_route_found found;
	json_t *query;	      /* an object: the parameters that were given, with their types */
	json_t *body;	      /* NULL: the route takes none */
	const char *if_match; /* the header's value; NULL: there is none; the same for the next */
	const char *if_none_match, *last_event_id;
	const char *host;  /* never NULL */
	struct sbx_browser browser;
	bool wants_events; /* Accept: text/event-stream */
	int64_t audit_id;  /* the row of its change (resources/audit.h); 0: nothing was begun */
	bool wants_html;   /* Accept: text/html, as of a browser that opens a link */
	struct sbx_http_request *http; /* http/server.c's */
};

/* For a handler that found the database locked before it changed anything: it is called again soon.
 * False: SBX_HTTP_LOCKED_S have passed. It must answer. */
bool sbx_call_again(struct sbx_call *call);

/* Parameters. NULL, @otherwise: it was not given. */
const char *sbx_call_text(const struct sbx_call *call, const char *name);
int64_t sbx_call_number(const struct sbx_call *call, const char *name, int64_t otherwise);

/* A header of the answer, before the answer. */
void sbx_reply_header(struct sbx_call *call, const char *name, const char *value);

/* @value is taken. NULL stands for no memory: 500. */
void sbx_reply_json(struct sbx_call *call, int status, json_t *value_take);
void sbx_reply_empty(struct sbx_call *call, int status);
/* @text is copied. */
void sbx_reply_text(struct sbx_call *call, int status, const char *media, const char *text,
		    size_t n);
/* The descriptor of a regular file is taken. */
void sbx_reply_file(struct sbx_call *call, const char *media, int fd_take, uint64_t size);

/* A problem document (RFC 9457). @code is one word for programs, @field the member or parameter
 * that is wrong, or NULL; the text one sentence. */
void sbx_reply_problem(struct sbx_call *call, int status, const char *code, const char *field,
		       const char *fmt, ...) __attribute__((format(printf, 5, 6)));
/* 404, with the same words for what is not there and what the caller may not see. */
void sbx_reply_unknown(struct sbx_call *call, const char *what);

/* --- server-sent events --- */

#define SBX_STREAM_QUEUE_MAX 262144 /* bytes that a client has not taken */
#define SBX_STREAM_ALIVE_S   15	    /* a comment is sent after so long without an event */

struct sbx_stream;

/* Answers with a stream. @closed is called once when it has ended, by either side, and the stream
 * is not valid afterwards. The stream ends with the caller's credentials. NULL: no memory, or the
 * caller has too many; the call was answered, and @closed is not called. */
struct sbx_stream *sbx_reply_stream(struct sbx_call *call, void (*closed)(void *userdata),
				    void *userdata);
/* Sends an event. @id, @event: NULL leaves the line out. @data has no newline. 0; -ENOBUFS: the
 * client is too slow, the event was dropped. */
int sbx_stream_send(struct sbx_stream *s, const char *event, const char *id, const char *data);
/* The same with a JSON document, which is taken; NULL stands for no memory: -ENOMEM. */
int sbx_stream_send_json(struct sbx_stream *s, const char *event, const char *id,
			 json_t *data_take);
/* Calls @more whenever the client has taken everything; it may send events, and end the stream. */
void sbx_stream_pull(struct sbx_stream *s, void (*more)(void *userdata));
/* Bytes that the client has not taken. */
size_t sbx_stream_waiting(const struct sbx_stream *s);
/* The stream ends when everything that was sent is delivered. */
void sbx_stream_end(struct sbx_stream *s);

#endif
