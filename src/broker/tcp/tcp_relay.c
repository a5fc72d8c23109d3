/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Carries bytes.
 *
 * Each direction reads from one socket and writes to the other at once. Small messages are copied
 * through one buffer that all flows share: a recv and a send cost less than two splices. A read
 * that fills the buffer switches the direction to splicing through a pipe, where the kernel moves
 * pages and copies nothing; a splice that moves little switches it back. Bytes that do not fit the
 * other socket stay in the pipe, or in a spill buffer of exactly their size. Nothing more is read
 * until they are written: the sender feels the backpressure, and a flow holds at most a pipe or a
 * buffer each way.
 *
 * Pipes come from a small pool, and a flow holds one only while bytes are in it: an idle flow has
 * two sockets and its struct. Pipes use the file descriptors that the flows leave free; without a
 * pipe a direction copies. A flow gets TURNS turns per event, then waits for the next round of the
 * loop, so that a bulk transfer does not starve other flows.
 *
 * End of file is passed on in each direction by itself (half-close); a reset is passed on as a
 * reset.
 *
 * The loop reports data and a reset behind them as one edge, readable and writable. So a short read
 * does not show that nothing is left to read: only EAGAIN does.
 */

#include "broker/tcp/tcp_flow.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"

#define TURNS	   8		 /* reads per direction and event */
#define SPLICE_MAX (1024 * 1024) /* bytes asked of one splice */
#define PIPE_BYTES (256 * 1024)	 /* 64 slots; a slot takes a fragment of up to 32 KiB */
#define POOL_MAX   8		 /* empty pipes kept */

/* --- pipes --- */

static struct sbx_pipe *pipe_get(struct sbx_tcp *t)
{
	struct sbx_pipe *p = t->pipes;
	int fds[2];

	if (p) {
		t->pipes = p->next;
		t->n_pipes--;
		return p;
	}
	p = t->n_pipes_open < t->ctx->n_pipes_max ? malloc(sizeof(*p)) : NULL;
	if (!p)
		return NULL;
	if (pipe2(fds, O_NONBLOCK | O_CLOEXEC) < 0) {
		free(p);
		return NULL;
	}
	*p = (struct sbx_pipe){ .r = fds[0], .w = fds[1] };
	t->n_pipes_open++;
	fcntl(p->w, F_SETPIPE_SZ, PIPE_BYTES); /* past the user's limit the size stays as it is */
	return p;
}

static void pipe_free(struct sbx_tcp *t, struct sbx_pipe *p)
{
	t->n_pipes_open--;
	sbx_fd_close(p->r);
	sbx_fd_close(p->w);
	free(p);
}

/* Puts an empty pipe back into the pool. */
static void pipe_put(struct sbx_tcp *t, struct sbx_pipe *p)
{
	if (t->n_pipes == POOL_MAX) {
		pipe_free(t, p);
		return;
	}
	p->next = t->pipes;
	t->pipes = p;
	t->n_pipes++;
}

void sbx_tcp_pipes_free(struct sbx_tcp *t)
{
	while (t->pipes)
		pipe_free(t, pipe_get(t));
}

void sbx_tcp_dir_fini(struct sbx_tcp *t, struct sbx_tcp_dir *d)
{
	if (d->pipe && d->n_pipe)
		pipe_free(t, d->pipe);
	else if (d->pipe)
		pipe_put(t, d->pipe);
	d->pipe = NULL;
	free(d->spill);
	d->spill = NULL;
	sbx_http_gate_free(d->gate);
	d->gate = NULL;
	sbx_tls_gate_free(d->tls);
	d->tls = NULL;
}

/* --- moving --- */

void sbx_tcp_relay_preload(struct sbx_tcp_dir *d, uint8_t *p, size_t at, size_t n)
{
	free(d->spill);
	d->spill = p;
	d->spill_at = at;
	d->n_spill = n;
}

enum sbx_pump sbx_tcp_recv(struct sbx_tcp_side *s, void *p, size_t n, size_t *ret_n)
{
	ssize_t r;

