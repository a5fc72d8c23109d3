/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Resolved pins (attach cgroup): resolved_pins.c decides which pins there are; this file resolves
 * the names and sends the changes.
 *
 * Names that the sandbox asked for are resolved anew when they are due. Changes go to the launcher
 * as PINS; each message is one transaction in the kernel, and one message is under way at a time. A
 * waiter needs all changes up to its call. The first message after the call that is not full has
 * the last of them; the waiter is done when that message is answered.
 *
 * If the launcher could not change the kernel's sets, their content is unknown: all waiters fail,
 * and after a pause every pin is put anew. Meanwhile the kernel keeps its pins until they time out.
 *
 * Before a pin goes, the kernel is asked which flows are open (sock_diag, by a socket that the
 * launcher made).
 *
 * When the policy changes, first the pins go that it does not allow, and only when the kernel has
 * done that, others are put. The launcher is told then.
 *
 * An address that is pinned under a name for the first time is an event. It stands for the flows to
 * that address, which the broker does not see.
 */

#include "broker/dns/pinner.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "broker/core/core_told.h"
#include "broker/io/report.h"
#include "sys/net/net.h"

#define NAMES_MAX      1024
#define INTERVAL_MIN_S 30 /* of resolved_pins.h */
#define INTERVAL_MAX_S 86400
#define REFRESHES_MAX  16   /* names resolved anew at once */
#define WAIT_MIN_MS    50   /* between two looks at the due changes */
#define PAUSE_MS       1000 /* after PINS_FAILED; doubled up to PAUSE_MAX_MS while PINS fail */
#define PAUSE_MAX_MS   4000
#define PACKET_MAX     (64 + SBX_MSG_PINS_MAX * 32)

/* A name that is resolved anew. */
struct refresh {
	struct sbx_pinner *pinner;
	struct refresh *prev, *next;
	struct sbx_resolve_waiter waiter;
	struct sbx_pinned pinned;
	char name[SBX_HOSTNAME_MAX + 1];
};

struct sbx_pinner {
	struct sbx_context *ctx;
	struct sbx_resolve *resolve;
	struct sbx_resolved_pins *pins;
	struct sbx_told *told;
	struct event ev;
	struct sbx_pinned *first, *last; /* waiters, in the order they came */
	struct refresh *refreshes;
	size_t n_refreshes;
	uint32_t serial; /* of the last message */
	bool under_way;	 /* the last message is not answered yet */
	bool stopped;
	/* a change of the policy under way: the pins that had to go are gone; NULL: none is */
	struct sbx_pinned change;
	bool closed;
	bool change_heard, change_ok; /* the last message that it waits for was answered */
	sbx_pinner_done_fn change_done;
	void *change_userdata;
	uint32_t pause_ms; /* 0: the last message was carried out */
	uint64_t pause_until_ms;
	struct sbx_resolved_pins_change changes[SBX_MSG_PINS_MAX];
	struct sbx_msg_pins message;
	uint8_t packet[PACKET_MAX]; /* of the message under way */
};

/* --- policy --- */

static bool judge(void *userdata, const char *name, const struct sbx_addr *addr,
		  enum sbx_proto proto, uint16_t port)
{
	struct sbx_context *ctx = userdata;

	return sbx_core_may_pin(&ctx->core, name, addr, proto, port);
}

/* The ports that policy allows @name. Those past the limit stay closed. */
static size_t ports_of(struct sbx_context *ctx, const char *name,
		       struct sbx_resolved_pins_port ret_ports[SBX_RESOLVED_PINS_PORTS_MAX])
{
	struct sbx_policy_port v[SBX_RESOLVED_PINS_PORTS_MAX];
	size_t n = sbx_policy_name_ports(ctx->core.policy, name, v, SBX_RESOLVED_PINS_PORTS_MAX);

	if (n > SBX_RESOLVED_PINS_PORTS_MAX) {
		ctx->stats.limits_hit++;
		n = SBX_RESOLVED_PINS_PORTS_MAX;
	}
	for (size_t i = 0; i < n; i++)
		ret_ports[i] = (struct sbx_resolved_pins_port){ v[i].proto, v[i].port };
	return n;
}

static void record(struct sbx_pinner *p, const struct sbx_pinned *w)
{
	struct sbx_verdict v =
		sbx_policy_decide_name(p->ctx->core.policy, w->name, SBX_PROTO_DNS, 0);

	/* The self-test's use is not recorded: it would hide the command's first use. */
	if (!sbx_report_is_released(p->ctx->report))
		return;
	for (size_t i = 0; i < w->n; i++)
		if (sbx_told_add(p->told, w->name, &w->v[i]))
			sbx_report_event(p->ctx, SBX_PROTO_DNS, &v, &w->v[i], 53, w->name);
}

