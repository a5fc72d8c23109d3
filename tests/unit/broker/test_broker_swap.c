/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* POLICY: a good one takes the place of the old; a bad one is refused, and the old one stays. The
 * rooms around the swap are played here. */

#include "tests/unit/policy_world.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "broker/io/report.h"
#include "broker/main/swap.h"
#include "policy/decide/policy_blob.h"
#include "sys/process/proc.h"

static struct sbx_context ctx;
static struct sbx_tcp tcp;
static struct sbx_swap swap;

/* Calls of the other rooms. */
static struct {
	size_t n_tcp_judged, n_udp_judged, n_tcp_cut, n_udp_cut, n_stub_judged, n_exits, n_answers;
	size_t n_cutting;	/* flows of sbx-tls that a cut begins with */
	bool old_while_judging; /* the flows were judged while the old policy held */
	bool new_while_cutting;
	sbx_pinner_done_fn pinned;
	void *pinned_userdata;
	size_t n_flows; /* that are open */
	size_t n_listed, n_pages, n_last;
	struct sbx_msg_policy_done answer;
} seen;

static const char *allowed(const struct sbx_policy *p)
{
	if (sbx_policy_decide_name(p, "old.example", SBX_PROTO_TCP, 443).action == SBX_ALLOW)
		return "old";
	if (sbx_policy_decide_name(p, "new.example", SBX_PROTO_TCP, 443).action == SBX_ALLOW)
		return "new";
	return "none";
}

void sbx_tcp_judge_again(struct sbx_tcp *t, const struct sbx_core *next)
{
	assert_ptr_equal(t, &tcp);
	seen.n_tcp_judged++;
	seen.old_while_judging = strcmp(allowed(ctx.core.policy), "old") == 0 &&
				 strcmp(allowed(next->policy), "new") == 0;
}

void sbx_udp_judge_again(struct sbx_udp *u, const struct sbx_core *next)
{
	(void)u;
	(void)next;
	seen.n_udp_judged++;
}

size_t sbx_tcp_cut(struct sbx_tcp *t)
{
	t->n_cutting = seen.n_cutting;
	seen.n_tcp_cut++;
	seen.new_while_cutting = strcmp(allowed(ctx.core.policy), "new") == 0;
	return 3;
}

size_t sbx_udp_cut(struct sbx_udp *u)
{
	(void)u;
	seen.n_udp_cut++;
	return 2;
}

size_t sbx_stub_judge_again(struct sbx_stub *s)
{
	(void)s;
	seen.n_stub_judged++;
	return 4;
}

void sbx_resolve_drop_unwanted(struct sbx_resolve *r, size_t n_forwards)
{
	(void)r;
	assert_int_equal(n_forwards, 4);
}

void sbx_pinner_policy_changed(struct sbx_pinner *pinner, sbx_pinner_done_fn done, void *userdata)
{
	assert_non_null(pinner);
	seen.pinned = done;
	seen.pinned_userdata = userdata;
}

void sbx_tcp_list(struct sbx_tcp *t, sbx_flow_fn fn, void *userdata)
{
	const struct sbx_msg_flow flow = { .name = "old.example",
					   .port = 443,
					   .proto = SBX_PROTO_TCP };

	(void)t;
	for (size_t i = 0; i < seen.n_flows; i++)
		fn(userdata, &flow);
}

void sbx_udp_list(struct sbx_udp *u, void (*fn)(void *userdata, const struct sbx_msg_flow *flow),
		  void *userdata)
{
	(void)u;
	(void)fn;
	(void)userdata;
}

int sbx_report_post(struct sbx_report *rep, struct sbx_span packet)
{
	static struct sbx_msg_flow_list list;

	(void)rep;
	if (sbx_msg_decode_policy_done(packet, &seen.answer) == 0) {
		seen.n_answers++;
		return 0;
	}
	assert_int_equal(sbx_msg_decode_flow_list(packet, &list), 0);
	seen.n_pages++;
	seen.n_listed += list.n_flows;
	seen.n_last += list.last;
	return 0;
}

void sbx_context_exit(struct sbx_context *c, int status)
{
	assert_ptr_equal(c, &ctx);
	assert_int_equal(status, 1);
	seen.n_exits++;
}

