/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_USER_VIEW_REPOSITORY_H
#define SBX_LAUNCHER_USER_VIEW_REPOSITORY_H

/* The top of the git repository that contains @cwd (absolute and normalised), malloc'ed in
 * *ret_top. NULL: @cwd is the top itself, or in no repository. Looks only at names, types and
 * owners, with the effective ids. 0 or -ENOMEM. */
int sbx_view_repository(const char *cwd, char **ret_top);

/* The git directory that @dir is a linked worktree of (gitrepository-layout(5), worktrees),
 * malloc'ed in *ret_git_dir. NULL: @dir is none. @dir/.git and the git directory name each other,
 * and the path has no symlink; still both may be a command's work. 0 or -ENOMEM. */
int sbx_view_worktree_of(const char *dir, char **ret_git_dir);

#endif
