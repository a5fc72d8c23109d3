/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Files: the process's fds, the paths that it can reach, the programs that it can execute. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "launcher/init/init_probes.h"

/* --- fds --- */

/* The caller chooses stdio, but a directory there would be a way out: openat(0, "..") leads out of
 * every view of files. */
static bool stdio_is_directory(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISDIR(st.st_mode);
}

/* May the fd of the entry @name of @dir_fd be open? If not, that is the verdict. */
static bool fd_is_fine(struct sbx_probe_run *r, int dir_fd, const char *name)
{
	char target[128] = "?";
	char *end;
	long fd = strtol(name, &end, 10);
	ssize_t n;

	if (end == name || fd == dir_fd || fd == r->ctl_fd)
		return true;
	if (fd <= STDERR_FILENO && !stdio_is_directory((int)fd))
		return true;
	n = readlinkat(dir_fd, name, target, sizeof(target) - 1);
	if (n > 0)
		target[n] = '\0';
	sbx_probe_fail(r, "fd %ld is %s (%s)", fd, fd <= STDERR_FILENO ? "a directory" : "open",
		       target);
	return false;
}

void sbx_probe_fds(struct sbx_probe_run *r)
{
	SBX_AUTO_CLOSEDIR DIR *dir = opendir("/proc/self/fd");
	struct dirent *e;

	while (dir && (errno = 0, e = readdir(dir)))
		if (!fd_is_fine(r, dirfd(dir), e->d_name))
			return;
	if (!dir || errno)
		sbx_probe_fail(r, "cannot list them: %s", strerror(errno));
	else
		sbx_probe_pass(r, "none but stdio");
}

/* --- path_absent --- */

void sbx_probe_path_absent(struct sbx_probe_run *r)
{
	SBX_AUTO_CLOSE int fd = open(r->probe->name, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	/* ENXIO, for one, means that a socket is there; opening fails, but connecting might not. */
	if (fd >= 0)
		sbx_probe_fail(r, "it can be read");
	else if (errno == ENOENT || errno == ENOTDIR || errno == EACCES || errno == EPERM)
		sbx_probe_pass(r, "%s", strerror(errno));
	else
		sbx_probe_fail(r, "opening it: %s", strerror(errno));
}

/* --- path_readonly --- */

void sbx_probe_path_readonly(struct sbx_probe_run *r)
{
	/* access(2) checks mount and mode at once, and changes nothing */
	if (faccessat(AT_FDCWD, r->probe->name, W_OK, AT_EACCESS) == 0)
		sbx_probe_fail(r, "it can be written to");
	else if (errno == EROFS || errno == EACCES || errno == EPERM)
		sbx_probe_pass(r, "%s", strerror(errno));
	else
		sbx_probe_fail(r, "%s", strerror(errno));
}

/* --- trust --- */

/* Programs inside accept terminated hosts only with the authority, which is the last certificate of
 * the file. */
void sbx_probe_trust(struct sbx_probe_run *r)
{
	SBX_AUTO_CLOSE int fd = open(r->probe->name, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	size_t n = strlen(r->probe->expect);
	char end[SBX_PROBE_EXPECT_MAX];
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		sbx_probe_fail(r, "%s", strerror(errno));
	else if (n == 0 || st.st_size < (off_t)n ||
		 pread(fd, end, n, st.st_size - (off_t)n) != (ssize_t)n ||
		 memcmp(end, r->probe->expect, n) != 0)
		sbx_probe_fail(r, "it does not end with the sandbox's authority");
	else
		sbx_probe_path_readonly(r);
}

/* --- mounts --- */

/* The stage tests this too, with the privileges for it (tree_overmount.c). */
void sbx_probe_mounts(struct sbx_probe_run *r)
{
	if (umount2("/proc", MNT_DETACH) == 0)
		sbx_probe_fail(r, "a mount could be removed from inside");
	else if (errno == EPERM)
		sbx_probe_pass(r, "%s, and all are locked", strerror(errno));
	else
		sbx_probe_fail(r, "removing one: %s", strerror(errno));
}

/* --- exec_refused --- */

static void try_exec(const char *path)
{
	static char name[] = "probe";
	char *const argv[] = { name, NULL }, *const no_env[] = { NULL };

	execve(path, argv, no_env);
}

bool sbx_probe_can_exec(const char *path)
{
	try_exec(path);
	return errno == ENOEXEC;
}

/* Before the list of programs was enforced, init saw that the same exec was not refused (init.c).
 */
void sbx_probe_exec_refused(struct sbx_probe_run *r)
{
	SBX_AUTO_CLOSE int fd = -1;

	try_exec(r->probe->name);
	if (errno != EACCES) {
		sbx_probe_fail(r, "executing it: %s",
			       errno == ENOEXEC ? "nothing holds it back" : strerror(errno));
		return;
	}
	fd = memfd_create("sbx", 0);
	if (fd >= 0)
		sbx_probe_fail(r, "a memfd could be made, which nothing keeps from executing");
	else if (errno != EACCES)
		sbx_probe_fail(r, "memfd_create: %s", strerror(errno));
	else
		sbx_probe_pass(r, "%s", strerror(EACCES));
}
