/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fold.h"

#define SBX_FOLD_WINDOW_MS 1000
#include "tests/unit/fail_alloc.h"

/* The events that the folder emitted, in order. */
struct sink {
	size_t n;
	uint64_t count;
	uint64_t by_action[SBX_N_ACTIONS];
	struct sbx_event v[2048];
};

static void emit(const struct sbx_event *v, void *userdata)
{
	struct sink *sink = userdata;

	assert_true(sink->n < sizeof(sink->v) / sizeof(sink->v[0]));
	sink->v[sink->n++] = *v;
	sink->count += v->count;
	sink->by_action[v->action] += v->count;
}

static struct sbx_event event(const char *name, uint64_t ts_ms)
{
	struct sbx_event v = {
		.ts_ms = ts_ms,
		.action = SBX_DENY,
		.proto = SBX_PROTO_DNS,
		.reason = SBX_REASON_DEFAULT_DENY,
		.count = 1,
	};

	snprintf(v.name, sizeof(v.name), "%s", name);
	return v;
}

struct fixture {
	struct sbx_fold *fold;
	struct sink *sink;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	f->sink = calloc(1, sizeof(*f->sink));
	*state = f;
	return sbx_fold_new(8, SBX_FOLD_WINDOW_MS, 0, 42, &f->fold);
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	assert_null(sbx_fold_free(f->fold));
	free(f->sink);
	free(f);
	return 0;
}

static void add(struct fixture *f, const struct sbx_event *v, uint64_t now_ms)
{
	sbx_fold_add(f->fold, v, now_ms, emit, f->sink);
}

static void test_same_fold(void **state)
{
	struct fixture *f = *state;
	struct sbx_event v = event("a.example", 5000);

	assert_true(sbx_fold_next_ms(f->fold) == SBX_FOLD_IDLE);
	add(f, &v, 100);
	v.ts_ms = 4999; /* the wall clock went back: the first is the smallest */
	v.count = 3;
	add(f, &v, 1099);
	assert_int_equal(f->sink->n, 0);
	assert_int_equal(sbx_fold_next_ms(f->fold), 1100);
	sbx_fold_flush(f->fold, 1099, emit, f->sink);
	assert_int_equal(f->sink->n, 0);
	sbx_fold_flush(f->fold, 1100, emit, f->sink);
	assert_int_equal(f->sink->n, 1);
	assert_int_equal(f->sink->v[0].count, 4);
	assert_int_equal(f->sink->v[0].ts_ms, 4999);
	assert_string_equal(f->sink->v[0].name, "a.example");
	assert_true(sbx_fold_next_ms(f->fold) == SBX_FOLD_IDLE);
	assert_int_equal(sbx_fold_n_folded(f->fold), 1);
	/* A window that is over does not take any more. */
	add(f, &v, 1101);
	sbx_fold_flush_all(f->fold, emit, f->sink);
	assert_int_equal(f->sink->n, 2);
}

/* Each field of the key alone keeps events apart; time and count do not. */
static void test_key(void **state)
{
	struct fixture *f = *state;
	struct sbx_event base = event("a", 1), v[8];

	sbx_fold_free(f->fold);
	assert_int_equal(sbx_fold_new(9, SBX_FOLD_WINDOW_MS, 0, 42, &f->fold), 0);
	for (int i = 0; i < 8; i++)
		v[i] = base;
	v[0].action = SBX_ALLOW;
	v[1].proto = SBX_PROTO_TCP;
	v[2].reason = SBX_REASON_FLOOR;
	v[3].port = 256;
	strcpy(v[4].name, "b");
	strcpy(v[5].rule, "a");
	v[6].addr = sbx_self4;
	strcpy(v[7].request, "GET /");
	add(f, &base, 0);
	for (int i = 0; i < 8; i++)
		add(f, &v[i], 0);
	base.ts_ms = 77;
	add(f, &base, 0);
	sbx_fold_flush_all(f->fold, emit, f->sink);
	assert_int_equal(f->sink->n, 9);
	assert_int_equal(f->sink->v[0].count, 2);
	for (int i = 0; i < 8; i++) {
		assert_int_equal(f->sink->v[i + 1].count, 1);
		assert_memory_equal(&f->sink->v[i + 1], &v[i], sizeof(v[i]));
	}
}

