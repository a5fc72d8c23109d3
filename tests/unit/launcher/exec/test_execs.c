/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Further commands, from the launcher's side. The test is pid 1 and its children. */
#include "tests/unit/plan_world.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "ipc/channel.h"
#include "ipc/messages.h"
#include "launcher/exec/execs.h"

struct fixture {
	struct plan_world *w;
	struct sbx_watches watches;
	struct sbx_execs execs;
	int ours, pid1; /* the two ends of the channel */
	char told[512]; /* what the callbacks said, in order */
	struct sbx_err err;
};

/* An EXEC as pid 1 got it. */
struct got {
	uint8_t packet[SBX_MSG_MAX];
	struct sbx_msg_exec m;
	int fds[SBX_N_EXEC_FDS];
};

__attribute__((format(printf, 2, 3))) static void tell(struct fixture *f, const char *fmt, ...)
{
	size_t n = strlen(f->told);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(f->told + n, sizeof(f->told) - n, fmt, ap);
	va_end(ap);
}

static void on_started(void *userdata, uint32_t number)
{
	tell(userdata, "started %u. ", number);
}

static void on_exited(void *userdata, uint32_t number, int status)
{
	tell(userdata, "exited %u %d. ", number, status);
}

static void on_failed(void *userdata, uint32_t number, int status, const char *why)
{
	tell(userdata, "failed %u %d %s. ", number, status, why);
}

static int setup(void **state)
{
	static struct fixture f;

	memset(&f, 0, sizeof(f));
	if (plan_world_setup((void **)&f.w) != 0)
		return -1;
	plan_world_must(f.w, "--", "true");
	sbx_execs_init(&f.execs);
	assert_int_equal(sbx_channel_pair(&f.ours, &f.pid1), 0);
	assert_int_equal(sbx_fd_set_nonblocking(f.ours), 0);
	sbx_execs_open(&f.execs, f.w->plan, &f.watches, f.ours);
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	void *w = f->w;

	sbx_execs_fini(&f->execs);
	sbx_fd_close(f->ours);
	sbx_fd_close(f->pid1);
	return plan_world_teardown(&w);
}

static int start_request(struct fixture *f, const struct sbx_exec_request *q)
{
	const struct sbx_exec_done done = { on_started, on_exited, on_failed, f };
	uint32_t number = 0;
	int r;

	memset(&f->err, 0, sizeof(f->err));
	r = sbx_execs_start(&f->execs, q, &done, &number, &f->err);
	assert_int_equal(r == 0, number != 0);
	assert_int_equal(r == 0, f->err.msg[0] == '\0');
	return r;
}

static int start(struct fixture *f, char *command)
{
	char *argv[] = { command, NULL };

	return start_request(f, &(struct sbx_exec_request){ .argv = argv, .stdio = { 0, 1, 2 } });
}

/* The next EXEC. The child's end of its channel is got->fds[0]. */
static struct got *take(struct fixture *f)
{
	static struct got got;
	size_t n, n_fds;

	assert_int_equal(sbx_channel_recv(f->pid1, got.packet, sizeof(got.packet), &n, got.fds,
					  SBX_N_EXEC_FDS, &n_fds, NULL), 0);
	assert_int_equal(sbx_msg_decode_exec(sbx_span(got.packet, n), &got.m), 0);
	assert_int_equal(n_fds, SBX_N_EXEC_FDS);
	for (size_t i = 1; i < n_fds; i++)
		close(got.fds[i]);
	return &got;
}

static void nothing_was_sent(struct fixture *f)
{
	struct pollfd p = { .fd = f->pid1, .events = POLLIN };

	assert_int_equal(poll(&p, 1, 0), 0);
}

static void say(int fd, enum sbx_msg_type type)
{
	uint8_t p[64];
	ssize_t n = sbx_msg_encode_simple(type, 0, p, sizeof(p));

	assert_int_equal(sbx_channel_send(fd, p, (size_t)n, NULL, 0), 0);
}

static void say_failed(int fd, uint32_t error, uint8_t not_found, const char *why)
{
	struct sbx_msg_exec_failed m = { .error = error, .not_found = not_found };
	uint8_t p[512];
	ssize_t n;

	snprintf(m.why, sizeof(m.why), "%s", why);
	n = sbx_msg_encode_exec_failed(&m, p, sizeof(p));
	assert_int_equal(sbx_channel_send(fd, p, (size_t)n, NULL, 0), 0);
}

