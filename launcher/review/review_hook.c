/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The review helper: a fork of the launcher, from before the launcher gives up privileges, and from
 * after it forgot the values of secrets.
 *
 * Each packet of its channel is the JSON text of one review task. It writes the text to a file in
 * the sandbox's runtime directory, runs the hook with the file's path as its last argument, and
 * waits for it. The hook runs in `/`: many programs obey files that they find in their directory,
 * and the sandbox may write those. The end of the channel ends the helper when the hook at hand has
 * ended.
 */
#include "launcher/review/review_hook.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "ipc/channel.h"
#include "launcher/process/exec_failed.h"
#include "launcher/process/signals.h"
#include "sys/process/proc.h"

#define FD_CHANNEL  3
#define FD_DIR	    4
#define NOT_STARTED 127 /* as in a shell */

void sbx_review_hook_init(struct sbx_review_hook *h)
{
	*h = (struct sbx_review_hook){ .fd = -1 };
}

/* --- the helper --- */

static _Noreturn void exec_hook(const struct sbx_str_list *hook, char *const *env,
				const char *path, pid_t parent)
{
	char **argv = calloc(hook->n + 2, sizeof(*argv));
	int r = argv ? 0 : -ENOMEM;

	sbx_signals_reset();
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	if (getppid() != parent)
		_exit(NOT_STARTED);
	for (size_t i = 0; argv && i < hook->n; i++)
		argv[i] = hook->v[i];
	if (argv)
		argv[hook->n] = (char *)(uintptr_t)path;
	if (r == 0 && (close_range(3, ~0u, 0) < 0 || chdir("/") < 0))
		r = -errno;
	if (r == 0)
		execvpe(argv[0], argv, env);
	sbx_exec_failed_as(NOT_STARTED, hook->v[0], r < 0 ? -r : errno, "");
}

static int write_file(const char *name, const uint8_t *p, size_t n)
{
	SBX_AUTO_CLOSE int fd =
		openat(FD_DIR, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0)
		return -errno;
	while (n > 0) {
		ssize_t w = write(fd, p, n);

		if (w < 0)
			return -errno;
		p += w;
		n -= (size_t)w;
	}
	return 0;
}

/* Waits for the hook, and ends it after its time. */
static int wait_for(pid_t pid, int pidfd)
{
	struct pollfd p = { .fd = pidfd, .events = POLLIN };
	int status = -1;

	if (poll(&p, 1, SBX_REVIEW_HOOK_MS) <= 0)
		kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return p.revents ? status : -1;
}

static void tell(const char *hook, int r, int status)
{
	if (r < 0)
		dprintf(STDERR_FILENO, "sbx-run: review.hook %s was not run: %s\n", hook,
			strerror(-r));
	else if (status == -1)
		dprintf(STDERR_FILENO,
			"sbx-run: review.hook %s was ended: it took more than %d s\n",
			hook, SBX_REVIEW_HOOK_MS / 1000);
	else if (WIFSIGNALED(status))
		dprintf(STDERR_FILENO, "sbx-run: review.hook %s was killed by signal %d\n", hook,
			WTERMSIG(status));
	else if (WEXITSTATUS(status) != 0)
		dprintf(STDERR_FILENO, "sbx-run: review.hook %s ended with status %d\n", hook,
			WEXITSTATUS(status));
}

static void run_hook(const struct sbx_str_list *hook, char *const *env, const char *dir,
		     unsigned int number, const uint8_t *text, size_t n)
{
	pid_t parent = getpid(), pid;
	char name[32], path[1024];
	int r, status = 0, pidfd = -1;

	sbx_text_fit(name, sizeof(name), "review-%u.json", number);
	r = sbx_text_format(path, sizeof(path), "%s/%s", dir, name);
	if (r == 0)
		r = write_file(name, text, n);
	pid = r < 0 ? r : sbx_proc_clone(0, &pidfd, NULL);
	if (pid == 0)
		exec_hook(hook, env, path, parent);
	if (pid > 0)
		status = wait_for(pid, pidfd);
	sbx_fd_close(pidfd);
	tell(hook->v[0], pid < 0 ? pid : 0, status);
	unlinkat(FD_DIR, name, 0);
}

static _Noreturn void helper_main(const struct sbx_profile *p, const struct sbx_facts *f,
				  const char *dir, int dir_fd, int channel, pid_t parent)
{
	const int fds[] = { STDERR_FILENO, channel, dir_fd };
	const int numbers[] = { STDERR_FILENO, FD_CHANNEL, FD_DIR };
	static uint8_t packet[SBX_REVIEW_HOOK_TEXT];
	unsigned int number = 0;
	sigset_t all;
	size_t n;

	/* the terminal's signals are for the sandbox */
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	prctl(PR_SET_DUMPABLE, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent || sbx_proc_arrange_fds(fds, numbers, SBX_N_ELEMENTS(fds)) < 0 ||
	    open("/dev/null", O_RDWR) != 0 || dup2(0, 1) != 1)
		_exit(125);
	while (sbx_channel_recv(FD_CHANNEL, packet, sizeof(packet), &n, NULL, 0, NULL, NULL) == 0)
		run_hook(&p->review.hook, f->environ, dir, ++number, packet, n);
	_exit(0);
}

/* --- the launcher --- */

int sbx_review_hook_start(struct sbx_review_hook *h, const struct sbx_profile *p,
			  const struct sbx_facts *f, const char *dir, int dir_fd,
			  struct sbx_err *err)
{
	SBX_AUTO_CLOSE int ours = -1, theirs = -1;
	pid_t parent = getpid(), pid;
	int e;

	if (p->review.hook.n == 0)
		return 0;
	e = sbx_channel_pair(&ours, &theirs);
	pid = e < 0 ? e : sbx_proc_clone(0, NULL, err);
	if (pid == 0)
		helper_main(p, f, dir, dir_fd, theirs, parent);
	if (pid < 0) {
		sbx_err_set(err, "cannot start the review helper: %s", strerror(-pid));
		return pid;
	}
	h->pid = pid;
	h->fd = sbx_fd_steal(&ours);
	e = sbx_fd_set_nonblocking(h->fd);
	if (e < 0)
		sbx_err_set(err, "cannot start the review helper: %s", strerror(-e));
	return e;
}

void sbx_review_hook_run(struct sbx_review_hook *h, const char *text, size_t n)
{
	int r;

	if (h->fd < 0)
		return;
	r = n > SBX_REVIEW_HOOK_TEXT ? -EMSGSIZE : sbx_channel_send(h->fd, text, n, NULL, 0);
	if (r != 0)
		fprintf(stderr, "sbx-run: review.hook was not run: %s\n",
			r < 0 ? strerror(-r) : "its helper is gone or busy");
}

void sbx_review_hook_end(struct sbx_review_hook *h)
{
	struct pollfd p = { .events = POLLIN };

	h->fd = sbx_fd_close(h->fd);
	if (h->pid <= 0)
		return;
	p.fd = (int)syscall(SYS_pidfd_open, h->pid, 0);
	if (p.fd < 0 || poll(&p, 1, SBX_REVIEW_HOOK_END_MS) <= 0)
		fprintf(stderr, "sbx-run: review.hook was ended: it still ran %d s after the "
				"sandbox\n",
			SBX_REVIEW_HOOK_END_MS / 1000);
	sbx_fd_close(p.fd);
	sbx_proc_end(&h->pid);
}