/* --- waiters --- */

static void enqueue(struct sbx_pinner *p, struct sbx_pinned *w, sbx_pinned_fn done)
{
	w->pinner = p;
	w->serial = 0;
	w->done = done;
	w->next = NULL;
	w->prev = p->last;
	*(p->last ? &p->last->next : &p->first) = w;
	p->last = w;
}

void sbx_pinner_cancel(struct sbx_pinned *w)
{
	struct sbx_pinner *p = w->pinner;

	if (!p)
		return;
	*(w->prev ? &w->prev->next : &p->first) = w->next;
	*(w->next ? &w->next->prev : &p->last) = w->prev;
	w->prev = w->next = NULL;
	w->pinner = NULL;
}

/* Ends the waiters whose message has @serial; all waiters with @all. */
static void finish(struct sbx_pinner *p, uint32_t serial, bool all, bool ok)
{
	struct sbx_pinned *next;

	for (struct sbx_pinned *w = p->first; w; w = next) {
		next = w->next;
		if (!all && w->serial != serial)
			continue;
		sbx_pinner_cancel(w);
		if (ok)
			record(p, w);
		w->done(w, ok);
	}
}

/* --- messages --- */

static void fill_message(struct sbx_pinner *p, size_t n)
{
	struct sbx_msg_pins *m = &p->message;

	m->serial = p->serial;
	m->n_pins = (uint32_t)n;
	for (size_t i = 0; i < n; i++) {
		const struct sbx_resolved_pins_change *c = &p->changes[i];

		m->v[i] = (struct sbx_msg_pin){
			.addr = c->addr,
			.port = c->port,
			.proto = (uint8_t)c->proto,
			.old = c->old,
			.timeout_ms =
				c->timeout_ms < UINT32_MAX ? (uint32_t)c->timeout_ms : UINT32_MAX,
		};
	}
}

static void send_changes(struct sbx_pinner *p, size_t n)
{
	bool all = n + 1 < SBX_N_ELEMENTS(p->changes);
	ssize_t size;

	if (++p->serial == 0)
		p->serial = 1;
	fill_message(p, n);
	size = sbx_msg_encode_pins(&p->message, p->packet, sizeof(p->packet));
	if (size < 0 || sbx_report_send(p->ctx->report, sbx_span(p->packet, (size_t)size)) < 0) {
		sbx_context_exit(p->ctx, 1);
		return;
	}
	p->under_way = true;
	for (struct sbx_pinned *w = p->first; all && w; w = w->next)
		if (w->serial == 0)
			w->serial = p->serial;
}

static void schedule(struct sbx_pinner *p, uint64_t now_ms)
{
	uint64_t next_ms = sbx_resolved_pins_next_ms(p->pins), wait_ms;
	struct timeval tv;

	if (p->pause_ms && !p->under_way && p->pause_until_ms < next_ms)
		next_ms = p->pause_until_ms;
	if (next_ms == UINT64_MAX || p->stopped) {
		event_del(&p->ev);
		return;
	}
	wait_ms = next_ms > now_ms + WAIT_MIN_MS ? next_ms - now_ms : WAIT_MIN_MS;
	tv.tv_sec = (time_t)(wait_ms / 1000);
	tv.tv_usec = (suseconds_t)(wait_ms % 1000 * 1000);
	event_add(&p->ev, &tv);
}

/* --- another policy --- */

static size_t ports_again(void *userdata, const char *name,
			  struct sbx_resolved_pins_port *ret_ports)
{
	return ports_of(userdata, name, ret_ports);
}

/* Addresses that are not pinned any more are not told to the sandbox. */
static void judge_waiters(struct sbx_pinner *p)
{
	for (struct sbx_pinned *w = p->first; w; w = w->next) {
		size_t n = 0;

		for (size_t i = 0; i < w->n; i++)
			if (sbx_resolved_pins_is_current(p->pins, w->name, &w->v[i]))
				w->v[n++] = w->v[i];
		w->n = n;
	}
}

/* Within finish(), which must not be entered again: push() goes on. */
static void on_change(struct sbx_pinned *w, bool ok)
{
	struct sbx_pinner *p = sbx_container_of(w, struct sbx_pinner, change);

	p->change_heard = true;
	p->change_ok = ok;
}

/* The kernel has, or could not get, what the change under way needs. True: there is more to
 * send. */
