/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/limits.h"

/* Enough for the shapes the broker meets, and not so much that one sandbox can hurt. */
static void test_defaults(void **state)
{
	const struct sbx_limits *l = &sbx_limits_default;

	(void)state;
	assert_in_range(l->n_flows, 1, 4096);
	assert_in_range(l->n_udp_flows, 1, 4096);
	assert_in_range(l->n_pins, 1, 131072); /* addresses of 198.18.0.0/15 */
	assert_in_range(l->n_dns_tcp, 1, 1024);
	assert_in_range(l->n_event_keys, 1, 65536);
	assert_in_range(l->client_hello_bytes, 16384 + 5, 65536); /* one TLS record, RFC 8446 5.1 */
	assert_in_range(l->http_head_bytes, 8192, 65536);
	assert_in_range(l->n_addresses, 2, 64);
	assert_in_range(l->dns_tcp_timeout_ms, 1000, 60000);
	assert_true(l->handshake_timeout_ms && l->connect_timeout_ms && l->udp_idle_timeout_ms);
	assert_true(l->idle_timeout_ms > l->udp_idle_timeout_ms);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_defaults) };

	return cmocka_run_group_tests_name("limits", tests, NULL, NULL);
}
