/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_REVIEW_REVIEW_H
#define SBX_LAUNCHER_REVIEW_REVIEW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/event.h"
#include "base/rate.h"
#include "policy/profile/profile.h"

/*
 * Too many refusals: a review task is opened, and the breaker cuts the sandbox off. PURE: events
 * come in, what is due goes out. Refusals of the self-test are not given to it.
 */

enum sbx_review_cause {
	SBX_REVIEW_DENIES = 0, /* more than review.denies within review.window */
	SBX_REVIEW_BREAKER,    /* more than breaker.denies within breaker.window */
	SBX_N_REVIEW_CAUSES,
};
/* "denies", "breaker": as the database has it. */
const char *sbx_review_cause_str(enum sbx_review_cause c);

/* A task, from the moment its cause is there. */
struct sbx_review_task {
	bool open;
	bool changed; /* the database does not have these numbers yet; the writer clears it */
	uint64_t n_denies; /* refusals of the run so far */
	uint64_t first_ms, last_ms; /* CLOCK_REALTIME: of the opening, of the last refusal */
};

struct sbx_review {
	struct sbx_rate rates[SBX_N_REVIEW_CAUSES];
	uint64_t n_denies;
	struct sbx_review_task tasks[SBX_N_REVIEW_CAUSES];
};

void sbx_review_init(struct sbx_review *r, const struct sbx_profile *p);
/* Counts an event that came at @now_ms (monotonic) and @real_ms (CLOCK_REALTIME). Returns 1 <<
 * cause for each task that this event opens. */
unsigned int sbx_review_add(struct sbx_review *r, const struct sbx_event *e, uint64_t now_ms,
			    uint64_t real_ms);

#endif
