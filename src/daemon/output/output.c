/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * sbx-output: runs sbx-run for sbxd, and keeps its standard output and error in a log (frame.h).
 * An internal program, which needs no right:
 *
 *     sbx-output daemon|stay STATE_DIR RUNTIME_DIR SBX_RUN
 *
 * Standard input is a connection of sbxd, which says the sandbox's id and is told when the log has
 * begun (start_line.h); if sbxd does not take the answer, nothing starts. `daemon`: goes on as a
 * process of its own session, so that it outlives sbxd. `stay`: a unit of systemd
 * (sbx-sandbox@.service), with failures on standard error; SIGTERM is handed on.
 *
 * The log's directory is locked as long as the process lives. A socket beside it takes datagrams:
 * sbx-run's warnings and its READY=1 (sd_notify(3)); and KILL=1, which ends it: by SIGTERM, which
 * the command gets; then through its control socket, so that its end is recorded; then by SIGKILL.
 *
 * A command that is not ready after SBX_START_S is ended. When it is ready, or has ended, the job
 * and the socket are removed: the job may have secrets in its variables.
 *
 * The output is read whatever happens to the log: the command never waits for the disk's room.
 * Bytes that begin a UTF-8 character wait for the rest of it, so that a frame of text is text.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
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
#include "daemon/output/start_line.h"
#include "sys/cgroup/cgroup_find.h"
#include "sys/fs/file_text.h"
#include "sys/fs/unix_stream.h"
#include "sys/process/proc.h"
#include "sys/systemd/notify.h"

SBX_VERSION_MARK;

#define REQUEST_MS 10000 /* for sbxd's line */
#define GRACE_MS   5000	 /* from one way to end it to the next */
#define LINGER_MS  1000	 /* after the command's end, if others hold its pipes */
#define NOT_FOUND  127
#define CANNOT_RUN 125
#define FAILED	   1

struct pipe_end {
	enum sbx_frame_kind kind;
	int fd; /* -1: it has ended */
	size_t n;
	uint8_t buf[SBX_FRAME_MAX];
};

struct output {
	char id[SBX_ID_LEN + 1];
	char dir[PATH_MAX], job[PATH_MAX], socket_path[PATH_MAX];
	char control[PATH_MAX]; /* the control socket of sbx-run */
	struct sbx_log_writer log;
	struct pipe_end pipes[2];
	int notify_fd, signal_fd;
	pid_t child; /* 0: it was reaped */
	int status;  /* its exit status */
	bool ready, late;
	size_t n_warnings;
	char warnings[SBX_FRAME_WARNINGS_MAX]; /* a line each */
	bool ends, asked;
	uint64_t ready_by_us, end_at_us, leave_at_us; /* monotonic; 0: not set */
};

static void write_frame(struct output *o, enum sbx_frame_kind kind, const void *p, size_t n)
{
	const struct sbx_frame f = { kind, sbx_clock_realtime_ms(), sbx_span(p, n) };

	sbx_log_write(&o->log, &f);
}

/* --- the request --- */

/* 0; -EBADMSG; -ETIMEDOUT; -ECONNRESET: the connection has ended; -errno. */
static int receive(char ret_id[SBX_ID_LEN + 1])
{
	uint64_t until_us = sbx_clock_monotonic_us() + REQUEST_MS * 1000;
	char line[SBX_START_LINE_LEN + 1];
	size_t n = 0;
	int r = 0;

	while (r == 0) {
		struct pollfd p = { .fd = STDIN_FILENO, .events = POLLIN };
		uint64_t now_us = sbx_clock_monotonic_us();
		ssize_t k;

		if (now_us >= until_us || poll(&p, 1, (int)((until_us - now_us) / 1000 + 1)) == 0)
			return -ETIMEDOUT;
		k = recv(STDIN_FILENO, line + n, sizeof(line) - n, MSG_DONTWAIT);
		if (k < 0 && (errno == EAGAIN || errno == EINTR))
			continue;
		if (k <= 0)
			return k < 0 ? -errno : -ECONNRESET;
		n += (size_t)k;
		r = sbx_start_line_parse(sbx_span(line, n), ret_id);
	}
	return r < 0 ? r : 0;
}

