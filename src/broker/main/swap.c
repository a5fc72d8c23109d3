/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A new policy for a running sandbox.
 *
 * POLICY brings the blob. It is loaded and checked; a bad one is answered, and the old policy
 * holds. Then, between two events of the loop: every flow and every pending question is judged by
 * the new policy, the policies change places, and what the new one does not allow is cut.
 * POLICY_DONE is sent when nothing of a cut flow can leave any more: at once for our own, and for
 * those with sbx-tls when it has said TLS_DONE; with attach cgroup, when the kernel has no pin that
 * is not allowed. If that takes longer than LATE_MS, this process ends, and with it the sandbox.
 *
 * Verdicts have numbers of rules, which are places in the blob. So each verdict that is kept
 * anywhere is replaced here, before the old blob goes.
 */

#include "broker/main/swap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "broker/io/report.h"
#include "sys/process/proc.h"

#define LATE_MS 2000

/* --- loading --- */

static int load(int *fd, void **ret_blob, struct sbx_policy **ret_policy)
{
	SBX_AUTO_CLOSE int memfd = sbx_fd_steal(fd);
	SBX_AUTO_FREE void *blob = NULL;
	size_t n = 0;
	int r = memfd < 0 ? -EBADF : sbx_memfd_load(memfd, SBX_POLICY_BYTES_MAX, &blob, &n);

	if (r == 0)
		r = sbx_policy_load(sbx_span(blob, n), ret_policy);
	if (r == 0)
		*ret_blob = sbx_steal_ptr(&blob);
	return r;
}

int sbx_swap_load_consume(struct sbx_swap *s, int *fd)
{
	return load(fd, &s->blob, &s->policy);
}

/* --- the answer --- */

static void send_answer(struct sbx_swap *s, bool ok)
{
	const struct sbx_msg_policy_done m = {
		.ok = ok,
		.generation = sbx_policy_generation(s->policy),
		.n_cut = ok ? s->n_cut : 0,
	};
	uint8_t packet[64];
	ssize_t n = sbx_msg_encode_policy_done(&m, packet, sizeof(packet));

	s->under_way = false;
	event_del(&s->ev_late);
	if (n < 0 || sbx_report_post(s->ctx->report, sbx_span(packet, (size_t)n)) < 0)
		sbx_context_exit(s->ctx, 1);
}

static void answer_if_done(struct sbx_swap *s)
{
	if (s->under_way && !s->pinning && s->tcp->n_cutting == 0)
		send_answer(s, true);
}

/* A sbx_tcp.on_cut. */
static void on_cut(void *userdata)
{
	answer_if_done(userdata);
}

static void on_pins(void *userdata)
{
	struct sbx_swap *s = userdata;

	s->pinning = false;
	answer_if_done(s);
}

static void on_late(evutil_socket_t fd, short what, void *userdata)
{
	struct sbx_swap *s = userdata;

	(void)fd;
	(void)what;
	sbx_context_exit(s->ctx, 1);
}

/* --- the change --- */

static void change(struct sbx_swap *s, void *blob_take, struct sbx_policy *policy_take)
{
	struct timeval tv = { .tv_sec = LATE_MS / 1000 };
	struct sbx_core next = s->ctx->core;

	next.policy = policy_take;
	sbx_tcp_judge_again(s->tcp, &next);
	sbx_udp_judge_again(s->udp, &next);
	s->ctx->core.policy = policy_take;
	sbx_policy_free(s->policy);
	free(s->blob);
	s->policy = policy_take;
	s->blob = blob_take;
	s->under_way = true;
	event_add(&s->ev_late, &tv);
	s->n_cut = (uint32_t)(sbx_udp_cut(s->udp) + sbx_tcp_cut(s->tcp));
	sbx_resolve_drop_unwanted(s->resolve, sbx_stub_judge_again(s->stub));
	s->pinning = s->pinner != NULL;
	if (s->pinner)
		sbx_pinner_policy_changed(s->pinner, on_pins, s);
	answer_if_done(s);
}

void sbx_swap_take_consume(struct sbx_swap *s, int *fd)
{
	struct sbx_policy *policy = NULL;
	void *blob = NULL;
	int r = load(fd, &blob, &policy);

	if (s->under_way) {
		sbx_policy_free(policy);
		free(blob);
		sbx_context_exit(s->ctx, 1);
		return;
	}
	if (r < 0 || sbx_policy_generation(policy) <= sbx_policy_generation(s->policy)) {
		sbx_policy_free(policy);
		free(blob);
		send_answer(s, false);
		return;
	}
	change(s, blob, policy);
}

/* --- the list of flows --- */

struct page {
	struct sbx_swap *s;
	struct sbx_msg_flow_list m;
	uint8_t packet[SBX_MSG_MAX];
	bool failed;
};

static void send_page(struct page *page)
{
	ssize_t n = sbx_msg_encode_flow_list(&page->m, page->packet, sizeof(page->packet));

	if (n < 0 || sbx_report_post(page->s->ctx->report, sbx_span(page->packet, (size_t)n)) < 0)
		page->failed = true;
	page->m.n_flows = 0;
}

static void on_flow(void *userdata, const struct sbx_msg_flow *flow)
{
	struct page *page = userdata;

	if (page->m.n_flows == SBX_MSG_FLOWS_MAX)
		send_page(page);
	page->m.v[page->m.n_flows++] = *flow;
}

void sbx_swap_list_flows(struct sbx_swap *s)
{
	SBX_AUTO_FREE struct page *page = calloc(1, sizeof(*page));

	if (page) {
		page->s = s;
		sbx_tcp_list(s->tcp, on_flow, page);
		sbx_udp_list(s->udp, on_flow, page);
		page->m.last = 1;
		send_page(page);
	}
	if (!page || page->failed)
		sbx_context_exit(s->ctx, 1);
}

int sbx_swap_init(struct sbx_swap *s)
{
	s->tcp->on_cut = on_cut;
	s->tcp->cut_userdata = s;
	return evtimer_assign(&s->ev_late, s->ctx->base, on_late, s) < 0 ? -ENOMEM : 0;
}

void sbx_swap_fini(struct sbx_swap *s)
{
	sbx_context_unwatch(&s->ev_late);
	sbx_policy_free(s->policy);
	free(s->blob);
}
