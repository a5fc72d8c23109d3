/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The launcher's loop with peers that stop, or lie in count or order. The peers are the other ends
 * of its channels. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "ipc/channel.h"
#include "launcher/helpers/protect_helper.h"
#include "launcher/record/record.h"
#include "launcher/resources/attach.h"
#include "launcher/run/supervise.h"
#include "sys/process/proc.h"

#define N_PROBES 3
#define N_MOUNTS 5

/* --- what the loop hands on --- */

static unsigned int n_events, n_pins, n_secrets;

void sbx_record_event(struct sbx_recorder *r, const struct sbx_event *event)
{
	(void)r;
	(void)event;
	n_events++;
}

void sbx_record_flush(struct sbx_recorder *r)
{
	(void)r;
}

void sbx_record_tidy(struct sbx_recorder *r)
{
	(void)r;
}

void sbx_cgroup_run_init(struct sbx_cgroup_run *c)
{
	*c = (struct sbx_cgroup_run){ .dirs = SBX_CGROUP_INIT };
}

void sbx_attach_run_init(struct sbx_attach_run *a)
{
	*a = (struct sbx_attach_run){ .watch_fd = -1 };
}

void sbx_broker_init(struct sbx_broker_process *b)
{
	*b = (struct sbx_broker_process){ .fd = -1 };
}

void sbx_tls_process_init(struct sbx_tls_process *t)
{
	*t = (struct sbx_tls_process){ .fd = -1, .broker_fd = -1, .ready_fds = { -1, -1 } };
}

void sbx_tls_process_send_secret(const struct sbx_tls_process *t, uint32_t i, int fd)
{
	(void)t;
	assert_int_equal(i, 1);
	assert_true(fd >= 0);
	n_secrets++;
}

int sbx_attach_run_pins(struct sbx_attach_run *a, const char *id, const struct sbx_msg_pins *m,
			int broker_fd)
{
	(void)a;
	(void)id;
	(void)m;
	(void)broker_fd;
	n_pins++;
	return 0;
}

void sbx_live_run_init(struct sbx_live_run *l)
{
	(void)l;
}

void sbx_live_run_fini(struct sbx_live_run *l)
{
	(void)l;
}

/* Asked for once. */
static bool is_asked(struct sbx_live_run *l, enum sbx_live_step step)
{
	bool asked = l->step == step;

	l->step = SBX_LIVE_IDLE;
	return asked;
}

int sbx_live_heard_policy(struct sbx_live_run *l, const struct sbx_msg_policy_done *m)
{
	(void)m;
	return is_asked(l, SBX_LIVE_BROKER) ? 0 : -1;
}

int sbx_live_heard_ruleset(struct sbx_live_run *l, const struct sbx_msg_ruleset_done *m)
{
	(void)m;
	return is_asked(l, SBX_LIVE_KERNEL) ? 0 : -1;
}

int sbx_live_heard_flows(struct sbx_live_run *l, const struct sbx_msg_flow_list *m)
{
	(void)m;
	return is_asked(l, SBX_LIVE_BROKER) ? 0 : -1;
}

void sbx_attach_run_check(struct sbx_attach_run *a, const struct sbx_cgroup_run *c)
{
	(void)a;
	(void)c;
}

/* --- a run and its peers --- */

enum peer { STAGE, BROKER, INIT, TLS, SECRETS, N_PEERS };

static const char *const broke[N_PEERS] = {
	"the stage broke its protocol; the sandbox was ended",
	"the broker broke its protocol; the sandbox was ended",
	"the sandbox's init broke its protocol; the sandbox was ended",
	"sbx-tls broke its protocol; the sandbox was ended",
	"the secret helper broke its protocol; the sandbox was ended",
};

struct fixture {
	struct sbx_run run;
	struct sbx_plan plan;
	struct sbx_options options;
	struct sbx_facts facts;
	struct sbx_msg_probes probes;
	struct sbx_profile profile;
	struct sbx_secret secrets[2];
	int peers[N_PEERS];
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	int *ours[] = { &f->run.stage.fd, &f->run.broker.fd, &f->run.init.fd, &f->run.tls.fd,
			&f->run.secret_helper.fd };

