/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The command is not given the terminal that we run in. A process that it leaves behind lives until
 * the sandbox ends: with the terminal it could read the keys of the shell, write among the shell's
 * output, and change the terminal's modes. So a descriptor that is a terminal is replaced by a
 * pipe, and what goes over it is copied here. Other descriptors are passed as they are.
 *
 * Standard output and error have one pipe if they are the same terminal: this keeps their order.
 * Input is read only when the last was taken.
 */
#include "ctl/exec/exec_pipes.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "ctl/exec/exec_terminal.h"

enum { POLL_INPUT, POLL_IN, POLL_OUT, POLL_ERR };
_Static_assert(POLL_ERR + 1 == SBX_EXEC_PIPES_POLLS, "a place for each");

void sbx_exec_pipes_init(struct sbx_exec_pipes *p)
{
	memset(p, 0, sizeof(*p));
	for (int i = 0; i < 3; i++)
		p->ours[i] = p->theirs[i] = -1;
}

void sbx_exec_pipes_fini(struct sbx_exec_pipes *p)
{
	for (int i = 0; i < 3; i++) {
		p->ours[i] = sbx_fd_close(p->ours[i]);
		p->theirs[i] = sbx_fd_close(p->theirs[i]);
	}
}

/* Are both the same terminal? */
static bool is_same(int a, int b)
{
	struct stat x, y;

	return isatty(a) && isatty(b) && fstat(a, &x) == 0 && fstat(b, &y) == 0 &&
	       x.st_rdev == y.st_rdev;
}

static int open_one(struct sbx_exec_pipes *p, int fd)
{
	int *read_end = fd == STDIN_FILENO ? &p->theirs[fd] : &p->ours[fd];
	int *write_end = fd == STDIN_FILENO ? &p->ours[fd] : &p->theirs[fd];
	int e;

	if (!isatty(fd))
		return 0;
	e = sbx_fd_pipe(read_end, write_end);
	return e < 0 ? e : sbx_fd_set_nonblocking(p->ours[fd]);
}

int sbx_exec_pipes_open(struct sbx_exec_pipes *p, bool interactive, struct sbx_err *err)
{
	int e = interactive ? open_one(p, STDIN_FILENO) : 0;

	if (e == 0)
		e = open_one(p, STDOUT_FILENO);
	if (e == 0 && !is_same(STDOUT_FILENO, STDERR_FILENO))
		e = open_one(p, STDERR_FILENO);
	if (e < 0)
		sbx_err_set(err, "cannot make a pipe: %s", strerror(-e));
	p->reads = p->ours[STDIN_FILENO] >= 0;
	return e;
}

int sbx_exec_pipes_theirs(const struct sbx_exec_pipes *p, int fd)
{
	if (fd == STDERR_FILENO && is_same(STDOUT_FILENO, STDERR_FILENO))
		fd = STDOUT_FILENO;
	return p->theirs[fd] >= 0 ? p->theirs[fd] : fd;
}

void sbx_exec_pipes_sent(struct sbx_exec_pipes *p)
{
	for (int i = 0; i < 3; i++)
		p->theirs[i] = sbx_fd_close(p->theirs[i]);
}

/* --- input --- */

static void end_input(struct sbx_exec_pipes *p)
{
	p->reads = false;
	p->n_in = 0;
	p->ours[STDIN_FILENO] = sbx_fd_close(p->ours[STDIN_FILENO]);
}

static void read_input(struct sbx_exec_pipes *p)
{
	ssize_t n = read(STDIN_FILENO, p->in, sizeof(p->in));

	if (n > 0) {
		p->at_in = 0;
		p->n_in = (size_t)n;
	} else if (n == 0 || (errno != EINTR && errno != EAGAIN)) {
		end_input(p);
	}
}

/* After a poll that said that there is room, or that the command closed its end. */
static void hand_on(struct sbx_exec_pipes *p, short events)
{
	ssize_t n;

	if (events & POLLERR) { /* the write would send SIGPIPE */
		end_input(p);
		return;
	}
	n = p->n_in ? write(p->ours[STDIN_FILENO], p->in + p->at_in, p->n_in) : 0;
	if (n > 0) {
		p->at_in += (size_t)n;
		p->n_in -= (size_t)n;
	}
}

/* --- output --- */

/* Copies at most @n_max bytes to our descriptor @fd, in one piece. Returns their number; 0: none
 * are there. */
static size_t copy_output(struct sbx_exec_pipes *p, int fd, size_t n_max)
{
	char out[4096];
	ssize_t n = read(p->ours[fd], out, n_max < sizeof(out) ? n_max : sizeof(out));

	if (n > 0)
		sbx_exec_write_all(fd, out, (size_t)n);
	else if (n == 0 || (errno != EINTR && errno != EAGAIN))
		p->ours[fd] = sbx_fd_close(p->ours[fd]);
	return n > 0 ? (size_t)n : 0;
}

/* --- both --- */

void sbx_exec_pipes_fill(const struct sbx_exec_pipes *p, struct pollfd v[SBX_EXEC_PIPES_POLLS])
{
	v[POLL_INPUT] = (struct pollfd){ .fd = p->reads && !p->n_in ? STDIN_FILENO : -1,
					 .events = POLLIN };
	v[POLL_IN] = (struct pollfd){ .fd = p->ours[STDIN_FILENO],
				      .events = p->n_in ? POLLOUT : 0 };
	v[POLL_OUT] = (struct pollfd){ .fd = p->ours[STDOUT_FILENO], .events = POLLIN };
	v[POLL_ERR] = (struct pollfd){ .fd = p->ours[STDERR_FILENO], .events = POLLIN };
}

void sbx_exec_pipes_copy(struct sbx_exec_pipes *p, const struct pollfd v[SBX_EXEC_PIPES_POLLS])
{
	if (v[POLL_OUT].revents)
		copy_output(p, STDOUT_FILENO, sizeof(p->in));
	if (v[POLL_ERR].revents)
		copy_output(p, STDERR_FILENO, sizeof(p->in));
	if (v[POLL_IN].revents)
		hand_on(p, v[POLL_IN].revents);
	if (v[POLL_INPUT].revents && p->reads)
		read_input(p);
}

void sbx_exec_pipes_drain(struct sbx_exec_pipes *p)
{
	for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++) {
		int left = 0;
		size_t n;

		if (p->ours[fd] < 0 || ioctl(p->ours[fd], FIONREAD, &left) < 0)
			continue;
		for (; left > 0 && (n = copy_output(p, fd, (size_t)left)) > 0; left -= (int)n)
			;
	}
}
