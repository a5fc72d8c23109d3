/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* sbx-init's pid 1: further commands beside the first. The test is the launcher. */
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <sys/resource.h>

#include "tests/unit/init_process.h"

static const char *const command_sleep[] = { "sleep", "30", NULL };

/* A further command, from the launcher's side. */
struct further {
	uint32_t number;
	int fd;	    /* its own channel */
	int output; /* stdout and stderr */
};

static void send_exec(const struct init_process *in, const struct sbx_msg_exec *m, const int *fds,
		      size_t n_fds)
{
	static uint8_t packet[SBX_MSG_MAX];
	ssize_t n = sbx_msg_encode_exec(m, packet, sizeof(packet));

	CHECK(n > 0 && sbx_channel_send(in->exec_fd, packet, (size_t)n, fds, n_fds) == 0);
}

/* @words: the directory, @n_argv words, and then variables. */
static struct further further_with(const struct init_process *in, uint32_t number, bool tty,
				   int input, uint32_t n_argv, const char *const words[])
{
	static char text[SBX_EXEC_TEXT_MAX];
	struct sbx_msg_exec m = { .number = number, .tty = tty, .n_argv = n_argv };
	struct further f = { .number = number };
	size_t n = 0, i = 0;
	int theirs, out[2];

	for (; words[i]; i++) {
		memcpy(text + n, words[i], strlen(words[i]) + 1);
		n += strlen(words[i]) + 1;
	}
	m.n_env = (uint32_t)i - 1 - n_argv;
	m.text = sbx_span(text, n);
	CHECK(sbx_channel_pair(&f.fd, &theirs) == 0);
	CHECK(pipe2(out, O_CLOEXEC) == 0);
	send_exec(in, &m, (const int[]){ theirs, input, out[1], out[1] }, SBX_N_EXEC_FDS);
	close(theirs);
	close(out[1]);
	f.output = out[0];
	return f;
}

static struct further further(const struct init_process *in, uint32_t number, const char *script)
{
	const char *const words[] = { "/tmp", "sh", "-c", script, "A=b c", NULL };

	return further_with(in, number, false, 0, 3, words);
}

/* True: the exec worked. False: *ret_m says why not. */
static bool is_executed(const struct further *f, struct sbx_msg_exec_failed *ret_m)
{
	uint8_t packet[1024];
	uint32_t zero;
	size_t n;

	CHECK(sbx_channel_recv(f->fd, packet, sizeof(packet), &n, NULL, 0, NULL, NULL) == 0);
	CHECK(sbx_msg_decode_simple(sbx_span(packet, n), SBX_MSG_INIT_HELLO, &zero) == 0);
	if (sbx_channel_recv(f->fd, packet, sizeof(packet), &n, NULL, 0, NULL, NULL) ==
	    SBX_CHANNEL_E_CLOSED)
		return true;
	CHECK(sbx_msg_decode_exec_failed(sbx_span(packet, n), ret_m) == 0);
	CHECK(sbx_channel_recv(f->fd, packet, sizeof(packet), &n, NULL, 0, NULL, NULL) ==
	      SBX_CHANNEL_E_CLOSED);
	return false;
}

static struct sbx_msg_exec_exit next_exit(const struct init_process *in)
{
	struct sbx_msg_exec_exit m;
	uint8_t packet[64];
	pid_t pid;
	size_t n;

	CHECK(sbx_channel_recv(in->exec_fd, packet, sizeof(packet), &n, NULL, 0, NULL, &pid) == 0);
	CHECK(sbx_msg_decode_exec_exit(sbx_span(packet, n), &m) == 0);
	CHECK(pid == in->pid);
	return m;
}

static void expect_exit(const struct init_process *in, uint32_t number, int status)
{
	struct sbx_msg_exec_exit m = next_exit(in);

	CHECK(m.number == number && (int)m.status == status && m.error == 0);
}

static void expect_output(const struct further *f, const char *want)
{
	char buf[4096];
	size_t n = 0;
	ssize_t got;

	while (n < sizeof(buf) - 1 && (got = read(f->output, buf + n, sizeof(buf) - 1 - n)) > 0)
		n += (size_t)got;
	buf[n] = '\0';
	if (strcmp(buf, want) != 0)
		fprintf(stderr, "# got '%s', want '%s'\n", buf, want);
	CHECK(strcmp(buf, want) == 0);
}

