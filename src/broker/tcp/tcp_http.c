/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The client's direction of a flow whose HTTP requests are judged: each one, also the later
 * requests of a kept-alive connection.
 *
 * Bytes that are not judged yet are held; good ones are written. As a rule a whole request is in
 * the shared buffer and goes straight on; only a partial head is kept (heap, at most
 * limits.http_head_bytes). The data of a large body is spliced without the judge.
 *
 * A refused request ends the direction: the bytes before it are still written, our side to the
 * server is shut, and the flow waits (DRAINING) until the server has answered the earlier requests
 * and closed. Then the client reads 403 or 400 in place of the answer to the refused request.
 */

#include "broker/tcp/tcp_flow.h"

#include <stdlib.h>
#include <string.h>

#include "broker/io/report.h"

struct sbx_http_gate {
	struct sbx_http_judge judge;
	uint8_t *held; /* not judged, or not written yet; heap */
	size_t n, n_max;
	size_t n_good; /* the first bytes of held, which the check judged good */
	bool refused;
	struct sbx_verdict verdict; /* refused: why */
};

struct sbx_http_gate *sbx_http_gate_new(const struct sbx_http_judge *judge, uint8_t *p, size_t n,
					size_t at)
{
	struct sbx_http_gate *g = calloc(1, sizeof(*g));

	if (!g)
		return NULL;
	g->judge = *judge;
	g->held = p;
	g->n = g->n_max = n;
	g->n_good = at;
	return g;
}

void sbx_http_gate_forget_rule(struct sbx_http_gate *g)
{
	g->verdict.rule = UINT32_MAX;
}

void sbx_http_gate_free(struct sbx_http_gate *g)
{
	if (!g)
		return;
	free(g->held);
	free(g);
}

static void refuse(struct sbx_tcp_flow *f, struct sbx_tcp_dir *d, const struct sbx_verdict *v)
{
	struct sbx_http_gate *g = d->gate;

	g->refused = true;
	g->verdict = *v;
	g->verdict.action = SBX_DENY;
	d->stop = true;
	f->state = SBX_TCP_DRAINING;
	f->ctx->stats.flows_denied++;
	sbx_report_event(f->ctx, SBX_PROTO_TCP, &g->verdict, &f->target.addr, f->target.port,
			 f->target.name);
	sbx_timer_arm(&f->ctx->timers, SBX_TIMER_DRAIN, &f->timeout);
}

/* Judges the bytes of @in. Returns how many from the start are good. *ret_opaque: all later
 * bytes of the connection are carried unjudged. */
static size_t judge_all(struct sbx_tcp_flow *f, struct sbx_tcp_dir *d, struct sbx_span in,
			bool *ret_opaque)
{
	struct sbx_http_judge *judge = &d->gate->judge;
	size_t at = 0;

	*ret_opaque = false;
	while (at < in.n) {
		struct sbx_http_event event;
		struct sbx_verdict v = { .action = SBX_ALLOW };
		int r = sbx_http_judge_next(judge, sbx_span(in.p + at, in.n - at), &event);

		if (r == SBX_HTTP_E_MORE)
			break;
		if (r != 0 || event.kind == SBX_HTTP_HEAD)
			v = sbx_core_judge_request(&f->ctx->core, &f->target, r, judge, &event,
						   ret_opaque);
		if (v.action != SBX_ALLOW) {
			refuse(f, d, &v);
			break;
		}
		if (r == 0 && event.kind == SBX_HTTP_HEAD)
			sbx_tcp_note_server(f, event.host_addr.family ? "" : event.host);
		if (*ret_opaque)
			return in.n;
		at += event.n;
	}
	return at;
}

/* Makes room in held for the longest head. */
static bool reserve(const struct sbx_tcp_flow *f, struct sbx_http_gate *g)
{
	size_t n_max = f->ctx->config.limits.http_head_bytes;
	uint8_t *held;

	if (g->n_max >= n_max)
		return true;
	held = realloc(g->held, n_max);
	if (!held)
		return false;
	g->held = held;
	g->n_max = n_max;
	return true;
}

/* Keeps the @n bytes at @p, which may lie in held itself, until more come. */
static bool hold(struct sbx_tcp_flow *f, struct sbx_http_gate *g, const uint8_t *p, size_t n)
{
	bool is_held = g->held && p >= g->held && p < g->held + g->n_max;

	g->n = n;
	if (n == 0)
		return true;
	if ((!is_held && !reserve(f, g)) || n > g->n_max)
		return false;
	memmove(g->held, p, n);
	return true;
}

static enum sbx_pump judge_and_put(struct sbx_tcp_flow *f, struct sbx_tcp_dir *d, const uint8_t *p,
				   size_t n, size_t n_good)
{
	struct sbx_http_gate *g = d->gate;
	enum sbx_pump r;
	bool opaque;

	n_good += judge_all(f, d, sbx_span(p + n_good, n - n_good), &opaque);
	r = n_good ? sbx_tcp_put(d, p, n_good) : SBX_PUMP_ON;
	if (r == SBX_PUMP_RESET || !hold(f, g, p + n_good, g->refused ? 0 : n - n_good))
		return SBX_PUMP_RESET;
	if (opaque) {
		sbx_http_gate_free(g);
		d->gate = NULL;
	}
	return r;
}

enum sbx_pump sbx_http_gate_pump(struct sbx_tcp_flow *f, struct sbx_tcp_dir *d)
{
	struct sbx_http_gate *g = d->gate;
	uint64_t opaque = sbx_http_judge_opaque(&g->judge);
	enum sbx_pump r;
	size_t n;

	if (g->n_good) {
		size_t n_good = g->n_good;

		g->n_good = 0;
		return judge_and_put(f, d, g->held, g->n, n_good);
	}
	if (!d->src->readable)
		return SBX_PUMP_WAIT;
	if (g->n == 0 && d->bulk && opaque >= SBX_COPY_MAX) {
		r = sbx_tcp_splice(f->t, d, opaque < SIZE_MAX ? (size_t)opaque : SIZE_MAX, &n);
		sbx_http_judge_skip(&g->judge, n);
		return r;
	}
	if (g->n == 0) {
		r = sbx_tcp_recv(d->src, f->ctx->copy, sizeof(f->ctx->copy), &n);
		if (r != SBX_PUMP_ON)
			return r;
		d->bulk = n == sizeof(f->ctx->copy);
		d->eof = n == 0;
		return judge_and_put(f, d, f->ctx->copy, n, 0);
	}
	if (!reserve(f, g))
		return SBX_PUMP_RESET;
	r = sbx_tcp_recv(d->src, g->held + g->n, g->n_max - g->n, &n);
	if (r != SBX_PUMP_ON)
		return r;
	d->eof = n == 0;
	g->n += n;
	return judge_and_put(f, d, g->held, g->n, 0);
}

bool sbx_http_gate_refuse(struct sbx_tcp_flow *f)
{
	struct sbx_verdict v = f->up.gate->verdict;

	return sbx_tcp_refuse_drained(f, &v);
}
