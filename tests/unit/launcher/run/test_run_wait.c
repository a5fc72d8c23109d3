/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The reason of a run whose process ended: each wait names the process that ended first. */
#include "launcher/run/run_outcome.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "ipc/channel.h"
#include "launcher/run/steps.h"
#include "launcher/run/supervise.h"

/* --- the loop and the database stand still --- */

static struct sbx_event panic;
static int waited; /* the result of each wait: by default, it can no longer come */

int sbx_supervise(struct sbx_run *r, enum sbx_wait what, uint32_t timeout_ms)
{
	(void)r;
	(void)what;
	(void)timeout_ms;
	return waited;
}

int sbx_supervise_wall_clock(struct sbx_run *r)
{
	(void)r;
	return 0;
}

void sbx_record_event(struct sbx_recorder *r, const struct sbx_event *event)
{
	(void)r;
	panic = *event;
}

int sbx_record_begin(struct sbx_recorder *r, const struct sbx_facts *f,
		     const struct sbx_policy *policy, const struct sbx_live *live,
		     struct sbx_err *err)
{
	(void)r;
	(void)f;
	(void)policy;
	(void)live;
	(void)err;
	return 0;
}

void sbx_record_changed(struct sbx_recorder *r, const struct sbx_store_change *change,
			const char *what)
{
	(void)r;
	(void)change;
	(void)what;
}

void sbx_record_released(struct sbx_recorder *r, bool soon)
{
	(void)r;
	(void)soon;
}

/* --- a run --- */

struct fixture {
	struct sbx_run run;
	struct sbx_plan plan;
	struct sbx_options options;
	struct sbx_facts facts;
	struct sbx_profile profile;
	int broker, init; /* the other ends */
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	panic = (struct sbx_event){ 0 };
	waited = 1;
	sbx_run_init(&f->run, &f->options, &f->facts);
	f->plan.tls.on = true;
	f->plan.profile = &f->profile;
	f->run.plan = &f->plan;
	assert_int_equal(sbx_channel_pair(&f->run.broker.fd, &f->broker), 0);
	assert_int_equal(sbx_channel_pair(&f->run.init.fd, &f->init), 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	sbx_fd_close(f->run.broker.fd);
	sbx_fd_close(f->run.init.fd);
	sbx_fd_close(f->broker);
	sbx_fd_close(f->init);
	f->run.broker.fd = f->run.init.fd = -1;
	sbx_run_fini(&f->run);
	free(f);
	return 0;
}

static void says(const struct fixture *f, const char *text, const char *event)
{
	assert_string_equal(f->run.err.msg, text);
	assert_string_equal(panic.rule, event);
}

/* sbx-tls ends with the broker: the loop may have seen its end, and not yet the broker's. */
static void broker_ends(struct fixture *f)
{
	f->run.tls.gone = true;
	f->broker = sbx_fd_close(f->broker);
}

static void test_command_broker(void **state)
{
	struct fixture *f = *state;

	broker_ends(f);
	f->run.released = true;
	sbx_run_judge_end(&f->run, 1);
	says(f, "the broker ended under the command; the sandbox was ended",
	     "while the command ran");
}

static void test_command_tls(void **state)
{
	struct fixture *f = *state;

	f->run.tls.gone = f->run.released = true;
	sbx_run_judge_end(&f->run, 1);
	says(f, "sbx-tls ended under the command; the sandbox was ended",
	     "sbx-tls, while the command ran");
}

static void test_selftest_broker(void **state)
{
	struct fixture *f = *state;

	broker_ends(f);
	assert_true(sbx_step_selftest_apply(&f->run) < 0);
	says(f, "the broker ended during setup", "during setup");
}

static void test_selftest_tls(void **state)
{
	struct fixture *f = *state;

	f->run.tls.gone = true;
	assert_true(sbx_step_selftest_apply(&f->run) < 0);
	says(f, "sbx-tls ended during setup", "sbx-tls, during setup");
}

/* The message was set where the packet was read. */
static void test_selftest_protocol(void **state)
{
	struct fixture *f = *state;

	f->run.tls.gone = f->run.protocol_broken = true;
	sbx_err_set(&f->run.err, "sbx-tls broke its protocol");
	assert_true(sbx_step_selftest_apply(&f->run) < 0);
	says(f, "sbx-tls broke its protocol", "sbx-tls broke its protocol");
	assert_int_equal(panic.reason, SBX_REASON_PROTOCOL);
}

/* --- the wait for sbx-tls --- */

static void waits(struct fixture *f, const char *text)
{
	assert_true(sbx_run_wait_tls(&f->run) < 0);
	says(f, text, "");
}

static void test_wait_tls(void **state)
{
	struct fixture *f = *state;

	f->run.tls.gone = true;
	waits(f, "sbx-tls ended during setup");
}

static void test_wait_broker(void **state)
{
	broker_ends(*state);
	waits(*state, "the broker ended during setup");
}

static void test_wait_stage(void **state)
{
	struct fixture *f = *state;

	f->run.stage.gone = true;
	waits(f, "the stage ended while it was set up");
}

static void test_wait_stage_failed(void **state)
{
	struct fixture *f = *state;

	f->run.stage.gone = f->run.tls.gone = true;
	f->run.stage.failed = (struct sbx_msg_stage_failed){ .step = "view", .detail = "no" };
	waits(f, "view: no");
}

static void test_wait_interrupted(void **state)
{
	struct fixture *f = *state;

	f->run.interrupted = 15;
	waits(f, "interrupted by signal 15");
}

static void test_wait_cleanup(void **state)
{
	struct fixture *f = *state;

	f->run.cleanup.gone = true;
	waits(f, "the cleanup process ended during setup");
}

/* --- the wait for the broker's release --- */

static void no_release(struct fixture *f, const char *text)
{
	assert_true(sbx_step_release_apply(&f->run) < 0);
	assert_false(f->run.released);
	says(f, text, "");
}

static void test_release_broker(void **state)
{
	struct fixture *f = *state;

	f->broker = sbx_fd_close(f->broker);
	no_release(f, "the broker ended during setup");
}

static void test_release_tls(void **state)
{
	struct fixture *f = *state;

	f->run.tls.gone = true;
	no_release(f, "sbx-tls ended during setup");
}

static void test_release_init(void **state)
{
	struct fixture *f = *state;

	f->run.init.gone = true;
	no_release(f, "the sandbox ended before the release");
}

static void test_release_late(void **state)
{
	waited = -ETIMEDOUT;
	no_release(*state, "the broker did not get ready in 5 s");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_command_broker),    TEST(test_command_tls),
		TEST(test_selftest_broker),   TEST(test_selftest_tls),
		TEST(test_selftest_protocol), TEST(test_wait_tls),
		TEST(test_wait_broker),	      TEST(test_wait_stage),
		TEST(test_wait_stage_failed), TEST(test_wait_interrupted),
		TEST(test_wait_cleanup),      TEST(test_release_broker),
		TEST(test_release_tls),	      TEST(test_release_init),
		TEST(test_release_late),
	};

	return cmocka_run_group_tests_name("run_wait", tests, NULL, NULL);
}
