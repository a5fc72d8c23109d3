/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Messages to sbx-tls: each TLS_FLOW has its TLS_DONE. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "ipc/channel.h"
#include "ipc/messages.h"
#include "tests/unit/http/world.h"
#include "tls/conn/conn.h"
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

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = { TEST(test_flow), TEST(test_no_memory) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