static void test_oldest_first(void **state)
{
	struct fixture *f = *state;

	for (int i = 0; i < 5; i++) {
		char name[8];
		struct sbx_event v;

		snprintf(name, sizeof(name), "n%d", i);
		v = event(name, 0);
		add(f, &v, 300 * (uint64_t)i);
	}
	/* The add at 1200 flushed n0. */
	assert_int_equal(f->sink->n, 1);
	sbx_fold_flush(f->fold, 1650, emit, f->sink);
	assert_int_equal(f->sink->n, 3);
	sbx_fold_flush_all(f->fold, emit, f->sink);
	for (int i = 0; i < 5; i++)
		assert_int_equal(f->sink->v[i].name[1], '0' + i);
}

/* A flood of different names: bounded, and every count comes out. */
static void test_overflow(void **state)
{
	struct fixture *f = *state;
	struct sbx_event v;

	for (int i = 0; i < 1000; i++) {
		char name[16];

		snprintf(name, sizeof(name), "n%d.example", i);
		v = event(name, 10 + (uint64_t)i);
		v.action = (uint8_t)(i % SBX_N_ACTIONS);
		add(f, &v, 0);
	}
	assert_int_equal(f->sink->n, 0);
	v = event("n0.example", 5); /* a key that is held still folds */
	add(f, &v, 0);
	assert_int_equal(sbx_fold_n_overflowed(f->fold), 992);
	sbx_fold_flush(f->fold, 1000, emit, f->sink);
	assert_int_equal(f->sink->n, 8 + SBX_N_ACTIONS);
	assert_int_equal(f->sink->count, 1001);
	assert_int_equal(f->sink->by_action[SBX_DENY], 251);
	assert_int_equal(f->sink->by_action[SBX_ALLOW], 250);
	assert_int_equal(f->sink->by_action[SBX_PANIC], 250);
	assert_int_equal(f->sink->by_action[SBX_NOTICE], 250);
	for (size_t i = 8; i < f->sink->n; i++) {
		assert_int_equal(f->sink->v[i].reason, SBX_REASON_OVERFLOW);
		assert_string_equal(f->sink->v[i].name, "");
		assert_true(f->sink->v[i].ts_ms >= 18 && f->sink->v[i].ts_ms <= 21);
	}
	assert_true(sbx_fold_next_ms(f->fold) == SBX_FOLD_IDLE);
}

/* Slots are used again: the folder takes as many keys as it has slots, over and over, without
 * overflow. */
static void test_slots_are_reused(void **state)
{
	struct fixture *f = *state;

	for (int i = 0; i < 800; i++) {
		char name[16];
		struct sbx_event v;

		snprintf(name, sizeof(name), "n%d", i);
		v = event(name, 0);
		add(f, &v, (uint64_t)(i / 8) * SBX_FOLD_WINDOW_MS);
	}
	sbx_fold_flush_all(f->fold, emit, f->sink);
	assert_int_equal(f->sink->n, 800);
	assert_int_equal(sbx_fold_n_overflowed(f->fold), 0);
	assert_int_equal(sbx_fold_n_folded(f->fold), 0);
}

/* Overflow rows of another folder are added up, whatever else stands in them. */
static void test_overflow_folds_overflow(void **state)
{
	struct fixture *f = *state;
	struct sbx_event v = event("", 9);

	v.reason = SBX_REASON_OVERFLOW;
	v.count = 500;
	add(f, &v, 0);
	strcpy(v.name, "x");
	v.count = UINT64_MAX - 100;
	add(f, &v, 0);
	assert_int_equal(sbx_fold_next_ms(f->fold), SBX_FOLD_WINDOW_MS);
	sbx_fold_flush_all(f->fold, emit, f->sink);
	assert_int_equal(f->sink->n, 1);
	assert_true(f->sink->v[0].count == UINT64_MAX);
}

static void test_bad_action_is_a_denial(void **state)
{
	struct fixture *f = *state;
	struct sbx_event v = event("", 9);

	v.reason = SBX_REASON_OVERFLOW;
	v.action = 200;
	add(f, &v, 0);
	sbx_fold_flush_all(f->fold, emit, f->sink);
	assert_int_equal(f->sink->v[0].action, SBX_DENY);
}

static void test_counts_saturate(void **state)
{
	struct fixture *f = *state;
	struct sbx_event v = event("a", 0);

	v.count = UINT64_MAX;
	add(f, &v, 0);
	add(f, &v, 0);
	sbx_fold_flush_all(f->fold, emit, f->sink);
	assert_true(f->sink->v[0].count == UINT64_MAX);
}

