/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Resolved pins with a clock of the test's own and a kernel made of an array: what may be opened,
 * what may go on, at every moment.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker/names/resolved_pins.h"

#define S	   UINT64_C(1000)
#define KERNEL_MAX 8192

struct element {
	struct sbx_resolved_pins_change what;
	uint64_t until_ms;
};

struct fixture {
	struct sbx_resolved_pins *pins;
	uint64_t now_ms;
	size_t n_kernel, n_batches;
	struct element kernel[KERNEL_MAX];
	unsigned sweep_is_blind; /* the open sockets cannot be read */
	size_t n_open;
	struct sbx_addr open[16]; /* remote ends of open flows, port 443 */
	struct sbx_addr told[SBX_RESOLVED_PINS_ADDRS_MAX];
	size_t n_told;
};

static const struct sbx_resolved_pins_port web[] = { { SBX_PROTO_TCP, 443 },
						     { SBX_PROTO_TCP, 80 } };

/* A changed policy denies these besides. */
static struct sbx_addr denied_addr;
static const char *denied_name; /* "*": every name */
static uint16_t denied_port;

static bool judge(void *userdata, const char *name, const struct sbx_addr *addr,
		  enum sbx_proto proto, uint16_t port)
{
	(void)userdata;
	(void)name;
	(void)proto;
	(void)port;
	if (denied_addr.family && sbx_addr_equal(addr, &denied_addr))
		return false;
	return addr->b[0] != 66; /* a deny entry of the policy */
}

static struct sbx_addr a4(unsigned i)
{
	return (struct sbx_addr){ 4, { 203, (uint8_t)(i >> 16), (uint8_t)(i >> 8), (uint8_t)i } };
}

static struct fixture *new_fixture(uint32_t interval_s, uint32_t n_names, uint32_t n_pins)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct sbx_resolved_pins_config config = { .repin_interval_s = interval_s,
						   .n_names_max = n_names,
						   .n_pins_max = n_pins,
						   .judge = judge };

	assert_non_null(f);
	f->now_ms = 1000000;
	assert_int_equal(sbx_resolved_pins_new(&config, &f->pins), 0);
	assert_true(sbx_resolved_pins_next_ms(f->pins) == UINT64_MAX);
	return f;
}

static void free_fixture(struct fixture *f)
{
	sbx_resolved_pins_free(f->pins);
	free(f);
}

/* --- the kernel --- */

static struct element *find(struct fixture *f, const struct sbx_addr *a, uint16_t port, bool old)
{
	for (size_t i = 0; i < f->n_kernel; i++) {
		struct element *e = &f->kernel[i];

		if (e->until_ms > f->now_ms && e->what.port == port && e->what.old == old &&
		    sbx_addr_equal(&e->what.addr, a))
			return e;
	}
	return NULL;
}

static struct element *slot(struct fixture *f)
{
	size_t i = 0;

	while (i < f->n_kernel && f->kernel[i].until_ms > f->now_ms)
		i++;
	assert_true(i < KERNEL_MAX);
	f->n_kernel += i == f->n_kernel;
	return &f->kernel[i];
}

static void apply(struct fixture *f, size_t n_max)
{
	struct sbx_resolved_pins_change v[64];
	size_t n;

	while ((n = sbx_resolved_pins_changes(f->pins, f->now_ms, v, n_max))) {
		f->n_batches++;
		for (size_t i = 0; i < n; i++) {
			struct element *e = find(f, &v[i].addr, v[i].port, v[i].old);

			if (!e && v[i].timeout_ms)
				e = slot(f);
			if (e)
				*e = (struct element){ v[i], f->now_ms + v[i].timeout_ms };
		}
	}
}

static bool may_open(struct fixture *f, struct sbx_addr a)
{
	return find(f, &a, 443, false) != NULL;
}

static bool may_go_on(struct fixture *f, struct sbx_addr a)
{
	return may_open(f, a) || find(f, &a, 443, true);
}

/* --- the owner --- */

