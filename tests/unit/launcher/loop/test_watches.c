/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "launcher/loop/watches.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <unistd.h>

#include <cmocka.h>

struct seen {
	struct sbx_watches *w;
	struct sbx_watch *watch, *other;
	int calls;
	short revents;
};

static void note(void *userdata, short revents)
{
	struct seen *s = userdata;

	s->calls++;
	s->revents = revents;
}

/* Removes both watches, and puts another descriptor in the place of one. */
static void replace(void *userdata, short revents)
{
	struct seen *s = userdata;

	note(s, revents);
	sbx_watch_remove(s->watch);
	s->other = sbx_watch_remove(s->other);
}

static void poll_and_act(struct sbx_watches *w, uint64_t now_us)
{
	struct pollfd p[SBX_WATCHES_MAX];
	size_t n = sbx_watches_fill(w, p);

	assert_true(poll(p, n, 0) >= 0);
	sbx_watches_act(w, p, n, now_us);
}

static void test_readable(void **state)
{
	static struct sbx_watches w;
	struct seen s = { .w = &w };
	int fds[2];

	(void)state;
	assert_int_equal(pipe(fds), 0);
	s.watch = sbx_watch_add(&w, fds[0], POLLIN, note, &s);
	poll_and_act(&w, 1);
	assert_int_equal(s.calls, 0);
	assert_int_equal(write(fds[1], "x", 1), 1);
	poll_and_act(&w, 1);
	assert_int_equal(s.calls, 1);
	assert_true(s.revents & POLLIN);
	sbx_watch_remove(s.watch);
	poll_and_act(&w, 1);
	assert_int_equal(s.calls, 1);
	assert_int_equal(w.n, 0);
	close(fds[0]);
	close(fds[1]);
}

static void test_time(void **state)
{
	static struct sbx_watches w;
	struct seen early = { 0 }, late = { 0 };
	struct sbx_watch *a = sbx_watch_add(&w, -1, 0, note, &late);
	struct sbx_watch *b = sbx_watch_add(&w, -1, 0, note, &early);

	(void)state;
	assert_int_equal(sbx_watches_next_us(&w), 0);
	a->at_us = 20;
	b->at_us = 10;
	assert_int_equal(sbx_watches_next_us(&w), 10);
	poll_and_act(&w, 10);
	assert_int_equal(early.calls, 1);
	assert_int_equal(early.revents, 0);
	assert_int_equal(late.calls, 0);
	assert_int_equal(sbx_watches_next_us(&w), 20);
	poll_and_act(&w, 30);
	poll_and_act(&w, 40);
	assert_int_equal(early.calls, 1);
	assert_int_equal(late.calls, 1);
	sbx_watch_remove(a);
	sbx_watch_remove(b);
}

/* The one that was removed by the other's callback is not called, though its fd is ready. */
static void test_removed_meanwhile(void **state)
{
	static struct sbx_watches w;
	struct seen first = { .w = &w }, second = { 0 };
	int fds[2];

	(void)state;
	assert_int_equal(pipe(fds), 0);
	assert_int_equal(write(fds[1], "x", 1), 1);
	first.watch = sbx_watch_add(&w, fds[0], POLLIN, replace, &first);
	first.other = sbx_watch_add(&w, fds[0], POLLIN, note, &second);
	poll_and_act(&w, 1);
	assert_int_equal(first.calls, 1);
	assert_int_equal(second.calls, 0);
	close(fds[0]);
	close(fds[1]);
}

static void test_full(void **state)
{
	static struct sbx_watches w;
	struct seen s = { 0 };

	(void)state;
	for (int i = 0; i < SBX_WATCHES_MAX; i++)
		assert_non_null(sbx_watch_add(&w, -1, 0, note, &s));
	assert_null(sbx_watch_add(&w, -1, 0, note, &s));
	sbx_watch_remove(&w.v[7]);
	assert_ptr_equal(sbx_watch_add(&w, -1, 0, note, &s), &w.v[7]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_readable),
		cmocka_unit_test(test_time),
		cmocka_unit_test(test_removed_meanwhile),
		cmocka_unit_test(test_full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
