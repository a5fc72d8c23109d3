/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Server-sent events (WHATWG HTML, 9.2). Events wait in a bounded buffer until the client takes
 * them. libmicrohttpd asks for bytes; if there are none, its connection is suspended until the next
 * event. A suspended connection does not notice that its client is gone: the comment that is sent
 * from time to time does.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "daemon/http/listener.h"
#include "daemon/http/request.h"

#define BLOCK 4096

struct sbx_stream {
	struct sbx_http_listener *listener;
	struct MHD_Connection *connection;
	struct sbx_stream *next, **where; /* in the server's list */
	struct sbx_principal principal;
	struct event *alive;
	char *buf; /* SBX_STREAM_QUEUE_MAX of room; [at, n) is not taken yet */
	size_t at, n;
	bool suspended, ended;
	void (*closed)(void *userdata);
	void (*more)(void *userdata); /* NULL: events come by themselves */
	void *userdata;
};

static void wake(struct sbx_stream *s)
{
	if (s->suspended)
		sbx_connection_resume(s->listener, s->connection);
	s->suspended = false;
}

static int append(struct sbx_stream *s, const char *p, size_t n)
{
	if (s->at > 0) {
		memmove(s->buf, s->buf + s->at, s->n - s->at);
		s->n -= s->at;
		s->at = 0;
	}
	if (n > SBX_STREAM_QUEUE_MAX - s->n)
		return -ENOBUFS;
	memcpy(s->buf + s->n, p, n);
	s->n += n;
	return 0;
}

static ssize_t read_block(void *cls, uint64_t pos, char *buf, size_t max)
{
	struct sbx_stream *s = cls;
	size_t n;

	(void)pos;
	if (s->at == s->n && s->more && !s->ended)
		s->more(s->userdata);
	n = s->n - s->at < max ? s->n - s->at : max;
	memcpy(buf, s->buf + s->at, n);
	s->at += n;
	if (n > 0)
		return (ssize_t)n;
	if (s->ended)
		return MHD_CONTENT_READER_END_OF_STREAM;
	s->suspended = true;
	MHD_suspend_connection(s->connection);
	return 0;
}

static void keep_alive(evutil_socket_t fd, short what, void *userdata)
{
	struct sbx_stream *s = userdata;

	(void)fd;
	(void)what;
	if (s->at == s->n && append(s, ":\n\n", 3) == 0)
		wake(s);
}

static void stream_free(void *cls)
{
	struct sbx_stream *s = cls;

	*s->where = s->next;
	if (s->next)
		s->next->where = s->where;
	if (s->closed)
		s->closed(s->userdata);
	s->listener->http->stats.n_streams--;
	if (s->alive)
		event_free(s->alive);
	free(s->buf);
	free(s);
}

/* NULL: no memory. */
static struct sbx_stream *stream_new(struct sbx_http_request *r)
{
	static const struct timeval interval = { .tv_sec = SBX_STREAM_ALIVE_S };
	struct sbx_stream *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->listener = r->listener;
	s->listener->http->stats.n_streams++;
	s->connection = r->connection;
	s->principal = r->call.principal;
	s->where = &r->listener->http->streams;
	s->next = *s->where;
	if (s->next)
		s->next->where = &s->next;
	*s->where = s;
	s->buf = malloc(SBX_STREAM_QUEUE_MAX);
	s->alive = event_new(r->listener->http->o.base, -1, EV_PERSIST, keep_alive, s);
	if (s->buf && s->alive && event_add(s->alive, &interval) == 0)
		return s;
	stream_free(s);
	return NULL;
}

void sbx_streams_judge(struct sbx_http *h)
{
	struct sbx_stream *next;

	for (struct sbx_stream *s = h->streams; s; s = next) {
		next = s->next;
		if (!sbx_access_holds(h->o.access, &s->principal))
			sbx_stream_end(s);
	}
}

static bool is_same(const struct sbx_principal *a, const struct sbx_principal *b)
{
	return a->uid == b->uid && strcmp(a->token, b->token) == 0 &&
	       strcmp(a->session, b->session) == 0;
}

static bool has_too_many(struct sbx_http_request *r)
{
	const struct sbx_principal *p = &r->call.principal;
	size_t n = 0;

	if (p->is_own)
		return false;
	for (const struct sbx_stream *s = r->listener->http->streams; s; s = s->next)
		n += is_same(&s->principal, p);
	return n >= SBX_ACCESS_STREAMS_MAX;
}

struct sbx_stream *sbx_reply_stream(struct sbx_call *call, void (*closed)(void *userdata),
				    void *userdata)
{
	struct sbx_http_request *r = call->http;
	struct sbx_stream *s;
	struct MHD_Response *response;

	if (has_too_many(r)) {
		sbx_reply_header(call, MHD_HTTP_HEADER_RETRY_AFTER, "10");
		sbx_reply_problem(call, MHD_HTTP_TOO_MANY_REQUESTS, "too_many", NULL,
				  "a caller has at most %d streams", SBX_ACCESS_STREAMS_MAX);
		return NULL;
	}
	s = stream_new(r);
	response = s ? MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK, read_block, s,
							 stream_free) :
		       NULL;

	if (!response) {
		if (s)
			stream_free(s);
		sbx_request_answer(r, MHD_HTTP_INTERNAL_SERVER_ERROR, NULL, NULL);
		return NULL;
	}
	s->closed = closed;
	s->userdata = userdata;
	sbx_reply_header(call, "X-Accel-Buffering", "no"); /* nginx would hold events back */
	/* libmicrohttpd sends the head with the first bytes of the body: not with the first event,
	 * which may be long in coming. */
	append(s, ":\n\n", 3);
	sbx_request_answer(r, MHD_HTTP_OK, response, "text/event-stream");
	return s;
}

int sbx_stream_send(struct sbx_stream *s, const char *event, const char *id, const char *data)
{
	size_t before = s->n - s->at;
	int e = 0;

	if (event) {
		e = append(s, "event: ", 7);
		e = e ? e : append(s, event, strlen(event));
		e = e ? e : append(s, "\n", 1);
	}
	if (e == 0 && id) {
		e = append(s, "id: ", 4);
		e = e ? e : append(s, id, strlen(id));
		e = e ? e : append(s, "\n", 1);
	}
	e = e ? e : append(s, "data: ", 6);
	e = e ? e : append(s, data, strlen(data));
	e = e ? e : append(s, "\n\n", 2);
	if (e)
		s->n = s->at + before; /* all of it, or nothing */
	else
		wake(s);
	return e;
}

int sbx_stream_send_json(struct sbx_stream *s, const char *event, const char *id,
			 json_t *data_take)
{
	SBX_AUTO_FREE char *text = data_take ? json_dumps(data_take, JSON_COMPACT) : NULL;

	json_decref(data_take);
	return text ? sbx_stream_send(s, event, id, text) : -ENOMEM;
}

void sbx_stream_pull(struct sbx_stream *s, void (*more)(void *userdata))
{
	s->more = more;
}

size_t sbx_stream_waiting(const struct sbx_stream *s)
{
	return s->n - s->at;
}

void sbx_stream_end(struct sbx_stream *s)
{
	s->ended = true;
	wake(s);
}
