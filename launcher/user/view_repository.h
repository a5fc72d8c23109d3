/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_USER_VIEW_REPOSITORY_H
#define SBX_LAUNCHER_USER_VIEW_REPOSITORY_H

/* The top of the git repository that @cwd, absolute and normalised, lies below; malloc'ed in
 * *ret_top. NULL: @cwd is such a top itself, or in none. Nothing but names, types and owners is
 * looked at, with the effective ids. 0 or -ENOMEM. */
int sbx_view_repository(const char *cwd, char **ret_top);

#endif
