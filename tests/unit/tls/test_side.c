/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One socket of a connection, plain and with TLS: what is read, written, and how it ends. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <openssl/err.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "tests/unit/http/world.h"
#include "tls/cert/authority.h"
#include "tls/conn/contexts.h"
#include "tls/conn/side.h"

#define BIG (1u << 20)

static struct event_base *base;
static struct sbx_side side;
static int peer = -1;
static unsigned n_events;

static void on_event(evutil_socket_t fd, short what, void *userdata)
{
	(void)fd;
	n_events++;
	sbx_side_note(userdata, what);
}

static void open_side(struct sbx_side *s, int fd)
{
	assert_int_equal(sbx_side_init(s, base, fd, on_event, s), 0);
}

static int begin(void **state)
{
	int fds[2];

	(void)state;
	base = event_base_new();
	assert_non_null(base);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	peer = fds[1];
	open_side(&side, fds[0]);
	return 0;
}

static int end(void **state)
{
	(void)state;
	sbx_side_fini(&side);
	assert_int_equal(side.fd, -1);
	sbx_side_fini(&side); /* again: nothing */
	peer = sbx_fd_close(peer);
	event_base_free(base);
	return 0;
}

static void turn(void)
{
	event_base_loop(base, EVLOOP_NONBLOCK);
}

static void peer_sends(const char *text)
{
	assert_int_equal(send(peer, text, strlen(text), 0), strlen(text));
}

static void assert_reads(struct sbx_side *s, size_t n_max, const char *expected)
{
	char buf[64];
	size_t n;

	assert_int_equal(sbx_side_read(s, buf, n_max, &n), SBX_IO_ON);
	assert_int_equal(n, strlen(expected));
	assert_memory_equal(buf, expected, n);
}

static void assert_reads_no_more(struct sbx_side *s, enum sbx_io expected)
{
	char buf[64];
	size_t n;

	assert_int_equal(sbx_side_read(s, buf, sizeof(buf), &n), expected);
	assert_int_equal(n, 0);
}

/* --- plain --- */

static void test_reading(void **state)
{
	(void)state;
	assert_reads_no_more(&side, SBX_IO_WAIT);
	assert_false(side.readable);
	peer_sends("abcdef");
	assert_reads_no_more(&side, SBX_IO_WAIT); /* until the event */
	turn();
	assert_true(side.readable);
	assert_reads(&side, 4, "abcd");
	assert_reads(&side, 4, "ef");
	assert_reads_no_more(&side, SBX_IO_WAIT);
	assert_int_equal(side.n_read, 6);
}

static void test_preloaded(void **state)
{
	(void)state;
	assert_int_equal(sbx_side_preload(&side, sbx_span_str("first")), 0);
	assert_reads(&side, 3, "fir");
	side.readable = false; /* they need no event */
	assert_reads(&side, 64, "st");
	assert_reads_no_more(&side, SBX_IO_WAIT);
	peer_sends("second");
	turn();
	assert_reads(&side, 64, "second");
	assert_int_equal(sbx_side_preload(&side, sbx_span("", 0)), 0);
	assert_int_equal(side.n_first, 0);
}

static void test_preloaded_before_the_end(void **state)
{
	(void)state;
	assert_int_equal(sbx_side_preload(&side, sbx_span_str("last")), 0);
	peer = sbx_fd_close(peer);
	assert_reads(&side, 64, "last");
	assert_reads_no_more(&side, SBX_IO_EOF);
}

/* The bytes that wait go with the side. */
static void test_fini_with_bytes(void **state)
{
	(void)state;
	assert_int_equal(sbx_side_preload(&side, sbx_span_str("first")), 0);
	assert_int_equal(sbx_side_queue(&side, sbx_span_str("waits")), 0);
	assert_int_equal(sbx_side_waiting(&side), 5);
	sbx_side_fini(&side);
	assert_int_equal(sbx_side_waiting(&side), 0);
	assert_int_equal(sbx_side_flush(&side), SBX_IO_ON);
	assert_reads_no_more(&side, SBX_IO_EOF);
	assert_int_equal(side.n_first + side.first_at + side.n_out_max, 0);
}

