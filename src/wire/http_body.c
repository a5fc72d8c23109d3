/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Measures the body of an HTTP/1 request, so that the next request is looked for where the server
 * will look for it.
 *
 * Chunked framing is read byte by byte; chunk data and bodies with a length pass in runs. Framing
 * that servers are known to read differently is refused: line ends are CRLF only, only an extension
 * may follow a chunk size, sizes have a bounded number of digits, and trailers may not name a field
 * that frames or routes a message.
 *
 * States: SIZE -> [EXT ->] SIZE_LF -> DATA -> DATA_CR -> DATA_LF -> SIZE ... and after the chunk of
 * size zero LINE -> (NAME -> FIELD -> FIELD_LF -> LINE)* -> END_LF -> COMPLETE. A body with a
 * length is RUN -> COMPLETE, one without framing is COMPLETE from the start.
 */

#include "wire/http_body.h"

#include <assert.h>

#include "base/hex.h"
#include "wire/http_field.h"

#define LENGTH_DIGITS_MAX 16 /* SBX_HTTP_LENGTH_MAX has as many */

enum state {
	ST_COMPLETE = 0,
	ST_RUN,	 /* left bytes of a body with a length */
	ST_SIZE, /* digits of a chunk size; left is its value so far */
	ST_EXT,	 /* behind the ';' of a chunk extension */
	ST_SIZE_LF,
	ST_DATA, /* left bytes of chunk data */
	ST_DATA_CR,
	ST_DATA_LF,
	ST_LINE,  /* at the start of a line of the trailer section */
	ST_NAME,  /* in a trailer's name, kept in name as far as it fits */
	ST_FIELD, /* in a trailer's value */
	ST_FIELD_LF,
	ST_END_LF,
	ST_REJECTED,
};

static void reject(struct sbx_http_body *b, enum sbx_reason reason)
{
	b->state = ST_REJECTED;
	b->reason = reason;
}

static void malformed(struct sbx_http_body *b)
{
	reject(b, SBX_REASON_HTTP_MALFORMED);
}

bool sbx_http_length_parse(struct sbx_span value, uint64_t *ret_length)
{
	uint64_t n = 0;

	if (!value.n || value.n > LENGTH_DIGITS_MAX || (value.p[0] == '0' && value.n > 1))
		return false;
	for (size_t i = 0; i < value.n; i++) {
		if (value.p[i] < '0' || value.p[i] > '9')
			return false;
		n = n * 10 + (value.p[i] - '0');
	}
	if (n > SBX_HTTP_LENGTH_MAX)
		return false;
	*ret_length = n;
	return true;
}

void sbx_http_body_init(struct sbx_http_body *b, enum sbx_http_framing framing, uint64_t length)
{
	*b = (struct sbx_http_body){ .state = ST_COMPLETE };
	assert(length <= SBX_HTTP_LENGTH_MAX);
	if (framing == SBX_HTTP_FRAMING_CHUNKED) {
		b->state = ST_SIZE;
	} else if (framing == SBX_HTTP_FRAMING_LENGTH && length) {
		b->state = ST_RUN;
		b->left = length;
	}
}

static void size_byte(struct sbx_http_body *b, uint8_t c)
{
	int v = sbx_hex_value(c);

	if (v < 0) {
		if (b->n_digits && (c == '\r' || c == ';'))
			b->state = c == '\r' ? ST_SIZE_LF : ST_EXT;
		else
			malformed(b);
		b->n_ext = 0;
		return;
	}
	b->left = b->left << 4 | (uint64_t)v;
	if (++b->n_digits > SBX_HTTP_CHUNK_DIGITS_MAX || b->left > SBX_HTTP_LENGTH_MAX)
		malformed(b);
}

static void ext_byte(struct sbx_http_body *b, uint8_t c)
{
	if (c == '\r')
		b->state = ST_SIZE_LF;
	else if (!sbx_http_is(c, SBX_HTTP_VALUE))
		malformed(b);
	else if (++b->n_ext > SBX_HTTP_CHUNK_EXT_MAX)
		reject(b, SBX_REASON_OVERSIZED);
}

