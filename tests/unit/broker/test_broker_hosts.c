/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "broker/names/hosts.h"

static const char text[] =
	"127.0.0.1\tlocalhost\n"
	"# 192.0.2.99 commented.example\n"
	"192.0.2.1 one.example ONE.Example.Org. alias # 192.0.2.9 behind.example\n"
	"\n"
	"   2001:db8::1   one.example\r\n"
	"not-an-address one.example\n"
	"192.0.2.300 one.example\n"
	"192.0.2.2\n"
	"192.0.2.3 two.example\n"
	"192.0.2.4 one.example#x\n"
	"192.0.2.5 last.example";

static size_t lookup(const char *name, struct sbx_addr *v, size_t n_max)
{
	return sbx_hosts_lookup(sbx_span_str(text), name, v, n_max);
}

static void assert_addrs(const char *name, const char *const *addrs)
{
	struct sbx_addr v[8], want;
	size_t n = lookup(name, v, SBX_N_ELEMENTS(v)), i;

	for (i = 0; addrs[i]; i++) {
		assert_true(i < n);
		assert_int_equal(sbx_addr_parse(addrs[i], &want), 0);
		assert_true(sbx_addr_equal(&v[i], &want));
	}
	assert_int_equal(n, i);
}

static void test_names(void **state)
{
	(void)state;
	assert_addrs("localhost", (const char *const[]){ "127.0.0.1", NULL });
	assert_addrs("one.example",
		     (const char *const[]){ "192.0.2.1", "2001:db8::1", "192.0.2.4", NULL });
	assert_addrs("one.example.org", (const char *const[]){ "192.0.2.1", NULL });
	assert_addrs("alias", (const char *const[]){ "192.0.2.1", NULL });
	assert_addrs("last.example", (const char *const[]){ "192.0.2.5", NULL });
}

static void test_absent(void **state)
{
	static const char *const absent[] = {
		"commented.example", "behind.example", "example", "one",	   "ne.example",
		"one.example.or",    "192.0.2.1",      "#",	  "not-an-address"
	};

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(absent); i++)
		assert_addrs(absent[i], (const char *const[]){ NULL });
}

static void test_limit(void **state)
{
	struct sbx_addr v[2];

	(void)state;
	assert_int_equal(lookup("one.example", v, 2), 2);
	assert_int_equal(lookup("one.example", v, 0), 0);
	assert_int_equal(sbx_hosts_lookup(sbx_span(NULL, 0), "x", v, 2), 0);
}

/* Every prefix of the text, in a buffer of exactly that size, and bytes of every value. */
static void test_any_bytes(void **state)
{
	struct sbx_addr v[8];

	(void)state;
	for (size_t n = 1; n < sizeof(text); n++) {
		uint8_t *p = malloc(n);

		memcpy(p, text, n);
		sbx_hosts_lookup(sbx_span(p, n), "one.example", v, SBX_N_ELEMENTS(v));
		for (unsigned c = 0; c < 256; c += 5) {
			p[n - 1] = (uint8_t)c;
			sbx_hosts_lookup(sbx_span(p, n), "one.example", v, SBX_N_ELEMENTS(v));
		}
		free(p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_absent),
		cmocka_unit_test(test_limit),
		cmocka_unit_test(test_any_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