#define EARLY_MS 10

/* A fold with early events, in place of the usual one. */
static void with_early(struct fixture *f, uint32_t n_keys)
{
	sbx_fold_free(f->fold);
	assert_int_equal(sbx_fold_new(n_keys, SBX_FOLD_WINDOW_MS, EARLY_MS, 42, &f->fold), 0);
}

/* A burst is one event more: its beginning comes early, the rest with the window's end. */
static void test_early(void **state)
{
	struct fixture *f = *state;
	struct sbx_event v = event("a", 5000);

	with_early(f, 8);
	add(f, &v, 100);
	add(f, &v, 105);
	assert_int_equal(sbx_fold_next_ms(f->fold), 110);
	sbx_fold_flush(f->fold, 109, emit, f->sink);
	assert_int_equal(f->sink->n, 0);
	sbx_fold_flush(f->fold, 110, emit, f->sink);
	assert_int_equal(f->sink->n, 1);
	assert_int_equal(f->sink->v[0].count, 2);
	assert_true(sbx_fold_next_ms(f->fold) == SBX_FOLD_IDLE);
	for (uint64_t now = 120; now < 1100; now += 20)
		add(f, &v, now);
	assert_int_equal(f->sink->n, 1);
	assert_int_equal(sbx_fold_next_ms(f->fold), 1120);
	sbx_fold_flush(f->fold, 1120, emit, f->sink);
	assert_int_equal(f->sink->n, 2);
	assert_int_equal(f->sink->v[1].count, 49);
	/* As long as it goes on, it is an event for each window. */
	for (uint64_t now = 1130; now < 11130; now += 50)
		add(f, &v, now);
	assert_true(f->sink->n <= 2 + 10);
	sbx_fold_flush_all(f->fold, emit, f->sink);
	assert_int_equal(f->sink->count, 2 + 49 + 200);
}

/* After a window without it, it is new. */
static void test_early_again(void **state)
{
	struct fixture *f = *state;
	struct sbx_event v = event("a", 1);

	with_early(f, 8);
	add(f, &v, 0);
	sbx_fold_flush(f->fold, 10, emit, f->sink);
	add(f, &v, 1009);
	assert_int_equal(sbx_fold_next_ms(f->fold), 2009);
	sbx_fold_flush(f->fold, 2009, emit, f->sink);
	add(f, &v, 3009);
	assert_int_equal(sbx_fold_next_ms(f->fold), 3019);
	sbx_fold_flush_all(f->fold, emit, f->sink);
	assert_int_equal(f->sink->n, 3);
	assert_int_equal(f->sink->count, 3);
}

/* Of a flood of different events few are early, and no event is lost or told twice. */
static void test_early_flood(void **state)
{
	struct fixture *f = *state;

	with_early(f, 2000);
	for (int i = 0; i < 1000; i++) {
		char name[16];
		struct sbx_event v;

		snprintf(name, sizeof(name), "n%d", i);
		v = event(name, 0);
		add(f, &v, (uint64_t)i / 2);
	}
	sbx_fold_flush(f->fold, 999, emit, f->sink);
	assert_int_equal(f->sink->n, SBX_FOLD_EARLY_MAX);
	sbx_fold_flush(f->fold, 1499, emit, f->sink);
	assert_int_equal(f->sink->n, 1000);
	assert_int_equal(f->sink->count, 1000);
	assert_int_equal(sbx_fold_n_overflowed(f->fold), 0);
}

/* Events that were early before all were taken do not count afterwards. */
static void test_early_after_all(void **state)
{
	struct fixture *f = *state;
	struct sbx_event v;
	char name[16];

	with_early(f, 32);
	for (int i = 0; i < SBX_FOLD_EARLY_MAX + 1; i++) {
		snprintf(name, sizeof(name), "n%d", i);
		v = event(name, 0);
		add(f, &v, 0);
	}
	sbx_fold_flush_all(f->fold, emit, f->sink);
	add(f, &v, 20);
	assert_int_equal(sbx_fold_next_ms(f->fold), 20 + EARLY_MS);
	sbx_fold_flush_all(f->fold, emit, f->sink);
	assert_int_equal(f->sink->count, SBX_FOLD_EARLY_MAX + 2);
}

