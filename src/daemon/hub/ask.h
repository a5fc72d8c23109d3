/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_DAEMON_HUB_ASK_H
#define SBX_DAEMON_HUB_ASK_H

#include <event2/event.h>
#include <jansson.h>

#include "control/client.h"

/* Requests to the launchers of live sandboxes, from a loop that must not wait. */

#define SBX_ASK_MS 10000 /* the longest wait for an answer */

/* @result: 0 with the answer; SBX_CONTROL_E_REFUSED with the refusal; another SBX_CONTROL_E_* or
 * -errno without. @answer and @err are borrowed. */
typedef void (*sbx_ask_fn)(void *userdata, int result, json_t *answer, const struct sbx_err *err);

/* Sends @request_take to the launcher of sandbox @id, with borrowed descriptors. @fn is called
 * exactly once: later, or from inside this call if the launcher cannot be reached. */
void sbx_ask(struct event_base *base, const char *runtime_dir, const char *id, json_t *request_take,
	     const int *fds, size_t n_fds, sbx_ask_fn fn, void *userdata);

#endif
