/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_PROTECT_VIEW_OVERMOUNTS_H
#define SBX_LAUNCHER_PROTECT_VIEW_OVERMOUNTS_H

#include <sys/types.h>

#include "launcher/protect/protections.h"
#include "launcher/rootfs/draft.h"

/* What is mounted over blocked and protected names below grants. */

/* Append the overmounts, when all grants are in the plan. 0, SBX_EXIT_REFUSED with @errs, -errno. */
int sbx_view_add_covers(const struct sbx_draft *d, struct sbx_err_list *errs);

/* Blocked names below writable grants, those of @writer (NULL: all), that the masks of the plan do not cover: @tell gets
 * the path of each in the sandbox, shorter than SBX_VIEW_PATH_MAX; what it returns, unless 0, ends the search. As far as
 * can be told. */
void sbx_view_new_blocked(const struct sbx_facts *f, const struct sbx_profile *profile,
			  const struct sbx_system_policy *system, const struct sbx_view *view,
			  const struct sbx_protections *protections, const uid_t *writer,
			  int (*tell)(void *userdata, const char *path), void *userdata);

#endif
