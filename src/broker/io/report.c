/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Events, PINS and STATS on their way to the launcher.
 *
 * Until RELEASE only the self-test makes events. Its refusals prove that the sandbox is closed:
 * they are held, and dropped when RELEASE comes. Without RELEASE they are sent at STOP.
 *
 * Events are folded for half a second, the first ones for a moment (base/fold.h). The fold gives
 * them to a queue, and the queue is sent. While the launcher does not read, the fold's clock stands
 * still: the fold then gives out no event, and equal events keep adding up. So at most twice
 * limits.n_event_keys events are in memory, and no count is lost.
 */

#include "broker/io/report.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/fold.h"
#include "base/text.h"
#include "ipc/channel.h"
#include "sys/process/proc.h"

#define EVENT_PACKET_MAX 1024
#define STOP_SEND_MS	 3000 /* how long the last events may take to be read */

/* An answer to the launcher. */
struct posted {
	struct posted *next;
	size_t n;
	uint8_t p[];
};

struct sbx_report {
	struct sbx_context *ctx;
	int fd; /* borrowed */
	struct event ev_write, ev_flush;
	struct sbx_fold *fold;
	uint64_t flush_at_ms; /* when ev_flush was meant for */
	uint64_t clock_ms;	 /* the fold's clock: stands still while `queue` is not empty */
	struct sbx_event *queue; /* from the fold, not sent yet: [first, n) */
	size_t first, n, n_max;
	struct sbx_span packet;	       /* borrowed, not sent yet (PINS); n 0: none */
	struct posted *posted, *last_posted; /* not sent yet */
	bool released;		       /* events are the command's, and are sent */
	void (*count)(void *userdata); /* set: send everything, then STATS, then end */
	void *userdata;
};

static void enqueue(const struct sbx_event *v, void *userdata)
{
	struct sbx_report *rep = userdata;

	if (rep->n == rep->n_max) {
		size_t n_max = rep->n_max ? rep->n_max * 2 : 8;
		struct sbx_event *queue = realloc(rep->queue, n_max * sizeof(*queue));

		if (!queue) { /* a broker without memory for its events must not go on */
			sbx_context_exit(rep->ctx, 1);
			return;
		}
		rep->queue = queue;
		rep->n_max = n_max;
	}
	rep->queue[rep->n++] = *v;
}

/* Encodes one event, without its texts if the encoder refuses them. */
static ssize_t encode(const struct sbx_event *v, uint8_t *packet, size_t n_packet)
{
	struct sbx_event bare = *v;
	ssize_t n = sbx_msg_encode_event(v, packet, n_packet);

	if (n >= 0)
		return n;
	bare.name[0] = 0;
	bare.rule[0] = 0;
	bare.request[0] = 0;
	return sbx_msg_encode_event(&bare, packet, n_packet);
}

/* Sends the queue. 0: the queue is empty. SBX_CHANNEL_E_*, -errno. */
static int send_queue(struct sbx_report *rep)
{
	uint8_t packet[EVENT_PACKET_MAX];

	while (rep->first < rep->n) {
		ssize_t n = encode(&rep->queue[rep->first], packet, sizeof(packet));
		int r = n < 0 ? (int)n : sbx_channel_send(rep->fd, packet, (size_t)n, NULL, 0);

		if (r != 0)
			return r;
		rep->first++;
	}
	free(rep->queue);
	rep->queue = NULL;
	rep->first = rep->n = rep->n_max = 0;
	return 0;
}

/* Sends the packet that waits. Returns as send_queue(). */
static int send_packet(struct sbx_report *rep)
{
	int r = rep->packet.n ? sbx_channel_send(rep->fd, rep->packet.p, rep->packet.n, NULL, 0)
			      : 0;

	if (r == 0)
		rep->packet.n = 0;
	return r;
}

int sbx_report_send(struct sbx_report *rep, struct sbx_span packet)
{
	int r;

	rep->packet = packet;
	r = send_packet(rep);
	if (r == SBX_CHANNEL_E_AGAIN)
		return event_add(&rep->ev_write, NULL) < 0 ? -ENOMEM : 0;
	return r > 0 ? -EPIPE : r;
}

/* Sends the answers. Returns as send_queue(). */
static int send_posted(struct sbx_report *rep)
{
	while (rep->posted) {
		struct posted *p = rep->posted;
		int r = sbx_channel_send(rep->fd, p->p, p->n, NULL, 0);

		if (r != 0)
			return r;
		rep->posted = p->next;
		free(p);
	}
	rep->last_posted = NULL;
	return 0;
}

