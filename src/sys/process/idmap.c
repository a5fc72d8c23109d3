/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Id-mapped mounts (mount_setattr(2)): a detached copy of a mount, on which one user and one group
 * of the file system appear as another user and group; files made there get the former again. The
 * kernel takes the mapping from a user namespace. A child makes that namespace and does nothing
 * else.
 */
#include "sys/process/idmap.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "sys/process/proc.h"
#include "sys/process/userns.h"

/* The child shares our fd table, so the fd that it opens is ours too. It opens its own namespace
 * because the launcher, which is not dumpable, would need CAP_SYS_PTRACE to open it. */
static _Noreturn void open_namespace(int answer, pid_t parent)
{
	int fd;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	fd = open("/proc/self/ns/user", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		fd = -errno;
	if (write(answer, &fd, sizeof(fd)) != sizeof(fd))
		_exit(1);
	while (getppid() == parent)
		pause();
	_exit(0);
}

/* Wait for a byte and not for end of file: both processes share the table that has the writing
 * end. */
static int answer_of(int read_end, int pidfd)
{
	struct pollfd p[2] = { { .fd = read_end, .events = POLLIN },
			       { .fd = pidfd, .events = POLLIN } };
	int fd;

	while (poll(p, 2, -1) < 0)
		if (errno != EINTR)
			return -errno;
	if (!(p[0].revents & POLLIN))
		return -ECHILD; /* killed */
	return read(read_end, &fd, sizeof(fd)) == sizeof(fd) ? fd : -EIO;
}

int sbx_idmap_userns(const struct sbx_idmap_pair *from, const struct sbx_idmap_pair *to,
		     struct sbx_err *err)
{
	SBX_AUTO_CLOSE int read_end = -1, write_end = -1, pidfd = -1;
	pid_t self = getpid(), pid;
	int fd = -1, r = sbx_fd_pipe(&read_end, &write_end);

	if (r < 0)
		return r;
	pid = sbx_proc_clone(CLONE_NEWUSER | CLONE_FILES, &pidfd, err);
	if (pid < 0)
		return pid;
	if (pid == 0)
		open_namespace(write_end, self);
	fd = answer_of(read_end, pidfd);
	if (fd < 0)
		sbx_err_set(err, "cannot open a new user namespace: %s", strerror(-fd));
	r = fd < 0 ? fd : sbx_userns_write_maps(pid, from->uid, to->uid, from->gid, to->gid, err);
	sbx_proc_end(&pid);
	if (r < 0)
		sbx_fd_close(fd);
	return r < 0 ? r : fd;
}

int sbx_idmap_clone(int source_fd, int userns_fd, bool recursive, bool writable)
{
	struct mount_attr a = {
		.attr_set = MOUNT_ATTR_IDMAP | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
			    (writable ? 0 : MOUNT_ATTR_RDONLY),
		.propagation = MS_PRIVATE,
		.userns_fd = (uint64_t)userns_fd,
	};
	unsigned int deep = recursive ? AT_RECURSIVE : 0;
	SBX_AUTO_CLOSE int fd = open_tree(
		source_fd, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH | deep);

	if (fd < 0 || mount_setattr(fd, "", AT_EMPTY_PATH | deep, &a, sizeof(a)) < 0)
		return -errno;
	return sbx_fd_steal(&fd);
}

/* --- mountinfo --- */

/* proc_pid_mountinfo(5): blank, tab, newline and backslash are written in octal. In place. */
static void unescape(char *s)
{
	char *out = s;

	for (; *s; s++) {
		unsigned int byte;

		if (s[0] == '\\' && s[1] && s[2] && s[3] && sscanf(s + 1, "%3o", &byte) == 1) {
			*out++ = (char)byte;
			s += 3;
		} else {
			*out++ = *s;
		}
	}
	*out = '\0';
}

bool sbx_idmap_mountinfo_line(char *line, const char **ret_mount_point, const char **ret_type)
{
	char *rest = line, *field = NULL, *point = NULL;

	for (int i = 0; i < 5; i++) {
		field = strsep(&rest, " ");
		if (!field)
			return false;
	}
	point = field;
	while ((field = strsep(&rest, " ")) && strcmp(field, "-") != 0)
		;
	field = field ? strsep(&rest, " \n") : NULL;
	if (!field || !field[0])
		return false;
	unescape(point);
	*ret_mount_point = point;
	*ret_type = field;
	return true;
}
