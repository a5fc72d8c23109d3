/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A job waits in a queue, then runs as a process with three descriptors: /dev/null, two pipes. It
 * has ended when its pidfd says so; what a descendant still writes is not waited for. Its process
 * group is killed before it is reaped, while the number of the group cannot be another's.
 */
#include "daemon/hub/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "sys/process/proc.h"

#define ENV_MAX	   64
#define FIRST_ROOM 16384

struct job {
	struct job *next;
	struct sbx_children *all;
	char *argv[SBX_CHILD_ARGS_MAX + 1];
	sbx_child_fn fn;
	void *userdata;
	pid_t pid; /* 0: it does not run */
	int pidfd, out_fd, err_fd;
	struct event *ended, *out_ready, *err_ready;
	char *out;
	size_t n_out, room;
	char errors[SBX_CHILD_ERRORS_MAX];
	size_t n_errors;
};

struct sbx_children {
	struct event_base *base;
	struct job *running, *waiting, **last_waiting;
	size_t n_running, n_waiting;
};

static void job_free(struct job *j)
{
	struct event *events[] = { j->ended, j->out_ready, j->err_ready };

	for (size_t i = 0; i < SBX_N_ELEMENTS(events); i++)
		if (events[i])
			event_free(events[i]);
	if (j->pid > 0)
		kill(-j->pid, SIGKILL);
	sbx_proc_end(&j->pid); /* the group does not have it yet, if it was just made */
	sbx_fd_close(j->pidfd);
	sbx_fd_close(j->out_fd);
	sbx_fd_close(j->err_fd);
	for (size_t i = 0; j->argv[i]; i++)
		free(j->argv[i]);
	free(j->out);
	free(j);
}

static void start_next(struct sbx_children *c);

/* Tells the end of a job, which runs or could not be started, and frees it. */
static void finish(struct job *j, int result, int status)
{
	struct sbx_children *c = j->all;
	const struct sbx_child_end end = { result, status, j->out ? j->out : "", j->n_out,
					   j->errors };
	sbx_child_fn fn = j->fn;
	void *userdata = j->userdata;

	for (struct job **p = &c->running; *p; p = &(*p)->next)
		if (*p == j) {
			*p = j->next;
			c->n_running--;
			break;
		}
	fn(userdata, &end);
	job_free(j);
	start_next(c);
}

/* --- output --- */

static bool grow(struct job *j)
{
	size_t room = j->room ? j->room * 2 : FIRST_ROOM;
	char *grown = room <= SBX_CHILD_OUTPUT_MAX * 2 ? realloc(j->out, room) : NULL;

	if (!grown)
		return false;
	j->out = grown;
	j->room = room;
	return true;
}

/* 0: there is no more for now; 1: the end; -EFBIG. */
static int take_output(struct job *j)
{
	for (;;) {
		ssize_t n;

		if (j->n_out > SBX_CHILD_OUTPUT_MAX || (j->n_out + 1 >= j->room && !grow(j)))
			return -EFBIG;
		n = read(j->out_fd, j->out + j->n_out, j->room - 1 - j->n_out);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n == 0;
		j->n_out += (size_t)n;
		j->out[j->n_out] = '\0';
	}
}

static int take_errors(struct job *j)
{
	char rest[512] = "";

	for (;;) {
		size_t left = sizeof(j->errors) - 1 - j->n_errors;
		ssize_t n = read(j->err_fd, left ? j->errors + j->n_errors : rest,
				 left ? left : sizeof(rest));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n == 0;
		j->n_errors += left ? (size_t)n : 0;
	}
}

static void on_output(evutil_socket_t fd, short what, void *userdata)
{
	struct job *j = userdata;
	int r = take_output(j);

	(void)fd;
	(void)what;
	if (r < 0)
		finish(j, SBX_CHILD_E_TOO_LONG, 0);
	else if (r > 0)
		event_del(j->out_ready);
}

static void on_errors(evutil_socket_t fd, short what, void *userdata)
{
	struct job *j = userdata;

	(void)fd;
	(void)what;
	if (take_errors(j) > 0)
		event_del(j->err_ready);
}

