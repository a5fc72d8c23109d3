/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Messages to sbx-tls: each TLS_FLOW has its TLS_DONE, and TLS_CUT ends it. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "ipc/channel.h"
#include "ipc/messages.h"
#include "tests/unit/http/world.h"
#include "tls/conn/conn.h"
#include "tls/conn/contexts.h"
#include "tls/main/control.h"

/* A protocol that waits. */
static int idle_begin(struct sbx_conn *c)
{
	(void)c;
	return 0;
}

static void idle_end(void *http)
{
	(void)http;
}

static bool idle_pump(struct sbx_conn *c)
{
	(void)c;
	return true;
}

static const struct sbx_protocol idle = { .begin = idle_begin, .end = idle_end, .pump = idle_pump };

static bool no_memory;

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);

void *__wrap_calloc(size_t n, size_t size)
{
	return no_memory ? NULL : __real_calloc(n, size);
}

static struct sbx_http_entry entries[] = {
	{ .text = TEXT("a.example"), .host = TEXT("a.example") },
};
static struct sbx_tls_context ctx;
static struct sbx_tls_control control;
static int broker = -1, launcher = -1;

static int begin(void **state)
{
	(void)state;
	ctx = (struct sbx_tls_context){ .base = event_base_new(), .http1 = &idle };
	assert_non_null(ctx.base);
	ctx.rules.entries = entries;
	ctx.rules.n_entries = SBX_N_ELEMENTS(entries);
	ctx.rules.n_flows = 1;
	assert_int_equal(sbx_channel_pair(&broker, &ctx.broker_fd), 0);
	assert_int_equal(sbx_channel_pair(&launcher, &ctx.launcher_fd), 0);
	assert_int_equal(sbx_fd_set_nonblocking(broker), 0);
	control = (struct sbx_tls_control){ .ctx = &ctx };
	assert_int_equal(sbx_tls_control_init(&control), 0);
	return 0;
}

static int end(void **state)
{
	(void)state;
	no_memory = false;
	while (ctx.first)
		sbx_conn_free(ctx.first);
	sbx_tls_control_fini(&control);
	event_base_free(ctx.base);
	sbx_fd_close(ctx.broker_fd);
	sbx_fd_close(ctx.launcher_fd);
	broker = sbx_fd_close(broker);
	launcher = sbx_fd_close(launcher);
	return 0;
}

/* Sends a flow; *ret_client is the other end of its client's socket. */
static void send_flow(int *ret_client)
{
	struct sbx_msg_tls_flow m = { .port = 80, .name = "a.example" };
	int client[2], server[2];
	uint8_t packet[1024];
	ssize_t n = sbx_msg_encode_tls_flow(&m, packet, sizeof(packet));

	assert_true(n > 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, client), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, server), 0);
	assert_int_equal(sbx_channel_send(broker, packet, (size_t)n,
					  (int[]){ client[1], server[1] }, 2), 0);
	sbx_fd_close(client[1]);
	sbx_fd_close(server[1]);
	sbx_fd_close(server[0]);
	*ret_client = client[0];
	event_base_loop(ctx.base, EVLOOP_NONBLOCK | EVLOOP_ONCE);
}

static size_t n_done(void)
{
	struct sbx_msg_tls_done done;
	uint8_t packet[64];
	size_t n, n_packets = 0;

	while (sbx_channel_recv(broker, packet, sizeof(packet), &n, NULL, 0, NULL, NULL) == 0) {
		assert_int_equal(sbx_msg_decode_tls_done(sbx_span(packet, n), &done), 0);
		n_packets++;
	}
	return n_packets;
}

static bool is_closed(int fd)
{
	char byte;

	return recv(fd, &byte, 1, MSG_DONTWAIT) == 0;
}

static void test_flow(void **state)
{
	SBX_AUTO_CLOSE int first = -1, second = -1;

	(void)state;
	send_flow(&first);
	assert_non_null(ctx.first);
	assert_int_equal(n_done(), 0);
	send_flow(&second); /* one too many */
	assert_int_equal(n_done(), 1);
	assert_true(is_closed(second));
	assert_false(is_closed(first));
	sbx_conn_free(ctx.first);
	assert_int_equal(n_done(), 1);
	assert_true(is_closed(first));
}

