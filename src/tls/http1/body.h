/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_TLS_HTTP1_BODY_H
#define SBX_TLS_HTTP1_BODY_H

#include <stddef.h>
#include <stdint.h>

#include "base/span.h"
#include "tls/conn/side.h"
#include "wire/http_reply.h"

/* Writes the body of one HTTP/1 message in the framing that its new head announces. */

enum sbx_body_out {
	SBX_BODY_PLAIN = 0, /* bytes as they are: a length that stays, or until the end */
	SBX_BODY_CHUNKED,
	SBX_BODY_HELD, /* kept until the end: then its length is known, and its head is written */
};

#define SBX_BODY_HELD_MAX (1u << 20) /* bytes of a body that is held */

struct sbx_body {
	struct sbx_side *side; /* borrowed */
	enum sbx_body_out how;
	uint8_t *held; /* heap, wiped: HELD */
	size_t n_held, n_held_max;
};

void sbx_body_fini(struct sbx_body *b);
/* Writes, or keeps, data; a sbx_swap_sink. 0, or -errno: -EFBIG over SBX_BODY_HELD_MAX. */
int sbx_body_put(void *body, struct sbx_span data);
/* Ends the data: 0 or -errno. A held body is not written here, but by sbx_body_send(). */
int sbx_body_end(struct sbx_body *b);
/* Queues a held body behind @head, to which it adds the length and the empty line. 0 or -ENOMEM. */
int sbx_body_send(const struct sbx_body *b, struct sbx_span head);

/* As sbx_http_chunked_next(), and keeps the trailer section, if it has fields, in @trailer, a held
 * body: "0\r\n", its lines, and the empty line, so that sbx_http_head_fields() reads them. -errno,
 * too. */
int sbx_body_next(struct sbx_body *trailer, struct sbx_http_body *chunks, struct sbx_span in,
		  struct sbx_span *ret_data, size_t *ret_n);

#endif
