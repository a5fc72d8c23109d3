/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_VIEW_ETC_H
#define SBX_LAUNCHER_VIEW_ETC_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "launcher/view/draft.h"

/*
 * The synthetic /etc: one directory, prepared once per state of the host's /etc and bound read-only
 * by every sandbox.
 */

#define SBX_ETC_NAMES_MAX 512 /* entries of the host's /etc that are taken over */

/* PURE. Is @name (below /etc) a file that we write ourselves? *ret_link: the symlink's text, or
 * NULL for a regular file. */
bool sbx_etc_is_made(const char *name, const char **ret_link);
/* PURE. The i-th of them: its name; *ret_link, or *ret_text of a regular file. NULL: there are no
 * more. */
const char *sbx_etc_made_at(size_t i, const char **ret_link, const char **ret_text);
/* PURE. Is the host's @name (below /etc), or the directory it is in, taken over? */
bool sbx_etc_has(const char *name);

/* The names in the host's /etc that are taken over, sorted, malloc'ed each and together
 * (sbx_etc_names_free). 0 or -errno. */
int sbx_etc_names(int host_etc_fd, char ***ret_names, size_t *ret_n);
void sbx_etc_names_free(char **names, size_t n);

/*
 * Makes sure that @dir (made when it is missing; its parent must exist) holds the directory for the
 * host's /etc as it is now. A step calls it, not planning: it writes. Several launchers may do so
 * at once. The directory must belong to the effective uid and be writable by nobody else, and the
 * sandbox's user must be able to reach @dir.
 *
 * *ret_source, whose fd is -1 before, gets the directory's path, stat and O_PATH fd
 * (sbx_path_fini). It is left alone where the view has no SBX_MOUNT_ETC op. 0, or -errno with @err.
 */
int sbx_etc_prepare(const struct sbx_view *v, const struct sbx_facts *f, const char *dir,
		    struct sbx_path *ret_source, struct sbx_err *err);

#endif