/* Slots that only remember are taken before one overflows. */
static void test_known_slots_are_taken(void **state)
{
	struct fixture *f = *state;

	with_early(f, 8);
	for (int i = 0; i < 64; i++) {
		char name[16];
		struct sbx_event v;

		snprintf(name, sizeof(name), "n%d", i);
		v = event(name, 0);
		add(f, &v, (uint64_t)(i / 16 * 2100 + i / 8 % 2 * 20));
	}
	sbx_fold_flush_all(f->fold, emit, f->sink);
	assert_int_equal(f->sink->n, 64);
	assert_int_equal(sbx_fold_n_overflowed(f->fold), 0);
}

/* Against a plain model: random events and times, all counts, never more held than allowed. */
static void model(struct fixture *f)
{
	uint64_t now = 0, sum = 0;

	srand(7);
	for (int i = 0; i < 20000; i++) {
		char name[16];
		struct sbx_event v;

		snprintf(name, sizeof(name), "n%d", rand() % 12);
		v = event(name, now);
		v.count = 1 + (uint64_t)(rand() % 3);
		sum += v.count;
		now += (uint64_t)(rand() % 200);
		add(f, &v, now);
		if (f->sink->n > 1500)
			f->sink->n = 0;
	}
	sbx_fold_flush_all(f->fold, emit, f->sink);
	assert_true(f->sink->count == sum);
	assert_true(sbx_fold_next_ms(f->fold) == SBX_FOLD_IDLE);
}

static void test_model(void **state)
{
	model(*state);
}

static void test_model_early(void **state)
{
	struct fixture *f = *state;

	with_early(f, 8);
	model(f);
}

/* A clock near its end, or one that goes back by mistake, neither hangs nor loses. */
static void test_odd_clocks(void **state)
{
	struct fixture *f = *state;
	struct sbx_event v = event("a", 0);

	add(f, &v, UINT64_MAX - 5);
	sbx_fold_flush(f->fold, UINT64_MAX, emit, f->sink);
	assert_int_equal(f->sink->n, 0);
	sbx_fold_flush(f->fold, 3, emit, f->sink);
	assert_int_equal(f->sink->n, 0);
	assert_true(sbx_fold_next_ms(f->fold) != SBX_FOLD_IDLE);
	sbx_fold_flush_all(f->fold, emit, f->sink);
	assert_int_equal(f->sink->n, 1);
}

static void test_new_without_memory(void **state)
{
	struct sbx_fold *fold = NULL;

	(void)state;
	for (size_t i = 1; i <= 3; i++) {
		fail_at = i;
		assert_int_equal(sbx_fold_new(8, SBX_FOLD_WINDOW_MS, 0, 0, &fold), -ENOMEM);
		assert_null(fold);
		assert_int_equal(fail_at, 0);
	}
}

static void test_new_bounds(void **state)
{
	struct sbx_fold *fold = NULL;

	(void)state;
	assert_int_equal(sbx_fold_new(0, SBX_FOLD_WINDOW_MS, 0, 0, &fold), -EINVAL);
	assert_int_equal(sbx_fold_new(1, 0, 0, 0, &fold), -EINVAL);
	assert_int_equal(sbx_fold_new(1, 10, 11, 0, &fold), -EINVAL);
	assert_int_equal(sbx_fold_new(65537, SBX_FOLD_WINDOW_MS, 0, 0, &fold), -EINVAL);
	assert_null(fold);
	assert_int_equal(sbx_fold_new(1, SBX_FOLD_WINDOW_MS, 0, 0, &fold), 0);
	sbx_fold_free(fold);
	sbx_fold_free(NULL);
}

int main(void)
{
#define T(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_same_fold),
		T(test_key),
		T(test_oldest_first),
		T(test_overflow),
		T(test_slots_are_reused),
		T(test_overflow_folds_overflow),
		T(test_bad_action_is_a_denial),
		T(test_counts_saturate),
		T(test_model),
		T(test_model_early),
		T(test_early),
		T(test_early_again),
		T(test_early_flood),
		T(test_early_after_all),
		T(test_known_slots_are_taken),
		T(test_odd_clocks),
		cmocka_unit_test(test_new_bounds),
		cmocka_unit_test(test_new_without_memory),
	};

	return cmocka_run_group_tests_name("fold", tests, NULL, NULL);
}
