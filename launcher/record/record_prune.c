/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Old events go in small steps: beside a command that runs, at the end of a run that wrote events,
 * and by --gc. */
#include "launcher/record/record.h"
#include "launcher/record/record_internal.h"
#include "launcher/rules/database.h"
#include "store/store_keep.h"
#include "sys/process/proc.h"

void sbx_record_keep(const struct sbx_system_policy *system, struct sbx_store_keep *ret_keep)
{
	*ret_keep = (struct sbx_store_keep){ .now_ms = (int64_t)sbx_clock_realtime_ms(),
					     .days = SBX_STORE_KEEP_DAYS,
					     .max_rows = SBX_STORE_KEEP_ROWS };
	if (system && system->events_keep_days)
		ret_keep->days = system->events_keep_days;
	if (system && system->events_max_rows)
		ret_keep->max_rows = system->events_max_rows;
}

int sbx_record_prune(struct sbx_store *store, const struct sbx_system_policy *system,
		     struct sbx_err *err, size_t *n_removed)
{
	struct sbx_store_keep keep;
	uint32_t removed = 0;
	int r;

	sbx_record_keep(system, &keep);
	r = sbx_store_prune(store, &keep, SBX_STORE_PRUNE_BATCH, err, &removed);
	*n_removed += removed;
	return r ? r : removed == SBX_STORE_PRUNE_BATCH;
}

/* The service removes counts, too; without it there are no new ones. */
static int prune_counts(struct sbx_store *store, struct sbx_err *err)
{
	uint32_t removed = 0;
	int r;

	do
		r = sbx_store_prune_counts(store, (int64_t)sbx_clock_realtime_ms(),
					   SBX_STORE_PRUNE_BATCH, err, &removed);
	while (r == 0 && removed == SBX_STORE_PRUNE_BATCH);
	return r;
}

int sbx_record_prune_all(const struct sbx_facts *f, const struct sbx_system_policy *system,
			 size_t *ret_n, struct sbx_err *err)
{
	struct sbx_store *store = NULL;
	int r = sbx_database_exists(f, err);

	if (r <= 0)
		return r;
	r = sbx_database_open(f, err, &store);
	if (r == 0)
		do
			r = sbx_record_prune(store, system, err, ret_n);
		while (r == 1);
	if (r == 0)
		r = prune_counts(store, err);
	sbx_store_close(store);
	return r > 0 ? -1 : r;
}
