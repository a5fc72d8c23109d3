/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Netlink framing: byte for byte what libmnl makes; read whole, cut anywhere, with every length. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <libmnl/libmnl.h>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "sys/net/nlmsg.h"

/* Two messages: one with three attributes of which two are padded, one without any. */
#define FIRST_BYTES  (16 + 8 + 8 + 8 + 12)
#define SECOND_BYTES (16 + 8)
#define BYTES	     (FIRST_BYTES + SECOND_BYTES)

static const struct nlmsghdr first = { .nlmsg_type = RTM_NEWADDR,
				       .nlmsg_flags = 5,
				       .nlmsg_seq = 7 };
static const struct nlmsghdr second = { .nlmsg_type = RTM_GETADDR,
					.nlmsg_flags = 1,
					.nlmsg_seq = 8 };
static const struct ifaddrmsg family = { .ifa_family = AF_INET, .ifa_index = 3 };

static void write_both(struct sbx_writer *w)
{
	size_t begin = sbx_nlmsg_begin(w, &first, &family, sizeof(family));

	sbx_nlattr_put(w, 1, "abc", 3);
	sbx_nlattr_put_u32(w, 2, 0x01020304);
	sbx_nlattr_put(w, 0x8003, "defgh", 5);
	sbx_nlmsg_end(w, begin);
	sbx_nlmsg_end(w, sbx_nlmsg_begin(w, &second, &family, sizeof(family)));
}

static size_t mnl_both(char *p)
{
	struct nlmsghdr *h = mnl_nlmsg_put_header(p);
	size_t n;

	h->nlmsg_type = first.nlmsg_type;
	h->nlmsg_flags = first.nlmsg_flags;
	h->nlmsg_seq = first.nlmsg_seq;
	memcpy(mnl_nlmsg_put_extra_header(h, sizeof(family)), &family, sizeof(family));
	mnl_attr_put(h, 1, 3, "abc");
	mnl_attr_put_u32(h, 2, 0x01020304);
	mnl_attr_put(h, 0x8003, 5, "defgh");
	n = h->nlmsg_len;
	h = mnl_nlmsg_put_header(p + n);
	h->nlmsg_type = second.nlmsg_type;
	h->nlmsg_flags = second.nlmsg_flags;
	h->nlmsg_seq = second.nlmsg_seq;
	memcpy(mnl_nlmsg_put_extra_header(h, sizeof(family)), &family, sizeof(family));
	return n + h->nlmsg_len;
}

static void test_as_libmnl(void **state)
{
	_Alignas(struct nlmsghdr) char theirs[256] = { 0 };
	uint8_t ours[256];
	struct sbx_writer w = sbx_writer(ours, sizeof(ours));

	(void)state;
	memset(ours, 0xff, sizeof(ours)); /* padding is written too */
	write_both(&w);
	assert_false(w.failed);
	assert_int_equal(w.pos, BYTES);
	assert_int_equal(mnl_both(theirs), BYTES);
	assert_memory_equal(ours, theirs, BYTES);
}

static void test_nested_as_libmnl(void **state)
{
	_Alignas(struct nlmsghdr) char theirs[256] = { 0 };
	uint8_t ours[256];
	struct sbx_writer w = sbx_writer(ours, sizeof(ours));
	struct nlmsghdr *h = mnl_nlmsg_put_header(theirs);
	struct nlattr *outer, *inner;
	size_t begin, a, b;

	(void)state;
	h->nlmsg_type = first.nlmsg_type;
	h->nlmsg_flags = first.nlmsg_flags;
	h->nlmsg_seq = first.nlmsg_seq;
	memcpy(mnl_nlmsg_put_extra_header(h, sizeof(family)), &family, sizeof(family));
	outer = mnl_attr_nest_start(h, 7);
	inner = mnl_attr_nest_start(h, 8);
	mnl_attr_put(h, 1, 3, "abc");
	mnl_attr_nest_end(h, inner);
	mnl_attr_nest_end(h, mnl_attr_nest_start(h, 9));
	mnl_attr_nest_end(h, outer);
	begin = sbx_nlmsg_begin(&w, &first, &family, sizeof(family));
	a = sbx_nlattr_begin(&w, NLA_F_NESTED | 7);
	b = sbx_nlattr_begin(&w, NLA_F_NESTED | 8);
	sbx_nlattr_put(&w, 1, "abc", 3);
	sbx_nlattr_end(&w, b);
	sbx_nlattr_end(&w, sbx_nlattr_begin(&w, NLA_F_NESTED | 9));
	sbx_nlattr_end(&w, a);
	sbx_nlmsg_end(&w, begin);
	assert_false(w.failed);
	assert_int_equal(w.pos, h->nlmsg_len);
	assert_memory_equal(ours, theirs, w.pos);
}

/* A buffer of any other size either holds all of it or is refused, and nothing is written past
 * it. */
static void test_every_capacity(void **state)
{
	(void)state;
	for (size_t n = 0; n <= BYTES; n++) {
		SBX_AUTO_FREE uint8_t *p = malloc(n ? n : 1);
		struct sbx_writer w = sbx_writer(p, n);

		assert_non_null(p);
		write_both(&w);
		assert_int_equal(w.failed, n < BYTES);
	}
}

