/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SBX_SYS_PROCESS_IDMAP_H
#define SBX_SYS_PROCESS_IDMAP_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"

/* Id-mapped mounts. */

struct sbx_idmap_pair {
	uid_t uid;
	gid_t gid;
};

/* A user namespace that maps @from, as files have them, to @to, as the kernel is to see them,
 * and nothing else. Other owners have no number on such a mount, and their files cannot be
 * written, whatever the mode (mount_setattr(2)). Needs CAP_SETUID, CAP_SETGID and CAP_SYS_ADMIN.
 * fd or -errno with @err. */
int sbx_idmap_userns(const struct sbx_idmap_pair *from, const struct sbx_idmap_pair *to,
		     struct sbx_err *err);

/* A detached copy of the mount at @source_fd (O_PATH), with all mounts below it when @recursive,
 * mapped by @userns_fd: nosuid, nodev, private, read-only unless @writable. Needs CAP_SYS_ADMIN
 * over the user namespaces of the file systems. fd or -errno: -EINVAL: a file system does not
 * support it; -EPERM: a mount is id-mapped already, or its file system belongs to another user
 * namespace. */
int sbx_idmap_clone(int source_fd, int userns_fd, bool recursive, bool writable);

/* PURE. The mount point and the type of the file system in a line of proc_pid_mountinfo(5). Both
 * point into @line, which is changed. */
bool sbx_idmap_mountinfo_line(char *line, const char **ret_mount_point, const char **ret_type);

#endif
