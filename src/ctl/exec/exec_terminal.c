/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copies between our terminal and the pseudo-terminal of a command.
 *
 * A command that does not read must not keep us from writing what it says: so input is taken only
 * when the last was handed on.
 */
#include "ctl/exec/exec_terminal.h"

#include <errno.h>
#include <poll.h>
#include <pty.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/cleanup.h"

void sbx_exec_terminal_init(struct sbx_exec_terminal *t)
{
	memset(t, 0, sizeof(*t));
	t->master = t->slave = -1;
}

int sbx_exec_terminal_open(struct sbx_exec_terminal *t, bool reads, struct sbx_err *err)
{
	struct termios modes;
	struct winsize size;
	bool sized = ioctl(STDIN_FILENO, TIOCGWINSZ, &size) == 0;
	int e;

	if (tcgetattr(STDIN_FILENO, &modes) < 0) {
		sbx_err_set(err, "-t: standard input is no terminal");
		return -ENOTTY;
	}
	if (openpty(&t->master, &t->slave, NULL, &modes, sized ? &size : NULL) < 0) {
		sbx_err_set(err, "-t: cannot make a terminal: %s", strerror(errno));
		return -errno;
	}
	t->reads = reads;
	e = sbx_fd_set_nonblocking(t->master);
	if (e < 0)
		sbx_err_set(err, "-t: %s", strerror(-e));
	return e;
}

void sbx_exec_terminal_raw(struct sbx_exec_terminal *t)
{
	struct termios modes;

	if (!t->reads || t->raw || tcgetattr(STDIN_FILENO, &t->saved) < 0)
		return;
	modes = t->saved;
	cfmakeraw(&modes);
	t->raw = tcsetattr(STDIN_FILENO, TCSADRAIN, &modes) == 0;
}

void sbx_exec_terminal_restore(struct sbx_exec_terminal *t)
{
	if (t->raw)
		tcsetattr(STDIN_FILENO, TCSADRAIN, &t->saved);
	t->raw = false;
}

void sbx_exec_terminal_fini(struct sbx_exec_terminal *t)
{
	sbx_exec_terminal_restore(t);
	t->master = sbx_fd_close(t->master);
	t->slave = sbx_fd_close(t->slave);
}

void sbx_exec_terminal_resize(const struct sbx_exec_terminal *t)
{
	struct winsize size;

	if (t->master >= 0 && ioctl(STDIN_FILENO, TIOCGWINSZ, &size) == 0)
		ioctl(t->master, TIOCSWINSZ, &size);
}

short sbx_exec_terminal_master_events(const struct sbx_exec_terminal *t)
{
	return (short)(POLLIN | (t->n_in ? POLLOUT : 0));
}

short sbx_exec_terminal_input_events(const struct sbx_exec_terminal *t)
{
	return t->reads && !t->n_in ? POLLIN : 0;
}

void sbx_exec_write_all(int fd, const char *p, size_t n)
{
	while (n > 0) {
		ssize_t r = write(fd, p, n);

		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return;
		p += r;
		n -= (size_t)r;
	}
}

static void read_input(struct sbx_exec_terminal *t)
{
	ssize_t n = read(STDIN_FILENO, t->in, sizeof(t->in));

	t->at_in = 0;
	t->n_in = n > 0 ? (size_t)n : 0;
	if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN))
		t->reads = false;
}

static void hand_on(struct sbx_exec_terminal *t)
{
	ssize_t n = write(t->master, t->in + t->at_in, t->n_in);

	if (n > 0) {
		t->at_in += (size_t)n;
		t->n_in -= (size_t)n;
	} else if (n < 0 && errno != EAGAIN && errno != EINTR) {
		t->n_in = 0;
	}
}

bool sbx_exec_terminal_copy(struct sbx_exec_terminal *t, short master, short input)
{
	char out[4096];
	ssize_t n;

	if (input && t->reads && !t->n_in)
		read_input(t);
	if (t->n_in)
		hand_on(t);
	if (!(master & (POLLIN | POLLHUP | POLLERR)))
		return true;
	n = read(t->master, out, sizeof(out));
	if (n > 0)
		sbx_exec_write_all(STDOUT_FILENO, out, (size_t)n);
	return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}
