/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_HELPERS_NEW_PROTECTED_H
#define SBX_LAUNCHER_HELPERS_NEW_PROTECTED_H

#include "launcher/helpers/new_protected_list.h"

/*
 * Protected paths that a command made (filesystem.new_protected: check): they are found, judged as
 * data, and moved aside where a tool of the host would act on them unasked. This runs on the host
 * with the ids of the user as whom the grants are written, and without other privileges. Everything
 * below the grants is untrusted, and nothing of it is executed.
 */

/* Look in a directory for all entries of the list, or for those whose first part is @only. */
void sbx_new_look(struct sbx_new *x, size_t grant, const char *path, const char *only);
/* PURE. Is it one of the names that make a directory a bare repository? */
bool sbx_new_is_of_bare(const char *name);
/* Judge a git directory, and move aside what is found. */
void sbx_new_look_git(struct sbx_new *x, size_t grant, const char *path, bool deep);
/* The sandbox has ended: look everywhere below the grants. */
void sbx_new_check(struct sbx_new *x);

/* For the cleanup process and sweeps: make the check of a dead launcher, from the list in the
 * runtime directory @dir_fd. False: it needs more privileges. */
bool sbx_new_sweep(int dir_fd, bool privileged);

#endif
