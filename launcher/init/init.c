/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * sbx-init: pid 1 of the sandbox, and the first process below it, which becomes the command.
 *
 * 	sbx-init CTL_FD EXE_FD --|--wait-all COMMAND [ARG...]
 *
 * bwrap turns into it where the command will run: with its ids, namespaces, view of files, filter
 * and environment. Before all else it forks, so that what is tested is the process that will be the
 * command.
 *
 * The child takes the probes, puts on the list of programs where there is one, runs the probes and
 * tells the verdicts; while the launcher judges them, the child prepares the exec, and then waits.
 * Only a RELEASE lets it become the command; the end of the channel or anything else ends it with
 * status 125, so whatever happens to the launcher, nothing runs.
 *
 * Pid 1 keeps nothing: no fd (a pipe the caller waits on, the channel), no directory, no signal. It
 * reaps, the orphans too, and ends as the command ended, with 128 + N for a signal N; the kernel
 * ends all others with it. With --wait-all it ends when no process is left, with the same status.
 * No process in the sandbox can end it: a namespace's init gets only signals that it has handlers
 * for, and it has none. bwrap could do this (without --as-pid-1), by a copy of its much larger
 * self.
 *
 * CTL_FD is a channel (ipc/channel.h) to the launcher, close-on-exec from here on: the launcher
 * reads its end as the sign that the exec worked. EXE_FD is what bwrap executed us by; -1: nothing
 * to close.
 *
 * It trusts the launcher. Pid 1 for good, and the child until the exec, is not dumpable: nobody
 * else of the same uid traces it.
 *
 * Signals: the launcher blocks those it hands on (launcher/process/signals.h), so one that came
 * early is pending in the child; it takes effect when the mask is cleared, just before the exec, as
 * if the command had got it. Dispositions are reset, but an ignored SIGHUP, SIGINT or SIGQUIT
 * stays: that is how nohup and a shell's background jobs ask for it.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/span.h"
#include "ipc/channel.h"
#include "ipc/messages.h"
#include "launcher/init/init_argv.h"
#include "launcher/init/init_probes.h"
#include "launcher/init/init_programs.h"
#include "sys/seccomp/landlock.h"

enum {
	EXIT_NOT_SET_UP = 125,
	EXIT_NOT_EXECUTABLE = 126,
	EXIT_NOT_FOUND = 127,
};

struct init {
	int ctl_fd;
	bool wait_all;
	char **command;
	struct sbx_msg_programs programs;
	bool held; /* by a list of programs */
	struct sbx_msg_probes probes;
	struct sbx_probe_run runs[SBX_PROBES_MAX];
	struct sbx_msg_verdicts verdicts;
	uint8_t packet[SBX_MSG_MAX];
};

static _Noreturn void die(const char *why)
{
	dprintf(STDERR_FILENO, "sbx-init: %s\n", why);
	_exit(EXIT_NOT_SET_UP);
}

static int parse_fd(const char *s)
{
	char *end;
	long v = strtol(s, &end, 10);

	return *s && !*end && v >= -1 && v < 1 << 20 ? (int)v : -2;
}

static void parse(struct init *in, int argc, char **argv)
{
	int exe_fd;

	if (argc < 5 || (strcmp(argv[3], "--") != 0 && strcmp(argv[3], SBX_INIT_WAIT_ALL) != 0))
		die("usage: sbx-init CTL_FD EXE_FD --|" SBX_INIT_WAIT_ALL
		    " COMMAND [ARG...] (sbx-run starts it)");
	in->wait_all = argv[3][2] != '\0';
	in->ctl_fd = parse_fd(argv[1]);
	exe_fd = parse_fd(argv[2]);
	in->command = argv + 4;
	if (in->ctl_fd < 0 || exe_fd < -1 || fcntl(in->ctl_fd, F_SETFD, FD_CLOEXEC) < 0)
		die("the fd numbers are wrong");
	if (exe_fd >= 0)
		close(exe_fd);
}

/* Ends without a message where sending fails: the launcher is gone. */
static void send_packet(const struct init *in, ssize_t n)
{
	if (n < 0 || sbx_channel_send(in->ctl_fd, in->packet, (size_t)n, NULL, 0) != 0)
		_exit(EXIT_NOT_SET_UP);
}

static void send_simple(struct init *in, enum sbx_msg_type type)
{
	send_packet(in, sbx_msg_encode_simple(type, 0, in->packet, sizeof(in->packet)));
}

static struct sbx_span receive(struct init *in)
{
	size_t n, n_fds;
	int r;

	do {
		r = sbx_channel_recv(in->ctl_fd, in->packet, sizeof(in->packet), &n, NULL, 0,
				     &n_fds, NULL);
	} while (r == -EINTR);
	if (r != 0)
		_exit(EXIT_NOT_SET_UP);
	return sbx_span(in->packet, n);
}

/* Shows that the list makes the difference: before it holds, the exec that the probe tries is not
 * refused. */
static void look_before_holding(const struct init *in)
{
	for (uint32_t i = 0; i < in->probes.n_probes; i++)
		if (in->probes.probes[i].kind == SBX_PROBE_EXEC_REFUSED &&
		    !sbx_probe_can_exec(in->probes.probes[i].name))
			die("the program that tests the list of programs cannot be executed even "
			    "without the list");
}

