/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_PROTECT_PLACEHOLDERS_H
#define SBX_LAUNCHER_PROTECT_PLACEHOLDERS_H

#include "launcher/run/run.h"

/*
 * Something to mount a mask on where a protected path is absent: made below writable grants, on the host, before
 * the view is, and removed when everything in the sandbox has ended.
 */

/* Make what the plan wants, with the rights of who may write there; first they are written down in the runtime
 * directory. The plan's masks, and the stage's, learn what they cover. 0 or -errno with r->err. */
int sbx_placeholders_make(struct sbx_run *r);
/* Those in grants of @writer (NULL: all) that no other sandbox needs. What is not as it was made stays. False: some could
 * not be removed. */
bool sbx_placeholders_remove_of(const struct sbx_plan *p, const uid_t *writer);
/* In a fork of the launcher: the locks are the launcher's alone. */
void sbx_placeholders_forget(struct sbx_run *r);
/* They are gone: nothing is left for a sweep. */
void sbx_placeholders_settled(struct sbx_run *r);
/* For the cleanup process and sweeps: those of a launcher that is dead, as the runtime directory @dir_fd has them. False: some are
 * for somebody with more rights. */
bool sbx_placeholders_sweep(int dir_fd);

#endif
