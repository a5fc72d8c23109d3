/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * sbxctl exec: run a command in a live sandbox, as if it were a child.
 *
 * Without -t the command gets our own descriptors, or pipes where these are our terminal
 * (exec_pipes.c). Signals that we get go to its process group. With -t it gets a terminal of its
 * own, and -i copies the keys: then they make the signals inside.
 *
 * All signals that we handle are blocked and read from a signalfd, so the terminal is given back on
 * every way out but SIGKILL. SIGTSTP stops the command, and then us; SIGCONT goes on with both.
 *
 * A command may wait long for its start: in a frozen sandbox, or because a process inside stopped
 * it. Signals wait with it; the second that would end us does so.
 *
 * The exit status is the command's, 128 + N for signal N; 125 when nothing was executed, 126 when
 * the command is denied or not executable, 127 when it is not there.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "ctl/exec/exec.h"
#include "ctl/exec/exec_pipes.h"
#include "ctl/exec/exec_terminal.h"
#include "ctl/frame/places.h"
#include "ctl/live/ask.h"
#include "policy/forms/option_form.h"

SBX_DEFINE_CLEANUP(struct sbx_control_client, sbx_control_disconnect);

struct values {
	bool interactive, tty;
	const char **env;
	size_t n_env;
	const char *chdir;
};

static const char *check_env(const char *s)
{
	const char *why = sbx_form_env(s);

	return why ? why : strchr(s, '=') ? NULL : "it must be NAME=VALUE";
}

static const struct sbx_option options[] = {
	{ "interactive", .letter = 'i', .kind = SBX_OPTION_FLAG,
	  .offset = offsetof(struct values, interactive),
	  .help = "give the command standard input",
	  .more = " (otherwise it is empty)" },
	{ "tty", .letter = 't', .kind = SBX_OPTION_FLAG, .offset = offsetof(struct values, tty),
	  .help = "give the command a terminal of its own" },
	{ "env", .value = "NAME=VALUE", .kind = SBX_OPTION_LIST,
	  .offset = offsetof(struct values, env), .n_offset = offsetof(struct values, n_env),
	  .check = check_env, .help = "set a variable" },
	{ "chdir", .value = "DIR", .kind = SBX_OPTION_STRING,
	  .offset = offsetof(struct values, chdir), .check = sbx_form_not_empty,
	  .help = "start the command in this directory of the sandbox" },
};

struct exec {
	struct sbx_ctl *ctl;
	struct sbx_control_client *client;
	struct sbx_exec_terminal terminal;
	struct sbx_exec_pipes pipes; /* without -t */
	int signals;
	json_int_t number;     /* 0: not executed yet */
	uint64_t early;	       /* 1 << N: signals that came before */
	int status;	       /* the exit status; -1: none yet */
};

/* --- signals --- */

static const int handled[] = { SIGINT,	SIGTERM, SIGHUP,  SIGQUIT, SIGUSR1,
			       SIGUSR2, SIGTSTP, SIGCONT, SIGWINCH };

static int open_signals(int *ret_fd)
{
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < SBX_N_ELEMENTS(handled); i++)
		sigaddset(&set, handled[i]);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return -errno;
	*ret_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return *ret_fd < 0 ? -errno : 0;
}

/* A signal before the command has started. */
static void keep_signal(struct exec *x, int sig)
{
	const uint64_t ends = UINT64_C(1) << SIGINT | UINT64_C(1) << SIGTERM |
			      UINT64_C(1) << SIGHUP | UINT64_C(1) << SIGQUIT;

	if (x->early & ends && UINT64_C(1) << sig & ends) {
		sbx_err_set(&x->ctl->err, "the command has not started, and may still start");
		x->status = 128 + sig;
	}
	x->early |= UINT64_C(1) << sig;
}

/* The answer, which says only that it was sent, comes among the other lines. */
static void send_signal(struct exec *x, int sig)
{
	if (!x->number) {
		keep_signal(x, sig);
		return;
	}
	sbx_control_send(x->client,
			 json_pack("{s:s, s:s, s:I}", "op", "signal", "signal", sigabbrev_np(sig),
				   "exec", x->number), NULL, 0, NULL);
}

/* SIGSTOP, because the group of a command without a terminal is orphaned: the kernel drops SIGTSTP
 * there. */
static void stop(struct exec *x)
{
	send_signal(x, SIGSTOP);
	sbx_exec_terminal_restore(&x->terminal);
	raise(SIGSTOP);
}

