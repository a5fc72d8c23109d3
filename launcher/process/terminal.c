/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The caller's terminals: the command may change them like any program, and the launcher restores
 * them when the run ends.
 *
 * - The exclusive flag (TIOCEXCL: no process can open the terminal again) and output that tcflow(3)
 *   stopped: any process with the terminal can set them, also in the background. They are always
 *   cleared, because other programs do not set them. The kernel does not tell whether output is
 *   stopped, so it is always restarted.
 * - The foreground group is restored if it is a group without a process: then the command made it
 *   and has ended. A living group is another job's or the shell's, which took the terminal after a
 *   stop.
 * - Modes (termios) and flags of the open file (O_NONBLOCK) belong to the foreground job. They are
 *   saved if the launcher starts in the foreground, and restored if it ends there. A terminal that
 *   is not the controlling terminal has no foreground that the launcher can know: it was given to
 *   the command, and is restored.
 *
 * The size of the window is left alone, because terminal emulators change it while programs run. If
 * the command passed the terminal to a process outside, that one may change it later.
 *
 * The kernel sends SIGTTOU to a group that changes a terminal from the background. It is blocked
 * meanwhile, so that the change is carried out.
 */
#include "launcher/process/terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/cleanup.h"

static void save(struct sbx_terminals *all, int fd)
{
	struct sbx_terminal *t = &all->v[all->n];
	int exclusive = 0;

	if (tcgetattr(fd, &t->modes) < 0)
		return;
	t->fd = fd;
	t->exclusive = ioctl(fd, TIOCGEXCL, &exclusive) == 0 && exclusive;
	t->flags = fcntl(fd, F_GETFL);
	t->foreground = tcgetpgrp(fd);
	t->has_modes = t->foreground < 0 || t->foreground == getpgrp();
	all->n++;
}

static const struct sbx_terminal *controlling(const struct sbx_terminals *all)
{
	for (size_t i = 0; i < all->n; i++)
		if (all->v[i].foreground >= 0)
			return &all->v[i];
	return NULL;
}

void sbx_terminals_save(struct sbx_terminals *all)
{
	*all = SBX_TERMINALS_NONE;
	for (int fd = 0; fd < 3; fd++)
		save(all, fd);
	if (controlling(all))
		return;
	all->opened_fd = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (all->opened_fd >= 0)
		save(all, all->opened_fd);
}

static void restore_exclusive(const struct sbx_terminal *t)
{
	int now = 0;

	if (ioctl(t->fd, TIOCGEXCL, &now) == 0 && !now != !t->exclusive)
		ioctl(t->fd, t->exclusive ? TIOCEXCL : TIOCNXCL);
}

/* Is this process in the foreground, or is there no foreground? */
static bool restore_foreground(const struct sbx_terminal *t)
{
	pid_t now = tcgetpgrp(t->fd);

	if (t->foreground < 0)
		return true;
	if (now > 1 && now != t->foreground && kill(-now, 0) < 0 && errno == ESRCH) {
		tcsetpgrp(t->fd, t->foreground);
		now = tcgetpgrp(t->fd);
	}
	return now == getpgrp();
}

static bool are_modes_equal(const struct termios *a, const struct termios *b)
{
	return a->c_iflag == b->c_iflag && a->c_oflag == b->c_oflag && a->c_cflag == b->c_cflag &&
	       a->c_lflag == b->c_lflag && a->c_line == b->c_line &&
	       memcmp(a->c_cc, b->c_cc, sizeof(a->c_cc)) == 0 && cfgetispeed(a) == cfgetispeed(b) &&
	       cfgetospeed(a) == cfgetospeed(b);
}

static void restore_modes(const struct sbx_terminal *t)
{
	struct termios now;

	if (tcgetattr(t->fd, &now) == 0 && !are_modes_equal(&now, &t->modes))
		tcsetattr(t->fd, TCSANOW, &t->modes);
	if (t->flags >= 0 && fcntl(t->fd, F_GETFL) != t->flags)
		fcntl(t->fd, F_SETFL, t->flags);
}

void sbx_terminals_restore(const struct sbx_terminals *all)
{
	sigset_t ttou, before;

	if (all->n == 0)
		return;
	sigemptyset(&ttou);
	sigaddset(&ttou, SIGTTOU);
	sigprocmask(SIG_BLOCK, &ttou, &before);
	for (size_t i = 0; i < all->n; i++) {
		const struct sbx_terminal *t = &all->v[i];

		restore_exclusive(t);
		tcflow(t->fd, TCOON);
		if (restore_foreground(t) && t->has_modes)
			restore_modes(t);
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
}

int sbx_terminals_watched(const struct sbx_terminals *all)
{
	const struct sbx_terminal *t = controlling(all);

	if (!t && all->n > 0)
		t = &all->v[0];
	return t && !t->exclusive ? t->fd : -1;
}

void sbx_terminals_fini(struct sbx_terminals *all)
{
	all->opened_fd = sbx_fd_close(all->opened_fd);
	all->n = 0;
}