struct seen {
	size_t n_messages, n_attrs;
	bool bad;
	unsigned int sum; /* of every byte that was handed out */
};

/* Walk all of it, touching every byte that is handed out. */
static struct seen walk(const uint8_t *p, size_t n)
{
	struct sbx_span in = sbx_span(p, n), body, value;
	struct seen seen = { 0 };
	struct nlmsghdr h;
	struct nlattr a;

	while (sbx_nlmsg_next(&in, &h, &body, &seen.bad)) {
		assert_int_equal(h.nlmsg_seq, seen.n_messages == 0 ? 7 : 8);
		seen.n_messages++;
		if (body.n < sizeof(family))
			continue;
		body = sbx_span(body.p + sizeof(family), body.n - sizeof(family));
		while (sbx_nlattr_next(&body, &a, &value, &seen.bad)) {
			for (size_t i = 0; i < value.n; i++)
				seen.sum += value.p[i];
			seen.n_attrs++;
		}
	}
	return seen;
}

static void test_read_back(void **state)
{
	uint8_t p[256];
	struct sbx_writer w = sbx_writer(p, sizeof(p));
	struct sbx_span in, body, value;
	struct nlmsghdr h;
	struct nlattr a;
	bool bad = false;

	(void)state;
	write_both(&w);
	in = sbx_span(p, w.pos);
	assert_true(sbx_nlmsg_next(&in, &h, &body, &bad));
	assert_int_equal(h.nlmsg_type, RTM_NEWADDR);
	assert_int_equal(h.nlmsg_len, FIRST_BYTES);
	assert_int_equal(body.n, FIRST_BYTES - 16);
	assert_memory_equal(body.p, &family, sizeof(family));
	body = sbx_span(body.p + sizeof(family), body.n - sizeof(family));
	assert_true(sbx_nlattr_next(&body, &a, &value, &bad));
	assert_int_equal(a.nla_type, 1);
	assert_int_equal(value.n, 3);
	assert_memory_equal(value.p, "abc", 3);
	assert_true(sbx_nlattr_next(&body, &a, &value, &bad));
	assert_int_equal(value.n, 4);
	assert_true(sbx_nlattr_next(&body, &a, &value, &bad));
	assert_int_equal(a.nla_type, 0x8003);
	assert_memory_equal(value.p, "defgh", 5);
	assert_false(sbx_nlattr_next(&body, &a, &value, &bad));
	assert_true(sbx_nlmsg_next(&in, &h, &body, &bad));
	assert_int_equal(h.nlmsg_type, RTM_GETADDR);
	assert_false(sbx_nlmsg_next(&in, &h, &body, &bad));
	assert_false(bad);
}

/* The copies have the exact size, so that sanitizers and valgrind see a read past their end. */
static void test_every_prefix(void **state)
{
	uint8_t p[256];
	struct sbx_writer w = sbx_writer(p, sizeof(p));

	(void)state;
	write_both(&w);
	for (size_t n = 0; n <= BYTES; n++) {
		SBX_AUTO_FREE uint8_t *copy = malloc(n ? n : 1);
		struct seen seen;

		assert_non_null(copy);
		memcpy(copy, p, n);
		seen = walk(copy, n);
		assert_int_equal(seen.bad, n != 0 && n != FIRST_BYTES && n != BYTES);
		assert_int_equal(seen.n_messages, n == BYTES ? 2 : n >= FIRST_BYTES ? 1 : 0);
		assert_int_equal(seen.n_attrs, n >= FIRST_BYTES ? 3 : 0);
	}
}

/* Every length that a message or an attribute can claim: what is too short or too long is seen. */
static void test_every_length(void **state)
{
	uint8_t whole[256];
	struct sbx_writer w = sbx_writer(whole, sizeof(whole));

	(void)state;
	sbx_nlattr_put(&w, 1, "abcde", 5);
	sbx_nlattr_put(&w, 2, "f", 1);
	for (uint32_t length = 0; length <= UINT16_MAX; length++) {
		SBX_AUTO_FREE uint8_t *copy = malloc(w.pos);
		struct sbx_span in, value;
		uint16_t claimed = (uint16_t)length;
		struct nlattr a;
		bool bad = false;

		assert_non_null(copy);
		memcpy(copy, whole, w.pos);
		memcpy(copy, &claimed, sizeof(claimed));
		in = sbx_span(copy, w.pos);
		assert_int_equal(sbx_nlattr_next(&in, &a, &value, &bad),
				 length >= 4 && length <= w.pos);
		assert_int_equal(bad, length < 4 || length > w.pos);
		if (!bad)
			assert_int_equal(value.n, length - 4);
	}
	for (uint32_t length = UINT32_MAX - 64; length != 64; length++) {
		struct nlmsghdr h = { .nlmsg_len = length };
		struct sbx_span in = sbx_span(&h, sizeof(h)), body;
		bool bad = false;

		assert_int_equal(sbx_nlmsg_next(&in, &h, &body, &bad), length == sizeof(h));
		assert_int_equal(bad, length != sizeof(h));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_as_libmnl),
		cmocka_unit_test(test_nested_as_libmnl),    cmocka_unit_test(test_every_capacity),
		cmocka_unit_test(test_read_back),    cmocka_unit_test(test_every_prefix),
		cmocka_unit_test(test_every_length),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
