/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_HELPERS_NEW_ASIDE_H
#define SBX_LAUNCHER_HELPERS_NEW_ASIDE_H

#include "launcher/helpers/new_protected_list.h"

/* Rename what tools of the host would act on, so that they do not find it. */

/* The host path of @dir/@name below the grant; malloc'ed. NULL: no memory. */
char *sbx_new_host_path(const struct sbx_new *x, size_t grant, const char *dir, const char *name);
/* Call x->tell, if there is one. */
void sbx_new_tell_text(const struct sbx_new *x, enum sbx_new_word word, const char *path,
		       const char *fmt, ...) __attribute__((format(printf, 4, 5)));
/* Rename @name in @dir below the grant, into the directory @to, and tell that with the reason @why.
 * A path that another mount covers stays: the command could not write it. */
void sbx_new_move_aside(struct sbx_new *x, size_t grant, const char *dir, const char *name,
			const char *to, const char *why);

#endif
