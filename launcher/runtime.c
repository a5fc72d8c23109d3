/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The runtime directory of a sandbox, and the guard that undoes what a killed launcher cannot.
 *
 * The directory RUNTIME/ID exists as long as its sandbox. It is made under another name, locked
 * (flock) and renamed, so that whoever sees an ID that is not locked knows its launcher is dead.
 *
 * The guard is a fork that holds the read end of a pipe and nothing else. End of file
 * means that the launcher was killed (one that is done ends the guard first). The kernel has then
 * ended the stage and the broker already (PDEATHSIG); the guard removes the directory (if its lock is
 * free: it may be another sandbox's) and gives the sandbox's row its final state. It is in a session
 * of its own, so a SIGKILL to the launcher's process group misses it; if both are killed, the next
 * start sweeps. It is there before the directory is, and goes after the row has its state.
 */
#include "launcher/runtime.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "launcher/record.h"
#include "sys/proc.h"

/* A directory of ours holds at most this many entries; a sweep never recurses. */
#define SWEEP_MAX 1024

static int make_parents(const char *path, struct sbx_err *err)
{
	/* A user's own group is often on the user's own directories; root's never needs to be. */
	mode_t others = geteuid() == 0 ? 022 : 002;
	char buf[512], *slash;
	struct stat st;

	if (snprintf(buf, sizeof(buf), "%s", path) >= (int)sizeof(buf))
		return -ENAMETOOLONG;
	for (slash = buf + 1; (slash = strchr(slash, '/')); *slash++ = '/') {
		*slash = '\0';
		if (mkdir(buf, 0755) < 0 && errno != EEXIST)
			break; /* the mkdir below says what is wrong */
		/* Who can rename a directory on the way can lead us elsewhere. */
		if (stat(buf, &st) == 0 && ((st.st_uid != 0 && st.st_uid != geteuid()) ||
					    ((st.st_mode & others) && !(st.st_mode & S_ISVTX)))) {
			sbx_err_set(err, "the runtime directory %s is below %s, which others can change "
				    "(set SBX_RUNTIME_DIR)", path, buf);
			return -EPERM;
		}
	}
	/* Others may pass, not list: a sandbox's user must reach the shared etc below it (etc.h). */
	if (mkdir(path, 0711) < 0 && errno != EEXIST) {
		sbx_err_set(err, "cannot make the runtime directory %s: %s (set SBX_RUNTIME_DIR)", path,
			    strerror(errno));
		return -errno;
	}
	if (lstat(path, &st) < 0 || !S_ISDIR(st.st_mode) || st.st_uid != geteuid() ||
	    (st.st_mode & 022)) {
		sbx_err_set(err, "the runtime directory %s is not a directory of uid %u that only it can "
			    "write (set SBX_RUNTIME_DIR)", path, geteuid());
		return -EPERM;
	}
	return 0;
}

/* Remove NAME, one level deep. The names inside are ours; a directory in there would be a bug. */
static void remove_dir(int parent_fd, const char *name)
{
	int fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *e;

	if (!dir) {
		sbx_fd_close(fd);
		return;
	}
	while ((e = readdir(dir)))
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			unlinkat(fd, e->d_name, 0);
	closedir(dir);
	unlinkat(parent_fd, name, AT_REMOVEDIR);
}

/* Remove NAME and give its sandbox a final state, unless its launcher holds the lock. */
static void remove_dead(const struct sbx_facts *f, int parent_fd, const char *name)
{
	SBX_AUTO_CLOSE int fd =
		openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0)
		return;
	if (name[0] != '.')
		sbx_record_lost(f, name);
	remove_dir(parent_fd, name);
}

