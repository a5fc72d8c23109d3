/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sys/fs/file_text.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

ssize_t sbx_file_text_read(int dir_fd, const char *name, char *buf, size_t n)
{
	SBX_AUTO_CLOSE int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC);
	size_t done = 0;

	buf[0] = '\0';
	if (fd < 0)
		return -errno;
	while (done < n - 1) {
		ssize_t r = read(fd, buf + done, n - 1 - done);

		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0) {
			buf[0] = '\0';
			return -errno;
		}
		if (r == 0)
			break;
		done += (size_t)r;
	}
	buf[done] = '\0';
	return (ssize_t)done;
}

int sbx_file_text_write(int dir_fd, const char *name, const char *text)
{
	SBX_AUTO_CLOSE int fd = openat(dir_fd, name, O_WRONLY | O_CLOEXEC);
	size_t n = strlen(text);
	ssize_t r;

	if (fd < 0)
		return -errno;
	do {
		r = write(fd, text, n);
	} while (r < 0 && errno == EINTR);
	if (r < 0)
		return -errno;
	return (size_t)r == n ? 0 : -EIO;
}
