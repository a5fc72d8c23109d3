/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/hub/tally.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "store/store_list.h"
#include "store/store_tally.h"
#include "sys/process/proc.h"

#define FRESH_MS 1000

static const char *const states[] = { "preparing", "running", "other" };
_Static_assert(SBX_N_ELEMENTS(states) == SBX_N_TALLY_STATES, "a name for each state");

const char *sbx_tally_state_str(enum sbx_tally_state s)
{
	return (unsigned)s < SBX_N_TALLY_STATES ? states[s] : "?";
}

static void add_events(const char *action, const char *reason, int64_t n, void *userdata)
{
	struct sbx_tally *t = userdata;
	int a = 0, r = 0;

	if (n < 1)
		return;
	while (a < SBX_N_ACTIONS && strcmp(action, sbx_action_str((enum sbx_action)a)) != 0)
		a++;
	while (r < SBX_N_REASONS && strcmp(reason, sbx_reason_str((enum sbx_reason)r)) != 0)
		r++;
	if (a == SBX_N_ACTIONS)
		return;
	t->events[a] += (uint64_t)n;
	if (a == SBX_DENY)
		t->denials[r == SBX_N_REASONS ? SBX_REASON_UNKNOWN : r] += (uint64_t)n;
}

static void set_live(const char *state, int64_t n, void *userdata)
{
	struct sbx_tally *t = userdata;
	int i = 0;

	while (i < SBX_TALLY_OTHER && strcmp(state, states[i]) != 0)
		i++;
	t->live[i] += (uint64_t)n;
}

void sbx_tally_look(struct sbx_tally *t)
{
	uint64_t now_ms = sbx_clock_monotonic_us() / 1000;
	struct sbx_err err = { 0 };
	struct sbx_tally before = *t;

	if (t->looked_ms && now_ms - t->looked_ms < FRESH_MS)
		return;
	t->looked_ms = now_ms;
	if (t->last < 0)
		sbx_store_events_last(t->store, &t->last, &err);
	else if (sbx_store_tally_events(t->store, t->last, SBX_TALLY_EVENTS, add_events, t, &err,
					&t->last) < 0)
		*t = before;
	before = *t;
	memset(t->live, 0, sizeof(t->live));
	if (sbx_store_tally_live(t->store, set_live, t, &err) < 0)
		*t = before;
}

static void on_tick(evutil_socket_t fd, short what, void *userdata)
{
	(void)fd;
	(void)what;
	sbx_tally_look(userdata);
}

int sbx_tally_init(struct sbx_tally *t, struct event_base *base, struct sbx_store *store)
{
	static const struct timeval interval = { .tv_sec = SBX_TALLY_MS / 1000 };

	*t = (struct sbx_tally){ .store = store, .last = -1 };
	t->tick = event_new(base, -1, EV_PERSIST, on_tick, t);
	if (!t->tick || event_add(t->tick, &interval) < 0)
		return -ENOMEM;
	sbx_tally_look(t);
	return 0;
}

void sbx_tally_fini(struct sbx_tally *t)
{
	if (t->tick)
		event_free(t->tick);
	t->tick = NULL;
}
