/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Changes of a running sandbox, one at a time.
 *
 *   IDLE     the next change is compiled and checked; a bad one is answered, and that is all.
 *            -> KERNEL
 *   KERNEL   the kernel's rules lose what the new policy does not allow (live_kernel.c).
 *            -> BROKER
 *   BROKER   the broker has the new policy, cuts flows, and answers. Then the kernel's rules get
 *            what is new, the row is written, and the asker hears. -> IDLE
 *
 * With attach netns the kernel's rules lead to the broker and nowhere else, so between the two
 * steps only that passes which both policies allow.
 *
 * A step that takes longer than STEP_US, and a kernel that refuses half way, break the run: the
 * loop (run/supervise.c) then ends the sandbox.
 *
 * Lists of flows are asked of the broker one after the other, beside the changes. A broker that
 * does not answer keeps ASKERS_MAX waiting; the next get no flows.
 */
#include "launcher/live/live.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "ipc/channel.h"
#include "launcher/live/live_internal.h"
#include "sys/process/proc.h"

#define CHANGES_MAX 64
#define ASKERS_MAX  128 /* more than clients of the control socket */
#define STEP_US	    2000000
#define RETRY_US    2000 /* the broker's channel was full */

struct sbx_live_asker {
	struct sbx_live_asker *next;
	sbx_live_flows_fn fn;
	void *userdata;
};

static void advance(struct sbx_live_run *l);

/* --- the queue --- */

static void change_free(struct sbx_live_change *c)
{
	sbx_str_list_fini(&c->allow);
	sbx_str_list_fini(&c->deny);
	sbx_str_list_fini(&c->add_allow);
	sbx_str_list_fini(&c->add_deny);
	sbx_str_list_fini(&c->rules);
	free(c);
}

static int copy_list(const struct sbx_str_list *from, struct sbx_str_list *list, bool *ret_has)
{
	if (ret_has)
		*ret_has = from != NULL;
	return from ? sbx_str_list_copy(from, list) : 0;
}

static struct sbx_live_change *change_new(const struct sbx_live_request *q)
{
	struct sbx_live_change *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->what = q->what;
	c->if_generation = q->if_generation;
	c->has_air_gapped = q->has_air_gapped;
	c->air_gapped = q->air_gapped;
	if (copy_list(q->allow_out, &c->allow, &c->has_allow) == 0 &&
	    copy_list(q->deny_out, &c->deny, &c->has_deny) == 0 &&
	    copy_list(q->add_allow, &c->add_allow, NULL) == 0 &&
	    copy_list(q->add_deny, &c->add_deny, NULL) == 0 &&
	    copy_list(q->rules, &c->rules, &c->has_rules) == 0)
		return c;
	change_free(c);
	return NULL;
}

/* Takes the first change off the queue, and tells its asker. */
static void answer(struct sbx_live_run *l, const struct sbx_live_answer *a)
{
	struct sbx_live_change *c = l->first;

	l->first = c->next;
	if (!l->first)
		l->last = NULL;
	l->n_changes--;
	c->done(c->userdata, a);
	change_free(c);
}

static void answer_all(struct sbx_live_run *l, enum sbx_live_code code, const char *why)
{
	while (l->first) {
		struct sbx_live_answer a = { .code = code };

		sbx_err_set(&a.err, "%s", why);
		answer(l, &a);
	}
}

static void end_askers(struct sbx_live_run *l)
{
	while (l->askers) {
		struct sbx_live_asker *asker = l->askers;

		l->askers = asker->next;
		asker->fn(asker->userdata, NULL);
		free(asker);
	}
	l->last_asker = NULL;
	l->n_askers = 0;
}

/* --- the steps of a change --- */

static void enter(struct sbx_live_run *l, enum sbx_live_step step)
{
	l->step = step;
	l->sent = false;
	l->until_us = step == SBX_LIVE_IDLE ? 0 : sbx_clock_monotonic_us() + STEP_US;
	if (l->watch)
		l->watch->at_us = l->until_us;
}

/* Half a policy is no policy. */
static void break_off(struct sbx_live_run *l, const struct sbx_err *why)
{
	l->broken = true;
	sbx_err_set(&l->err,
		    "a change of the running policy could not be finished: %s; the sandbox was "
		    "ended",
		    why->msg);
	sbx_live_state_fini(&l->next);
	enter(l, SBX_LIVE_IDLE);
	answer_all(l, SBX_LIVE_FAILED, l->err.msg);
	end_askers(l);
}

/* The change under way did not change anything. */
static void refuse(struct sbx_live_run *l, struct sbx_live_answer *a)
{
	sbx_live_state_fini(&l->next);
	enter(l, SBX_LIVE_IDLE);
	answer(l, a);
}

static void fail(struct sbx_live_run *l, const struct sbx_err *why)
{
	struct sbx_live_answer a = { .code = SBX_LIVE_FAILED };

	sbx_err_set(&a.err, "%s; the old policy holds", why->msg);
	refuse(l, &a);
}

