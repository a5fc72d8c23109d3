/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The channel to the launcher: READY and events go up, RELEASE and STOP come down.
 *
 * Where real pins are (io_realpins.c), PINS go up, each answered by PINNED or PINS_FAILED, also before RELEASE.
 *
 * The launcher is trusted; still a message that is not expected ends the broker, and with it every
 * flow. End of file means the launcher is gone: leave at once, the sandbox is being killed.
 *
 * Until RELEASE only the self-test speaks: its refusals are proofs, not events. They are held, and
 * dropped when RELEASE comes (shown when it never does); the answer to RELEASE tells the launcher that
 * what comes from now on is the command's.
 *
 * STOP comes when the sandbox was killed. What a server said in its last moment to who is connected to a published
 * port may still be on its way: it gets DRAIN_MS.
 *
 * The answer to STOP is every event held and then STATS, after which nothing moves here: no flow, no event.
 *
 * Events are folded for a second (base/fold.h). What the fold gives out is queued and sent; while
 * the launcher does not read, the fold's clock stands still, so that nothing comes out of it and
 * equal events keep adding up. So memory is bounded by limits.n_event_keys twice, and no count is
 * lost.
 */

#include "broker/io/broker.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/cleanup.h"
#include "base/fold.h"
#include "base/text.h"
#include "broker/io/io_resolved_pins.h"
#include "broker/tcp/tcp_flow.h"
#include "ipc/channel.h"
#include "sys/process/proc.h"

#define EVENT_PACKET_MAX 1024
#define STOP_SEND_MS	 3000 /* how long the last events may take to be read */
#define DRAIN_MS	 1000
#define DRAIN_LOOK_MS	 2

struct sbx_control {
	struct sbx_broker *b;
	int fd;
	struct event ev_read, ev_write, ev_flush, ev_drain;
	struct sbx_fold *fold;
	uint64_t clock_ms;	 /* the fold's: stands still while `queue` is not empty */
	struct sbx_event *queue; /* came out of the fold, not sent yet: [first, n) */
	size_t first, n, n_max;
	struct sbx_span packet;	 /* borrowed, not sent yet (PINS); n 0: none */
	bool released; /* RELEASE came: what is recorded is the command's, and is sent */
	uint64_t drain_until_ms; /* STOP came, and flows are looked after until then; 0: not (any more) */
	bool stopping; /* STOP came: send everything, then STATS, then leave */
};

static void enqueue(const struct sbx_event *v, void *userdata)
{
	struct sbx_control *c = userdata;

	if (c->n == c->n_max) {
		size_t n_max = c->n_max ? c->n_max * 2 : 8;
		struct sbx_event *queue = realloc(c->queue, n_max * sizeof(*queue));

		if (!queue) { /* a broker without memory for its events must not go on */
			sbx_broker_exit(c->b, 1);
			return;
		}
		c->queue = queue;
		c->n_max = n_max;
	}
	c->queue[c->n++] = *v;
}

/* One event as a packet. A name that the encoder refuses is left out rather than the event. */
static ssize_t encode(const struct sbx_event *v, uint8_t *packet, size_t n_packet)
{
	struct sbx_event bare = *v;
	ssize_t n = sbx_msg_encode_event(v, packet, n_packet);

	if (n >= 0)
		return n;
	bare.name[0] = 0;
	bare.rule[0] = 0;
	return sbx_msg_encode_event(&bare, packet, n_packet);
}

/* Send what is queued. 0 when the queue is empty, SBX_CHANNEL_E_*, -errno. */
static int send_queue(struct sbx_control *c)
{
	uint8_t packet[EVENT_PACKET_MAX];

	while (c->first < c->n) {
		ssize_t n = encode(&c->queue[c->first], packet, sizeof(packet));
		int r = n < 0 ? (int)n : sbx_channel_send(c->fd, packet, (size_t)n, NULL, 0);

		if (r != 0)
			return r;
		c->first++;
	}
	free(c->queue);
	c->queue = NULL;
	c->first = c->n = c->n_max = 0;
	return 0;
}

/* The same for the packet that waits. */
static int send_packet(struct sbx_control *c)
{
	int r = c->packet.n ? sbx_channel_send(c->fd, c->packet.p, c->packet.n, NULL, 0) : 0;

	if (r == 0)
		c->packet.n = 0;
	return r;
}

int sbx_control_send(struct sbx_broker *b, struct sbx_span packet)
{
	struct sbx_control *c = b->control;
	int r;

	c->packet = packet;
	r = send_packet(c);
	if (r == SBX_CHANNEL_E_AGAIN)
		return event_add(&c->ev_write, NULL) < 0 ? -ENOMEM : 0;
	return r > 0 ? -EPIPE : r;
}

