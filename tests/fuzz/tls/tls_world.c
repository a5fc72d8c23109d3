/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Drives one connection of src/tls (tls_world.h). After each step the event loop runs until nothing
 * is left to do. No time passes: timers never fire, and the end of the input stands for them.
 */
#include "tests/fuzz/tls/tls_world.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "tests/fuzz/fuzz.h"
#include "tls/conn/conn.h"
#include "tls/http1/http1.h"
#include "tls/http2/http2.h"

/* A loop's rounds without a byte moved, of a connection that asks for another turn. */
#define IDLE_ROUNDS_MAX 64
/* Rounds of one step: each moves bytes. */
#define ROUNDS_MAX (1 << 16)
/* Bytes queued to a side: the limit, what one turn can add to it, and a held body. */
#define WAITING_MAX (4u << 20)
#define STREAM_MAX  (4u * SBX_HTTP2_WINDOW)
/* Bytes that one input brings by TLS_*_ZEROS. */
#define ZEROS_MAX (4u << 20)
#define FLOW 1 /* the connection's number */

#define SPAN(s)                                                                                    \
	{                                                                                          \
		(const uint8_t *)(s), sizeof(s) - 1                                                \
	}

static struct sbx_span own[] = { SPAN(TLS_WORLD_HOST) }, other[] = { SPAN("other.example") },
		       line[] = { SPAN("X-Set: by-entry") };

static struct sbx_http_secret secrets[] = {
	{
		.name = SPAN("ONE"),
		.placeholder = SPAN(TLS_WORLD_PLACEHOLDER),
		.value = SPAN(TLS_WORLD_VALUE_ONE),
		.hosts = { 1, own },
		.in = SBX_HTTP_IN_ALL,
	},
	{
		.name = SPAN("TWO"),
		.placeholder = SPAN("sbx_secret_0123456789abcdef02"),
		.value = SPAN(TLS_WORLD_VALUE_TWO),
		.hosts = { 1, other },
		.in = SBX_HTTP_IN_ALL,
		.detect = 1,
	},
	{
		.name = SPAN("THREE"),
		.placeholder = SPAN("sbx_secret_0123456789abcdef03"),
		.value = SPAN(TLS_WORLD_VALUE_THREE),
		.hosts = { 1, own },
		.inject = SBX_HTTP_INJECT_HEADER,
		.override = 1,
		.header = SPAN("Authorization"),
		.template_text = SPAN("Bearer ${secret}"),
	},
	{
		.name = SPAN("FOUR"),
		.placeholder = SPAN(TLS_WORLD_AWS_ID),
		.value = SPAN("AKIDREAL:" TLS_WORLD_AWS_KEY),
		.hosts = { 1, own },
		.inject = SBX_HTTP_INJECT_AWS_SIGV4,
		.in = SBX_HTTP_IN_HEADER,
	},
};
static const struct sbx_span value_one = SPAN(TLS_WORLD_VALUE_ONE),
			     value_rotated = SPAN(TLS_WORLD_VALUE_ROTATED);

static struct sbx_http_entry entries[] = {
	{ .text = SPAN("api.example"),
	  .host = SPAN(TLS_WORLD_HOST),
	  .websocket = 1,
	  .headers = { 1, line } },
	{ .text = SPAN("other.example"), .host = SPAN("other.example") },
};

/* The peers of the connection. */
struct peers {
	struct tls_world *w;
	struct sbx_tls_context *ctx;
	int client, server, broker, launcher; /* -1: closed */
	bool client_paused, server_paused;
	size_t n_zeros;
};

/* --- output --- */

static void append(struct tls_world_output *o, const uint8_t *p, size_t n)
{
	if (o->n + n > o->n_max) {
		o->n_max = 2 * (o->n + n) + 4096;
		o->p = realloc(o->p, o->n_max);
		CHECK(o->p);
	}
	memcpy(o->p + o->n, p, n);
	o->n += n;
}

