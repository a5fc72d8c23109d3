/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The runtime directory of a sandbox, and the guard that undoes what a killed launcher cannot.
 *
 * The directory RUNTIME/ID exists as long as its sandbox. It is made under another name, locked
 * (flock) and renamed, so that whoever sees an ID that is not locked knows its launcher is dead.
 *
 * The guard is a fork of the launcher that holds the read end of a pipe, the terminal if there is one (with a pidfd of
 * the stage), and no other descriptor. It has no capabilities but CAP_NET_ADMIN, and that only with attach cgroup. End of
 * file means that the launcher was killed (one that is done ends the guard first). The kernel has then ended the stage and
 * the broker already (PDEATHSIG); the guard lets others use the terminal again, removes the directory (if its lock is free:
 * it may be another sandbox's) and gives the sandbox's row its final state. It is in a session of its own, so a SIGKILL to
 * the launcher's process group misses it; if both are killed, the next start sweeps. It is there before the directory is,
 * and goes after the row has its state and the directory is gone.
 *
 * The guard's memory is a copy of a launcher's that may be root's: neither is dumpable, so that having the same uid is not
 * enough to read it.
 *
 * In a scope (attach cgroup) a guard whose sandbox left rules that cannot go yet stays for a while, also when the
 * launcher was not killed: with the last process systemd removes the scope, and with it what says that they can.
 */
#include "launcher/cleanup/runtime.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "launcher/helpers/new_protected.h"
#include "launcher/host/facts.h"
#include "launcher/process/runtime_dir.h"
#include "launcher/protect/placeholders.h"
#include "launcher/record/record.h"
#include "launcher/run/attach.h"
#include "launcher/run/cgroup.h"
#include "sys/fs/file_lock.h"
#include "sys/process/proc.h"

/* A directory of ours holds at most this many entries; a sweep never recurses. */
#define SWEEP_MAX 1024
#define LOST_TRIES 20
#define TERMINAL_WAIT_MS 1000
/* A connection whose peer is gone takes the kernel some minutes to give up. */
#define SCOPE_GC_MS (15 * 60 * 1000)

/* Remove NAME, one level deep. The names inside are ours; a directory in there would be a bug. */
static void remove_dir(int parent_fd, const char *name)
{
	struct dirent *e;
	DIR *dir;
	int fd;

	if (unlinkat(parent_fd, name, AT_REMOVEDIR) == 0)
		return; /* most are empty */
	fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	dir = fd >= 0 ? fdopendir(fd) : NULL;
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

/* Remove NAME and give its sandbox a final state, unless its launcher holds the lock. 1: it is gone; 0: it stays; -errno:
 * it stays, because there is no way now to give it that state. */
static int remove_dead(const struct sbx_facts *f, int parent_fd, const char *name, int busy_ms, struct sbx_err *err)
{
	int e = 0;
	SBX_AUTO_CLOSE int fd =
		openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	/* A launcher that ended before we had the lock left nothing, and the name may be the next one's. */
	if (fd < 0 || sbx_file_lock(parent_fd, name, fd) < 0)
		return 0;
	if (name[0] != '.')
		e = sbx_record_lost(f, name, busy_ms, err);
	if (!sbx_new_sweep(fd, f->privileged) || !sbx_placeholders_sweep(fd) || e < 0)
		return e;
	remove_dir(parent_fd, name);
	return 1;
}

/* A name of claim() that was never renamed: its maker was killed in between, a minute ago or more. */
static bool is_abandoned(int parent_fd, const char *name)
{
	struct stat st;

	return strncmp(name, ".new-", 5) == 0 &&
	       fstatat(parent_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       st.st_ctime + 60 < (time_t)(sbx_clock_realtime_ms() / 1000);
}

/* Directories whose lock is free belong to launchers that are dead along with their guards. What a sandbox did
 * not make is not touched. @gc: NULL but for --gc, which looks at all of them. 0, or -errno: the rest is for later. */
static int sweep(const struct sbx_facts *f, int parent_fd, struct sbx_gc *gc, struct sbx_err *err)
{
	int scan_fd = openat(parent_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = scan_fd >= 0 ? fdopendir(scan_fd) : NULL;
	struct dirent *e;
	int r = 0;

	if (!dir) {
		sbx_fd_close(scan_fd);
		return 0;
	}
	for (int n = 0; r >= 0 && (n < SWEEP_MAX || gc) && (e = readdir(dir)); n++) {
		if (!sbx_id_is_valid(e->d_name) && !is_abandoned(parent_fd, e->d_name))
			continue;
		r = remove_dead(f, parent_fd, e->d_name, gc ? SBX_STORE_BUSY_MS : SBX_RECORD_BUSY_MS, err);
		if (r > 0 && gc)
			sbx_gc_say(gc, "%s/%s: its launcher is dead", f->runtime_dir, e->d_name);
	}
	closedir(dir);
	return r < 0 ? r : 0;
}

int sbx_runtime_gc(struct sbx_gc *gc, struct sbx_err *err)
{
	const char *path = gc->facts->runtime_dir;
	SBX_AUTO_CLOSE int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int e;

	if (fd < 0 && errno == ENOENT)
		return 0; /* and nothing is made for it */
	if (fd < 0) {
		sbx_err_set(err, "cannot open %s: %s", path, strerror(errno));
		return -errno;
	}
	e = sbx_runtime_dir_make(path, gc->facts->privileged, err); /* they are there: are they ours? */
	if (e == 0)
		e = sweep(gc->facts, fd, gc, err);
	return e;
}

void sbx_runtime_sweep(const struct sbx_facts *f)
{
	SBX_AUTO_CLOSE int fd = open(f->runtime_dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct sbx_err err = { 0 };

	if (fd >= 0 && sbx_runtime_dir_make(f->runtime_dir, f->privileged, &err) == 0) /* is it ours? */
		sweep(f, fd, NULL, NULL); /* what cannot be done now is for the next start */
}

bool sbx_runtime_exists(const struct sbx_facts *f, const char *id)
{
	char path[512];
	int n = snprintf(path, sizeof(path), "%s/%s", f->runtime_dir, id);

	return n >= (int)sizeof(path) || access(path, F_OK) == 0 || errno != ENOENT;
}

/* --- the guard --- */

enum { GUARD_PIPE, GUARD_TTY, GUARD_STAGE, N_GUARD_FDS };

/* Others can open the terminal again, and its output goes on, when the last one in the sandbox is gone who could change
 * that. */
static void free_terminal(void)
{
	struct pollfd p = { .fd = GUARD_STAGE, .events = POLLIN };

	poll(&p, 1, TERMINAL_WAIT_MS);
	ioctl(GUARD_TTY, TIOCNXCL);
	ioctl(GUARD_TTY, TCXONC, TCOON);
}

/* Work that needs another user's ids is done by a protect helper meanwhile, unless it was killed, too. */
static void remove_in_time(const struct sbx_facts *f, const char *id)
{
	SBX_AUTO_CLOSE int parent_fd = open(f->runtime_dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	const struct timespec pause = { .tv_nsec = 50000000 };

	for (int i = 0; i < LOST_TRIES && parent_fd >= 0; i++) {
		if (remove_dead(f, parent_fd, id, SBX_STORE_BUSY_MS, NULL) != 0 || faccessat(parent_fd, id, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
			return;
		nanosleep(&pause, NULL);
	}
}

/* The launcher was killed. */
static void undo_lost(const struct sbx_facts *f, const char *id)
{
	struct sbx_gc gc = { .facts = f };
	struct sbx_err err = { 0 };
	sigset_t none;

	remove_in_time(f, id);
	sbx_cgroup_gc(&gc, &err);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL); /* who stops the scope is not kept waiting */
	sbx_cgroup_gc_scope(id, SCOPE_GC_MS);
}

/* 0-2 are closed, unless they are the guard's own: somebody may wait for the end of the launcher's output. */
static _Noreturn void guard_main(const struct sbx_run *r, const int *fds, size_t n_fds)
{
	static const int numbers[N_GUARD_FDS] = { GUARD_PIPE, GUARD_TTY, GUARD_STAGE };
	sigset_t all;
	char byte;
	int null_fd;

	setsid();
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	/* uid 0 owns what there is to remove but rules of the host's firewall. */
	if (sbx_proc_arrange_fds(fds, numbers, n_fds) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    sbx_caps_keep(sbx_run_attach_caps(r->plan)) < 0 || read(GUARD_PIPE, &byte, 1) != 0)
		_exit(125);
	if (n_fds == N_GUARD_FDS)
		free_terminal();
	/* 0-2 are open from here on: what is told there must not end up in the database. */
	null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int fd = 0; fd < 3; fd++)
		if (dup2(null_fd, fd) < 0)
			_exit(125);
	undo_lost(r->facts, r->plan->id);
	_exit(0);
}

static int start_guard(struct sbx_run *r)
{
	SBX_AUTO_CLOSE int read_end = -1, write_end = -1, stage_pidfd = -1;
	int e = sbx_fd_pipe(&read_end, &write_end), terminal = sbx_terminals_guarded(&r->terminals);
	pid_t pid;

	if (e < 0)
		return e;
	if (terminal >= 0 && r->stage_pid > 0)
		stage_pidfd = (int)syscall(SYS_pidfd_open, r->stage_pid, 0);
	if (prctl(PR_SET_DUMPABLE, 0) < 0) /* again: a change of ids undoes it where fs.suid_dumpable says so */
		return -errno;
	pid = sbx_proc_clone(0, NULL, &r->err);
	if (pid == 0)
		guard_main(r, (const int[]){ read_end, terminal, stage_pidfd }, stage_pidfd >= 0 ? N_GUARD_FDS : GUARD_PIPE + 1);
	if (pid < 0)
		return pid;
	r->guard_pid = pid;
	r->guard_fd = sbx_fd_steal(&write_end);
	return 0;
}

static int lock_and_rename(struct sbx_run *r, int parent_fd, const char *temporary)
{
	int error;

	r->runtime_fd = openat(parent_fd, temporary, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (r->runtime_fd < 0) /* another start with this id has renamed it */
		return errno == ENOENT ? -ESTALE : -errno;
	error = sbx_file_lock(parent_fd, temporary, r->runtime_fd);
	if (error < 0)
		return error;
	if (renameat2(parent_fd, temporary, parent_fd, r->plan->id, RENAME_NOREPLACE) < 0)
		return errno == ENOENT ? -ESTALE : -errno;
	return 0;
}

/* Make, lock and rename. 0 or -errno: -EEXIST, -EWOULDBLOCK or -ESTALE when another sandbox has the id, or had it
 * just now. */
static int claim(struct sbx_run *r, int parent_fd)
{
	const char *id = r->plan->id;
	char temporary[SBX_ID_LEN + 8], path[sizeof(r->runtime_path)];
	int error;

	if (snprintf(path, sizeof(path), "%s/%s", r->plan->facts->runtime_dir, id) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	sbx_text_fit(temporary, sizeof(temporary), ".new-%s", id);
	if (mkdirat(parent_fd, temporary, 0700) < 0 && errno != EEXIST)
		return -errno;
	error = lock_and_rename(r, parent_fd, temporary);
	if (error < 0) {
		if (error != -EWOULDBLOCK) /* somebody is about to rename it */
			unlinkat(parent_fd, temporary, AT_REMOVEDIR);
		return error;
	}
	memcpy(r->runtime_path, path, sizeof(path));
	return 0;
}

int sbx_runtime_make(struct sbx_run *r)
{
	const char *dir = r->plan->facts->runtime_dir;
	SBX_AUTO_CLOSE int parent_fd = -1;
	int error = sbx_runtime_dir_make(dir, r->plan->facts->privileged, &r->err);

	if (error < 0)
		return error;
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
	error = claim(r, parent_fd);
	if (error == -EEXIST || error == -EWOULDBLOCK || error == -ESTALE)
		sbx_err_set(&r->err, "a sandbox with id %s is up already (leave out --id)", r->plan->id);
	else if (error < 0)
		sbx_err_set(&r->err, "cannot make %s/%s: %s", dir, r->plan->id, strerror(-error));
	return error;
}

void sbx_runtime_remove(struct sbx_run *r)
{
	if (r->runtime_path[0] && !r->swept_later) {
		remove_dir(AT_FDCWD, r->runtime_path);
		r->runtime_path[0] = '\0';
	}
	if (r->guard_pid > 0 && !r->guard_stays) {
		kill(r->guard_pid, SIGKILL); /* our child, not yet reaped */
		sbx_proc_reap(&r->guard_pid);
	}
	sbx_runtime_forget(r); /* the end of file is what a guard that stays waits for */
}

void sbx_runtime_forget(struct sbx_run *r)
{
	r->runtime_fd = sbx_fd_close(r->runtime_fd);
	r->guard_fd = sbx_fd_close(r->guard_fd);
}
