/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Id-mapped mounts (mount_setattr(2)): a detached copy of a mount, through which one user and one group of
 * the file system appear as others, in both directions. The kernel takes the mapping from a user namespace;
 * a child makes one and has nothing else to do.
 */
#include "sys/idmap.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "sys/proc.h"
#include "sys/userns.h"

static _Noreturn void wait_for_the_end(pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (getppid() == parent)
		pause();
	_exit(0);
}

int sbx_idmap_userns(const struct sbx_idmap_pair *from, const struct sbx_idmap_pair *to, struct sbx_err *err)
{
	char path[64];
	pid_t self = getpid(), pid = sbx_proc_clone(CLONE_NEWUSER, NULL, err);
	int r, fd = -1;

	if (pid < 0)
		return pid;
	if (pid == 0)
		wait_for_the_end(self);
	r = sbx_userns_write_maps(pid, from->uid, to->uid, from->gid, to->gid, err);
	if (r == 0) {
		snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		r = fd < 0 ? -errno : 0;
		if (r < 0)
			sbx_err_set(err, "cannot open %s: %s", path, strerror(-r));
	}
	kill(pid, SIGKILL); /* our child, not yet reaped */
	sbx_proc_reap(&pid);
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
	SBX_AUTO_CLOSE int fd =
		open_tree(source_fd, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH | deep);

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
