/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_TLS_CONN_WHOLE_H
#define SBX_TLS_CONN_WHOLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "http/request.h"
#include "tls/conn/conn.h"

/* Requests that are rewritten when their body is complete, because it is signed with the head. */

#define SBX_WHOLE_MAX (1u << 20) /* bytes of such a body */
/* And of those that wait in streams of HTTP/2, together: a client has hundreds of connections with
 * as many streams. */
#define SBX_WHOLE_ALL_MAX (32u << 20)

/* A head that waits for its body: a copy of the request with everything that it points to. */
struct sbx_whole {
	struct sbx_http_request request;
	uint8_t *bytes; /* heap */
};

/* Copies @r, whose spans point into the @n bytes at @p or at static text. 0 or -ENOMEM. */
int sbx_whole_new(const struct sbx_http_request *r, const uint8_t *p, size_t n,
		  struct sbx_whole **ret);
struct sbx_whole *sbx_whole_free(struct sbx_whole *w);

/*
 * Rewrites the request with its @body, in which placeholders become values. True: *ret_w is the
 * head, *ret_body (heap, NULL where @body is to be sent as it is) and *ret_n the body. False:
 * @ret_verdict.
 */
bool sbx_whole_rewrite(const struct sbx_conn *c, struct sbx_whole *whole, struct sbx_span body,
		       struct sbx_http_rewritten *ret_w, uint8_t **ret_body, size_t *ret_n,
		       struct sbx_http_verdict *ret_verdict);
/* The verdict about a body that is longer than SBX_WHOLE_MAX. */
struct sbx_http_verdict sbx_whole_too_long(void);
/* That they are longer than SBX_WHOLE_ALL_MAX together. */
struct sbx_http_verdict sbx_whole_too_many(void);

#endif
