/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_DAEMON_RESOURCES_AUDIT_H
#define SBX_DAEMON_RESOURCES_AUDIT_H

#include "base/err.h"
#include "daemon/http/call.h"

/* Writes the audit row of a change: who, when, which route, what. @object: the id or name of what
 * was changed; @before, @after: its state, NULL if there was none or is none. Between
 * sbx_store_begin() and sbx_store_end() the row and the change are written together, or not at all.
 * *ret_id, unless NULL, is the row's. 0 or -errno with @err. */
int sbx_audit(struct sbx_call *call, const char *object, const json_t *before, const json_t *after,
	      struct sbx_err *err, int64_t *ret_id);

/* The same for a change that was made already, by a launcher, and cannot be undone: a row that the
 * database does not take now is written later (access/audit_queue.h). */
void sbx_audit_made(struct sbx_call *call, const char *object, const json_t *before,
		    const json_t *after);

#endif