static void answer(struct fixture *f, const char *name, uint32_t ttl_s, bool asked, bool partial,
		   const struct sbx_addr *v, size_t n)
{
	struct sbx_resolved_pins_answer a = { .name = name,
					      .asked = asked,
					      .partial = partial,
					      .ttl_s = ttl_s,
					      .n_addrs = n,
					      .addrs = v,
					      .n_ports = 2,
					      .ports = web };

	assert_int_equal(sbx_resolved_pins_resolved(f->pins, &a, f->now_ms, f->told, &f->n_told),
			 0);
	apply(f, 64);
}

static void ask(struct fixture *f, const char *name, uint32_t ttl_s, struct sbx_addr a)
{
	answer(f, name, ttl_s, true, false, &a, 1);
}

static void sweep(struct fixture *f)
{
	if (!sbx_resolved_pins_wants_sweep(f->pins, f->now_ms))
		return;
	for (size_t i = 0; i < f->n_open && !f->sweep_is_blind; i++)
		sbx_resolved_pins_in_use(f->pins, &f->open[i], SBX_PROTO_TCP, 443, f->now_ms);
	sbx_resolved_pins_swept(f->pins, !f->sweep_is_blind, f->now_ms);
}

/* Let @seconds pass; what is due is resolved by @resolve (NULL: fails). Open flows must never be
 * cut. */
typedef void (*resolve_fn)(struct fixture *f, const char *name);

static void pass(struct fixture *f, unsigned seconds, resolve_fn resolve)
{
	for (unsigned i = 0; i < seconds; i++) {
		const char *name;

		f->now_ms += S;
		sweep(f);
		sbx_resolved_pins_tick(f->pins, f->now_ms);
		while ((name = sbx_resolved_pins_due(f->pins, f->now_ms))) {
			char copy[256];

			snprintf(copy, sizeof(copy), "%s", name);
			if (resolve)
				resolve(f, copy);
			else
				sbx_resolved_pins_failed(f->pins, copy, f->now_ms);
		}
		apply(f, 64);
		assert_true(sbx_resolved_pins_next_ms(f->pins) > f->now_ms);
		for (size_t k = 0; k < f->n_open; k++)
			assert_true(may_go_on(f, f->open[k]));
	}
}

static void same_1(struct fixture *f, const char *name)
{
	struct sbx_addr a = a4(1);

	answer(f, name, 60, false, false, &a, 1);
}

static void moved_to_2(struct fixture *f, const char *name)
{
	struct sbx_addr a = a4(2);

	answer(f, name, 60, false, false, &a, 1);
}

static void gone(struct fixture *f, const char *name)
{
	answer(f, name, 60, false, false, NULL, 0);
}

/* --- tests --- */

static void test_an_answer_admits(void **state)
{
	struct fixture *f = new_fixture(300, 4, 64);

	(void)state;
	assert_false(may_open(f, a4(1)));
	ask(f, "a.example", 60, a4(1));
	assert_int_equal(f->n_told, 1);
	assert_true(may_open(f, a4(1)));
	assert_non_null(find(f, &f->told[0], 80, false));
	assert_null(find(f, &f->told[0], 8080, false));
	assert_false(may_open(f, a4(2)));
	assert_int_equal(f->n_batches, 1);
	/* Again within seconds: nothing to tell the kernel. */
	ask(f, "a.example", 60, a4(1));
	assert_int_equal(f->n_batches, 1);
	assert_int_equal(f->n_told, 1);
	free_fixture(f);
}

/* A program that resolves a name only when it starts: the name is followed for days. */
static void test_held_while_the_name_has_it(void **state)
{
	static const uint32_t intervals[] = { 30, 300, 3600 };

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct fixture *f = new_fixture(intervals[i], 4, 64);

		ask(f, "a.example", 0, a4(1));
		for (int hour = 0; hour < 3; hour++) {
			pass(f, 3600, same_1);
			assert_true(may_open(f, a4(1)));
		}
		free_fixture(f);
	}
}

