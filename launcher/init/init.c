/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * sbx-init: pid 1 of the sandbox, and its child, which becomes the command.
 *
 *   sbx-init CTL_FD EXE_FD EXEC_FD --|--wait-all [COMMAND [ARG...]]
 *
 * bwrap executes it with the ids, namespaces, view of files, filter and environment of the command.
 * Pid 1 takes the list of programs and the probes, and enforces what the command may execute and
 * signal (Landlock). Then it forks, so that every command is in its domain. The child runs the
 * probes, sends the verdicts, prepares the exec and waits. Only RELEASE lets it execute the
 * command. Any other message, or the end of the channel, ends it with status 125. Without a command
 * the child stays idle from the release until a signal ends it.
 *
 * Pid 1 (pid1.c) keeps one descriptor, EXEC_FD, and no directory, and handles no signal. It reaps
 * children and orphans, and forks further commands. It ends with the first command's status, or
 * 128 + N for signal N, and the kernel then kills all other processes inside. With --wait-all it
 * ends when no process is left. No process inside can kill it, because a namespace's init gets only
 * signals for which it has handlers. bwrap could be pid 1 (without --as-pid-1), but is much larger.
 *
 * CTL_FD is a channel (ipc/channel.h) to the launcher, close-on-exec: its end tells the launcher
 * that the exec worked. EXEC_FD is pid 1's channel for further commands, close-on-exec. EXE_FD is
 * the descriptor by which bwrap executed this program; -1: none.
 *
 * sbx-init trusts the launcher. Pid 1, and a child until its exec, are not dumpable, so no
 * process of the same uid can trace them. Signals that the launcher forwards are blocked from the
 * start (launcher/process/signals.h); early ones stay pending until the mask is cleared before the
 * exec. Dispositions are reset, but an ignored SIGHUP, SIGINT or SIGQUIT stays, for nohup and
 * background jobs.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/span.h"
#include "base/version.h"
#include "ipc/channel.h"
#include "ipc/messages.h"
#include "launcher/init/init_argv.h"
#include "launcher/init/init_probes.h"
#include "launcher/init/init_programs.h"
#include "launcher/init/pid1.h"
#include "sys/seccomp/landlock.h"

SBX_VERSION_MARK;

enum {
	EXIT_NOT_SET_UP = 125,
	EXIT_NOT_EXECUTABLE = 126,
	EXIT_NOT_FOUND = 127,
};

struct init {
	int ctl_fd, exec_fd;
	bool wait_all;
	char **command;
	struct sbx_msg_programs programs;
	bool held; /* there is a list of programs */
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

	if (argc < 5 || (strcmp(argv[4], "--") != 0 && strcmp(argv[4], SBX_INIT_WAIT_ALL) != 0))
		die("usage: sbx-init CTL_FD EXE_FD EXEC_FD --|" SBX_INIT_WAIT_ALL
		    " [COMMAND [ARG...]] (sbx-run starts it)");
	in->wait_all = argv[4][2] != '\0';
	in->ctl_fd = parse_fd(argv[1]);
	exe_fd = parse_fd(argv[2]);
	in->exec_fd = parse_fd(argv[3]);
	in->command = argv + 5;
	if (in->ctl_fd < 0 || exe_fd < -1 || in->exec_fd < 0 ||
	    fcntl(in->ctl_fd, F_SETFD, FD_CLOEXEC) < 0 ||
	    fcntl(in->exec_fd, F_SETFD, FD_CLOEXEC) < 0)
		die("the fd numbers are wrong");
	if (exe_fd >= 0)
		close(exe_fd);
}

/* If sending fails, the launcher is gone: end without a message. */
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

/* Shows that the list makes the difference: before it is enforced, the probe's exec is not
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

/* In pid 1: for every command. */
static void take_orders(struct init *in)
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
}

static void self_test(struct init *in)
{
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

/* The exec that started this program reset all handlers, so only ignored signals are left to
 * reset. */
static void reset_signals(void)
{
	for (int sig = 1; sig < NSIG; sig++)
		if (sig != SIGHUP && sig != SIGINT && sig != SIGQUIT)
			sbx_pid1_reset_signal(sig);
}

/* kill(0, ...) signals a process group across namespaces, and this group is the caller's, with the
 * launcher and a script's other children. Landlock ends signals at the sandbox (Linux 6.12). On
 * older kernels, the command gets a group of its own if there is no terminal whose job control
 * needs the shared group. The factory then knows that signals to the group do not reach the
 * command. */
static void choose_group(void)
{
	int tty = open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC);

	if (tty >= 0)
		close(tty);
	else
		setpgid(0, 0);
}

/* The ruleset of an allow list does the same. docs/THREATS.md says what a kernel before 5.19 or
 * 6.12 leaves open. 0 or -errno. */
static int confine(const struct init *in)
{
	SBX_AUTO_CLOSE int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int r = in->held ? 0 : root < 0 ? -errno : sbx_landlock_confine(root);

	return r == -EOPNOTSUPP ? 0 : r;
}

/* Returns the exit status, and only if the exec failed. */
static int become_command(struct init *in)
{
	struct sbx_msg_exec_failed m = { 0 };
	ssize_t n;

	sbx_pid1_mask_signals(false);
	execvp(in->command[0], in->command); /* /bin/sh executes a file without a format */
	m.error = (uint32_t)errno;
	m.not_found = errno == ENOENT || errno == ENOTDIR;
	n = sbx_msg_encode_exec_failed(&m, in->packet, sizeof(in->packet));
	if (n > 0)
		sbx_channel_send(in->ctl_fd, in->packet, (size_t)n, NULL, 0);
	return m.not_found ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE;
}

/* Stays, without a descriptor, until a signal ends it. */
static _Noreturn void idle(void)
{
	close_range(0, ~0u, 0);
	prctl(PR_SET_NAME, "sbx-wait");
	sbx_pid1_mask_signals(false);
	for (;;)
		pause();
}

/* Returns in the child. */
static void split(struct init *in)
{
	struct sbx_pid1 p = { .exec_fd = in->exec_fd, .wait_all = in->wait_all, .held = in->held };

	sbx_pid1_reset_signal(SIGCHLD); /* if ignored, the kernel would drop the children's
					 * statuses */
	p.command = fork();
	if (p.command < 0)
		die("cannot start a process");
	if (p.command > 0)
		sbx_pid1_stay(&p);
	in->exec_fd = sbx_fd_close(in->exec_fd);
}

int main(int argc, char **argv)
{
	static struct init in; /* too large for a stack, and zero */
	int confined;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_DUMPABLE, 0);
	/* in a list of processes; after the exec by descriptor it is a number */
	prctl(PR_SET_NAME, "sbx-init");
	parse(&in, argc, argv);
	send_simple(&in, SBX_MSG_INIT_HELLO); /* from pid 1, which the launcher watches; the
					       * verdicts come from the child */
	take_orders(&in);
	confined = confine(&in);
	split(&in);
	reset_signals();
	self_test(&in); /* also if the last but one failed: a probe may say why */
	if (confined < 0)
		die("cannot confine the commands to the sandbox (Landlock)");
	choose_group();
	wait_for_release(&in);
	if (!in.command[0])
		idle();
	_exit(become_command(&in));
}
