/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Bodies of HTTP/1 messages that are framed anew (RFC 9112 section 7.1). Data is queued, not
 * written: the caller flushes when it knows that the message may leave. */
#include "tls/http1/body.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HELD_MIN 8192

void sbx_body_fini(struct sbx_body *b)
{
	if (b->held)
		explicit_bzero(b->held, b->n_held_max);
	free(b->held);
	*b = (struct sbx_body){ 0 };
}

static int hold(struct sbx_body *b, struct sbx_span data)
{
	size_t n_max = b->n_held_max ? b->n_held_max : HELD_MIN;
	uint8_t *held;

	if (data.n > SBX_BODY_HELD_MAX - b->n_held)
		return -EFBIG;
	while (n_max < b->n_held + data.n)
		n_max *= 2;
	if (n_max != b->n_held_max) {
		held = malloc(n_max);
		if (!held)
			return -ENOMEM;
		if (b->held) {
			memcpy(held, b->held, b->n_held);
			explicit_bzero(b->held, b->n_held_max);
		}
		free(b->held);
		b->held = held;
		b->n_held_max = n_max;
	}
	memcpy(b->held + b->n_held, data.p, data.n);
	b->n_held += data.n;
	return 0;
}

int sbx_body_put(void *body, struct sbx_span data)
{
	struct sbx_body *b = body;
	char size[24];
	int r;

	if (!data.n)
		return 0; /* an empty chunk would be the last */
	if (b->how == SBX_BODY_HELD)
		return hold(b, data);
	if (b->how == SBX_BODY_PLAIN)
		return sbx_side_queue(b->side, data);
	r = sbx_side_queue(b->side,
			   sbx_span(size, (size_t)snprintf(size, sizeof(size), "%zx\r\n", data.n)));
	if (r == 0)
		r = sbx_side_queue(b->side, data);
	return r < 0 ? r : sbx_side_queue(b->side, sbx_span("\r\n", 2));
}

int sbx_body_end(struct sbx_body *b)
{
	return b->how == SBX_BODY_CHUNKED ? sbx_side_queue(b->side, sbx_span("0\r\n\r\n", 5)) : 0;
}

int sbx_body_send(const struct sbx_body *b, struct sbx_span head)
{
	char length[48];
	int e = sbx_side_queue(b->side, head);

	snprintf(length, sizeof(length), "Content-Length: %zu\r\n\r\n", b->n_held);
	e = e < 0 ? e : sbx_side_queue(b->side, sbx_span_str(length));
	return e < 0 ? e : sbx_side_queue(b->side, sbx_span(b->held, b->n_held));
}

int sbx_body_next(struct sbx_body *trailer, struct sbx_http_body *chunks, struct sbx_span in,
		  struct sbx_span *ret_data, size_t *ret_n)
{
	uint16_t before = chunks->n_trailer;
	int r = sbx_http_chunked_next(chunks, in, ret_data, ret_n), e = 0;
	size_t n = (size_t)(chunks->n_trailer - before);
	struct sbx_span lines;

	if (!n || r == SBX_HTTP_E_REJECT)
		return r;
	lines = sbx_span(in.p + *ret_n - n, n);
	/* No field begins with a line end: the section is empty. */
	if (!trailer->n_held && (lines.p[0] == '\r' || lines.p[0] == '\n'))
		return r;
	if (!trailer->n_held)
		e = hold(trailer, sbx_span("0\r\n", 3));
	e = e < 0 ? e : hold(trailer, lines);
	return e < 0 ? e : r;
}
