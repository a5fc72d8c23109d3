/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Open flows under a policy that was changed (main/swap.c).
 *
 * Every flow is judged again as far as it has come: by its name or address, by the address that was
 * dialled, and, where it may name any server, by the servers that it named. One that is still
 * allowed is not disturbed; its verdict becomes the new policy's, because the numbers of rules are.
 * One that is not allowed, or that would be checked more than it was, is reset on both sides: a
 * close with SO_LINGER 0 throws away what the kernel has queued, so nothing more of it leaves.
 *
 * A flow that was refused already stays refused; only its rule is looked up anew.
 *
 * Connections to published ports have no policy, but an air gap closes them: their answers would
 * leave the sandbox.
 */

#include "broker/tcp/tcp_flow.h"

#include <stdlib.h>
#include <string.h>

#include "broker/io/report.h"

#define NAMED_MAX 16

void sbx_tcp_note_server(struct sbx_tcp_flow *f, const char *name)
{
	if (f->target.must_match || !name[0] || f->named_more)
		return;
	for (size_t i = 0; i < f->n_named; i++)
		if (strcmp(f->named[i], name) == 0)
			return;
	if (!f->named)
		f->named = calloc(NAMED_MAX, sizeof(*f->named));
	if (f->named && f->n_named < NAMED_MAX)
		f->named[f->n_named] = strdup(name);
	if (f->named && f->n_named < NAMED_MAX && f->named[f->n_named])
		f->n_named++;
	else
		f->named_more = true;
}

static struct sbx_verdict deny(enum sbx_reason reason)
{
	return (struct sbx_verdict){ .reason = reason, .rule = UINT32_MAX };
}

/* A refusal that is being explained: gives it the new policy's rule. */
static void renew_refusal(struct sbx_tcp_flow *f, const struct sbx_core *next)
{
	struct sbx_flow_target t;

	sbx_core_decide_flow(next, f->target.proto, &f->target.addr, f->target.port, sbx_now_ms(),
			     &t);
	if (t.kind == SBX_FLOW_REFUSED)
		f->target.verdict = t.verdict;
	else
		f->target.verdict.rule = UINT32_MAX;
}

static struct sbx_verdict judge_opened(struct sbx_tcp_flow *f, const struct sbx_core *next)
{
	bool dialled = f->state != SBX_TCP_OPENING && f->state != SBX_TCP_DIALLING;
	const struct sbx_core_opened o = {
		.reached = dialled ? &f->reached : NULL,
		.proxy_port = f->ctx->config.proxy_port,
		.n_named = f->n_named,
		.named = f->named,
	};

	if (f->named_more)
		return deny(SBX_REASON_POLICY_CHANGED);
	return sbx_core_judge_again(next, &o, &f->target);
}

/* ALLOW: @f goes on, and may be gone. */
static struct sbx_verdict judge(struct sbx_tcp_flow *f, const struct sbx_core *next)
{
	static const struct sbx_verdict good = { .action = SBX_ALLOW };
	struct sbx_verdict v;

	if (f->state == SBX_TCP_LINGERING)
		return good;
	if (f->inside)
		return sbx_policy_air_gapped(next->policy) ? deny(SBX_REASON_AIR_GAP) : good;
	if (f->target.kind == SBX_FLOW_SELFTEST)
		return good;
	if (f->target.kind == SBX_FLOW_REFUSED) {
		renew_refusal(f, next);
		return good;
	}
	v = judge_opened(f, next);
	if (v.action != SBX_ALLOW)
		return v;
	if (f->state == SBX_TCP_DRAINING)
		sbx_http_gate_forget_rule(f->up.gate);
	return f->state == SBX_TCP_DIALLING ? sbx_tcp_dial_again(f, next) : v;
}

void sbx_tcp_judge_again(struct sbx_tcp *t, const struct sbx_core *next)
{
	struct sbx_tcp_flow *f = t->first, *after;

	for (; f; f = after) {
		struct sbx_verdict v;

		after = f->next;
		v = judge(f, next);
		if (v.action == SBX_ALLOW)
			continue;
		f->cut = true;
		f->cut_verdict = v;
		sbx_tcp_tell(f); /* by the policy that allowed it */
	}
	sbx_tcp_handed_judge_again(t, next);
}

size_t sbx_tcp_cut(struct sbx_tcp *t)
{
	struct sbx_tcp_flow *f = t->first, *after;
	size_t n = 0;

	for (; f; f = after) {
		after = f->next;
		if (!f->cut)
			continue;
		f->cut_verdict.action = SBX_DENY;
		f->ctx->stats.flows_denied += f->inside == 0;
		sbx_report_event(f->ctx, SBX_PROTO_TCP, &f->cut_verdict,
				 f->inside ? NULL : &f->target.addr,
				 f->inside ? f->inside : f->target.port, f->target.name);
		sbx_tcp_abort(f);
		n++;
	}
	return n + sbx_tcp_handed_cut(t);
}

/* --- the list --- */

static bool is_open(const struct sbx_tcp_flow *f)
{
	return !f->inside && f->state != SBX_TCP_LINGERING &&
	       (f->target.kind == SBX_FLOW_NAME || f->target.kind == SBX_FLOW_ADDRESS);
}

void sbx_tcp_list(struct sbx_tcp *t, sbx_flow_fn fn, void *userdata)
{
	for (const struct sbx_tcp_flow *f = t->first; f; f = f->next) {
		const struct sbx_carried carried = {
			.bytes_out = f->up.n_bytes,
			.bytes_in = f->down.n_bytes,
			.duration_ms = sbx_now_ms() - f->began_ms,
		};
		bool reached = f->carried && !sbx_tcp_uses_proxy(f->ctx);
		struct sbx_msg_flow m;

		if (!is_open(f))
			continue;
		sbx_report_open_flow(f->ctx, &f->target, reached ? &f->reached : NULL, &carried,
				     &m);
		fn(userdata, &m);
	}
	sbx_tcp_handed_list(t, fn, userdata);
}

void sbx_tcp_tell_all(struct sbx_tcp *t)
{
	for (struct sbx_tcp_flow *f = t->first; f; f = f->next)
		sbx_tcp_tell(f);
	sbx_tcp_handed_tell_all(t);
}