/* The broker has the policy, and the kernel its rules. */
static void finish(struct sbx_live_run *l, uint32_t n_cut)
{
	struct sbx_live_answer a = { .generation = l->next.generation, .n_cut = n_cut };
	struct sbx_err err = { 0 };
	uint32_t n_ended = 0;

	if (sbx_live_kernel_open(l, &n_ended, &err) > SBX_LIVE_KERNEL_UNDER_WAY) {
		break_off(l, &err);
		return;
	}
	a.n_cut += n_ended;
	sbx_live_state_replace(&l->state, &l->next);
	sbx_live_record(l, l->first);
	enter(l, SBX_LIVE_IDLE);
	answer(l, &a);
}

/* Sends the policy; tries again while the channel is full. */
static void send_policy(struct sbx_live_run *l)
{
	SBX_AUTO_CLOSE int fd = sbx_memfd_new("sbx-policy", l->next.blob, l->next.n_blob);
	struct sbx_err err = { 0 };
	uint8_t packet[16];
	ssize_t n = sbx_msg_encode_simple(SBX_MSG_POLICY, 0, packet, sizeof(packet));
	int r = fd < 0 ? fd : (int)n;

	if (fd >= 0 && n > 0)
		r = sbx_channel_send(l->parts.broker->fd, packet, (size_t)n, &fd, 1);
	if (r == 0) {
		l->sent = true;
		l->watch->at_us = l->until_us;
	} else if (r == SBX_CHANNEL_E_AGAIN) {
		l->watch->at_us = sbx_clock_monotonic_us() + RETRY_US;
	} else {
		sbx_err_set(&err, "the broker cannot be told: %s",
			    r < 0 ? strerror(-r) : "it has ended");
		if (l->kernel_changed || r > 0)
			break_off(l, &err);
		else
			fail(l, &err);
	}
}

static void go_to_broker(struct sbx_live_run *l)
{
	enter(l, SBX_LIVE_BROKER);
	send_policy(l);
}

/* Those that were asked for before it have been made. */
static bool is_of_generation(const struct sbx_live_run *l, struct sbx_live_answer *a)
{
	uint64_t wanted = l->first->if_generation, now = l->state.generation;

	if (!wanted || wanted == now)
		return true;
	a->code = SBX_LIVE_CHANGED;
	sbx_err_set(&a->err, "the policy was changed meanwhile: it is of generation %llu",
		    (unsigned long long)now);
	return false;
}

static void begin(struct sbx_live_run *l)
{
	struct sbx_live_answer a = { 0 };
	struct sbx_err err = { 0 };

	if (!is_of_generation(l, &a)) {
		answer(l, &a);
		return;
	}
	a.code = sbx_live_state_next(l, l->first, &l->next, &a);
	if (a.code != SBX_LIVE_DONE) {
		answer(l, &a);
		return;
	}
	l->kernel_changed = false;
	enter(l, SBX_LIVE_KERNEL);
	switch (sbx_live_kernel_close(l, &err)) {
	case SBX_LIVE_KERNEL_DONE:
		l->kernel_changed = true;
		go_to_broker(l);
		break;
	case SBX_LIVE_KERNEL_SAME:
		go_to_broker(l);
		break;
	case SBX_LIVE_KERNEL_UNDER_WAY:
		break;
	case SBX_LIVE_KERNEL_REFUSED:
		fail(l, &err);
		break;
	case SBX_LIVE_KERNEL_BROKEN:
		break_off(l, &err);
		break;
	}
}

static void advance(struct sbx_live_run *l)
{
	while (l->started && !l->ended && !l->broken && l->step == SBX_LIVE_IDLE && l->first)
		begin(l);
}

static void on_time(void *userdata, short revents)
{
	struct sbx_live_run *l = userdata;
	struct sbx_err err = { 0 };

	(void)revents;
	if (l->step == SBX_LIVE_IDLE || l->ended || l->broken)
		return;
	if (sbx_clock_monotonic_us() >= l->until_us) {
		sbx_err_set(&err, "%s did not answer in %d s",
			    l->step == SBX_LIVE_KERNEL ? "the stage" : "the broker",
			    STEP_US / 1000000);
		break_off(l, &err);
	} else if (l->step == SBX_LIVE_BROKER && !l->sent) {
		send_policy(l);
	}
	advance(l);
}

/* --- lists of flows --- */

static void ask_flows(struct sbx_live_run *l)
{
	uint8_t packet[16];
	ssize_t n = sbx_msg_encode_simple(SBX_MSG_FLOWS, 0, packet, sizeof(packet));

	/* A channel that is full is a broker that does not read: the asker hears nothing good. */
	if (n < 0 || sbx_channel_send(l->parts.broker->fd, packet, (size_t)n, NULL, 0) != 0)
		end_askers(l);
}