	assert_non_null(f);
	alarm(60); /* instead of waiting for ever */
	sbx_run_init(&f->run, &f->options, &f->facts);
	f->probes.n_probes = N_PROBES;
	f->plan.probes = &f->probes;
	f->plan.view.n_mounts = N_MOUNTS;
	f->profile.n_secrets = SBX_N_ELEMENTS(f->secrets);
	f->profile.secrets = f->secrets;
	f->secrets[1].from = SBX_SECRET_FILE;
	f->plan.profile = &f->profile;
	f->run.plan = &f->plan;
	for (size_t i = 0; i < N_PEERS; i++) {
		assert_int_equal(sbx_channel_pair(ours[i], &f->peers[i]), 0);
		assert_int_equal(sbx_fd_set_nonblocking(*ours[i]), 0);
	}
	n_events = n_pins = n_secrets = 0;
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	int *const fds[] = { &f->run.broker.fd,	       &f->run.keep_helper.upper_fd,
			     &f->run.tls.fd,	       &f->run.secret_helper.fd,
			     &f->run.tls.ready_fds[0], &f->run.tls.ready_fds[1] };

	alarm(0);
	for (size_t i = 0; i < SBX_N_ELEMENTS(fds); i++)
		sbx_fd_close(*fds[i]);
	for (size_t i = 0; i < N_PEERS; i++)
		sbx_fd_close(f->peers[i]);
	sbx_run_fini(&f->run);
	free(f);
	return 0;
}

static void send_bytes(struct fixture *f, enum peer from, const void *p, size_t n, size_t n_fds)
{
	int fds[] = { f->peers[STAGE], f->peers[STAGE], f->peers[STAGE] };

	assert_true(n_fds <= SBX_N_ELEMENTS(fds));
	assert_int_equal(sbx_channel_send(f->peers[from], p, n, fds, n_fds), 0);
}

static void say(struct fixture *f, enum peer from, enum sbx_msg_type type, uint32_t value,
		size_t n_fds)
{
	uint8_t out[64];
	ssize_t n = sbx_msg_encode_simple(type, value, out, sizeof(out));

	assert_true(n > 0);
	send_bytes(f, from, out, (size_t)n, n_fds);
}

static void send_verdicts(struct fixture *f, uint32_t n_verdicts)
{
	static struct sbx_msg_verdicts m;
	static uint8_t out[SBX_MSG_MAX];
	ssize_t n;

	m.n_verdicts = n_verdicts;
	for (uint32_t i = 0; i < n_verdicts; i++)
		m.v[i].ok = 1;
	n = sbx_msg_encode_verdicts(&m, out, sizeof(out));
	assert_true(n > 0);
	send_bytes(f, INIT, out, (size_t)n, 0);
}

/* Read the messages that were sent. */
static void look(struct fixture *f)
{
	for (int i = 0; i < 4 && !f->run.protocol_broken; i++)
		sbx_supervise(&f->run, SBX_WAIT_COMMAND, 1);
}

static void is_fine(struct fixture *f)
{
	look(f);
	if (f->run.protocol_broken)
		fail_msg("%s", f->run.err.msg);
}

static void is_broken(struct fixture *f, enum peer by)
{
	look(f);
	assert_true(f->run.protocol_broken);
	assert_string_equal(f->run.err.msg, broke[by]);
	/* The same for every wait. */
	assert_int_equal(sbx_supervise(&f->run, SBX_WAIT_STAGE, 1000), 1);
	assert_int_equal(sbx_supervise(&f->run, SBX_WAIT_SELFTEST, 1000), 1);
	assert_int_equal(sbx_supervise(&f->run, SBX_WAIT_COMMAND, 1000), 1);
	assert_int_equal(sbx_supervise(&f->run, SBX_WAIT_BROKER, 1000), 1);
}

/* --- peers that stop --- */