/* The connection is closed: standard input is /dev/null afterwards. systemd holds a copy of it
 * as long as the unit lives, so it is shut down. 0 or -errno: sbxd is not there any more. */
static int answer(int error)
{
	SBX_AUTO_CLOSE int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	char text[SBX_START_ANSWER_MAX];
	int r = null < 0 ? -errno : 0;

	sbx_start_line_answer(error, text);
	if (r == 0 && send(STDIN_FILENO, text, strlen(text), MSG_NOSIGNAL) < 0)
		r = -errno;
	shutdown(STDIN_FILENO, SHUT_RDWR);
	if (r == 0 && dup2(null, STDIN_FILENO) < 0)
		r = -errno;
	return r;
}

/* --- beginning --- */

static int listen_at(struct output *o, const char *path)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	SBX_AUTO_CLOSE int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int r = sbx_text_copy(a.sun_path, sizeof(a.sun_path), path);

	if (fd < 0)
		return -errno;
	if (r < 0)
		return r;
	unlink(path);
	if (bind(fd, (const struct sockaddr *)&a, sizeof(a)) < 0)
		return -errno;
	o->notify_fd = sbx_fd_steal(&fd);
	return 0;
}

static int open_log(struct output *o)
{
	SBX_AUTO_CLOSE int fd = open(o->dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0)
		return -errno;
	return sbx_log_writer_open(&o->log, sbx_fd_steal(&fd), SBX_OUTPUT_MAX);
}

/* Everything that may fail before sbx-run is started. 0 or -errno. */
static int begin(struct output *o, const char *state_dir, const char *runtime_dir)
{
	int r = sbx_output_dir(state_dir, o->id, o->dir, sizeof(o->dir));

	r = r ? r : sbx_text_format(o->job, sizeof(o->job), "%s/" SBX_OUTPUT_JOB, o->dir);
	r = r ? r : sbx_output_socket(runtime_dir, o->id, o->socket_path, sizeof(o->socket_path));
	r = r ? r :
		sbx_text_format(o->control, sizeof(o->control), "%s/%s/control.sock", runtime_dir,
				o->id);
	if (r == 0 && access(o->job, R_OK) < 0)
		r = -errno;
	r = r ? r : open_log(o);
	return r ? r : listen_at(o, o->socket_path);
}

/* A unit's cgroup gives its controllers to the sandbox's only while no process is in it
 * (cgroups(7)). If this fails, sbx-run says which limits do not hold. */
static void leave_cgroup(void)
{
	struct sbx_cgroup_facts f;
	char path[SBX_CGROUP_PATH_MAX + 64];
	size_t n;

	if (sbx_cgroup_facts_read(&f, true) < 0 || !f.mount[0] || !f.own[0])
		return;
	sbx_text_fit(path, sizeof(path), "%s%s/output", f.mount, f.own);
	n = strlen(path);
	if (mkdir(path, 0755) < 0 && errno != EEXIST)
		return;
	sbx_text_fit(path + n, sizeof(path) - n, "/cgroup.procs");
	sbx_file_text_write(AT_FDCWD, path, "0");
}

static void tell_manager(const struct output *o)
{
	char text[64];

	sbx_text_fit(text, sizeof(text), "STATUS=sandbox %s", o->id);
	sbx_notify_send(getenv("NOTIFY_SOCKET"), text);
}

_Noreturn static void be_command(const struct output *o, const char *program, int out, int err)
{
	const char *const argv[] = { "sbx-run", "-q",	 "--named-profile", "--job",
				     o->job,	"--id", o->id,		    NULL };
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
		execv(program, (char *const *)(uintptr_t)argv);
	dprintf(2, "sbx-output: %s: %s\n", program, strerror(errno));
	_exit(errno == ENOENT ? NOT_FOUND : CANNOT_RUN);
}

static int start(struct output *o, const char *program)
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
		be_command(o, program, out, err);
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

/* A session of its own, in a child: sbxd waits for the parent. 0 or -errno. */
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
	unlinkat(o->log.dir_fd, SBX_OUTPUT_JOB, 0);
	unlink(o->socket_path);
}

static void end_command(struct output *o)
{
	if (!o->child || o->ends)
		return;
	o->ends = true;
	kill(o->child, SIGTERM);
	o->end_at_us = sbx_clock_monotonic_us() + GRACE_MS * 1000;
}

