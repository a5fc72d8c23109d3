/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* sbx-init: its protocol, how it becomes the command, and what stays of it. */
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

/* Any message but RELEASE ends init, and the command never runs. */
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
		expect_hello(&in);
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
		{ "sbx-init", "0", "-1", "1", NULL },
		{ "sbx-init", "0", "-1", "1", "true", NULL },
		{ "sbx-init", "x", "-1", "1", "--", "true", NULL },
		{ "sbx-init", "99", "-1", "1", "--", "true", NULL },
		{ "sbx-init", "-1", "-1", "1", "--", "true", NULL },
		{ "sbx-init", "0", "-2", "1", "--", "true", NULL },
		{ "sbx-init", "0", "-1", "x", "--", "true", NULL },
		{ "sbx-init", "0", "-1", "99", "--", "true", NULL },
		{ "sbx-init", "0", "-1", "-1", "--", "true", NULL },
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

/* A signal during the self-test is the command's: it ends the command before its exec. */
static void early_signal_counts(void)
{
	const char *const command[] = { "sh", "-c", "echo it ran", NULL };
	struct init_process in;
	char out[64];

	start(&in, blocked_term, command);
	run_probes(&in, &none);
	kill(in.command, SIGTERM);
	send_simple(&in, SBX_MSG_RELEASE);
	read_output(&in, out, sizeof(out));
	CHECK(out[0] == '\0');
	CHECK(exit_status(&in) == 128 + SIGTERM);
}

/* --- pid 1 --- */

static void statuses_are_handed_on(void)
{
	static const struct {
		const char *script;
		int status;
	} cases[] = {
		{ "exit 0", 0 },
		{ "exit 255", 255 },
		{ "kill -TERM $$", 128 + SIGTERM },
		{ "kill -KILL $$", 128 + SIGKILL },
	};

	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++) {
		const char *const command[] = { "sh", "-c", cases[i].script, NULL };
		struct init_process in;

		release(&in, as_bwrap, command);
		CHECK(exit_status(&in) == cases[i].status);
		close(in.output);
	}
}

/* Prepare init as pid 1 of a namespace: orphans become its children. */
static void as_pid_1(void)
{
	as_bwrap();
	CHECK(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0);
}

/* An orphan becomes pid 1's, and its zombie goes while the command runs on. */
static void orphans_are_reaped(void)
{
	const char *const command[] = {
		"sh", "-c",
		"p=$(sh -c 'sleep 0.3 >/dev/null & echo $!')\n"
		"grep -q \"^PPid:[[:space:]]*$PPID\\$\" /proc/$p/status || exit 2\n"
		"i=0; while [ -e /proc/$p ] && [ $i -lt 100 ]; do sleep 0.05; i=$((i+1)); done\n"
		"[ ! -e /proc/$p ]",
		NULL
	};
	struct init_process in;

	release(&in, as_pid_1, command);
	CHECK(exit_status(&in) == 0);
	close(in.output);
}

/* The exit status is the command's, also when another process ends last. */
static void waits_for_all(void)
{
	const char *const command[] = {
		"sh", "-c", "exec 5<&0; (sh -c 'read line <&5; exit 3' &); kill -TERM $$", NULL
	};
	const char *const alone[] = { "sh", "-c", "exit 6", NULL };
	struct init_process in;
	siginfo_t si;
	int input[2];

	init_wait_all = true;
	release(&in, as_pid_1, alone);
	CHECK(exit_status(&in) == 6);
	close(in.output);

	CHECK(pipe2(input, O_CLOEXEC) == 0);
	CHECK(dup2(input[0], 0) == 0 && close(input[0]) == 0);
	release(&in, as_pid_1, command);
	CHECK(receive(&in).n == 0);
	while (kill(in.command, 0) == 0) /* it ends, and is reaped */
		sched_yield();
	usleep(50000);
	CHECK(waitpid(in.pid, NULL, WNOHANG) == 0);
	CHECK(write(input[1], "\n", 1) == 1);
	CHECK(waitid(P_PID, (id_t)in.pid, &si, WEXITED | WNOWAIT) == 0);
	CHECK(exit_status(&in) == 128 + SIGTERM);
	close(in.output);

	init_wait_all = false; /* the twin: the same, not waited for */
	CHECK(pipe2(input, O_CLOEXEC) == 0);
	CHECK(dup2(input[0], 0) == 0);
	release(&in, as_pid_1, command);
	CHECK(exit_status(&in) == 128 + SIGTERM);
	close(in.output);
}