static void test_silence(void **state)
{
	static const enum sbx_wait waits[] = { SBX_WAIT_STAGE, SBX_WAIT_SELFTEST, SBX_WAIT_RELEASE,
					       SBX_WAIT_COMMAND, SBX_WAIT_BROKER };
	struct fixture *f = *state;

	for (size_t i = 0; i < SBX_N_ELEMENTS(waits); i++) {
		uint64_t start = sbx_clock_monotonic_us();

		assert_int_equal(sbx_supervise(&f->run, waits[i], 20), -ETIMEDOUT);
		assert_true(sbx_clock_monotonic_us() - start >= 20000);
	}
	say(f, BROKER, SBX_MSG_READY, 0, 0);
	assert_int_equal(sbx_supervise(&f->run, SBX_WAIT_RELEASE, 20), -ETIMEDOUT);
	assert_true(f->run.broker.ready);
}

/* A broker that sends only other messages counts as silent. */
static void test_chatter(void **state)
{
	struct sbx_event event = { .action = SBX_DENY,
				   .proto = SBX_PROTO_TCP,
				   .reason = SBX_REASON_DEFAULT_DENY,
				   .count = 1 };
	struct fixture *f = *state;
	uint8_t out[SBX_MSG_MAX];
	ssize_t n = sbx_msg_encode_event(&event, out, sizeof(out));

	assert_true(n > 0);
	for (int i = 0; i < 3; i++) {
		send_bytes(f, BROKER, out, (size_t)n, 0);
		assert_int_equal(sbx_supervise(&f->run, SBX_WAIT_BROKER, 10), -ETIMEDOUT);
	}
	assert_int_equal(n_events, 3);
}

static void test_gone(void **state)
{
	struct fixture *f = *state;

	f->peers[BROKER] = sbx_fd_close(f->peers[BROKER]);
	assert_int_equal(sbx_supervise(&f->run, SBX_WAIT_RELEASE, 20000), 1);
	assert_true(f->run.broker.gone && !f->run.protocol_broken);
	/* nor does it say how much it did */
	assert_int_equal(sbx_supervise(&f->run, SBX_WAIT_BROKER, 20000), 1);
}

static void test_stage_gone(void **state)
{
	struct fixture *f = *state;

	f->peers[STAGE] = sbx_fd_close(f->peers[STAGE]);
	assert_int_equal(sbx_supervise(&f->run, SBX_WAIT_STAGE, 20000), 1);
	assert_true(f->run.stage.gone && !f->run.protocol_broken && !f->run.err.msg[0]);
}

/* The stage sends the reason. */
static void test_stage_failed(void **state)
{
	const struct sbx_msg_stage_failed m = { .error = ENOMEM,
						.step = "view",
						.detail = "no room" };
	struct fixture *f = *state;
	uint8_t out[1024];
	ssize_t n = sbx_msg_encode_stage_failed(&m, out, sizeof(out));

	assert_true(n > 0);
	send_bytes(f, STAGE, out, (size_t)n, 0);
	assert_int_equal(sbx_supervise(&f->run, SBX_WAIT_STAGE, 20000), 1);
	assert_true(f->run.stage.gone && !f->run.protocol_broken);
	assert_string_equal(f->run.stage.failed.detail, "no room");
}

/* A helper counts as ready only after it has sent a byte. */
static void test_protect_helper(void **state)
{
	struct fixture *f = *state;
	int theirs;

	assert_int_equal(sbx_channel_pair(&f->run.protect.v[0].fd, &theirs), 0);
	assert_int_equal(sbx_fd_set_nonblocking(f->run.protect.v[0].fd), 0);
	f->run.protect.n = 1;
	look(f);
	assert_false(f->run.protect.v[0].ready);
	assert_int_equal(write(theirs, "l", 1), 1);
	look(f);
	assert_true(f->run.protect.v[0].ready);
	sbx_fd_close(theirs);
	sbx_fd_close(f->run.protect.v[0].fd);
	f->run.protect.n = 0;
}

static void test_tls(void **state)
{
	struct fixture *f = *state;

	f->plan.tls.java = true;
	say(f, TLS, SBX_MSG_TLS_READY, 0, 2);
	assert_int_equal(sbx_supervise(&f->run, SBX_WAIT_TLS, 20000), 0);
	assert_true(f->run.tls.ready_fds[0] >= 0 && f->run.tls.ready_fds[1] >= 0);
	say(f, TLS, SBX_MSG_SECRET_STALE, 1, 0);
	is_fine(f);
	assert_true(f->run.secret_helper.asked_us[1] > 0);
	say(f, SECRETS, SBX_MSG_SECRET, 1, 1);
	is_fine(f);
	assert_int_equal(n_secrets, 1);
	f->peers[SECRETS] = sbx_fd_close(f->peers[SECRETS]); /* the sandbox can do without it */
	is_fine(f);
	f->peers[TLS] = sbx_fd_close(f->peers[TLS]);
	assert_int_equal(sbx_supervise(&f->run, SBX_WAIT_COMMAND, 20000), 1);
	assert_true(f->run.tls.gone && !f->run.protocol_broken);
}

