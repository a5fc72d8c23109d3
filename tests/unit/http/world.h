/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef TESTS_UNIT_HTTP_WORLD_H
#define TESTS_UNIT_HTTP_WORLD_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/cleanup.h"
#include "http/request.h"
#include "http/rules.h"

/* Rules and requests written down shortly. Strings are literals. */

#define TEXT(s) ((struct sbx_span){ (const uint8_t *)(s), sizeof(s) - 1 })
/* The same as an initializer, for lists outside of functions. */
#define SPAN(s)                                                                                    \
	{                                                                                          \
		(const uint8_t *)(s), sizeof(s) - 1                                                \
	}
#define LIST(...)                                                                                  \
	{                                                                                          \
		.n = SBX_N_ELEMENTS(((struct sbx_span[]){ __VA_ARGS__ })),                         \
		.v = (struct sbx_span[]){ __VA_ARGS__ },                                           \
	}

#define ID "0123456789ab"

/* Two secrets with placeholders that have their beginning in common. */
#define HOLDER_1 "sbx-placeholder-aaaaaaaaaaaaaaaa1"
#define HOLDER_2 "sbx-placeholder-aaaaaaaaaaaaaaaa2"
#define VALUE_1	 "gh \"p/\\+&=%1"
#define VALUE_2	 "second-value-2"

/* Adds "Name: value" to @r; a NULL value: nothing. */
static inline void add_header(struct sbx_http_request *r, const char *name, const char *value)
{
	if (value)
		r->headers[r->n_headers++] =
			(struct sbx_http_header){ sbx_span_str(name), sbx_span_str(value) };
}

/* A request over TLS. */
static inline struct sbx_http_request request(const char *method, const char *target)
{
	return (struct sbx_http_request){
		.method = sbx_span_str(method),
		.target = sbx_span_str(target),
		.tls = true,
	};
}

#endif
