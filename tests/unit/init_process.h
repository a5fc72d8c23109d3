/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_TESTS_INIT_PROCESS_H
#define SBX_TESTS_INIT_PROCESS_H

/*
 * sbx-init as the launcher sees it: the test is the launcher, at the other end of the channel.
 * Every test is in a child of its own; there CHECK() (netns.h) reports and exits.
 */

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "ipc/channel.h"
#include "ipc/messages.h"
#include "sys/process/proc.h"
#include "tests/unit/netns.h"

#define CTL	   3
#define EXE	   4
#define EXEC	   5
#define TIMEOUT_MS 500

struct init_process {
	pid_t pid;     /* what is pid 1 in a sandbox */
	pid_t command; /* what becomes the command; known from its hello on */
	int fd;
	int exec_fd; /* to pid 1 */
	int output; /* stdout and stderr of init and the command */
	struct sbx_msg_verdicts verdicts;
	uint8_t packet[SBX_MSG_MAX];
};

static inline int plain_run(void (*body)(void))
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		alarm(20);
		body();
		fflush(NULL);
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return -1;
	return WEXITSTATUS(status);
}

#define PLAIN_TEST(body)                                                                           \
	static void test_##body(void **state)                                                      \
	{                                                                                          \
		(void)state;                                                                       \
		assert_int_equal(plain_run(body), 0);                                              \
	}

/* --- the launcher's side --- */

static const char *init_path(void)
{
	static char path[4096];
	const char *dir = getenv("SBX_BUILDDIR");

	snprintf(path, sizeof(path), "%s/launcher/sbx-init", dir ? dir : ".");
	return path;
}

static inline void no_preparation(void)
{
}

/* bwrap sets it on whatever it runs; without it an ordinary user may not restrict itself
 * (Landlock). */
static inline void as_bwrap(void)
{
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

static bool init_wait_all;

/* Start init with @command; @prepare runs before the exec, in its process. */
static inline void start(struct init_process *in, void (*prepare)(void),
			 const char *const command[])
{
	const char *argv[16] = { "sbx-init", "3", "4", "5", init_wait_all ? "--wait-all" : "--" };
	int theirs, exec_theirs, out[2];

	for (size_t i = 0; (argv[5 + i] = command[i]); i++)
		CHECK(i < 10);
	CHECK(sbx_channel_pair(&in->fd, &theirs) == 0);
	CHECK(sbx_channel_pair(&in->exec_fd, &exec_theirs) == 0);
	CHECK(pipe2(out, O_CLOEXEC) == 0);
	in->output = out[0];
	in->pid = fork();
	if (in->pid == 0) {
		const int fds[] = { 0, out[1], out[1], theirs, 0, exec_theirs },
			  numbers[] = { 0, 1, 2, CTL, EXE, EXEC };

		CHECK(sbx_proc_arrange_fds(fds, numbers, 6) == 0);
		prepare();
		execv(init_path(), (char **)(uintptr_t)argv);
		CHECK(!"exec of sbx-init (is SBX_BUILDDIR set?)");
	}
	CHECK(in->pid > 0);
	close(theirs);
	close(exec_theirs);
	close(out[1]);
}

static inline struct sbx_span receive(struct init_process *in)
{
	size_t n, n_fds;

	if (sbx_channel_recv(in->fd, in->packet, sizeof(in->packet), &n, NULL, 0, &n_fds, NULL) !=
	    0)
		return sbx_span(NULL, 0);
	return sbx_span(in->packet, n);
}

static inline void send_simple(struct init_process *in, enum sbx_msg_type type)
{
	uint8_t p[64];
	ssize_t n = sbx_msg_encode_simple(type, 0, p, sizeof(p));

	CHECK(n > 0 && sbx_channel_send(in->fd, p, (size_t)n, NULL, 0) == 0);
}

/* From pid 1. */
static inline void expect_hello(struct init_process *in)
{
	uint32_t value;
	pid_t pid;
	size_t n;

	CHECK(sbx_channel_recv(in->fd, in->packet, sizeof(in->packet), &n, NULL, 0, NULL, &pid) ==
	      0);
	CHECK(sbx_msg_decode_simple(sbx_span(in->packet, n), SBX_MSG_INIT_HELLO, &value) == 0);
	CHECK(pid == in->pid);
}

/* Hello, probes, verdicts: these from what becomes the command. */
static inline void run_probes(struct init_process *in, const struct sbx_msg_probes *m)
{
	static uint8_t p[SBX_MSG_MAX];
	ssize_t n = sbx_msg_encode_probes(m, p, sizeof(p));
	size_t got;

	CHECK(n > 0 && sbx_channel_send(in->fd, p, (size_t)n, NULL, 0) == 0);
	expect_hello(in);
	CHECK(sbx_channel_recv(in->fd, in->packet, sizeof(in->packet), &got, NULL, 0, NULL,
			       &in->command) == 0);
	CHECK(sbx_msg_decode_verdicts(sbx_span(in->packet, got), &in->verdicts) == 0);
	CHECK(in->command > 0 && in->command != in->pid);
	CHECK(in->verdicts.n_verdicts == m->n_probes);
	for (uint32_t i = 0; i < m->n_probes; i++)
		CHECK(in->verdicts.v[i].detail[0] != '\0');
}

static inline int exit_status(struct init_process *in)
{
	int status;

	CHECK(waitpid(in->pid, &status, 0) == in->pid);
	close(in->fd);
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static inline void read_output(struct init_process *in, char *buf, size_t n_buf)
{
	size_t n = 0;
	ssize_t got;

	while (n < n_buf - 1 && (got = read(in->output, buf + n, n_buf - 1 - n)) > 0)
		n += (size_t)got;
	buf[n] = '\0';
	close(in->output);
}

static const struct sbx_msg_probes none = { .timeout_ms = TIMEOUT_MS };
static const char *const command_true[] = { "true", NULL };

/* Start @command and let it run after an empty self-test. */
static inline void release(struct init_process *in, void (*prepare)(void),
			   const char *const command[])
{
	start(in, prepare, command);
	run_probes(in, &none);
	send_simple(in, SBX_MSG_RELEASE);
}

static inline void make_script(const char *path, const char *text, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);

	CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	CHECK(fchmod(fd, mode) == 0);
	close(fd);
}

#endif