/* --- peers that lie --- */

static void test_tls_counts(void **state)
{
	struct fixture *f = *state;

	say(f, TLS, SBX_MSG_TLS_READY, 0, 1);
	assert_int_equal(sbx_supervise(&f->run, SBX_WAIT_TLS, 20000), 0);
	say(f, TLS, SBX_MSG_TLS_READY, 0, 1);
	is_broken(f, TLS);
}

static void test_tls_without(void **state)
{
	struct fixture *f = *state;

	say(f, TLS, SBX_MSG_TLS_READY, 0, 0);
	is_broken(f, TLS);
	assert_false(f->run.tls.ready);
}

/* There is no Java store in the sandbox. */
static void test_tls_more(void **state)
{
	say(*state, TLS, SBX_MSG_TLS_READY, 0, 2);
	is_broken(*state, TLS);
}

static void test_tls_fewer(void **state)
{
	struct fixture *f = *state;

	f->plan.tls.java = true;
	say(f, TLS, SBX_MSG_TLS_READY, 0, 1);
	is_broken(f, TLS);
}

static void test_stale_early(void **state)
{
	say(*state, TLS, SBX_MSG_SECRET_STALE, 1, 0);
	is_broken(*state, TLS);
}

static void test_stale_unknown(void **state)
{
	say(*state, TLS, SBX_MSG_TLS_READY, 0, 1);
	is_fine(*state);
	say(*state, TLS, SBX_MSG_SECRET_STALE, 2, 0);
	is_broken(*state, TLS);
}

static void test_secret_without(void **state)
{
	say(*state, TLS, SBX_MSG_TLS_READY, 0, 1);
	is_fine(*state);
	say(*state, SECRETS, SBX_MSG_SECRET, 1, 0);
	is_broken(*state, SECRETS);
	assert_int_equal(n_secrets, 0);
}

/* The broker's channel to sbx-tls is the launcher's to make. */
static void test_ready_tls(void **state)
{
	say(*state, STAGE, SBX_MSG_STAGE_READY, 1u << SBX_BFD_TLS, 1);
	is_broken(*state, STAGE);
}

static void test_upper(void **state)
{
	struct fixture *f = *state;

	f->plan.keep.path = (char *)(uintptr_t) "/kept";
	say(f, STAGE, SBX_MSG_STAGE_UPPER, 0, 1);
	is_fine(f);
	assert_true(f->run.keep_helper.upper_fd >= 0 &&
		    fcntl(f->run.keep_helper.upper_fd, F_GETFD) >= 0);
}

static void test_upper_again(void **state)
{
	struct fixture *f = *state;
	int first;

	test_upper(state);
	first = f->run.keep_helper.upper_fd;
	say(f, STAGE, SBX_MSG_STAGE_UPPER, 0, 1);
	is_broken(f, STAGE);
	assert_int_equal(f->run.keep_helper.upper_fd, first);
}

static void test_upper_not_asked_for(void **state)
{
	struct fixture *f = *state;

	say(f, STAGE, SBX_MSG_STAGE_UPPER, 0, 1);
	is_broken(f, STAGE);
	assert_int_equal(f->run.keep_helper.upper_fd, -1);
}

/* With --scratch it is the home. */
static void test_upper_of_scratch(void **state)
{
	struct fixture *f = *state;

	f->options.scratch = true;
	say(f, STAGE, SBX_MSG_STAGE_UPPER, 0, 1);
	is_fine(f);
	assert_true(f->run.scratch_fd >= 0 && fcntl(f->run.scratch_fd, F_GETFD) >= 0);
}

