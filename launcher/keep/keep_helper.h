/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_KEEP_KEEP_HELPER_H
#define SBX_LAUNCHER_KEEP_KEEP_HELPER_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"
#include "launcher/keep/keep_copy.h"
#include "launcher/plan/plan.h"

/* The exit status where the command's was 0 and its result could not be kept. */
#define SBX_EXIT_NOT_KEPT 123

/* The process that copies the command's result for --keep. */
struct sbx_keep_helper {
	pid_t pid; /* 0: there is none */
	int fd;	   /* the channel to it */
	int upper_fd; /* the overlay's upper directory, from the stage */
	bool kept;    /* the result was copied */
	bool failed;  /* the command ran, and its result was not copied: err says why */
	struct sbx_keep_counts counts;
	struct sbx_err err;
};

void sbx_keep_helper_init(struct sbx_keep_helper *k);
/* Kill the process, if there is one, and close all. */
void sbx_keep_helper_fini(struct sbx_keep_helper *k);

/* Start it, where @p has something to keep and before the launcher drops its privileges. 0 or
 * -errno with @err. */
int sbx_keep_helper_start(struct sbx_keep_helper *k, const struct sbx_plan *p, struct sbx_err *err);

/* Call it when the stage has been reaped. With @ran, the command ran: let the helper copy what it
 * left, and wait for that; a signal from @signal_fd breaks it off. Then end the helper. Sets kept
 * or failed, counts and err. */
void sbx_keep_helper_finish(struct sbx_keep_helper *k, bool ran, int signal_fd);

#endif
