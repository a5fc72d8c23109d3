/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * bench_store STATE MIGRATIONS NOW_MS: what lists of a large database take, and what writing and
 * counting events takes beside it. bench/store.py fills the database; its newest event is of
 * NOW_MS. One line per list, "name first usual rows", in milliseconds: the first time, and the
 * median of five more.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "store/store.h"
#include "store/store_keep.h"
#include "store/store_list.h"
#include "store/store_service.h"

#define ROUNDS	  6
#define BATCHES	  41
#define BATCH	  256	/* events that a launcher writes at once, at most */
#define STEPS	  80	/* of counting, as the service does it */
#define LARGE	  4000	/* events of a step where many are not counted */
#define PAGE	  100
#define HOUR	  INT64_C(3600000)
#define WORKSPACE "team-5"

static struct sbx_store *store;
static struct sbx_err err;
static int64_t now_ms;

static double clock_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static int compare(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static double median(double *v, size_t n)
{
	qsort(v, n, sizeof(*v), compare);
	return v[n / 2];
}

static void check(int r, const char *what)
{
	if (r == 0)
		return;
	fprintf(stderr, "bench_store: %s: %s\n", what, err.msg);
	exit(1);
}

/* --- lists --- */

static int n_rows;

static int take_event(const struct sbx_store_event_row *e, void *userdata)
{
	(void)e;
	(void)userdata;
	n_rows++;
	return 0;
}

static int take_sandbox(const struct sbx_store_sandbox_row *s, void *userdata)
{
	(void)s;
	(void)userdata;
	n_rows++;
	return 0;
}

static int take_denies(const struct sbx_store_denies_row *d, void *userdata)
{
	(void)d;
	(void)userdata;
	n_rows++;
	return 0;
}

static int take_point(int64_t at_ms, int64_t count, void *userdata)
{
	(void)at_ms;
	(void)count;
	(void)userdata;
	n_rows++;
	return 0;
}

/* Times are hours before the newest event. */
struct events {
	const char *name;
	struct sbx_store_event_filter filter;
	int since, until;
};
#define E(...)                                                                                     \
	{                                                                                          \
		.n_max = PAGE, .newest_first = true, __VA_ARGS__                                   \
	}

static const struct events events[] = {
	{ "events", E(.before = 0), 0, 0 },
	{ "events_of_workspace", E(.workspace = WORKSPACE), 0, 0 },
	{ "events_of_no_workspace", E(.workspace = "none"), 0, 0 },
	{ "events_denied", E(.action = "deny"), 0, 0 },
	{ "events_panic", E(.action = "panic"), 0, 0 },
	{ "events_of_reason", E(.reason = "quota"), 0, 0 },
	{ "events_of_no_reason", E(.reason = "none"), 0, 0 },
	{ "events_of_three_filters",
	  E(.workspace = WORKSPACE, .action = "allow", .reason = "dns_refused"), 0, 0 },
	{ "events_of_owner", E(.by_owner = true, .owner_uid = 1001), 0, 0 },
	{ "events_since_1h", E(.before = 0), 1, 0 },
	{ "events_until_15d", E(.before = 0), 0, 360 },
	{ "events_15d_to_14d", E(.workspace = WORKSPACE), 360, 336 },
};

static int read_events(const struct events *q)
{
	struct sbx_store_event_filter filter = q->filter;
	int64_t next;

	filter.since_ms = q->since ? now_ms - q->since * HOUR : 0;
	filter.until_ms = q->until ? now_ms - q->until * HOUR : 0;
	return sbx_store_events_look(store, &filter, SBX_STORE_LOOK_IDS, take_event, NULL, &err,
				     &next);
}

static const struct sandboxes {
	const char *name;
	struct sbx_store_sandbox_filter filter;
} sandboxes[] = {
	{ "sandboxes", { .n_max = PAGE } },
	{ "sandboxes_live", { .live = true, .n_max = 1000 } },
	{ "sandboxes_of_state", { .state = "lost", .n_max = PAGE } },
	{ "sandboxes_of_no_state", { .state = "failed_policy", .n_max = PAGE } },
	{ "sandboxes_of_workspace", { .workspace = WORKSPACE, .n_max = PAGE } },
	{ "sandboxes_of_workspace_live", { .workspace = WORKSPACE, .live = true, .n_max = PAGE } },
	{ "sandboxes_of_owner", { .by_owner = true, .owner_uid = 1001, .n_max = PAGE } },
};

static const char *const by_words[] = { "address", "name", "sandbox", "workspace", "reason" };
static const struct window {
	const char *name;
	int hours;
	const char *workspace;
} windows[] = {
	{ "1h", 1, NULL },
	{ "24h", 24, NULL },
	{ "24h_of_workspace", 24, WORKSPACE },
	{ "7d", 168, NULL },
};

/* The window ends within an hour of a day, so that it is made of all spans. */
static int read_denials(int by, const struct window *w)
{
	const int64_t until_ms = now_ms - 10 * HOUR - 1234567;
	const struct sbx_store_denials_filter filter = { .since_ms = until_ms - w->hours * HOUR,
							 .until_ms = until_ms,
							 .workspace = w->workspace,
							 .now_ms = now_ms,
							 .n_max = PAGE };

	return sbx_store_denials_each(store, (enum sbx_store_denies_by)by, &filter, take_denies,
				      NULL, &err);
}

static int read_series(const char *name, bool by_minute)
{
	const struct sbx_store_denials_filter filter = {
		.since_ms = now_ms - (by_minute ? 24 : 168) * HOUR, .now_ms = now_ms
	};

	return sbx_store_denials_series(store, SBX_DENIES_BY_NAME, name, &filter,
					by_minute ? SBX_STORE_BY_MINUTE : SBX_STORE_BY_HOUR,
					take_point, NULL, &err);
}

#define MEASURE(call, ...)                                                                         \
	do {                                                                                       \
		double v[ROUNDS];                                                                  \
		for (int i = 0; i < ROUNDS; i++) {                                                 \
			n_rows = 0;                                                                \
			v[i] = clock_ms();                                                         \
			check(call, "a list");                                                     \
			v[i] = clock_ms() - v[i];                                                  \
		}                                                                                  \
		printf(__VA_ARGS__);                                                               \
		printf(" %.2f %.2f %d\n", v[0], median(v + 1, ROUNDS - 1), n_rows);                \
	} while (0)

static void read_all(void)
{
	for (size_t q = 0; q < SBX_N_ELEMENTS(events); q++)
		MEASURE(read_events(&events[q]), "%s", events[q].name);
	for (size_t q = 0; q < SBX_N_ELEMENTS(sandboxes); q++)
		MEASURE(sbx_store_sandboxes_each(store, &sandboxes[q].filter, take_sandbox, NULL,
						 &err),
			"%s", sandboxes[q].name);
	for (int by = 0; by < SBX_N_DENIES_BY; by++)
		for (size_t q = 0; q < SBX_N_ELEMENTS(windows); q++)
			MEASURE(read_denials(by, &windows[q]), "denials_by_%s_%s", by_words[by],
				windows[q].name);
	MEASURE(read_series(NULL, true), "series_of_all_24h");
	MEASURE(read_series("host1.example.com", true), "series_of_name_24h");
	MEASURE(read_series(NULL, false), "series_of_all_7d");
	MEASURE(read_series("host1.example.com", false), "series_of_name_7d");
}

/* --- writers --- */

/* Batches of refusals of a new sandbox: each of another name and address, or all the same. */
static void write_events(const char *name, const char *id, bool different)
{
	const struct sbx_store_sandbox s = {
		.id = id, .profile = "p", .command_json = "[]", .pid = 1, .workspace = WORKSPACE
	};
	static struct sbx_event v[BATCH];
	double took[BATCHES], before;

	check(sbx_store_sandbox_begin(store, &s, &err), "a sandbox");
	for (int b = 0; b < BATCHES; b++) {
		for (int i = 0; i < BATCH; i++) {
			char address[32];

			v[i] = (struct sbx_event){ .ts_ms = (uint64_t)now_ms,
						   .action = SBX_DENY,
						   .proto = SBX_PROTO_TCP,
						   .reason = SBX_REASON_DEFAULT_DENY,
						   .port = 443,
						   .count = 1 };
			snprintf(address, sizeof(address), "10.9.%d.%d", different ? b : 0,
				 different ? i : 0);
			sbx_addr_parse(address, &v[i].addr);
			snprintf(v[i].name, sizeof(v[i].name), "n%d.example.com",
				 different ? b * BATCH + i : 0);
		}
		before = clock_ms();
		check(sbx_store_events_add(store, id, NULL, v, BATCH, &err), "events");
		took[b] = clock_ms() - before;
	}
	before = took[0];
	printf("%s %.2f %.2f %d\n", name, before, median(took, BATCHES), BATCH);
}

static void count_events(void)
{
	double took[STEPS], first, before = clock_ms(), all;
	uint32_t n = LARGE;
	int steps = 0, n_large = 0;

	/* a database that nothing has counted yet */
	for (; n == LARGE; n_large++)
		check(sbx_store_count(store, now_ms, LARGE, &err, &n), "counting");
	all = clock_ms() - before;
	printf("count_%d_of_all %.2f %.2f %d\n", LARGE, all / n_large, all / n_large, n_large);
	write_events("write_256_different", "b00000000001", true);
	write_events("write_256_alike", "b00000000002", false);
	for (n = SBX_STORE_COUNT_BATCH; n == SBX_STORE_COUNT_BATCH && steps < STEPS; steps++) {
		took[steps] = clock_ms();
		check(sbx_store_count(store, now_ms, SBX_STORE_COUNT_BATCH, &err, &n), "counting");
		took[steps] = clock_ms() - took[steps];
	}
	first = took[0];
	printf("count_250 %.2f %.2f %d\n", first, median(took, (size_t)steps),
	       SBX_STORE_COUNT_BATCH);
	while (n > 0)
		check(sbx_store_count(store, now_ms, LARGE, &err, &n), "counting");
}

int main(int argc, char **argv)
{
	if (argc != 4) {
		fprintf(stderr, "usage: bench_store STATE MIGRATIONS NOW_MS\n");
		return 2;
	}
	now_ms = strtoll(argv[3], NULL, 10);
	check(sbx_store_open(argv[1], argv[2], &err, &store), "opening it");
	count_events();
	read_all();
	sbx_store_close(store);
	return 0;
}