static void test_upper_without(void **state)
{
	struct fixture *f = *state;

	f->plan.keep.path = (char *)(uintptr_t) "/kept";
	say(f, STAGE, SBX_MSG_STAGE_UPPER, 0, 0);
	is_broken(f, STAGE);
	assert_int_equal(f->run.keep_helper.upper_fd, -1);
}

static void test_upper_two(void **state)
{
	struct fixture *f = *state;

	f->plan.keep.path = (char *)(uintptr_t) "/kept";
	say(f, STAGE, SBX_MSG_STAGE_UPPER, 0, 2);
	is_broken(f, STAGE);
	assert_int_equal(f->run.keep_helper.upper_fd, -1);
}

/* Bytes past its end make it another message. */
static void test_upper_long(void **state)
{
	struct fixture *f = *state;
	uint8_t out[65] = { 0 };
	ssize_t n = sbx_msg_encode_simple(SBX_MSG_STAGE_UPPER, 0, out, sizeof(out) - 1);

	assert_true(n > 0);
	f->plan.keep.path = (char *)(uintptr_t) "/kept";
	send_bytes(f, STAGE, out, (size_t)n + 1, 1);
	is_broken(f, STAGE);
	assert_int_equal(f->run.keep_helper.upper_fd, -1);
}

static void test_ready_counts(void **state)
{
	struct fixture *f = *state;

	say(f, STAGE, SBX_MSG_STAGE_READY, 3, 2);
	assert_int_equal(sbx_supervise(&f->run, SBX_WAIT_STAGE, 20000), 0);
	assert_true(f->run.stage.sandbox_fds[0] >= 0 && f->run.stage.sandbox_fds[1] >= 0 &&
		    f->run.stage.sandbox_fds[2] < 0);
	say(f, STAGE, SBX_MSG_STAGE_READY, 3, 2);
	is_broken(f, STAGE);
}

static void test_ready_more(void **state)
{
	say(*state, STAGE, SBX_MSG_STAGE_READY, 3, 3);
	is_broken(*state, STAGE);
}

static void test_ready_fewer(void **state)
{
	say(*state, STAGE, SBX_MSG_STAGE_READY, 3, 1);
	is_broken(*state, STAGE);
}

static void test_ready_unknown(void **state)
{
	say(*state, STAGE, SBX_MSG_STAGE_READY, 1u << SBX_BFD_PUBLISH, 1);
	is_broken(*state, STAGE);
}

static void test_verdicts(void **state)
{
	struct fixture *f = *state;

	say(f, INIT, SBX_MSG_INIT_HELLO, 0, 0);
	send_verdicts(f, N_PROBES);
	is_fine(f);
	assert_true(f->run.init.has_verdicts && f->run.init.verdicts.n_verdicts == N_PROBES &&
		    f->run.init.command_fd >= 0);
	send_verdicts(f, N_PROBES);
	is_broken(f, INIT);
}

static void wrong_verdicts(struct fixture *f, uint32_t n)
{
	say(f, INIT, SBX_MSG_INIT_HELLO, 0, 0);
	send_verdicts(f, n);
	is_broken(f, INIT);
	assert_true(!f->run.init.has_verdicts && f->run.init.verdicts.n_verdicts == 0 &&
		    f->run.init.verdicts.v[0].ok == 0);
	assert_int_equal(f->run.init.command_fd, -1);
}

static void test_verdicts_fewer(void **state)
{
	wrong_verdicts(*state, N_PROBES - 1);
}

static void test_verdicts_more(void **state)
{
	wrong_verdicts(*state, N_PROBES + 1);
}

static void test_verdicts_first(void **state)
{
	struct fixture *f = *state;

	send_verdicts(f, N_PROBES);
	is_broken(f, INIT);
	assert_false(f->run.init.has_verdicts);
}

static void test_mounts_checked(void **state)
{
	struct fixture *f = *state;

	say(f, INIT, SBX_MSG_INIT_HELLO, 0, 0);
	is_fine(f);
	say(f, STAGE, SBX_MSG_MOUNTS_CHECKED, N_MOUNTS, 1);
	is_fine(f);
	assert_true(f->run.stage.mounts_checked && f->run.stage.open_mount == N_MOUNTS);
	assert_true(f->run.stage.root_fd >= 0);
	say(f, STAGE, SBX_MSG_MOUNTS_CHECKED, 0, 1);
	is_broken(f, STAGE);
}

