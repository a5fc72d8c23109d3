/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Runs connections of src/tls (tests/fuzz/tls/tls_world.h): for http2_differential.py.
 *
 * stdin: records of a byte (1: HTTP/1, 2: HTTP/2), a u32 length in network byte order, and an input
 * of tls_world. stdout: for each, what was written to the server and what to the client, each as a
 * u32 length and bytes.
 */
#include <stdio.h>
#include <string.h>

#include "tests/check/records.h"
#include "tests/fuzz/tls/tls_world.h"

static void put(const struct tls_world_output *o)
{
	const uint8_t n[4] = { (uint8_t)(o->n >> 24), (uint8_t)(o->n >> 16), (uint8_t)(o->n >> 8),
			       (uint8_t)o->n };

	fwrite(n, 1, sizeof(n), stdout);
	fwrite(o->p, 1, o->n, stdout);
}

int main(void)
{
	struct sbx_span record;
	uint8_t kind;

	while (next_record(&kind, &record)) {
		struct tls_world w = { .is_h2 = kind == 2 };

		tls_world_run(&w, record);
		put(&w.to_server);
		put(&w.to_client);
		tls_world_fini(&w);
	}
	return 0;
}