static void test_moved(void **state)
{
	struct fixture *f = new_fixture(300, 4, 64);
	unsigned took = 0;

	(void)state;
	ask(f, "a.example", 86400, a4(1));
	f->open[f->n_open++] = a4(1);
	/* Followed within the interval, whatever the TTL. */
	for (; !may_open(f, a4(2)); took++)
		pass(f, 1, moved_to_2);
	assert_true(took <= 300);
	/* The previous address becomes old. It stays as long as its flow does: half a day. */
	pass(f, 600, moved_to_2);
	assert_false(may_open(f, a4(1)));
	pass(f, 12 * 3600, moved_to_2);
	assert_true(may_go_on(f, a4(1)) && !may_open(f, a4(1)) && may_open(f, a4(2)));
	f->n_open = 0;
	pass(f, SBX_RESOLVED_PINS_LINGER_S + 2 * SBX_RESOLVED_PINS_SWEEP_S, moved_to_2);
	assert_false(may_go_on(f, a4(1)));
	assert_int_equal(sbx_resolved_pins_stats(f->pins).n_old, 0);
	assert_int_equal(sbx_resolved_pins_stats(f->pins).n_current, 2);
	/* The name moves back to the first address. */
	ask(f, "a.example", 60, a4(1));
	assert_true(may_open(f, a4(1)));
	free_fixture(f);
}

/* An old address that becomes current again is changed in one batch, without a gap. */
static void test_back_while_old(void **state)
{
	struct fixture *f = new_fixture(300, 4, 64);

	(void)state;
	ask(f, "a.example", 60, a4(1));
	f->open[f->n_open++] = a4(1);
	pass(f, 600, moved_to_2);
	assert_false(may_open(f, a4(1)));
	ask(f, "a.example", 60, a4(1));
	assert_true(may_open(f, a4(1)));
	assert_null(find(f, &f->open[0], 443, true));
	free_fixture(f);
}

/* Traffic to an address that is gone does not bring it back. Traffic to an unknown one adds
 * nothing. */
static void test_traffic_admits_nothing(void **state)
{
	struct fixture *f = new_fixture(300, 4, 64);
	struct sbx_addr stranger = a4(9);

	(void)state;
	ask(f, "a.example", 60, a4(1));
	sbx_resolved_pins_in_use(f->pins, &stranger, SBX_PROTO_TCP, 443, f->now_ms);
	pass(f, 900, gone);
	assert_false(may_go_on(f, a4(1)));
	f->open[0] = a4(1);
	sbx_resolved_pins_in_use(f->pins, &f->open[0], SBX_PROTO_TCP, 443, f->now_ms);
	sbx_resolved_pins_swept(f->pins, true, f->now_ms);
	pass(f, 5, gone);
	assert_false(may_go_on(f, a4(1)) || may_go_on(f, stranger));
	/* Traffic does not make current addresses last longer either. */
	ask(f, "b.example", 60, a4(3));
	f->open[0] = a4(3);
	f->n_open = 1;
	pass(f, 900, gone);
	assert_true(may_go_on(f, a4(3)) && !may_open(f, a4(3)));
	free_fixture(f);
}

static unsigned turn;

/* Eight of a hundred, others each time. */
static void rotating(struct fixture *f, const char *name)
{
	struct sbx_addr v[8];

	for (unsigned i = 0; i < 8; i++)
		v[i] = a4(100 + (turn * 8 + i) % 100);
	turn++;
	answer(f, name, 0, false, false, v, 8);
}

static void test_rotating(void **state)
{
	struct fixture *f = new_fixture(300, 4, 1024);

	(void)state;
	ask(f, "cdn.example", 0, a4(100));
	for (int i = 0; i < 400; i++) {
		struct sbx_addr given;

		/* The command can open an address as long as a program may keep the answer. */
		rotating(f, "cdn.example");
		given = f->told[3];
		assert_int_equal(f->n_told, 8);
		for (int k = 0; k < 3; k++) {
			pass(f, 99, rotating);
			assert_true(may_open(f, given));
		}
	}
	assert_true(sbx_resolved_pins_stats(f->pins).n_current <= 200);
	assert_int_equal(sbx_resolved_pins_stats(f->pins).limits_hit, 0);
	free_fixture(f);
}

