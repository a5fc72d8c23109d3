/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Commands that are executed in a running sandbox, as the launcher sees them.
 *
 * A request is judged here first: its descriptors, and the command by the profile's lists with the
 * same code as the first command. The view was planned before the sandbox ran, and it does not know
 * files that the sandbox made since, nor, in a privileged launcher, files that only the sandbox's
 * user may see. So only a command that the lists deny is refused here. Any other is handed to the
 * sandbox, whose kernel decides; the reason found here is told if the kernel refuses. Names are no
 * boundary: masks and Landlock hold for every exec inside.
 *
 * Pid 1 gets EXEC with the end of a channel. The child says INIT_HELLO on it, and then EXEC_FAILED
 * or nothing: the exec closes it. EXEC_EXIT of pid 1 comes last, and frees the place. So a command
 * is
 *
 *   STARTING -> BORN      INIT_HELLO came: there is a child
 *   BORN     -> RUNNING   the channel ended: `started`
 *   BORN     -> FAILED    EXEC_FAILED came: `failed`; nothing more is told
 *   any      -> free      EXEC_EXIT, or the end of the sandbox: `exited`, or `failed`
 *
 * There is no time limit: in a frozen sandbox a command starts when it is thawed, and a signal
 * waits for it in the same channel. A process inside may stop a child that has not executed yet, as
 * it may stop every command.
 *
 * Messages of pid 1 and of its children are not trusted: run/supervise.c has the rules for
 * EXEC_EXIT; any other message on a child's channel sets `broken`, which ends the sandbox.
 */
#include "launcher/exec/execs.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "ipc/channel.h"
#include "ipc/messages.h"
#include "launcher/exec/exec_judge.h"
#include "launcher/exec/stdio.h"
#include "launcher/host/exit_status.h"
#include "policy/forms/option_form.h"

enum state { STARTING, BORN, RUNNING, FAILED };

struct sbx_exec {
	uint32_t number; /* 0: the place is free */
	enum state state;
	int fd;			 /* the child's channel; -1: closed */
	struct sbx_watch *watch; /* for it */
	struct sbx_execs *execs;
	struct sbx_exec_done done;
	char *command; /* argv[0] */
	/* found when it was judged: an exit status, and the reason, if the kernel refuses too */
	int status;
	char *why;
};

void sbx_execs_init(struct sbx_execs *e)
{
	*e = (struct sbx_execs){ .fd = -1 };
}

static void close_channel(struct sbx_exec *x)
{
	x->watch = sbx_watch_remove(x->watch);
	x->fd = sbx_fd_close(x->fd);
}

static void clear(struct sbx_exec *x)
{
	close_channel(x);
	free(x->command);
	free(x->why);
	*x = (struct sbx_exec){ .fd = -1 };
}

void sbx_execs_fini(struct sbx_execs *e)
{
	for (size_t i = 0; e->v && i < SBX_EXECS_MAX; i++)
		clear(&e->v[i]);
	free(e->v);
	sbx_execs_init(e);
}

void sbx_execs_open(struct sbx_execs *e, const struct sbx_plan *plan, struct sbx_watches *watches,
		    int fd)
{
	e->plan = plan;
	e->watches = watches;
	e->fd = fd;
}

/* The command @number; 0: a free place. NULL: there is none. */
static struct sbx_exec *find(const struct sbx_execs *e, uint32_t number)
{
	for (size_t i = 0; e->v && i < SBX_EXECS_MAX; i++)
		if (e->v[i].number == number)
			return &e->v[i];
	return NULL;
}

size_t sbx_execs_count(const struct sbx_execs *e)
{
	size_t n = 0;

	for (size_t i = 0; e->v && i < SBX_EXECS_MAX; i++)
		n += e->v[i].number != 0 && e->v[i].state != FAILED;
	return n;
}

/* --- what a command tells --- */

static void tell_started(struct sbx_exec *x)
{
	x->state = RUNNING;
	if (x->done.started)
		x->done.started(x->done.userdata, x->number);
}

