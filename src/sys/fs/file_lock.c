/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sys/fs/file_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

int sbx_file_lock(int dir_fd, const char *name, int fd)
{
	struct stat ours, there;

	if (flock(fd, LOCK_EX | LOCK_NB) < 0 || fstat(fd, &ours) < 0)
		return -errno;
	if (fstatat(dir_fd, name, &there, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? -ESTALE : -errno;
	return ours.st_ino == there.st_ino && ours.st_dev == there.st_dev ? 0 : -ESTALE;
}
