/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_PROTECT_OVERMOUNTS_H
#define SBX_LAUNCHER_PROTECT_OVERMOUNTS_H

#include <sys/types.h>

#include "launcher/protect/placeholders.h"
#include "launcher/protect/protections.h"
#include "launcher/view/draft.h"

/* Mounts over blocked and protected names below grants. */

/* Append the overmounts, when all grants are in the plan. 0, SBX_EXIT_REFUSED with @errs,
 * -errno. */
int sbx_overmounts_add(const struct sbx_draft *d, struct sbx_err_list *errs);

/* At the end: find blocked names below the writable grants of @writer (NULL: all) that no mask of
 * the plan covers. @tell gets the path of each in the sandbox, shorter than SBX_VIEW_PATH_MAX; a
 * result other than 0 ends the search. Errors end the search silently. */
void sbx_overmounts_new_blocked(const struct sbx_facts *f, const struct sbx_profile *profile,
				const struct sbx_system_policy *system, const struct sbx_view *view,
				const struct sbx_protections *protections,
				const struct sbx_placeholders *placeholders, const uid_t *writer,
				int (*tell)(void *userdata, const char *path), void *userdata);

#endif
