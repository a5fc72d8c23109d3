/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_HTTP_HEAD_H
#define SBX_HTTP_HEAD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/span.h"
#include "http/message.h"

/* Internal: the headers of a request. PURE. */

/* The first header of just this name; NULL: there is none. */
const struct sbx_http_header *sbx_http_head_find(const struct sbx_http_request *r,
						 struct sbx_span name);
/* Is there a header of the name, or of one that servers take for it (sbx_http_names_alike())? */
bool sbx_http_head_has_alike(const struct sbx_http_request *r, struct sbx_span name);
/* Takes out all of these. */
void sbx_http_head_remove(struct sbx_http_request *r, struct sbx_span name);

/* "Name: value" in its parts. */
struct sbx_http_header sbx_http_head_split(struct sbx_span line);

/* Is there a field, or a "_method" in the query, by which some servers replace the method or the
 * path? *ret_name names it. (A form's "_method" in the body is not seen.) */
bool sbx_http_head_overrides(const struct sbx_http_request *r, struct sbx_span *ret_name);

/* Is there more than an empty body? */
bool sbx_http_head_has_body(const struct sbx_http_request *r);
/* By Content-Type. */
uint8_t sbx_http_head_form(const struct sbx_http_request *r);
/* Is a body compressed, so that nothing can be found in it? Git's do not count: git compresses what
 * it asks for in a fetch, and puts no credential in it. */
bool sbx_http_head_hides_body(const struct sbx_http_request *r);

#endif