static int send_stats(struct sbx_control *c)
{
	uint8_t packet[EVENT_PACKET_MAX];
	ssize_t n;

	sbx_tcp_count(c->b->tcp);
	c->b->stats.events_folded = sbx_fold_n_folded(c->fold);
	c->b->stats.limits_hit += sbx_fold_n_overflowed(c->fold);
	n = sbx_msg_encode_stats(&c->b->stats, packet, sizeof(packet));
	return n < 0 ? (int)n : sbx_channel_send(c->fd, packet, (size_t)n, NULL, 0);
}

/* The launcher was woken by STATS, on this processor, as who speaks last is expected to sleep. Taking
 * ourselves apart now would keep it waiting; it ends us, or lets us go by its end of file. */
static void wait_for_dismissal(struct sbx_control *c)
{
	struct pollfd p = { .fd = c->fd, .events = POLLIN };

	poll(&p, 1, STOP_SEND_MS);
}

/* When to look again: when the oldest event's window is over. */
static void schedule(struct sbx_control *c, uint64_t now_ms)
{
	uint64_t next_ms = sbx_fold_next_ms(c->fold);
	uint64_t wait_ms = next_ms > now_ms ? next_ms - now_ms : 0;
	struct timeval tv = {
		.tv_sec = (time_t)(wait_ms / 1000),
		.tv_usec = (suseconds_t)(wait_ms % 1000 * 1000 + 10000),
	};

	if (next_ms != SBX_FOLD_IDLE)
		event_add(&c->ev_flush, &tv);
}

static void push(struct sbx_control *c)
{
	uint64_t now_ms = sbx_now_ms();
	int r;

	if (!c->released && !c->stopping)
		return;
	if (c->stopping) {
		sbx_fold_flush_all(c->fold, enqueue, c);
	} else if (c->n == 0) {
		c->clock_ms = now_ms;
		sbx_fold_flush(c->fold, now_ms, enqueue, c);
	}
	r = send_queue(c);
	if (r == 0 && c->stopping) {
		r = send_stats(c);
		if (r == 0)
			wait_for_dismissal(c);
	}
	if (r == SBX_CHANNEL_E_AGAIN)
		event_add(&c->ev_write, NULL);
	else if (r != 0 || c->stopping)
		sbx_broker_exit(c->b, r == 0 ? 0 : 1);
	else
		schedule(c, now_ms);
}

static void on_push(evutil_socket_t fd, short what, void *userdata)
{
	struct sbx_control *c = userdata;
	int r = c->stopping ? 0 : send_packet(c);

	(void)fd;
	(void)what;
	if (r == SBX_CHANNEL_E_AGAIN)
		event_add(&c->ev_write, NULL);
	else if (r != 0)
		sbx_broker_exit(c->b, 1);
	else
		push(c);
}

static void record(struct sbx_control *c, const struct sbx_event *e)
{
	if (c->n == 0)
		c->clock_ms = sbx_now_ms();
	sbx_fold_add(c->fold, e, c->clock_ms, enqueue, c);
	if (event_pending(&c->ev_write, EV_WRITE, NULL))
		return;
	if (c->n || c->stopping || !evtimer_pending(&c->ev_flush, NULL))
		push(c);
}

void sbx_broker_event(struct sbx_broker *b, enum sbx_proto proto, const struct sbx_verdict *v,
		      const struct sbx_addr *addr, uint16_t port, const char *name)
{
	struct sbx_event e = {
		.ts_ms = sbx_clock_realtime_ms(),
		.action = (uint8_t)v->action,
		.proto = (uint8_t)proto,
		.reason = (uint8_t)v->reason,
		.port = port,
		.count = 1,
	};

	if (addr)
		e.addr = *addr;
	if (name)
		sbx_text_cut(e.name, sizeof(e.name), "%s", name);
	sbx_text_cut(e.rule, sizeof(e.rule), "%s", sbx_policy_rule_text(b->policy, v->rule));
	record(b->control, &e);
}

void sbx_broker_event_lost(struct sbx_broker *b, uint32_t n)
{
	struct sbx_event e = {
		.ts_ms = sbx_clock_realtime_ms(),
		.action = SBX_DENY,
		.proto = SBX_PROTO_OTHER,
		.reason = SBX_REASON_OVERFLOW,
		.count = n,
	};

	record(b->control, &e);
}

static void on_stop_timeout(evutil_socket_t fd, short what, void *userdata)
{
	struct sbx_control *c = userdata;

	(void)fd;
	(void)what;
	sbx_broker_exit(c->b, 1);
}

/* The last words: every event held, then the numbers. The launcher reads until STATS or end of
 * file. */