static void test_partial(void **state)
{
	struct fixture *f = new_fixture(300, 4, 64);
	struct sbx_addr v[3] = { a4(1), a4(2), a4(3) };

	(void)state;
	answer(f, "a.example", 60, true, false, v, 3);
	pass(f, 59, NULL);
	/* An address that a truncated answer leaves out counts as seen now. */
	answer(f, "a.example", 60, true, true, v, 1);
	pass(f, SBX_RESOLVED_PINS_HOLD_MIN_S + 50, same_1);
	assert_true(may_open(f, a4(1)) && may_open(f, a4(2)) && may_open(f, a4(3)));
	pass(f, 2 * SBX_RESOLVED_PINS_HOLD_MIN_S, same_1);
	assert_true(may_open(f, a4(1)) && !may_open(f, a4(2)));
	free_fixture(f);
}

static void test_failing_resolver(void **state)
{
	struct fixture *f = new_fixture(300, 4, 64);

	(void)state;
	ask(f, "a.example", 60, a4(1));
	pass(f, SBX_RESOLVED_PINS_STALE_S, NULL);
	assert_true(may_open(f, a4(1)));
	/* A resolver that keeps failing does not keep the address for ever. */
	pass(f, 2 * SBX_RESOLVED_PINS_HOLD_MIN_S, NULL);
	assert_false(may_open(f, a4(1)));
	pass(f, 60, same_1);
	assert_true(may_open(f, a4(1)));
	/* NXDOMAIN is an answer: it ends the pins of the name. */
	pass(f, 2 * SBX_RESOLVED_PINS_HOLD_MIN_S, gone);
	assert_false(may_open(f, a4(1)));
	free_fixture(f);
}

static void test_blind_sweeps_cut_nothing(void **state)
{
	struct fixture *f = new_fixture(300, 4, 64);

	(void)state;
	ask(f, "a.example", 60, a4(1));
	f->open[f->n_open++] = a4(1);
	f->sweep_is_blind = 1;
	pass(f, 7200, moved_to_2);
	f->n_open = 0;
	f->sweep_is_blind = 0;
	pass(f, 300, moved_to_2);
	assert_false(may_go_on(f, a4(1)));
	free_fixture(f);
}

/* The broker stood still for an hour: no old address goes before the open sockets were read. */
static void test_stopped(void **state)
{
	struct fixture *f = new_fixture(300, 4, 64);

	(void)state;
	ask(f, "a.example", 60, a4(1));
	f->open[f->n_open++] = a4(1);
	pass(f, 600, moved_to_2);
	f->now_ms += 200 * S; /* the kernel's own time is longer */
	assert_true(may_go_on(f, a4(1)));
	sbx_resolved_pins_tick(f->pins, f->now_ms);
	apply(f, 64);
	assert_true(may_go_on(f, a4(1)));
	pass(f, 600, moved_to_2);
	/* The broker is dead: all pins run out in the kernel. */
	f->now_ms += 2000 * S;
	assert_false(may_go_on(f, a4(1)) || may_go_on(f, a4(2)));
	free_fixture(f);
}

static void test_never_pinned(void **state)
{
	static const char *const never[] = { "127.0.0.1",
					     "0.0.0.0",
					     "169.254.169.254",
					     "169.254.1.1",
					     "224.0.0.1",
					     "255.255.255.255",
					     "::1",
					     "::",
					     "fe80::1",
					     "ff02::1",
					     "::ffff:127.0.0.1",
					     "64:ff9b::a9fe:a9fe",
					     "fd00:ec2::254",
					     "66.1.2.3" };
	struct fixture *f = new_fixture(300, 4, 64);
	struct sbx_addr v[2] = { a4(1) };

	(void)state;
	for (size_t i = 0; i < sizeof(never) / sizeof(*never); i++) {
		assert_int_equal(sbx_addr_parse(never[i], &v[1]), 0);
		answer(f, "a.example", 60, true, false, v, 2);
		assert_int_equal(f->n_told, 1);
		assert_true(sbx_addr_equal(&f->told[0], &v[0]));
		assert_false(may_go_on(f, v[1]));
		assert_int_equal(sbx_resolved_pins_stats(f->pins).refused, i + 1);
	}
	assert_int_equal(sbx_addr_parse("10.1.2.3", &v[1]), 0); /* the policy's to say */
	answer(f, "a.example", 60, true, false, v, 2);
	assert_int_equal(f->n_told, 2);
	free_fixture(f);
}