/* A turn of the launcher's loop. */
static void turn(struct fixture *f)
{
	struct pollfd p[SBX_WATCHES_MAX];
	size_t n = sbx_watches_fill(&f->watches, p);

	poll(p, n, 0);
	sbx_watches_act(&f->watches, p, n, 1);
}

static int exited(struct fixture *f, uint32_t number, uint32_t status, uint32_t error)
{
	const struct sbx_msg_exec_exit m = { number, status, error };

	return sbx_execs_on_exit(&f->execs, &m);
}

static void expect_told(struct fixture *f, const char *want)
{
	assert_string_equal(f->told, want);
	f->told[0] = '\0';
}

/* --- requests --- */

static void test_request(void **state)
{
	struct fixture *f = *state;
	char *argv[] = { "sh", "-c", "", NULL }, *env[] = { "A=b", "PWD=", NULL };
	const struct sbx_exec_request q = { .argv = argv, .env = env, .chdir = "sub",
					    .stdio = { 0, 1, 2 } };
	char want[512];
	struct got *got;
	int n;

	assert_int_equal(start_request(f, &q), 0);
	got = take(f);
	assert_int_equal(got->m.number, 1);
	assert_int_equal(got->m.tty, 0);
	assert_int_equal(got->m.n_argv, 3);
	assert_int_equal(got->m.n_env, 3);
	n = snprintf(want, sizeof(want), "%s/sub%csh%c-c%c%cPWD=%s/sub%cA=b%cPWD=",
		     f->w->plan->view.chdir, 0, 0, 0, 0, f->w->plan->view.chdir, 0, 0);
	assert_int_equal(got->m.text.n, n + 1);
	assert_memory_equal(got->m.text.p, want, (size_t)n + 1);
	close(got->fds[0]);

	assert_int_equal(start(f, "true"), 0); /* by itself: the first command's directory */
	got = take(f);
	assert_int_equal(got->m.number, 2);
	assert_int_equal(got->m.n_env, 0);
	assert_string_equal((const char *)got->m.text.p, f->w->plan->view.chdir);
	close(got->fds[0]);
}

static void test_terminal(void **state)
{
	struct fixture *f = *state;
	char *argv[] = { "sh", NULL };
	struct sbx_exec_request q = { .argv = argv, .tty = true };
	int master, slave;

	assert_int_equal(openpty(&master, &slave, NULL, NULL, NULL), 0);
	q.stdio[0] = q.stdio[1] = q.stdio[2] = slave;
	assert_int_equal(start_request(f, &q), 0);
	assert_int_equal(take(f)->m.tty, 1);
	q.stdio[0] = f->pid1;
	assert_int_equal(start_request(f, &q), 125);
	assert_string_equal(f->err.msg, "standard input is no terminal");
	nothing_was_sent(f);
	close(master);
	close(slave);
}

static void test_malformed(void **state)
{
	struct fixture *f = *state;
	static char long_word[SBX_EXEC_TEXT_MAX];
	char *none[] = { NULL }, *empty[] = { "", NULL }, *argv[] = { "true", NULL },
	     *huge[] = { "true", long_word, NULL }, *bad_names[] = { "1=x", "A", "=x", "A B=x" };

	memset(long_word, 'x', sizeof(long_word) - 1);
	assert_int_equal(start_request(f, &(struct sbx_exec_request){ .argv = none }), 125);
	assert_int_equal(start_request(f, &(struct sbx_exec_request){ .argv = empty }), 125);
	assert_int_equal(start_request(f, &(struct sbx_exec_request){ .argv = argv, .chdir = "" }),
			 125);
	assert_int_equal(start_request(f, &(struct sbx_exec_request){ .argv = huge,
								      .stdio = { 0, 1, 2 } }),
			 125);
	assert_non_null(strstr(f->err.msg, "more than 60000 bytes"));
	for (size_t i = 0; i < SBX_N_ELEMENTS(bad_names); i++) {
		char *env[] = { "OK=1", bad_names[i], NULL };
		const struct sbx_exec_request q = { .argv = argv, .env = env,
						    .stdio = { 0, 1, 2 } };

		assert_int_equal(start_request(f, &q), 125);
		assert_non_null(strstr(f->err.msg, "variable"));
	}
	nothing_was_sent(f);
	long_word[SBX_EXEC_TEXT_MAX - 4096] = '\0';
	assert_int_equal(start_request(f, &(struct sbx_exec_request){ .argv = huge,
								      .stdio = { 0, 1, 2 } }),
			 0);
}