static void test_no_memory(void **state)
{
	SBX_AUTO_CLOSE int client = -1;

	(void)state;
	no_memory = true;
	send_flow(&client);
	assert_null(ctx.first);
	assert_int_equal(ctx.n_conns, 0);
	assert_int_equal(n_done(), 1);
	assert_true(is_closed(client));
}

/* --- live rules --- */

static struct sbx_span live_names[] = { TEXT("*.live.example"), TEXT("*.example") };
static struct sbx_span secret_host = TEXT("secret.live.example");
static struct sbx_http_secret secrets[] = { { .hosts = { .n = 1, .v = &secret_host } } };

/* Sends a flow to @name with a live rule. Is it carried? Otherwise the process ends. */
static bool carries_live(const char *name, const char *requests)
{
	SBX_AUTO_CLOSE int client = -1;
	struct sbx_msg_tls_flow m = {
		.entry = SBX_TLS_LIVE,
		.port = 80,
		.rule = sbx_span_str("live"),
		.requests = sbx_span_str(requests),
	};
	int mine[2], server[2];
	uint8_t packet[1024];
	bool carried;
	ssize_t n;

	sbx_text_fit(m.name, sizeof(m.name), "%s", name);
	n = sbx_msg_encode_tls_flow(&m, packet, sizeof(packet));
	assert_true(n > 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, mine), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, server), 0);
	assert_int_equal(sbx_channel_send(broker, packet, (size_t)n, (int[]){ mine[1], server[1] },
					  2),
			 0);
	client = mine[0];
	sbx_fd_close(mine[1]);
	sbx_fd_close(server[0]);
	sbx_fd_close(server[1]);
	memset(packet, 'x', sizeof(packet)); /* nothing of the message is kept */
	event_base_loop(ctx.base, EVLOOP_NONBLOCK);
	carried = ctx.exit_status == 0;
	if (carried) {
		const struct sbx_http_entry *e = ctx.first->entry;

		assert_int_equal(e->access, SBX_HTTP_ACCESS_LISTED);
		assert_memory_equal(e->methods.v[0].p, "GET", 3);
		assert_int_equal(e->methods.n, 2);
		assert_memory_equal(e->paths.v[0].p, "/a/**", 5);
		assert_memory_equal(e->text.p, "live", 4);
		sbx_conn_free(ctx.first);
	} else {
		assert_null(ctx.first);
		assert_true(is_closed(client));
	}
	ctx.exit_status = 0;
	return carried;
}

/* The broker may be another's: what it sends lifts neither an entry nor a secret, and opens no name
 * that the authority is not for. */
static void test_live(void **state)
{
	static const char good[] = "GET,HEAD /a/**";

	(void)state;
	ctx.rules.live = live_names;
	ctx.rules.n_live = SBX_N_ELEMENTS(live_names);
	ctx.rules.secrets = secrets;
	ctx.rules.n_secrets = SBX_N_ELEMENTS(secrets);
	assert_true(carries_live("x.live.example", good));
	assert_false(carries_live("a.example", good)); /* an entry */
	assert_false(carries_live("secret.live.example", good));
	assert_false(carries_live("live.test", good));
	assert_false(carries_live("x.live.example", "get"));
	assert_false(carries_live("x.live.example", "GET,"));
	assert_false(carries_live("x.live.example", "*"));
	assert_false(carries_live("x.live.example", "GET /a "));
	assert_false(carries_live("x.live.example", "GET a"));
	assert_false(carries_live("x.live.example", " "));
	ctx.rules.n_live = 0;
	assert_false(carries_live("x.live.example", good));
}

/* --- TLS_CUT --- */

/* A connection over loopback, as the flows have: a reset can be seen. */
static void tcp_pair(int ret_fds[2])
{
	SBX_AUTO_CLOSE int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t n = sizeof(a);

	assert_int_equal(bind(listener, (struct sockaddr *)&a, n), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&a, &n), 0);
	ret_fds[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(ret_fds[0], (struct sockaddr *)&a, n), 0);
	ret_fds[1] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	assert_true(ret_fds[1] >= 0);
}

