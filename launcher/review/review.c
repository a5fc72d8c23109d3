/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "launcher/review/review.h"

#include "base/cleanup.h"
#include "base/count.h"

static const char *const cause_names[] = {
	[SBX_REVIEW_DENIES] = "denies",
	[SBX_REVIEW_BREAKER] = "breaker",
};
_Static_assert(SBX_N_ELEMENTS(cause_names) == SBX_N_REVIEW_CAUSES, "a word per cause");

const char *sbx_review_cause_str(enum sbx_review_cause c)
{
	return (unsigned)c < SBX_N_REVIEW_CAUSES ? cause_names[c] : "unknown";
}

static uint64_t window_of(uint64_t said_ms)
{
	return said_ms ? said_ms : SBX_REVIEW_WINDOW_MS;
}

void sbx_review_init(struct sbx_review *r, const struct sbx_profile *p)
{
	*r = (struct sbx_review){ 0 };
	sbx_rate_init(&r->rates[SBX_REVIEW_DENIES], p->review.denies,
		      window_of(p->review.window_ms));
	sbx_rate_init(&r->rates[SBX_REVIEW_BREAKER], p->breaker.denies,
		      window_of(p->breaker.window_ms));
}

unsigned int sbx_review_add(struct sbx_review *r, const struct sbx_event *e, uint64_t now_ms,
			    uint64_t real_ms)
{
	unsigned int opened = 0;

	if (e->action != SBX_DENY || sbx_reason_is_failure((enum sbx_reason)e->reason))
		return 0;
	r->n_denies = sbx_count_add(r->n_denies, e->count);
	for (unsigned int c = 0; c < SBX_N_REVIEW_CAUSES; c++) {
		struct sbx_review_task *t = &r->tasks[c];

		if (sbx_rate_add(&r->rates[c], now_ms, e->count) && !t->open) {
			t->open = true;
			t->first_ms = real_ms;
			opened |= 1u << c;
		}
		if (!t->open)
			continue;
		t->changed = true;
		t->n_denies = r->n_denies;
		t->last_ms = real_ms;
	}
	return opened;
}