static void tell_failed(struct sbx_exec *x, int status, const char *why)
{
	x->state = FAILED;
	if (x->done.failed)
		x->done.failed(x->done.userdata, x->number, status, why);
}

static void on_failed(struct sbx_exec *x, const struct sbx_msg_exec_failed *m)
{
	char why[PATH_MAX + 128];
	int status = m->not_found ? SBX_EXIT_NOT_FOUND : SBX_EXIT_NOT_EXECUTABLE;

	if (m->why[0]) {
		tell_failed(x, SBX_EXIT_REFUSED, m->why);
		return;
	}
	if (x->status == status && x->why) {
		tell_failed(x, status, x->why);
		return;
	}
	sbx_text_cut(why, sizeof(why), "command '%s' cannot be executed: %s", x->command,
		     strerror((int)m->error));
	tell_failed(x, status, why);
}

/* 0, or -1: it may not be sent now, or it is malformed. */
static int judge_packet(struct sbx_exec *x, struct sbx_span packet)
{
	struct sbx_msg_exec_failed m;
	uint32_t zero;

	if (x->state == STARTING && sbx_msg_decode_simple(packet, SBX_MSG_INIT_HELLO, &zero) == 0) {
		x->state = BORN;
		return 0;
	}
	if (x->state != BORN || sbx_msg_decode_exec_failed(packet, &m) != 0)
		return -1;
	on_failed(x, &m);
	return 0;
}

/* Reads the child's channel to its end, if it has one by now. A callback may end the command @x:
 * then its channel is closed. */
static void hear(struct sbx_exec *x)
{
	uint8_t packet[512];
	size_t n;
	int r;

	while (x->fd >= 0) {
		r = sbx_channel_recv(x->fd, packet, sizeof(packet), &n, NULL, 0, NULL, NULL);
		if (r == SBX_CHANNEL_E_AGAIN || r == -EINTR)
			return;
		if (r == 0 && judge_packet(x, sbx_span(packet, n)) == 0)
			continue;
		close_channel(x);
		if (r != SBX_CHANNEL_E_CLOSED)
			x->execs->broken = true;
		else if (x->state == BORN)
			tell_started(x);
	}
}

static void on_channel(void *userdata, short revents)
{
	(void)revents;
	hear(userdata);
}

int sbx_execs_on_exit(struct sbx_execs *e, const struct sbx_msg_exec_exit *m)
{
	struct sbx_exec *x = find(e, m->number);
	char why[128];

	if (m->number == 0 || !x)
		return -1;
	hear(x);
	if (x->state == RUNNING && x->done.exited)
		x->done.exited(x->done.userdata, x->number, (int)m->status);
	if (m->error)
		sbx_text_cut(why, sizeof(why), "cannot start a process in the sandbox: %s",
			     strerror((int)m->error));
	else
		sbx_text_cut(why, sizeof(why), "the command was killed before it was executed");
	if (x->state == STARTING || x->state == BORN)
		tell_failed(x, SBX_EXIT_REFUSED, why);
	clear(x);
	return 0;
}

void sbx_execs_end(struct sbx_execs *e)
{
	e->fd = -1;
	for (size_t i = 0; e->v && i < SBX_EXECS_MAX; i++) {
		struct sbx_exec *x = &e->v[i];

		if (!x->number)
			continue;
		if (x->state == STARTING || x->state == BORN)
			tell_failed(x, SBX_EXIT_REFUSED, "the sandbox has ended");
		else if (x->state == RUNNING && x->done.exited)
			x->done.exited(x->done.userdata, x->number, SIGKILL);
		clear(x);
	}
}

/* --- requests --- */

/* One more word of EXEC's text. */
static void put(struct sbx_writer *w, const char *s)
{
	sbx_write_bytes(w, s, strlen(s) + 1);
}