struct cut_flow {
	int client, server; /* the other ends */
	int kept;	    /* the server's socket, which the broker keeps */
};

static void cut_flow_fini(struct cut_flow *f)
{
	sbx_fd_close(f->client);
	sbx_fd_close(f->server);
	sbx_fd_close(f->kept);
}

static void turn(void)
{
	for (int i = 0; i < 4; i++)
		event_base_loop(ctx.base, EVLOOP_NONBLOCK);
}

static void open_flow(uint32_t number, bool tls, const char *first, struct cut_flow *ret)
{
	struct sbx_msg_tls_flow m = {
		.flow = number,
		.port = tls ? 443 : 80,
		.tls = tls,
		.name = "a.example",
		.first = sbx_span_str(first),
	};
	int client[2], server[2];
	uint8_t packet[4096];
	ssize_t n = sbx_msg_encode_tls_flow(&m, packet, sizeof(packet));

	assert_true(n > 0);
	tcp_pair(client);
	tcp_pair(server);
	assert_int_equal(sbx_channel_send(broker, packet, (size_t)n,
					  (int[]){ client[1], server[1] }, 2), 0);
	sbx_fd_close(client[1]);
	*ret = (struct cut_flow){ client[0], server[0], server[1] };
}

static void send_cut(uint32_t number, const int *fd)
{
	uint8_t packet[16];
	ssize_t n = sbx_msg_encode_simple(SBX_MSG_TLS_CUT, number, packet, sizeof(packet));

	assert_int_equal(sbx_channel_send(broker, packet, (size_t)n, fd, fd ? 1 : 0), 0);
}

/* The number of the only TLS_DONE that has come; 0: none has. */
static uint32_t done_flow(void)
{
	struct sbx_msg_tls_done done = { 0 };
	uint8_t packet[64];
	size_t n;

	if (sbx_channel_recv(broker, packet, sizeof(packet), &n, NULL, 0, NULL, NULL) == 0)
		assert_int_equal(sbx_msg_decode_tls_done(sbx_span(packet, n), &done), 0);
	assert_int_equal(n_done(), 0);
	return done.flow;
}

/* The other end has sent a reset: one that only closed leaves CLOSE_WAIT. */
static bool is_reset(int fd)
{
	struct tcp_info info;
	socklen_t n = sizeof(info);

	assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &n), 0);
	return info.tcpi_state == TCP_CLOSE;
}

static bool is_open(int fd)
{
	char byte;

	return recv(fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK) > 0 || errno == EAGAIN;
}

/* The client gets a reset, and the server's connection is the broker's alone, which resets it. */
static void assert_cut(struct cut_flow *f, uint32_t number)
{
	assert_int_equal(done_flow(), number);
	assert_true(is_reset(f->client));
	sbx_fd_close(f->kept);
	f->kept = -1;
	assert_true(is_reset(f->server));
	assert_int_equal(ctx.exit_status, 0);
}

static void test_cut(void **state)
{
	SBX_CLEANUP(cut_flow_fini) struct cut_flow one = { -1, -1, -1 }, two = { -1, -1, -1 };

	(void)state;
	ctx.rules.n_flows = 2;
	open_flow(1, false, "", &one);
	open_flow(2, false, "", &two);
	turn();
	assert_int_equal(ctx.n_conns, 2);
	send_cut(3, NULL); /* it has ended, while this was on its way */
	turn();
	assert_int_equal(done_flow(), 0);
	assert_int_equal(ctx.n_conns, 2);
	send_cut(1, NULL);
	turn();
	assert_int_equal(ctx.n_conns, 1);
	assert_cut(&one, 1);
	assert_true(is_open(two.client));
	assert_true(is_open(two.server));
	send_cut(1, NULL);
	turn();
	assert_int_equal(done_flow(), 0);
	send_cut(2, NULL);
	turn();
	assert_cut(&two, 2);
	assert_null(ctx.first);
}

