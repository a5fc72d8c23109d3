/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_STORE_STORE_TALLY_H
#define SBX_STORE_STORE_TALLY_H

#include <stdint.h>

#include "base/err.h"
#include "store/store.h"

/* Sums for a program that counts what happens. Callbacks get texts that are valid during the call,
 * which must not use the store. 0 or -errno as in store.h. */

/* Call @fn for each action and reason of the events after id @after, at most the first @n_max of
 * them; @n is the number that their rows count. *ret_last is the last id that was counted. */
int sbx_store_tally_events(struct sbx_store *store, int64_t after, uint32_t n_max,
			   void (*fn)(const char *action, const char *reason, int64_t n,
				      void *userdata),
			   void *userdata, struct sbx_err *err, int64_t *ret_last);

/* Call @fn for each state of sandboxes that have not ended. */
int sbx_store_tally_live(struct sbx_store *store,
			 void (*fn)(const char *state, int64_t n, void *userdata), void *userdata,
			 struct sbx_err *err);

#endif
