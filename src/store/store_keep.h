/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_STORE_STORE_KEEP_H
#define SBX_STORE_STORE_KEEP_H

#include <stdint.h>

#include "base/err.h"
#include "store/store.h"

/* The upkeep of a database. 0 or -errno as in store.h. */

#define SBX_STORE_KEEP_DAYS   90 /* unless system.yaml says otherwise */
#define SBX_STORE_KEEP_ROWS   1000000
#define SBX_STORE_PRUNE_BATCH 500 /* rows; some milliseconds */

struct sbx_store_keep {
	int64_t now_ms;	  /* CLOCK_REALTIME */
	int64_t days;	  /* older events go; 0: they stay */
	int64_t max_rows; /* of events; 0: no limit */
};
/* Remove the oldest events past these limits, at most @n_max, in one transaction: call it again
 * until *ret_removed is less than @n_max, and other writers get their turn in between. The newest
 * event stays, so that ids go on. If nothing is to be removed, nothing is locked. */
int sbx_store_prune(struct sbx_store *store, const struct sbx_store_keep *keep, uint32_t n_max,
		    struct sbx_err *err, uint32_t *ret_removed);
/* Remove counts that are older than the oldest event, or finer than their age needs, and the oldest
 * audit rows past SBX_STORE_AUDIT_ROWS, and what the service wrote a day ago of sandboxes whose
 * launcher never recorded them. As sbx_store_prune(), which goes first. */
#define SBX_STORE_AUDIT_ROWS 100000
int sbx_store_prune_counts(struct sbx_store *store, int64_t now_ms, uint32_t n_max,
			   struct sbx_err *err, uint32_t *ret_removed);

/* Add the next events, at most @n_max, to the counts of refusals (store_service.h), in one
 * transaction: call it again while *ret_counted is @n_max, and other writers get their turn in
 * between. New events come before old ones. If all are counted, nothing is locked. */
#define SBX_STORE_COUNT_BATCH	 250	  /* events; some milliseconds */
#define SBX_STORE_UNCOUNTED_MAX	 5000	  /* events that lists still read one by one */
#define SBX_STORE_KEEP_MINUTES_S (49 * 3600) /* age of counts by reason and minute, seconds, */
#define SBX_STORE_KEEP_FINE_S	 (3 * 3600)  /* and of all others by the minute */
int sbx_store_count(struct sbx_store *store, int64_t now_ms, uint32_t n_max, struct sbx_err *err,
		    uint32_t *ret_counted);
/* The number of events since @since_ms that lists of refusals do not show yet, because they are not
 * counted; nearly: of a part of the database that reaches back further, all. 0: they are exact. */
int sbx_store_uncounted(struct sbx_store *store, int64_t since_ms, struct sbx_err *err,
			int64_t *ret_n);

#endif