static void signal_exec(const struct init_process *in, uint32_t number, int sig)
{
	const struct sbx_msg_exec_signal m = { number, (uint32_t)sig };
	uint8_t packet[64];
	ssize_t n = sbx_msg_encode_exec_signal(&m, packet, sizeof(packet));

	CHECK(n > 0 && sbx_channel_send(in->exec_fd, packet, (size_t)n, NULL, 0) == 0);
}

static void begin(struct init_process *in)
{
	setenv("FIRST", "here", 1);
	release(in, as_bwrap, command_sleep);
	CHECK(receive(in).n == 0);
}

/* Ends the first command, and with it pid 1. */
static void end(struct init_process *in)
{
	CHECK(kill(in->command, SIGKILL) == 0);
	CHECK(exit_status(in) == 128 + SIGKILL);
}

/* --- tests --- */

static void executes(void)
{
	struct init_process in;
	struct further f;

	begin(&in);
	f = further(&in, 7, "echo $A; echo $FIRST; pwd; echo $0; exit 3");
	CHECK(is_executed(&f, NULL));
	expect_output(&f, "b c\nhere\n/tmp\nsh\n");
	expect_exit(&in, 7, 3 << 8);
	f = further(&in, 8, "kill -9 $$");
	CHECK(is_executed(&f, NULL));
	expect_exit(&in, 8, SIGKILL);
	end(&in);
}

/* Nothing of pid 1 is there: its channel, its mask, ignored signals, its session. */
static void is_clean(void)
{
	struct init_process in;
	struct further f;

	signal(SIGHUP, SIG_IGN);
	signal(SIGUSR1, SIG_IGN);
	begin(&in);
	f = further(&in, 1,
		    "ls /proc/self/fd | head -4 | tr '\\n' ' '; "
		    "grep -E 'Sig(Blk|Ign)' /proc/self/status | tr -d '\\n'; "
		    "read pid comm state ppid pgrp sid rest </proc/$$/stat; "
		    "[ $pid = $sid ] && [ $pid = $pgrp ] && echo; : </dev/tty");
	CHECK(is_executed(&f, NULL));
	expect_output(&f, "0 1 2 3 SigBlk:\t0000000000000000SigIgn:\t0000000000000000\n"
			  "sh: 1: cannot open /dev/tty: No such device or address\n");
	expect_exit(&in, 1, 2 << 8);
	end(&in);
}

static void failures_are_told(void)
{
	static const struct {
		const char *words[4];
		bool tty;
		uint32_t error, not_found;
		int status;
		const char *why;
	} cases[] = {
		{ { "/", "nowhere-to-be-found" }, false, ENOENT, 1, 127, "" },
		{ { "/", "/tmp" }, false, EACCES, 0, 126, "" },
		{ { "/", "/etc/passwd" }, false, EACCES, 0, 126, "" },
		{ { "/etc/passwd", "true" }, false, 0, 0, 125,
		  "cannot change to /etc/passwd: Not a directory" },
		{ { "/nowhere", "true" }, false, 0, 0, 125,
		  "cannot change to /nowhere: No such file or directory" },
		{ { "/", "true" }, true, 0, 0, 125,
		  "cannot use standard input as the terminal: Inappropriate ioctl for device" },
		{ { "/", "tool", "PATH=/nowhere" }, false, ENOENT, 1, 127, "" },
	};
	struct init_process in;

	begin(&in);
	for (uint32_t i = 0; i < SBX_N_ELEMENTS(cases); i++) {
		int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
		struct sbx_msg_exec_failed m;
		struct further f = further_with(&in, i + 1, cases[i].tty, null_fd, 1,
						cases[i].words);

		CHECK(!is_executed(&f, &m));
		CHECK(m.error == cases[i].error && m.not_found == cases[i].not_found);
		CHECK(strcmp(m.why, cases[i].why) == 0);
		expect_exit(&in, i + 1, cases[i].status << 8);
		close(null_fd);
	}
	end(&in);
}

