/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * DNS over TCP (RFC 7766): many queries on one connection, answers in any order.
 *
 * At most limits.n_dns_tcp connections; the oldest makes room for a new one. A connection is closed
 * if no query is complete within limits.dns_tcp_timeout_ms of the accept or of its last query.
 * While OUT_MAX bytes of answers or more are unread, no more queries are taken from it.
 */

#include "broker/dns/dns_tcp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"

#define OUT_MAX		  65536
#define QUERIES_PER_EVENT 16

struct connection {
	struct sbx_dns_tcp *t;
	struct connection *prev, *next; /* oldest first */
	uint64_t serial;
	int fd;
	struct event ev_read, ev_write;
	struct sbx_timeout timeout;
	uint8_t in[2 + SBX_DNS_QUERY_MAX];
	size_t n_in;
	uint8_t *out; /* heap: answers not written yet, [at, n_out) */
	size_t at, n_out;
	bool eof; /* the asker shut its side: write the pending answers, then close */
};

struct sbx_dns_tcp {
	struct sbx_context *ctx;
	sbx_dns_tcp_fn message;
	void *userdata;
	struct event ev_listen[2];
	struct connection *first, *last;
	size_t n;
	uint64_t serial;
};

static void close_connection(struct connection *c)
{
	struct sbx_dns_tcp *t = c->t;

	event_del(&c->ev_read);
	event_del(&c->ev_write);
	sbx_timeout_disarm(&c->timeout);
	*(c->prev ? &c->prev->next : &t->first) = c->next;
	*(c->next ? &c->next->prev : &t->last) = c->prev;
	t->n--;
	sbx_fd_close(c->fd);
	free(c->out);
	free(c);
}

static void expire(struct sbx_timeout *t)
{
	close_connection(sbx_container_of(t, struct connection, timeout));
}

/* Writes the pending answers. False: the connection is gone. */
static bool write_pending(struct connection *c)
{
	while (c->at < c->n_out) {
		ssize_t n = send(c->fd, c->out + c->at, c->n_out - c->at, MSG_NOSIGNAL);

		if (n >= 0) {
			c->at += (size_t)n;
		} else if (errno == EAGAIN) {
			event_add(&c->ev_write, NULL);
			return true;
		} else if (errno != EINTR) {
			close_connection(c);
			return false;
		}
	}
	free(c->out);
	c->out = NULL;
	c->at = c->n_out = 0;
	return true;
}

static bool queue_answer(struct connection *c, struct sbx_span message)
{
	uint8_t *out;

	if (c->out)
		memmove(c->out, c->out + c->at, c->n_out - c->at);
	c->n_out -= c->at;
	c->at = 0;
	out = realloc(c->out, c->n_out + 2 + message.n);
	if (!out)
		return false;
	c->out = out;
	sbx_dns_tcp_prefix(message.n, out + c->n_out);
	memcpy(out + c->n_out + 2, message.p, message.n);
	c->n_out += 2 + message.n;
	return true;
}

/* Only queues the answer. on_write() writes it later, so that answering never frees a connection
 * that take_queries() is reading from. */
void sbx_dns_tcp_send(struct sbx_dns_tcp *t, uint64_t connection, struct sbx_span message)
{
	struct connection *c = t->first;

	while (c && c->serial != connection)
		c = c->next;
	if (c && message.n <= SBX_DNS_MESSAGE_MAX && queue_answer(c, message))
		event_add(&c->ev_write, NULL);
}

/* Takes the queries that are complete. False: the connection is gone. */
static bool take_queries(struct connection *c)
{
	struct sbx_dns_tcp *t = c->t;

	for (int i = 0; i < QUERIES_PER_EVENT && c->n_out < OUT_MAX; i++) {
		struct sbx_span message;
		size_t n;
		int r = sbx_dns_tcp_next(sbx_span(c->in, c->n_in), SBX_DNS_QUERY_MAX, &message, &n);

		if (r == SBX_DNS_E_MORE)
			break;
		if (r != 0) {
			close_connection(c);
			return false;
		}
		t->message(t->userdata, c->serial, message);
		memmove(c->in, c->in + n, c->n_in - n);
		c->n_in -= n;
		sbx_timer_arm(&t->ctx->timers, SBX_TIMER_DNS_TCP, &c->timeout);
	}
	return true;
}