static void finish(struct sbx_control *c)
{
	struct timeval tv = { .tv_sec = STOP_SEND_MS / 1000 };

	sbx_pinner_stop(c->b->pinner);
	sbx_nflog_finish(c->b->nflog);
	c->stopping = true;
	event_del(&c->ev_flush);
	if (evtimer_assign(&c->ev_flush, c->b->base, on_stop_timeout, c) == 0)
		evtimer_add(&c->ev_flush, &tv);
	push(c);
}

/* STOP came, or it is time to look again whether flows still have something to say. */
static void stop(struct sbx_control *c)
{
	struct timeval tv = { .tv_usec = DRAIN_LOOK_MS * 1000 };
	uint64_t now_ms = sbx_now_ms();

	if (!c->drain_until_ms)
		c->drain_until_ms = now_ms + DRAIN_MS;
	if (sbx_tcp_publish_is_drained(c->b->tcp) || now_ms >= c->drain_until_ms || event_add(&c->ev_drain, &tv) < 0)
		finish(c);
}

static void on_drain(evutil_socket_t fd, short what, void *userdata)
{
	(void)fd;
	(void)what;
	stop(userdata);
}

bool sbx_control_is_released(const struct sbx_control *c)
{
	return c->released;
}

static void drop(const struct sbx_event *v, void *userdata)
{
	(void)v;
	(void)userdata;
}

static void release(struct sbx_control *c)
{
	uint8_t packet[64];
	ssize_t n;

	sbx_nflog_drain(c->b->nflog); /* the self-test's refusals that were not read yet */
	sbx_fold_flush_all(c->fold, drop, NULL);
	c->b->stats = (struct sbx_msg_stats){ 0 };
	c->released = true;
	n = sbx_msg_encode_simple(SBX_MSG_RELEASE, 0, packet, sizeof(packet));
	if (n < 0 || sbx_nflog_start(c->b->nflog) < 0 ||
	    sbx_channel_send(c->fd, packet, (size_t)n, NULL, 0) != 0)
		sbx_broker_exit(c->b, 1);
}

static void on_read(evutil_socket_t fd, short what, void *userdata)
{
	struct sbx_control *c = userdata;
	struct sbx_pinner *pinner = c->b->pinner;
	uint8_t packet[64];
	uint32_t serial;
	size_t n;
	int r = sbx_channel_recv(fd, packet, sizeof(packet), &n, NULL, 0, NULL, NULL);

	(void)what;
	if (r == SBX_CHANNEL_E_AGAIN)
		return;
	if (r == 0 && sbx_msg_decode_simple(sbx_span(packet, n), SBX_MSG_PINNED, &serial) == 0 &&
	    sbx_pinner_answered(pinner, serial, true))
		return;
	if (r == 0 && sbx_msg_decode_simple(sbx_span(packet, n), SBX_MSG_PINS_FAILED, &serial) == 0 &&
	    sbx_pinner_answered(pinner, serial, false))
		return;
	if (r == 0 && !c->drain_until_ms && sbx_msg_decode_simple(sbx_span(packet, n), SBX_MSG_STOP, NULL) == 0)
		stop(c);
	else if (r == 0 && !c->released &&
		 sbx_msg_decode_simple(sbx_span(packet, n), SBX_MSG_RELEASE, NULL) == 0)
		release(c);
	else
		sbx_broker_exit(c->b, r == SBX_CHANNEL_E_CLOSED ? 0 : 1);
}

int sbx_control_new(struct sbx_broker *b, int fd)
{
	struct sbx_control *c = calloc(1, sizeof(*c));
	uint64_t seed = 0;
	int r;

	if (!c)
		return -ENOMEM;
	b->control = c;
	c->b = b;
	c->fd = fd;
	if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
		return -EIO;
	if (fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
		return -errno;
	r = sbx_fold_new(b->config.limits.n_event_keys, seed, &c->fold);
	if (r < 0)
		return r;
	if (event_assign(&c->ev_read, b->base, fd, EV_READ | EV_PERSIST, on_read, c) < 0 ||
	    event_assign(&c->ev_write, b->base, fd, EV_WRITE, on_push, c) < 0 ||
	    evtimer_assign(&c->ev_flush, b->base, on_push, c) < 0 ||
	    evtimer_assign(&c->ev_drain, b->base, on_drain, c) < 0 ||
	    event_add(&c->ev_read, NULL) < 0)
		return -ENOMEM;
	return 0;
}

void sbx_control_free(struct sbx_control *c)
{
	if (!c)
		return;
	event_del(&c->ev_read);
	event_del(&c->ev_write);
	event_del(&c->ev_flush);
	if (event_initialized(&c->ev_drain))
		event_del(&c->ev_drain);
	sbx_fold_free(c->fold);
	free(c->queue);
	free(c);
}
