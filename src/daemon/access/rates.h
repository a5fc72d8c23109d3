/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_DAEMON_ACCESS_RATES_H
#define SBX_DAEMON_ACCESS_RATES_H

#include <stddef.h>
#include <stdint.h>

/*
 * A token bucket for each caller, in a table of a fixed size. If it is full, the caller that was
 * idle longest is forgotten: its bucket is the fullest. PURE: the time comes from the caller.
 */
struct sbx_rate_limit {
	uint32_t per_s; /* from 1 */
	uint32_t burst; /* from 1 to 1,000,000 */
};

#define SBX_RATE_KEY_MAX 160 /* bytes with the NUL; longer keys are cut */

struct sbx_rates;

/* 0 or -ENOMEM. */
int sbx_rates_new(size_t n_max, struct sbx_rates **ret_rates);
/* Accepts NULL; returns NULL. */
struct sbx_rates *sbx_rates_free(struct sbx_rates *r);

/* Takes one from the bucket of @key. 0; or the milliseconds after which there is one, and nothing
 * was taken. @now_ms: of a clock that does not go back. A key has always the same limit. */
uint32_t sbx_rates_take(struct sbx_rates *r, const char *key, const struct sbx_rate_limit *limit,
			uint64_t now_ms);

#endif
