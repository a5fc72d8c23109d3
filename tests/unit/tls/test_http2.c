/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Connections that speak HTTP/2: what each side gets. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <nghttp2/nghttp2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "http/message.h"
#include "tests/unit/fail_alloc.h"
#include "tests/unit/tls/world_input.h"

static struct world_input in;
static struct tls_world w;

/* --- frames to send --- */

struct block {
	size_t n;
	uint8_t p[8192];
};

/* An integer of RFC 7541 section 5.1 with a prefix of 7 bits. */
static void put_number(struct block *b, size_t n)
{
	if (n < 127) {
		b->p[b->n++] = (uint8_t)n;
		return;
	}
	b->p[b->n++] = 127;
	for (n -= 127; n >= 128; n /= 128)
		b->p[b->n++] = (uint8_t)(n % 128 + 128);
	b->p[b->n++] = (uint8_t)n;
}

static void put_text(struct block *b, const char *text)
{
	size_t n = strlen(text);

	put_number(b, n);
	assert_true(n <= sizeof(b->p) - b->n);
	memcpy(b->p + b->n, text, n);
	b->n += n;
}

/* A field without indexing, section 6.2.2. */
static void put_field(struct block *b, const char *name, const char *value)
{
	b->p[b->n++] = 0;
	put_text(b, name);
	put_text(b, value);
}

static void put_frame(enum tls_world_step step, uint8_t type, uint8_t flags, struct sbx_span data)
{
	const uint8_t head[5] = { type, flags, 1, (uint8_t)(data.n >> 8), (uint8_t)data.n };

	input_step(&in, step);
	input_put(&in, head, sizeof(head));
	input_put(&in, data.p, data.n);
}

static void put_head(enum tls_world_step step, const struct block *b, bool last)
{
	put_frame(step, NGHTTP2_HEADERS,
		  NGHTTP2_FLAG_END_HEADERS | (last ? NGHTTP2_FLAG_END_STREAM : 0),
		  sbx_span(b->p, b->n));
}

static void put_data(enum tls_world_step step, const char *text, bool last)
{
	put_frame(step, NGHTTP2_DATA, last ? NGHTTP2_FLAG_END_STREAM : 0, sbx_span_str(text));
}

static struct block request(const char *method)
{
	struct block b = { 0 };

	put_field(&b, ":method", method);
	put_field(&b, ":scheme", "https");
	put_field(&b, ":authority", "api.example");
	put_field(&b, ":path", "/");
	return b;
}

static struct block signed_request(void)
{
	struct block b = request("POST");

	put_field(&b, "x-amz-date", "20150830T123600Z");
	put_field(&b, "authorization", SIGNED);
	return b;
}

static struct block response(void)
{
	struct block b = { 0 };

	put_field(&b, ":status", "200");
	return b;
}

/* --- frames that were written --- */

/* The fields ("name: value", with " !" where no table may keep it), bodies ("data: ..."), and
 * "end" or "reset" of stream 1, a line each. */
static char told[2][1u << 20];

static void tell_fields(nghttp2_hd_inflater *inflater, struct sbx_span block, FILE *out)
{
	int flags = 0;

	while (!(flags & NGHTTP2_HD_INFLATE_FINAL)) {
		nghttp2_nv nv;
		ssize_t n = nghttp2_hd_inflate_hd2(inflater, &nv, &flags, block.p, block.n, 1);

		assert_true(n >= 0);
		block = sbx_span(block.p + n, block.n - (size_t)n);
		if (flags & NGHTTP2_HD_INFLATE_EMIT)
			fprintf(out, "%.*s: %.*s%s\n", (int)nv.namelen, nv.name, (int)nv.valuelen,
				nv.value, nv.flags & NGHTTP2_NV_FLAG_NO_INDEX ? " !" : "");
	}
	nghttp2_hd_inflate_end_headers(inflater);
}

