/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_DAEMON_RESOURCES_AUDIT_H
#define SBX_DAEMON_RESOURCES_AUDIT_H

#include "base/err.h"
#include "daemon/http/call.h"

/*
 * The audit row of a change: who, when, which route, what. @object is the id or name of what is
 * changed; @before, @after its state, NULL if there was none or is none; @wanted what was asked
 * for.
 */

/* The row of a change of the database: between sbx_store_begin() and sbx_store_end() they are
 * written together, or not at all. 0, or -errno with @err: then answer by
 * sbx_call_store_failed(). */
int sbx_audit(struct sbx_call *call, const char *object, const json_t *before, const json_t *after,
	      struct sbx_err *err);
/* The same for a start, which comes after the row. */
int sbx_audit_wanted(struct sbx_call *call, const char *object, const json_t *wanted,
		     struct sbx_err *err);

/* The row of a change of a running sandbox, before it is made. The change is made also if the row
 * cannot be written now: it waits then (access/audit_queue.h). */
void sbx_audit_begin(struct sbx_call *call, const char *object, const json_t *before,
		     const json_t *wanted);
/* The end of a change whose row came before it, by the result of an ask (hub/ask.h): it was made,
 * with the state @after (NULL: as it was wanted); or it was not, and the row is taken back; or
 * nobody knows, and the row stays without an outcome. */
void sbx_audit_end(struct sbx_call *call, int result, const json_t *after);

#endif
