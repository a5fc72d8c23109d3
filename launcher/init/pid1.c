/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Pid 1 of the sandbox, after it has forked the first command.
 *
 * It reaps, and forks a further command for each EXEC of the launcher. So such a command has all
 * that holds for the first one: pid 1 was given the namespaces, the ids, the seccomp filter,
 * Landlock's domain and the limits before its first fork. All commands share the domain, so they
 * can signal one another.
 *
 * A process inside has the same uid, and is hostile. It can send pid 1 signals, which are blocked
 * or ignored (pid_namespaces(7)); make any number of orphans; and use up the processes. It cannot
 * reach a descriptor of pid 1, or of a child that has not executed yet: they are not dumpable. The
 * filter refuses it pid 1's limits and priority. So each turn reaps a bounded number of processes
 * and reads one message, and a fork that fails is reported. The wait is that of epoll(7), because
 * poll(2) fails when a caller's RLIMIT_NOFILE is 0. A status is that of the process that pid 1
 * forked for the EXEC: its pid cannot be another's before it is reaped here.
 *
 * Messages to the launcher never block: there is one for each EXEC, and the launcher has at most
 * SBX_EXECS_MAX of them open (launcher/exec/execs.h).
 *
 * The child closes the channel to the launcher and all else but its own descriptors. It gets a new
 * session: so it has the terminal that it was given, or none, but never the first command's.
 */
#include "launcher/init/pid1.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "ipc/channel.h"
#include "ipc/messages.h"
#include "launcher/init/init_programs.h"
#include "sys/process/proc.h"

#define EXECS_MAX      64 /* as launcher/exec/execs.h */
#define REAPS_PER_TURN 64
#define CHANNEL	       3 /* a further command's, until it executes */

enum {
	EXIT_NOT_SET_UP = 125,
	EXIT_NOT_EXECUTABLE = 126,
	EXIT_NOT_FOUND = 127,
};

struct exec {
	uint32_t number; /* 0: the place is free */
	pid_t pid;	 /* not yet reaped */
};

struct pid1 {
	struct sbx_pid1 given;
	int signals, epoll;
	int end; /* the status to end with */
	struct exec execs[EXECS_MAX];
	uint8_t packet[SBX_MSG_MAX];
};

/* By the bare system call, because libc reserves two signals, and a parent may have left them
 * ignored. The buffer fits struct sigaction of every kernel; all zero it means SIG_DFL. */
void sbx_pid1_reset_signal(int sig)
{
	static const unsigned long fresh[8];

	syscall(SYS_rt_sigaction, sig, fresh, NULL, NSIG / 8);
}

void sbx_pid1_mask_signals(bool blocked)
{
	sigset_t set;

	if (blocked)
		sigfillset(&set);
	else
		sigemptyset(&set);
	sigprocmask(SIG_SETMASK, &set, NULL);
}

/* --- the child of an EXEC --- */

static _Noreturn void fail(const struct sbx_msg_exec_failed *m, int status)
{
	uint8_t packet[512];
	ssize_t n = sbx_msg_encode_exec_failed(m, packet, sizeof(packet));

	if (n > 0)
		sbx_channel_send(CHANNEL, packet, (size_t)n, NULL, 0);
	_exit(status);
}

__attribute__((format(printf, 1, 2))) static _Noreturn void refuse(const char *fmt, ...)
{
	struct sbx_msg_exec_failed m = { 0 };
	va_list ap;

	va_start(ap, fmt);
	sbx_text_vcut(m.why, sizeof(m.why), fmt, ap);
	va_end(ap);
	fail(&m, EXIT_NOT_SET_UP);
}

static void take_descriptors(const int fds[SBX_N_EXEC_FDS])
{
	static const int numbers[SBX_N_EXEC_FDS] = { [SBX_EFD_CHANNEL] = CHANNEL,
						     [SBX_EFD_STDIN] = 0,
						     [SBX_EFD_STDOUT] = 1,
						     [SBX_EFD_STDERR] = 2 };

	if (sbx_proc_arrange_fds(fds, numbers, SBX_N_EXEC_FDS) < 0 ||
	    fcntl(CHANNEL, F_SETFD, FD_CLOEXEC) < 0)
		_exit(EXIT_NOT_SET_UP);
}