static void test_limit_of_pins(void **state)
{
	struct fixture *f = new_fixture(300, 64, 8); /* four addresses, two ports each */

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		char name[16];

		snprintf(name, sizeof(name), "%u.example", i);
		ask(f, name, 60, a4(i));
		assert_int_equal(f->n_told, 1);
	}
	ask(f, "5.example", 60, a4(5));
	assert_int_equal(f->n_told, 0);
	assert_false(may_open(f, a4(5)));
	assert_true(may_open(f, a4(0)) && may_open(f, a4(3)));
	assert_true(sbx_resolved_pins_stats(f->pins).limits_hit > 0);
	/* Old ones make room. */
	pass(f, 600, gone);
	for (int i = 0; i < 3 && f->n_told == 0; i++)
		ask(f, "5.example", 60, a4(5));
	assert_int_equal(f->n_told, 1);
	free_fixture(f);
}

static void test_limit_of_names(void **state)
{
	struct fixture *f = new_fixture(300, 2, 64);

	(void)state;
	ask(f, "a.example", 60, a4(1));
	f->now_ms += S;
	ask(f, "b.example", 60, a4(2));
	f->now_ms += S;
	ask(f, "c.example", 60, a4(3)); /* a.example is no more followed; its pin lives its time */
	assert_int_equal(sbx_resolved_pins_stats(f->pins).n_names, 2);
	assert_true(may_open(f, a4(1)) && may_open(f, a4(2)) && may_open(f, a4(3)));
	for (int i = 0; i < 2; i++) {
		f->now_ms += 100 * S;
		for (const char *name; (name = sbx_resolved_pins_due(f->pins, f->now_ms));)
			assert_string_not_equal(name, "a.example");
	}
	/* A late answer for that name changes nothing: the other names are still followed. */
	same_1(f, "a.example");
	assert_int_equal(sbx_resolved_pins_stats(f->pins).limits_hit, 1);
	free_fixture(f);
}

static void test_limit_per_name(void **state)
{
	struct fixture *f = new_fixture(300, 4, 4096);
	struct sbx_addr mine = a4(1 << 16);

	(void)state;
	ask(f, "mine.example", 60, mine);
	for (unsigned i = 0; i < 1000; i++) {
		f->now_ms += 100;
		ask(f, "many.example", 0, a4(i));
	}
	assert_int_equal(f->n_told, 1);
	assert_int_equal(sbx_resolved_pins_stats(f->pins).n_current,
			 SBX_RESOLVED_PINS_PER_NAME_MAX + 2);
	assert_true(may_open(f, mine) && may_open(f, a4(999)) && !may_open(f, a4(0)));
	assert_true(may_go_on(f, a4(0)));
	free_fixture(f);
}

/* The name is given to the resolver once until there is an answer. After a useless answer it is
 * given again soon. */
static void test_due(void **state)
{
	struct fixture *f = new_fixture(300, 4, 64);

	(void)state;
	ask(f, "a.example", 45, a4(1));
	assert_true(sbx_resolved_pins_next_ms(f->pins) == f->now_ms + 45 * S);
	f->now_ms += 45 * S;
	assert_string_equal(sbx_resolved_pins_due(f->pins, f->now_ms), "a.example");
	assert_null(sbx_resolved_pins_due(f->pins, f->now_ms));
	sbx_resolved_pins_failed(f->pins, "a.example", f->now_ms);
	assert_null(sbx_resolved_pins_due(f->pins, f->now_ms));
	f->now_ms += SBX_RESOLVED_PINS_RETRY_S * S;
	assert_string_equal(sbx_resolved_pins_due(f->pins, f->now_ms), "a.example");
	sbx_resolved_pins_failed(f->pins, "b.example", f->now_ms); /* nobody's */
	free_fixture(f);
}

