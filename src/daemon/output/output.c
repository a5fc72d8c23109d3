/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * sbx-output: runs sbx-run for sbxd, and keeps its standard output and error in a log (frame.h).
 * An internal program, which needs no right:
 *
 *     sbx-output daemon|stay DIR SOCKET MAX_BYTES START_SECONDS COMMAND [ARGUMENT...]
 *
 * DIR is the directory of the log, which it locks as long as it lives. SOCKET is a path, for
 * datagrams: READY=1 of the command (sd_notify(3)), and KILL=1, which ends it. `daemon`: returns 0
 * when the log has begun, and goes on as a process of its own session, so that it outlives sbxd;
 * otherwise the exit status is the errno. `stay`: for a service manager; SIGTERM is handed on.
 *
 * A command that is not ready after START_SECONDS is ended. When it is ready, or has ended, the
 * files "job.yaml" and SOCKET are removed: the job may have secrets in its variables.
 *
 * The output is read whatever happens to the log: the command never waits for the disk's room.
 * Bytes that begin a UTF-8 character wait for the rest of it, so that a frame of text is text.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "base/version.h"
#include "daemon/output/log_write.h"
#include "sys/process/proc.h"

SBX_VERSION_MARK;

#define JOB	   "job.yaml"
#define GRACE_MS   5000 /* between SIGTERM and SIGKILL */
#define LINGER_MS  1000 /* after the command's end, if others hold its pipes */
#define NOT_FOUND  127
#define CANNOT_RUN 125

struct pipe_end {
	enum sbx_frame_kind kind;
	int fd; /* -1: it has ended */
	size_t n;
	uint8_t buf[SBX_FRAME_MAX];
};

struct output {
	const char *socket_path;
	struct sbx_log_writer log;
	struct pipe_end pipes[2];
	int notify_fd, signal_fd;
	pid_t child; /* 0: it was reaped */
	int status;  /* its exit status */
	bool ready, late;
	uint64_t ready_by_us, kill_at_us, leave_at_us; /* monotonic; 0: not set */
};

static void write_frame(struct output *o, enum sbx_frame_kind kind, const void *p, size_t n)
{
	const struct sbx_frame f = { kind, sbx_clock_realtime_ms(), sbx_span(p, n) };

	sbx_log_write(&o->log, &f);
}

/* --- beginning --- */

static int listen_at(struct output *o, const char *path)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	SBX_AUTO_CLOSE int fd =
		socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int r = sbx_text_copy(a.sun_path, sizeof(a.sun_path), path);

	if (fd < 0)
		return -errno;
	if (r < 0)
		return r;
	unlink(path);
	if (bind(fd, (const struct sockaddr *)&a, sizeof(a)) < 0)
		return -errno;
	o->socket_path = path;
	o->notify_fd = sbx_fd_steal(&fd);
	return 0;
}

static int open_log(struct output *o, const char *dir, uint64_t max)
{
	SBX_AUTO_CLOSE int fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 || flock(fd, LOCK_EX) < 0)
		return -errno;
	return sbx_log_writer_open(&o->log, sbx_fd_steal(&fd), max);
}

_Noreturn static void be_command(const struct output *o, char *const *argv, int out, int err)
{
	int fds[3] = { open("/dev/null", O_RDONLY | O_CLOEXEC), out, err };
	static const int numbers[3] = { 0, 1, 2 };
	sigset_t none;

	sigemptyset(&none);
	signal(SIGPIPE, SIG_DFL);
	signal(SIGXFSZ, SIG_DFL);
	setsid();
	umask(022);
	if (setenv("NOTIFY_SOCKET", o->socket_path, 1) == 0 && unsetenv("WATCHDOG_PID") == 0 &&
	    unsetenv("WATCHDOG_USEC") == 0 && chdir("/") == 0 && fds[0] >= 0 &&
	    sbx_proc_arrange_fds(fds, numbers, 3) == 0 &&
	    sigprocmask(SIG_SETMASK, &none, NULL) == 0)
		execv(argv[0], argv);
	dprintf(2, "sbx-output: %s: %s\n", argv[0], strerror(errno));
	_exit(errno == ENOENT ? NOT_FOUND : CANNOT_RUN);
}

