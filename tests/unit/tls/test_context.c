/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Secrets that changed: when the launcher is asked. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/socket.h>

#include "base/cleanup.h"
#include "ipc/channel.h"
#include "tests/unit/http/world.h"
#include "tls/conn/context.h"

static struct sbx_http_secret secrets[] = {
	{ .name = TEXT("ONE"), .value = TEXT(VALUE_1), .hosts = LIST(SPAN("a.example")) },
	{ .name = TEXT("TWO"), .value = TEXT(VALUE_2), .hosts = LIST(SPAN("b.example")) },
};
static struct sbx_tls_context ctx;
static int launcher = -1;

static int begin(void **state)
{
	(void)state;
	ctx = (struct sbx_tls_context){ .broker_fd = -1 };
	ctx.rules.secrets = secrets;
	ctx.rules.n_secrets = SBX_N_ELEMENTS(secrets);
	assert_int_equal(sbx_channel_pair(&launcher, &ctx.launcher_fd), 0);
	assert_int_equal(sbx_fd_set_nonblocking(launcher), 0);
	assert_int_equal(sbx_fd_set_nonblocking(ctx.launcher_fd), 0);
	return 0;
}

static int end(void **state)
{
	(void)state;
	launcher = sbx_fd_close(launcher);
	sbx_fd_close(ctx.launcher_fd);
	return 0;
}

/* The number of packets that came. */
static size_t receive(void)
{
	uint8_t packet[64];
	size_t n, n_packets = 0;

	while (sbx_channel_recv(launcher, packet, sizeof(packet), &n, NULL, 0, NULL, NULL) == 0)
		n_packets++;
	return n_packets;
}

static void test_asks_once_a_minute(void **state)
{
	(void)state;
	sbx_tls_ask_again(&ctx, "a.example");
	assert_int_equal(receive(), 1);
	sbx_tls_ask_again(&ctx, "a.example");
	assert_int_equal(receive(), 0);
	sbx_tls_ask_again(&ctx, "b.example");
	assert_int_equal(receive(), 1);
	sbx_tls_ask_again(&ctx, "c.example");
	assert_int_equal(receive(), 0);
	ctx.asked_s[0] -= 60;
	sbx_tls_ask_again(&ctx, "a.example");
	assert_int_equal(receive(), 1);
}

/* A question that found the channel full was not asked: the next 401 asks it. */
static void test_full_channel(void **state)
{
	const uint8_t packet[8] = { 0 };

	(void)state;
	while (sbx_channel_send(ctx.launcher_fd, packet, sizeof(packet), NULL, 0) == 0)
		;
	sbx_tls_ask_again(&ctx, "a.example");
	assert_true(receive() > 0);
	sbx_tls_ask_again(&ctx, "a.example");
	assert_int_equal(receive(), 1);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = { TEST(test_asks_once_a_minute),
					    TEST(test_full_channel) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
