/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A connection of src/tls that speaks HTTP/1 (tls_world.h): bytes of a client and a server, cut
 * anywhere, with ends, resets, and peers that do not read. No value of another host's secret is
 * written to the server, and no value of the host's own to the client. Excepted is another protocol
 * after a 101, which sbx-tls does not look into.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/tls/tls_world.h"

static bool has(const struct tls_world_output *o, const char *text)
{
	return o->n && memmem(o->p, o->n, text, strlen(text));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tls_world w = { .is_h2 = false };
	bool opaque;

	tls_world_run(&w, sbx_span(data, size));
	opaque = has(&w.to_client, "HTTP/1.1 101 ") || has(&w.to_client, "HTTP/1.0 101 ") ||
		 w.flags & TLS_WORLD_OPEN;
	CHECK(opaque || !has(&w.to_server, TLS_WORLD_VALUE_TWO));
	if (!opaque) {
		CHECK(!has(&w.to_client, TLS_WORLD_VALUE_ONE));
		CHECK(!has(&w.to_client, TLS_WORLD_VALUE_THREE));
		CHECK(!has(&w.to_client, TLS_WORLD_AWS_KEY));
	}
	tls_world_fini(&w);
	return 0;
}