static void tell_frame(nghttp2_hd_inflater *inflater, const uint8_t *head, struct sbx_span payload,
		       FILE *out)
{
	uint8_t type = head[3], flags = head[4];

	if (type == NGHTTP2_HEADERS)
		tell_fields(inflater, payload, out);
	if (type == NGHTTP2_DATA && payload.n)
		fprintf(out, "data: %.*s\n", (int)payload.n, (const char *)payload.p);
	if (type == NGHTTP2_RST_STREAM)
		fputs("reset\n", out);
	if (type <= NGHTTP2_HEADERS && flags & NGHTTP2_FLAG_END_STREAM)
		fputs("end\n", out);
}

static const char *tell(const struct tls_world_output *o, char *text)
{
	FILE *out = fmemopen(text, sizeof(told[0]), "w");
	struct sbx_span s = sbx_span(o->p, o->n);
	nghttp2_hd_inflater *inflater;

	assert_non_null(out);
	assert_int_equal(nghttp2_hd_inflate_new(&inflater), 0);
	if (s.n >= 24 && memcmp(s.p, "PRI ", 4) == 0)
		s = sbx_span(s.p + 24, s.n - 24);
	while (s.n >= 9) {
		size_t n = (size_t)s.p[0] << 16 | (size_t)s.p[1] << 8 | s.p[2];

		if (n > s.n - 9)
			break;
		tell_frame(inflater, s.p, sbx_span(s.p + 9, n), out);
		s = sbx_span(s.p + 9 + n, s.n - 9 - n);
	}
	nghttp2_hd_inflate_del(inflater);
	fputc(0, out);
	fclose(out);
	return text;
}

static const char *to_server(void)
{
	return tell(&w.to_server, told[0]);
}

static const char *to_client(void)
{
	return tell(&w.to_client, told[1]);
}

static bool has(const char *text, const char *part)
{
	return strstr(text, part) != NULL;
}

/* --- running --- */

static int begin(void **state)
{
	(void)state;
	w = (struct tls_world){ .is_h2 = true };
	input_begin(&in, 0);
	return 0;
}

static int end(void **state)
{
	(void)state;
	fail_at = 0;
	tls_world_fini(&w);
	return 0;
}

static void run(void)
{
	tls_world_fini(&w);
	w = (struct tls_world){ .is_h2 = true };
	tls_world_run(&w, sbx_span(in.p, in.n));
}

/* --- requests --- */

static void check_max_request_bytes(const struct block *head)
{
	char text[TLS_WORLD_SMALL_BYTES + 2];

	memset(text, 'a', sizeof(text));
	text[TLS_WORLD_SMALL_BYTES + 1] = 0;
	input_begin(&in, TLS_WORLD_SMALL);
	put_head(TLS_CLIENT_FRAME, head, false);
	put_data(TLS_CLIENT_FRAME, text + 1, true);
	run();
	assert_true(has(to_server(), "data: aaa"));
	assert_true(has(to_server(), "end\n"));

	input_begin(&in, TLS_WORLD_SMALL);
	put_head(TLS_CLIENT_FRAME, head, false);
	put_data(TLS_CLIENT_FRAME, text, true);
	run();
	assert_false(has(to_server(), "data: "));
	assert_false(has(to_server(), "end\n"));
	assert_true(has(to_client(), ":status: 413\n"));
	assert_true(has(to_client(), "max_request_bytes"));
}

static void test_max_request_bytes(void **state)
{
	const struct block plain = request("POST"), held = signed_request();

	(void)state;
	check_max_request_bytes(&plain);
	check_max_request_bytes(&held);
}

/* A signed request is held until its body is there, unless its length says that there is none. */
static void test_signed_without_a_body(void **state)
{
	struct block b = signed_request();

	(void)state;
	put_head(TLS_CLIENT_FRAME, &b, false);
	run();
	assert_false(has(to_server(), ":method: POST\n"));
	put_field(&b, "content-length", "0");
	input_begin(&in, 0);
	put_head(TLS_CLIENT_FRAME, &b, false);
	run();
	assert_true(has(to_server(), ":method: POST\n"));
}

