/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The review of refusals in a run: when it begins, and how the breaker cuts the sandbox off. */
#include <stdio.h>

#include "launcher/live/live.h"
#include "launcher/run/steps.h"

/* The air gap could not be made: the sandbox must not go on as it is. */
static void on_gap(void *userdata, const struct sbx_live_answer *answer)
{
	struct sbx_run *r = userdata;

	if (answer->code == SBX_LIVE_DONE || answer->code == SBX_LIVE_GONE)
		return;
	r->tripped = r->killed = true;
	sbx_err_set(&r->err, "the breaker could not air-gap the sandbox, and ended it: %s",
		    answer->err.msg);
	sbx_stage_kill(&r->stage);
}

static void trip(void *userdata, enum sbx_breaker action, const char *why)
{
	static const struct sbx_live_request gap = { .has_air_gapped = true, .air_gapped = true };
	struct sbx_run *r = userdata;

	if (action == SBX_BREAKER_AIR_GAP) {
		fprintf(stderr, "sbx-run: nothing leaves the sandbox any more: %s\n", why);
		sbx_live_change(&r->live, &gap, on_gap, r);
		return;
	}
	r->tripped = r->killed = true;
	sbx_err_set(&r->err, "the sandbox was ended: %s", why);
	sbx_stage_kill(&r->stage);
}

int sbx_run_review_begin(struct sbx_run *r)
{
	r->reviewer.plan = r->plan;
	r->reviewer.recorder = &r->recorder;
	r->reviewer.trip = trip;
	r->reviewer.userdata = r;
	return sbx_reviewer_start(&r->reviewer, r->runtime.path, r->runtime.fd, &r->err);
}

void sbx_run_review_event(struct sbx_run *r, const struct sbx_event *e)
{
	if (r->released)
		sbx_reviewer_event(&r->reviewer, e);
}