static void on_ended(evutil_socket_t fd, short what, void *userdata)
{
	struct job *j = userdata;
	siginfo_t info = { 0 };

	(void)fd;
	if (what & EV_TIMEOUT) {
		finish(j, SBX_CHILD_E_TIMED_OUT, 0);
		return;
	}
	if (waitid(P_PID, (id_t)j->pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0 || !info.si_pid)
		return;
	take_errors(j);
	if (take_output(j) < 0)
		finish(j, SBX_CHILD_E_TOO_LONG, 0);
	else if (info.si_code != CLD_EXITED)
		finish(j, SBX_CHILD_E_DIED, info.si_status);
	else
		finish(j, 0, info.si_status);
}

/* --- the process --- */

static bool is_passed(const char *variable)
{
	static const char *const names[] = {
		"PATH=", "HOME=", "USER=", "LOGNAME=", "XDG_", "SBX_"
	};

	for (size_t i = 0; i < SBX_N_ELEMENTS(names); i++)
		if (strncmp(variable, names[i], strlen(names[i])) == 0)
			return true;
	return false;
}

static int spawn(struct job *j, int out, int err)
{
	char *env[ENV_MAX + 2] = { (char *)(uintptr_t) "LC_ALL=C.UTF-8" };
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	sigset_t none, defaults;
	size_t n = 1;
	int r;

	for (char **p = environ; *p && n < ENV_MAX; p++)
		if (is_passed(*p))
			env[n++] = *p;
	sigemptyset(&none);
	sigemptyset(&defaults);
	sigaddset(&defaults, SIGPIPE);
	sigaddset(&defaults, SIGXFSZ);
	if (posix_spawn_file_actions_init(&actions) != 0)
		return -ENOMEM;
	if (posix_spawnattr_init(&attr) != 0) {
		posix_spawn_file_actions_destroy(&actions);
		return -ENOMEM;
	}
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
						POSIX_SPAWN_SETSIGDEF);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setsigdefault(&attr, &defaults);
	r = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	r = r ? r : posix_spawn_file_actions_adddup2(&actions, out, 1);
	r = r ? r : posix_spawn_file_actions_adddup2(&actions, err, 2);
	r = r ? r : posix_spawn_file_actions_addclosefrom_np(&actions, 3);
	r = r ? r : posix_spawn_file_actions_addchdir_np(&actions, "/");
	r = r ? r : posix_spawn(&j->pid, j->argv[0], &actions, &attr, j->argv, env);
	if (r)
		j->pid = 0;
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&actions);
	return -r;
}

static int watch(struct job *j)
{
	static const struct timeval limit = { .tv_sec = SBX_CHILD_MS / 1000 };
	struct event_base *base = j->all->base;

	j->pidfd = (int)syscall(SYS_pidfd_open, j->pid, 0);
	if (j->pidfd < 0)
		return -errno;
	sbx_fd_set_nonblocking(j->out_fd);
	sbx_fd_set_nonblocking(j->err_fd);
	j->ended = event_new(base, j->pidfd, EV_READ | EV_PERSIST, on_ended, j);
	j->out_ready = event_new(base, j->out_fd, EV_READ | EV_PERSIST, on_output, j);
	j->err_ready = event_new(base, j->err_fd, EV_READ | EV_PERSIST, on_errors, j);
	if (!j->ended || !j->out_ready || !j->err_ready || event_add(j->ended, &limit) < 0 ||
	    event_add(j->out_ready, NULL) < 0 || event_add(j->err_ready, NULL) < 0)
		return -ENOMEM;
	return 0;
}

static int start(struct job *j)
{
	SBX_AUTO_CLOSE int out = -1, err = -1;
	int r = sbx_fd_pipe(&j->out_fd, &out);

	r = r ? r : sbx_fd_pipe(&j->err_fd, &err);
	r = r ? r : spawn(j, out, err);
	return r ? r : watch(j);
}

static void start_next(struct sbx_children *c)
{
	while (c->waiting && c->n_running < SBX_CHILDREN_MAX) {
		struct job *j = c->waiting;
		int r;

		c->waiting = j->next;
		if (!c->waiting)
			c->last_waiting = &c->waiting;
		c->n_waiting--;
		j->next = c->running;
		c->running = j;
		c->n_running++;
		r = start(j);
		if (r)
			finish(j, r, 0);
	}
}

static struct job *job_new(struct sbx_children *c, const char *const *argv)
{
	struct job *j = calloc(1, sizeof(*j));

	if (!j)
		return NULL;
	j->all = c;
	j->pidfd = j->out_fd = j->err_fd = -1;
	for (size_t i = 0; argv[i]; i++) {
		j->argv[i] = i < SBX_CHILD_ARGS_MAX ? strdup(argv[i]) : NULL;
		if (!j->argv[i]) {
			job_free(j);
			return NULL;
		}
	}
	return j;
}

void sbx_child_run(struct sbx_children *c, const char *const *argv, sbx_child_fn fn, void *userdata)
{
	struct sbx_child_end end = { .result = SBX_CHILD_E_BUSY, .out = "", .errors = "" };
	struct job *j = c->n_waiting < SBX_CHILDREN_WAIT_MAX ? job_new(c, argv) : NULL;

	if (!j) {
		if (c->n_waiting < SBX_CHILDREN_WAIT_MAX)
			end.result = -ENOMEM;
		fn(userdata, &end);
		return;
	}
	j->fn = fn;
	j->userdata = userdata;
	*c->last_waiting = j;
	c->last_waiting = &j->next;
	c->n_waiting++;
	start_next(c);
}

int sbx_children_new(struct event_base *base, struct sbx_children **ret_children)
{
	struct sbx_children *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->base = base;
	c->last_waiting = &c->waiting;
	*ret_children = c;
	return 0;
}

static void free_all(struct job *j)
{
	while (j) {
		struct job *next = j->next;

		job_free(j);
		j = next;
	}
}

struct sbx_children *sbx_children_free(struct sbx_children *c)
{
	if (c) {
		free_all(c->running);
		free_all(c->waiting);
	}
	free(c);
	return NULL;
}