static int start(struct output *o, char *const *argv)
{
	SBX_AUTO_CLOSE int out = -1;
	SBX_AUTO_CLOSE int err = -1;
	pid_t pid;
	int r = sbx_fd_pipe(&o->pipes[0].fd, &out);

	r = r ? r : sbx_fd_pipe(&o->pipes[1].fd, &err);
	if (r < 0)
		return r;
	pid = fork();
	if (pid == 0)
		be_command(o, argv, out, err);
	if (pid < 0)
		return -errno;
	o->child = pid;
	for (int i = 0; i < 2; i++)
		sbx_fd_set_nonblocking(o->pipes[i].fd);
	return 0;
}

static void write_failure(struct output *o, int r)
{
	char text[256];

	sbx_text_cut(text, sizeof(text), "sbx-output: cannot start a process: %s\n", strerror(-r));
	write_frame(o, SBX_FRAME_STDERR, text, strlen(text));
}

static int watch_signals(struct output *o)
{
	static const int numbers[] = { SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGQUIT };
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < SBX_N_ELEMENTS(numbers); i++)
		sigaddset(&set, numbers[i]);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	signal(SIGCHLD, SIG_DFL);
	if (sigprocmask(SIG_SETMASK, &set, NULL) < 0)
		return -errno;
	o->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return o->signal_fd < 0 ? -errno : 0;
}

/* A session of its own. The parent returns to sbxd; 0 in the child, or -errno. */
static int leave_parent(void)
{
	pid_t pid = fork();

	if (pid > 0)
		_exit(0);
	if (pid < 0)
		return -errno;
	return setsid() < 0 ? -errno : 0;
}

/* --- the command --- */

static void tidy(struct output *o)
{
	unlinkat(o->log.dir_fd, JOB, 0);
	unlink(o->socket_path);
}

static void end_command(struct output *o)
{
	if (!o->child || o->kill_at_us)
		return;
	kill(o->child, SIGTERM);
	o->kill_at_us = sbx_clock_monotonic_us() + GRACE_MS * 1000;
}

static void on_ready(struct output *o)
{
	if (o->ready)
		return;
	o->ready = true;
	o->ready_by_us = 0;
	write_frame(o, SBX_FRAME_READY, NULL, 0);
	unlinkat(o->log.dir_fd, JOB, 0);
}

static void on_notify(struct output *o)
{
	char text[1024];
	ssize_t n;

	while ((n = recv(o->notify_fd, text, sizeof(text) - 1, 0)) >= 0) {
		text[n] = '\0';
		if (strncmp(text, "READY=1", 7) == 0 && (!text[7] || text[7] == '\n'))
			on_ready(o);
		else if (strcmp(text, "KILL=1") == 0)
			end_command(o);
	}
}

static void on_signal(struct output *o)
{
	struct signalfd_siginfo si;
	int status;

	while (read(o->signal_fd, &si, sizeof(si)) == sizeof(si))
		if (si.ssi_signo != SIGCHLD)
			end_command(o);
	if (!o->child || waitpid(o->child, &status, WNOHANG) != o->child)
		return;
	o->child = 0;
	o->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	o->leave_at_us = sbx_clock_monotonic_us() + LINGER_MS * 1000;
}

/* Writes what was read, but for the beginning of a character. */
static void flush(struct output *o, struct pipe_end *p, bool all)
{
	size_t rest = all ? 0 : sbx_frame_unfinished(sbx_span(p->buf, p->n));

	if (p->n > rest)
		write_frame(o, p->kind, p->buf, p->n - rest);
	memmove(p->buf, p->buf + p->n - rest, rest);
	p->n = rest;
}

static void on_output(struct output *o, struct pipe_end *p)
{
	ssize_t n = read(p->fd, p->buf + p->n, sizeof(p->buf) - p->n);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0)
		p->n += (size_t)n;
	flush(o, p, n <= 0);
	if (n <= 0)
		p->fd = sbx_fd_close(p->fd);
}

