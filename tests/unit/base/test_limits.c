/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/limits.h"

/* The limits are enough for the broker's usual load, and low enough that one sandbox does no
 * harm. */
static void test_defaults(void **state)
{
	const struct sbx_limits *l = &sbx_limits_default;

	(void)state;
	assert_in_range(l->n_flows, 1, 4096);
	assert_in_range(l->n_published, 1, 4096);
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

/* With any limit of open files, the flows allowed at once fit it, and each kind has its share. */
static void test_fit(void **state)
{
	static const uint32_t n_files[] = { 16,	  64,	100,  500,   900,	1500,
					    2592, 3000, 4200, 65536, UINT32_MAX };

	(void)state;
	for (size_t i = 0; i < sizeof(n_files) / sizeof(n_files[0]); i++)
		for (int published = 0; published < 2; published++) {
			struct sbx_limits l = sbx_limits_default;
			uint32_t n_pipes = sbx_limits_fit(&l, published, n_files[i]);

			assert_in_range(3ull * l.n_flows + (published ? 2ull * l.n_published : 0) +
						2ull * l.n_udp_flows + l.n_dns_tcp + 2ull * n_pipes,
					8, n_files[i]);
			assert_true(l.n_flows && l.n_published && l.n_udp_flows && l.n_dns_tcp);
			assert_true(n_pipes >= n_files[i] / 8 - 2);
			assert_int_equal(l.n_pins, sbx_limits_default.n_pins);
			if (n_files[i] >= 4200)
				assert_memory_equal(&l, &sbx_limits_default, sizeof(l));
		}
	for (uint32_t n = 0; n < 8; n++) { /* too few for anything: nothing is 0 */
		struct sbx_limits l = sbx_limits_default;

		sbx_limits_fit(&l, true, n);
		assert_true(l.n_flows == 1 && l.n_published == 1 && l.n_udp_flows == 1 &&
			    l.n_dns_tcp == 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_defaults),
					    cmocka_unit_test(test_fit) };

	return cmocka_run_group_tests_name("limits", tests, NULL, NULL);
}
