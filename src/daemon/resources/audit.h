/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_DAEMON_RESOURCES_AUDIT_H
#define SBX_DAEMON_RESOURCES_AUDIT_H

#include "base/err.h"
#include "daemon/http/call.h"

/*
 * The audit row of a change: who, when, which route, what. @object is the id or name of what is
 * changed; @before, @after its state, NULL if there was none or is none. No change is made without
 * its row. Both return 0, or -errno with @err: then answer by sbx_call_store_failed().
 */

/* The row of a change of the database: between sbx_store_begin() and sbx_store_end() they are
 * written together, or not at all. */
int sbx_audit(struct sbx_call *call, const char *object, const json_t *before, const json_t *after,
	      struct sbx_err *err);

/* The row of any other change, before it is made. @wanted: what was asked for. */
int sbx_audit_begin(struct sbx_call *call, const char *object, const json_t *before,
		    const json_t *wanted, struct sbx_err *err);
/* The end of that change, by the result of an ask (hub/ask.h): it was made, with the state @after
 * (NULL: as it was wanted); or it was not, and the row is taken back; or nobody knows, and the row
 * stays without an outcome. A database that is locked now is told later. */
void sbx_audit_end(struct sbx_call *call, int result, const json_t *after);

#endif
