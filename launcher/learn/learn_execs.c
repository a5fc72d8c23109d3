/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Answers the listener of seccomp_execs.h from the launcher's loop: each exec goes on at once,
 * after its path was noted, and whether it leads to a program in the sandbox.
 *
 * The path is the sandbox's, and may change between our look and the kernel's: it is evidence for
 * people, and decides nothing. It is followed below the root of the asking process alone
 * (RESOLVE_IN_ROOT), as O_PATH, which opens no device and waits for nothing.
 *
 * A launcher with privileges cannot look into processes of other users after it has dropped them:
 * there is no listener then (probes.c).
 */
#include "launcher/learn/learn_execs.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "sys/process/proc.h"
#include "sys/seccomp/seccomp_execs.h"

#define AT_ONCE 64 /* answers before the rest of the loop has its turn */

/* @path as seen from the sandbox's root: a relative one is behind the process's directory. 0 or
 * -errno. */
static int absolute(const struct sbx_exec_seen *seen, char *buf, size_t n_buf)
{
	char link[64], dir[PATH_MAX];
	ssize_t n;

	if (seen->path[0] == '/')
		return sbx_text_copy(buf, n_buf, seen->path);
	sbx_text_fit(link, sizeof(link), "/proc/%d/cwd", (int)seen->pid);
	n = readlink(link, dir, sizeof(dir) - 1);
	if (n < 0)
		return -errno;
	dir[n] = '\0';
	return sbx_text_format(buf, n_buf, "%s/%s", dir, seen->path);
}

/* Is the file one that the allow list lets execute? */
static bool is_listed(const struct sbx_plan *p, const struct stat *st)
{
	for (size_t i = 0; i < p->commands.n_programs; i++)
		if (p->commands.programs[i].dev == st->st_dev &&
		    p->commands.programs[i].ino == st->st_ino)
			return true;
	return p->commands.n_programs == 0;
}

static enum sbx_learn_result look(const struct sbx_plan *p, pid_t pid, const char *path)
{
	const struct open_how how = { .flags = O_PATH | O_CLOEXEC,
				      .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
	SBX_AUTO_CLOSE int root = -1, fd = -1;
	struct statvfs vfs;
	char link[64];
	struct stat st;

	sbx_text_fit(link, sizeof(link), "/proc/%d/root", (int)pid);
	root = open(link, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return SBX_LEARN_EXECUTED; /* not known to fail */
	fd = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
	if (fd < 0)
		return errno == ENOENT || errno == ENOTDIR ? SBX_LEARN_MISSING :
							     SBX_LEARN_NOT_EXECUTABLE;
	/* A mask is a file on a mount where nothing executes. */
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || !(st.st_mode & 0111) ||
	    fstatvfs(fd, &vfs) < 0 || vfs.f_flag & ST_NOEXEC)
		return SBX_LEARN_NOT_EXECUTABLE;
	return is_listed(p, &st) ? SBX_LEARN_EXECUTED : SBX_LEARN_NOT_LISTED;
}

static void note(struct sbx_learn_execs *x, const struct sbx_exec_seen *seen)
{
	char path[PATH_MAX] = "";

	if (!*x->released)
		return;
	if (seen->path[0] && absolute(seen, path, sizeof(path)) < 0)
		path[0] = '\0';
	sbx_learn_program_add(&x->programs, path,
			      path[0] ? look(x->plan, seen->pid, path) : SBX_LEARN_EXECUTED,
			      sbx_clock_realtime_ms());
}

static void stop(struct sbx_learn_execs *x)
{
	x->watch = sbx_watch_remove(x->watch);
	x->listener = sbx_fd_close(x->listener);
}

/* POLLHUP: no process with the filter is left. */
static void on_ready(void *userdata, short revents)
{
	static struct sbx_exec_seen seen; /* large; the launcher has one thread */
	struct sbx_learn_execs *x = userdata;
	int e = 0;

	for (int i = 0; i < AT_ONCE && (e == 0 || e == -ENOENT); i++) {
		e = sbx_seccomp_exec_next(x->listener, &seen);
		if (e != 0)
			continue;
		note(x, &seen);
		e = sbx_seccomp_exec_continue(x->listener, &seen);
	}
	if (e == -EAGAIN && revents & (POLLHUP | POLLERR | POLLNVAL))
		stop(x);
}

int sbx_learn_execs_take(struct sbx_learn_execs *x, int listener_take, struct sbx_watches *watches,
			 const struct sbx_plan *plan, const bool *released)
{
	x->listener = listener_take;
	x->plan = plan;
	x->released = released;
	x->watch = sbx_watch_add(watches, x->listener, POLLIN, on_ready, x);
	if (x->watch)
		return 0;
	x->listener = sbx_fd_close(x->listener);
	return -ENOSPC;
}

void sbx_learn_execs_fini(struct sbx_learn_execs *x)
{
	stop(x);
	sbx_learn_programs_fini(&x->programs);
}
