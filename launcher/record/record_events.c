/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The sandbox's events. The broker folds its events; here they are folded once more, together
 * with the launcher's own, and written in one transaction for each time that the fold gives some:
 * four times a second, and for early events at most SBX_FOLD_EARLY_MAX times in a window.
 *
 * Another process may hold the database's lock (a backup, another sandbox's start). The disk may
 * be full; the command may have filled it. Events that cannot be written stay in memory, and
 * writing is tried again from time to time. The wait is short, so that signals and clocks are
 * handled meanwhile. If there are more events than there is room for, the rest become counts,
 * which are written as overflow rows.
 *
 * The journal, if systemd started us, gets an entry for each folded event at once, whatever the
 * state of the database is.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/count.h"
#include "base/text.h"
#include "launcher/record/record.h"
#include "launcher/record/record_internal.h"
#include "store/store_list.h"
#include "sys/process/proc.h"

#define PENDING_MAX 256	   /* folded events waiting for their transaction */
#define RETRY_US    500000 /* after a write that failed */

static bool has_unrecorded(const struct sbx_recorder *r)
{
	for (size_t i = 0; i < SBX_N_ACTIONS; i++)
		if (r->unrecorded[i])
			return true;
	return false;
}

static bool has_task(const struct sbx_recorder *r)
{
	for (size_t i = 0; i < SBX_RECORDER_TASKS; i++)
		if (r->tasks[i].due)
			return true;
	return false;
}

bool sbx_record_is_due(const struct sbx_recorder *r)
{
	return r->n_pending > 0 || r->released_ms || has_unrecorded(r) || r->change.allow_json ||
	       has_task(r);
}

static void complain_once(struct sbx_recorder *r, const struct sbx_err *err)
{
	if (!r->complained)
		fprintf(stderr, "sbx-run: events are not recorded: %s\n", err->msg);
	r->complained = true;
}

void sbx_record_failed(struct sbx_recorder *r, int error, const struct sbx_err *err)
{
	uint64_t now = sbx_clock_monotonic_us();

	if (!r->failing_since_us)
		r->failing_since_us = now;
	r->retry_at_us = now + RETRY_US;
	if (error != -EBUSY || r->at_end ||
	    now - r->failing_since_us >= SBX_STORE_BUSY_MS * 1000ull)
		complain_once(r, err);
}

static int write_released(struct sbx_recorder *r, struct sbx_err *err)
{
	int e = sbx_store_sandbox_release(r->store, r->id, r->released_ms, NULL, err);

	if (e >= 0)
		/* also if a sweep has set the row to `lost` meanwhile: the run goes on all the
		 * same */
		r->released_ms = 0;
	return e;
}

static void forget_change(struct sbx_recorder *r)
{
	free(r->change.allow_json);
	free(r->change.deny_json);
	free(r->change.rules_json);
	r->change.allow_json = r->change.deny_json = r->change.rules_json = NULL;
}

static int write_change(struct sbx_recorder *r, struct sbx_err *err)
{
	const struct sbx_store_change change = { .generation = r->change.generation,
						 .air_gapped = r->change.air_gapped,
						 .allow_json = r->change.allow_json,
						 .deny_json = r->change.deny_json,
						 .rules_json = r->change.rules_json };
	int e = sbx_store_sandbox_change(r->store, r->id, &change, err);

	if (e >= 0) /* also if a sweep has ended the row meanwhile */
		forget_change(r);
	return e > 0 ? 0 : e;
}

static int write_unrecorded(struct sbx_recorder *r, struct sbx_err *err)
{
	struct sbx_event v[SBX_N_ACTIONS];
	size_t n = 0;
	int e;

	for (size_t i = 0; i < SBX_N_ACTIONS; i++)
		if (r->unrecorded[i])
			v[n++] = (struct sbx_event){ .ts_ms = sbx_clock_realtime_ms(),
						     .action = (uint8_t)i,
						     .proto = SBX_PROTO_OTHER,
						     .reason = SBX_REASON_OVERFLOW,
						     .count = r->unrecorded[i] };
	e = sbx_store_events_add(r->store, r->id, r->options->analysis_id, v, n, err);
	if (e == 0)
		memset(r->unrecorded, 0, sizeof(r->unrecorded));
	return e;
}