static void check_trailer(const struct block *head, const char *value, bool allowed)
{
	struct block trailer = { 0 };

	put_field(&trailer, "x-check", value);
	input_begin(&in, 0);
	put_head(TLS_CLIENT_FRAME, head, false);
	put_data(TLS_CLIENT_FRAME, "abc", false);
	put_head(TLS_CLIENT_FRAME, &trailer, true);
	run();
	assert_int_equal(has(to_server(), value), allowed);
	assert_int_equal(has(to_server(), "end\n"), allowed);
	assert_int_equal(has(to_client(), ":status: 403\n"), !allowed);
}

/* No placeholder and no detected value goes on in a trailer. */
static void test_trailer(void **state)
{
	const struct block plain = request("POST"), held = signed_request();

	(void)state;
	check_trailer(&plain, "1", true);
	check_trailer(&held, "1", true);
	check_trailer(&plain, TLS_WORLD_VALUE_TWO, false);
	check_trailer(&held, TLS_WORLD_VALUE_TWO, false);
	check_trailer(&plain, TLS_WORLD_PLACEHOLDER, false);
	check_trailer(&held, TLS_WORLD_PLACEHOLDER, false);
}

/* A trailer with too many fields is refused, not left out. */
static void check_long_trailer(const struct block *head, size_t n_fields, bool allowed)
{
	struct block trailer = { 0 };

	for (size_t i = 0; i < n_fields; i++)
		put_field(&trailer, "x-check", "1");
	input_begin(&in, 0);
	put_head(TLS_CLIENT_FRAME, head, false);
	put_data(TLS_CLIENT_FRAME, "abc", false);
	put_head(TLS_CLIENT_FRAME, &trailer, true);
	run();
	assert_int_equal(has(to_server(), "x-check: 1\nend\n"), allowed);
	assert_int_equal(has(to_server(), "end\n"), allowed);
	assert_int_equal(has(to_client(), ":status: 431\n"), !allowed);
}

static void test_long_trailer(void **state)
{
	const struct block plain = request("POST"), held = signed_request();

	(void)state;
	check_long_trailer(&plain, SBX_HTTP_HEADERS_MAX, true);
	check_long_trailer(&held, SBX_HTTP_HEADERS_MAX, true);
	check_long_trailer(&plain, SBX_HTTP_HEADERS_MAX + 1, false);
	check_long_trailer(&held, SBX_HTTP_HEADERS_MAX + 1, false);
}

/* The server's table of fields gets no value of a secret, whatever the field is. */
static void test_not_indexed(void **state)
{
	struct block b = request("GET");

	(void)state;
	put_field(&b, "x-key", TLS_WORLD_PLACEHOLDER);
	put_field(&b, "user-agent", "test");
	put_field(&b, "cookie", "a=0123456789012345678901234567890123456789");
	put_head(TLS_CLIENT_FRAME, &b, true);
	run();
	assert_true(has(to_server(), "x-key: " TLS_WORLD_VALUE_ONE " !\n"));
	assert_true(has(to_server(), "authorization: Bearer " TLS_WORLD_VALUE_THREE " !\n"));
	assert_true(has(to_server(), "cookie: a=0123456789012345678901234567890123456789 !\n"));
	assert_true(has(to_server(), "user-agent: test\n"));
}

static void test_query_not_indexed(void **state)
{
	struct block b = { 0 };

	(void)state;
	put_field(&b, ":method", "GET");
	put_field(&b, ":scheme", "https");
	put_field(&b, ":authority", "api.example");
	put_field(&b, ":path", "/?a=" TLS_WORLD_PLACEHOLDER);
	put_head(TLS_CLIENT_FRAME, &b, true);
	run();
	assert_true(has(to_server(), ":path: /?a=Q1%2F%22value%22%20one%5C !\n"));
	assert_true(has(to_server(), ":method: GET\n"));
}

