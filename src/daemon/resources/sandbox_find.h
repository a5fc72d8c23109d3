/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_DAEMON_RESOURCES_SANDBOX_FIND_H
#define SBX_DAEMON_RESOURCES_SANDBOX_FIND_H

#include "daemon/http/call.h"
#include "daemon/hub/ask.h"
#include "daemon/resources/print.h"
#include "store/store.h"

/* The sandbox that a path names. */

/* The row of sandbox @id as an object of the API, owned by the caller. NULL: it was answered, also
 * where the caller may not see it. */
json_t *sbx_call_sandbox(struct sbx_call *call, const char *id);

/* Adds to @sandbox, an object of the API, what the service knows of the sandboxes that it started:
 * owner, metadata, timeout_at. Others are the service's own user's. 0 or -errno. */
int sbx_sandbox_owner(struct sbx_store *store, json_t *sandbox, uid_t *ret_uid,
		      struct sbx_err *err);

/* Answers with sandbox @id as it is now. @warnings_take: those of its start; NULL: they are not
 * told. */
void sbx_call_show(struct sbx_call *call, const char *id, int status, json_t *warnings_take);

/* Asks the launcher of a sandbox that sbx_call_sandbox() found. */
void sbx_call_ask(struct sbx_call *call, const char *id, json_t *request_take, sbx_ask_fn fn,
		  void *userdata);
/* Answers with the problem of an ask that failed. */
void sbx_call_refused(struct sbx_call *call, int result, json_t *answer, const struct sbx_err *err);
/* Answers with the problem of a program that gave no answer. @result: see sbxctl.h. */
void sbx_call_child_failed(struct sbx_call *call, int result, const struct sbx_err *err);
/* Answers with the problem of a function of the store that failed; or calls the handler again, if
 * the database was locked (sbx_call_again()). */
void sbx_call_store_failed(struct sbx_call *call, int r, const struct sbx_err *err);
/* Answers with the items that a function of the store gave, whose result is @r; takes them. */
void sbx_call_page(struct sbx_call *call, struct sbx_page *page, int r, const struct sbx_err *err);

#endif