static void drop_pending(struct sbx_recorder *r)
{
	free(r->pending);
	r->pending = NULL;
	r->n_pending = 0;
}

static int write_pending(struct sbx_recorder *r, struct sbx_err *err)
{
	int e = sbx_store_events_add(r->store, r->id, r->options->analysis_id, r->pending,
				     r->n_pending, err);

	if (e == 0) {
		drop_pending(r);
		r->wrote = true;
	}
	return e;
}

static int write_tasks(struct sbx_recorder *r, struct sbx_err *err)
{
	int e = 0;

	for (size_t i = 0; i < SBX_RECORDER_TASKS && e == 0; i++) {
		struct sbx_recorder_task *t = &r->tasks[i];
		const struct sbx_store_task_note note = { .sandbox_id = r->id,
							  .workspace = r->options->workspace,
							  .cause = t->cause,
							  .n_denies = (int64_t)t->n_denies,
							  .now_ms = (int64_t)t->last_ms };

		int64_t id;
		bool opened;

		if (!t->due)
			continue;
		e = sbx_store_task_note(r->store, &note, err, &id, &opened);
		t->due = e != 0;
	}
	return e;
}

void sbx_record_task(struct sbx_recorder *r, const char *cause, uint64_t n_denies,
		     uint64_t last_ms)
{
	size_t i = 0;

	while (i < SBX_RECORDER_TASKS - 1 && r->tasks[i].cause && r->tasks[i].cause != cause)
		i++;
	r->tasks[i] = (struct sbx_recorder_task){
		.cause = cause,
		.n_denies = n_denies < INT64_MAX ? n_denies : INT64_MAX,
		.last_ms = last_ms,
		.due = true,
	};
}

/* Does nothing if a write failed a moment ago. */
static void write_due(struct sbx_recorder *r)
{
	struct sbx_err err = { 0 };
	int e = 0;

	if (!r->has_row || !sbx_record_is_due(r) || r->retry_at_us > sbx_clock_monotonic_us())
		return;
	sbx_record_set_wait(r);
	if (r->released_ms)
		e = write_released(r, &err);
	if (e == 0 && r->change.allow_json)
		e = write_change(r, &err);
	if (e == 0 && has_unrecorded(r))
		e = write_unrecorded(r, &err);
	if (e == 0 && r->n_pending > 0)
		e = write_pending(r, &err);
	if (e == 0)
		e = write_tasks(r, &err);
	if (e != 0)
		sbx_record_failed(r, e, &err);
	else
		r->failing_since_us = r->retry_at_us = 0;
}

static void count_unrecorded(struct sbx_recorder *r, const struct sbx_event *e)
{
	uint64_t *sum = &r->unrecorded[e->action < SBX_N_ACTIONS ? e->action : SBX_DENY];

	*sum = sbx_count_add(*sum, e->count);
}

/* Most runs have no event: the first one allocates the memory. */
static void emit(const struct sbx_event *e, void *userdata)
{
	struct sbx_recorder *r = userdata;

	/* before the release they belong to the self-test */
	if (r->released || e->action == SBX_PANIC)
		sbx_event_entry_send(&r->entries,
				     &(struct sbx_event_entry){ r->id, r->options, e });
	if (r->n_pending == PENDING_MAX)
		write_due(r);
	if (!r->pending)
		r->pending = calloc(PENDING_MAX, sizeof(*r->pending));
	if (!r->pending || r->n_pending == PENDING_MAX)
		count_unrecorded(r, e);
	else
		r->pending[r->n_pending++] = *e;
}

static uint64_t now_ms(void)
{
	return sbx_clock_monotonic_us() / 1000;
}