static void has_the_terminal(void)
{
	const char *const words[] = {
		"/", "sh", "-c",
		"echo here >/dev/tty; ps -o tty= -p $$ | tr -d ' '; stty size", NULL
	};
	struct winsize size = { .ws_row = 33, .ws_col = 77 };
	struct init_process in;
	int master, slave;
	char buf[64] = "";
	struct further f;

	CHECK(openpty(&master, &slave, NULL, NULL, &size) == 0);
	begin(&in);
	f = further_with(&in, 1, true, slave, 3, words);
	CHECK(is_executed(&f, NULL));
	CHECK(read(master, buf, sizeof(buf) - 1) == 6 && strcmp(buf, "here\r\n") == 0);
	snprintf(buf, sizeof(buf), "%s\n33 77\n", ttyname(slave) + strlen("/dev/"));
	expect_output(&f, buf);
	expect_exit(&in, 1, 0);
	end(&in);
}

/* A signal is for the whole group, as a shell's for a job. */
static void signals_the_group(void)
{
	struct init_process in;
	struct further f;
	char byte;

	begin(&in);
	f = further(&in, 1, "sleep 30 & echo x; wait");
	CHECK(is_executed(&f, NULL));
	CHECK(read(f.output, &byte, 1) == 1);
	signal_exec(&in, 1, SIGTERM);
	expect_exit(&in, 1, SIGTERM);
	expect_output(&f, "\n"); /* to the end: the sleep has ended too */
	signal_exec(&in, 1, SIGTERM); /* nobody */
	signal_exec(&in, 99, SIGTERM);
	f = further(&in, 2, "trap 'echo got; exit 4' USR1; echo x; while :; do sleep 0.01; done");
	CHECK(read(f.output, &byte, 1) == 1);
	signal_exec(&in, 2, SIGUSR1);
	expect_exit(&in, 2, 4 << 8);
	end(&in);
}

static void no_more_than_64(void)
{
	struct init_process in;
	struct sbx_msg_exec_exit m;

	begin(&in);
	for (uint32_t i = 1; i <= 64; i++) {
		struct further f = further(&in, i, "exec sleep 30");

		CHECK(is_executed(&f, NULL));
		close(f.fd);
		close(f.output);
	}
	further(&in, 65, "exit 0");
	m = next_exit(&in);
	CHECK(m.number == 65 && m.error == EAGAIN);
	signal_exec(&in, 30, SIGKILL);
	expect_exit(&in, 30, SIGKILL);
	further(&in, 66, "exit 5");
	expect_exit(&in, 66, 5 << 8);
	end(&in);
}

static void descriptors_may_be_missing(void)
{
	static const char words[] = "/\0true";
	const struct sbx_msg_exec m = { .number = 3, .n_argv = 1,
					.text = sbx_span(words, sizeof(words)) };
	struct rlimit none_left = { 0, 0 };
	struct sbx_msg_exec_exit got;
	struct init_process in;

	begin(&in);
	for (size_t n = 0; n < SBX_N_EXEC_FDS; n++) {
		send_exec(&in, &m, (const int[]){ 0, 0, 0, 0 }, n);
		got = next_exit(&in);
		CHECK(got.number == 3 && got.error == EMFILE);
	}
	/* a process inside can do this */
	CHECK(prlimit(in.pid, RLIMIT_NOFILE, &none_left, NULL) == 0);
	send_exec(&in, &m, (const int[]){ 0, 0, 0, 0 }, SBX_N_EXEC_FDS);
	got = next_exit(&in);
	CHECK(got.number == 3 && got.error == EMFILE);
	end(&in);
}

/* Without the launcher, or with one that breaks the protocol, the first command goes on. */
static void channel_ends(void)
{
	for (int i = 0; i < 2; i++) {
		struct pollfd p = { .events = POLLIN };
		struct init_process in;

		begin(&in);
		if (i == 0)
			CHECK(sbx_channel_send(in.exec_fd, "junk", 4, NULL, 0) == 0);
		else
			CHECK(shutdown(in.exec_fd, SHUT_WR) == 0);
		p.fd = in.exec_fd;
		CHECK(poll(&p, 1, -1) == 1 && (p.revents & POLLHUP));
		CHECK(waitpid(in.pid, NULL, WNOHANG) == 0);
		end(&in);
	}
}

