/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Too many refusals: the row of the task, the hook and the breaker. */
#include "launcher/review/reviewer.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "launcher/record/receipt.h"
#include "launcher/record/record.h"
#include "sys/process/proc.h"

#define REFUSALS_MAX 10 /* of the hook's file */

int sbx_reviewer_start(struct sbx_reviewer *r, const char *dir, int dir_fd, struct sbx_err *err)
{
	sbx_review_init(&r->review, r->plan->profile);
	return sbx_review_hook_start(&r->hook, r->plan->profile, r->plan->facts, dir, dir_fd, err);
}

void sbx_reviewer_end(struct sbx_reviewer *r)
{
	sbx_review_hook_end(&r->hook);
}

static json_t *text_or_null(const char *s)
{
	return s ? json_string(s) : json_null();
}

static json_t *task_json(const struct sbx_reviewer *r, enum sbx_review_cause cause,
			 size_t n_refusals)
{
	const struct sbx_review_task *t = &r->review.tasks[cause];
	const struct sbx_options *o = r->plan->options;

	return json_pack("{s:i, s:s, s:o, s:o, s:s, s:s, s:I, s:I, s:I, s:o}", "v", 1, "sandbox",
			 r->plan->id, "workspace", text_or_null(o->workspace), "analysis_id",
			 text_or_null(o->analysis_id), "profile", o->profile, "cause",
			 sbx_review_cause_str(cause), "denies", (json_int_t)t->n_denies, "first_ms",
			 (json_int_t)t->first_ms, "last_ms", (json_int_t)t->last_ms, "refusals",
			 sbx_receipt_refusals(r->recorder->refusals, o->profile, n_refusals));
}

/* malloc'ed, or NULL */
static char *task_text(const struct sbx_reviewer *r, enum sbx_review_cause cause,
		       size_t n_refusals)
{
	json_t *o = task_json(r, cause, n_refusals);
	char *text = o ? json_dumps(o, JSON_INDENT(1)) : NULL;

	json_decref(o);
	return text;
}

/* The sandbox chooses the names of what it was refused, and must not keep the hook from running by
 * long ones. */
static void run_hook(struct sbx_reviewer *r, enum sbx_review_cause cause)
{
	SBX_AUTO_FREE char *text = task_text(r, cause, REFUSALS_MAX);

	if (text && strlen(text) > SBX_REVIEW_HOOK_TEXT) {
		free(text);
		text = task_text(r, cause, 0);
	}
	if (text)
		sbx_review_hook_run(&r->hook, text, strlen(text));
}

static void trip(struct sbx_reviewer *r)
{
	const struct sbx_profile *p = r->plan->profile;
	uint64_t window_ms = p->breaker.window_ms ? p->breaker.window_ms : SBX_REVIEW_WINDOW_MS;
	struct sbx_event e = { .ts_ms = sbx_clock_realtime_ms(),
			       .action = SBX_NOTICE,
			       .proto = SBX_PROTO_OTHER,
			       .reason = SBX_REASON_BREAKER,
			       .count = 1 };
	char why[160];

	sbx_text_fit(why, sizeof(why), "more than %u refusals within %llu s (the breaker of the "
				       "profile)",
		     p->breaker.denies, (unsigned long long)(window_ms / 1000));
	sbx_text_cut(e.rule, sizeof(e.rule), "%s",
		     p->breaker.action == SBX_BREAKER_KILL ? "kill" : "air-gap");
	sbx_record_event(r->recorder, &e);
	r->trip(r->userdata, p->breaker.action, why);
}

void sbx_reviewer_event(struct sbx_reviewer *r, const struct sbx_event *e)
{
	unsigned int opened = sbx_review_add(&r->review, e, sbx_clock_monotonic_us() / 1000,
					     sbx_clock_realtime_ms());

	for (unsigned int c = 0; c < SBX_N_REVIEW_CAUSES; c++) {
		struct sbx_review_task *t = &r->review.tasks[c];

		if (t->changed)
			sbx_record_task(r->recorder, sbx_review_cause_str(c), t->n_denies,
					t->last_ms);
		t->changed = false;
		if (opened & 1u << c)
			run_hook(r, c);
	}
	if (opened & 1u << SBX_REVIEW_BREAKER)
		trip(r);
}
