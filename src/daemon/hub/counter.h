/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_DAEMON_HUB_COUNTER_H
#define SBX_DAEMON_HUB_COUNTER_H

#include <event2/event.h>

#include "store/store.h"
#include "store/store_keep.h"

/* Counts refusals (sbx_store_count), and removes old events and counts, a slice at a time in the
 * loop. */
struct sbx_counter;

/* Takes @store, which nothing else may use; the counter waits for other writers only shortly.
 * @base is borrowed. @keep says which events stay; its time is not used. 0 or -ENOMEM: then @store
 * is closed as well. */
int sbx_counter_new(struct event_base *base, struct sbx_store *store,
		    const struct sbx_store_keep *keep, struct sbx_counter **ret_counter);
/* Accepts NULL; returns NULL. */
struct sbx_counter *sbx_counter_free(struct sbx_counter *counter);

#endif