static void test_mounts_too_many(void **state)
{
	struct fixture *f = *state;

	say(f, INIT, SBX_MSG_INIT_HELLO, 0, 0);
	is_fine(f);
	say(f, STAGE, SBX_MSG_MOUNTS_CHECKED, N_MOUNTS + 1, 1);
	is_broken(f, STAGE);
}

static void test_mounts_without_root(void **state)
{
	struct fixture *f = *state;

	say(f, INIT, SBX_MSG_INIT_HELLO, 0, 0);
	is_fine(f);
	say(f, STAGE, SBX_MSG_MOUNTS_CHECKED, 0, 0);
	is_broken(f, STAGE);
	assert_int_equal(f->run.stage.root_fd, -1);
}

/* Without its number, which would then be one that was said before. */
static void test_mounts_cut(void **state)
{
	struct fixture *f = *state;
	uint8_t out[64];
	ssize_t n = sbx_msg_encode_simple(SBX_MSG_MOUNTS_CHECKED, 0, out, sizeof(out));

	say(f, INIT, SBX_MSG_INIT_HELLO, 0, 0);
	is_fine(f);
	send_bytes(f, STAGE, out, (size_t)n - 1, 1);
	is_broken(f, STAGE);
	assert_false(f->run.stage.mounts_checked);
}

static void test_mounts_early(void **state)
{
	say(*state, STAGE, SBX_MSG_MOUNTS_CHECKED, 0, 1);
	is_broken(*state, STAGE);
}

static void test_ready_twice(void **state)
{
	say(*state, BROKER, SBX_MSG_READY, 0, 0);
	is_fine(*state);
	say(*state, BROKER, SBX_MSG_READY, 0, 0);
	is_broken(*state, BROKER);
}

static void test_release_early(void **state)
{
	struct fixture *f = *state;

	say(f, BROKER, SBX_MSG_RELEASE, 0, 0);
	is_broken(f, BROKER);
	assert_false(f->run.broker.released);
}

static void test_release_twice(void **state)
{
	struct fixture *f = *state;

	say(f, INIT, SBX_MSG_INIT_HELLO, 0, 0);
	send_verdicts(f, N_PROBES);
	is_fine(f);
	say(f, BROKER, SBX_MSG_RELEASE, 0, 0);
	is_fine(f);
	assert_true(f->run.broker.released);
	say(f, BROKER, SBX_MSG_RELEASE, 0, 0);
	is_broken(f, BROKER);
}

static void test_exec_failed_early(void **state)
{
	struct sbx_msg_exec_failed m = { .error = ENOENT, .not_found = 1 };
	struct fixture *f = *state;
	uint8_t out[64];
	ssize_t n = sbx_msg_encode_exec_failed(&m, out, sizeof(out));

	assert_true(n > 0);
	send_bytes(f, INIT, out, (size_t)n, 0);
	is_broken(f, INIT);
	assert_false(f->run.init.exec_failed);
}

/* A listener of programs comes to a run that learns, after HELLO, once, and with its descriptor. */
static void test_exec_listener(void **state)
{
	struct fixture *f = *state;
	void *one;

	say(f, INIT, SBX_MSG_INIT_HELLO, 0, 0);
	say(f, INIT, SBX_MSG_EXEC_LISTENER, 0, 1);
	is_broken(f, INIT); /* nobody asked for it */
	for (size_t n_fds = 0; n_fds < 2; n_fds++) {
		setup(&one);
		((struct fixture *)one)->run.learn_dir_fd = open("/", O_PATH | O_CLOEXEC);
		say(one, INIT, SBX_MSG_INIT_HELLO, 0, 0);
		say(one, INIT, SBX_MSG_EXEC_LISTENER, 0, n_fds);
		if (n_fds == 1) {
			is_fine(one);
			assert_true(((struct fixture *)one)->run.learn_execs.listener >= 0);
			say(one, INIT, SBX_MSG_EXEC_LISTENER, 0, 1);
		}
		is_broken(one, INIT);
		teardown(&one);
	}
}

