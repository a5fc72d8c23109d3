/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The database of a running sandbox: its row gets what holds, and a change of the rules in it is
 * followed, whatever program made it.
 *
 * PRAGMA data_version is looked at once a second. That reads no page of the database, but the
 * number changes with every commit of another process, such as an event of another sandbox. So the
 * stamp of the rules is compared next, and then the rules themselves with those that hold: the
 * first look finds what changed between planning and the release. Only rules about the network
 * count, because rules about tools decide at launch.
 *
 * Rules that do not load leave the old ones in force, with an event: one for each reason, until
 * rules load again. A database that cannot be read now is tried again a second later.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "launcher/live/live_internal.h"
#include "launcher/record/live_lists.h"
#include "launcher/record/record.h"
#include "launcher/rules/rules_load.h"
#include "store/store_rules.h"
#include "sys/process/proc.h"

#define LOOK_US 1000000

/* --- the row --- */

/* One line about the change that was made. */
static const char *what_changed(const struct sbx_live_change *c, bool air_gapped)
{
	switch (c->what) {
	case SBX_LIVE_RULES:
		return "the rules were read again";
	case SBX_LIVE_ALL:
		return "profile, system policy and rules were read again";
	case SBX_LIVE_NETWORK:
		break;
	}
	return c->has_air_gapped ? air_gapped ? "air gap on" : "air gap off" : "live lists";
}

void sbx_live_record(const struct sbx_live_run *l, const struct sbx_live_change *c)
{
	SBX_CLEANUP(sbx_live_lists_fini) struct sbx_live_lists lists = { 0 };
	struct sbx_store_change change = {
		.generation = l->state.generation,
		.air_gapped = l->state.live.air_gapped,
		.allow_json = "[]",
		.deny_json = "[]",
		.rules_json = "[]",
	};

	if (sbx_live_lists_init(&lists, &l->state.live) == 0) {
		change.allow_json = lists.allow;
		change.deny_json = lists.deny;
		change.rules_json = lists.rules;
	}
	sbx_record_changed(l->parts.recorder, &change,
			   what_changed(c, l->state.live.air_gapped));
}

/* --- the rules --- */

static void tell_refused(struct sbx_live_run *l, const char *why)
{
	struct sbx_event e = {
		.ts_ms = sbx_clock_realtime_ms(),
		.action = SBX_NOTICE,
		.proto = SBX_PROTO_OTHER,
		.reason = SBX_REASON_POLICY_REFUSED,
		.count = 1,
		.generation = l->state.generation,
	};

	if (strcmp(l->follow.told, why) == 0)
		return;
	sbx_text_cut(l->follow.told, sizeof(l->follow.told), "%s", why);
	sbx_text_cut(e.rule, sizeof(e.rule), "%s", why);
	sbx_record_event(l->parts.recorder, &e);
}

/* A sbx_live_done_fn. */
static void on_reloaded(void *userdata, const struct sbx_live_answer *a)
{
	struct sbx_live_run *l = userdata;

	l->follow.asked = false;
	if (a->code == SBX_LIVE_DONE) {
		l->follow.told[0] = '\0';
		return;
	}
	l->follow.known = false;
	if (a->code != SBX_LIVE_GONE && a->code != SBX_LIVE_BUSY)
		tell_refused(l, a->err.msg);
}

static const struct sbx_rule *next_network(const struct sbx_rules *rules, size_t *i)
{
	while (*i < rules->n)
		if (rules->v[(*i)++].type == SBX_RULE_NETWORK)
			return &rules->v[*i - 1];
	return NULL;
}

static bool same_rule(const struct sbx_rule *x, const struct sbx_rule *y)
{
	return x->id == y->id && x->action == y->action && x->priority == y->priority &&
	       x->is_floor == y->is_floor && x->of_host == y->of_host &&
	       strcmp(x->pattern, y->pattern) == 0;
}

static bool same_rules(const struct sbx_rules *a, const struct sbx_rules *b)
{
	size_t i = 0, j = 0;

	if (a->default_set != b->default_set || a->default_action != b->default_action)
		return false;
	for (;;) {
		const struct sbx_rule *x = next_network(a, &i), *y = next_network(b, &j);

		if (!x || !y)
			return x == y;
		if (!same_rule(x, y))
			return false;
	}
}

enum { SAME_RULES = 0, OTHER_RULES, BAD_RULES };

/* The rules in the database beside those that hold. BAD_RULES: one does not parse, with @err. Or
 * -errno with @err. */
static int compare_rules(const struct sbx_live_run *l, struct sbx_err *err)
{
	struct sbx_rules now = { 0 };
	int r = sbx_rules_load(l->parts.recorder->store, l->parts.plan->options->workspace, &now,
			       err);

	if (r != 0)
		return r < 0 ? r : BAD_RULES;
	r = same_rules(&now, l->state.rules) ? SAME_RULES : OTHER_RULES;
	sbx_rules_fini(&now);
	return r;
}

/* As compare_rules(); reads no rules unless something changed since the last look. */
static int look(struct sbx_live_run *l, struct sbx_err *err)
{
	struct sbx_store *store = l->parts.recorder->store;
	struct sbx_live_follow *f = &l->follow;
	int64_t version;
	uint64_t stamp;
	int r = sbx_store_data_version(store, &version, err);

	if (r < 0 || (f->known && version == f->data_version))
		return r;
	r = sbx_store_rules_stamp(store, l->parts.plan->options->workspace, &stamp, err);
	if (r == 0 && (!f->known || stamp != f->rules_stamp)) {
		r = compare_rules(l, err);
		if (r == SAME_RULES)
			f->told[0] = '\0';
	}
	f->known = r >= 0;
	f->data_version = version;
	f->rules_stamp = stamp;
	return r;
}

static void follow(struct sbx_live_run *l)
{
	const struct sbx_live_request reload = { .what = SBX_LIVE_RULES };
	struct sbx_err err = { 0 };
	int r = look(l, &err);

	if (r == OTHER_RULES) {
		l->follow.asked = true;
		sbx_live_change(l, &reload, on_reloaded, l);
	} else if (r == BAD_RULES || (r < 0 && r != -EBUSY)) {
		tell_refused(l, err.msg[0] ? err.msg : strerror(-r));
	}
}

static void on_time(void *userdata, short revents)
{
	struct sbx_live_run *l = userdata;

	(void)revents;
	if (l->ended || l->broken)
		return;
	if (l->parts.recorder->store && !l->follow.asked)
		follow(l);
	l->follow.watch->at_us = sbx_clock_monotonic_us() + LOOK_US;
}

int sbx_live_follow_start(struct sbx_live_run *l)
{
	l->follow.watch = sbx_watch_add(l->parts.watches, -1, 0, on_time, l);
	if (!l->follow.watch)
		return -ENOMEM;
	l->follow.watch->at_us = sbx_clock_monotonic_us() + LOOK_US;
	return 0;
}