void sbx_context_unwatch(struct event *ev)
{
	if (event_initialized(ev))
		event_del(ev);
	memset(ev, 0, sizeof(*ev));
}

/* --- policies --- */

/* A policy that allows @name. */
static void compile(const char *name, uint64_t generation, void **ret_blob, size_t *ret_n)
{
	char yaml[128];
	SBX_CLEANUP(sbx_profile_freep) struct sbx_profile *profile = NULL;
	struct sbx_policy_input in = { .generation = generation };

	snprintf(yaml, sizeof(yaml), "name: t\nnetwork:\n  allow: [%s]\n", name);
	profile = good_profile(yaml);
	in.profile = profile;
	assert_int_equal(sbx_policy_compile(&in, ret_blob, ret_n), 0);
}

static int policy_fd(const char *name, uint64_t generation)
{
	SBX_AUTO_FREE void *blob = NULL;
	size_t n;
	int fd;

	compile(name, generation, &blob, &n);
	fd = sbx_memfd_new("policy", blob, n);
	assert_true(fd >= 0);
	return fd;
}

static int begin(void **state)
{
	int fd = policy_fd("old.example", 5);

	(void)state;
	memset(&seen, 0, sizeof(seen));
	ctx = (struct sbx_context){ .base = event_base_new() };
	tcp = (struct sbx_tcp){ 0 };
	swap = (struct sbx_swap){ .ctx = &ctx, .tcp = &tcp };
	assert_int_equal(sbx_swap_load_consume(&swap, &fd), 0);
	assert_int_equal(fd, -1);
	ctx.core.policy = swap.policy;
	assert_int_equal(sbx_swap_init(&swap), 0);
	return 0;
}

static int end(void **state)
{
	(void)state;
	sbx_swap_fini(&swap);
	event_base_free(ctx.base);
	return 0;
}

static void take(int fd)
{
	sbx_swap_take_consume(&swap, &fd);
	assert_int_equal(fd, -1);
}

/* The old policy holds, nobody was judged, and the answer says so. */
static void assert_refused(size_t n_answers)
{
	assert_int_equal(seen.n_answers, n_answers);
	assert_int_equal(seen.answer.ok, 0);
	assert_int_equal(seen.answer.generation, 5);
	assert_int_equal(seen.answer.n_cut, 0);
	assert_int_equal(seen.n_tcp_judged + seen.n_udp_judged + seen.n_tcp_cut + seen.n_udp_cut +
				 seen.n_stub_judged,
			 0);
	assert_int_equal(seen.n_exits, 0);
	assert_ptr_equal(ctx.core.policy, swap.policy);
	assert_string_equal(allowed(ctx.core.policy), "old");
	assert_false(swap.under_way);
}

/* --- tests --- */

static void test_good(void **state)
{
	(void)state;
	take(policy_fd("new.example", 6));
	assert_true(seen.old_while_judging);
	assert_true(seen.new_while_cutting);
	assert_int_equal(seen.n_tcp_judged, 1);
	assert_int_equal(seen.n_udp_judged, 1);
	assert_int_equal(seen.n_udp_cut, 1);
	assert_int_equal(seen.n_stub_judged, 1);
	assert_int_equal(seen.n_answers, 1);
	assert_int_equal(seen.answer.ok, 1);
	assert_int_equal(seen.answer.generation, 6);
	assert_int_equal(seen.answer.n_cut, 5);
	assert_ptr_equal(ctx.core.policy, swap.policy);
	assert_string_equal(allowed(ctx.core.policy), "new");
	assert_int_equal(seen.n_exits, 0);
}

/* Any byte of it may be wrong, and any part missing. */
static void test_bad_blob(void **state)
{
	SBX_AUTO_FREE uint8_t *blob = NULL;
	size_t n, n_bad = 0, n_refused = 0;

	(void)state;
	compile("new.example", 6, (void **)&blob, &n);
	for (size_t cut = 0; cut < n; cut += cut < 64 ? 1 : 97) {
		take(sbx_memfd_new("policy", blob, cut));
		assert_refused(++n_bad);
	}
	for (size_t at = 0; at < sizeof(struct sbx_blob_header); at++) {
		blob[at] ^= 0xff;
		take(sbx_memfd_new("policy", blob, n));
		blob[at] ^= 0xff;
		if (seen.answer.ok)
			break; /* a field that any value is good for */
		assert_refused(++n_bad);
		n_refused++;
	}
	assert_true(n_refused > 4); /* the magic, and the version */
}

