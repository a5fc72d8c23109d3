/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_REVIEW_REVIEWER_H
#define SBX_LAUNCHER_REVIEW_REVIEWER_H

#include "base/event.h"
#include "launcher/plan/plan.h"
#include "launcher/record/recorder.h"
#include "launcher/review/review.h"
#include "launcher/review/review_hook.h"

/* The review of one run's refusals, with what it acts on. */
struct sbx_reviewer {
	const struct sbx_plan *plan; /* borrowed, like the next */
	struct sbx_recorder *recorder;
	struct sbx_review review;
	struct sbx_review_hook hook;
	/* Cuts the sandbox off, as breaker.action says; @why is a sentence without its end. */
	void (*trip)(void *userdata, enum sbx_breaker action, const char *why);
	void *userdata;
};

/* Starts the helper that runs the hook, if there is one. The plan, the recorder, trip and userdata
 * are set, and the hook is empty (sbx_review_hook_init()). @dir: the runtime directory. 0 or -errno
 * with @err. */
int sbx_reviewer_start(struct sbx_reviewer *r, const char *dir, int dir_fd, struct sbx_err *err);
/* An event of the released command, which was recorded already. */
void sbx_reviewer_event(struct sbx_reviewer *r, const struct sbx_event *e);
/* The sandbox has ended: waits a little for a hook that still runs. */
void sbx_reviewer_end(struct sbx_reviewer *r);

#endif
