/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Samples of many sandboxes: how many launchers are asked at once, how often, and for how long. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "daemon/hub/sample.h"
#include "sys/process/proc.h"
#include "tests/unit/scratch.h"

#define N 100 /* sandboxes */

static const char answer[] = "{\"v\":1,\"ok\":true,\"usage\":{\"cpu_us\":7}}\n";

/* A launcher that answers at once, or only counts. */
struct launcher {
	struct world *world;
	struct event *event;
	char id[13];
	int fd, n_asked;
};

struct world {
	char dir[32];
	struct event_base *base;
	struct sbx_sampler *sampler;
	bool answers;
	int n_asked, clients[16 * N];
	struct launcher v[N];
};

static void on_client(evutil_socket_t fd, short what, void *userdata)
{
	struct launcher *l = userdata;
	int client = accept4(fd, NULL, NULL, SOCK_CLOEXEC);

	(void)what;
	assert_true(client >= 0);
	assert_true(l->world->n_asked < 16 * N);
	l->world->clients[l->world->n_asked++] = client;
	l->n_asked++;
	if (l->world->answers)
		assert_int_equal(write(client, answer, strlen(answer)), strlen(answer));
}

static void launcher_init(struct launcher *l, struct world *w, int i)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	char dir[64];

	l->world = w;
	snprintf(l->id, sizeof(l->id), "%012x", i);
	snprintf(dir, sizeof(dir), "%s/%s", w->dir, l->id);
	assert_int_equal(mkdir(dir, 0700), 0);
	snprintf(a.sun_path, sizeof(a.sun_path), "%s/control.sock", dir);
	l->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	assert_int_equal(bind(l->fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(listen(l->fd, 16), 0);
	l->event = event_new(w->base, l->fd, EV_READ | EV_PERSIST, on_client, l);
	assert_int_equal(event_add(l->event, NULL), 0);
}

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	*state = w;
	strcpy(w->dir, "/tmp/sbx-sample-XXXXXX");
	if (!mkdtemp(w->dir))
		return -1;
	w->base = event_base_new();
	for (int i = 0; i < N; i++)
		launcher_init(&w->v[i], w, i);
	return sbx_sampler_new(w->base, w->dir, &w->sampler);
}

static int teardown(void **state)
{
	struct world *w = *state;

	for (int i = 0; i < w->n_asked; i++)
		close(w->clients[i]);
	for (int i = 0; i < N; i++) {
		event_free(w->v[i].event);
		close(w->v[i].fd);
	}
	/* those that still ask hear that the launchers are gone */
	event_base_loop(w->base, EVLOOP_NONBLOCK);
	sbx_sampler_free(w->sampler);
	event_base_free(w->base);
	scratch_remove(w->dir);
	free(w);
	return 0;
}

static void turn(struct world *w, int ms)
{
	struct timeval t = { .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 };

	event_base_loopexit(w->base, &t);
	event_base_dispatch(w->base);
}

static int n_known(struct world *w)
{
	int n = 0;

	for (int i = 0; i < N; i++)
		n += sbx_sampler_get(w->sampler, w->v[i].id) != NULL;
	return n;
}

static void test_asked_in_turn(void **state)
{
	struct world *w = *state;

	w->answers = true;
	turn(w, 200);
	assert_int_equal(w->n_asked, 0); /* nobody looks */
	assert_int_equal(n_known(w), 0);
	turn(w, 1000);
	assert_int_equal(n_known(w), N);
	assert_int_equal(w->n_asked, N);
	assert_int_equal(json_integer_value(json_object_get(sbx_sampler_get(w->sampler, w->v[3].id),
							    "cpu_us")),
			 7);
	turn(w, 500);
	assert_int_equal(w->n_asked, N); /* not again so soon */
	turn(w, SBX_SAMPLE_EVERY_MS);
	for (int i = 0; i < N; i++)
		assert_int_equal(w->v[i].n_asked, 2);
}

static void test_so_many_at_once(void **state)
{
	struct world *w = *state;

	assert_int_equal(n_known(w), 0);
	turn(w, 1000);
	assert_int_equal(w->n_asked, SBX_SAMPLE_AT_ONCE);
	for (int i = 0; i < SBX_SAMPLE_AT_ONCE; i++)
		assert_int_equal(write(w->clients[i], answer, strlen(answer)), strlen(answer));
	w->answers = true;
	turn(w, 1000);
	assert_int_equal(n_known(w), N);
	assert_int_equal(w->n_asked, N);
}

static void test_a_launcher_that_is_gone(void **state)
{
	struct world *w = *state;
	char path[64];

	w->answers = true;
	snprintf(path, sizeof(path), "%s/%s/control.sock", w->dir, w->v[0].id);
	assert_int_equal(unlink(path), 0);
	n_known(w);
	turn(w, 1000);
	assert_int_equal(n_known(w), N - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_asked_in_turn, setup, teardown),
		cmocka_unit_test_setup_teardown(test_so_many_at_once, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_launcher_that_is_gone, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