/* If sending fails, the launcher is gone, or gave up. */
static void say_hello(void)
{
	uint8_t packet[16];
	ssize_t n = sbx_msg_encode_simple(SBX_MSG_INIT_HELLO, 0, packet, sizeof(packet));

	if (n < 0 || sbx_channel_send(CHANNEL, packet, (size_t)n, NULL, 0) != 0)
		_exit(EXIT_NOT_SET_UP);
}

/* The n-th word of @m's text. */
static char *word(const struct sbx_msg_exec *m, uint32_t n)
{
	char *p = (char *)(uintptr_t)m->text.p;

	while (n-- > 0)
		p += strlen(p) + 1;
	return p;
}

/* Returns only if there is no memory. */
static void execute(const struct sbx_msg_exec *m)
{
	char **argv = calloc((size_t)m->n_argv + 1, sizeof(*argv));
	char *p = word(m, 1);

	if (!argv)
		return;
	for (uint32_t i = 0; i < m->n_argv; i++, p += strlen(p) + 1)
		argv[i] = p;
	for (uint32_t i = 0; i < m->n_env; i++, p += strlen(p) + 1)
		if (putenv(p) != 0)
			return;
	execvp(argv[0], argv); /* /bin/sh executes a file without a format */
}

static _Noreturn void become(const struct pid1 *p, const struct sbx_msg_exec *m,
			     const int fds[SBX_N_EXEC_FDS])
{
	struct sbx_msg_exec_failed failed = { 0 };
	char why[sizeof(failed.why)] = "";

	take_descriptors(fds);
	say_hello();
	if (setsid() < 0)
		refuse("cannot make a session: %s", strerror(errno));
	if (m->tty && ioctl(STDIN_FILENO, TIOCSCTTY, 0) < 0)
		refuse("cannot use standard input as the terminal: %s", strerror(errno));
	if (p->given.held && sbx_init_judge_stdio(why, sizeof(why)) < 0)
		refuse("%s", why);
	if (chdir(word(m, 0)) < 0)
		refuse("cannot change to %s: %s", word(m, 0), strerror(errno));
	for (int sig = 1; sig < NSIG; sig++)
		sbx_pid1_reset_signal(sig);
	sbx_pid1_mask_signals(false);
	execute(m);
	failed.error = (uint32_t)errno;
	failed.not_found = errno == ENOENT || errno == ENOTDIR;
	fail(&failed, failed.not_found ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE);
}

/* --- messages --- */

static void tell_exit(const struct pid1 *p, uint32_t number, int status, int error)
{
	const struct sbx_msg_exec_exit m = { number, (uint32_t)status, (uint32_t)error };
	uint8_t packet[32];
	ssize_t n = sbx_msg_encode_exec_exit(&m, packet, sizeof(packet));

	if (n > 0 && p->given.exec_fd >= 0)
		sbx_channel_send(p->given.exec_fd, packet, (size_t)n, NULL, 0);
}

/* The place of @number; 0: a free one. NULL: there is none. */
static struct exec *find(struct pid1 *p, uint32_t number)
{
	for (size_t i = 0; i < EXECS_MAX; i++)
		if (p->execs[i].number == number)
			return &p->execs[i];
	return NULL;
}

static void on_exec(struct pid1 *p, const struct sbx_msg_exec *m, const int *fds, size_t n_fds)
{
	struct exec *exec = find(p, 0);
	pid_t pid;

	if (n_fds != SBX_N_EXEC_FDS || !exec) {
		tell_exit(p, m->number, 0, exec ? EMFILE : EAGAIN);
		return;
	}
	pid = fork();
	if (pid == 0)
		become(p, m, fds);
	if (pid < 0)
		tell_exit(p, m->number, 0, errno);
	else
		*exec = (struct exec){ m->number, pid };
}

/* Before the child has made its session it has no group, and its signals are blocked. */
static void on_signal(struct pid1 *p, const struct sbx_msg_exec_signal *m)
{
	const struct exec *exec = find(p, m->number);

	if (exec && kill(-exec->pid, (int)m->sig) < 0)
		kill(exec->pid, (int)m->sig);
}

