/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_WIRE_HTTP_FIELD_H
#define SBX_WIRE_HTTP_FIELD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/span.h"

/*
 * Shared by the HTTP parsers of this folder: the classes of bytes, the names of the fields that
 * frame or route a message, and the parts of field lines and lists. PURE.
 */

enum {
	SBX_HTTP_TOKEN = 1, /* tchar, RFC 9110 section 5.6.2 */
	SBX_HTTP_VALUE = 2, /* field-vchar, SP and HTAB, RFC 9110 section 5.5 */
	/* Visible ASCII but '#': the bytes that clients send in a request target. RFC 3986 allows
	 * fewer; none of the others could be read as a delimiter of the line. */
	SBX_HTTP_TARGET = 4,
};

extern const uint8_t sbx_http_classes[256];

static inline bool sbx_http_is(uint8_t b, unsigned class)
{
	return sbx_http_classes[b] & class;
}

/* Is @s not empty, and every byte of @class? */
bool sbx_http_all(struct sbx_span s, unsigned class);

/* Are they equal, ignoring the case of letters? */
bool sbx_http_equal(struct sbx_span s, const char *text);

/* The same of the names of two fields. */
bool sbx_http_same_name(struct sbx_span a, struct sbx_span b);

/* Can a server take the two names for one? Gateways that make variables of field names (RFC 3875
 * section 4.1.18) ignore their case, and read '_' as '-'. */
bool sbx_http_names_alike(struct sbx_span a, struct sbx_span b);

/* Does the field give the length or a digest of a body's bytes? It is wrong for other bytes. */
bool sbx_http_describes_bytes(struct sbx_span name);

/* The span without the spaces and tabs at both ends. */
struct sbx_span sbx_http_trim(struct sbx_span s);

/* Takes the next item of a list with commas off @list, without white space around it (RFC 9110
 * section 5.6.1). It may be empty. false: the list has ended. */
bool sbx_http_list_next(struct sbx_span *list, struct sbx_span *ret_item);

/* One field of a head. */
struct sbx_http_header {
	struct sbx_span name, value; /* no white space around the value */
};

/* "Name: value" in its parts; the bytes of the value are not judged. false: there is no name, or a
 * byte in it that is no token's, as in a folded line or with a space before the colon. */
bool sbx_http_field_split(struct sbx_span line, struct sbx_http_header *ret);

enum sbx_http_field {
	SBX_HTTP_FIELD_OTHER = 0, /* means nothing to us */
	SBX_HTTP_FIELD_HOST,
	SBX_HTTP_FIELD_CONTENT_LENGTH,
	SBX_HTTP_FIELD_TRANSFER_ENCODING,
	SBX_HTTP_FIELD_CONNECTION,
	SBX_HTTP_FIELD_UPGRADE,
	SBX_HTTP_FIELD_HTTP2_SETTINGS,
	/* One of the above with '_' for '-' (sbx_http_names_alike()) */
	SBX_HTTP_FIELD_DISGUISED,
	SBX_N_HTTP_FIELDS,
};

enum sbx_http_field sbx_http_field_lookup(struct sbx_span name);

#endif
