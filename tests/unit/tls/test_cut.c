/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * TLS_CUT in every state of a connection: conversations of HTTP/1 and HTTP/2 are cut after each of
 * their bytes. The world (tls_world.c) aborts unless the peers get their end and no byte more, and
 * the broker gets one TLS_DONE, at once.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <nghttp2/nghttp2.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "tests/unit/tls/world_input.h"

#define TURNS_MAX 8

struct turn {
	enum tls_world_step step;
	struct sbx_span bytes; /* none: only the step */
};

struct conversation {
	const char *name;
	uint8_t flags;	       /* TLS_WORLD_* */
	const char *to_client; /* the client gets it, if nothing cuts; NULL: nothing */
	const char *to_server;
	struct turn turns[TURNS_MAX];
};

static struct world_input in;

#define T(step, text)                                                                              \
	{                                                                                          \
		step,                                                                              \
		{                                                                                  \
			(const uint8_t *)(text), sizeof(text) - 1                                  \
		}                                                                                  \
	}
#define GET	"GET / HTTP/1.1\r\nHost: api.example\r\n\r\n"
#define OK	"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
#define UPGRADE "Upgrade: websocket\r\nConnection: Upgrade\r\n"

static const struct conversation http1[] = {
	{ "kept alive",
	  0,
	  "hello",
	  "GET /",
	  { T(TLS_CLIENT, GET), T(TLS_SERVER, OK), T(TLS_CLIENT, GET GET), T(TLS_SERVER, OK OK) } },
	{ "with a body",
	  0,
	  "hello",
	  "abc",
	  { T(TLS_CLIENT, "POST / HTTP/1.1\r\nHost: api.example\r\n"
			  "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"),
	    T(TLS_SERVER,
	      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n") } },
	{ "with a secret",
	  0,
	  TLS_WORLD_PLACEHOLDER,
	  TLS_WORLD_VALUE_ONE,
	  { T(TLS_CLIENT,
	      "GET / HTTP/1.1\r\nHost: api.example\r\nX-Key: " TLS_WORLD_PLACEHOLDER "\r\n\r\n"),
	    T(TLS_SERVER, "HTTP/1.1 200 OK\r\n\r\n" TLS_WORLD_VALUE_ONE) } },
	{ "held",
	  0,
	  "hello",
	  "abc",
	  { T(TLS_CLIENT, "POST / HTTP/1.1\r\nHost: api.example\r\n"
			  "X-Amz-Date: 20150830T123600Z\r\nAuthorization: " SIGNED
			  "\r\nContent-Length: 3\r\n\r\nabc"),
	    T(TLS_SERVER, OK) } },
	{ "refused",
	  0,
	  "421",
	  NULL,
	  { T(TLS_CLIENT, "GET / HTTP/1.1\r\nHost: other.example\r\n\r\nmore") } },
	{ "broken", TLS_WORLD_BROKEN, "502", NULL, { T(TLS_CLIENT, GET) } },
	{ "upgraded",
	  0,
	  "down",
	  "up",
	  { T(TLS_CLIENT,
	      "GET / HTTP/1.1\r\nHost: api.example\r\n" UPGRADE "Sec-WebSocket-Version: 13\r\n"
	      "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"),
	    T(TLS_SERVER, "HTTP/1.1 101 Switching Protocols\r\n" UPGRADE
			  "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"),
	    T(TLS_CLIENT, "up"), T(TLS_SERVER, "down") } },
	{ "the server has ended",
	  0,
	  "hello",
	  "GET /",
	  { T(TLS_CLIENT, GET), T(TLS_SERVER_LAST, "HTTP/1.1 200 OK\r\n\r\nhello"),
	    T(TLS_CLIENT, "more") } },
	{ "the client does not read",
	  0,
	  "aaaa",
	  "GET /",
	  { { .step = TLS_CLIENT_PAUSE },
	    T(TLS_CLIENT, GET),
	    T(TLS_SERVER, "HTTP/1.1 200 OK\r\nContent-Length: 819200\r\n\r\n"),
	    { .step = TLS_SERVER_ZEROS, .bytes = { (const uint8_t *)"\3\40", 2 } } } },
	{ "the server does not read",
	  TLS_WORLD_OPEN,
	  NULL,
	  "aaaa",
	  { { .step = TLS_SERVER_PAUSE },
	    T(TLS_CLIENT, "POST / HTTP/1.1\r\nHost: api.example\r\nContent-Length: 819200\r\n\r\n"),
	    { .step = TLS_CLIENT_ZEROS, .bytes = { (const uint8_t *)"\3\40", 2 } } } },
};

/* --- HTTP/2 --- */

/* A frame; the length of its payload is less than 256. */
#define FRAME(n, type, flags, stream) "\0\0" n type flags "\0\0\0" stream
#define SETTINGS		      FRAME("\0", "\4", "\0", "\0")
#define PREFACE			      "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" SETTINGS
#define END_HEADERS		      "\4"
#define END_BOTH		      "\5"
#define AUTHORITY		      "\0\12:authority\13api.example"
/* RFC 7541, Appendix A: 2 GET, 3 POST, 4 /, 7 https, 8 200 */
#define GET_BLOCK      "\x82\x84\x87" AUTHORITY			     /* 27 bytes */
#define POST_BLOCK     "\x83\x84\x87" AUTHORITY			     /* 27 */
#define OTHER_BLOCK    "\x82\x84\x87\0\12:authority\15other.example" /* 29 */
#define HEAD_OF(s)     FRAME("\33", "\1", END_BOTH, s) GET_BLOCK
#define REPLY_TO(s)    FRAME("\1", "\1", END_HEADERS, s) "\x88" FRAME("\5", "\0", "\1", s) "hello"
#define BODY(s, flags) FRAME("\3", "\0", flags, s) "abc"

static const struct conversation http2[] = {
	{ "two streams",
	  TLS_WORLD_BARE,
	  "hello",
	  "PRI ",
	  { T(TLS_CLIENT, PREFACE HEAD_OF("\1") HEAD_OF("\3")),
	    T(TLS_SERVER, SETTINGS REPLY_TO("\3") REPLY_TO("\1")) } },
	{ "with a body",
	  TLS_WORLD_BARE,
	  "hello",
	  "abc",
	  { T(TLS_CLIENT, PREFACE FRAME("\33", "\1", END_HEADERS, "\1") POST_BLOCK BODY("\1", "\0")
				  BODY("\1", "\1")),
	    T(TLS_SERVER, SETTINGS REPLY_TO("\1")) } },
	{ "refused",
	  TLS_WORLD_BARE,
	  "sbx: ",
	  NULL,
	  { T(TLS_CLIENT, PREFACE FRAME("\35", "\1", END_BOTH, "\1") OTHER_BLOCK HEAD_OF("\3")),
	    T(TLS_SERVER, SETTINGS) } },
	{ "broken",
	  TLS_WORLD_BARE | TLS_WORLD_BROKEN,
	  "sbx: ",
	  NULL,
	  { T(TLS_CLIENT, PREFACE HEAD_OF("\1")) } },
	{ "the server goes away",
	  TLS_WORLD_BARE,
	  "hello",
	  "PRI ",
	  { T(TLS_CLIENT, PREFACE HEAD_OF("\1")),
	    T(TLS_SERVER, SETTINGS FRAME("\10", "\7", "\0", "\0") "\0\0\0\1\0\0\0\0"),
	    T(TLS_SERVER_LAST, REPLY_TO("\1")) } },
	{ "no HTTP/2",
	  TLS_WORLD_BARE,
	  NULL,
	  NULL,
	  { T(TLS_CLIENT, PREFACE "garbage, not a frame") } },
	{ "the client does not read",
	  0,
	  "aaaa",
	  NULL,
	  { { .step = TLS_CLIENT_PAUSE },
	    T(TLS_CLIENT, HEAD_OF("\1")),
	    T(TLS_SERVER, FRAME("\1", "\1", END_HEADERS, "\1") "\x88"),
	    { .step = TLS_SERVER_ZEROS, .bytes = { (const uint8_t *)"\3\40", 2 } } } },
};

/* --- running --- */

static bool is_text(enum tls_world_step step)
{
	return step == TLS_CLIENT || step == TLS_SERVER || step == TLS_CLIENT_LAST ||
	       step == TLS_SERVER_LAST;
}

/* Writes the conversation's first @n_max bytes, and the cut unless all fitted. TLS_*_ZEROS counts
 * as one. */
static bool write_until(const struct conversation *c, size_t n_max)
{
	input_begin(&in, c->flags);
	for (size_t i = 0; i < TURNS_MAX && (c->turns[i].bytes.n || c->turns[i].step); i++) {
		const struct turn *t = &c->turns[i];
		bool text = is_text(t->step);
		size_t n = text && t->bytes.n > n_max ? n_max : t->bytes.n;

		if (text) {
			input_bytes(&in, t->step, sbx_span(t->bytes.p, n));
			n_max -= n;
		} else {
			input_step(&in, t->step);
			input_put(&in, t->bytes.p, t->bytes.n);
			n_max -= t->bytes.n != 0;
		}
		if (n < t->bytes.n || n_max == 0) {
			input_step(&in, TLS_CUT);
			return true;
		}
	}
	return false;
}

static bool has(const struct tls_world_output *o, const char *text)
{
	return !text || (o->n && memmem(o->p, o->n, text, strlen(text)));
}

/* Cut after each byte; at the end it is not cut, and goes through. */
static void check(const struct conversation *c, bool is_h2)
{
	bool more = true;
	size_t n_cut = 0;

	for (size_t n = 1; more; n++) {
		struct tls_world w = { .is_h2 = is_h2 };

		more = write_until(c, n);
		tls_world_run(&w, sbx_span(in.p, in.n));
		assert_int_equal(w.n_done, 1);
		n_cut += w.cut;
		if (!more && (!has(&w.to_client, c->to_client) || !has(&w.to_server, c->to_server)))
			fail_msg("%s", c->name);
		tls_world_fini(&w);
	}
	if (n_cut < 10)
		fail_msg("%s: %zu cut", c->name, n_cut);
}

static void test_http1(void **state)
{
	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(http1); i++)
		check(&http1[i], false);
}

static void test_http2(void **state)
{
	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(http2); i++)
		check(&http2[i], true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_http1),
		cmocka_unit_test(test_http2),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