static void test_end(void **state)
{
	(void)state;
	peer_sends("x");
	shutdown(peer, SHUT_WR);
	assert_reads(&side, 64, "x");
	assert_reads_no_more(&side, SBX_IO_EOF);
	assert_reads_no_more(&side, SBX_IO_EOF);
	assert_true(side.at_end);
	assert_int_equal(sbx_side_write(&side, sbx_span_str("still")), SBX_IO_ON);
	sbx_side_fini(&side);
	assert_reads_no_more(&side, SBX_IO_EOF);
}

static void test_reset(void **state)
{
	(void)state;
	assert_int_equal(sbx_side_write(&side, sbx_span_str("unread")), SBX_IO_ON);
	peer = sbx_fd_close(peer);
	assert_reads_no_more(&side, SBX_IO_FAILED);
	assert_int_equal(sbx_side_write(&side, sbx_span_str("x")), SBX_IO_FAILED);
}

/* Byte i of what is written. */
static uint8_t byte_at(size_t i)
{
	return (uint8_t)(i * 7 + i / 251);
}

static uint8_t *big_data(void)
{
	uint8_t *p = malloc(BIG);

	assert_non_null(p);
	for (size_t i = 0; i < BIG; i++)
		p[i] = byte_at(i);
	return p;
}

/* Reads what has come, and compares it with what was written. */
static void peer_reads(size_t *n_done)
{
	uint8_t buf[8192];
	ssize_t n;

	while ((n = recv(peer, buf, sizeof(buf), MSG_DONTWAIT)) > 0)
		for (ssize_t i = 0; i < n; i++)
			assert_int_equal(buf[i], byte_at((*n_done)++));
}

static void flush_all(size_t n_total)
{
	size_t n_done = 0;
	enum sbx_io r = SBX_IO_WAIT;

	for (int i = 0; i < 10000 && (r != SBX_IO_ON || n_done < n_total); i++) {
		peer_reads(&n_done);
		turn();
		r = sbx_side_flush(&side);
	}
	assert_int_equal(r, SBX_IO_ON);
	peer_reads(&n_done);
	assert_int_equal(n_done, n_total);
	assert_int_equal(sbx_side_waiting(&side), 0);
	assert_int_equal(side.n_written, n_total);
}

static void test_partial_write(void **state)
{
	SBX_AUTO_FREE uint8_t *data = big_data();

	(void)state;
	assert_int_equal(sbx_side_write(&side, sbx_span(data, BIG)), SBX_IO_WAIT);
	assert_true(sbx_side_waiting(&side) > 0 && sbx_side_waiting(&side) < BIG);
	assert_int_equal(side.n_written + sbx_side_waiting(&side), BIG);
	assert_int_equal(sbx_side_flush(&side), SBX_IO_WAIT);
	memset(data, 0, BIG); /* it was copied */
	flush_all(BIG);
}

/* Order is kept where bytes are queued behind those that wait, in pieces of all sizes. */
static void test_queued_behind(void **state)
{
	SBX_AUTO_FREE uint8_t *data = big_data();
	size_t n_done = 0;

	(void)state;
	for (size_t at = 0, n = 1; at < BIG; at += n, n = n * 3 % 70001 + 1) {
		struct sbx_span piece = sbx_span(data + at, n < BIG - at ? n : BIG - at);

		if (n % 2)
			assert_int_equal(sbx_side_queue(&side, piece), 0);
		else
			assert_int_not_equal(sbx_side_write(&side, piece), SBX_IO_FAILED);
		if (n % 5 == 0 && n_done == 0)
			assert_int_not_equal(sbx_side_flush(&side), SBX_IO_FAILED);
	}
	flush_all(BIG);
}

static void test_unqueue(void **state)
{
	char buf[64];

	(void)state;
	assert_int_equal(sbx_side_queue(&side, sbx_span_str("a refused request")), 0);
	sbx_side_unqueue(&side);
	assert_int_equal(sbx_side_flush(&side), SBX_IO_ON);
	assert_true(recv(peer, buf, sizeof(buf), MSG_DONTWAIT) < 0);
	assert_int_equal(sbx_side_write(&side, sbx_span_str("next")), SBX_IO_ON);
	assert_int_equal(recv(peer, buf, sizeof(buf), MSG_DONTWAIT), 4);
}