/* A command that makes pid 1 its tracer runs on untraced: pid 1 does not take its stop for its
 * end. */
static void pid_1_traces_nobody(void)
{
	static const char code[] = "import ctypes, os, signal\n"
				   "if ctypes.CDLL(None).ptrace(0, 0, 0, 0): os._exit(1)\n"
				   "os.kill(os.getpid(), signal.SIGSTOP)\n"
				   "os.execl('/bin/sh', 'sh', '-c', 'exit 4')\n";
	const char *const command[] = { "python3", "-c", code, NULL };
	struct init_process in;

	release(&in, as_pid_1, command);
	CHECK(exit_status(&in) == 4);
	close(in.output);
}

/* A descriptor that the command closes is closed, although pid 1 was given it too. */
static void pid_1_holds_no_fd(void)
{
	const char *const command[] = { "sh", "-c", "exec <&- >&- 2>&-; sleep 20", NULL };
	struct pollfd writer = { .events = POLLOUT };
	struct init_process in;
	int input[2];
	char out[64];

	CHECK(pipe2(input, O_CLOEXEC) == 0);
	CHECK(dup2(input[0], 0) == 0 && close(input[0]) == 0);
	release(&in, as_bwrap, command);
	close(0);
	CHECK(receive(&in).n == 0);
	read_output(&in, out, sizeof(out)); /* to the end */
	CHECK(out[0] == '\0');
	writer.fd = input[1];
	do {
		CHECK(poll(&writer, 1, 10) >= 0);
	} while (!(writer.revents & POLLERR)); /* no reader is left */
	CHECK(waitpid(in.pid, NULL, WNOHANG) == 0);
	CHECK(kill(in.command, SIGKILL) == 0);
	CHECK(exit_status(&in) == 128 + SIGKILL);
}

/* Has @pid blocked SIGTERM? */
static bool blocks_term(pid_t pid)
{
	char path[64], line[256];
	unsigned long long blocked = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	f = fopen(path, "re");
	CHECK(f);
	while (fgets(line, sizeof(line), f))
		if (strncmp(line, "SigBlk:", 7) == 0)
			blocked = strtoull(line + 7, NULL, 16);
	fclose(f);
	return blocked & 1ull << (SIGTERM - 1);
}

/* Pid 1 leaves signals to the command. A namespace's init would not get them; this init is in no
 * namespace. */
static void pid_1_takes_no_signals(void)
{
	const int signals[] = { SIGHUP,	 SIGINT,  SIGQUIT, SIGTERM, SIGUSR1, SIGALRM,
				SIGTSTP, SIGTTIN, SIGTTOU, SIGPIPE, SIGRTMAX };
	const char *const command[] = { "sh", "-c", "exit 7", NULL };
	struct init_process in;

	start(&in, as_bwrap, command);
	run_probes(&in, &none);
	while (!blocks_term(in.pid))
		sched_yield();
	for (size_t i = 0; i < SBX_N_ELEMENTS(signals); i++)
		CHECK(kill(in.pid, signals[i]) == 0);
	send_simple(&in, SBX_MSG_RELEASE);
	CHECK(exit_status(&in) == 7);
	close(in.output);
}

PLAIN_TEST(release_runs_the_command)
PLAIN_TEST(nothing_runs_without_release)
PLAIN_TEST(probes_must_come_first)
PLAIN_TEST(usage_is_125)
PLAIN_TEST(exec_statuses)
PLAIN_TEST(signals_are_reset)
PLAIN_TEST(early_signal_counts)
PLAIN_TEST(statuses_are_handed_on)
PLAIN_TEST(orphans_are_reaped)
PLAIN_TEST(waits_for_all)
PLAIN_TEST(pid_1_traces_nobody)
PLAIN_TEST(pid_1_holds_no_fd)
PLAIN_TEST(pid_1_takes_no_signals)

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
		cmocka_unit_test(test_statuses_are_handed_on),
		cmocka_unit_test(test_orphans_are_reaped),
		cmocka_unit_test(test_waits_for_all),
		cmocka_unit_test(test_pid_1_traces_nobody),
		cmocka_unit_test(test_pid_1_holds_no_fd),
		cmocka_unit_test(test_pid_1_takes_no_signals),
	};

	return cmocka_run_group_tests_name("init", tests, NULL, NULL);
}
