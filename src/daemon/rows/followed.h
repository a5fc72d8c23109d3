/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_DAEMON_ROWS_FOLLOWED_H
#define SBX_DAEMON_ROWS_FOLLOWED_H

#include "daemon/http/call.h"

#define SBX_FOLLOWED_S 10 /* the longest wait for the launchers */

/* The database has a change of the rules of @workspace (NULL: of the host). Tells the launchers of
 * its live sandboxes, and answers when all of them have answered, or after SBX_FOLLOWED_S: @status,
 * the ETag of @body_take, and its object with "followed": how many follow, how many do not and why,
 * and the number of flows that were cut. */
void sbx_reply_followed(struct sbx_call *call, const char *workspace, int status,
			json_t *body_take);

#endif
