/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Runtime directories of dead launchers are removed, with what they list. */
#include "launcher/cleanup/sweep.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/sandbox_id.h"
#include "launcher/cleanup/gc_report.h"
#include "launcher/helpers/new_protected.h"
#include "launcher/process/runtime_dir.h"
#include "launcher/protect/placeholders.h"
#include "launcher/record/record.h"
#include "sys/fs/file_lock.h"
#include "sys/process/proc.h"

#define SWEEP_MAX 1024 /* names that the sweep of a start looks at */

/* The names inside are ours; a directory among them would be a bug. */
void sbx_sweep_remove_dir(int parent_fd, const char *name)
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

int sbx_sweep_dead(const struct sbx_facts *f, int parent_fd, const char *name, int busy_ms,
		   struct sbx_err *err)
{
	SBX_AUTO_CLOSE int fd =
		openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int e = 0;

	/* Between the open and the lock a launcher may have removed its directory, and another may
	 * have made one of the same name. sbx_file_lock() fails then. */
	if (fd < 0 || sbx_file_lock(parent_fd, name, fd) < 0)
		return 0;
	if (name[0] != '.')
		e = sbx_record_lost(f, name, busy_ms, err);
	if (!sbx_new_sweep(fd, f->privileged) || !sbx_placeholders_sweep(fd) || e < 0)
		return e;
	sbx_sweep_remove_dir(parent_fd, name);
	return 1;
}

/* A temporary name of sbx_runtime_make() that was not renamed within a minute: its maker was
 * killed. */
static bool is_abandoned(int parent_fd, const char *name)
{
	struct stat st;

	return strncmp(name, ".new-", 5) == 0 &&
	       fstatat(parent_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       st.st_ctime + 60 < (time_t)(sbx_clock_realtime_ms() / 1000);
}

/* A directory without a lock belongs to a launcher that is dead, and so is its cleanup process.
 * Names that no sandbox made are not touched. @gc: NULL at a start, which looks at SWEEP_MAX
 * names at most. 0, or -errno: the rest is for later. */
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
		r = sbx_sweep_dead(f, parent_fd, e->d_name,
				   gc ? SBX_STORE_BUSY_MS : SBX_RECORD_BUSY_MS, err);
		if (r > 0 && gc)
			sbx_gc_say(gc, "%s/%s: its launcher is dead", f->runtime_dir, e->d_name);
	}
	closedir(dir);
	return r < 0 ? r : 0;
}

int sbx_sweep_gc(struct sbx_gc *gc, struct sbx_err *err)
{
	const char *path = gc->facts->runtime_dir;
	SBX_AUTO_CLOSE int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int e;

	if (fd < 0 && errno == ENOENT)
		return 0; /* do not make it */
	if (fd < 0) {
		sbx_err_set(err, "cannot open %s: %s", path, strerror(errno));
		return -errno;
	}
	/* the directories exist: this checks their owners */
	e = sbx_runtime_dir_make(path, gc->facts->privileged, err);
	if (e == 0)
		e = sweep(gc->facts, fd, gc, err);
	return e;
}

void sbx_sweep_start(const struct sbx_facts *f)
{
	SBX_AUTO_CLOSE int fd =
		open(f->runtime_dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct sbx_err err = { 0 };

	/* checks its owner */
	if (fd >= 0 && sbx_runtime_dir_make(f->runtime_dir, f->privileged, &err) == 0)
		sweep(f, fd, NULL, NULL); /* the next start does what fails now */
}