/* A change is never cut in two. A change that the kernel did not carry out is sent again. */
static void test_batches(void **state)
{
	struct fixture *f = new_fixture(300, 4, 256);
	struct sbx_addr v[40];

	(void)state;
	for (unsigned i = 0; i < 40; i++)
		v[i] = a4(i);
	answer(f, "a.example", 60, true, false, v, 40);
	f->now_ms += 400 * S;
	sbx_resolved_pins_tick(f->pins, f->now_ms);
	for (;;) {
		struct sbx_resolved_pins_change c[3];
		size_t n = sbx_resolved_pins_changes(f->pins, f->now_ms, c, 3);

		if (n == 0)
			break;
		assert_int_equal(n, 2);
		assert_true(!c[0].old && c[0].timeout_ms == 0 && c[1].old && c[1].timeout_ms);
		assert_true(sbx_addr_equal(&c[0].addr, &c[1].addr) && c[0].port == c[1].port);
	}
	/* None of that was carried out. */
	assert_true(may_open(f, a4(7)) && may_open(f, a4(39)));
	sbx_resolved_pins_forget_kernel(f->pins);
	apply(f, 64);
	assert_true(may_go_on(f, a4(7)) && !may_open(f, a4(7)));
	free_fixture(f);
}

/* Many random seeds: an address that was told may be opened for HOLD_MIN, and open flows go on. */
static void test_chance(void **state)
{
	(void)state;
	for (unsigned seed = 1; seed <= 60; seed++) {
		struct fixture *f = new_fixture(30 + seed * 7 % 600, 8, 512);
		struct sbx_addr told = a4(0);
		uint64_t told_ms = 0;

		srand(seed);
		for (int step = 0; step < 200; step++) {
			struct sbx_addr v[6];
			char name[16];
			size_t n = (size_t)rand() % 6;

			snprintf(name, sizeof(name), "%d.example", rand() % 4);
			for (size_t i = 0; i < n; i++)
				v[i] = a4((unsigned)rand() % 40);
			answer(f, name, (uint32_t)rand() % 400, true, rand() % 4 == 0, v, n);
			if (f->n_told) {
				told = f->told[0];
				told_ms = f->now_ms;
				f->open[f->n_open < 16 ? f->n_open++ : (size_t)rand() % 16] = told;
			}
			if (rand() % 5 == 0)
				f->n_open = 0;
			pass(f, (unsigned)rand() % 90, rand() % 3 ? same_1 : NULL);
			if (told_ms && f->now_ms < told_ms + SBX_RESOLVED_PINS_HOLD_MIN_S * S)
				assert_true(may_open(f, told));
		}
		assert_int_equal(sbx_resolved_pins_stats(f->pins).limits_hit, 0);
		free_fixture(f);
	}
}

/* --- another policy --- */

static size_t ports_now(void *userdata, const char *name, struct sbx_resolved_pins_port *ret_ports)
{
	size_t n = 0;

	(void)userdata;
	if (denied_name && (strcmp(denied_name, "*") == 0 || strcmp(denied_name, name) == 0))
		return 0;
	for (size_t i = 0; i < 2; i++)
		if (web[i].port != denied_port)
			ret_ports[n++] = web[i];
	return n;
}

/* The policy denies that; returns the number of pins that went. */
static size_t deny(struct fixture *f, const char *name, const struct sbx_addr *addr, uint16_t port)
{
	size_t n, again;

	denied_name = name;
	denied_addr = addr ? *addr : (struct sbx_addr){ 0 };
	denied_port = port;
	n = sbx_resolved_pins_judge_again(f->pins, ports_now, f->now_ms);
	apply(f, 64);
	again = sbx_resolved_pins_judge_again(f->pins, ports_now, f->now_ms);
	assert_int_equal(again, 0);
	return n;
}