/* A command that makes orphans as fast as it can keeps nobody from executing. */
static void flood_of_orphans(void)
{
	static const char code[] = "import os\n"
				   "while True:\n"
				   "    if os.fork() == 0:\n"
				   "        if os.fork() == 0: os._exit(0)\n"
				   "        os._exit(0)\n"
				   "    os.wait()\n";
	const char *const command[] = { "python3", "-c", code, NULL };
	struct init_process in;

	release(&in, as_bwrap, command);
	CHECK(prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0) == 0);
	CHECK(receive(&in).n == 0);
	for (uint32_t i = 1; i <= 20; i++) {
		further(&in, i, "exit 6");
		expect_exit(&in, i, 6 << 8);
	}
	end(&in);
}

static void as_reaper(void)
{
	as_bwrap();
	CHECK(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0);
}

/* A sibling of a further command, whose parent is pid 1 too, is not taken for it. */
static void siblings_are_not_commands(void)
{
	const char *const words[] = {
		"/", "python3", "-c",
		"import ctypes, os, time\n"
		"clone = {'x86_64': 56, 'aarch64': 220}[os.uname().machine]\n"
		"CLONE_PARENT, SIGCHLD = 0x8000, 17\n"
		"if ctypes.CDLL(None).syscall(clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0) == 0:\n"
		"    os._exit(9)\n"
		"time.sleep(0.2)\n"
		"os._exit(4)\n", NULL
	};
	struct init_process in;

	release(&in, as_reaper, command_sleep);
	further_with(&in, 1, false, 0, 3, words);
	expect_exit(&in, 1, 4 << 8);
	end(&in);
}

static void waits_for_further_commands(void)
{
	const char *const command[] = { "sh", "-c", "exit 6", NULL };
	struct init_process in;
	struct further f;

	init_wait_all = true;
	start(&in, as_bwrap, command);
	run_probes(&in, &none);
	f = further(&in, 1, "sleep 0.3; exit 3");
	CHECK(is_executed(&f, NULL));
	send_simple(&in, SBX_MSG_RELEASE);
	expect_exit(&in, 1, 3 << 8);
	CHECK(exit_status(&in) == 6);
	init_wait_all = false;
}

/* Without a command the child is idle until a signal ends it. */
static void idles_without_command(void)
{
	const char *const nothing[] = { NULL };
	const int signals[] = { SIGTERM, SIGINT, SIGHUP, SIGKILL };

	for (size_t i = 0; i < SBX_N_ELEMENTS(signals); i++) {
		struct init_process in;

		release(&in, as_bwrap, nothing);
		CHECK(receive(&in).n == 0); /* as after an exec */
		further(&in, 1, "exit 2");
		expect_exit(&in, 1, 2 << 8);
		CHECK(kill(in.command, SIGCONT) == 0 && kill(in.command, SIGWINCH) == 0);
		CHECK(waitpid(in.pid, NULL, WNOHANG) == 0);
		CHECK(kill(in.command, signals[i]) == 0);
		CHECK(exit_status(&in) == 128 + signals[i]);
	}
}

PLAIN_TEST(executes)
PLAIN_TEST(is_clean)
PLAIN_TEST(failures_are_told)
PLAIN_TEST(has_the_terminal)
PLAIN_TEST(signals_the_group)
PLAIN_TEST(no_more_than_64)
PLAIN_TEST(descriptors_may_be_missing)
PLAIN_TEST(channel_ends)
PLAIN_TEST(flood_of_orphans)
PLAIN_TEST(siblings_are_not_commands)
PLAIN_TEST(waits_for_further_commands)
PLAIN_TEST(idles_without_command)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_executes),
		cmocka_unit_test(test_is_clean),
		cmocka_unit_test(test_failures_are_told),
		cmocka_unit_test(test_has_the_terminal),
		cmocka_unit_test(test_signals_the_group),
		cmocka_unit_test(test_no_more_than_64),
		cmocka_unit_test(test_descriptors_may_be_missing),
		cmocka_unit_test(test_channel_ends),
		cmocka_unit_test(test_flood_of_orphans),
		cmocka_unit_test(test_siblings_are_not_commands),
		cmocka_unit_test(test_waits_for_further_commands),
		cmocka_unit_test(test_idles_without_command),
	};

	return cmocka_run_group_tests_name("pid1", tests, NULL, NULL);
}
