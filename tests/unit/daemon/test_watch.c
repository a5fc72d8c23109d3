/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Followers of events: live, behind, slow. */
#include "tests/unit/store_world.h"

#include "base/cleanup.h"
#include "daemon/hub/watch.h"

#define QUEUE 4096 /* bytes */

/* A client whose queue is emptied when the test says so. */
struct client {
	struct sbx_follower *follower;
	size_t waiting;
	int64_t *ids; /* borrowed: events that came */
	size_t n, n_max;
	int64_t lost;
	const char *name; /* it wants these alone; NULL: all */
};

struct world {
	struct fixture *f;
	struct event_base *base;
	struct sbx_store *store;
	struct sbx_watch *watch;
	size_t n_printed;
};

static struct world *here; /* for print() */

static char *print(const struct sbx_store_event_row *e)
{
	here->n_printed++;
	return strdup(e->name);
}

static bool wants(const struct sbx_store_event_row *e, void *userdata)
{
	const struct client *c = userdata;

	return !c->name || strcmp(c->name, e->name) == 0;
}

static int send_event(const char *type, const char *id, const char *data, void *userdata)
{
	struct client *c = userdata;

	if (c->waiting + 40 > QUEUE)
		return -ENOBUFS;
	c->waiting += 40;
	if (type) {
		assert_string_equal(type, "lost");
		c->lost += atoll(strchr(data, ':') + 1);
	} else {
		assert_true(c->n < c->n_max);
		c->ids[c->n++] = atoll(id);
	}
	return 0;
}

static size_t waiting(void *userdata)
{
	const struct client *c = userdata;

	return c->waiting;
}

static void follow(struct world *w, struct client *c, size_t n_max, int64_t after)
{
	struct sbx_follow follow = {
		.wants = wants,
		.send = send_event,
		.waiting = waiting,
		.queue_max = QUEUE,
		.userdata = c,
		.filter.name = c->name,
	};

	c->ids = calloc(n_max, sizeof(*c->ids));
	c->n_max = n_max;
	assert_int_equal(sbx_watch_follow(w->watch, &follow, after, &c->follower, &w->f->err), 0);
}

static void leave(struct client *c)
{
	sbx_watch_leave(c->follower);
	free(c->ids);
}

static void put(struct world *w, size_t n, const char *name)
{
	char sql[512];

	snprintf(sql, sizeof(sql),
		 "WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < %zu) "
		 "INSERT INTO sandbox_egress_event (sandbox_id, ts, action, protocol, fqdn_pinned, "
		 "reason, raw_pkts) SELECT '" ID "', '2026-01-01T00:00:00.000Z', 'deny', 'tcp', "
		 "'%s', 'floor', 1 FROM c",
		 n, name);
	query(w->f, sql);
}

/* Turns the loop for @ms. The clients that read take what there is. */
static void run(struct world *w, int ms, struct client **readers, size_t n)
{
	for (int i = 0; i < ms; i++) {
		struct timeval t = { .tv_usec = 1000 };

		event_base_loopexit(w->base, &t);
		event_base_dispatch(w->base);
		for (size_t k = 0; k < n; k++)
			readers[k]->waiting = 0;
	}
}

static struct world *world_new(struct fixture *f)
{
	struct world *w = calloc(1, sizeof(*w));

	here = w;
	w->f = f;
	w->store = open_store(f);
	assert_int_equal(begin(w->store, ID, &f->err), 0);
	w->base = event_base_new();
	assert_int_equal(sbx_watch_new(w->base, w->store, print, &w->watch), 0);
	return w;
}

static void world_free(struct world *w)
{
	sbx_watch_free(w->watch);
	event_base_free(w->base);
	sbx_store_close(w->store);
	free(w);
}

static void assert_all(const struct client *c, int64_t first, size_t n)
{
	assert_int_equal(c->n, n);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(c->ids[i], first + (int64_t)i);
}

