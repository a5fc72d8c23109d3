/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/span.h"

static void test_round_trip(void **state)
{
	uint8_t buf[64];
	char s[8];
	struct sbx_writer w = sbx_writer(buf, sizeof(buf));
	struct sbx_reader r;
	struct sbx_span b;

	(void)state;
	sbx_write_u8(&w, 0xfe);
	sbx_write_u16(&w, 0x0102);
	sbx_write_u32(&w, 0xdeadbeef);
	sbx_write_u64(&w, UINT64_C(0x0102030405060708));
	sbx_write_bytes(&w, "xyz", 3);
	sbx_write_bytes(&w, NULL, 0);
	sbx_write_str(&w, "hello");
	sbx_write_str(&w, "");
	assert_false(w.failed);
	assert_int_equal(w.pos, 1 + 2 + 4 + 8 + 3 + 7 + 2);
	assert_memory_equal(buf, "\xfe\x01\x02\xde\xad\xbe\xef", 7);

	r = sbx_reader(sbx_span(buf, w.pos));
	assert_int_equal(sbx_read_u8(&r), 0xfe);
	assert_int_equal(sbx_read_u16(&r), 0x0102);
	assert_int_equal(sbx_read_u32(&r), 0xdeadbeef);
	assert_true(sbx_read_u64(&r) == UINT64_C(0x0102030405060708));
	b = sbx_read_bytes(&r, 3);
	assert_memory_equal(b.p, "xyz", 3);
	assert_false(sbx_reader_done(&r));
	sbx_read_str(&r, s, sizeof(s));
	assert_string_equal(s, "hello");
	sbx_read_str(&r, s, sizeof(s));
	assert_string_equal(s, "");
	assert_true(sbx_reader_done(&r));
}

/* Every read fails on every shorter input, yields zero and leaves the position alone. */
static void test_read_short(void **state)
{
	static const uint8_t ff[8] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };

	(void)state;
	for (size_t n = 0; n < 8; n++) {
		struct sbx_reader r = sbx_reader(sbx_span(ff, n));

		assert_true(sbx_read_u64(&r) == 0);
		assert_true(r.failed);
		assert_int_equal(r.pos, 0);
		/* Sticky: what would have fitted is refused too. */
		assert_int_equal(sbx_read_u8(&r), 0);
		assert_false(sbx_reader_done(&r));
	}
	for (size_t n = 0; n < 4; n++) {
		struct sbx_reader r = sbx_reader(sbx_span(ff, n));

		assert_int_equal(sbx_read_u32(&r), 0);
		assert_true(r.failed);
	}
	for (size_t n = 0; n < 2; n++) {
		struct sbx_reader r = sbx_reader(sbx_span(ff, n));

		assert_int_equal(sbx_read_u16(&r), 0);
		assert_true(r.failed);
	}
}

static void test_read_bytes_bounds(void **state)
{
	struct sbx_reader r = sbx_reader(sbx_span("abcd", 4));
	struct sbx_span s;

	(void)state;
	sbx_read_u8(&r);
	s = sbx_read_bytes(&r, SIZE_MAX);
	assert_null(s.p);
	assert_int_equal(s.n, 0);
	assert_true(r.failed);

	r = sbx_reader(sbx_span("abcd", 4));
	s = sbx_read_bytes(&r, 4);
	assert_int_equal(s.n, 4);
	s = sbx_read_bytes(&r, 0);
	assert_int_equal(s.n, 0);
	assert_true(sbx_reader_done(&r));
	sbx_read_bytes(&r, 1);
	assert_true(r.failed);

	r = sbx_reader(sbx_span(NULL, 0));
	assert_true(sbx_reader_done(&r));
}

static void read_str_of(const void *p, size_t n, size_t n_out, int want_failed)
{
	char out[16] = "untouched";
	struct sbx_reader r = sbx_reader(sbx_span(p, n));

	sbx_read_str(&r, out, n_out);
	assert_int_equal(r.failed, want_failed);
	if (want_failed)
		assert_string_equal(out, "");
}

static void test_read_str_refuses(void **state)
{
	(void)state;
	read_str_of("\x00\x03"
		    "abc",
		    5, 4, 0);
	read_str_of("\x00\x03"
		    "abc",
		    5, 3, 1); /* no room for the NUL */
	read_str_of("\x00\x03"
		    "abc",
		    4, 16, 1); /* a byte missing */
	read_str_of("\x00\x03"
		    "a\0c",
		    5, 16, 1);
	read_str_of("\x00", 1, 16, 1);
	read_str_of("\xff\xff", 2, 16, 1);
}

static void test_write_bounds(void **state)
{
	uint8_t buf[8];
	char big[UINT16_MAX + 2];
	struct sbx_writer w;

	(void)state;
	for (size_t cap = 0; cap < 8; cap++) {
		memset(buf, 0xaa, sizeof(buf));
		w = sbx_writer(buf, cap);
		sbx_write_u64(&w, 0);
		assert_true(w.failed);
		assert_int_equal(w.pos, 0);
		sbx_write_u8(&w, 1);
		assert_int_equal(buf[0], 0xaa);
	}
	/* A string is written whole or not at all. */
	w = sbx_writer(buf, 4);
	sbx_write_str(&w, "abc");
	assert_true(w.failed);
	assert_int_equal(w.pos, 0);
	w = sbx_writer(buf, 5);
	sbx_write_str(&w, "abc");
	assert_false(w.failed);
	assert_int_equal(w.pos, 5);
	sbx_write_bytes(&w, buf, SIZE_MAX);
	assert_true(w.failed);

	memset(big, 'x', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	{
		static uint8_t room[sizeof(big) + 2];

		w = sbx_writer(room, sizeof(room));
		sbx_write_str(&w, big);
		assert_true(w.failed);
		w = sbx_writer(room, sizeof(room));
		sbx_write_str(&w, big + 1);
		assert_false(w.failed);
	}
}

static void check_cut(struct sbx_span *s, bool found, const char *part, const char *rest)
{
	struct sbx_span got;

	assert_int_equal(sbx_span_cut(s, ',', &got), found);
	assert_int_equal(got.n, strlen(part));
	assert_memory_equal(got.p, part, got.n);
	assert_int_equal(s->n, strlen(rest));
	assert_memory_equal(s->p, rest, s->n);
}

static void test_cut(void **state)
{
	struct sbx_span s = sbx_span_str("a,,bc,"), got;

	(void)state;
	check_cut(&s, true, "a", ",bc,");
	check_cut(&s, true, "", "bc,");
	check_cut(&s, true, "bc", "");
	check_cut(&s, false, "", "");
	s = sbx_span_str("abc");
	check_cut(&s, false, "abc", "");
	s = sbx_span(NULL, 0);
	assert_false(sbx_span_cut(&s, ',', &got));
	assert_int_equal(got.n + s.n, 0);
	s = sbx_span("a,b", 1); /* no byte behind it is looked at */
	check_cut(&s, false, "a", "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),	  cmocka_unit_test(test_read_short),
		cmocka_unit_test(test_read_bytes_bounds), cmocka_unit_test(test_read_str_refuses),
		cmocka_unit_test(test_write_bounds),	  cmocka_unit_test(test_cut),
	};

	return cmocka_run_group_tests_name("span", tests, NULL, NULL);
}