/* Descriptors that lead out of the sandbox, each in each place. */
static void test_stdio(void **state)
{
	struct fixture *f = *state;
	char *argv[] = { "true", NULL };
	const int bad[] = { open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC),
			    open("/etc/passwd", O_PATH | O_CLOEXEC),
			    socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0),
			    socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0), -1 };
	const int good[] = { open("/etc/passwd", O_RDONLY | O_CLOEXEC),
			     socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), 0 };

	for (size_t i = 0; i < 3 * SBX_N_ELEMENTS(bad); i++) {
		struct sbx_exec_request q = { .argv = argv, .stdio = { 0, 1, 2 } };

		q.stdio[i % 3] = bad[i / 3];
		assert_int_equal(start_request(f, &q), 125);
		assert_non_null(strstr(f->err.msg, "standard "));
		nothing_was_sent(f);
	}
	for (size_t i = 0; i < 3 * SBX_N_ELEMENTS(good); i++) {
		struct sbx_exec_request q = { .argv = argv, .stdio = { 0, 1, 2 } };

		q.stdio[i % 3] = good[i / 3];
		assert_int_equal(start_request(f, &q), 0);
		close(take(f)->fds[0]);
	}
	for (size_t i = 0; i < SBX_N_ELEMENTS(bad); i++)
		sbx_fd_close(bad[i]);
	close(good[0]);
	close(good[1]);
}

/* --- the policy --- */

static void test_denied(void **state)
{
	struct fixture *f = *state;
	char *argv[] = { "./up", NULL }, *link_argv[] = { "link", NULL };
	char *path[] = { NULL, NULL };
	struct sbx_exec_request q = { .argv = argv, .chdir = "sub", .stdio = { 0, 1, 2 } };
	char text[512];

	assert_int_equal(start(f, "sudo"), 126);
	assert_string_equal(f->err.msg, "command 'sudo' is denied by the system policy: "
					"commands.deny 'sudo'");
	assert_int_equal(start(f, "/usr/bin/sudo"), 126);
	assert_int_equal(start(f, "./link"), 126);
	assert_int_equal(start(f, "/nowhere/nft"), 126); /* as the first command's: not there */
	plan_world_link(f->w, "home/project/sub/up", "../link");
	assert_int_equal(start_request(f, &q), 126); /* in its own directory, */
	snprintf(text, sizeof(text), "PATH=/usr/bin:%s", f->w->plan->view.chdir);
	path[0] = text;
	q = (struct sbx_exec_request){ .argv = link_argv, .env = path, .stdio = { 0, 1, 2 } };
	assert_int_equal(start_request(f, &q), 126); /* and by its own PATH */
	nothing_was_sent(f);
	q.env = NULL;
	assert_int_equal(start_request(f, &q), 0); /* not found: the sandbox may know it */
}

/* The sandbox may have files that the plan does not know. If it has not, the answer is the first
 * command's. */
static void test_missing(void **state)
{
	static const struct {
		char *command;
		uint32_t error;
		int status;
		const char *why;
	} cases[] = {
		{ "nothing", ENOENT, 127,
		  "command 'nothing' was not found in the sandbox's PATH, " },
		{ "/tmp/x", ENOENT, 127, "command '/tmp/x' is not in the sandbox (grant its "
					 "directory with --ro-bind)" },
		{ "./data.txt", EACCES, 126, "command './data.txt' is not executable" },
		/* the sandbox says otherwise than the plan */
		{ "nothing", EACCES, 126,
		  "command 'nothing' cannot be executed: Permission denied" },
		{ "./data.txt", ENOENT, 127,
		  "command './data.txt' cannot be executed: No such file or directory" },
		{ "true", ENOENT, 127, "command 'true' cannot be executed: No such file or "
				       "directory" },
	};
	struct fixture *f = *state;

	for (uint32_t i = 0; i < SBX_N_ELEMENTS(cases); i++) {
		char want[256];
		struct got *got;

		assert_int_equal(start(f, cases[i].command), 0);
		got = take(f);
		say(got->fds[0], SBX_MSG_INIT_HELLO);
		say_failed(got->fds[0], cases[i].error, cases[i].error == ENOENT, "");
		close(got->fds[0]);
		turn(f);
		snprintf(want, sizeof(want), "failed %u %d %s", i + 1, cases[i].status,
			 cases[i].why);
		if (strncmp(f->told, want, strlen(want)) != 0)
			fail_msg("got '%s', want '%s'", f->told, want);
		f->told[0] = '\0';
		assert_int_equal(exited(f, i + 1, (uint32_t)cases[i].status << 8, 0), 0);
		expect_told(f, "");
	}
}