	do {
		r = recv(s->fd, p, n, 0);
	} while (r < 0 && errno == EINTR);
	if (r < 0) {
		if (errno != EAGAIN)
			return SBX_PUMP_RESET;
		s->readable = false;
		return SBX_PUMP_WAIT;
	}
	*ret_n = (size_t)r;
	return SBX_PUMP_ON;
}

/* Writes to a side. *ret_n: bytes written. */
static enum sbx_pump write_some(struct sbx_tcp_side *s, const uint8_t *p, size_t n, size_t *ret_n)
{
	*ret_n = 0;
	while (n && s->writable) {
		ssize_t r = send(s->fd, p, n, MSG_NOSIGNAL);

		if (r < 0) {
			if (errno == EINTR)
				continue;
			if (errno != EAGAIN)
				return SBX_PUMP_RESET;
			s->writable = false;
			break;
		}
		*ret_n += (size_t)r;
		p += r;
		n -= (size_t)r;
	}
	return n ? SBX_PUMP_WAIT : SBX_PUMP_ON;
}

enum sbx_pump sbx_tcp_put(struct sbx_tcp_dir *d, const uint8_t *p, size_t n)
{
	size_t n_went;
	enum sbx_pump r = write_some(d->dst, p, n, &n_went);

	d->n_bytes += n_went;
	if (r != SBX_PUMP_WAIT)
		return r;
	d->spill = malloc(n - n_went);
	if (!d->spill)
		return SBX_PUMP_RESET;
	memcpy(d->spill, p + n_went, n - n_went);
	d->spill_at = 0;
	d->n_spill = n - n_went;
	d->bulk = true;
	return SBX_PUMP_WAIT;
}

/* Writes the bytes in flight. ON: none is left. */
static enum sbx_pump flush(struct sbx_tcp *t, struct sbx_tcp_dir *d)
{
	if (d->n_spill) {
		size_t n_went;
		enum sbx_pump r = write_some(d->dst, d->spill + d->spill_at, d->n_spill, &n_went);

		d->n_bytes += n_went;
		d->spill_at += n_went;
		d->n_spill -= n_went;
		if (r != SBX_PUMP_ON)
			return r;
	}
	free(d->spill);
	d->spill = NULL;
	while (d->n_pipe && d->dst->writable) {
		ssize_t n = splice(d->pipe->r, NULL, d->dst->fd, NULL, d->n_pipe,
				   SPLICE_F_MOVE | SPLICE_F_NONBLOCK);

		if (n > 0) {
			d->n_pipe -= (size_t)n;
			d->n_bytes += (uint64_t)n;
		} else if (n < 0 && errno == EAGAIN) {
			d->dst->writable = false;
		} else if (n == 0 || errno != EINTR) {
			return SBX_PUMP_RESET;
		}
	}
	if (d->n_pipe)
		return SBX_PUMP_WAIT;
	if (d->pipe)
		pipe_put(t, d->pipe);
	d->pipe = NULL;
	return SBX_PUMP_ON;
}

enum sbx_pump sbx_tcp_splice(struct sbx_tcp *t, struct sbx_tcp_dir *d, size_t max, size_t *ret_n)
{
	ssize_t n;

	*ret_n = 0;
	if (!d->pipe)
		d->pipe = pipe_get(t);
	if (!d->pipe) { /* no fds for a pipe: go on copying */
		d->bulk = false;
		return SBX_PUMP_ON;
	}
	do {
		n = splice(d->src->fd, NULL, d->pipe->w, NULL, max < SPLICE_MAX ? max : SPLICE_MAX,
			   SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
	} while (n < 0 && errno == EINTR);
	if (n < 0 && errno != EAGAIN)
		return SBX_PUMP_RESET;
	if (n < 0)
		d->src->readable = false;
	if (n == 0)
		d->eof = true;
	if (n > 0) {
		d->n_pipe = (size_t)n;
		*ret_n = (size_t)n;
	}
	d->bulk = n >= SBX_COPY_MAX / 2;
	return flush(t, d);
}

static enum sbx_pump copy(struct sbx_context *ctx, struct sbx_tcp_dir *d)
{
	size_t n;
	enum sbx_pump r = sbx_tcp_recv(d->src, ctx->copy, sizeof(ctx->copy), &n);

