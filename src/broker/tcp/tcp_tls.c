/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The client's direction of a flow that began with a good ClientHello, as long as a second one may
 * come in the clear. As a rule the client's next bytes show that none will come: then the gate is
 * freed, and the flow is opaque.
 *
 * A server may ask for a second ClientHello, and then serves the name in the second. It must be the
 * name of the first. No honest client sends another name, so the refusal is not explained: the flow
 * is reset, with its event.
 *
 * Bytes that are not judged yet are held (heap; at most limits.client_hello_bytes and a buffer).
 */

#include "broker/tcp/tcp_flow.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "broker/io/report.h"

struct sbx_tls_gate {
	struct sbx_tls_watch watch;
	uint8_t *held; /* heap */
	size_t n;
	bool is_new; /* held came with the first hello, and was not judged */
};

struct sbx_tls_gate *sbx_tls_gate_new(const struct sbx_tls_hello *first, size_t limit_bytes,
				      const uint8_t *p, size_t n)
{
	SBX_AUTO_FREE struct sbx_tls_gate *g = calloc(1, sizeof(*g));

	if (!g)
		return NULL;
	sbx_tls_watch_init(&g->watch, first, limit_bytes);
	g->held = n ? malloc(n) : NULL;
	if (n && !g->held)
		return NULL;
	if (n)
		memcpy(g->held, p, n);
	g->n = n;
	g->is_new = n > 0;
	return sbx_steal_ptr(&g);
}

void sbx_tls_gate_free(struct sbx_tls_gate *g)
{
	if (!g)
		return;
	free(g->held);
	free(g);
}

static enum sbx_pump refuse(struct sbx_tcp_flow *f, struct sbx_verdict v)
{
	v.action = SBX_DENY;
	f->ctx->stats.flows_denied++;
	sbx_report_event(f->ctx, SBX_PROTO_TCP, &v, &f->target.addr, f->target.port,
			 f->target.name);
	return SBX_PUMP_RESET;
}

/* Appends the @n bytes at @p to held. */
static bool hold(struct sbx_tls_gate *g, const uint8_t *p, size_t n)
{
	uint8_t *held = realloc(g->held, g->n + n);

	if (!held)
		return false;
	memcpy(held + g->n, p, n);
	g->held = held;
	g->n += n;
	return true;
}

/* Judges the @n bytes at @p, which may be held, and writes the good ones. */
static enum sbx_pump judge_and_put(struct sbx_tcp_flow *f, struct sbx_tcp_dir *d, const uint8_t *p,
				   size_t n)
{
	struct sbx_tls_gate *g = d->tls;
	struct sbx_verdict v = { .reason = SBX_REASON_TLS_MALFORMED, .rule = UINT32_MAX };
	enum sbx_pump r = SBX_PUMP_ON;
	size_t n_good;
	int what = sbx_tls_watch_next(&g->watch, sbx_span(p, n), &n_good);

	if (what == SBX_TLS_WATCH_HELLO && g->watch.result == 0)
		sbx_tcp_note_server(f, g->watch.hello.sni);
	if (what == SBX_TLS_WATCH_HELLO)
		v = sbx_core_judge_hello(&f->ctx->core, &f->target, g->watch.result,
					 &g->watch.hello);
	if (what == SBX_TLS_WATCH_REJECT || (what == SBX_TLS_WATCH_HELLO && v.action != SBX_ALLOW))
		return refuse(f, v);
	if (what != SBX_TLS_WATCH_MORE)
		n_good = n;
	if (n_good)
		r = sbx_tcp_put(d, p, n_good);
	if (r == SBX_PUMP_RESET)
		return r;
	if (what != SBX_TLS_WATCH_MORE) {
		sbx_tls_gate_free(g);
		d->tls = NULL;
	} else if (p == g->held) {
		memmove(g->held, g->held + n_good, n - n_good);
		g->n = n - n_good;
	} else if (n > n_good && !hold(g, p + n_good, n - n_good)) {
		return SBX_PUMP_RESET;
	}
	return r;
}

enum sbx_pump sbx_tls_gate_pump(struct sbx_tcp_flow *f, struct sbx_tcp_dir *d)
{
	struct sbx_tls_gate *g = d->tls;
	enum sbx_pump r;
	size_t n;

	if (g->is_new) {
		g->is_new = false;
		return judge_and_put(f, d, g->held, g->n);
	}
	if (!d->src->readable)
		return SBX_PUMP_WAIT;
	r = sbx_tcp_recv(d->src, f->ctx->copy, sizeof(f->ctx->copy), &n);
	if (r != SBX_PUMP_ON)
		return r;
	d->eof = n == 0;
	if (n == 0)
		return SBX_PUMP_ON;
	if (g->n == 0)
		return judge_and_put(f, d, f->ctx->copy, n);
	return hold(g, f->ctx->copy, n) ? judge_and_put(f, d, g->held, g->n) : SBX_PUMP_RESET;
}