static void judge(struct pid1 *p, struct sbx_span packet, const int *fds, size_t n_fds)
{
	struct sbx_msg_exec_signal sig;
	struct sbx_msg_exec exec;

	if (sbx_msg_decode_exec(packet, &exec) == 0)
		on_exec(p, &exec, fds, n_fds);
	else if (sbx_msg_decode_exec_signal(packet, &sig) == 0)
		on_signal(p, &sig);
	else
		p->given.exec_fd = sbx_fd_close(p->given.exec_fd);
}

/* Descriptors can be short because a process inside lowered pid 1's limit. */
static void hear(struct pid1 *p)
{
	int fds[SBX_N_EXEC_FDS];
	size_t n, n_fds = 0;
	int r = sbx_channel_recv(p->given.exec_fd, p->packet, sizeof(p->packet), &n, fds,
				 SBX_N_EXEC_FDS, &n_fds, NULL);

	if (r == SBX_CHANNEL_E_AGAIN || r == -EINTR)
		return;
	if (r == 0 || r == SBX_CHANNEL_E_NO_FDS)
		judge(p, sbx_span(p->packet, n), fds, n_fds);
	else
		p->given.exec_fd = sbx_fd_close(p->given.exec_fd);
	for (size_t i = 0; i < n_fds; i++)
		close(fds[i]);
}

/* --- children --- */

static void on_end(struct pid1 *p, pid_t pid, int status)
{
	if (pid == p->given.command) {
		p->end = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
		if (!p->given.wait_all)
			_exit(p->end);
		return;
	}
	for (size_t i = 0; i < EXECS_MAX; i++)
		if (p->execs[i].number && p->execs[i].pid == pid) {
			tell_exit(p, p->execs[i].number, status, 0);
			p->execs[i] = (struct exec){ 0 };
		}
}

/* Children are the commands and orphans: without children the sandbox has no process left. A child
 * that made pid 1 its tracer (PTRACE_TRACEME, if seccomp.allow has ptrace) reports its stops here
 * and is continued. True: there may be more to reap. */
static bool reap(struct pid1 *p)
{
	for (int i = 0; i < REAPS_PER_TURN; i++) {
		int status;
		pid_t pid = waitpid(-1, &status, WNOHANG);

		if (pid == 0)
			return false;
		if (pid < 0)
			_exit(p->end);
		if (WIFSTOPPED(status))
			ptrace(PTRACE_DETACH, pid, NULL, NULL);
		else
			on_end(p, pid, status);
	}
	return true;
}

/* One read takes it: SIGCHLD is not queued. */
static void drain(int signals)
{
	struct signalfd_siginfo si;

	while (read(signals, &si, sizeof(si)) < 0 && errno == EINTR)
		;
}

static void turn(struct pid1 *p)
{
	struct epoll_event ready[2];
	bool more = reap(p);
	int n = epoll_wait(p->epoll, ready, SBX_N_ELEMENTS(ready), more ? 0 : -1);

	for (int i = 0; i < n; i++) {
		if (ready[i].data.fd == p->signals)
			drain(p->signals);
		else
			hear(p);
	}
}

static int watch(struct pid1 *p)
{
	const int fds[] = { p->signals, p->given.exec_fd };

	p->epoll = epoll_create1(EPOLL_CLOEXEC);
	for (size_t i = 0; i < SBX_N_ELEMENTS(fds); i++) {
		struct epoll_event e = { .events = EPOLLIN, .data.fd = fds[i] };

		if (epoll_ctl(p->epoll, EPOLL_CTL_ADD, fds[i], &e) < 0)
			return -1;
	}
	return 0;
}

/* The name is for lists of processes; after the exec by descriptor it would be a number. */
_Noreturn void sbx_pid1_stay(const struct sbx_pid1 *given)
{
	static struct pid1 p; /* large, and zero */
	const int keep = given->exec_fd;
	sigset_t child;

	p.given = *given;
	p.end = EXIT_NOT_SET_UP;
	sbx_pid1_mask_signals(true);
	if ((keep > 0 && close_range(0, (unsigned int)keep - 1, 0) < 0) ||
	    close_range((unsigned int)keep + 1, ~0u, 0) < 0 || chdir("/") < 0)
		_exit(EXIT_NOT_SET_UP);
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	p.signals = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
	if (p.signals < 0 || watch(&p) < 0)
		_exit(EXIT_NOT_SET_UP);
	for (;;)
		turn(&p);
}