/* A name of claim() that was never renamed: its maker was killed in between, a minute ago or more. */
static bool is_abandoned(int parent_fd, const char *name)
{
	struct stat st;

	return strncmp(name, ".new-", 5) == 0 &&
	       fstatat(parent_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       st.st_ctime + 60 < (time_t)(sbx_clock_realtime_ms() / 1000);
}

/* Directories whose lock is free belong to launchers that are dead along with their guards. */
static void sweep(const struct sbx_run *r, int parent_fd)
{
	int scan_fd = openat(parent_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = scan_fd >= 0 ? fdopendir(scan_fd) : NULL;
	struct dirent *e;

	if (!dir) {
		sbx_fd_close(scan_fd);
		return;
	}
	for (int n = 0; n < SWEEP_MAX && (e = readdir(dir)); n++)
		if (strlen(e->d_name) == SBX_ID_LEN || is_abandoned(parent_fd, e->d_name))
			remove_dead(r->plan->facts, parent_fd, e->d_name);
	closedir(dir);
}

static _Noreturn void guard_main(struct sbx_run *r, int pipe_fd)
{
	int fds[] = { 0, 1, 2, pipe_fd }, numbers[] = { 0, 1, 2, 3 };
	int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	sigset_t all;
	ssize_t n;
	char byte;

	setsid();
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	for (int i = 0; i < 3; i++)
		dup2(null_fd, i);
	if (sbx_proc_arrange_fds(fds, numbers, SBX_N_ELEMENTS(fds)) < 0)
		_exit(1);
	prctl(PR_SET_DUMPABLE, 0);
	if (r->plan->facts->privileged)
		sbx_caps_keep(0); /* uid 0 owns what there is to remove */
	do {
		n = read(3, &byte, 1); /* nobody writes */
	} while (n < 0 && errno == EINTR);
	if (n == 0) {
		int parent_fd = open(r->plan->facts->runtime_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		remove_dead(r->plan->facts, parent_fd, r->plan->id);
	}
	_exit(0);
}

static int start_guard(struct sbx_run *r)
{
	SBX_AUTO_CLOSE int read_end = -1, write_end = -1;
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	read_end = fds[0];
	write_end = fds[1];
	r->guard_pid = fork();
	if (r->guard_pid < 0) {
		r->guard_pid = 0;
		return -errno;
	}
	if (r->guard_pid == 0)
		guard_main(r, read_end);
	r->guard_fd = sbx_fd_steal(&write_end);
	return 0;
}

/* Make, lock and rename. 0 or -errno: -EEXIST or -EWOULDBLOCK when another sandbox has the id. */
static int claim(struct sbx_run *r, int parent_fd)
{
	const char *id = r->plan->id;
	char temporary[SBX_ID_LEN + 8];
	int error;

	snprintf(temporary, sizeof(temporary), ".new-%s", id);
	if (mkdirat(parent_fd, temporary, 0700) < 0 && errno != EEXIST)
		return -errno;
	r->runtime_fd = openat(parent_fd, temporary, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (r->runtime_fd < 0 || flock(r->runtime_fd, LOCK_EX | LOCK_NB) < 0)
		return -errno;
	if (renameat2(parent_fd, temporary, parent_fd, id, RENAME_NOREPLACE) < 0) {
		error = -errno;
		unlinkat(parent_fd, temporary, AT_REMOVEDIR);
		return error;
	}
	snprintf(r->runtime_path, sizeof(r->runtime_path), "%s/%s", r->plan->facts->runtime_dir, id);
	return 0;
}

int sbx_runtime_parents(struct sbx_run *r)
{
	return make_parents(r->plan->facts->runtime_dir, &r->err);
}

int sbx_runtime_make(struct sbx_run *r)
{
	const char *dir = r->plan->facts->runtime_dir;
	SBX_AUTO_CLOSE int parent_fd = -1;
	int error;

	error = start_guard(r);
	if (error < 0) {
		sbx_err_set(&r->err, "cannot start the guard: %s", strerror(-error));
		return error;
	}
	parent_fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (parent_fd < 0) {
		sbx_err_set(&r->err, "cannot open %s: %s", dir, strerror(errno));
		return -errno;
	}
	sweep(r, parent_fd);
	error = claim(r, parent_fd);
	if (error == -EEXIST || error == -EWOULDBLOCK)
		sbx_err_set(&r->err, "a sandbox with id %s is up already (leave out --id)", r->plan->id);
	else if (error < 0)
		sbx_err_set(&r->err, "cannot make %s/%s: %s", dir, r->plan->id, strerror(-error));
	return error;
}

void sbx_runtime_remove(struct sbx_run *r)
{
	if (r->runtime_path[0]) {
		SBX_AUTO_CLOSE int parent_fd =
			open(r->plan->facts->runtime_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		remove_dir(parent_fd, r->plan->id);
		r->runtime_path[0] = '\0';
	}
	r->runtime_fd = sbx_fd_close(r->runtime_fd);
}

void sbx_runtime_dismiss_guard(struct sbx_run *r)
{
	if (r->guard_pid > 0)
		kill(r->guard_pid, SIGKILL); /* our child, not yet reaped */
	r->guard_fd = sbx_fd_close(r->guard_fd);
}
