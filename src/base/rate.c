/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "base/rate.h"

#include <string.h>

#include "base/count.h"

#define N (SBX_RATE_SLOTS + 1)

void sbx_rate_init(struct sbx_rate *r, uint64_t limit, uint64_t window_ms)
{
	*r = (struct sbx_rate){
		.limit = limit,
		.slot_ms = window_ms / SBX_RATE_SLOTS + (window_ms % SBX_RATE_SLOTS != 0),
	};
}

/* Empties the slots that @slot is the first to use again. */
static void advance(struct sbx_rate *r, uint64_t slot)
{
	if (slot - r->newest >= N) {
		memset(r->n, 0, sizeof(r->n));
		r->newest = slot;
	}
	while (r->newest < slot)
		r->n[++r->newest % N] = 0;
}

bool sbx_rate_add(struct sbx_rate *r, uint64_t now_ms, uint64_t n)
{
	uint64_t slot, sum = 0;

	if (!r->limit || !r->slot_ms)
		return false;
	slot = now_ms / r->slot_ms;
	if (slot > r->newest)
		advance(r, slot);
	r->n[r->newest % N] = sbx_count_add(r->n[r->newest % N], n);
	for (unsigned int i = 0; i < N; i++)
		sum = sbx_count_add(sum, r->n[i]);
	return sum > r->limit;
}
