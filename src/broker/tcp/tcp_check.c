/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The first bytes of a flow, before anything is dialled.
 *
 * They are read into a buffer that the relay later sends on as it is: no byte is read twice. The
 * buffer holds at most limits.client_hello_bytes or http_head_bytes; the parsers refuse a longer
 * hello or head. The handshake timer limits the time; bytes that trickle in do not extend it.
 *
 * A flow that was refused by name and port comes here too if the refusal can be explained in the
 * client's protocol (tcp_refuse.c): a TLS client reads an alert only after it has sent its hello.
 */

#include "broker/tcp/tcp_flow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_BYTES 2048 /* a hello with post-quantum key shares takes about 1,800 */

struct sbx_tcp_check {
	enum sbx_check kind;
	size_t limit;
	uint8_t *buf;
	size_t n, n_max;
	size_t n_judged; /* HTTP: the first bytes of buf, which are a good request's */
	union {
		struct sbx_tls_hello hello;
		struct sbx_http_judge judge;
	};
};

void sbx_tcp_check_free(struct sbx_tcp_check *c)
{
	if (!c)
		return;
	free(c->buf);
	free(c);
}

int sbx_tcp_check_start(struct sbx_tcp_flow *f)
{
	struct sbx_tcp_check *c = calloc(1, sizeof(*c));
	const struct sbx_limits *limits = &f->ctx->config.limits;

	if (!c)
		return -ENOMEM;
	if (f->target.check == SBX_CHECK_NONE) /* refused already: guess the protocol by the port */
		f->target.check = f->target.port == 443 ? SBX_CHECK_TLS : SBX_CHECK_HTTP;
	c->kind = f->target.check;
	if (c->kind == SBX_CHECK_TLS) {
		c->limit = limits->client_hello_bytes;
		sbx_tls_hello_init(&c->hello, c->limit);
	} else {
		c->limit = limits->http_head_bytes;
		sbx_http_judge_init(&c->judge, c->limit, !f->target.must_parse);
	}
	f->check = c;
	f->check_pending = true;
	return 0;
}

static int grow(struct sbx_tcp_check *c)
{
	size_t n_max = c->n_max ? c->n_max * 2 : FIRST_BYTES;
	uint8_t *buf;

	n_max = n_max < c->limit ? n_max : c->limit;
	buf = realloc(c->buf, n_max);
	if (!buf)
		return -ENOMEM;
	c->buf = buf;
	c->n_max = n_max;
	return 0;
}

/* The check is passed: queues the bytes that were read, and makes the gate that judges later
 * requests, or a second ClientHello. The bytes of a terminated host's flow are for sbx-tls. */
static bool pass(struct sbx_tcp_flow *f, bool opaque)
{
	struct sbx_tcp_check *c = f->check;
	size_t n = c->n;

	if (f->target.verdict.terminate) {
		if (opaque || n > SBX_TLS_FIRST_MAX || f->ctx->fds[SBX_BFD_TLS] < 0)
			return sbx_tcp_refuse_reason(f, SBX_REASON_NOT_TERMINATED);
		f->first = c->buf;
		f->n_first = n;
	} else if (c->kind == SBX_CHECK_HTTP && !opaque) {
		f->up.gate = sbx_http_gate_new(&c->judge, c->buf, c->n, c->n_judged);
		if (!f->up.gate)
			return sbx_tcp_refuse_reason(f, SBX_REASON_RESOURCE);
	} else {
		if (c->kind == SBX_CHECK_TLS && !opaque && sbx_tls_watch_needed(&c->hello)) {
			n = c->hello.n_consumed;
			f->up.tls = sbx_tls_gate_new(&c->hello, c->limit, c->buf + n, c->n - n);
			if (!f->up.tls)
				return sbx_tcp_refuse_reason(f, SBX_REASON_RESOURCE);
		}
		sbx_tcp_relay_preload(&f->up, c->buf, 0, n);
	}
	c->buf = NULL;
	sbx_tcp_check_free(c);
	f->check = NULL;
	return sbx_tcp_checked(f);
}

/* Judges the bytes that were read; the last @n are new. *ret_more: the hello or request is not
 * complete yet. */
static struct sbx_verdict judge(struct sbx_tcp_flow *f, size_t n, bool *ret_more, bool *ret_opaque)
{
	struct sbx_tcp_check *c = f->check;
	struct sbx_http_event event;
	int r;

	*ret_opaque = false;
	if (c->kind == SBX_CHECK_TLS) {
		r = sbx_tls_hello_feed(&c->hello, sbx_span(c->buf + c->n - n, n));
		*ret_more = r == SBX_TLS_E_MORE;
		/* If a flow with a refused hello is carried all the same, the bytes behind that
		 * hello are judged only if the hello was read to its end. */
		*ret_opaque = r != 0 && c->hello.reason != SBX_REASON_SNI_ABSENT;
		if (r == 0)
			sbx_tcp_note_server(f, c->hello.sni);
		return sbx_core_judge_hello(&f->ctx->core, &f->target, r, &c->hello);
	}
	r = sbx_http_judge_next(&c->judge, sbx_span(c->buf, c->n), &event);
	*ret_more = r == SBX_HTTP_E_MORE;
	if (*ret_more)
		return f->target.verdict;
	c->n_judged = r == 0 ? event.n : 0;
	if (r == 0)
		sbx_tcp_note_server(f, event.host_addr.family ? "" : event.host);
	return sbx_core_judge_request(&f->ctx->core, &f->target, r, &c->judge, &event, ret_opaque);
}

/* The client shut its side early. If it sent no byte, the flow is closed and not refused: it may
 * have probed the port. If the flow need not be TLS or HTTP, the few bytes are carried. */
static bool ended_early(struct sbx_tcp_flow *f)
{
	bool tls = f->check->kind == SBX_CHECK_TLS;

	if (f->target.verdict.action != SBX_ALLOW)
		return sbx_tcp_refuse(f, &f->target.verdict, NULL);
	if (f->check->n == 0) {
		sbx_tcp_close(f);
		return false;
	}
	if (!f->target.must_parse)
		return pass(f, true);
	return sbx_tcp_refuse_reason(f, tls ? SBX_REASON_TLS_MALFORMED : SBX_REASON_HTTP_MALFORMED);
}

bool sbx_tcp_check_event(struct sbx_tcp_flow *f)
{
	struct sbx_tcp_check *c = f->check;

	while (f->in.readable) {
		struct sbx_verdict v;
		bool more, opaque;
		size_t n;

		if (c->n == c->n_max && (c->n == c->limit || grow(c) < 0))
			return sbx_tcp_refuse_reason(f, c->n == c->limit ? SBX_REASON_OVERSIZED
									 : SBX_REASON_RESOURCE);
		switch (sbx_tcp_recv(&f->in, c->buf + c->n, c->n_max - c->n, &n)) {
		case SBX_PUMP_WAIT:
			return true;
		case SBX_PUMP_RESET:
			sbx_tcp_close(f);
			return false;
		case SBX_PUMP_ON:
			break;
		}
		if (n == 0)
			return ended_early(f);
		c->n += n;
		v = judge(f, n, &more, &opaque);
		if (more)
			continue;
		if (f->target.verdict.action != SBX_ALLOW)
			v = f->target.verdict;
		if (v.action != SBX_ALLOW)
			return sbx_tcp_refuse(f, &v, NULL);
		return pass(f, opaque);
	}
	return true;
}
