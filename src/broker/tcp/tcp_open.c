/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * From an accepted connection to the dial. The check of the first bytes and the lookup of the name
 * run side by side; a connection outside begins only when the check is passed and an address was
 * judged. An early lookup of an allowed name gives nothing away; an early connect would.
 */

#include "broker/tcp/tcp_flow.h"

#include <stdio.h>
#include <sys/socket.h>

#include "broker/io/report.h"

static bool answer_selftest(struct sbx_tcp_flow *f)
{
	char text[SBX_ID_LEN + 8];
	int n = snprintf(text, sizeof(text), "sbx %s\n", f->ctx->config.id);

	send(f->in.fd, text, (size_t)n, MSG_NOSIGNAL);
	shutdown(f->in.fd, SHUT_WR);
	f->state = SBX_TCP_LINGERING;
	sbx_timer_arm(&f->ctx->timers, SBX_TIMER_LINGER, &f->timeout);
	return true;
}

bool sbx_tcp_uses_proxy(const struct sbx_context *ctx)
{
	return ctx->config.proxy_host[0] != 0;
}

static bool dial_resolved(struct sbx_tcp_flow *f, const struct sbx_resolve_result *result);

static void on_resolved(struct sbx_resolve_waiter *w, const struct sbx_resolve_result *result)
{
	struct sbx_tcp_flow *f = sbx_container_of(w, struct sbx_tcp_flow, waiter);

	if (!f->check_pending) /* pending: sbx_tcp_checked() asks again, and the result is known */
		dial_resolved(f, result);
}

/* The proxy, the pinned name, or NULL for an address. */
static const char *name_to_resolve(const struct sbx_tcp_flow *f)
{
	if (sbx_tcp_uses_proxy(f->ctx))
		return f->ctx->config.proxy_host;
	return f->target.kind == SBX_FLOW_NAME ? f->target.name : NULL;
}

/* The profile chooses the proxy; the host's owner decides which addresses it may have. */
static void proxy_candidates(const struct sbx_context *ctx, const struct sbx_resolve_result *result,
			     struct sbx_candidates *c)
{
	c->n = 0;
	c->refused = (struct sbx_verdict){ .reason = SBX_REASON_PROXY_ADDRESS, .rule = UINT32_MAX };
	for (size_t i = 0; i < result->n && c->n < SBX_CANDIDATES_MAX; i++) {
		struct sbx_addr addr = sbx_addr_unmap(&result->v[i]);

		c->refused_addr = addr;
		if (sbx_policy_admits_proxy(ctx->core.policy, &addr, ctx->config.proxy_port,
					    sbx_core_is_own(&ctx->core, &addr)))
			c->v[c->n++] = addr;
	}
}

static bool dial_resolved(struct sbx_tcp_flow *f, const struct sbx_resolve_result *result)
{
	bool proxy = sbx_tcp_uses_proxy(f->ctx);
	struct sbx_candidates c;

	if (result->n == 0)
		return sbx_tcp_refuse_reason(f, proxy ? SBX_REASON_PROXY_FAILED
						      : SBX_REASON_RESOLVE_FAILED);
	if (proxy)
		proxy_candidates(f->ctx, result, &c);
	else
		sbx_core_candidates(&f->ctx->core, &f->target, result->v, result->n,
				    result->first_family, &c);
	if (c.n == 0)
		return sbx_tcp_refuse(f, &c.refused, &c.refused_addr);
	return sbx_tcp_dial_start(f, &c, proxy ? f->ctx->config.proxy_port : f->target.port);
}

/* A flow to an address: judges that very address now, even if a proxy will dial it. */
static bool judge_address(struct sbx_tcp_flow *f, struct sbx_candidates *c)
{
	sbx_core_candidates(&f->ctx->core, &f->target, &f->target.addr, 1, f->target.addr.family,
			    c);
	return c->n ? true : sbx_tcp_refuse(f, &c->refused, NULL);
}

bool sbx_tcp_checked(struct sbx_tcp_flow *f)
{
	const char *name = name_to_resolve(f);
	const struct sbx_resolve_result *result;
	struct sbx_candidates c;

	f->check_pending = false;
	sbx_timer_arm(&f->ctx->timers, SBX_TIMER_CONNECT, &f->timeout);
	if (f->target.kind == SBX_FLOW_ADDRESS && !judge_address(f, &c))
		return false;
	if (!name)
		return sbx_tcp_dial_start(f, &c, f->target.port);
	result = sbx_resolve_name(f->t->resolve, name, &f->waiter, on_resolved);
	return result ? dial_resolved(f, result) : true;
}

/* Is the refusal explained in the protocol that the client will speak? Only for flows that were
 * opened by name: a flow to a literal address is reset at once. */
static bool explains(const struct sbx_flow_target *t)
{
	return t->name && t->verdict.action == SBX_DENY && t->kind == SBX_FLOW_REFUSED &&
	       (t->port == 443 || t->port == 80);
}

bool sbx_tcp_open(struct sbx_tcp_flow *f)
{
	const char *name;

	f->ctx->stats.flows++;
	if (sbx_tcp_watch(f, &f->in) < 0)
		return sbx_tcp_refuse_reason(f, SBX_REASON_RESOURCE);
	if (f->target.kind == SBX_FLOW_SELFTEST && f->target.port == SBX_ECHO_PORT &&
	    f->ctx->fds[SBX_BFD_TLS] >= 0 && !sbx_report_is_released(f->ctx->report))
		return sbx_tcp_terminate_start(f);
	if (f->target.kind == SBX_FLOW_SELFTEST)
		return answer_selftest(f);
	if (f->target.kind == SBX_FLOW_REFUSED && !explains(&f->target))
		return sbx_tcp_refuse(f, &f->target.verdict, NULL);
	if (f->target.kind != SBX_FLOW_REFUSED && f->target.check == SBX_CHECK_NONE)
		return sbx_tcp_checked(f);
	if (sbx_tcp_check_start(f) < 0)
		return sbx_tcp_refuse_reason(f, SBX_REASON_RESOURCE);
	sbx_timer_arm(&f->ctx->timers, SBX_TIMER_HANDSHAKE, &f->timeout);
	name = name_to_resolve(f);
	if (name && f->target.kind != SBX_FLOW_REFUSED)
		sbx_resolve_name(f->t->resolve, name, &f->waiter, on_resolved);
	return true;
}
