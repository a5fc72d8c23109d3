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
#include "wire/http_reply.h"

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

/* The request has the values of the moment when its body was complete, and so has the search of its
 * response. */
static void test_rotation_while_held(void **state)
{
	char text[1024];

	(void)state;
	input_begin(&in, 0);
	snprintf(text, sizeof(text), POST_SIGNED "Content-Length: %zu\r\n\r\n",
		 strlen(TLS_WORLD_PLACEHOLDER));
	input_text(&in, TLS_CLIENT, text);
	input_step(&in, TLS_ROTATE);
	input_text(&in, TLS_CLIENT, TLS_WORLD_PLACEHOLDER);
	input_text(&in, TLS_SERVER,
		   "HTTP/1.1 200 OK\r\nX-Echo: " TLS_WORLD_VALUE_ROTATED
		   "\r\nContent-Length: 5\r\n\r\nhello");
	run();
	assert_true(ends_with(&w.to_server, "\r\n\r\n" TLS_WORLD_VALUE_ROTATED));
	assert_true(has(&w.to_client, "X-Echo: " TLS_WORLD_PLACEHOLDER "\r\n"));
	assert_false(has(&w.to_client, TLS_WORLD_VALUE_ROTATED));
}

/* Nothing of a held request was sent, so nothing answers it: a response that begins before would go
 * on behind the request, searched for the values of before. */
static void test_answer_to_held_request(void **state)
{
	(void)state;
	input_begin(&in, 0);
	input_text(&in, TLS_CLIENT, POST_SIGNED "Content-Length: 29\r\n\r\n");
	input_text(&in, TLS_SERVER, "HTTP/1.1 200 OK\r\n\r\n");
	input_step(&in, TLS_ROTATE);
	input_text(&in, TLS_CLIENT, TLS_WORLD_PLACEHOLDER);
	input_text(&in, TLS_SERVER, TLS_WORLD_VALUE_ROTATED);
	run();
	assert_false(has(&w.to_client, TLS_WORLD_VALUE_ROTATED));
	assert_int_equal(w.to_client.n, 0);
}

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
	input_text(&in, TLS_CLIENT, POST_SIGNED "Transfer-Encoding: chunked\r\n\r\n100001\r\n");
	put_zeros(1048577);
	run();
	assert_int_equal(w.to_server.n, 0);
	assert_true(has(&w.to_client, "HTTP/1.1 413 Content Too Large\r\n"));
	assert_true(has(&w.to_client, "signed anew for AWS"));
}

