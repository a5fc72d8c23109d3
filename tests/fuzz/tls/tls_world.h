/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_TESTS_FUZZ_TLS_WORLD_H
#define SBX_TESTS_FUZZ_TLS_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/span.h"

/*
 * One connection of src/tls, with this program as its client, its server, its broker and its
 * launcher. Both sides are plain socket pairs, and count as TLS. Used by the fuzz targets of both
 * protocols and by tests/check/tls_carry.c.
 *
 * The rules: api.example (all of it, or in read-only access), and other.example. The secrets:
 *
 *   ONE    api.example    in the header, the query and the body
 *   TWO    other.example  detected everywhere
 *   THREE  api.example    injected as a header
 *   FOUR   api.example    signs requests for AWS
 *
 * An input is a byte of TLS_WORLD_* flags and then steps. A step is a byte, taken modulo
 * TLS_N_STEPS (TLS_CLIENT ...), and what belongs to it. Numbers are in network byte order, and a
 * length that is too large is cut.
 */

#define TLS_WORLD_HOST	      "api.example"
#define TLS_WORLD_PLACEHOLDER "sbx_secret_0123456789abcdef01"
#define TLS_WORLD_VALUE_ONE   "Q1/\"value\" one\\"
#define TLS_WORLD_VALUE_TWO   "Q2/\"value\" two\\"
#define TLS_WORLD_VALUE_ROTATED                                                                    \
	"R1/value-one-after-its-rotation/0123456789abcdefghijklmnopqrstuvwxyz"                     \
	"0123456789abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrstuvwxyz"
#define TLS_WORLD_VALUE_THREE "Q3/\"value\" three\\"
#define TLS_WORLD_AWS_ID      "AKIDEXAMPLEPLACEHOLDER04" /* the placeholder of FOUR */
#define TLS_WORLD_AWS_KEY     "Q4/secret-key-four"

enum {
	TLS_WORLD_READ_ONLY = 1, /* the access of the entry */
	TLS_WORLD_BROKEN = 2,	 /* there is no server: each request is answered with 502 */
	TLS_WORLD_BARE = 4,	 /* HTTP/2: the input has the prefaces itself */
	TLS_WORLD_OPEN = 8,	 /* there are no secrets */
	TLS_WORLD_SMALL = 16,	 /* max_request_bytes is TLS_WORLD_SMALL_BYTES */
};

#define TLS_WORLD_SMALL_BYTES 1000

enum tls_world_step {
	TLS_CLIENT = 0,	  /* u16 length, bytes of the client */
	TLS_SERVER,	  /* the same of the server */
	TLS_CLIENT_FRAME, /* u8 type, u8 flags, u8 stream, u16 length, payload: an HTTP/2 frame */
	TLS_SERVER_FRAME,
	TLS_CLIENT_END, /* orderly */
	TLS_SERVER_END,
	TLS_CLIENT_PAUSE, /* it stops reading, or starts again */
	TLS_SERVER_PAUSE,
	TLS_CLIENT_RESET, /* it closes with bytes unread */
	TLS_SERVER_RESET,
	TLS_CLIENT_ZEROS, /* u16 number: so many KiB of "a" (HTTP/2: DATA frames of stream 1) */
	TLS_SERVER_ZEROS,
	TLS_CLIENT_LAST, /* as TLS_CLIENT, with the client's end: both are there to be read */
	TLS_SERVER_LAST,
	TLS_ROTATE, /* the value of ONE becomes TLS_WORLD_VALUE_ROTATED */
	TLS_CUT, /* the broker cuts it: nothing is carried any more */
	TLS_N_STEPS,
};

struct tls_world_output {
	uint8_t *p; /* heap */
	size_t n, n_max;
};

struct tls_world {
	bool is_h2;
	uint8_t flags;
	struct tls_world_output to_client, to_server; /* all that was written */
	bool lives; /* the connection did not end by itself */
	bool cut;   /* it had not ended when the broker cut it */
	size_t n_done; /* TLS_DONE that the broker got: one for the connection */
};

/* Runs @input to its end, and frees the connection. Aborts the program if the connection takes
 * turns without moving a byte, or keeps more bytes than its limits. */
void tls_world_run(struct tls_world *w, struct sbx_span input);
void tls_world_fini(struct tls_world *w);

#endif