static void test_not_indexed_of_held(void **state)
{
	struct block b = signed_request();

	(void)state;
	put_field(&b, "x-key", TLS_WORLD_PLACEHOLDER);
	put_head(TLS_CLIENT_FRAME, &b, false);
	put_data(TLS_CLIENT_FRAME, "abc", true);
	run();
	assert_true(has(to_server(), "x-key: " TLS_WORLD_VALUE_ONE " !\n"));
}

/* --- responses --- */

static bool is_written(const struct tls_world_output *o, const void *p, size_t n)
{
	return memmem(o->p, o->n, p, n) != NULL;
}

/* A length or digest is told only where no value can change the body. */
static void check_described(bool told_so)
{
	assert_int_equal(has(to_client(), "content-md5: m\n"), told_so);
	assert_int_equal(has(to_client(), "content-digest: c\n"), told_so);
	assert_int_equal(has(to_client(), "\ndigest: d\n"), told_so);
	assert_int_equal(has(to_client(), "content-length: 15\n"), told_so);
}

static void put_reply(const char *coding, const char *body, uint8_t flags)
{
	const struct block get = request("GET");
	struct block b = response();

	put_field(&b, "content-encoding", coding);
	put_field(&b, "content-md5", "m");
	put_field(&b, "content-digest", "c");
	put_field(&b, "digest", "d");
	put_field(&b, "content-length", "15");
	input_begin(&in, flags);
	put_head(TLS_CLIENT_FRAME, &get, true);
	put_head(TLS_SERVER_FRAME, &b, false);
	put_data(TLS_SERVER_FRAME, body, true);
}

/* A server that sends a value back can say that it is coded. */
static void test_coding(void **state)
{
	static const char *const codings[] = { "identity", "Identity", "", "gzip", "x-gzip", "br",
					       "identity, br", "x-gzip,identity" };

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(codings); i++) {
		put_reply(codings[i], TLS_WORLD_VALUE_ONE, 0);
		run();
		assert_true(has(to_client(), "data: " TLS_WORLD_PLACEHOLDER "\nend\n"));
		check_described(false);
	}
}

static void test_no_secrets(void **state)
{
	(void)state;
	put_reply("gzip", TLS_WORLD_VALUE_ONE, TLS_WORLD_OPEN);
	run();
	assert_true(has(to_client(), "data: " TLS_WORLD_VALUE_ONE "\nend\n"));
	check_described(true);
}

/* A coded body without a value in it passes bit for bit. */
static void test_every_byte(void **state)
{
	const struct block get = request("GET");
	struct block b = response();
	uint8_t body[512];

	(void)state;
	for (size_t i = 0; i < sizeof(body); i++)
		body[i] = (uint8_t)(i < 256 ? i : 511 - i);
	put_field(&b, "content-encoding", "gzip");
	put_head(TLS_CLIENT_FRAME, &get, true);
	put_head(TLS_SERVER_FRAME, &b, false);
	put_frame(TLS_SERVER_FRAME, NGHTTP2_DATA, NGHTTP2_FLAG_END_STREAM,
		  sbx_span(body, sizeof(body)));
	run();
	assert_true(is_written(&w.to_client, body, sizeof(body)));
	assert_true(has(to_client(), "content-encoding: gzip\n"));
	assert_true(has(to_client(), "end\n"));
}

/* The digest of a body that was searched is not told in its trailer either. */
static void test_reply_trailer(void **state)
{
	const struct block get = request("GET"), ok = response();
	struct block trailer = { 0 };

	(void)state;
	put_field(&trailer, "content-digest", "c");
	put_field(&trailer, "x-sum", TLS_WORLD_VALUE_ONE);
	put_head(TLS_CLIENT_FRAME, &get, true);
	put_head(TLS_SERVER_FRAME, &ok, false);
	put_data(TLS_SERVER_FRAME, "abc", false);
	put_head(TLS_SERVER_FRAME, &trailer, true);
	run();
	assert_true(has(to_client(), "data: abc\nx-sum: " TLS_WORLD_PLACEHOLDER "\nend\n"));
}

