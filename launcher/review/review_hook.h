/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_REVIEW_REVIEW_HOOK_H
#define SBX_LAUNCHER_REVIEW_REVIEW_HOOK_H

#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"
#include "launcher/host/facts.h"
#include "policy/profile/profile.h"

/* A child of the launcher that runs review.hook, one at a time: with the launcher's privileges from
 * before they were given up, and without standing in the way of the launcher's loop. */
struct sbx_review_hook {
	pid_t pid; /* 0: the profile has no hook */
	int fd;	   /* its channel; -1: none */
};

#define SBX_REVIEW_HOOK_MS	30000 /* the longest run of a hook */
#define SBX_REVIEW_HOOK_END_MS	5000  /* the longest wait for it at the sandbox's end */
#define SBX_REVIEW_HOOK_TEXT	49152 /* bytes of a JSON text */

void sbx_review_hook_init(struct sbx_review_hook *h);
/* Starts the helper, if @p has a hook. It writes its files into the sandbox's runtime directory
 * @dir (@dir_fd is borrowed). 0 or -errno with @err. */
int sbx_review_hook_start(struct sbx_review_hook *h, const struct sbx_profile *p,
			  const struct sbx_facts *f, const char *dir, int dir_fd,
			  struct sbx_err *err);
/* Has the hook run with a file of this JSON @text. If it cannot, says so on stderr. */
void sbx_review_hook_run(struct sbx_review_hook *h, const char *text, size_t n);
/* Waits for a hook that still runs, ends it after SBX_REVIEW_HOOK_END_MS, and reaps the helper. */
void sbx_review_hook_end(struct sbx_review_hook *h);

#endif