/* --- what becomes of it --- */

static void test_started_and_exited(void **state)
{
	struct fixture *f = *state;
	struct got *got;

	assert_int_equal(start(f, "true"), 0);
	got = take(f);
	turn(f);
	say(got->fds[0], SBX_MSG_INIT_HELLO);
	turn(f);
	expect_told(f, "");
	assert_int_equal(sbx_execs_count(&f->execs), 1);
	close(got->fds[0]);
	turn(f);
	expect_told(f, "started 1. ");
	assert_int_equal(exited(f, 1, 3 << 8, 0), 0);
	expect_told(f, "exited 1 768. ");
	assert_int_equal(sbx_execs_count(&f->execs), 0);
	assert_int_equal(exited(f, 1, 3 << 8, 0), -1);

	/* pid 1's message overtakes the end of the channel */
	assert_int_equal(start(f, "true"), 0);
	got = take(f);
	say(got->fds[0], SBX_MSG_INIT_HELLO);
	close(got->fds[0]);
	assert_int_equal(exited(f, 2, 9, 0), 0);
	expect_told(f, "started 2. exited 2 9. ");

	assert_int_equal(start(f, "true"), 0);
	got = take(f);
	say(got->fds[0], SBX_MSG_INIT_HELLO);
	say_failed(got->fds[0], 0, 0, "cannot change to /x");
	close(got->fds[0]);
	assert_int_equal(exited(f, 3, 125 << 8, 0), 0);
	expect_told(f, "failed 3 125 cannot change to /x. ");
	turn(f);
	expect_told(f, "");
	assert_false(f->execs.broken);
}

/* A channel that ends without a hello is no exec. */
static void test_never_born(void **state)
{
	struct fixture *f = *state;
	struct got *got;

	assert_int_equal(start(f, "true"), 0);
	close(take(f)->fds[0]);
	turn(f);
	expect_told(f, "");
	assert_int_equal(exited(f, 1, 0, EAGAIN), 0);
	expect_told(f, "failed 1 125 cannot start a process in the sandbox: Resource temporarily "
		       "unavailable. ");
	assert_int_equal(start(f, "true"), 0);
	close(take(f)->fds[0]);
	assert_int_equal(exited(f, 2, SIGKILL, 0), 0);
	expect_told(f, "failed 2 125 the command was killed before it was executed. ");
	assert_int_equal(start(f, "true"), 0);
	got = take(f); /* another process has its channel yet */
	assert_int_equal(exited(f, 3, SIGKILL, 0), 0);
	expect_told(f, "failed 3 125 the command was killed before it was executed. ");
	close(got->fds[0]);
	turn(f);
	expect_told(f, "");
}

static void test_protocol(void **state)
{
	struct fixture *f = *state;

	for (int i = 0; i < 5; i++) {
		struct got *got;

		f->execs.broken = false;
		assert_int_equal(start(f, "true"), 0);
		got = take(f);
		if (i == 0)
			say_failed(got->fds[0], ENOENT, 1, ""); /* before the hello */
		else
			say(got->fds[0], SBX_MSG_INIT_HELLO);
		if (i == 1)
			say(got->fds[0], SBX_MSG_INIT_HELLO);
		else if (i == 2)
			sbx_channel_send(got->fds[0], "junk", 4, NULL, 0);
		else if (i == 3)
			sbx_channel_send(got->fds[0], "x", 1, &f->pid1, 1);
		turn(f);
		assert_int_equal(f->execs.broken, i < 4);
		close(got->fds[0]);
	}
	assert_int_equal(exited(f, 0, 0, 0), -1);
	assert_int_equal(exited(f, 6, 0, 0), -1);
	assert_int_equal(exited(f, UINT32_MAX, 0, 0), -1);
}

static void test_no_more_than_64(void **state)
{
	struct fixture *f = *state;

	for (int i = 0; i < SBX_EXECS_MAX; i++) {
		assert_int_equal(start(f, "true"), 0);
		close(take(f)->fds[0]);
	}
	assert_int_equal(start(f, "true"), 125);
	assert_non_null(strstr(f->err.msg, "64 commands"));
	nothing_was_sent(f);
	assert_int_equal(exited(f, 17, 0, 0), 0);
	assert_int_equal(start(f, "true"), 0);
	assert_int_equal(take(f)->m.number, 65); /* not a number that was used */
}

