/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_LAUNCHER_EXPLAIN_EXPLAIN_REQUEST_H
#define SBX_LAUNCHER_EXPLAIN_EXPLAIN_REQUEST_H

#include <jansson.h>

#include "base/err.h"
#include "launcher/explain/explain_flow.h"

/* The operation `explain` of the control socket: a question as JSON. PURE. */

/* {"op", "protocol", "host", "port", "address", "method", "path"}. NULL: no memory. */
json_t *sbx_explain_request(const struct sbx_explain_asked *asked);

/*
 * The answer to @body, whose members have their types (request.h of launcher/control): the object
 * of sbx_explained_json(). NULL: there is none. *ret_field is then the member that is wrong, a
 * static text, with @err; or NULL: an error of our own, with @err unless there is no memory.
 */
json_t *sbx_explain_answer(const struct sbx_policy *policy, const struct sbx_profile *profile,
			   const char *workspace, const char *id, const json_t *body,
			   const char **ret_field, struct sbx_err *err);

#endif