static void on_signals(struct exec *x)
{
	struct signalfd_siginfo si;

	while (read(x->signals, &si, sizeof(si)) == sizeof(si)) {
		int sig = (int)si.ssi_signo;

		if (sig == SIGWINCH) {
			sbx_exec_terminal_resize(&x->terminal);
		} else if (sig == SIGTSTP) {
			stop(x);
		} else {
			if (sig == SIGCONT)
				sbx_exec_terminal_raw(&x->terminal);
			send_signal(x, sig);
		}
	}
}

/* --- lines --- */

static void on_refusal(struct exec *x, const json_t *line)
{
	const json_t *status = json_object_get(line, "status");
	const char *why = json_string_value(json_object_get(line, "error"));

	if (x->number)
		return; /* of a signal: the command has ended */
	sbx_err_set(&x->ctl->err, "%s", why ? why : "the launcher refused, and did not say why");
	x->status = json_is_integer(status) ? (int)json_integer_value(status) : SBX_CTL_FAILED;
}

static void on_line(struct exec *x, const json_t *line)
{
	const char *event = json_string_value(json_object_get(line, "event"));
	const json_t *number = json_object_get(line, "exec");

	if (event && strcmp(event, "exit") == 0) {
		x->status = (int)json_integer_value(json_object_get(line, "status"));
	} else if (!event && !json_is_true(json_object_get(line, "ok"))) {
		on_refusal(x, line);
	} else if (!event && json_is_integer(number) && !x->number) {
		x->number = json_integer_value(number);
		for (int sig = 1; sig < 64; sig++)
			if (x->early & UINT64_C(1) << sig)
				send_signal(x, sig);
	}
}

static void on_client(struct exec *x)
{
	struct sbx_err err = { 0 };
	json_t *line;

	do {
		int r = sbx_control_receive(x->client, 0, &line, &err);

		if (r == SBX_CONTROL_E_TIMED_OUT)
			return; /* a part of a line */
		if (r != 0) {
			sbx_err_set(&x->ctl->err, "%s", err.msg);
			x->status = SBX_CTL_FAILED;
			return;
		}
		on_line(x, line);
		json_decref(line);
	} while (x->status < 0 && sbx_control_has_line(x->client));
}

/* --- the request --- */

static json_t *list(char **argv, int argc)
{
	json_t *v = json_array();

	for (int i = 0; i < argc; i++)
		if (json_array_append_new(v, json_string(argv[i])) < 0) {
			json_decref(v);
			return NULL;
		}
	return v;
}

static json_t *variables(const struct values *v)
{
	const char *term = v->tty ? getenv("TERM") : NULL;
	json_t *map = json_object();
	int r = term ? json_object_set_new(map, "TERM", json_string(term)) : 0;

	for (size_t i = 0; i < v->n_env && r == 0; i++) {
		SBX_AUTO_FREE char *name = strdup(v->env[i]);
		char *value = name ? strchr(name, '=') : NULL;

		if (value)
			*value++ = '\0';
		r = value ? json_object_set_new(map, name, json_string(value)) : -1;
	}
	if (r == 0)
		return map;
	json_decref(map);
	return NULL;
}

/* NULL: a word is not UTF-8, or there is no memory. */
static json_t *request(const struct sbx_ctl *ctl)
{
	const struct values *v = ctl->values;
	json_t *argv = list(ctl->argv + 1, ctl->argc - 1), *env = argv ? variables(v) : NULL;
	json_t *q = argv && env ? json_pack("{s:s, s:o, s:o, s:b}", "op", "exec", "argv", argv,
					    "env", env, "tty", v->tty) : NULL;

	if (!q) {
		json_decref(argv);
		json_decref(env);
		return NULL;
	}
	if (v->chdir && json_object_set_new(q, "chdir", json_string(v->chdir)) < 0) {
		json_decref(q);
		return NULL;
	}
	return q;
}

static int send_request(struct exec *x)
{
	const struct values *v = x->ctl->values;
	int slave = x->terminal.slave;
	SBX_AUTO_CLOSE int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	const int own[] = { v->interactive ? sbx_exec_pipes_theirs(&x->pipes, STDIN_FILENO) :
					     null_fd,
			    sbx_exec_pipes_theirs(&x->pipes, STDOUT_FILENO),
			    sbx_exec_pipes_theirs(&x->pipes, STDERR_FILENO) };
	const int pty[] = { slave, slave, slave };
	json_t *q = request(x->ctl);

	if (!q || null_fd < 0) {
		json_decref(q);
		sbx_err_set(&x->ctl->err, q ? "/dev/null cannot be opened" :
					      "the command's words must be UTF-8");
		return -EINVAL;
	}
	return sbx_control_send(x->client, q, v->tty ? pty : own, 3, &x->ctl->err);
}

