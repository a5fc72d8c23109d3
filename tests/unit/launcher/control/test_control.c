/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The control socket in a loop of its own: order, late answers, followers, limits, deadlines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "control/client.h"
#include "launcher/control/control.h"
#include "launcher/control/session.h"
#include "sys/process/proc.h"
#include "tests/unit/scratch.h"

#define ID	   "aa0000000001"
#define TIMEOUT_MS 5000

struct world {
	char top[32];
	struct sbx_watches watches;
	struct sbx_control *c;
	struct sbx_control_token later; /* of the last `later` or `hold` */
	int n_gone, n_echo, dir_fd;
	size_t n_fds; /* of the last `take` */
};

static void op_echo(void *userdata, struct sbx_control_request *rq)
{
	struct world *w = userdata;

	sbx_control_answer(w->c, rq->token, json_pack("{s:i}", "n", ++w->n_echo));
}

static void op_later(void *userdata, struct sbx_control_request *rq)
{
	struct world *w = userdata;

	w->later = rq->token;
}

static void op_hold(void *userdata, struct sbx_control_request *rq)
{
	struct world *w = userdata;

	w->later = rq->token;
	sbx_control_hold(w->c, rq->token);
	sbx_control_answer(w->c, rq->token, NULL);
}

static void op_follow(void *userdata, struct sbx_control_request *rq)
{
	struct world *w = userdata;
	const json_t *since = json_object_get(rq->body, "since");

	sbx_control_answer(w->c, rq->token, NULL);
	sbx_control_follow(w->c, rq->token,
			   since ? (uint64_t)json_integer_value(since) : UINT64_MAX);
}

static void op_take(void *userdata, struct sbx_control_request *rq)
{
	struct world *w = userdata;

	w->n_fds = rq->n_fds;
	sbx_control_answer(w->c, rq->token, NULL);
}

static void op_large(void *userdata, struct sbx_control_request *rq)
{
	struct world *w = userdata;
	json_int_t n = json_integer_value(json_object_get(rq->body, "bytes"));
	SBX_AUTO_FREE char *text = malloc((size_t)n + 1);

	assert_non_null(text);
	memset(text, 'x', (size_t)n);
	text[n] = '\0';
	sbx_control_answer(w->c, rq->token, json_pack("{s:s}", "text", text));
}

static const struct sbx_control_op ops[] = {
	{ .name = "echo", .handle = op_echo },
	{ .name = "later", .handle = op_later },
	{ .name = "hold", .stays = true, .handle = op_hold },
	{ .name = "follow",
	  .stays = true,
	  .fields = { { "since", SBX_CONTROL_NUMBER, false } },
	  .handle = op_follow },
	{ .name = "take", .n_fds = 2, .handle = op_take },
	{ .name = "large",
	  .fields = { { "bytes", SBX_CONTROL_NUMBER, true } },
	  .handle = op_large },
};

static void on_gone(void *userdata, struct sbx_control_token t)
{
	struct world *w = userdata;

	w->n_gone += t.serial == w->later.serial;
}

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	struct sbx_control_config config = { .watches = &w->watches,
					     .owner = getuid(),
					     .caller = getuid(),
					     .ops = ops,
					     .n_ops = SBX_N_ELEMENTS(ops),
					     .gone = on_gone,
					     .userdata = w };
	struct sbx_err err = { 0 };
	char dir[64];

	*state = w;
	strcpy(w->top, "/tmp/sbx-control-XXXXXX");
	if (!mkdtemp(w->top))
		return -1;
	sbx_text_fit(dir, sizeof(dir), "%s/" ID, w->top);
	if (mkdir(dir, 0700) < 0)
		return -1;
	config.dir_fd = w->dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return sbx_control_open(&config, &w->c, &err);
}

static int teardown(void **state)
{
	struct world *w = *state;

	assert_int_equal(faccessat(w->dir_fd, SBX_CONTROL_SOCKET, F_OK, 0), 0);
	w->c = sbx_control_close(w->c);
	assert_int_equal(faccessat(w->dir_fd, SBX_CONTROL_SOCKET, F_OK, 0), -1);
	sbx_fd_close(w->dir_fd);
	for (size_t i = 0; i < w->watches.n; i++)
		assert_null(w->watches.v[i].fn);
	scratch_remove(w->top);
	free(w);
	return 0;
}