static void allow_all(struct fixture *f)
{
	deny(f, NULL, NULL, 0);
	sbx_resolved_pins_pin_again(f->pins, f->now_ms);
	apply(f, 64);
}

static void never_asked(struct fixture *f, const char *name)
{
	(void)f;
	fail_msg("%s is resolved anew", name);
}

static void test_a_denied_name_loses_its_pins(void **state)
{
	struct fixture *f = new_fixture(300, 8, 64);
	struct sbx_addr shared[] = { a4(1), a4(3) }, own = a4(3);

	(void)state;
	answer(f, "a.example", 60, true, false, shared, 2);
	ask(f, "b.example", 60, a4(2));
	assert_int_equal(deny(f, NULL, NULL, 0), 0);
	assert_true(may_open(f, a4(1)) && may_open(f, a4(2)));
	assert_int_equal(deny(f, "a.example", NULL, 0), 4);
	assert_false(may_go_on(f, a4(1)) || may_go_on(f, a4(3)));
	assert_true(may_open(f, a4(2)));
	assert_false(sbx_resolved_pins_is_current(f->pins, "a.example", &own));
	denied_name = "b.example";
	assert_int_equal(deny(f, "*", NULL, 0), 2);
	/* Not resolved anew while it is denied, whatever comes late. */
	same_1(f, "c.example");
	sbx_resolved_pins_failed(f->pins, "a.example", f->now_ms);
	pass(f, 100, never_asked);
	/* Allowed again, its last answer counts while it is valid, and it is resolved at once. */
	allow_all(f);
	assert_true(may_open(f, a4(1)) && may_open(f, a4(2)) && may_open(f, a4(3)));
	assert_true(sbx_resolved_pins_is_current(f->pins, "a.example", &own));
	assert_true(sbx_resolved_pins_next_ms(f->pins) <= f->now_ms);
	deny(f, "*", NULL, 0);
	pass(f, 400, never_asked);
	allow_all(f);
	assert_false(may_go_on(f, a4(1)));
	pass(f, 1, same_1);
	assert_true(may_open(f, a4(1)));
	free_fixture(f);
}

/* An address that another allowed name has stays, for whichever of them was answered last. */
static void test_a_shared_address_stays(void **state)
{
	(void)state;
	for (int last = 0; last < 2; last++) {
		struct fixture *f = new_fixture(300, 8, 64);

		ask(f, last ? "a.example" : "b.example", 60, a4(1));
		f->now_ms += 20 * S;
		ask(f, last ? "b.example" : "a.example", 60, a4(1));
		assert_int_equal(deny(f, "a.example", NULL, 0), 0);
		assert_true(may_open(f, a4(1)));
		assert_int_equal(deny(f, "*", NULL, 0), 2);
		assert_false(may_go_on(f, a4(1)));
		assert_int_equal(sbx_resolved_pins_stats(f->pins).n_current, 0);
		allow_all(f);
		assert_true(may_open(f, a4(1)));
		free_fixture(f);
	}
}

static void test_ports_and_addresses_are_judged_again(void **state)
{
	struct fixture *f = new_fixture(300, 8, 64);
	struct sbx_addr v[] = { a4(1), a4(2) };

	(void)state;
	answer(f, "a.example", 60, true, false, v, 2);
	assert_int_equal(deny(f, NULL, &v[0], 0), 2);
	assert_false(may_go_on(f, v[0]));
	assert_true(may_open(f, v[1]));
	allow_all(f);
	assert_true(may_open(f, v[0]));
	assert_int_equal(deny(f, NULL, NULL, 80), 2);
	assert_true(may_open(f, v[0]) && !find(f, &v[0], 80, false));
	allow_all(f);
	assert_non_null(find(f, &v[0], 80, false));
	allow_all(f);
	free_fixture(f);
}