static void test_no_blob(void **state)
{
	int pipe_fds[2];

	(void)state;
	assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);
	take(-1); /* our file table was full when it came */
	assert_refused(1);
	take(pipe_fds[0]);
	assert_refused(2);
	take(open("/dev/null", O_RDONLY | O_CLOEXEC));
	assert_refused(3);
	close(pipe_fds[1]);
	take(policy_fd("new.example", 6));
	assert_int_equal(seen.answer.ok, 1);
}

static void test_generation(void **state)
{
	(void)state;
	take(policy_fd("new.example", 4));
	assert_refused(1);
	take(policy_fd("new.example", 5));
	assert_refused(2);
	take(policy_fd("new.example", 6));
	assert_int_equal(seen.answer.ok, 1);
	assert_int_equal(seen.answer.generation, 6);
}

/* The answer waits for sbx-tls's flows and for the kernel's pins, whichever is last. */
static void test_waits(void **state)
{
	static char pinner;

	for (int tls_last = 0; tls_last < 2; tls_last++) {
		seen.n_cutting = 2;
		swap.pinner = (struct sbx_pinner *)(void *)&pinner;
		take(policy_fd("new.example", 6));
		assert_true(swap.under_way);
		assert_int_equal(seen.n_answers, 0);
		tcp.n_cutting = 1;
		for (int i = 0; i < 2; i++) {
			if (i == tls_last) {
				tcp.n_cutting = 0;
				tcp.on_cut(tcp.cut_userdata);
			} else {
				seen.pinned(seen.pinned_userdata);
			}
			assert_int_equal(seen.n_answers, i);
		}
		assert_int_equal(seen.answer.ok, 1);
		assert_int_equal(seen.answer.generation, 6);
		assert_int_equal(event_pending(&swap.ev_late, EV_TIMEOUT, NULL), 0);
		end(state);
		begin(state);
	}
}

/* The launcher never sends a second one before the answer: this process ends. */
static void test_second(void **state)
{
	(void)state;
	seen.n_cutting = 1;
	take(policy_fd("new.example", 6));
	assert_int_equal(seen.n_exits, 0);
	take(policy_fd("old.example", 7));
	assert_int_equal(seen.n_exits, 1);
	assert_int_equal(seen.n_answers, 0);
}

/* sbx-tls does not say TLS_DONE: the process ends, and with it the sandbox. */
static void test_late(void **state)
{
	(void)state;
	seen.n_cutting = 1;
	take(policy_fd("new.example", 6));
	assert_int_equal(event_pending(&swap.ev_late, EV_TIMEOUT, NULL), EV_TIMEOUT);
	event_active(&swap.ev_late, EV_TIMEOUT, 0);
	event_base_loop(ctx.base, EVLOOP_NONBLOCK);
	assert_int_equal(seen.n_exits, 1);
	tcp.n_cutting = 0;
	tcp.on_cut(tcp.cut_userdata);
	assert_int_equal(event_pending(&swap.ev_late, EV_TIMEOUT, NULL), 0);
}

static void test_list(void **state)
{
	static const size_t numbers[] = { 0, 1, SBX_MSG_FLOWS_MAX, SBX_MSG_FLOWS_MAX + 1, 500 };

	for (size_t i = 0; i < SBX_N_ELEMENTS(numbers); i++) {
		seen.n_flows = numbers[i];
		sbx_swap_list_flows(&swap);
		assert_int_equal(seen.n_listed, numbers[i]);
		assert_int_equal(seen.n_last, 1);
		assert_int_equal(seen.n_exits, 0);
		end(state);
		begin(state);
	}
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_good),  TEST(test_bad_blob), TEST(test_no_blob), TEST(test_generation),
		TEST(test_waits), TEST(test_second),   TEST(test_late),	   TEST(test_list),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