/* A client that says how long the body is need not send it. */
static void test_held_too_long_by_its_head(void **state)
{
	(void)state;
	input_begin(&in, 0);
	input_text(&in, TLS_CLIENT,
		   POST_SIGNED "Content-Length: 1048577\r\nExpect: 100-continue\r\n\r\n");
	run();
	assert_int_equal(w.to_server.n, 0);
	assert_true(has(&w.to_client, "HTTP/1.1 413 Content Too Large\r\n"));
	assert_true(has(&w.to_client, "signed anew for AWS"));
	assert_false(has(&w.to_client, "100 Continue"));
	end(state);
	begin(state);
	input_begin(&in, 0);
	input_text(&in, TLS_CLIENT,
		   POST_SIGNED "Content-Length: 1048576\r\nExpect: 100-continue\r\n\r\n");
	put_zeros(1048576);
	run();
	assert_true(has(&w.to_client, "HTTP/1.1 100 Continue\r\n"));
	assert_true(w.to_server.n > 1048576);
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

/* A body that is held for its length, and grows over the limit by its values. */
static void test_too_long_with_values(void **state)
{
	const size_t n_holders = 10000, n = strlen(TLS_WORLD_PLACEHOLDER);
	char text[256];

	(void)state;
	input_begin(&in, 0);
	input_step(&in, TLS_ROTATE); /* to a longer value */
	snprintf(text, sizeof(text),
		 "POST / HTTP/1.1\r\nHost: api.example\r\nContent-Length: %zu\r\n\r\n",
		 n_holders * n);
	input_text(&in, TLS_CLIENT, text);
	for (size_t i = 0; i < n_holders; i++)
		input_text(&in, TLS_CLIENT, TLS_WORLD_PLACEHOLDER);
	run();
	assert_int_equal(w.to_server.n, 0);
	assert_true(has(&w.to_client, "HTTP/1.1 413 Content Too Large\r\nX-Sbx-Denied: oversized"));
	assert_true(has(&w.to_client, "too long with its secrets in it"));
	assert_false(has(&w.to_client, "AWS"));
}

/* A longer body of a length that may change is sent in chunks, which HTTP/1.0 does not have: a
 * server that does not read them would take the body for requests. */
static void test_long_body_of_http10(void **state)
{
	char head[128];

	for (int minor = 0; minor < 2; minor++) {
		input_begin(&in, 0);
		snprintf(head, sizeof(head),
			 "POST / HTTP/1.%d\r\nHost: api.example\r\nContent-Length: 600000\r\n\r\n",
			 minor);
		input_text(&in, TLS_CLIENT, head);
		put_zeros(600000);
		run();
		assert_int_equal(w.to_server.n > 600000, minor);
		assert_int_equal(has(&w.to_server, "\r\nTransfer-Encoding: chunked\r\n"), minor);
		assert_int_equal(has(&w.to_client, "HTTP/1.1 413 "), !minor);
		assert_int_equal(has(&w.to_client, "send it in HTTP/1.1"), !minor);
		end(state);
		begin(state);
	}
}

/* --- the response's head --- */

static void check_coding(const char *coding)
{
	char text[512];

	input_begin(&in, 0);
	input_text(&in, TLS_CLIENT, GET);
	snprintf(text, sizeof(text),
		 "HTTP/1.1 200 OK\r\nContent-Encoding: %s\r\nContent-MD5: m\r\n"
		 "Content-Digest: c\r\nDigest: d\r\nContent-Length: %zu\r\n\r\n%s",
		 coding, strlen(TLS_WORLD_VALUE_ONE), TLS_WORLD_VALUE_ONE);
	input_text(&in, TLS_SERVER, text);
	run();
	assert_false(has(&w.to_client, TLS_WORLD_VALUE_ONE));
	assert_true(ends_with(&w.to_client, "\r\n\r\n" TLS_WORLD_PLACEHOLDER));
	assert_false(has(&w.to_client, "Content-MD5:"));
	assert_false(has(&w.to_client, "Content-Digest:"));
	assert_false(has(&w.to_client, "\r\nDigest:"));
	snprintf(text, sizeof(text), "\r\nContent-Encoding: %s\r\n", coding);
	assert_true(has(&w.to_client, text));
	tls_world_fini(&w);
	w = (struct tls_world){ .is_h2 = false };
}

/* The server says what the coding is, and it may be wrong. */
static void test_coding(void **state)
{
	static const char *const codings[] = { "identity", "Identity", "",  "gzip", "x-gzip",
					       "br, identity", "aws-chunked", "none" };

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(codings); i++)
		check_coding(codings[i]);
}

/* Takes the body out of a response, whatever frames it. */
static size_t read_body(const struct tls_world_output *o, uint8_t *ret)
{
	struct sbx_span rest = sbx_span(o->p, o->n), data;
	struct sbx_http_reply head;
	struct sbx_http_body chunks;
	size_t n = 0, n_used;
	int r = SBX_HTTP_E_MORE;

	assert_int_equal(sbx_http_reply_parse(rest, false, &head), 0);
	rest = sbx_span(rest.p + head.n, rest.n - head.n);
	if (head.framing != SBX_HTTP_REPLY_CHUNKED) {
		assert_true(head.framing == SBX_HTTP_REPLY_CLOSE || head.length == rest.n);
		memcpy(ret, rest.p, rest.n);
		return rest.n;
	}
	sbx_http_body_init(&chunks, SBX_HTTP_FRAMING_CHUNKED, 0);
	while (r == SBX_HTTP_E_MORE) {
		r = sbx_http_chunked_next(&chunks, rest, &data, &n_used);
		if (data.n)
			memcpy(ret + n, data.p, data.n);
		n += data.n;
		rest = sbx_span(rest.p + n_used, rest.n - n_used);
	}
	assert_int_equal(r, 0);
	return n;
}