/* Old pins, which serve open flows, go too; so do pins whose names were all dropped. */
static void test_old_pins_and_lost_names(void **state)
{
	struct fixture *f = new_fixture(30, 2, 64);

	(void)state;
	ask(f, "a.example", 30, a4(1));
	f->open[f->n_open++] = a4(1);
	pass(f, SBX_RESOLVED_PINS_HOLD_MIN_S + 100, moved_to_2);
	assert_true(may_go_on(f, a4(1)) && !may_open(f, a4(1)));
	assert_int_equal(deny(f, NULL, NULL, 0), 0);
	assert_true(may_go_on(f, a4(1)));
	assert_int_equal(deny(f, "a.example", NULL, 0), 4);
	assert_false(may_go_on(f, a4(1)) || may_go_on(f, a4(2)));
	f->n_open = 0;
	allow_all(f);
	assert_true(may_open(f, a4(2)) && !may_go_on(f, a4(1)));
	ask(f, "b.example", 60, a4(7));
	f->now_ms += S;
	ask(f, "c.example", 60, a4(8)); /* a.example is dropped */
	assert_true(may_open(f, a4(2)));
	assert_int_equal(deny(f, "d.example", NULL, 0), 2);
	assert_false(may_go_on(f, a4(2)));
	assert_true(may_open(f, a4(7)) && may_open(f, a4(8)));
	free_fixture(f);
}

/* Whatever the policy denies by turns: what is in the kernel after a change is allowed by a name,
 * and the counts are right. */
static void test_policies_by_chance(void **state)
{
	(void)state;
	for (unsigned seed = 1; seed <= 40; seed++) {
		struct fixture *f = new_fixture(60, 4, 128);

		srand(seed);
		for (int step = 0; step < 100; step++) {
			struct sbx_addr v[4], denied = a4((unsigned)rand() % 12);
			static char name[16], out[16];

			for (size_t i = 0; i < 4; i++)
				v[i] = a4((unsigned)rand() % 12);
			snprintf(name, sizeof(name), "%d.example", rand() % 6);
			snprintf(out, sizeof(out), "%d.example", rand() % 6);
			if (!denied_name || strcmp(denied_name, name) != 0)
				answer(f, name, 30, true, false, v, (size_t)rand() % 5);
			pass(f, (unsigned)rand() % 60, rand() % 2 ? moved_to_2 : NULL);
			deny(f, rand() % 3 ? out : "*", rand() % 2 ? &denied : NULL, 0);
			assert_false(denied_addr.family && may_go_on(f, denied_addr));
			if (strcmp(denied_name, "*") == 0)
				assert_int_equal(sbx_resolved_pins_stats(f->pins).n_current +
							 sbx_resolved_pins_stats(f->pins).n_old, 0);
			sbx_resolved_pins_pin_again(f->pins, f->now_ms);
			apply(f, 64);
			assert_false(denied_addr.family && may_go_on(f, denied_addr));
			f->n_open = 0;
		}
		denied_name = NULL;
		denied_addr = (struct sbx_addr){ 0 };
		free_fixture(f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_an_answer_admits),
		cmocka_unit_test(test_held_while_the_name_has_it),
		cmocka_unit_test(test_moved),
		cmocka_unit_test(test_back_while_old),
		cmocka_unit_test(test_traffic_admits_nothing),
		cmocka_unit_test(test_rotating),
		cmocka_unit_test(test_partial),
		cmocka_unit_test(test_failing_resolver),
		cmocka_unit_test(test_blind_sweeps_cut_nothing),
		cmocka_unit_test(test_stopped),
		cmocka_unit_test(test_never_pinned),
		cmocka_unit_test(test_limit_of_pins),
		cmocka_unit_test(test_limit_of_names),
		cmocka_unit_test(test_limit_per_name),
		cmocka_unit_test(test_due),
		cmocka_unit_test(test_batches),
		cmocka_unit_test(test_chance),
		cmocka_unit_test(test_a_denied_name_loses_its_pins),
		cmocka_unit_test(test_a_shared_address_stays),
		cmocka_unit_test(test_ports_and_addresses_are_judged_again),
		cmocka_unit_test(test_old_pins_and_lost_names),
		cmocka_unit_test(test_policies_by_chance),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
