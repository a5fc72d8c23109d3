/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Finds a directory that is on the list of a killed launcher, by its path and its inode. */
#include "launcher/protect/moved_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"

#define NAMES_MAX 1000 /* entries of one directory to search for a moved directory */

static int open_plain(const char *path)
{
	struct open_how how = { .flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
				.resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS };

	return (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));
}

static bool is_dir(int fd, uintmax_t dev, uintmax_t ino)
{
	struct stat st;

	return fstat(fd, &st) == 0 && (uintmax_t)st.st_dev == dev && (uintmax_t)st.st_ino == ino;
}

/* Open the directory @rest below any directory in @parent (n_parent bytes), if it has that inode.
 * fd or -1. */
static int find_beside(const char *parent, size_t n_parent, const char *rest, uintmax_t dev,
		       uintmax_t ino)
{
	struct open_how how = { .flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
				.resolve =
					RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV };
	char path[PATH_MAX];
	SBX_AUTO_CLOSEDIR DIR *dir = NULL;
	const struct dirent *e;
	int at, fd;

	if (sbx_text_copy_n(path, sizeof(path), n_parent ? parent : "/", n_parent ? n_parent : 1) <
	    0)
		return -1;
	at = open_plain(path);
	dir = at >= 0 ? fdopendir(at) : NULL;
	if (!dir) {
		sbx_fd_close(at);
		return -1;
	}
	for (int i = 0; i < NAMES_MAX && (e = readdir(dir)); i++) {
		if (e->d_name[0] == '.' &&
		    (!e->d_name[1] || (e->d_name[1] == '.' && !e->d_name[2])))
			continue;
		if ((e->d_type != DT_DIR && e->d_type != DT_UNKNOWN) ||
		    sbx_text_format(path, sizeof(path), "%s%s", e->d_name, rest) < 0)
			continue;
		fd = (int)syscall(SYS_openat2, at, path, &how, sizeof(how));
		if (fd >= 0 && is_dir(fd, dev, ino))
			return fd;
		sbx_fd_close(fd);
	}
	return -1;
}

int sbx_moved_dir_open(const char *path, uintmax_t dev, uintmax_t ino)
{
	int fd = open_plain(path), e = fd < 0 ? -errno : -ENOENT;

	if (fd >= 0 && is_dir(fd, dev, ino))
		return fd;
	sbx_fd_close(fd);
	for (size_t end = strlen(path), slash; end > 0; end = slash) {
		for (slash = end - 1; path[slash] != '/';)
			slash--;
		fd = find_beside(path, slash, path + end, dev, ino);
		if (fd >= 0)
			return fd;
	}
	return e;
}