static bool is_over(const struct output *o, uint64_t now)
{
	return !o->child && ((o->pipes[0].fd < 0 && o->pipes[1].fd < 0) || now >= o->leave_at_us);
}

static void on_time(struct output *o, uint64_t now)
{
	if (o->ready_by_us && now >= o->ready_by_us) {
		o->ready_by_us = 0;
		o->late = true;
		end_command(o);
	}
	if (o->child && o->kill_at_us && now >= o->kill_at_us) {
		kill(o->child, SIGKILL);
		o->kill_at_us = UINT64_MAX;
	}
}

static int timeout_ms(const struct output *o, uint64_t now)
{
	const uint64_t times[] = { o->ready_by_us, o->child ? o->kill_at_us : 0, o->leave_at_us };
	uint64_t next = UINT64_MAX;

	for (size_t i = 0; i < SBX_N_ELEMENTS(times); i++)
		if (times[i] && times[i] < next)
			next = times[i];
	if (next == UINT64_MAX)
		return -1;
	return next <= now ? 0 : (int)((next - now) / 1000 + 1);
}

static void supervise(struct output *o)
{
	uint64_t now;

	while (now = sbx_clock_monotonic_us(), !is_over(o, now)) {
		struct pollfd p[4] = { { .fd = o->pipes[0].fd, .events = POLLIN },
				       { .fd = o->pipes[1].fd, .events = POLLIN },
				       { .fd = o->notify_fd, .events = POLLIN },
				       { .fd = o->signal_fd, .events = POLLIN } };

		if (poll(p, 4, timeout_ms(o, now)) < 0 && errno != EINTR)
			break;
		if (p[2].revents)
			on_notify(o);
		for (int i = 0; i < 2; i++)
			if (p[i].revents)
				on_output(o, &o->pipes[i]);
		if (p[3].revents)
			on_signal(o);
		on_time(o, sbx_clock_monotonic_us());
	}
}

static void finish(struct output *o)
{
	uint8_t numbers[8];
	struct sbx_writer w = sbx_writer(numbers, sizeof(numbers));

	on_notify(o); /* a command that ended at once was ready before */
	for (int i = 0; i < 2; i++)
		flush(o, &o->pipes[i], true);
	sbx_write_u32(&w, (uint32_t)o->status);
	sbx_write_u32(&w, o->late ? SBX_FRAME_LATE : SBX_FRAME_ENDED);
	tidy(o);
	write_frame(o, SBX_FRAME_END, numbers, sizeof(numbers));
}

static bool parse_number(const char *s, uint64_t *ret)
{
	char *end;

	errno = 0;
	*ret = strtoull(s, &end, 10);
	return errno == 0 && s[0] >= '0' && s[0] <= '9' && !*end;
}

int main(int argc, char **argv)
{
	static struct output o = { .pipes = { { .kind = SBX_FRAME_STDOUT, .fd = -1 },
					      { .kind = SBX_FRAME_STDERR, .fd = -1 } },
				   .status = CANNOT_RUN };
	uint64_t max, seconds;
	int r;

	if (argc < 7 || !parse_number(argv[4], &max) || !parse_number(argv[5], &seconds)) {
		fprintf(stderr, "sbx-output: a part of sbxd, which starts it\n");
		return EINVAL;
	}
	close_range(3, ~0u, 0);
	umask(077);
	prctl(PR_SET_DUMPABLE, 0);
	r = watch_signals(&o);
	r = r ? r : open_log(&o, argv[2], max);
	r = r ? r : listen_at(&o, argv[3]);
	if (r == 0 && strcmp(argv[1], "daemon") == 0)
		r = leave_parent();
	if (r < 0)
		return -r;
	o.ready_by_us = sbx_clock_monotonic_us() + seconds * 1000000;
	r = start(&o, argv + 6);
	if (r < 0)
		write_failure(&o, r);
	sbx_caps_keep(0);
	supervise(&o);
	finish(&o);
	return 0;
}