static void hold_programs(struct init *in)
{
	char why[SBX_PROBE_NAME_MAX];

	look_before_holding(in);
	if (sbx_init_hold(&in->programs, why, sizeof(why)) < 0)
		die(why);
	in->held = true;
}

static void self_test(struct init *in)
{
	struct sbx_span packet;
	bool hold;

	packet = receive(in);
	hold = sbx_msg_type(packet) == SBX_MSG_PROGRAMS;
	if (hold && sbx_msg_decode_programs(packet, &in->programs) < 0)
		die("the launcher sent a malformed list of programs");
	if (hold)
		packet = receive(in);
	if (sbx_msg_decode_probes(packet, &in->probes) < 0)
		die("the launcher sent something else than probes");
	if (hold)
		hold_programs(in);
	sbx_probes_run(&in->probes, in->ctl_fd, in->runs, &in->verdicts);
	send_packet(in, sbx_msg_encode_verdicts(&in->verdicts, in->packet, sizeof(in->packet)));
	sbx_probes_close(in->runs, in->probes.n_probes);
}

static void wait_for_release(struct init *in)
{
	uint32_t value;

	if (sbx_msg_decode_simple(receive(in), SBX_MSG_RELEASE, &value) < 0)
		_exit(EXIT_NOT_SET_UP);
}

/* By the bare call: libc keeps two signals to itself, and a parent may have left them ignored. The
 * room is for struct sigaction of every kernel, and all zero it is SIG_DFL and nothing else. An
 * exec sets every handler to SIG_DFL, so what is ignored is all that is left to find. */
static void reset_signal(int sig)
{
	static const unsigned long fresh[8];

	syscall(SYS_rt_sigaction, sig, fresh, NULL, NSIG / 8);
}

static void reset_signals(void)
{
	for (int sig = 1; sig < NSIG; sig++)
		if (sig != SIGHUP && sig != SIGINT && sig != SIGQUIT)
			reset_signal(sig);
}

static void unblock_signals(void)
{
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/* kill(0, ...) reaches a process group, whichever namespace its members are in: ours is the
 * caller's, with the launcher and a script's other children. Where the kernel can, signals end at
 * the sandbox (Landlock, Linux 6.12). Where there is no terminal whose job control needs the shared
 * group, the command gets a group of its own; the factory then knows that group signals do not
 * reach it. */
static void choose_group(void)
{
	int tty = open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC);

	if (tty >= 0)
		close(tty);
	else
		setpgid(0, 0);
}

/* An allow list's ruleset does the same. */
static void confine(const struct init *in)
{
	SBX_AUTO_CLOSE int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int r = in->held ? 0 : root < 0 ? -errno : sbx_landlock_confine(root);

	if (r < 0 &&
	    r != -EOPNOTSUPP) /* THREATS says what a kernel before 5.19 leaves open, or 6.12 */
		die("cannot confine the command to the sandbox (Landlock)");
}

/* Returns only when the exec failed: the exit status. */
static int become_command(struct init *in)
{
	struct sbx_msg_exec_failed m = { 0 };
	ssize_t n;

	unblock_signals();
	execvp(in->command[0], in->command); /* /bin/sh executes a file without a format */
	m.error = (uint32_t)errno;
	m.not_found = errno == ENOENT || errno == ENOTDIR;
	n = sbx_msg_encode_exec_failed(&m, in->packet, sizeof(in->packet));
	if (n > 0)
		sbx_channel_send(in->ctl_fd, in->packet, (size_t)n, NULL, 0);
	return m.not_found ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE;
}

/* --- pid 1 --- */

/* Children are the command and orphans: without children no process of the sandbox is left. A child
 * that made us its tracer (PTRACE_TRACEME, where seccomp.allow has ptrace) reports its stops here:
 * it is let go. */
static _Noreturn void reap(pid_t command, bool wait_all)
{
	int status, end = EXIT_NOT_SET_UP;
	pid_t pid;

	for (;;) {
		pid = waitpid(-1, &status, 0);
		if (pid < 0 && errno == EINTR)
			continue;
		if (pid < 0)
			_exit(end);
		if (WIFSTOPPED(status)) {
			ptrace(PTRACE_DETACH, pid, NULL, NULL);
			continue;
		}
		if (pid != command)
			continue;
		end = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
		if (!wait_all)
			_exit(end);
	}
}

/* Sets the name that a list of processes shows: by its exec it would be the number of an fd. */
static _Noreturn void stay(pid_t command, bool wait_all)
{
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	if (close_range(0, ~0u, 0) < 0 || chdir("/") < 0)
		_exit(EXIT_NOT_SET_UP);
	prctl(PR_SET_NAME, "sbx-init");
	reap(command, wait_all);
}

/* Returns in the child. */
static void split(bool wait_all)
{
	pid_t pid;

	reset_signal(SIGCHLD); /* ignored, it would take the status away from the parent */
	pid = fork();
	if (pid < 0)
		die("cannot start a process");
	if (pid > 0)
		stay(pid, wait_all);
}

int main(int argc, char **argv)
{
	static struct init in; /* too large for a stack, and zero */

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_DUMPABLE, 0);
	parse(&in, argc, argv);
	send_simple(&in, SBX_MSG_INIT_HELLO); /* by pid 1, which the launcher watches; the verdicts
						 are the command's */
	split(in.wait_all);
	reset_signals();
	self_test(&in);
	choose_group();
	confine(&in);
	wait_for_release(&in);
	_exit(become_command(&in));
}