/* A compressed body is searched, and stays as it is. */
static void test_coded_body_without_value(void **state)
{
	static const char *const framings[] = { "Content-Length: 4096\r\n",
						"Transfer-Encoding: chunked\r\n", "" };
	uint8_t body[4096], got[8192];
	uint32_t random = 1;

	for (size_t i = 0; i < sizeof(body); i++) {
		random = random * 1103515245 + 12345;
		body[i] = (uint8_t)(random >> 16);
	}
	for (size_t i = 0; i < SBX_N_ELEMENTS(framings); i++) {
		char head[128];

		input_begin(&in, 0);
		input_text(&in, TLS_CLIENT, GET);
		snprintf(head, sizeof(head),
			 "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n%s\r\n%s", framings[i],
			 i == 1 ? "1000\r\n" : "");
		input_text(&in, TLS_SERVER, head);
		input_bytes(&in, TLS_SERVER, sbx_span(body, sizeof(body)));
		input_text(&in, TLS_SERVER_LAST, i == 1 ? "\r\n0\r\n\r\n" : "");
		run();
		assert_int_equal(read_body(&w.to_client, got), sizeof(body));
		assert_memory_equal(got, body, sizeof(body));
		end(state);
		begin(state);
	}
}

/* --- refusals --- */

static void refuse_head(const char *head, int status)
{
	char text[65536], line[32];

	for (int is_get = 0; is_get < 2; is_get++) {
		snprintf(text, sizeof(text), "%s / HTTP/1.1\r\n%s\r\n\r\n",
			 is_get ? "GET" : "HEAD", head);
		snprintf(line, sizeof(line), "HTTP/1.1 %d ", status);
		input_begin(&in, TLS_WORLD_READ_ONLY);
		input_text(&in, TLS_CLIENT, text);
		run();
		assert_true(has(&w.to_client, line));
		assert_true(has(&w.to_client, "\r\nContent-Length: "));
		assert_int_equal(ends_with(&w.to_client, "\r\n\r\n"), !is_get);
		assert_int_equal(has(&w.to_client, "sbx: "), is_get);
		tls_world_fini(&w);
		w = (struct tls_world){ .is_h2 = false };
	}
}

/* Whatever refuses it (RFC 9110 section 9.3.2). */
static void test_refusal_of_head_has_no_body(void **state)
{
	char fields[1024] = "Host: api.example";

	(void)state;
	refuse_head("Host: other.example", 421);
	refuse_head("Host: api.example\r\nHost: api.example", 400);
	refuse_head("Host: api.example\r\nX-A : b", 400);
	refuse_head("Host: api.example\r\nContent-Length: 3", 403);
	for (size_t i = 0; i < 150; i++)
		strcat(fields, "\r\na:b");
	refuse_head(fields, 431);
}

/* The request before does not matter. */
static void test_refusal_after_head(void **state)
{
	(void)state;
	input_begin(&in, 0);
	input_text(&in, TLS_CLIENT, "HEAD / HTTP/1.1\r\nHost: api.example\r\n\r\n");
	input_text(&in, TLS_SERVER, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n");
	input_text(&in, TLS_CLIENT, "GET / HTTP/1.1\r\nX-A : b\r\n\r\n");
	run();
	assert_true(has(&w.to_client, "HTTP/1.1 200 OK\r\n"));
	assert_true(has(&w.to_client, "HTTP/1.1 400 Bad Request\r\n"));
	assert_true(has(&w.to_client, "sbx: "));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_server_ends_behind_response),
		TEST(test_client_ends_behind_request),
		TEST(test_slow_client),
		TEST(test_rotation_while_held),
		TEST(test_answer_to_held_request),
		TEST(test_held_too_long),
		TEST(test_held_too_long_by_its_head),
		TEST(test_held_max_request_bytes),
		TEST(test_too_long_with_values),
		TEST(test_long_body_of_http10),
		TEST(test_coding),
		TEST(test_coded_body_without_value),
		TEST(test_refusal_of_head_has_no_body),
		TEST(test_refusal_after_head),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
