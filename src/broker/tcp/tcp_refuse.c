/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Refuses a flow so that the client's error message explains it. A TLS client gets the alert
 * access_denied; an HTTP client gets a 403 with the rule and how to allow it, or a 400; any other
 * client gets a RST. If policy allowed the flow and something failed (the name does not resolve, no
 * server answers), the client gets the alert internal_error, a 502 with the reason, or a RST.
 *
 * There are two times when a refusal can be explained: before anything was carried, while the
 * client waits for an answer to its first bytes; and after all answers to its earlier requests are
 * written (DRAINING).
 */

#include "broker/tcp/tcp_flow.h"

#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "broker/io/report.h"
#include "wire/http_answer.h"

#define TEXT_MAX 1024

/* Sends @n bytes, then waits for the client to read them and close. */
static bool say_and_linger(struct sbx_tcp_flow *f, const void *p, size_t n)
{
	if (send(f->in.fd, p, n, MSG_NOSIGNAL) != (ssize_t)n || shutdown(f->in.fd, SHUT_WR) < 0) {
		sbx_tcp_abort(f);
		return false;
	}
	f->state = SBX_TCP_LINGERING;
	sbx_timer_arm(&f->ctx->timers, SBX_TIMER_LINGER, &f->timeout);
	sbx_tcp_linger_event(f);
	return false;
}

static bool say_alert(struct sbx_tcp_flow *f, enum sbx_tls_alert alert)
{
	uint8_t record[SBX_TLS_ALERT_LEN];

	sbx_tls_alert_write(alert, record);
	return say_and_linger(f, record, sizeof(record));
}

static bool is_failure(enum sbx_reason reason)
{
	return reason == SBX_REASON_RESOLVE_FAILED || reason == SBX_REASON_CONNECT_FAILED ||
	       reason == SBX_REASON_PROXY_FAILED || reason == SBX_REASON_RESOURCE ||
	       reason == SBX_REASON_FLOW_LIMIT;
}

static const char *status_of(enum sbx_reason reason)
{
	if (is_failure(reason))
		return "502 Bad Gateway";
	if (reason == SBX_REASON_HTTP_MALFORMED || reason == SBX_REASON_HOST_ABSENT ||
	    reason == SBX_REASON_HOST_DUPLICATE)
		return "400 Bad Request";
	return "403 Forbidden";
}

static bool say_why(struct sbx_tcp_flow *f, const struct sbx_verdict *v)
{
	char what[SBX_HOSTNAME_MAX + 16], text[TEXT_MAX], body[TEXT_MAX + 16],
		addr[SBX_ADDR_STR_MAX];
	uint8_t message[TEXT_MAX + 512];
	size_t n;

	sbx_text_cut(what, sizeof(what), "%s:%u",
		     f->target.name ? f->target.name
				    : sbx_addr_format(&f->target.addr, addr, sizeof(addr)),
		     f->target.port);
	sbx_policy_explain(f->ctx->core.policy, v, what, text, sizeof(text));
	sbx_text_cut(body, sizeof(body), "sbx: %s\n", text);
	if (sbx_http_refusal_write(status_of(v->reason), body, message, sizeof(message), &n) < 0) {
		sbx_tcp_abort(f);
		return false;
	}
	return say_and_linger(f, message, n);
}

static void drop_out(struct sbx_tcp_flow *f)
{
	sbx_context_unwatch(&f->out.ev);
	f->out.fd = sbx_fd_close(f->out.fd);
}

bool sbx_tcp_refuse(struct sbx_tcp_flow *f, const struct sbx_verdict *v,
		    const struct sbx_addr *addr)
{
	struct sbx_verdict denied = *v;
	/* of a terminated host; sbx-tls has nothing of the flow yet */
	bool waits_for_server = f->first && f->state != SBX_TCP_HANDING;
	bool said_something = f->check_pending || f->up.n_spill || f->up.gate || waits_for_server;
	bool failed = is_failure(v->reason);

	denied.action = SBX_DENY;
	f->ctx->stats.flows_denied++;
	sbx_report_event(f->ctx, f->target.proto, &denied, addr ? addr : &f->target.addr,
			 f->target.port, f->target.name);
	sbx_resolve_cancel(&f->waiter);
	sbx_tcp_dial_free(f->dial);
	f->dial = NULL;
	drop_out(f);
	if (said_something) {
		f->check_pending = false;
		if (f->target.check == SBX_CHECK_TLS)
			return say_alert(f, failed ? SBX_TLS_ALERT_INTERNAL_ERROR
						   : SBX_TLS_ALERT_ACCESS_DENIED);
		if (f->target.check == SBX_CHECK_HTTP)
			return say_why(f, &denied);
	}
	sbx_tcp_abort(f);
	return false;
}

bool sbx_tcp_refuse_reason(struct sbx_tcp_flow *f, enum sbx_reason reason)
{
	struct sbx_verdict v = { .reason = reason, .rule = UINT32_MAX };

	return sbx_tcp_refuse(f, &v, NULL);
}

bool sbx_tcp_refuse_drained(struct sbx_tcp_flow *f, const struct sbx_verdict *v)
{
	if (sbx_tcp_has_queued(f->out.fd)) /* a server that has ended and takes no more */
		sbx_tcp_set_reset(f->out.fd);
	drop_out(f);
	return say_why(f, v);
}

void sbx_tcp_linger_event(struct sbx_tcp_flow *f)
{
	size_t n;

	while (f->in.readable) {
		enum sbx_pump r = sbx_tcp_recv(&f->in, f->ctx->copy, sizeof(f->ctx->copy), &n);

		if (r == SBX_PUMP_WAIT)
			return;
		if (r == SBX_PUMP_RESET || n == 0) {
			sbx_tcp_close(f);
			return;
		}
	}
}
