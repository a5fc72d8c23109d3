/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_HELPERS_KEEP_HELPER_H
#define SBX_LAUNCHER_HELPERS_KEEP_HELPER_H

#include "launcher/run/run.h"

/* The exit status where the command's was 0 and its result could not be kept. */
#define SBX_EXIT_NOT_KEPT 123

/* Start the keeper, if there is something to keep; before the launcher drops its rights. 0 or -errno with
 * r->err. */
int sbx_keep_begin(struct sbx_run *r);

/* When the stage has had its SIGKILL: wait until all of the sandbox is gone, let the keeper copy what it left,
 * and end it. Sets r->kept, r->keep_counts or r->keep_err. A signal to the launcher breaks it off. */
void sbx_keep_end(struct sbx_run *r);

/* Was it asked for, did the command run, and is its result not there? */
bool sbx_keep_failed(const struct sbx_run *r);

#endif