/* The directory's path in the sandbox. False: too long. */
static bool directory(const struct sbx_execs *e, const struct sbx_exec_request *q,
		      char path[PATH_MAX])
{
	const char *first = e->plan->view.chdir, *dir = q->chdir ? q->chdir : first;
	bool absolute = dir[0] == '/';

	return snprintf(path, PATH_MAX, "%s%s%s", absolute ? "" : first, absolute ? "" : "/",
			dir) < PATH_MAX;
}

/* EXEC's bytes. -E2BIG: the request has too many. */
static ssize_t encode(const struct sbx_exec_request *q, const char *dir, uint32_t number,
		      uint8_t packet[SBX_MSG_MAX])
{
	static uint8_t text[SBX_EXEC_TEXT_MAX];
	struct sbx_msg_exec m = { .number = number, .tty = q->tty };
	struct sbx_writer w = sbx_writer(text, sizeof(text));
	ssize_t n;

	put(&w, dir);
	for (; q->argv[m.n_argv] && !w.failed; m.n_argv++)
		put(&w, q->argv[m.n_argv]);
	if (q->chdir) { /* before the request's own variables, which may have another */
		sbx_write_bytes(&w, "PWD=", 4);
		put(&w, dir);
		m.n_env++;
	}
	for (size_t i = 0; q->env && q->env[i] && !w.failed; i++, m.n_env++)
		put(&w, q->env[i]);
	if (w.failed)
		return -E2BIG;
	m.text = sbx_span(text, w.pos);
	n = sbx_msg_encode_exec(&m, packet, SBX_MSG_MAX);
	return n == -EMSGSIZE ? -E2BIG : n;
}

static int refuse(struct sbx_err *err, const char *why)
{
	sbx_err_set(err, "%s", why);
	return SBX_EXIT_REFUSED;
}

static int check_form(const struct sbx_exec_request *q, struct sbx_err *err)
{
	if (!q->argv || !q->argv[0] || !q->argv[0][0])
		return refuse(err, "no command was given");
	if (q->chdir && !q->chdir[0])
		return refuse(err, "the directory is empty");
	for (size_t i = 0; q->env && q->env[i]; i++) {
		const char *why = sbx_form_env(q->env[i]);

		if (!why && !strchr(q->env[i], '='))
			why = "a value is missing (NAME=VALUE)";
		if (!why)
			continue;
		sbx_err_set(err, "variable '%.*s': %s", (int)strcspn(q->env[i], "="), q->env[i],
			    why);
		return SBX_EXIT_REFUSED;
	}
	if (q->tty && !isatty(q->stdio[0]))
		return refuse(err, "standard input is no terminal");
	return sbx_stdio_check(q->stdio, "sbxctl exec ...", err) < 0 ? SBX_EXIT_REFUSED : 0;
}

/* A place for one more. 0 or an exit status with @err. */
static int take_place(struct sbx_execs *e, struct sbx_exec **ret_x, struct sbx_err *err)
{
	if (e->fd < 0)
		return refuse(err, "the sandbox runs no commands now: it is starting, or ending");
	if (!e->v) {
		e->v = calloc(SBX_EXECS_MAX, sizeof(*e->v));
		for (size_t i = 0; e->v && i < SBX_EXECS_MAX; i++)
			e->v[i].fd = -1;
	}
	if (!e->v)
		return refuse(err, "no memory");
	*ret_x = find(e, 0);
	if (*ret_x)
		return 0;
	sbx_err_set(err, "%d commands were executed in this sandbox and have not ended: no more",
		    SBX_EXECS_MAX);
	return SBX_EXIT_REFUSED;
}

