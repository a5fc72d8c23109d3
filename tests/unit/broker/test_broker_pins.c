/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "broker/names/pins.h"

static struct sbx_addr addr_of(const char *text)
{
	struct sbx_addr a;

	assert_int_equal(sbx_addr_parse(text, &a), 0);
	return a;
}

static void assert_addr(struct sbx_addr a, const char *text)
{
	char buf[SBX_ADDR_STR_MAX];

	assert_string_equal(sbx_addr_format(&a, buf, sizeof(buf)), text);
}

static void test_arithmetic(void **state)
{
	(void)state;
	assert_addr(sbx_pins_addr4(0), "198.18.0.1");
	assert_addr(sbx_pins_addr4(253), "198.18.0.254");
	assert_addr(sbx_pins_addr4(254), "198.18.1.1");
	assert_addr(sbx_pins_addr4(SBX_PINS_MAX - 1), "198.19.255.254");
	assert_addr(sbx_pins_addr6(0), "fd00:5b:1::1");
	assert_addr(sbx_pins_addr6(SBX_PINS_MAX - 1), "fd00:5b:1::1:fc00");
}

/* Every index has addresses that lead back to it and to no other. */
static void test_each_index(void **state)
{
	SBX_CLEANUP(sbx_pins_freep) struct sbx_pins *pins = NULL;
	char name[32];

	(void)state;
	assert_int_equal(sbx_pins_new(UINT32_MAX, &pins), 0);
	for (uint32_t i = 0; i < SBX_PINS_MAX; i++) {
		struct sbx_addr a4 = sbx_pins_addr4(i), a6 = sbx_pins_addr6(i);
		uint32_t index;

		snprintf(name, sizeof(name), "n%u.example.org", i);
		assert_null(sbx_pins_name(pins, &a4));
		assert_null(sbx_pins_name(pins, &a6));
		assert_int_equal(sbx_pins_add(pins, name, &index), 0);
		assert_int_equal(index, i);
		assert_true(a4.b[3] != 0 && a4.b[3] != 255);
		assert_true(sbx_pins_is_synthetic(&a4) && sbx_pins_is_synthetic(&a6));
		assert_string_equal(sbx_pins_name(pins, &a4), name);
		assert_string_equal(sbx_pins_name(pins, &a6), name);
	}
	/* Full: refused, and what was there stays. */
	assert_int_equal(sbx_pins_add(pins, "one.more", &(uint32_t){ 0 }), SBX_PINS_E_EXHAUSTED);
	assert_int_equal(sbx_pins_count(pins), SBX_PINS_MAX);
	for (unsigned block = 0; block < 512; block++) {
		struct sbx_addr first = {
			.family = 4, .b = { 198, (uint8_t)(18 + block / 256), (uint8_t)block }
		};
		struct sbx_addr last = first;

		last.b[3] = 255;
		assert_null(sbx_pins_name(pins, &first));
		assert_null(sbx_pins_name(pins, &last));
	}
	for (uint32_t i = 0; i < SBX_PINS_MAX; i += 999) {
		uint32_t index;

		snprintf(name, sizeof(name), "n%u.example.org", i);
		assert_int_equal(sbx_pins_add(pins, name, &index), 0);
		assert_int_equal(index, i);
	}
}

static void test_limit(void **state)
{
	SBX_CLEANUP(sbx_pins_freep) struct sbx_pins *pins = NULL;
	uint32_t index = 77;

	(void)state;
	assert_int_equal(sbx_pins_new(2, &pins), 0);
	assert_int_equal(sbx_pins_add(pins, "a", &index), 0);
	assert_int_equal(sbx_pins_add(pins, "b", &index), 0);
	assert_int_equal(index, 1);
	assert_int_equal(sbx_pins_add(pins, "c", &index), SBX_PINS_E_EXHAUSTED);
	assert_int_equal(index, 1);
	assert_int_equal(sbx_pins_add(pins, "a", &index), 0);
	assert_int_equal(index, 0);
}

static void test_addresses_without_a_pin(void **state)
{
	static const char *const none[] = {
		"198.18.0.0",
		"198.18.0.255",
		"198.18.1.0",
		"198.19.255.255",
		"198.17.255.255",
		"198.20.0.0",
		"198.18.0.3",
		"fd00:5b:1::",
		"fd00:5b:1::3",
		"fd00:5b:1:1::1",
		"fd00:5b:1:0:0:1:0:1",
		"fd00:5b:1::1:0:0:1",
		"fd00:5b:1::ffff:ffff",
		"fd00:5b::1",
		"::",
		"0.0.0.0",
		"::ffff:198.18.0.1",
	};
	SBX_CLEANUP(sbx_pins_freep) struct sbx_pins *pins = NULL;
	struct sbx_addr nothing = { 0 };
	uint32_t index;

	(void)state;
	assert_int_equal(sbx_pins_new(10, &pins), 0);
	assert_int_equal(sbx_pins_add(pins, "a", &index), 0);
	assert_int_equal(sbx_pins_add(pins, "b", &index), 0);
	for (size_t i = 0; i < SBX_N_ELEMENTS(none); i++) {
		struct sbx_addr a = addr_of(none[i]);

		assert_null(sbx_pins_name(pins, &a));
	}
	assert_null(sbx_pins_name(pins, &nothing));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_arithmetic),
		cmocka_unit_test(test_each_index),
		cmocka_unit_test(test_limit),
		cmocka_unit_test(test_addresses_without_a_pin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