/* The length of a response without a body is the one that the server told, as in HTTP/1. */
static void test_head(void **state)
{
	const struct block head = request("HEAD");
	struct block b = response();

	(void)state;
	put_field(&b, "content-length", "15");
	put_head(TLS_CLIENT_FRAME, &head, true);
	put_head(TLS_SERVER_FRAME, &b, true);
	run();
	assert_true(has(to_client(), "content-length: 15\nend\n"));
}

/* As above, where the server ends the response by a frame of its own. */
static void test_head_in_two_frames(void **state)
{
	const struct block head = request("HEAD");
	struct block b = response();

	(void)state;
	put_field(&b, "content-length", "15");
	put_head(TLS_CLIENT_FRAME, &head, true);
	put_head(TLS_SERVER_FRAME, &b, false);
	put_data(TLS_SERVER_FRAME, "", true);
	run();
	assert_true(has(to_client(), "content-length: 15\nend\n"));
}

/* The answer to a refused HEAD has the fields of that to GET, and no body. */
static void test_refused_head(void **state)
{
	const char *const methods[] = { "HEAD", "GET" };

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(methods); i++) {
		struct block b = request(methods[i]);
		bool is_head = i == 0;

		input_begin(&in, 0);
		put_field(&b, "x-key", "sbx_secret_0123456789abcdef02"); /* of another host */
		put_head(TLS_CLIENT_FRAME, &b, true);
		run();
		assert_true(has(to_client(), ":status: 403\n"));
		assert_true(has(to_client(), "content-length: "));
		assert_true(has(to_client(), "end\n"));
		assert_int_equal(has(to_client(), "data: "), !is_head);
	}
}

static void check_reply_head(const char *name, const char *value, bool good)
{
	const struct block get = request("GET");
	struct block b = { 0 };

	put_field(&b, ":status", name ? "200" : value);
	if (name)
		put_field(&b, name, value);
	input_begin(&in, 0);
	put_head(TLS_CLIENT_FRAME, &get, true);
	put_head(TLS_SERVER_FRAME, &b, true);
	run();
	assert_int_equal(has(to_client(), ":status: 502\n"), !good);
	assert_int_equal(has(to_client(), "not well-formed HTTP/2"), !good);
	assert_true(has(to_client(), "end\n"));
	assert_false(has(to_client(), "reset\n"));
	assert_int_equal(has(to_server(), "reset\n"), !good);
}

/* As in HTTP/1, the client is told why there is no response. */
static void test_malformed_replies(void **state)
{
	(void)state;
	check_reply_head("x-lower", "a", true);
	check_reply_head("X-Upper", "a", false);
	check_reply_head("x-value", "a\nb", false);
	check_reply_head("connection", "close", false);
	check_reply_head("content-length", "0", true);
	check_reply_head("content-length", "-1", false);
	check_reply_head("content-length", "1", false);
	check_reply_head(NULL, "204", true);
	check_reply_head(NULL, "099", false);
	check_reply_head(NULL, "101", false);
	check_reply_head(NULL, "2000", false);
}

/* --- slow readers --- */

/* SETTINGS, their acknowledgement and WINDOW_UPDATE: the windows of that peer never stop the other
 * one, and it uses those that it got. */
static void put_windows(enum tls_world_step step)
{
	static const char frames[] = "\0\0\0\4\1\0\0\0\0"
				     "\0\0\6\4\0\0\0\0\0\0\4\x7f\xff\xff\xff"
				     "\0\0\4\x08\0\0\0\0\0\x7f\xff\0\0";

	input_bytes(&in, step, sbx_span((const uint8_t *)frames, sizeof(frames) - 1));
}

static void put_zeros(enum tls_world_step step, size_t n_kib)
{
	const uint8_t n[2] = { (uint8_t)(n_kib >> 8), (uint8_t)n_kib };

	input_step(&in, step);
	input_put(&in, n, sizeof(n));
}