static void schedule(struct sbx_recorder *r)
{
	uint64_t next = r->fold ? sbx_fold_next_ms(r->fold) : SBX_FOLD_IDLE;

	r->flush_at_us = next == SBX_FOLD_IDLE ? 0 : next * 1000 + 1000;
	if (r->has_row && sbx_record_is_due(r) &&
	    (!r->flush_at_us || r->retry_at_us < r->flush_at_us))
		r->flush_at_us = r->retry_at_us;
}

void sbx_record_write(struct sbx_recorder *r)
{
	write_due(r);
	schedule(r);
}

static void print_event(const struct sbx_event *e)
{
	char where[SBX_ADDR_STR_MAX] = "";

	if (e->addr.family)
		sbx_addr_format(&e->addr, where, sizeof(where));
	fprintf(stderr, "sbx-run: %s %s %s%s%s port %u: %s%s%s%s%s\n", sbx_action_str(e->action),
		sbx_proto_str(e->proto), e->name, e->name[0] && where[0] ? " " : "", where, e->port,
		sbx_reason_str(e->reason), e->rule[0] ? ": " : "", e->rule,
		e->request[0] ? ": " : "", e->request);
}

void sbx_record_tell(struct sbx_recorder *r,
		     void (*fn)(void *userdata, const struct sbx_event *e), void *userdata)
{
	r->tell = fn;
	r->tell_userdata = userdata;
}

void sbx_record_event(struct sbx_recorder *r, const struct sbx_event *e)
{
	if (r->options->verbose)
		print_event(e);
	/* before the release they belong to the self-test */
	if (e->action == SBX_DENY && r->released)
		sbx_refusals_add(&r->refusals, e);
	if (r->tell)
		r->tell(r->tell_userdata, e);
	if (!r->fold)
		return;
	sbx_fold_add(r->fold, e, now_ms(), emit, r);
	sbx_record_write(r);
}

void sbx_record_changed(struct sbx_recorder *r, const struct sbx_store_change *change,
			const char *what)
{
	struct sbx_event e = { .ts_ms = sbx_clock_realtime_ms(),
			       .action = SBX_NOTICE,
			       .proto = SBX_PROTO_OTHER,
			       .reason = SBX_REASON_POLICY_CHANGED,
			       .count = 1,
			       .generation = change->generation };
	char *allow = strdup(change->allow_json), *deny = strdup(change->deny_json);
	char *rules = strdup(change->rules_json);

	if (allow && deny && rules) {
		forget_change(r);
		r->change.generation = change->generation;
		r->change.air_gapped = change->air_gapped;
		r->change.allow_json = allow;
		r->change.deny_json = deny;
		r->change.rules_json = rules;
	} else {
		free(allow);
		free(deny);
		free(rules);
	}
	sbx_text_cut(e.rule, sizeof(e.rule), "%s", what);
	sbx_record_event(r, &e);
}

void sbx_record_flush(struct sbx_recorder *r)
{
	if (r->fold)
		sbx_fold_flush(r->fold, now_ms(), emit, r);
	sbx_record_write(r);
}

void sbx_record_flush_all(struct sbx_recorder *r)
{
	r->retry_at_us = 0;
	if (r->fold)
		sbx_fold_flush_all(r->fold, emit, r);
	r->retry_at_us = 0;
	sbx_record_write(r);
}

void sbx_record_forget_events(struct sbx_recorder *r)
{
	uint64_t denied, others;

	for (size_t i = 0; i < r->n_pending; i++)
		count_unrecorded(r, &r->pending[i]);
	drop_pending(r);
	denied = r->unrecorded[SBX_DENY];
	others = r->unrecorded[SBX_ALLOW] + r->unrecorded[SBX_PANIC] + r->unrecorded[SBX_NOTICE];
	if (has_unrecorded(r))
		fprintf(stderr, "sbx-run: %llu refusals and %llu others are not in the database\n",
			(unsigned long long)denied, (unsigned long long)others);
	memset(r->unrecorded, 0, sizeof(r->unrecorded));
	r->released_ms = 0;
}
