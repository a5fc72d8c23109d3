/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The sandbox's events. They arrive folded from the broker and are folded once more here (the launcher adds its own),
 * then written at most once a second in one transaction.
 *
 * The database may be in somebody else's hands (a backup, another sandbox's start), and the disk full: the command may
 * have filled it. What cannot be written stays here, is tried again now and then, and is in any case no reason not to
 * look at signals and clocks; more than there is room for stays as counts, which become overflow rows.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/record/record.h"
#include "launcher/record/record_internal.h"
#include "sys/process/proc.h"

#define PENDING_MAX 256	   /* folded events waiting for their transaction */
#define RETRY_US    500000 /* after a write that failed */

static bool has_unrecorded(const struct sbx_run *r)
{
	for (size_t i = 0; i < SBX_N_ACTIONS; i++)
		if (r->unrecorded[i])
			return true;
	return false;
}

bool sbx_record_is_due(const struct sbx_run *r)
{
	return r->n_pending > 0 || r->released_ms || has_unrecorded(r);
}

static void complain_once(struct sbx_run *r, const struct sbx_err *err)
{
	if (!r->store_failed)
		fprintf(stderr, "sbx-run: events are not recorded: %s\n", err->msg);
	r->store_failed = true;
}

void sbx_record_failed(struct sbx_run *r, int error, const struct sbx_err *err)
{
	uint64_t now = sbx_clock_monotonic_us();

	if (!r->failing_since_us)
		r->failing_since_us = now;
	r->retry_at_us = now + RETRY_US;
	if (error != -EBUSY || r->at_end || now - r->failing_since_us >= SBX_STORE_BUSY_MS * 1000ull)
		complain_once(r, err);
}

static int write_released(struct sbx_run *r, struct sbx_err *err)
{
	int e = sbx_store_sandbox_release(r->store, r->plan->id, r->released_ms, NULL, err);

	if (e >= 0)
		r->released_ms = 0; /* who called it lost meanwhile is right about the row, not about us */
	return e;
}

static int write_unrecorded(struct sbx_run *r, struct sbx_err *err)
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
	e = sbx_store_events_add(r->store, r->plan->id, r->plan->options->analysis_id, v, n, err);
	if (e == 0)
		memset(r->unrecorded, 0, sizeof(r->unrecorded));
	return e;
}

static void drop_pending(struct sbx_run *r)
{
	free(r->pending);
	r->pending = NULL;
	r->n_pending = 0;
}

static int write_pending(struct sbx_run *r, struct sbx_err *err)
{
	int e = sbx_store_events_add(r->store, r->plan->id, r->plan->options->analysis_id, r->pending, r->n_pending,
				     err);

	if (e == 0)
		drop_pending(r);
	return e;
}

/* Unless it failed a moment ago. */
static void write_due(struct sbx_run *r)
{
	struct sbx_err err = { 0 };
	int e = 0;

	if (!r->row || !sbx_record_is_due(r) || r->retry_at_us > sbx_clock_monotonic_us())
		return;
	sbx_record_set_wait(r);
	if (r->released_ms)
		e = write_released(r, &err);
	if (e == 0 && has_unrecorded(r))
		e = write_unrecorded(r, &err);
	if (e == 0 && r->n_pending > 0)
		e = write_pending(r, &err);
	if (e != 0)
		sbx_record_failed(r, e, &err);
	else
		r->failing_since_us = r->retry_at_us = 0;
}

static void count_unrecorded(struct sbx_run *r, const struct sbx_event *e)
{
	uint64_t *sum = &r->unrecorded[e->action < SBX_N_ACTIONS ? e->action : SBX_DENY];

	*sum = *sum > UINT64_MAX - e->count ? UINT64_MAX : *sum + e->count;
}

/* Most calls find nothing that is due: the room is made with the first event that is. */
static void emit(const struct sbx_event *e, void *userdata)
{
	struct sbx_run *r = userdata;

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

static void schedule(struct sbx_run *r)
{
	uint64_t next = r->fold ? sbx_fold_next_ms(r->fold) : SBX_FOLD_IDLE;

	r->flush_at_us = next == SBX_FOLD_IDLE ? 0 : next * 1000 + 1000;
	if (r->row && sbx_record_is_due(r) && (!r->flush_at_us || r->retry_at_us < r->flush_at_us))
		r->flush_at_us = r->retry_at_us;
}

void sbx_record_write(struct sbx_run *r)
{
	write_due(r);
	schedule(r);
}

static void print_event(const struct sbx_event *e)
{
	char where[SBX_ADDR_STR_MAX] = "";

	if (e->addr.family)
		sbx_addr_format(&e->addr, where, sizeof(where));
	fprintf(stderr, "sbx-run: %s %s %s%s%s port %u: %s%s%s\n", sbx_action_str(e->action),
		sbx_proto_str(e->proto), e->name, e->name[0] && where[0] ? " " : "", where, e->port,
		sbx_reason_str(e->reason), e->rule[0] ? ": " : "", e->rule);
}

void sbx_record_event(struct sbx_run *r, const struct sbx_event *e)
{
	if (r->plan->options->verbose)
		print_event(e);
	if (e->action == SBX_DENY && r->released) /* before that they are the self-test's */
		sbx_refusals_add(&r->refusals, e);
	if (!r->fold)
		return;
	sbx_fold_add(r->fold, e, now_ms(), emit, r);
	sbx_record_write(r);
}

void sbx_record_flush(struct sbx_run *r)
{
	if (r->fold)
		sbx_fold_flush(r->fold, now_ms(), emit, r);
	sbx_record_write(r);
}

void sbx_record_flush_all(struct sbx_run *r)
{
	r->retry_at_us = 0;
	if (r->fold)
		sbx_fold_flush_all(r->fold, emit, r);
	r->retry_at_us = 0;
	sbx_record_write(r);
}

void sbx_record_forget_events(struct sbx_run *r)
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