/* True: bytes came. */
static bool drain(int fd, struct tls_world_output *o)
{
	uint8_t buf[65536];
	bool moved = false;
	ssize_t n;

	while (fd >= 0 && (n = recv(fd, buf, sizeof(buf), MSG_DONTWAIT)) > 0) {
		moved = true;
		if (o)
			append(o, buf, (size_t)n);
	}
	return moved;
}

/* What sbx-tls tells the broker. */
static void drain_broker(struct peers *p)
{
	uint8_t buf[65536];
	struct sbx_msg_tls_done done;
	ssize_t n;

	while (p->broker >= 0 && (n = recv(p->broker, buf, sizeof(buf), MSG_DONTWAIT)) > 0) {
		if (sbx_msg_decode_tls_done(sbx_span(buf, (size_t)n), &done) < 0)
			continue;
		CHECK(done.flow == FLOW);
		p->w->n_done++;
	}
}

static bool drain_all(struct peers *p)
{
	bool moved = !p->client_paused && drain(p->client, &p->w->to_client);

	moved |= !p->server_paused && drain(p->server, &p->w->to_server);
	drain_broker(p);
	drain(p->launcher, NULL);
	return moved;
}

/* --- the loop --- */

static void check_limits(const struct peers *p)
{
	const struct sbx_conn *c = p->ctx->first;
	const struct sbx_http2 *h;

	if (!c)
		return;
	CHECK(sbx_side_waiting(&c->client) <= WAITING_MAX);
	CHECK(sbx_side_waiting(&c->server) <= WAITING_MAX);
	h = c->http;
	if (!p->w->is_h2 || c->state != SBX_CONN_SERVING || !h)
		return;
	CHECK(h->n_streams <= 2 * SBX_HTTP2_STREAMS_MAX);
	for (const struct sbx_http2_stream *s = h->first; s; s = s->next) {
		CHECK(s->up.n - s->up.at <= STREAM_MAX);
		CHECK(s->down.n - s->down.at <= STREAM_MAX);
	}
}

/* A stream whose server is done has an answer, or is gone: no client waits for nothing. */
static void check_answered(const struct peers *p)
{
	const struct sbx_conn *c = p->ctx->first;
	const struct sbx_http2 *h = c ? c->http : NULL;

	if (!h || !p->w->is_h2 || c->state != SBX_CONN_SERVING || p->client_paused ||
	    sbx_side_waiting(&c->client))
		return;
	for (const struct sbx_http2_stream *s = h->first; s; s = s->next)
		CHECK(s->up_id < 0 || s->up_open || !s->down_open || (s->replied && s->down.end));
}

static uint64_t moved_bytes(const struct sbx_conn *c)
{
	return c->client.n_read + c->client.n_written + c->server.n_read + c->server.n_written;
}

static bool wants_turn(const struct sbx_conn *c)
{
	return event_pending(&c->turn, EV_TIMEOUT, NULL);
}

/* Does the connection wait for an event that will come? A socket has none while it takes bytes, or
 * has some to be read: its events are edge-triggered. */
static void check_side(const struct sbx_side *side, nghttp2_session *session)
{
	bool waits = sbx_side_waiting(side) > 0;
	struct pollfd room = { .fd = side->fd, .events = POLLOUT };

	if (side->fd < 0)
		return;
	if (waits || nghttp2_session_want_write(session))
		CHECK(poll(&room, 1, 0) == 0);
	CHECK(!side->readable || side->at_end || waits);
}

static void check_waits(const struct peers *p)
{
	const struct sbx_conn *c = p->ctx->first;
	const struct sbx_http2 *h = c ? c->http : NULL;

	if (!h || !p->w->is_h2 || c->state != SBX_CONN_SERVING || wants_turn(c))
		return;
	check_side(&c->client, h->down);
	if (h->up && !h->lost)
		check_side(&c->server, h->up);
}