/* It is cut before it had a turn. */
static void test_cut_at_once(void **state)
{
	SBX_CLEANUP(cut_flow_fini) struct cut_flow f = { -1, -1, -1 };

	(void)state;
	open_flow(7, false, "GET / HTTP/1.1\r\n", &f);
	send_cut(7, NULL);
	turn();
	assert_null(ctx.first);
	assert_cut(&f, 7);
}

static void test_cut_with_a_descriptor(void **state)
{
	SBX_CLEANUP(cut_flow_fini) struct cut_flow f = { -1, -1, -1 };

	(void)state;
	open_flow(1, false, "", &f);
	turn();
	send_cut(1, &launcher);
	turn();
	assert_int_equal(ctx.exit_status, 1);
}

/* --- TLS_CUT while hands are shaken --- */

/* A ClientHello. */
static struct sbx_span client_hello(uint8_t *buf, size_t n_buf)
{
	SSL_CTX *c = SSL_CTX_new(TLS_method());
	BIO *in = BIO_new(BIO_s_mem()), *out = BIO_new(BIO_s_mem());
	SSL *ssl = SSL_new(c);
	int n;

	assert_non_null(ssl);
	SSL_set_bio(ssl, in, out);
	SSL_set_connect_state(ssl);
	SSL_do_handshake(ssl);
	n = BIO_read(out, buf, (int)n_buf);
	assert_true(n > 0);
	SSL_free(ssl);
	SSL_CTX_free(c);
	return sbx_span(buf, (size_t)n);
}

static void begin_tls(void)
{
	ctx.server = sbx_contexts_server(sbx_conn_on_hello, sbx_conn_on_alpn);
	ctx.client = sbx_contexts_client(sbx_conn_on_session);
	ctx.trusts = true;
	ctx.rules.handshake_timeout_ms = 10000;
	assert_non_null(ctx.server);
	assert_non_null(ctx.client);
	assert_int_equal(sbx_authority_init(&ctx.authority, &ctx.rules), 0);
	assert_int_equal(sbx_host_cache_init(&ctx.hosts, &ctx.authority, 4), 0);
}

static void end_tls(void)
{
	while (ctx.first)
		sbx_conn_free(ctx.first);
	sbx_host_cache_fini(&ctx.hosts);
	sbx_authority_fini(&ctx.authority);
	SSL_CTX_free(ctx.server);
	SSL_CTX_free(ctx.client);
}

enum stage { BEFORE, HALF_A_HELLO, SERVER_ASKED, SERVER_ANSWERS, N_STAGES };

/* Brings the flow that far, and says what its connection must look like then. */
static void shake(struct cut_flow *f, enum stage stage)
{
	uint8_t buf[8192], hello[4096];
	struct sbx_span s = client_hello(buf, sizeof(buf));
	ssize_t n;

	if (stage != BEFORE)
		send(f->client, s.p, stage == HALF_A_HELLO ? s.n / 2 : s.n, 0);
	turn();
	assert_int_equal(ctx.first->state, SBX_CONN_HANDSHAKES);
	assert_int_equal(ctx.first->has_hello, stage >= SERVER_ASKED);
	assert_int_equal(ctx.first->asked, stage >= SERVER_ASKED);
	if (stage < SERVER_ANSWERS)
		return;
	n = recv(f->server, hello, sizeof(hello), 0);
	assert_true(n > 0);
	/* the first bytes of a record that is not whole */
	send(f->server, "\x16\x03\x03\x40\x00\x02", 6, 0);
	turn();
}

static void test_cut_in_handshake(void **state)
{
	(void)state;
	begin_tls();
	for (int stage = BEFORE; stage < N_STAGES; stage++) {
		SBX_CLEANUP(cut_flow_fini) struct cut_flow f = { -1, -1, -1 };
		uint32_t number = 10 + (uint32_t)stage;

		open_flow(number, true, "", &f);
		turn();
		assert_non_null(ctx.first);
		shake(&f, stage);
		send_cut(number, NULL);
		turn();
		assert_null(ctx.first);
		assert_cut(&f, number);
	}
	end_tls();
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_flow),
		TEST(test_no_memory),
		TEST(test_live),
		TEST(test_cut),
		TEST(test_cut_at_once),
		TEST(test_cut_with_a_descriptor),
		TEST(test_cut_in_handshake),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