/* Runs the loop until nothing happens for @idle_ms. */
static void loop(struct world *w, int idle_ms)
{
	for (;;) {
		struct pollfd p[SBX_WATCHES_MAX];
		size_t n = sbx_watches_fill(&w->watches, p);
		uint64_t next = sbx_watches_next_us(&w->watches);
		bool due = next && next <= sbx_clock_monotonic_us();

		if (poll(p, n, due ? 0 : idle_ms) == 0 && !due)
			return;
		sbx_watches_act(&w->watches, p, n, sbx_clock_monotonic_us());
	}
}

static struct sbx_control_client *client(struct world *w)
{
	struct sbx_control_client *c;
	struct sbx_err err = { 0 };

	if (sbx_control_connect(w->top, ID, TIMEOUT_MS, &c, &err) != 0)
		fail_msg("%s", err.msg);
	return c;
}

static void ask(struct sbx_control_client *c, const char *line)
{
	assert_int_equal(send(sbx_control_fd(c), line, strlen(line), MSG_NOSIGNAL), strlen(line));
}

/* The member @name of the next line, which is here; -1: it has none; -2: there is no line. */
static json_int_t next(struct sbx_control_client *c, const char *name)
{
	struct sbx_err err = { 0 };
	json_t *line, *member;
	json_int_t n = -1;

	if (sbx_control_receive(c, 0, &line, &err) != 0)
		return -2;
	member = json_object_get(line, name);
	if (json_is_boolean(member))
		n = json_is_true(member);
	else if (member)
		n = json_integer_value(member);
	json_decref(line);
	return n;
}

static void test_answers_in_their_order(void **state)
{
	struct world *w = *state;
	struct sbx_control_client *c = client(w);

	ask(c, "{\"v\":1,\"op\":\"echo\"}\n{\"v\":1,\"op\":\"later\"}\n{\"v\":1,\"op\":\"echo\"}"
	       "\nx\n");
	loop(w, 10);
	assert_int_equal(next(c, "n"), 1);
	assert_int_equal(next(c, "n"), -2); /* the second is open, so the third waits */
	assert_int_equal(w->n_echo, 1);
	sbx_control_answer(w->c, w->later, json_pack("{s:i}", "n", 7));
	sbx_control_answer(w->c, w->later, json_pack("{s:i}", "n", 8)); /* once is enough */
	loop(w, 10);
	assert_int_equal(next(c, "n"), 7);
	assert_int_equal(next(c, "n"), 2);
	assert_int_equal(next(c, "ok"), 0);
	assert_int_equal(next(c, "ok"), -2);
	sbx_control_disconnect(c);
	loop(w, 10);
}

/* The answer for a client that went away reaches nobody, also where another has its place. */
static void test_late_answers(void **state)
{
	struct world *w = *state;
	struct sbx_control_client *c = client(w), *d;

	ask(c, "{\"v\":1,\"op\":\"later\"}\n");
	loop(w, 10);
	sbx_control_disconnect(c);
	loop(w, 10);
	assert_int_equal(w->watches.n, 1);
	sbx_control_answer(w->c, w->later, NULL);
	d = client(w);
	ask(d, "{\"v\":1,\"op\":\"echo\"}\n");
	loop(w, 10);
	sbx_control_answer(w->c, w->later, json_pack("{s:i}", "n", 7));
	sbx_control_refuse(w->c, w->later, SBX_CONTROL_BUSY, NULL, "no");
	sbx_control_tell(w->c, w->later, "exit", json_object());
	sbx_control_hold(w->c, w->later);
	sbx_control_release(w->c, w->later);
	sbx_control_follow(w->c, w->later, 0);
	sbx_control_answer(w->c, (struct sbx_control_token){ 0 }, NULL);
	sbx_control_answer(w->c, (struct sbx_control_token){ 99, 99 }, NULL);
	loop(w, 10);
	assert_int_equal(next(d, "n"), 1);
	assert_int_equal(next(d, "n"), -2);
	sbx_control_disconnect(d);
	loop(w, 10);
}

