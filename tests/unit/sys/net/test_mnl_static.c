/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Our stand-in for libmnl against libmnl: the same messages byte for byte, the same verdicts about
 * the same hostile attributes. Ours is linked; the library's is found with dlopen, under the same
 * names.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <errno.h>
#include <libmnl/libmnl.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define FUNCTIONS(x)                                                                               \
	x(mnl_attr_get_type) x(mnl_attr_get_len) x(mnl_attr_get_payload_len) x(                    \
		mnl_attr_get_payload) x(mnl_attr_get_u8) x(mnl_attr_get_u16) x(mnl_attr_get_u32)   \
		x(mnl_attr_get_u64) x(mnl_attr_get_str) x(mnl_attr_ok) x(mnl_attr_next) x(         \
			mnl_attr_type_valid) x(mnl_attr_validate) x(mnl_attr_parse)                \
			x(mnl_attr_parse_nested) x(mnl_attr_put) x(mnl_attr_put_u8) x(             \
				mnl_attr_put_u16) x(mnl_attr_put_u32) x(mnl_attr_put_u64)          \
				x(mnl_attr_put_str) x(mnl_attr_put_strz) x(mnl_attr_nest_start) x( \
					mnl_attr_nest_end) x(mnl_nlmsg_put_header)                 \
					x(mnl_nlmsg_put_extra_header) x(mnl_nlmsg_get_payload)     \
						x(mnl_nlmsg_get_payload_offset)                    \
							x(mnl_nlmsg_get_payload_tail)

#define MEMBER(name) __typeof__(&name) name;
struct api {
	FUNCTIONS(MEMBER)
};

#define OURS(name) .name = name,
static const struct api ours = { FUNCTIONS(OURS) };
static struct api theirs;

