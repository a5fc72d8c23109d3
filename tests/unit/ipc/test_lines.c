/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "ipc/lines.h"

#define N_MAX 8192 /* bytes of a line in these tests */

/* Writes @n bytes into the rooms of @l. 0 or the error of the room that failed. */
static int feed(struct sbx_lines *l, const char *p, size_t n)
{
	while (n > 0) {
		uint8_t *room;
		size_t n_room, k;
		int e = sbx_lines_room(l, &room, &n_room);

		if (e < 0)
			return e;
		assert_true(n_room > 0);
		k = n < n_room ? n : n_room;
		memcpy(room, p, k);
		sbx_lines_added(l, k);
		p += k;
		n -= k;
	}
	return 0;
}

static void expect_line(struct sbx_lines *l, const char *want)
{
	struct sbx_span line;

	assert_int_equal(sbx_lines_next(l, &line), 1);
	assert_int_equal(line.n, strlen(want));
	assert_memory_equal(line.p, want, line.n);
}

static void expect_none(struct sbx_lines *l)
{
	struct sbx_span line;

	assert_int_equal(sbx_lines_next(l, &line), 0);
}

static void test_no_line_before_bytes(void **state)
{
	struct sbx_lines l;

	(void)state;
	sbx_lines_init(&l, N_MAX);
	expect_none(&l);
	assert_int_equal(sbx_lines_n_begun(&l), 0);
	sbx_lines_fini(&l);
}

static void test_lines_whole(void **state)
{
	struct sbx_lines l;

	(void)state;
	sbx_lines_init(&l, N_MAX);
	assert_int_equal(feed(&l, "one\n\ntwo\nthr", 12), 0);
	expect_line(&l, "one");
	expect_line(&l, "");
	expect_line(&l, "two");
	expect_none(&l);
	assert_int_equal(sbx_lines_n_begun(&l), 3);
	assert_int_equal(feed(&l, "ee\n", 3), 0);
	expect_line(&l, "three");
	expect_none(&l);
	assert_int_equal(sbx_lines_n_begun(&l), 0);
	sbx_lines_fini(&l);
}

static void test_lines_at_every_split(void **state)
{
	static const char text[] = "{\"v\":1}\n\n{\"op\":\"show\"}\nrest";
	const size_t n = sizeof(text) - 1;

	(void)state;
	for (size_t a = 0; a <= n; a++)
		for (size_t b = a; b <= n; b++) {
			const char *want[] = { "{\"v\":1}", "", "{\"op\":\"show\"}" };
			size_t cuts[] = { a, b - a, n - b }, at = 0, got = 0;
			struct sbx_lines l;
			struct sbx_span line;

			sbx_lines_init(&l, N_MAX);
			for (size_t i = 0; i < SBX_N_ELEMENTS(cuts); i++) {
				assert_int_equal(feed(&l, text + at, cuts[i]), 0);
				at += cuts[i];
				while (sbx_lines_next(&l, &line) == 1) {
					assert_true(got < SBX_N_ELEMENTS(want));
					assert_int_equal(line.n, strlen(want[got]));
					assert_memory_equal(line.p, want[got], line.n);
					got++;
				}
			}
			assert_int_equal(got, SBX_N_ELEMENTS(want));
			assert_int_equal(sbx_lines_n_begun(&l), 4);
			sbx_lines_fini(&l);
		}
}

/* A line of exactly the limit passes; one byte more is refused, newline or not. */
static void test_the_limit_of_a_line(void **state)
{
	SBX_AUTO_FREE char *text = malloc(N_MAX + 1);
	struct sbx_lines l;
	struct sbx_span line;
	uint8_t *room;
	size_t n;

	(void)state;
	assert_non_null(text);
	memset(text, 'a', N_MAX + 1);
	text[N_MAX - 1] = '\n';
	sbx_lines_init(&l, N_MAX);
	assert_int_equal(feed(&l, text, N_MAX), 0);
	assert_int_equal(sbx_lines_next(&l, &line), 1);
	assert_int_equal(line.n, N_MAX - 1);
	assert_int_equal(sbx_lines_room(&l, &room, &n), 0); /* and then a next one fits again */
	sbx_lines_fini(&l);

	text[N_MAX - 1] = 'a';
	text[N_MAX] = '\n';
	sbx_lines_init(&l, N_MAX);
	assert_int_equal(feed(&l, text, N_MAX), 0);
	expect_none(&l);
	assert_int_equal(sbx_lines_room(&l, &room, &n), -EMSGSIZE);
	sbx_lines_fini(&l);
}

static void test_any_byte_may_be_in_a_line(void **state)
{
	char text[256];
	struct sbx_lines l;
	struct sbx_span line;

	(void)state;
	for (int i = 0; i < 256; i++)
		text[i] = (char)(i == '\n' ? 'x' : i);
	sbx_lines_init(&l, N_MAX);
	assert_int_equal(feed(&l, text, sizeof(text)), 0);
	expect_none(&l);
	assert_int_equal(feed(&l, "\n", 1), 0);
	assert_int_equal(sbx_lines_next(&l, &line), 1);
	assert_int_equal(line.n, sizeof(text));
	assert_memory_equal(line.p, text, sizeof(text));
	sbx_lines_fini(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_line_before_bytes),
		cmocka_unit_test(test_lines_whole),
		cmocka_unit_test(test_lines_at_every_split),
		cmocka_unit_test(test_the_limit_of_a_line),
		cmocka_unit_test(test_any_byte_may_be_in_a_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
