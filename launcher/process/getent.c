/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * getent(1) asks the name service switch. The modules of the switch are shared objects, which a
 * static program cannot load; and so their code (LDAP, a bus) runs in a process without our
 * environment and descriptors, except a pipe. getent is asked only for users that /etc/passwd
 * lacks.
 *
 * Limits: SBX_GETENT_TEXT_MAX bytes, a deadline for the whole answer. getent is killed past
 * either, and when the launcher dies.
 */
#include "launcher/process/getent.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "launcher/process/signals.h"
#include "sys/process/proc.h"

/* and an errno: our child could not become getent, whose own statuses are below 4 */
#define NOT_RUN	  64
#define ERRNO_MAX 133
#define NOT_FOUND 2   /* getent(1): one or more of the keys are not known */

struct getent {
	const char *program;
	const char *const *keys;
	size_t n_keys;
	int pipe;
	pid_t parent;
};

/* The child: becomes getent. */
static _Noreturn void exec_getent(const struct getent *g)
{
	static char name[] = "getent", database[] = "passwd";
	static char *no_env[] = { NULL };
	char *argv[3 + SBX_GETENT_KEYS_MAX] = { name, database };
	int number = 1, r;

	sbx_signals_reset();
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (size_t i = 0; i < g->n_keys; i++)
		if (!(argv[2 + i] = strdup(g->keys[i])))
			_exit(NOT_RUN + ENOMEM);
	if (getppid() != g->parent)
		_exit(NOT_RUN + ESRCH);
	r = sbx_proc_arrange_fds(&g->pipe, &number, 1);
	if (r == 0 && open("/dev/null", O_RDWR) == 0 && dup2(0, 2) == 2)
		execve(g->program, argv, no_env);
	_exit(NOT_RUN + (r < 0 ? -r : errno));
}

/* 0 or -errno. */
static int judge_status(int status)
{
	if (!WIFEXITED(status))
		return -EIO;
	if (WEXITSTATUS(status) > NOT_RUN && WEXITSTATUS(status) <= NOT_RUN + ERRNO_MAX)
		return NOT_RUN - WEXITSTATUS(status);
	return WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == NOT_FOUND ? 0 : -EIO;
}

int sbx_getent_passwd(const char *program, const char *const keys[], size_t n_keys, int timeout_ms,
		      char ret_text[SBX_GETENT_TEXT_MAX])
{
	SBX_AUTO_CLOSE int ours = -1, theirs = -1;
	uint64_t deadline_us = sbx_clock_monotonic_us() + (uint64_t)timeout_ms * 1000;
	struct getent g = {
		.program = program, .keys = keys, .n_keys = n_keys, .parent = getpid()
	};
	int status = 0, r;
	size_t n = 0;
	pid_t pid;

	assert(n_keys <= SBX_GETENT_KEYS_MAX);
	pid = sbx_fd_pipe(&ours, &theirs);
	if (pid < 0)
		return pid;
	g.pipe = theirs;
	pid = sbx_proc_clone(0, NULL, NULL);
	if (pid == 0)
		exec_getent(&g);
	if (pid < 0)
		return pid;
	theirs = sbx_fd_close(theirs);
	r = sbx_proc_output(pid, ours, deadline_us, ret_text, SBX_GETENT_TEXT_MAX, &n, &status);
	if (r == -EFBIG || (r == 0 && memchr(ret_text, '\0', n)))
		return -EMSGSIZE;
	if (r < 0)
		return r;
	ret_text[n] = '\0';
	return judge_status(status);
}

static bool is_files_only(char *services)
{
	char *save = NULL, *s = strtok_r(services, " \t\n", &save);
	bool files = s;

	for (; s; s = strtok_r(NULL, " \t\n", &save))
		files = files && strcmp(s, "files") == 0;
	return files;
}

bool sbx_nsswitch_files_only(const char *path)
{
	SBX_AUTO_FCLOSE FILE *file = fopen(path, "re");
	SBX_AUTO_FREE char *line = NULL;
	bool files = false;
	size_t size = 0, n_lines = 0;

	while (file && getline(&line, &size, file) > 0) {
		char *p = line + strspn(line, " \t");

		p[strcspn(p, "#")] = '\0';
		if (strncmp(p, "passwd", 6) != 0)
			continue;
		p += 6 + strspn(p + 6, " \t");
		if (*p != ':')
			continue;
		files = is_files_only(p + 1);
		n_lines++;
	}
	return files && n_lines == 1;
}