	if (r != SBX_PUMP_ON)
		return r;
	if (n == 0) {
		d->eof = true;
		return SBX_PUMP_ON;
	}
	d->bulk = n == sizeof(ctx->copy);
	return sbx_tcp_put(d, ctx->copy, n);
}

/* --- a direction, a flow --- */

static bool in_flight(const struct sbx_tcp_dir *d)
{
	return d->n_spill || d->n_pipe;
}

static enum sbx_pump pump(struct sbx_tcp_flow *f, struct sbx_tcp_dir *d)
{
	for (int turn = 0; turn < TURNS; turn++) {
		enum sbx_pump r = flush(f->t, d);
		size_t n;

		if (r != SBX_PUMP_ON)
			return r;
		if (d->eof || d->stop)
			return SBX_PUMP_WAIT;
		if (d->gate)
			r = sbx_http_gate_pump(f, d);
		else if (d->tls)
			r = sbx_tls_gate_pump(f, d);
		else if (!d->src->readable)
			return SBX_PUMP_WAIT;
		else
			r = d->bulk ? sbx_tcp_splice(f->t, d, SPLICE_MAX, &n) : copy(f->ctx, d);
		if (r == SBX_PUMP_RESET)
			return r;
		if (r == SBX_PUMP_WAIT && !d->src->readable)
			return r;
	}
	return SBX_PUMP_ON;
}

/* Passes on each direction's end once all bytes before it are written. False: the flow is gone. */
static bool pass_on_eof(struct sbx_tcp_flow *f)
{
	struct sbx_tcp_dir *dirs[] = { &f->up, &f->down };
	bool over[2];

	for (size_t i = 0; i < 2; i++)
		over[i] = (dirs[i]->eof || dirs[i]->stop) && !in_flight(dirs[i]);
	if (f->state == SBX_TCP_DRAINING && over[1])
		return sbx_http_gate_refuse(f);
	if (over[0] && over[1]) {
		sbx_tcp_finish(f);
		return false;
	}
	for (size_t i = 0; i < 2; i++)
		if (over[i] && !dirs[i]->done) {
			dirs[i]->done = true;
			shutdown(dirs[i]->dst->fd, SHUT_WR);
		}
	return true;
}

/* Was d->src reset while we do not read from it? We do not after its end, after d->stop, and (from
 * a client) while its bytes wait for room at the server. A server's bytes before its reset are
 * passed on first. */
static bool is_reset_unread(const struct sbx_tcp_dir *d, bool from_client)
{
	struct pollfd p = { .fd = d->src->fd };

	if (!d->src->readable || (in_flight(d) ? !from_client : !d->eof && !d->stop))
		return false;
	return poll(&p, 1, 0) == 1 &&
	       p.revents & POLLERR; /* SO_ERROR would also show errors that TCP survives */
}

bool sbx_tcp_relay_event(struct sbx_tcp_flow *f)
{
	struct sbx_tcp_dir *said = f->inside ? &f->down : &f->up,
			   *answered = f->inside ? &f->up : &f->down;
	enum sbx_pump forth = pump(f, said), back;

	if (forth == SBX_PUMP_RESET) /* maybe the server reset it, and sent the reason before */
		answered->src->readable = true;
	back = pump(f, answered);
	if (forth == SBX_PUMP_RESET || back == SBX_PUMP_RESET || is_reset_unread(said, true) ||
	    is_reset_unread(answered, false)) {
		sbx_tcp_abort(f);
		return false;
	}
	if (!pass_on_eof(f))
		return false;
	if (back == SBX_PUMP_ON || forth == SBX_PUMP_ON)
		sbx_tcp_again(f);
	if (f->state == SBX_TCP_RELAYING && !f->inside)
		sbx_timer_arm(&f->ctx->timers, SBX_TIMER_IDLE, &f->timeout);
	return true;
}

bool sbx_tcp_relay_start(struct sbx_tcp_flow *f)
{
	if (f->target.verdict.terminate)
		return sbx_tcp_terminate_start(f);
	f->state = SBX_TCP_RELAYING;
	f->carried = true;
	f->in.writable = true;
	return sbx_tcp_relay_event(f);
}