static int load(void **state)
{
	void *library = dlopen("libmnl.so.0", RTLD_NOW | RTLD_LOCAL);

	(void)state;
	if (!library)
		return -1;
#define FIND(name)                                                                                 \
	*(void **)&theirs.name = dlsym(library, #name);                                            \
	if (!theirs.name || theirs.name == ours.name)                                              \
		return -1;
	FUNCTIONS(FIND)
	return 0;
}

static uint32_t next_random(uint32_t *seed)
{
	*seed = *seed * 1664525 + 1013904223;
	return *seed >> 8;
}

/* A message of every kind of attribute, nested twice; @n is the length of the odd ones. */
static size_t build(const struct api *m, void *p, size_t n)
{
	static const char text[] = "0123456789abcdefghijklmnopqrstuvwxyz";
	struct nlmsghdr *h = m->mnl_nlmsg_put_header(p);
	struct nlattr *outer, *inner;
	char s[40] = { 0 };

	memcpy(s, text, n);
	memset(m->mnl_nlmsg_put_extra_header(h, n), 0x5a, n);
	h->nlmsg_type = 77;
	m->mnl_attr_put_u8(h, 1, 0xf1);
	m->mnl_attr_put_u16(h, 2, 0xf1f2);
	outer = m->mnl_attr_nest_start(h, 3);
	m->mnl_attr_put_u32(h, 4, 0xf1f2f3f4);
	m->mnl_attr_put_u64(h, 5, 0xf1f2f3f4f5f6f7f8);
	inner = m->mnl_attr_nest_start(h, 6);
	m->mnl_attr_put_str(h, 7, s);
	m->mnl_attr_nest_end(h, inner);
	m->mnl_attr_put_strz(h, 8, s);
	m->mnl_attr_nest_end(h, outer);
	m->mnl_attr_put(h, NLA_F_NET_BYTEORDER | 9, n, n ? text : NULL);
	m->mnl_attr_nest_end(h, m->mnl_attr_nest_start(h, 10));
	assert_ptr_equal(m->mnl_nlmsg_get_payload(h), (char *)p + sizeof(*h));
	return h->nlmsg_len;
}

static void test_same_bytes(void **state)
{
	(void)state;
	for (size_t n = 0; n <= 36; n++) {
		/* libmnl leaves padding as it finds it, before 1.0.5. */
		_Alignas(8) char a[512] = { 0 }, b[512] = { 0 };
		size_t n_a = build(&ours, a, n);

		assert_int_equal(n_a, build(&theirs, b, n));
		assert_memory_equal(a, b, sizeof(a));
	}
}

/* Ours clears an attribute's padding, whatever was there. */
static void test_padding(void **state)
{
	_Alignas(8) char a[512], b[512] = { 0 };

	(void)state;
	memset(a, 0xff, sizeof(a));
	assert_int_equal(build(&ours, a, 4), build(&theirs, b, 4));
	assert_memory_equal(a, b, build(&ours, a, 4));
}

struct seen {
	const struct api *m;
	uint64_t sum;
	int n, stop_after, depth, answer;
};

static void add(struct seen *s, uint64_t v)
{
	s->sum = s->sum * 1000003 + v;
}

/* Everything there is to learn about one attribute. */
static void look(struct seen *s, const struct nlattr *a)
{
	const struct api *m = s->m;
	uint16_t n = m->mnl_attr_get_payload_len(a);

	add(s, m->mnl_attr_get_type(a));
	add(s, m->mnl_attr_get_len(a));
	add(s, n);
	add(s, (uint64_t)((const char *)m->mnl_attr_get_payload(a) - (const char *)a));
	add(s, (uint64_t)(m->mnl_attr_get_str(a) - (const char *)a));
	add(s, (uint64_t)((const char *)m->mnl_attr_next(a) - (const char *)a));
	if (n >= 8) {
		add(s, m->mnl_attr_get_u8(a));
		add(s, m->mnl_attr_get_u16(a));
		add(s, m->mnl_attr_get_u32(a));
		add(s, m->mnl_attr_get_u64(a));
	}
	for (int max = 0; max < 16; max++) {
		errno = 0;
		add(s, (uint64_t)m->mnl_attr_type_valid(a, (uint16_t)max));
		add(s, (uint64_t)errno);
	}
	for (int type = -1; type <= MNL_TYPE_MAX + 1; type++) {
		errno = 0;
		add(s, (uint64_t)m->mnl_attr_validate(a, (enum mnl_attr_data_type)type));
		add(s, (uint64_t)errno);
	}
}

static int on_attr(const struct nlattr *a, void *data)
{
	struct seen *s = data;

	look(s, a);
	if (s->n++ == s->stop_after)
		return s->answer;
	if (s->depth < 3) {
		s->depth++;
		add(s, (uint64_t)s->m->mnl_attr_parse_nested(a, on_attr, s));
		s->depth--;
	}
	return MNL_CB_OK;
}

static struct seen walk(const struct api *m, const void *p, unsigned int offset, int stop,
			int answer)
{
	struct seen s = { .m = m, .stop_after = stop, .answer = answer };

	add(&s, (uint64_t)m->mnl_attr_parse(p, offset, on_attr, &s));
	add(&s, (uint64_t)((char *)m->mnl_nlmsg_get_payload_tail(p) - (const char *)p));
	add(&s, (uint64_t)((char *)m->mnl_nlmsg_get_payload_offset(p, offset) - (const char *)p));
	return s;
}

static void assert_same_walk(const void *p, unsigned int offset, int stop, int answer)
{
	struct seen a = walk(&ours, p, offset, stop, answer),
		    b = walk(&theirs, p, offset, stop, answer);

	assert_int_equal(a.n, b.n);
	assert_true(a.sum == b.sum);
}

/* Walks of what was built see all of it, and end where the callback says. */
static void test_parse(void **state)
{
	_Alignas(8) char p[512] = { 0 };

	(void)state;
	build(&theirs, p, 8);
	assert_int_equal(walk(&ours, p, 8, -1, 0).n > 9, 1);
	for (unsigned int offset = 0; offset < 80; offset++)
		assert_same_walk(p, offset, -1, 0);
	for (int stop = 0; stop < 12; stop++)
		for (int answer = -2; answer <= 2; answer++)
			assert_same_walk(p, 8, stop, answer);
}

/* Any byte anywhere: the two agree on what is there. The message is as long as it claims, and the
 * buffer longer by what a last attribute of an unaligned length makes both step over. */
static void test_hostile(void **state)
{
	_Alignas(8) char good[512] = { 0 };
	uint32_t seed = 1;
	size_t n = build(&theirs, good, 8);
	int n_seen = 0;

	(void)state;
	for (int round = 0; round < 20000; round++) {
		_Alignas(8) char p[1024];

		memset(p, (int)next_random(&seed), sizeof(p));
		memcpy(p, good, n);
		for (uint32_t k = next_random(&seed) % 6; k > 0; k--)
			p[16 + next_random(&seed) % (n - 16)] =
				(char)(next_random(&seed) >> (next_random(&seed) % 8));
		((struct nlmsghdr *)p)->nlmsg_len = (uint32_t)(16 + next_random(&seed) % (n - 15));
		assert_same_walk(p, 8, -1, 0);
		n_seen += walk(&ours, p, 8, -1, 0).n;
	}
	assert_true(n_seen > 20000);
}

/* Every length an attribute can claim against every one that is left. */
static void test_ok(void **state)
{
	(void)state;
	for (int claimed = 0; claimed <= UINT16_MAX; claimed += claimed < 64 ? 1 : 251)
		for (int left = -9; left < 70000; left += left < 64 ? 1 : 509) {
			struct nlattr a = { .nla_len = (uint16_t)claimed };

			assert_int_equal(ours.mnl_attr_ok(&a, left), theirs.mnl_attr_ok(&a, left));
		}
	for (int n = 0; n < 24; n++) /* each type at each length, ended by NUL or not */
		for (int end = 0; end < 2; end++) {
			_Alignas(8) char p[32];
			struct nlattr *a = (struct nlattr *)p;
			struct seen s[2] = { { .m = &ours }, { .m = &theirs } };

			memset(p, end ? 0 : 'x', sizeof(p));
			*a = (struct nlattr){ .nla_len = (uint16_t)(4 + n), .nla_type = 0xc007 };
			look(&s[0], a);
			look(&s[1], a);
			assert_true(s[0].sum == s[1].sum);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same_bytes), cmocka_unit_test(test_padding),
		cmocka_unit_test(test_parse),	   cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_ok),
	};

	return cmocka_run_group_tests(tests, load, NULL);
}
