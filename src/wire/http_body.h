/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_WIRE_HTTP_BODY_H
#define SBX_WIRE_HTTP_BODY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/reason.h"
#include "base/span.h"

/*
 * Finds the end of the body of an HTTP/1 request (RFC 9112 sections 6 and 7): none, a number of
 * bytes, or chunked. Used by http_head.h; the bytes are hostile. PURE.
 */

enum sbx_http_framing {
	SBX_HTTP_FRAMING_NONE = 0,
	SBX_HTTP_FRAMING_LENGTH,  /* Content-Length */
	SBX_HTTP_FRAMING_CHUNKED, /* Transfer-Encoding: chunked */
};

/* Bytes of a body or chunk; more: http_malformed. Servers that keep numbers as doubles would round
 * a larger number. */
#define SBX_HTTP_LENGTH_MAX	  (INT64_C(1) << 53)
#define SBX_HTTP_CHUNK_DIGITS_MAX 16	    /* hex digits of a chunk size, leading zeros included */
#define SBX_HTTP_CHUNK_EXT_MAX	  256  /* bytes of the extensions of one chunk; more: oversized */
#define SBX_HTTP_TRAILER_MAX	  4096 /* bytes of the trailer section; more: oversized */
#define SBX_HTTP_FIELD_NAME_MAX	  24   /* every field name that means something to us is shorter */

struct sbx_http_body {
	enum sbx_reason reason; /* of a reject: HTTP_MALFORMED or OVERSIZED */
	/* Private. */
	uint8_t state;
	uint8_t n_digits;
	uint16_t n_ext, n_trailer;
	uint8_t n_name;
	char name[SBX_HTTP_FIELD_NAME_MAX + 1];
	uint64_t left;
};

enum {
	SBX_HTTP_E_MORE = 1, /* more bytes are needed */
	SBX_HTTP_E_REJECT,   /* deny; see .reason. Every later call says the same */
};

/* Reads a Content-Length of at most SBX_HTTP_LENGTH_MAX: digits alone, without leading zeros, which
 * some parsers take for octal. false: it is none. */
bool sbx_http_length_parse(struct sbx_span value, uint64_t *ret_length);

void sbx_http_body_init(struct sbx_http_body *b, enum sbx_http_framing framing, uint64_t length);

/*
 * Judge the next bytes. *ret_n is always set: the number of bytes that belong to the body, framing
 * included, and were found good; never a byte past its end. 0: the body is complete.
 * SBX_HTTP_E_MORE. SBX_HTTP_E_REJECT: the byte after those *ret_n is wrong.
 */
int sbx_http_body_feed(struct sbx_http_body *b, struct sbx_span bytes, size_t *ret_n);

/* The number of next bytes that are opaque data: they may be carried without being shown
 * (splice). */
uint64_t sbx_http_body_opaque(const struct sbx_http_body *b);
/* The caller carried @n <= sbx_http_body_opaque() bytes itself. Returns true when the body is
 * now complete. */
bool sbx_http_body_skip(struct sbx_http_body *b, uint64_t n);

#endif