static bool continue_change(struct sbx_pinner *p)
{
	sbx_pinner_done_fn done = p->change_done;

	if (!p->change_heard)
		return false;
	p->change_heard = false;
	if (p->change_ok && p->closed) {
		p->change_done = NULL;
		done(p->change_userdata);
		return false;
	}
	/* After a failure the content of the kernel's sets is unknown, and all is put anew. */
	if (p->change_ok) {
		p->closed = true;
		sbx_resolved_pins_pin_again(p->pins, sbx_now_ms());
	}
	enqueue(p, &p->change, on_change);
	return true;
}

/* --- sending --- */

static void push_once(struct sbx_pinner *p, uint64_t now_ms)
{
	size_t n;

	if (p->under_way || (p->pause_ms && now_ms < p->pause_until_ms))
		return;
	sbx_resolved_pins_tick(p->pins, now_ms);
	n = sbx_resolved_pins_changes(p->pins, now_ms, p->changes, SBX_N_ELEMENTS(p->changes));
	if (n)
		send_changes(p, n);
	else
		finish(p, 0, true, true);
}

void sbx_pinner_push(struct sbx_pinner *p)
{
	uint64_t now_ms = sbx_now_ms();

	if (p->stopped)
		return;
	do
		push_once(p, now_ms);
	while (continue_change(p));
	schedule(p, now_ms);
}

bool sbx_pinner_answered(struct sbx_pinner *p, uint32_t serial, bool ok)
{
	if (!p || !p->under_way || serial != p->serial)
		return false;
	p->under_way = false;
	if (p->stopped)
		return true;
	if (ok) {
		p->pause_ms = 0;
		finish(p, serial, false, true);
	} else {
		p->ctx->stats.limits_hit++;
		p->pause_ms = p->pause_ms ? p->pause_ms * 2 : PAUSE_MS;
		if (p->pause_ms > PAUSE_MAX_MS)
			p->pause_ms = PAUSE_MAX_MS;
		p->pause_until_ms = sbx_now_ms() + p->pause_ms;
		sbx_resolved_pins_forget_kernel(p->pins);
		finish(p, 0, true, false);
	}
	sbx_pinner_push(p);
	return true;
}

void sbx_pinner_wait(struct sbx_pinner *p, struct sbx_pinned *w, sbx_pinned_fn done)
{
	enqueue(p, w, done);
	sbx_pinner_push(p);
}

void sbx_pinner_policy_changed(struct sbx_pinner *p, sbx_pinner_done_fn done, void *userdata)
{
	sbx_pinner_cancel(&p->change);
	p->change_done = done;
	p->change_userdata = userdata;
	p->change_heard = p->closed = false;
	p->pause_ms = 0; /* what has to go does not wait */
	sbx_resolved_pins_judge_again(p->pins, ports_again, sbx_now_ms());
	judge_waiters(p);
	sbx_pinner_wait(p, &p->change, on_change);
}

/* --- answers --- */

void sbx_pinner_resolved(struct sbx_pinner *p, const char *name, bool asked,
			 const struct sbx_resolve_result *result, struct sbx_pinned *ret_p)
{
	struct sbx_resolved_pins_port ports[SBX_RESOLVED_PINS_PORTS_MAX];
	struct sbx_resolved_pins_answer answer = {
		.name = name,
		/* A name without an address is not followed: the sandbox can make up names. */
		.asked = asked && result->n > 0,
		.partial = result->partial,
		.ttl_s = result->ttl_s,
		.n_addrs = result->n,
		.addrs = result->v,
		.ports = ports,
	};
	bool is_answer =
		result->n > 0 || result->status4 == SBX_RESOLVE_NXDOMAIN ||
		result->status6 == SBX_RESOLVE_NXDOMAIN ||
		(result->status4 == SBX_RESOLVE_FOUND && result->status6 == SBX_RESOLVE_FOUND);

	ret_p->n = 0;
	sbx_text_fit(ret_p->name, sizeof(ret_p->name), "%s", name);
	answer.n_ports = ports_of(p->ctx, name, ports);
	if (!is_answer ||
	    sbx_resolved_pins_resolved(p->pins, &answer, sbx_now_ms(), ret_p->v, &ret_p->n) < 0)
		sbx_resolved_pins_failed(p->pins, name, sbx_now_ms());
}

static void free_refresh(struct refresh *f)
{
	struct sbx_pinner *p = f->pinner;

	sbx_resolve_cancel(&f->waiter);
	sbx_pinner_cancel(&f->pinned);
	*(f->prev ? &f->prev->next : &p->refreshes) = f->next;
	if (f->next)
		f->next->prev = f->prev;
	p->n_refreshes--;
	free(f);
}