static void line_byte(struct sbx_http_body *b, uint8_t c)
{
	if (c == '\r') {
		b->state = ST_END_LF;
	} else if (sbx_http_is(c, SBX_HTTP_TOKEN)) {
		b->state = ST_NAME;
		b->name[0] = (char)c;
		b->n_name = 1;
	} else {
		malformed(b);
	}
}

static void name_byte(struct sbx_http_body *b, uint8_t c)
{
	if (c == ':') {
		/* A name that did not fit is longer than every name that matters here. */
		if (b->n_name <= SBX_HTTP_FIELD_NAME_MAX &&
		    sbx_http_field_lookup(sbx_span(b->name, b->n_name)) != SBX_HTTP_FIELD_OTHER)
			malformed(b);
		else
			b->state = ST_FIELD;
	} else if (!sbx_http_is(c, SBX_HTTP_TOKEN)) {
		malformed(b);
	} else if (b->n_name < SBX_HTTP_FIELD_NAME_MAX) {
		b->name[b->n_name++] = (char)c;
	} else {
		b->n_name = SBX_HTTP_FIELD_NAME_MAX + 1;
	}
}

static void expect(struct sbx_http_body *b, uint8_t c, uint8_t wanted, enum state next)
{
	if (c == wanted)
		b->state = (uint8_t)next;
	else
		malformed(b);
}

static void framing_byte(struct sbx_http_body *b, uint8_t c)
{
	if (b->state >= ST_LINE && ++b->n_trailer > SBX_HTTP_TRAILER_MAX) {
		reject(b, SBX_REASON_OVERSIZED);
		return;
	}
	switch ((enum state)b->state) {
	case ST_SIZE:
		size_byte(b, c);
		break;
	case ST_EXT:
		ext_byte(b, c);
		break;
	case ST_SIZE_LF:
		b->n_digits = 0;
		expect(b, c, '\n', b->left ? ST_DATA : ST_LINE);
		break;
	case ST_DATA_CR:
		expect(b, c, '\r', ST_DATA_LF);
		break;
	case ST_DATA_LF:
		expect(b, c, '\n', ST_SIZE);
		break;
	case ST_LINE:
		line_byte(b, c);
		break;
	case ST_NAME:
		name_byte(b, c);
		break;
	case ST_FIELD:
		if (c == '\r')
			b->state = ST_FIELD_LF;
		else if (!sbx_http_is(c, SBX_HTTP_VALUE))
			malformed(b);
		break;
	case ST_FIELD_LF:
		expect(b, c, '\n', ST_LINE);
		break;
	case ST_END_LF:
		expect(b, c, '\n', ST_COMPLETE);
		break;
	case ST_COMPLETE:
	case ST_RUN:
	case ST_DATA:
	case ST_REJECTED:
		assert(!"not a state that reads framing");
	}
}

uint64_t sbx_http_body_opaque(const struct sbx_http_body *b)
{
	return b->state == ST_RUN || b->state == ST_DATA ? b->left : 0;
}

bool sbx_http_body_skip(struct sbx_http_body *b, uint64_t n)
{
	assert(n <= sbx_http_body_opaque(b));
	b->left -= n;
	if (n && !b->left)
		b->state = b->state == ST_RUN ? ST_COMPLETE : ST_DATA_CR;
	return b->state == ST_COMPLETE;
}

int sbx_http_body_feed(struct sbx_http_body *b, struct sbx_span bytes, size_t *ret_n)
{
	size_t pos = 0;

	while (pos < bytes.n && b->state != ST_COMPLETE && b->state != ST_REJECTED) {
		uint64_t n = sbx_http_body_opaque(b);

		if (n) {
			n = n < bytes.n - pos ? n : bytes.n - pos;
			sbx_http_body_skip(b, n);
			pos += (size_t)n;
		} else {
			framing_byte(b, bytes.p[pos]);
			pos += b->state != ST_REJECTED;
		}
	}
	*ret_n = pos;
	if (b->state == ST_COMPLETE)
		return 0;
	return b->state == ST_REJECTED ? SBX_HTTP_E_REJECT : SBX_HTTP_E_MORE;
}
