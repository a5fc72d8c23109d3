/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A live table. Each drawing is made in memory and written at once, so that a slow terminal shows
 * no half of it. The signals that end it are blocked but while it waits: no drawing is cut.
 */
#include "ctl/live/watch.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"

#define PERIOD_S     1
#define HEIGHT_USUAL 24

static volatile sig_atomic_t ended;

static void on_end(int sig)
{
	(void)sig;
	ended = 1;
}

static void on_size(int sig)
{
	(void)sig; /* poll(2) returns */
}

struct terminal {
	struct termios kept;
	bool has_keys; /* keys come one by one, without an echo */
	sigset_t waiting;
};

static void begin(struct terminal *t)
{
	static const int ends[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction a = { .sa_handler = on_end };
	sigset_t blocked;

	sigemptyset(&blocked);
	for (size_t i = 0; i < SBX_N_ELEMENTS(ends); i++) {
		sigaddset(&blocked, ends[i]);
		sigaction(ends[i], &a, NULL);
	}
	sigaddset(&blocked, SIGWINCH);
	a.sa_handler = on_size;
	sigaction(SIGWINCH, &a, NULL);
	sigprocmask(SIG_BLOCK, &blocked, &t->waiting);
	for (size_t i = 0; i < SBX_N_ELEMENTS(ends); i++)
		sigdelset(&t->waiting, ends[i]);
	sigdelset(&t->waiting, SIGWINCH);
	if (tcgetattr(STDIN_FILENO, &t->kept) == 0) {
		struct termios raw = t->kept;

		raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
		t->has_keys = tcsetattr(STDIN_FILENO, TCSANOW, &raw) == 0;
	}
	fputs("\033[?1049h\033[?25l", stdout);
}

static void end(const struct terminal *t)
{
	fputs("\033[?25h\033[?1049l", stdout);
	fflush(stdout);
	if (t->has_keys)
		tcsetattr(STDIN_FILENO, TCSANOW, &t->kept);
}

/* q was typed, or nothing more can be. */
static bool is_quit(void)
{
	char keys[64];
	ssize_t n = read(STDIN_FILENO, keys, sizeof(keys));

	return n < 0 ? errno != EINTR : n == 0 || memchr(keys, 'q', (size_t)n);
}

/* Until the next drawing. False: the end. */
static bool wait_for_next(const struct terminal *t)
{
	struct timespec period = { .tv_sec = PERIOD_S };
	struct pollfd p = { .fd = t->has_keys ? STDIN_FILENO : -1, .events = POLLIN };
	int n = ppoll(&p, 1, &period, &t->waiting);

	return !ended && !(n > 0 && is_quit()) && (n >= 0 || errno == EINTR);
}

static size_t height(void)
{
	struct winsize size;

	return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 1 ? size.ws_row :
										 HEIGHT_USUAL;
}

/* Prints the lines of @text that fit, each over what was there. */
static void put(const char *text)
{
	size_t rows = height(), n = 0, left = 0;

	for (const char *p = text; (p = strchr(p, '\n')); p++)
		left++;
	fputs("\033[H", stdout);
	for (const char *p = text; *p && (n + 1 < rows || left == 1); n++, left--) {
		size_t len = strcspn(p, "\n");

		fprintf(stdout, "%s%.*s\033[K", n ? "\n" : "", (int)len, p);
		p += len + (p[len] == '\n');
	}
	if (left)
		fprintf(stdout, "\n... %zu more lines\033[K", left);
	fputs("\033[J", stdout);
	fflush(stdout);
}

static int draw_once(struct sbx_ctl *ctl, int (*draw)(struct sbx_ctl *ctl))
{
	SBX_AUTO_FREE char *text = NULL;
	size_t n;
	FILE *f = open_memstream(&text, &n);
	int r;

	if (!f)
		return SBX_CTL_FAILED;
	sbx_out_init(&ctl->out, false, ctl->common.wide);
	ctl->out.f = f;
	r = draw(ctl);
	ctl->out.f = stdout;
	if (fclose(f) == 0 && text && r == SBX_CTL_DONE)
		put(text);
	return r;
}

int sbx_ctl_watch(struct sbx_ctl *ctl, int (*draw)(struct sbx_ctl *ctl))
{
	struct terminal t = { 0 };
	int r;

	begin(&t);
	do
		r = draw_once(ctl, draw);
	while (r == SBX_CTL_DONE && !ferror(stdout) && wait_for_next(&t));
	end(&t);
	return r;
}
