/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_HELPERS_GIT_LOOK_H
#define SBX_LAUNCHER_HELPERS_GIT_LOOK_H

#include "launcher/helpers/new_protected_list.h"

/* Judge git directories as data. No git is run. */

/* Git would execute or obey @name in @dir below the grant; @why names the part that acts. It can be
 * moved aside into the directory @to, mostly @dir, where git ignores names of that kind. */
typedef void (*sbx_git_found)(struct sbx_new *x, size_t grant, const char *dir, const char *name,
			      const char *to, const char *why);

/* Judge the git directory at @path; with @deep, also those in its modules/ and worktrees/. With
 * changed_only: files that are older than the sandbox are judged too if the command may have put
 * the directory, or one behind the first @n_from bytes of @path, in its place. */
void sbx_git_look(struct sbx_new *x, size_t grant, const char *path, size_t n_from, bool deep,
		  sbx_git_found found);
/* Judge a git configuration, @name in @dir. One that is held, absent or harmless is not
 * reported. */
void sbx_git_look_config(struct sbx_new *x, size_t grant, const char *dir, const char *name,
			 sbx_git_found found);
/* Read the path that a gitfile or commondir names, which follows @prefix. *ret_text is malloc'ed,
 * or NULL. 0; -EAGAIN: git would refuse it, and it may be half written; -EXDEV: git would take it,
 * and it cannot be judged. */
int sbx_git_read_name(struct sbx_new *x, size_t grant, const char *path, const char *prefix,
		      char **ret_text);

#endif
