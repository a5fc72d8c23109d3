/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_HTTP_VALUE_FORM_H
#define SBX_HTTP_VALUE_FORM_H

#include <stdbool.h>

#include "base/span.h"
#include "http/memory.h"

/* Internal: the ways in which programs write a value into a body. PURE. */

enum sbx_value_form {
	SBX_VALUE_RAW = 0,
	SBX_VALUE_JSON,		 /* RFC 8259 section 7 */
	SBX_VALUE_JSON_SLASH,	 /* also "\/", as PHP writes it */
	SBX_VALUE_JSON_GO,	 /* also \u003c for < > &: Go's encoding/json */
	SBX_VALUE_JSON_GSON,	 /* also = and ' */
	SBX_VALUE_JSON_NET,	 /* also + ' " and `, with capital digits: System.Text.Json */
	SBX_VALUE_PERCENT,	 /* RFC 3986 section 2.1 */
	SBX_VALUE_PERCENT_LOWER, /* with small digits */
	SBX_VALUE_PERCENT_PATH,	 /* with '/' as it is: Python's quote() */
	SBX_VALUE_BASE64,	 /* RFC 4648 section 4 */
	SBX_VALUE_BASE64_1,	 /* with one byte before it, as in Basic credentials */
	SBX_VALUE_BASE64_2,	 /* with two bytes before it */
	SBX_VALUE_BASE64URL,	 /* RFC 4648 section 5: '-' and '_', as in a JWT */
	SBX_VALUE_BASE64URL_1,
	SBX_VALUE_BASE64URL_2,
	SBX_N_VALUE_FORMS,
};

/* *ret is @value in the form: @value itself, or bytes in @memory. Of base64 only the digits that
 * are all the value's. 0 or -ENOMEM. */
int sbx_value_form_write(enum sbx_value_form form, struct sbx_span value,
			 struct sbx_http_block **memory, struct sbx_span *ret);

static inline bool sbx_value_form_is_base64(enum sbx_value_form form)
{
	return form >= SBX_VALUE_BASE64;
}

#endif
