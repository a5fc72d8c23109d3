/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Connections that speak HTTP/1: what each side gets. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "tests/unit/tls/world_input.h"

#define GET "GET / HTTP/1.1\r\nHost: api.example\r\n\r\n"
#define OK  "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"

static struct world_input in;
static struct tls_world w;

static int begin(void **state)
{
	(void)state;
	w = (struct tls_world){ .is_h2 = false };
	return 0;
}

static int end(void **state)
{
	(void)state;
	tls_world_fini(&w);
	return 0;
}

static void run(void)
{
	tls_world_run(&w, sbx_span(in.p, in.n));
}

static bool has(const struct tls_world_output *o, const char *text)
{
	return o->n && memmem(o->p, o->n, text, strlen(text));
}

static bool ends_with(const struct tls_world_output *o, const char *text)
{
	size_t n = strlen(text);

	return o->n >= n && memcmp(o->p + o->n - n, text, n) == 0;
}

/* --- the end of an exchange --- */

static const uint8_t worlds[] = { 0, TLS_WORLD_OPEN };

/* The server's end is there to be read behind a response that is not written yet. */
static void test_server_ends_behind_response(void **state)
{
	static const char *const responses[] = { OK, "HTTP/1.1 304 Not Modified\r\n\r\n",
						 "HTTP/1.1 200 OK\r\n\r\nhello" };

	for (size_t i = 0; i < SBX_N_ELEMENTS(worlds) * SBX_N_ELEMENTS(responses); i++) {
		const char *response = responses[i / 2];

		input_begin(&in, worlds[i % 2]);
		input_text(&in, TLS_CLIENT, GET);
		input_text(&in, TLS_SERVER_LAST, response);
		run();
		assert_true(ends_with(&w.to_client, strstr(response, "\r\n\r\n")));
		end(state);
		begin(state);
	}
}

/* The client's end is there to be read behind its request. */
static void test_client_ends_behind_request(void **state)
{
	for (size_t i = 0; i < SBX_N_ELEMENTS(worlds); i++) {
		input_begin(&in, worlds[i]);
		input_text(&in, TLS_CLIENT_LAST, GET);
		input_text(&in, TLS_SERVER, OK);
		run();
		assert_true(ends_with(&w.to_client, "\r\n\r\nhello"));
		end(state);
		begin(state);
	}
}

/* A client that reads slowly gets the response before the connection ends. */
static void test_slow_client(void **state)
{
	/* More than a socket takes, less than it and the queue: so the end is read meanwhile. */
	const uint8_t n_kib[2] = { 0, 210 };

	for (size_t i = 0; i < SBX_N_ELEMENTS(worlds); i++) {
		input_begin(&in, worlds[i]);
		input_text(&in, TLS_CLIENT, GET);
		input_step(&in, TLS_CLIENT_PAUSE);
		input_text(&in, TLS_SERVER, "HTTP/1.1 200 OK\r\nContent-Length: 215045\r\n\r\n");
		input_step(&in, TLS_SERVER_ZEROS);
		input_put(&in, n_kib, 2);
		input_text(&in, TLS_SERVER_LAST, "hello");
		input_step(&in, TLS_CLIENT_PAUSE);
		run();
		assert_true(w.to_client.n > 215045);
		assert_true(ends_with(&w.to_client, "aahello"));
		end(state);
		begin(state);
	}
}

/* --- held requests --- */

#define POST_SIGNED                                                                                \
	"POST / HTTP/1.1\r\nHost: api.example\r\nX-Amz-Date: 20150830T123600Z\r\n"                 \
	"Authorization: " SIGNED "\r\n"

static void put_zeros(size_t n)
{
	static uint8_t zeros[32768];

	memset(zeros, 'a', sizeof(zeros));
	for (size_t part; n; n -= part) {
		part = n < sizeof(zeros) ? n : sizeof(zeros);
		input_bytes(&in, TLS_CLIENT, sbx_span(zeros, part));
	}
}

static void test_held_too_long(void **state)
{
	(void)state;
	input_begin(&in, 0);
	input_text(&in, TLS_CLIENT, POST_SIGNED "Content-Length: 1048577\r\n\r\n");
	put_zeros(1048577);
	run();
	assert_int_equal(w.to_server.n, 0);
	assert_true(has(&w.to_client, "HTTP/1.1 413 Content Too Large\r\n"));
	assert_true(has(&w.to_client, "signed anew for AWS"));
}

static void test_held_max_request_bytes(void **state)
{
	(void)state;
	input_begin(&in, TLS_WORLD_SMALL);
	input_text(&in, TLS_CLIENT, POST_SIGNED "Transfer-Encoding: chunked\r\n\r\nc00\r\n");
	put_zeros(TLS_WORLD_SMALL_BYTES + 1);
	run();
	assert_int_equal(w.to_server.n, 0);
	assert_true(has(&w.to_client, "HTTP/1.1 413 Content Too Large\r\n"));
	assert_true(has(&w.to_client, "max_request_bytes"));
}

/* --- the response's head --- */

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_server_ends_behind_response),
		TEST(test_client_ends_behind_request),
		TEST(test_slow_client),
		TEST(test_held_too_long),
		TEST(test_held_max_request_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
