/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_VIEW_GIT_NAME_H
#define SBX_LAUNCHER_VIEW_GIT_NAME_H

/* Reads the path that a file of git's names (gitrepository-layout(5)): the rest of it behind
 * @prefix, which is "gitdir: " for a file `.git` and "" for `commondir`, without the ends of line
 * at its end. @fd is borrowed; -1: there is no file. At most 4096 bytes are read, up to a NUL. The
 * content may be hostile. *ret_name is malloc'ed; NULL: the file names none. 0 or -ENOMEM. */
int sbx_git_name_read(int fd, const char *prefix, char **ret_name);

#endif
