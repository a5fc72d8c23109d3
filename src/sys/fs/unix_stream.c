/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sys/fs/unix_stream.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/cleanup.h"
#include "base/text.h"

int sbx_unix_connect(const char *path)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	SBX_AUTO_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int r = sbx_text_copy(a.sun_path, sizeof(a.sun_path), path);

	if (fd < 0)
		return -errno;
	if (r < 0)
		return r;
	if (connect(fd, (const struct sockaddr *)&a, sizeof(a)) < 0)
		return -errno;
	return sbx_fd_steal(&fd);
}