/* Runs the loop until the connection waits for its peers. */
static void settle(struct peers *p)
{
	unsigned n_rounds = 0, n_idle = 0;
	bool moved;

	do {
		uint64_t before = p->ctx->first ? moved_bytes(p->ctx->first) : 0;

		event_base_loop(p->ctx->base, EVLOOP_NONBLOCK);
		check_limits(p);
		check_waits(p);
		moved = drain_all(p);
		moved |= p->ctx->first && moved_bytes(p->ctx->first) != before;
		n_idle = moved ? 0 : n_idle + 1;
		CHECK(n_idle < IDLE_ROUNDS_MAX); /* turns without end */
		CHECK(++n_rounds < ROUNDS_MAX);
	} while (p->ctx->first && (moved || wants_turn(p->ctx->first)));
	drain_all(p);
	check_answered(p);
}

/* --- steps --- */

/* Gives up where the connection does not read, as a peer would wait. */
static void send_all(struct peers *p, int fd, struct sbx_span bytes)
{
	while (fd >= 0 && bytes.n) {
		ssize_t n = send(fd, bytes.p, bytes.n, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0 && errno != EAGAIN)
			return;
		if (n > 0)
			bytes = sbx_span(bytes.p + n, bytes.n - (size_t)n);
		settle(p);
		if (n < 0 && send(fd, bytes.p, 0, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
			return;
		if (n < 0) {
			n = send(fd, bytes.p, bytes.n, MSG_DONTWAIT | MSG_NOSIGNAL);
			if (n <= 0)
				return;
			bytes = sbx_span(bytes.p + n, bytes.n - (size_t)n);
		}
	}
	settle(p);
}

/* The bytes and the end, before the loop turns. */
static void send_last(int fd, struct sbx_span bytes)
{
	if (fd < 0)
		return;
	if (bytes.n)
		(void)!send(fd, bytes.p, bytes.n, MSG_DONTWAIT | MSG_NOSIGNAL);
	shutdown(fd, SHUT_WR);
}

static void send_frame(struct peers *p, int fd, const uint8_t head[3], struct sbx_span payload)
{
	uint8_t frame[9 + 65535] = { 0, (uint8_t)(payload.n >> 8), (uint8_t)payload.n, head[0],
				     head[1], 0, 0, 0, head[2] };

	if (payload.n)
		memcpy(frame + 9, payload.p, payload.n);
	send_all(p, fd, sbx_span(frame, 9 + payload.n));
}

static void send_zeros(struct peers *p, int fd, size_t n_kib)
{
	static const uint8_t head[3] = { 0, 0, 1 };
	uint8_t data[16384];

	memset(data, 'a', sizeof(data));
	for (size_t n = n_kib * 1024; n && p->n_zeros < ZEROS_MAX && p->ctx->first;) {
		size_t part = n < sizeof(data) ? n : sizeof(data);

		p->n_zeros += part;
		n -= part;
		if (p->w->is_h2)
			send_frame(p, fd, head, sbx_span(data, part));
		else
			send_all(p, fd, sbx_span(data, part));
	}
}

static void take(struct sbx_span *in, void *ret, size_t n)
{
	memset(ret, 0, n);
	if (n > in->n)
		n = in->n;
	if (n)
		memcpy(ret, in->p, n);
	*in = sbx_span(in->p + n, in->n - n);
}

static size_t take_u16(struct sbx_span *in)
{
	uint8_t b[2];

	take(in, b, 2);
	return (size_t)b[0] << 8 | b[1];
}

static struct sbx_span take_bytes(struct sbx_span *in)
{
	size_t n = take_u16(in);
	struct sbx_span s;

	if (n > in->n)
		n = in->n;
	s = sbx_span(in->p, n);
	*in = sbx_span(in->p + n, in->n - n);
	return s;
}

static bool has_ended(int fd)
{
	uint8_t byte;

	return fd < 0 || recv(fd, &byte, 1, MSG_DONTWAIT) == 0 || errno == ECONNRESET;
}

/* The peers have all that was written before. From here on they get their end and no byte, and the
 * broker is told at once. */
static void cut(struct peers *p)
{
	size_t n_done = p->w->n_done;

	p->client_paused = p->server_paused = false;
	drain_all(p);
	p->w->cut = p->ctx->first != NULL;
	sbx_conn_cut(p->ctx, FLOW + 1); /* another one's */
	CHECK(!p->w->cut || p->ctx->first);
	sbx_conn_cut(p->ctx, FLOW);
	CHECK(!p->ctx->first && p->ctx->n_conns == 0);
	CHECK(has_ended(p->client) && has_ended(p->server));
	sbx_conn_cut(p->ctx, FLOW); /* it may have ended by itself meanwhile */
	event_base_loop(p->ctx->base, EVLOOP_NONBLOCK);
	CHECK(!drain_all(p));
	CHECK(p->w->n_done == n_done + p->w->cut);
}

static void take_step(struct peers *p, struct sbx_span *in)
{
	uint8_t step, head[3];

	take(in, &step, 1);
	switch (step % TLS_N_STEPS) {
	case TLS_CLIENT:
		send_all(p, p->client, take_bytes(in));
		break;
	case TLS_SERVER:
		send_all(p, p->server, take_bytes(in));
		break;
	case TLS_CLIENT_FRAME:
		take(in, head, sizeof(head));
		send_frame(p, p->client, head, take_bytes(in));
		break;
	case TLS_SERVER_FRAME:
		take(in, head, sizeof(head));
		send_frame(p, p->server, head, take_bytes(in));
		break;
	case TLS_CLIENT_END:
		shutdown(p->client, SHUT_WR);
		break;
	case TLS_SERVER_END:
		if (p->server >= 0)
			shutdown(p->server, SHUT_WR);
		break;
	case TLS_CLIENT_PAUSE:
		p->client_paused = !p->client_paused;
		break;
	case TLS_SERVER_PAUSE:
		p->server_paused = !p->server_paused;
		break;
	case TLS_CLIENT_RESET:
		p->client = sbx_fd_close(p->client);
		break;
	case TLS_SERVER_RESET:
		p->server = sbx_fd_close(p->server);
		break;
	case TLS_CLIENT_ZEROS:
		send_zeros(p, p->client, take_u16(in));
		break;
	case TLS_SERVER_ZEROS:
		send_zeros(p, p->server, take_u16(in));
		break;
	case TLS_CLIENT_LAST:
		send_last(p->client, take_bytes(in));
		break;
	case TLS_SERVER_LAST:
		send_last(p->server, take_bytes(in));
		break;
	case TLS_CUT:
		cut(p);
		break;
	default:
		CHECK(sbx_tls_replace_value(p->ctx, 0, value_rotated) == 0);
		break;
	}
	settle(p);
}

/* --- the connection --- */

/* Made once: what a connection leaves in it would be found by the next. */
static struct sbx_tls_context *context(void)
{
	static struct sbx_tls_context ctx;

	if (ctx.base)
		return &ctx;
	ctx.base = event_base_new();
	CHECK(ctx.base);
	ctx.http1 = &sbx_http1;
	ctx.http2 = &sbx_http2;
	memcpy(ctx.rules.id, "0123456789ab", sizeof(ctx.rules.id));
	ctx.rules.head_bytes = 16384;
	ctx.rules.entries = entries;
	ctx.rules.n_entries = SBX_N_ELEMENTS(entries);
	ctx.rules.secrets = secrets;
	return &ctx;
}

static void open_pair(int type, int *ret_ours, int *ret_theirs)
{
	int fds[2];

	CHECK(socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, fds) == 0);
	*ret_ours = fds[0];
	*ret_theirs = fds[1];
}

static void open_conn(struct peers *p)
{
	struct sbx_msg_tls_flow flow = { .flow = FLOW, .port = 443, .name = TLS_WORLD_HOST };
	struct sbx_conn *c;
	int fds[2];

	open_pair(SOCK_STREAM, &p->client, &fds[0]);
	open_pair(SOCK_STREAM, &p->server, &fds[1]);
	open_pair(SOCK_SEQPACKET, &p->broker, &p->ctx->broker_fd);
	open_pair(SOCK_SEQPACKET, &p->launcher, &p->ctx->launcher_fd);
	entries[0].access = p->w->flags & TLS_WORLD_READ_ONLY ? SBX_HTTP_ACCESS_READ_ONLY :
								  SBX_HTTP_ACCESS_ANY;
	entries[0].max_request_bytes = p->w->flags & TLS_WORLD_SMALL ? TLS_WORLD_SMALL_BYTES :
								       4u << 20;
	p->ctx->rules.n_secrets = p->w->flags & TLS_WORLD_OPEN ? 0 : SBX_N_ELEMENTS(secrets);
	memset(p->ctx->asked_s, 0, sizeof(p->ctx->asked_s));
	sbx_conn_new(p->ctx, &flow, fds);
	c = p->ctx->first;
	CHECK(c);
	c->tls = true;
	strcpy(c->authority, TLS_WORLD_HOST); /* of TLS, on its own port */
	c->h2 = p->w->is_h2;
	if (p->w->flags & TLS_WORLD_BROKEN) {
		c->broken = (struct sbx_http_verdict){ .reason = SBX_REASON_UPSTREAM_FAILED,
						       .status = 502, .text = "broken" };
		sbx_side_fini(&c->server);
		p->server = sbx_fd_close(p->server);
	}
	settle(p);
}

static void send_prefaces(struct peers *p)
{
	static const uint8_t client[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0",
			     server[] = "\0\0\0\4\0\0\0\0\0";

	send_all(p, p->client, sbx_span(client, sizeof(client) - 1));
	send_all(p, p->server, sbx_span(server, sizeof(server) - 1));
}

/* Undoes TLS_ROTATE. */
static void restore_value(void)
{
	if (!secrets[0].before.n)
		return;
	munmap((void *)(uintptr_t)secrets[0].value.p, secrets[0].value.n);
	secrets[0].value = value_one;
	secrets[0].before = sbx_span(NULL, 0);
}

/* The peers end; a connection that waits for longer is ended as its timer would. */
static void close_conn(struct peers *p)
{
	p->client_paused = p->server_paused = false;
	settle(p);
	if (p->server >= 0)
		shutdown(p->server, SHUT_WR);
	settle(p);
	if (p->client >= 0)
		shutdown(p->client, SHUT_WR);
	settle(p);
	p->w->lives = p->ctx->first != NULL;
	if (p->ctx->first)
		sbx_conn_abort(p->ctx->first);
	CHECK(!p->ctx->first && p->ctx->n_conns == 0 && p->ctx->exit_status == 0);
	drain_all(p);
	CHECK(p->w->n_done == 1);
	sbx_fd_close(p->client);
	sbx_fd_close(p->server);
	sbx_fd_close(p->broker);
	sbx_fd_close(p->launcher);
	sbx_fd_close(p->ctx->broker_fd);
	sbx_fd_close(p->ctx->launcher_fd);
	restore_value();
}

void tls_world_run(struct tls_world *w, struct sbx_span input)
{
	struct peers p = { .w = w, .ctx = context() };

	take(&input, &w->flags, 1);
	open_conn(&p);
	if (w->is_h2 && !(w->flags & TLS_WORLD_BARE))
		send_prefaces(&p);
	while (input.n && p.ctx->first)
		take_step(&p, &input);
	close_conn(&p);
}

void tls_world_fini(struct tls_world *w)
{
	free(w->to_client.p);
	free(w->to_server.p);
}