/* The bytes of all bodies in what to_client() or to_server() told. */
static size_t n_data(const char *text)
{
	size_t n = 0;

	while ((text = strstr(text, "data: "))) {
		text += strlen("data: ");
		n += strcspn(text, "\n");
	}
	return n;
}

#define SLOW_KIB 400 /* the socket's room, the queue's, and some more; less than the windows */

/* The queue for a reader that paused leaves at one event. So does all that waits behind it: there
 * is no second event (tls_world.c checks that after each step). */
static void test_slow_client(void **state)
{
	const struct block get = request("GET"), ok = response();

	(void)state;
	put_windows(TLS_CLIENT);
	put_windows(TLS_SERVER);
	put_head(TLS_CLIENT_FRAME, &get, true);
	put_head(TLS_SERVER_FRAME, &ok, false);
	input_step(&in, TLS_CLIENT_PAUSE);
	put_zeros(TLS_SERVER_ZEROS, SLOW_KIB);
	input_step(&in, TLS_CLIENT_PAUSE);
	put_data(TLS_SERVER_FRAME, "", true);
	run();
	assert_int_equal(n_data(to_client()), SLOW_KIB * 1024);
	assert_true(has(to_client(), "end\n"));
}

static void test_slow_server(void **state)
{
	const struct block post = request("POST");

	(void)state;
	put_windows(TLS_CLIENT);
	put_windows(TLS_SERVER);
	put_head(TLS_CLIENT_FRAME, &post, false);
	input_step(&in, TLS_SERVER_PAUSE);
	put_zeros(TLS_CLIENT_ZEROS, SLOW_KIB);
	input_step(&in, TLS_SERVER_PAUSE);
	put_data(TLS_CLIENT_FRAME, "", true);
	run();
	assert_int_equal(n_data(to_server()), SLOW_KIB * 1024);
	assert_true(has(to_server(), "end\n"));
}

/* --- no memory --- */

/* A message that one of the allocations cut is never told to be whole. The bodies may be the
 * beginning of a placeholder and of a value, so all of them is written at their end. */
static void check_no_memory(const struct block *head)
{
	const struct block ok = response();
	size_t n = 1;
	bool done;

	input_begin(&in, 0);
	put_head(TLS_CLIENT_FRAME, head, false);
	put_data(TLS_CLIENT_FRAME, "sbx_secret_01", false);
	put_data(TLS_CLIENT_FRAME, "", true);
	put_head(TLS_SERVER_FRAME, &ok, false);
	put_data(TLS_SERVER_FRAME, "Q1/\"val", false);
	put_data(TLS_SERVER_FRAME, "", true);
	do {
		fail_at = ++n; /* the first makes the connection */
		run();
		done = fail_at != 0;
		fail_at = 0;
		if (has(to_server(), "end\n"))
			assert_true(has(to_server(), "data: sbx_secret_01\nend\n"));
		if (has(to_client(), ":status: 200") && has(to_client(), "end\n"))
			assert_true(has(to_client(), "data: Q1/\"val\nend\n"));
	} while (!done);
	assert_true(n > 5);
	assert_true(has(to_client(), "end\n"));
}

static void test_no_memory(void **state)
{
	const struct block plain = request("POST"), held = signed_request();

	(void)state;
	check_no_memory(&plain);
	check_no_memory(&held);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_max_request_bytes),
		TEST(test_signed_without_a_body),
		TEST(test_trailer),
		TEST(test_long_trailer),
		TEST(test_not_indexed),
		TEST(test_query_not_indexed),
		TEST(test_not_indexed_of_held),
		TEST(test_coding),
		TEST(test_no_secrets),
		TEST(test_every_byte),
		TEST(test_reply_trailer),
		TEST(test_head),
		TEST(test_head_in_two_frames),
		TEST(test_refused_head),
		TEST(test_malformed_replies),
		TEST(test_slow_client),
		TEST(test_slow_server),
		TEST(test_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
