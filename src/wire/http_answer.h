/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_WIRE_HTTP_ANSWER_H
#define SBX_WIRE_HTTP_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/span.h"
#include "wire/http_body.h" /* SBX_HTTP_E_MORE, SBX_HTTP_E_REJECT */

/*
 * The few HTTP messages that the broker itself writes or reads: the explained refusal to a
 * sandboxed client, and the CONNECT exchange with an upstream proxy (RFC 9110 section 9.3.6). PURE.
 */

/*
 * Write "HTTP/1.1 @status" ("403 Forbidden") with Connection: close and @body (text/plain, UTF-8)
 * into @out. 0 with *ret_n set, or -EMSGSIZE.
 */
int sbx_http_refusal_write(const char *status, const char *body, void *out, size_t n_out,
			   size_t *ret_n);

/*
 * Write "CONNECT @host:@port HTTP/1.1". @host is a normalised name or an address in text; an IPv6
 * address is put in brackets. 0 with *ret_n set; -EINVAL: @host has a byte that no name and no
 * address has, or @port is 0; -EMSGSIZE.
 */
int sbx_http_connect_write(const char *host, uint16_t port, void *out, size_t n_out, size_t *ret_n);

#define SBX_HTTP_CONNECT_ANSWER_MAX 8192 /* bytes of the proxy's answer head; more: reject */

/*
 * Read the head of a proxy's answer at the start of @in (all bytes so far; not trusted). On 0
 * *ret_status is 100..599 and *ret_head_len counts the bytes up to and with the empty line; after a
 * 2xx the rest of @in is the server's. SBX_HTTP_E_MORE, SBX_HTTP_E_REJECT.
 */
int sbx_http_connect_answer_parse(struct sbx_span in, int *ret_status, size_t *ret_head_len);

#endif
