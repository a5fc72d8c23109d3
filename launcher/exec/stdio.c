/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Standard input, output and error of a command are chosen by the caller. Two kinds lead out of the
 * sandbox. A network socket is in the host's network namespace and in the cgroup of its maker, so
 * the command could disconnect it and connect it to anything. From a directory a path with ".."
 * leads out of every view of files, and a descriptor of O_PATH can be one.
 */
#include "launcher/exec/stdio.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>

static const char *const names[] = { "input", "output", "error" };

static int refuse_socket(int fd, const char *name, const char *program, struct sbx_err *err)
{
	int family = AF_UNIX;
	socklen_t n = sizeof(family);

	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &n) < 0 || family == AF_UNIX)
		return 0;
	sbx_err_set(err,
		    "standard %s is a network socket, with which the command could connect to "
		    "anything: put a pipe between (... | cat | %s | cat)",
		    name, program);
	return -EPERM;
}

static int refuse_directory(int fd, const char *name, struct sbx_err *err)
{
	struct stat st;
	int flags = fcntl(fd, F_GETFL);

	if (fstat(fd, &st) == 0 && !S_ISDIR(st.st_mode) && flags >= 0 && !(flags & O_PATH))
		return 0;
	sbx_err_set(err, "standard %s is a directory, or not open for reading or writing", name);
	return -EPERM;
}

int sbx_stdio_check(const int fds[3], const char *program, struct sbx_err *err)
{
	int r = 0;

	for (int i = 0; i < 3 && r == 0; i++) {
		r = refuse_directory(fds[i], names[i], err);
		if (r == 0)
			r = refuse_socket(fds[i], names[i], program, err);
	}
	return r;
}