/* Sends @packet with the other end of x->fd and the stdio of @q. 0 or an exit status with @err. */
static int hand_over(struct sbx_exec *x, const struct sbx_exec_request *q,
		     const uint8_t *packet, size_t n, struct sbx_err *err)
{
	SBX_AUTO_CLOSE int theirs = -1;
	int fds[SBX_N_EXEC_FDS];
	int e = sbx_channel_pair(&x->fd, &theirs);

	if (e == 0)
		e = sbx_fd_set_nonblocking(x->fd);
	if (e < 0) {
		sbx_err_set(err, "cannot make a channel: %s", strerror(-e));
		return SBX_EXIT_REFUSED;
	}
	fds[SBX_EFD_CHANNEL] = theirs;
	fds[SBX_EFD_STDIN] = q->stdio[0];
	fds[SBX_EFD_STDOUT] = q->stdio[1];
	fds[SBX_EFD_STDERR] = q->stdio[2];
	x->watch = sbx_watch_add(x->execs->watches, x->fd, POLLIN, on_channel, x);
	if (!x->watch)
		return refuse(err, "the launcher has too much to wait for");
	e = sbx_channel_send(x->execs->fd, packet, n, fds, SBX_N_EXEC_FDS);
	if (e == 0)
		return 0;
	sbx_err_set(err, "the sandbox takes no command: %s",
		    e == SBX_CHANNEL_E_CLOSED  ? "it is ending"
		    : e == SBX_CHANNEL_E_AGAIN ? "it has too many to start"
					       : strerror(e < 0 ? -e : EIO));
	return SBX_EXIT_REFUSED;
}

/* 0 marks a free place. */
static uint32_t next_number(const struct sbx_execs *e)
{
	return e->last_number == UINT32_MAX ? 1 : e->last_number + 1;
}

/* All but the place, which @x is. */
static int start(struct sbx_execs *e, struct sbx_exec *x, const struct sbx_exec_request *q,
		 struct sbx_err *err)
{
	static uint8_t packet[SBX_MSG_MAX];
	char dir[PATH_MAX];
	ssize_t n;
	int r = check_form(q, err);

	if (r != 0)
		return r;
	if (!directory(e, q, dir))
		return refuse(err, "the directory's path is too long");
	n = encode(q, dir, next_number(e), packet);
	if (n < 0) {
		sbx_err_set(err, "the command, its variables and its directory have more than %d "
				 "bytes", SBX_EXEC_TEXT_MAX);
		return SBX_EXIT_REFUSED;
	}
	r = sbx_exec_judge(e->plan, q->argv[0], q->env, dir, &x->status, &x->why, err);
	if (r != 0)
		return r;
	x->command = strdup(q->argv[0]);
	return x->command ? hand_over(x, q, packet, (size_t)n, err) : refuse(err, "no memory");
}

int sbx_execs_start(struct sbx_execs *e, const struct sbx_exec_request *request,
		    const struct sbx_exec_done *done, uint32_t *ret_number, struct sbx_err *err)
{
	struct sbx_exec *x;
	int r = take_place(e, &x, err);

	if (r != 0)
		return r;
	x->execs = e;
	x->done = *done;
	r = start(e, x, request, err);
	if (r != 0) {
		clear(x);
		return r;
	}
	e->last_number = next_number(e);
	*ret_number = x->number = e->last_number;
	return 0;
}

int sbx_execs_signal(struct sbx_execs *e, uint32_t number, int sig)
{
	const struct sbx_exec *x = number ? find(e, number) : NULL;
	struct sbx_msg_exec_signal m = { number, (uint32_t)sig };
	uint8_t packet[32];
	ssize_t n;
	int r;

	if (sig <= 0 || sig >= _NSIG)
		return -EINVAL;
	if (!x || x->state == FAILED || e->fd < 0)
		return -ESRCH;
	n = sbx_msg_encode_exec_signal(&m, packet, sizeof(packet));
	r = n < 0 ? (int)n : sbx_channel_send(e->fd, packet, (size_t)n, NULL, 0);
	return r == SBX_CHANNEL_E_CLOSED ? -ESRCH : r > 0 ? -EAGAIN : r;
}

void sbx_execs_forget(struct sbx_execs *e, uint32_t number)
{
	struct sbx_exec *x = number ? find(e, number) : NULL;

	if (x)
		x->done = (struct sbx_exec_done){ 0 };
}