static void test_held_sessions(void **state)
{
	struct world *w = *state;
	struct sbx_control_client *c = client(w);

	ask(c, "{\"v\":1,\"op\":\"hold\"}\n");
	loop(w, 10);
	sbx_control_tell(w->c, w->later, "exit", json_pack("{s:i}", "status", 3));
	assert_int_equal(next(c, "ok"), 1);
	assert_int_equal(next(c, "status"), 3);
	/* it asks no more, and still waits */
	shutdown(sbx_control_fd(c), SHUT_WR);
	loop(w, 10);
	assert_int_equal(w->n_gone, 0);
	sbx_control_tell(w->c, w->later, "exit", json_pack("{s:i}", "status", 4));
	assert_int_equal(next(c, "status"), 4);
	sbx_control_release(w->c, w->later);
	loop(w, 10);
	assert_int_equal(w->n_gone, 0); /* ended by itself: it was not held any more */
	assert_int_equal(w->watches.n, 1);
	sbx_control_disconnect(c);

	c = client(w);
	ask(c, "{\"v\":1,\"op\":\"hold\"}\n");
	loop(w, 10);
	sbx_control_disconnect(c);
	loop(w, 10);
	assert_int_equal(w->n_gone, 1);
}

static void event(struct world *w, const char *name)
{
	struct sbx_event e = { .count = 1, .reason = SBX_REASON_LIST_DENY };

	sbx_text_fit(e.name, sizeof(e.name), "%s", name);
	sbx_control_event(w->c, &e);
}

static void test_since(void **state)
{
	struct world *w = *state;
	struct sbx_control_client *c;

	for (int i = 0; i < SBX_CONTROL_EVENTS_KEPT + 10; i++)
		event(w, "x.test");
	event(w, "\xff\x1b.test"); /* no UTF-8: escaped, and not lost */
	c = client(w);
	ask(c, "{\"v\":1,\"op\":\"follow\",\"since\":0}\n");
	loop(w, 10);
	assert_int_equal(next(c, "ok"), 1);
	assert_int_equal(next(c, "count"), 11); /* lost */
	for (int i = 12; i <= SBX_CONTROL_EVENTS_KEPT + 11; i++) {
		json_int_t id = next(c, "id");

		if (id == -2) { /* the client was full */
			loop(w, 10);
			id = next(c, "id");
		}
		assert_int_equal(id, i);
	}
	sbx_control_disconnect(c);

	c = client(w);
	ask(c, "{\"v\":1,\"op\":\"follow\"}\n");
	loop(w, 10);
	assert_int_equal(next(c, "ok"), 1);
	assert_int_equal(next(c, "id"), -2);
	event(w, "y.test");
	loop(w, 10);
	assert_int_equal(next(c, "id"), SBX_CONTROL_EVENTS_KEPT + 12);
	sbx_control_disconnect(c);
	loop(w, 10);
}

/* A follower that does not read for 20,000 events gets each, or it is counted. */
static void test_a_slow_follower(void **state)
{
	struct world *w = *state;
	struct sbx_control_client *c = client(w);
	json_int_t seen = 0, lost = 0, last = 0;
	struct sbx_err err = { 0 };
	json_t *line;

	ask(c, "{\"v\":1,\"op\":\"follow\"}\n");
	loop(w, 10);
	for (int i = 0; i < 20000; i++) {
		event(w, "x.test");
		if (i % 100 == 0)
			loop(w, 0);
	}
	assert_int_equal(next(c, "ok"), 1);
	for (int i = 0; i < 1000 && last < 20000; i++) {
		loop(w, 0);
		while (sbx_control_receive(c, 0, &line, &err) == 0) {
			json_int_t id = json_integer_value(json_object_get(line, "id"));
			json_int_t count = json_integer_value(json_object_get(line, "count"));

			if (id) {
				assert_int_equal(id, last + 1);
				seen++;
			} else {
				lost += count;
			}
			last += id ? 1 : count;
			json_decref(line);
		}
	}
	assert_int_equal(last, 20000);
	assert_true(lost > 10000);
	assert_true(seen >= SBX_CONTROL_EVENTS_KEPT);
	sbx_control_disconnect(c);
	loop(w, 10);
}