/* --- until its end --- */

/* Once more for what the command wrote last. */
static void drain(struct exec *x)
{
	struct pollfd p = { .fd = x->terminal.master, .events = POLLIN };

	sbx_exec_pipes_drain(&x->pipes);
	x->terminal.reads = false;
	x->terminal.n_in = 0;
	while (p.fd >= 0 && poll(&p, 1, 0) > 0)
		if (!sbx_exec_terminal_copy(&x->terminal, p.revents, 0))
			break;
}

static void wait_for_end(struct exec *x)
{
	bool open = x->terminal.master >= 0;

	while (x->status < 0) {
		short input = open ? sbx_exec_terminal_input_events(&x->terminal) : 0;
		struct pollfd p[4 + SBX_EXEC_PIPES_POLLS] = {
			{ .fd = sbx_control_fd(x->client), .events = POLLIN },
			{ .fd = x->signals, .events = POLLIN },
			{ .fd = open ? x->terminal.master : -1,
			  .events = sbx_exec_terminal_master_events(&x->terminal) },
			{ .fd = input ? STDIN_FILENO : -1, .events = input },
		};

		sbx_exec_pipes_fill(&x->pipes, p + 4);
		if (!sbx_control_has_line(x->client) && poll(p, SBX_N_ELEMENTS(p), -1) < 0)
			continue;
		if (p[1].revents)
			on_signals(x);
		if (open && (p[2].revents || p[3].revents))
			open = sbx_exec_terminal_copy(&x->terminal, p[2].revents, p[3].revents);
		sbx_exec_pipes_copy(&x->pipes, p + 4);
		if (p[0].revents || sbx_control_has_line(x->client))
			on_client(x);
	}
	drain(x);
}

static int execute(struct exec *x)
{
	const struct values *v = x->ctl->values;
	int e = open_signals(&x->signals);

	if (e == 0 && v->tty)
		e = sbx_exec_terminal_open(&x->terminal, v->interactive, &x->ctl->err);
	if (e == 0 && !v->tty)
		e = sbx_exec_pipes_open(&x->pipes, v->interactive, &x->ctl->err);
	if (e == 0)
		e = send_request(x);
	if (e != 0)
		return e;
	sbx_exec_pipes_sent(&x->pipes);
	x->terminal.slave = sbx_fd_close(x->terminal.slave);
	sbx_exec_terminal_raw(&x->terminal);
	wait_for_end(x);
	return 0;
}

static int run(struct sbx_ctl *ctl)
{
	SBX_CLEANUP(sbx_control_disconnectp) struct sbx_control_client *client = NULL;
	struct exec x = { .ctl = ctl, .signals = -1, .status = -1 };
	char id[SBX_ID_LEN + 1];
	int r = sbx_ctl_connect(ctl, ctl->argv[0], id, &client);

	if (r != SBX_CTL_DONE)
		return SBX_CTL_FAILED;
	x.client = client;
	sbx_exec_terminal_init(&x.terminal);
	sbx_exec_pipes_init(&x.pipes);
	r = execute(&x);
	sbx_exec_pipes_fini(&x.pipes);
	sbx_exec_terminal_fini(&x.terminal);
	sbx_fd_close(x.signals);
	if (r == 0)
		return x.status;
	sbx_ctl_status(ctl, r, ctl->argv[0]);
	return SBX_CTL_FAILED;
}

const struct sbx_ctl_command sbx_cmd_exec = {
	.name = "exec",
	.args = "ID COMMAND [ARG...]",
	.n_min = 2,
	.n_max = INT_MAX,
	.complete = "sandbox",
	.program = true,
	.options = options,
	.n_options = SBX_N_ELEMENTS(options),
	.n_values = sizeof(struct values),
	.help = "run another command in a sandbox",
	.more = ", under all that holds for its first one. Without -t, standard input, output and "
		"error are pipes where our own are a terminal",
	.example = "sbxctl exec -it 3f2a -- bash",
	.run = run,
};