static void test_shutdown(void **state)
{
	char buf[64];

	(void)state;
	assert_int_equal(sbx_side_write(&side, sbx_span_str("bye")), SBX_IO_ON);
	sbx_side_shutdown(&side);
	sbx_side_shutdown(&side);
	assert_int_equal(sbx_side_write(&side, sbx_span_str("more")), SBX_IO_FAILED);
	assert_int_equal(recv(peer, buf, sizeof(buf), MSG_DONTWAIT), 3);
	assert_int_equal(recv(peer, buf, sizeof(buf), MSG_DONTWAIT), 0);
	peer_sends("half open");
	turn();
	assert_reads(&side, 64, "half open");
}

/* --- TLS --- */

static struct sbx_http_entry entries[] = { { .host = SPAN("api.example") } };
static const struct sbx_http_rules rules = { .id = ID, .entries = entries, .n_entries = 1 };

struct tls_pair {
	struct sbx_authority authority;
	SSL_CTX *server_ctx, *client_ctx;
	X509 *leaf;
	struct sbx_side server, client;
};

static int on_hello(SSL *ssl, int *al, void *userdata)
{
	(void)ssl;
	(void)al;
	(void)userdata;
	return SSL_CLIENT_HELLO_SUCCESS;
}

static int on_alpn(SSL *ssl, const uint8_t **out, uint8_t *n_out, const uint8_t *in,
		   unsigned int n_in, void *userdata)
{
	(void)ssl;
	(void)out;
	(void)n_out;
	(void)in;
	(void)n_in;
	(void)userdata;
	return SSL_TLSEXT_ERR_NOACK;
}

static int on_session(SSL *ssl, SSL_SESSION *session)
{
	(void)ssl;
	(void)session;
	return 0;
}

static void pair_open(struct tls_pair *p)
{
	SSL *server, *client;
	int fds[2];

	*p = (struct tls_pair){ 0 };
	assert_int_equal(sbx_authority_init(&p->authority, &rules), 0);
	p->leaf = sbx_authority_mint(&p->authority, "api.example");
	p->server_ctx = sbx_contexts_server(on_hello, on_alpn);
	p->client_ctx = sbx_contexts_client(on_session);
	assert_true(p->leaf && p->server_ctx && p->client_ctx);
	assert_int_equal(X509_STORE_add_cert(SSL_CTX_get_cert_store(p->client_ctx),
					     p->authority.cert), 1);
	server = SSL_new(p->server_ctx);
	client = SSL_new(p->client_ctx);
	assert_true(server && client);
	SSL_set_accept_state(server);
	SSL_set_connect_state(client);
	assert_int_equal(SSL_use_certificate(server, p->leaf), 1);
	assert_int_equal(SSL_use_PrivateKey(server, p->authority.leaf_key), 1);
	assert_int_equal(SSL_set1_host(client, "api.example"), 1);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	open_side(&p->server, fds[0]);
	open_side(&p->client, fds[1]);
	assert_int_equal(sbx_side_start_tls(&p->server, server), 0);
	assert_int_equal(sbx_side_start_tls(&p->client, client), 0);
}

static void pair_shake_hands(struct tls_pair *p)
{
	enum sbx_io a = SBX_IO_WAIT, b = SBX_IO_WAIT;

	for (int i = 0; i < 20 && (a == SBX_IO_WAIT || b == SBX_IO_WAIT); i++) {
		turn();
		a = sbx_side_handshake(&p->client);
		b = sbx_side_handshake(&p->server);
	}
	assert_int_equal(a, SBX_IO_ON);
	assert_int_equal(b, SBX_IO_ON);
}

static void pair_close(struct tls_pair *p)
{
	sbx_side_fini(&p->server);
	sbx_side_fini(&p->client);
	SSL_CTX_free(p->server_ctx);
	SSL_CTX_free(p->client_ctx);
	X509_free(p->leaf);
	sbx_authority_fini(&p->authority);
	ERR_clear_error();
}