static void test_descriptors(void **state)
{
	struct world *w = *state;
	struct sbx_control_client *c = client(w);
	struct sbx_err err = { 0 };
	const int fds[] = { 0, 0 };

	ask(c, "{\"v\":1,\"op\":\"echo\"}\n");
	assert_int_equal(sbx_control_send(c, json_pack("{s:s}", "op", "take"), fds, 2, &err), 0);
	ask(c, "{\"v\":1,\"op\":\"echo\"}\n");
	loop(w, 10);
	assert_int_equal(w->n_fds, 2);
	assert_int_equal(next(c, "n"), 1);
	assert_int_equal(next(c, "ok"), 1);
	assert_int_equal(next(c, "n"), 2);
	assert_int_equal(sbx_control_send(c, json_pack("{s:s}", "op", "echo"), fds, 1, &err), 0);
	loop(w, 10);
	assert_int_equal(next(c, "ok"), 0);
	sbx_control_disconnect(c);
	loop(w, 10);
}

static void test_the_largest_answer(void **state)
{
	struct world *w = *state;
	struct sbx_control_client *c = client(w);
	struct sbx_err err = { 0 };
	json_t *line = NULL;

	ask(c, "{\"v\":1,\"op\":\"large\",\"bytes\":262000}\n");
	for (int i = 0; i < 100 && !line; i++) {
		loop(w, 1);
		sbx_control_receive(c, 0, &line, &err);
	}
	assert_int_equal(json_string_length(json_object_get(line, "text")), 262000);
	json_decref(line);
	/* one that does not fit is our own bug, and ends the session */
	ask(c, "{\"v\":1,\"op\":\"large\",\"bytes\":262144}\n");
	loop(w, 10);
	assert_int_equal(sbx_control_receive(c, TIMEOUT_MS, &line, &err), SBX_CONTROL_E_GONE);
	sbx_control_disconnect(c);
}

static void test_the_clients_limit(void **state)
{
	struct world *w = *state;
	struct sbx_control_client *c[SBX_CONTROL_CLIENTS_MAX + 1];

	for (size_t i = 0; i < SBX_N_ELEMENTS(c); i++) {
		c[i] = client(w);
		loop(w, 1);
		if (i < SBX_CONTROL_CLIENTS_MAX)
			ask(c[i], "{\"v\":1,\"op\":\"echo\"}\n");
	}
	loop(w, 10);
	for (size_t i = 0; i < SBX_CONTROL_CLIENTS_MAX; i++)
		assert_int_equal(next(c[i], "ok"), 1);
	assert_int_equal(next(c[SBX_CONTROL_CLIENTS_MAX], "ok"), 0);
	sbx_control_disconnect(c[SBX_CONTROL_CLIENTS_MAX]);
	/* one goes, and there is room */
	sbx_control_disconnect(c[0]);
	loop(w, 10);
	c[0] = client(w);
	ask(c[0], "{\"v\":1,\"op\":\"echo\"}\n");
	loop(w, 10);
	assert_int_equal(next(c[0], "ok"), 1);
	for (size_t i = 0; i < SBX_CONTROL_CLIENTS_MAX; i++)
		sbx_control_disconnect(c[i]);
	loop(w, 10);
	assert_int_equal(w->watches.n, 1);
}

/* Clients that stay connected leave places for requests. */
static void test_places_for_requests(void **state)
{
	struct world *w = *state;
	struct sbx_control_client *c[SBX_CONTROL_STAY_MAX], *other;

	for (size_t i = 0; i < SBX_N_ELEMENTS(c); i++) {
		c[i] = client(w);
		ask(c[i], i % 2 ? "{\"v\":1,\"op\":\"hold\"}\n" :
				  "{\"v\":1,\"op\":\"follow\",\"since\":0}\n");
		loop(w, 2);
		assert_int_equal(next(c[i], "ok"), 1);
	}
	other = client(w);
	ask(other, "{\"v\":1,\"op\":\"hold\"}\n");
	ask(other, "{\"v\":1,\"op\":\"follow\"}\n");
	ask(other, "{\"v\":1,\"op\":\"echo\"}\n");
	loop(w, 10);
	assert_int_equal(next(other, "ok"), 0);
	assert_int_equal(next(other, "ok"), 0);
	assert_int_equal(next(other, "ok"), 1);
	/* one that stays already may ask again */
	ask(c[0], "{\"v\":1,\"op\":\"follow\",\"since\":0}\n");
	loop(w, 10);
	assert_int_equal(next(c[0], "ok"), 1);
	/* one goes, and another may stay */
	sbx_control_disconnect(c[0]);
	loop(w, 10);
	ask(other, "{\"v\":1,\"op\":\"follow\",\"since\":0}\n");
	loop(w, 10);
	assert_int_equal(next(other, "ok"), 1);
	sbx_control_disconnect(other);
	for (size_t i = 1; i < SBX_N_ELEMENTS(c); i++)
		sbx_control_disconnect(c[i]);
	loop(w, 10);
	assert_int_equal(w->watches.n, 1);
}

