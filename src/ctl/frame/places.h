/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_CTL_FRAME_PLACES_H
#define SBX_CTL_FRAME_PLACES_H

#include "ctl/frame/command.h"
#include "store/store.h"

/* The directories and the database, found as sbx-run finds them. Each returns SBX_CTL_DONE, or
 * another exit status with ctl->err. */

/* Fill ctl->facts (sbx_facts_gather_places(), and no more), once. */
int sbx_ctl_places(struct sbx_ctl *ctl);
/* Open the database. It is not made: *ret_store is NULL where no sandbox has run yet. */
int sbx_ctl_store(struct sbx_ctl *ctl, struct sbx_store **ret_store);
/* Open the database, and make it where there is none. */
int sbx_ctl_store_make(struct sbx_ctl *ctl, struct sbx_store **ret_store);
/* Tell a person, on standard error, that there is nothing to list yet and how that changes. */
void sbx_ctl_tell_empty(const struct sbx_ctl *ctl, const char *what);
/* The status of a function that returned @r: 0, a negative errno or a positive result of its
 * contract. Fills ctl->err if the function did not. */
int sbx_ctl_status(struct sbx_ctl *ctl, int r, const char *what);

#endif