int sbx_report_post(struct sbx_report *rep, struct sbx_span packet)
{
	struct posted *p = malloc(sizeof(*p) + packet.n);
	int r;

	if (!p)
		return -ENOMEM;
	p->next = NULL;
	p->n = packet.n;
	memcpy(p->p, packet.p, packet.n);
	if (rep->last_posted)
		rep->last_posted->next = p;
	else
		rep->posted = p;
	rep->last_posted = p;
	r = send_posted(rep);
	if (r == SBX_CHANNEL_E_AGAIN)
		return event_add(&rep->ev_write, NULL) < 0 ? -ENOMEM : 0;
	return r > 0 ? -EPIPE : r;
}

static int send_stats(struct sbx_report *rep)
{
	uint8_t packet[EVENT_PACKET_MAX];
	ssize_t n;

	rep->count(rep->userdata);
	rep->ctx->stats.events_folded = sbx_fold_n_folded(rep->fold);
	rep->ctx->stats.limits_hit += sbx_fold_n_overflowed(rep->fold);
	n = sbx_msg_encode_stats(&rep->ctx->stats, packet, sizeof(packet));
	return n < 0 ? (int)n : sbx_channel_send(rep->fd, packet, (size_t)n, NULL, 0);
}

/* Waits until the launcher kills us or closes the channel. STATS woke the launcher on this
 * processor: freeing our memory now would delay it. */
static void wait_for_dismissal(struct sbx_report *rep)
{
	struct pollfd p = { .fd = rep->fd, .events = POLLIN };

	poll(&p, 1, STOP_SEND_MS);
}

/* Wakes up when the oldest event's window is over. */
static void schedule(struct sbx_report *rep, uint64_t now_ms)
{
	uint64_t next_ms = sbx_fold_next_ms(rep->fold);
	uint64_t wait_ms = next_ms > now_ms ? next_ms - now_ms : 0;
	struct timeval tv = {
		.tv_sec = (time_t)(wait_ms / 1000),
		.tv_usec = (suseconds_t)(wait_ms % 1000 * 1000 + 5000),
	};

	rep->flush_at_ms = next_ms;
	if (next_ms != SBX_FOLD_IDLE)
		event_add(&rep->ev_flush, &tv);
}

static void push(struct sbx_report *rep)
{
	uint64_t now_ms = sbx_now_ms();
	int r;

	if (!rep->released && !rep->count)
		return;
	if (rep->count) {
		sbx_fold_flush_all(rep->fold, enqueue, rep);
	} else if (rep->n == 0) {
		rep->clock_ms = now_ms;
		sbx_fold_flush(rep->fold, now_ms, enqueue, rep);
	}
	r = send_queue(rep);
	if (r == 0 && rep->count) {
		r = send_stats(rep);
		if (r == 0)
			wait_for_dismissal(rep);
	}
	if (r == SBX_CHANNEL_E_AGAIN)
		event_add(&rep->ev_write, NULL);
	else if (r != 0 || rep->count)
		sbx_context_exit(rep->ctx, r == 0 ? 0 : 1);
	else
		schedule(rep, now_ms);
}

static void on_push(evutil_socket_t fd, short what, void *userdata)
{
	struct sbx_report *rep = userdata;
	int r = rep->count ? 0 : send_packet(rep);

	(void)fd;
	(void)what;
	if (r == 0)
		r = send_posted(rep);
	if (r == SBX_CHANNEL_E_AGAIN)
		event_add(&rep->ev_write, NULL);
	else if (r != 0)
		sbx_context_exit(rep->ctx, 1);
	else
		push(rep);
}

/* An event that is due before those that are waited for is waited for. */
static void record(struct sbx_report *rep, const struct sbx_event *e)
{
	if (rep->n == 0)
		rep->clock_ms = sbx_now_ms();
	sbx_fold_add(rep->fold, e, rep->clock_ms, enqueue, rep);
	if (event_pending(&rep->ev_write, EV_WRITE, NULL))
		return;
	if (rep->n || rep->count || !evtimer_pending(&rep->ev_flush, NULL) ||
	    sbx_fold_next_ms(rep->fold) < rep->flush_at_ms)
		push(rep);
}

static const struct sbx_carried nothing;

static void report(struct sbx_context *ctx, enum sbx_proto proto, const struct sbx_verdict *v,
		   const struct sbx_addr *addr, uint16_t port, const char *name,
		   const char *request, const struct sbx_carried *carried)
{
	struct sbx_event e = {
		.ts_ms = sbx_clock_realtime_ms(),
		.action = (uint8_t)v->action,
		.proto = (uint8_t)proto,
		.reason = (uint8_t)v->reason,
		.port = port,
		.count = 1,
		.bytes_out = carried->bytes_out,
		.bytes_in = carried->bytes_in,
		.duration_ms = carried->duration_ms,
		.generation = sbx_policy_generation(ctx->core.policy),
	};

	if (addr)
		e.addr = *addr;
	if (name)
		sbx_text_cut(e.name, sizeof(e.name), "%s", name);
	sbx_text_cut(e.rule, sizeof(e.rule), "%s", sbx_policy_rule_text(ctx->core.policy, v->rule));
	sbx_text_cut(e.request, sizeof(e.request), "%s", request);
	record(ctx->report, &e);
}