/* --- one session, at chosen times --- */

static void test_deadlines(void **state)
{
	struct sbx_control_session s;
	struct sbx_watches watches = { 0 };
	struct sbx_span line;
	size_t n_fds;
	int sv[2], size = 4096;
	char *big;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, sv), 0);
	setsockopt(sv[1], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	sbx_control_session_init(&s, sv[1], 1);
	s.watch = sbx_watch_add(&watches, s.fd, POLLIN, NULL, NULL);
	sbx_control_session_watch(&s, 1000);
	assert_int_equal(s.watch->at_us, 0);
	/* a line begins; more bytes of it give no more time */
	assert_int_equal(send(sv[0], "ab", 2, 0), 2);
	assert_int_equal(sbx_control_session_read(&s, 1000), 0);
	assert_int_equal(send(sv[0], "cd", 2, 0), 2);
	assert_int_equal(sbx_control_session_read(&s, 2000), 0);
	assert_int_equal(sbx_control_session_next(&s, &line, &n_fds), 0);
	sbx_control_session_watch(&s, 2000);
	assert_int_equal(s.watch->at_us, 1000 + SBX_CONTROL_LINE_MS * 1000ull);
	assert_false(sbx_control_session_is_late(&s, SBX_CONTROL_LINE_MS * 1000ull + 999));
	assert_true(sbx_control_session_is_late(&s, SBX_CONTROL_LINE_MS * 1000ull + 1000));
	/* it is whole, and the next one begins: time begins anew */
	assert_int_equal(send(sv[0], "\nx", 2, 0), 2);
	assert_int_equal(sbx_control_session_read(&s, 3000), 0);
	assert_int_equal(sbx_control_session_next(&s, &line, &n_fds), 1);
	assert_int_equal(sbx_control_session_next(&s, &line, &n_fds), 0);
	sbx_control_session_watch(&s, 3000);
	assert_int_equal(s.watch->at_us, 3000 + SBX_CONTROL_LINE_MS * 1000ull);
	/* while an answer is open nothing is read, and no line is late */
	s.asked = true;
	sbx_control_session_watch(&s, 4000);
	assert_int_equal(s.watch->at_us, 0);
	assert_int_equal(s.watch->events, 0);
	s.asked = false;
	/* a client that does not take */
	big = calloc(1, 200000);
	memset(big, 'x', 200000);
	assert_int_equal(sbx_control_session_put(&s, big, 200000), 0);
	assert_int_equal(sbx_control_session_send(&s, 5000), 0);
	assert_true(sbx_control_session_n_waiting(&s) > 0);
	sbx_control_session_watch(&s, 5000);
	assert_int_equal(s.watch->events, POLLOUT);
	assert_int_equal(s.watch->at_us, 5000 + SBX_CONTROL_STALL_MS * 1000ull);
	/* no room for more than this and one answer */
	assert_int_equal(sbx_control_session_put(&s, calloc(1, 200000), 200000), 0);
	assert_int_equal(sbx_control_session_put(&s, calloc(1, 10), 10), -ENOBUFS);
	sbx_control_session_fini(&s);
	sbx_fd_close(sv[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_answers_in_their_order, setup, teardown),
		cmocka_unit_test_setup_teardown(test_late_answers, setup, teardown),
		cmocka_unit_test_setup_teardown(test_held_sessions, setup, teardown),
		cmocka_unit_test_setup_teardown(test_since, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_slow_follower, setup, teardown),
		cmocka_unit_test_setup_teardown(test_descriptors, setup, teardown),
		cmocka_unit_test_setup_teardown(test_the_largest_answer, setup, teardown),
		cmocka_unit_test_setup_teardown(test_the_clients_limit, setup, teardown),
		cmocka_unit_test_setup_teardown(test_places_for_requests, setup, teardown),
		cmocka_unit_test(test_deadlines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