static void on_write(evutil_socket_t fd, short what, void *userdata)
{
	struct connection *c = userdata;

	(void)fd;
	(void)what;
	if (!write_pending(c))
		return;
	if (c->n_out == 0 && c->eof)
		close_connection(c);
	else if (c->n_out < OUT_MAX && !c->eof && take_queries(c))
		event_add(&c->ev_read, NULL);
}

static void on_read(evutil_socket_t fd, short what, void *userdata)
{
	struct connection *c = userdata;
	ssize_t n = recv(fd, c->in + c->n_in, sizeof(c->in) - c->n_in, 0);

	(void)what;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n < 0) {
		close_connection(c);
		return;
	}
	if (n == 0) {
		c->eof = true;
		event_del(&c->ev_read);
		if (c->n_out == 0)
			close_connection(c);
		return;
	}
	c->n_in += (size_t)n;
	if (!take_queries(c))
		return;
	if (c->n_out >= OUT_MAX || c->n_in == sizeof(c->in))
		event_del(&c->ev_read); /* on_write goes on */
}

static void on_listen(evutil_socket_t listen_fd, short what, void *userdata)
{
	struct sbx_dns_tcp *t = userdata;
	SBX_AUTO_CLOSE int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct connection *c;

	(void)what;
	if (fd < 0)
		return;
	if (t->n >= t->ctx->config.limits.n_dns_tcp && t->first) {
		t->ctx->stats.limits_hit++;
		close_connection(t->first);
	}
	c = calloc(1, sizeof(*c));
	if (!c)
		return;
	c->t = t;
	c->serial = ++t->serial;
	c->fd = fd;
	if (event_assign(&c->ev_read, t->ctx->base, fd, EV_READ | EV_PERSIST, on_read, c) < 0 ||
	    event_assign(&c->ev_write, t->ctx->base, fd, EV_WRITE, on_write, c) < 0 ||
	    event_add(&c->ev_read, NULL) < 0) {
		free(c);
		return;
	}
	sbx_fd_steal(&fd);
	c->prev = t->last;
	*(t->last ? &t->last->next : &t->first) = c;
	t->last = c;
	t->n++;
	sbx_timer_arm(&t->ctx->timers, SBX_TIMER_DNS_TCP, &c->timeout);
}

int sbx_dns_tcp_new(struct sbx_context *ctx, sbx_dns_tcp_fn message, void *userdata,
		    struct sbx_dns_tcp **ret_t)
{
	struct sbx_dns_tcp *t = calloc(1, sizeof(*t));
	int r;

	if (!t)
		return -ENOMEM;
	*ret_t = t;
	t->ctx = ctx;
	t->message = message;
	t->userdata = userdata;
	sbx_timers_on(&ctx->timers, SBX_TIMER_DNS_TCP, ctx->config.limits.dns_tcp_timeout_ms,
		      expire);
	r = sbx_context_watch(ctx, &t->ev_listen[0], ctx->fds[SBX_BFD_DNS_TCP4], on_listen, t);
	if (r == 0)
		r = sbx_context_watch(ctx, &t->ev_listen[1], ctx->fds[SBX_BFD_DNS_TCP6], on_listen,
				      t);
	return r;
}

void sbx_dns_tcp_free(struct sbx_dns_tcp *t)
{
	if (!t)
		return;
	while (t->first)
		close_connection(t->first);
	for (size_t i = 0; i < SBX_N_ELEMENTS(t->ev_listen); i++)
		sbx_context_unwatch(&t->ev_listen[i]);
	free(t);
}