static void test_tls_end(void **state)
{
	struct tls_pair p;

	(void)state;
	pair_open(&p);
	pair_shake_hands(&p);
	assert_int_equal(sbx_side_write(&p.server, sbx_span_str("whole")), SBX_IO_ON);
	sbx_side_shutdown(&p.server);
	turn();
	assert_reads(&p.client, 64, "whole");
	assert_reads_no_more(&p.client, SBX_IO_EOF);
	assert_reads_no_more(&p.client, SBX_IO_EOF);
	pair_close(&p);
}

/* Without close_notify the last bytes may be missing. */
static void test_tls_cut(void **state)
{
	struct tls_pair p;

	(void)state;
	pair_open(&p);
	pair_shake_hands(&p);
	assert_int_equal(sbx_side_write(&p.server, sbx_span_str("part")), SBX_IO_ON);
	shutdown(p.server.fd, SHUT_WR);
	turn();
	assert_reads(&p.client, 64, "part");
	assert_reads_no_more(&p.client, SBX_IO_CUT);
	assert_true(p.client.at_end);
	pair_close(&p);
}

static void test_tls_no_handshake(void **state)
{
	struct tls_pair p;

	(void)state;
	pair_open(&p);
	assert_int_equal(sbx_side_handshake(&p.server), SBX_IO_WAIT);
	assert_int_equal(send(p.client.fd, "GET / HTTP/1.1\r\n\r\n", 18, 0), 18);
	turn();
	assert_int_equal(sbx_side_handshake(&p.server), SBX_IO_FAILED);
	pair_close(&p);
}

/* Records of TLS that the socket takes in parts; each side reads the other's bytes in order. */
static void test_tls_partial_write(void **state)
{
	SBX_AUTO_FREE uint8_t *data = big_data();
	uint8_t buf[4096];
	size_t n_done = 0, n;
	struct tls_pair p;

	(void)state;
	pair_open(&p);
	pair_shake_hands(&p);
	assert_int_equal(sbx_side_write(&p.server, sbx_span(data, BIG)), SBX_IO_WAIT);
	assert_true(sbx_side_waiting(&p.server) > 0);
	memset(data, 0, BIG);
	for (int i = 0; i < 100000 && n_done < BIG; i++) {
		enum sbx_io r;

		turn();
		r = sbx_side_read(&p.client, buf, sizeof(buf), &n);

		assert_true(r == SBX_IO_ON || r == SBX_IO_WAIT);
		for (size_t k = 0; k < n; k++)
			assert_int_equal(buf[k], byte_at(n_done++));
		assert_int_not_equal(sbx_side_flush(&p.server), SBX_IO_FAILED);
	}
	assert_int_equal(n_done, BIG);
	assert_int_equal(p.client.n_read, BIG);
	assert_int_equal(p.server.n_written, BIG);
	pair_close(&p);
}

/* The broker has read the client's hello, and more. */
static void test_tls_preloaded(void **state)
{
	uint8_t first[4096];
	struct tls_pair p;
	ssize_t n;

	(void)state;
	pair_open(&p);
	assert_int_equal(sbx_side_handshake(&p.client), SBX_IO_WAIT);
	n = recv(p.server.fd, first, sizeof(first), 0);
	assert_true(n > 0);
	assert_int_equal(sbx_side_preload(&p.server, sbx_span(first, (size_t)n)), 0);
	pair_shake_hands(&p);
	assert_int_equal(sbx_side_write(&p.client, sbx_span_str("hello")), SBX_IO_ON);
	turn();
	assert_reads(&p.server, 64, "hello");
	pair_close(&p);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_reading),
		TEST(test_preloaded),
		TEST(test_preloaded_before_the_end),
		TEST(test_fini_with_bytes),
		TEST(test_end),
		TEST(test_reset),
		TEST(test_partial_write),
		TEST(test_queued_behind),
		TEST(test_unqueue),
		TEST(test_shutdown),
		TEST(test_tls_end),
		TEST(test_tls_cut),
		TEST(test_tls_no_handshake),
		TEST(test_tls_partial_write),
		TEST(test_tls_preloaded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