/* docs/CONTROL.md. The connection stays open: nothing waits for its answer. */
static void ask_to_kill(const struct output *o)
{
	static const char request[] = "{\"v\":1,\"op\":\"kill\"}\n";
	int fd = sbx_unix_connect(o->control);

	if (fd >= 0)
		send(fd, request, sizeof(request) - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* SIGTERM did not end it. */
static void end_harder(struct output *o, uint64_t now)
{
	if (o->asked) {
		kill(o->child, SIGKILL);
		o->end_at_us = 0;
		return;
	}
	ask_to_kill(o);
	o->asked = true;
	o->end_at_us = now + GRACE_MS * 1000;
}

static void on_ready(struct output *o)
{
	if (o->ready)
		return;
	o->ready = true;
	o->ready_by_us = 0;
	write_frame(o, SBX_FRAME_READY, o->warnings, o->n_warnings);
	unlinkat(o->log.dir_fd, SBX_OUTPUT_JOB, 0);
}

/* One that does not fit is left out. */
static void on_warning(struct output *o, const char *text)
{
	size_t n = strcspn(text, "\n");

	if (o->ready || n + 1 > sizeof(o->warnings) - o->n_warnings)
		return;
	memcpy(o->warnings + o->n_warnings, text, n);
	o->n_warnings += n;
	o->warnings[o->n_warnings++] = '\n';
}

static void on_notify(struct output *o)
{
	static const char warning[] = "X_SBX_WARNING=";
	char text[1024];
	ssize_t n;

	while ((n = recv(o->notify_fd, text, sizeof(text) - 1, 0)) >= 0) {
		text[n] = '\0';
		if (strncmp(text, "READY=1", 7) == 0 && (!text[7] || text[7] == '\n'))
			on_ready(o);
		else if (strncmp(text, warning, sizeof(warning) - 1) == 0)
			on_warning(o, text + sizeof(warning) - 1);
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
	if (o->child && o->end_at_us && now >= o->end_at_us)
		end_harder(o, now);
}

static int timeout_ms(const struct output *o, uint64_t now)
{
	const uint64_t times[] = { o->ready_by_us, o->child ? o->end_at_us : 0, o->leave_at_us };
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

/* From the request to sbx-run. 0 or -errno: nothing runs. */
static int begin_and_answer(struct output *o, char **argv, bool stays)
{
	int r = receive(o->id), told;

	if (r < 0) {
		answer(-r);
		fprintf(stderr, "sbx-output: no sandbox's id came: %s\n", strerror(-r));
		return r;
	}
	r = begin(o, argv[2], argv[3]);
	told = answer(-r);
	if (r < 0) {
		fprintf(stderr, "sbx-output: sandbox %s: %s: %s\n", o->id, o->dir, strerror(-r));
		return r;
	}
	if (told < 0) {
		fprintf(stderr, "sbx-output: sandbox %s: sbxd does not wait for it any more\n",
			o->id);
		tidy(o);
		return told;
	}
	if (stays) {
		tell_manager(o);
		leave_cgroup();
	}
	return 0;
}

int main(int argc, char **argv)
{
	static struct output o = { .pipes = { { .kind = SBX_FRAME_STDOUT, .fd = -1 },
					      { .kind = SBX_FRAME_STDERR, .fd = -1 } },
				   .status = CANNOT_RUN };
	bool stays = argc > 1 && strcmp(argv[1], "stay") == 0;
	int r;

	if (argc != 5 || (!stays && strcmp(argv[1], "daemon") != 0)) {
		fprintf(stderr, "sbx-output: a part of sbxd, which starts it\n");
		return FAILED;
	}
	close_range(3, ~0u, 0);
	umask(077);
	prctl(PR_SET_DUMPABLE, 0);
	r = stays ? 0 : leave_parent();
	r = r ? r : watch_signals(&o);
	r = r ? r : begin_and_answer(&o, argv, stays);
	if (r < 0)
		return FAILED;
	o.ready_by_us = sbx_clock_monotonic_us() + SBX_START_S * UINT64_C(1000000);
	r = start(&o, argv[4]);
	if (r < 0)
		write_failure(&o, r);
	sbx_caps_keep(0);
	supervise(&o);
	finish(&o);
	return 0;
}