void sbx_live_flows(struct sbx_live_run *l, sbx_live_flows_fn fn, void *userdata)
{
	bool takes = l->started && !l->ended && !l->broken && l->parts.broker->fd >= 0 &&
		     l->n_askers < ASKERS_MAX;
	struct sbx_live_asker *asker = takes ? calloc(1, sizeof(*asker)) : NULL;

	if (!asker) {
		fn(userdata, NULL);
		return;
	}
	asker->fn = fn;
	asker->userdata = userdata;
	if (l->last_asker)
		l->last_asker->next = asker;
	else
		l->askers = asker;
	l->last_asker = asker;
	l->n_askers++;
	if (l->askers == asker)
		ask_flows(l);
}

/* --- messages --- */

int sbx_live_heard_policy(struct sbx_live_run *l, const struct sbx_msg_policy_done *m)
{
	struct sbx_err err = { 0 };

	if (l->ended || l->broken)
		return 0;
	if (l->step != SBX_LIVE_BROKER || !l->sent ||
	    m->generation != (m->ok ? l->next.generation : l->state.generation))
		return -1;
	if (m->ok) {
		finish(l, m->n_cut);
	} else {
		sbx_err_set(&err, "the broker did not take the policy");
		if (l->kernel_changed)
			break_off(l, &err);
		else
			fail(l, &err);
	}
	advance(l);
	return 0;
}

int sbx_live_heard_ruleset(struct sbx_live_run *l, const struct sbx_msg_ruleset_done *m)
{
	struct sbx_err err = { 0 };

	if (l->ended || l->broken)
		return 0;
	if (l->step != SBX_LIVE_KERNEL)
		return -1;
	if (m->error == 0) {
		sbx_live_kernel_changed(l);
		l->kernel_changed = true;
		go_to_broker(l);
	} else {
		sbx_err_set(&err, "%s", m->detail);
		if (m->taken)
			break_off(l, &err);
		else
			fail(l, &err);
	}
	advance(l);
	return 0;
}

int sbx_live_heard_flows(struct sbx_live_run *l, const struct sbx_msg_flow_list *m)
{
	struct sbx_live_asker *asker = l->askers;

	if (l->ended || l->broken)
		return 0;
	if (!asker)
		return -1;
	asker->fn(asker->userdata, m);
	if (!m->last)
		return 0;
	l->askers = asker->next;
	l->n_askers--;
	if (!l->askers)
		l->last_asker = NULL;
	free(asker);
	if (l->askers)
		ask_flows(l);
	return 0;
}

/* --- from outside --- */

void sbx_live_change(struct sbx_live_run *l, const struct sbx_live_request *request,
		     sbx_live_done_fn done, void *userdata)
{
	struct sbx_live_answer a = { 0 };
	struct sbx_live_change *c = NULL;

	if (l->ended || l->broken) {
		a.code = SBX_LIVE_GONE;
		sbx_err_set(&a.err, "the sandbox ends");
	} else if (l->n_changes >= CHANGES_MAX) {
		a.code = SBX_LIVE_BUSY;
		sbx_err_set(&a.err, "%d changes wait already: try again", CHANGES_MAX);
	} else {
		c = change_new(request);
		a.code = SBX_LIVE_FAILED;
		if (!c)
			sbx_err_set(&a.err, "out of memory; the old policy holds");
	}
	if (!c) {
		done(userdata, &a);
		return;
	}
	c->done = done;
	c->userdata = userdata;
	if (l->last)
		l->last->next = c;
	else
		l->first = c;
	l->last = c;
	l->n_changes++;
	advance(l);
}

void sbx_live_run_init(struct sbx_live_run *l)
{
	*l = (struct sbx_live_run){ 0 };
}

int sbx_live_start(struct sbx_live_run *l, const struct sbx_live_parts *parts)
{
	int r;

	l->parts = *parts;
	r = sbx_live_state_first(&l->state, parts->plan);
	if (r < 0)
		return r;
	l->watch = sbx_watch_add(parts->watches, -1, 0, on_time, l);
	if (!l->watch)
		return -ENOMEM;
	r = sbx_live_follow_start(l);
	if (r < 0)
		return r;
	l->started = true;
	advance(l);
	return 0;
}

void sbx_live_end(struct sbx_live_run *l)
{
	l->ended = true;
	l->watch = sbx_watch_remove(l->watch);
	l->follow.watch = sbx_watch_remove(l->follow.watch);
	answer_all(l, SBX_LIVE_GONE, "the sandbox has ended");
	end_askers(l);
}

void sbx_live_run_fini(struct sbx_live_run *l)
{
	sbx_live_end(l);
	sbx_live_state_fini(&l->state);
	sbx_live_state_fini(&l->next);
	free(l->cidrs);
	free(l->cidrs_next);
	l->cidrs = l->cidrs_next = NULL;
}
