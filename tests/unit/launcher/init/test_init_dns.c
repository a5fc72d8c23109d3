/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The self-test's DNS: queries as they go out, answers whole, cut, damaged and for somebody
 * else. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "launcher/init/init_dns.h"

#define ID 0x1234

/* example.org A: answered with a CNAME to a.example.org and that one's address. */
/* clang-format off */
static const uint8_t good[] = {
	0x12, 0x34, 0x81, 0x80, 0, 1, 0, 2, 0, 0, 0, 0,
	7, 'e', 'x', 'a', 'm', 'p', 'l', 'e', 3, 'o', 'r', 'g', 0, 0, 1, 0, 1,
	0xc0, 12, 0, 5, 0, 1, 0, 0, 0, 60, 0, 4, 1, 'a', 0xc0, 12,
	1, 'a', 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 198, 18, 0, 1,
};
/* clang-format on */

static int parse(const uint8_t *p, size_t n, struct sbx_dns_answer *a)
{
	/* A copy of just this size, so that a sanitizer sees a read past it. */
	uint8_t *copy = malloc(n ? n : 1);
	int r;

	assert_non_null(copy);
	memcpy(copy, p, n);
	r = sbx_dns_answer(sbx_span(copy, n), "example.org", 4, ID, a);
	free(copy);
	return r;
}

static void test_query(void **state)
{
	/* clang-format off */
	static const uint8_t want[] = {
		0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 1, 1, 'a', 2, 'b', 'c', 0, 0, 28, 0, 1,
		0, 0, 41, 4, 0xd0, 0, 0, 0, 0, 0, 0,
	};
	/* clang-format on */
	uint8_t p[512];
	char name[512];

	(void)state;
	assert_int_equal(sbx_dns_query("a.bc", 6, ID, p, sizeof(p)), sizeof(want));
	assert_memory_equal(p, want, sizeof(want));
	assert_int_equal(sbx_dns_query("a.bc.", 6, ID, p, sizeof(p)), sizeof(want));
	for (size_t n = 0; n < sizeof(want); n++)
		assert_int_equal(sbx_dns_query("a.bc", 6, ID, p, n), -EINVAL);
	assert_int_equal(sbx_dns_query("", 4, ID, p, sizeof(p)), -EINVAL);
	assert_int_equal(sbx_dns_query(".", 4, ID, p, sizeof(p)), -EINVAL);
	assert_int_equal(sbx_dns_query("a..b", 4, ID, p, sizeof(p)), -EINVAL);
	memset(name, 'a', sizeof(name));
	name[63] = '\0';
	assert_true(sbx_dns_query(name, 4, ID, p, sizeof(p)) > 0);
	name[63] = 'a', name[64] = '\0';
	assert_int_equal(sbx_dns_query(name, 4, ID, p, sizeof(p)), -EINVAL);
	for (size_t i = 1; i < 254; i += 2)
		name[i - 1] = 'a', name[i] = '.';
	name[253] = '\0';
	assert_true(sbx_dns_query(name, 4, ID, p, sizeof(p)) > 0);
	name[253] = 'a', name[254] = '\0';
	assert_int_equal(sbx_dns_query(name, 4, ID, p, sizeof(p)), -EINVAL);
}

static void test_answer(void **state)
{
	const struct sbx_addr want = { 4, { 198, 18, 0, 1 } };
	struct sbx_dns_answer a;

	(void)state;
	assert_int_equal(parse(good, sizeof(good), &a), 0);
	assert_int_equal(a.rcode, 0);
	assert_int_equal(a.n_addrs, 1);
	assert_true(sbx_addr_equal(&a.v[0], &want));
	assert_int_equal(sbx_dns_answer(sbx_span(good, sizeof(good)), "EXAMPLE.org", 4, ID, &a), 0);
}

static void test_every_prefix(void **state)
{
	struct sbx_dns_answer a;

	(void)state;
	for (size_t n = 0; n < sizeof(good); n++)
		assert_int_equal(parse(good, n, &a), -EBADMSG);
}