static void on_refresh_pinned(struct sbx_pinned *w, bool ok)
{
	(void)ok;
	free_refresh(sbx_container_of(w, struct refresh, pinned));
}

static void on_refreshed(struct sbx_resolve_waiter *w, const struct sbx_resolve_result *result)
{
	struct refresh *f = sbx_container_of(w, struct refresh, waiter);
	struct sbx_pinner *p = f->pinner;

	sbx_pinner_resolved(p, f->name, false, result, &f->pinned);
	sbx_pinner_wait(p, &f->pinned, on_refresh_pinned);
}

/* False: there was no memory. */
static bool refresh(struct sbx_pinner *p, const char *name)
{
	struct refresh *f = calloc(1, sizeof(*f));
	const struct sbx_resolve_result *result;

	if (!f) {
		sbx_resolved_pins_failed(p->pins, name, sbx_now_ms());
		return false;
	}
	f->pinner = p;
	sbx_text_fit(f->name, sizeof(f->name), "%s", name);
	f->next = p->refreshes;
	if (f->next)
		f->next->prev = f;
	p->refreshes = f;
	p->n_refreshes++;
	result = sbx_resolve_anew(p->resolve, f->name, &f->waiter, on_refreshed);
	if (result)
		on_refreshed(&f->waiter, result);
	return true;
}

/* --- the loop --- */

static void on_remote(void *userdata, const struct sbx_addr *addr, enum sbx_proto proto,
		      uint16_t port)
{
	struct sbx_pinner *p = userdata;

	sbx_resolved_pins_in_use(p->pins, addr, proto, port, sbx_now_ms());
}

static void sweep(struct sbx_pinner *p)
{
	int fd = p->ctx->fds[SBX_BFD_DIAG], r = -EBADF;

	if (fd >= 0) {
		/* Drops the answers of an earlier question that failed half way. */
		while (recv(fd, p->ctx->copy, sizeof(p->ctx->copy), MSG_DONTWAIT) > 0)
			;
		r = sbx_net_open_remotes(fd, on_remote, p);
	}
	sbx_resolved_pins_swept(p->pins, r == 0, sbx_now_ms());
}

static void on_timer(evutil_socket_t fd, short what, void *userdata)
{
	struct sbx_pinner *p = userdata;
	uint64_t now_ms = sbx_now_ms();
	const char *name;

	(void)fd;
	(void)what;
	if (p->stopped)
		return;
	if (sbx_resolved_pins_wants_sweep(p->pins, now_ms))
		sweep(p);
	sbx_resolved_pins_tick(p->pins, now_ms);
	while (p->n_refreshes < REFRESHES_MAX && (name = sbx_resolved_pins_due(p->pins, now_ms)))
		if (!refresh(p, name))
			break;
	sbx_pinner_push(p);
}

void sbx_pinner_stop(struct sbx_pinner *p)
{
	if (!p)
		return;
	p->stopped = true;
	event_del(&p->ev);
	p->ctx->stats.limits_hit += sbx_resolved_pins_stats(p->pins).limits_hit;
}

int sbx_pinner_new(struct sbx_context *ctx, struct sbx_resolve *resolve,
		   struct sbx_pinner **ret_pinner)
{
	struct sbx_resolved_pins_config config = {
		.repin_interval_s = ctx->config.repin_interval_s,
		.n_names_max = NAMES_MAX,
		.n_pins_max = ctx->config.limits.n_pins ? ctx->config.limits.n_pins : 1,
		.judge = judge,
		.userdata = ctx,
	};
	struct sbx_pinner *p;
	int r;

	if (!ctx->config.resolved_pins)
		return 0;
	if (config.repin_interval_s < INTERVAL_MIN_S)
		config.repin_interval_s = INTERVAL_MIN_S;
	if (config.repin_interval_s > INTERVAL_MAX_S)
		config.repin_interval_s = INTERVAL_MAX_S;
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	*ret_pinner = p;
	p->ctx = ctx;
	p->resolve = resolve;
	r = sbx_resolved_pins_new(&config, &p->pins);
	if (r == 0)
		r = sbx_told_new(config.n_pins_max, &p->told);
	if (r == 0 && evtimer_assign(&p->ev, ctx->base, on_timer, p) < 0)
		r = -ENOMEM;
	return r;
}

void sbx_pinner_free(struct sbx_pinner *p)
{
	if (!p)
		return;
	while (p->refreshes)
		free_refresh(p->refreshes);
	sbx_context_unwatch(&p->ev);
	sbx_resolved_pins_free(p->pins);
	sbx_told_free(p->told);
	free(p);
}
