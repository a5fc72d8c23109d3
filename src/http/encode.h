/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_HTTP_ENCODE_H
#define SBX_HTTP_ENCODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/span.h"

/*
 * Internal: percent encoding (RFC 3986 section 2), decoding of base64 (RFC 4648) and JSON strings
 * (RFC 8259 section 7). The writers return the bytes written, and with @out NULL the bytes needed.
 * PURE.
 */

bool sbx_http_is_unreserved(uint8_t b);

enum sbx_http_percent {
	SBX_HTTP_PERCENT = 0,	/* all but unreserved bytes, capital digits */
	SBX_HTTP_PERCENT_LOWER, /* small digits */
	SBX_HTTP_PERCENT_PATH,	/* '/' stays */
};

size_t sbx_http_percent_write(struct sbx_span s, enum sbx_http_percent how, uint8_t *out);

static inline size_t sbx_http_percent_encode(struct sbx_span s, uint8_t *out)
{
	return sbx_http_percent_write(s, SBX_HTTP_PERCENT, out);
}

/* Decodes leniently: what is no encoding stays. @plus: '+' is a space. At most s.n bytes; the byte
 * out[i] came from the bytes of @s from from[i] to from[i + 1] (s.n + 1 elements, or NULL). */
size_t sbx_http_percent_decode(struct sbx_span s, bool plus, uint8_t *out, uint32_t *from);

/* Decodes the alphabets of RFC 4648 sections 4 and 5, padded or not, into @out (at most s.n bytes).
 * false: other bytes, or a length that base64 does not have. */
bool sbx_http_base64_decode(struct sbx_span s, uint8_t *out, size_t *ret_n);

/* Styles that escape more than RFC 8259 demands; value_form.h says by whom. */
enum sbx_http_json {
	SBX_HTTP_JSON = 0,
	SBX_HTTP_JSON_SLASH,
	SBX_HTTP_JSON_GO,
	SBX_HTTP_JSON_GSON,
	SBX_HTTP_JSON_NET,
};

/* The inside of a JSON string. */
size_t sbx_http_json_escape(struct sbx_span s, enum sbx_http_json how, uint8_t *out);

#endif
