/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_HTTP_MESSAGE_H
#define SBX_HTTP_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/span.h"
#include "wire/http_field.h"

/*
 * One HTTP request, whichever protocol brought it (HTTP/1.1 or HTTP/2). The protocol's reader has
 * checked the syntax of tokens and values (RFC 9110 section 5), and that the authority is the name
 * that the flow was opened for. The bytes are hostile.
 */

#define SBX_HTTP_HEADERS_MAX 128 /* of one head; more: oversized */

struct sbx_http_request {
	struct sbx_span method;
	struct sbx_span target; /* origin form: "/path?query" as sent, or "*" */
	struct sbx_span authority; /* as the server will get it; empty: the host alone */
	/* The SHA-256 of the body, 64 hex digits, where its reader has all of it; else NULL. */
	const char *body_hash;
	bool tls;		/* it came over TLS */
	bool has_body;		/* a body is announced, or may follow */
	bool has_length;
	uint64_t length; /* with has_length */
	/* It asks to leave the protocol; the one token of Upgrade ("websocket"), else empty. */
	bool upgrade;
	struct sbx_span upgrade_to;
	size_t n_headers;
	/* In their order. Without Host, pseudo headers, and those that frame the message
	 * (Content-Length, Transfer-Encoding, Connection, Upgrade, ...), which the protocol's
	 * writer makes. */
	struct sbx_http_header headers[SBX_HTTP_HEADERS_MAX];
};

/* How a value is written in a body. */
enum sbx_http_form { SBX_HTTP_FORM_OTHER = 0, SBX_HTTP_FORM_JSON, SBX_HTTP_FORM_URLENCODED };

#endif
