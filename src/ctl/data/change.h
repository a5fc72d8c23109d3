/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_CTL_DATA_CHANGE_H
#define SBX_CTL_DATA_CHANGE_H

#include "ctl/frame/command.h"
#include "store/store.h"

/* A change of rules or workspaces: by whom, and the launchers that follow it. */

/* The name of the calling user, or its uid: under sudo the one who called sudo. Returns @buf. */
const char *sbx_change_by(char *buf, size_t n_buf);
/* The database has a change of the rules of @workspace (NULL: of the host). Tells the launchers,
 * and with --json prints @result_take with their answers added as "followed"; otherwise only
 * says on standard error how many follow. SBX_CTL_DONE, or another exit status with ctl->err. */
int sbx_change_done(struct sbx_ctl *ctl, struct sbx_store *store, const char *workspace,
		    json_t *result_take);

#endif
