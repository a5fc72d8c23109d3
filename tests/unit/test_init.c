/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* sbx-init: its protocol, and how it becomes the command. */
#include "tests/unit/init_process.h"

#include <sys/syscall.h>

/* --- the protocol --- */

static void release_runs_the_command(void)
{
	const char *const command[] = {
		"sh",  "-c", "echo \"$0 $1\"; ls /proc/self/fd | tr '\\n' ' '; exit 7",
		"a b", "c",  NULL
	};
	struct init_process in;
	char out[256];

	release(&in, as_bwrap, command);
	CHECK(receive(&in).n == 0); /* the end of the channel: the exec worked */
	read_output(&in, out, sizeof(out));
	CHECK(strcmp(out, "a b c\n0 1 2 3 ") == 0); /* 3 is ls's own */
	CHECK(exit_status(&in) == 7);
}

/* Whatever is not RELEASE ends init, and the command never runs. */
static void nothing_runs_without_release(void)
{
	static const enum sbx_msg_type wrong[] = { SBX_MSG_NONE, SBX_MSG_STOP, SBX_MSG_INIT_HELLO };
	const char *const command[] = { "sh", "-c", "echo it ran", NULL };

	for (size_t i = 0; i < SBX_N_ELEMENTS(wrong); i++) {
		struct init_process in;
		char out[64];

		start(&in, as_bwrap, command);
		run_probes(&in, &none);
		if (wrong[i] == SBX_MSG_NONE)
			shutdown(in.fd, SHUT_RDWR);
		else
			send_simple(&in, wrong[i]);
		read_output(&in, out, sizeof(out));
		CHECK(out[0] == '\0');
		CHECK(exit_status(&in) == 125);
	}
}

static void probes_must_come_first(void)
{
	for (int i = 0; i < 3; i++) {
		struct init_process in;

		start(&in, as_bwrap, command_true);
		expect_simple(&in, SBX_MSG_INIT_HELLO);
		if (i == 0)
			send_simple(&in, SBX_MSG_RELEASE);
		else if (i == 1)
			CHECK(sbx_channel_send(in.fd, "junk", 4, NULL, 0) == 0);
		else
			shutdown(in.fd, SHUT_WR);
		CHECK(exit_status(&in) == 125);
		close(in.output);
	}
}

static void usage_is_125(void)
{
	static const char *const lines[][8] = {
		{ "sbx-init", NULL },
		{ "sbx-init", "3", "4", "true", NULL },
		{ "sbx-init", "3", "4", "--", NULL },
		{ "sbx-init", "x", "4", "--", "true", NULL },
		{ "sbx-init", "99", "-1", "--", "true", NULL },
		{ "sbx-init", "-1", "-1", "--", "true", NULL },
		{ "sbx-init", "3", "-2", "--", "true", NULL },
	};

	for (size_t i = 0; i < SBX_N_ELEMENTS(lines); i++) {
		int status;
		pid_t pid = fork();

		if (pid == 0) {
			int quiet = open("/dev/null", O_WRONLY | O_CLOEXEC);

			dup2(quiet, 2);
			close(CTL);
			execv(init_path(), (char **)(uintptr_t)lines[i]);
			_exit(99);
		}
		CHECK(waitpid(pid, &status, 0) == pid);
		CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 125);
	}
}

/* --- the exec --- */

static void exec_statuses(void)
{
	static const struct {
		const char *command;
		int status, error; /* 0: no EXEC_FAILED */
	} cases[] = {
		{ "nowhere-to-be-found", 127, ENOENT },
		{ "/nowhere/to/be/found", 127, ENOENT },
		{ "./plain", 126, EACCES },
		{ "plain", 126, EACCES },
		{ "./dir", 126, EACCES },
		{ "./plain/x", 127, ENOTDIR },
		{ "", 127, ENOENT },
		{ "./script", 9, 0 },
		{ "script", 9, 0 }, /* by PATH, without #!: /bin/sh runs it */
	};
	char dir[] = "/tmp/sbx-init-XXXXXX", path[256];

	CHECK(mkdtemp(dir) && chdir(dir) == 0);
	make_script("plain", "exit 9\n", 0644);
	make_script("script", "exit 9\n", 0755);
	CHECK(mkdir("dir", 0755) == 0);
	snprintf(path, sizeof(path), "%s:/usr/bin:/bin", dir);
	setenv("PATH", path, 1);
	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++) {
		const char *const command[] = { cases[i].command, NULL };
		struct sbx_msg_exec_failed m;
		struct init_process in;

		release(&in, as_bwrap, command);
		if (cases[i].error) {
			CHECK(sbx_msg_decode_exec_failed(receive(&in), &m) == 0);
			CHECK((int)m.error == cases[i].error &&
			      m.not_found == (cases[i].status == 127));
		}
		CHECK(receive(&in).n == 0);
		CHECK(exit_status(&in) == cases[i].status);
		close(in.output);
	}
	CHECK(unlink("plain") == 0 && unlink("script") == 0 && rmdir("dir") == 0 &&
	      rmdir(dir) == 0);
}

static void odd_signals(void)
{
	sigset_t all;

	as_bwrap();
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGCHLD, SIG_IGN);
	syscall(SYS_rt_sigaction, 32, (unsigned long[8]){ 1 }, NULL, 8); /* libc's, ignored */
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGINT, SIG_DFL); /* make and shells start jobs with these two ignored */
	signal(SIGQUIT, SIG_DFL);
}

static void signals_are_reset(void)
{
	const char *const command[] = { "grep", "-E", "^Sig(Blk|Ign):", "/proc/self/status", NULL };
	/* SIGHUP, bit 0, is nohup's and stays. */
	const char *const want = "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000001\n";
	struct init_process in;
	char out[256];

	release(&in, odd_signals, command);
	read_output(&in, out, sizeof(out));
	if (strcmp(out, want) != 0)
		fprintf(stderr, "# got %s", out);
	CHECK(strcmp(out, want) == 0);
	CHECK(exit_status(&in) == 0);
}

static void blocked_term(void)
{
	sigset_t term;

	as_bwrap();
	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	sigprocmask(SIG_BLOCK, &term, NULL);
}

/* A signal that came during the self-test is the command's: it ends it before it begins. */
static void early_signal_counts(void)
{
	const char *const command[] = { "sh", "-c", "echo it ran", NULL };
	struct init_process in;
	char out[64];

	start(&in, blocked_term, command);
	run_probes(&in, &none);
	kill(in.pid, SIGTERM);
	send_simple(&in, SBX_MSG_RELEASE);
	read_output(&in, out, sizeof(out));
	CHECK(out[0] == '\0');
	CHECK(exit_status(&in) == 128 + SIGTERM);
}

PLAIN_TEST(release_runs_the_command)
PLAIN_TEST(nothing_runs_without_release)
PLAIN_TEST(probes_must_come_first)
PLAIN_TEST(usage_is_125)
PLAIN_TEST(exec_statuses)
PLAIN_TEST(signals_are_reset)
PLAIN_TEST(early_signal_counts)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_release_runs_the_command),
		cmocka_unit_test(test_nothing_runs_without_release),
		cmocka_unit_test(test_probes_must_come_first),
		cmocka_unit_test(test_usage_is_125),
		cmocka_unit_test(test_exec_statuses),
		cmocka_unit_test(test_signals_are_reset),
		cmocka_unit_test(test_early_signal_counts),
	};

	return cmocka_run_group_tests_name("init", tests, NULL, NULL);
}
