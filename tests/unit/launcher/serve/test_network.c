/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The list of flows in the answer of `show`, which has a bound. The socket is a real one, and the
 * broker is this test. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "control/client.h"
#include "ipc/channel.h"
#include "launcher/serve/network.h"
#include "sys/process/proc.h"
#include "tests/unit/scratch.h"

#define ID "aa0000000001"

struct world {
	char top[32];
	struct sbx_watches watches;
	struct sbx_control *c;
	struct sbx_control_client *client;
	struct sbx_live_run live;
	struct sbx_broker_process broker;
	int dir_fd, broker_fd;
	size_t n_rest; /* bytes of the answer's other members */
};

static void op_show(void *userdata, struct sbx_control_request *rq)
{
	struct world *w = userdata;
	SBX_AUTO_FREE char *rest = calloc(1, w->n_rest + 1);

	assert_non_null(rest);
	memset(rest, 'x', w->n_rest);
	sbx_serve_flows(w->c, &w->live, rq->token,
			json_pack("{s:{s:s, s:[]}}", "sandbox", "policy", rest, "flows"));
}

static int setup(void **state)
{
	static const struct sbx_control_op ops[] = { { .name = "show", .handle = op_show } };
	struct world *w = calloc(1, sizeof(*w));
	struct sbx_control_config config = { .watches = &w->watches,
					     .owner = getuid(),
					     .caller = getuid(),
					     .ops = ops,
					     .n_ops = SBX_N_ELEMENTS(ops),
					     .userdata = w };
	struct sbx_err err = { 0 };
	char dir[64];

	*state = w;
	strcpy(w->top, "/tmp/sbx-serve-XXXXXX");
	if (!mkdtemp(w->top) || sbx_channel_pair(&w->broker.fd, &w->broker_fd) < 0)
		return -1;
	w->live.parts.broker = &w->broker;
	w->live.started = true;
	sbx_text_fit(dir, sizeof(dir), "%s/" ID, w->top);
	if (mkdir(dir, 0700) < 0)
		return -1;
	config.dir_fd = w->dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (sbx_control_open(&config, &w->c, &err) < 0)
		return -1;
	return sbx_control_connect(w->top, ID, 5000, &w->client, &err);
}

static int teardown(void **state)
{
	struct world *w = *state;

	sbx_control_disconnect(w->client);
	sbx_live_run_fini(&w->live);
	w->c = sbx_control_close(w->c);
	sbx_fd_close(w->broker.fd);
	sbx_fd_close(w->broker_fd);
	sbx_fd_close(w->dir_fd);
	scratch_remove(w->top);
	free(w);
	return 0;
}

/* Runs the loop until nothing happens. */
static void loop(struct world *w)
{
	for (;;) {
		struct pollfd p[SBX_WATCHES_MAX];
		size_t n = sbx_watches_fill(&w->watches, p);
		uint64_t next = sbx_watches_next_us(&w->watches);
		bool due = next && next <= sbx_clock_monotonic_us();

		if (poll(p, n, due ? 0 : 20) == 0 && !due)
			return;
		sbx_watches_act(&w->watches, p, n, sbx_clock_monotonic_us());
	}
}

/* The broker has @n flows, whose names and rules have @n_text bytes. */
static void tell_flows(struct world *w, size_t n, size_t n_text)
{
	static struct sbx_msg_flow_list page;
	struct sbx_msg_flow flow = { .port = 443, .proto = SBX_PROTO_TCP };

	memset(flow.name, 'a', n_text);
	memset(flow.rule, 'b', n_text);
	do {
		for (page.n_flows = 0; page.n_flows < SBX_MSG_FLOWS_MAX && n > 0; n--)
			page.v[page.n_flows++] = flow;
		page.last = n == 0;
		assert_int_equal(sbx_live_heard_flows(&w->live, &page), 0);
	} while (n > 0);
}

/* The answer to `show` has all of @n flows, or counts those that it leaves out. Returns the number
 * that it has. */
static size_t show(struct world *w, size_t n, size_t n_text)
{
	struct sbx_err err = { 0 };
	json_t *answer, *sandbox;
	size_t shown;

	assert_int_equal(sbx_control_send(w->client, json_pack("{s:s}", "op", "show"), NULL, 0,
					  &err), 0);
	loop(w);
	tell_flows(w, n, n_text);
	loop(w);
	/* A long answer comes in parts. */
	while (sbx_control_receive(w->client, 0, &answer, &err) == SBX_CONTROL_E_TIMED_OUT) {
		err = (struct sbx_err){ 0 };
		loop(w);
	}
	assert_string_equal(err.msg, "");
	sandbox = json_object_get(answer, "sandbox");
	shown = json_array_size(json_object_get(sandbox, "flows"));
	assert_int_equal(shown + (size_t)json_integer_value(json_object_get(sandbox,
									     "flows_left_out")), n);
	json_decref(answer);
	return shown;
}

static void test_flows(void **state)
{
	struct world *w = *state;

	assert_int_equal(show(w, 0, 10), 0);
	assert_int_equal(show(w, 200, 10), 200);
	assert_int_equal(show(w, 600, 10), 512);
}

/* The sandbox chooses the names that it connects to, and must not keep `show` from an answer. */
static void test_long_flows(void **state)
{
	struct world *w = *state;

	w->n_rest = SBX_CONTROL_ANSWER_MAX - SBX_SERVE_FLOWS_BYTES - 256;
	assert_in_range(show(w, 512, SBX_HOSTNAME_MAX), 150, 511);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_flows, setup, teardown),
		cmocka_unit_test_setup_teardown(test_long_flows, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