static void test_signals(void **state)
{
	struct fixture *f = *state;
	struct sbx_msg_exec_signal m;
	uint8_t packet[64];
	size_t n;

	assert_int_equal(sbx_execs_signal(&f->execs, 1, SIGTERM), -ESRCH);
	assert_int_equal(sbx_execs_signal(&f->execs, 0, SIGTERM), -ESRCH);
	assert_int_equal(start(f, "true"), 0);
	close(take(f)->fds[0]);
	assert_int_equal(sbx_execs_signal(&f->execs, 1, 0), -EINVAL);
	assert_int_equal(sbx_execs_signal(&f->execs, 1, -1), -EINVAL);
	assert_int_equal(sbx_execs_signal(&f->execs, 1, 65), -EINVAL);
	assert_int_equal(sbx_execs_signal(&f->execs, 2, SIGTERM), -ESRCH);
	assert_int_equal(sbx_execs_signal(&f->execs, 0, SIGTERM), -ESRCH);
	nothing_was_sent(f);
	assert_int_equal(sbx_execs_signal(&f->execs, 1, SIGTERM), 0);
	assert_int_equal(sbx_channel_recv(f->pid1, packet, sizeof(packet), &n, NULL, 0, NULL, NULL),
			 0);
	assert_int_equal(sbx_msg_decode_exec_signal(sbx_span(packet, n), &m), 0);
	assert_true(m.number == 1 && m.sig == SIGTERM);
	assert_int_equal(exited(f, 1, SIGTERM, 0), 0);
	assert_int_equal(sbx_execs_signal(&f->execs, 1, SIGTERM), -ESRCH);
}

/* Nothing is told to a client that is gone; the place is freed as ever. */
static void test_forget(void **state)
{
	struct fixture *f = *state;
	struct got *got;

	sbx_execs_forget(&f->execs, 1);
	assert_int_equal(start(f, "true"), 0);
	got = take(f);
	sbx_execs_forget(&f->execs, 1);
	say(got->fds[0], SBX_MSG_INIT_HELLO);
	close(got->fds[0]);
	turn(f);
	assert_int_equal(sbx_execs_count(&f->execs), 1);
	assert_int_equal(exited(f, 1, 0, 0), 0);
	expect_told(f, "");
	assert_int_equal(sbx_execs_count(&f->execs), 0);
}

static void test_end(void **state)
{
	struct fixture *f = *state;
	struct got *got;

	assert_int_equal(start(f, "true"), 0); /* runs */
	got = take(f);
	say(got->fds[0], SBX_MSG_INIT_HELLO);
	close(got->fds[0]);
	turn(f);
	assert_int_equal(start(f, "true"), 0); /* is about to */
	close(take(f)->fds[0]);
	expect_told(f, "started 1. ");
	sbx_execs_end(&f->execs);
	expect_told(f, "exited 1 9. failed 2 125 the sandbox has ended. ");
	assert_int_equal(sbx_execs_count(&f->execs), 0);
	assert_int_equal(start(f, "true"), 125);
	assert_non_null(strstr(f->err.msg, "ending"));
	sbx_execs_end(&f->execs);
	expect_told(f, "");
}

/* Pid 1 is gone, and its end is not heard yet. */
static void test_gone(void **state)
{
	struct fixture *f = *state;

	f->pid1 = sbx_fd_close(f->pid1);
	assert_int_equal(start(f, "true"), 125);
	assert_non_null(strstr(f->err.msg, "it is ending"));
	assert_int_equal(sbx_execs_count(&f->execs), 0);
	assert_int_equal(f->watches.v[0].fn == NULL, 1);
}

static void test_full(void **state)
{
	struct fixture *f = *state;
	static char long_word[50000];
	char *argv[] = { "true", long_word, NULL };
	const struct sbx_exec_request q = { .argv = argv, .stdio = { 0, 1, 2 } };
	int r = 0;

	memset(long_word, 'x', sizeof(long_word) - 1);
	for (int i = 0; i < SBX_EXECS_MAX && r == 0; i++)
		r = start_request(f, &q);
	assert_int_equal(r, 125);
	assert_non_null(strstr(f->err.msg, "too many to start"));
	close(take(f)->fds[0]);
	assert_int_equal(start_request(f, &q), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_request),	   TEST(test_terminal), TEST(test_malformed),
		TEST(test_stdio),	   TEST(test_denied),	TEST(test_missing),
		TEST(test_started_and_exited), TEST(test_never_born), TEST(test_protocol),
		TEST(test_no_more_than_64), TEST(test_signals), TEST(test_forget),
		TEST(test_end),		   TEST(test_gone),	TEST(test_full),
	};

	return cmocka_run_group_tests_name("execs", tests, NULL, NULL);
}