/* Not ours: another id, question, type, class, a query, truncated. */
static void test_not_the_answer(void **state)
{
	static const struct {
		size_t at;
		uint8_t value;
	} changes[] = {
		{ 0, 0 }, { 1, 0 }, { 2, 0x01 }, { 2, 0x83 }, { 2, 0x89 }, { 5, 0 }, { 5, 2 },
		{ 13, 'x' }, { 12, 8 }, { 26, 28 }, { 28, 3 },
	};
	struct sbx_dns_answer a;

	(void)state;
	for (size_t i = 0; i < SBX_N_ELEMENTS(changes); i++) {
		uint8_t p[sizeof(good)];

		memcpy(p, good, sizeof(p));
		p[changes[i].at] = changes[i].value;
		assert_int_equal(parse(p, sizeof(p), &a), -EBADMSG);
	}
	assert_int_equal(sbx_dns_answer(sbx_span(good, sizeof(good)), "example.net", 4, ID, &a),
			 -EBADMSG);
	assert_int_equal(sbx_dns_answer(sbx_span(good, sizeof(good)), "example.org", 6, ID, &a),
			 -EBADMSG);
	assert_int_equal(sbx_dns_answer(sbx_span(good, sizeof(good)), "a..b", 4, ID, &a), -EBADMSG);
}

/* Every byte, every value: never more than an answer or a refusal. */
static void test_damage(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(good); i++)
		for (unsigned int v = 0; v < 256; v++) {
			struct sbx_dns_answer a = { 0 };
			uint8_t p[sizeof(good)];
			int r;

			memcpy(p, good, sizeof(p));
			p[i] = (uint8_t)v;
			r = parse(p, sizeof(p), &a);
			assert_true(r == 0 || r == -EBADMSG);
			assert_true(r != 0 || a.n_addrs <= 2);
		}
}

static void test_refused(void **state)
{
	uint8_t p[29 + 11 + 7];
	struct sbx_dns_answer a;

	(void)state;
	memcpy(p, good, 29);
	p[3] = 0x83;
	p[7] = 0;
	assert_int_equal(parse(p, 29, &a), 0);
	assert_int_equal(a.rcode, 3);
	assert_int_equal(a.n_addrs, 0);
	assert_false(a.blocked);

	/* OPT with one option, in the additional section and, which is none of its places, among
	 * the answers. */
	memcpy(p + 29, (uint8_t[]){ 0, 0, 41, 4, 0xd0, 0, 0, 0, 0, 0, 7, 0, 15, 0, 3, 0, 15, '!' },
	       18);
	p[11] = 1;
	assert_int_equal(parse(p, sizeof(p), &a), 0);
	assert_int_equal(a.rcode, 3);
	assert_true(a.blocked);
	for (size_t n = 29; n < sizeof(p); n++)
		assert_int_equal(parse(p, n, &a), -EBADMSG);
	p[11] = 0, p[7] = 1;
	assert_int_equal(parse(p, sizeof(p), &a), 0);
	assert_false(a.blocked);
	p[11] = 1, p[7] = 0;
	/* another option, or another error; and one that does not end */
	for (size_t i = 0; i < 4; i++) {
		p[40 + i] ^= 16;
		if (parse(p, sizeof(p), &a) == 0)
			assert_false(a.blocked);
		p[40 + i] ^= 16;
	}
	p[45] = 14;
	assert_int_equal(parse(p, sizeof(p), &a), 0);
	assert_false(a.blocked);
}

/* More addresses than there is room for are counted, not kept. */
static void test_many(void **state)
{
	uint8_t p[29 + 16 * 8];
	struct sbx_dns_answer a;

	(void)state;
	memcpy(p, good, 29);
	p[7] = 8;
	for (size_t i = 0; i < 8; i++)
		memcpy(p + 29 + 16 * i,
		       (uint8_t[]){ 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 198, 18, 0,
				    (uint8_t)i },
		       16);
	assert_int_equal(parse(p, sizeof(p), &a), 0);
	assert_int_equal(a.n_addrs, 8);
	assert_int_equal(a.v[SBX_DNS_ADDRS_MAX - 1].b[3], SBX_DNS_ADDRS_MAX - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_query),
		cmocka_unit_test(test_answer),
		cmocka_unit_test(test_every_prefix),
		cmocka_unit_test(test_not_the_answer),
		cmocka_unit_test(test_damage),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_many),
	};

	return cmocka_run_group_tests_name("init_dns", tests, NULL, NULL);
}