void sbx_report_event(struct sbx_context *ctx, enum sbx_proto proto, const struct sbx_verdict *v,
		      const struct sbx_addr *addr, uint16_t port, const char *name)
{
	report(ctx, proto, v, addr, port, name, "", &nothing);
}

void sbx_report_flow(struct sbx_context *ctx, enum sbx_proto proto, const struct sbx_verdict *v,
		     const struct sbx_addr *addr, uint16_t port, const char *name,
		     const struct sbx_carried *carried)
{
	report(ctx, proto, v, addr, port, name, "", carried);
}

void sbx_report_open_flow(const struct sbx_context *ctx, const struct sbx_flow_target *target,
			  const struct sbx_addr *reached, const struct sbx_carried *carried,
			  struct sbx_msg_flow *ret_flow)
{
	*ret_flow = (struct sbx_msg_flow){
		.port = target->port,
		.proto = (uint8_t)target->proto,
		.bytes_out = carried->bytes_out,
		.bytes_in = carried->bytes_in,
		.age_ms = carried->duration_ms,
	};
	if (reached)
		ret_flow->addr = *reached;
	if (target->name)
		sbx_text_cut(ret_flow->name, sizeof(ret_flow->name), "%s", target->name);
	sbx_text_cut(ret_flow->rule, sizeof(ret_flow->rule), "%s",
		     sbx_policy_rule_text(ctx->core.policy, target->verdict.rule));
}

void sbx_report_request(struct sbx_context *ctx, const struct sbx_verdict *v,
			const struct sbx_addr *addr, uint16_t port, const char *name,
			const char *request)
{
	report(ctx, SBX_PROTO_TCP, v, addr, port, name, request, &nothing);
}

void sbx_report_lost(struct sbx_context *ctx, uint32_t n)
{
	struct sbx_event e = {
		.ts_ms = sbx_clock_realtime_ms(),
		.action = SBX_DENY,
		.proto = SBX_PROTO_OTHER,
		.reason = SBX_REASON_OVERFLOW,
		.count = n,
	};

	record(ctx->report, &e);
}

static void drop(const struct sbx_event *v, void *userdata)
{
	(void)v;
	(void)userdata;
}

void sbx_report_release(struct sbx_report *rep)
{
	sbx_fold_flush_all(rep->fold, drop, NULL);
	rep->first = rep->n = 0; /* the fold gave these already */
	rep->ctx->stats = (struct sbx_msg_stats){ 0 };
	rep->released = true;
}

bool sbx_report_is_released(const struct sbx_report *rep)
{
	return rep->released;
}

static void on_stop_timeout(evutil_socket_t fd, short what, void *userdata)
{
	struct sbx_report *rep = userdata;

	(void)fd;
	(void)what;
	sbx_context_exit(rep->ctx, 1);
}

void sbx_report_finish(struct sbx_report *rep, void (*count)(void *userdata), void *userdata)
{
	struct timeval tv = { .tv_sec = STOP_SEND_MS / 1000 };

	rep->count = count;
	rep->userdata = userdata;
	event_del(&rep->ev_flush);
	if (evtimer_assign(&rep->ev_flush, rep->ctx->base, on_stop_timeout, rep) == 0)
		evtimer_add(&rep->ev_flush, &tv);
	push(rep);
}

int sbx_report_new(struct sbx_context *ctx, int fd)
{
	struct sbx_report *rep = calloc(1, sizeof(*rep));
	uint64_t seed = 0;

	if (!rep)
		return -ENOMEM;
	ctx->report = rep;
	rep->ctx = ctx;
	rep->fd = fd;
	if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
		return -EIO;
	if (fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
		return -errno;
	if (event_assign(&rep->ev_write, ctx->base, fd, EV_WRITE, on_push, rep) < 0 ||
	    evtimer_assign(&rep->ev_flush, ctx->base, on_push, rep) < 0)
		return -ENOMEM;
	return sbx_fold_new(ctx->config.limits.n_event_keys, SBX_FOLD_BROKER_MS,
			    SBX_FOLD_EARLY_MS, seed, &rep->fold);
}

void sbx_report_free(struct sbx_report *rep)
{
	if (!rep)
		return;
	sbx_context_unwatch(&rep->ev_write);
	sbx_context_unwatch(&rep->ev_flush);
	sbx_fold_free(rep->fold);
	while (rep->posted) {
		struct posted *p = rep->posted;

		rep->posted = p->next;
		free(p);
	}
	free(rep->queue);
	free(rep);
}
