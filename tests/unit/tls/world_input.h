/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_TESTS_UNIT_TLS_WORLD_INPUT_H
#define SBX_TESTS_UNIT_TLS_WORLD_INPUT_H

#include <assert.h>
#include <string.h>

#include "base/span.h"
#include "tests/fuzz/tls/tls_world.h"

/* Inputs of tls_world (tests/fuzz/tls/tls_world.h), written step by step. */

#define SIGNED                                                                                     \
	"AWS4-HMAC-SHA256 Credential=" TLS_WORLD_AWS_ID                                            \
	"/20150830/us-east-1/service/aws4_request, SignedHeaders=host;x-amz-date, Signature="      \
	"5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"

struct world_input {
	size_t n;
	uint8_t p[2u << 20];
};

static inline void input_begin(struct world_input *in, uint8_t flags)
{
	in->n = 1;
	in->p[0] = flags;
}

static inline void input_put(struct world_input *in, const void *p, size_t n)
{
	assert(n <= sizeof(in->p) - in->n);
	if (n > 0) /* @p may be NULL then */
		memcpy(in->p + in->n, p, n);
	in->n += n;
}

/* A step that is nothing but its number. */
static inline void input_step(struct world_input *in, enum tls_world_step step)
{
	const uint8_t b = (uint8_t)step;

	input_put(in, &b, 1);
}

/* A step with a length and bytes. */
static inline void input_bytes(struct world_input *in, enum tls_world_step step,
			       struct sbx_span bytes)
{
	const uint8_t n[2] = { (uint8_t)(bytes.n >> 8), (uint8_t)bytes.n };

	assert(bytes.n <= 0xffff);
	input_step(in, step);
	input_put(in, n, sizeof(n));
	input_put(in, bytes.p, bytes.n);
}

static inline void input_text(struct world_input *in, enum tls_world_step step, const char *text)
{
	input_bytes(in, step, sbx_span_str(text));
}

#endif