static void test_hello_twice(void **state)
{
	say(*state, INIT, SBX_MSG_INIT_HELLO, 0, 0);
	is_fine(*state);
	say(*state, INIT, SBX_MSG_INIT_HELLO, 0, 0);
	is_broken(*state, INIT);
}

static void test_pins_not_asked_for(void **state)
{
	static struct sbx_msg_pins m = { .serial = 1, .n_pins = 1 };
	static uint8_t out[SBX_MSG_MAX];
	struct fixture *f = *state;
	ssize_t n;

	m.v[0] = (struct sbx_msg_pin){ .addr = { .family = 4, .b = { 192, 0, 2, 1 } },
				       .port = 443,
				       .proto = SBX_PROTO_TCP,
				       .timeout_ms = 1000 };
	n = sbx_msg_encode_pins(&m, out, sizeof(out));
	assert_true(n > 0);
	f->plan.attach.on = true;
	send_bytes(f, BROKER, out, (size_t)n, 0);
	is_fine(f);
	assert_int_equal(n_pins, 1);
	f->plan.attach.on = false;
	send_bytes(f, BROKER, out, (size_t)n, 0);
	is_broken(f, BROKER);
	assert_int_equal(n_pins, 1);
}

/* Each peer has its own types; CONFIG is nobody's. */
static void test_types_of_others(void **state)
{
	static const struct {
		enum peer from;
		enum sbx_msg_type type;
	} cases[] = {
		{ STAGE, SBX_MSG_READY },	  { STAGE, SBX_MSG_RELEASE },
		{ STAGE, SBX_MSG_INIT_HELLO },	  { BROKER, SBX_MSG_INIT_HELLO },
		{ BROKER, SBX_MSG_COMMAND_EXIT }, { BROKER, SBX_MSG_STAGE_READY },
		{ INIT, SBX_MSG_COMMAND_EXIT },	  { INIT, SBX_MSG_READY },
		{ INIT, SBX_MSG_STAGE_READY },	  { TLS, SBX_MSG_READY },
		{ TLS, SBX_MSG_SECRET },	  { BROKER, SBX_MSG_TLS_READY },
		{ BROKER, SBX_MSG_SECRET_STALE },
	};

	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++) {
		void *one;

		setup(&one);
		say(one, cases[i].from, cases[i].type, 0, 0);
		is_broken(one, cases[i].from);
		teardown(&one);
	}
	(void)state;
}

static void test_no_message(void **state)
{
	for (int i = 0; i < N_PEERS; i++)
		for (size_t n_fds = 0; n_fds < 2; n_fds++) {
			void *one;

			setup(&one);
			send_bytes(one, (enum peer)i, "?", 1, n_fds);
			is_broken(one, (enum peer)i);
			teardown(&one);
		}
	(void)state;
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_silence),
		TEST(test_chatter),
		TEST(test_gone),
		TEST(test_upper),
		TEST(test_upper_again),
		TEST(test_upper_not_asked_for),
		TEST(test_upper_of_scratch),
		TEST(test_stage_gone),
		TEST(test_stage_failed),
		TEST(test_protect_helper),
		TEST(test_tls),
		TEST(test_tls_counts),
		TEST(test_tls_without),
		TEST(test_tls_more),
		TEST(test_tls_fewer),
		TEST(test_stale_early),
		TEST(test_stale_unknown),
		TEST(test_secret_without),
		TEST(test_ready_tls),
		TEST(test_mounts_cut),
		TEST(test_upper_without),
		TEST(test_upper_two),
		TEST(test_upper_long),
		TEST(test_ready_counts),
		TEST(test_ready_more),
		TEST(test_ready_fewer),
		TEST(test_ready_unknown),
		TEST(test_verdicts),
		TEST(test_verdicts_fewer),
		TEST(test_verdicts_more),
		TEST(test_verdicts_first),
		TEST(test_mounts_checked),
		TEST(test_mounts_too_many),
		TEST(test_mounts_without_root),
		TEST(test_mounts_early),
		TEST(test_ready_twice),
		TEST(test_release_early),
		TEST(test_release_twice),
		TEST(test_exec_failed_early),
		TEST(test_exec_listener),
		TEST(test_hello_twice),
		TEST(test_pins_not_asked_for),
		cmocka_unit_test(test_types_of_others),
		cmocka_unit_test(test_no_message),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