/* A row is printed once for all. */
static void test_live(void **state)
{
	struct world *w = world_new(*state);
	struct client a = { 0 }, b = { 0 }, picky = { .name = "y" };
	struct client *all[] = { &a, &b, &picky };
	size_t n_behind;

	put(w, 3, "x");
	follow(w, &a, 100, -1);
	follow(w, &b, 100, -1);
	follow(w, &picky, 100, -1);
	run(w, 60, all, 3);
	assert_int_equal(a.n, 0);
	put(w, 5, "x");
	put(w, 1, "y");
	run(w, 100, all, 3);
	assert_all(&a, 4, 6);
	assert_all(&b, 4, 6);
	assert_all(&picky, 9, 1);
	assert_int_equal(w->n_printed, 6);
	assert_int_equal(sbx_watch_n_followers(w->watch, &n_behind), 3);
	assert_int_equal(n_behind, 0);
	leave(&a);
	leave(&b);
	leave(&picky);
	/* nobody follows: nothing is looked at */
	assert_int_equal(event_base_get_num_events(w->base, EVENT_BASE_COUNT_ADDED), 0);
	world_free(w);
}

/* One that begins far behind gets every row once, also those that come meanwhile. */
static void test_behind(void **state)
{
	struct world *w = world_new(*state);
	struct client a = { 0 }, live = { 0 }, picky = { .name = "y" };
	struct client *all[] = { &a, &live, &picky };

	put(w, 1, "y");
	put(w, 998, "x");
	put(w, 1, "y");
	follow(w, &live, 1000, -1);
	follow(w, &a, 2000, 0);
	follow(w, &picky, 10, 0);
	for (int i = 0; i < 20; i++) {
		run(w, 3, all, 3);
		put(w, 10, "x");
	}
	put(w, 1, "y");
	run(w, 300, all, 3);
	assert_all(&a, 1, 1201);
	assert_all(&live, 1001, 201);
	assert_int_equal(picky.n, 3);
	assert_int_equal(picky.ids[1], 1000);
	assert_int_equal(picky.ids[2], 1201);
	leave(&a);
	leave(&live);
	leave(&picky);
	world_free(w);
}

/* One that does not read gets nothing more than its queue takes, and the rest when it reads again.
 * The others are not concerned. */
static void test_slow(void **state)
{
	struct world *w = world_new(*state);
	struct client slow = { 0 }, live = { 0 };
	struct client *readers[] = { &live }, *all[] = { &live, &slow };
	size_t n_behind;

	follow(w, &slow, 2000, -1);
	follow(w, &live, 2000, -1);
	for (int i = 0; i < 20; i++) {
		put(w, 50, "x");
		run(w, 40, readers, 1);
	}
	run(w, 100, readers, 1);
	assert_all(&live, 1, 1000);
	assert_true(slow.n >= QUEUE / 2 / 40 && slow.n <= QUEUE / 40);
	sbx_watch_n_followers(w->watch, &n_behind);
	assert_int_equal(n_behind, 1);
	run(w, 1500, all, 2);
	assert_all(&slow, 1, 1000);
	sbx_watch_n_followers(w->watch, &n_behind);
	assert_int_equal(n_behind, 0);
	assert_int_equal(slow.lost, 0);
	leave(&slow);
	leave(&live);
	world_free(w);
}

/* One that is too far behind is told how many rows it does not get. */
static void test_lost(void **state)
{
	struct world *w = world_new(*state);
	struct client slow = { 0 };
	struct client *all[] = { &slow };
	size_t before;

	follow(w, &slow, 2000, -1);
	put(w, SBX_WATCH_BEHIND_MAX + 1000, "x");
	run(w, 300, NULL, 0);
	before = slow.n;
	assert_int_equal(slow.lost, 0);
	run(w, 300, all, 1);
	assert_int_equal(slow.lost + (int64_t)slow.n, SBX_WATCH_BEHIND_MAX + 1000);
	assert_int_equal(slow.n, before);
	put(w, 1, "x");
	run(w, 100, all, 1);
	assert_int_equal(slow.n, before + 1);
	assert_int_equal(slow.ids[before], SBX_WATCH_BEHIND_MAX + 1001);
	leave(&slow);
	world_free(w);
}

int main(void)
{
#define T(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
	const struct CMUnitTest tests[] = { T(test_live), T(test_behind), T(test_slow),
					    T(test_lost) };

	return cmocka_run_group_tests_name("watch", tests, NULL, NULL);
}
