/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_WIRE_HTTP_REPLY_H
#define SBX_WIRE_HTTP_REPLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/span.h"
#include "wire/http_body.h"
#include "wire/http_field.h"

/*
 * Heads of HTTP/1 messages as lists of fields, and the server's direction of a connection (RFC 9112
 * sections 4, 6.3 and 7). PURE; the bytes are not trusted.
 */

/* The field lines of @head, a whole head that a parser of this folder accepted: the bytes from the
 * start of the first line to the end of the empty line. At most @n_max are written. Returns their
 * number, or n_max + 1: there are more. */
size_t sbx_http_head_fields(struct sbx_span head, struct sbx_http_header *v, size_t n_max);

enum sbx_http_reply_framing {
	SBX_HTTP_REPLY_NONE = 0, /* no body: 1xx, 204, 304, or the answer to HEAD */
	SBX_HTTP_REPLY_LENGTH,
	SBX_HTTP_REPLY_CHUNKED,
	SBX_HTTP_REPLY_CLOSE,  /* until the server closes */
	SBX_HTTP_REPLY_SWITCH, /* 101: the connection is another protocol's from here on */
};

struct sbx_http_reply {
	int status;		/* 100..999 */
	uint8_t version_minor;	/* HTTP/1.x */
	struct sbx_span reason; /* the phrase */
	size_t n;		/* bytes of the head, with the empty line */
	enum sbx_http_reply_framing framing;
	/* Of Content-Length; with framing NONE it tells about a body that is not sent (HEAD,
	 * 304). */
	bool has_length;
	uint64_t length;
	bool keeps; /* the connection may carry another response */
};

/*
 * Reads the head at the start of @in (all bytes so far). @to_head: it answers a HEAD request.
 * Strict as http_head.h is about requests: CRLF only, no folding, one length. 0; SBX_HTTP_E_MORE;
 * SBX_HTTP_E_REJECT. The caller bounds @in. Once rejected, more bytes change nothing.
 */
int sbx_http_reply_parse(struct sbx_span in, bool to_head, struct sbx_http_reply *ret);

/* Reads the framing of a chunked body: *ret_data is the next run of data in @in (empty: none yet),
 * *ret_n the bytes of @in that were read, framing included. 0: the body is complete, *ret_n is
 * behind its trailers; SBX_HTTP_E_MORE: call again with what follows; SBX_HTTP_E_REJECT. Data comes
 * one run a call; call again while *ret_n > 0. Works on a struct sbx_http_body made with
 * SBX_HTTP_FRAMING_CHUNKED. */
int sbx_http_chunked_next(struct sbx_http_body *b, struct sbx_span in, struct sbx_span *ret_data,
			  size_t *ret_n);

#endif
